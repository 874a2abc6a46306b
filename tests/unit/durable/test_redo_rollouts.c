/* SPDX-License-Identifier: Apache-2.0 */
/* Redo of the records of rollouts in a store that has as many rollouts as it can. */
#include "durable/format/rollout_records.h"
#include "durable/journal/redo_rollouts.h"
#include "rollouts/rollout_set.h"
#include "support/unit.h"

enum { LISTED = 100 }; /* the LSN when all images were taken */

typedef struct stage {
    rp_store *store;
    rp_rollouts_found found;
    rp_rollout_options options;
} stage;

static rp_string name_of(size_t number, char text[16])
{
    return (rp_string){text, (size_t)snprintf(text, 16, "r%zu", number)};
}

static int set_up(void **state)
{
    stage *s = calloc(1, sizeof *s);
    rp_rollout_set *set;

    assert_non_null(s);
    rp_rollout_options_init(&s->options);
    assert_ok(rp_store_new(NULL, &s->store, NULL));
    set = rp_store_rollouts(s->store);
    rp_rollout_set_set_most_bytes(set, UINT64_MAX);
    for (size_t i = 0; i < RP_ROLLOUT_SET_COUNT; i++) {
        char text[16];

        s->found.at[i].lsn = LISTED - 1;
        assert_ok(rp_rollout_set_create(set, name_of(i, text), &s->options,
                                        &s->found.at[i].rollouts, NULL, NULL));
        s->found.count++;
    }
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    stage *s = *state;

    rp_rollouts_found_free(&s->found);
    rp_store_free(s->store);
    free(s);
    return 0;
}

static rp_status redo(stage *s, rp_record_kind kind, const char *name, uint64_t lsn,
                      bool *applied)
{
    const rp_rollouts_redo options = {
        .alloc = rp_allocator_default(), .store = s->store, .found = &s->found, .lsn = LISTED};
    const rp_rollout_op op = {.kind = RP_ROLLOUT_ADVANCE, .now_ns = 1, .version = 1};
    rp_record record = {.kind = kind, .number = lsn};
    rp_buf payload;
    rp_status st;

    rp_buf_init(&payload, rp_allocator_default());
    rp_rollout_record_write_name(&payload, (rp_string){name, strlen(name)});
    if (kind == RP_RECORD_ROLLOUTS_OP) rp_rollout_op_write(&payload, &op);
    if (kind == RP_RECORD_ROLLOUTS_CREATE) rp_rollout_options_write(&payload, &s->options);
    record.payload = payload.data;
    record.size = payload.size;
    st = rp_redo_rollouts(&options, &record, applied, NULL);
    rp_buf_deinit(&payload);
    return st;
}

/* Rollouts were dropped before they were listed, and others were created in their place. */
static void rollouts_that_were_dropped_before_the_list_are_skipped(void **state)
{
    stage *s = *state;
    bool applied = true;

    assert_ok(redo(s, RP_RECORD_ROLLOUTS_CREATE, "gone", LISTED - 9, &applied));
    assert_false(applied);
    assert_ok(redo(s, RP_RECORD_ROLLOUTS_OP, "gone", LISTED - 8, &applied));
    assert_false(applied);
    assert_ok(redo(s, RP_RECORD_ROLLOUTS_DROP, "gone", LISTED - 7, &applied));
    assert_false(applied);
    assert_true(rp_rollout_set_is_full(rp_store_rollouts(s->store)));
}

/* After the list, one is dropped and another takes its place. */
static void later_rollouts_find_their_place(void **state)
{
    stage *s = *state;
    bool applied = false;

    assert_ok(redo(s, RP_RECORD_ROLLOUTS_DROP, "r7", LISTED, &applied));
    assert_true(applied);
    assert_ok(redo(s, RP_RECORD_ROLLOUTS_CREATE, "new", LISTED + 1, &applied));
    assert_true(applied);
    assert_ok(redo(s, RP_RECORD_ROLLOUTS_OP, "new", LISTED + 2, &applied));
    assert_true(applied);
}

/* One too many after the list: the journal is wrong. */
static void one_too_many_is_refused(void **state)
{
    stage *s = *state;
    bool applied = false;

    assert_true(redo(s, RP_RECORD_ROLLOUTS_CREATE, "new", LISTED + 1, &applied) != RP_OK);
}

RP_TESTS(redo_rollouts)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(rollouts_that_were_dropped_before_the_list_are_skipped),
        CASE(later_rollouts_find_their_place),
        CASE(one_too_many_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
