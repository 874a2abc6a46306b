/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of the load with its one stream: what it sends, what it expects, what it has
 * got. Driven by one thread. */
#ifndef BENCH_H2_LOAD_STREAM_H
#define BENCH_H2_LOAD_STREAM_H

#include "h2_load.h"
#include "h2_load_message.h"
#include "h2_load_peer.h"
#include "h2_load_samples.h"

enum {
    H2_OUTSTANDING =
        1 << 15, /* inserts of a stream that wait for their confirmation, at most */
    H2_REQUESTS_AHEAD = 4,
};

typedef struct h2_stream {
    h2_peer peer;
    const h2_load_options *options; /* without zeros */
    const h2_shape *shape;
    int32_t id;      /* of HTTP/2 */
    uint64_t number; /* of the connection: the upper part of its items' numbers */
    uint64_t sent;   /* items, or samples asked for */
    uint64_t limit;  /* of `sent` */
    uint64_t ahead;  /* items that may be on their way */
    uint64_t done;   /* items confirmed, or samples complete */
    bool may_fill;   /* there is time for another batch in this turn */
    bool stopping;   /* nothing new is begun */
    bool ended;      /* we have half-closed */
    bool closed;     /* the server has, too */
    bool deferred;   /* the session waits for nghttp2_session_resume_data() */
    bool wants_out;  /* the thread that drives it watches for room in the socket */
    int status;      /* of gRPC; -1: none yet */
    char message[120];

    h2_batch batch; /* inserts */
    size_t piece, piece_at;
    size_t batch_left;     /* bytes not yet queued */
    uint64_t *outstanding; /* a bit for each of the last H2_OUTSTANDING items */
    h2_bytes answer;       /* a message that is not whole yet */

    h2_bytes request; /* one SampleStreamRequest */
    size_t requests_due;
    h2_samples samples;

    double began; /* a roundtrip */
    double *latencies;
    size_t latency_count, latency_capacity;
} h2_stream;

/* The callbacks for sessions of streams, to be deleted. */
nghttp2_session_callbacks *h2_stream_callbacks(void);

/* Connects and begins the call. `options`, `shape` and `callbacks` are borrowed. Ends the
 * program if there is no connection. */
void h2_stream_init(h2_stream *stream, uint64_t number, const h2_load_options *options,
                    const h2_shape *shape, const nghttp2_session_callbacks *callbacks);
void h2_stream_deinit(h2_stream *stream);

/* Reads, checks, writes. False when the call has ended or the connection is gone. */
bool h2_stream_turn(h2_stream *stream, bool readable, uint8_t *scratch);

/* True if the stream could go on if only it had a turn; otherwise it waits for its peer. */
bool h2_stream_wants_turn(const h2_stream *stream);

/* True if the call ended as it should: all confirmed, all sampled, status OK. */
bool h2_stream_ok(const h2_stream *stream);

/* Appends the bytes that a client says first: preface, settings, and the beginning of an
 * InsertStream if `with_call`. */
void h2_stream_opening(h2_bytes *out, bool with_call);

#endif
