/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up a connection, ends it, and reports its state. */
#include <assert.h>
#include <stdio.h>

#include "util/mem.h"
#include "wire/h2/h2_inside.h"
#include "wire/h2/h2_memory.h"

void rp_h2_link_call(rp_h2 *h2, rp_call *call)
{
    call->next = h2->calls;
    if (call->next != NULL) call->next->prev = call;
    h2->calls = call;
    h2->call_count++;
}

void rp_h2_free_call(rp_h2 *h2, rp_call *call)
{
    if (h2->direct == call) h2->direct = NULL;
    rp_h2_drop_received(call);
    rp_h2_drop_replies(call);
    assert(call->queued == 0 && call->first_waiting == NULL && !call->counted_assembling);
    assert(call->prev != NULL ? call->prev->next == call : h2->calls == call);
    *(call->prev != NULL ? &call->prev->next : &h2->calls) = call->next;
    if (call->next != NULL) call->next->prev = call->prev;
    rp_release(&h2->alloc, call, sizeof *call);
}

static void close_call(rp_h2 *h2, rp_call *call)
{
    call->closed = true;
    if (call->opened) h2->handler->on_close(h2->user, call);
    assert(h2->call_count > 0); /* H1 */
    assert(call->leftover == 0 || h2->leftovers > 0);
    h2->call_count--;
    if (call->leftover > 0) h2->leftovers--;
    /* Both sides may end a call at the same time. */
    rp_h2_earn(&h2->earned_resets, 1, RP_H2_EARNED_MOST);
    rp_h2_free_call(h2, call);
}

static void report(rp_h2 *h2, rp_nuisance kind, rp_call *call)
{
    if (h2->handler->on_nuisance == NULL || h2->broken || h2->ended) return;
    if (!h2->handler->on_nuisance(h2->user, kind, call))
        rp_h2_terminate(h2, NGHTTP2_ENHANCE_YOUR_CALM, "");
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    rp_h2 *h2 = user;
    rp_call *call = nghttp2_session_get_stream_user_data(session, id);

    if (call == NULL) return 0;
    if (h2->is_client) {
        rp_h2_stream_closed(call, error);
        return 0;
    }
    if (error != NGHTTP2_NO_ERROR && !call->answered) report(h2, RP_NUISANCE_RESET, call);
    close_call(h2, call);
    return 0;
}

static ssize_t frame_bytes(nghttp2_session *session, uint8_t type, int32_t id,
                           int32_t session_window, int32_t stream_window, uint32_t max_frame,
                           void *user)
{
    (void)session, (void)type, (void)id, (void)session_window, (void)stream_window;
    (void)max_frame, (void)user;
    return RP_H2_FRAME; /* the session reduces it if necessary */
}

static rp_status open_session(rp_h2 *h2)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    nghttp2_mem memory = rp_h2_memory(&h2->alloc);
    rp_status st = RP_NO_RESOURCE;
    int result;

    if (nghttp2_session_callbacks_new(&callbacks) != 0) goto out;
    if (nghttp2_option_new(&option) != 0) goto out;
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, rp_h2_on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, rp_h2_on_header);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, rp_h2_on_begin_frame);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, rp_h2_on_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks,
                                                                 rp_h2_on_invalid_frame);
    nghttp2_session_callbacks_set_unpack_extension_callback(callbacks, rp_h2_on_unknown_frame);
    for (unsigned type = NGHTTP2_CONTINUATION + 1; type <= UINT8_MAX; type++)
        nghttp2_option_set_user_recv_extension_type(option, (uint8_t)type);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, rp_h2_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, rp_h2_on_frame_sent);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, rp_h2_send_data);
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, frame_bytes);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    /* nghttp2's own limit is off, since rp_h2_nuisance() counts resets by their cost: a client
     * that resets the call when it has its samples is no attacker. */
    nghttp2_option_set_stream_reset_rate_limit(option, UINT64_MAX, UINT64_MAX);
    /* For a server, nghttp2's limit on queued acknowledgements of pings is off too. A client
     * accepts any number of pings, as long as its server reads the acknowledgements. */
    nghttp2_option_set_max_outbound_ack(option, h2->is_client ? RP_H2_MOST_ACKS : SIZE_MAX);
    if (h2->is_client)
        result = nghttp2_session_client_new3(&h2->session, callbacks, h2, option, &memory);
    else
        result = nghttp2_session_server_new3(&h2->session, callbacks, h2, option, &memory);
    if (result == 0) st = RP_OK;
