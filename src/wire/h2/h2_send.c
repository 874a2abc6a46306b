/* SPDX-License-Identifier: Apache-2.0 */
/* Output.
 *
 * A reply waits in its call until the windows allow nghttp2 to make a frame of it. Then the
 * bytes of the reply become pieces of the output, without a copy, and the reply waits in
 * `landing` until the last of them has been written. More output is made only after all output
 * has been written, so that waiting replies stay with their call, where they are counted. */
#include <assert.h>
#include <stdio.h>

#include "util/mem.h"
#include "wire/h2/grpc.h"
#include "wire/h2/h2_inside.h"

enum { OUTPUT_BYTES = 1 << 20, OUTPUT_PIECES = 256 }; /* made at a time, plus a frame */

nghttp2_nv rp_h2_field(const char *name, const char *value)
{
    return (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name,
        .value = (uint8_t *)(uintptr_t)value,
        .namelen = strlen(name),
        .valuelen = strlen(value),
        .flags = NGHTTP2_NV_FLAG_NONE,
    };
}

static size_t put_status(const rp_call *call, char number[4], nghttp2_nv *fields)
{
    if (call->status == RP_OK) /* of nearly all calls */
        memcpy(number, "0", 2);
    else
        (void)snprintf(number, 4, "%d", (int)call->status);
    fields[0] = rp_h2_field("grpc-status", number);
    if (call->text[0] == '\0') return 1;
    fields[1] = rp_h2_field("grpc-message", call->text);
    return 2;
}

static void submit_trailers(rp_call *call)
{
    nghttp2_nv fields[2];
    char number[4];
    size_t count = put_status(call, number, fields);

    rp_h2_need(call->h2, nghttp2_submit_trailer(call->h2->session, call->id, fields, count));
}

ssize_t rp_h2_read_replies(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length,
                           uint32_t *flags, nghttp2_data_source *source, void *user)
{
    rp_call *call = source->ptr;

    (void)session, (void)id, (void)buffer, (void)user;
    if (call->queued == 0 && !call->closing) {
        call->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (length > call->queued) length = call->queued;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (length == call->queued && call->closing) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (!call->raw) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            submit_trailers(call);
        }
        call->finished = true;
    }
    assert(length <= call->queued);
    call->promised = length;
    return (ssize_t)length;
}

static void submit_headers(rp_call *call)
{
    nghttp2_data_provider provider = {{.ptr = call}, rp_h2_read_replies};
    nghttp2_nv fields[4];
    char number[4];
    size_t count = 2;
    bool alone = call->finishing && call->queued == 0;

    fields[0] = rp_h2_field(":status", "200");
    fields[1] = rp_h2_field("content-type", "application/grpc");
    if (alone) {
        count += put_status(call, number, fields + 2);
        call->finished = true;
    }
    call->headers_sent = true;
    rp_h2_need(call->h2, nghttp2_submit_response(call->h2->session, call->id, fields, count,
                                                 alone ? NULL : &provider));
}

void rp_h2_wake(rp_call *call)
{
    if (!call->headers_sent) {
        submit_headers(call);
    } else if (call->deferred) {
        call->deferred = false;
        rp_h2_need(call->h2, nghttp2_session_resume_data(call->h2->session, call->id));
    }
}

static void enqueue(rp_call *call, rp_message *reply)
{
    rp_h2 *h2 = call->h2;

    reply->next = NULL;
    if (call->last_reply != NULL)
        call->last_reply->next = reply;
    else
        call->first_reply = reply;
    call->last_reply = reply;
    assert(reply->size > 0); /* the message is closed */
    call->queued += rp_message_remaining(reply);
    h2->queued += rp_message_remaining(reply);
    if (call->queued > h2->limits.queued_bytes / 2) call->wants_room = true;
}

void rp_call_send(rp_call *call, rp_message *reply)
{
    if (call->closing || call->closed) {
        rp_message_release(call->h2->pool, reply);
        return;
    }
    enqueue(call, reply);
    rp_h2_wake(call);
}

size_t rp_call_queued_bytes(const rp_call *call)
{
    return call->queued;
}

void rp_call_want_room(rp_call *call)
{
    call->wants_room = true;
}

