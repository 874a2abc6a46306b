/* SPDX-License-Identifier: Apache-2.0 */
/* One suite for all selectors, which compares them with a slow model; then tests of single
 * selectors. */
#include <float.h>
#include <math.h>

#include "support/unit.h"
#include "table/selector/selector.h"

enum { SLOTS = 300 };

static rp_test_oom oom;
static rp_allocator alloc;
static rp_rng rng;

static int set_up(void **state)
{
    (void)state;
    memset(&oom, 0, sizeof oom);
    atomic_init(&oom.left, RP_TEST_OOM_UNLIMITED);
    alloc = rp_test_oom_allocator(&oom);
    rp_rng_init(&rng, 11);
    return 0;
}

static int nothing_is_left(void **state)
{
    (void)state;
    return atomic_load(&oom.live) == 0 ? 0 : 1;
}

static const rp_selector_options all[] = {
    {RP_FIFO, 0},          {RP_LIFO, 0},           {RP_UNIFORM, 0},       {RP_MIN_HEAP, 0},
    {RP_MAX_HEAP, 0},      {RP_PRIORITIZED, 0},    {RP_PRIORITIZED, 0.5}, {RP_PRIORITIZED, 0.6},
    {RP_PRIORITIZED, 1.0}, {RP_PRIORITIZED, -0.4},
};

static rp_selector *make(rp_selector_kind kind, double exponent, size_t slots)
{
    rp_selector *s = NULL;
    rp_selector_options options = {kind, exponent};
    rp_error err;

    assert_ok_err(rp_selector_new(&alloc, &options, &s, &err), &err);
    assert_ok(s->ops->reserve(s, slots));
    return s;
}

static double weighed(const rp_selector *s, double priority)
{
    double value;

    assert_ok(rp_selector_weigh(s, priority, &value, NULL));
    return value;
}

static void insert(rp_selector *s, uint32_t slot, double priority)
{
    double value = weighed(s, priority);
    s->ops->insert(s, &slot, &value, 1);
}

static void update(rp_selector *s, uint32_t slot, double priority)
{
    double value = weighed(s, priority);
    s->ops->update(s, &slot, &value, 1);
}

static uint32_t pick(rp_selector *s, double *probability)
{
    uint32_t slot = UINT32_MAX;
    double ignored;

    assert_int_equal(
        s->ops->pick(s, &rng, 1, false, &slot, probability != NULL ? probability : &ignored),
        1);
    return slot;
}

typedef struct model {
    rp_selector_options options;
    bool there[SLOTS];
    double priority[SLOTS];
    uint64_t age[SLOTS], turn[SLOTS]; /* when inserted; when last set */
    uint64_t clock;
    size_t count;
} model;

static double model_weight(const model *m, uint32_t slot)
{
    return m->priority[slot] == 0 ? 0 : pow(m->priority[slot], m->options.exponent);
}

static double model_total(const model *m, const bool *without)
{
    double total = 0;
    for (uint32_t i = 0; i < SLOTS; i++)
        if (m->there[i] && !without[i]) total += model_weight(m, i);
    return total;
}

/* Whether slot a comes before slot b, for the selectors that leave nothing to chance. */
static bool comes_first(const model *m, uint32_t a, uint32_t b)
{
    switch (m->options.kind) {
    case RP_FIFO: return m->age[a] < m->age[b];
    case RP_LIFO: return m->age[a] > m->age[b];
    case RP_MIN_HEAP:
        if (m->priority[a] != m->priority[b]) return m->priority[a] < m->priority[b];
        return m->turn[a] < m->turn[b];
    case RP_MAX_HEAP:
        if (m->priority[a] != m->priority[b]) return m->priority[a] > m->priority[b];
        return m->turn[a] < m->turn[b];
    default: return false;
    }
}

