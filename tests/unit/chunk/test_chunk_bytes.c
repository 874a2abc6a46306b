/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a chunk that are freed before the chunk: pins and views, each released exactly once.
 */
#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "support/fixture.h"

static rp_test_oom oom;
static rp_allocator alloc;

static int set_up(void **state)
{
    (void)state;
    oom = (rp_test_oom)RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    alloc = rp_test_oom_allocator(&oom);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(oom.live, 0);
    assert_int_equal(oom.live_bytes, 0);
    return 0;
}

static void small_chunks_cannot_spill(void **state)
{
    rp_chunk *small = rp_test_try_blob(&alloc, 1, 1, 500);
    rp_chunk *large = rp_test_try_blob(&alloc, 2, 1, 5000);

    (void)state;
    assert_false(rp_chunk_can_spill(small));
    assert_true(rp_chunk_can_spill(large));
    rp_chunk_unref(small);
    rp_chunk_unref(large);
}

static void freeing_the_bytes_keeps_the_chunk(void **state)
{
    rp_chunk *chunk = rp_test_try_blob(&alloc, 2, 1, 5000);
    size_t before = oom.live_bytes, size;

    (void)state;
    assert_true(rp_chunk_pin(chunk));
    assert_false(rp_chunk_claim_bytes(chunk));
    rp_chunk_unpin(chunk);
    assert_true(rp_chunk_claim_bytes(chunk));
    assert_false(rp_chunk_pin(chunk));
    assert_null(rp_chunk_wire(chunk, &size));
    rp_chunk_free_bytes(chunk);
    assert_true(oom.live_bytes < before - 5000);
    assert_true(size > 5000);
    assert_int_equal(rp_chunk_get_column(chunk, 0)->shape.dims[1], 5000);
    rp_chunk_unref(chunk);
}

static int released;

static void release(void *ctx)
{
    released++;
    free(ctx);
}

static rp_chunk *adopt(void)
{
    rp_chunk *source = rp_test_try_blob(rp_allocator_default(), 3, 1, 5000), *chunk = NULL;
    uint8_t *copy = malloc(source->wire_bytes);

    assert_non_null(copy);
    memcpy(copy, source->wire, source->wire_bytes);
    released = 0;
    assert_ok(rp_chunk_adopt(&alloc, copy, source->wire_bytes, NULL,
                             &(rp_chunk_owner){release, copy}, &chunk, NULL));
    rp_chunk_unref(source);
    return chunk;
}

static void bytes_of_an_owner_are_released_once(void **state)
{
    rp_chunk *chunk = adopt();

    (void)state;
    rp_chunk_unref(chunk);
    assert_int_equal(released, 1);
    chunk = adopt();
    assert_true(rp_chunk_claim_bytes(chunk));
    rp_chunk_free_bytes(chunk);
    assert_int_equal(released, 1);
    rp_chunk_unref(chunk);
    assert_int_equal(released, 1);
}

static void views_hold_the_bytes(void **state)
{
    rp_chunk *chunk = adopt(), *view, *second;

    (void)state;
    assert_true(rp_chunk_pin(chunk));
    view = rp_chunk_view(&alloc, chunk);
    assert_non_null(view);
    assert_false(rp_chunk_claim_bytes(chunk));
    assert_ptr_equal(view->wire, chunk->wire);
    assert_true(rp_chunk_pin(view));
    second = rp_chunk_view(&alloc, view); /* of the same bytes, and not of the view */
    assert_non_null(second);
    assert_true(rp_chunk_claim_bytes(view));
    rp_chunk_free_bytes(view);
    assert_false(rp_chunk_claim_bytes(chunk));
    assert_int_equal(rp_chunk_get_origin(view)->key, 3);
    assert_int_equal(rp_chunk_get_column(view, 0)->shape.dims[1], 5000);
    rp_chunk_unref(second);
    assert_true(rp_chunk_claim_bytes(chunk));
    rp_chunk_free_bytes(chunk);
    assert_int_equal(released, 1);
    rp_chunk_unref(chunk);
    rp_chunk_unref(view);
    assert_int_equal(released, 1);
}

