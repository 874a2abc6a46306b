/* SPDX-License-Identifier: Apache-2.0 */
#include "support/h2_ends.h"

uint8_t rp_test_ends_bytes[RP_TEST_ENDS_BIG];

static void make_bytes(void)
{
    if (rp_test_ends_bytes[1] != 0) return;
    for (size_t i = 0; i < RP_TEST_ENDS_BIG; i++)
        rp_test_ends_bytes[i] = (uint8_t)(i * 167 + (i >> 8) * 13);
}

static void send(rp_message_pool *pool, rp_call *call, size_t size, bool *ok)
{
    rp_message *reply = rp_message_new(pool);

    *ok = reply != NULL && rp_message_add(reply, rp_test_ends_bytes, size);
    *ok = reply != NULL && rp_message_close(reply) && *ok;
    if (*ok)
        rp_call_send(call, reply);
    else
        rp_message_release(pool, reply);
}

static rp_test_ends_call *client_call(rp_test_ends *e, rp_call *call)
{
    rp_test_ends_call *mine = rp_call_user(call);

    assert_true(mine >= e->calls && mine < e->calls + e->call_count);
    assert_ptr_equal(mine->call, call);
    assert_int_equal(mine->closes, 0);
    return mine;
}

static void client_message(void *user, rp_call *call, const uint8_t *data, size_t size,
                           rp_block *block)
{
    rp_test_ends_call *mine = client_call(user, call);

    assert_int_equal(mine->ends, 0);
    assert_false(rp_call_is_paused(call) || rp_call_is_finished(call));
    assert_true(size <= RP_TEST_ENDS_BIG && memcmp(data, rp_test_ends_bytes, size) == 0);
    if (block != NULL) assert_true(block->data == data && block->size == size);
    mine->messages++;
    mine->bytes += size;
    mine->blocks += block != NULL;
    if (mine->pause_after > 0 && mine->messages % mine->pause_after == 0) rp_call_pause(call);
    if (mine->messages == mine->cancel_after) rp_call_cancel(call);
}

static void client_room(void *user, rp_call *call)
{
    client_call(user, call)->rooms++;
}

static void client_end(void *user, rp_call *call, rp_status status, const char *text)
{
    rp_test_ends_call *mine = client_call(user, call);

    mine->ends++;
    mine->status = status;
    (void)snprintf(mine->text, sizeof mine->text, "%s", text);
    rp_call_cancel(call); /* too late, so without effect */
    rp_call_half_close(call);
}

static void client_close(void *user, rp_call *call)
{
    rp_test_ends_call *mine = client_call(user, call);

    mine->closes++;
    mine->call = NULL;
}

static const rp_h2_handler client_handler = {
    .on_message = client_message,
    .on_room = client_room,
    .on_close = client_close,
    .on_end = client_end,
};

enum { ECHO = 1, COUNT, SOURCE, HANG };

/* The state of a call at the server: its path, and how many messages it has received or still
 * has to send. */
typedef struct served {
    int kind;
    size_t count;
} served;

static bool path_is(rp_string path, const char *text)
{
    return path.size == strlen(text) && memcmp(path.data, text, path.size) == 0;
}

static void server_request(void *user, rp_call *call, const rp_request_head *head)
{
    rp_test_ends *e = user;
    served *mine = calloc(1, sizeof *mine);
    bool ok;

    assert_non_null(mine);
    assert_true(e->served_count < RP_TEST_ENDS_CALLS);
    e->served[e->served_count++] = call;
    e->head = *head;
    assert_true(path_is(head->method, "POST") &&
                path_is(head->content_type, "application/grpc"));
    (void)snprintf(e->authorization, sizeof e->authorization, "%.*s",
                   (int)head->authorization.size, head->authorization.data);
    rp_call_set_user(call, mine);
    mine->kind = path_is(head->path, "/echo")     ? ECHO
                 : path_is(head->path, "/count")  ? COUNT
                 : path_is(head->path, "/source") ? SOURCE
                                                  : HANG;
    if (path_is(head->path, "/late")) send(&e->server_pool, call, 10, &ok);
    if (path_is(head->path, "/late") || path_is(head->path, "/fail"))
        rp_call_finish(call, RP_NOT_FOUND, RP_TEST_ENDS_TEXT);
    if (path_is(head->path, "/page"))
        rp_call_respond_http(call, &(rp_http_response){e->http_status, "text/html", NULL, NULL},
                             NULL);
}

