/* SPDX-License-Identifier: Apache-2.0 */
/* n-step returns, without a store. */
#include "adder/n_step.h"

#include <string.h>

#include "support/unit.h"

enum { COPIES = 2, N = 3, MOST = COPIES * N, ELEMENTS = 6 };

/* Memory of a core with two copies and n = 3. */
typedef struct fixture {
    rp_n_step s;
    uint32_t lengths[COPIES], reward_of[ELEMENTS], discount_of[ELEMENTS];
    float rewards[MOST * ELEMENTS], discounts[MOST * ELEMENTS];
    float returns[MOST * ELEMENTS], totals[MOST * ELEMENTS];
    rp_n_step_item items[MOST];
} fixture;

static void init(fixture *f, float discount)
{
    memset(f, 0, sizeof *f);
    f->s = (rp_n_step){.copies = COPIES,
                       .n = N,
                       .discount = discount,
                       .reward_size = 1,
                       .discount_size = 1,
                       .return_size = 1,
                       .reward_of = f->reward_of,
                       .discount_of = f->discount_of,
                       .lengths = f->lengths,
                       .rewards = f->rewards,
                       .discounts = f->discounts,
                       .items = f->items,
                       .returns = f->returns,
                       .totals = f->totals};
    assert_true(rp_n_step_verify(&f->s));
}

static void expect(const fixture *f, size_t at, rp_n_step_item item, float ret, float total)
{
    assert_true(at < f->s.item_count);
    assert_int_equal(f->items[at].copy, item.copy);
    assert_int_equal(f->items[at].steps, item.steps);
    assert_int_equal(f->items[at].is_end, item.is_end);
    assert_true(f->returns[at] == ret);
    assert_true(f->totals[at] == total);
}

static void returns_grow_to_n_steps_and_shrink_at_the_end(void **state)
{
    (void)state;
    fixture f;
    const float one[COPIES] = {1, 1}, zero[COPIES] = {0, 1};
    bool ended[COPIES] = {false, false};

    init(&f, 0.5F);
    rp_n_step_add(&f.s, (double[]){1, 0}, one, ended);
    expect(&f, 0, (rp_n_step_item){0, 1, false}, 1, 1);
    expect(&f, 1, (rp_n_step_item){1, 1, false}, 0, 1);
    rp_n_step_add(&f.s, (double[]){2, 0}, one, ended);
    expect(&f, 0, (rp_n_step_item){0, 2, false}, 2, 0.5F); /* 1 + 2/2 */
    rp_n_step_add(&f.s, (double[]){4, 0}, one, ended);
    expect(&f, 0, (rp_n_step_item){0, 3, false}, 3, 0.25F); /* 1 + 2/2 + 4/4 */
    ended[0] = true;
    rp_n_step_add(&f.s, (double[]){8, 0}, zero, ended);

    assert_int_equal(f.s.item_count, 4);
    expect(&f, 0, (rp_n_step_item){0, 3, false}, 6, 0); /* 2 + 4/2 + 8/4 */
    expect(&f, 1, (rp_n_step_item){0, 2, true}, 8, 0);
    expect(&f, 2, (rp_n_step_item){0, 1, true}, 8, 0);
    expect(&f, 3, (rp_n_step_item){1, 3, false}, 0, 0.25F);
    assert_int_equal(f.lengths[0], 0);
    assert_true(rp_n_step_verify(&f.s));
}

static void a_discount_of_the_environment_counts_from_its_own_step_on(void **state)
{
    (void)state;
    fixture f;
    const bool ended[COPIES] = {false, false};

    init(&f, 0.5F);
    rp_n_step_add(&f.s, (double[]){1, 1}, (float[]){0.5F, 0}, ended);
    rp_n_step_add(&f.s, (double[]){1, 1}, (float[]){1, 1}, ended);

    expect(&f, 0, (rp_n_step_item){0, 2, false}, 1.25F, 0.25F);
    expect(&f, 1, (rp_n_step_item){1, 2, false}, 1, 0);
}

static void a_forgotten_episode_leaves_no_trace(void **state)
{
    (void)state;
    fixture f;
    const float one[COPIES] = {1, 1};
    const bool ended[COPIES] = {false, true};

    init(&f, 1);
    rp_n_step_add(&f.s, (double[]){5, 5}, one, ended);
    rp_n_step_forget(&f.s, 0);
    rp_n_step_add(&f.s, (double[]){1, 1}, one, ended);

    assert_int_equal(f.s.item_count, 2);
    expect(&f, 0, (rp_n_step_item){0, 1, false}, 1, 1);
    expect(&f, 1, (rp_n_step_item){1, 1, false}, 1, 1);
}

static void shapes_are_broadcast_as_by_numpy(void **state)
{
    (void)state;
    const rp_shape whole = {2, {2, 3}}, column = {2, {2, 1}}, row = {1, {3}}, scalar = {0};
    const uint32_t of_column[] = {0, 0, 0, 1, 1, 1}, of_row[] = {0, 1, 2, 0, 1, 2};
    const uint32_t of_scalar[6] = {0};
    uint32_t element_of[6];

    rp_n_step_broadcast(&column, &whole, element_of);
    assert_memory_equal(element_of, of_column, sizeof of_column);
    rp_n_step_broadcast(&row, &whole, element_of);
    assert_memory_equal(element_of, of_row, sizeof of_row);
    rp_n_step_broadcast(&scalar, &whole, element_of);
    assert_memory_equal(element_of, of_scalar, sizeof of_scalar);
}

static void the_check_finds_broken_invariants(void **state)
{
    (void)state;
    fixture f;

    init(&f, 1);
    f.lengths[1] = 1; /* N1: no call has been made */
    assert_false(rp_n_step_verify(&f.s));
    f.lengths[1] = 0;
    f.s.item_count = MOST + 1; /* N2 */
    assert_false(rp_n_step_verify(&f.s));
    f.s.item_count = 1; /* N3: an item of no steps */
    assert_false(rp_n_step_verify(&f.s));
}

RP_TESTS(n_step)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_grow_to_n_steps_and_shrink_at_the_end),
        cmocka_unit_test(a_discount_of_the_environment_counts_from_its_own_step_on),
        cmocka_unit_test(a_forgotten_episode_leaves_no_trace),
        cmocka_unit_test(shapes_are_broadcast_as_by_numpy),
        cmocka_unit_test(the_check_finds_broken_invariants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
