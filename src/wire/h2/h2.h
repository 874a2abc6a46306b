/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP/2 connection, carrying gRPC calls: bytes in, bytes out, no sockets. A server's, or,
 * with the last section of this file, a client's.
 *
 * Its owner feeds it what the peer sent (rp_h2_receive), is told of calls and their messages
 * through the handler, answers with replies, and writes what rp_h2_output() offers wherever it
 * likes. nghttp2 does frames, headers and windows; this adds gRPC's messages, answers that
 * borrow chunk memory, flow control that waits with the reader, and counts of what a hostile
 * peer does too often.
 *
 * Flow control. The window of the connection is given back as bytes arrive, so that a call that
 * waits never holds up another. The window of a call is given back too, until its reader pauses
 * it. So a paused call holds at most its window, even of one large message.
 *
 * One thread. Handler functions may call everything here but receive, output and free. */
#ifndef RP_WIRE_H2_H2_H
#define RP_WIRE_H2_H2_H

#include <sys/uio.h>

#include "reprise/tensor.h" /* rp_string */
#include "wire/block.h"
#include "wire/reply.h"

typedef struct rp_h2 rp_h2;
typedef struct rp_call rp_call;

/* A request's headers. Borrowed, valid during on_request only. */
typedef struct rp_request_head {
    rp_string method, path, content_type, authorization, encoding;
    int64_t timeout_ns; /* of grpc-timeout; -1: none */
    bool too_large;     /* headers over the limit of bytes were dropped: refuse it */
    bool too_many;      /* the same for their number */
    bool bad_timeout;   /* grpc-timeout that is none */
} rp_request_head;

/* Things a peer may do, but not without end. */
typedef enum rp_nuisance {
    RP_NUISANCE_RESET,      /* took back a call before it had an answer */
    RP_NUISANCE_MADE_RESET, /* made us reset a call */
    RP_NUISANCE_PING,       /* more than our data explains, or an answer to none of ours */
    RP_NUISANCE_SETTINGS,
    RP_NUISANCE_EMPTY,  /* a frame that carries nothing, or next to nothing of a header block */
    RP_NUISANCE_WINDOW, /* a window update more than our data explains */
    RP_NUISANCE_BAD_FRAME,
    RP_NUISANCE_REFUSED, /* a call over the limit of calls */
    RP_NUISANCE_PRIORITY,
    RP_NUISANCE_OTHER, /* unknown frames, headers over the limits */
    RP_NUISANCE_LATE,  /* a frame of a call that is over, more than may have been under way */
    RP_NUISANCE_FRAGMENT,   /* a few bytes of a message that do not complete it */
    RP_NUISANCE_TABLE_SIZE, /* an HPACK size update more than its header block may need */
    RP_NUISANCE_KINDS,
} rp_nuisance;

/* Why a call has been ended for what came on it. */
typedef enum rp_call_fault {
    RP_FAULT_MESSAGE_BYTES, /* a message announced more than the limit */
    RP_FAULT_COMPRESSED,    /* by gRPC */
    RP_FAULT_FRAMING,       /* the peer ended it within a message */
    RP_FAULT_MEMORY,
} rp_call_fault;

typedef struct rp_h2_handler {
    /* A call begins. Answer it now or later; rp_call_set_user() keeps what belongs to it. */
    void (*on_request)(void *user, rp_call *call, const rp_request_head *head);
    /* A whole message came. `data` is valid during the call. `block` is where it lies, if it
     * has a block of its own: referring to it keeps the data longer; NULL otherwise. */
    void (*on_message)(void *user, rp_call *call, const uint8_t *data, size_t size,
                       rp_block *block);
    /* The peer will send no more on this call. After its last message; not when paused. */
    void (*on_half_close)(void *user, rp_call *call);
    /* Answers of this call have left, and fewer than half of `queued_bytes` wait. */
    void (*on_room)(void *user, rp_call *call);
    /* The call is over and `call` invalid afterwards: answered in full, taken back by the peer,
     * or the connection is being freed. Called once for each on_request. */
    void (*on_close)(void *user, rp_call *call);
    /* The peer did something that is counted. False ends the connection. A client may leave it
     * out: its server may do all that, but for what memory would be needed for. */
    bool (*on_nuisance)(void *user, rp_nuisance kind);
    /* A call was ended for what came on it, with this status. */
    void (*on_fault)(void *user, rp_call *call, rp_call_fault fault, rp_status status);
    /* Of a client: how the server ended the call, after its last message, not when paused. If
     * it was reset: as gRPC says (RP_UNAVAILABLE if it was refused, or the server has said
     * goodbye). At once, and then it is taken back: RP_NO_RESOURCE for a message or headers
     * over the limits, or no memory for them; RP_UNIMPLEMENTED for a compressed message; what
     * stands for its HTTP status if the answer is none of gRPC. RP_UNAVAILABLE if the
     * connection is freed, or RP_NO_RESOURCE if for want of memory. `text` is decoded, "" with
     * RP_OK, valid during the call. */
    void (*on_end)(void *user, rp_call *call, rp_status status, const char *text);
} rp_h2_handler;

