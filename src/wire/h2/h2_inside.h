/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an HTTP/2 connection, shared by h2_session.c (set-up and queries), h2_receive.c
 * (received bytes), h2_deliver.c (complete messages), h2_send.c (output) and h2_client.c
 * (clients only).
 *
 * Each call has a stream of the session, and the session points at the call until the stream is
 * closed. A server's call ends with its stream. A client's call may end before its stream, when
 * it is cancelled, or after its stream, if it is paused when the response ends. The call is
 * freed once both have ended, and not from within a handler.
 *
 * Invariants:
 *   H1  call_count is the number of calls in `calls` that are not closed;
 *   H2  h2->queued is the sum of `queued` of all calls, plus the bytes of replies that were
 *       handed to the output and are not written;
 *   H3  `held` is the sum of the bytes of blocks in assembly, plus the bytes of waiting
 *       messages and WAITING_BYTES for each waiting message;
 *   H4  `assembling`, `partial` and `awaited` are the sums of counted_assembling,
 *       counted_partial and counted_awaited of all calls;
 *   H5  out_first <= out_count <= out_capacity; out[out_first..] have not been written;
 *   H6  a paused call delivers no message;
 *   H7  frame_left is 0 except within a DATA frame. */
#ifndef RP_WIRE_H2_H2_INSIDE_H
#define RP_WIRE_H2_H2_INSIDE_H

#include <assert.h>
#include <nghttp2/nghttp2.h>

#include "wire/h2/frame_meter.h"
#include "wire/h2/h2.h"

/* DATA sent to a peer, its calls and its messages each earn it a number of frames. Only frames
 * beyond the earned number count as nuisances. */
enum {
    RP_H2_WINDOW = 4 << 20,             /* of a call */
    RP_H2_CONNECTION_WINDOW = 16 << 20, /* of all calls together */
    RP_H2_FRAME = 1 << 20,              /* the largest frame that either side sends */
    RP_H2_EARNED_PINGS = 4,      /* pings that a peer earns by each DATA frame sent to it */
    RP_H2_EARNED_WINDOWS = 16,   /* window updates that it earns by each DATA frame ... */
    RP_H2_CALL_WINDOWS = 4,      /* ... and by each call: grpcio sends two before any data */
    RP_H2_MESSAGE_FRAGMENTS = 2, /* fragments that it earns by each call and each message */
    RP_H2_EARNED_MOST = 4096,    /* bound on what is earned and not used, of each kind */
    RP_H2_FRAGMENT_BYTES = 64,   /* a smaller part of a message is a fragment */
    RP_H2_SMALL_CONTINUATION = 1024,
    /* Once a header block exceeds its limits, the peer is charged for every RP_H2_SURPLUS_BYTES
     * bytes and every RP_H2_SURPLUS_FIELDS fields more. */
    RP_H2_SURPLUS_BYTES = 4 << 10,
    RP_H2_SURPLUS_FIELDS = 16,
    RP_H2_TEXT_BYTES = 384,    /* size of an encoded status text */
    RP_H2_MOST_ACKS = 1 << 14, /* acknowledgements that a client may have queued */
};

/* A message that waits because its call is paused. */
typedef struct rp_waiting_message {
    rp_block *block;
    struct rp_waiting_message *next;
} rp_waiting_message;

struct rp_call {
    rp_h2 *h2;
    void *user;
    rp_call *prev, *next; /* in h2->calls */
    int32_t id;           /* of the stream */

    /* Receiving: */
    uint8_t prefix[RP_GRPC_PREFIX];
    uint8_t prefix_bytes; /* bytes of the prefix that have arrived */
    rp_block *block;      /* the message in assembly; NULL: none */
    size_t message_size;  /* valid once the prefix is complete */
    rp_waiting_message *first_waiting, **last_waiting;
    size_t withheld; /* bytes of the window that were not returned to the peer */
    size_t late;     /* sum of rp_data_cost() of the DATA dropped since this side ended the
                        call */
    bool paused, half_closed, half_close_told;
    bool again;    /* in on_message: rp_call_deliver_again() was called */
    bool is_again; /* the message in on_message, or the first one that waits, was delivered
                      before */
    bool counted_assembling;                 /* H4 */
    size_t counted_partial, counted_awaited; /* H4 */
    bool has_trailers;

