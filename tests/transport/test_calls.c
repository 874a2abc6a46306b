/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a client over every transport: priorities, tables, who waits and why. */
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "support/transports.h"

static const char *make_weighted(rp_test_transport *t)
{
    return rp_test_make_table(
        t, &(rp_table_options){.limiter = rp_limiter_min_size(1),
                               .sampler = {.kind = RP_PRIORITIZED, .exponent = 2},
                               .remover = {.kind = RP_LIFO},
                               .max_size = 50});
}

static rp_status mutate(rp_test_transport *t, const char *table, const rp_update *updates,
                        size_t update_count, const uint64_t *deletes, size_t delete_count)
{
    return rp_client_mutate(t->client, table,
                            &(rp_mutation){.updates = updates,
                                           .update_count = update_count,
                                           .deletes = deletes,
                                           .delete_count = delete_count},
                            rp_test_soon(), &t->err);
}

static void priorities_and_deletes_find_their_shard(rp_test_transport *t)
{
    enum { ITEMS = 30 };
    const char *table = make_weighted(t);
    uint64_t keys[ITEMS], deletes[ITEMS];
    rp_update updates[ITEMS];
    rp_sample out[40];

    rp_test_fill_table(t, table, 0, ITEMS, keys);
    assert_true(fabs(rp_test_table_sum(t, table).total_weight - ITEMS) < 1e-9);
    for (size_t i = 0; i < ITEMS; i++) updates[i] = (rp_update){keys[i], i == 17 ? 3 : 0};
    updates[0].key = 12345; /* nobody has it */
    assert_ok_err(mutate(t, table, updates, ITEMS, NULL, 0), &t->err);
    assert_true(fabs(rp_test_table_sum(t, table).total_weight - 10) < 1e-9);
    assert_ok_err(mutate(t, table, NULL, 0, keys, 1), &t->err);
    assert_int_equal(rp_test_table_sum(t, table).info.size, ITEMS - 1);
    rp_test_draw_samples(t, table, 40, out); /* only one weighs something */
    for (size_t i = 0; i < 40; i++) {
        assert_true(out[i].key == keys[17]);
        assert_true(fabs(out[i].probability - 1) < 1e-9);
        assert_true(out[i].priority == 3);
        assert_int_equal(out[i].table_size, ITEMS - 1);
    }
    rp_samples_release(out, 40);
    memcpy(deletes, keys, sizeof keys);
    assert_ok_err(mutate(t, table, NULL, 0, deletes, ITEMS), &t->err);
    assert_int_equal(rp_test_table_sum(t, table).info.size, 0);
    assert_int_equal(rp_test_table_sum(t, table).info.deletes, ITEMS);
}

static void bad_mutations_are_refused(rp_test_transport *t)
{
    const char *table = make_weighted(t);
    rp_update update = {1, (double)NAN};

    assert_fails(mutate(t, "nowhere", NULL, 0, &update.key, 1), RP_NOT_FOUND, &t->err,
                 "nowhere");
    assert_int_equal(mutate(t, table, &update, 1, NULL, 0), RP_INVALID);
    update.priority = -1;
    assert_int_equal(mutate(t, table, &update, 1, NULL, 0), RP_INVALID);
    assert_ok_err(mutate(t, table, NULL, 0, NULL, 0), &t->err);
}

static void a_reset_empties_all(rp_test_transport *t)
{
    const char *table = rp_test_replay(t);

    rp_test_fill_table(t, table, 0, 20, NULL);
    assert_int_equal(rp_test_table_sum(t, table).info.size, 20);
    assert_ok_err(rp_client_reset(t->client, table, rp_test_soon(), &t->err), &t->err);
    assert_int_equal(rp_test_table_sum(t, table).info.size, 0);
    assert_int_equal(rp_test_table_sum(t, table).info.inserts, 0);
    assert_int_equal(rp_client_reset(t->client, "nowhere", rp_test_soon(), &t->err),
                     RP_NOT_FOUND);
    rp_test_fill_table(t, table, 0, 3, NULL);
    assert_int_equal(rp_test_table_sum(t, table).info.size, 3);
}

static const rp_client_table *find(const rp_client_tables *tables, const char *name,
                                   size_t shard)
{
    for (size_t i = 0; i < tables->count; i++)
        if (tables->tables[i].shard == shard && strcmp(tables->tables[i].info.name, name) == 0)
            return &tables->tables[i];
    fail_msg("shard %zu has no '%s'", shard, name);
    return NULL;
}

