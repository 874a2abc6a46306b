/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/journal_space.h"

#include "support/segments_rig.h"

enum {
    CHUNK = 64 << 10,
    PER_CHUNK = CHUNK + (4 << 10), /* with its record, at most */
    RECORDS = 64 << 10,            /* what stays free for records without chunks */
};

static void put_chunk(rp_rig *rig, uint64_t key)
{
    rp_chunk *chunk = rp_rig_chunk(key, CHUNK);
    rp_disk_location location;

    assert_ok(rp_segments_put_chunk(rig->segments, chunk, &location));
    rp_chunk_unref(chunk);
}

/* Whether there is room for a claim, which is not kept. */
static bool has(rp_journal_space *room, uint64_t queued, uint64_t bytes, uint64_t least)
{
    if (!rp_journal_space_claim(room, queued, bytes, least)) return false;
    rp_journal_space_release(room, bytes);
    return true;
}

static rp_rig rig_with_room(uint64_t bytes, rp_journal_space *room)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);

    rp_sim_set_capacity(rig.disk, bytes);
    rp_journal_space_init(room, rig.files, rig.segments, NULL, NULL);
    assert_true(rp_journal_space_update(room, 0));
    return rig;
}

/* M2: what is queued counts, whether it is written or not. */
static void queued_chunks_take_space(void **state)
{
    rp_journal_space room;
    rp_rig rig = rig_with_room(RECORDS + 3 * PER_CHUNK, &room);
    rp_error err;

    (void)state;
    assert_true(has(&room, 0, 3 * CHUNK, CHUNK));
    put_chunk(&rig, 1);
    put_chunk(&rig, 2);
    assert_true(has(&room, 0, CHUNK, CHUNK));
    assert_false(has(&room, 0, 2 * CHUNK, 2 * CHUNK));
    assert_ok_err(rp_segments_sync(rig.segments, &err), &err);
    assert_true(has(&room, 0, CHUNK, CHUNK)); /* no look was needed: M1 */
    assert_false(has(&room, 0, 2 * CHUNK, 2 * CHUNK));
    assert_false(rp_journal_space_update(&room, 0));
    assert_false(has(&room, 2 * CHUNK, CHUNK, CHUNK)); /* records wait */
    rp_rig_close(&rig);
}

/* M2: so do chunks that are about to be put. */
static void claims_take_space(void **state)
{
    rp_journal_space room;
    rp_rig rig = rig_with_room(RECORDS + PER_CHUNK, &room);

    (void)state;
    assert_true(rp_journal_space_claim(&room, 0, CHUNK, CHUNK));
    assert_false(has(&room, 0, CHUNK, CHUNK));
    rp_journal_space_release(&room, CHUNK);
    assert_true(has(&room, 0, CHUNK, CHUNK));
    rp_rig_close(&rig);
}

/* M3: a look finds room as soon as the smallest claim has it. */
static void space_for_the_smallest_claim_is_awaited(void **state)
{
    rp_journal_space room;
    rp_rig rig = rig_with_room(RECORDS, &room);

    (void)state;
    assert_false(rp_journal_space_is_wanted(&room));
    assert_false(has(&room, 0, 9 * CHUNK, 3 * CHUNK));
    assert_false(has(&room, 0, CHUNK, CHUNK));
    assert_false(has(&room, 0, 5 * CHUNK, 5 * CHUNK));
    assert_true(rp_journal_space_is_wanted(&room));
    assert_false(rp_journal_space_update(&room, 0));
    rp_sim_set_capacity(rig.disk, RECORDS + 2 * PER_CHUNK);
    assert_true(rp_journal_space_update(&room, 0));
    assert_false(rp_journal_space_is_wanted(&room));
    assert_true(has(&room, 0, CHUNK, CHUNK));
    rp_rig_close(&rig);
}

