/* SPDX-License-Identifier: Apache-2.0 */
#include "support/rollout_rig.h"

static rp_test_rollouts t;
static rp_buf image;

/* Rollouts with a group in each state, two leases, a cursor and removed groups. */
static int set_up(void **state)
{
    static const rp_string reward = {"reward", 6};
    static const rp_rollout_consumer consumers[] = {{{"judge", 5}, NULL, 0},
                                                    {{"train", 5}, &reward, 1}};
    rp_rollout_options o = rp_test_rollout_options(2);
    const char *const complete[] = {"a", "b", "c", "d"};
    (void)state;
    o.max_staleness = 3;
    o.consumers = consumers;
    o.consumer_count = 2;
    rp_test_rollouts_init(&t, &o);
    rp_buf_init(&image, &t.alloc);
    for (int i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 2; k++) {
            assert_ok(rp_test_put(&t, complete[i], k, i, 1 + i));
            assert_ok(rp_test_update(&t, complete[i], k, "reward", 1, false));
        }
    assert_ok(rp_test_reserve(&t, "reserved", 100));
    assert_ok(rp_test_reserve(&t, "partial", 100));
    assert_ok(rp_test_put(&t, "partial", 1, 0, 4));
    assert_ok(rp_test_draw(&t, "judge", 2, 50));
    assert_ok(rp_test_draw(&t, "train", 1, 60));
    assert_ok(rp_test_draw(&t, "train", 1, 70));
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_ACK, 2));
    assert_ok(rp_test_reserve(&t, "gone", 10));
    assert_ok(rp_test_expire(&t, 10));
    assert_ok(rp_test_rollout(&t, (rp_rollout_op){.kind = RP_ROLLOUT_SET_CURSOR,
                                                  .cursor = {"loader", 6},
                                                  .data = {"12", 2}}));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_buf_deinit(&image);
    rp_test_rollouts_deinit(&t);
    return 0;
}

static rp_status save(void)
{
    rp_rollout_cut *cut;
    rp_status st = rp_rollouts_cut(t.r, &cut, NULL);

    if (st != RP_OK) return st;
    rp_buf_clear(&image);
    while (rp_rollout_cut_next(cut, &image)) continue;
    rp_rollout_cut_free(cut);
    return image.bad ? RP_NO_RESOURCE : RP_OK;
}

static rp_status load(const rp_allocator *alloc, const uint8_t *data, size_t size,
                      rp_rollouts **out)
{
    rp_rollout_loader *loader = rp_rollout_loader_new(alloc, 8);
    rp_status st =
        loader != NULL ? rp_rollout_loader_add(loader, data, size, &t.err) : RP_NO_RESOURCE;

    *out = NULL;
    if (st == RP_OK) st = rp_rollout_loader_finish(loader, out, &t.err);
    rp_rollout_loader_free(loader);
    return st;
}

static void an_image_is_loaded_as_it_was_saved(void **state)
{
    (void)state;
    uint64_t before, after;
    rp_rollouts *loaded, *original = t.r;
    rp_rollout_info info;

    assert_ok(save());
    assert_ok_err(load(&t.alloc, image.data, image.size, &loaded), &t.err);

    assert_true(rp_rollouts_check(loaded));
    assert_ok(rp_rollouts_digest(t.r, &before));
    assert_ok(rp_rollouts_digest(loaded, &after));
    assert_true(before == after);
    t.r = loaded;
    info = rp_test_rollout_info(&t);
    assert_int_equal(info.groups, 6);
    assert_int_equal(info.leased, 2);
    assert_int_equal(info.leases, 2);
    assert_int_equal(rp_test_fate(&t, "gone"), RP_ROLLOUT_EXPIRED);
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_ACK, 2)); /* it was acknowledged before */
    assert_int_equal(t.result.outcome, RP_ROLLOUT_REPEATED);
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_ACK, 1));
    assert_int_equal(t.result.acknowledged, 1); /* a: train had acknowledged it before */
    rp_rollouts_unref(original);
}