void rp_call_finish(rp_call *call, rp_status status, const char *text)
{
    if (call->finishing || call->closed) return;
    call->finishing = call->closing = true;
    rp_h2_count_assembling(call);
    call->status = status;
    if (status != RP_OK && text != NULL)
        (void)rp_grpc_encode_message(text, call->text, sizeof call->text);
    rp_h2_wake(call);
}

void rp_h2_drop_unpromised(rp_call *call)
{
    rp_message **link = &call->first_reply, *last = NULL;
    size_t kept = 0;

    while (*link != NULL && (kept < call->promised || (*link)->given > 0)) {
        last = *link;
        kept += rp_message_remaining(last);
        link = &last->next;
    }
    while (*link != NULL) {
        rp_message *reply = *link;
        *link = reply->next;
        assert(call->queued >= rp_message_remaining(reply));
        assert(call->h2->queued >= rp_message_remaining(reply)); /* H2 */
        call->queued -= rp_message_remaining(reply);
        call->h2->queued -= rp_message_remaining(reply);
        rp_message_release(call->h2->pool, reply);
    }
    call->last_reply = last;
}

void rp_call_abort(rp_call *call, rp_status status, const char *text)
{
    if (call->finishing || call->closed) return;
    rp_h2_drop_unpromised(call);
    rp_call_finish(call, status, text);
}

bool rp_call_is_finished(const rp_call *call)
{
    return call->finishing || call->closed;
}

void rp_call_respond_headers(rp_call *call, int status, const rp_http_header *headers,
                             size_t count, rp_message *body)
{
    nghttp2_data_provider provider = {{.ptr = call}, rp_h2_read_replies};
    nghttp2_nv fields[1 + RP_HTTP_HEADERS];
    char number[16];

    assert(count <= RP_HTTP_HEADERS);
    if (call->finishing || call->closed || call->headers_sent) {
        rp_message_release(call->h2->pool, body);
        return;
    }
    call->raw = call->finishing = call->closing = call->headers_sent = true;
    rp_h2_count_assembling(call);
    if (body != NULL) {
        body->own_given = body->given = body->left = RP_GRPC_PREFIX; /* HTTP has no prefix */
        enqueue(call, body);
    }
    (void)snprintf(number, sizeof number, "%d", status);
    fields[0] = rp_h2_field(":status", number);
    for (size_t i = 0; i < count; i++)
        fields[1 + i] = rp_h2_field(headers[i].name, headers[i].value);
    if (call->queued == 0) call->finished = true;
    rp_h2_need(call->h2, nghttp2_submit_response(call->h2->session, call->id, fields, 1 + count,
                                                 call->queued > 0 ? &provider : NULL));
}

void rp_call_respond_http(rp_call *call, const rp_http_response *answer, rp_message *body)
{
    rp_http_header headers[2] = {{"content-type", answer->content_type}};
    size_t count = 1;

    if (answer->extra_name != NULL)
        headers[count++] = (rp_http_header){answer->extra_name, answer->extra_value};
    rp_call_respond_headers(call, answer->status, headers, count, body);
}

/* Makes room for one more piece. */
static bool reserve(rp_h2 *h2)
{
    size_t capacity = h2->out_capacity > 0 ? 2 * h2->out_capacity : 16;

    if (h2->out_count < h2->out_capacity) return true;
    if (!rp_resize_array(&h2->alloc, &h2->out, h2->out_capacity, capacity, sizeof *h2->out))
        return false;
    h2->out_capacity = capacity;
    return true;
}

static void push(rp_h2 *h2, rp_out_piece piece)
{
    assert(h2->out_count < h2->out_capacity); /* H5 */
    h2->out[h2->out_count++] = piece;
    h2->out_bytes += piece.size;
}

bool rp_h2_push_control(rp_h2 *h2, const uint8_t *data, size_t size)
{
    rp_out_piece *last = h2->out_count > 0 ? &h2->out[h2->out_count - 1] : NULL;
    size_t at = h2->control.size;

    rp_buf_append(&h2->control, data, size);
    if (h2->control.bad) return false;
    if (last != NULL && last->reply == NULL) { /* the last piece grows */
        last->size += size;
        h2->out_bytes += size;
        return true;
    }
    if (!reserve(h2)) return false;
    push(h2, (rp_out_piece){.at = at, .size = size});
    return true;
}

