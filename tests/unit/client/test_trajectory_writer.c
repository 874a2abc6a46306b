/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of appending, of the history and of creating items. */
#include "support/client_rig.h"

#include <math.h>

enum { OBS = 0, ACTION = 1, NOTE = 2 };

static rp_value obs(int32_t *data, int64_t step)
{
    for (int i = 0; i < 3; i++) data[i] = (int32_t)(100 * step + i);
    return (rp_value){OBS, "obs", {RP_INT32, SHAPE(3), data}};
}

static rp_value action(double *data, int64_t step)
{
    *data = (double)step + 0.5;
    return (rp_value){ACTION, "action", {RP_FLOAT64, SCALAR, data}};
}

/* Appends step after step, both columns. */
static void append(rp_test_client_rig *r, int count)
{
    while (count-- > 0) {
        int64_t step = rp_trajectory_writer_steps(r->writer);
        int32_t o[3];
        double a;
        rp_value values[] = {obs(o, step), action(&a, step)};
        assert_ok_err(rp_trajectory_writer_append(r->writer, values, 2, 0, NULL, &r->err),
                      &r->err);
    }
}

static rp_status append_one(rp_test_client_rig *r, rp_value value, uint32_t flags, rp_ref *ref)
{
    return rp_trajectory_writer_append(r->writer, &value, 1, flags, ref, &r->err);
}

static rp_ref at(rp_test_client_rig *r, uint32_t column, int64_t step)
{
    rp_ref ref = {99, 99};

    assert_true(rp_trajectory_writer_find(r->writer, column, step, &ref));
    return ref;
}

static rp_status try_item(rp_test_client_rig *r, const rp_ref *refs, size_t count, rp_wait wait,
                          uint64_t *key)
{
    rp_item_column column = {.refs = refs, .count = count, .name = "x"};

    return rp_trajectory_writer_create_item(r->writer, &(rp_new_item){"a", 1, &column, 1}, wait,
                                            key, &r->err);
}

static uint64_t item(rp_test_client_rig *r, const rp_ref *refs, size_t count)
{
    uint64_t key = 0;

    assert_ok_err(try_item(r, refs, count, rp_wait_none(), &key), &r->err);
    return key;
}

static uint64_t latest_item(rp_test_client_rig *r)
{
    rp_ref ref = at(r, OBS, -1);

    return item(r, &ref, 1);
}

static void flush(rp_test_client_rig *r)
{
    assert_ok_err(rp_trajectory_writer_flush(r->writer, 0, rp_wait_ms(20000), &r->err),
                  &r->err);
    assert_int_equal(rp_trajectory_writer_pending(r->writer), 0);
}

static void first_value_fixes_dtype_and_shape(void **state)
{
    rp_test_client_rig r;
    int32_t ints[4] = {0};
    double d = 0;
    (void)state;
    rp_test_client_init(&r, 5, 0, true);

    append(&r, 1);
    assert_fails(append_one(&r, (rp_value){OBS, "obs", {RP_FLOAT64, SCALAR, &d}}, 0, NULL),
                 RP_INVALID, &r.err, "column 0 'obs': got dtype float64 but expected int32");
    assert_fails(append_one(&r, (rp_value){OBS, "obs", {RP_INT32, SHAPE(4), ints}}, 0, NULL),
                 RP_INVALID, &r.err, "column 0 'obs': got shape [4] but expected [3]");
    assert_int_equal(rp_trajectory_writer_steps(r.writer), 1);
    rp_test_client_deinit(&r);
}

