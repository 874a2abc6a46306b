/* SPDX-License-Identifier: Apache-2.0 */
/* Another process drops a table and creates it with another signature, while a client lives
 * that knows the first one. */
#include "client_fixture.h"
#include "reprise/sampler.h"
#include "reprise/step_writer.h"
#include "reprise/structured_writer.h"
#include "reprise/trajectory_writer.h"

static const rp_shape ANY = {.rank = -1};
static const rp_trajectory_writer_options one_row = {.column = {.history = 1}};
static const rp_step_writer_options one_step = {.max_sequence_length = 1};

typedef struct bed {
    rp_test_live live;
    rp_client *client; /* knows the first signature */
    rp_error err;
} bed;

/* Creates the table as another process does: with a client of its own. */
static void create(bed *b, const char *first, const char *second, rp_dtype dtype)
{
    const rp_spec columns[] = {{first, dtype, ANY}, {second, dtype, ANY}};
    rp_table_options options = {
        .name = "t", .limiter = rp_limiter_min_size(1), .max_size = 100};
    rp_client *other = client_of(&b->live, NULL);

    assert_ok_err(rp_signature_flat(&b->live.alloc, columns, 2, &options.signature, &b->err),
                  &b->err);
    if (rp_test_table(b->live.store, "t") != NULL)
        assert_ok_err(rp_client_drop_table(other, "t", soon(), &b->err), &b->err);
    assert_ok_err(rp_client_create_table(other, &options, soon(), &b->err), &b->err);
    rp_signature_unref(options.signature);
    rp_client_free(other);
}

static void open_bed(bed *b)
{
    *b = (bed){0};
    rp_test_live_start(&b->live, NULL);
    b->client = client_of(&b->live, NULL);
    create(b, "a", "b", RP_INT32);
}

static void close_bed(bed *b)
{
    rp_client_free(b->client);
    rp_test_live_stop(&b->live);
}

static void expect_items(bed *b, int64_t count)
{
    assert_int_equal(rp_test_live_info(&b->live, "t").size, count);
}

static rp_tensor seven(rp_dtype dtype)
{
    static const int32_t integer = 7;
    static const double real = 7;

    return (rp_tensor){dtype, {0}, dtype == RP_INT32 ? (const void *)&integer : &real};
}

/* Creates an item of the columns `first`, `first` + 1 of the writer. */
static rp_status write_item(bed *b, rp_trajectory_writer *w, uint32_t first, const char *name,
                            const char *second, rp_dtype dtype)
{
    rp_value values[] = {{first, name, seven(dtype)}, {first + 1, second, seven(dtype)}};
    rp_ref refs[2];
    rp_item_column columns[] = {
        {.refs = &refs[0], .count = 1, .squeeze = true, .name = name},
        {.refs = &refs[1], .count = 1, .squeeze = true, .name = second}};
    const rp_new_item item = {"t", 1, columns, 2};

    assert_ok_err(rp_trajectory_writer_append(w, values, 2, 0, refs, &b->err), &b->err);
    return rp_trajectory_writer_create_item(w, &item, soon(), NULL, &b->err);
}

/* The same writer: it knows the signature as well. */
static void a_trajectory_writer_asks_again(void **state)
{
    rp_trajectory_writer *w = NULL;
    bed b;

    (void)state;
    open_bed(&b);
    assert_ok_err(rp_trajectory_writer_new(b.client, &one_row, soon(), &w, &b.err), &b.err);
    assert_ok_err(write_item(&b, w, 0, "a", "b", RP_INT32), &b.err);
    assert_ok_err(rp_trajectory_writer_flush(w, 0, soon(), &b.err), &b.err);
    expect_items(&b, 1);

    create(&b, "c", "d", RP_INT32);
    assert_ok_err(write_item(&b, w, 2, "c", "d", RP_INT32), &b.err);
    assert_ok_err(rp_trajectory_writer_flush(w, 0, soon(), &b.err), &b.err);
    expect_items(&b, 1);

    create(&b, "c", "d", RP_FLOAT64);
    assert_ok_err(write_item(&b, w, 4, "c", "d", RP_FLOAT64), &b.err);
    assert_ok_err(rp_trajectory_writer_flush(w, 0, soon(), &b.err), &b.err);
    expect_items(&b, 1);

    assert_fails(write_item(&b, w, 6, "a", "b", RP_FLOAT64), RP_INVALID, &b.err,
                 "table 't': column 0 is 'a', the signature has 'c' there; the order is: c, d");
    assert_ok_err(write_item(&b, w, 4, "c", "d", RP_FLOAT64), &b.err);
    rp_trajectory_writer_free(w);
    close_bed(&b);
}

