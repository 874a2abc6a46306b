/* SPDX-License-Identifier: Apache-2.0 */
/* A small gRPC client over nghttp2. It exchanges bytes with the test, or uses a socket.
 *
 *   rp_test_client *c = rp_test_client_new(NULL);
 *   rp_test_stream *call = rp_test_client_open(c, "/a.B/C");
 *   rp_test_stream_send(call, data, size);
 *   rp_test_stream_end(call);
 *   ... transfer bytes until call->is_over ...
 *   assert_int_equal(call->status, RP_OK);
 *
 * It makes no cmocka assertions, so that any thread can use it. On an internal error it prints
 * to stderr and aborts. */
#ifndef RP_TEST_H2_CLIENT_H
#define RP_TEST_H2_CLIENT_H

#include <nghttp2/nghttp2.h>

#include "util/buf.h"

typedef struct rp_test_client rp_test_client;
typedef struct rp_test_stream rp_test_stream;

/* A field that is 0 has nghttp2's default. */
typedef struct rp_test_client_options {
    uint32_t window;        /* of each call, for its responses */
    int32_t session_window; /* of all calls together */
    bool hold_windows;      /* only rp_test_stream_read() acknowledges bytes */
    size_t frame_bytes;     /* the largest DATA frame */
    size_t padding;         /* bytes of padding in every DATA frame */
    bool keep_nothing;      /* responses are counted, not kept */
} rp_test_client_options;

/* One call, as its client sees it. Lives as long as the client. */
struct rp_test_stream {
    rp_test_client *client;
    rp_test_stream *next;
    int32_t id;

    /* bytes to be sent */
    rp_buf out;
    size_t out_sent;
    bool ends, is_deferred;

    /* the response */
    int http_status; /* 0: no headers yet */
    int status;      /* of grpc-status; -1: none */
    char text[512];  /* of grpc-message, as it is on the wire */
    char content_type[64];
    bool has_trailers;   /* the status came after a first block of headers */
    bool is_over;        /* the stream is closed */
    uint32_t reset_code; /* of a reset by the server, or 0 */
    bool was_reset;
    rp_buf in; /* messages, with their prefixes */
    size_t in_parsed;
    size_t message_count, message_bytes;
    size_t *messages; /* the offset of each message in `in`, and the end of the last */
    size_t message_capacity;
    size_t unread; /* bytes received and not acknowledged */
};

struct rp_test_client {
    nghttp2_session *session;
    rp_test_client_options options;
    rp_test_stream *calls; /* all calls that were ever opened, newest first */
    rp_buf out;            /* bytes for the server */
    size_t out_taken;
    bool is_bad;     /* the server sent bytes that are not HTTP/2 */
    bool goes_away;  /* the server sent a GOAWAY */
    int32_t last_id; /* its last stream id */
    uint32_t goaway_code;
    size_t pongs, pings, settings, resets;
    size_t open_count;
    int fd; /* -1: none */
    bool is_closed;
};

/* `options` may be NULL. */
rp_test_client *rp_test_client_new(const rp_test_client_options *options);
void rp_test_client_free(rp_test_client *client); /* NULL is fine; closes its socket */

typedef struct rp_test_header {
    const char *name, *value;
} rp_test_header;

/* Open a call: a POST of application/grpc; the second with additional headers. */
rp_test_stream *rp_test_client_open(rp_test_client *client, const char *path);
rp_test_stream *rp_test_client_open_with(rp_test_client *client, const char *path,
                                         const rp_test_header *headers, size_t count);
/* Sends the headers of a POST request that is confirmed and has no `content-length`. The
 * stream stays open if the request has a body. */
rp_test_stream *rp_test_client_post(rp_test_client *client, const char *path, bool has_body);
/* Sends a request without a body. */
rp_test_stream *rp_test_client_get(rp_test_client *client, const char *method,
                                   const char *path);

void rp_test_stream_send(rp_test_stream *call, const void *message, size_t size);
/* Sends bytes without a prefix. */
void rp_test_stream_send_raw(rp_test_stream *call, const void *data, size_t size);
void rp_test_stream_end(rp_test_stream *call);
void rp_test_stream_reset(rp_test_stream *call, uint32_t code);
/* Acknowledges received bytes: `size`, or all if there are fewer. Only with hold_windows. */
void rp_test_stream_read(rp_test_stream *call, size_t size);

/* Returns message `index` of the response. Borrowed until the next bytes are received. */
const uint8_t *rp_test_stream_message(const rp_test_stream *call, size_t index, size_t *size);

/* Returns the bytes to be sent, or NULL if there are none. The caller then calls
 * rp_test_client_sent() with the number that it has sent. */
const uint8_t *rp_test_client_output(rp_test_client *client, size_t *size);
void rp_test_client_sent(rp_test_client *client, size_t size);
/* Appends any bytes to those that are to be sent. */
void rp_test_client_inject(rp_test_client *client, const void *data, size_t size);
/* Appends a frame to the bytes that are to be sent. */
void rp_test_client_frame(rp_test_client *client, uint8_t type, uint8_t flags, uint32_t stream,
                          const void *payload, size_t size);
void rp_test_client_receive(rp_test_client *client, const uint8_t *data, size_t size);

/* Connects. False if the connection is refused. */
bool rp_test_client_connect(rp_test_client *client, int port);
bool rp_test_client_connect_unix(rp_test_client *client, const char *path);

/* Sends pending bytes, waits up to `timeout_ms` until the socket is ready, and reads. False
 * once the server has closed the connection. */
bool rp_test_client_step(rp_test_client *client, int timeout_ms);

/* Step the client until the call is over, or until it has `count` messages. False after a
 * timeout. True also if the connection was closed. */
bool rp_test_stream_wait(rp_test_stream *call);
bool rp_test_stream_wait_messages(rp_test_stream *call, size_t count);
/* Steps the client for `ms` milliseconds. */
void rp_test_client_idle(rp_test_client *client, int ms);

/* Makes a whole call with one message and one response. Returns the status, or -1 if the
 * connection was lost. The call is the newest of the client. */
int rp_test_client_unary(rp_test_client *client, const char *path, const void *message,
                         size_t size);

#endif