/* Keeps a reply until its last bytes were written. */
static void land(rp_h2 *h2, rp_message *reply)
{
    reply->next = NULL;
    *h2->landing_end = reply;
    h2->landing_end = &reply->next;
}

int rp_h2_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                    size_t length, nghttp2_data_source *source, void *user)
{
    rp_h2 *h2 = user;
    rp_call *call = source->ptr;

    (void)session, (void)frame;
    if (h2->out_bytes >= OUTPUT_BYTES || h2->out_count >= OUTPUT_PIECES)
        return NGHTTP2_ERR_WOULDBLOCK;
    if (!rp_h2_push_control(h2, head, 9)) return NGHTTP2_ERR_CALLBACK_FAILURE;
    call->promised = 0;
    while (length > 0 && call->first_reply != NULL) {
        rp_message *reply = call->first_reply;
        rp_out_piece piece = {.reply = reply};
        if (!reserve(h2)) return NGHTTP2_ERR_CALLBACK_FAILURE;
        piece.size = rp_message_take(reply, length, &piece.data);
        push(h2, piece);
        length -= piece.size;
        assert(piece.size > 0 && call->queued >= piece.size);
        call->queued -= piece.size;
        if (rp_message_remaining(reply) == 0) {
            call->first_reply = reply->next;
            if (call->first_reply == NULL) call->last_reply = NULL;
            land(h2, reply);
        }
    }
    if (call->wants_room && call->queued <= h2->limits.queued_bytes / 2) h2->room_made = true;
    return 0;
}

int rp_h2_on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    rp_h2 *h2 = user;
    int32_t id = frame->hd.stream_id;
    uint8_t type = frame->hd.type;
    rp_call *call;

    if (type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR)
        rp_h2_nuisance(h2, RP_NUISANCE_MADE_RESET);
    /* nghttp2 drops calls that the peer has begun since, with their data. */
    if (type == NGHTTP2_GOAWAY) h2->earned_late = RP_H2_CONNECTION_WINDOW;
    if (type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR && !h2->ended)
        h2->violated = true;
    if (h2->is_client || (type != NGHTTP2_DATA && type != NGHTTP2_HEADERS)) return 0;
    if (type == NGHTTP2_DATA) {
        rp_h2_earn(&h2->earned_pings, RP_H2_EARNED_PINGS, RP_H2_EARNED_MOST);
        rp_h2_earn(&h2->earned_windows, RP_H2_EARNED_WINDOWS, RP_H2_EARNED_MOST);
    }
    call = nghttp2_session_get_stream_user_data(session, id);
    if (call != NULL) call->answered = true;
    if (call != NULL && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
        nghttp2_session_get_stream_remote_close(session, id) == 0) {
        call->leftover = 1;
        h2->leftovers++;
    }
    return 0;
}

void rp_h2_sweep(rp_h2 *h2)
{
    if (h2->leftovers == 0) return;
    for (rp_call *call = h2->calls; call != NULL; call = call->next) {
        if (call->leftover == 2) {
            rp_h2_expect_late(h2);
            rp_h2_need(h2, nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, call->id,
                                                     NGHTTP2_NO_ERROR));
        }
        if (call->leftover > 0 && call->leftover <= 2) call->leftover++;
    }
}

static void give_room(void *user, rp_call *call)
{
    rp_h2 *h2 = user;

    if (!call->wants_room || call->queued > h2->limits.queued_bytes / 2) return;
    call->wants_room = false;
    if (!call->closing) h2->handler->on_room(h2->user, call);
}

/* Calls on_room for calls with an id below `id` or, if not `below`, for the others. The list is
 * in descending order of ids. */
static void offer_room(rp_h2 *h2, int32_t id, bool below)
{
    for (rp_call *call = h2->calls, *next; call != NULL; call = next) {
        next = call->next;
        if (!call->opened || call->closing || call->queued > 0 || (call->id < id) != below)
            continue;
        h2->handler->on_room(h2->user, call);
        if (call->queued > 0) h2->room_id = call->id;
    }
}