/* That picking `slot` with `probability` is right when those in `taken` are gone. */
static void expect_pick(const model *m, const bool *taken, uint32_t slot, double probability)
{
    size_t left = 0;
    double total;

    assert_true(slot < SLOTS && m->there[slot] && !taken[slot]);
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (!m->there[i] || taken[i]) continue;
        left++;
        assert_false(comes_first(m, i, slot));
    }
    if (m->options.kind == RP_UNIFORM) {
        assert_true(probability == 1.0 / (double)left);
    } else if (m->options.kind == RP_PRIORITIZED) {
        total = model_total(m, taken);
        if (total == 0)
            assert_true(probability == 1.0 / (double)left);
        else
            assert_true(fabs(probability / (model_weight(m, slot) / total) - 1) < 1e-12);
    } else {
        assert_true(probability == 1);
    }
}

static void expect_batch(rp_selector *s, const model *m, size_t count, bool distinct)
{
    uint32_t slots[2 * SLOTS];
    double probabilities[2 * SLOTS];
    bool taken[SLOTS] = {false};
    size_t n = s->ops->pick(s, &rng, count, distinct, slots, probabilities);

    assert_int_equal(n, distinct && count > m->count ? m->count : count);
    for (size_t i = 0; i < n; i++) {
        expect_pick(m, taken, slots[i], probabilities[i]);
        if (distinct) taken[slots[i]] = true;
    }
}

static double any_priority(void)
{
    static const double priorities[] = {0, 0, 0.1, 1, 1, 1, 3, 1e-3, 250};
    return priorities[rp_rng_below(&rng, COUNT_OF(priorities))];
}

static void change_something(rp_selector *s, model *m)
{
    uint32_t slot = (uint32_t)rp_rng_below(&rng, SLOTS);
    double priority = any_priority();

    if (!m->there[slot]) {
        insert(s, slot, priority);
        m->there[slot] = true;
        m->age[slot] = m->clock;
        m->count++;
    } else if (rp_rng_below(&rng, 3) == 0) {
        s->ops->remove(s, slot);
        m->there[slot] = false;
        m->count--;
    } else {
        update(s, slot, priority);
    }
    m->priority[slot] = priority;
    m->turn[slot] = m->clock++;
}

static void conform(const rp_selector_options *options)
{
    const size_t steps = rp_test_length(6000, 1500);
    rp_selector *s = make(options->kind, options->exponent, SLOTS);
    model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->options = *options;

    for (size_t i = 0; i < steps; i++) {
        change_something(s, m);
        if (m->count == 0) continue;
        if (i % 3 == 0) expect_batch(s, m, 1, false);
        if (i % 20 == 0) expect_batch(s, m, 1 + rp_rng_below(&rng, 20), false);
        if (i % 20 == 10) expect_batch(s, m, 1 + rp_rng_below(&rng, 20), true);
        if (i % 500 == 0) expect_batch(s, m, 2 * SLOTS, true); /* all there are */
        if (i % 100 == 0) assert_true(s->ops->check(s, m->count));
        if (i == steps / 2) { /* cleared, it starts again; but turns go on */
            s->ops->clear(s);
            assert_true(s->ops->check(s, 0));
            assert_ok(s->ops->reserve(s, SLOTS));
            memset(m->there, 0, sizeof m->there);
            m->count = 0;
        }
    }
    assert_true(s->ops->check(s, m->count));
    assert_false(s->ops->check(s, m->count + 1));
    free(m);
    rp_selector_free(s);
}

static void fifo_conforms(void **state)
{
    (void)state;
    conform(&all[0]);
}

static void lifo_conforms(void **state)
{
    (void)state;
    conform(&all[1]);
}

static void uniform_conforms(void **state)
{
    (void)state;
    conform(&all[2]);
}

static void heaps_conform(void **state)
{
    (void)state;
    conform(&all[3]);
    conform(&all[4]);
}

static void prioritized_conforms_with_every_exponent(void **state)
{
    (void)state;
    for (size_t i = 5; i < COUNT_OF(all); i++) conform(&all[i]);
}

