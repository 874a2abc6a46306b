/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers: the moments, and the factors of each step. The loops are in loops_body.h.
 *
 * Invariants:
 *   O1  every option is within its bounds;
 *   O2  mean, square and velocity are NULL or parts of `moments`, in this order, without gaps.
 */
#include "reprise/rl/optimizer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "error/fail.h"
#include "nn/loops.h"

struct rp_optimizer {
    rp_allocator alloc;
    rp_optimizer_options options;
    const rp_loops *loops;
    size_t size;
    uint64_t steps;
    size_t moment_count;
    rp_real *mean, *square, *velocity;
    rp_real moments[];
};

static rp_status check_unit(const char *name, double value, rp_error *err)
{
    if (value >= 0 && value < 1) return RP_OK;
    return rp_rl_fail(err, RP_INVALID, "optimizer: %s must be in [0, 1), got %g", name, value);
}

static rp_status check_options(const rp_optimizer_options *o, rp_error *err)
{
    rp_status st;

    if (o->kind != RP_SGD && o->kind != RP_ADAM && o->kind != RP_RMSPROP)
        return rp_rl_fail(err, RP_INVALID, "optimizer: no kind has the number %d",
                          (int)o->kind);
    if (!(o->rate > 0) || !isfinite(o->rate))
        return rp_rl_fail(err, RP_INVALID, "optimizer: rate must be > 0 and finite, got %g",
                          o->rate);
    if (!(o->epsilon >= 0) || !isfinite(o->epsilon))
        return rp_rl_fail(err, RP_INVALID, "optimizer: epsilon must be >= 0 and finite, got %g",
                          o->epsilon);
    if (!(o->max_norm >= 0))
        return rp_rl_fail(err, RP_INVALID, "optimizer: max_norm must be >= 0, got %g",
                          o->max_norm);
    if (o->centred && o->kind != RP_RMSPROP)
        return rp_rl_fail(err, RP_INVALID, "optimizer: only RMSProp can be centred");
    if (o->momentum != 0 && o->kind == RP_ADAM)
        return rp_rl_fail(err, RP_INVALID, "optimizer: the momentum of Adam is beta1, not %g",
                          o->momentum);
    st = check_unit("beta1", o->beta1, err);
    if (st == RP_OK) st = check_unit("beta2", o->beta2, err);
    if (st == RP_OK) st = check_unit("momentum", o->momentum, err);
    return st;
}

static rp_optimizer_options with_defaults(rp_optimizer_options o)
{
    if (o.beta1 == 0) o.beta1 = 0.9;
    if (o.beta2 == 0) o.beta2 = o.kind == RP_ADAM ? 0.999 : 0.99;
    if (o.epsilon == 0) o.epsilon = 1e-8;
    return o;
}

static size_t optimizer_bytes(const rp_optimizer *optimizer)
{
    return sizeof *optimizer +
           optimizer->size * optimizer->moment_count * sizeof optimizer->moments[0];
}

static void place_moments(rp_optimizer *optimizer, bool mean, bool square, bool velocity)
{
    rp_real *next = optimizer->moments; /* O2 */

    if (mean) optimizer->mean = next;
    if (mean) next += optimizer->size;
    if (square) optimizer->square = next;
    if (square) next += optimizer->size;
    if (velocity) optimizer->velocity = next;
    if (velocity) next += optimizer->size;
    assert(next == optimizer->moments + optimizer->size * optimizer->moment_count);
}

rp_status rp_optimizer_new(const rp_allocator *alloc, size_t size,
                           const rp_optimizer_options *options, rp_optimizer **out,
                           rp_error *err)
{
    bool mean = options->kind == RP_ADAM || options->centred;
    bool square = options->kind != RP_SGD, velocity = options->momentum > 0;
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_optimizer head = {
        .alloc = a,
        .options = with_defaults(*options),
        .loops = rp_loops_best(),
        .size = size,
        .moment_count = (size_t)mean + (size_t)square + (size_t)velocity,
    };
    rp_optimizer *optimizer;
    rp_status st = check_options(options, err);

    if (st != RP_OK) return st;
    if (size > SIZE_MAX / sizeof(rp_real) / 4)
        return rp_rl_fail(err, RP_NO_RESOURCE, "optimizer: %zu parameters are too many", size);
    optimizer = a.resize(a.ctx, NULL, 0, optimizer_bytes(&head));
    if (optimizer == NULL) return rp_rl_fail_memory(err, optimizer_bytes(&head));
    memset(optimizer, 0, optimizer_bytes(&head));
    *optimizer = head;
    place_moments(optimizer, mean, square, velocity);
    *out = optimizer;
    return RP_OK;
}

