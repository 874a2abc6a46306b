/* SPDX-License-Identifier: Apache-2.0 */
/* NULL for a required struct, array, store or client is refused with a text. */
#include <stdlib.h>
#include <string.h>

#include "reprise/reprise.h"
#include "support/fixture.h"

typedef struct rig {
    rp_store *store;
    rp_table *table;
    rp_client *client;
    rp_error err;
} rig;

static const rp_table_options options = {
    .name = "t",
    .sampler = {.kind = RP_UNIFORM},
    .remover = {.kind = RP_FIFO},
    .limiter = {.samples_per_insert = 1, .min_size = 1, .min_diff = -1e300, .max_diff = 1e300},
    .max_size = 10};

static void open_rig(rig *g)
{
    *g = (rig){0};
    assert_ok_err(rp_store_new(NULL, &g->store, &g->err), &g->err);
    assert_ok_err(rp_store_add_table(g->store, &options, &g->table, &g->err), &g->err);
    assert_ok_err(rp_client_local(g->store, NULL, &g->client, &g->err), &g->err);
}

static void close_rig(rig *g)
{
    rp_client_free(g->client);
    rp_store_free(g->store);
}

#define REFUSED(call, part) assert_fails(call, RP_INVALID, &g.err, part)

static void null_for_tables_is_refused(void **state)
{
    rp_sample sample;
    size_t count;
    rig g;
    (void)state;
    open_rig(&g);

    REFUSED(rp_store_add_table(NULL, &options, NULL, &g.err), "no store is given");
    REFUSED(rp_store_add_table(g.store, NULL, NULL, &g.err), "no table options are given");
    REFUSED(rp_table_insert(g.table, NULL, 1, rp_wait_none(), NULL, &g.err),
            "table 't': `items` is NULL, count 1");
    REFUSED(rp_table_sample(g.table, NULL, &sample, &count, rp_wait_none(), &g.err),
            "table 't': no sample options");
    REFUSED(rp_table_sample(g.table, &(rp_sample_options){.count = 1}, NULL, &count,
                            rp_wait_none(), &g.err),
            "table 't': no array of samples");
    REFUSED(rp_table_alter(g.table, NULL, &g.err), "no alteration is given");
    close_rig(&g);
}

static void null_for_calls_of_a_client_is_refused(void **state)
{
    rig g;
    (void)state;
    open_rig(&g);

    REFUSED(rp_client_mutate(g.client, "t", NULL, rp_wait_none(), &g.err),
            "table 't': no mutation is given");
    REFUSED(rp_client_alter_table(g.client, "t", NULL, rp_wait_none(), &g.err),
            "table 't': no alteration is given");
    REFUSED(rp_client_rollouts(g.client, NULL, rp_wait_none(), &g.err), "no call is given");
    close_rig(&g);
}

static void null_for_the_client_of_a_writer_or_sampler_is_refused(void **state)
{
    const rp_trajectory_writer_options trajectory = {.column = {.history = 1}};
    const rp_step_writer_options step = {.max_sequence_length = 1};
    const rp_pattern_node node = {.has_stop = true, .stop = -1};
    const rp_pattern pattern = {.table = "t", .nodes = &node, .node_count = 1};
    rp_trajectory_writer *w = NULL;
    rp_step_writer *s = NULL;
    rp_structured_writer *p = NULL;
    rp_batch_writer *b = NULL;
    rp_sampler *sampler = NULL;
    rig g = {0};
    (void)state;

    REFUSED(rp_trajectory_writer_new(NULL, &trajectory, rp_wait_none(), &w, &g.err),
            "trajectory writer: no client");
    REFUSED(rp_step_writer_new(NULL, &step, rp_wait_none(), &s, &g.err),
            "step writer: no client");
    REFUSED(rp_structured_writer_new(NULL, &pattern, 1, NULL, &p, &g.err),
            "structured writer: no client");
    REFUSED(rp_batch_writer_new(NULL, 2, &pattern, 1, NULL, &b, &g.err),
            "batch writer: no client");
    REFUSED(rp_sampler_new(NULL, &(rp_sampler_options){.table = "t"}, &sampler, &g.err),
            "sampler: no client");
}

