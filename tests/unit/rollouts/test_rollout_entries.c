/* SPDX-License-Identifier: Apache-2.0 */
/* The ListRolloutsResponse of a peer that does not follow the format of ours. */
#include "rollouts/rollout_messages.h"
#include "rollouts/rollout_set.h"
#include "support/unit.h"
#include "wire/fields.h"

static size_t blocks;      /* that were allocated */
static size_t entries;     /* that were read */
static uint32_t last_size; /* group_size of the last one */
static rp_buf message;

static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    const rp_allocator *alloc = rp_allocator_default();

    (void)ctx;
    blocks += new_size > 0;
    return alloc->resize(alloc->ctx, ptr, old_size, new_size);
}

static void on_entry(void *ctx, const rp_rollouts_entry *entry)
{
    (void)ctx;
    entries++;
    last_size = entry->options->group_size;
}

static rp_status read_message(rp_error *err)
{
    const rp_allocator alloc = {resize, NULL};
    const rp_rollouts_call call = {.on_entry = on_entry};

    assert_false(message.bad);
    blocks = entries = 0;
    return rp_rollout_entries_read(&alloc, message.data, message.size, &call, err);
}

static int set_up(void **state)
{
    (void)state;
    rp_buf_init(&message, rp_allocator_default());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_buf_deinit(&message);
    return 0;
}

/* Appends an entry with this number of options, each with another group_size, 1, 2, ... */
static void put_entry(uint32_t count)
{
    size_t entry = rp_wire_begin(&message, 1), mark;
    rp_rollout_options o;

    rp_rollout_options_init(&o);
    rp_wire_put_text(&message, 1, "r");
    for (o.group_size = 1; o.group_size <= count; o.group_size++) {
        mark = rp_wire_begin(&message, 2);
        rp_rollout_options_write(&message, &o);
        rp_wire_end(&message, mark);
    }
    rp_wire_end(&message, entry);
}

static void only_the_last_options_are_parsed(void **state)
{
    size_t once;

    (void)state;
    put_entry(1);
    assert_ok(read_message(NULL));
    once = blocks;

    rp_buf_clear(&message);
    put_entry(1000);
    assert_ok(read_message(NULL));
    assert_int_equal(entries, 1);
    assert_int_equal(last_size, 1000);
    assert_int_equal(blocks, once);
}

static void an_entry_without_options_is_malformed(void **state)
{
    rp_error err;

    (void)state;
    put_entry(0);
    assert_fails(read_message(&err), RP_CORRUPT, &err, "ListRolloutsResponse");
    assert_int_equal(entries, 0);
}

static void a_response_has_at_most_the_rollouts_of_a_set(void **state)
{
    rp_error err;

    (void)state;
    for (int i = 0; i < RP_ROLLOUT_SET_COUNT; i++) put_entry(1);
    assert_ok(read_message(NULL));
    assert_int_equal(entries, RP_ROLLOUT_SET_COUNT);
    put_entry(1);
    assert_fails(read_message(&err), RP_CORRUPT, &err, "more than 256");
}

RP_TESTS(rollout_entries)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(only_the_last_options_are_parsed),
        CASE(an_entry_without_options_is_malformed),
        CASE(a_response_has_at_most_the_rollouts_of_a_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
