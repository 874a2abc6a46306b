/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/2 connection that carries gRPC calls: bytes in, bytes out, no sockets. A server's or
 * a client's.
 *
 * The owner passes bytes from the peer to rp_h2_receive(), gets calls and their messages
 * through the handler, responds with replies, and writes the bytes of rp_h2_output(). nghttp2
 * handles frames, headers and windows. This adds the messages of gRPC, responses that borrow
 * chunk memory, flow control by the reader of a call, and counts of things that a hostile peer
 * may do too often.
 *
 * Flow control. The window of the connection is returned as bytes arrive, so that a call that
 * waits never blocks another. The window of a call is returned until its reader pauses it. So a
 * paused call holds at most its window, even of one large message.
 *
 * One thread. Handler functions may call everything here but receive, output and free. */
#ifndef RP_WIRE_H2_H2_H
#define RP_WIRE_H2_H2_H

#include <sys/uio.h>

#include "reprise/tensor.h" /* rp_string */
#include "wire/block.h"
#include "wire/message.h"

typedef struct rp_h2 rp_h2;
typedef struct rp_call rp_call;

/* The headers of a request. Borrowed, valid during on_request only. */
typedef struct rp_request_head {
    rp_string method, path, content_type, authorization, encoding;
    int64_t timeout_ns; /* of grpc-timeout; -1: none */
    bool too_large;     /* headers over the limit of bytes were dropped: refuse it */
    bool too_many;      /* the same for their number */
    bool bad_timeout;   /* grpc-timeout is malformed */
} rp_request_head;

/* Things that a peer may do, but not without limit. */
typedef enum rp_nuisance {
    RP_NUISANCE_RESET,      /* reset a call before it had a response */
    RP_NUISANCE_MADE_RESET, /* caused us to reset a call */
    RP_NUISANCE_PING, /* more than our data explains, or an acknowledgement of none of ours */
    RP_NUISANCE_SETTINGS,
    RP_NUISANCE_EMPTY,  /* an empty frame, or a small one of a header block */
    RP_NUISANCE_WINDOW, /* a window update more than our data explains */
    RP_NUISANCE_BAD_FRAME,
    RP_NUISANCE_REFUSED, /* a call beyond the limit of calls */
    RP_NUISANCE_PRIORITY,
    RP_NUISANCE_OTHER, /* unknown frames, headers over the limits */
    RP_NUISANCE_LATE,  /* a frame of a call that has ended, beyond those that may have been in
                          flight */
    RP_NUISANCE_FRAGMENT,   /* a few bytes of a message that do not complete it */
    RP_NUISANCE_TABLE_SIZE, /* an HPACK size update beyond those that a header block may need */
    RP_NUISANCE_KINDS,
} rp_nuisance;

/* Reasons to end a call for a message of its peer. */
typedef enum rp_call_fault {
    RP_FAULT_MESSAGE_BYTES, /* a message is larger than the limit */
    RP_FAULT_COMPRESSED,    /* by gRPC */
    RP_FAULT_FRAMING,       /* the peer ended it within a message */
    RP_FAULT_MEMORY,
} rp_call_fault;

typedef struct rp_h2_handler {
    /* A call begins. Respond now or later; rp_call_set_user() attaches the owner's data. */
    void (*on_request)(void *user, rp_call *call, const rp_request_head *head);
    /* A complete message. `data` is valid during the call. `block`: the block that contains
     * it, if it has one of its own; a reference to the block keeps the data. NULL otherwise. */
    void (*on_message)(void *user, rp_call *call, const uint8_t *data, size_t size,
                       rp_block *block);
    /* The peer will send no more on this call. After its last message; not when paused. */
    void (*on_half_close)(void *user, rp_call *call);
    /* Responses of this call were written, and fewer than half of `queued_bytes` wait. */
    void (*on_room)(void *user, rp_call *call);
    /* The call has ended, and `call` is invalid afterwards: it was answered in full, the peer
     * reset it, or the connection is being freed. Called once for each on_request. */
    void (*on_close)(void *user, rp_call *call);
    /* The peer did something that is counted. False ends the connection. May be NULL for a
     * client, which trusts its server in this. */
    bool (*on_nuisance)(void *user, rp_nuisance kind);
    /* A call was ended for a message of its peer, with this status. */
    void (*on_fault)(void *user, rp_call *call, rp_call_fault fault, rp_status status);
    /* For a client: the status of the call, after its last message, not while paused. After a
     * reset, the status that gRPC assigns to it (RP_UNAVAILABLE if the call was refused, or
     * after GOAWAY). At once, and with a reset from us: RP_NO_RESOURCE for a message or headers
     * beyond the limits, or no memory for them; RP_UNIMPLEMENTED for a compressed message; the
     * status for the HTTP status if the response is not gRPC. RP_UNAVAILABLE if the connection
     * is freed, RP_NO_RESOURCE if that is for lack of memory. `text` is decoded, "" with RP_OK,
     * valid during the call. */
    void (*on_end)(void *user, rp_call *call, rp_status status, const char *text);
} rp_h2_handler;

