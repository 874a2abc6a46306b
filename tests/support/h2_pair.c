/* SPDX-License-Identifier: Apache-2.0 */
#include "support/h2_pair.h"

static void copy(char *to, size_t capacity, rp_string from)
{
    size_t size = from.size < capacity ? from.size : capacity - 1;

    memcpy(to, from.data, size);
    to[size] = '\0';
}

size_t rp_test_pair_number(const rp_test_pair *p, const rp_call *call)
{
    for (size_t i = 0; i < RP_TEST_PAIR_CALLS; i++)
        if (p->calls[i] == call) return i;
    return SIZE_MAX;
}

static void on_request(void *user, rp_call *call, const rp_request_head *head)
{
    rp_test_pair *p = user;

    if (p->request_count < RP_TEST_PAIR_CALLS) p->calls[p->request_count] = call;
    p->request_count++;
    p->head = *head;
    copy(p->path, sizeof p->path, head->path);
    copy(p->method, sizeof p->method, head->method);
    copy(p->authorization, sizeof p->authorization, head->authorization);
    copy(p->content_type, sizeof p->content_type, head->content_type);
    copy(p->encoding, sizeof p->encoding, head->encoding);
    if (p->on_request != NULL) p->on_request(p, call);
}

static void on_message(void *user, rp_call *call, const uint8_t *data, size_t size,
                       rp_block *block)
{
    rp_test_pair *p = user;
    rp_test_message *m;

    if (p->message_count == p->message_capacity) {
        p->message_capacity = 2 * p->message_capacity + 16;
        p->messages = realloc(p->messages, p->message_capacity * sizeof *p->messages);
        assert_non_null(p->messages);
    }
    m = &p->messages[p->message_count++];
    *m = (rp_test_message){rp_test_pair_number(p, call), malloc(size + 1), size, block != NULL};
    assert_non_null(m->data);
    memcpy(m->data, data, size);
    assert_false(rp_call_is_paused(call) || rp_call_is_finished(call));
    if (p->on_message != NULL) p->on_message(p, call, data, size, block);
}

static void on_half_close(void *user, rp_call *call)
{
    rp_test_pair *p = user;

    p->half_close_count++;
    assert_false(rp_call_is_paused(call) || rp_call_is_finished(call));
    if (p->on_half_close != NULL) p->on_half_close(p, call);
}

static bool may_deliver(void *user, rp_call *call, size_t size)
{
    rp_test_pair *p = user;

    return p->may_deliver == NULL || p->may_deliver(p, call, size);
}

static void on_room(void *user, rp_call *call)
{
    rp_test_pair *p = user;

    p->room_count++;
    if (p->on_room != NULL) p->on_room(p, call);
}

static void on_close(void *user, rp_call *call)
{
    rp_test_pair *p = user;
    size_t number = rp_test_pair_number(p, call);

    p->close_count++;
    if (p->on_close != NULL) p->on_close(p, call);
    if (number < RP_TEST_PAIR_CALLS) p->calls[number] = NULL;
}

static bool on_nuisance(void *user, rp_nuisance kind, rp_call *call)
{
    rp_test_pair *p = user;
    size_t sum = 0;

    assert_int_equal(call != NULL, kind == RP_NUISANCE_RESET);

    p->nuisances[kind]++;
    for (size_t i = 0; i < RP_NUISANCE_KINDS; i++) sum += p->nuisances[i];
    return p->most_nuisances == 0 || sum < p->most_nuisances;
}

static void on_fault(void *user, rp_call *call, rp_call_fault fault, rp_status status)
{
    rp_test_pair *p = user;

    assert_true(rp_call_is_finished(call));
    p->faults[fault]++;
    p->fault_status = status;
}

static const rp_h2_handler handler = {
    .on_request = on_request,
    .may_deliver = may_deliver,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_room = on_room,
    .on_close = on_close,
    .on_nuisance = on_nuisance,
    .on_fault = on_fault,
};

rp_h2_limits rp_test_h2_limits(void)
{
    return (rp_h2_limits){.streams = 100,
                          .message_bytes = 64 << 20,
                          .header_bytes = 16384,
                          .header_fields = 64,
                          .queued_bytes = 2 << 20};
}

