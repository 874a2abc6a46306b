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
                          "gradient norm %g, with a rate of %g and a bound of %g on the loss: "
                          "try a lower rate",
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

bool rp_learning_target_is_due(const rp_learning *l, int64_t target_every)
{
    return (l->counts.updates + 1) % target_every == 0;
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

void rp_learning_add_network(rp_learning *l, const rp_learning_network *network)
{
    assert(l->network_count < RP_LEARNING_NETWORKS);
    l->networks[l->network_count++] = *network;
    l->count += network->count;
}

size_t rp_learning_get_state(rp_learning *l, rp_state_part *parts)
{
    size_t count = 0, size = l->count * sizeof(rp_real);

    assert(l->network_count >= 1);
    l->optimizer_steps = rp_optimizer_get_state(l->networks[0].optimizer).steps;
    parts[count++] = (rp_state_part){"learner", &l->counts, sizeof l->counts};
    parts[count++] =
        (rp_state_part){"optimizer_steps", &l->optimizer_steps, sizeof l->optimizer_steps};
    parts[count++] = (rp_state_part){"params", l->params, size};
    parts[count++] = (rp_state_part){"target", l->target_params, size};
    for (size_t i = 0; i < l->network_count; i++) {
        const rp_learning_network *n = &l->networks[i];
        const rp_optimizer_state state = rp_optimizer_get_state(n->optimizer);

        assert(state.steps == l->optimizer_steps || l->diverged);
        parts[count++] = (rp_state_part){n->moments, state.moments,
                                         state.moment_count * n->count * sizeof(rp_real)};
    }
    return count;
}

/* Takes the steps of an optimizer. Returns whether its moments can be those of a run. */
static bool restore_optimizer(const rp_learning_network *n, uint64_t steps)
{
    const rp_optimizer_state state = rp_optimizer_get_state(n->optimizer);

    assert(state.moment_count == 2);
    rp_optimizer_set_steps(n->optimizer, steps);
    return are_sound(state.moments, n->count, -MOST_NUMBER) &&
           are_sound(state.moments + n->count, n->count, 0);
}

rp_status rp_learning_restored(rp_learning *l, rp_error *err)
{
    const rp_learning_counts *c = &l->counts;
    bool sound = c->updates >= 0 && c->updates <= MOST_COUNT && c->samples >= 0 &&
                 c->samples <= MOST_COUNT && c->largest_priority >= 0 &&
                 isfinite(c->largest_priority) && l->optimizer_steps <= (uint64_t)MOST_COUNT &&
                 are_sound(l->params, l->count, -MOST_NUMBER) &&
                 are_sound(l->target_params, l->count, -MOST_NUMBER);

    for (size_t i = 0; i < l->network_count; i++)
        sound = restore_optimizer(&l->networks[i], l->optimizer_steps) && sound;
    if (sound) return RP_OK;
    return rp_rl_fail(err, RP_CORRUPT, "%s: a number of the snapshot is impossible", l->agent);
}
