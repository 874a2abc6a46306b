/* SPDX-License-Identifier: Apache-2.0 */
/* n-step adders over a store: the items of random episodes against a model that keeps whole
 * episodes. */
#include <stdio.h>

#include "reprise/rl/random.h"
#include "support/adder_rig.h"

enum { MOST_COPIES = 32, MOST_ROWS = 64, WIDTH = 3 };

/* An observation names its copy, episode and row. */
typedef struct model_copy {
    int episode;
    int rows; /* observations of the episode */
    float rewards[MOST_ROWS], discounts[MOST_ROWS];
    int32_t actions[MOST_ROWS];
    int16_t extras[MOST_ROWS];
} model_copy;

typedef struct fixture {
    rp_test_adder t;
    size_t copies;
    int n;
    float discount;
    bool keep_ended;
    rp_pcg64 random;
    model_copy model[MOST_COPIES];
    float observations[MOST_COPIES][WIDTH], last[MOST_COPIES][WIDTH];
    int32_t actions[MOST_COPIES];
    int16_t extras[MOST_COPIES];
    double rewards[MOST_COPIES];
    bool terminated[MOST_COPIES], truncated[MOST_COPIES];
    rp_adder_step step;
    const void *extra_arrays[1];
    size_t prioritized; /* items seen by prioritize() */
} fixture;

static void observe(const fixture *f, size_t k, int row, float *out)
{
    out[0] = (float)k;
    out[1] = (float)f->model[k].episode;
    out[2] = (float)row;
}

static uint64_t draw(fixture *f, uint64_t n)
{
    return rp_pcg64_next(&f->random) % n;
}

static void begin(fixture *f)
{
    for (size_t k = 0; k < f->copies; k++) {
        f->model[k].rows = 1;
        observe(f, k, 0, f->observations[k]);
    }
    assert_ok_err(rp_adder_first(f->t.adder, f->observations, NULL, &f->t.err), &f->t.err);
}

static void open_fixture(fixture *f, size_t copies, int n, rp_adder_options options)
{
    static const rp_spec extra = {"logits", RP_INT16, {0}};

    memset(f, 0, sizeof *f);
    f->copies = copies;
    f->n = n;
    f->discount = 0.97F;
    rp_pcg64_seed(&f->random, 7);
    options.copies = copies;
    options.n = n;
    options.discount = f->discount;
    options.observation = (rp_spec){NULL, RP_FLOAT32, {1, {WIDTH}}};
    options.action = (rp_spec){NULL, RP_INT32, {0}};
    options.extras = &extra;
    options.extra_count = 1;
    f->extra_arrays[0] = f->extras;
    f->step = (rp_adder_step){.actions = f->actions,
                              .observations = f->observations,
                              .last_observations = f->last,
                              .rewards = f->rewards,
                              .terminated = f->terminated,
                              .truncated = f->truncated,
                              .extras = f->extra_arrays};
    rp_test_adder_open(&f->t, options, false);
    begin(f);
}

/* Makes the next step of every copy; an episode ends with probability 1 / `length`. */
static void make_step(fixture *f, uint64_t length)
{
    for (size_t k = 0; k < f->copies; k++) {
        model_copy *m = &f->model[k];
        int t = m->rows - 1;
        bool ends = draw(f, length) == 0 || m->rows == MOST_ROWS - 1;
        f->rewards[k] = (double)draw(f, 1000) / 7.0;
        f->actions[k] = m->actions[t] = (int32_t)draw(f, 100);
        f->extras[k] = m->extras[t] = (int16_t)draw(f, 100);
        f->terminated[k] = ends && draw(f, 2) == 0;
        f->truncated[k] = ends && (!f->terminated[k] || draw(f, 4) == 0);
        m->rewards[t] = (float)f->rewards[k];
        m->discounts[t] = f->terminated[k] ? 0.0F : 1.0F;
        observe(f, k, m->rows, ends && !f->keep_ended ? f->last[k] : f->observations[k]);
        m->rows++;
        if (ends && !f->keep_ended) {
            m->episode++;
            observe(f, k, 0, f->observations[k]);
            m->episode--;
        }
    }
}

