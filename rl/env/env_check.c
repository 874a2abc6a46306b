/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance test of environments. Most checks play two runs in step and compare every
 * row: the second run differs from the first in a way that must not matter. */
#include "reprise/rl/env_check.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "env/env_run.h"

enum { DEFAULT_COPIES = 3, DEFAULT_STEPS = 300, MOST_COPIES = 64, UNTOUCHED = 0x5a };

typedef struct checker {
    rp_allocator alloc;
    const rp_env_class *class;
    rp_env_options options;
    size_t steps;
    uint64_t seed;
    rp_env_report *report;
} checker;

/* A check plays `a` and, if it needs a second run, `b`. Returns RP_OK also where it has
 * reported a failure. */
typedef struct check {
    const char *name;
    void (*play)(checker *c, const struct check *self, rp_env_run *a, rp_env_run *b);
    bool keep_ended; /* in the second run */
    bool alone;      /* the second run has one copy */
} check;

/* Reports a failure of a check. */
static void fail(checker *c, const check *self, const char *format, ...) RP_PRINTF(3, 4);

static void fail(checker *c, const check *self, const char *format, ...)
{
    rp_env_report *report = c->report;
    size_t index = report->failure_count++;
    char text[RP_ERROR_TEXT_BYTES];
    va_list args;

    if (index >= RP_ENV_MAX_FAILURES) return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)snprintf(report->failures[index], sizeof report->failures[index], "%.32s: %.200s",
                   self->name, text);
}

/* Resets and steps report a status other than RP_OK, and return false. */
static bool reset_run(checker *c, const check *self, rp_env_run *run)
{
    if (rp_env_run_reset(run, c->seed) == RP_OK) return true;
    fail(c, self, "a reset failed: %s", run->err.text);
    return false;
}

static bool step_run(checker *c, const check *self, rp_env_run *run, size_t step)
{
    if (rp_env_run_step(run) == RP_OK) return true;
    fail(c, self, "step %zu failed: %s", step, run->err.text);
    return false;
}

/* Steps both runs with the actions of the first and compares all copies. */
static bool step_both(checker *c, const check *self, rp_env_run *a, rp_env_run *b, size_t step)
{
    rp_env_run_choose(a);
    memcpy(b->actions, a->actions, a->copies * a->action_bytes);
    if (!step_run(c, self, a, step) || !step_run(c, self, b, step)) return false;
    for (size_t i = 0; i < a->copies; i++) {
        if (rp_env_run_same(a, i, b, i)) continue;
        fail(c, self, "copy %zu differs in step %zu", i, step);
        return false;
    }
    return true;
}

/* Returns the first element outside its bounds, or SIZE_MAX. */
static size_t out_of_bounds(const rp_env_spec *spec, const float *row, size_t elements)
{
    for (size_t i = 0; i < elements && spec->observation_bounds > 0; i++) {
        size_t bound = spec->observation_bounds == 1 ? 0 : i;
        if (!(row[i] >= spec->observation_low[bound] &&
              row[i] <= spec->observation_high[bound]))
            return i;
    }
    return SIZE_MAX;
}

static bool rows_in_bounds(checker *c, const check *self, const rp_env_run *run, char *rows)
{
    const rp_env_spec *spec = rp_env_get_spec(run->env);

    if (spec->observation_dtype != RP_FLOAT32) return true;
    for (size_t i = 0; i < run->copies; i++) {
        const float *row = (const float *)(const void *)rp_env_run_row(run, rows, i);
        size_t wrong = out_of_bounds(spec, row, run->row_bytes / sizeof *row);
        if (wrong == SIZE_MAX) continue;
        fail(c, self, "element %zu of an observation is %g, outside of its bounds", wrong,
             (double)row[wrong]);
        return false;
    }
    return true;
}

static void check_bounds(checker *c, const check *self, rp_env_run *a, rp_env_run *b)
{
    (void)b;
    if (!reset_run(c, self, a) || !rows_in_bounds(c, self, a, a->observations)) return;
    for (size_t i = 0; i < c->steps; i++) {
        memcpy(a->last, a->observations, a->copies * a->row_bytes);
        rp_env_run_choose(a);
        if (!step_run(c, self, a, i) || !rows_in_bounds(c, self, a, a->observations) ||
            !rows_in_bounds(c, self, a, a->last))
            return;
    }
}

static void check_state(checker *c, const check *self, rp_env_run *a, rp_env_run *b)
{
    (void)b;
    if (!reset_run(c, self, a)) return;
    for (size_t i = 0; i < c->steps; i++) {
        if (!rp_env_verify(a->env)) {
            fail(c, self, "check() refuses a state that was reached after %zu steps", i);
            return;
        }
        rp_env_run_choose(a);
        if (!step_run(c, self, a, i)) return;
    }
}

static void check_rows(checker *c, const check *self, rp_env_run *a, rp_env_run *b)
{
    (void)b;
    if (!reset_run(c, self, a)) return;
    for (size_t i = 0; i < c->steps; i++) {
        if (!rp_env_run_guards_hold(a)) {
            fail(c, self, "bytes outside the buffers changed after %zu steps", i);
            return;
        }
        rp_env_run_choose(a);
        if (!step_run(c, self, a, i)) return;
    }
}