static void null_for_items_and_steps_is_refused(void **state)
{
    const rp_trajectory_writer_options trajectory = {.column = {.history = 1}};
    const rp_step_writer_options steps = {.max_sequence_length = 1};
    const rp_item_column column = {.count = 1, .name = "x"};
    rp_trajectory_writer *w = NULL;
    rp_step_writer *s = NULL;
    rig g;
    (void)state;
    open_rig(&g);
    assert_ok_err(rp_trajectory_writer_new(g.client, &trajectory, rp_wait_none(), &w, &g.err),
                  &g.err);
    assert_ok_err(rp_step_writer_new(g.client, &steps, rp_wait_none(), &s, &g.err), &g.err);

#define CREATE(item) rp_trajectory_writer_create_item(w, item, rp_wait_none(), NULL, &g.err)
    REFUSED(CREATE(NULL), "no item is given");
    REFUSED(CREATE(&((rp_new_item){"t", 1, NULL, 2})),
            "table 't': `columns` is NULL, column_count 2");
    REFUSED(CREATE(&((rp_new_item){"t", 1, &column, 1})),
            "column 0 'x': `refs` is NULL, count 1");
#undef CREATE
    REFUSED(rp_trajectory_writer_append(w, NULL, 1, 0, NULL, &g.err),
            "append: `values` is NULL, count 1");
    REFUSED(rp_step_writer_append(s, NULL, 2, &g.err),
            "append: the step is NULL, with column_count 2");
    REFUSED(rp_step_writer_append_sequence(s, NULL, 2, &g.err),
            "append: the step is NULL, with column_count 2");
    rp_step_writer_free(s);
    rp_trajectory_writer_free(w);
    close_rig(&g);
}

static void null_for_values_of_patterns_is_refused(void **state)
{
    const rp_pattern_node node = {.has_stop = true, .stop = -1};
    const rp_pattern pattern = {
        .table = "t", .nodes = &node, .node_count = 1, .priority = {.value = 1}};
    rp_structured_writer *p = NULL;
    rp_batch_writer *b = NULL;
    rig g;
    (void)state;
    open_rig(&g);
    assert_ok_err(rp_structured_writer_new(g.client, &pattern, 1, NULL, &p, &g.err), &g.err);
    assert_ok_err(rp_batch_writer_new(g.client, 2, &pattern, 1, NULL, &b, &g.err), &g.err);

    REFUSED(rp_structured_writer_append(p, NULL, 1, 0, rp_wait_none(), &g.err),
            "append: `values` is NULL, count 1");
    REFUSED(rp_batch_writer_append(b, NULL, 1, NULL, rp_wait_none(), &g.err),
            "append: `values` is NULL, count 1");
    rp_batch_writer_free(b);
    rp_structured_writer_free(p);
    close_rig(&g);
}

/* Inserts an item of one float32 in the column 0. */
static void insert(rig *g)
{
    const rp_trajectory_writer_options trajectory = {.column = {.history = 1}};
    const float x = 1;
    const rp_value value = {0, NULL, {RP_FLOAT32, {0, {0}}, &x}};
    rp_trajectory_writer *w = NULL;
    rp_ref ref;
    const rp_item_column column = {&ref, 1, true, NULL};

    assert_ok_err(rp_trajectory_writer_new(g->client, &trajectory, rp_wait_none(), &w, &g->err),
                  &g->err);
    assert_ok_err(rp_trajectory_writer_append(w, &value, 1, 0, &ref, &g->err), &g->err);
    assert_ok_err(rp_trajectory_writer_create_item(w, &(rp_new_item){"t", 1, &column, 1},
                                                   rp_wait_ms(120000), NULL, &g->err),
                  &g->err);
    assert_ok_err(rp_trajectory_writer_flush(w, 0, rp_wait_ms(120000), &g->err), &g->err);
    rp_trajectory_writer_free(w);
}

static void null_for_samples_and_decoded_data_is_refused(void **state)
{
    rp_decoder *decoder = NULL;
    rp_sampler *sampler = NULL;
    const rp_trajectory *trajectory;
    rp_sample sample;
    size_t count;
    rig g;
    (void)state;
    open_rig(&g);
    insert(&g);
    assert_ok_err(
        rp_sampler_new(g.client, &(rp_sampler_options){.table = "t"}, &sampler, &g.err),
        &g.err);
    assert_ok(rp_decoder_new(NULL, 0, &decoder));

    REFUSED(rp_sampler_next(sampler, NULL, 1, &count, rp_wait_ms(120000), &g.err),
            "sampler of 't': no array of samples");
    REFUSED(rp_sampler_next(sampler, &sample, 1, NULL, rp_wait_ms(120000), &g.err),
            "sampler of 't': no `count`");
    REFUSED(
        rp_sampler_batch(sampler, 1, RP_RAGGED_REFUSE, false, rp_wait_ms(120000), NULL, &g.err),
        "sampler of 't': no `out`");
    assert_ok_err(rp_sampler_next(sampler, &sample, 1, &count, rp_wait_ms(120000), &g.err),
                  &g.err);
    trajectory = sample.trajectory;
    REFUSED(rp_decoder_stack(decoder, &trajectory, 1, 0, NULL, sizeof(float), &g.err),
            "column 0: `dst` is NULL");
    rp_samples_release(&sample, 1);
    rp_decoder_free(decoder);
    rp_sampler_free(sampler);
    close_rig(&g);
}

