/* SPDX-License-Identifier: Apache-2.0 */
/* Input: headers become requests, DATA becomes gRPC messages.
 *
 * A message that is contained in one piece of DATA is delivered in place. Any other is
 * assembled in a block, which grows with the bytes that arrive and not with the announced size.
 */
#include <assert.h>
#include <stdio.h>

#include "util/mem.h"
#include "wire/h2/grpc.h"
#include "wire/h2/h2_inside.h"

enum {
    METHOD,
    PATH,
    CONTENT_TYPE,
    AUTHORIZATION,
    ENCODING,
    TIMEOUT,
    CONTENT_LENGTH,
    CONFIRM,
    IF_NONE_MATCH,
    FIELD_COUNT
};

enum {
    FIRST_BLOCK = 1 << 20,  /* a peer gets so much, untouched, by sending only a prefix */
    DIRECT_BYTES = 16 << 10 /* so many missing bytes are read directly into the block */
};

static_assert(sizeof((rp_h2){0}).fields / sizeof((rp_h2){0}).fields[0] == FIELD_COUNT,
              "one place for each field that is kept");

/* The result of a callback. It is a failure, so that nothing more is received, if the
 * connection was terminated or has run out of memory. */
static int callback_result(const rp_h2 *h2)
{
    return h2->ended || h2->broken ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* For a request for which there is no memory: has nghttp2 reset its stream and report no more
 * of its headers. */
static int drop_headers(rp_h2 *h2)
{
    h2->in_headers = false;
    rp_h2_expect_late(h2);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

void rp_h2_clear_head(rp_h2 *h2)
{
    rp_buf_clear(&h2->head);
    memset(h2->fields, 0, sizeof h2->fields);
    h2->head_bytes = h2->head_fields = h2->head_authorizations = 0;
}

int rp_h2_on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    rp_h2 *h2 = user;
    rp_call *call;

    h2->in_headers = true;
    if (h2->is_client) {
        if (frame->hd.type != NGHTTP2_HEADERS) return drop_headers(h2); /* push is disabled */
        rp_h2_clear_head(h2);
        return 0;
    }
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    if (h2->call_count >= h2->limits.streams) {
        rp_h2_need(h2, nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE,
                                                 frame->hd.stream_id, NGHTTP2_REFUSED_STREAM));
        rp_h2_nuisance(h2, RP_NUISANCE_REFUSED);
        return h2->ended || h2->broken ? NGHTTP2_ERR_CALLBACK_FAILURE : drop_headers(h2);
    }
    call = rp_alloc_zero(&h2->alloc, sizeof *call);
    if (call == NULL) return drop_headers(h2);
    call->h2 = h2;
    call->id = frame->hd.stream_id;
    call->last_waiting = &call->first_waiting;
    if (nghttp2_session_set_stream_user_data(session, call->id, call) != 0) {
        rp_release(&h2->alloc, call, sizeof *call);
        return drop_headers(h2);
    }
    rp_h2_link_call(h2, call);
    rp_h2_clear_head(h2);
    return 0;
}

static int field_of(const uint8_t *name, size_t size)
{
    static const char *const names[FIELD_COUNT] = {
        [METHOD] = ":method",
        [PATH] = ":path",
        [CONTENT_TYPE] = "content-type",
        [AUTHORIZATION] = "authorization",
        [ENCODING] = "grpc-encoding",
        [TIMEOUT] = "grpc-timeout",
        [CONTENT_LENGTH] = "content-length",
        [CONFIRM] = "x-reprise-confirm",
        [IF_NONE_MATCH] = "if-none-match",
    };

    for (int i = 0; i < FIELD_COUNT; i++)
        if (size == strlen(names[i]) && memcmp(name, names[i], size) == 0) return i;
    return -1;
}

bool rp_h2_keep_field(rp_h2 *h2, int field, const uint8_t *value, size_t size)
{
    assert(field >= 0 && field < FIELD_COUNT);
    h2->fields[field].at = h2->head.size;
    rp_buf_append(&h2->head, value, size);
    h2->fields[field].size = h2->head.bad ? 0 : size; /* without memory it is absent */
    return !h2->head.bad;
}

/* Charges a field beyond the limits of a header block. Decoding it is work, even if it has few
 * bytes on the wire. */