void rp_optimizer_free(rp_optimizer *optimizer)
{
    rp_allocator alloc;

    if (optimizer == NULL) return;
    alloc = optimizer->alloc;
    alloc.resize(alloc.ctx, optimizer, optimizer_bytes(optimizer), 0);
}

/* Scales the gradients down to max_norm, as PyTorch's clip_grad_norm_() does. Returns their
 * norm before. */
static double clip(const rp_optimizer *optimizer, rp_real *grads)
{
    double norm = sqrt(optimizer->loops->square_sum(grads, optimizer->size));
    double factor = optimizer->options.max_norm / (norm + 1e-6);

    if (isfinite(norm) && factor < 1)
        optimizer->loops->scale(grads, optimizer->size, (rp_real)factor);
    return norm;
}

/* The factors of step number `steps`, from 1. */
static rp_step_factors factors_of(const rp_optimizer *optimizer, uint64_t steps)
{
    const rp_optimizer_options *o = &optimizer->options;
    double t = (double)steps, rate = o->rate, root = 1;

    assert(o->rate > 0 && o->beta2 >= 0 && o->beta2 < 1); /* O1 */
    if (o->kind == RP_ADAM) {
        rate /= 1 - pow(o->beta1, t);
        root = sqrt(1 - pow(o->beta2, t));
    }
    return (rp_step_factors){
        .rate = (rp_real)rate,
        .mean = (rp_real)(1 - o->beta1),
        .square = (rp_real)(1 - o->beta2),
        .keep_square = (rp_real)o->beta2,
        .by_root = (rp_real)(1 / root),
        .epsilon = (rp_real)o->epsilon,
        .momentum = (rp_real)o->momentum,
    };
}

static rp_real *part_of(rp_real *moment, size_t first)
{
    return moment != NULL ? moment + first : NULL;
}

/* Makes step number `steps` of some parameters, whose gradients are scaled. */
static void apply(const rp_optimizer *optimizer, const rp_optimizer_slice *slice,
                  uint64_t steps)
{
    const rp_step step = {
        .count = slice->count,
        .params = slice->params,
        .grads = slice->grads,
        .mean = part_of(optimizer->mean, slice->first),
        .square = part_of(optimizer->square, slice->first),
        .velocity = part_of(optimizer->velocity, slice->first),
        .by = factors_of(optimizer, steps),
    };

    assert(slice->first + slice->count <= optimizer->size);
    switch (optimizer->options.kind) {
    case RP_SGD: optimizer->loops->sgd(&step); break;
    case RP_ADAM: optimizer->loops->adam(&step); break;
    case RP_RMSPROP: optimizer->loops->rmsprop(&step); break;
    }
}

double rp_optimizer_step(rp_optimizer *optimizer, rp_real *params, rp_real *grads)
{
    double norm = optimizer->options.max_norm > 0 ? clip(optimizer, grads) : 0;

    if (!isfinite(norm)) return norm;
    optimizer->steps++;
    apply(optimizer, &(rp_optimizer_slice){0, optimizer->size, params, grads},
          optimizer->steps);
    return norm;
}

void rp_optimizer_step_slice(const rp_optimizer *optimizer, const rp_optimizer_slice *slice,
                             double norm)
{
    double factor = optimizer->options.max_norm / (norm + 1e-6); /* as clip() */

    if (!isfinite(norm)) return;
    if (optimizer->options.max_norm > 0 && factor < 1)
        optimizer->loops->scale(slice->grads, slice->count, (rp_real)factor);
    apply(optimizer, slice, optimizer->steps + 1);
}

void rp_optimizer_end_slices(rp_optimizer *optimizer, double norm)
{
    if (isfinite(norm)) optimizer->steps++;
}

void rp_optimizer_set_rate(rp_optimizer *optimizer, double rate)
{
    assert(rate > 0 && isfinite(rate));
    optimizer->options.rate = rate;
}

rp_optimizer_state rp_optimizer_get_state(rp_optimizer *optimizer)
{
    return (rp_optimizer_state){optimizer->moments, optimizer->moment_count, optimizer->steps};
}

void rp_optimizer_set_steps(rp_optimizer *optimizer, uint64_t steps)
{
    optimizer->steps = steps;
}

void rp_add_numbers(rp_real *sums, const rp_real *numbers, size_t count)
{
    rp_loops_best()->add(sums, numbers, count);
}

double rp_global_norm(const rp_real *numbers, size_t count)
{
    return sqrt(rp_loops_best()->square_sum(numbers, count));
}

void rp_polyak(rp_real *target, const rp_real *online, size_t count, double rate)
{
    assert(rate >= 0 && rate <= 1);
    if (rate == 1) {
        memcpy(target, online, count * sizeof *target);
    } else {
        rp_loops_best()->blend(target, online, count, (rp_real)rate);
    }
}
