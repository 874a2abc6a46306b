/* SPDX-License-Identifier: Apache-2.0 */
/* The first thread accepts connections and distributes them in turn; each stays on its thread.
 * A connection has any number of streams. */
#include "yardstick.h"

#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "h2_load_message.h"
#include "h2_load_peer.h"

enum {
    EVENTS = 64,
    AHEAD = 8, /* draws whose messages are prefetched into the cache */
    LINE = 64,
    DIRECT_BYTES = 4096, /* least frame and message to read directly into the block */
};

typedef enum call_kind { CALL_INSERT, CALL_SAMPLE, CALL_ECHO } call_kind;

typedef struct block {
    struct block *next;
    size_t size;
    uint8_t data[];
} block;

typedef struct server {
    yardstick_options options;
    int listener;
    uint8_t *pool; /* messages of equal size */
    size_t message_bytes, message_count;
} server;

typedef struct loop {
    server *server;
    int epoll;
    struct loop *all;
    size_t count, turn; /* the number of loops, and the loop of the next connection */
    uint8_t *scratch;
    bench_rng rng;
    block *oldest, *newest; /* blocks that are kept */
    size_t kept;
} loop;

/* One stream. */
typedef struct call {
    struct call *next;
    call_kind kind;
    int32_t id;
    uint8_t prefix[H2_PREFIX_BYTES];
    size_t prefix_size;
    block *message; /* the one that is being received */
    size_t filled;
    bool ended;              /* the client has half-closed the stream */
    bool deferred;           /* the data source had no data */
    uint64_t unanswered;     /* messages inserted and not yet acknowledged */
    uint64_t samples;        /* samples still to be sent */
    size_t ahead[AHEAD];     /* messages drawn; the first is being sent */
    size_t sent;             /* bytes sent of the first */
    block *echo, *echo_last; /* messages to be sent back */
} call;

typedef struct connection {
    h2_peer peer;
    loop *loop;
    call *calls;
    call *current;     /* the call whose DATA frame is being read */
    size_t frame_left; /* bytes left of that frame */
    bool watching_out;
} connection;

static void keep(loop *l, block *message)
{
    size_t budget = l->server->options.keep_bytes / l->count;

    message->next = NULL;
    if (l->newest != NULL)
        l->newest->next = message;
    else
        l->oldest = message;
    l->newest = message;
    l->kept += message->size;
    while (l->kept > budget && l->oldest != l->newest) {
        block *old = l->oldest;
        l->oldest = old->next;
        l->kept -= old->size;
        free(old);
    }
}

static void say_later(call *c, block *message)
{
    message->next = NULL;
    if (c->echo_last != NULL)
        c->echo_last->next = message;
    else
        c->echo = message;
    c->echo_last = message;
}

static uint64_t samples_of(const block *request)
{
    const uint8_t *at = request->data, *end = at + request->size;
    h2_field field;

    while (at != NULL && at != end) {
        at = h2_read_field(at, end, &field);
        if (at != NULL && field.number == 2) return field.value;
    }
    return 0;
}

static void take_message(connection *n, call *c)
{
    block *message = c->message;

    c->message = NULL;
    c->prefix_size = c->filled = 0;
    if (c->kind == CALL_INSERT) {
        keep(n->loop, message);
        c->unanswered++;
    } else if (c->kind == CALL_SAMPLE) {
        c->samples += samples_of(message);
        free(message);
    } else {
        say_later(c, message);
    }
}

static void begin_message(call *c)
{
    const uint8_t *p = c->prefix;
    size_t size = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];

    c->message = bench_memory(malloc(sizeof *c->message + size));
    c->message->size = size;
    c->filled = 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t size, void *user)
{
    connection *n = ((h2_peer *)user)->owner;
    call *c = n->current;

    (void)session;
    (void)flags;
    (void)id;
    n->frame_left -= size;
    while (c != NULL && size > 0) {
        if (c->message == NULL) {
            size_t part = H2_PREFIX_BYTES - c->prefix_size;
            if (part > size) part = size;
            memcpy(c->prefix + c->prefix_size, data, part);
            c->prefix_size += part;
            data += part;
            size -= part;
            if (c->prefix_size < H2_PREFIX_BYTES) break;
            begin_message(c);
        }
        size_t part = c->message->size - c->filled;
        if (part > size) part = size;
        uint8_t *to = c->message->data + c->filled;
        if (to != data) memcpy(to, data, part); /* equal if it was read to its place */
        c->filled += part;
        data += part;
        size -= part;
        if (c->filled == c->message->size) take_message(n, c);
    }
    return 0;
}