static void pour(rp_test_ends *e, rp_call *call, served *mine)
{
    bool ok = true;

    while (ok && mine->count > 0 && rp_call_queued_bytes(call) < 1 << 20) {
        mine->count--;
        send(&e->server_pool, call, e->source_bytes, &ok);
    }
    if (mine->count == 0)
        rp_call_finish(call, RP_OK, NULL);
    else
        rp_call_want_room(call);
}

static void server_message(void *user, rp_call *call, const uint8_t *data, size_t size,
                           rp_block *block)
{
    rp_test_ends *e = user;
    served *mine = rp_call_user(call);
    bool ok;

    (void)block;
    assert_true(size <= RP_TEST_ENDS_BIG && memcmp(data, rp_test_ends_bytes, size) == 0);
    e->served_messages++;
    if (mine->kind == ECHO) {
        send(&e->server_pool, call, size, &ok);
        if (rp_call_queued_bytes(call) > 1 << 20) rp_call_pause(call);
    } else if (mine->kind == SOURCE) {
        mine->count = size;
        pour(e, call, mine);
    } else {
        mine->count++;
    }
}

static void server_half_close(void *user, rp_call *call)
{
    rp_test_ends *e = user;
    served *mine = rp_call_user(call);
    bool ok;

    e->served_half_closes++;
    if (mine->kind == COUNT) send(&e->server_pool, call, mine->count, &ok);
    if (mine->kind == COUNT || mine->kind == ECHO) rp_call_finish(call, RP_OK, "not sent");
}

static void server_room(void *user, rp_call *call)
{
    served *mine = rp_call_user(call);

    if (mine->kind == SOURCE) pour(user, call, mine);
    if (mine->kind == ECHO) rp_call_resume(call);
}

static void server_close(void *user, rp_call *call)
{
    rp_test_ends *e = user;

    free(rp_call_user(call));
    e->served_closes++;
    for (size_t i = 0; i < e->served_count; i++)
        if (e->served[i] == call) e->served[i] = NULL;
}

static bool server_nuisance(void *user, rp_nuisance kind, rp_call *call)
{
    (void)call;
    ((rp_test_ends *)user)->nuisances[kind]++;
    return true;
}

static void server_fault(void *user, rp_call *call, rp_call_fault fault, rp_status status)
{
    (void)call, (void)fault, (void)status;
    ((rp_test_ends *)user)->served_faults++;
}

static const rp_h2_handler server_handler = {
    .on_request = server_request,
    .on_message = server_message,
    .on_half_close = server_half_close,
    .on_room = server_room,
    .on_close = server_close,
    .on_nuisance = server_nuisance,
    .on_fault = server_fault,
};

static void set_up(rp_test_ends *e, const rp_h2_limits *client, const rp_h2_limits *server,
                   size_t room)
{
    static const rp_h2_limits usual = {.streams = 100,
                                       .message_bytes = 64 << 20,
                                       .header_bytes = 16384,
                                       .header_fields = 64,
                                       .queued_bytes = 2 << 20};

    make_bytes();
    memset(e, 0, sizeof *e);
    atomic_store(&e->client_oom.left, room);
    atomic_store(&e->server_oom.left, RP_TEST_OOM_UNLIMITED);
    e->client_alloc = rp_test_oom_allocator(&e->client_oom);
    e->server_alloc = rp_test_oom_allocator(&e->server_oom);
    rp_message_pool_init(&e->client_pool, &e->client_alloc);
    rp_message_pool_init(&e->server_pool, &e->server_alloc);
    rp_rng_init(&e->rng, 7);
    e->http_status = 404;
    assert_ok(rp_h2_new(&e->server_alloc, &server_handler, e, server != NULL ? server : &usual,
                        &e->server_pool, &e->server));
    e->opened = rp_h2_new_client(&e->client_alloc, &client_handler, e,
                                 client != NULL ? client : &usual, &e->client_pool, &e->client);
    e->client_alive = e->opened == RP_OK;
    e->server_alive = true;
}

void rp_test_ends_init(rp_test_ends *e, const rp_h2_limits *client, const rp_h2_limits *server)
{
    set_up(e, client, server, RP_TEST_OOM_UNLIMITED);
    assert_ok(e->opened);
}