static int charge_surplus(rp_h2 *h2, size_t bytes)
{
    size_t unit = RP_H2_SURPLUS_BYTES;
    size_t count = h2->head_bytes / unit - (h2->head_bytes - bytes) / unit;

    if (count == 0 && h2->head_fields % RP_H2_SURPLUS_FIELDS == 0) count = 1;
    for (; count > 0 && !h2->ended; count--) rp_h2_nuisance(h2, RP_NUISANCE_OTHER);
    return callback_result(h2);
}

int rp_h2_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                    size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                    void *user)
{
    rp_h2 *h2 = user;
    size_t bytes = name_size + value_size + 32; /* size of the field as HTTP/2 counts it */
    int field;

    (void)session, (void)flags;
    h2->head_fields++;
    h2->head_bytes += bytes;
    if (h2->head_fields > h2->limits.header_fields || h2->head_bytes > h2->limits.header_bytes)
        return charge_surplus(h2, bytes);
    if (h2->is_client)
        return rp_h2_client_header(h2, frame, name, name_size, value, value_size);
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0; /* trailers of a request */
    field = field_of(name, name_size);
    if (field < 0) return 0;
    if (field == AUTHORIZATION) h2->head_authorizations++;
    return rp_h2_keep_field(h2, field, value, value_size) ? 0 : drop_headers(h2);
}

rp_string rp_h2_kept_field(const rp_h2 *h2, int field)
{
    if (h2->fields[field].size == 0) return (rp_string){"", 0};
    return (rp_string){(const char *)h2->head.data + h2->fields[field].at,
                       h2->fields[field].size};
}

/* `is_all`: the stream ends with the headers. */
static void begin_call(rp_h2 *h2, rp_call *call, bool is_all)
{
    rp_string timeout = rp_h2_kept_field(h2, TIMEOUT);
    rp_request_head head = {
        .method = rp_h2_kept_field(h2, METHOD),
        .path = rp_h2_kept_field(h2, PATH),
        .content_type = rp_h2_kept_field(h2, CONTENT_TYPE),
        .authorization = rp_h2_kept_field(h2, AUTHORIZATION),
        .encoding = rp_h2_kept_field(h2, ENCODING),
        .content_length = rp_h2_kept_field(h2, CONTENT_LENGTH),
        .confirm = rp_h2_kept_field(h2, CONFIRM),
        .if_none_match = rp_h2_kept_field(h2, IF_NONE_MATCH),
        .timeout_ns = -1,
        .too_large = h2->head_bytes > h2->limits.header_bytes,
        .is_repeated = h2->head_authorizations > 1,
        .too_many = h2->head_fields > h2->limits.header_fields,
        .is_all = is_all,
    };

    if (timeout.size > 0)
        head.bad_timeout = !rp_grpc_parse_timeout((const uint8_t *)timeout.data, timeout.size,
                                                  &head.timeout_ns);
    call->opened = true;
    rp_h2_earn(&h2->earned_windows, RP_H2_CALL_WINDOWS, RP_H2_EARNED_MOST);
    rp_h2_earn(&h2->earned_fragments, RP_H2_MESSAGE_FRAGMENTS, RP_H2_EARNED_MOST);
    h2->handler->on_request(h2->user, call, &head);
}

void rp_h2_fault(rp_call *call, rp_call_fault why, rp_status status, const char *text)
{
    if (call->h2->is_client) {
        rp_h2_fail_call(call, status, text);
        return;
    }
    rp_call_abort(call, status, text);
    call->h2->handler->on_fault(call->h2->user, call, why, status);
}

static void reset_assembly(rp_call *call)
{
    call->block = NULL;
    call->prefix_bytes = 0;
    call->message_size = 0;
}