static void bad_first_values_name_their_column(void **state)
{
    rp_test_client_rig r;
    int32_t x = 0;
    rp_shape deep = {.rank = RP_MAX_RANK};
    (void)state;
    rp_test_client_init(&r, 5, 0, true);

    assert_fails(append_one(&r, (rp_value){3, "n", {(rp_dtype)99, SCALAR, &x}}, 0, NULL),
                 RP_INVALID, &r.err, "column 3 'n': type code 99 is none of rp_dtype");
    assert_fails(append_one(&r, (rp_value){3, "n", {RP_INT32, SHAPE(-1), &x}}, 0, NULL),
                 RP_INVALID, &r.err, "column 3 'n': [?] is not the shape of a value");
    assert_fails(append_one(&r, (rp_value){3, "n", {RP_INT32, deep, &x}}, 0, NULL), RP_INVALID,
                 &r.err, "a value of column 3 'n' has 8 dimensions; at most 7 are supported");
    assert_fails(append_one(&r, (rp_value){3, "n", {RP_INT32, SCALAR, NULL}}, 0, NULL),
                 RP_INVALID, &r.err, "column 3 'n': no data");
    assert_ok_err(append_one(&r, (rp_value){4, "m", {RP_INT32, SCALAR, &x}}, 0, NULL), &r.err);
    assert_fails(append_one(&r, (rp_value){4, "m", {(rp_dtype)99, SCALAR, &x}}, 0, NULL),
                 RP_INVALID, &r.err, "column 4 'm': type code 99 is none of rp_dtype");
    deep.rank++;
    assert_fails(append_one(&r, (rp_value){4, "m", {RP_INT32, deep, &x}}, 0, NULL), RP_INVALID,
                 &r.err, "column 4 'm' has 9 dimensions; at most 8 are supported");
    assert_fails(append_one(&r, (rp_value){3, "n", {RP_INT32, SHAPE(1 << 30), &x}}, 0, NULL),
                 RP_INVALID, &r.err, "column 3 'n': a row is larger");
    assert_fails(
        append_one(&r, (rp_value){RP_MAX_COLUMNS, NULL, {RP_INT32, SCALAR, &x}}, 0, NULL),
        RP_INVALID, &r.err, "column 4096: columns are numbered from 0 to 4095");
    /* None of them fixed anything. */
    assert_ok(append_one(&r, (rp_value){3, "n", {RP_INT32, SCALAR, &x}}, 0, NULL));
    rp_test_client_deinit(&r);
}

static void failed_append_appends_nothing(void **state)
{
    rp_test_client_rig r;
    int32_t o[3], bad[2] = {0};
    double a;
    rp_value values[] = {action(&a, 1), {NOTE, "note", {RP_INT32, SCALAR, bad}}, obs(o, 1)};
    rp_spec spec;
    rp_ref ref;
    (void)state;
    rp_test_client_init(&r, 5, 0, true);
    append(&r, 1);

    values[2].tensor.shape = SHAPE(2);
    assert_int_equal(rp_trajectory_writer_append(r.writer, values, 3, 0, NULL, &r.err),
                     RP_INVALID);
    assert_int_equal(rp_trajectory_writer_steps(r.writer), 1);
    assert_false(rp_trajectory_writer_spec(r.writer, NOTE, &spec));
    assert_false(rp_trajectory_writer_find(r.writer, ACTION, 1, &ref));
    assert_int_equal(at(&r, ACTION, -1).cell, 0);
    rp_test_client_deinit(&r);
}

static const rp_rows *newest_rows(rp_test_client_rig *r, uint32_t column)
{
    const rp_writer_column *c = rp_writer_column_at(r->writer, column);

    return rp_writer_cell_of(c, c->cells - 1)->rows;
}

/* Chunks of one plain row are cast as the values come, from the second on: they read back like
 * any other, and one that comes to nothing leaves nothing. */