    /* Sending: */
    rp_message *first_reply, *last_reply;
    size_t queued;   /* bytes of these replies that were not handed to the output */
    size_t promised; /* bytes of the frame that the session is making */
    bool headers_sent, deferred, finished, answered, opened, closed, wants_room;
    bool closing;     /* nothing more is to be sent */
    bool finishing;   /* nothing more is to be sent, and received messages are dropped */
    bool raw;         /* no trailers follow: plain HTTP, or a client */
    uint8_t leftover; /* 0; or, once the response is complete and the peer has not ended its
                         side: 1, plus 1 for each rp_h2_sweep() since, at most 3 */
    rp_status status; /* of a client's call: from the server, once half_closed */
    char text[RP_H2_TEXT_BYTES];

    /* Of a client: */
    bool has_stream; /* the stream is open */
    int http_status; /* 0: no response yet */
    rp_call *next_dead;
};

/* Bytes to be written: in a reply; or, if `data` is NULL, at the index `at` of h2->control. */
typedef struct rp_out_piece {
    const uint8_t *data;
    size_t at, size;
    rp_message *reply;
} rp_out_piece;

struct rp_h2 {
    nghttp2_session *session;
    rp_allocator alloc;
    rp_allocator large_alloc; /* for blocks of large_bytes and more */
    size_t large_bytes;       /* 0: large_alloc is not used */
    const rp_h2_handler *handler;
    void *user;
    rp_h2_limits limits;
    rp_message_pool *pool;
    rp_block_pool *blocks; /* borrowed; NULL: none */
    rp_call *calls;
    size_t call_count;
    bool is_client;
    size_t streams; /* of a client: calls with has_stream */
    rp_call *dead;  /* of a client: calls that have ended and are to be freed */
    bool broken;    /* nothing more is received */
    bool starved;   /* nothing is received or sent: there was no memory for a frame */
    bool violated;  /* the peer has violated HTTP/2, which ends the connection */
    bool ended;     /* by rp_h2_terminate() */
    char *end_text; /* RP_H2_END_TEXT_BYTES, from rp_h2_terminate() on; or NULL */
    bool gone_away;
    bool greeted;    /* the peer's first SETTINGS have arrived */
    bool in_headers; /* a block of headers has begun and is not complete */
    uint64_t pongs;
    size_t leftovers; /* calls whose response is complete and that the peer has not ended */

    /* The headers that are being collected: */
    rp_buf head;
    struct {
        size_t at, size;
    } fields[9]; /* see enum in h2_receive.c, and in h2_client.c */
    size_t head_bytes, head_fields;
    size_t head_authorizations; /* headers of that name */

    /* Receiving: */
    size_t held; /* H3 */
    uint64_t message_progress;
    uint64_t messages;                   /* number of messages that were delivered */
    size_t assembling;                   /* calls with an incomplete message, not paused */
    size_t partial, awaited;             /* bytes of these messages: arrived, not arrived */
    rp_call *direct;                     /* call to which the last DATA bytes belonged */
    size_t frame_left;                   /* bytes of the current DATA frame not arrived */
    size_t earned_pings, earned_windows; /* earned by DATA sent to the peer, and by calls */
    size_t earned_fragments;             /* earned by calls and messages */
    size_t earned_resets;                /* resets of ended streams: one for each call */
    size_t earned_late;   /* bytes of DATA that may be in flight to calls that were reset */
    size_t pings_out;     /* pings that the peer has not acknowledged */
    rp_frame_meter meter; /* of a server: all frames received */
    rp_data_sum reported; /* the received DATA frames that nghttp2 has reported */
    uint64_t charged_table_sizes; /* how many of meter.table_sizes have been charged */

    /* Sending: */
    size_t queued; /* H2 */
    uint64_t left; /* bytes of replies that have left, that is, were written, so far */
    rp_buf control;
    rp_out_piece *out;
    size_t out_count, out_capacity, out_first, out_bytes;
    bool room_made;      /* a call with wants_room set has room */
    int32_t room_id;     /* id of the call that last sent something in rp_h2_make_room() */
    rp_message *landing; /* replies whose last bytes are in the output, in order */
    rp_message **landing_end;
};

/* Adds `more` to what the peer has earned, up to `most`. */
static inline void rp_h2_earn(size_t *earned, size_t more, size_t most)
{
    assert(*earned <= most);
    *earned = most - *earned > more ? *earned + more : most;
}