static void check_repeat(checker *c, const check *self, rp_env_run *a, rp_env_run *b)
{
    if (!reset_run(c, self, a) || !reset_run(c, self, b)) return;
    for (size_t i = 0; i < c->steps; i++)
        if (!step_both(c, self, a, b, i)) return;
}

static void check_reseed(checker *c, const check *self, rp_env_run *a, rp_env_run *b)
{
    if (!reset_run(c, self, b)) return;
    for (size_t i = 0; i < c->steps; i++) {
        rp_env_run_choose(b);
        if (!step_run(c, self, b, i)) return;
    }
    check_repeat(c, self, a, b);
}

/* `b` has one copy, the twin of the last one of `a`. */
static void check_alone(checker *c, const check *self, rp_env_run *a, rp_env_run *b)
{
    size_t twin = a->copies - 1;
    uint64_t seed = c->seed + twin;

    if (!reset_run(c, self, a)) return;
    if (rp_env_reset(b->env, &seed, b->observations, &b->err) != RP_OK) {
        fail(c, self, "a reset failed: %s", b->err.text);
        return;
    }
    for (size_t i = 0; i < c->steps; i++) {
        rp_env_run_choose(a);
        memcpy(b->actions, a->actions + twin * a->action_bytes, a->action_bytes);
        if (!step_run(c, self, a, i) || !step_run(c, self, b, i)) return;
        if (rp_env_run_same(a, twin, b, 0)) continue;
        fail(c, self, "a copy differs in step %zu from the same copy alone", i);
        return;
    }
}

static void check_snapshot(checker *c, const check *self, rp_env_run *a, rp_env_run *b)
{
    size_t size = a->snapshot_bytes;

    if (!reset_run(c, self, a) || !reset_run(c, self, b)) return;
    for (size_t i = 0; i < c->steps / 3 + 1; i++) {
        rp_env_run_choose(a);
        if (!step_run(c, self, a, i)) return;
    }
    for (size_t i = 0; i < a->copies; i++) {
        char *bytes = a->snapshots + i * size;
        rp_env_save(a->env, i, bytes);
        if (rp_env_load(b->env, i, bytes, size, rp_env_run_row(b, b->observations, i),
                        &b->err) != RP_OK) {
            fail(c, self, "%s", b->err.text);
            return;
        }
    }
    for (size_t i = 0; i < c->steps; i++)
        if (!step_both(c, self, a, b, i)) return;
}

/* Loading the snapshot of a copy into itself observes it once more. */
static bool observes_the_same(rp_env_run *a, size_t copy)
{
    size_t size = a->snapshot_bytes;
    char *before = a->snapshots;

    rp_env_save(a->env, copy, before);
    if (rp_env_load(a->env, copy, before, size, a->spare, &a->err) != RP_OK) return false;
    if (memcmp(a->spare, rp_env_run_row(a, a->observations, copy), a->row_bytes) != 0)
        return false;
    rp_env_save(a->env, copy, before + (a->copies > 1 ? size : 0));
    return a->copies == 1 || memcmp(before, before + size, size) == 0;
}

static void check_observe(checker *c, const check *self, rp_env_run *a, rp_env_run *b)
{
    (void)b;
    if (!reset_run(c, self, a)) return;
    for (size_t i = 0; i < c->steps; i++) {
        rp_env_run_choose(a);
        if (!step_run(c, self, a, i)) return;
        if (observes_the_same(a, i % a->copies)) continue;
        fail(c, self, "a second observation after step %zu differs or changes the state", i);
        return;
    }
}

static bool row_is_untouched(const rp_env_run *run, size_t copy)
{
    const char *row = rp_env_run_row(run, run->last, copy);

    for (size_t i = 0; i < run->row_bytes; i++)
        if (row[i] != UNTOUCHED) return false;
    return true;
}

/* Compares one copy of `a`, which resets by itself, with that of `b`, which is reset here. */
static bool last_is_kept(checker *c, const check *self, rp_env_run *a, rp_env_run *b,
                         size_t copy)
{
    bool ended = a->out.terminated[copy] || a->out.truncated[copy];
    char *row = rp_env_run_row(b, b->observations, copy);

    if (ended) {
        if (memcmp(rp_env_run_row(a, a->last, copy), row, b->row_bytes) != 0) {
            fail(c, self, "copy %zu lost the last observation of an episode", copy);
            return false;
        }
        if (rp_env_reset_copy(b->env, copy, NULL, row, &b->err) != RP_OK) {
            fail(c, self, "a reset failed: %s", b->err.text);
            return false;
        }
    } else if (!row_is_untouched(a, copy)) {
        fail(c, self, "the last observation of copy %zu changed before its end", copy);
        return false;
    }
    if (rp_env_run_same(a, copy, b, copy)) return true;
    fail(c, self, "copy %zu differs between a reset by itself and one by hand", copy);
    return false;
}

