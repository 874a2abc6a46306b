/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an HTTP/2 connection, shared by h2_session.c (set-up and queries), h2_receive.c
 * (received bytes), h2_send.c (output) and h2_client.c (clients only).
 *
 * Each call has a stream of the session, and the session points at the call until the stream is
 * closed. A server's call ends with its stream. A client's may end before its stream, when it
 * is cancelled, or after, if it is paused when the response ends. It is freed once both have
 * ended, and not from within a handler.
 *
 * Invariants:
 *   H1  call_count is the number of calls in `calls` that are not closed;
 *   H2  h2->queued is the sum of `queued` of all calls, and the bytes of replies that were
 * handed
 *       to the output and are not written;
 *   H3  `held` is the sum of the bytes of blocks in assembly, and of waiting messages with
 *       WAITING_BYTES each;
 *   H4  `assembling`, `partial` and `awaited` are the sums of what the calls have counted;
 *   H5  out_first <= out_count <= out_capacity; out[out_first..] have not been written;
 *   H6  a paused call delivers no message;
 *   H7  frame_left is 0 except within a DATA frame. */
#ifndef RP_WIRE_H2_H2_INSIDE_H
#define RP_WIRE_H2_H2_INSIDE_H

#include <assert.h>
#include <nghttp2/nghttp2.h>

#include "wire/h2/frame_meter.h"
#include "wire/h2/h2.h"

enum {
    RP_H2_WINDOW = 4 << 20,             /* of a call */
    RP_H2_CONNECTION_WINDOW = 16 << 20, /* of all */
    RP_H2_FRAME = 1 << 20,              /* the largest either side sends */
    RP_H2_EARNED_PINGS = 4,             /* free for the peer after each DATA frame of ours */
    RP_H2_EARNED_WINDOWS = 16,
    RP_H2_CALL_WINDOWS = 4,      /* for each call: grpcio sends two before any data */
    RP_H2_MESSAGE_FRAGMENTS = 2, /* for each call and each message */
    RP_H2_EARNED_MOST = 4096,    /* of each of these */
    RP_H2_FRAGMENT_BYTES = 64,   /* a smaller part of a message is a fragment */
    RP_H2_SMALL_CONTINUATION = 1024,
    RP_H2_SURPLUS_BYTES =
        4 << 10, /* of a header block beyond its limits: each so many are charged, */
    RP_H2_SURPLUS_FIELDS = 16, /* and each so many fields */
    RP_H2_TEXT_BYTES = 384,    /* of an encoded status text */
    RP_H2_MOST_ACKS = 1 << 14, /* that wait to be sent, for a client */
};

/* A message that waits because its call is paused. */
typedef struct rp_waiting_message {
    rp_block *block;
    struct rp_waiting_message *next;
} rp_waiting_message;

struct rp_call {
    rp_h2 *h2;
    void *user;
    rp_call *prev, *next; /* of the connection */
    int32_t id;

    /* receiving */
    uint8_t prefix[RP_GRPC_PREFIX];
    uint8_t prefix_bytes;
    rp_block *block;     /* the message in assembly; NULL: none */
    size_t message_size; /* once the prefix is complete */
    rp_waiting_message *first_waiting, **last_waiting;
    size_t withheld; /* bytes of the window not returned */
    size_t late;     /* cost of DATA dropped since we have ended it */
    bool paused, half_closed, half_close_told;
    bool counted_assembling;                 /* in h2->assembling */
    size_t counted_partial, counted_awaited; /* in h2->partial and h2->awaited */
    bool has_trailers;

    /* sending */
    rp_message *first_reply, *last_reply;
    size_t queued;   /* bytes of them not handed to the output */
    size_t promised; /* bytes of the frame that the session is making */
    bool headers_sent, deferred, finished, answered, opened, closed, wants_room;
    bool closing;     /* nothing more is to be sent */
    bool finishing;   /* the same, and received messages are dropped */
    bool raw;         /* no trailers follow: plain HTTP, or a client */
    uint8_t leftover; /* sweeps since it was answered in full, plus 1, if still open */
    rp_status status; /* of a client's call: from the server, once half_closed */
    char text[RP_H2_TEXT_BYTES];

    /* of a client */
    bool has_stream; /* its stream is open */
    int http_status; /* 0: no response yet */
    rp_call *next_dead;
};

/* Bytes to be written: in a reply, or, with `data` NULL, at `at` in the control bytes. */
typedef struct rp_out_piece {
    const uint8_t *data;
    size_t at, size;
    rp_message *reply;
} rp_out_piece;

struct rp_h2 {
    nghttp2_session *session;
    rp_allocator alloc;
    rp_allocator large_alloc; /* of blocks of large_bytes and more */
    size_t large_bytes;       /* 0: none are */
    const rp_h2_handler *handler;
    void *user;
    rp_h2_limits limits;
    rp_message_pool *pool;
    rp_block_pool *blocks; /* borrowed; NULL: none */
    rp_call *calls;
    size_t call_count;
    bool is_client;
    size_t streams; /* of a client: calls with has_stream */
    rp_call *dead;  /* of a client: to be freed */
    bool broken;    /* nothing more is received */
    bool starved;   /* nor sent: there was no memory for a necessary frame */
    bool violated;  /* the peer has violated HTTP/2, which ends the connection */
    bool ended;     /* by rp_h2_terminate() */
    bool gone_away;
    bool greeted;    /* its first SETTINGS have arrived */
    bool in_headers; /* a block of headers has begun */
    uint64_t pongs;
    size_t leftovers; /* calls that were answered in full and that the peer has not ended */

