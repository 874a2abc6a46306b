/* SPDX-License-Identifier: Apache-2.0 */
#include "rollouts/rollout_op.h"
#include "support/unit.h"

static rp_test_oom oom;
static rp_allocator alloc;
static rp_buf out;
static rp_error err;

static int set_up(void **state)
{
    (void)state;
    memset(&oom, 0, sizeof oom);
    atomic_init(&oom.left, RP_TEST_OOM_UNLIMITED);
    alloc = rp_test_oom_allocator(&oom);
    rp_buf_init(&out, &alloc);
    return 0;
}

static int nothing_is_left(void **state)
{
    (void)state;
    rp_buf_deinit(&out);
    return atomic_load(&oom.live) == 0 ? 0 : 1;
}

static uint16_t halves[] = {1, 2, 3, 4, 5, 6};
static const rp_rollout_column columns[] = {
    {{"logprob", 7}, {RP_BFLOAT16, {2, {3, 2}}, halves}},
    {{"reward", 6}, {RP_FLOAT32, {0, {0}}, halves}},
    {{"none", 4}, {RP_INT64, {1, {0}}, halves}},
};

static rp_rollout_op a_put(void)
{
    return (rp_rollout_op){.kind = RP_ROLLOUT_PUT,
                           .now_ns = 1234567,
                           .group = {"prompt 7", 8},
                           .index = 3,
                           .first_version = 5,
                           .last_version = 6,
                           .columns = columns,
                           .column_count = COUNT_OF(columns)};
}

static void a_put_is_read_as_it_was_written(void **state)
{
    (void)state;
    rp_rollout_op op = a_put(), read;

    rp_rollout_op_write(&out, &op);
    assert_ok_err(rp_rollout_op_read(&alloc, out.data, out.size, &read, &err), &err);

    assert_int_equal(read.kind, op.kind);
    assert_int_equal(read.now_ns, op.now_ns);
    assert_int_equal(read.index, 3);
    assert_int_equal(read.first_version, 5);
    assert_int_equal(read.last_version, 6);
    assert_int_equal(read.group.size, 8);
    assert_int_equal(read.column_count, COUNT_OF(columns));
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        assert_int_equal(read.columns[i].tensor.dtype, columns[i].tensor.dtype);
        assert_true(rp_shape_equal(&read.columns[i].tensor.shape, &columns[i].tensor.shape));
    }
    assert_memory_equal(read.columns[0].tensor.data, halves, sizeof halves);
    rp_rollout_op_deinit(&read, &alloc);
}

static void options_are_read_as_they_were_written(void **state)
{
    (void)state;
    const rp_string needs[] = {{"reward", 6}, {"value", 5}};
    const rp_rollout_consumer consumers[] = {{{"", 0}, NULL, 0}, {{"train", 5}, needs, 2}};
    rp_rollout_options o;
    rp_rollout_op op = {.kind = RP_ROLLOUT_CONFIGURE, .options = &o}, read;
    rp_rollout_options_init(&o);
    o.max_staleness = 4;
    o.staleness = RP_ROLLOUT_WAIT;
    o.groups_per_version = 64;
    o.order = RP_ROLLOUT_FRESHEST;
    o.consumers = consumers;
    o.consumer_count = 2;

    rp_rollout_op_write(&out, &op);
    assert_ok_err(rp_rollout_op_read(&alloc, out.data, out.size, &read, &err), &err);

    assert_int_equal(read.options->max_staleness, 4);
    assert_int_equal(read.options->staleness, RP_ROLLOUT_WAIT);
    assert_int_equal(read.options->groups_per_version, 64);
    assert_int_equal(read.options->max_bytes, o.max_bytes);
    assert_int_equal(read.options->consumer_count, 2);
    assert_int_equal(read.options->consumers[0].column_count, 0);
    assert_memory_equal(read.options->consumers[1].columns[1].data, "value", 5);
    rp_rollout_op_deinit(&read, &alloc);
}

static void the_last_options_count_and_others_are_not_parsed(void **state)
{
    (void)state;
    const uint8_t malformed[] = {0x9a, 0x01 /* field 19, bytes */, 1, 0xff};
    rp_rollout_options o;
    rp_rollout_op op = {.kind = RP_ROLLOUT_CONFIGURE, .options = &o}, read;
    rp_rollout_options_init(&o);

    rp_buf_append(&out, malformed, sizeof malformed);
    assert_int_equal(rp_rollout_op_read(&alloc, out.data, out.size, &read, &err), RP_INVALID);
    for (uint32_t size = 1; size <= 3; size++) {
        o.group_size = size;
        rp_rollout_op_write(&out, &op);
    }
    assert_ok_err(rp_rollout_op_read(&alloc, out.data, out.size, &read, &err), &err);

    assert_int_equal(read.options->group_size, 3);
    rp_rollout_op_deinit(&read, &alloc);
}

static void a_cut_off_operation_is_refused(void **state)
{
    (void)state;
    rp_rollout_op op = a_put(), read;
    size_t whole = 0;

    rp_rollout_op_write(&out, &op);
    for (size_t size = 0; size < out.size; size++) {
        uint8_t *copy = test_malloc(size + 1);
        rp_status st;

        memcpy(copy, out.data, size);
        st = rp_rollout_op_read(&alloc, copy, size, &read, &err);
        assert_true(st == RP_OK || st == RP_INVALID);
        if (st == RP_OK) { /* cut between two fields: a put of fewer */
            assert_true(read.column_count < COUNT_OF(columns));
            rp_rollout_op_deinit(&read, &alloc);
            whole++;
        }
        test_free(copy);
    }
    /* after the group, the index, the versions, and two of the columns */
    assert_int_equal(whole, 5);
}

