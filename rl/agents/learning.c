/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of learners: see learning.h. */
#include "agents/learning.h"

#include <assert.h>
#include <math.h>

#include "error/fail.h"

static const int64_t MOST_COUNT = INT64_C(1) << 53;
#define MOST_NUMBER ((rp_real)1e30)

rp_status rp_learning_check(const rp_learning *l, rp_error *err)
{
    if (!l->diverged) return RP_OK;
    return rp_rl_fail(err, RP_PRECONDITION, "%s: the run has diverged at update %lld", l->agent,
                      (long long)l->counts.updates);
}

rp_status rp_learning_add(rp_learning *l, const rp_learning_step *step, rp_error *err)
{
    double error = 0;

    assert(!l->diverged && step->rows >= 1);
    l->counts.updates++;
    l->counts.samples += (int64_t)step->rows;
    if (!isfinite(step->loss) || !isfinite(step->norm) || step->loss > l->max_loss) {
        l->diverged = true;
        return rp_rl_fail(err, RP_PRECONDITION,
                          "%s: the run has diverged: at update %lld the loss is %g and the "
                          "gradient norm %g, with a rate of %g and a bound of %g on the loss",
                          l->agent, (long long)l->counts.updates, step->loss, step->norm,
                          l->rate, l->max_loss);
    }
    for (size_t i = 0; i < step->rows; i++) error += fabs((double)step->errors[i]);
    l->updates++;
    l->loss += step->loss;
    l->value += step->value;
    l->error += error / (double)step->rows;
    l->norm += step->norm;
    return RP_OK;
}

double rp_learning_most_error(double max_loss, double huber)
{
    double most = sqrt(2 * max_loss);

    assert(max_loss > 0 && huber >= 0);
    return huber > 0 && most > huber ? max_loss / huber + huber / 2 : most;
}

void rp_learning_metrics(rp_learning *l, rp_agent_metrics *out)
{
    double count = l->updates > 0 ? (double)l->updates : (double)NAN;

    *out = (rp_agent_metrics){
        .updates = l->counts.updates,
        .loss = l->loss / count,
        .value = l->value / count,
        .error = l->error / count,
        .norm = l->norm / count,
        .rate = l->rate,
        .samples = l->counts.samples,
    };
    l->updates = 0;
    l->loss = l->value = l->error = l->norm = 0;
}

/* Finite, within the bounds of a run, and at least `low`. */
static bool are_sound(const rp_real *numbers, size_t count, rp_real low)
{
    int outside = 0;

    for (size_t i = 0; i < count; i++)
        outside |= !(numbers[i] >= low && numbers[i] <= MOST_NUMBER); /* or NaN */
    return outside == 0;
}

rp_status rp_learning_restored(const rp_learning *l, const rp_restored *state, rp_error *err)
{
    const rp_learning_counts *c = &l->counts;
    bool sound = c->updates >= 0 && c->updates <= MOST_COUNT && c->samples >= 0 &&
                 c->samples <= MOST_COUNT && c->largest_priority >= 0 &&
                 isfinite(c->largest_priority) && state->steps <= (uint64_t)MOST_COUNT &&
                 are_sound(state->params, state->count, -MOST_NUMBER) &&
                 are_sound(state->target, state->count, -MOST_NUMBER);

    assert(state->count >= 1);
    for (size_t i = 0; i < 2 && state->sizes[i] > 0; i++) {
        const rp_real *means = state->optimizers[i].moments, *squares = means + state->sizes[i];

        assert(state->optimizers[i].moment_count == 2);
        sound = sound && are_sound(means, state->sizes[i], -MOST_NUMBER) &&
                are_sound(squares, state->sizes[i], 0);
    }
    if (sound) return RP_OK;
    return rp_rl_fail(err, RP_CORRUPT, "%s: a number of the snapshot is impossible", l->agent);
}