static void chunks_of_one_plain_row_read_back_like_others(void **state)
{
    rp_trajectory_writer_options o = {
        .column = {.history = 5, .chunk_length = 1, .chunk = {.codec = RP_CODEC_NONE}}};
    rp_column_options packed = {.history = 5, .chunk_length = 1};
    rp_test_client_rig r;
    int32_t o3[3], got[3];
    (void)state;
    rp_test_client_open_store(&r);
    rp_test_client_open_writer(&r, &o, false);
    r.sink->automatic = true;

    for (int s = 0; s < 12; s++) {
        rp_value values[] = {obs(o3, 77), {ACTION, "action", {RP_FLOAT64, SCALAR, NULL}}};
        rp_ref refs[3];
        if (s > 0)
            assert_fails(rp_trajectory_writer_append(r.writer, values, 2, 0, NULL, &r.err),
                         RP_INVALID, &r.err, "column 1 'action': no data");
        append(&r, 1);
        assert_true((newest_rows(&r, OBS)->chunk != NULL) == (s > 0));
        assert_ok_err(
            rp_trajectory_writer_copy(r.writer, at(&r, OBS, s), got, sizeof got, &r.err),
            &r.err);
        assert_int_equal(got[2], 100 * s + 2);
        for (int k = 0; k < 3; k++) refs[k] = at(&r, OBS, s < 2 ? s : s - k);
        (void)item(&r, refs, s % 4 == 3 ? 3 : 1); /* some rows are needed twice */
    }
    flush(&r);
    for (int s = 0; s < 12; s++)
        rp_test_expect_obs(&r.in, r.sink->items[s].trajectory, 0, s, s % 4 == 3 ? 3 : 1, -1);
    /* Of another codec, nothing is cast as before. */
    assert_ok_err(rp_trajectory_writer_end_episode(r.writer, true, rp_wait_ms(20000), &r.err),
                  &r.err);
    assert_ok_err(rp_trajectory_writer_configure(r.writer, OBS, "obs", &packed, &r.err),
                  &r.err);
    append(&r, 2);
    (void)latest_item(&r);
    flush(&r);
    rp_test_expect_obs(&r.in, r.sink->items[12].trajectory, 0, 1, 1, 1);
    assert_int_equal(
        rp_chunk_codec(rp_trajectory_slices(r.sink->items[12].trajectory, 0).slices->chunk),
        RP_CODEC_SNAPPY);
    rp_test_client_deinit(&r);
}

static void column_has_one_value_a_step(void **state)
{
    rp_test_client_rig r;
    int32_t o[3];
    double a;
    rp_value twice[] = {obs(o, 0), obs(o, 0)};
    (void)state;
    rp_test_client_init(&r, 5, 0, true);

    assert_fails(rp_trajectory_writer_append(r.writer, twice, 2, 0, NULL, &r.err), RP_INVALID,
                 &r.err, "column 0 'obs' has a value in this step already");
    assert_ok(append_one(&r, obs(o, 0), RP_STEP_OPEN, NULL));
    assert_fails(append_one(&r, obs(o, 0), RP_STEP_OPEN, NULL), RP_INVALID, &r.err,
                 "column 0 'obs' has a value in this step already");
    assert_true(rp_trajectory_writer_is_open(r.writer));
    assert_int_equal(rp_trajectory_writer_steps(r.writer), 0);
    assert_ok(append_one(&r, action(&a, 0), 0, NULL));
    assert_false(rp_trajectory_writer_is_open(r.writer));
    assert_int_equal(rp_trajectory_writer_steps(r.writer), 1);
    assert_ok(append_one(&r, obs(o, 1), 0, NULL));
    rp_test_client_deinit(&r);
}

static void columns_may_appear_later_and_miss_steps(void **state)
{
    rp_test_client_rig r;
    double a;
    rp_ref ref;
    (void)state;
    rp_test_client_init(&r, 5, 2, true);
    append(&r, 2);

    for (int64_t step = 2; step < 4; step++) {
        int32_t x = (int32_t)step;
        rp_value values[] = {action(&a, step), {NOTE, "note", {RP_INT32, SCALAR, &x}}};
        assert_ok(rp_trajectory_writer_append(r.writer, values, 2, 0, NULL, &r.err));
    }

    assert_int_equal(at(&r, NOTE, 2).cell, 0);
    assert_int_equal(at(&r, NOTE, -1).cell, 1);
    assert_int_equal(at(&r, OBS, 1).cell, 1);
    assert_int_equal(at(&r, ACTION, 3).cell, 3);
    assert_false(rp_trajectory_writer_find(r.writer, NOTE, 1, &ref));
    assert_false(rp_trajectory_writer_find(r.writer, OBS, 2, &ref));
    assert_false(rp_trajectory_writer_find(r.writer, OBS, -1, &ref));
    assert_false(rp_trajectory_writer_find(r.writer, 77, 0, &ref));
    assert_false(rp_trajectory_writer_find(r.writer, OBS, 4, &ref));
    assert_false(rp_trajectory_writer_find(r.writer, OBS, -5, &ref));
    rp_test_client_deinit(&r);
}