static void growth_keeps_existing_entries(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(all); k++) {
        rp_selector *s = make(all[k].kind, all[k].exponent, 10);
        uint32_t slots[20];
        double probabilities[20];
        bool seen[10] = {false};
        for (uint32_t i = 0; i < 10; i++) insert(s, i, i % 2);

        assert_ok(s->ops->reserve(s, 5000));
        assert_ok(s->ops->reserve(s, 5)); /* never shrinks */

        assert_true(s->ops->check(s, 10));
        assert_int_equal(s->ops->pick(s, &rng, 20, true, slots, probabilities), 10);
        for (size_t i = 0; i < 10; i++) seen[slots[i]] = true;
        for (size_t i = 0; i < 10; i++) assert_true(seen[i]);
        rp_selector_free(s);
    }
}

static void reserve_without_memory_changes_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(all); k++)
        for (size_t room = 0;; room++) {
            rp_selector *s = make(all[k].kind, all[k].exponent, 10);
            rp_status st;
            for (uint32_t i = 0; i < 10; i++) insert(s, i, i % 3);

            atomic_store(&oom.left, room);
            st = s->ops->reserve(s, 1000);
            atomic_store(&oom.left, RP_TEST_OOM_UNLIMITED);

            assert_true(s->ops->check(s, 10));
            if (st == RP_OK) insert(s, 999, 1);
            rp_selector_free(s);
            if (st == RP_OK) break;
            assert_int_equal(st, RP_NO_RESOURCE);
        }
}

static void first_reserve_without_memory_leaves_the_selector_empty(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(all); k++)
        for (size_t room = 0;; room++) {
            rp_selector *s = NULL;
            rp_status st;

            atomic_store(&oom.left, room);
            st = rp_selector_new(&alloc, &all[k], &s, NULL);
            if (st == RP_OK) st = s->ops->reserve(s, 100);
            atomic_store(&oom.left, RP_TEST_OOM_UNLIMITED);

            if (s != NULL) assert_true(s->ops->check(s, 0));
            rp_selector_free(s);
            assert_int_equal(oom.live, 0);
            if (st == RP_OK) break;
            assert_int_equal(st, RP_NO_RESOURCE);
        }
}

static void selector_that_ignores_priorities_is_not_moved_by_an_update(void **state)
{
    (void)state;
    rp_selector *fifo = make(RP_FIFO, 0, 8), *lifo = make(RP_LIFO, 0, 8);
    for (uint32_t i = 0; i < 8; i++) insert(fifo, i, 1), insert(lifo, i, 1);

    update(fifo, 0, 100);
    update(lifo, 3, 100);

    assert_int_equal(pick(fifo, NULL), 0);
    assert_int_equal(pick(lifo, NULL), 7);
    rp_selector_free(fifo);
    rp_selector_free(lifo);
}

static void upcoming_lists_the_next_removals(void **state)
{
    (void)state;
    rp_selector_kind kinds[] = {RP_FIFO, RP_LIFO};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        rp_selector *s = make(kinds[k], 0, 16);
        uint32_t ahead[32];
        for (uint32_t i = 0; i < 16; i++) insert(s, (i * 5) % 16, 1);

        assert_int_equal(s->ops->upcoming(s, 32, ahead), 16);

        for (size_t i = 0; i < 16; i++) {
            assert_int_equal(pick(s, NULL), ahead[i]);
            s->ops->remove(s, ahead[i]);
        }
        assert_int_equal(s->ops->upcoming(s, 1, ahead), 0);
        rp_selector_free(s);
    }
}

static void equal_priorities_leave_in_order_of_being_set(void **state)
{
    (void)state;
    rp_selector_kind kinds[] = {RP_MIN_HEAP, RP_MAX_HEAP};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        rp_selector *s = make(kinds[k], 0, 8);
        const uint32_t expected[] = {1, 3, 4, 0, 2};
        for (uint32_t i = 0; i < 5; i++) insert(s, i, 7);

        update(s, 0, 7); /* set to what it was: that counts as being set */
        update(s, 2, 8);
        update(s, 2, 7);

        for (size_t i = 0; i < COUNT_OF(expected); i++) {
            assert_int_equal(pick(s, NULL), expected[i]);
            s->ops->remove(s, expected[i]);
        }
        rp_selector_free(s);
    }
}