    /* the headers that are being collected */
    rp_buf head;
    struct {
        size_t at, size;
    } fields[6]; /* see enum in h2_receive.c, and in h2_client.c */
    size_t head_bytes, head_fields;

    /* receiving */
    size_t held;
    uint64_t message_progress;
    uint64_t messages;                   /* that were delivered */
    size_t assembling;                   /* calls with an incomplete message, not paused */
    size_t partial, awaited;             /* bytes of those messages: arrived, still to come */
    rp_call *direct;                     /* whose message the last DATA bytes belonged to */
    size_t frame_left;                   /* bytes of the current DATA frame still to come */
    size_t earned_pings, earned_windows; /* free: earned by our data, and by calls */
    size_t earned_fragments;             /* free: earned by calls and messages */
    size_t earned_resets;                /* of ended streams: one for each call */
    size_t earned_late;   /* bytes of DATA that may be in flight to calls that we have reset */
    size_t pings_out;     /* that the peer has not acknowledged */
    rp_frame_meter meter; /* of a server: all frames received */
    rp_data_sum reported; /* those DATA frames of them that nghttp2 has reported */
    uint64_t charged_table_sizes; /* of those that the meter has counted */

    /* sending */
    size_t queued; /* H2 */
    uint64_t left; /* bytes of replies that were written */
    rp_buf control;
    rp_out_piece *out;
    size_t out_count, out_capacity, out_first, out_bytes;
    bool room_made;      /* a call that wants_room has some */
    int32_t room_id;     /* of the last call that has sent something in rp_h2_make_room() */
    rp_message *landing; /* replies whose last bytes are in the output, in order */
    rp_message **landing_end;
};

/* Adds to what the peer has earned, up to `most`. */
static inline void rp_h2_earn(size_t *earned, size_t more, size_t most)
{
    assert(*earned <= most);
    *earned = most - *earned > more ? *earned + more : most;
}

/* We reset or refuse a call: as many bytes as its window may be in flight to it. */
static inline void rp_h2_expect_late(rp_h2 *h2)
{
    rp_h2_earn(&h2->earned_late, RP_H2_WINDOW, RP_H2_CONNECTION_WINDOW);
}

/* h2_receive.c */
int rp_h2_on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user);
int rp_h2_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                    size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                    void *user);
int rp_h2_on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *user);
int rp_h2_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user);
int rp_h2_on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error,
                           void *user);
int rp_h2_on_unknown_frame(nghttp2_session *session, void **payload,
                           const nghttp2_frame_hd *head, void *user);
int rp_h2_on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                  size_t size, void *user);
void rp_h2_drop_received(rp_call *call);
/* Updates what the connection counts of the call's incomplete message. */
void rp_h2_count_assembling(rp_call *call);
/* The headers in collection: clears them; stores a value (false: no memory); returns it. */
void rp_h2_clear_head(rp_h2 *h2);
bool rp_h2_keep_field(rp_h2 *h2, int field, const uint8_t *value, size_t size);
rp_string rp_h2_kept_field(const rp_h2 *h2, int field);
/* The peer has ended its side: calls the handler, unless the call is paused. */
void rp_h2_tell_half_close(rp_call *call);

/* h2_send.c */
int rp_h2_on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user);
int rp_h2_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                    size_t length, nghttp2_data_source *source, void *user);
void rp_h2_drop_replies(rp_call *call);
void rp_h2_drop_unpromised(
    rp_call *call); /* those of which no byte was handed to the session */
/* Adds bytes to the output. False: no memory. */
bool rp_h2_push_control(rp_h2 *h2, const uint8_t *data, size_t size);
nghttp2_nv rp_h2_field(const char *name, const char *value); /* borrowed */
/* Has the session request more data of a call. */
void rp_h2_wake(rp_call *call);
ssize_t rp_h2_read_replies(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length,
                           uint32_t *flags, nghttp2_data_source *source, void *user);

/* h2_client.c; for connections with is_client only */
int rp_h2_client_header(rp_h2 *h2, const nghttp2_frame *frame, const uint8_t *name,
                        size_t name_size, const uint8_t *value, size_t value_size);
/* Handles a complete block of headers. */
void rp_h2_take_answer(rp_call *call, bool end);
/* The server has ended its side: drops what we would send. */
void rp_h2_stop_sending(rp_call *call);
/* The same, after all of its messages were delivered: ends the call. */
void rp_h2_end_answer(rp_call *call);
/* Ends a call for a local reason. */
void rp_h2_fail_call(rp_call *call, rp_status status, const char *text);
void rp_h2_stream_closed(rp_call *call, uint32_t code);
void rp_h2_free_dead(rp_h2 *h2);  /* frees the calls that have ended */
void rp_h2_end_client(rp_h2 *h2); /* ends and frees all calls */

/* h2_session.c */
rp_status rp_h2_open(const rp_allocator *alloc, const rp_h2_handler *handler, void *user,
                     const rp_h2_limits *limits, rp_message_pool *pool, bool is_client,
                     rp_h2 **out);
/* Adds a call to the list; removes it and frees it. */
void rp_h2_link_call(rp_h2 *h2, rp_call *call);
void rp_h2_free_call(rp_h2 *h2, rp_call *call);
/* Checks the result of a call of nghttp2 that must succeed: without memory for it the
 * connection is broken. A stream that has been closed is no error. */
void rp_h2_need(rp_h2 *h2, int result);
/* Counts a nuisance; ends the connection if the handler says so. */
void rp_h2_nuisance(rp_h2 *h2, rp_nuisance kind);

#endif