static void null_for_signatures_is_refused(void **state)
{
    rp_signature *signature = NULL;
    rig g = {0};
    (void)state;

    REFUSED(rp_signature_new(NULL, NULL, 2, &signature, &g.err),
            "signature: `nodes` is NULL, node_count 2");
    REFUSED(rp_signature_flat(NULL, NULL, 2, &signature, &g.err),
            "signature: `columns` is NULL, column_count 2");
}

static void null_for_tables_of_a_client_is_refused(void **state)
{
    rp_client_connections connections = {.capacity = 4};
    rp_client_blocked blocked = {.capacity = 4};
    size_t count;
    rig g;
    (void)state;
    open_rig(&g);

    REFUSED(rp_client_create_table(g.client, NULL, rp_wait_none(), &g.err),
            "no table options are given");
    REFUSED(rp_store_drop_table(g.store, (rp_string){NULL, 5}, &g.err),
            "no table name is given");
    REFUSED(rp_client_get_durability(g.client, NULL, 4, &count, rp_wait_none(), &g.err),
            "`out` is NULL, capacity 4");
    REFUSED(rp_client_why_blocked(g.client, NULL, &blocked, rp_wait_none(), &g.err),
            "`calls` is NULL, capacity 4");
    REFUSED(rp_client_get_connections(g.client, &connections, rp_wait_none(), &g.err),
            "`list` is NULL, capacity 4");
    REFUSED(rp_client_why_blocked(g.client, NULL, NULL, rp_wait_none(), &g.err),
            "no list of calls is given");
    REFUSED(rp_client_get_connections(g.client, NULL, rp_wait_none(), &g.err),
            "no list of connections is given");
    assert_null(rp_store_find_table(g.store, (rp_string){NULL, 3}));
    close_rig(&g);
}

static void null_for_shapes_and_trajectories_is_refused(void **state)
{
    rp_decoder *decoder = NULL;
    size_t count = 0;
    float x = 0;
    rp_string text;
    rig g = {0};
    (void)state;
    assert_ok(rp_decoder_new(NULL, 0, &decoder));

    assert_int_equal(rp_shape_elements(NULL, &count), RP_INVALID);
    REFUSED(rp_decoder_stack(decoder, NULL, 1, 0, &x, sizeof x, &g.err),
            "`trajectories` is NULL, count 1");
    REFUSED(rp_decoder_stack_strings(decoder, NULL, 1, 0, &text, 1, &g.err),
            "`trajectories` is NULL, count 1");
    rp_decoder_free(decoder);
}

static void null_for_the_memory_of_a_batch_is_refused(void **state)
{
    rp_sampler *sampler = NULL;
    rp_batch *batch = NULL;
    size_t bytes = sizeof(float);
    float x = 0;
    void *dst = &x;
    rig g;
    (void)state;
    open_rig(&g);
    insert(&g);
    assert_ok_err(
        rp_sampler_new(g.client, &(rp_sampler_options){.table = "t"}, &sampler, &g.err),
        &g.err);
    assert_ok_err(rp_sampler_batch(sampler, 1, RP_RAGGED_REFUSE, true, rp_wait_ms(120000),
                                   &batch, &g.err),
                  &g.err);

    REFUSED(rp_batch_decode(batch, NULL, &bytes, &g.err),
            "`dst` is NULL, and the batch has 1 column");
    REFUSED(rp_batch_decode(batch, &dst, NULL, &g.err),
            "`dst_bytes` is NULL, and the batch has 1 column");
    assert_ok_err(rp_batch_decode(batch, &dst, &bytes, &g.err), &g.err);
    assert_true(x == 1);
    rp_batch_free(batch);
    rp_sampler_free(sampler);
    close_rig(&g);
}