typedef struct rp_h2_limits {
    uint32_t streams; /* of a server */
    size_t message_bytes;
    const char *message_setting; /* said behind that limit in the refusal; borrowed, or NULL */
    size_t header_bytes, header_fields;
    size_t queued_bytes; /* on_room comes below half of it */
} rp_h2_limits;

/* `handler` is borrowed, `limits` copied; `pool` borrowed, shared with the replies given here.
 * RP_NO_RESOURCE. Returns owned. */
RP_NODISCARD rp_status rp_h2_new(const rp_allocator *alloc, const rp_h2_handler *handler,
                                 void *user, const rp_h2_limits *limits, rp_reply_pool *pool,
                                 rp_h2 **out);
/* Ends up to `most` calls of a server's connection that is closed, with on_close: from the
 * first such call on nothing may be received or sent. Returns how many are left. */
size_t rp_h2_close_calls(rp_h2 *h2, size_t most);
/* Ends all calls (a client's with on_end, all with on_close) and frees it. NULL is fine. */
void rp_h2_free(rp_h2 *h2);
/* From now on the bytes of messages that begin a block of `bytes` or more come from `alloc`,
 * which is copied. */
void rp_h2_set_large(rp_h2 *h2, const rp_allocator *alloc, size_t bytes);

/* Takes bytes from the peer. False if the connection is to be closed once what rp_h2_output()
 * still offers is written. */
bool rp_h2_receive(rp_h2 *h2, const uint8_t *data, size_t size);
/* Frames and messages that have come so far, of a server: each is work besides its bytes. */
uint64_t rp_h2_events(const rp_h2 *h2);

/* If a large message is arriving, where its next bytes should be read to: at most `*size` of
 * them; then give them to rp_h2_receive() where they lie. NULL: anywhere. */
uint8_t *rp_h2_receive_place(rp_h2 *h2, size_t *size);

/* Bytes to be written, in up to `capacity` parts; returns how many parts. Then say how many of
 * the bytes were written, in order. */
size_t rp_h2_output(rp_h2 *h2, struct iovec *parts, size_t capacity);
void rp_h2_written(rp_h2 *h2, size_t size);

/* True while there is something to write. */
bool rp_h2_wants_output(const rp_h2 *h2);
/* True once nothing is left to do: no calls, and no more are taken. */
bool rp_h2_is_over(const rp_h2 *h2);
/* True if that is because the peer does not keep to HTTP/2. */
bool rp_h2_is_violated(const rp_h2 *h2);

/* Bytes of messages that have arrived, wholly or in part, and are not delivered, with what it
 * takes to keep them; bytes of answers that wait; calls that are open. */
size_t rp_h2_held_bytes(const rp_h2 *h2);
size_t rp_h2_queued_bytes(const rp_h2 *h2);
/* Of messages that have begun and are not whole, on calls that are not paused: bytes that have
 * arrived, which are in rp_h2_held_bytes() too, and bytes still to come. */
size_t rp_h2_partial_bytes(const rp_h2 *h2);
size_t rp_h2_awaited_bytes(const rp_h2 *h2);
/* Bytes of answers that have been written, over the life of the connection. */
uint64_t rp_h2_left_bytes(const rp_h2 *h2);
size_t rp_h2_call_count(const rp_h2 *h2);
/* What the peer has begun and not ended, on calls that are not paused; `*bytes`: of messages so
 * far, summed over the life of the connection, so that progress can be seen. */
typedef enum rp_h2_wait {
    RP_H2_WAITS_FOR_NOTHING,
    RP_H2_WAITS_FOR_GREETING, /* its first settings */
    RP_H2_WAITS_FOR_HEADERS,
    RP_H2_WAITS_FOR_MESSAGE,
    RP_H2_WAITS_FOR_CLOSE, /* of calls that are answered in full */
} rp_h2_wait;
rp_h2_wait rp_h2_waits_for(const rp_h2 *h2, uint64_t *bytes);

