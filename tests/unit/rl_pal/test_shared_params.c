/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/shared_params.h"

#include <pthread.h>
#include <stdatomic.h>

#include "support/unit.h"

enum { COUNT = 1001, READERS = 2 }; /* odd: the last word is half full */

static void versions_count_publications(void **state)
{
    (void)state;
    rp_real numbers[3] = {1, 2, 3}, got[3] = {0};
    rp_shared_params *shared = NULL;
    rp_error err;

    assert_ok(rp_shared_params_new(NULL, 3, &shared, &err));
    assert_int_equal(rp_shared_params_version(shared), 0);
    assert_int_equal(rp_shared_params_read(shared, 0, got), 0);
    assert_true(got[0] == 0);

    assert_int_equal(rp_shared_params_publish(shared, numbers), 1);
    assert_int_equal(rp_shared_params_read(shared, 0, got), 1);
    assert_memory_equal(got, numbers, sizeof got);
    got[0] = 9;
    assert_int_equal(rp_shared_params_read(shared, 1, got), 1);
    assert_true(got[0] == 9); /* it had them */

    for (int i = 2; i < 6; i++) {
        numbers[2] = (rp_real)i;
        assert_int_equal(rp_shared_params_publish(shared, numbers), i);
    }
    assert_int_equal(rp_shared_params_read(shared, 1, got), 5);
    assert_memory_equal(got, numbers, sizeof got);
    rp_shared_params_free(shared);
    rp_shared_params_free(NULL);
}

/* Readers of a publisher whose numbers are all those of the version. */
typedef struct readers {
    rp_shared_params *shared;
    atomic_bool is_over;
    atomic_int mixed, back, copies;
} readers;

static void *read_on(void *ctx)
{
    readers *r = ctx;
    rp_real *got = calloc(COUNT, sizeof *got);
    uint64_t version = 0;

    while (!atomic_load(&r->is_over)) {
        uint64_t next = rp_shared_params_read(r->shared, version, got);

        if (next < version) atomic_fetch_add(&r->back, 1);
        if (next != version) atomic_fetch_add(&r->copies, 1);
        version = next;
        for (size_t i = 0; version > 0 && i < COUNT; i++)
            if (got[i] != (rp_real)version) atomic_fetch_add(&r->mixed, 1);
    }
    free(got);
    return NULL;
}

static void a_copy_is_of_one_publication(void **state)
{
    (void)state;
    readers r = {0};
    rp_real *numbers = calloc(COUNT, sizeof *numbers);
    pthread_t threads[READERS];
    rp_error err;
    uint64_t version = 0;

    assert_ok(rp_shared_params_new(NULL, COUNT, &r.shared, &err));
    for (size_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &r), 0);
    /* until readers have made many copies, however the threads are scheduled */
    while (atomic_load(&r.copies) < (int)rp_test_length(2000, 200)) {
        version++;
        for (size_t i = 0; i < COUNT; i++) numbers[i] = (rp_real)version;
        assert_int_equal(rp_shared_params_publish(r.shared, numbers), version);
    }
    atomic_store(&r.is_over, true);
    for (size_t i = 0; i < READERS; i++) (void)pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&r.mixed), 0);
    assert_int_equal(atomic_load(&r.back), 0);
    rp_shared_params_free(r.shared);
    free(numbers);
}

static rp_status make(const rp_allocator *alloc)
{
    rp_shared_params *shared = NULL;
    rp_error err;
    rp_status st = rp_shared_params_new(alloc, COUNT, &shared, &err);

    rp_shared_params_free(shared);
    return st;
}

static void a_lack_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(make);
}

RP_TESTS(shared_params)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_count_publications),
        cmocka_unit_test(a_copy_is_of_one_publication),
        cmocka_unit_test(a_lack_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