/* Checks that the oldest item of a table is the transition of copy k from row `first` to the
 * latest row. */
static void expect(fixture *f, size_t table, size_t k, int first)
{
    const model_copy *m = &f->model[k];
    int last = m->rows - 1;
    float r = m->rewards[first], d = m->discounts[first];
    float from[WIDTH], to[WIDTH];
    rp_test_item item;

    for (int i = first + 1; i < last; i++) {
        d = d * f->discount;
        r = r + m->rewards[i] * d;
        d = d * m->discounts[i];
    }
    observe(f, k, first, from);
    observe(f, k, last, to);
    assert_true(rp_test_adder_take(&f->t, table, &item));
    assert_int_equal(item.column_count, 6);
    assert_memory_equal(item.data[0], from, sizeof from);
    assert_memory_equal(item.data[1], &m->actions[first], sizeof m->actions[first]);
    assert_memory_equal(item.data[2], &r, sizeof r);
    assert_memory_equal(item.data[3], &d, sizeof d);
    assert_memory_equal(item.data[4], to, sizeof to);
    assert_memory_equal(item.data[5], &m->extras[first], sizeof m->extras[first]);
    for (size_t i = 0; i < item.column_count; i++) assert_true(item.columns[i].squeeze);
    rp_test_item_deinit(&item);
}

/* Checks the items of the latest step and begins the next episodes. */
static void check_step(fixture *f, size_t table)
{
    rp_test_item none;

    for (size_t k = 0; k < f->copies; k++) {
        int last = f->model[k].rows - 1;
        int first = last > f->n ? last - f->n : 0;
        expect(f, table, k, first);
        if (!f->terminated[k] && !f->truncated[k]) continue;
        for (first++; first < last; first++) expect(f, table, k, first);
    }
    assert_false(rp_test_adder_take(&f->t, table, &none));
}

static void end_episodes(fixture *f)
{
    for (size_t k = 0; k < f->copies; k++) {
        if (!f->terminated[k] && !f->truncated[k]) continue;
        f->model[k].episode++;
        f->model[k].rows = 1;
    }
}

static void run(fixture *f, size_t steps, uint64_t length)
{
    for (size_t i = 0; i < steps; i++) {
        make_step(f, length);
        assert_ok_err(rp_adder_add(f->t.adder, &f->step, rp_wait_forever(), &f->t.err),
                      &f->t.err);
        assert_ok_err(rp_adder_flush(f->t.adder, rp_wait_forever(), &f->t.err), &f->t.err);
        check_step(f, 0);
        end_episodes(f);
    }
}

static void transitions_of_random_episodes_are_those_of_a_model(void **state)
{
    (void)state;
    static const size_t copies[] = {1, 2, 5, 32};
    static fixture f;

    for (size_t c = 0; c < COUNT_OF(copies); c++) {
        for (int n = 1; n <= 5; n++) {
            open_fixture(&f, copies[c], n, (rp_adder_options){0});
            run(&f, 60, 1 + 2 * (uint64_t)n);
            assert_int_equal(rp_adder_pending(f.t.adder), 0);
            rp_test_adder_close(&f.t);
        }
    }
}

static void transitions_do_not_depend_on_the_chunks(void **state)
{
    (void)state;
    static fixture f;
    rp_chunk_options snappy = {.codec = RP_CODEC_SNAPPY};

    for (int32_t length = 1; length <= 20; length += 6) {
        open_fixture(&f, 5, 3, (rp_adder_options){.chunk_length = length, .chunk = &snappy});
        run(&f, 40, 6);
        rp_test_adder_close(&f.t);
    }
}

