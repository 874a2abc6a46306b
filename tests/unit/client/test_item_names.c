/* SPDX-License-Identifier: Apache-2.0 */
/* Names of an item's columns, compared with those of the table's signature. */
#include <stdlib.h>

#include "client/writer/item_names.h"
#include "reprise/reprise.h"
#include "support/fixture.h"

typedef struct rig {
    rp_store *store;
    rp_client *client;
    rp_error err;
} rig;

static const rp_spec specs[] = {{"obs", RP_FLOAT32, {0, {0}}},
                                {"action", RP_FLOAT32, {0, {0}}}};
static const rp_spec mixed[] = {{"obs", RP_FLOAT32, {0, {0}}}, {"action", RP_INT32, {0, {0}}}};

/* Adds a table whose signature is a dict: its columns are sorted to action, obs. */
static void add_table(rig *g, const char *name, const rp_spec *columns)
{
    rp_table_options o = {.name = name,
                          .sampler = {.kind = RP_UNIFORM},
                          .remover = {.kind = RP_FIFO},
                          .limiter = rp_limiter_min_size(1),
                          .max_size = 100};

    assert_ok(rp_signature_flat(NULL, columns, 2, &o.signature, &g->err));
    assert_ok_err(rp_store_add_table(g->store, &o, NULL, &g->err), &g->err);
    rp_signature_unref(o.signature);
}

static void open_rig(rig *g)
{
    *g = (rig){0};
    assert_ok_err(rp_store_new(NULL, &g->store, &g->err), &g->err);
    add_table(g, "t", specs);
    add_table(g, "mixed", mixed);
    assert_ok_err(rp_client_local(g->store, NULL, &g->client, &g->err), &g->err);
}

static void close_rig(rig *g)
{
    rp_client_free(g->client);
    rp_store_free(g->store);
}

static int64_t items_of(rig *g, const char *table)
{
    rp_client_tables *tables = NULL;
    int64_t size;

    assert_ok_err(rp_client_get_table(g->client, table, rp_wait_ms(120000), &tables, &g->err),
                  &g->err);
    size = tables->tables[0].info.size;
    rp_client_tables_free(tables);
    return size;
}

/* Creates an item of two floats whose columns have these names. */
static rp_status create(rig *g, const char *table, const char *first, const char *second,
                        bool unchecked)
{
    const rp_trajectory_writer_options options = {.column = {.history = 1},
                                                  .unchecked = unchecked};
    const float x[] = {1, 9};
    const rp_value values[] = {{0, NULL, {RP_FLOAT32, {0, {0}}, &x[0]}},
                               {1, NULL, {RP_FLOAT32, {0, {0}}, &x[1]}}};
    rp_trajectory_writer *w = NULL;
    rp_ref refs[2];
    rp_item_column columns[] = {{&refs[0], 1, true, first}, {&refs[1], 1, true, second}};
    const rp_new_item item = {table, 1, columns, 2};
    rp_status st;

    assert_ok_err(
        rp_trajectory_writer_new(g->client, &options, rp_wait_ms(120000), &w, &g->err),
        &g->err);
    assert_ok_err(rp_trajectory_writer_append(w, values, 2, 0, refs, &g->err), &g->err);
    st = rp_trajectory_writer_create_item(w, &item, rp_wait_ms(120000), NULL, &g->err);
    if (st == RP_OK) st = rp_trajectory_writer_flush(w, 0, rp_wait_ms(120000), &g->err);
    rp_trajectory_writer_free(w);
    return st;
}

static void columns_in_another_order_are_refused(void **state)
{
    rig g;
    (void)state;
    open_rig(&g);

    assert_fails(
        create(&g, "t", "obs", "action", false), RP_INVALID, &g.err,
        "table 't': column 0 is 'obs', the signature has 'action' there; the order is: "
        "action, obs");
    assert_fails(create(&g, "t", NULL, "reward", false), RP_INVALID, &g.err,
                 "column 1 is 'reward', the signature has 'obs' there");
    assert_int_equal(items_of(&g, "t"), 0);
    assert_ok_err(create(&g, "t", "action", "obs", false), &g.err);
    assert_int_equal(items_of(&g, "t"), 1);
    close_rig(&g);
}

