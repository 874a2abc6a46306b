/* SPDX-License-Identifier: Apache-2.0 */
/* The server's readers must read what the client's writers have written. */
#include "wire/request_write.h"

#include <float.h>

#include "support/hex.h"
#include "wire/admin_messages.h"
#include "wire/durability_wire.h"
#include "wire/reverb_messages.h"
#include "wire/signature_wire.h"

static int set_up(void **state)
{
    static rp_buf out;

    rp_buf_init(&out, rp_allocator_default());
    *state = &out;
    return 0;
}

static int tear_down(void **state)
{
    rp_buf_deinit(*state);
    return 0;
}

static void expect_name(rp_string name, const char *expected)
{
    assert_int_equal(name.size, strlen(expected));
    assert_memory_equal(name.data, expected, name.size);
}

static void sample_requests_carry_their_timeout(void **state)
{
    rp_buf *out = *state;
    rp_wire_sample_request read;

    rp_wire_write_sample_request(out, "t", 1, -5);
    assert_wrote(out, "0a0174 1001 1a0b 08ffffffffffffffffff01");
    rp_wire_write_sample_request(out, "t", 1, 0);
    assert_wrote(out, "0a0174 1001 1a00");
    rp_wire_write_sample_request(out, "table", 1000, 2500);
    assert_ok(rp_wire_read_sample_request(out->data, out->size, &read, NULL));
    expect_name(read.table, "table");
    assert_true(read.num_samples == 1000 && read.has_timeout && read.timeout_ms == 2500);
}

static void mutations_come_in_order(void **state)
{
    rp_buf *out = *state;
    rp_update updates[300], read_updates[300];
    uint64_t deletes[200], read_deletes[200];
    rp_wire_mutate_request read;

    rp_wire_write_mutate_request(out, "t", &(rp_update){2, 0.5}, 1, &(uint64_t){3}, 1);
    assert_wrote(out, "0a0174 120b 0802 11000000000000e03f 1a01 03");
    for (size_t i = 0; i < COUNT_OF(updates); i++) {
        updates[i] = (rp_update){i * i * i * i << i % 30, (double)i / 3};
        if (i < COUNT_OF(deletes)) deletes[i] = UINT64_MAX >> i % 64;
    }
    rp_wire_write_mutate_request(out, "t", updates, COUNT_OF(updates), deletes,
                                 COUNT_OF(deletes));
    assert_ok(rp_wire_read_mutate_request(out->data, out->size, 500, &read, NULL));
    assert_int_equal(read.update_count, COUNT_OF(updates));
    assert_int_equal(read.delete_count, COUNT_OF(deletes));
    rp_wire_mutate_updates(&read, read_updates);
    rp_wire_mutate_deletes(&read, read_deletes);
    assert_memory_equal(read_updates, updates, sizeof updates);
    assert_memory_equal(read_deletes, deletes, sizeof deletes);
}

static void reset_and_initialize_name_a_table(void **state)
{
    rp_buf *out = *state;
    rp_string table;
    int64_t pid;

    rp_wire_write_reset_request(out, "abc");
    assert_ok(rp_wire_read_reset_request(out->data, out->size, &table, NULL));
    expect_name(table, "abc");
    rp_buf_clear(out);
    rp_wire_write_initialize_request(out, -7, "x");
    assert_ok(rp_wire_read_initialize_request(out->data, out->size, &pid, &table, NULL));
    expect_name(table, "x");
    assert_int_equal(pid, -7);
}

static void expect_selector(const rp_selector_options *a, const rp_selector_options *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_true(b->kind != RP_PRIORITIZED || a->exponent == b->exponent);
}

static void expect_limiter(const rp_limiter_options *a, const rp_limiter_options *b)
{
    assert_true(a->samples_per_insert == b->samples_per_insert && a->min_size == b->min_size);
    assert_true(a->min_diff == b->min_diff && a->max_diff == b->max_diff);
}

static rp_signature *make_signature(void)
{
    rp_nest_node nodes[] = {
        {.kind = RP_NEST_DICT, .child_count = 2},
        {.kind = RP_NEST_LEAF, .key = "a", .spec = {"a", RP_FLOAT32, {2, {-1, 84}}}},
        {.kind = RP_NEST_LEAF, .key = "b", .spec = {NULL, RP_INT64, {0, {0}}}},
    };
    rp_signature *signature = NULL;

    assert_ok(
        rp_signature_new(rp_allocator_default(), nodes, COUNT_OF(nodes), &signature, NULL));
    return signature;
}