static void a_copy_without_automatic_reset_begins_by_itself(void **state)
{
    (void)state;
    static fixture f;
    size_t begun = 0;

    open_fixture(&f, 5, 3, (rp_adder_options){0});
    f.keep_ended = true;
    f.step.last_observations = NULL;
    for (size_t i = 0; i < 100; i++) {
        bool which[MOST_COPIES], any = false;
        run(&f, 1, 5);
        for (size_t k = 0; k < f.copies; k++) {
            which[k] = f.terminated[k] || f.truncated[k];
            any = any || which[k];
            if (which[k]) observe(&f, k, 0, f.observations[k]);
        }
        if (!any) continue;
        assert_fails(rp_adder_add(f.t.adder, &f.step, rp_wait_forever(), &f.t.err),
                     RP_PRECONDITION, &f.t.err, "has not begun an episode");
        assert_ok_err(rp_adder_first(f.t.adder, f.observations, which, &f.t.err), &f.t.err);
        begun++;
    }

    assert_true(begun > 20);
    assert_fails(rp_adder_first(f.t.adder, f.observations, NULL, &f.t.err), RP_PRECONDITION,
                 &f.t.err, "copy 0 is within an episode");
    rp_test_adder_close(&f.t);
}

static rp_status prioritize(void *ctx, const rp_adder_items *items, double *priorities,
                            rp_error *err)
{
    fixture *f = ctx;
    const float *from = items->columns[0], *to = items->columns[4];
    const int32_t *actions = items->columns[1];
    const float *returns = items->columns[2], *discounts = items->columns[3];
    const int16_t *extras = items->columns[5];

    (void)err;
    assert_int_equal(items->rows, 1);
    assert_int_equal(items->column_count, 6);
    for (size_t i = 0; i < items->count; i++, from += WIDTH, to += WIDTH) {
        const model_copy *m = &f->model[items->copies[i]];
        assert_int_equal(items->copies[i], (uint32_t)from[0]);
        assert_int_equal(items->copies[i], (uint32_t)to[0]);
        assert_int_equal((int)from[1], (int)to[1]); /* of one episode */
        assert_int_equal(actions[i], m->actions[(int)from[2]]);
        assert_int_equal(extras[i], m->extras[(int)from[2]]);
        priorities[i] = returns[i] + discounts[i] + to[2];
    }
    f->prioritized += items->count;
    return RP_OK;
}

static void priorities_of_all_items_of_a_call_are_computed_at_once(void **state)
{
    (void)state;
    static fixture f;
    rp_adder_table tables[] = {{"first", NULL, NULL}, {"second", prioritize, &f}};
    size_t items = 0;

    open_fixture(&f, 5, 3, (rp_adder_options){.tables = tables, .table_count = 2});
    for (size_t i = 0; i < 50; i++) {
        rp_test_item item;
        make_step(&f, 6);
        assert_ok_err(rp_adder_add(f.t.adder, &f.step, rp_wait_forever(), &f.t.err), &f.t.err);
        assert_ok_err(rp_adder_flush(f.t.adder, rp_wait_forever(), &f.t.err), &f.t.err);
        check_step(&f, 0);
        end_episodes(&f);
        while (rp_test_adder_take(&f.t, 1, &item)) {
            const float *r = item.data[2], *d = item.data[3], *to = item.data[4];
            assert_true(item.priority == (double)(r[0] + d[0] + to[2]));
            rp_test_item_deinit(&item);
            items++;
        }
    }

    assert_int_equal(items, f.prioritized);
    assert_int_equal(rp_adder_created(f.t.adder), 2 * items);
    rp_test_adder_close(&f.t);
}

RP_TESTS(transitions)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transitions_of_random_episodes_are_those_of_a_model),
        cmocka_unit_test(transitions_do_not_depend_on_the_chunks),
        cmocka_unit_test(a_copy_without_automatic_reset_begins_by_itself),
        cmocka_unit_test(priorities_of_all_items_of_a_call_are_computed_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