static void set_up(rp_test_pair *p, const rp_h2_limits *limits,
                   const rp_test_client_options *options, size_t room)
{
    const rp_h2_limits usual = rp_test_h2_limits();

    *p = (rp_test_pair){.oom = RP_TEST_OOM_INIT(room)};
    p->alloc = rp_test_oom_allocator(&p->oom);
    rp_message_pool_init(&p->pool, &p->alloc);
    p->opened =
        rp_h2_new(&p->alloc, &handler, p, limits != NULL ? limits : &usual, &p->pool, &p->h2);
    p->alive = p->opened == RP_OK;
    p->client = rp_test_client_new(options);
}

void rp_test_pair_init(rp_test_pair *p, const rp_h2_limits *limits,
                       const rp_test_client_options *options)
{
    set_up(p, limits, options, RP_TEST_OOM_UNLIMITED);
    assert_ok(p->opened);
}

void rp_test_pair_try(rp_test_pair *p, const rp_h2_limits *limits, size_t room)
{
    set_up(p, limits, NULL, room);
}

void rp_test_pair_close(rp_test_pair *p)
{
    rp_h2_free(p->h2);
    p->h2 = NULL;
    p->alive = false;
}

void rp_test_pair_deinit(rp_test_pair *p)
{
    rp_test_pair_close(p);
    rp_message_pool_deinit(&p->pool);
    rp_test_client_free(p->client);
    for (size_t i = 0; i < p->message_count; i++) free(p->messages[i].data);
    free(p->messages);
    assert_int_equal(p->close_count, p->request_count);
    assert_int_equal(p->oom.live, 0);
    assert_int_equal(p->oom.live_bytes, 0);
}

void rp_test_pair_feed(rp_test_pair *p, const void *data, size_t size)
{
    const uint8_t *at = data;

    while (p->alive && size > 0) {
        size_t part = p->in_bytes > 0 && p->in_bytes < size ? p->in_bytes : size, room = 0;
        uint8_t *place = p->no_place ? NULL : rp_h2_receive_place(p->h2, &room), *exact = NULL;

        if (place != NULL) {
            if (part > room) part = room;
            p->in_place += part;
        } else {
            place = exact = malloc(part);
            assert_non_null(exact);
        }
        memcpy(place, at, part);
        p->alive = rp_h2_receive(p->h2, place, part);
        free(exact);
        at += part;
        size -= part;
    }
}

void rp_test_pair_carry_in(rp_test_pair *p)
{
    size_t size;
    const uint8_t *data;

    while (p->alive && (data = rp_test_client_output(p->client, &size)) != NULL) {
        rp_test_pair_feed(p, data, size);
        rp_test_client_sent(p->client, size);
    }
}

size_t rp_test_pair_write(rp_test_pair *p, size_t size)
{
    struct iovec parts[64];
    size_t capacity = p->out_parts > 0 ? p->out_parts : 64, moved = 0;
    size_t count = rp_h2_output(p->h2, parts, capacity);

    for (size_t i = 0; i < count && moved < size; i++) {
        size_t part = parts[i].iov_len < size - moved ? parts[i].iov_len : size - moved;
        uint8_t *exact = malloc(part > 0 ? part : 1);
        assert_non_null(exact);
        memcpy(exact, parts[i].iov_base, part);
        rp_test_client_receive(p->client, exact, part);
        free(exact);
        moved += part;
    }
    rp_h2_written(p->h2, moved);
    return moved;
}

void rp_test_pair_carry_out(rp_test_pair *p)
{
    while (rp_test_pair_write(p, p->out_bytes > 0 ? p->out_bytes : SIZE_MAX) > 0) {}
}

void rp_test_pair_carry(rp_test_pair *p)
{
    size_t size;

    do {
        rp_test_pair_carry_in(p);
        rp_test_pair_carry_out(p);
    } while (p->alive && rp_test_client_output(p->client, &size) != NULL);
}

rp_message *rp_test_pair_reply(rp_test_pair *p, const void *data, size_t size,
                               rp_trajectory *held)
{
    rp_message *reply = rp_message_new(&p->pool);

    if (reply == NULL) return NULL;
    if (held != NULL && !rp_message_hold(reply, rp_trajectory_ref(held)))
        rp_trajectory_unref(held);
    (void)rp_message_add(reply, data, size);
    if (rp_message_close(reply)) return reply;
    rp_message_release(&p->pool, reply);
    return NULL;
}

void rp_test_pair_say(rp_test_pair *p, rp_call *call, const void *data, size_t size)
{
    rp_message *reply = rp_test_pair_reply(p, data, size, NULL);

    if (reply != NULL) rp_call_send(call, reply);
}
