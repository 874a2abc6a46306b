/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of learners: see learning.h. */
#include "agents/learning.h"

#include <assert.h>
#include <math.h>

#include "error/fail.h"
#include "reprise/rl/optimizer.h"

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

rp_status rp_learning_restored(const rp_learning *l, const rp_real *params, size_t count,
                               rp_error *err)
{
    assert(count >= 1);
    if (l->counts.updates >= 0 && l->counts.samples >= 0 &&
        isfinite(l->counts.largest_priority) && isfinite(rp_global_norm(params, count)))
        return RP_OK;
    return rp_rl_fail(err, RP_CORRUPT, "%s: a number of the snapshot is impossible", l->agent);
}
