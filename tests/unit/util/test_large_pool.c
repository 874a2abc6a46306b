/* SPDX-License-Identifier: Apache-2.0 */
#include "util/large_pool.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/unit.h"
#include "util/mem.h"
#include "util/rng.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

static int trim(void **state)
{
    (void)state;
    rp_large_trim();
    return rp_large_get_info().idle_bytes == 0 ? 0 : 1;
}

static int nothing_is_left(void **state)
{
    return rp_large_get_info().used_bytes == 0 ? trim(state) : 1;
}

static void every_size_holds_its_bytes(void **state)
{
    (void)state;
    const size_t step = rp_test_length(12345, 54321);

    for (size_t size = RP_LARGE_LEAST; size <= RP_LARGE_MOST; size += step) {
        uint8_t *a = rp_large_alloc(size), *b = rp_large_alloc(size);

        assert_non_null(a);
        assert_non_null(b);
        assert_int_equal((uintptr_t)a % 16, 0);
        memset(a, 1, size);
        memset(b, 2, size);
        assert_true(rp_test_is_all(a, 1, size));
        rp_large_free(a, size);
        assert_true(rp_test_is_all(b, 2, size));
        rp_large_free(b, size);
    }
    rp_large_free(rp_large_alloc(RP_LARGE_MOST), RP_LARGE_MOST);
}

static void freed_block_is_used_again(void **state)
{
    (void)state;
    void *a = rp_large_alloc(400 * KIB), *b = rp_large_alloc(400 * KIB);

    rp_large_free(a, 400 * KIB);
    rp_large_free(b, 400 * KIB);
    assert_ptr_equal(rp_large_alloc(400 * KIB - 7), b); /* the latest first */
    assert_ptr_equal(rp_large_alloc(400 * KIB), a);
    assert_int_equal(rp_large_get_info().idle_bytes, 0);

    rp_large_free(a, 400 * KIB);
    rp_large_free(b, 400 * KIB - 7);
}

static void idle_blocks_are_bounded_by_blocks_in_use(void **state)
{
    enum { COUNT = 160, SIZE = MIB };
    void *blocks[COUNT];
    size_t used = 0;
    (void)state;

    for (size_t i = 0; i < COUNT; i++) blocks[i] = rp_large_alloc(SIZE);
    used = rp_large_get_info().used_bytes;
    assert_true(used >= COUNT * SIZE);
    for (size_t i = 0; i < COUNT; i++) {
        rp_large_info info;

        rp_large_free(blocks[i], SIZE);
        info = rp_large_get_info();
        assert_true(info.idle_bytes <= RP_LARGE_KEPT_BYTES);
        assert_true(i != COUNT / 2 || info.idle_bytes > 20 * MIB);
    }
    assert_true(rp_large_get_info().idle_bytes <= RP_LARGE_KEPT_BYTES);
    assert_int_equal(rp_large_get_info().used_bytes, 0);
    trim(NULL);
    for (size_t i = 0; i < COUNT; i++) /* one at a time: a few stay */
        rp_large_free(rp_large_alloc(SIZE), SIZE);
    assert_true(rp_large_get_info().idle_bytes <= RP_LARGE_FIRST_BYTES);
}

static void idle_blocks_of_other_sizes_make_room(void **state)
{
    enum { COUNT = 4 };
    void *blocks[COUNT];
    (void)state;

    for (size_t i = 0; i < COUNT; i++) blocks[i] = rp_large_alloc(MIB);
    for (size_t i = 0; i < COUNT; i++) rp_large_free(blocks[i], MIB);
    assert_int_equal(rp_large_get_info().idle_bytes, COUNT * MIB);

    blocks[0] = rp_large_alloc(2 * MIB);
    assert_int_equal(rp_large_get_info().idle_bytes, (COUNT - 2) * MIB);
    blocks[1] = rp_large_alloc(40 * KIB);
    assert_int_equal(rp_large_get_info().idle_bytes, (COUNT - 3) * MIB);

    rp_large_free(blocks[0], 2 * MIB);
    rp_large_free(blocks[1], 40 * KIB);
}

static void *churn(void *seed)
{
    enum { SLOTS = 8, ROUNDS = 2000 };
    struct {
        uint8_t *data;
        size_t size;
    } slots[SLOTS] = {0};
    rp_rng rng;

    rp_rng_init(&rng, (uintptr_t)seed);
    for (size_t i = 0; i < ROUNDS + SLOTS; i++) {
        size_t at = i % SLOTS;

        if (slots[at].data != NULL) {
            assert_int_equal(slots[at].data[0], (uint8_t)(i - SLOTS));
            assert_int_equal(slots[at].data[slots[at].size - 1], (uint8_t)(i - SLOTS));
            rp_large_free(slots[at].data, slots[at].size);
        }
        if (i >= ROUNDS) continue;
        slots[at].size = RP_LARGE_LEAST + rp_rng_next(&rng) % (256 * KIB);
        slots[at].data = rp_large_alloc(slots[at].size);
        assert_non_null(slots[at].data);
        slots[at].data[0] = slots[at].data[slots[at].size - 1] = (uint8_t)i;
    }
    return NULL;
}

static void threads_share_the_pool(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    (void)state;

    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
    for (size_t i = 0; i < 100; i++) rp_large_trim();
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void child_of_a_fork_allocates(void **state)
{
    void *block = rp_large_alloc(MIB);
    int status;
    pid_t pid;
    (void)state;

    pid = fork();
    if (pid == 0) {
        rp_large_free(block, MIB);
        block = rp_large_alloc(MIB);
        rp_large_free(block, MIB);
        _exit(block != NULL ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    rp_large_free(block, MIB);
}

static void default_allocator_moves_between_its_sources(void **state)
{
    static const size_t sizes[] = {100,     40 * KIB, 8 * MIB, 3 * MIB,  2000,
                                   5 * MIB, 6 * MIB,  20,      64 * KIB, 9000};
    const rp_allocator *a = rp_allocator_default();
    uint8_t *data = rp_alloc(a, 10000);
    size_t size = 10000;
    (void)state;

    memset(data, 7, size);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t kept = size < sizes[i] ? size : sizes[i];

        data = a->resize(a->ctx, data, size, sizes[i]);
        assert_non_null(data);
        assert_true(rp_test_is_all(data, 7, kept));
        size = sizes[i];
        memset(data, 7, size);
    }
    rp_release(a, data, size);
}

RP_TESTS(large_pool)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_size_holds_its_bytes, trim, nothing_is_left),
        cmocka_unit_test_setup_teardown(freed_block_is_used_again, trim, nothing_is_left),
        cmocka_unit_test_setup_teardown(idle_blocks_are_bounded_by_blocks_in_use, trim,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(idle_blocks_of_other_sizes_make_room, trim,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(threads_share_the_pool, trim, nothing_is_left),
        cmocka_unit_test_setup_teardown(child_of_a_fork_allocates, trim, nothing_is_left),
        cmocka_unit_test(default_allocator_moves_between_its_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
