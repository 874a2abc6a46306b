/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/2 connection, of a server or of a client, that carries gRPC calls. It uses no socket:
 * the owner passes bytes in and takes bytes out.
 *
 * The owner passes bytes from the peer to rp_h2_receive() and writes the bytes of
 * rp_h2_output() to the peer. The owner receives calls and their messages through the functions
 * of its handler, and sends messages. nghttp2 handles frames, headers and windows. On top of
 * it, rp_h2 splits the received data into gRPC messages, sends messages without copying the
 * bytes that they borrow (message.h), applies flow control to each call, and reports nuisances:
 * events that a hostile peer could cause too often. In this file, a call is an RPC or a plain
 * HTTP request.
 *
 * Flow control. The window of the connection is returned to the peer as bytes arrive, so that a
 * paused call never blocks another call. The window of a call is returned only while the call
 * is not paused. So while a call is paused, at most the bytes of its window arrive, even in the
 * middle of a large message.
 *
 * Only one thread may use a connection. A handler function may use all functions of this file
 * except rp_h2_receive(), rp_h2_output(), rp_h2_free(), and those whose comments forbid it. */
#ifndef RP_WIRE_H2_H2_H
#define RP_WIRE_H2_H2_H

#include <sys/uio.h>

#include "reprise/tensor.h" /* rp_string */
#include "wire/block.h"
#include "wire/message.h"

typedef struct rp_h2 rp_h2;
typedef struct rp_call rp_call;

/* The headers of a request. The strings are valid only during on_request. "Refuse the call"
 * means that the owner must refuse the call. */
typedef struct rp_request_head {
    rp_string method, path, content_type, authorization, encoding;
    /* For plain HTTP. `confirm` is the header x-reprise-confirm. */
    rp_string content_length, confirm, if_none_match;
    int64_t timeout_ns; /* the value of grpc-timeout; -1: none */
    bool too_large;   /* headers beyond the limit header_bytes were dropped: refuse the call */
    bool too_many;    /* headers beyond the limit header_fields were dropped: refuse the call */
    bool is_all;      /* the request ends with its headers: it has no body */
    bool bad_timeout; /* grpc-timeout is malformed */
    bool is_repeated; /* there are several `authorization` headers: refuse the call */
} rp_request_head;

/* Nuisances: events that a peer is allowed to cause, but only up to a limit. rp_h2 reports each
 * nuisance to on_nuisance; the owner counts them and sets the limit. "Sent data" is DATA sent
 * to the peer. */
typedef enum rp_nuisance {
    RP_NUISANCE_RESET,      /* the peer reset a call before it had a response */
    RP_NUISANCE_MADE_RESET, /* this side had to reset a call because of the peer */
    RP_NUISANCE_PING, /* a ping beyond the number that sent data explains, or an acknowledgement
                         of a ping that was not sent */
    RP_NUISANCE_SETTINGS,
    RP_NUISANCE_EMPTY,  /* an empty frame, or a small frame of a header block */
    RP_NUISANCE_WINDOW, /* a window update beyond the number that sent data and calls explain */
    RP_NUISANCE_BAD_FRAME,
    RP_NUISANCE_REFUSED, /* a call beyond the limit of open calls */
    RP_NUISANCE_PRIORITY,
    RP_NUISANCE_OTHER,      /* an unknown frame, GOAWAY, or headers far over the limits */
    RP_NUISANCE_LATE,       /* a frame of an ended call, beyond the frames that may have been in
                               flight */
    RP_NUISANCE_FRAGMENT,   /* a few bytes of a message that do not complete it */
    RP_NUISANCE_TABLE_SIZE, /* an HPACK size update beyond the number that a header block may
                               need */
    RP_NUISANCE_KINDS,
} rp_nuisance;

/* Reasons to end a call because of a message of its peer. */
typedef enum rp_call_fault {
    RP_FAULT_MESSAGE_BYTES, /* the message is larger than the limit */
    RP_FAULT_COMPRESSED,    /* the message is compressed by gRPC */
    RP_FAULT_FRAMING,       /* the peer ended the call within the message */
    RP_FAULT_MEMORY,        /* there is no memory for the message */
} rp_call_fault;