static void expect_refused(rp_rollout_op op, const char *why)
{
    assert_fails(rp_rollout_op_check(&op, &err), RP_INVALID, &err, why);
}

static void fields_out_of_bounds_are_refused(void **state)
{
    (void)state;
    const rp_rollout_column twice[] = {columns[1], columns[1]};
    const rp_rollout_column text = {{"text", 4}, {RP_STRING, {0, {0}}, halves}};
    rp_rollout_column huge = {{"huge", 4}, {RP_INT64, {2, {INT64_MAX, 2}}, halves}};
    const rp_rollout_column large = {{"large", 5},
                                     {RP_UINT8, {1, {RP_ROLLOUT_ITEM_BYTES + 1}}, halves}};
    const rp_rollout_column rows = {{"rows", 4}, {RP_UINT8, {2, {(int64_t)1 << 62, 0}}, NULL}};
    const rp_rollout_column wide[] = {
        {{"a", 1}, {RP_UINT8, {1, {RP_ROLLOUT_ITEM_BYTES}}, halves}},
        {{"b", 1}, {RP_UINT8, {1, {1}}, halves}}};
    char long_name[RP_ROLLOUT_NAME_BYTES + 1];
    rp_rollout_op op = a_put();

    memset(long_name, 'n', sizeof long_name);
    assert_ok(rp_rollout_op_check(&op, &err));
    op.group = (rp_string){long_name, sizeof long_name};
    expect_refused(op, "256 bytes, the limit is 255");
    op.group = (rp_string){"\xff", 1};
    expect_refused(op, "not UTF-8");
    op = a_put();
    op.index = RP_ROLLOUT_GROUP_SIZE;
    expect_refused(op, "limit is 4095");
    op = a_put();
    op.last_version = 4;
    expect_refused(op, "first <= last");
    op = a_put();
    op.columns = twice;
    op.column_count = 2;
    expect_refused(op, "column 'reward' twice");
    op.column_count = 1;
    op.columns = &text;
    expect_refused(op, "text is a column of uint8");
    op.columns = &huge;
    expect_refused(op, "bad shape");
    huge.tensor.shape.rank = RP_MAX_RANK + 1;
    expect_refused(op, "' has 9 dimensions; at most 8 are supported");
    huge.tensor.dtype = (rp_dtype)99;
    expect_refused(op, "': type code 99 is none of rp_dtype");
    op.columns = &large;
    expect_refused(op, "dimension above the limit");
    op.columns = &rows; /* without elements, but a draw by tokens would count them */
    expect_refused(op, "column 'rows' has a dimension above the limit");
    op.columns = wide;
    op.column_count = 2;
    expect_refused(op, "more bytes than the limit");
    expect_refused((rp_rollout_op){.kind = RP_ROLLOUT_UPDATE, .group = {"g", 1}},
                   "needs a column");
    expect_refused((rp_rollout_op){.kind = RP_ROLLOUT_RESERVE, .group = {"g", 1}}, "ttl_ns");
    expect_refused((rp_rollout_op){.kind = RP_ROLLOUT_DRAW, .ttl_ns = 1}, "groups must be 1");
    expect_refused((rp_rollout_op){.kind = RP_ROLLOUT_EXPIRE, .now_ns = -1}, "now_ns");
    expect_refused((rp_rollout_op){.kind = 99}, "99 is no operation");
}

static void options_that_could_never_work_are_refused(void **state)
{
    (void)state;
    rp_rollout_options o;

    rp_rollout_options_init(&o);
    assert_ok(rp_rollout_options_check(&o, &err));
    o.groups_per_version = 1;
    assert_fails(rp_rollout_options_check(&o, &err), RP_INVALID, &err,
                 "needs max_staleness >= 0");
    o.groups_per_version = 0;
    o.max_staleness = 2;
    o.staleness = RP_ROLLOUT_WAIT;
    assert_fails(rp_rollout_options_check(&o, &err), RP_INVALID, &err,
                 "needs groups_per_version >= 1");
    rp_rollout_options_init(&o);
    o.group_size = RP_ROLLOUT_GROUP_SIZE + 1;
    assert_fails(rp_rollout_options_check(&o, &err), RP_INVALID, &err, "group_size");
    rp_rollout_options_init(&o);
    o.max_groups = 0;
    assert_fails(rp_rollout_options_check(&o, &err), RP_INVALID, &err, "max_groups");
    rp_rollout_options_init(&o);
    o.max_bytes = 0;
    assert_fails(rp_rollout_options_check(&o, &err), RP_INVALID, &err, "max_bytes");
}

static rp_status read_scenario(const rp_allocator *a)
{
    rp_rollout_op read;
    rp_status st = rp_rollout_op_read(a, out.data, out.size, &read, NULL);

    if (st == RP_OK) rp_rollout_op_deinit(&read, a);
    return st;
}

static void reading_survives_missing_memory(void **state)
{
    (void)state;
    rp_rollout_op op = a_put();

    rp_rollout_op_write(&out, &op);
    rp_test_survives_oom(read_scenario);
}

RP_TESTS(rollout_op)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_put_is_read_as_it_was_written, set_up,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(options_are_read_as_they_were_written, set_up,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(the_last_options_count_and_others_are_not_parsed,
                                        set_up, nothing_is_left),
        cmocka_unit_test_setup_teardown(a_cut_off_operation_is_refused, set_up,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(fields_out_of_bounds_are_refused, set_up,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(options_that_could_never_work_are_refused, set_up,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(reading_survives_missing_memory, set_up,
                                        nothing_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
