/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an HTTP/2 connection, shared by h2_session.c (set-up and queries), h2_receive.c
 * (received bytes), h2_deliver.c (complete messages), h2_send.c (output) and h2_client.c
 * (clients only).
 *
 * Each call has a stream of the nghttp2 session, and the session points at the call until the
 * stream is closed. A server's call ends with its stream. A client's call ends before its
 * stream if the client cancels the call. It ends after its stream if the call is paused when
 * the response ends. A call is freed after both have ended, and never within a handler
 * function.
 *
 * Invariants:
 *   H1  call_count is the number of calls in `calls` that are not closed;
 *   H2  h2->queued is the sum of `queued` of all calls, plus the bytes of replies that were
 *       handed to the output and are not yet written;
 *   H3  `held` is the sum of three numbers: the bytes of incomplete messages, the bytes of
 *       waiting messages, and WAITING_BYTES (h2_deliver.c) for each waiting message;
 *   H4  `assembling`, `partial` and `awaited` are the sums of counted_assembling,
 *       counted_partial and counted_awaited of all calls;
 *   H5  out_first <= out_count <= out_capacity; the pieces from out[out_first] on have not been
 *       written;
 *   H6  a paused call delivers no message;
 *   H7  frame_left is 0 except within a DATA frame. */
#ifndef RP_WIRE_H2_H2_INSIDE_H
#define RP_WIRE_H2_H2_INSIDE_H

#include <assert.h>
#include <nghttp2/nghttp2.h>

#include "wire/h2/frame_meter.h"
#include "wire/h2/h2.h"

/* A server counts some frames of its peer as nuisances (h2.h) only beyond a number that the
 * peer has earned. The peer earns frames by the DATA frames sent to it, by its calls and by its
 * messages. */
enum {
    RP_H2_WINDOW = 4 << 20,             /* bytes: flow-control window of a call */
    RP_H2_CONNECTION_WINDOW = 16 << 20, /* bytes: window of the connection */
    RP_H2_FRAME = 1 << 20,              /* bytes: the largest frame that either side sends */
    RP_H2_EARNED_PINGS = 4,             /* pings that the peer earns by each DATA frame sent to
                                           it */
    RP_H2_EARNED_WINDOWS = 16,          /* window updates earned by each DATA frame sent to the
                                           peer */
    RP_H2_CALL_WINDOWS = 4, /* window updates earned by each call: grpcio sends two at once */
    RP_H2_MESSAGE_FRAGMENTS = 2, /* fragments earned by each call, and by each message */
    RP_H2_EARNED_MOST = 4096,  /* limit of the earned frames that are not used, for each kind */
    RP_H2_FRAGMENT_BYTES = 64, /* a part of a message with fewer bytes is a fragment */
    RP_H2_SMALL_CONTINUATION = 1024,
    /* If a header block exceeds its limits, every RP_H2_SURPLUS_BYTES bytes and every
     * RP_H2_SURPLUS_FIELDS fields beyond them count as a nuisance. */
    RP_H2_SURPLUS_BYTES = 4 << 10,
    RP_H2_SURPLUS_FIELDS = 16,
    RP_H2_TEXT_BYTES = 384,    /* size of an encoded status text */
    RP_H2_MOST_ACKS = 1 << 14, /* limit of the acknowledgements that a client has queued */
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
    int32_t id;           /* id of its stream */

    /* Receiving: */
    uint8_t prefix[RP_GRPC_PREFIX];
    uint8_t prefix_bytes; /* bytes of the prefix that have arrived */
    rp_block *block;      /* the incomplete message that is arriving; NULL: none */
    size_t message_size;  /* valid once the prefix is complete */
    rp_waiting_message *first_waiting, **last_waiting;
    size_t withheld; /* bytes of the call's window that were not returned to the peer */
    size_t late; /* sum of rp_data_cost() of the DATA frames dropped since this side ended the
                    call */
    bool paused, half_closed, half_close_told;
    bool again;    /* in on_message: rp_call_deliver_again() was called */
    bool is_again; /* the message in on_message, or the first waiting message, was delivered
                      before */
    bool counted_assembling;                 /* invariant H4 */
    size_t counted_partial, counted_awaited; /* invariant H4 */
    bool has_trailers;

    /* Sending: */
    rp_message *first_reply, *last_reply;
    size_t queued; /* bytes of these replies that are not in the output (`out` of rp_h2) yet */
    size_t promised; /* payload bytes of the frame that nghttp2 is making */
    bool headers_sent, deferred, finished, answered, opened, closed, wants_room;
    bool closing;     /* nothing more is to be sent */
    bool finishing;   /* nothing more is to be sent, and received messages are dropped */
    bool raw;         /* no trailers follow: the call is plain HTTP, or this side is a client */
    uint8_t leftover; /* 1 when the response is complete and the peer has not ended its side;
                         each rp_h2_sweep() adds 1, up to 3; otherwise 0 */
    rp_status status; /* only in a client: status from the server, valid once half_closed */
    char text[RP_H2_TEXT_BYTES];

    /* Only in a client: */
    bool has_stream; /* the stream is open */
    int http_status; /* 0: no response yet */
    rp_call *next_dead;
};

