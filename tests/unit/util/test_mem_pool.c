/* SPDX-License-Identifier: Apache-2.0 */
#include "util/mem_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/unit.h"
#include "util/mem.h"
#include "util/rng.h"

enum { MIB = 1 << 20, REGION = 2 * MIB };

static rp_pool_info info(void)
{
    rp_pool_info out;

    rp_pool_get_info(&out);
    assert_true(out.held_bytes <= 2 * out.used_bytes + REGION);
    return out;
}

/* Each test runs in a thread of its own, whose cache is handed in at the end: what is held then
 * is what there was before. */
static void *run_in_thread(void *test)
{
    (*(void (**)(void))test)();
    return NULL;
}

static void in_a_thread(void (*test)(void))
{
    rp_pool_info before = info(), after;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, run_in_thread, (void *)&test), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    after = info();
    assert_int_equal(after.used_bytes, before.used_bytes);
    assert_true(rp_pool_check());
}

/* A block of a test: filled with its number, so that an overlap shows. */
typedef struct piece {
    uint8_t *data;
    size_t size;
    uint8_t mark;
} piece;

static void make(piece *p, size_t size, size_t number)
{
    *p = (piece){rp_pool_alloc(size), size, (uint8_t)number};
    assert_non_null(p->data);
    assert_int_equal((uintptr_t)p->data % 16, 0);
    memset(p->data, p->mark, size);
}

static void check_and_free(piece *p)
{
    if (p->data == NULL) return;
    assert_true(rp_test_is_all(p->data, p->mark, p->size));
    rp_pool_free(p->data, p->size);
    p->data = NULL;
}

static void take_every_size(void)
{
    static piece pieces[3][RP_POOL_MAX_BYTES + 1];

    for (size_t round = 0; round < 3; round++)
        for (size_t size = 1; size <= RP_POOL_MAX_BYTES; size++)
            make(&pieces[round][size], size, round + size);
    assert_true(rp_pool_check());
    for (size_t round = 0; round < 3; round++)
        for (size_t size = RP_POOL_MAX_BYTES; size >= 1; size--)
            check_and_free(&pieces[round][size]);
}

static void blocks_of_every_size_are_apart(void **state)
{
    (void)state;
    in_a_thread(take_every_size);
}

static void take_again(void)
{
    for (size_t size = 1; size <= RP_POOL_MAX_BYTES; size += 13) {
        void *first = rp_pool_alloc(size), *second;

        rp_pool_free(first, size);
        second = rp_pool_alloc(size);
        assert_ptr_equal(first, second);
        rp_pool_free(second, size);
    }
}

static void block_freed_last_is_given_next(void **state)
{
    (void)state;
    in_a_thread(take_again);
}

static void do_anything(void)
{
    enum { PIECES = 20000 };
    size_t steps = 400000 / rp_test_length(rp_test_step(1, 4), 10);
    piece *pieces = calloc(PIECES, sizeof *pieces);
    rp_rng rng;
    assert_non_null(pieces);
    rp_rng_init(&rng, 5);

    for (size_t step = 0; step < steps; step++) {
        piece *p = &pieces[rp_rng_below(&rng, PIECES)];
        size_t most = step / 40000 % 2 == 0 ? RP_POOL_MAX_BYTES : 100;

        if (p->data != NULL)
            check_and_free(p);
        else
            make(p, 1 + rp_rng_below(&rng, most), step);
        if (step % 20000 == 0) assert_true(rp_pool_check() && info().held_bytes < 60 * MIB);
    }
    for (size_t i = 0; i < PIECES; i++) check_and_free(&pieces[i]);
    free(pieces);
}

static void invariants_hold_through_random_use(void **state)
{
    (void)state;
    in_a_thread(do_anything);
}

/* Fills `bytes` with blocks of one size, then frees them all. */
static void fill_and_empty(size_t size, size_t bytes)
{
    size_t count = bytes / size;
    void **blocks = calloc(count, sizeof *blocks);
    assert_non_null(blocks);

    for (size_t i = 0; i < count; i++) {
        blocks[i] = rp_pool_alloc(size);
        assert_non_null(blocks[i]);
    }
    assert_true(info().used_bytes >= bytes && rp_pool_check());
    for (size_t i = 0; i < count; i++) rp_pool_free(blocks[i], size);
    assert_true(rp_pool_check());
    free(blocks);
}

static void use_one_size_after_the_other(void)
{
    /* Four million blocks of 16 bytes take most of the time. */
    const size_t sizes[] = {80, 900, rp_test_length(16, 48), 2048, 256};

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        fill_and_empty(sizes[i], 64 * MIB);
        /* The cache keeps a little of each size, which may pin a region or two, and as much
         * again may be kept empty. */
        assert_true(info().held_bytes <= 2 * (i + 2) * REGION);
    }
}

static void empty_memory_goes_back_or_to_another_size(void **state)
{
    (void)state;
    in_a_thread(use_one_size_after_the_other);
}

