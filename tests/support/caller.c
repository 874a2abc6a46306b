/* SPDX-License-Identifier: Apache-2.0 */
#include "support/caller.h"

#include <arpa/inet.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "reprise/wait.h"
#include "support/unit.h"

enum { PREFIX = 5, WAIT_MS = 120000, WINDOW = 1 << 24 };

typedef struct call {
    int32_t stream;
    bool ends; /* no further request will be sent */
    bool waits_for_data;
    rp_buf out; /* requests that are still to be sent */
    size_t sent;
    rp_test_outcome outcome;
} call;

struct rp_test_caller {
    int fd;
    nghttp2_session *session;
    call calls[RP_TEST_CALLS];
    size_t count;
};

static call *call_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *user)
{
    call *c = call_of(session, frame->hd.stream_id);

    (void)flags, (void)user;
    if (c == NULL) return 0;
    if (name_size == 11 && memcmp(name, "grpc-status", 11) == 0)
        c->outcome.status = atoi((const char *)value);
    if (name_size == 12 && memcmp(name, "grpc-message", 12) == 0)
        (void)snprintf(c->outcome.text, sizeof c->outcome.text, "%.*s", (int)value_size,
                       (const char *)value);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t size, void *user)
{
    call *c = call_of(session, stream);

    (void)flags, (void)user;
    if (c != NULL) rp_buf_append(&c->outcome.message, data, size);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *user)
{
    call *c = call_of(session, stream);
    rp_buf *message;

    (void)error, (void)user;
    if (c == NULL) return 0;
    c->outcome.is_over = true;
    message = &c->outcome.message;
    if (message->size < PREFIX) {
        message->size = 0;
        return 0;
    }
    memmove(message->data, message->data + PREFIX, message->size - PREFIX);
    message->size -= PREFIX;
    return 0;
}

static ssize_t give_request(nghttp2_session *session, int32_t stream, uint8_t *buffer,
                            size_t length, uint32_t *flags, nghttp2_data_source *source,
                            void *user)
{
    call *c = source->ptr;
    size_t left = c->out.size - c->sent;

    (void)session, (void)stream, (void)user;
    if (left == 0 && !c->ends) {
        c->waits_for_data = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (length > left) length = left;
    if (length > 0) memcpy(buffer, c->out.data + c->sent, length);
    c->sent += length;
    if (c->sent == c->out.size && c->ends) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)length;
}

