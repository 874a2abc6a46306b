/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the evaluator: fetches parameters, judges them, and rests twice as long as that
 * took, so that it leaves the processors to the others. */
#include <assert.h>

#include "apex/part.h"
#include "error/fail.h"

enum { ROWS = 100, REST = 2, POLL_MS = 20 };

typedef struct evaluator_life {
    rp_part *part;
    rp_policy *policy;
    rp_variable_client *variables;
    rp_real *params;
    rp_verdict verdict;
} evaluator_life;

static bool should_stop(void *ctx)
{
    return rp_part_is_stopping(ctx);
}

static rp_status judge(evaluator_life *l, const rp_variables *got, rp_error *err)
{
    rp_apex *a = l->part->apex;
    const rp_verdict_options options = {
        .evaluation = {.env_class = a->options.env_class,
                       .policy = l->policy,
                       .episodes = a->options.eval_episodes,
                       .seed = rp_apex_seed(a, RP_SEED_EVALUATOR),
                       .should_stop = should_stop,
                       .ctx = l->part},
        .confirm_episodes = a->options.confirm_episodes,
        .threshold = a->options.threshold};
    const rp_evaluation *best = &l->verdict.first;
    rp_apex_part *state;
    rp_status st;

    l->verdict = (rp_verdict){.version = got->version, .note = got->note};
    st = rp_judge(&a->alloc, &options, l->params, &l->verdict, err);
    if (st != RP_OK) return st;
    if (l->verdict.confirmed.episodes > 0) best = &l->verdict.confirmed;
    assert(l->verdict.first.episodes == a->options.eval_episodes);
    rp_part_keep(l->part, l->params, l->verdict.solved);
    state = rp_part_lock(l->part);
    state->verdict = l->verdict;
    if (l->verdict.solved && !state->is_solved) state->solution = l->verdict;
    state->is_solved = state->is_solved || l->verdict.solved;
    state->version = got->version;
    state->learner_steps = got->note;
    state->episodes++;
    state->mean_return = best->mean_return;
    state->mean_length = best->mean_length;
    rp_part_unlock(l->part);
    return RP_OK;
}

static rp_status live(void *ctx, rp_error *err)
{
    evaluator_life *l = ctx;
    rp_part *p = l->part;
    const rp_apex_options *o = &p->apex->options;
    rp_status st = RP_OK;

    while (!rp_part_is_stopping(p)) {
        rp_variables got = {0};
        int64_t began_ns;

        st = rp_part_pull(p, l->variables, l->params, RP_CALL_MS, &got, err);
        if (st != RP_OK) return st;
        p->worked_ns = rp_now_ns();
        if (!got.changed) {
            rp_part_waits(p, "parameters of the learner");
            rp_part_sleep(p, POLL_MS);
            continue;
        }
        rp_part_works(p);
        rp_part_keep(p, l->params, false); /* the evaluation may not come to its end */
        began_ns = rp_now_ns();
        st = judge(l, &got, err);
        if (st != RP_OK) return st;
        if (l->verdict.solved && !o->keep_going) return RP_OK;
        rp_part_sleep(p, REST * (rp_now_ns() - began_ns) / 1000000);
    }
    return RP_OK;
}

rp_status rp_apex_evaluator_loop(rp_part *p, rp_error *err)
{
    rp_apex *a = p->apex;
    const rp_apex_making making = rp_part_making(p, NULL);
    const size_t bytes = a->parameter_count * sizeof(rp_real);
    const rp_variable_options variables = {
        .client = a->options.home, .table = RP_APEX_VARIABLES, .count = a->parameter_count};
    evaluator_life l = {.part = p};
    rp_status st = a->options.algorithm->new_policy(&making, ROWS, &l.policy, err);

    if (st == RP_OK) st = rp_variable_client_new(&a->alloc, &variables, &l.variables, err);
    if (st == RP_OK) {
        l.params = a->alloc.resize(a->alloc.ctx, NULL, 0, bytes);
        if (l.params == NULL) st = rp_rl_fail_memory(err, bytes);
    }
    assert(st != RP_OK || l.policy->parameter_count == a->parameter_count);
    if (st == RP_OK) st = rp_part_outlive(p, live, &l, err);
    if (l.params != NULL) (void)a->alloc.resize(a->alloc.ctx, l.params, bytes, 0);
    rp_variable_client_free(l.variables);
    rp_policy_free(l.policy);
    return st;
}