static void create_table_carries_all_options(void **state)
{
    rp_buf *out = *state, again;
    rp_table_options options = {
        .name = "new",
        .limiter = {2.5, 10, 0.0, DBL_MAX},
        .max_size = 1000,
        .max_bytes = 1 << 30,
        .max_times_sampled = 3,
        .soft_limit = true,
    };
    rp_signature *read_signature = NULL;
    rp_wire_table_options read;

    for (int kind = RP_FIFO; kind <= RP_MAX_HEAP; kind++) {
        options.sampler = (rp_selector_options){(rp_selector_kind)kind, 0.6};
        options.remover = (rp_selector_options){(rp_selector_kind)(RP_MAX_HEAP - kind), -0.4};
        options.signature = kind % 2 == 0 ? make_signature() : NULL;
        rp_buf_clear(out);
        rp_wire_write_create_table(out, &options);
        assert_ok(rp_wire_read_create_table(out->data, out->size, &read, NULL));
        expect_name(read.name, "new");
        expect_selector(&read.sampler, &options.sampler);
        expect_selector(&read.remover, &options.remover);
        expect_limiter(&read.limiter, &options.limiter);
        assert_true(read.max_size == 1000 && read.max_bytes == 1 << 30);
        assert_true(read.max_times_sampled == 3 && read.soft_limit);
        assert_true((read.signature != NULL) == (options.signature != NULL));
        if (options.signature == NULL) continue;
        assert_ok(rp_wire_read_signature(rp_allocator_default(), read.signature,
                                         read.signature_size, &read_signature, NULL));
        rp_buf_init(&again, rp_allocator_default());
        rp_wire_put_signature(&again, 9, read_signature);
        assert_memory_equal(again.data + again.size - read.signature_size, read.signature,
                            read.signature_size);
        rp_buf_deinit(&again);
        rp_signature_unref(read_signature);
        rp_signature_unref(options.signature);
    }
}

static void alter_table_carries_only_changed_options(void **state)
{
    rp_buf *out = *state;
    rp_table_alteration change = {
        .max_size = 0, .max_bytes = 5, .max_times_sampled = -1, .limiter = {0.0, 0, 0.0, -1.0}};
    rp_limiter_options limiter = {9, 9, 9, 9};
    rp_wire_alter_table read;

    for (uint32_t which = 0; which < 32; which++) {
        change.which = which;
        rp_buf_clear(out);
        rp_wire_write_alter_table(out, "t", &change);
        assert_ok(rp_wire_read_alter_table(out->data, out->size, &read, NULL));
        expect_name(read.table, "t");
        assert_int_equal(read.has_max_size, (which & RP_ALTER_MAX_SIZE) != 0);
        assert_int_equal(read.has_max_bytes, (which & RP_ALTER_MAX_BYTES) != 0);
        assert_int_equal(read.has_max_times_sampled, (which & RP_ALTER_MAX_TIMES_SAMPLED) != 0);
        assert_int_equal(read.recenter, (which & RP_ALTER_RECENTER) != 0);
        assert_int_equal(read.limiter.has_samples_per_insert && read.limiter.has_min_size &&
                             read.limiter.has_min_diff && read.limiter.has_max_diff,
                         (which & RP_ALTER_LIMITER) != 0);
        if (read.has_max_bytes) assert_int_equal(read.max_bytes, 5);
        if (read.has_max_times_sampled) assert_int_equal(read.max_times_sampled, -1);
        if ((which & RP_ALTER_LIMITER) == 0) continue;
        rp_wire_limiter_apply(&read.limiter, &limiter);
        expect_limiter(&limiter, &change.limiter);
    }
}

static void pause_and_resume_carry_their_side(void **state)
{
    static const uint32_t sides[] = {RP_SIDE_INSERTS, RP_SIDE_SAMPLES,
                                     RP_SIDE_INSERTS | RP_SIDE_SAMPLES};
    rp_buf *out = *state;
    rp_wire_pause_table read;

    for (size_t i = 0; i < COUNT_OF(sides); i++) {
        rp_buf_clear(out);
        rp_wire_write_pause_table(out, "t", sides[i]);
        assert_ok(rp_wire_read_pause_table(out->data, out->size, &read, NULL));
        expect_name(read.table, "t");
        assert_int_equal(read.inserts, (sides[i] & RP_SIDE_INSERTS) != 0);
        assert_int_equal(read.samples, (sides[i] & RP_SIDE_SAMPLES) != 0);
    }
}