static void rows_expire_by_column(void **state)
{
    rp_test_client_rig r;
    rp_column_options longer = {.history = 6};
    rp_ref first_obs, first_action;
    (void)state;
    rp_test_client_init(&r, 3, 0, true);
    assert_ok(rp_trajectory_writer_configure(r.writer, ACTION, "action", &longer, &r.err));
    append(&r, 1);
    first_obs = at(&r, OBS, 0);
    first_action = at(&r, ACTION, 0);

    append(&r, 2);
    assert_true(rp_trajectory_writer_has(r.writer, first_obs));
    append(&r, 1);
    assert_false(rp_trajectory_writer_has(r.writer, first_obs));
    assert_true(rp_trajectory_writer_has(r.writer, first_action));
    assert_fails(try_item(&r, &first_obs, 1, rp_wait_none(), NULL), RP_PRECONDITION, &r.err,
                 "column 0 'x': row 0 of column 0 'obs' is no longer in the history, which "
                 "holds the last 3");
    (void)item(&r, &first_action, 1);
    flush(&r);
    rp_test_client_deinit(&r);
}

static void rows_can_be_read_back_before_and_after_they_are_compressed(void **state)
{
    rp_test_client_rig r;
    rp_ref refs[3];
    int32_t got[3];
    (void)state;
    rp_test_client_init(&r, 8, 2, true);
    append(&r, 5);
    refs[0] = at(&r, OBS, 0);
    refs[1] = at(&r, OBS, 3);
    refs[2] = at(&r, OBS, 4);

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            int64_t step = i == 0 ? 0 : i + 2;
            assert_ok_err(rp_trajectory_writer_copy(r.writer, refs[i], got, sizeof got, &r.err),
                          &r.err);
            assert_int_equal(got[1], 100 * step + 1);
        }
        (void)item(&r, refs, 3);
        flush(&r);
    }
    assert_fails(rp_trajectory_writer_copy(r.writer, refs[0], got, 8, &r.err), RP_INVALID,
                 &r.err, "column 0 'obs': a row has 12 bytes, got room for 8");
    append(&r, 8);
    assert_fails(rp_trajectory_writer_copy(r.writer, refs[0], got, sizeof got, &r.err),
                 RP_PRECONDITION, &r.err, "column 0 'obs': row 0 is not in the history");
    rp_test_client_deinit(&r);
}

static void strings_are_written_but_not_copied_out(void **state)
{
    rp_test_client_rig r;
    rp_string words[] = {{"one", 3}, {"", 0}}, got[2];
    rp_decoder *decoder;
    rp_trajectory *t;
    rp_ref ref;
    uint64_t key;
    (void)state;
    rp_test_client_init(&r, 2, 0, true);

    assert_ok(append_one(&r, (rp_value){5, "w", {RP_STRING, SHAPE(2), words}}, 0, &ref));
    assert_fails(rp_trajectory_writer_copy(r.writer, ref, got, sizeof got, &r.err), RP_INVALID,
                 &r.err, "column 5 'w' holds strings");
    key = item(&r, &ref, 1);
    flush(&r);
    t = rp_test_peek(&r.in, r.in.a, key);
    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    assert_ok(rp_decoder_stack_strings(decoder, (const rp_trajectory *const *)&t, 1, 0, got, 2,
                                       &r.err));
    assert_int_equal(got[0].size, 3);
    assert_memory_equal(got[0].data, "one", 3);
    rp_decoder_free(decoder);
    rp_trajectory_unref(t);
    rp_test_client_deinit(&r);
}

