/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "support/unit.h"
#include "table/selector/sumtree.h"
#include "util/rng.h"

enum { MOST = 5000 };

static rp_test_oom oom;
static rp_allocator alloc;

static int set_up(void **state)
{
    (void)state;
    memset(&oom, 0, sizeof oom);
    atomic_init(&oom.left, RP_TEST_OOM_UNLIMITED);
    alloc = rp_test_oom_allocator(&oom);
    return 0;
}

static int nothing_is_left(void **state)
{
    (void)state;
    return atomic_load(&oom.live) == 0 ? 0 : 1;
}

static const char *const kernels[] = {"plain", "avx2", "avx512", "neon"};

/* A tree with room for `leaves`, or NULL if this machine has no such kernel. */
static rp_sumtree *make(const char *kernel, size_t leaves)
{
    rp_sumtree *tree = NULL;

    assert_ok(rp_sumtree_new(&alloc, &tree));
    if (kernel != NULL && rp_sumtree_use_kernel(tree, kernel) != RP_OK) {
        rp_sumtree_free(tree);
        return NULL;
    }
    if (leaves > 0) assert_ok(rp_sumtree_reserve(tree, leaves));
    return tree;
}

static void set_one(rp_sumtree *tree, uint32_t leaf, double weight)
{
    rp_sumtree_set(tree, &leaf, &weight, 1);
}

static uint32_t find_one(rp_sumtree *tree, double target)
{
    uint32_t leaf;
    rp_sumtree_find(tree, &target, 1, &leaf);
    return leaf;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Zeros, denormals, the usual, the tiny and the huge. */
static double any_weight(rp_rng *rng, int mix)
{
    switch (mix == 4 ? (int)rp_rng_below(rng, 4) : mix) {
    case 0: return rp_rng_below(rng, 3) == 0 ? 0 : rp_rng_unit(rng);
    case 1: return (double)rp_rng_below(rng, 100) * 0x1p-1074;
    case 2: return rp_rng_below(rng, 8) == 0 ? rp_rng_unit(rng) : 0;
    default: return pow(10, -300 + 590 * rp_rng_unit(rng));
    }
}

static void expect_same_draws(rp_sumtree *a, rp_sumtree *b, rp_rng *rng)
{
    double total = rp_sumtree_total(a), targets[200];
    uint32_t leaves_a[200], leaves_b[200];

    assert_int_equal(bits_of(total), bits_of(rp_sumtree_total(b)));
    if (total == 0) return;
    for (size_t i = 0; i < 200; i++) targets[i] = rp_rng_unit(rng) * total;
    targets[0] = 0;
    targets[1] = nextafter(total, 0);
    for (size_t n = 1; n <= 200; n = 2 * n + 1) { /* every path: single, vectors and rests */
        rp_sumtree_find(a, targets, n, leaves_a);
        rp_sumtree_find(b, targets, n, leaves_b);
        assert_memory_equal(leaves_a, leaves_b, n * sizeof *leaves_a);
        for (size_t i = 0; i < n; i++) assert_true(rp_sumtree_get(a, leaves_a[i]) > 0);
    }
}

static void compare_with_plain(const char *kernel, size_t leaves, int mix, uint64_t seed)
{
    rp_sumtree *a = make("plain", leaves), *b = make(kernel, leaves);
    uint32_t set[64];
    double weights[64];
    rp_rng rng;
    rp_rng_init(&rng, seed);

    const int rounds = rp_test_scale() < 0.02 ? 8 : 12; /* fewer in an emulator */

    for (int round = 0; round < rounds; round++) {
        for (size_t batch = 0; batch < 1 + leaves / 100; batch++) {
            size_t n = 1 + rp_rng_below(&rng, 64);
            for (size_t i = 0; i < n; i++) {
                set[i] = (uint32_t)rp_rng_below(&rng, leaves);
                weights[i] = any_weight(&rng, mix);
            }
            rp_sumtree_set(a, set, weights, n);
            rp_sumtree_set(b, set, weights, n);
        }
        expect_same_draws(a, b, &rng);
        if (round == rounds / 2) { /* growth recomputes everything */
            assert_ok(rp_sumtree_reserve(a, leaves * 3));
            assert_ok(rp_sumtree_reserve(b, leaves * 3));
        }
    }
    assert_true(rp_sumtree_check(a) && rp_sumtree_check(b));
    rp_sumtree_free(a);
    rp_sumtree_free(b);
}

static void every_kernel_agrees_with_plain_to_the_bit(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 7, 8, 9, 63, 64, 65, 100, 512, 513, 1000, 4095, MOST};

    for (size_t k = 1; k < COUNT_OF(kernels); k++) {
        rp_sumtree *probe = make(kernels[k], 0);
        if (probe == NULL) continue;
        assert_string_equal(rp_sumtree_kernel(probe), kernels[k]);
        rp_sumtree_free(probe);
        for (size_t s = 0; s < COUNT_OF(sizes); s++)
            for (int mix = 0; mix < 5; mix++)
                compare_with_plain(kernels[k], sizes[s], mix, 10 * sizes[s] + (size_t)mix);
    }
}