static void insertion_order_among_ties_survives_a_clear(void **state)
{
    (void)state;
    rp_selector *s = make(RP_MIN_HEAP, 0, 8);
    insert(s, 0, 1);
    s->ops->clear(s);
    assert_ok(s->ops->reserve(s, 8));

    insert(s, 5, 1);
    insert(s, 0, 1);

    assert_int_equal(pick(s, NULL), 5);
    rp_selector_free(s);
}

static void heaps_order_infinities_and_both_zeros(void **state)
{
    (void)state;
    const double priorities[] = {0.0, INFINITY, -0.0, -INFINITY, -5, DBL_MAX, 0x1p-1074};
    const uint32_t upwards[] = {3, 4, 0, 2, 6, 5, 1}, downwards[] = {1, 5, 6, 0, 2, 4, 3};
    rp_selector *min = make(RP_MIN_HEAP, 0, 8), *max = make(RP_MAX_HEAP, 0, 8);
    uint32_t slots[7];
    double probabilities[7];
    for (uint32_t i = 0; i < 7; i++)
        insert(min, i, priorities[i]), insert(max, i, priorities[i]);

    assert_int_equal(min->ops->pick(min, &rng, 7, true, slots, probabilities), 7);
    assert_memory_equal(slots, upwards, sizeof upwards); /* 0 and -0 are equal */
    assert_int_equal(max->ops->pick(max, &rng, 7, true, slots, probabilities), 7);
    assert_memory_equal(slots, downwards, sizeof downwards);

    rp_selector_free(min);
    rp_selector_free(max);
}

static void distinct_pick_from_a_heap_keeps_the_order_among_ties(void **state)
{
    (void)state;
    rp_selector *s = make(RP_MAX_HEAP, 0, 64);
    uint32_t first[64], second[64];
    double probabilities[64];
    for (uint32_t i = 0; i < 64; i++) insert(s, i, i % 4);

    assert_int_equal(s->ops->pick(s, &rng, 40, true, first, probabilities), 40);
    assert_int_equal(s->ops->pick(s, &rng, 64, true, second, probabilities), 64);

    assert_memory_equal(first, second, 40 * sizeof *first);
    assert_true(s->ops->check(s, 64));
    rp_selector_free(s);
}

static void zero_is_picked_only_while_there_is_nothing_else(void **state)
{
    (void)state;
    for (size_t k = 5; k < COUNT_OF(all); k++) {
        rp_selector *s = make(RP_PRIORITIZED, all[k].exponent, 8);
        double probability;
        for (uint32_t i = 0; i < 4; i++) insert(s, i, 0);

        (void)pick(s, &probability);
        assert_true(probability == 0.25);
        insert(s, 4, 0x1p-1074);
        if (weighed(s, 0x1p-1074) > 0)
            for (int i = 0; i < 100; i++) assert_int_equal(pick(s, &probability), 4);
        update(s, 4, 0);
        (void)pick(s, &probability);
        assert_true(probability == 0.2);
        rp_selector_free(s);
    }
}

static void distinct_batch_ends_with_the_zeros(void **state)
{
    (void)state;
    rp_selector *s = make(RP_PRIORITIZED, 1, 16);
    uint32_t slots[10];
    double probabilities[10];
    for (uint32_t i = 0; i < 10; i++) insert(s, i, i < 4 ? 1 : 0);

    assert_int_equal(s->ops->pick(s, &rng, 10, true, slots, probabilities), 10);

    for (size_t i = 0; i < 4; i++) {
        assert_true(slots[i] < 4);
        assert_true(probabilities[i] == 1.0 / (double)(4 - i));
    }
    for (size_t i = 4; i < 10; i++) assert_true(probabilities[i] == 1.0 / (double)(10 - i));
    assert_true(s->ops->check(s, 10));
    rp_selector_free(s);
}

