/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an HTTP/2 connection: h2.c sets it up, h2_receive.c takes bytes in, h2_send.c
 * sends them out, h2_client.c has what only a client does.
 *
 * A call's place in the session is its stream; the session points at the call until the stream
 * is closed. A server's call ends with its stream. A client's may end before, when it is taken
 * back, or after, when it is paused while the answer ends; it is freed once both are over, and
 * then not from within a handler. */
#ifndef RP_WIRE_H2_H2_INSIDE_H
#define RP_WIRE_H2_H2_INSIDE_H

#include <nghttp2/nghttp2.h>

#include "wire/h2/frame_meter.h"
#include "wire/h2/h2.h"

enum {
    RP_H2_WINDOW = 4 << 20,             /* of a call */
    RP_H2_CONNECTION_WINDOW = 16 << 20, /* of all */
    RP_H2_FRAME = 1 << 20,              /* the largest either side sends */
    RP_H2_EARNED_PINGS = 4,             /* by each frame of data */
    RP_H2_EARNED_WINDOWS = 16,
    RP_H2_CALL_WINDOWS = 4,      /* by each call: grpcio sends two before any data comes */
    RP_H2_MESSAGE_FRAGMENTS = 2, /* by each call and each message */
    RP_H2_EARNED_MOST = 4096,    /* of each of these */
    RP_H2_FRAGMENT_BYTES = 64,   /* a smaller part of a message is a fragment */
    RP_H2_SMALL_CONTINUATION = 1024,
    RP_H2_SURPLUS_BYTES = 4 << 10, /* of a header block over its limits: each so many count, */
    RP_H2_SURPLUS_FIELDS = 16,     /* and each so many fields */
    RP_H2_TEXT_BYTES = 384,        /* of an encoded status text */
    RP_H2_MOST_ACKS = 1 << 14,     /* that wait to be sent; of a client */
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
    rp_block *block;     /* the message in assembly; NULL: none, or in place */
    size_t message_size; /* once the prefix is whole */
    rp_waiting_message *first_waiting, **last_waiting;
    size_t withheld; /* window not given back */
    size_t late;     /* cost of DATA that was dropped since we have ended it */
    bool paused, half_closed, half_close_told;
    bool counted_assembling;                 /* in h2->assembling */
    size_t counted_partial, counted_awaited; /* in h2->partial and h2->awaited */
    bool has_trailers;

    /* sending */
    rp_reply *first_reply, *last_reply;
    size_t queued;   /* bytes of them not handed on */
    size_t promised; /* bytes of the frame that the session is making of them */
    bool headers_sent, deferred, finished, answered, opened, closed, wants_room;
    bool closing;     /* nothing more is to be sent */
    bool finishing;   /* the same, and what comes is dropped */
    bool raw;         /* no trailers follow: plain HTTP, or a client */
    uint8_t leftover; /* sweeps since it was answered in full, plus 1, if the peer goes on */
    rp_status status; /* of a client's call: what the server said, once half_closed */
    char text[RP_H2_TEXT_BYTES];

    /* of a client */
    bool has_stream; /* the session knows it */
    int http_status; /* 0: no answer yet */
    rp_call *next_dead;
};

/* Bytes to be written: in a reply, or, with `data` NULL, at `at` in the control bytes. */
typedef struct rp_out_piece {
    const uint8_t *data;
    size_t at, size;
    rp_reply *reply;
} rp_out_piece;

struct rp_h2 {
    nghttp2_session *session;
    rp_allocator alloc;
    rp_allocator large_alloc; /* of blocks of large_bytes and more */
    size_t large_bytes;       /* 0: none are */
    const rp_h2_handler *handler;
    void *user;
    rp_h2_limits limits;
    rp_reply_pool *pool;
    rp_block_pool *blocks; /* borrowed; NULL: none */
    rp_call *calls;
    size_t call_count;
    bool is_client;
    size_t streams; /* of a client: calls that the session knows */
    rp_call *dead;  /* of a client: to be freed */
    bool broken;    /* nothing more is received */
    bool starved;   /* nor sent: there was no memory for something that had to be */
    bool violated;  /* the peer broke the rules of HTTP/2, which ends the connection */
    bool ended;     /* by rp_h2_terminate() */
    bool gone_away;
    bool greeted;    /* its settings came */
    bool in_headers; /* a block of headers has begun */
    uint64_t pongs;
    size_t leftovers; /* calls that are answered in full and still open on the peer's side */

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
    size_t earned_pings, earned_windows; /* free, by the data that we have sent, and by calls */
    size_t earned_fragments;             /* free, by calls and messages */
    size_t earned_resets;                /* of streams that have ended: one a call */
    size_t earned_late;   /* bytes of DATA that may be under way to calls that we have reset */
    size_t pings_out;     /* that the peer has not answered */
    rp_frame_meter meter; /* of a server: all frames that came */
    rp_data_sum reported; /* those DATA frames of them that nghttp2 has reported */
    uint64_t charged_table_sizes; /* of those that the meter has counted */

