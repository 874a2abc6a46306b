/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/cache.h"

#include "support/chunks.h"
#include "util/mem.h"

enum { CHUNKS = 12 };

typedef struct fixture {
    rp_test_oom o;
    rp_allocator alloc;
    rp_cache cache;
    rp_chunk *chunks[CHUNKS];
} fixture;

static void setup(fixture *f, size_t max_bytes)
{
    f->o = (rp_test_oom)RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    f->alloc = rp_test_oom_allocator(&f->o);
    rp_cache_init(&f->cache, &f->alloc, max_bytes);
    for (uint64_t i = 0; i < CHUNKS; i++)
        f->chunks[i] = rp_test_ints(i + 1, RP_CODEC_SNAPPY, 2, 2);
}

static void teardown(fixture *f)
{
    rp_cache_deinit(&f->cache);
    assert_int_equal(f->o.live, 0);
    for (size_t i = 0; i < CHUNKS; i++) {
        assert_int_equal(f->chunks[i]->refs.n, 1); /* the cache gave all its references back */
        rp_chunk_unref(f->chunks[i]);
    }
}

static void add(fixture *f, size_t chunk, size_t column, size_t bytes)
{
    uint8_t *data = rp_cache_reserve(&f->cache, bytes);
    assert_non_null(data);
    memset(data, (int)chunk, bytes);
    rp_cache_put(&f->cache, f->chunks[chunk], column, data, bytes, 1);
}

static rp_cached *find(fixture *f, size_t chunk, size_t column)
{
    return rp_cache_find(&f->cache, f->chunks[chunk], column);
}

static void an_empty_cache_finds_nothing_and_allocates_nothing(void **state)
{
    fixture f;

    (void)state;
    setup(&f, 100);
    assert_null(find(&f, 0, 0));
    assert_int_equal(f.o.total, 0);
    teardown(&f);
}

static void entries_are_found_by_chunk_and_column(void **state)
{
    fixture f;

    (void)state;
    setup(&f, 100);
    add(&f, 1, 0, 10);
    add(&f, 1, 3, 20);
    assert_int_equal(find(&f, 1, 0)->bytes, 10);
    assert_int_equal(find(&f, 1, 3)->bytes, 20);
    assert_null(find(&f, 1, 1));
    assert_null(find(&f, 2, 0));
    assert_int_equal(f.cache.bytes, 30);
    teardown(&f);
}

static void an_entry_keeps_its_chunk_alive(void **state)
{
    fixture f;

    (void)state;
    setup(&f, 100);
    add(&f, 0, 0, 10);
    assert_int_equal(f.chunks[0]->refs.n, 2);
    rp_cache_drop(&f.cache, find(&f, 0, 0));
    assert_int_equal(f.chunks[0]->refs.n, 1);
    assert_null(find(&f, 0, 0));
    teardown(&f);
}

static void the_bytes_stay_within_the_bound(void **state)
{
    fixture f;

    (void)state;
    setup(&f, 100);
    for (size_t i = 0; i < CHUNKS; i++) {
        add(&f, i, 0, 30);
        assert_true(f.cache.bytes <= 100);
        assert_non_null(find(&f, i, 0));
    }
    assert_int_equal(f.cache.count, 3);
    teardown(&f);
}

static void exactly_the_bound_fits(void **state)
{
    fixture f;

    (void)state;
    setup(&f, 100);
    add(&f, 0, 0, 60);
    add(&f, 1, 0, 40);
    assert_int_equal(f.cache.count, 2);
    add(&f, 2, 0, 1);
    assert_int_equal(f.cache.count, 2);
    teardown(&f);
}

static void an_entry_above_the_bound_evicts_all_others(void **state)
{
    fixture f;

    (void)state;
    setup(&f, 100);
    add(&f, 0, 0, 50);
    add(&f, 1, 0, 500);
    assert_int_equal(f.cache.count, 1);
    assert_non_null(find(&f, 1, 0));
    add(&f, 2, 0, 10);
    assert_null(find(&f, 1, 0));
    teardown(&f);
}

static void a_bound_of_zero_keeps_the_latest(void **state)
{
    fixture f;

    (void)state;
    setup(&f, 0);
    for (size_t i = 0; i < 3; i++) {
        add(&f, i, 0, 8);
        assert_int_equal(f.cache.count, 1);
        assert_non_null(find(&f, i, 0));
    }
    teardown(&f);
}

/* Looks without using. */
static bool is_there(const fixture *f, size_t chunk)
{
    for (size_t i = 0; i < f->cache.capacity; i++)
        if (f->cache.table[i].chunk == f->chunks[chunk]) return true;
    return false;
}