static void null_for_durable_and_data_is_refused(void **state)
{
    rp_data_summary summary;
    rp_durable *durable = NULL;
    rig g;
    (void)state;
    open_rig(&g);

    REFUSED(rp_durable_open(NULL, g.store, &durable, &g.err), "durable: no options");
    REFUSED(rp_durable_open(&(rp_durable_options){.directory = "d"}, NULL, &durable, &g.err),
            "durable: no store");
    REFUSED(rp_data_look(NULL, &summary, &g.err), "no options are given");
    REFUSED(rp_data_look(&(rp_data_look_options){0}, &summary, &g.err),
            "no directory is given");
    REFUSED(rp_data_dump(NULL, &g.err), "no options are given");
    REFUSED(rp_data_dump(&(rp_data_dump_options){0}, &g.err), "no directory is given");
#define NO_TO (&(rp_data_move_options){.from = "d"})
#define NO_FROM (&(rp_data_move_options){.to = "d"})
    REFUSED(rp_data_salvage(NULL, NULL, &g.err), "no options are given");
    REFUSED(rp_data_salvage(NO_FROM, NULL, &g.err), "no directory is given as `from`");
    REFUSED(rp_data_from_reverb(NULL, NULL, &g.err), "no options are given");
    REFUSED(rp_data_from_reverb(NO_TO, NULL, &g.err), "no directory is given as `to`");
    REFUSED(rp_data_to_reverb(NULL, NULL, &g.err), "no options are given");
    REFUSED(rp_data_to_reverb(NO_TO, NULL, &g.err), "no directory is given as `to`");
#undef NO_FROM
#undef NO_TO
    close_rig(&g);
}

#define TEXT(text) ((rp_string){text, strlen(text)})
#define CALL(...)                                                                              \
    rp_client_rollouts(g.client, &(rp_rollouts_call){.rollouts = TEXT("r"), __VA_ARGS__},      \
                       rp_wait_none(), &g.err)

static void null_for_rollouts_is_refused(void **state)
{
    const rp_string none = {NULL, 4};
    const float x = 1;
    const rp_rollout_column no_name = {{NULL, 4}, {RP_FLOAT32, {0, {0}}, &x}};
    const rp_rollout_column no_data = {{"a", 1}, {RP_FLOAT32, {1, {3}}, NULL}};
    const rp_rollout_consumer needs = {.name = {"c", 1}, .column_count = 3};
    rp_rollout_options consumers, columns;
    rp_rollout_ragged ragged;
    rig g;
    (void)state;
    open_rig(&g);
    rp_rollout_options_init(&consumers);
    consumers.consumer_count = 2;
    rp_rollout_options_init(&columns);
    columns.consumers = &needs;
    columns.consumer_count = 1;

    REFUSED(CALL(.action = RP_ROLLOUTS_PUT, .group = TEXT("g"), .column_count = 1),
            "`columns` is NULL, column_count 1");
    REFUSED(CALL(.action = RP_ROLLOUTS_UPDATE, .group = TEXT("g"), .column_count = 1),
            "`columns` is NULL, column_count 1");
    REFUSED(CALL(.action = RP_ROLLOUTS_PUT, .group = TEXT("g"), .columns = &no_name,
                 .column_count = 1),
            "the name of a column is NULL, size 4");
    REFUSED(CALL(.action = RP_ROLLOUTS_PUT, .group = TEXT("g"), .columns = &no_data,
                 .column_count = 1),
            "column 'a': `data` is NULL, with 12 bytes");
    REFUSED(CALL(.action = RP_ROLLOUTS_PUT, .group = none), "the name of the group is NULL");
    REFUSED(CALL(.action = RP_ROLLOUTS_DRAW, .consumer = none, .groups = 1, .ttl_ns = 1),
            "the name of a consumer is NULL, size 4");
    REFUSED(CALL(.action = RP_ROLLOUTS_SET_CURSOR, .cursor = TEXT("c"), .data_size = 4),
            "`data` is NULL, data_size 4");
    REFUSED(CALL(.action = RP_ROLLOUTS_SET_CURSOR, .cursor = none),
            "the name of the cursor is NULL");
    REFUSED(CALL(.action = RP_ROLLOUTS_CREATE, .options = &consumers),
            "`consumers` is NULL, consumer_count 2");
    REFUSED(CALL(.action = RP_ROLLOUTS_CREATE, .options = &columns),
            "consumer 'c': `columns` is NULL, column_count 3");
    REFUSED(rp_client_rollouts(
                g.client, &(rp_rollouts_call){.action = RP_ROLLOUTS_DROP, .rollouts = none},
                rp_wait_none(), &g.err),
            "the name of the rollouts is NULL");
    REFUSED(rp_rollout_ragged_measure(NULL, 3, TEXT("a"), &ragged, &g.err),
            "`items` is NULL, count 3");
    close_rig(&g);
}

