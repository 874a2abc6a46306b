/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of the load generator with its only stream: the messages to send, and the
 * results. One thread uses it. */
#ifndef BENCH_H2_LOAD_STREAM_H
#define BENCH_H2_LOAD_STREAM_H

#include "h2_load.h"
#include "h2_load_message.h"
#include "h2_load_peer.h"
#include "h2_load_samples.h"

enum {
    H2_OUTSTANDING = 1 << 15, /* the most unconfirmed inserts of a stream */
    H2_REQUESTS_AHEAD = 4,    /* open sample requests of a stream */
};

typedef struct h2_stream {
    h2_peer peer;
    const h2_load_options *options; /* with the defaults filled in */
    const h2_shape *shape;
    int32_t id;      /* HTTP/2 stream id */
    uint64_t number; /* number of the connection. The number of each of its items has this
                        number in the upper bits */
    uint64_t sent;   /* items sent, or samples requested */
    uint64_t limit;  /* upper bound of `sent` */
    uint64_t ahead;  /* the most unconfirmed items */
    uint64_t done;   /* items confirmed, or samples complete */
    bool may_fill;   /* the stream is allowed to send another batch during this
                        h2_stream_turn() */
    bool stopping;   /* no new requests are sent */
    bool ended;      /* the load generator has half-closed the stream */
    bool closed;     /* the server has closed the stream */
    bool deferred;   /* the session waits for nghttp2_session_resume_data() */
    bool wants_out;  /* the thread polls until the socket is writable */
    int status;      /* gRPC status; -1: none yet */
    char message[120];

    h2_batch batch; /* messages with inserts */
    size_t piece, piece_at;
    size_t batch_left;     /* bytes not yet queued */
    uint64_t *outstanding; /* one bit for each of the last H2_OUTSTANDING items; set if the item
                              is unconfirmed */
    h2_bytes answer;       /* the received part of an incomplete message */

    h2_bytes request; /* one SampleStreamRequest */
    size_t requests_due;
    h2_samples samples;

    double began; /* when the current roundtrip began */
    double *latencies;
    size_t latency_count, latency_capacity;
} h2_stream;

/* Makes the callbacks for the sessions of streams. The caller must delete them. */
nghttp2_session_callbacks *h2_stream_callbacks(void);

/* Connects and begins the call of InsertStream or SampleStream. Borrows `options`, `shape` and
 * `callbacks`. If the connection fails, ends the program. */
void h2_stream_init(h2_stream *stream, uint64_t number, const h2_load_options *options,
                    const h2_shape *shape, const nghttp2_session_callbacks *callbacks);
void h2_stream_deinit(h2_stream *stream);

/* Reads and checks responses and writes requests. Returns false when the call or the connection
 * has ended. */
bool h2_stream_turn(h2_stream *stream, bool readable, uint8_t *scratch);

/* Returns true if the stream has something to write as soon as its socket is writable. Returns
 * false if the stream must first receive bytes from the server. */
bool h2_stream_wants_turn(const h2_stream *stream);

/* Returns true if the call has ended correctly: all items confirmed, all samples received,
 * status OK. */
bool h2_stream_ok(const h2_stream *stream);

/* Appends the first bytes of a client: preface and settings. If `with_call`, also appends the
 * beginning of an InsertStream. */
void h2_stream_opening(h2_bytes *out, bool with_call);

#endif
