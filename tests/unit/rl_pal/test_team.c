/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/team.h"

#include <math.h>
#include <string.h>

#include "support/unit.h"

enum { MOST = 4, COUNT = 1000 };

/* Members write to `turns` in phases; each phase reads what the others wrote in the last. */
typedef struct phases {
    rp_team *team;
    int rounds;
    int turns[2][MOST];
    int wrong[MOST];
} phases;

static void take_phases(void *ctx, size_t member)
{
    phases *p = ctx;
    size_t size = rp_team_size(p->team);

    for (int round = 1; round <= p->rounds; round++) {
        p->turns[round % 2][member] = round;
        rp_team_meet(p->team, member);
        for (size_t i = 0; i < size; i++) p->wrong[member] += p->turns[round % 2][i] != round;
    }
}

static void meetings_separate_what_members_write(void **state)
{
    (void)state;
    rp_error err;

    for (size_t size = 1; size <= MOST; size++) {
        phases p = {.rounds = (int)rp_test_length(1000, 100)};

        assert_ok_err(rp_team_new(NULL, size, &p.team, &err), &err);
        assert_int_equal(rp_team_size(p.team), size);
        for (int run = 0; run < 3; run++) {
            memset(p.turns, 0, sizeof p.turns);
            rp_team_run(p.team, take_phases, &p);
            for (size_t i = 0; i < size; i++) {
                assert_int_equal(p.wrong[i], 0);
                assert_int_equal(p.turns[p.rounds % 2][i], p.rounds);
            }
        }
        rp_team_free(p.team);
    }
}

static void a_team_can_end_before_its_first_run_and_while_members_sleep(void **state)
{
    (void)state;
    phases p = {.rounds = 1};
    rp_error err;

    assert_ok(rp_team_new(NULL, 3, &p.team, &err));
    rp_team_free(p.team);
    assert_ok(rp_team_new(NULL, 3, &p.team, &err));
    rp_team_run(p.team, take_phases, &p);
    /* longer than members spin, so that they sleep; if they do not yet, the test is as good */
    for (int64_t until_ns = rp_now_ns() + 2000000; rp_now_ns() < until_ns;) {}
    rp_team_run(p.team, take_phases, &p);
    assert_int_equal(p.wrong[0] + p.wrong[1] + p.wrong[2], 0);
    rp_team_free(p.team);
    rp_team_free(NULL);
}

static void a_team_has_bounds(void **state)
{
    (void)state;
    rp_team *team = NULL;
    rp_error err;

    assert_int_equal(rp_team_new(NULL, 0, &team, &err), RP_INVALID);
    assert_int_equal(rp_team_new(NULL, 65, &team, &err), RP_INVALID);
    assert_string_equal(err.text, "team: size must be from 1 to 64, got 65");
    assert_null(team);
}

static void slices_are_whole_lines_and_cover_all(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 15, 16, 17, 100, 4546, 65536};
    rp_error err;

    for (size_t size = 1; size <= MOST; size++) {
        rp_team *team = NULL;

        assert_ok(rp_team_new(NULL, size, &team, &err));
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            size_t end = 0;

            for (size_t i = 0; i < size; i++) {
                rp_slice s = rp_team_slice(team, counts[c], i);

                if (s.count == 0) continue;
                assert_int_equal(s.first, end);
                assert_int_equal(s.first % 16, 0);
                assert_true(s.count <= counts[c] / size + 32);
                end = s.first + s.count;
            }
            assert_int_equal(end, counts[c]);
        }
        rp_team_free(team);
    }
}

/* Steps of a team, and of one optimizer with the sum of the same gradients. */
typedef struct steps {
    rp_team *team;
    rp_optimizer *optimizer;
    rp_real params[COUNT];
    rp_real arrays[MOST][COUNT];
    rp_real *grads[MOST];
    double norms[MOST];
} steps;