/* Runs `test` once for each kernel of this machine. */
static void with_each_kernel(void (*test)(const char *kernel))
{
    for (size_t k = 0; k < COUNT_OF(kernels); k++) {
        rp_sumtree *probe = make(kernels[k], 0);
        if (probe == NULL) continue;
        rp_sumtree_free(probe);
        test(kernels[k]);
    }
}

static uint32_t scan(const double *weights, size_t count, double target)
{
    double end = 0;
    for (size_t i = 0; i < count; i++) {
        end += weights[i];
        if (target < end) return (uint32_t)i;
    }
    fail_msg("a target beyond the total");
    return 0;
}

static void check_scan(const char *kernel)
{
    double *weights = calloc(MOST, sizeof *weights), targets[100];
    uint32_t leaves[100];
    rp_rng rng;
    assert_non_null(weights);
    rp_rng_init(&rng, 3);

    for (size_t count = 1; count <= MOST; count = count * 2 + 3) {
        rp_sumtree *tree = make(kernel, count);
        double total = 0;
        for (uint32_t i = 0; i < count; i++) { /* dyadic, so that sums are exact in any order */
            weights[i] = (double)rp_rng_below(&rng, 20) * 0.125;
            set_one(tree, i, weights[i]);
            total += weights[i];
        }
        if (total == 0) set_one(tree, 0, weights[0] = total = 1);
        assert_true(rp_sumtree_total(tree) == total);
        for (size_t i = 0; i < 100; i++) targets[i] = rp_rng_unit(&rng) * total;
        for (size_t i = 0; i < 50; i++)
            targets[i] = floor(targets[i] * 8) / 8; /* on the edges */
        rp_sumtree_find(tree, targets, 100, leaves);
        for (size_t i = 0; i < 100; i++)
            assert_int_equal(leaves[i], scan(weights, count, targets[i]));
        rp_sumtree_free(tree);
    }
    free(weights);
}

static void find_equals_a_linear_scan(void **state)
{
    (void)state;
    with_each_kernel(check_scan);
}

static void check_zero_leaves(const char *kernel)
{
    rp_rng rng;
    rp_rng_init(&rng, 4);

    for (int round = 0; round < 400; round++) {
        size_t count = 1 + rp_rng_below(&rng, 600);
        rp_sumtree *tree = make(kernel, count);
        double total, targets[70];
        uint32_t leaves[70];

        for (uint32_t i = 0; i < count; i++)
            set_one(tree, i, rp_rng_below(&rng, 2) == 0 ? 0 : any_weight(&rng, round % 5));
        set_one(tree, (uint32_t)rp_rng_below(&rng, count), round % 2 == 0 ? 0.1 : 0x1p-1074);
        total = rp_sumtree_total(tree);
        for (size_t i = 0; i < COUNT_OF(targets); i++) targets[i] = rp_rng_unit(&rng) * total;
        targets[0] = 0;
        targets[1] = total * (1 - 0x1p-53);
        targets[2] = nextafter(total, 0);
        for (size_t n = 1; n <= COUNT_OF(targets); n += 23) {
            rp_sumtree_find(tree, targets, n, leaves);
            for (size_t i = 0; i < n; i++) assert_true(rp_sumtree_get(tree, leaves[i]) > 0);
        }
        for (size_t i = 0; i < 3; i++)
            assert_true(rp_sumtree_get(tree, find_one(tree, targets[i])) > 0);
        rp_sumtree_free(tree);
    }
}

static void leaf_of_weight_zero_is_never_found(void **state)
{
    (void)state;
    with_each_kernel(check_zero_leaves);
}

static void check_ends(const char *kernel)
{
    rp_sumtree *tree = make(kernel, 1000);
    set_one(tree, 17, 0.1);
    set_one(tree, 500, 0.7);
    set_one(tree, 903, 1e-20); /* lost in the sum, and behind it only zeros */

    assert_int_equal(find_one(tree, 0), 17);
    assert_int_equal(find_one(tree, nextafter(0.1, 0)), 17);
    assert_int_equal(find_one(tree, 0.1), 500);
    assert_int_equal(find_one(tree, nextafter(rp_sumtree_total(tree), 0)), 500);

    rp_sumtree_free(tree);
}

static void first_and_last_targets_fall_on_the_first_and_last_leaves(void **state)
{
    (void)state;
    with_each_kernel(check_ends);
}

