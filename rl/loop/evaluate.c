/* SPDX-License-Identifier: Apache-2.0 */
/* Episodes are run in rounds of as many copies as the policy takes rows. A copy counts for its
 * first episode only; it goes on until the last one of its round has ended, since rows are
 * cheaper than bookkeeping. So short episodes are not favoured.
 *
 * Invariant:
 *   E1  the seed of episode e depends on the options' seed and e only: the result does not
 *       depend on the rows of the policy. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "error/fail.h"
#include "reprise/rl/evaluator.h"
#include "reprise/rl/random.h"

enum { MAX_STEPS = 1000000, ASK_EVERY = 16 };

/* One round: arrays with a row for each copy. */
typedef struct evaluation_round {
    rp_allocator alloc;
    rp_env *env;
    size_t copies, block_bytes;
    uint8_t *block;
    uint64_t *seeds;
    double *rewards, *returns;
    int64_t *lengths;
    void *observations, *actions;
    bool *terminated, *truncated, *over;
} evaluation_round;

static size_t rounded(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static rp_status open_round(evaluation_round *r, const rp_evaluation_options *o, rp_error *err)
{
    rp_env_options env = o->env;
    size_t row, action;
    uint8_t *at;
    rp_status st;

    env.copies = r->copies;
    st = rp_env_new(&r->alloc, o->env_class, &env, &r->env, err);
    if (st != RP_OK) return st;
    row = rounded(r->copies * rp_env_observation_bytes(r->env));
    action = rounded(r->copies * rp_env_action_bytes(r->env));
    r->block_bytes =
        row + action + 4 * rounded(r->copies * sizeof(double)) + 3 * rounded(r->copies);
    r->block = r->alloc.resize(r->alloc.ctx, NULL, 0, r->block_bytes);
    if (r->block == NULL) return rp_rl_fail_memory(err, r->block_bytes);
    memset(r->block, 0, r->block_bytes);
    at = r->block;
    r->observations = at;
    r->actions = at += row;
    r->seeds = (void *)(at += action);
    r->rewards = (void *)(at += rounded(r->copies * sizeof(double)));
    r->returns = (void *)(at += rounded(r->copies * sizeof(double)));
    r->lengths = (void *)(at += rounded(r->copies * sizeof(double)));
    r->terminated = (void *)(at += rounded(r->copies * sizeof(double)));
    r->truncated = (void *)(at += rounded(r->copies));
    r->over = (void *)(at += rounded(r->copies));
    assert(at + rounded(r->copies) == r->block + r->block_bytes);
    return RP_OK;
}

static void close_round(evaluation_round *r)
{
    rp_env_free(r->env);
    if (r->block != NULL) (void)r->alloc.resize(r->alloc.ctx, r->block, r->block_bytes, 0);
}

/* Runs the episodes from number `first` on. */
static rp_status run_round(evaluation_round *r, const rp_evaluation_options *o, int64_t first,
                           const rp_real *params, rp_error *err)
{
    const rp_env_buffers buffers = {r->observations, NULL, r->rewards, r->terminated,
                                    r->truncated};
    const int64_t most = o->max_steps > 0 ? o->max_steps : MAX_STEPS;
    size_t left = r->copies;
    rp_status st;

    for (size_t i = 0; i < r->copies; i++) {
        const uint64_t episode = (uint64_t)first + i;
        const uint32_t words[] = {(uint32_t)o->seed, (uint32_t)(o->seed >> 32),
                                  (uint32_t)episode, (uint32_t)(episode >> 32)};
        uint32_t word;
        rp_seed_sequence(words, 4, &word, 1);
        r->seeds[i] = word; /* E1 */
        r->returns[i] = 0;
        r->lengths[i] = 0;
        r->over[i] = false;
    }
    st = rp_env_reset(r->env, r->seeds, r->observations, err);
    for (int64_t step = 0; st == RP_OK && left > 0 && step < most; step++) {
        if (o->should_stop != NULL && step % ASK_EVERY == 0 && o->should_stop(o->ctx))
            return rp_rl_fail(err, RP_CANCELLED, "evaluation: stopped");
        o->policy->act(o->policy, params, r->observations, r->copies, r->actions);
        st = rp_env_step(r->env, r->actions, &buffers, err);
        for (size_t i = 0; st == RP_OK && i < r->copies; i++) {
            if (r->over[i]) continue;
            r->returns[i] += r->rewards[i];
            r->lengths[i]++;
            r->over[i] = r->terminated[i] || r->truncated[i];
            if (r->over[i]) left--;
        }
    }
    return st;
}

rp_status rp_evaluate(const rp_allocator *alloc, const rp_evaluation_options *options,
                      const rp_real *params, rp_evaluation *out, rp_error *err)
{
    evaluation_round r = {.alloc = alloc != NULL ? *alloc : *rp_allocator_default()};
    rp_evaluation e = {.lowest = INFINITY, .highest = -INFINITY};
    double squares = 0, sum = 0, length = 0;
    rp_status st = RP_OK;

    if (options->episodes < 1 || options->policy->rows < 1)
        return rp_rl_fail(err, RP_INVALID, "evaluation: episodes must be >= 1, got %lld",
                          (long long)options->episodes);
    while (st == RP_OK && e.episodes < options->episodes) {
        int64_t missing = options->episodes - e.episodes;
        size_t rows = options->policy->rows;
        size_t copies = (uint64_t)missing < rows ? (size_t)missing : rows;
        if (copies != r.copies) {
            close_round(&r);
            r = (evaluation_round){.alloc = r.alloc, .copies = copies};
            st = open_round(&r, options, err);
        }
        if (st == RP_OK) st = run_round(&r, options, e.episodes, params, err);
        for (size_t i = 0; st == RP_OK && i < copies; i++) {
            sum += r.returns[i];
            squares += r.returns[i] * r.returns[i];
            length += (double)r.lengths[i];
            if (r.returns[i] < e.lowest) e.lowest = r.returns[i];
            if (r.returns[i] > e.highest) e.highest = r.returns[i];
        }
        e.episodes += (int64_t)copies;
    }
    close_round(&r);
    if (st != RP_OK) return st;
    e.mean_return = sum / (double)e.episodes;
    e.mean_length = length / (double)e.episodes;
    e.deviation = sqrt(fmax(0, squares / (double)e.episodes - e.mean_return * e.mean_return));
    *out = e;
    return RP_OK;
}

static double standard_error(const rp_evaluation *e)
{
    return e->deviation / sqrt((double)e->episodes);
}

rp_status rp_judge(const rp_allocator *alloc, const rp_verdict_options *options,
                   const rp_real *params, rp_verdict *verdict, rp_error *err)
{
    rp_evaluation_options o = options->evaluation;
    const uint32_t words[] = {(uint32_t)o.seed, (uint32_t)(o.seed >> 32),
                              (uint32_t)verdict->version, (uint32_t)(verdict->version >> 32)};
    uint32_t seeds[4];
    rp_status st;

    rp_seed_sequence(words, 4, seeds, 4);
    o.seed = (uint64_t)seeds[0] << 32 | seeds[1];
    verdict->confirmed = (rp_evaluation){0};
    verdict->solved = false;
    st = rp_evaluate(alloc, &o, params, &verdict->first, err);
    if (st != RP_OK || !(verdict->first.mean_return >= options->threshold)) return st;
    o.seed = (uint64_t)seeds[2] << 32 | seeds[3]; /* other episodes */
    o.episodes = options->confirm_episodes;
    st = rp_evaluate(alloc, &o, params, &verdict->confirmed, err);
    if (st == RP_OK)
        verdict->solved =
            verdict->confirmed.mean_return - standard_error(&verdict->confirmed) >=
            options->threshold;
    return st;
}