typedef struct rp_h2_handler {
    /* A call begins. The owner may respond now or later. rp_call_set_user() attaches the
     * owner's data to the call. */
    void (*on_request)(void *user, rp_call *call, const rp_request_head *head);
    /* Returns whether a complete message of `size` bytes may be delivered now. If not, the call
     * is paused, and the message is kept until the owner resumes the call. NULL: always
     * true. */
    bool (*may_deliver)(void *user, rp_call *call, size_t size);
    /* A complete message has arrived. `data` is valid until the handler returns. If the message
     * was received into a block (block.h), `block` is that block, and the owner can keep the
     * data by taking a reference to the block. Otherwise `block` is NULL. */
    void (*on_message)(void *user, rp_call *call, const uint8_t *data, size_t size,
                       rp_block *block);
    /* The peer will send no more on this call. Called after the last message was delivered, so
     * never while the call is paused. */
    void (*on_half_close)(void *user, rp_call *call);
    /* Called when some messages of this call were written, and its queued messages have at most
     * half of rp_h2_limits.queued_bytes. */
    void (*on_room)(void *user, rp_call *call);
    /* The call has ended: its response is complete, the peer has reset it, or the connection is
     * being freed. `call` is invalid afterwards. Called once for each call: of a server, each
     * on_request; of a client, each rp_h2_begin(). */
    void (*on_close)(void *user, rp_call *call);
    /* The peer has caused a nuisance. If the function returns false, rp_h2 ends the connection,
     * unless the handler has called rp_h2_terminate(). For RP_NUISANCE_RESET, `call` is the
     * call that the peer has reset. Its on_close is called next, unless on_request was not
     * called for it. For other kinds `call` is NULL. NULL: nuisances are ignored, which is
     * right for a client. */
    bool (*on_nuisance)(void *user, rp_nuisance kind, rp_call *call);
    /* rp_h2 has ended a call with `status` because of a message of its peer. */
    void (*on_fault)(void *user, rp_call *call, rp_call_fault fault, rp_status status);
    /* Only for a client: a call has ended. `status` is the status that the server has sent.
     * on_end is called after the last message was delivered, so never while the call is paused.
     * There are these exceptions:
     *   - after a reset, `status` is the status that gRPC assigns to the error code of the
     *     reset (RP_UNAVAILABLE if the call was refused, or after GOAWAY);
     *   - in these cases the client resets the call, and on_end is called at once: a message or
     *     the headers exceed a limit, or there is no memory for them (RP_NO_RESOURCE); a
     *     message is compressed (RP_UNIMPLEMENTED); the response is not gRPC (the status for
     *     its HTTP status);
     *   - if the connection is freed, `status` is RP_UNAVAILABLE, or RP_NO_RESOURCE if there
     *     was no memory for the connection.
     * `text` is the decoded error text, "" if `status` is RP_OK. It is valid until the handler
     * returns. */
    void (*on_end)(void *user, rp_call *call, rp_status status, const char *text);
} rp_h2_handler;

typedef struct rp_h2_limits {
    uint32_t streams;            /* only for a server: the most calls that may be open at
                                    once */
    size_t message_bytes;        /* largest size of a received message */
    const char *message_setting; /* text for the error about message_bytes; borrowed, or NULL */
    size_t header_bytes, header_fields;
    size_t queued_bytes; /* of the messages that a call sends. More can be queued: the number
                            only decides when on_room is called */
} rp_h2_limits;

/* Makes the connection of a server. Borrows `handler` and `pool`, the pool of all messages sent
 * on this connection. Copies `limits`. Errors: RP_NO_RESOURCE. The caller owns `*out`. */
RP_NODISCARD rp_status rp_h2_new(const rp_allocator *alloc, const rp_h2_handler *handler,
                                 void *user, const rp_h2_limits *limits, rp_message_pool *pool,
                                 rp_h2 **out);
/* For a server, after its connection was closed: ends up to `most` calls and invokes their
 * on_close. After the first use of this function the owner must not receive or send. Returns
 * the number of remaining calls. */
size_t rp_h2_close_calls(rp_h2 *h2, size_t most);
/* Ends all calls, invokes their on_close (for a client, on_end first), and frees the
 * connection. NULL is fine. */
void rp_h2_free(rp_h2 *h2);
/* From now on, blocks of `bytes` or more for received messages come from `alloc`, which is
 * copied. */
void rp_h2_set_large(rp_h2 *h2, const rp_allocator *alloc, size_t bytes);

/* Handles bytes from the peer. Returns false if the owner must close the connection after it
 * has written the remaining bytes of rp_h2_output(). */
bool rp_h2_receive(rp_h2 *h2, const uint8_t *data, size_t size);
/* Only for a server: the number of frames and messages received so far. Each of them is work in
 * addition to its bytes. */
