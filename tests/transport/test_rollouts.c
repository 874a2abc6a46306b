/* SPDX-License-Identifier: Apache-2.0 */
/* Rollouts over every transport: the same results, waits included. */
#include <pthread.h>
#include <unistd.h>

#include "support/transports.h"

#define S(text) ((rp_string){text, sizeof(text) - 1})
#define SECONDS INT64_C(1000000000)

enum { ONE_SERVER = 1u << RP_TEST_TCP | 1u << RP_TEST_TLS | 1u << RP_TEST_UNIX };

static rp_status make_call(rp_test_transport *t, rp_rollouts_call *call, rp_wait wait)
{
    t->err = (rp_error){0};
    call->rollouts = S("train");
    return rp_client_rollouts(t->client, call, wait, &t->err);
}

static void do_call(rp_test_transport *t, rp_rollouts_call *call)
{
    assert_ok_err(make_call(t, call, rp_test_soon()), &t->err);
}

/* Makes rollouts with groups of two items and a consumer that needs rewards. */
static void make_rollouts(rp_test_transport *t, uint64_t max_groups)
{
    static const rp_string columns[] = {{"reward", 6}, {"tokens", 6}};
    const rp_rollout_consumer consumer = {.name = S("learner"), columns, 2};
    rp_rollout_options options;
    rp_rollouts_call call = {.action = RP_ROLLOUTS_CREATE, .options = &options};

    rp_rollout_options_init(&options);
    options.group_size = 2;
    options.max_staleness = 3;
    options.max_groups = max_groups;
    options.consumers = &consumer;
    options.consumer_count = 1;
    do_call(t, &call);
}

static void drop(rp_test_transport *t)
{
    do_call(t, &(rp_rollouts_call){.action = RP_ROLLOUTS_DROP});
}

static rp_string group_name(int number, char text[16])
{
    int size = snprintf(text, 16, "g%d", number);

    return (rp_string){text, (size_t)size};
}

/* Puts the tokens of an item: `count` times `number`. */
static rp_status put_tokens(rp_test_transport *t, int number, uint32_t index, size_t count,
                            rp_wait wait)
{
    static int32_t tokens[100000];
    const rp_rollout_column column = {S("tokens"), {RP_INT32, {1, {(int64_t)count}}, tokens}};
    char text[16];
    rp_rollouts_call call = {.action = RP_ROLLOUTS_PUT,
                             .group = group_name(number, text),
                             .index = index,
                             .first_version = 1,
                             .last_version = 2,
                             .columns = &column,
                             .column_count = 1};

    assert_true(count <= COUNT_OF(tokens));
    for (size_t i = 0; i < count; i++) tokens[i] = number;
    return make_call(t, &call, wait);
}

static void put_reward(rp_test_transport *t, int number, uint32_t index)
{
    const float reward = (float)number + 0.5f;
    const rp_rollout_column column = {S("reward"), {RP_FLOAT32, {0, {0}}, &reward}};
    char text[16];
    rp_rollouts_call call = {.action = RP_ROLLOUTS_UPDATE,
                             .group = group_name(number, text),
                             .index = index,
                             .columns = &column,
                             .column_count = 1};

    do_call(t, &call);
}

static void put_group(rp_test_transport *t, int number, size_t tokens)
{
    for (uint32_t i = 0; i < 2; i++) {
        assert_ok_err(put_tokens(t, number, i, tokens + i, rp_test_soon()), &t->err);
        put_reward(t, number, i);
    }
}

static rp_status try_draw(rp_test_transport *t, uint32_t groups, int64_t ttl_ns, rp_wait wait,
                          rp_rollouts_draw **out)
{
    rp_rollouts_call call = {.action = RP_ROLLOUTS_DRAW,
                             .consumer = S("learner"),
                             .groups = groups,
                             .min_groups = groups,
                             .ttl_ns = ttl_ns};
    rp_status st = make_call(t, &call, wait);

    *out = call.draw;
    return st;
}