/* Returns the block of the message as the destination, if enough bytes of it follow. */
static struct iovec place(h2_peer *peer)
{
    connection *n = peer->owner;
    call *c = n->current;
    struct iovec none = {NULL, 0};

    if (c == NULL || c->message == NULL) return none;
    size_t size = c->message->size - c->filled;
    if (size > n->frame_left) size = n->frame_left;
    if (size < DIRECT_BYTES) return none;
    return (struct iovec){c->message->data + c->filled, size};
}

static const uint8_t *draw(loop *l, call *c, bool next)
{
    const server *s = l->server;

    if (next) {
        size_t drawn = bench_below(&l->rng, s->message_count);
        const uint8_t *to_come = s->pool + c->ahead[AHEAD - 1] * s->message_bytes;
        memmove(c->ahead, c->ahead + 1, (AHEAD - 1) * sizeof c->ahead[0]);
        c->ahead[AHEAD - 1] = drawn;
        if (s->message_bytes <= H2_COPY_BYTES)
            for (size_t i = 0; i < s->message_bytes; i += LINE) __builtin_prefetch(to_come + i);
    }
    return s->pool + c->ahead[0] * s->message_bytes;
}

static void gather(h2_peer *peer, int32_t id, nghttp2_data_source *source, size_t size)
{
    connection *n = peer->owner;
    const server *s = n->loop->server;
    call *c = source->ptr;

    (void)id;
    while (size > 0) {
        const uint8_t *message = draw(n->loop, c, false);
        size_t part = s->message_bytes - c->sent;
        if (part > size) part = size;
        if (s->message_bytes <= H2_COPY_BYTES)
            h2_peer_copy(peer, message + c->sent, part);
        else
            h2_peer_put(peer, message + c->sent, part);
        c->sent += part;
        size -= part;
        if (c->sent == s->message_bytes) {
            c->sent = 0;
            c->samples -= s->options.samples;
            draw(n->loop, c, true);
        }
    }
}

/* Returns how many bytes of the requested samples go into one frame. */
static size_t promise(const connection *n, const call *c, size_t size)
{
    const server *s = n->loop->server;
    size_t bytes = s->message_bytes;
    size_t owed = (size_t)(c->samples / s->options.samples) * bytes - c->sent;
    size_t most = bytes <= H2_COPY_BYTES ? H2_COPY_FRAME : (H2_FRAME_PIECES - 2) * bytes;

    if (size > owed) size = owed;
    return size > most ? most : size;
}

static ssize_t end_of_call(nghttp2_session *session, call *c, uint32_t *flags)
{
    nghttp2_nv trailer = {(uint8_t *)(uintptr_t) "grpc-status", (uint8_t *)(uintptr_t) "0", 11,
                          1, NGHTTP2_NV_FLAG_NONE};

    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    nghttp2_submit_trailer(session, c->id, &trailer, 1);
    return 0;
}

static ssize_t answer_inserts(call *c, uint8_t *out)
{
    uint64_t count = c->unanswered;
    size_t size = H2_PREFIX_BYTES;

    memset(out, 0, H2_PREFIX_BYTES);
    out[size++] = 2 << 3;
    while (count >= 0x80) {
        out[size++] = (uint8_t)(count | 0x80);
        count >>= 7;
    }
    out[size++] = (uint8_t)count;
    out[4] = (uint8_t)(size - H2_PREFIX_BYTES);
    c->unanswered = 0;
    return (ssize_t)size;
}