uint64_t rp_h2_events(const rp_h2 *h2);

/* If a large message is arriving, returns an address in the message's block, and `*size`
 * receives a number of bytes. The owner may read up to `*size` of the next bytes directly to
 * this address. It must then pass these bytes, at this address, to rp_h2_receive(). Returns
 * NULL if no large message is arriving. */
uint8_t *rp_h2_receive_place(rp_h2 *h2, size_t *size);

/* rp_h2_output() makes entries of `parts` point to the bytes to write next, and returns the
 * number of these entries, at most `capacity`. Afterwards the owner reports with
 * rp_h2_written() how many of these bytes were written. */
size_t rp_h2_output(rp_h2 *h2, struct iovec *parts, size_t capacity);
void rp_h2_written(rp_h2 *h2, size_t size);

/* Returns true while there is something to write. */
bool rp_h2_wants_output(const rp_h2 *h2);
/* Returns true if nothing is left to do: there are no calls, and no more are accepted. */
bool rp_h2_is_over(const rp_h2 *h2);
/* Returns true if the peer has violated HTTP/2. */
bool rp_h2_is_violated(const rp_h2 *h2);

/* Returns the bytes that have arrived of messages, complete or incomplete, that were not
 * delivered, plus the size of the structs that keep the complete ones. */
size_t rp_h2_held_bytes(const rp_h2 *h2);
/* Returns the bytes of messages that were passed to rp_call_send() and have not been written.
 */
size_t rp_h2_queued_bytes(const rp_h2 *h2);
/* For the incomplete messages of calls that are not paused: rp_h2_partial_bytes() returns the
 * bytes that have arrived, which rp_h2_held_bytes() includes; rp_h2_awaited_bytes() returns the
 * bytes that have not arrived. */
size_t rp_h2_partial_bytes(const rp_h2 *h2);
size_t rp_h2_awaited_bytes(const rp_h2 *h2);
/* Returns the bytes of messages that were written, over the life of the connection. */
uint64_t rp_h2_left_bytes(const rp_h2 *h2);
size_t rp_h2_call_count(const rp_h2 *h2);
/* What a connection waits for from its peer. Messages of paused calls do not count. If several
 * values apply, rp_h2_waits_for() returns the first of them. `*bytes` receives the bytes of
 * messages received over the life of the connection, so that the caller can measure progress.
 */
typedef enum rp_h2_wait {
    RP_H2_WAITS_FOR_NOTHING,
    RP_H2_WAITS_FOR_GREETING, /* the peer's first settings */
    RP_H2_WAITS_FOR_HEADERS,
    RP_H2_WAITS_FOR_MESSAGE,
    RP_H2_WAITS_FOR_CLOSE, /* the response of a call is complete, but the peer has not ended its
                              side of the stream */
} rp_h2_wait;
rp_h2_wait rp_h2_waits_for(const rp_h2 *h2, uint64_t *bytes);

/* Must be called from time to time. Resets calls whose response is complete and whose stream
 * the peer has not ended. A call is reset when this function runs for the second time after the
 * response. An earlier reset could make a proxy drop the response. */
void rp_h2_sweep(rp_h2 *h2);

/* Sends a PING. */
void rp_h2_ping(rp_h2 *h2);
uint64_t rp_h2_pongs(const rp_h2 *h2); /* pings that the peer has acknowledged so far */

/* Sends GOAWAY, so that the peer opens no more calls. On a server's connection, the first use
 * of this function announces the end, and the second use sends the final GOAWAY. On a client's
 * connection, the first use sends the final GOAWAY, and the client begins no calls afterwards.
 */
void rp_h2_go_away(rp_h2 *h2);
enum { RP_H2_END_TEXT_BYTES = 160 };
/* Ends the connection with this HTTP/2 error code (0: no error). Nothing more is received. Up
 * to RP_H2_END_TEXT_BYTES - 1 bytes of `text` are sent as the debug data of the GOAWAY. If the
 * connection was ended before, nothing changes. */
void rp_h2_terminate(rp_h2 *h2, uint32_t code, const char *text);
bool rp_h2_is_ended(const rp_h2 *h2);
/* Invokes on_room of every open call without queued messages, round robin: begins after the
 * call that was the last to send something in its on_room, in this or an earlier use of this
 * function. */
void rp_h2_make_room(rp_h2 *h2);
/* Invokes `visit` for every open call. `visit` is allowed to finish the call. */
void rp_h2_each_call(rp_h2 *h2, void (*visit)(void *user, rp_call *call), void *user);