static void configure_checks_its_options(void **state)
{
    rp_test_client_rig r;
    rp_column_options o = {.history = 3, .chunk_length = 4};
    (void)state;
    rp_test_client_init(&r, 5, 0, true);

    assert_fails(rp_trajectory_writer_configure(r.writer, OBS, "obs", &o, &r.err), RP_INVALID,
                 &r.err, "column 0 'obs': chunk_length must be in [0, history = 3], got 4");
    o.history = -1;
    assert_int_equal(rp_trajectory_writer_configure(r.writer, OBS, NULL, &o, &r.err),
                     RP_INVALID);
    o = (rp_column_options){.chunk = {.codec = (rp_codec)9}};
    assert_fails(rp_trajectory_writer_configure(r.writer, OBS, NULL, &o, &r.err), RP_INVALID,
                 &r.err, "unknown codec 9");
    o = (rp_column_options){.chunk_length = 5};
    assert_ok(rp_trajectory_writer_configure(r.writer, OBS, "obs", &o, &r.err));
    append(&r, 1);
    assert_fails(rp_trajectory_writer_configure(r.writer, OBS, NULL, &o, &r.err),
                 RP_PRECONDITION, &r.err, "column 0 'obs' has rows already");
    assert_ok_err(rp_trajectory_writer_end_episode(r.writer, true, rp_wait_ms(20000), &r.err),
                  &r.err);
    assert_ok(rp_trajectory_writer_configure(r.writer, OBS, NULL, &o, &r.err));
    rp_test_client_deinit(&r);
}

static void options_are_checked(void **state)
{
    rp_test_client_rig r;
    rp_trajectory_writer_options o = {0};
    rp_writer_parts parts;
    (void)state;
    rp_test_client_open_store(&r);
    parts = rp_test_client_parts(&r);

    assert_fails(rp_trajectory_writer_open(&parts, &o, &r.writer, &r.err), RP_INVALID, &r.err,
                 "writer: history must be >= 1, got 0");
    o.column = (rp_column_options){.history = 2, .chunk_length = 3};
    assert_fails(rp_trajectory_writer_open(&parts, &o, &r.writer, &r.err), RP_INVALID, &r.err,
                 "writer: chunk_length must be in [0, history = 2], got 3");
    rp_runtime_put(parts.runtime);
    rp_test_client_deinit(&r);
}

static void picked_rows_read_back_in_order(void **state)
{
    static const int picks[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 4, 6}, {5, 5, 5, 5},
                                   {1, 2, 1, 2}, {6, 0, 3, 4}, {0, 0, 1, 1}};
    rp_test_client_rig r;
    uint64_t keys[COUNT_OF(picks)];
    (void)state;
    for (int32_t length = 0; length <= 7; length++) {
        rp_test_client_init(&r, 7, length, true);
        append(&r, 7);
        for (size_t i = 0; i < COUNT_OF(picks); i++) {
            rp_ref refs[4];
            for (int k = 0; k < 4; k++) refs[k] = at(&r, OBS, picks[i][k]);
            keys[i] = item(&r, refs, 4);
        }
        flush(&r);
        for (size_t i = 0; i < COUNT_OF(picks); i++) {
            rp_trajectory *t = rp_test_peek(&r.in, r.in.a, keys[i]);
            int32_t got[12];
            assert_ok(rp_decoder_stack(r.in.decoder, (const rp_trajectory *const *)&t, 1, 0,
                                       got, sizeof got, &r.err));
            for (int k = 0; k < 4; k++) assert_int_equal(got[3 * k], 100 * picks[i][k]);
            rp_trajectory_unref(t);
        }
        rp_test_client_deinit(&r);
    }
}

static void only_consecutive_rows_share_a_slice(void **state)
{
    rp_test_client_rig r;
    rp_ref refs[4];
    rp_trajectory *t;
    uint64_t keys[3];
    static const uint32_t expected[] = {1, 2, 4};
    static const int steps[3][4] = {{0, 1, 2, 3}, {1, 2, 2, 3}, {3, 2, 1, 0}};
    (void)state;
    rp_test_client_init(&r, 4, 4, true);
    append(&r, 4);

    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++) refs[k] = at(&r, OBS, steps[i][k]);
        keys[i] = item(&r, refs, 4);
    }
    flush(&r);
    for (int i = 0; i < 3; i++) {
        t = rp_test_peek(&r.in, r.in.a, keys[i]);
        assert_int_equal(rp_trajectory_get_column(t, 0).slice_count, expected[i]);
        assert_int_equal(rp_trajectory_chunk_count(t), 1);
        rp_trajectory_unref(t);
    }
    rp_test_client_deinit(&r);
}