static rp_rollouts_draw *draw(rp_test_transport *t, uint32_t groups)
{
    rp_rollouts_draw *drawn = NULL;

    assert_ok_err(try_draw(t, groups, 600 * SECONDS, rp_test_soon(), &drawn), &t->err);
    assert_int_equal(drawn->group_count, groups);
    return drawn;
}

static void end_lease(rp_test_transport *t, rp_rollouts_action action, rp_rollouts_draw *drawn)
{
    do_call(t, &(rp_rollouts_call){.action = action, .lease = drawn->lease});
    rp_rollouts_draw_free(drawn);
}

static void expect_group(const rp_rollouts_group *group, int number, size_t tokens)
{
    char text[16];
    rp_string name = group_name(number, text);

    assert_int_equal(group->name.size, name.size);
    assert_memory_equal(group->name.data, name.data, name.size);
    assert_int_equal(group->first_version, 1);
    assert_int_equal(group->last_version, 2);
    for (size_t i = 0; i < 2; i++) {
        const rp_rollout_item *item = group->items[i];
        const int32_t *values;
        float reward;

        assert_int_equal(item->column_count, 2);
        assert_memory_equal(item->columns[0].name.data, "reward", 6);
        assert_int_equal(item->columns[0].tensor.dtype, RP_FLOAT32);
        assert_int_equal(item->columns[0].tensor.shape.rank, 0);
        memcpy(&reward, item->columns[0].tensor.data, sizeof reward);
        assert_true(reward == (float)number + 0.5f);
        assert_memory_equal(item->columns[1].name.data, "tokens", 6);
        assert_int_equal(item->columns[1].tensor.shape.dims[0], tokens + i);
        values = item->columns[1].tensor.data;
        for (size_t k = 0; k < tokens + i; k++) assert_int_equal(values[k], number);
    }
}

typedef struct seen_entry {
    size_t count;
    rp_rollout_info info;
    size_t cursors;
} seen_entry;

static void on_entry(void *ctx, const rp_rollouts_entry *entry)
{
    seen_entry *seen = ctx;

    seen->count++;
    seen->info = *entry->info;
    seen->cursors = entry->cursor_count;
    assert_int_equal(entry->options->group_size, 2);
    assert_int_equal(entry->options->consumer_count, 1);
    assert_int_equal(entry->options->consumers[0].column_count, 2);
}

static rp_rollout_info info_of(rp_test_transport *t)
{
    seen_entry seen = {0};

    do_call(
        t, &(rp_rollouts_call){.action = RP_ROLLOUTS_LIST, .on_entry = on_entry, .ctx = &seen});
    assert_int_equal(seen.count, 1);
    return seen.info;
}

static void groups_are_drawn_once_their_columns_are_there(rp_test_transport *t)
{
    rp_rollouts_draw *drawn = NULL;
    rp_rollout_info info;

    make_rollouts(t, 100);
    for (int g = 0; g < 3; g++) {
        assert_ok_err(put_tokens(t, g, 0, 5, rp_test_soon()), &t->err);
        assert_ok_err(put_tokens(t, g, 1, 6, rp_test_soon()), &t->err);
    }
    assert_fails(try_draw(t, 1, SECONDS, rp_wait_none(), &drawn), RP_DEADLINE, &t->err, "");
    assert_null(drawn);
    put_reward(t, 1, 0);
    put_reward(t, 1, 1);
    drawn = draw(t, 1);
    assert_true(drawn->lease > 0);
    expect_group(&drawn->groups[0], 1, 5);

    info = info_of(t);
    assert_int_equal(info.leased, 1);
    assert_int_equal(info.complete, 2);
    assert_int_equal(info.consumers[0].waiting, 2);
    end_lease(t, RP_ROLLOUTS_ACK, drawn);
    info = info_of(t);
    assert_int_equal(info.acknowledged, 1);
    assert_int_equal(info.groups, 2);
    drop(t);
}