static void a_damaged_image_is_refused_or_valid(void **state)
{
    (void)state;
    rp_rollouts *loaded;
    size_t refused = 0, step = rp_test_step(1, 7);

    assert_ok(save());
    for (size_t size = 0; size < image.size; size++)
        assert_int_equal(load(&t.alloc, image.data, size, &loaded), RP_CORRUPT);
    for (size_t i = 0; i < image.size; i += step)
        for (int bit = 0; bit < 8; bit++) {
            rp_status st;

            image.data[i] ^= (uint8_t)(1 << bit);
            st = load(&t.alloc, image.data, image.size, &loaded);
            image.data[i] ^= (uint8_t)(1 << bit);
            assert_true(st == RP_OK || st == RP_CORRUPT || st == RP_NO_RESOURCE);
            if (st == RP_OK) assert_true(rp_rollouts_check(loaded));
            refused += st != RP_OK;
            rp_rollouts_unref(loaded);
        }
    assert_true(refused > image.size / step);
}

static void parts_in_a_wrong_order_are_refused(void **state)
{
    (void)state;
    rp_rollouts *loaded;
    size_t size;

    assert_ok(save());
    size = image.size;
    rp_buf_append(&image, image.data, 0);
    assert_non_null(rp_buf_reserve(&image, size));
    rp_buf_append(&image, image.data, size); /* everything twice */

    assert_fails(load(&t.alloc, image.data, image.size, &loaded), RP_CORRUPT, &t.err,
                 "malformed");
}

static rp_status scenario(const rp_allocator *alloc)
{
    rp_rollouts *loaded;
    rp_status st = load(alloc, image.data, image.size, &loaded);

    if (st == RP_OK) assert_true(rp_rollouts_check(loaded));
    rp_rollouts_unref(loaded);
    return st;
}

static void loading_survives_missing_memory(void **state)
{
    (void)state;
    assert_ok(save());

    rp_test_survives_oom(scenario);
}

static void saving_survives_missing_memory(void **state)
{
    (void)state;
    rp_status st = RP_NO_RESOURCE;
    size_t failed = 0;

    for (size_t room = 0; st != RP_OK; room++) {
        rp_buf_deinit(&image);
        rp_buf_init(&image, &t.alloc);
        atomic_store(&t.oom.left, room);
        st = save();
        atomic_store(&t.oom.left, RP_TEST_OOM_UNLIMITED);
        failed += st == RP_NO_RESOURCE;
    }
    assert_true(failed > 2);
}

static void a_large_image_comes_in_pieces(void **state)
{
    (void)state;
    static uint8_t bytes[RP_ROLLOUT_PIECE_BYTES / 2];
    rp_rollout_column column = {{"x", 1}, {RP_UINT8, {1, {sizeof bytes}}, bytes}};
    rp_rollout_loader *loader = rp_rollout_loader_new(&t.alloc, 8);
    uint64_t before, after, lsn = 1;
    rp_rollouts *loaded;
    rp_rollout_cut *cut;
    size_t pieces = 0;

    for (int i = 0; i < 8; i++) {
        char name[2] = {(char)('0' + i), 0};

        assert_ok(rp_test_rollout(&t, (rp_rollout_op){.kind = RP_ROLLOUT_PUT,
                                                      .group = rp_test_text(name),
                                                      .columns = &column,
                                                      .column_count = 1}));
    }
    assert_ok(rp_rollouts_cut(t.r, &cut, &lsn));
    assert_int_equal(lsn, 0); /* no log */
    for (; rp_rollout_cut_next(cut, &image); pieces++) {
        assert_true(image.size <= RP_ROLLOUT_MOST_PIECE_BYTES);
        assert_ok_err(rp_rollout_loader_add(loader, image.data, image.size, &t.err), &t.err);
        rp_buf_clear(&image);
    }
    rp_rollout_cut_free(cut);
    assert_ok(rp_rollout_loader_finish(loader, &loaded, &t.err));
    rp_rollout_loader_free(loader);

    assert_true(pieces >= 5);
    assert_ok(rp_rollouts_digest(t.r, &before));
    assert_ok(rp_rollouts_digest(loaded, &after));
    assert_true(before == after);
    rp_rollouts_unref(loaded);
}

RP_TESTS(rollouts_image)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_image_is_loaded_as_it_was_saved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_image_is_refused_or_valid, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts_in_a_wrong_order_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(loading_survives_missing_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(saving_survives_missing_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_large_image_comes_in_pieces, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