static void tables_are_described(rp_test_transport *t)
{
    const rp_spec columns[] = {{"a", RP_BOOL, {1, {-1}}}, {"b", RP_STRING, {2, {-1, 4}}}};
    rp_table_options options = {.limiter = rp_limiter_ratio(4, 10, 80),
                                .sampler = {.kind = RP_PRIORITIZED, .exponent = 0.6},
                                .remover = {.kind = RP_MIN_HEAP},
                                .max_size = 1234,
                                .max_times_sampled = 9};
    rp_client_tables *tables = NULL;
    const char *name;

    assert_ok_err(
        rp_signature_flat(rp_allocator_default(), columns, 2, &options.signature, &t->err),
        &t->err);
    name = rp_test_make_table(t, &options);
    rp_signature_unref(options.signature);
    assert_ok_err(rp_client_get_tables(t->client, rp_test_soon(), &tables, &t->err), &t->err);
    for (size_t shard = 0; shard < rp_client_shard_count(t->client); shard++) {
        const rp_table_info *info = &find(tables, name, shard)->info;

        assert_int_equal(info->sampler.kind, RP_PRIORITIZED);
        assert_true(info->sampler.exponent == 0.6);
        assert_int_equal(info->remover.kind, RP_MIN_HEAP);
        assert_int_equal(info->max_size, 1234);
        assert_int_equal(info->max_times_sampled, 9);
        assert_true(info->limiter.samples_per_insert == 4);
        assert_int_equal(info->limiter.min_size, 10);
        assert_non_null(info->signature);
        assert_int_equal(rp_signature_column_count(info->signature), 2);
        assert_string_equal(rp_signature_column(info->signature, 1)->name, "b");
        assert_int_equal(rp_signature_column(info->signature, 1)->dtype, RP_STRING);
        assert_int_equal(rp_signature_column(info->signature, 1)->shape.dims[1], 4);
        assert_true(rp_client_shard_address(t->client, shard)[0] != 0);
    }
    rp_client_tables_free(tables);
    options.signature = NULL;
    options.name = name;
    assert_fails(rp_client_create_table(t->client, &options, rp_test_soon(), &t->err),
                 RP_EXISTS, &t->err, name);
    options.name = "bad";
    options.max_size = 0;
    assert_int_equal(rp_client_create_table(t->client, &options, rp_test_soon(), &t->err),
                     RP_INVALID);
}

static void tables_can_be_altered(rp_test_transport *t)
{
    const char *table = rp_test_replay(t);
    rp_table_alteration change = {.which = RP_ALTER_MAX_SIZE, .max_size = 5};
    size_t shards = rp_client_shard_count(t->client);

    rp_test_fill_table(t, table, 0, 60, NULL);
    assert_ok_err(rp_client_alter_table(t->client, table, &change, rp_test_soon(), &t->err),
                  &t->err);
    assert_int_equal(rp_test_table_sum(t, table).info.size, 5 * shards);
    assert_int_equal(rp_test_table_sum(t, table).info.max_size, 5);
    change.max_size = 0;
    assert_int_equal(rp_client_alter_table(t->client, table, &change, rp_test_soon(), &t->err),
                     RP_INVALID);
    assert_int_equal(
        rp_client_alter_table(t->client, "nowhere", &change, rp_test_soon(), &t->err),
        RP_NOT_FOUND);
}

static void a_dropped_table_ends_its_samplers(rp_test_transport *t)
{
    const char *table = rp_test_bag(t);
    rp_sampler *sampler = rp_test_sampler(t, table, 0);
    rp_sample one;
    size_t n;
    rp_status st;

    if (t->way != RP_TEST_SHARDS) rp_test_await_waiting(t, table, 1);
    rp_test_drop_tables(t);
    st = rp_sampler_next(sampler, &one, 1, &n, rp_test_soon(), &t->err);
    assert_true(st == RP_CANCELLED || st == RP_NOT_FOUND);
    rp_sampler_free(sampler);
    assert_int_equal(rp_client_drop_table(t->client, "nowhere", rp_test_soon(), &t->err),
                     RP_NOT_FOUND);
}

static void why_lists_waiting_calls_with_their_reason(rp_test_transport *t)
{
    const char *table = rp_test_bag(t), *other = rp_test_bag(t);
    rp_client_waiting waiting[20];
    rp_trajectory_writer *w = rp_test_writer(t, 4, 1);
    rp_client_blocked blocked = {.calls = waiting, .capacity = 20, .count = 9, .total = 9};
    rp_ref ref;

    assert_ok_err(rp_client_why_blocked(t->client, table, &blocked, rp_test_soon(), &t->err),
                  &t->err);
    assert_int_equal(blocked.count, 0);
    assert_int_equal(blocked.total, 0);
    assert_ok_err(
        rp_client_pause_table(t->client, table, RP_SIDE_INSERTS, rp_test_soon(), &t->err),
        &t->err);
    assert_int_equal(rp_test_table_sum(t, table).info.paused, RP_SIDE_INSERTS);
    ref = rp_test_append(t, w, 1);
    (void)rp_test_create(t, w, table, 1, &ref, 1);
    assert_int_equal(rp_trajectory_writer_flush(w, 0, rp_wait_ms(1), &t->err), RP_DEADLINE);
    rp_test_await_waiting(t, table, 1);
    assert_ok_err(rp_client_why_blocked(t->client, NULL, &blocked, rp_test_soon(), &t->err),
                  &t->err);
    assert_int_equal(blocked.total, 1);
    assert_int_equal(blocked.count, 1);
    assert_string_equal(waiting[0].table, table);
    assert_true(waiting[0].waiting.is_insert);
    assert_non_null(strstr(waiting[0].waiting.why, "paused"));
    assert_ok_err(rp_client_why_blocked(t->client, other, &blocked, rp_test_soon(), &t->err),
                  &t->err);
    assert_int_equal(blocked.count, 0);
    assert_int_equal(
        rp_client_why_blocked(t->client, "nowhere", &blocked, rp_test_soon(), &t->err),
        RP_NOT_FOUND);
    assert_ok_err(
        rp_client_resume_table(t->client, table, RP_SIDE_INSERTS, rp_test_soon(), &t->err),
        &t->err);
    rp_test_flush(t, w);
    rp_trajectory_writer_free(w);
}