static void bad_items_are_refused_at_once(void **state)
{
    rp_test_client_rig r;
    rp_ref two[2], none = {OBS, 40}, unknown = {70, 0};
    rp_item_column columns[2] = {{.refs = two, .count = 1, .name = "p"},
                                 {.refs = two, .count = 2, .name = "q"}};
    (void)state;
    rp_test_client_init(&r, 5, 0, true);
    append(&r, 2);
    two[0] = at(&r, OBS, 0);
    two[1] = at(&r, ACTION, 0);

#define CREATE(table, priority, columns, count)                                                \
    rp_trajectory_writer_create_item(r.writer,                                                 \
                                     &(rp_new_item){table, priority, columns, count},          \
                                     rp_wait_none(), NULL, &r.err)
    assert_fails(CREATE("a", NAN, columns, 1), RP_INVALID, &r.err, "NaN");
    assert_fails(CREATE(NULL, 1, columns, 1), RP_INVALID, &r.err, "no table");
    assert_fails(CREATE("a", 1, columns, 0), RP_INVALID, &r.err, "got 0");
    assert_fails(CREATE("zebra", 1, columns, 1), RP_NOT_FOUND, &r.err, "zebra");
    assert_fails(CREATE("a", 1, columns, 2), RP_INVALID, &r.err,
                 "column 1 'q': got dtype float64 but expected int32");
    columns[1].count = 0;
    assert_fails(CREATE("a", 1, columns, 2), RP_INVALID, &r.err, "column 1 'q' has no rows");
    columns[1].count = 2;
    columns[1].squeeze = true;
    assert_fails(CREATE("a", 1, columns, 2), RP_INVALID, &r.err,
                 "column 1 'q' is squeezed: it must have exactly one row, got 2");
#undef CREATE
    assert_fails(try_item(&r, &none, 1, rp_wait_none(), NULL), RP_PRECONDITION, &r.err,
                 "column 0 'x': there is no row 40 of column 0 'obs'");
    assert_fails(try_item(&r, &unknown, 1, rp_wait_none(), NULL), RP_PRECONDITION, &r.err,
                 "column 0 'x': there is no row 0 of column 70");
    assert_int_equal(rp_trajectory_writer_pending(r.writer), 0);
    rp_test_client_deinit(&r);
}

static void signature_is_checked_when_an_item_is_created(void **state)
{
    static const rp_spec specs[] = {{"o", RP_INT32, {2, {-1, 3}}}, {"s", RP_FLOAT64, {0, {0}}}};
    rp_test_client_rig r;
    rp_table_options o = rp_test_open_table("signed");
    rp_ref refs[2], last;
    rp_item_column columns[] = {{.refs = refs, .count = 2}, {.refs = &last, .count = 1}};
    (void)state;
    rp_test_client_init(&r, 5, 1, true);
    assert_ok(rp_signature_flat(&r.in.alloc, specs, 2, &o.signature, &r.err));
    assert_ok_err(rp_store_add_table(r.in.store, &o, NULL, &r.err), &r.err);
    rp_signature_unref(o.signature);
    append(&r, 2);
    refs[0] = at(&r, OBS, 0);
    refs[1] = at(&r, OBS, 1);
    last = at(&r, ACTION, 1);

#define CREATE(count)                                                                          \
    rp_trajectory_writer_create_item(r.writer, &(rp_new_item){"signed", 1, columns, count},    \
                                     rp_wait_none(), NULL, &r.err)
    assert_fails(CREATE(1), RP_INVALID, &r.err,
                 "table 'signed': the item has 1 column but the signature has 2");
    columns[1].squeeze = true;
    assert_ok_err(CREATE(2), &r.err);
    columns[1].squeeze = false; /* a run of steps, as the first writer makes them */
    assert_ok_err(CREATE(2), &r.err);
    columns[0].refs = &last;
    columns[0].count = 1;
    assert_fails(CREATE(2), RP_INVALID, &r.err,
                 "table 'signed': column 0 'o': got dtype float64 but expected int32");
#undef CREATE
    flush(&r);
    rp_test_client_deinit(&r);
}