out:
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return st;
}

/* Makes the SETTINGS frame, and writes the limit of streams into it. nghttp2 does not get that
 * limit, because it would end the connection of a peer that exceeds it. Instead the stream is
 * refused (rp_h2_on_begin_headers()). */
static rp_status announce_streams(rp_h2 *h2)
{
    enum { VALUE_AT = 9 + 2 }; /* of the first entry, after the frame header and the id */
    const uint8_t *frame;
    ssize_t size = nghttp2_session_mem_send(h2->session, &frame);

    if (size < VALUE_AT + 4 || !rp_h2_push_control(h2, frame, (size_t)size))
        return RP_NO_RESOURCE;
    for (int i = 0; i < 4; i++)
        h2->control.data[VALUE_AT + i] = (uint8_t)(h2->limits.streams >> (24 - 8 * i));
    return RP_OK;
}

static rp_status send_settings(rp_h2 *h2)
{
    const nghttp2_settings_entry settings[] = {
        h2->is_client
            ? (nghttp2_settings_entry){NGHTTP2_SETTINGS_ENABLE_PUSH, 0}
            : (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, UINT32_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, RP_H2_WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, RP_H2_FRAME},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)h2->limits.header_bytes},
    };

    if (nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings,
                                sizeof settings / sizeof *settings) != 0)
        return RP_NO_RESOURCE;
    if (!h2->is_client && announce_streams(h2) != RP_OK) return RP_NO_RESOURCE;
    if (nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0,
                                              RP_H2_CONNECTION_WINDOW) != 0)
        return RP_NO_RESOURCE;
    return RP_OK;
}

rp_status rp_h2_open(const rp_allocator *alloc, const rp_h2_handler *handler, void *user,
                     const rp_h2_limits *limits, rp_message_pool *pool, bool is_client,
                     rp_h2 **out)
{
    rp_h2 *h2 = rp_alloc_zero(alloc, sizeof *h2);
    rp_status st;

    if (h2 == NULL) return RP_NO_RESOURCE;
    h2->alloc = *alloc;
    h2->handler = handler;
    h2->user = user;
    h2->limits = *limits;
    h2->pool = pool;
    h2->is_client = is_client;
    h2->landing_end = &h2->landing;
    h2->meter.skip = NGHTTP2_CLIENT_MAGIC_LEN;
    rp_buf_init(&h2->head, &h2->alloc);
    rp_buf_init(&h2->control, &h2->alloc);
    st = open_session(h2);
    if (st == RP_OK) st = send_settings(h2);
    if (st != RP_OK) {
        rp_h2_free(h2);
        return st;
    }
    *out = h2;
    return RP_OK;
}

rp_status rp_h2_new(const rp_allocator *alloc, const rp_h2_handler *handler, void *user,
                    const rp_h2_limits *limits, rp_message_pool *pool, rp_h2 **out)
{
    return rp_h2_open(alloc, handler, user, limits, pool, false, out);
}

size_t rp_h2_close_calls(rp_h2 *h2, size_t most)
{
    h2->broken = h2->starved = true; /* the session still points at calls that are freed */
    for (; most > 0 && h2->calls != NULL; most--) close_call(h2, h2->calls);
    return h2->call_count;
}

void rp_h2_free(rp_h2 *h2)
{
    if (h2 == NULL) return;
    if (h2->is_client) rp_h2_end_client(h2);
    while (h2->calls != NULL) close_call(h2, h2->calls);
    assert(h2->call_count == 0 && h2->held == 0 && h2->leftovers == 0);  /* H1, H3 */
    assert(h2->assembling == 0 && h2->partial == 0 && h2->awaited == 0); /* H4 */
    nghttp2_session_del(h2->session);
    while (h2->landing != NULL) {
        rp_message *reply = h2->landing;
        h2->landing = reply->next;
        rp_message_release(h2->pool, reply);
    }
    rp_buf_deinit(&h2->head);
    rp_buf_deinit(&h2->control);
    rp_release(&h2->alloc, h2->end_text, RP_H2_END_TEXT_BYTES);
    rp_release(&h2->alloc, h2->out, h2->out_capacity * sizeof *h2->out);
    rp_release(&h2->alloc, h2, sizeof *h2);
}