static rp_status write_step(bed *b, rp_step_writer **w, rp_dtype dtype)
{
    const rp_tensor step[] = {seven(dtype), seven(dtype)};

    rp_step_writer_free(*w);
    *w = NULL;
    assert_ok_err(rp_step_writer_new(b->client, &one_step, soon(), w, &b->err), &b->err);
    assert_ok_err(rp_step_writer_append(*w, step, 2, &b->err), &b->err);
    return rp_step_writer_create_item(*w, "t", 1, 1, soon(), NULL, &b->err);
}

static void a_step_writer_asks_again(void **state)
{
    rp_step_writer *w = NULL;
    bed b;

    (void)state;
    open_bed(&b);
    assert_ok_err(write_step(&b, &w, RP_INT32), &b.err);
    assert_ok_err(rp_step_writer_flush(w, soon(), &b.err), &b.err);

    create(&b, "a", "b", RP_FLOAT64);
    assert_ok_err(write_step(&b, &w, RP_FLOAT64), &b.err);
    assert_ok_err(rp_step_writer_flush(w, soon(), &b.err), &b.err);
    expect_items(&b, 1);

    assert_fails(write_step(&b, &w, RP_INT32), RP_INVALID, &b.err, "table 't': column 0 'a'");
    rp_step_writer_free(w);
    close_bed(&b);
}

static void name_nodes(rp_pattern_node nodes[2], const char *first, const char *second)
{
    for (uint32_t i = 0; i < 2; i++)
        nodes[i] = (rp_pattern_node){
            .source = i, .has_stop = true, .stop = -1, .name = i == 0 ? first : second};
}

static rp_status write_structured(bed *b, const char *first, const char *second, rp_dtype dtype)
{
    rp_pattern_node nodes[2];
    const rp_pattern pattern = {
        .table = "t", .nodes = nodes, .node_count = 2, .priority = {.value = 1}};
    rp_value values[] = {{0, first, seven(dtype)}, {1, second, seven(dtype)}};
    rp_structured_writer *w = NULL;
    rp_status st;

    name_nodes(nodes, first, second);
    assert_ok_err(rp_structured_writer_new(b->client, &pattern, 1, NULL, &w, &b->err), &b->err);
    st = rp_structured_writer_append(w, values, 2, 0, soon(), &b->err);
    if (st == RP_OK) assert_ok_err(rp_structured_writer_flush(w, 0, soon(), &b->err), &b->err);
    rp_structured_writer_free(w);
    return st;
}

static rp_status write_batch(bed *b, const char *first, const char *second, rp_dtype dtype)
{
    const int32_t integers[2] = {7, 8};
    const double reals[2] = {7, 8};
    const rp_tensor rows = {
        dtype, {.rank = 1, .dims = {2}}, dtype == RP_INT32 ? (const void *)integers : reals};
    rp_value values[] = {{0, first, rows}, {1, second, rows}};
    rp_pattern_node nodes[2];
    const rp_pattern pattern = {
        .table = "t", .nodes = nodes, .node_count = 2, .priority = {.value = 1}};
    rp_batch_writer *w = NULL;
    rp_status st;

    name_nodes(nodes, first, second);
    assert_ok_err(rp_batch_writer_new(b->client, 2, &pattern, 1, NULL, &w, &b->err), &b->err);
    st = rp_batch_writer_append(w, values, 2, NULL, soon(), &b->err);
    if (st == RP_OK) assert_ok_err(rp_batch_writer_flush(w, soon(), &b->err), &b->err);
    rp_batch_writer_free(w);
    return st;
}

static void a_structured_writer_asks_again(void **state)
{
    bed b;

    (void)state;
    open_bed(&b);
    assert_ok_err(write_structured(&b, "a", "b", RP_INT32), &b.err);
    create(&b, "c", "d", RP_FLOAT64);
    assert_ok_err(write_structured(&b, "c", "d", RP_FLOAT64), &b.err);
    expect_items(&b, 1);
    assert_fails(write_structured(&b, "a", "b", RP_FLOAT64), RP_INVALID, &b.err,
                 "table 't': column 0 is 'a', the signature has 'c' there; the order is: c, d");
    close_bed(&b);
}

static void a_batch_writer_asks_again(void **state)
{
    bed b;

    (void)state;
    open_bed(&b);
    assert_ok_err(write_batch(&b, "a", "b", RP_INT32), &b.err);
    create(&b, "c", "d", RP_FLOAT64);
    assert_ok_err(write_batch(&b, "c", "d", RP_FLOAT64), &b.err);
    expect_items(&b, 2);
    assert_fails(write_batch(&b, "a", "b", RP_FLOAT64), RP_INVALID, &b.err,
                 "table 't': column 0 is 'a', the signature has 'c' there; the order is: c, d");
    close_bed(&b);
}