static void no_table_name_means_all_tables(void **state)
{
    rp_buf *out = *state;
    bool without_tables;
    size_t max_calls;
    rp_string table;

    rp_wire_write_why_blocked(out, NULL, 7);
    assert_ok(rp_wire_read_why_blocked(out->data, out->size, &table, &max_calls, NULL));
    assert_true(table.size == 0 && max_calls == 7);
    rp_buf_clear(out);
    rp_wire_write_status_request(out, NULL, false);
    assert_int_equal(out->size, 0);
    rp_wire_write_status_request(out, "abc", false);
    assert_ok(rp_wire_read_status_request(out->data, out->size, &table, &without_tables, NULL));
    expect_name(table, "abc");
    assert_false(without_tables);
    rp_wire_write_status_request(out, NULL, true);
    assert_ok(rp_wire_read_status_request(out->data, out->size, &table, &without_tables, NULL));
    assert_true(without_tables);
    rp_buf_clear(out);
    rp_wire_write_drop_table(out, "gone");
    assert_ok(rp_wire_read_drop_table(out->data, out->size, &table, NULL));
    expect_name(table, "gone");
}

static void items_are_named_by_their_keys(void **state)
{
    rp_buf *out = *state;
    uint64_t keys[] = {0, 1, UINT64_MAX, 300}, read_keys[COUNT_OF(keys)];
    rp_update updates[] = {{0, 0.0}, {UINT64_MAX, -1.5}, {7, 1e300}};
    rp_update read_updates[COUNT_OF(updates)];
    rp_wire_keys_request read;

    for (int flags = 0; flags < 4; flags++) {
        rp_buf_clear(out);
        rp_wire_write_peek(out, "t", keys, COUNT_OF(keys), flags & 1, flags & 2);
        assert_ok(rp_wire_read_peek(out->data, out->size, 4, &read, NULL));
        assert_true(read.count == 4 && read.with_data == ((flags & 1) != 0) &&
                    read.cut_rows == ((flags & 2) != 0));
        rp_wire_request_keys(&read, read_keys);
        assert_memory_equal(read_keys, keys, sizeof keys);
    }
    rp_buf_clear(out);
    rp_wire_write_delete(out, "t", keys, COUNT_OF(keys));
    assert_ok(rp_wire_read_delete(out->data, out->size, 4, &read, NULL));
    rp_wire_request_keys(&read, read_keys);
    assert_memory_equal(read_keys, keys, sizeof keys);
    rp_buf_clear(out);
    rp_wire_write_update(out, "t", updates, COUNT_OF(updates));
    assert_ok(rp_wire_read_update_request(out->data, out->size, 3, &read, NULL));
    expect_name(read.table, "t");
    rp_wire_request_updates(&read, read_updates);
    for (size_t i = 0; i < COUNT_OF(updates); i++)
        assert_true(read_updates[i].key == updates[i].key &&
                    read_updates[i].priority == updates[i].priority);
}

static void draws_have_options(void **state)
{
    rp_buf *out = *state;
    rp_sample_options options = {.count = 32, .at_least = 4, .distinct = true, .beta = 0.4};
    rp_wire_draw_request read;

    rp_wire_write_draw(out, "t", &options, 0, true);
    assert_ok(rp_wire_read_draw(out->data, out->size, &read, NULL));
    expect_name(read.table, "t");
    assert_true(read.count == 32 && read.at_least == 4 && read.distinct && read.beta == 0.4);
    assert_true(read.has_timeout && read.timeout_ms == 0 && read.cut_rows);
    rp_buf_clear(out);
    options = (rp_sample_options){.count = 1};
    rp_wire_write_draw(out, "t", &options, -1, false);
    assert_wrote(out, "0a0174 1001");
}

RP_TESTS(request_write)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sample_requests_carry_their_timeout, set_up, tear_down),
        cmocka_unit_test_setup_teardown(mutations_come_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reset_and_initialize_name_a_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(create_table_carries_all_options, set_up, tear_down),
        cmocka_unit_test_setup_teardown(alter_table_carries_only_changed_options, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(pause_and_resume_carry_their_side, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_table_name_means_all_tables, set_up, tear_down),
        cmocka_unit_test_setup_teardown(items_are_named_by_their_keys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(draws_have_options, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