/* A queue holds up its writer until somebody takes something out. */
static void a_full_queue_blocks_its_writer(rp_test_transport *t)
{
    enum { ITEMS = 60 };
    const char *queue = rp_test_make_table(
        t, &(rp_table_options){
               .limiter = rp_limiter_queue(4), .max_size = 4, .max_times_sampled = 1});
    size_t shards = rp_client_shard_count(t->client);
    rp_trajectory_writer *w = rp_test_writer(t, 4, 1);
    uint64_t keys[ITEMS];
    rp_sample out[ITEMS];

    for (int32_t i = 0; i < ITEMS; i++) {
        rp_ref ref = rp_test_append(t, w, i);

        keys[i] = rp_test_create(t, w, queue, 1, &ref, 1);
    }
    assert_int_equal(rp_trajectory_writer_flush(w, 0, rp_wait_ms(50), &t->err), RP_DEADLINE);
    rp_test_await_waiting(t, queue, shards);
    assert_int_equal(rp_test_table_sum(t, queue).info.size, 4 * shards);
    rp_test_take_keys(t, queue, keys, ITEMS, out);
    for (int32_t i = 0; i < ITEMS; i++) RP_TEST_EXPECT_INTS(t, &out[i], 0, i);
    rp_samples_release(out, ITEMS);
    rp_test_flush(t, w);
    rp_trajectory_writer_free(w);
}

/* In process nothing is waited for. */
enum { SERVERS = (1 << RP_TEST_WAYS) - 1 - (1 << RP_TEST_LOCAL) }; /* as ways */

/* A token that has been fired ends every call before it does anything, as no time does. */
static void calls_can_be_cancelled(rp_test_transport *t)
{
    const char *table = rp_test_replay(t);
    rp_client_tables *tables = NULL;
    rp_wait wait = {RP_FOREVER, NULL};
    rp_client_blocked blocked = {0};
    uint64_t key = 1;

    assert_ok(rp_cancel_new(&wait.cancel));
    rp_cancel_fire(wait.cancel);
    assert_int_equal(rp_client_get_tables(t->client, wait, &tables, &t->err), RP_CANCELLED);
    assert_int_equal(rp_client_mutate(t->client, table,
                                      &(rp_mutation){.deletes = &key, .delete_count = 1}, wait,
                                      &t->err),
                     RP_CANCELLED);
    assert_int_equal(rp_client_reset(t->client, table, wait, &t->err), RP_CANCELLED);
    assert_int_equal(rp_client_pause_table(t->client, table, 1, wait, &t->err), RP_CANCELLED);
    assert_int_equal(rp_client_why_blocked(t->client, table, &blocked, wait, &t->err),
                     RP_CANCELLED);
    assert_int_equal(rp_client_checkpoint(t->client, wait, NULL, &t->err), RP_CANCELLED);
    assert_int_equal(rp_client_get_tables(t->client, rp_wait_none(), &tables, &t->err),
                     RP_DEADLINE);
    rp_cancel_free(wait.cancel);
    assert_int_equal(rp_test_table_sum(t, table).info.paused, 0);
}

/* The server of the tests has nowhere to write to. */
static void checkpoint_without_a_checkpointer_is_refused(rp_test_transport *t)
{
    char *path = NULL;
    rp_status st = rp_client_checkpoint(t->client, rp_test_soon(), &path, &t->err);

    assert_true(st == RP_INVALID || st == RP_UNIMPLEMENTED || st == RP_PRECONDITION);
    assert_true(t->err.text[0] != 0);
}

RP_TESTS(calls)
{
    static const rp_test_case cases[] = {
        RP_TEST_CASE(priorities_and_deletes_find_their_shard),
        RP_TEST_CASE(bad_mutations_are_refused),
        RP_TEST_CASE(a_reset_empties_all),
        RP_TEST_CASE(tables_are_described),
        RP_TEST_CASE(tables_can_be_altered),
        RP_TEST_CASE(a_dropped_table_ends_its_samplers),
        RP_TEST_CASE(why_lists_waiting_calls_with_their_reason),
        RP_TEST_CASE(a_full_queue_blocks_its_writer),
        RP_TEST_CASE_OVER(SERVERS, calls_can_be_cancelled),
        RP_TEST_CASE(checkpoint_without_a_checkpointer_is_refused),
    };
    return rp_test_over_transports(RP_TEST_REPRISE, cases, COUNT_OF(cases));
}