static void step_slice(void *ctx, size_t member)
{
    steps *s = ctx;
    const rp_team_step step = {s->optimizer, s->params, s->grads, 0, COUNT};

    rp_team_meet(s->team, member);
    rp_team_step_slices(s->team, member, &step, 1, &s->norms[member]);
}

static rp_real gradient(int round, size_t member, size_t i)
{
    return (rp_real)sin((double)(round + 1) * (double)(i + 1) * (double)(member + 1));
}

static void check_steps(size_t size, const rp_optimizer_options *options)
{
    steps *s = calloc(1, sizeof *s);
    rp_optimizer *plain = NULL;
    rp_real *params = calloc(COUNT, sizeof *params), *sum = calloc(COUNT, sizeof *sum);
    rp_error err;

    assert_ok(rp_team_new(NULL, size, &s->team, &err));
    assert_ok(rp_optimizer_new(rp_allocator_default(), COUNT, options, &s->optimizer, &err));
    assert_ok(rp_optimizer_new(rp_allocator_default(), COUNT, options, &plain, &err));
    for (int round = 0; round < 20; round++) {
        double norm;

        memset(sum, 0, COUNT * sizeof *sum);
        for (size_t m = 0; m < size; m++) {
            s->grads[m] = s->arrays[m];
            for (size_t i = 0; i < COUNT; i++) s->arrays[m][i] = gradient(round, m, i);
            rp_add_numbers(sum, s->arrays[m], COUNT);
        }
        rp_team_run(s->team, step_slice, s);
        rp_optimizer_end_slices(s->optimizer, s->norms[0]);
        norm = rp_optimizer_step(plain, params, sum);
        for (size_t m = 0; m < size; m++) {
            assert_true(s->norms[m] == s->norms[0]);
            if (options->max_norm > 0) assert_true(fabs(s->norms[m] - norm) < 1e-9 * norm);
        }
        for (size_t i = 0; i < COUNT; i++)
            assert_true(fabs((double)(s->params[i] - params[i])) < 1e-6);
    }
    assert_int_equal(rp_optimizer_get_state(s->optimizer).steps, 20);
    rp_optimizer_free(plain);
    rp_optimizer_free(s->optimizer);
    rp_team_free(s->team);
    free(params);
    free(sum);
    free(s);
}

static void a_step_in_slices_is_that_of_the_sum(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 3; size++) {
        check_steps(size, &(rp_optimizer_options){.kind = RP_ADAM, .rate = 1e-2});
        check_steps(size,
                    &(rp_optimizer_options){.kind = RP_ADAM, .rate = 1e-2, .max_norm = 1});
        check_steps(size, &(rp_optimizer_options){.kind = RP_RMSPROP,
                                                  .rate = 1e-3,
                                                  .centred = true,
                                                  .momentum = 0.5,
                                                  .max_norm = 5});
        check_steps(size, &(rp_optimizer_options){.kind = RP_SGD, .rate = 1e-2});
    }
}

static void a_gradient_that_is_not_finite_changes_nothing(void **state)
{
    (void)state;
    const rp_optimizer_options adam = {.kind = RP_ADAM, .rate = 1e-2, .max_norm = 1};
    steps *s = calloc(1, sizeof *s);
    rp_error err;

    assert_ok(rp_team_new(NULL, 2, &s->team, &err));
    assert_ok(rp_optimizer_new(rp_allocator_default(), COUNT, &adam, &s->optimizer, &err));
    s->grads[0] = s->arrays[0];
    s->grads[1] = s->arrays[1];
    s->arrays[1][COUNT - 1] = (rp_real)INFINITY;
    rp_team_run(s->team, step_slice, s);
    rp_optimizer_end_slices(s->optimizer, s->norms[0]);
    assert_true(isinf(s->norms[0]) && isinf(s->norms[1]));
    assert_int_equal(rp_optimizer_get_state(s->optimizer).steps, 0);
    for (size_t i = 0; i < COUNT; i++) assert_true(s->params[i] == 0);
    rp_optimizer_free(s->optimizer);
    rp_team_free(s->team);
    free(s);
}

