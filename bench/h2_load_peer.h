/* SPDX-License-Identifier: Apache-2.0 */
/* One end of an HTTP/2 connection: a non-blocking socket, an nghttp2 session, and a queue of
 * bytes to be written. The load generator (h2_load.h) and the yardstick (yardstick.h) use it.
 *
 * Frames are queued until they have about a megabyte, or until there is no more to send. One
 * writev() then writes them: headers and small data from a buffer of the connection, large data
 * without a copy. Incoming bytes are read into one buffer of the thread. If the owner of the
 * peer sets place(), the bytes of a large message are read directly to their destination. */
#ifndef BENCH_H2_LOAD_PEER_H
#define BENCH_H2_LOAD_PEER_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    H2_FRAME_BYTES = 1 << 20,   /* the largest DATA frame that either side accepts */
    H2_WINDOW_BYTES = 16 << 20, /* flow control window of a stream and of a connection */
    H2_SCRATCH_BYTES = 256 << 10,
    H2_COPY_BYTES = 4096,      /* data of at most this size is copied */
    H2_COPY_FRAME = 128 << 10, /* the most bytes of a frame that are copied */
    H2_FRAME_PIECES = 128,     /* the most pieces of a frame that are not copied */
};

typedef struct h2_peer h2_peer;

struct h2_peer {
    int fd;
    nghttp2_session *session; /* its user data is the peer */
    void *owner;

    /* Queues the next `size` bytes of a stream's data with h2_peer_put() and h2_peer_copy().
     * Called if the owner's data source has set NGHTTP2_DATA_FLAG_NO_COPY for this data. */
    void (*gather)(h2_peer *peer, int32_t stream, nghttp2_data_source *source, size_t size);
    /* Called when all queued bytes have been written: from now on, the owner can reuse the
     * memory that it passed to h2_peer_put(). May be NULL. */
    void (*drained)(h2_peer *peer);
    /* Returns the destination of the next bytes that arrive, or {NULL, 0} for the thread's
     * buffer. May be NULL. */
    struct iovec (*place)(h2_peer *peer);

    struct iovec pieces[2 * H2_FRAME_PIECES + 8];
    size_t piece_count, piece_at;
    size_t queued;  /* bytes not yet written */
    uint8_t *small; /* buffer for headers and copied data */
    size_t small_used;
    uint64_t written; /* bytes since the beginning */
    bool blocked;     /* the buffer of the socket is full */
};

/* Initialises a peer and sets the options of its socket. The peer owns the socket. The session
 * is made later, by h2_peer_begin(). */
void h2_peer_init(h2_peer *peer, int fd, void *owner);
void h2_peer_deinit(h2_peer *peer);

/* Makes an object with the nghttp2 callbacks for sending. The owner must add the callbacks for
 * receiving, pass the object to h2_peer_begin(), and delete it at the end. */
nghttp2_session_callbacks *h2_peer_callbacks(void);

/* Makes the session and queues settings for large frames and windows. */
void h2_peer_begin(h2_peer *peer, const nghttp2_session_callbacks *callbacks, bool server);

/* Queue bytes; called by gather(). h2_peer_put() queues a reference to the bytes, which must
 * stay valid until drained() is called. h2_peer_copy() queues a copy. For one frame, a data
 * source must not return more than H2_COPY_FRAME copied bytes or more than H2_FRAME_PIECES
 * pieces. */
void h2_peer_put(h2_peer *peer, const void *data, size_t size);
void h2_peer_copy(h2_peer *peer, const void *data, size_t size);

/* Writes until all bytes are sent or the buffer of the socket is full. Returns false if the
 * connection has ended. */
bool h2_peer_write(h2_peer *peer);

/* Reads the bytes that have arrived, at most a few megabytes, and passes them to the session.
 * `scratch`, the thread's buffer, has H2_SCRATCH_BYTES bytes. Returns false if the connection
 * has ended. */
bool h2_peer_read(h2_peer *peer, uint8_t *scratch);

#endif