static bool check_prefix(rp_call *call)
{
    rp_h2 *h2 = call->h2;
    const uint8_t *p = call->prefix;
    const char *setting = h2->limits.message_setting;
    char text[192];

    if (p[0] != 0) {
        rp_h2_fault(call, RP_FAULT_COMPRESSED, RP_UNIMPLEMENTED,
                    "compressed messages are not accepted: send with identity encoding");
        return false;
    }
    call->message_size =
        (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | (size_t)p[4];
    if (call->message_size <= h2->limits.message_bytes) return true;
    (void)snprintf(text, sizeof text, "a message of %zu bytes is over the limit of %zu%s%s",
                   call->message_size, h2->limits.message_bytes, setting != NULL ? " " : "",
                   setting != NULL ? setting : "");
    rp_h2_fault(call, RP_FAULT_MESSAGE_BYTES, RP_NO_RESOURCE, text);
    return false;
}

/* A body is assembled as a message whose prefix has arrived. nghttp2 checks that as many bytes
 * arrive as the peer has announced. */
void rp_call_expect_body(rp_call *call, size_t size)
{
    assert(call->prefix_bytes == 0 && call->block == NULL);
    if (size == 0) return;
    call->prefix_bytes = RP_GRPC_PREFIX;
    call->message_size = size;
    rp_h2_count_assembling(call);
}

static rp_block *new_block(const rp_h2 *h2, size_t capacity)
{
    if (h2->large_bytes == 0 || capacity < h2->large_bytes)
        return rp_block_pool_get(h2->blocks, &h2->alloc, capacity);
    return rp_block_new_apart(&h2->alloc, &h2->large_alloc, capacity);
}

/* Bytes of the message that its block has room for. The block may be larger than the message.
 */
static size_t room_of(const rp_call *call)
{
    const rp_block *block = call->block;
    size_t end = block->capacity < call->message_size ? block->capacity : call->message_size;

    assert(block->size <= end);
    return end - block->size;
}

/* Makes room for the next bytes of the message: the block doubles up to the size of the
 * message. */
static bool make_room(rp_call *call)
{
    rp_block *block = call->block;
    size_t capacity;

    if (block == NULL) {
        capacity = call->message_size < FIRST_BLOCK ? call->message_size : FIRST_BLOCK;
        block = new_block(call->h2, capacity);
    } else if (block->size == block->capacity) {
        capacity = 2 * block->capacity;
        block =
            rp_block_grow(block, capacity < call->message_size ? capacity : call->message_size);
    }
    if (block == NULL) {
        rp_h2_fault(call, RP_FAULT_MEMORY, RP_NO_RESOURCE, "out of memory for a message");
        return false;
    }
    call->block = block;
    return true;
}

static void complete(rp_call *call)
{
    rp_block *block = call->block;

    assert(block->size == call->message_size && call->h2->held >= block->size); /* H3 */
    reset_assembly(call);
    rp_h2_deliver_block(call, block);
}

/* Adds bytes to the message in assembly. Returns how many, or 0 if the call has failed. */
static size_t assemble(rp_call *call, const uint8_t *data, size_t size)
{
    size_t used = 0, take;
    rp_block *block;

    if (call->prefix_bytes < RP_GRPC_PREFIX) {
        while (used < size && call->prefix_bytes < RP_GRPC_PREFIX)
            call->prefix[call->prefix_bytes++] = data[used++];
        if (call->prefix_bytes < RP_GRPC_PREFIX) return used;
        if (!check_prefix(call) || !make_room(call)) return 0;
    } else if (!make_room(call)) {
        return 0;
    }
    block = call->block;
    take = room_of(call);
    if (take > size - used) take = size - used;
    if (take > 0 && data + used != block->data + block->size)
        memcpy(block->data + block->size, data + used, take);
    block->size += take;
    call->h2->held += take;
    call->h2->message_progress += take;
    if (block->size == call->message_size) complete(call);
    return used + take;
}

/* Delivers a message that is complete at `data`. Returns its size, or 0 if the message is not
 * complete. */
static size_t deliver_in_place(rp_call *call, const uint8_t *data, size_t size)
{
    if (call->paused || call->prefix_bytes > 0 || size < RP_GRPC_PREFIX) return 0;
    memcpy(call->prefix, data, RP_GRPC_PREFIX);
    call->message_size =
        (size_t)data[1] << 24 | (size_t)data[2] << 16 | (size_t)data[3] << 8 | (size_t)data[4];
    if (call->message_size > size - RP_GRPC_PREFIX || !check_prefix(call) ||
        !rp_h2_may_deliver(call, call->message_size))
        return 0;
    size = call->message_size;
    reset_assembly(call);
    call->h2->message_progress += size;
    rp_h2_deliver(call, data + RP_GRPC_PREFIX, size, NULL);
    return RP_GRPC_PREFIX + size;
}

/* Whether a message has begun and is not complete. */
static bool is_incomplete(const rp_call *call)
{
    return call->prefix_bytes > 0 && !call->finishing && !call->closed;
}

/* Paused calls are not counted, since their peer may be blocked by the window of this side. */
void rp_h2_count_assembling(rp_call *call)
{
    bool now = is_incomplete(call) && !call->paused;
    size_t partial = now && call->block != NULL ? call->block->size : 0;
    size_t awaited = now ? call->message_size - partial : 0; /* 0 until the prefix is whole */
    rp_h2 *h2 = call->h2;

    assert(h2->assembling >= (size_t)call->counted_assembling); /* H4 */
    assert(h2->partial >= call->counted_partial && h2->awaited >= call->counted_awaited);
    h2->assembling += (size_t)now - (size_t)call->counted_assembling;
    h2->partial += partial - call->counted_partial;
    h2->awaited += awaited - call->counted_awaited;
    call->counted_assembling = now;
    call->counted_partial = partial;
    call->counted_awaited = awaited;
}

int rp_h2_on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                  size_t size, void *user)
{
    rp_h2 *h2 = user;
    rp_call *call = nghttp2_session_get_stream_user_data(session, id);
    size_t all = size;

    (void)flags;
    h2->frame_left -= size < h2->frame_left ? size : h2->frame_left;
    rp_h2_need(h2, nghttp2_session_consume_connection(session, size));
    if (call == NULL || call->finishing) return callback_result(h2);
    while (size > 0 && !call->finishing) {
        size_t used = deliver_in_place(call, data, size);
        if (used == 0 && !call->finishing) used = assemble(call, data, size);
        assert(used <= size && (used > 0 || call->finishing));
        data += used;
        size -= used;
    }
    h2->direct = is_incomplete(call) ? call : NULL;
    rp_h2_count_assembling(call);
    if (!call->paused)
        rp_h2_need(h2, nghttp2_session_consume_stream(session, id, all));
    else
        call->withheld += all;
    return callback_result(h2);
}