rp_test_caller *rp_test_caller_open(int port)
{
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW}};
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    rp_test_caller *caller = calloc(1, sizeof *caller);
    nghttp2_session_callbacks *callbacks;

    assert_non_null(caller);
    caller->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(caller->fd >= 0);
    assert_int_equal(connect(caller->fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    assert_int_equal(nghttp2_session_client_new(&caller->session, callbacks, caller), 0);
    nghttp2_session_callbacks_del(callbacks);
    assert_int_equal(nghttp2_submit_settings(caller->session, NGHTTP2_FLAG_NONE, settings, 1),
                     0);
    assert_int_equal(
        nghttp2_session_set_local_window_size(caller->session, NGHTTP2_FLAG_NONE, 0, WINDOW),
        0);
    return caller;
}

void rp_test_caller_close(rp_test_caller *caller)
{
    (void)close(caller->fd);
    nghttp2_session_del(caller->session);
    for (size_t i = 0; i < caller->count; i++) {
        rp_buf_deinit(&caller->calls[i].out);
        rp_buf_deinit(&caller->calls[i].outcome.message);
    }
    free(caller);
}

static void write_all(rp_test_caller *caller)
{
    const uint8_t *data;
    ssize_t size;

    while ((size = nghttp2_session_mem_send(caller->session, &data)) > 0)
        while (size > 0) {
            ssize_t n = send(caller->fd, data, (size_t)size, MSG_NOSIGNAL);
            assert_true(n > 0);
            data += n;
            size -= n;
        }
    assert_int_equal(size, 0);
}

/* Reads once, if bytes arrive within `ms`. False if none do. */
static bool read_some(rp_test_caller *caller, int ms)
{
    static _Thread_local uint8_t bytes[1 << 16];
    struct pollfd ready = {.fd = caller->fd, .events = POLLIN};
    ssize_t n;

    if (poll(&ready, 1, ms) <= 0) return false;
    n = recv(caller->fd, bytes, sizeof bytes, 0);
    assert_true(n > 0);
    assert_int_equal(nghttp2_session_mem_recv(caller->session, bytes, (size_t)n), n);
    return true;
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static size_t start(rp_test_caller *caller, const char *method, const char *timeout)
{
    nghttp2_nv fields[] = {
        field(":method", "POST"),
        field(":scheme", "http"),
        field(":path", method),
        field(":authority", "localhost"),
        field("te", "trailers"),
        field("content-type", "application/grpc"),
        field("grpc-timeout", timeout != NULL ? timeout : ""),
    };
    size_t number = caller->count++;
    call *c = &caller->calls[number];
    nghttp2_data_provider provider = {{.ptr = c}, give_request};

    assert_true(number < RP_TEST_CALLS);
    *c = (call){.outcome = {.status = -1}};
    rp_buf_init(&c->out, rp_allocator_default());
    rp_buf_init(&c->outcome.message, rp_allocator_default());
    c->stream =
        nghttp2_submit_request(caller->session, NULL, fields,
                               COUNT_OF(fields) - (timeout == NULL ? 1 : 0), &provider, c);
    assert_true(c->stream > 0);
    return number;
}

void rp_test_call_send(rp_test_caller *caller, size_t number, const void *request, size_t size,
                       bool is_last)
{
    call *c = &caller->calls[number];
    const uint8_t prefix[PREFIX] = {0, (uint8_t)(size >> 24), (uint8_t)(size >> 16),
                                    (uint8_t)(size >> 8), (uint8_t)size};

    if (request != NULL) {
        rp_buf_append(&c->out, prefix, PREFIX);
        rp_buf_append(&c->out, request, size);
    }
    c->ends = is_last;
    if (c->waits_for_data) {
        c->waits_for_data = false;
        assert_int_equal(nghttp2_session_resume_data(caller->session, c->stream), 0);
    }
    write_all(caller);
}

size_t rp_test_call_open(rp_test_caller *caller, const char *method)
{
    size_t number = start(caller, method, NULL);

    write_all(caller);
    return number;
}

size_t rp_test_call_start(rp_test_caller *caller, const char *method, const void *request,
                          size_t size, const char *timeout)
{
    size_t number = start(caller, method, timeout);

    rp_test_call_send(caller, number, request != NULL ? request : "", size, true);
    return number;
}

bool rp_test_call_is_over(rp_test_caller *caller, size_t number, int ms)
{
    const rp_test_outcome *outcome = &caller->calls[number].outcome;
    int64_t until_ns = rp_now_ns() + (int64_t)ms * 1000000;

    write_all(caller);
    while (!outcome->is_over && rp_now_ns() < until_ns) {
        (void)read_some(caller, 10);
        write_all(caller);
    }
    return outcome->is_over;
}

const rp_test_outcome *rp_test_call_wait(rp_test_caller *caller, size_t number)
{
    if (!rp_test_call_is_over(caller, number, WAIT_MS))
        fail_msg("call %zu: still open after %d ms", number, WAIT_MS);
    return &caller->calls[number].outcome;
}

void rp_test_call_cancel(rp_test_caller *caller, size_t number)
{
    (void)nghttp2_submit_rst_stream(caller->session, NGHTTP2_FLAG_NONE,
                                    caller->calls[number].stream, NGHTTP2_CANCEL);
    write_all(caller);
}

const rp_test_outcome *rp_test_call(rp_test_caller *caller, const char *method,
                                    const void *request, size_t size)
{
    return rp_test_call_wait(caller, rp_test_call_start(caller, method, request, size, NULL));
}