static void large_values_arrive_unchanged(rp_test_transport *t)
{
    enum { TOKENS = 90000, GROUPS = 8 };
    rp_rollouts_draw *drawn;

    make_rollouts(t, 100);
    for (int g = 0; g < GROUPS; g++) put_group(t, g, TOKENS);
    drawn = draw(t, GROUPS);
    for (int g = 0; g < GROUPS; g++) expect_group(&drawn->groups[g], g, TOKENS);
    end_lease(t, RP_ROLLOUTS_RELEASE, drawn);
    drawn = draw(t, GROUPS); /* the same, in the same order */
    for (int g = 0; g < GROUPS; g++) expect_group(&drawn->groups[g], g, TOKENS);
    end_lease(t, RP_ROLLOUTS_ACK, drawn);
    drop(t);
}

static void what_is_repeated_is_known(rp_test_transport *t)
{
    rp_rollouts_call ack = {.action = RP_ROLLOUTS_ACK};
    rp_rollouts_call peek = {.action = RP_ROLLOUTS_PEEK, .group = S("g7")};
    const rp_rollout_column column = {S("tokens"), {RP_INT32, {1, {0}}, NULL}};
    rp_rollouts_call put = {
        .action = RP_ROLLOUTS_PUT, .group = S("g7"), .columns = &column, .column_count = 1};
    rp_rollouts_draw *drawn;

    make_rollouts(t, 100);
    do_call(t, &put);
    assert_false(put.repeated);
    assert_int_equal(put.fate, RP_ROLLOUT_PARTIAL);
    do_call(t, &put);
    assert_true(put.repeated);
    do_call(t, &peek);
    assert_int_equal(peek.fate, RP_ROLLOUT_PARTIAL);
    assert_int_equal(peek.draw->lease, 0);
    assert_int_equal(peek.draw->groups[0].items[0]->column_count, 1);
    assert_null(peek.draw->groups[0].items[1]);
    rp_rollouts_draw_free(peek.draw);

    put_group(t, 1, 3);
    drawn = draw(t, 1);
    ack.lease = drawn->lease;
    do_call(t, &ack);
    do_call(t, &ack);
    assert_true(ack.repeated);
    peek.group = S("g1");
    do_call(t, &peek);
    assert_int_equal(peek.fate, RP_ROLLOUT_ACKNOWLEDGED);
    assert_null(peek.draw);
    rp_rollouts_draw_free(drawn);
    drop(t);
}

static void versions_drop_stale_groups(rp_test_transport *t)
{
    rp_rollouts_call advance = {.action = RP_ROLLOUTS_ADVANCE, .version = 4};
    rp_rollouts_draw *drawn;
    rp_rollout_info info;

    make_rollouts(t, 100);
    put_group(t, 0, 3); /* of version 1 */
    do_call(t, &advance);
    assert_int_equal(advance.current_version, 4);
    assert_int_equal(advance.removed, 0);
    drawn = draw(t, 1);
    assert_int_equal(drawn->version, 4);
    end_lease(t, RP_ROLLOUTS_RELEASE, drawn);
    advance.version = 5;
    do_call(t, &advance);
    assert_int_equal(advance.removed, 1);
    info = info_of(t);
    assert_int_equal(info.stale, 1);
    assert_int_equal(info.staleness[3], 1);
    advance.version = 4; /* a late one */
    do_call(t, &advance);
    assert_true(advance.repeated);
    assert_int_equal(advance.current_version, 5);
    drop(t);
}

static void on_data(void *ctx, const void *data, size_t size)
{
    (void)snprintf(ctx, 16, "%.*s", (int)size, (const char *)data);
}

static void cursors_are_kept(rp_test_transport *t)
{
    char text[16] = "";
    rp_rollouts_call set = {.action = RP_ROLLOUTS_SET_CURSOR,
                            .cursor = S("loader"),
                            .data = "epoch 3",
                            .data_size = 7};
    rp_rollouts_call get = {.action = RP_ROLLOUTS_READ_CURSOR,
                            .cursor = S("loader"),
                            .on_data = on_data,
                            .ctx = text};

    make_rollouts(t, 100);
    assert_fails(make_call(t, &get, rp_test_soon()), RP_NOT_FOUND, &t->err, "loader");
    do_call(t, &set);
    do_call(t, &get);
    assert_string_equal(text, "epoch 3");
    drop(t);
}

