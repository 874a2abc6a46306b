/* SPDX-License-Identifier: Apache-2.0 */
/* The block of a window is saved as it is:
 *
 *   lengths        copies x int64_t     steps of the current episode of each copy
 *   rewards        rows x copies x double
 *   actions        rows x copies x action_bytes
 *   observations   rows x copies x observation_bytes
 *   current        copies x observation_bytes    the next step is from here
 *
 * Invariants:
 *   W1  step k of an episode is in row k modulo rows, if it is one of the latest `rows` steps;
 *   W2  lengths are >= 0. */
#include "agents/adder_window.h"

#include <assert.h>
#include <string.h>

#include "error/fail.h"

struct rp_adder_window {
    rp_allocator alloc;
    rp_adder_window_shape shape;
    size_t bytes; /* of the block */
    int64_t *lengths;
    double *rewards;
    uint8_t *actions, *observations, *current;
    /* scratch: a step that an adder gets again, one row a copy */
    double *step_rewards;
    uint8_t *step_actions, *step_observations;
    bool *which, *none; /* `none` is false everywhere */
    size_t size_bytes;
    uint64_t block[];
};

static size_t rounded(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

rp_status rp_adder_window_new(const rp_allocator *alloc, rp_adder_window_shape shape,
                              rp_adder_window **out, rp_error *err)
{
    const size_t cells = shape.rows * shape.copies;
    const size_t sizes[] = {shape.copies * sizeof(int64_t),
                            cells * sizeof(double),
                            rounded(cells * shape.action_bytes),
                            rounded(cells * shape.observation_bytes),
                            rounded(shape.copies * shape.observation_bytes),
                            shape.copies * sizeof(double),
                            rounded(shape.copies * shape.action_bytes),
                            rounded(shape.copies * shape.observation_bytes),
                            rounded(shape.copies),
                            rounded(shape.copies)};
    size_t size = sizeof(rp_adder_window);
    rp_adder_window *w;
    uint8_t *at;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) size += sizes[i];
    w = alloc->resize(alloc->ctx, NULL, 0, size);
    if (w == NULL) return rp_rl_fail_memory(err, size);
    memset(w, 0, size);
    w->alloc = *alloc;
    w->shape = shape;
    w->size_bytes = size;
    w->bytes = sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4];
    w->lengths = (int64_t *)w->block;
    at = (uint8_t *)w->block + sizes[0];
    w->rewards = (double *)(void *)at;
    w->actions = at += sizes[1];
    w->observations = at += sizes[2];
    w->current = at += sizes[3];
    w->step_rewards = (double *)(void *)(at += sizes[4]);
    w->step_actions = at += sizes[5];
    w->step_observations = at += sizes[6];
    w->which = (bool *)(at += sizes[7]);
    w->none = (bool *)(at += sizes[8]);
    assert(at + sizes[9] == (uint8_t *)w + size);
    *out = w;
    return RP_OK;
}

void rp_adder_window_free(rp_adder_window *w)
{
    if (w == NULL) return;
    rp_allocator alloc = w->alloc;
    (void)alloc.resize(alloc.ctx, w, w->size_bytes, 0);
}

void rp_adder_window_begin(rp_adder_window *w, const void *observations)
{
    memcpy(w->current, observations, w->shape.copies * w->shape.observation_bytes);
    memset(w->lengths, 0, w->shape.copies * sizeof w->lengths[0]);
}

/* The cell of step `step` of a copy (W1). */
static size_t cell_of(const rp_adder_window *w, size_t copy, int64_t step)
{
    assert(step >= 0 && w->shape.rows > 0);
    return (size_t)step % w->shape.rows * w->shape.copies + copy;
}

static const uint8_t *observation_of(const rp_adder_window *w, size_t copy, int64_t step)
{
    if (step == w->lengths[copy]) return w->current + copy * w->shape.observation_bytes;
    return w->observations + cell_of(w, copy, step) * w->shape.observation_bytes;
}