static void null_for_rows_and_stacks_is_refused(void **state)
{
    const rp_trajectory_writer_options trajectory = {.column = {.history = 1}};
    const float x = 1;
    const rp_value value = {0, "x", {RP_FLOAT32, {0, {0}}, &x}};
    rp_trajectory_writer *w = NULL;
    rp_sampler *sampler = NULL;
    rp_sample sample;
    size_t count;
    rp_ref ref;
    rig g;
    (void)state;
    open_rig(&g);
    assert_ok_err(rp_trajectory_writer_new(g.client, &trajectory, rp_wait_none(), &w, &g.err),
                  &g.err);
    assert_ok_err(
        rp_sampler_new(g.client, &(rp_sampler_options){.table = "t"}, &sampler, &g.err),
        &g.err);

    REFUSED(rp_trajectory_writer_configure(w, 0, "x", NULL, &g.err),
            "column 0 'x': no options are given");
    assert_ok_err(rp_trajectory_writer_append(w, &value, 1, 0, &ref, &g.err), &g.err);
    REFUSED(rp_trajectory_writer_copy(w, ref, NULL, sizeof x, &g.err),
            "`dst` is NULL, bytes 4");
    REFUSED(rp_sampler_stack(sampler, NULL, &count, rp_wait_none(), &g.err),
            "sampler of 't': no stack");
    REFUSED(rp_sampler_stack(sampler,
                             &(rp_stack){.column_count = 1, .samples = &sample, .size = 1},
                             &count, rp_wait_none(), &g.err),
            "sampler of 't': `columns` of a stack is NULL");
    rp_sampler_free(sampler);
    rp_trajectory_writer_free(w);
    close_rig(&g);
}

static void null_for_parts_of_patterns_is_refused(void **state)
{
    const rp_pattern_node node = {.has_stop = true, .stop = -1};
    const rp_pattern no_nodes = {.table = "t", .node_count = 1};
    const rp_pattern no_conditions = {
        .table = "t", .nodes = &node, .node_count = 1, .condition_count = 1};
    rp_structured_writer *p = NULL;
    rig g;
    (void)state;
    open_rig(&g);

    REFUSED(rp_structured_writer_new(g.client, &no_nodes, 1, NULL, &p, &g.err),
            "`nodes` is NULL, node_count 1");
    REFUSED(rp_structured_writer_new(g.client, &no_conditions, 1, NULL, &p, &g.err),
            "`conditions` is NULL, condition_count 1");
    close_rig(&g);
}

static void unknown_flags_of_an_append_are_refused(void **state)
{
    const rp_trajectory_writer_options trajectory = {.column = {.history = 1}};
    rp_trajectory_writer *w = NULL;
    rig g;
    (void)state;
    open_rig(&g);
    assert_ok_err(rp_trajectory_writer_new(g.client, &trajectory, rp_wait_none(), &w, &g.err),
                  &g.err);

    REFUSED(rp_trajectory_writer_append(w, NULL, 0, 64, NULL, &g.err),
            "append: flags must be 0 or RP_STEP_OPEN (1), got 64");
    assert_int_equal(rp_trajectory_writer_steps(w), 0);
    rp_trajectory_writer_free(w);
    close_rig(&g);
}

RP_TESTS(null_arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_for_tables_is_refused),
        cmocka_unit_test(null_for_calls_of_a_client_is_refused),
        cmocka_unit_test(null_for_the_client_of_a_writer_or_sampler_is_refused),
        cmocka_unit_test(null_for_items_and_steps_is_refused),
        cmocka_unit_test(null_for_values_of_patterns_is_refused),
        cmocka_unit_test(null_for_samples_and_decoded_data_is_refused),
        cmocka_unit_test(null_for_signatures_is_refused),
        cmocka_unit_test(null_for_tables_of_a_client_is_refused),
        cmocka_unit_test(null_for_shapes_and_trajectories_is_refused),
        cmocka_unit_test(null_for_the_memory_of_a_batch_is_refused),
        cmocka_unit_test(null_for_durable_and_data_is_refused),
        cmocka_unit_test(null_for_rollouts_is_refused),
        cmocka_unit_test(null_for_rows_and_stacks_is_refused),
        cmocka_unit_test(null_for_parts_of_patterns_is_refused),
        cmocka_unit_test(unknown_flags_of_an_append_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