static void check_last(checker *c, const check *self, rp_env_run *a, rp_env_run *b)
{
    if (!reset_run(c, self, a) || !reset_run(c, self, b)) return;
    for (size_t i = 0; i < c->steps; i++) {
        rp_env_run_choose(a);
        memcpy(b->actions, a->actions, a->copies * a->action_bytes);
        memset(a->last, UNTOUCHED, a->copies * a->row_bytes);
        if (!step_run(c, self, a, i) || !step_run(c, self, b, i)) return;
        for (size_t k = 0; k < a->copies; k++)
            if (!last_is_kept(c, self, a, b, k)) return;
    }
}

enum { MOST_VARIABLES = 256 };

static void check_variables(checker *c, const check *self, rp_env_run *a, rp_env_run *b)
{
    size_t count = rp_env_get_spec(a->env)->variable_count;
    double before[MOST_VARIABLES], after[MOST_VARIABLES];

    (void)b;
    if (count == 0 || count > MOST_VARIABLES || !reset_run(c, self, a)) return;
    for (size_t i = 0; i < c->steps; i++) {
        size_t copy = i % a->copies;
        rp_env_run_choose(a);
        if (!step_run(c, self, a, i)) return;
        rp_env_get_variables(a->env, copy, before);
        if (rp_env_set_variables(a->env, copy, before, &a->err) != RP_OK) {
            fail(c, self, "after step %zu: %s", i, a->err.text);
            return;
        }
        rp_env_get_variables(a->env, copy, after);
        if (memcmp(before, after, count * sizeof *before) == 0) continue;
        fail(c, self, "a variable is not what it was set to after step %zu", i);
        return;
    }
}

/* `b` goes on after the end of its episodes. */
static void check_after_end(checker *c, const check *self, rp_env_run *a, rp_env_run *b)
{
    (void)a;
    if (!reset_run(c, self, b)) return;
    for (size_t i = 0; i < c->steps; i++) {
        rp_env_run_choose(b);
        if (!step_run(c, self, b, i)) return;
        if (rp_env_verify(b->env)) continue;
        fail(c, self, "check() refuses the state after step %zu", i);
        return;
    }
}

static const check CHECKS[] = {
    {"rows", check_rows, false, false},          {"bounds", check_bounds, false, false},
    {"state", check_state, false, false},        {"repeat", check_repeat, false, false},
    {"reseed", check_reseed, false, false},      {"alone", check_alone, false, true},
    {"snapshot", check_snapshot, false, false},  {"observe", check_observe, false, false},
    {"last", check_last, true, false},           {"variables", check_variables, false, false},
    {"after_end", check_after_end, true, false},
};

enum { CHECK_COUNT = sizeof CHECKS / sizeof CHECKS[0] };

static rp_status run_check(checker *c, const check *self)
{
    rp_env_options second = c->options;
    rp_env_run a, b;
    rp_status st;

    second.keep_ended = self->keep_ended;
    if (self->alone) second.copies = 1;
    st = rp_env_run_init(&a, &c->alloc, c->class, &c->options);
    if (st != RP_OK) goto out_a;
    st = rp_env_run_init(&b, &c->alloc, c->class, &second);
    if (st == RP_OK) self->play(c, self, &a, &b);
    if (st == RP_OK) c->report->check_count++;
    rp_env_run_deinit(&b);
out_a:
    rp_env_run_deinit(&a);
    return st;
}

/* Makes the environment once, to report what is wrong with its specification. */
static rp_status check_spec(checker *c)
{
    const check self = {.name = "spec"};
    rp_env_run run;
    rp_status st = rp_env_run_init(&run, &c->alloc, c->class, &c->options);

    if (st != RP_OK && st != RP_NO_RESOURCE) fail(c, &self, "%s", run.err.text);
    rp_env_run_deinit(&run);
    c->report->check_count++;
    return st;
}

static checker checker_of(const rp_env_class *env_class, const rp_env_check_options *o,
                          rp_env_report *report)
{
    checker c = {.class = env_class, .report = report, .steps = DEFAULT_STEPS};

    c.alloc = o->alloc != NULL ? *o->alloc : *rp_allocator_default();
    c.options.copies = o->copies > 0 ? o->copies : DEFAULT_COPIES;
    if (c.options.copies > MOST_COPIES) c.options.copies = MOST_COPIES;
    c.options.settings = o->settings;
    c.options.setting_count = o->setting_count;
    if (o->steps > 0) c.steps = o->steps;
    c.seed = o->seed;
    return c;
}

rp_status rp_env_check(const rp_env_class *env_class, const rp_env_check_options *options,
                       rp_env_report *report)
{
    const rp_env_check_options none = {0};
    checker c = checker_of(env_class, options != NULL ? options : &none, report);
    rp_status st;

    memset(report, 0, sizeof *report);
    st = check_spec(&c);
    for (size_t i = 0; i < CHECK_COUNT && st == RP_OK; i++) st = run_check(&c, &CHECKS[i]);
    if (st == RP_NO_RESOURCE) return st;
    assert(st == RP_OK || report->failure_count > 0);
    return report->failure_count == 0 ? RP_OK : RP_INVALID;
}