static void an_exact_signature_is_compared_with_whole_items(void **state)
{
    static const rp_spec specs[] = {{"o", RP_INT32, {2, {-1, 3}}}, {"s", RP_FLOAT64, {0, {0}}}};
    const rp_trajectory_writer_options exact = {.column = {.history = 5, .chunk_length = 1},
                                                .exact = true};
    rp_test_client_rig r;
    rp_table_options o = rp_test_open_table("signed");
    rp_ref first, last;
    rp_item_column columns[] = {{.refs = &first, .count = 1}, {.refs = &last, .count = 1}};
    (void)state;
    rp_test_client_open_store(&r);
    rp_test_client_open_writer(&r, &exact, true);
    assert_ok(rp_signature_flat(&r.in.alloc, specs, 2, &o.signature, &r.err));
    assert_ok_err(rp_store_add_table(r.in.store, &o, NULL, &r.err), &r.err);
    rp_signature_unref(o.signature);
    append(&r, 1);
    first = at(&r, OBS, 0);
    last = at(&r, ACTION, 0);

#define CREATE()                                                                               \
    rp_trajectory_writer_create_item(r.writer, &(rp_new_item){"signed", 1, columns, 2},        \
                                     rp_wait_none(), NULL, &r.err)
    assert_fails(
        CREATE(), RP_INVALID, &r.err,
        "table 'signed': The table expects column 1 's' to be a double [] tensor but got a "
        "double [1] tensor");
    columns[1].squeeze = true;
    assert_ok_err(CREATE(), &r.err);
    columns[0].refs = &last;
    assert_fails(
        CREATE(), RP_INVALID, &r.err,
        "The table expects column 0 'o' to be a int32 [?,3] tensor but got a double [1] "
        "tensor");
#undef CREATE
    flush(&r);
    rp_test_client_deinit(&r);
}

static void items_carry_chunks_of_their_episode(void **state)
{
    rp_test_client_rig r;
    const rp_chunk_origin *a, *b;
    rp_trajectory *t;
    rp_ref refs[2];
    uint64_t key;
    double x;
    (void)state;
    rp_test_client_init(&r, 9, 3, true);
    append(&r, 2);
    assert_ok(append_one(&r, action(&x, 2), 0, NULL)); /* obs is left out */
    append(&r, 1);
    refs[0] = at(&r, OBS, 3);
    (void)item(&r, refs, 1);
    assert_ok_err(rp_trajectory_writer_end_episode(r.writer, false, rp_wait_ms(20000), &r.err),
                  &r.err);
    assert_true(rp_trajectory_writer_has(r.writer, refs[0]));
    append(&r, 1);

    refs[1] = at(&r, OBS, 0);
    assert_int_equal(at(&r, OBS, -2).cell, refs[0].cell); /* of the episode before */
    key = item(&r, refs, 2);
    flush(&r);
    t = rp_test_peek(&r.in, r.in.a, key);
    assert_int_equal(rp_trajectory_chunk_count(t), 2);
    a = rp_chunk_get_origin(rp_trajectory_get_chunk(t, 0));
    b = rp_chunk_get_origin(rp_trajectory_get_chunk(t, 1));
    assert_true(a->episode != b->episode && a->key != b->key);
    assert_int_equal(a->first_step, 0);
    assert_int_equal(a->last_step, 3);
    assert_true(a->sparse);
    assert_int_equal(b->first_step, 0);
    assert_int_equal(b->last_step, 0);
    assert_false(b->sparse);
    rp_trajectory_unref(t);
    rp_test_client_deinit(&r);
}

