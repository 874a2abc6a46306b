/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of some rows: see dqn_rows.h. The formulas are in dqn_learner.c.
 *
 * Invariant:
 *   G1  the sum of the gradients of shares that cover a batch is the gradient of the batch's
 *       mean loss; the gradient of one share of all rows has the bits of it. */
#include "agents/dqn_rows.h"

#include <assert.h>
#include <string.h>

#include "agents/dqn_net.h"
#include "agents/place.h"
#include "error/fail.h"
#include "reprise/rl/loss.h"

struct rp_dqn_rows {
    rp_allocator alloc;
    const rp_dqn_master *master;
    size_t rows, actions, numbers;
    rp_tape *rating, *training;
    void *block; /* all arrays below */
    size_t block_bytes;
    rp_real *grads;
    rp_real *now, *next;      /* rows x numbers, only if observations are bytes */
    rp_real *online, *grad_q; /* rows x actions */
    rp_real *target;          /* rows */
};

static size_t place_arrays(rp_dqn_rows *r, uint8_t *block)
{
    size_t q = r->rows * r->actions, end = 0;
    size_t in = r->master->spec.observation_dtype == RP_FLOAT32 ? 0 : r->rows * r->numbers;

    r->grads = rp_place_array(block, &end, rp_net_size(r->master->net), sizeof(rp_real));
    r->now = rp_place_array(block, &end, in, sizeof(rp_real));
    r->next = rp_place_array(block, &end, in, sizeof(rp_real));
    r->online = rp_place_array(block, &end, q, sizeof(rp_real));
    r->grad_q = rp_place_array(block, &end, q, sizeof(rp_real));
    r->target = rp_place_array(block, &end, r->rows, sizeof(rp_real));
    return end;
}

static rp_status fill_in(rp_dqn_rows *r, rp_error *err)
{
    const rp_net *net = r->master->net;
    const rp_tape_options rating = {.rows = r->rows}, train = {.rows = r->rows, .train = true};
    rp_status st;

    r->block_bytes = place_arrays(r, NULL);
    r->block = r->alloc.resize(r->alloc.ctx, NULL, 0, r->block_bytes);
    if (r->block == NULL) return rp_rl_fail_memory(err, r->block_bytes);
    memset(r->block, 0, r->block_bytes);
    (void)place_arrays(r, r->block);
    st = rp_tape_new(&r->alloc, net, rating, &r->rating, err);
    return st == RP_OK ? rp_tape_new(&r->alloc, net, train, &r->training, err) : st;
}

rp_status rp_dqn_rows_new(const rp_allocator *alloc, const rp_dqn_master *master, size_t rows,
                          rp_dqn_rows **out, rp_error *err)
{
    rp_dqn_rows *r = alloc->resize(alloc->ctx, NULL, 0, sizeof *r);
    rp_status st;

    assert(rows >= 1 && master->net != NULL);
    if (r == NULL) return rp_rl_fail_memory(err, sizeof *r);
    *r = (rp_dqn_rows){.alloc = *alloc,
                       .master = master,
                       .rows = rows,
                       .actions = rp_net_out_size(master->net),
                       .numbers = rp_net_in_size(master->net)};
    st = fill_in(r, err);
    if (st != RP_OK) {
        rp_dqn_rows_free(r);
        return st;
    }
    *out = r;
    return RP_OK;
}

void rp_dqn_rows_free(rp_dqn_rows *r)
{
    if (r == NULL) return;
    rp_allocator alloc = r->alloc;
    rp_tape_free(r->rating);
    rp_tape_free(r->training);
    if (r->block != NULL) (void)alloc.resize(alloc.ctx, r->block, r->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, r, sizeof *r, 0);
}

/* These rows of observations of the batch, as the network takes them. */
static const rp_real *input(const rp_dqn_rows *r, const rp_dqn_share *s, const void *all,
                            rp_real *scratch)
{
    const rp_env_spec *spec = &r->master->spec;
    size_t bytes = r->numbers * rp_dtype_size(spec->observation_dtype);

    return rp_dqn_input(spec, (const char *)all + s->first * bytes, s->rows * r->numbers,
                        scratch);
}

/* The targets: R + discount D Q'(o', a'). */
static void set_targets(rp_dqn_rows *r, const rp_dqn_share *s)
{
    const rp_real *next = input(r, s, s->batch->next_observations, r->next);
    const rp_real *online = NULL, *target;

    if (r->master->set.double_q) {
        online = rp_tape_forward(r->rating, s->params, next, s->rows);
        memcpy(r->online, online, s->rows * r->actions * sizeof *online);
        online = r->online;
    }
    target = rp_tape_forward(r->rating, s->target_params, next, s->rows);
    rp_td_target(s->rows, r->actions, s->batch->rewards + s->first,
                 s->batch->discounts + s->first, online, target, r->target);
}

rp_update_found rp_dqn_rows_forward(rp_dqn_rows *r, const rp_dqn_share *s)
{
    const rp_dqn_settings *set = &r->master->set;
    bool is_weighted = set->prioritized || s->batch->left_out > 0;
    const rp_loss_rows rows = {s->rows, r->actions, (int32_t *)s->batch->actions + s->first,
                               is_weighted ? s->batch->weights + s->first : NULL};
    rp_update_found found = {0};
    const rp_real *q;

    assert(s->rows >= 1 && s->rows <= r->rows && s->first + s->rows <= s->all);
    set_targets(r, s);
    q = rp_tape_forward(r->training, s->params, input(r, s, s->batch->observations, r->now),
                        s->rows);
    found.loss = rp_td_loss(&rows, set->huber, q, r->target, r->grad_q, s->errors);
    for (size_t i = 0; i < s->rows; i++)
        found.value += (double)q[i * r->actions + (size_t)rows.taken[i]];
    found.value /= (double)s->all;
    if (s->rows < s->all) found.loss *= (double)s->rows / (double)s->all;
    return found;
}

rp_real *rp_dqn_rows_backward(rp_dqn_rows *r, const rp_dqn_share *s)
{
    rp_real share = (rp_real)((double)s->rows / (double)s->all);

    for (size_t i = 0; s->rows < s->all && i < s->rows * r->actions; i++)
        r->grad_q[i] *= share; /* G1: the loss is a mean over these rows */
    rp_tape_backward(r->training, s->params, r->grad_q, r->grads, NULL);
    return r->grads;
}

rp_real *rp_dqn_rows_grads(rp_dqn_rows *r)
{
    return r->grads;
}