void rp_h2_need(rp_h2 *h2, int result)
{
    if (nghttp2_is_fatal(result)) h2->starved = h2->broken = true;
}

void rp_h2_nuisance(rp_h2 *h2, rp_nuisance kind)
{
    report(h2, kind, NULL);
}

bool rp_h2_wants_output(const rp_h2 *h2)
{
    return h2->out_first < h2->out_count || nghttp2_session_want_write(h2->session) != 0;
}

bool rp_h2_is_over(const rp_h2 *h2)
{
    return h2->broken ||
           (nghttp2_session_want_read(h2->session) == 0 &&
            nghttp2_session_want_write(h2->session) == 0 && h2->out_first == h2->out_count);
}

bool rp_h2_is_ended(const rp_h2 *h2)
{
    return h2->ended;
}

bool rp_h2_is_violated(const rp_h2 *h2)
{
    return h2->violated;
}

size_t rp_h2_held_bytes(const rp_h2 *h2)
{
    return h2->held;
}

size_t rp_h2_partial_bytes(const rp_h2 *h2)
{
    return h2->partial;
}

size_t rp_h2_awaited_bytes(const rp_h2 *h2)
{
    return h2->awaited;
}

size_t rp_h2_queued_bytes(const rp_h2 *h2)
{
    return h2->queued;
}

uint64_t rp_h2_left_bytes(const rp_h2 *h2)
{
    return h2->left;
}

size_t rp_h2_call_count(const rp_h2 *h2)
{
    return h2->call_count;
}

rp_h2_wait rp_h2_waits_for(const rp_h2 *h2, uint64_t *bytes)
{
    *bytes = h2->message_progress;
    if (!h2->greeted) return RP_H2_WAITS_FOR_GREETING;
    if (h2->in_headers) return RP_H2_WAITS_FOR_HEADERS;
    if (h2->assembling > 0) return RP_H2_WAITS_FOR_MESSAGE;
    return h2->leftovers > 0 ? RP_H2_WAITS_FOR_CLOSE : RP_H2_WAITS_FOR_NOTHING;
}

void rp_h2_ping(rp_h2 *h2)
{
    int result = nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, NULL);

    if (result == 0) h2->pings_out++;
    rp_h2_need(h2, result);
}

uint64_t rp_h2_events(const rp_h2 *h2)
{
    return h2->meter.frames + h2->messages;
}

uint64_t rp_h2_pongs(const rp_h2 *h2)
{
    return h2->pongs;
}

void rp_h2_go_away(rp_h2 *h2)
{
    if (!h2->gone_away && !h2->is_client)
        rp_h2_need(h2, nghttp2_submit_shutdown_notice(h2->session));
    else
        rp_h2_need(h2,
                   nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE,
                                         nghttp2_session_get_last_proc_stream_id(h2->session),
                                         NGHTTP2_NO_ERROR, NULL, 0));
    h2->gone_away = true;
}

void rp_h2_terminate(rp_h2 *h2, uint32_t code, const char *text)
{
    if (h2->ended) return;
    h2->end_text = rp_alloc(&h2->alloc, RP_H2_END_TEXT_BYTES); /* without memory: no text */
    if (h2->end_text != NULL) (void)snprintf(h2->end_text, RP_H2_END_TEXT_BYTES, "%s", text);
    h2->ended = true;
    rp_h2_need(h2, nghttp2_session_terminate_session(h2->session, code));
}

void rp_h2_each_call(rp_h2 *h2, void (*visit)(void *user, rp_call *call), void *user)
{
    for (rp_call *call = h2->calls, *next; call != NULL; call = next) {
        next = call->next;
        if (call->opened) visit(user, call);
    }
}

void rp_call_set_user(rp_call *call, void *user)
{
    call->user = user;
}

void *rp_call_user(const rp_call *call)
{
    return call->user;
}