static void clearing_forgets_all_rows(void **state)
{
    rp_test_client_rig r;
    rp_ref ref, other;
    (void)state;
    rp_test_client_init(&r, 9, 0, true);
    append(&r, 3);
    ref = at(&r, OBS, 2);
    (void)latest_item(&r);

    assert_ok_err(rp_trajectory_writer_end_episode(r.writer, true, rp_wait_ms(20000), &r.err),
                  &r.err);
    assert_int_equal(rp_trajectory_writer_steps(r.writer), 0);
    assert_false(rp_trajectory_writer_has(r.writer, ref));
    assert_false(rp_trajectory_writer_find(r.writer, OBS, 0, &other));
    assert_false(rp_trajectory_writer_find(r.writer, OBS, -1, &other));
    append(&r, 1);
    assert_int_equal(at(&r, OBS, 0).cell, 3); /* cells count on */
    rp_test_client_deinit(&r);
}

static void unused_rows_are_never_compressed(void **state)
{
    rp_test_client_rig r;
    size_t before;
    (void)state;
    rp_test_client_init(&r, 4, 2, true);
    append(&r, 50);
    before = r.in.oom.total;

    append(&r, 1000); /* builders of rows that have left the history are not kept */
    assert_true(r.in.oom.total - before < 10 * 1000);
    assert_int_equal(rp_test_info(r.in.a).size, 0);
    flush(&r);
    rp_test_client_deinit(&r);
}

static void tuned_chunks_grow(void **state)
{
    rp_test_client_rig r;
    rp_trajectory *t;
    rp_sample_options all = {.count = 1};
    size_t longest = 0, drawn;
    (void)state;
    rp_test_client_init(&r, 20, 0, true);

    for (int i = 0; i < 400; i++) {
        append(&r, 1);
        if (i >= 20) {
            rp_ref refs[20];
            for (int k = 0; k < 20; k++) refs[k] = at(&r, OBS, k - 20);
            (void)item(&r, refs, 20);
        }
        if (i % 10 == 0) flush(&r);
    }
    flush(&r);
    for (int i = 0; i < 200; i++) {
        rp_sample s;
        assert_ok(rp_table_sample(r.in.a, &all, &s, &drawn, rp_wait_none(), &r.err));
        t = s.trajectory;
        for (size_t k = 0; k < rp_trajectory_chunk_count(t); k++) {
            size_t rows =
                (size_t)rp_chunk_get_column(rp_trajectory_get_chunk(t, k), 0)->shape.dims[0];
            if (rows > longest) longest = rows;
        }
        rp_samples_release(&s, 1);
    }
    assert_true(longest > 1 && longest <= 20);
    rp_test_client_deinit(&r);
}

static void freeing_drops_unconfirmed_items(void **state)
{
    rp_test_client_rig r;
    (void)state;
    rp_test_client_init(&r, 10, 3, false);
    append(&r, 3);
    (void)latest_item(&r);
    rp_test_sink_await(r.sink, 1);
    append(&r, 1);
    (void)latest_item(&r); /* waits for its chunk */
    rp_test_client_deinit(&r);
}

RP_TESTS(trajectory_writer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_value_fixes_dtype_and_shape),
        cmocka_unit_test(bad_first_values_name_their_column),
        cmocka_unit_test(failed_append_appends_nothing),
        cmocka_unit_test(chunks_of_one_plain_row_read_back_like_others),
        cmocka_unit_test(column_has_one_value_a_step),
        cmocka_unit_test(columns_may_appear_later_and_miss_steps),
        cmocka_unit_test(rows_expire_by_column),
        cmocka_unit_test(rows_can_be_read_back_before_and_after_they_are_compressed),
        cmocka_unit_test(strings_are_written_but_not_copied_out),
        cmocka_unit_test(configure_checks_its_options),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(picked_rows_read_back_in_order),
        cmocka_unit_test(only_consecutive_rows_share_a_slice),
        cmocka_unit_test(bad_items_are_refused_at_once),
        cmocka_unit_test(signature_is_checked_when_an_item_is_created),
        cmocka_unit_test(an_exact_signature_is_compared_with_whole_items),
        cmocka_unit_test(items_carry_chunks_of_their_episode),
        cmocka_unit_test(clearing_forgets_all_rows),
        cmocka_unit_test(unused_rows_are_never_compressed),
        cmocka_unit_test(tuned_chunks_grow),
        cmocka_unit_test(freeing_drops_unconfirmed_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