    /* sending */
    size_t queued; /* bytes of replies, handed on or not, that have not left */
    uint64_t left; /* bytes of replies that have */
    rp_buf control;
    rp_out_piece *out;
    size_t out_count, out_capacity, out_first, out_bytes;
    bool room_made;    /* a call that wants_room has some */
    int32_t room_id;   /* of the call that took the last of rp_h2_make_room() */
    rp_reply *landing; /* replies wholly handed on, waiting to leave, in order */
    rp_reply **landing_end;
};

/* Adds to something that the peer has earned, as far as `most`. */
static inline void rp_h2_earn(size_t *earned, size_t more, size_t most)
{
    *earned = most - *earned > more ? *earned + more : most;
}

/* We reset a call or refuse it: as much as its window may be under way to it. */
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
/* For h2_client.c: forgets what was collected; keeps a value (false: no memory); the value. */
void rp_h2_clear_head(rp_h2 *h2);
bool rp_h2_keep_field(rp_h2 *h2, int field, const uint8_t *value, size_t size);
rp_string rp_h2_kept_field(const rp_h2 *h2, int field);
/* The peer sends no more: tells the handler, unless the call is paused. */
void rp_h2_tell_half_close(rp_call *call);

/* h2_send.c */
int rp_h2_on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user);
int rp_h2_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                    size_t length, nghttp2_data_source *source, void *user);
void rp_h2_drop_replies(rp_call *call);
void rp_h2_drop_unpromised(rp_call *call); /* but for those of which some has gone out */
/* Adds bytes to the output. False: no memory. */
bool rp_h2_push_control(rp_h2 *h2, const uint8_t *data, size_t size);
nghttp2_nv rp_h2_field(const char *name, const char *value); /* borrowed */
/* Has the session ask for more. */
void rp_h2_wake(rp_call *call);
ssize_t rp_h2_read_replies(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length,
                           uint32_t *flags, nghttp2_data_source *source, void *user);

/* h2_client.c; for connections with is_client only */
int rp_h2_client_header(rp_h2 *h2, const nghttp2_frame *frame, const uint8_t *name,
                        size_t name_size, const uint8_t *value, size_t value_size);
/* Takes a block of headers that is complete. */
void rp_h2_take_answer(rp_call *call, bool end);
/* The server sends no more: what we would send is of no use to it. */
void rp_h2_stop_sending(rp_call *call);
/* The same, and all that it sent is delivered. */
void rp_h2_end_answer(rp_call *call);
/* Ends a call for something that happened here. */
void rp_h2_fail_call(rp_call *call, rp_status status, const char *text);
void rp_h2_stream_closed(rp_call *call, uint32_t code);
void rp_h2_bury_dead(rp_h2 *h2);  /* frees the calls that are over */
void rp_h2_end_client(rp_h2 *h2); /* ends and frees all */

/* h2.c */
rp_status rp_h2_open(const rp_allocator *alloc, const rp_h2_handler *handler, void *user,
                     const rp_h2_limits *limits, rp_reply_pool *pool, bool is_client,
                     rp_h2 **out);
/* Puts a call into the list, and takes it out and frees it. */
void rp_h2_link_call(rp_h2 *h2, rp_call *call);
void rp_h2_free_call(rp_h2 *h2, rp_call *call);
/* Takes what nghttp2 says to something that it must do: without memory for it the connection is
 * broken. That a stream is gone does no harm. */
void rp_h2_need(rp_h2 *h2, int result);
/* Counts something bad; ends the connection if that is too much. */
void rp_h2_nuisance(rp_h2 *h2, rp_nuisance kind);

#endif