/* Resets calls that were answered in full before the last sweep, but one, and that the peer has
 * not closed. It is told late because proxies forget the answer when a reset comes with it. */
void rp_h2_sweep(rp_h2 *h2);

/* Asks the peer for a sign of life. */
void rp_h2_ping(rp_h2 *h2);
uint64_t rp_h2_pongs(const rp_h2 *h2); /* answers so far */

/* Tells the peer to open no more calls here; the second call makes it final. A client begins no
 * more afterwards. */
void rp_h2_go_away(rp_h2 *h2);
/* Ends the connection with this HTTP/2 error code (0: none); nothing more is received. */
void rp_h2_terminate(rp_h2 *h2, uint32_t code);
bool rp_h2_is_ended(const rp_h2 *h2);
/* Calls on_room for every call that has nothing waiting to be sent; begins behind the last one
 * that had something to say then. */
void rp_h2_make_room(rp_h2 *h2);
/* Calls `visit` for every open call; it may finish them. */
void rp_h2_each_call(rp_h2 *h2, void (*visit)(void *user, rp_call *call), void *user);

void rp_call_set_user(rp_call *call, void *user);
void *rp_call_user(const rp_call *call);

/* Sends a message; takes `reply`, which is closed. */
void rp_call_send(rp_call *call, rp_reply *reply);
size_t rp_call_queued_bytes(const rp_call *call);
/* Has on_room called as soon as some of what is queued has left, whatever is queued now. */
void rp_call_want_room(rp_call *call);

/* Ends the call with a status, once what was sent before has gone out. Nothing more may be
 * sent; messages that still come are dropped. */
void rp_call_finish(rp_call *call, rp_status status, const char *text);
/* The same at once: what waits to be sent is dropped. */
void rp_call_abort(rp_call *call, rp_status status, const char *text);
bool rp_call_is_finished(const rp_call *call);

/* An answer to a plain HTTP request. */
typedef struct rp_http_answer {
    int status;
    const char *content_type;
    const char *extra_name, *extra_value; /* a header more, or NULL */
} rp_http_answer;

/* Answers a plain HTTP request; takes `body` (closed; may be NULL). */
void rp_call_answer(rp_call *call, const rp_http_answer *answer, rp_reply *body);

/* Messages that arrive from now on wait, until resumed. Resuming delivers them, unless one of
 * them pauses the call again; not to be called from within on_message of the same call. */
void rp_call_pause(rp_call *call);
void rp_call_resume(rp_call *call);
bool rp_call_is_paused(const rp_call *call);

/* The client's side.
 *
 * Messages go out with rp_call_send() and come in through on_message, as on the other side;
 * pausing, room and limits are the same. on_request, on_half_close and on_fault are not called;
 * on_end is, and on_close right after it. When the server ends a call that we have not, what
 * waits to be sent is dropped. */

typedef struct rp_call_head {
    const char *path, *authority;
    const char *authorization; /* the whole value, or NULL */
    bool secure;               /* the scheme is https */
    int64_t timeout_ns;        /* sent as grpc-timeout; -1: none */
} rp_call_head;

/* As rp_h2_new(); handler->on_end must be set. */
RP_NODISCARD rp_status rp_h2_new_client(const rp_allocator *alloc, const rp_h2_handler *handler,
                                        void *user, const rp_h2_limits *limits,
                                        rp_reply_pool *pool, rp_h2 **out);
/* Takes the blocks of large messages from a pool, which outlives the connection. */
void rp_h2_use_blocks(rp_h2 *h2, rp_block_pool *blocks);
/* Begins a call. NULL: no memory. Only if rp_h2_can_begin(): the server takes more calls now
 * (its limit, and that it has not said goodbye). */
rp_call *rp_h2_begin(rp_h2 *h2, const rp_call_head *head, void *call_user);
bool rp_h2_can_begin(const rp_h2 *h2);
/* True once no more calls will ever begin here: one side has said goodbye, or the connection is
 * over. */
bool rp_h2_is_leaving(const rp_h2 *h2);
/* Says that no more messages follow, once those sent have gone out. */
void rp_call_half_close(rp_call *call);
/* Takes a call back: RST_STREAM, and on_close without on_end, from within here. Nothing comes
 * of it any more. */
void rp_call_cancel(rp_call *call);

#endif
