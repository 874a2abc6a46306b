/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_load_peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

enum {
    SMALL = 2 * H2_COPY_FRAME + (32 << 10), /* buffer of copied data and control frames */
    TURN_BYTES = 4 << 20,                   /* read in one turn */
    /* Bytes read in addition to those that are read directly to their place(): enough for the
     * header of the next large message, and little of its data, which must then be copied. */
    BESIDE_BYTES = 16 << 10,
    BATCH_BYTES = 1 << 20, /* written by one writev() */
};

void h2_peer_init(h2_peer *peer, int fd, void *owner)
{
    int one = 1;

    *peer = (h2_peer){.fd = fd, .owner = owner};
    peer->small = bench_memory(malloc(SMALL));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

void h2_peer_deinit(h2_peer *peer)
{
    if (peer->session != NULL) nghttp2_session_del(peer->session);
    if (peer->fd >= 0) close(peer->fd);
    free(peer->small);
    peer->session = NULL;
    peer->fd = -1;
    peer->small = NULL;
}

void h2_peer_put(h2_peer *peer, const void *data, size_t size)
{
    struct iovec *last = &peer->pieces[peer->piece_count];

    peer->queued += size;
    if (peer->piece_count > peer->piece_at) {
        struct iovec *before = last - 1;
        if ((const uint8_t *)before->iov_base + before->iov_len == (const uint8_t *)data) {
            before->iov_len += size;
            return;
        }
    }
    *last = (struct iovec){(void *)(uintptr_t)data, size};
    peer->piece_count++;
}

void h2_peer_copy(h2_peer *peer, const void *data, size_t size)
{
    uint8_t *to = peer->small + peer->small_used;

    memcpy(to, data, size);
    peer->small_used += size;
    h2_peer_put(peer, to, size);
}

/* True if the queue may have no space for another frame. */
static bool is_full(const h2_peer *peer)
{
    return peer->queued >= BATCH_BYTES || peer->piece_count > H2_FRAME_PIECES ||
           peer->small_used > H2_COPY_FRAME;
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t size, int flags,
                       void *user)
{
    h2_peer *peer = user;

    (void)session;
    (void)flags;
    if (is_full(peer)) return NGHTTP2_ERR_WOULDBLOCK;
    if (size > H2_COPY_FRAME) return NGHTTP2_ERR_CALLBACK_FAILURE;
    h2_peer_copy(peer, data, size);
    return (ssize_t)size;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
                        size_t size, nghttp2_data_source *source, void *user)
{
    h2_peer *peer = user;

    (void)session;
    if (is_full(peer)) return NGHTTP2_ERR_WOULDBLOCK;
    h2_peer_copy(peer, header, 9);
    peer->gather(peer, frame->hd.stream_id, source, size);
    return 0;
}

static ssize_t on_read_length(nghttp2_session *session, uint8_t type, int32_t stream,
                              int32_t session_window, int32_t stream_window, uint32_t frame,
                              void *user)
{
    int32_t size = session_window < stream_window ? session_window : stream_window;

    (void)session;
    (void)type;
    (void)stream;
    (void)user;
    if (frame > H2_FRAME_BYTES) frame = H2_FRAME_BYTES;
    return size < (int32_t)frame ? size : (ssize_t)frame;
}

nghttp2_session_callbacks *h2_peer_callbacks(void)
{
    nghttp2_session_callbacks *callbacks;

    if (nghttp2_session_callbacks_new(&callbacks) != 0) bench_memory(NULL);
    nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, on_read_length);
    return callbacks;
}

void h2_peer_begin(h2_peer *peer, const nghttp2_session_callbacks *callbacks, bool server)
{
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, H2_FRAME_BYTES},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1000},
    };
    int failed = server ? nghttp2_session_server_new(&peer->session, callbacks, peer)
                        : nghttp2_session_client_new(&peer->session, callbacks, peer);

    if (failed != 0 ||
        nghttp2_submit_settings(peer->session, NGHTTP2_FLAG_NONE, settings, 3) != 0 ||
        nghttp2_session_set_local_window_size(peer->session, NGHTTP2_FLAG_NONE, 0,
                                              H2_WINDOW_BYTES) != 0)
        bench_memory(NULL);
}

static void forget_written(h2_peer *peer, size_t size)
{
    peer->queued -= size;
    peer->written += size;
    while (size > 0) {
        struct iovec *piece = &peer->pieces[peer->piece_at];
        if (size < piece->iov_len) {
            piece->iov_base = (uint8_t *)piece->iov_base + size;
            piece->iov_len -= size;
            return;
        }
        size -= piece->iov_len;
        peer->piece_at++;
    }
}

bool h2_peer_write(h2_peer *peer)
{
    for (;;) {
        if (peer->queued == 0) {
            peer->piece_at = peer->piece_count = peer->small_used = 0;
            if (peer->drained != NULL) peer->drained(peer);
            if (nghttp2_session_send(peer->session) != 0) return false;
            if (peer->queued == 0) return true;
        }
        size_t count = peer->piece_count - peer->piece_at;
        ssize_t n = writev(peer->fd, peer->pieces + peer->piece_at, (int)count);
        peer->blocked = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if (n < 0) return peer->blocked || errno == EINTR;
        forget_written(peer, (size_t)n);
    }
}

static bool feed(h2_peer *peer, const uint8_t *data, size_t size)
{
    return size == 0 || nghttp2_session_mem_recv(peer->session, data, size) == (ssize_t)size;
}

bool h2_peer_read(h2_peer *peer, uint8_t *scratch)
{
    for (size_t total = 0; total < TURN_BYTES;) {
        struct iovec parts[2] = {{NULL, 0}, {scratch, H2_SCRATCH_BYTES}};
        if (peer->place != NULL) parts[0] = peer->place(peer);
        bool placed = parts[0].iov_len > 0;
        if (placed) parts[1].iov_len = BESIDE_BYTES;
        size_t wanted = parts[0].iov_len + parts[1].iov_len;
        ssize_t n =
            placed ? readv(peer->fd, parts, 2) : recv(peer->fd, scratch, H2_SCRATCH_BYTES, 0);
        if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
        if (n == 0) return false;
        size_t size = (size_t)n, first = size < parts[0].iov_len ? size : parts[0].iov_len;
        if (!feed(peer, parts[0].iov_base, first) || !feed(peer, scratch, size - first))
            return false;
        total += size;
        if (size < wanted) return true;
    }
    return true;
}