void rp_h2_tell_half_close(rp_call *call)
{
    if (call->half_close_told || call->paused || call->finishing || call->closed) return;
    call->half_close_told = true;
    if (call->h2->is_client)
        rp_h2_end_answer(call);
    else if (call->prefix_bytes > 0)
        rp_h2_fault(call, RP_FAULT_FRAMING, RP_INVALID, "the stream ended within a message");
    else
        call->h2->handler->on_half_close(call->h2->user, call);
}

void rp_h2_drop_received(rp_call *call)
{
    rp_h2_count_assembling(call);
    if (call->block != NULL) {
        call->h2->held -= call->block->size;
        rp_block_unref(call->block);
    }
    reset_assembly(call);
    rp_h2_drop_waiting(call);
}

/* nghttp2 decodes and drops headers of a call that has ended or is about to end. So only the
 * first block of trailers is free. */
static void count_trailers(rp_h2 *h2, rp_call *call, bool end)
{
    if (call == NULL || !end || call->has_trailers) rp_h2_nuisance(h2, RP_NUISANCE_BAD_FRAME);
    if (call != NULL) call->has_trailers = true;
}

static bool spend(size_t *earned)
{
    if (*earned == 0) return false;
    (*earned)--;
    return true;
}

/* Counts frames that cause work and carry no data. Uses their frame headers, since nghttp2
 * reports nothing else of a frame on an ended stream. gRPC clients send pings to measure the
 * rate of received data, and window updates for it. So both are earned by the data that is sent
 * to them. */