static void keep(rp_adder_window *w, const rp_adder_step *step, const uint8_t *before,
                 size_t copy)
{
    size_t cell = cell_of(w, copy, w->lengths[copy]);
    size_t action = w->shape.action_bytes, observation = w->shape.observation_bytes;

    memcpy(w->observations + cell * observation, before + copy * observation, observation);
    memcpy(w->actions + cell * action, (const uint8_t *)step->actions + copy * action, action);
    w->rewards[cell] = step->rewards[copy];
}

void rp_adder_window_add(rp_adder_window *w, const rp_adder_step *step, const void *before)
{
    assert(step->extras == NULL && step->discounts == NULL);
    for (size_t i = 0; i < w->shape.copies; i++) {
        if (w->shape.rows > 0) keep(w, step, before, i);
        w->lengths[i]++;
        if (step->terminated[i] || step->truncated[i]) w->lengths[i] = 0;
    }
    memcpy(w->current, step->observations, w->shape.copies * w->shape.observation_bytes);
}

rp_state_part rp_adder_window_state(rp_adder_window *w)
{
    return (rp_state_part){"window", w->block, w->bytes};
}

/* Begins the episodes again of those copies that hold `left` steps. */
static rp_status begin_again(rp_adder_window *w, rp_adder *adder, size_t left, rp_error *err)
{
    bool any = false;
    rp_status st;

    for (size_t i = 0; i < w->shape.copies; i++) {
        size_t rows = w->shape.rows;
        size_t held = w->lengths[i] < (int64_t)rows ? (size_t)w->lengths[i] : rows;
        const uint8_t *from = observation_of(w, i, w->lengths[i] - (int64_t)held);

        memcpy(w->step_observations + i * w->shape.observation_bytes, from,
               w->shape.observation_bytes);
        w->which[i] = held == left;
        any = any || w->which[i];
    }
    if (!any) return RP_OK;
    st = rp_adder_reset(adder, w->which, rp_wait_forever(), err);
    if (st == RP_OK) st = rp_adder_first(adder, w->step_observations, w->which, err);
    return st;
}

/* Adds the step after which `left` - 1 are missing. Copies that hold fewer get one of zeros,
 * which begin_again() drops. */
static rp_status add_again(rp_adder_window *w, rp_adder *adder, size_t left, rp_error *err)
{
    const size_t action = w->shape.action_bytes, observation = w->shape.observation_bytes;
    const rp_adder_step step = {
        .actions = w->step_actions,
        .observations = w->step_observations,
        .last_observations = w->step_observations,
        .rewards = w->step_rewards,
        .terminated = w->none,
        .truncated = w->none,
    };

    memset(w->step_actions, 0, w->shape.copies * action);
    memset(w->step_rewards, 0, w->shape.copies * sizeof w->step_rewards[0]);
    for (size_t i = 0; i < w->shape.copies; i++) {
        int64_t at = w->lengths[i] - (int64_t)left;

        if (at < 0) continue;
        memcpy(w->step_actions + i * action, w->actions + cell_of(w, i, at) * action, action);
        memcpy(w->step_observations + i * observation, observation_of(w, i, at + 1),
               observation);
        w->step_rewards[i] = w->rewards[cell_of(w, i, at)];
    }
    return rp_adder_add(adder, &step, rp_wait_forever(), err);
}

rp_status rp_adder_window_restore(rp_adder_window *w, rp_adder *adder, rp_error *err)
{
    rp_status st;

    for (size_t i = 0; i < w->shape.copies; i++) /* W2 */
        if (w->lengths[i] < 0 || w->lengths[i] > INT64_MAX / 2)
            return rp_rl_fail(err, RP_CORRUPT, "adder: an episode of %lld steps",
                              (long long)w->lengths[i]);
    st = rp_adder_first(adder, w->current, NULL, err);
    rp_adder_set_muted(adder, true);
    for (size_t left = w->shape.rows; st == RP_OK && left > 0; left--) {
        st = begin_again(w, adder, left, err);
        if (st == RP_OK) st = add_again(w, adder, left, err);
    }
    if (st == RP_OK) st = begin_again(w, adder, 0, err);
    rp_adder_set_muted(adder, false);
    return st;
}