void rp_h2_make_room(rp_h2 *h2)
{
    int32_t id = h2->room_id;

    offer_room(h2, id, true);
    offer_room(h2, id, false);
}

/* Adds a frame of nghttp2 to the output. A GOAWAY of rp_h2_terminate() gets its text here,
 * because nghttp2 cannot end a session with one. */
static bool push_frame(rp_h2 *h2, const uint8_t *frame, size_t size)
{
    enum { LENGTH_AT = 2, TYPE_AT = 3, HEAD_BYTES = 9, GOAWAY_BYTES = 8 };
    uint8_t goaway[HEAD_BYTES + GOAWAY_BYTES];
    size_t text_size = h2->end_text != NULL ? strlen(h2->end_text) : 0;

    static_assert(GOAWAY_BYTES + RP_H2_END_TEXT_BYTES <= UINT8_MAX, "one byte has the length");
    if (text_size == 0 || size != sizeof goaway || frame[TYPE_AT] != NGHTTP2_GOAWAY)
        return rp_h2_push_control(h2, frame, size);
    memcpy(goaway, frame, sizeof goaway);
    goaway[LENGTH_AT] = (uint8_t)(GOAWAY_BYTES + text_size);
    return rp_h2_push_control(h2, goaway, sizeof goaway) &&
           rp_h2_push_control(h2, (const uint8_t *)h2->end_text, text_size);
}

static void fill(rp_h2 *h2)
{
    if (h2->starved) return;
    do {
        const uint8_t *data;
        ssize_t size = nghttp2_session_mem_send(h2->session, &data);
        bool failed = size < 0 || (size > 0 && !push_frame(h2, data, (size_t)size));
        if (failed) h2->starved = h2->broken = true;
        if (size <= 0 || failed) break;
    } while (h2->out_bytes < OUTPUT_BYTES);
}

size_t rp_h2_output(rp_h2 *h2, struct iovec *parts, size_t capacity)
{
    size_t count = 0;

    if (h2->dead != NULL) rp_h2_free_dead(h2);
    if (h2->out_first == h2->out_count) {
        h2->out_first = h2->out_count = h2->out_bytes = 0;
        rp_buf_clear(&h2->control);
        fill(h2);
        if (h2->room_made) {
            h2->room_made = false;
            rp_h2_each_call(h2, give_room, h2);
            if (h2->out_bytes < OUTPUT_BYTES) fill(h2);
        }
    }
    for (size_t i = h2->out_first; i < h2->out_count && count < capacity; i++) {
        const rp_out_piece *piece = &h2->out[i];
        const uint8_t *data = piece->reply != NULL ? piece->data : h2->control.data + piece->at;
        parts[count++] = (struct iovec){(void *)(uintptr_t)data, piece->size};
    }
    return count;
}

void rp_h2_written(rp_h2 *h2, size_t size)
{
    while (size > 0) {
        assert(h2->out_first < h2->out_count); /* H5 */
        rp_out_piece *piece = &h2->out[h2->out_first];
        size_t part = size < piece->size ? size : piece->size;
        if (piece->reply != NULL) {
            piece->reply->left += part;
            piece->data += part;
            assert(h2->queued >= part && piece->reply->left <= piece->reply->given); /* H2 */
            h2->queued -= part;
            h2->left += part;
        } else {
            piece->at += part;
        }
        piece->size -= part;
        size -= part;
        if (piece->size == 0) h2->out_first++;
    }
    while (h2->landing != NULL && h2->landing->left == h2->landing->given) {
        rp_message *reply = h2->landing;
        h2->landing = reply->next;
        if (h2->landing == NULL) h2->landing_end = &h2->landing;
        rp_message_release(h2->pool, reply);
    }
}

void rp_h2_drop_replies(rp_call *call)
{
    rp_h2 *h2 = call->h2;

    while (call->first_reply != NULL) {
        rp_message *reply = call->first_reply;
        call->first_reply = reply->next;
        assert(h2->queued >= rp_message_remaining(reply)); /* H2 */
        call->queued -= rp_message_remaining(reply);
        h2->queued -= rp_message_remaining(reply);
        if (reply->given > reply->left)
            land(h2, reply); /* some of its bytes are being written */
        else
            rp_message_release(h2->pool, reply);
    }
    call->last_reply = NULL;
}