static void count_frame(rp_h2 *h2, const nghttp2_frame_hd *head)
{
    bool ack = (head->flags & NGHTTP2_FLAG_ACK) != 0;

    switch (head->type) {
    case NGHTTP2_DATA:
        rp_data_sum_add(&h2->reported, head->length,
                        (head->flags & NGHTTP2_FLAG_END_STREAM) != 0);
        break;
    case NGHTTP2_HEADERS:
        if (head->stream_id <= nghttp2_session_get_last_proc_stream_id(h2->session))
            count_trailers(h2,
                           nghttp2_session_get_stream_user_data(h2->session, head->stream_id),
                           (head->flags & NGHTTP2_FLAG_END_STREAM) != 0);
        break;
    case NGHTTP2_RST_STREAM:
        if (nghttp2_session_get_stream_user_data(h2->session, head->stream_id) == NULL &&
            !spend(&h2->earned_resets))
            rp_h2_nuisance(h2, RP_NUISANCE_LATE);
        break;
    case NGHTTP2_PING:
        if (ack && spend(&h2->pings_out))
            h2->pongs++;
        else if (ack || !spend(&h2->earned_pings))
            rp_h2_nuisance(h2, RP_NUISANCE_PING);
        break;
    case NGHTTP2_SETTINGS: /* nghttp2 accepts acknowledgements only of SETTINGS that were sent
                            */
        if (!ack && h2->greeted) rp_h2_nuisance(h2, RP_NUISANCE_SETTINGS);
        break;
    case NGHTTP2_WINDOW_UPDATE:
        if (!spend(&h2->earned_windows)) rp_h2_nuisance(h2, RP_NUISANCE_WINDOW);
        break;
    case NGHTTP2_PRIORITY: rp_h2_nuisance(h2, RP_NUISANCE_PRIORITY); break;
    case NGHTTP2_CONTINUATION:
        if (head->length < RP_H2_SMALL_CONTINUATION) rp_h2_nuisance(h2, RP_NUISANCE_EMPTY);
        break;
    case NGHTTP2_PUSH_PROMISE: break; /* nghttp2 ends the connection for it */
    case NGHTTP2_GOAWAY:              /* nghttp2 visits every stream for each GOAWAY */
    default: rp_h2_nuisance(h2, RP_NUISANCE_OTHER); break;
    }
}

int rp_h2_on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *user)
{
    rp_h2 *h2 = user;

    (void)session;
    h2->direct = NULL;
    h2->frame_left = 0;
    if (head->type == NGHTTP2_DATA && (head->flags & NGHTTP2_FLAG_PADDED) == 0)
        h2->frame_left = head->length;
    count_frame(h2, head);
    return callback_result(h2);
}

/* Charges dropped DATA: `count` frames with a total of `cost`, as in rp_data_sum. Frames that
 * may have been in flight when this side ended their calls are free. */
static void charge_late(rp_h2 *h2, uint64_t count, uint64_t cost)
{
    if (cost > h2->earned_late) {
        count -= (uint64_t)((double)count * (double)h2->earned_late / (double)cost);
        h2->earned_late = 0;
    } else {
        h2->earned_late -= cost;
        count = 0;
    }
    for (; count > 0 && !h2->ended; count--) rp_h2_nuisance(h2, RP_NUISANCE_LATE);
}

/* Charges the DATA frames that nghttp2 has not reported: those of ended streams. */
static void charge_unreported(rp_h2 *h2)
{
    const rp_data_sum *all = &h2->meter.data, *told = &h2->reported;
    uint64_t empty = all->empty - told->empty;
    uint64_t count = all->frames - told->frames - empty, cost = all->cost - told->cost;

    assert(all->frames >= told->frames && all->empty >= told->empty && all->cost >= told->cost);
    if (count == 0 && empty == 0) return;
    h2->reported = h2->meter.data;
    for (; empty > 0 && !h2->ended; empty--) rp_h2_nuisance(h2, RP_NUISANCE_LATE);
    charge_late(h2, count, cost);
}

/* Charges HPACK size updates beyond those that header blocks may need. */
static void charge_table_sizes(rp_h2 *h2)
{
    uint64_t count = h2->meter.table_sizes - h2->charged_table_sizes;

    h2->charged_table_sizes = h2->meter.table_sizes;
    for (; count > 0 && !h2->ended; count--) rp_h2_nuisance(h2, RP_NUISANCE_TABLE_SIZE);
}

/* Counts DATA frames that are empty, nearly empty, or dropped. When this side ends a call, as
 * many bytes as its window may be in flight, and no more, since the window is not returned any
 * more. */