static void recently_used_entries_are_not_evicted(void **state)
{
    (void)state;
    for (size_t unused = 0; unused < 3; unused++) {
        size_t left[3], count = 0;
        fixture f;
        setup(&f, 40);
        for (size_t i = 0; i < 4; i++) add(&f, i, 0, 10);
        add(&f, 4, 0, 10); /* one goes, and the other three lose their mark */
        for (size_t i = 0; i < 4; i++)
            if (is_there(&f, i)) left[count++] = i;
        assert_int_equal(count, 3);
        for (size_t i = 0; i < 3; i++)
            if (i != unused) assert_non_null(find(&f, left[i], 0));
        add(&f, 5, 0, 10);
        for (size_t i = 0; i < 3; i++) assert_int_equal(is_there(&f, left[i]), i != unused);
        assert_true(is_there(&f, 4) && is_there(&f, 5));
        teardown(&f);
    }
}

static void memory_of_equal_size_is_reused(void **state)
{
    fixture f;
    size_t before;

    (void)state;
    setup(&f, 40);
    for (size_t i = 0; i < 4; i++) add(&f, i, 0, 10);
    before = f.o.total;
    for (size_t i = 4; i < CHUNKS; i++) add(&f, i, 0, 10);
    assert_int_equal(f.o.total, before);
    teardown(&f);
}

static void clearing_drops_all(void **state)
{
    fixture f;

    (void)state;
    setup(&f, 1000);
    for (size_t i = 0; i < CHUNKS; i++) add(&f, i, 0, 10);
    rp_cache_clear(&f.cache);
    assert_int_equal(f.cache.count, 0);
    assert_int_equal(f.cache.bytes, 0);
    for (size_t i = 0; i < CHUNKS; i++) assert_null(find(&f, i, 0));
    add(&f, 3, 0, 10);
    assert_non_null(find(&f, 3, 0));
    teardown(&f);
}

/* Adds and drops at random; a plain array says what must be there. Nothing is evicted here, so
 * the table must know exactly the same. */
static void random_use_agrees_with_a_model(void **state)
{
    enum { COLUMNS = 40 };
    static bool there[CHUNKS][COLUMNS];
    fixture f;
    rp_rng rng;

    (void)state;
    setup(&f, SIZE_MAX);
    rp_rng_init(&rng, 71);
    for (int i = 0; i < 30000; i++) {
        size_t chunk = rp_rng_below(&rng, CHUNKS), column = rp_rng_below(&rng, COLUMNS);
        rp_cached *entry = find(&f, chunk, column);
        assert_int_equal(entry != NULL, there[chunk][column]);
        if (entry != NULL) {
            assert_true(entry->chunk == f.chunks[chunk] && entry->column == column);
            rp_cache_drop(&f.cache, entry);
        } else {
            add(&f, chunk, column, 1 + column);
        }
        there[chunk][column] = !there[chunk][column];
    }
    teardown(&f);
}

static void random_eviction_keeps_the_rest_findable(void **state)
{
    fixture f;
    rp_rng rng;

    (void)state;
    setup(&f, 300);
    rp_rng_init(&rng, 72);
    for (int i = 0; i < 20000; i++) {
        size_t chunk = rp_rng_below(&rng, CHUNKS), column = rp_rng_below(&rng, 4), found = 0;
        if (find(&f, chunk, column) == NULL) add(&f, chunk, column, 1 + rp_rng_below(&rng, 80));
        assert_true(f.cache.bytes <= 300);
        for (size_t c = 0; c < CHUNKS; c++)
            for (size_t k = 0; k < 4; k++) found += find(&f, c, k) != NULL;
        assert_int_equal(found, f.cache.count);
    }
    teardown(&f);
}

static void a_failed_reservation_leaves_the_cache_usable(void **state)
{
    fixture f;

    (void)state;
    setup(&f, 1000);
    for (size_t i = 0; i < 8; i++) add(&f, i, 0, 10); /* the next one needs a larger table */
    f.o.left = 0;
    assert_null(rp_cache_reserve(&f.cache, 10));
    f.o.left = 1;
    assert_null(rp_cache_reserve(&f.cache, 10));
    for (size_t i = 0; i < 8; i++) assert_non_null(find(&f, i, 0));
    f.o.left = RP_TEST_OOM_UNLIMITED;
    add(&f, 8, 0, 10);
    assert_int_equal(f.cache.count, 9);
    teardown(&f);
}

RP_TESTS(cache)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_cache_finds_nothing_and_allocates_nothing),
        cmocka_unit_test(entries_are_found_by_chunk_and_column),
        cmocka_unit_test(an_entry_keeps_its_chunk_alive),
        cmocka_unit_test(the_bytes_stay_within_the_bound),
        cmocka_unit_test(exactly_the_bound_fits),
        cmocka_unit_test(an_entry_above_the_bound_evicts_all_others),
        cmocka_unit_test(a_bound_of_zero_keeps_the_latest),
        cmocka_unit_test(recently_used_entries_are_not_evicted),
        cmocka_unit_test(memory_of_equal_size_is_reused),
        cmocka_unit_test(clearing_drops_all),
        cmocka_unit_test(random_use_agrees_with_a_model),
        cmocka_unit_test(random_eviction_keeps_the_rest_findable),
        cmocka_unit_test(a_failed_reservation_leaves_the_cache_usable),
    };
    return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
