/* SPDX-License-Identifier: Apache-2.0 */
/* The Gaussian head.
 *
 * With u = mean + deviation * noise and a = tanh(u), the density of a is that of u divided by
 * 1 - a^2 (Haarnoja et al. 2018, appendix C). Its logarithm is computed as
 * log(1 - tanh(u)^2) = 2 (log 2 - u - log(1 + e^(-2u))), which stays exact where a is near 1.
 */
#include "reprise/rl/loss.h"

#include <assert.h>

#include "nn/real.h"

static const double half_log_two_pi = 0.9189385332046727, log_two = 0.6931471805599453;

static rp_real clamp(rp_real x, const rp_gaussian *head)
{
    if (x < (rp_real)head->log_low) return (rp_real)head->log_low;
    return x > (rp_real)head->log_high ? (rp_real)head->log_high : x;
}

/* log(1 - tanh(u)^2). Even in u; computed for u >= 0, where e^(-2u) cannot overflow. */
static rp_real log_slope(rp_real u)
{
    rp_real size = u < 0 ? -u : u;

    return 2 * ((rp_real)log_two - size - rp_log1p(rp_exp(-2 * size)));
}

void rp_gaussian_sample(const rp_gaussian *head, const rp_real *out, const rp_real *noise,
                        size_t rows, rp_real *action, rp_real *log_density)
{
    size_t n = head->actions;

    assert(n >= 1 && head->log_low <= head->log_high);
    for (size_t i = 0; i < rows; i++) {
        rp_real sum = 0;

        for (size_t j = 0; j < n; j++) {
            rp_real log_deviation = clamp(out[(2 * i + 1) * n + j], head), e = noise[i * n + j];
            rp_real u = out[2 * i * n + j] + rp_exp(log_deviation) * e;

            sum -= e * e / 2 + log_deviation + (rp_real)half_log_two_pi;
            if (head->squash) sum -= log_slope(u);
            action[i * n + j] = head->squash ? rp_tanh(u) : u;
        }
        log_density[i] = sum;
    }
}

void rp_gaussian_backward(const rp_gaussian *head, const rp_real *out, const rp_real *noise,
                          size_t rows, const rp_real *grad_action, const rp_real *grad_density,
                          rp_real *grad)
{
    size_t n = head->actions;

    assert(n >= 1 && head->log_low <= head->log_high);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < n; j++) {
            size_t at = 2 * i * n + j;
            rp_real raw = out[at + n], log_deviation = clamp(raw, head);
            rp_real spread = rp_exp(log_deviation) * noise[i * n + j], u = out[at] + spread;
            rp_real by_u = grad_action[i * n + j];

            if (head->squash) { /* the derivative of -log(1 - tanh(u)^2) is 2 tanh(u) */
                rp_real a = rp_tanh(u);
                by_u = by_u * (1 - a * a) + grad_density[i] * 2 * a;
            }
            grad[at] = by_u;
            grad[at + n] = by_u * spread - grad_density[i];
            if (raw != log_deviation) grad[at + n] = 0; /* clamped */
        }
    }
}