static void slot_that_comes_twice_in_an_update_keeps_its_last_value(void **state)
{
    (void)state;
    const uint32_t slots[] = {1, 1, 2, 2, 3, 3};
    const double values[] = {0, 2, 2, 0, 0, 0}, more[] = {1, 0, 0, 3, 4, 5};
    rp_selector *s = make(RP_PRIORITIZED, 1, 8);
    double probability;
    for (uint32_t i = 1; i <= 3; i++) insert(s, i, 1);

    s->ops->update(s, slots, values, 6);
    assert_int_equal(pick(s, &probability), 1);
    assert_true(probability == 1);
    s->ops->update(s, slots, more, 6);
    assert_true(s->ops->check(s, 3));
    for (int i = 0; i < 50; i++) assert_in_range(pick(s, NULL), 2, 3);
    rp_selector_free(s);
}

static void large_batch_of_draws_has_the_right_probabilities(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    rp_selector *s = make(RP_PRIORITIZED, 1, 600);
    uint32_t slots[MANY];
    double probabilities[MANY];
    for (uint32_t i = 0; i < 600; i++) insert(s, i, i % 8);

    assert_int_equal(s->ops->pick(s, &rng, MANY, false, slots, probabilities), MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_true(fabs(probabilities[i] - (slots[i] % 8) / 2100.0) < 1e-15);
    assert_int_equal(s->ops->pick(s, &rng, MANY, true, slots, probabilities), 600);
    bool seen[600] = {false};
    for (size_t i = 0; i < 600; i++) assert_false(seen[slots[i]]), seen[slots[i]] = true;
    rp_selector_free(s);
}

static void weights_are_powers_of_priorities(void **state)
{
    (void)state;
    static const double exponents[] = {0, 0.5, 0.6, 1, -0.4};
    static const double priorities[] = {0x1p-1074, 1e-300, 0.3, 1, 2, 1e10, 1e290};

    for (size_t e = 0; e < COUNT_OF(exponents); e++) {
        rp_selector *s = make(RP_PRIORITIZED, exponents[e], 1);
        assert_true(weighed(s, 0) == 0);
        assert_true(weighed(s, -0.0) == 0);
        for (size_t p = 0; p < COUNT_OF(priorities); p++)
            assert_true(fabs(weighed(s, priorities[p]) / pow(priorities[p], exponents[e]) -
                             1) <= 0x1p-51 * (1 + fabs(exponents[e] * log2(priorities[p]))));
        rp_selector_free(s);
    }
}

static void prioritized_refuses_priorities_without_a_finite_weight(void **state)
{
    (void)state;
    rp_selector *s = make(RP_PRIORITIZED, 1, 1), *square = make(RP_PRIORITIZED, 2, 1);
    rp_selector *inverse = make(RP_PRIORITIZED, -2, 1);
    rp_error err;
    double value, largest = DBL_MAX / 0x1p32;

    assert_fails(rp_selector_weigh(s, NAN, &value, &err), RP_INVALID, &err, "NaN");
    assert_fails(rp_selector_weigh(s, -1, &value, &err), RP_INVALID, &err, ">= 0");
    assert_fails(rp_selector_weigh(s, -0x1p-1074, &value, &err), RP_INVALID, &err, ">= 0");
    assert_fails(rp_selector_weigh(s, INFINITY, &value, &err), RP_INVALID, &err, "finite");
    assert_fails(rp_selector_weigh(s, -INFINITY, &value, &err), RP_INVALID, &err, "finite");
    assert_fails(rp_selector_weigh(s, nextafter(largest, INFINITY), &value, &err), RP_INVALID,
                 &err, "over the largest weight");
    assert_fails(rp_selector_weigh(square, 1e200, &value, &err), RP_INVALID, &err, "1e+200");
    assert_fails(rp_selector_weigh(inverse, 1e-200, &value, &err), RP_INVALID, &err, "-2");
    assert_ok(rp_selector_weigh(s, largest, &value, &err));
    rp_selector_free(s);
    rp_selector_free(square);
    rp_selector_free(inverse);
}

static void other_selectors_take_any_number(void **state)
{
    (void)state;
    static const double numbers[] = {-INFINITY, -DBL_MAX, -1, 0, 0x1p-1074, DBL_MAX, INFINITY};

    for (size_t k = 0; k < 5; k++) {
        rp_selector *s = make(all[k].kind, 0, 1);
        rp_error err;
        double value;
        for (size_t i = 0; i < COUNT_OF(numbers); i++)
            assert_true(weighed(s, numbers[i]) == numbers[i]);
        assert_fails(rp_selector_weigh(s, NAN, &value, &err), RP_INVALID, &err, "NaN");
        rp_selector_free(s);
    }
}

static void unknown_kind_and_wild_exponents_are_refused(void **state)
{
    (void)state;
    rp_selector_options unknown = {(rp_selector_kind)6, 0},
                        negative = {(rp_selector_kind)-1, 0};
    rp_selector_options nan = {RP_PRIORITIZED, NAN}, inf = {RP_PRIORITIZED, -INFINITY};
    rp_selector_options large = {RP_PRIORITIZED, 100.1}, most = {RP_PRIORITIZED, -100};
    rp_selector_options unused = {RP_FIFO, NAN};
    rp_selector *s = NULL;
    rp_error err;

    assert_fails(rp_selector_new(&alloc, &unknown, &s, &err), RP_INVALID, &err, "no kind 6");
    assert_fails(rp_selector_new(&alloc, &negative, &s, &err), RP_INVALID, &err, "no kind -1");
    assert_fails(rp_selector_new(&alloc, &nan, &s, &err), RP_INVALID, &err, "exponent");
    assert_fails(rp_selector_new(&alloc, &inf, &s, &err), RP_INVALID, &err, "-inf");
    assert_fails(rp_selector_new(&alloc, &large, &s, &err), RP_INVALID, &err,
                 "exponent must be in -100 .. 100, got 100.1");
    assert_null(s);
    assert_ok(rp_selector_new(&alloc, &most, &s, &err));
    rp_selector_free(s);
    assert_ok(rp_selector_new(&alloc, &unused, &s, &err)); /* not a prioritized one */
    rp_selector_free(s);
    rp_selector_free(NULL);
}

static void kinds_have_names(void **state)
{
    (void)state;
    static const char *const names[] = {"fifo",        "lifo",     "uniform",
                                        "prioritized", "min_heap", "max_heap"};

    for (int k = 0; k < 6; k++)
        assert_string_equal(rp_selector_name((rp_selector_kind)k), names[k]);
    assert_null(rp_selector_name((rp_selector_kind)6));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, nothing_is_left)

RP_TESTS(selector)
{
    const struct CMUnitTest tests[] = {
        TEST(fifo_conforms),
        TEST(lifo_conforms),
        TEST(uniform_conforms),
        TEST(heaps_conform),
        TEST(prioritized_conforms_with_every_exponent),
        TEST(growth_keeps_existing_entries),
        TEST(reserve_without_memory_changes_nothing),
        TEST(first_reserve_without_memory_leaves_the_selector_empty),
        TEST(selector_that_ignores_priorities_is_not_moved_by_an_update),
        TEST(upcoming_lists_the_next_removals),
        TEST(equal_priorities_leave_in_order_of_being_set),
        TEST(insertion_order_among_ties_survives_a_clear),
        TEST(heaps_order_infinities_and_both_zeros),
        TEST(distinct_pick_from_a_heap_keeps_the_order_among_ties),
        TEST(zero_is_picked_only_while_there_is_nothing_else),
        TEST(distinct_batch_ends_with_the_zeros),
        TEST(slot_that_comes_twice_in_an_update_keeps_its_last_value),
        TEST(large_batch_of_draws_has_the_right_probabilities),
        TEST(weights_are_powers_of_priorities),
        TEST(prioritized_refuses_priorities_without_a_finite_weight),
        TEST(other_selectors_take_any_number),
        TEST(unknown_kind_and_wild_exponents_are_refused),
        TEST(kinds_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