static void count_data(rp_h2 *h2, rp_call *call, const nghttp2_frame *frame)
{
    size_t length = frame->hd.length, padding = frame->data.padlen;

    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) return;
    if (length <= padding) {
        rp_h2_nuisance(h2, RP_NUISANCE_EMPTY);
    } else if (call == NULL) {
        charge_late(h2, 1, rp_data_cost(length));
    } else if (call->finishing) {
        call->late += rp_data_cost(length);
        if (call->late > RP_H2_WINDOW) rp_h2_nuisance(h2, RP_NUISANCE_LATE);
    } else if (length - padding < RP_H2_FRAGMENT_BYTES && is_incomplete(call) &&
               !spend(&h2->earned_fragments)) {
        rp_h2_nuisance(h2, RP_NUISANCE_FRAGMENT);
    }
}

int rp_h2_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    rp_h2 *h2 = user;
    rp_call *call;

    if (frame->hd.type == NGHTTP2_HEADERS) h2->in_headers = false;
    if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0)
        h2->greeted = true;
    if (h2->ended || (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS))
        return callback_result(h2);
    call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_DATA) count_data(h2, call, frame);
    if (call == NULL || h2->ended) return callback_result(h2);
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        begin_call(h2, call, (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0);
    else if (frame->hd.type == NGHTTP2_HEADERS && h2->is_client)
        rp_h2_take_answer(call, (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0);
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        call->half_closed = true;
        if (h2->is_client) rp_h2_stop_sending(call);
        rp_h2_tell_half_close(call);
    }
    return 0;
}

int rp_h2_on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error,
                           void *user)
{
    rp_h2 *h2 = user;

    (void)session;
    if (frame->hd.type == NGHTTP2_HEADERS) h2->in_headers = false;
    (void)error;
    rp_h2_expect_late(h2);
    rp_h2_nuisance(h2, RP_NUISANCE_BAD_FRAME);
    return callback_result(h2);
}

int rp_h2_on_unknown_frame(nghttp2_session *session, void **payload,
                           const nghttp2_frame_hd *head, void *user)
{
    (void)session, (void)head, (void)user; /* rp_h2_on_begin_frame() has counted it */
    *payload = NULL;
    return 0;
}

void rp_h2_set_large(rp_h2 *h2, const rp_allocator *alloc, size_t bytes)
{
    h2->large_alloc = *alloc;
    h2->large_bytes = bytes;
}

bool rp_h2_receive(rp_h2 *h2, const uint8_t *data, size_t size)
{
    ssize_t used;

    if (h2->broken || h2->ended) return false;
    if (h2->dead != NULL) rp_h2_free_dead(h2);
    if (!h2->is_client) {
        rp_frame_meter_feed(&h2->meter, data, size);
        charge_table_sizes(h2); /* before nghttp2 does the work */
        if (h2->ended) return false;
    }
    used = nghttp2_session_mem_recv(h2->session, data, size);
    if (used < 0) {
        h2->broken = true;
        if (used == NGHTTP2_ERR_NOMEM) h2->starved = true;
        h2->violated = used != NGHTTP2_ERR_NOMEM && used != NGHTTP2_ERR_CALLBACK_FAILURE;
        if (h2->violated)
            rp_h2_need(h2, nghttp2_session_terminate_session(
                               h2->session, used == NGHTTP2_ERR_BAD_CLIENT_MAGIC
                                                ? NGHTTP2_PROTOCOL_ERROR
                                                : NGHTTP2_ENHANCE_YOUR_CALM));
        return false;
    }
    if (nghttp2_session_want_read(h2->session) == 0) return false;
    if (!h2->is_client) charge_unreported(h2);
    return !h2->ended && !h2->broken;
}

uint8_t *rp_h2_receive_place(rp_h2 *h2, size_t *size)
{
    rp_call *call = h2->direct;
    rp_block *block = call != NULL ? call->block : NULL;
    size_t room;

    if (block == NULL || call->finishing) return NULL;
    if (block->size == block->capacity) {
        if (!make_room(call)) return NULL;
        block = call->block;
    }
    room = room_of(call);
    if (room > h2->frame_left) room = h2->frame_left;
    if (room < DIRECT_BYTES) return NULL;
    assert(block->size + room <= block->capacity && !call->closed);
    *size = room;
    return block->data + block->size;
}