/* Bytes to be written. They are at `data`, in a reply. If `data` is NULL, they begin at index
 * `at` of h2->control. */
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
    size_t streams; /* only in a client: number of calls with has_stream */
    rp_call *dead;  /* only in a client: calls that have ended and are to be freed */
    bool broken;    /* nothing more is received */
    bool starved;   /* there was no memory for a frame, so nothing more is received or sent */
    bool violated;  /* the peer has violated HTTP/2, which ends the connection */
    bool ended;     /* rp_h2_terminate() was called */
    char *end_text; /* text of rp_h2_terminate(), RP_H2_END_TEXT_BYTES bytes, or NULL */
    bool gone_away;
    bool greeted;    /* the peer's first SETTINGS have arrived */
    bool in_headers; /* a block of headers has begun and is not complete */
    uint64_t pongs;
    size_t leftovers; /* number of calls with leftover > 0 */

    /* The headers of the block that is arriving: */
    rp_buf head;
    struct {
        size_t at, size;
    } fields[9]; /* indexed by the enums in h2_receive.c and h2_client.c */
    size_t head_bytes, head_fields;
    size_t head_authorizations; /* number of `authorization` headers */

    /* Receiving: */
    size_t held; /* invariant H3 */
    uint64_t message_progress;
    uint64_t messages; /* number of messages that were delivered */
    size_t assembling; /* number of calls with an incomplete message that are not paused */
    size_t partial, awaited; /* bytes of these messages that have arrived, and that have not */
    rp_call *direct;         /* call of the DATA bytes that arrived last */
    size_t frame_left;       /* bytes of the current DATA frame that have not arrived */
    size_t earned_pings, earned_windows; /* pings and window updates earned and not used */
    size_t earned_fragments;             /* fragments earned and not used */
    size_t earned_resets; /* earned resets of ended streams; each ended call earns one reset */
    size_t earned_late;   /* limit of DATA bytes in flight to calls that were reset */
    size_t pings_out;     /* pings that the peer has not acknowledged */
    rp_frame_meter meter; /* only in a server: counts all received frames */
    rp_data_sum reported; /* the received DATA frames that nghttp2 has reported */
    /* How many of meter.table_sizes have been reported as nuisances. */
    uint64_t charged_table_sizes;

    /* Sending: */
    size_t queued; /* invariant H2 */
    uint64_t left; /* bytes of replies that were written so far */
    rp_buf control;
    rp_out_piece *out;
    size_t out_count, out_capacity, out_first, out_bytes;
    bool room_made;      /* a call with wants_room set has room for replies */
    int32_t room_id;     /* id of the call that last sent something in rp_h2_make_room() */
    rp_message *landing; /* in order: replies whose last byte is in the output */
    rp_message **landing_end;
};

/* Adds `more` to `*earned`, the frames or bytes that the peer has earned, up to `most`. */
static inline void rp_h2_earn(size_t *earned, size_t more, size_t most)
{
    assert(*earned <= most);
    *earned = most - *earned > more ? *earned + more : most;
}

/* Called when this side resets or refuses a call. DATA for the call can be in flight, up to the
 * size of a window. */
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
/* Updates the counts of H4 for the incomplete message of a call. */
void rp_h2_count_assembling(rp_call *call);
/* The headers of the block that is arriving: rp_h2_clear_head() clears them, rp_h2_keep_field()
 * stores the value of a field (false if there is no memory), and rp_h2_kept_field() returns a
 * stored value. */
void rp_h2_clear_head(rp_h2 *h2);
bool rp_h2_keep_field(rp_h2 *h2, int field, const uint8_t *value, size_t size);
rp_string rp_h2_kept_field(const rp_h2 *h2, int field);
/* Called when the peer has ended its side of the stream. Calls on_half_close if the call is not
 * paused. */
void rp_h2_tell_half_close(rp_call *call);
/* Ends a call because of a message of its peer, and calls on_fault. */
void rp_h2_fault(rp_call *call, rp_call_fault why, rp_status status, const char *text);

/* Functions of h2_deliver.c. */
/* Returns true if the next message may be delivered now. Otherwise pauses the call. */
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
/* Drops the replies of which no byte was handed to the nghttp2 session. */
void rp_h2_drop_unpromised(rp_call *call);
/* Adds control bytes to the output. Returns false if there is no memory. */
bool rp_h2_push_control(rp_h2 *h2, const uint8_t *data, size_t size);
nghttp2_nv rp_h2_field(const char *name, const char *value); /* borrowed */
/* Makes nghttp2 ask for the data of a call again. If the headers were not sent, sends them
 * first. */
void rp_h2_wake(rp_call *call);
ssize_t rp_h2_read_replies(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length,
                           uint32_t *flags, nghttp2_data_source *source, void *user);

/* Functions of h2_client.c, for connections with is_client only. */
int rp_h2_client_header(rp_h2 *h2, const nghttp2_frame *frame, const uint8_t *name,
                        size_t name_size, const uint8_t *value, size_t value_size);
/* Handles a complete header block of a response. `end` is true if the block ends the stream. */
void rp_h2_take_answer(rp_call *call, bool end);
/* Called when the server has ended its side. Drops the messages that have not been sent. */
void rp_h2_stop_sending(rp_call *call);
/* Called when the server has ended its side and all of its messages were delivered. Ends the
 * call. */
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
 * memory, the connection is broken. A stream that is already closed is not an error. */
void rp_h2_need(rp_h2 *h2, int result);
/* Reports a nuisance to the handler, and ends the connection if the handler returns false. */
void rp_h2_nuisance(rp_h2 *h2, rp_nuisance kind);

#endif