/* Every 32nd block stays, so that each slab of 64 KiB has at least one; then these go. */
static void trim_around_blocks(void)
{
    enum { SIZE = 1024, COUNT = 16 * MIB / SIZE };
    piece *pieces = calloc(COUNT, sizeof *pieces);
    size_t used;

    assert_non_null(pieces);
    for (size_t i = 0; i < COUNT; i++) make(&pieces[i], SIZE, i);
    for (size_t i = 0; i < COUNT; i++)
        if (i % 32 != 0) check_and_free(&pieces[i]);
    rp_pool_trim();
    assert_true(rp_pool_check());
    assert_int_equal(info().held_bytes, info().used_bytes);
    used = info().used_bytes;
    for (size_t i = 0; i < COUNT; i++)
        if (pieces[i].data == NULL) make(&pieces[i], SIZE, i + 1);
    assert_in_range(info().used_bytes, used, used + REGION); /* into the same slabs */
    /* Half of the regions keep a slab or two: what is given back in them can be used again. */
    for (size_t i = 0; i < COUNT; i++)
        if (i % (COUNT / 4) != 0) check_and_free(&pieces[i]);
    rp_pool_trim();
    assert_true(rp_pool_check());
    assert_int_equal(info().held_bytes, info().used_bytes);
    for (size_t i = 0; i < COUNT; i++)
        if (pieces[i].data == NULL) make(&pieces[i], SIZE, i + 2);
    for (size_t i = 0; i < COUNT; i++) check_and_free(&pieces[i]);
    rp_pool_trim();
    assert_true(rp_pool_check());
    free(pieces);
}

static void memory_that_is_given_back_can_be_used_again(void **state)
{
    (void)state;
    in_a_thread(trim_around_blocks);
}

enum { LINE = 4096 };

static size_t passed_on(void)
{
    return rp_test_part(200000, 30000);
}

/* Blocks on their way from one thread to another. */
typedef struct line {
    pthread_mutex_t mu;
    pthread_cond_t cv;
    piece pieces[LINE];
    size_t put, taken;
} line;

static void *make_many(void *arg)
{
    line *l = arg;

    for (size_t i = 0; i < passed_on(); i++) {
        piece p;
        make(&p, 1 + i % 300, i);
        (void)pthread_mutex_lock(&l->mu);
        while (l->put - l->taken == LINE) (void)pthread_cond_wait(&l->cv, &l->mu);
        l->pieces[l->put++ % LINE] = p;
        (void)pthread_cond_broadcast(&l->cv);
        (void)pthread_mutex_unlock(&l->mu);
    }
    return NULL;
}

static void *free_many(void *arg)
{
    line *l = arg;

    for (size_t i = 0; i < passed_on(); i++) {
        piece p;
        (void)pthread_mutex_lock(&l->mu);
        while (l->put == l->taken) (void)pthread_cond_wait(&l->cv, &l->mu);
        p = l->pieces[l->taken++ % LINE];
        (void)pthread_cond_broadcast(&l->cv);
        (void)pthread_mutex_unlock(&l->mu);
        check_and_free(&p);
    }
    return NULL;
}

static void blocks_may_be_freed_by_another_thread(void **state)
{
    (void)state;
    rp_pool_info before = info();
    static line lines[2];
    pthread_t threads[4];

    for (size_t i = 0; i < 2; i++) {
        (void)pthread_mutex_init(&lines[i].mu, NULL);
        (void)pthread_cond_init(&lines[i].cv, NULL);
        assert_int_equal(pthread_create(&threads[i], NULL, make_many, &lines[i]), 0);
        assert_int_equal(pthread_create(&threads[2 + i], NULL, free_many, &lines[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);

    assert_int_equal(info().used_bytes, before.used_bytes);
    assert_true(rp_pool_check());
}

static atomic_bool stop;

static void *churn(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop)) fill_and_empty(64, MIB);
    return NULL;
}

/* A lock that another thread held at the fork would never be free in the child. */
static void child_of_a_fork_can_allocate(void **state)
{
    (void)state;
    pthread_t thread;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, churn, NULL), 0);

    for (size_t i = 0; i < rp_test_length(50, 15); i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            for (size_t size = 1; size <= RP_POOL_MAX_BYTES; size++)
                rp_pool_free(rp_pool_alloc(size), size);
            _exit(rp_pool_check() ? 0 : 1);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }

    atomic_store(&stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* In a child, whose address space is then full. */
static int run_out_of_memory(void)
{
    struct rlimit limit;
    size_t count = 0;
    void *first = NULL;

    if (getrlimit(RLIMIT_AS, &limit) != 0) return 1;
    limit.rlim_cur = 256 * MIB;
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
    for (void *ptr; (ptr = rp_pool_alloc(1000)) != NULL; count++) { /* a chain of them */
        memcpy(ptr, &first, sizeof first);
        first = ptr;
    }
    if (count == 0 || count > 256 * MIB / 1000 || !rp_pool_check()) return 3;
    for (void *ptr = first; ptr != NULL; ptr = first) {
        memcpy(&first, ptr, sizeof first);
        rp_pool_free(ptr, 1000);
    }
    first = rp_pool_alloc(1000);
    return first != NULL && rp_pool_check() ? 0 : 4;
}

static void failed_allocation_is_null_without_side_effects(void **state)
{
    (void)state;
    int status = 0;
    pid_t child;

    if (RP_SANITIZED) skip(); /* these need more addresses than that */
    const char *scale = getenv("RP_TEST_SCALE");
    if (scale != NULL && strtod(scale, NULL) < 0.05) skip(); /* and so does an emulator */
    child = fork();
    if (child == 0) _exit(run_out_of_memory());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

RP_TESTS(mem_pool)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_every_size_are_apart),
        cmocka_unit_test(block_freed_last_is_given_next),
        cmocka_unit_test(invariants_hold_through_random_use),
        cmocka_unit_test(empty_memory_goes_back_or_to_another_size),
        cmocka_unit_test(memory_that_is_given_back_can_be_used_again),
        cmocka_unit_test(blocks_may_be_freed_by_another_thread),
        cmocka_unit_test(child_of_a_fork_can_allocate),
        cmocka_unit_test(failed_allocation_is_null_without_side_effects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