static ssize_t answer_echo(call *c, uint8_t *out, size_t size)
{
    block *message = c->echo;

    if (size < H2_PREFIX_BYTES + message->size) return 0;
    out[0] = 0;
    for (int i = 0; i < 4; i++) out[1 + i] = (uint8_t)(message->size >> (24 - 8 * i));
    memcpy(out + H2_PREFIX_BYTES, message->data, message->size);
    size = H2_PREFIX_BYTES + message->size;
    c->echo = message->next;
    if (c->echo == NULL) c->echo_last = NULL;
    free(message);
    return (ssize_t)size;
}

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *out, size_t size,
                       uint32_t *flags, nghttp2_data_source *source, void *user)
{
    const connection *n = ((h2_peer *)user)->owner;
    call *c = source->ptr;

    (void)id;
    if (c->unanswered > 0) return answer_inserts(c, out);
    if (c->echo != NULL) return answer_echo(c, out, size);
    if (c->samples >= n->loop->server->options.samples && n->loop->server->pool != NULL) {
        *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
        return (ssize_t)promise(n, c, size);
    }
    if (c->ended) return end_of_call(session, c, flags);
    c->deferred = true;
    return NGHTTP2_ERR_DEFERRED;
}

static call *call_of(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    connection *n = ((h2_peer *)user)->owner;
    call *c = bench_array(1, sizeof *c);

    c->id = frame->hd.stream_id;
    c->next = n->calls;
    n->calls = c;
    for (size_t i = 0; i < AHEAD && n->loop->server->message_count > 0; i++)
        c->ahead[i] = bench_below(&n->loop->rng, n->loop->server->message_count);
    nghttp2_session_set_stream_user_data(session, c->id, c);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *user)
{
    call *c = call_of(session, frame->hd.stream_id);

    (void)flags;
    (void)user;
    if (c == NULL || name_size != 5 || memcmp(name, ":path", 5) != 0) return 0;
    if (value_size >= 12 && memcmp(value + value_size - 12, "SampleStream", 12) == 0)
        c->kind = CALL_SAMPLE;
    else if (value_size >= 4 && memcmp(value + value_size - 4, "Echo", 4) == 0)
        c->kind = CALL_ECHO;
    return 0;
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *header, void *user)
{
    connection *n = ((h2_peer *)user)->owner;

    n->current = NULL;
    if (header->type != NGHTTP2_DATA) return 0;
    n->current = call_of(session, header->stream_id);
    n->frame_left = header->length;
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    nghttp2_nv headers[] = {
        {(uint8_t *)(uintptr_t) ":status", (uint8_t *)(uintptr_t) "200", 7, 3, 0},
        {(uint8_t *)(uintptr_t) "content-type", (uint8_t *)(uintptr_t) "application/grpc", 12,
         16, 0},
    };
    call *c = call_of(session, frame->hd.stream_id);

    (void)user;
    if (c == NULL) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS) {
        nghttp2_data_provider provider = {.source = {.ptr = c}, .read_callback = on_read};
        nghttp2_submit_response(session, c->id, headers, 2, &provider);
    }
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) c->ended = true;
    return 0;
}

static void free_call(call *c)
{
    while (c->echo != NULL) {
        block *message = c->echo;
        c->echo = message->next;
        free(message);
    }
    free(c->message);
    free(c);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    connection *n = ((h2_peer *)user)->owner;

    (void)session;
    (void)code;
    for (call **at = &n->calls; *at != NULL; at = &(*at)->next) {
        call *c = *at;
        if (c->id != id) continue;
        *at = c->next;
        if (n->current == c) n->current = NULL;
        free_call(c);
        break;
    }
    return 0;
}

