/* SPDX-License-Identifier: Apache-2.0 */
/* Images that are copied in steps while operations go on: an image is the state at the instant
 * at which it began. */
#include "support/rollout_rig.h"
#include "util/rng.h"

enum { GROUPS = 2600, NAMES = 3000 };

static rp_test_rollouts t;
static rp_rng rng;
static int64_t now_ns;
static uint64_t leases[64];
static size_t lease_count;

static int end(void **state)
{
    (void)state;
    rp_test_rollouts_deinit(&t);
    return 0;
}

static rp_string name_of(size_t number, char text[16])
{
    return (rp_string){text, (size_t)snprintf(text, 16, "g%zu", number)};
}

static rp_status apply(rp_rollout_op op)
{
    rp_status st;

    op.now_ns = now_ns;
    rp_rollout_batch_free(t.result.batch);
    st = rp_rollouts_apply(t.r, &op, &t.result, &t.err);
    if (st == RP_OK && op.kind == RP_ROLLOUT_DRAW && lease_count < COUNT_OF(leases))
        leases[lease_count++] = t.result.batch->lease;
    return st;
}

/* A random operation on a random group. */
static void change(void)
{
    static const rp_rollout_op_kind kinds[] = {
        RP_ROLLOUT_PUT,   RP_ROLLOUT_PUT,    RP_ROLLOUT_PUT,    RP_ROLLOUT_UPDATE,
        RP_ROLLOUT_ABORT, RP_ROLLOUT_DRAW,   RP_ROLLOUT_ACK,    RP_ROLLOUT_RELEASE,
        RP_ROLLOUT_RENEW, RP_ROLLOUT_EXPIRE, RP_ROLLOUT_RESERVE};
    float value = (float)rp_rng_below(&rng, 3);
    char name[] = {(char)('a' + rp_rng_below(&rng, 3)), '\0'}, text[16];
    rp_rollout_column column = {{name, 1}, {RP_FLOAT32, {.rank = 0}, &value}};
    size_t lease = lease_count > 0 ? rp_rng_below(&rng, lease_count) : 0;
    rp_rollout_op op = {
        .kind = kinds[rp_rng_below(&rng, COUNT_OF(kinds))],
        .group = name_of(rp_rng_below(&rng, NAMES), text),
        .index = (uint32_t)rp_rng_below(&rng, 2),
        .ttl_ns = 1 + (int64_t)rp_rng_below(&rng, 400),
        .columns = &column,
        .column_count = 1,
        .replace = true,
        .consumer = rp_test_text(rp_rng_below(&rng, 2) == 0 ? "x" : "y"),
        .groups = 1 + (uint32_t)rp_rng_below(&rng, 4),
        .lease = leases[lease],
    };

    now_ns++;
    (void)!apply(op);
    if (op.kind != RP_ROLLOUT_ACK && op.kind != RP_ROLLOUT_RELEASE) return;
    if (lease_count > 0) leases[lease] = leases[--lease_count];
}

static void start(void)
{
    const rp_rollout_consumer consumers[] = {{{"x", 1}, NULL, 0}, {{"y", 1}, NULL, 0}};
    rp_rollout_options o = rp_test_rollout_options(2);

    o.max_staleness = 1;
    o.consumers = consumers;
    o.consumer_count = 2;
    rp_test_rollouts_init(&t, &o);
    rp_rng_init(&rng, 5);
    now_ns = 1;
    lease_count = 0;
    for (size_t i = 0; i < GROUPS; i++) {
        char text[16];

        assert_ok(apply((rp_rollout_op){.kind = RP_ROLLOUT_PUT, .group = name_of(i, text)}));
    }
    for (int i = 0; i < 1500; i++) change();
}

/* Copies the rest, and loads the image into new rollouts. */
static rp_rollouts *finish(rp_rollout_cut *cut, void between(void))
{
    rp_rollout_loader *loader = rp_rollout_loader_new(&t.alloc, 9);
    rp_rollouts *copy;
    bool more = true;
    rp_buf buf;

    assert_non_null(loader);
    while (more) {
        if (between != NULL) between();
        assert_ok(rp_rollout_cut_step(cut, &more));
    }
    rp_buf_init(&buf, &t.alloc);
    while (rp_rollout_cut_next(cut, &buf)) {
        assert_ok_err(rp_rollout_loader_add(loader, buf.data, buf.size, &t.err), &t.err);
        rp_buf_clear(&buf);
    }
    assert_ok_err(rp_rollout_loader_finish(loader, &copy, &t.err), &t.err);
    rp_buf_deinit(&buf);
    rp_rollout_loader_free(loader);
    rp_rollout_cut_free(cut);
    return copy;
}

static uint64_t digest_of(rp_rollouts *r)
{
    uint64_t digest;

    assert_ok(rp_rollouts_digest(r, &digest));
    return digest;
}