static void dropped_chunks_return_their_space(void **state)
{
    rp_journal_space room;
    rp_rig rig = rig_with_room(RECORDS + 2 * PER_CHUNK, &room);

    (void)state;
    put_chunk(&rig, 1);
    assert_false(has(&room, 0, 2 * CHUNK, 2 * CHUNK));
    rp_segments_drop_queue(rig.segments, true);
    assert_true(has(&room, 0, 2 * CHUNK, 2 * CHUNK));
    rp_rig_close(&rig);
}

/* An empty disk grants that claim, and none that is larger. */
static void the_largest_claim_is_known(void **state)
{
    rp_journal_space room;
    rp_rig rig = rig_with_room(RECORDS + 2 * PER_CHUNK, &room);
    uint64_t most = rp_journal_space_most(&room);

    (void)state;
    assert_true(has(&room, 0, most, most));
    assert_false(has(&room, 0, most + CHUNK / 64, most));
    rp_rig_close(&rig);
    rig = rig_with_room(RECORDS - 1, &room);
    assert_int_equal(rp_journal_space_most(&room), 0);
    rp_rig_close(&rig);
}

typedef struct reserve {
    uint64_t wanted, held;
} reserve;

static uint64_t wanted_of(void *ctx, uint64_t *held)
{
    const reserve *r = ctx;

    *held = r->held;
    return r->wanted;
}

/* M2: what the reserve lacks is not given away. What it has is not free any more. */
static void the_reserve_takes_room(void **state)
{
    reserve r = {.wanted = 3 * PER_CHUNK};
    rp_journal_space room;
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);

    (void)state;
    rp_sim_set_capacity(rig.disk, RECORDS + 3 * PER_CHUNK);
    rp_journal_space_init(&room, rig.files, rig.segments, wanted_of, &r);
    assert_true(rp_journal_space_update(&room, 0));
    assert_int_equal(rp_journal_space_lack(&room), 3 * PER_CHUNK);
    assert_false(has(&room, 0, CHUNK, CHUNK));
    assert_true(rp_journal_space_is_wanted(&room));
    r.wanted = 2 * PER_CHUNK; /* an item was deleted */
    assert_true(rp_journal_space_update(&room, 0));
    assert_true(has(&room, 0, CHUNK, CHUNK));
    assert_false(has(&room, 0, 2 * CHUNK, CHUNK));
    r.held = r.wanted; /* counts from the next look on, which sees the space of the file, too */
    assert_false(has(&room, 0, 2 * CHUNK, CHUNK));
    assert_true(rp_journal_space_update(&room, 0));
    assert_int_equal(rp_journal_space_lack(&room), 0);
    assert_true(has(&room, 0, 2 * CHUNK, CHUNK));
    rp_rig_close(&rig);
}

static rp_status no_space(rp_files *fs, uint64_t *total, uint64_t *available, rp_error *err)
{
    (void)fs, (void)total, (void)available, (void)err;
    return RP_UNAVAILABLE;
}

/* Without segments, and where the file system does not say, there is always room. */
static void unknown_free_space_counts_as_enough(void **state)
{
    rp_journal_space room;
    rp_rig rig = rig_with_room(RECORDS, &room);
    rp_files_ops ops = *rig.files->ops;

    (void)state;
    ops.space = no_space;
    rig.files->ops = &ops;
    assert_false(has(&room, 0, CHUNK, CHUNK));
    assert_true(rp_journal_space_update(&room, 0));
    assert_true(has(&room, 0, CHUNK, CHUNK));
    assert_true(rp_journal_space_most(&room) == UINT64_MAX);
    rp_journal_space_init(&room, rig.files, NULL, NULL, NULL);
    assert_true(rp_journal_space_update(&room, 0));
    assert_true(has(&room, 0, UINT64_MAX / 2, CHUNK));
    rp_rig_close(&rig);
}

RP_TESTS(journal_space)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queued_chunks_take_space),
        cmocka_unit_test(claims_take_space),
        cmocka_unit_test(space_for_the_smallest_claim_is_awaited),
        cmocka_unit_test(dropped_chunks_return_their_space),
        cmocka_unit_test(the_largest_claim_is_known),
        cmocka_unit_test(the_reserve_takes_room),
        cmocka_unit_test(unknown_free_space_counts_as_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