/* Called when this side resets or refuses a call: up to a window of DATA may be in flight to
 * it. */
static inline void rp_h2_expect_late(rp_h2 *h2)
{
    rp_h2_earn(&h2->earned_late, RP_H2_WINDOW, RP_H2_CONNECTION_WINDOW);
}

/* Functions of h2_receive.c. */
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
/* Updates the counts of H4 for the call's incomplete message. */
void rp_h2_count_assembling(rp_call *call);
/* These clear the collected headers, store the value of a field (false: no memory), and return
 * a stored value. */
void rp_h2_clear_head(rp_h2 *h2);
bool rp_h2_keep_field(rp_h2 *h2, int field, const uint8_t *value, size_t size);
rp_string rp_h2_kept_field(const rp_h2 *h2, int field);
/* The peer has ended its side: calls on_half_close, unless the call is paused. */
void rp_h2_tell_half_close(rp_call *call);
/* Ends a call because of a message of its peer, and reports that to the handler. */
void rp_h2_fault(rp_call *call, rp_call_fault why, rp_status status, const char *text);

/* Functions of h2_deliver.c. */
/* Whether the next message may be delivered now. If not, pauses the call. */
bool rp_h2_may_deliver(rp_call *call, size_t size);
void rp_h2_deliver(rp_call *call, const uint8_t *data, size_t size, rp_block *block);
/* Delivers a message whose bytes count in `held`, or keeps it until the call is resumed. Takes
 * ownership of the block. */
void rp_h2_deliver_block(rp_call *call, rp_block *block);
void rp_h2_drop_waiting(rp_call *call);

/* Functions of h2_send.c. */
int rp_h2_on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user);
int rp_h2_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                    size_t length, nghttp2_data_source *source, void *user);
void rp_h2_drop_replies(rp_call *call);
/* Drops the replies of which no byte was handed to the session. */
void rp_h2_drop_unpromised(rp_call *call);
/* Adds control bytes to the output. False: no memory. */
bool rp_h2_push_control(rp_h2 *h2, const uint8_t *data, size_t size);
nghttp2_nv rp_h2_field(const char *name, const char *value); /* borrowed */
/* Makes nghttp2 ask for the data of a call again; sends the headers first if they were not
 * sent. */
void rp_h2_wake(rp_call *call);
ssize_t rp_h2_read_replies(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length,
                           uint32_t *flags, nghttp2_data_source *source, void *user);

/* Functions of h2_client.c, for connections with is_client only. */
int rp_h2_client_header(rp_h2 *h2, const nghttp2_frame *frame, const uint8_t *name,
                        size_t name_size, const uint8_t *value, size_t value_size);
/* Handles a complete block of headers of a response. `end`: it ends the stream. */
void rp_h2_take_answer(rp_call *call, bool end);
/* The server has ended its side: drops the messages that have not been sent. */
void rp_h2_stop_sending(rp_call *call);
/* The server has ended its side, and all of its messages were delivered: ends the call. */
void rp_h2_end_answer(rp_call *call);
/* Ends a call for a reason on the client's side. */
void rp_h2_fail_call(rp_call *call, rp_status status, const char *text);
void rp_h2_stream_closed(rp_call *call, uint32_t code);
void rp_h2_free_dead(rp_h2 *h2);  /* frees the calls that have ended */
void rp_h2_end_client(rp_h2 *h2); /* ends and frees all calls */

/* Functions of h2_session.c. */
rp_status rp_h2_open(const rp_allocator *alloc, const rp_h2_handler *handler, void *user,
                     const rp_h2_limits *limits, rp_message_pool *pool, bool is_client,
                     rp_h2 **out);
/* rp_h2_link_call() adds a call to h2->calls; rp_h2_free_call() removes it and frees it. */
void rp_h2_link_call(rp_h2 *h2, rp_call *call);
void rp_h2_free_call(rp_h2 *h2, rp_call *call);
/* Checks the result of a function of nghttp2 that must succeed. If it failed for lack of
 * memory, the connection is broken. That the stream is closed already is no error. */
void rp_h2_need(rp_h2 *h2, int result);
/* Reports a nuisance to the handler, and ends the connection if the handler returns false. */
void rp_h2_nuisance(rp_h2 *h2, rp_nuisance kind);

#endif