static void a_wrong_order_is_named_before_a_wrong_dtype(void **state)
{
    rig g;
    (void)state;
    open_rig(&g);

    assert_fails(create(&g, "mixed", "obs", "action", false), RP_INVALID, &g.err,
                 "column 0 is 'obs', the signature has 'action' there");
    assert_fails(create(&g, "mixed", "action", "obs", false), RP_INVALID, &g.err,
                 "column 0 'action': got dtype float32 but expected int32");
    close_rig(&g);
}

static void columns_without_names_are_matched_by_position(void **state)
{
    rig g;
    (void)state;
    open_rig(&g);

    assert_ok_err(create(&g, "t", NULL, NULL, false), &g.err);
    assert_ok_err(create(&g, "t", "", NULL, false), &g.err);
    assert_ok_err(create(&g, "t", "0", "1", false), &g.err); /* positions, as in a list */
    assert_ok_err(create(&g, "t", "obs", "action", true), &g.err);
    assert_int_equal(items_of(&g, "t"), 4);
    close_rig(&g);
}

/* Returns the result for one column of this name, and a signature of a dict that has, at
 * `outer`, a list of a dict with the key `inner`. */
static rp_status nested(const char *name)
{
    const rp_nest_node nodes[] = {
        {.kind = RP_NEST_DICT, .child_count = 1},
        {.kind = RP_NEST_LIST, .key = "outer", .child_count = 1},
        {.kind = RP_NEST_DICT, .child_count = 1},
        {.kind = RP_NEST_LEAF, .key = "inner", .spec = {NULL, RP_FLOAT32, {0, {0}}}},
    };
    const rp_item_column column = {.name = name};
    rp_signature *s = NULL;
    rp_status st;

    assert_ok(rp_signature_new(NULL, nodes, COUNT_OF(nodes), &s, NULL));
    st = rp_item_names_check(s, &column, NULL);
    rp_signature_unref(s);
    return st;
}

static void paths_are_compared_part_by_part(void **state)
{
    (void)state;
    assert_int_equal(nested("outer/0/inner"), RP_OK);
    assert_int_equal(nested("outer/0/other"), RP_INVALID);
    assert_int_equal(nested("other/0/inner"), RP_INVALID);
    assert_int_equal(nested("inner"), RP_OK); /* the end of the path */
    assert_int_equal(nested("0/inner"), RP_OK);
    assert_int_equal(nested("ner"), RP_INVALID);
    assert_int_equal(nested("outer/x/other"), RP_OK); /* a name where there is a position */
    assert_int_equal(nested("outer"), RP_OK);
    assert_int_equal(nested("0"), RP_OK);
}

static void a_signature_of_one_leaf_has_no_names(void **state)
{
    const rp_nest_node leaf = {.kind = RP_NEST_LEAF, .spec = {"x", RP_FLOAT32, {0, {0}}}};
    const rp_item_column column = {.name = "y"};
    rp_signature *s = NULL;
    (void)state;
    assert_ok(rp_signature_new(NULL, &leaf, 1, &s, NULL));
    assert_ok(rp_item_names_check(s, &column, NULL));
    rp_signature_unref(s);
}

static void a_long_list_says_how_many_are_left_out(void **state)
{
    enum { COLUMNS = 100 };
    rp_spec columns[COLUMNS];
    char names[COLUMNS][16], list[RP_NAME_LIST_BYTES];
    rp_signature *s = NULL;
    (void)state;
    for (int i = 0; i < COLUMNS; i++) {
        (void)snprintf(names[i], sizeof names[i], "column_%02d", i);
        columns[i] = (rp_spec){names[i], RP_FLOAT32, {0, {0}}};
    }
    assert_ok(rp_signature_flat(NULL, columns, COLUMNS, &s, NULL));
    assert_string_equal(rp_item_names_list(s, list) + strlen("column_00, "),
                        "column_01, column_02, column_03, column_04, column_05, column_06, "
                        "column_07, column_08, column_09 and 90 more");
    rp_signature_unref(s);
}