static void new_connection(loop *l, int fd, const nghttp2_session_callbacks *callbacks)
{
    connection *n = bench_array(1, sizeof *n);
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = n}};

    n->loop = &l->all[l->turn++ % l->count];
    h2_peer_init(&n->peer, fd, n);
    n->peer.gather = gather;
    n->peer.place = place;
    h2_peer_begin(&n->peer, callbacks, true);
    if (!h2_peer_write(&n->peer)) bench_check(RP_UNAVAILABLE, NULL);
    epoll_ctl(n->loop->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void end_connection(connection *n)
{
    h2_peer_deinit(&n->peer);
    while (n->calls != NULL) {
        call *c = n->calls;
        n->calls = c->next;
        free_call(c);
    }
    free(n);
}

/* Called once for each read: resumes the calls that have data to send. */
static void wake_calls(connection *n)
{
    for (call *c = n->calls; c != NULL; c = c->next) {
        if (!c->deferred) continue;
        if (c->unanswered == 0 && c->echo == NULL && c->samples == 0 && !c->ended) continue;
        c->deferred = false;
        nghttp2_session_resume_data(n->peer.session, c->id);
    }
}

static void serve(connection *n, uint32_t events)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = n}};
    loop *l = n->loop;
    bool lives = true;

    if (events & ~(uint32_t)EPOLLOUT) lives = h2_peer_read(&n->peer, l->scratch);
    wake_calls(n);
    if (!lives || !h2_peer_write(&n->peer)) {
        end_connection(n);
        return;
    }
    if ((n->peer.queued > 0) == n->watching_out) return;
    n->watching_out = !n->watching_out;
    if (n->watching_out) event.events |= EPOLLOUT;
    epoll_ctl(l->epoll, EPOLL_CTL_MOD, n->peer.fd, &event);
}

static void *run(void *arg)
{
    struct epoll_event events[EVENTS];
    nghttp2_session_callbacks *callbacks = h2_peer_callbacks();
    loop *l = arg;

    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    for (;;) {
        int n = epoll_wait(l->epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr != NULL) {
                serve(events[i].data.ptr, events[i].events);
                continue;
            }
            int fd = accept4(l->server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd >= 0) new_connection(l, fd, callbacks);
        }
    }
    return NULL;
}

static void fill_pool(server *s)
{
    const yardstick_options *o = &s->options;
    uint8_t *payload = h2_payload_new(o->payload_bytes);
    h2_shape shape = {payload, o->payload_bytes, o->samples, 1};
    h2_bytes message = {0};

    h2_append_sample_response(&message, &shape, 0);
    s->message_bytes = message.size;
    s->message_count = o->pool_bytes / message.size;
    s->pool = bench_memory(malloc(s->message_count * message.size));
    for (size_t i = 0; i < s->message_count; i++) {
        if (i % 64 == 1) { /* building takes time: the others are copies with other keys */
            message.size = 0;
            h2_append_sample_response(&message, &shape, i * o->samples);
        }
        memcpy(s->pool + i * s->message_bytes, message.data, s->message_bytes);
    }
    h2_bytes_deinit(&message);
    free(payload);
}

int yardstick_start(const yardstick_options *options)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    struct epoll_event event = {.events = EPOLLIN};
    server *s = bench_array(1, sizeof *s);
    loop *loops = bench_array(options->threads, sizeof *loops);
    pthread_t thread;

    s->options = *options;
    if (options->pool_bytes > 0) fill_pool(s);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->listener < 0 ||
        bind(s->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(s->listener, 4096) != 0 ||
        getsockname(s->listener, (struct sockaddr *)&address, &size) != 0)
        bench_check(RP_UNAVAILABLE, NULL);
    for (size_t i = 0; i < options->threads; i++) {
        loops[i] = (loop){.server = s, .all = loops, .count = options->threads};
        loops[i].rng.state = 77 + i;
        loops[i].epoll = epoll_create1(EPOLL_CLOEXEC);
        loops[i].scratch = bench_array(H2_SCRATCH_BYTES, 1);
    }
    epoll_ctl(loops[0].epoll, EPOLL_CTL_ADD, s->listener, &event);
    for (size_t i = 0; i < options->threads; i++)
        if (pthread_create(&thread, NULL, run, &loops[i]) != 0)
            bench_check(RP_NO_RESOURCE, NULL);
    return ntohs(address.sin_port);
}
