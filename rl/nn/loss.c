/* SPDX-License-Identifier: Apache-2.0 */
/* Losses over actions: TD errors, categorical and quantile distributions. */
#include "reprise/rl/loss.h"

#include <assert.h>
#include <string.h>

#include "nn/real.h"

size_t rp_argmax(const rp_real *numbers, size_t count)
{
    size_t best = 0;

    assert(count >= 1);
    for (size_t i = 1; i < count; i++)
        if (numbers[i] > numbers[best]) best = i;
    return best;
}

void rp_td_target(size_t rows, size_t actions, const rp_real *reward, const rp_real *discount,
                  const rp_real *q_online, const rp_real *q_target, rp_real *target)
{
    const rp_real *chooser = q_online != NULL ? q_online : q_target;

    for (size_t i = 0; i < rows; i++) {
        size_t best = rp_argmax(chooser + i * actions, actions);
        target[i] = reward[i] + discount[i] * q_target[i * actions + best];
    }
}

/* The weight of row i, divided by the number of rows. */
static rp_real share_of(const rp_loss_rows *rows, size_t i)
{
    return (rows->weights != NULL ? rows->weights[i] : 1) / (rp_real)rows->rows;
}

/* The index of the group of `width` numbers of the action taken in row i. */
static size_t taken_at(const rp_loss_rows *rows, size_t i, size_t width)
{
    assert(rows->taken[i] >= 0 && (size_t)rows->taken[i] < rows->actions);
    return (i * rows->actions + (size_t)rows->taken[i]) * width;
}

/* Huber's loss of x; its derivative goes to `slope`. */
static rp_real huber(rp_real x, rp_real delta, rp_real *slope)
{
    rp_real size = x < 0 ? -x : x;

    if (delta == 0 || size <= delta) {
        *slope = x;
        return x * x / 2;
    }
    *slope = x < 0 ? -delta : delta;
    return x != x ? x : delta * (size - delta / 2);
}

double rp_td_loss(const rp_loss_rows *rows, double delta, const rp_real *q,
                  const rp_real *target, rp_real *grad, rp_real *errors)
{
    double sum = 0;

    assert(rows->rows >= 1 && delta >= 0);
    memset(grad, 0, rows->rows * rows->actions * sizeof *grad);
    for (size_t i = 0; i < rows->rows; i++) {
        size_t at = taken_at(rows, i, 1);
        rp_real slope, share = share_of(rows, i);

        errors[i] = target[i] - q[at];
        sum += (double)(huber(errors[i], (rp_real)delta, &slope) * share);
        grad[at] = -slope * share;
    }
    return sum;
}

/* Writes the probabilities of `atoms` logits. Returns the logarithm of the sum of e^logit. */
static rp_real softmax(const rp_real *logits, size_t atoms, rp_real *probabilities)
{
    rp_real most = logits[rp_argmax(logits, atoms)], sum = 0;

    for (size_t k = 0; k < atoms; k++) {
        probabilities[k] = rp_exp(logits[k] - most);
        sum += probabilities[k];
    }
    for (size_t k = 0; k < atoms; k++) probabilities[k] /= sum;
    return most + rp_log(sum);
}

static rp_real spacing_of(const rp_categorical *head)
{
    assert(head->atoms >= 2 && head->high > head->low);
    return (rp_real)((head->high - head->low) / (double)(head->atoms - 1));
}

void rp_categorical_values(const rp_categorical *head, const rp_real *logits, size_t count,
                           rp_real *values)
{
    rp_real spacing = spacing_of(head);

    for (size_t i = 0; i < count; i++) {
        const rp_real *row = logits + i * head->atoms;
        rp_real most = row[rp_argmax(row, head->atoms)], sum = 0, value = 0;

        for (size_t k = 0; k < head->atoms; k++) {
            rp_real weight = rp_exp(row[k] - most);
            sum += weight;
            value += weight * ((rp_real)head->low + (rp_real)k * spacing);
        }
        values[i] = value / sum;
    }
}

/* Splits the probability of one value between its two neighbours among the atoms. */
static void project_value(const rp_categorical *head, rp_real value, rp_real probability,
                          rp_real *target)
{
    rp_real low = (rp_real)head->low, high = (rp_real)head->high, at;
    size_t below;

    value = value < low ? low : value > high ? high : value;
    at = (value - low) / spacing_of(head);
    if (!(at >= 0)) at = 0; /* NaN: a run that diverges still stays within the array */
    below = (size_t)at;
    if (below > head->atoms - 2) below = head->atoms - 2;
    at -= (rp_real)below;
    target[below] += probability * (1 - at);
    target[below + 1] += probability * at;
}