/* A long chain of views of views is none. */
static void views_of_views_hold_the_bytes(void **state)
{
    rp_chunk *chunk = adopt();

    (void)state;
    for (int i = 0; i < 100000; i++) {
        rp_chunk *view;
        assert_true(rp_chunk_pin(chunk));
        view = rp_chunk_view(&alloc, chunk);
        rp_chunk_unref(chunk);
        chunk = view;
    }
    assert_true(oom.live <= 2);
    rp_chunk_unref(chunk);
    assert_int_equal(released, 1);
}

static void views_without_memory_fail(void **state)
{
    rp_chunk *chunk = rp_test_try_blob(&alloc, 2, 1, 5000);

    (void)state;
    assert_true(rp_chunk_pin(chunk));
    oom.left = 0;
    assert_null(rp_chunk_view(&alloc, chunk));
    oom.left = RP_TEST_OOM_UNLIMITED;
    rp_chunk_unpin(chunk);
    assert_true(rp_chunk_claim_bytes(chunk));
    rp_chunk_free_bytes(chunk);
    rp_chunk_unref(chunk);
}

/* As many slices in each of two columns, in an order of their own. */
static void replace_chunks(size_t count)
{
    enum { MOST = 60 };
    rp_chunk *chunks[MOST], *views[MOST], *ordered[MOST];
    rp_chunk_slice slices[2 * MOST];
    rp_slices columns[2] = {{slices, count, false}, {slices + count, count, false}};
    rp_trajectory *old = NULL, *made;
    size_t room = 0;

    for (size_t i = 0; i < count; i++) {
        chunks[i] = rp_test_try_blob(&alloc, i, 1, 2000);
        assert_true(rp_chunk_pin(chunks[i]));
        views[i] = rp_chunk_view(&alloc, chunks[i]);
    }
    for (size_t i = 0; i < 2 * count; i++)
        slices[i] = (rp_chunk_slice){.chunk = chunks[i * 7 % count], .length = 1};
    assert_ok(rp_trajectory_new(&alloc, columns, 2, &old, NULL));
    for (size_t i = 0; i < count; i++)
        ordered[i] = views[rp_trajectory_get_chunk(old, i)->origin.key];
    do {
        oom.left = room++;
        made = rp_trajectory_over(&alloc, old, ordered);
        oom.left = RP_TEST_OOM_UNLIMITED;
    } while (made == NULL && room < 10);
    assert_non_null(made);
    assert_int_equal(room, count > 16 ? 3 : 2);
    assert_int_equal(made->bytes, old->bytes);
    for (size_t c = 0; c < 2; c++)
        for (size_t i = 0; i < count; i++) {
            const rp_chunk_slice *a = &rp_trajectory_slices(old, c).slices[i];
            const rp_chunk_slice *b = &rp_trajectory_slices(made, c).slices[i];

            assert_ptr_equal(b->chunk, views[a->chunk->origin.key]);
            assert_int_equal(b->length, a->length);
        }
    rp_trajectory_unref(made);
    rp_trajectory_unref(old);
    for (size_t i = 0; i < count; i++) {
        rp_chunk_unref(views[i]);
        rp_chunk_unref(chunks[i]);
    }
}

static void trajectories_can_be_remade_over_other_chunks(void **state)
{
    (void)state;
    replace_chunks(1);
    replace_chunks(5);
    replace_chunks(16);
    replace_chunks(17);
    replace_chunks(59);
}

RP_TESTS(chunk_bytes)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_chunks_cannot_spill, set_up, tear_down),
        cmocka_unit_test_setup_teardown(freeing_the_bytes_keeps_the_chunk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_of_an_owner_are_released_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(views_hold_the_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(views_of_views_hold_the_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(views_without_memory_fail, set_up, tear_down),
        cmocka_unit_test_setup_teardown(trajectories_can_be_remade_over_other_chunks, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