static void expect_state(rp_rollouts *copy, uint64_t digest)
{
    assert_true(rp_rollouts_check(copy));
    assert_true(digest_of(copy) == digest);
    rp_rollouts_unref(copy);
    assert_true(rp_rollouts_check(t.r));
}

/* An image is of the state at its beginning, whatever `between` does between its steps. */
static void expect_image_of_now(void between(void))
{
    uint64_t before = digest_of(t.r);
    rp_rollout_cut *cut;

    assert_ok(rp_rollouts_cut_begin(t.r, &cut, NULL));
    expect_state(finish(cut, between), before);
}

static void change_many(void)
{
    for (int i = 0; i < 300; i++) change();
}

static void an_image_is_the_state_at_its_beginning(void **state)
{
    (void)state;
    start();
    for (int round = 0; round < 8; round++) {
        uint64_t before = digest_of(t.r);
        rp_rollout_cut *cut;

        assert_ok(rp_rollouts_cut_begin(t.r, &cut, NULL));
        change_many();
        expect_state(finish(cut, change_many), before);
        assert_true(digest_of(t.r) != before);
    }
}

static void remove_all(void)
{
    for (size_t i = 0; i < NAMES; i++) {
        char text[16];

        (void)!apply((rp_rollout_op){.kind = RP_ROLLOUT_ABORT, .group = name_of(i, text)});
    }
}

static void groups_that_are_removed_meanwhile_are_in_it(void **state)
{
    (void)state;
    rp_rollout_cut *cut;
    uint64_t before;
    start();

    expect_image_of_now(remove_all);

    now_ns += 1000; /* all leases are over */
    assert_ok(apply((rp_rollout_op){.kind = RP_ROLLOUT_EXPIRE}));
    remove_all();
    before = digest_of(t.r);
    assert_int_equal(rp_test_rollout_info(&t).groups, 0);
    assert_ok(rp_rollouts_cut_begin(t.r, &cut, NULL));
    change_many(); /* new groups are not */
    expect_state(finish(cut, NULL), before);
}

/* All groups of the image are removed, then a newer one that comes after them. */
static void newer_groups_are_removed_meanwhile(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "new", "newer"};
    rp_rollout_options o = rp_test_rollout_options(2);
    rp_rollout_cut *cut = NULL;
    uint64_t before = 0;
    rp_test_rollouts_init(&t, &o);
    now_ns = 1;

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (i == 2) {
            before = digest_of(t.r);
            assert_ok(rp_rollouts_cut_begin(t.r, &cut, NULL));
        }
        assert_ok(rp_test_put(&t, names[i], 0, 0, 1));
    }
    for (size_t i = 0; i < 3; i++)
        assert_ok(
            apply((rp_rollout_op){.kind = RP_ROLLOUT_ABORT, .group = rp_test_text(names[i])}));
    expect_state(finish(cut, NULL), before);
}

static void take_another(void)
{
    change_many();
    expect_image_of_now(change_many);
}

static void an_image_within_another_is_right(void **state)
{
    (void)state;
    start();
    expect_image_of_now(take_another);
}

static void an_advance_between_the_steps_changes_nothing(void **state)
{
    (void)state;
    const rp_rollout_op advance = {.kind = RP_ROLLOUT_ADVANCE, .version = 2};
    rp_rollout_cut *cut;
    uint64_t before;
    start();

    before = digest_of(t.r);
    assert_ok(rp_rollouts_cut_begin(t.r, &cut, NULL));
    assert_ok(apply(advance));
    assert_true(t.result.stale > RP_ROLLOUT_STEP);
    expect_state(finish(cut, change_many), before);
}

static void missing_memory_spoils_the_image_only(void **state)
{
    (void)state;
    bool more = true;
    rp_rollout_cut *cut;
    start();
    assert_ok(rp_rollouts_cut_begin(t.r, &cut, NULL));

    atomic_store(&t.oom.left, 0);
    remove_all(); /* each copies its group */
    atomic_store(&t.oom.left, RP_TEST_OOM_UNLIMITED);
    assert_int_equal(rp_rollout_cut_step(cut, &more), RP_NO_RESOURCE);
    rp_rollout_cut_free(cut);
    assert_true(rp_rollouts_check(t.r));
    assert_ok(rp_rollouts_cut_begin(t.r, &cut, NULL));
    rp_rollout_cut_free(cut); /* in the middle */
    change_many();
    assert_true(rp_rollouts_check(t.r));
}

RP_TESTS(rollouts_cut)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_image_is_the_state_at_its_beginning, end),
        cmocka_unit_test_teardown(groups_that_are_removed_meanwhile_are_in_it, end),
        cmocka_unit_test_teardown(newer_groups_are_removed_meanwhile, end),
        cmocka_unit_test_teardown(an_image_within_another_is_right, end),
        cmocka_unit_test_teardown(an_advance_between_the_steps_changes_nothing, end),
        cmocka_unit_test_teardown(missing_memory_spoils_the_image_only, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