/* Draws an item with a new sampler of the client that knows the first signature. */
static rp_status draw(bed *b)
{
    const rp_sampler_options options = {.table = "t", .checked = true};
    rp_sampler *sampler = NULL;
    rp_sample sample;
    size_t count = 0;
    rp_status st;

    assert_ok_err(rp_sampler_new(b->client, &options, &sampler, &b->err), &b->err);
    st = rp_sampler_next(sampler, &sample, 1, &count, soon(), &b->err);
    if (st == RP_OK) rp_samples_release(&sample, count);
    rp_sampler_free(sampler);
    return st;
}

/* Inserts an item with another client. */
static void insert(bed *b, rp_dtype dtype)
{
    rp_client *first = b->client;
    rp_step_writer *w = NULL;

    b->client = client_of(&b->live, NULL);
    assert_ok_err(write_step(b, &w, dtype), &b->err);
    assert_ok_err(rp_step_writer_flush(w, soon(), &b->err), &b->err);
    rp_step_writer_free(w);
    rp_client_free(b->client);
    b->client = first;
}

static void a_new_checked_sampler_asks_again(void **state)
{
    const rp_sampler_options options = {.table = "t", .checked = true};
    rp_sampler *sampler = NULL;
    bed b;

    (void)state;
    open_bed(&b);
    insert(&b, RP_INT32);
    assert_ok_err(draw(&b), &b.err);

    create(&b, "a", "b", RP_FLOAT64);
    insert(&b, RP_FLOAT64);
    assert_ok_err(draw(&b), &b.err);

    assert_ok_err(rp_client_drop_table(b.client, "t", soon(), &b.err), &b.err);
    assert_fails(rp_sampler_new(b.client, &options, &sampler, &b.err), RP_NOT_FOUND, &b.err,
                 "table t was not found");
    close_bed(&b);
}

/* A call that does not wait cannot ask: it says so. */
static void an_item_without_a_timeout_may_be_refused_by_the_old_signature(void **state)
{
    const rp_tensor step[] = {seven(RP_FLOAT64), seven(RP_FLOAT64)};
    rp_step_writer *w = NULL;
    bed b;

    (void)state;
    open_bed(&b);
    assert_ok_err(rp_step_writer_new(b.client, &one_step, soon(), &w, &b.err), &b.err);
    create(&b, "a", "b", RP_FLOAT64);
    assert_ok_err(rp_step_writer_append(w, step, 2, &b.err), &b.err);
    assert_fails(rp_step_writer_create_item(w, "t", 1, 1, rp_wait_none(), NULL, &b.err),
                 RP_INVALID, &b.err, "out of date: a timeout above 0 asks again");
    assert_non_null(strstr(b.err.text, "table 't': column 0 'a'"));
    assert_ok_err(rp_step_writer_create_item(w, "t", 1, 1, soon(), NULL, &b.err), &b.err);
    assert_ok_err(rp_step_writer_flush(w, soon(), &b.err), &b.err);
    expect_items(&b, 1);
    rp_step_writer_free(w);
    close_bed(&b);
}

static void a_pattern_without_a_timeout_may_be_refused_by_the_old_signature(void **state)
{
    rp_pattern_node nodes[2];
    const rp_pattern pattern = {
        .table = "t", .nodes = nodes, .node_count = 2, .priority = {.value = 1}};
    rp_value values[] = {{0, "c", seven(RP_INT32)}, {1, "d", seven(RP_INT32)}};
    rp_structured_writer *w = NULL;
    bed b;

    (void)state;
    open_bed(&b);
    assert_ok_err(write_structured(&b, "a", "b", RP_INT32), &b.err);
    create(&b, "c", "d", RP_INT32);
    name_nodes(nodes, "c", "d");
    assert_ok_err(rp_structured_writer_new(b.client, &pattern, 1, NULL, &w, &b.err), &b.err);
    assert_fails(rp_structured_writer_append(w, values, 2, 0, rp_wait_none(), &b.err),
                 RP_INVALID, &b.err, "out of date: a timeout above 0 asks again");
    assert_ok_err(rp_structured_writer_append(w, values, 2, 0, soon(), &b.err), &b.err);
    rp_structured_writer_free(w);
    close_bed(&b);
}

RP_TESTS(table_again)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trajectory_writer_asks_again),
        cmocka_unit_test(a_step_writer_asks_again),
        cmocka_unit_test(a_structured_writer_asks_again),
        cmocka_unit_test(a_batch_writer_asks_again),
        cmocka_unit_test(a_new_checked_sampler_asks_again),
        cmocka_unit_test(an_item_without_a_timeout_may_be_refused_by_the_old_signature),
        cmocka_unit_test(a_pattern_without_a_timeout_may_be_refused_by_the_old_signature),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
