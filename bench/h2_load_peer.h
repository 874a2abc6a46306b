/* SPDX-License-Identifier: Apache-2.0 */
/* One end of an HTTP/2 connection: a socket that does not block, an nghttp2 session, and what
 * waits to be written. The load generator and the yardstick both stand on it.
 *
 * Frames are gathered until there is about a megabyte of them, or nothing more to say, and go
 * out in one writev(): headers and small things from a buffer of the connection, large ones
 * from where they lie. Incoming bytes go into one buffer of the thread, except those of a large
 * message, which the owner may want to have read straight to their place. */
#ifndef BENCH_H2_LOAD_PEER_H
#define BENCH_H2_LOAD_PEER_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    H2_FRAME_BYTES = 1 << 20,   /* the largest DATA frame either side takes */
    H2_WINDOW_BYTES = 16 << 20, /* of a stream and of a connection */
    H2_SCRATCH_BYTES = 256 << 10,
    H2_COPY_BYTES = 4096,      /* what is not larger is copied, not pointed to */
    H2_COPY_FRAME = 128 << 10, /* at most that much of a frame is copied */
    H2_FRAME_PIECES = 128,     /* and at most that many things are pointed to */
};

typedef struct h2_peer h2_peer;

struct h2_peer {
    int fd;
    nghttp2_session *session; /* its user data is the peer */
    void *owner;

    /* Queues `size` bytes of a stream's data with h2_peer_put() and h2_peer_copy(): the ones
     * the owner's data source promised with NGHTTP2_DATA_FLAG_NO_COPY. */
    void (*gather)(h2_peer *peer, int32_t stream, nghttp2_data_source *source, size_t size);
    /* All that was queued has been written, so what it pointed to is free again. May be NULL.
     */
    void (*drained)(h2_peer *peer);
    /* Where the next bytes should go that arrive, {NULL, 0}: anywhere. May be NULL. */
    struct iovec (*place)(h2_peer *peer);

    struct iovec pieces[2 * H2_FRAME_PIECES + 8];
    size_t piece_count, piece_at;
    size_t queued; /* bytes not yet written */
    uint8_t *small;
    size_t small_used;
    uint64_t written; /* bytes since the beginning */
    bool blocked;     /* the socket is full */
};

/* Sets everything above `pieces`; the socket is taken and made ready. The session is made by
 * h2_peer_begin(). */
void h2_peer_init(h2_peer *peer, int fd, void *owner);
void h2_peer_deinit(h2_peer *peer);

/* Callbacks that send for a peer; the owner adds those that receive, makes the session of its
 * peers with them and deletes them. */
nghttp2_session_callbacks *h2_peer_callbacks(void);

/* Makes the session and queues settings that welcome large frames and windows. */
void h2_peer_begin(h2_peer *peer, const nghttp2_session_callbacks *callbacks, bool server);

/* Within gather(): by reference, which must be good until drained(), or by value. A data source
 * must not promise more for one frame than H2_COPY_FRAME and H2_FRAME_PIECES allow. */
void h2_peer_put(h2_peer *peer, const void *data, size_t size);
void h2_peer_copy(h2_peer *peer, const void *data, size_t size);

/* Writes until there is nothing more to say or the socket is full. False if the connection is
 * gone. */
bool h2_peer_write(h2_peer *peer);

/* Reads what has arrived, at most a few megabytes, and hands it to the session. `scratch` has
 * H2_SCRATCH_BYTES. False if the connection is gone. */
bool h2_peer_read(h2_peer *peer, uint8_t *scratch);

#endif
