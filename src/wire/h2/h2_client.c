/* SPDX-License-Identifier: Apache-2.0 */
/* The part for clients: begins calls, reads their status, and cancels them.
 *
 * A call and its stream may end at different times. A cancelled call ends at once, its stream
 * when the reset was sent. The stream of a paused call may be closed long before the last
 * message is delivered. The call stays in the list until both have ended, and is freed at the
 * next rp_h2_receive() or rp_h2_output(), so that loops over the list meet no freed call. */
#include <assert.h>
#include <stdio.h>

#include "reprise/version.h"
#include "util/mem.h"
#include "wire/h2/grpc.h"
#include "wire/h2/h2_inside.h"

enum { STATUS, CONTENT_TYPE, GRPC_STATUS, GRPC_MESSAGE, FIELD_COUNT };

static_assert(sizeof((rp_h2){0}).fields / sizeof((rp_h2){0}).fields[0] >= FIELD_COUNT,
              "a place for each field that is kept");

static void set_end(rp_call *call, rp_status status, const char *text)
{
    call->status = status;
    call->text[0] = '\0';
    if (text[0] != '\0') (void)snprintf(call->text, sizeof call->text, "%s", text);
}

void rp_h2_free_dead(rp_h2 *h2)
{
    while (h2->dead != NULL) {
        rp_call *call = h2->dead;
        h2->dead = call->next_dead;
        rp_h2_free_call(h2, call);
    }
}

static void mark_dead(rp_call *call)
{
    assert(call->closed && !call->has_stream);
    call->next_dead = call->h2->dead;
    call->h2->dead = call;
}

/* Ends a call, with on_end if `with_status`. */
static void close_call(rp_call *call, bool with_status, rp_status status, const char *text)
{
    rp_h2 *h2 = call->h2;

    assert(!call->closed && h2->call_count > 0); /* H1 */
    call->finishing = call->closing = call->closed = true;
    if (h2->direct == call) h2->direct = NULL;
    rp_h2_drop_received(call);
    rp_h2_drop_unpromised(call);
    h2->call_count--;
    if (with_status) h2->handler->on_end(h2->user, call, status, status == RP_OK ? "" : text);
    h2->handler->on_close(h2->user, call);
    call->opened = false;
    if (!call->has_stream) mark_dead(call);
}

static void reset(rp_call *call, uint32_t code)
{
    rp_h2 *h2 = call->h2;

    if (!call->has_stream) return;
    rp_h2_need(h2, nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, call->id, code));
}

void rp_h2_fail_call(rp_call *call, rp_status status, const char *text)
{
    if (call->closed) return;
    reset(call, NGHTTP2_CANCEL);
    close_call(call, true, status, text);
}

void rp_call_cancel(rp_call *call)
{
    if (call->closed) return;
    reset(call, NGHTTP2_CANCEL);
    close_call(call, false, RP_OK, "");
}

void rp_h2_stop_sending(rp_call *call)
{
    if (call->closed) return;
    call->closing = true;
    rp_h2_drop_unpromised(call);
    if (nghttp2_session_get_stream_local_close(call->h2->session, call->id) == 0)
        reset(call, NGHTTP2_NO_ERROR);
}

void rp_h2_end_answer(rp_call *call)
{
    if (call->prefix_bytes > 0 && call->status == RP_OK)
        set_end(call, RP_INTERNAL, "the server ended the call within a message");
    close_call(call, true, call->status, call->text);
}

void rp_h2_stream_closed(rp_call *call, uint32_t code)
{
    assert(call->has_stream && call->h2->streams > 0);
    call->has_stream = false;
    call->h2->streams--;
    rp_h2_drop_replies(call);
    call->promised = 0;
    if (call->closed) {
        mark_dead(call);
        return;
    }
    call->closing = true;
    if (!call->half_closed) {
        call->half_closed = true;
        call->status = rp_grpc_status_of_reset(code);
        (void)snprintf(call->text, sizeof call->text, "the call was reset: %s",
                       nghttp2_http2_strerror(code));
    }
    rp_h2_tell_half_close(call);
}

void rp_h2_end_client(rp_h2 *h2)
{
    rp_status status = h2->starved ? RP_NO_RESOURCE : RP_UNAVAILABLE;
    const char *text = h2->starved    ? "out of memory for the connection"
                       : h2->violated ? "the server does not keep to HTTP/2"
                                      : "the connection was closed";

    h2->broken = true; /* from now on no calls can begin */
    for (rp_call *call = h2->calls; call != NULL; call = call->next)
        if (!call->closed) close_call(call, true, status, text);
    h2->dead = NULL;
    while (h2->calls != NULL) rp_h2_free_call(h2, h2->calls);
}

rp_status rp_h2_new_client(const rp_allocator *alloc, const rp_h2_handler *handler, void *user,
                           const rp_h2_limits *limits, rp_message_pool *pool, rp_h2 **out)
{
    return rp_h2_open(alloc, handler, user, limits, pool, true, out);
}

void rp_h2_use_blocks(rp_h2 *h2, rp_block_pool *blocks)
{
    h2->blocks = blocks;
}

bool rp_h2_is_leaving(const rp_h2 *h2)
{
    return h2->broken || h2->ended || h2->gone_away ||
           nghttp2_session_check_request_allowed(h2->session) == 0;
}