typedef struct rp_h2_limits {
    uint32_t streams; /* of a server */
    size_t message_bytes;
    const char *message_setting; /* appended to the error about that limit; borrowed, or NULL */
    size_t header_bytes, header_fields;
    size_t queued_bytes; /* on_room is called below half of it */
} rp_h2_limits;

/* `handler` is borrowed, `limits` copied; `pool` borrowed, the pool of all replies sent here.
 * RP_NO_RESOURCE. Returns owned. */
RP_NODISCARD rp_status rp_h2_new(const rp_allocator *alloc, const rp_h2_handler *handler,
                                 void *user, const rp_h2_limits *limits, rp_message_pool *pool,
                                 rp_h2 **out);
/* Ends up to `most` calls of a server's closed connection, with on_close. After the first use
 * nothing may be received or sent. Returns the number of remaining calls. */
size_t rp_h2_close_calls(rp_h2 *h2, size_t most);
/* Ends all calls (a client's with on_end, all with on_close) and frees it. NULL is fine. */
void rp_h2_free(rp_h2 *h2);
/* From now on blocks of `bytes` or more for messages come from `alloc`, which is copied. */
void rp_h2_set_large(rp_h2 *h2, const rp_allocator *alloc, size_t bytes);

/* Handles bytes from the peer. False if the connection must be closed once the rest of
 * rp_h2_output() is written. */
bool rp_h2_receive(rp_h2 *h2, const uint8_t *data, size_t size);
/* Frames and messages received so far, for a server: each is work besides its bytes. */
uint64_t rp_h2_events(const rp_h2 *h2);

/* If a large message is arriving: the place to read its next bytes into, at most `*size` of
 * them. Then pass them to rp_h2_receive() in that place. NULL: no such message. */
uint8_t *rp_h2_receive_place(rp_h2 *h2, size_t *size);

/* Returns bytes to write, in up to `capacity` parts, and the number of parts. Then report how
 * many of these bytes were written, in order. */
size_t rp_h2_output(rp_h2 *h2, struct iovec *parts, size_t capacity);
void rp_h2_written(rp_h2 *h2, size_t size);

/* True while there is something to write. */
bool rp_h2_wants_output(const rp_h2 *h2);
/* True once nothing is left to do: there are no calls, and no more are accepted. */
bool rp_h2_is_over(const rp_h2 *h2);
/* True if the peer has violated HTTP/2. */
bool rp_h2_is_violated(const rp_h2 *h2);

/* Bytes of messages, complete or not, that have arrived and are not delivered, with the memory
 * to keep them; and bytes of responses that wait to be written. */
size_t rp_h2_held_bytes(const rp_h2 *h2);
size_t rp_h2_queued_bytes(const rp_h2 *h2);
/* Of incomplete messages of calls that are not paused: bytes that have arrived, which are also
 * in rp_h2_held_bytes(), and bytes that have not. */
size_t rp_h2_partial_bytes(const rp_h2 *h2);
size_t rp_h2_awaited_bytes(const rp_h2 *h2);
/* Bytes of responses written, over the life of the connection. */
uint64_t rp_h2_left_bytes(const rp_h2 *h2);
size_t rp_h2_call_count(const rp_h2 *h2);
/* What the peer has begun and not completed, on calls that are not paused. `*bytes`: bytes of
 * messages received over the life of the connection, to measure progress. */
typedef enum rp_h2_wait {
    RP_H2_WAITS_FOR_NOTHING,
    RP_H2_WAITS_FOR_GREETING, /* its first settings */
    RP_H2_WAITS_FOR_HEADERS,
    RP_H2_WAITS_FOR_MESSAGE,
    RP_H2_WAITS_FOR_CLOSE, /* of calls that were answered in full */
} rp_h2_wait;
rp_h2_wait rp_h2_waits_for(const rp_h2 *h2, uint64_t *bytes);

