/* SPDX-License-Identifier: Apache-2.0 */
/* Writers of steps: see group_writer.h.
 *
 * Invariant:
 *   W1  the window has the steps that the adder has: it gets a step after the adder took it. */
#include "agents/group_writer.h"

#include <assert.h>

#include "agents/adder_window.h"
#include "agents/replay_plan.h"
#include "error/fail.h"

enum { PLAIN_BYTES = 8192 }; /* the adder does not compress observations up to this size */

struct rp_group_writer {
    rp_allocator alloc;
    size_t copies, row_bytes;
    double reward_scale;
    bool settled;
    rp_adder *adder;
    rp_adder_window *window;
    size_t bytes;     /* of this block */
    double rewards[]; /* one a copy, scaled */
};

static rp_status make_parts(rp_group_writer *w, const rp_group_writer_options *o, rp_wait wait,
                            rp_error *err)
{
    const rp_adder_table to = {RP_REPLAY_TABLE, o->prioritize, o->ctx};
    const rp_env_spec *spec = &o->plan->spec;
    rp_adder_window_shape window = {w->copies, (size_t)o->plan->n_step - 1, 0, sizeof(int32_t)};
    rp_adder_options adder = rp_replay_adder(o->plan);
    size_t row = rp_dtype_size(spec->observation_dtype);
    rp_status st;

    for (int32_t i = 0; i < spec->observation_shape.rank; i++)
        row *= (size_t)spec->observation_shape.dims[i];
    w->row_bytes = window.observation_bytes = row;
    if (spec->action_kind == RP_ACTION_BOX)
        window.action_bytes = spec->action_size * sizeof(float);
    adder.alloc = &w->alloc;
    adder.tables = &to;
    adder.table_count = 1;
    if (o->max_in_flight > 0) adder.max_in_flight = o->max_in_flight;
    st = rp_adder_new(o->client, &adder, wait, &w->adder, err);
    if (st == RP_OK) st = rp_adder_window_new(&w->alloc, window, &w->window, err);
    return st;
}

rp_status rp_group_writer_new(const rp_allocator *alloc, const rp_group_writer_options *options,
                              rp_wait wait, rp_group_writer **out, rp_error *err)
{
    size_t copies = (size_t)options->plan->copies;
    size_t bytes = sizeof(rp_group_writer) + copies * sizeof(double);
    rp_group_writer *w = alloc->resize(alloc->ctx, NULL, 0, bytes);
    rp_status st;

    assert(copies >= 1);
    if (w == NULL) return rp_rl_fail_memory(err, bytes);
    *w = (rp_group_writer){.alloc = *alloc,
                           .copies = copies,
                           .reward_scale = options->reward_scale,
                           .settled = options->settled,
                           .bytes = bytes};
    st = make_parts(w, options, wait, err);
    if (st != RP_OK) {
        rp_group_writer_free(w);
        return st;
    }
    *out = w;
    return RP_OK;
}

void rp_group_writer_free(rp_group_writer *w)
{
    rp_allocator alloc;

    if (w == NULL) return;
    alloc = w->alloc;
    rp_adder_free(w->adder);
    rp_adder_window_free(w->window);
    (void)alloc.resize(alloc.ctx, w, w->bytes, 0);
}

rp_status rp_group_writer_begin(rp_group_writer *w, const void *observations, rp_wait wait,
                                rp_error *err)
{
    rp_status st = rp_adder_reset(w->adder, NULL, wait, err);

    if (st != RP_OK) return st;
    rp_adder_window_begin(w->window, observations);
    return rp_adder_first(w->adder, observations, NULL, err);
}

rp_status rp_group_writer_add(rp_group_writer *w, const rp_agent_step *step, rp_wait wait,
                              rp_error *err)
{
    const rp_adder_step add = {
        .actions = step->actions,
        .observations = step->result->observations,
        .last_observations = step->result->last_observations,
        .rewards = w->rewards,
        .terminated = step->result->terminated,
        .truncated = step->result->truncated,
    };
    rp_status st;

    for (size_t i = 0; i < w->copies; i++)
        w->rewards[i] = step->result->rewards[i] * w->reward_scale;
    st = rp_adder_add(w->adder, &add, wait, err);
    if (st != RP_OK) return st;
    rp_adder_window_add(w->window, &add, step->observations); /* W1 */
    /* Rows that are not compressed are in the table now. Other threads compress large ones. */
    if (w->settled && w->row_bytes > PLAIN_BYTES) st = rp_adder_flush(w->adder, wait, err);
    return st;
}

rp_status rp_group_writer_flush(rp_group_writer *w, rp_wait wait, rp_error *err)
{
    return rp_adder_flush(w->adder, wait, err);
}

int64_t rp_group_writer_created(const rp_group_writer *w)
{
    return (int64_t)rp_adder_created(w->adder);
}

rp_state_part rp_group_writer_state(rp_group_writer *w)
{
    return rp_adder_window_state(w->window);
}

rp_status rp_group_writer_restored(rp_group_writer *w, rp_error *err)
{
    return rp_adder_window_restore(w->window, w->adder, err);
}