static const rp_pattern_node swapped[] = {
    {.source = 0, .has_stop = true, .stop = -1, .name = "obs"},
    {.source = 1, .has_stop = true, .stop = -1, .name = "action"}};
static const rp_pattern_node sorted[] = {
    {.source = 1, .has_stop = true, .stop = -1, .name = "action"},
    {.source = 0, .has_stop = true, .stop = -1, .name = "obs"}};

static rp_status write_pattern(rig *g, const rp_pattern_node *nodes)
{
    const rp_pattern pattern = {
        .table = "t", .nodes = nodes, .node_count = 2, .priority = {.value = 1}};
    const float x[] = {1, 9};
    const rp_value values[] = {{0, NULL, {RP_FLOAT32, {0, {0}}, &x[0]}},
                               {1, NULL, {RP_FLOAT32, {0, {0}}, &x[1]}}};
    rp_structured_writer *w = NULL;
    rp_status st;

    assert_ok_err(rp_structured_writer_new(g->client, &pattern, 1, NULL, &w, &g->err), &g->err);
    st = rp_structured_writer_append(w, values, 2, 0, rp_wait_ms(120000), &g->err);
    if (st == RP_OK) st = rp_structured_writer_flush(w, 0, rp_wait_ms(120000), &g->err);
    rp_structured_writer_free(w);
    return st;
}

static void a_pattern_in_another_order_is_refused(void **state)
{
    rig g;
    (void)state;
    open_rig(&g);

    assert_fails(write_pattern(&g, swapped), RP_INVALID, &g.err,
                 "table 't': column 0 is 'obs', the signature has 'action' there");
    assert_int_equal(items_of(&g, "t"), 0);
    assert_ok_err(write_pattern(&g, sorted), &g.err);
    assert_int_equal(items_of(&g, "t"), 1);
    close_rig(&g);
}

static rp_status write_batch(rig *g, const rp_pattern_node *nodes)
{
    const rp_pattern pattern = {
        .table = "t", .nodes = nodes, .node_count = 2, .priority = {.value = 1}};
    const float x[] = {1, 9};
    const rp_value values[] = {{0, NULL, {RP_FLOAT32, {1, {2}}, x}},
                               {1, NULL, {RP_FLOAT32, {1, {2}}, x}}};
    rp_batch_writer *w = NULL;
    rp_status st;

    assert_ok_err(rp_batch_writer_new(g->client, 2, &pattern, 1, NULL, &w, &g->err), &g->err);
    st = rp_batch_writer_append(w, values, 2, NULL, rp_wait_ms(120000), &g->err);
    if (st == RP_OK) st = rp_batch_writer_flush(w, rp_wait_ms(120000), &g->err);
    rp_batch_writer_free(w);
    return st;
}

static void a_batch_in_another_order_is_refused(void **state)
{
    rig g;
    (void)state;
    open_rig(&g);

    assert_fails(write_batch(&g, swapped), RP_INVALID, &g.err,
                 "table 't': column 0 is 'obs', the signature has 'action' there");
    assert_int_equal(items_of(&g, "t"), 0);
    assert_ok_err(write_batch(&g, sorted), &g.err);
    assert_int_equal(items_of(&g, "t"), 2);
    close_rig(&g);
}

RP_TESTS(item_names)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_in_another_order_are_refused),
        cmocka_unit_test(a_wrong_order_is_named_before_a_wrong_dtype),
        cmocka_unit_test(columns_without_names_are_matched_by_position),
        cmocka_unit_test(paths_are_compared_part_by_part),
        cmocka_unit_test(a_signature_of_one_leaf_has_no_names),
        cmocka_unit_test(a_long_list_says_how_many_are_left_out),
        cmocka_unit_test(a_pattern_in_another_order_is_refused),
        cmocka_unit_test(a_batch_in_another_order_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