typedef struct background_draw {
    rp_test_transport *t;
    rp_rollouts_call call;
    rp_wait wait;
    rp_status status;
    rp_error err;
    pthread_t thread;
} background_draw;

static void *run_draw(void *arg)
{
    background_draw *b = arg;

    b->status = rp_client_rollouts(b->t->client, &b->call, b->wait, &b->err);
    return NULL;
}

static void begin_draw(background_draw *b, rp_test_transport *t, uint32_t groups)
{
    *b = (background_draw){.t = t,
                           .wait = rp_test_soon(),
                           .call = {.action = RP_ROLLOUTS_DRAW,
                                    .rollouts = S("train"),
                                    .consumer = S("learner"),
                                    .groups = groups,
                                    .min_groups = groups,
                                    .ttl_ns = 600 * SECONDS}};
    assert_int_equal(pthread_create(&b->thread, NULL, run_draw, b), 0);
}

static void a_draw_waits_for_its_groups(rp_test_transport *t)
{
    background_draw b;

    make_rollouts(t, 100);
    begin_draw(&b, t, 3);
    for (int g = 0; g < 3; g++) put_group(t, g, 4);
    assert_int_equal(pthread_join(b.thread, NULL), 0);
    assert_ok_err(b.status, &b.err);
    assert_int_equal(b.call.draw->group_count, 3);
    expect_group(&b.call.draw->groups[2], 2, 4);
    end_lease(t, RP_ROLLOUTS_ACK, b.call.draw);
    drop(t);
}

static void a_drop_ends_waits(rp_test_transport *t)
{
    background_draw b;

    make_rollouts(t, 100);
    begin_draw(&b, t, 1);
    drop(t);
    assert_int_equal(pthread_join(b.thread, NULL), 0);
    assert_true(b.status == RP_CANCELLED || b.status == RP_NOT_FOUND);
    assert_null(b.call.draw);
}

static void a_wait_can_be_cancelled(rp_test_transport *t)
{
    background_draw b = {.t = t,
                         .call = {.action = RP_ROLLOUTS_DRAW,
                                  .rollouts = S("train"),
                                  .consumer = S("learner"),
                                  .groups = 1,
                                  .ttl_ns = SECONDS}};
    rp_cancel *cancel;

    make_rollouts(t, 100);
    assert_int_equal(rp_cancel_new(&cancel), RP_OK);
    b.wait = (rp_wait){RP_FOREVER, cancel};
    assert_int_equal(pthread_create(&b.thread, NULL, run_draw, &b), 0);
    rp_cancel_fire(cancel);
    assert_int_equal(pthread_join(b.thread, NULL), 0);
    assert_int_equal(b.status, RP_CANCELLED);
    rp_cancel_free(cancel);
    drop(t);
}

static void the_reason_of_a_wait_is_named(rp_test_transport *t)
{
    rp_rollouts_draw *drawn = NULL;

    make_rollouts(t, 3);
    put_group(t, 0, 3);
    put_group(t, 1, 3);
    assert_ok_err(put_tokens(t, 2, 0, 3, rp_test_soon()), &t->err); /* not complete */
    assert_fails(put_tokens(t, 3, 0, 3, rp_wait_ms(50)), RP_DEADLINE, &t->err, "max_groups");
    assert_fails(try_draw(t, 3, SECONDS, rp_wait_ms(50), &drawn), RP_DEADLINE, &t->err, "3");
    assert_int_equal(info_of(t).leases, 0);
    drop(t);
}

static void an_expired_lease_is_drawn_again(rp_test_transport *t)
{
    rp_rollouts_draw *drawn = NULL, *again;
    rp_rollouts_call ack = {.action = RP_ROLLOUTS_ACK};

    make_rollouts(t, 100);
    put_group(t, 0, 3);
    assert_ok_err(try_draw(t, 1, 20 * SECONDS / 1000, rp_test_soon(), &drawn), &t->err);
    again = draw(t, 1); /* waits until the lease ends */
    expect_group(&again->groups[0], 0, 3);
    assert_true(again->lease != drawn->lease);
    ack.lease = drawn->lease;
    assert_int_equal(make_call(t, &ack, rp_test_soon()), RP_NOT_FOUND);
    rp_rollouts_draw_free(drawn);
    assert_int_equal(info_of(t).expired_leases, 1);
    end_lease(t, RP_ROLLOUTS_ACK, again);
    drop(t);
}