enum { NETWORKS = 4 };

/* Steps of several networks, whose parameters are one array. */
typedef struct networks {
    rp_team *team;
    rp_optimizer *optimizers[NETWORKS];
    rp_real params[NETWORKS * COUNT];
    rp_real arrays[MOST][NETWORKS * COUNT];
    rp_real *grads[MOST];
    double norms[MOST][NETWORKS];
} networks;

/* Two calls of two steps each. */
static void step_networks(void *ctx, size_t member)
{
    networks *n = ctx;
    rp_team_step list[NETWORKS];

    for (size_t i = 0; i < NETWORKS; i++)
        list[i] = (rp_team_step){n->optimizers[i], n->params, n->grads, i * COUNT, COUNT};
    rp_team_meet(n->team, member);
    for (size_t i = 0; i < NETWORKS; i += 2)
        rp_team_step_slices(n->team, member, list + i, 2, n->norms[member] + i);
}

/* The parts of the gradients of a network are all its number and that of the round. */
static double part_of(size_t network, size_t round)
{
    return (double)(network + 1 + round % 3);
}

/* A member that is fast must not change what a slow one still reads. */
static void each_of_several_steps_has_its_own_norm(void **state)
{
    (void)state;
    const size_t members = 3, rounds = rp_test_length(300, 50);
    const rp_optimizer_options sgd = {.kind = RP_SGD, .rate = 1e-3};
    networks *n = calloc(1, sizeof *n);
    double sums[NETWORKS] = {0};
    rp_error err;

    assert_ok(rp_team_new(NULL, members, &n->team, &err));
    for (size_t i = 0; i < NETWORKS; i++)
        assert_ok(
            rp_optimizer_new(rp_allocator_default(), COUNT, &sgd, &n->optimizers[i], &err));
    for (size_t m = 0; m < members; m++) n->grads[m] = n->arrays[m];
    for (size_t round = 0; round < rounds; round++) {
        for (size_t m = 0; m < members; m++)
            for (size_t k = 0; k < NETWORKS * COUNT; k++)
                n->arrays[m][k] = (rp_real)part_of(k / COUNT, round);
        rp_team_run(n->team, step_networks, n);
        for (size_t i = 0; i < NETWORKS; i++) {
            double part = (double)members * part_of(i, round), norm = part * sqrt(COUNT);

            for (size_t m = 0; m < members; m++)
                assert_true(fabs(n->norms[m][i] - norm) < 1e-6 * norm);
            rp_optimizer_end_slices(n->optimizers[i], n->norms[0][i]);
            sums[i] += part;
        }
    }
    for (size_t k = 0; k < NETWORKS * COUNT; k++)
        assert_true(fabs((double)n->params[k] + 1e-3 * sums[k / COUNT]) < 1e-3);
    for (size_t i = 0; i < NETWORKS; i++) rp_optimizer_free(n->optimizers[i]);
    rp_team_free(n->team);
    free(n);
}

static rp_status make_team(const rp_allocator *alloc)
{
    rp_team *team = NULL;
    rp_error err;
    rp_status st = rp_team_new(alloc, 3, &team, &err);

    rp_team_free(team);
    return st;
}

static void a_team_survives_a_lack_of_memory(void **state)
{
    (void)state;
    rp_test_survives_oom(make_team);
}

RP_TESTS(team)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meetings_separate_what_members_write),
        cmocka_unit_test(a_team_can_end_before_its_first_run_and_while_members_sleep),
        cmocka_unit_test(a_team_has_bounds),
        cmocka_unit_test(slices_are_whole_lines_and_cover_all),
        cmocka_unit_test(a_step_in_slices_is_that_of_the_sum),
        cmocka_unit_test(a_gradient_that_is_not_finite_changes_nothing),
        cmocka_unit_test(each_of_several_steps_has_its_own_norm),
        cmocka_unit_test(a_team_survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
