/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/train/auto_split.h"

#include <assert.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
    TIME_MS = 200,         /* of each point of a curve */
    MOST_NUMBERS = 1 << 20 /* of processors */
};

int64_t rp_own_cores(void)
{
    int count = 0;

    /* The kernel refuses a set that is smaller than its own. */
    for (size_t numbers = CPU_SETSIZE; count == 0 && numbers <= MOST_NUMBERS; numbers *= 2) {
        size_t bytes = CPU_ALLOC_SIZE(numbers);
        cpu_set_t *set = CPU_ALLOC(numbers);

        if (set == NULL) break;
        if (sched_getaffinity(0, bytes, set) == 0) count = CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
    }
    if (count < 1) return 1;
    return count > RP_SPLIT_MAX_CORES ? RP_SPLIT_MAX_CORES : count;
}

bool rp_is_auto(const char *text)
{
    return text != NULL && strcmp(text, "auto") == 0;
}

static rp_status pick(rp_auto_split *s, const rp_profile *profile, rp_error *err)
{
    rp_rebalance_options o = {.problem = rp_profile_problem(profile, &s->curves)};
    rp_status st;

    o.problem.only_actors = s->actors;
    o.problem.only_learners = s->learners;
    s->in_turn = o.problem.in_turn;
    if (s->in_turn) return rp_split_pick(&o.problem, &s->pick, err);
    st = rp_rebalance_init(&s->rebalance, &o, err);
    if (st == RP_OK) s->pick = s->rebalance.split;
    return st;
}

/* "1 actor", "3 actors". Returns `out`. */
static char *count_text(int64_t count, const char *what, char out[64])
{
    (void)snprintf(out, 64, "%lld %s%s", (long long)count, what, count == 1 ? "" : "s");
    return out;
}

bool rp_auto_split_fits(const rp_auto_split *s, bool in_turn, char out[RP_SPLIT_LINE_BYTES])
{
    int64_t actors = s->actors > 0 ? s->actors : 1;
    int64_t learners = s->learners > 0 ? s->learners : 1;
    bool is_shared = in_turn || (s->cores == 1 && actors == 1 && learners == 1);
    int64_t needed = is_shared ? learners : actors + learners;
    char text[2][64];

    (void)snprintf(
        out, RP_SPLIT_LINE_BYTES, "%s and %s need at least %lld cores: --cores is %lld",
        count_text(actors, "actor", text[0]), count_text(learners, "learner", text[1]),
        (long long)needed, (long long)s->cores);
    return needed <= s->cores;
}

rp_status rp_auto_split_measure(rp_auto_split *s, const rp_profile_options *options,
                                rp_error *err)
{
    rp_profile_options o = *options;
    rp_profile *profile = NULL;
    rp_status st;

    assert(s->is_on && s->cores >= 1);
    o.cores = s->cores;
    o.time_ms = TIME_MS;
    st = rp_profile_new(NULL, &o, &profile, err);
    if (st == RP_OK) st = rp_profile_measure(profile, &s->curves, err);
    if (st == RP_OK) st = pick(s, profile, err);
    rp_profile_free(profile);
    return st;
}

int64_t rp_auto_split_most(const rp_auto_split *s)
{
    return s->actors > 0 ? s->actors : s->curves.acting.count;
}

char *rp_auto_split_line(const rp_auto_split *s, char out[RP_SPLIT_LINE_BYTES])
{
    const rp_split *p = &s->pick;
    char actors[64], learners[64], cores[64];
    double acted = s->curves.acting.rates[p->actors - 1];
    double learned = s->curves.learning.rates[p->learners - 1];

    (void)count_text(p->actors, "actor", actors);
    (void)count_text(p->learners, "learner", learners);
    (void)count_text(s->cores, "core", cores);
    if (s->in_turn)
        (void)snprintf(out, RP_SPLIT_LINE_BYTES,
                       "%s on %s: %.0f steps/s predicted; acting alone makes %.0f steps/s, %s "
                       "%.0f updates/s",
                       learners, cores, p->steps_per_second, acted, learners, learned);
    else
        (void)snprintf(out, RP_SPLIT_LINE_BYTES,
                       "%s and %s on %s: %.0f steps/s predicted; %s alone %s %.0f steps/s, "
                       "%s %.0f updates/s",
                       actors, learners, cores, p->steps_per_second, actors,
                       p->actors == 1 ? "makes" : "make", acted, learners, learned);
    return out;
}

char *rp_auto_move_line(const rp_rebalance_move *m, char out[RP_SPLIT_LINE_BYTES])
{
    char actors[64], learners[64];

    (void)snprintf(out, RP_SPLIT_LINE_BYTES,
                   "%s and %s become %lld and %lld: the actors waited %.0f %% of their time, "
                   "the learners %.0f %%; %.0f steps/s measured, %.0f predicted now",
                   count_text(m->from.actors, "actor", actors),
                   count_text(m->from.learners, "learner", learners), (long long)m->to.actors,
                   (long long)m->to.learners, 100 * m->view.actors_wait,
                   100 * m->view.learner_waits, m->from.steps_per_second,
                   m->to.steps_per_second);
    return out;
}

void rp_auto_split_note(const rp_auto_split *s, rp_run_progress *p)
{
    const rp_split *now = s->in_turn ? &s->pick : &s->rebalance.split;

    if (!s->is_on) return;
    if (!s->in_turn) p->actors = (double)now->actors;
    p->learners = (double)now->learners;
    p->predicted_steps_per_second = now->steps_per_second;
}