static void check_single_leaf(const char *kernel)
{
    static const double weights[] = {0x1p-1074, 1e-300, 1, 1e290, 0x1.fffffffffffffp+1023};

    for (size_t w = 0; w < COUNT_OF(weights); w++)
        for (uint32_t leaf = 0; leaf < 300; leaf += 13) {
            rp_sumtree *tree = make(kernel, 300);
            set_one(tree, leaf, weights[w]);
            assert_true(rp_sumtree_total(tree) == weights[w]);
            assert_int_equal(find_one(tree, 0), leaf);
            assert_int_equal(find_one(tree, nextafter(weights[w], 0)), leaf);
            rp_sumtree_free(tree);
        }
}

static void single_leaf_is_always_found(void **state)
{
    (void)state;
    with_each_kernel(check_single_leaf);
}

static void leaf_given_twice_keeps_its_last_weight(void **state)
{
    (void)state;
    rp_sumtree *tree = make(NULL, 100);
    uint32_t leaves[] = {5, 6, 5, 70, 5};
    double weights[] = {1, 2, 3, 4, 0.5};

    rp_sumtree_set(tree, leaves, weights, 5);

    assert_true(rp_sumtree_get(tree, 5) == 0.5);
    assert_true(rp_sumtree_total(tree) == 6.5);
    rp_sumtree_free(tree);
}

static void total_follows_writes_whenever_it_is_asked(void **state)
{
    (void)state;
    rp_sumtree *tree = make(NULL, 4096);
    double sum = 0;

    for (uint32_t i = 0; i < 4096; i++) {
        set_one(tree, i * 31 % 4096, 1);
        sum += 1;
        if (i % 7 == 0) assert_true(rp_sumtree_total(tree) == sum);
    }

    assert_true(rp_sumtree_total(tree) == 4096);
    assert_true(rp_sumtree_check(tree));
    rp_sumtree_free(tree);
}

/* More writes than are remembered, in one call and in many, without asking in between. */
static void many_writes_before_the_first_total_are_all_counted(void **state)
{
    (void)state;
    enum { N = 50000 };
    rp_sumtree *one_call = make(NULL, N), *many_calls = make(NULL, N);
    uint32_t *leaves = calloc(N, sizeof *leaves);
    double *weights = calloc(N, sizeof *weights);
    assert_true(leaves != NULL && weights != NULL);
    for (uint32_t i = 0; i < N; i++) {
        leaves[i] = (uint32_t)((uint64_t)i * 7919 % N);
        weights[i] = 0.25 * (double)(i % 9);
    }

    rp_sumtree_set(one_call, leaves, weights, N);
    for (uint32_t i = 0; i < N; i++) set_one(many_calls, leaves[i], weights[i]);

    double sum = 0;
    for (uint32_t i = 0; i < N; i++) sum += weights[i];
    assert_true(rp_sumtree_total(one_call) == sum);
    assert_true(rp_sumtree_total(many_calls) == sum);
    assert_true(rp_sumtree_check(one_call) && rp_sumtree_check(many_calls));
    free(leaves);
    free(weights);
    rp_sumtree_free(one_call);
    rp_sumtree_free(many_calls);
}

/* The marks of list_lines() are one byte: they come round after 255 refreshes, and must not be
 * taken for those of lines that were never touched. */
static void sums_stay_right_over_hundreds_of_refreshes(void **state)
{
    (void)state;
    enum { N = 200000 };
    rp_sumtree *tree = make(NULL, N);
    double *mirror = calloc(N, sizeof *mirror), sum = 0;
    rp_rng rng;
    assert_non_null(mirror);
    rp_rng_init(&rng, 5);

    for (int round = 0; round < 1500; round++) {
        uint32_t leaves[5];
        double weights[5];
        for (size_t i = 0; i < 5; i++) {
            leaves[i] = (uint32_t)rp_rng_below(&rng, N);
            weights[i] = (double)rp_rng_below(&rng, 100);
            sum += weights[i] - mirror[leaves[i]];
            mirror[leaves[i]] = weights[i];
        }
        rp_sumtree_set(tree, leaves, weights, 5);
        assert_true(rp_sumtree_total(tree) == sum);
    }
    assert_true(rp_sumtree_check(tree));
    free(mirror);
    rp_sumtree_free(tree);
}

static void tree_is_a_function_of_its_leaves(void **state)
{
    (void)state;
    rp_sumtree *direct = make(NULL, 777), *wandering = make(NULL, 8);
    rp_rng rng;
    rp_rng_init(&rng, 6);

    for (uint32_t i = 0; i < 777; i++) { /* huge weights come and go without a trace */
        double weight = rp_rng_unit(&rng);
        set_one(direct, i, weight);
        assert_ok(rp_sumtree_reserve(wandering, i + 1));
        set_one(wandering, i, 1e290);
        (void)rp_sumtree_total(wandering);
        set_one(wandering, i, weight);
    }

    assert_int_equal(bits_of(rp_sumtree_total(direct)), bits_of(rp_sumtree_total(wandering)));
    rp_sumtree_free(direct);
    rp_sumtree_free(wandering);
}