static void wrong_calls_are_refused(rp_test_transport *t)
{
    rp_rollout_options options;
    rp_rollouts_call create = {.action = RP_ROLLOUTS_CREATE, .options = &options};
    rp_rollouts_call call = {.action = RP_ROLLOUTS_ADVANCE, .version = -1};

    rp_rollout_options_init(&options);
    assert_int_equal(make_call(t, &call, rp_test_soon()), RP_INVALID);
    call.version = 1;
    assert_fails(make_call(t, &call, rp_test_soon()), RP_NOT_FOUND, &t->err, "train");
    call.action = (rp_rollouts_action)99;
    assert_int_equal(make_call(t, &call, rp_test_soon()), RP_INVALID);
    do_call(t, &create);
    assert_int_equal(make_call(t, &create, rp_test_soon()), RP_EXISTS);
    options.group_size = 0;
    assert_int_equal(make_call(t, &create, rp_test_soon()), RP_INVALID);
    create.options = NULL;
    assert_int_equal(make_call(t, &create, rp_test_soon()), RP_INVALID);
    drop(t);
}

/* A client that ends between the draw and the receipt of its response loses no group. */
static void a_client_that_ends_releases_its_draw(rp_test_transport *t)
{
    enum { TOKENS = 90000 };
    const uint32_t groups =
        (uint32_t)rp_test_length(64, 32); /* more than the buffers of a socket */
    const int rounds = (int)rp_test_length(5, 2);
    background_draw b;
    rp_rollouts_draw *drawn;

    make_rollouts(t, 100);
    for (uint32_t g = 0; g < groups; g++) put_group(t, (int)g, TOKENS);
    for (int round = 0; round < rounds; round++) {
        rp_cancel *cancel;

        assert_int_equal(rp_cancel_new(&cancel), RP_OK);
        b = (background_draw){.t = t,
                              .wait = {RP_FOREVER, cancel},
                              .call = {.action = RP_ROLLOUTS_DRAW,
                                       .rollouts = S("train"),
                                       .consumer = S("learner"),
                                       .groups = groups,
                                       .min_groups = groups,
                                       .ttl_ns = 600 * SECONDS}};
        assert_int_equal(pthread_create(&b.thread, NULL, run_draw, &b), 0);
        while (info_of(t).consumers[0].drawn < (uint64_t)groups * ((uint64_t)round + 1))
            (void)usleep(200);
        rp_cancel_fire(cancel);
        assert_int_equal(pthread_join(b.thread, NULL), 0);
        rp_cancel_free(cancel);
        if (b.status == RP_OK) end_lease(t, RP_ROLLOUTS_RELEASE, b.call.draw);
    }
    drawn = draw(t, groups);
    end_lease(t, RP_ROLLOUTS_ACK, drawn);
    assert_int_equal(info_of(t).expired_leases, 0);
    drop(t);
}

RP_TESTS(rollouts)
{
    static const rp_test_case cases[] = {
        RP_TEST_CASE(groups_are_drawn_once_their_columns_are_there),
        RP_TEST_CASE(large_values_arrive_unchanged),
        RP_TEST_CASE(what_is_repeated_is_known),
        RP_TEST_CASE(versions_drop_stale_groups),
        RP_TEST_CASE(cursors_are_kept),
        RP_TEST_CASE(a_draw_waits_for_its_groups),
        RP_TEST_CASE(a_drop_ends_waits),
        RP_TEST_CASE(a_wait_can_be_cancelled),
        RP_TEST_CASE(the_reason_of_a_wait_is_named),
        RP_TEST_CASE(an_expired_lease_is_drawn_again),
        RP_TEST_CASE(wrong_calls_are_refused),
        RP_TEST_CASE_OVER(ONE_SERVER, a_client_that_ends_releases_its_draw),
    };
    return rp_test_over_transports(RP_TEST_REPRISE, cases, COUNT_OF(cases));
}
