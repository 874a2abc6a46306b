/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of critics: see critic.h.
 *
 * Invariants:
 *   C1  `taken` is all zeros: the critic is a network of one action, which rp_td_loss() takes;
 *   C2  the sums of what shares of a batch find are what is found for the whole; one share of
 *       all rows has the bits of it. */
#include "agents/box/critic.h"

#include <assert.h>
#include <string.h>

#include "agents/place.h"
#include "error/fail.h"
#include "reprise/rl/loss.h"

struct rp_critic {
    rp_allocator alloc;
    rp_critic_options options;
    size_t wide; /* numbers of a row that the network reads */
    rp_tape *tape;
    void *block; /* all arrays below */
    size_t block_bytes;
    rp_real *unused;            /* gradients by parameters, when only those by actions matter */
    rp_real *joined;            /* rows x wide */
    rp_real *by_joined;         /* gradients by `joined` */
    rp_real *errors, *by_value; /* rows */
    int32_t *taken;             /* rows */
};

void rp_critic_join(const rp_real *observations, size_t numbers, const rp_real *actions,
                    size_t action_count, size_t rows, rp_real *out)
{
    assert(numbers >= 1 && action_count >= 1);
    for (size_t row = 0; row < rows; row++, out += numbers + action_count) {
        memcpy(out, observations + row * numbers, numbers * sizeof *out);
        memcpy(out + numbers, actions + row * action_count, action_count * sizeof *out);
    }
}

rp_status rp_critic_check(const rp_net *net, size_t numbers, size_t actions, rp_error *err)
{
    if (rp_net_in_size(net) == numbers + actions && rp_net_out_size(net) == 1) return RP_OK;
    return rp_rl_fail(err, RP_INVALID,
                      "a critic reads %zu numbers and has %zu outputs; observation and action "
                      "have %zu and %zu numbers",
                      rp_net_in_size(net), rp_net_out_size(net), numbers, actions);
}

static size_t place_arrays(rp_critic *c, uint8_t *block)
{
    size_t rows = c->options.rows, end = 0;

    c->unused = rp_place_array(block, &end, rp_net_size(c->options.net), sizeof(rp_real));
    c->joined = rp_place_array(block, &end, rows * c->wide, sizeof(rp_real));
    c->by_joined = rp_place_array(block, &end, rows * c->wide, sizeof(rp_real));
    c->errors = rp_place_array(block, &end, rows, sizeof(rp_real));
    c->by_value = rp_place_array(block, &end, rows, sizeof(rp_real));
    c->taken = rp_place_array(block, &end, rows, sizeof(int32_t));
    return end;
}

rp_status rp_critic_new(const rp_allocator *alloc, const rp_critic_options *o, rp_critic **out,
                        rp_error *err)
{
    const rp_tape_options training = {.rows = o->rows, .train = true};
    rp_status st = rp_critic_check(o->net, o->numbers, o->actions, err);
    rp_critic *c;

    assert(o->rows >= 1 && o->rows <= o->all_rows);
    if (st != RP_OK) return st;
    c = alloc->resize(alloc->ctx, NULL, 0, sizeof *c);
    if (c == NULL) return rp_rl_fail_memory(err, sizeof *c);
    *c = (rp_critic){.alloc = *alloc, .options = *o, .wide = o->numbers + o->actions};
    st = rp_tape_new(alloc, o->net, training, &c->tape, err);
    if (st == RP_OK) {
        size_t bytes = place_arrays(c, NULL);

        c->block = alloc->resize(alloc->ctx, NULL, 0, bytes);
        if (c->block == NULL) st = rp_rl_fail_memory(err, bytes);
        c->block_bytes = bytes;
    }
    if (st != RP_OK) {
        rp_critic_free(c);
        return st;
    }
    memset(c->block, 0, c->block_bytes); /* C1 */
    (void)place_arrays(c, c->block);
    *out = c;
    return RP_OK;
}

void rp_critic_free(rp_critic *c)
{
    rp_allocator alloc;

    if (c == NULL) return;
    alloc = c->alloc;
    rp_tape_free(c->tape);
    if (c->block != NULL) (void)alloc.resize(alloc.ctx, c->block, c->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, c, sizeof *c, 0);
}

const rp_real *rp_critic_values(rp_critic *c, const rp_real *params,
                                const rp_real *observations, const rp_real *actions)
{
    const rp_critic_options *o = &c->options;

    rp_critic_join(observations, o->numbers, actions, o->actions, o->rows, c->joined);
    return rp_tape_forward(c->tape, params, c->joined, o->rows);
}

rp_critic_found rp_critic_learn(rp_critic *c, const rp_real *params, const rp_box_batch *batch,
                                const rp_real *target, rp_real *grads)
{
    size_t rows = c->options.rows, all_rows = c->options.all_rows;
    const rp_loss_rows loss = {rows, 1, c->taken, batch->weights};
    const rp_real *q = rp_critic_values(c, params, batch->now, batch->actions);
    rp_critic_found found = {0, 0, c->errors};

    assert(c->taken[0] == 0 && c->taken[rows - 1] == 0); /* C1 */
    found.loss = rp_td_loss(&loss, c->options.huber, q, target, c->by_value, c->errors);
    for (size_t i = 0; i < rows; i++) found.value += (double)q[i] / (double)all_rows;
    if (rows < all_rows) { /* C2: the loss is a mean over these rows */
        found.loss *= (double)rows / (double)all_rows;
        for (size_t i = 0; i < rows; i++)
            c->by_value[i] *= (rp_real)((double)rows / (double)all_rows);
    }
    rp_tape_backward(c->tape, params, c->by_value, grads, NULL);
    return found;
}

void rp_critic_slopes(rp_critic *c, const rp_real *params, const rp_real *by_value, bool adds,
                      rp_real *by_action)
{
    size_t numbers = c->options.numbers, actions = c->options.actions;

    rp_tape_backward(c->tape, params, by_value, c->unused, c->by_joined);
    for (size_t row = 0; row < c->options.rows; row++)
        for (size_t i = 0; i < actions; i++) {
            rp_real slope = c->by_joined[row * c->wide + numbers + i];
            rp_real *to = &by_action[row * actions + i];

            *to = adds ? *to + slope : slope;
        }
}