static void growth_keeps_weights_and_gives_new_leaves_none(void **state)
{
    (void)state;
    rp_sumtree *tree = make(NULL, 10);
    size_t capacity = rp_sumtree_capacity(tree);
    for (uint32_t i = 0; i < 10; i++) set_one(tree, i, i);

    for (size_t more = 100; more <= 100000; more *= 10) {
        assert_ok(rp_sumtree_reserve(tree, more));
        assert_true(rp_sumtree_capacity(tree) >= more);
        for (uint32_t i = 0; i < rp_sumtree_capacity(tree); i++)
            assert_true(rp_sumtree_get(tree, i) == (i < 10 ? i : 0));
        assert_true(rp_sumtree_total(tree) == 45);
        assert_true(rp_sumtree_check(tree));
    }

    assert_true(capacity >= 10);
    capacity = rp_sumtree_capacity(tree);
    assert_ok(rp_sumtree_reserve(tree, 5)); /* never shrinks */
    assert_int_equal(rp_sumtree_capacity(tree), capacity);
    rp_sumtree_free(tree);
}

static void reserve_without_memory_changes_nothing(void **state)
{
    (void)state;
    rp_sumtree *tree = make(NULL, 64);
    size_t room = 0;
    set_one(tree, 3, 2.5);

    for (rp_status st = RP_NO_RESOURCE; st != RP_OK; room++) {
        size_t capacity = rp_sumtree_capacity(tree);
        atomic_store(&oom.left, room);
        st = rp_sumtree_reserve(tree, 10000);
        atomic_store(&oom.left, RP_TEST_OOM_UNLIMITED);
        assert_true(st == RP_OK || rp_sumtree_capacity(tree) == capacity);
        assert_true(rp_sumtree_total(tree) == 2.5 && rp_sumtree_check(tree));
    }

    assert_true(room > 1);
    assert_int_equal(rp_sumtree_reserve(tree, ((size_t)1 << 31) + 1), RP_NO_RESOURCE);
    assert_int_equal(rp_sumtree_reserve(tree, SIZE_MAX), RP_NO_RESOURCE);
    rp_sumtree_free(tree);
}

static void cleared_tree_weighs_nothing_and_can_be_used_again(void **state)
{
    (void)state;
    rp_sumtree *tree = make(NULL, 200), *empty = make(NULL, 0);
    for (uint32_t i = 0; i < 200; i++) set_one(tree, i, 1);

    rp_sumtree_clear(tree); /* with writes outstanding */

    assert_true(rp_sumtree_total(tree) == 0);
    assert_true(rp_sumtree_get(tree, 100) == 0);
    assert_true(rp_sumtree_check(tree));
    set_one(tree, 199, 3);
    assert_true(rp_sumtree_total(tree) == 3);
    assert_int_equal(find_one(tree, 1), 199);
    rp_sumtree_clear(empty);
    assert_true(rp_sumtree_total(empty) == 0 && rp_sumtree_check(empty));
    rp_sumtree_free(tree);
    rp_sumtree_free(empty);
}

static void unknown_kernel_is_not_found(void **state)
{
    (void)state;
    rp_sumtree *tree = make(NULL, 0);
    const char *before = rp_sumtree_kernel(tree);

    assert_int_equal(rp_sumtree_use_kernel(tree, "abacus"), RP_NOT_FOUND);
    assert_string_equal(rp_sumtree_kernel(tree), before);
    assert_ok(rp_sumtree_use_kernel(tree, "plain"));
    assert_string_equal(rp_sumtree_kernel(tree), "plain");
    rp_sumtree_free(tree);
    rp_sumtree_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, nothing_is_left)

RP_TESTS(sumtree)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kernel_agrees_with_plain_to_the_bit),
        TEST(find_equals_a_linear_scan),
        TEST(leaf_of_weight_zero_is_never_found),
        TEST(first_and_last_targets_fall_on_the_first_and_last_leaves),
        TEST(single_leaf_is_always_found),
        TEST(leaf_given_twice_keeps_its_last_weight),
        TEST(total_follows_writes_whenever_it_is_asked),
        TEST(many_writes_before_the_first_total_are_all_counted),
        TEST(sums_stay_right_over_hundreds_of_refreshes),
        TEST(tree_is_a_function_of_its_leaves),
        TEST(growth_keeps_weights_and_gives_new_leaves_none),
        TEST(reserve_without_memory_changes_nothing),
        TEST(cleared_tree_weighs_nothing_and_can_be_used_again),
        TEST(unknown_kernel_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