void rp_call_set_user(rp_call *call, void *user);
void *rp_call_user(const rp_call *call);

/* Sends a message and takes ownership of it. The message must be closed
 * (rp_message_close()). */
void rp_call_send(rp_call *call, rp_message *reply);
size_t rp_call_queued_bytes(const rp_call *call);
/* Requests that on_room is called as soon as some of the call's queued bytes have been written.
 */
void rp_call_want_room(rp_call *call);

/* Ends the call with a status, after the messages sent before. The owner must not send more.
 * Messages that arrive are dropped. */
void rp_call_finish(rp_call *call, rp_status status, const char *text);
/* Ends the call with a status at once: messages that wait to be written are dropped. */
void rp_call_abort(rp_call *call, rp_status status, const char *text);
bool rp_call_is_finished(const rp_call *call);

/* A response to a plain HTTP request. */
typedef struct rp_http_response {
    int status;
    const char *content_type;
    const char *extra_name, *extra_value; /* an additional header, or NULL */
} rp_http_response;

/* Responds to a plain HTTP request. Takes ownership of `body`, which is a closed message or
 * NULL. */
void rp_call_respond_http(rp_call *call, const rp_http_response *answer, rp_message *body);

typedef struct rp_http_header {
    const char *name, *value;
} rp_http_header;

enum { RP_HTTP_HEADERS = 8 };
/* As rp_call_respond_http(), with `count` headers, at most RP_HTTP_HEADERS. */
void rp_call_respond_headers(rp_call *call, int status, const rp_http_header *headers,
                             size_t count, rp_message *body);

/* For a plain HTTP request with a body of `size` bytes (its content-length): the body will be
 * delivered as one message. The owner may call this only in on_request, and must check the
 * bound of `size`. An empty body is not delivered. */
void rp_call_expect_body(rp_call *call, size_t size);

/* While a call is paused, messages that arrive are kept. Resuming the call delivers them in
 * order, until a handler function pauses the call again or may_deliver returns false. A call
 * must not be resumed from its own on_message. */
void rp_call_pause(rp_call *call);
void rp_call_resume(rp_call *call);
bool rp_call_is_paused(const rp_call *call);

/* Called by an on_message that has not processed all of a message with a block. The call is
 * paused, and the message counts in rp_h2_held_bytes() again. When the call is resumed, the
 * same message is delivered again, from the same memory. */
void rp_call_deliver_again(rp_call *call);
/* Called by an on_message: returns true if the message was delivered before. */
bool rp_call_is_again(const rp_call *call);

/* The rest of this header is for clients. rp_call_send(), on_message, pauses, on_room and
 * limits work as for a server. on_request, on_half_close and on_fault are not called. When a
 * call ends, on_end is called, and then on_close. If the server ends the call first, messages
 * that wait to be written are dropped. */

typedef struct rp_call_head {
    const char *path, *authority;
    const char *authorization; /* the whole value of the header, or NULL */
    bool secure;               /* the scheme is https */
    int64_t timeout_ns;        /* sent as grpc-timeout; -1: none */
} rp_call_head;

/* Makes the connection of a client, as rp_h2_new() does for a server. handler->on_end must be
 * set. */
RP_NODISCARD rp_status rp_h2_new_client(const rp_allocator *alloc, const rp_h2_handler *handler,
                                        void *user, const rp_h2_limits *limits,
                                        rp_message_pool *pool, rp_h2 **out);
/* From now on, the blocks of large messages come from `blocks`, which must outlive the
 * connection. */
void rp_h2_use_blocks(rp_h2 *h2, rp_block_pool *blocks);
/* Begins a call. Returns NULL if there is no memory, or if rp_h2_can_begin() is false. It is
 * false if the server's limit of calls is reached, or if either side has sent GOAWAY. */
rp_call *rp_h2_begin(rp_h2 *h2, const rp_call_head *head, void *call_user);
bool rp_h2_can_begin(const rp_h2 *h2);
/* Returns true if no more calls can ever begin on this connection: after GOAWAY, or after its
 * end. */
bool rp_h2_is_leaving(const rp_h2 *h2);
/* Ends the client's side of the stream, after the messages sent before. */
void rp_call_half_close(rp_call *call);
/* Cancels a call: sends RST_STREAM, and before it returns, invokes on_close, but not on_end. */
void rp_call_cancel(rp_call *call);

#endif