void rp_categorical_project(const rp_categorical *head, const rp_real *logits,
                            const rp_real *reward, const rp_real *discount, size_t rows,
                            rp_real *target)
{
    rp_real spacing = spacing_of(head);

    for (size_t i = 0; i < rows; i++) {
        const rp_real *row = logits + i * head->atoms;
        rp_real most = row[rp_argmax(row, head->atoms)], sum = 0;
        rp_real *to = target + i * head->atoms;

        memset(to, 0, head->atoms * sizeof *to);
        for (size_t k = 0; k < head->atoms; k++) sum += rp_exp(row[k] - most);
        for (size_t k = 0; k < head->atoms; k++)
            project_value(head,
                          reward[i] + discount[i] * ((rp_real)head->low + (rp_real)k * spacing),
                          rp_exp(row[k] - most) / sum, to);
    }
}

double rp_categorical_loss(const rp_loss_rows *rows, const rp_categorical *head,
                           const rp_real *logits, const rp_real *target, rp_real *grad,
                           rp_real *errors)
{
    size_t atoms = head->atoms;
    double sum = 0;

    assert(rows->rows >= 1);
    memset(grad, 0, rows->rows * rows->actions * atoms * sizeof *grad);
    for (size_t i = 0; i < rows->rows; i++) {
        size_t at = taken_at(rows, i, atoms);
        const rp_real *wanted = target + i * atoms;
        rp_real share = share_of(rows, i), loss = 0, total = 0;
        rp_real log_sum = softmax(logits + at, atoms, grad + at);

        for (size_t k = 0; k < atoms; k++) {
            loss += wanted[k] * (log_sum - logits[at + k]);
            total += wanted[k];
        }
        for (size_t k = 0; k < atoms; k++)
            grad[at + k] = (grad[at + k] * total - wanted[k]) * share;
        errors[i] = loss;
        sum += (double)(loss * share);
    }
    return sum;
}

void rp_quantile_values(const rp_quantile *head, const rp_real *out, size_t count,
                        rp_real *values)
{
    for (size_t i = 0; i < count; i++) {
        rp_real sum = 0;

        for (size_t k = 0; k < head->quantiles; k++) sum += out[i * head->quantiles + k];
        values[i] = sum / (rp_real)head->quantiles;
    }
}

/* The loss of one quantile against all samples (Dabney et al. 2018, equation 10, divided by
 * delta), and its gradient. */
static rp_real quantile_row(const rp_quantile *head, rp_real value, rp_real fraction,
                            const rp_real *samples, rp_real *grad)
{
    rp_real delta = (rp_real)head->delta, loss = 0, by_value = 0;

    for (size_t j = 0; j < head->target_count; j++) {
        rp_real slope, error = samples[j] - value;
        rp_real size = huber(error, delta, &slope) / delta;
        rp_real weight = error < 0 ? 1 - fraction : fraction;

        loss += weight * size;
        by_value -= weight * slope / delta;
    }
    *grad = by_value / (rp_real)head->target_count;
    return loss / (rp_real)head->target_count;
}

double rp_quantile_loss(const rp_loss_rows *rows, const rp_quantile *head, const rp_real *out,
                        const rp_real *target, rp_real *grad, rp_real *errors)
{
    size_t quantiles = head->quantiles;
    double sum = 0;

    assert(rows->rows >= 1 && quantiles >= 1 && head->target_count >= 1 && head->delta > 0);
    memset(grad, 0, rows->rows * rows->actions * quantiles * sizeof *grad);
    for (size_t i = 0; i < rows->rows; i++) {
        size_t at = taken_at(rows, i, quantiles);
        rp_real share = share_of(rows, i), loss = 0;

        for (size_t k = 0; k < quantiles; k++) {
            rp_real fraction = ((rp_real)k + (rp_real)0.5) / (rp_real)quantiles;

            loss += quantile_row(head, out[at + k], fraction, target + i * head->target_count,
                                 &grad[at + k]);
            grad[at + k] *= share;
        }
        errors[i] = loss;
        sum += (double)(loss * share);
    }
    return sum;
}