bool rp_h2_can_begin(const rp_h2 *h2)
{
    return !rp_h2_is_leaving(h2) &&
           h2->streams < nghttp2_session_get_remote_settings(
                             h2->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

static int32_t submit_request(rp_call *call, const rp_call_head *head)
{
    nghttp2_data_provider provider = {{.ptr = call}, rp_h2_read_replies};
    char timeout[RP_GRPC_TIMEOUT_BYTES];
    nghttp2_nv fields[9];
    size_t count = 0;

    fields[count++] = rp_h2_field(":method", "POST");
    fields[count++] = rp_h2_field(":scheme", head->secure ? "https" : "http");
    fields[count++] = rp_h2_field(":path", head->path);
    fields[count++] = rp_h2_field(":authority", head->authority);
    fields[count++] = rp_h2_field("te", "trailers");
    fields[count++] = rp_h2_field("content-type", "application/grpc");
    fields[count++] = rp_h2_field("user-agent", "reprise-c/" RP_VERSION);
    if (head->timeout_ns >= 0) {
        rp_grpc_format_timeout(head->timeout_ns, timeout);
        fields[count++] = rp_h2_field("grpc-timeout", timeout);
    }
    if (head->authorization != NULL) {
        fields[count] = rp_h2_field("authorization", head->authorization);
        fields[count++].flags = NGHTTP2_NV_FLAG_NO_INDEX; /* a secret */
    }
    assert(count <= sizeof fields / sizeof fields[0]);
    return nghttp2_submit_request(call->h2->session, NULL, fields, count, &provider, call);
}

rp_call *rp_h2_begin(rp_h2 *h2, const rp_call_head *head, void *call_user)
{
    rp_call *call;

    if (!rp_h2_can_begin(h2)) return NULL;
    call = rp_alloc_zero(&h2->alloc, sizeof *call);
    if (call == NULL) return NULL;
    call->h2 = h2;
    call->user = call_user;
    call->last_waiting = &call->first_waiting;
    call->raw = call->headers_sent = call->opened = call->has_stream = true;
    set_end(call, RP_INTERNAL, "the server ended the call without a status");
    call->id = submit_request(call, head);
    if (call->id < 0) {
        rp_release(&h2->alloc, call, sizeof *call);
        return NULL;
    }
    rp_h2_link_call(h2, call);
    h2->streams++;
    return call;
}

void rp_call_half_close(rp_call *call)
{
    if (call->closing || call->closed) return;
    call->closing = true;
    rp_h2_wake(call);
}

static int field_of(const uint8_t *name, size_t size)
{
    static const char *const names[FIELD_COUNT] = {
        [STATUS] = ":status",
        [CONTENT_TYPE] = "content-type",
        [GRPC_STATUS] = "grpc-status",
        [GRPC_MESSAGE] = "grpc-message",
    };

    for (int i = 0; i < FIELD_COUNT; i++)
        if (size == strlen(names[i]) && memcmp(name, names[i], size) == 0) return i;
    return -1;
}

int rp_h2_client_header(rp_h2 *h2, const nghttp2_frame *frame, const uint8_t *name,
                        size_t name_size, const uint8_t *value, size_t value_size)
{
    int field = field_of(name, name_size);
    rp_call *call;

    if (field < 0 || rp_h2_keep_field(h2, field, value, value_size)) return 0;
    call = nghttp2_session_get_stream_user_data(h2->session, frame->hd.stream_id);
    if (call != NULL) rp_h2_fail_call(call, RP_NO_RESOURCE, "out of memory for headers");
    return 0;
}

static bool is_grpc(rp_string type)
{
    static const char grpc[] = "application/grpc";
    const size_t size = sizeof grpc - 1;

    return type.size >= size && memcmp(type.data, grpc, size) == 0 &&
           (type.size == size || type.data[size] == '+' || type.data[size] == ';');
}

/* Parses a value of :status. nghttp2 has checked that it is a number of three digits. */
static int http_status(rp_string value)
{
    int number = 0;

    for (size_t i = 0; i < value.size && i < 3; i++)
        number = 10 * number + (value.data[i] - '0');
    return number;
}

/* Reads the status of a call from its last headers. */
static void read_end(rp_call *call)
{
    rp_string status = rp_h2_kept_field(call->h2, GRPC_STATUS);
    rp_string text = rp_h2_kept_field(call->h2, GRPC_MESSAGE);

    if (status.size > 0) {
        call->status = rp_grpc_parse_status((const uint8_t *)status.data, status.size);
        (void)rp_grpc_decode_message((const uint8_t *)text.data, text.size, call->text,
                                     sizeof call->text);
        return;
    }
    call->status = rp_grpc_status_of_http(call->http_status);
    if (call->http_status == 200) return; /* rp_h2_begin() has set the text */
    (void)snprintf(call->text, sizeof call->text, "the server answered with HTTP status %d",
                   call->http_status);
}

void rp_h2_take_answer(rp_call *call, bool end)
{
    const rp_h2 *h2 = call->h2;
    rp_string status = rp_h2_kept_field(h2, STATUS);

    if (call->closed || (status.size > 0 && status.data[0] == '1')) return;
    if (h2->head_bytes > h2->limits.header_bytes ||
        h2->head_fields > h2->limits.header_fields) {
        rp_h2_fail_call(call, RP_NO_RESOURCE, "the headers of the answer are over the limit");
        return;
    }
    if (status.size > 0) call->http_status = http_status(status);
    if (!end && call->http_status == 200 && is_grpc(rp_h2_kept_field(h2, CONTENT_TYPE))) return;
    read_end(call);
    if (end) return;
    /* The body is not made of gRPC messages. */
    if (call->http_status == 200 || call->status == RP_OK)
        set_end(call, RP_INTERNAL, "the server does not answer with gRPC");
    rp_h2_fail_call(call, call->status, call->text);
}
