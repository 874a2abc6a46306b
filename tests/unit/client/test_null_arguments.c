/* SPDX-License-Identifier: Apache-2.0 */
/* NULL for a required struct, array, store or client is refused with a text. */
#include <stdlib.h>

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
        cmocka_unit_test(unknown_flags_of_an_append_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