void rp_test_ends_try(rp_test_ends *e, size_t room)
{
    set_up(e, NULL, NULL, room);
}

void rp_test_ends_close_client(rp_test_ends *e)
{
    rp_h2_free(e->client);
    e->client = NULL;
    e->client_alive = false;
}

void rp_test_ends_deinit(rp_test_ends *e)
{
    if (e->client != NULL) {
        size_t open = 0;
        for (size_t i = 0; i < e->call_count; i++) open += e->calls[i].call != NULL;
        assert_int_equal(rp_h2_call_count(e->client), open);
    }
    rp_test_ends_close_client(e);
    rp_h2_free(e->server);
    rp_message_pool_deinit(&e->client_pool);
    rp_message_pool_deinit(&e->server_pool);
    for (size_t i = 0; i < e->call_count; i++) {
        assert_int_equal(e->calls[i].closes, 1);
        assert_true(e->calls[i].ends <= 1);
    }
    assert_int_equal(e->served_closes, e->served_count);
    assert_int_equal(e->client_oom.live, 0);
    assert_int_equal(e->client_oom.live_bytes, 0);
    assert_int_equal(e->server_oom.live, 0);
}

rp_test_ends_call *rp_test_ends_begin_with(rp_test_ends *e, const rp_call_head *head)
{
    rp_test_ends_call *mine = &e->calls[e->call_count];

    assert_true(e->call_count < RP_TEST_ENDS_CALLS);
    mine->call = rp_h2_begin(e->client, head, mine);
    if (mine->call == NULL) return NULL;
    e->call_count++;
    return mine;
}

rp_test_ends_call *rp_test_ends_begin(rp_test_ends *e, const char *path)
{
    return rp_test_ends_begin_with(
        e, &(rp_call_head){.path = path, .authority = "test", .timeout_ns = -1});
}

bool rp_test_ends_say(rp_test_ends *e, rp_test_ends_call *call, size_t size)
{
    bool ok;

    send(&e->client_pool, call->call, size, &ok);
    return ok;
}

/* Picks a size that is usually small and sometimes large, so that every part is cut. */
static size_t pick_size(rp_test_ends *e, size_t most)
{
    size_t bits = rp_rng_next(&e->rng) % 22;
    size_t size = 1 + rp_rng_next(&e->rng) % ((size_t)1 << bits);

    return e->is_whole || size > most ? most : size;
}

static bool feed(rp_test_ends *e, rp_h2 *to, const uint8_t *data, size_t size)
{
    while (size > 0) {
        size_t part = pick_size(e, size), room = 0;
        uint8_t *place = rp_h2_receive_place(to, &room), *exact = NULL;
        bool alive;

        if (place != NULL) {
            if (part > room) part = room;
            if (to == e->client) e->in_place += part;
        } else {
            place = exact = malloc(part);
            assert_non_null(exact);
        }
        memcpy(place, data, part);
        alive = rp_h2_receive(to, place, part);
        free(exact);
        if (!alive) return false;
        data += part;
        size -= part;
    }
    return true;
}

static size_t carry(rp_test_ends *e, rp_h2 *from, rp_h2 *to, bool *alive, size_t most)
{
    struct iovec parts[8];
    size_t count = rp_h2_output(from, parts, 1 + rp_rng_next(&e->rng) % 8), moved = 0;

    if (most == SIZE_MAX && !e->is_whole) most = pick_size(e, 1 << 21);
    for (size_t i = 0; i < count && moved < most; i++) {
        size_t part = parts[i].iov_len < most - moved ? parts[i].iov_len : most - moved;
        if (*alive) *alive = feed(e, to, parts[i].iov_base, part);
        moved += part;
    }
    rp_h2_written(from, moved);
    if (e->client != NULL && rp_h2_held_bytes(e->client) > e->peak_held)
        e->peak_held = rp_h2_held_bytes(e->client);
    return moved;
}

size_t rp_test_ends_to_server(rp_test_ends *e, size_t most)
{
    return carry(e, e->client, e->server, &e->server_alive, most);
}

size_t rp_test_ends_to_client(rp_test_ends *e, size_t most)
{
    return carry(e, e->server, e->client, &e->client_alive, most);
}

void rp_test_ends_carry(rp_test_ends *e)
{
    while (rp_test_ends_to_server(e, SIZE_MAX) + rp_test_ends_to_client(e, SIZE_MAX) > 0) {}
}