/* Resets calls that were answered in full two sweeps ago and that the peer has not closed. Not
 * earlier, because proxies drop a response that is followed by a reset. */
void rp_h2_sweep(rp_h2 *h2);

/* Sends a PING. */
void rp_h2_ping(rp_h2 *h2);
uint64_t rp_h2_pongs(const rp_h2 *h2); /* acknowledged so far */

/* Sends GOAWAY: the peer shall open no more calls. The second use makes it final. A client
 * begins no calls afterwards. */
void rp_h2_go_away(rp_h2 *h2);
/* Ends the connection with this HTTP/2 error code (0: none); nothing more is received. */
void rp_h2_terminate(rp_h2 *h2, uint32_t code);
bool rp_h2_is_ended(const rp_h2 *h2);
/* Calls on_room for every call without queued responses. Begins behind the last call that has
 * sent something then. */
void rp_h2_make_room(rp_h2 *h2);
/* Calls `visit` for every open call; it may finish them. */
void rp_h2_each_call(rp_h2 *h2, void (*visit)(void *user, rp_call *call), void *user);

void rp_call_set_user(rp_call *call, void *user);
void *rp_call_user(const rp_call *call);

/* Sends a message; takes `reply`, which must be closed. */
void rp_call_send(rp_call *call, rp_message *reply);
size_t rp_call_queued_bytes(const rp_call *call);
/* Has on_room called as soon as some of the queued bytes have been written. */
void rp_call_want_room(rp_call *call);

/* Ends the call with a status, after the messages sent before. Nothing more may be sent;
 * messages that arrive are dropped. */
void rp_call_finish(rp_call *call, rp_status status, const char *text);
/* The same at once: messages that wait to be sent are dropped. */
void rp_call_abort(rp_call *call, rp_status status, const char *text);
bool rp_call_is_finished(const rp_call *call);

/* A response to a plain HTTP request. */
typedef struct rp_http_response {
    int status;
    const char *content_type;
    const char *extra_name, *extra_value; /* an extra header, or NULL */
} rp_http_response;

/* Responds to a plain HTTP request; takes `body` (closed; may be NULL). */
void rp_call_respond_http(rp_call *call, const rp_http_response *answer, rp_message *body);

/* After a pause, messages that arrive wait until the call is resumed. Resuming delivers them,
 * until one of them pauses the call again. Do not resume from on_message of the same call. */
void rp_call_pause(rp_call *call);
void rp_call_resume(rp_call *call);
bool rp_call_is_paused(const rp_call *call);

/* For a client, rp_call_send(), on_message, pauses, room and limits work as for a server.
 * on_request, on_half_close and on_fault are not called; on_end is, and on_close right after
 * it. When the server ends a call first, messages that wait to be sent are dropped. */

typedef struct rp_call_head {
    const char *path, *authority;
    const char *authorization; /* the whole value, or NULL */
    bool secure;               /* the scheme is https */
    int64_t timeout_ns;        /* sent as grpc-timeout; -1: none */
} rp_call_head;

/* As rp_h2_new(); handler->on_end must be set. */
RP_NODISCARD rp_status rp_h2_new_client(const rp_allocator *alloc, const rp_h2_handler *handler,
                                        void *user, const rp_h2_limits *limits,
                                        rp_message_pool *pool, rp_h2 **out);
/* Takes the blocks of large messages from a pool, which outlives the connection. */
void rp_h2_use_blocks(rp_h2 *h2, rp_block_pool *blocks);
/* Begins a call. NULL: no memory, or not rp_h2_can_begin(): the server's limit of calls is
 * reached, or it has sent GOAWAY. */
rp_call *rp_h2_begin(rp_h2 *h2, const rp_call_head *head, void *call_user);
bool rp_h2_can_begin(const rp_h2 *h2);
/* True once no more calls can ever begin here: after GOAWAY, or the end of the connection. */
bool rp_h2_is_leaving(const rp_h2 *h2);
/* Ends the stream from our side, after the messages sent before. */
void rp_call_half_close(rp_call *call);
/* Cancels a call: RST_STREAM, and on_close without on_end, from within this function. */
void rp_call_cancel(rp_call *call);

#endif
