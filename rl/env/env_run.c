/* SPDX-License-Identifier: Apache-2.0 */
#include "env/env_run.h"

#include <assert.h>
#include <string.h>

#include "error/fail.h"

enum { GUARD_BYTES = 64, GUARD = 0xa5, BUFFERS = 8 };

/* Buffer i begins after a guard; another guard closes the last. */
static size_t buffer_bytes(const rp_env_run *run, size_t buffer)
{
    const size_t a_copy[BUFFERS] = {
        run->row_bytes,      run->row_bytes, run->row_bytes, run->action_bytes,
        run->snapshot_bytes, sizeof(double), sizeof(bool),   sizeof(bool),
    };
    size_t bytes = a_copy[buffer] * run->copies;

    return (bytes + 63) / 64 * 64;
}

/* The bytes of a buffer that are in use: its padding is a guard, too. */
static size_t used_bytes(const rp_env_run *run, size_t buffer)
{
    const size_t a_copy[BUFFERS] = {
        run->row_bytes,      run->row_bytes, run->row_bytes, run->action_bytes,
        run->snapshot_bytes, sizeof(double), sizeof(bool),   sizeof(bool),
    };

    return a_copy[buffer] * run->copies;
}

static void lay_out(rp_env_run *run)
{
    char *at[BUFFERS], *next = (char *)run->memory + GUARD_BYTES;

    memset(run->memory, GUARD, run->memory_bytes);
    for (size_t i = 0; i < BUFFERS; i++) {
        at[i] = next;
        memset(at[i], 0, used_bytes(run, i));
        next += buffer_bytes(run, i) + GUARD_BYTES;
    }
    assert(next == (char *)run->memory + run->memory_bytes);
    run->observations = at[0];
    run->last = at[1];
    run->spare = at[2];
    run->actions = at[3];
    run->snapshots = at[4];
    run->out = (rp_env_buffers){
        .observations = at[0],
        .last_observations = at[1],
        .rewards = (double *)(void *)at[5],
        .terminated = (bool *)(void *)at[6],
        .truncated = (bool *)(void *)at[7],
    };
}

rp_status rp_env_run_init(rp_env_run *run, const rp_allocator *alloc,
                          const rp_env_class *env_class, const rp_env_options *options)
{
    rp_status st;

    memset(run, 0, sizeof *run);
    run->alloc = *alloc;
    st = rp_env_new(alloc, env_class, options, &run->env, &run->err);
    if (st != RP_OK) return st;
    run->copies = rp_env_copies(run->env);
    run->row_bytes = rp_env_observation_bytes(run->env);
    run->action_bytes = rp_env_action_bytes(run->env);
    run->snapshot_bytes = rp_env_snapshot_bytes(run->env);
    run->memory_bytes = GUARD_BYTES;
    for (size_t i = 0; i < BUFFERS; i++)
        run->memory_bytes += buffer_bytes(run, i) + GUARD_BYTES;
    run->memory = alloc->resize(alloc->ctx, NULL, 0, run->memory_bytes);
    if (run->memory == NULL)
        return rp_rl_fail(&run->err, RP_NO_RESOURCE, "no memory for the buffers of a run");
    lay_out(run);
    return RP_OK;
}

void rp_env_run_deinit(rp_env_run *run)
{
    rp_env_free(run->env);
    if (run->memory != NULL)
        (void)run->alloc.resize(run->alloc.ctx, run->memory, run->memory_bytes, 0);
    run->env = NULL;
    run->memory = NULL;
}

rp_status rp_env_run_reset(rp_env_run *run, uint64_t first)
{
    rp_status st = RP_OK;

    rp_pcg64_seed(&run->rng, first);
    for (size_t i = 0; i < run->copies && st == RP_OK; i++) {
        uint64_t seed = first + i;
        st = rp_env_reset_copy(run->env, i, &seed, rp_env_run_row(run, run->observations, i),
                               &run->err);
    }
    memset(run->out.rewards, 0, run->copies * sizeof *run->out.rewards);
    memset(run->out.terminated, 0, run->copies * sizeof *run->out.terminated);
    memset(run->out.truncated, 0, run->copies * sizeof *run->out.truncated);
    return st;
}

static float choose_float(rp_env_run *run, size_t element)
{
    const rp_env_spec *spec = rp_env_get_spec(run->env);
    float low = spec->action_low[element], high = spec->action_high[element];
    float drawn;

    if (low < -1e6f) low = -1e6f;
    if (high > 1e6f) high = 1e6f;
    drawn = (float)rp_pcg64_uniform(&run->rng, (double)low, (double)high);
    if (drawn < spec->action_low[element]) drawn = spec->action_low[element];
    return drawn > spec->action_high[element] ? spec->action_high[element] : drawn;
}

void rp_env_run_choose(rp_env_run *run)
{
    const rp_env_spec *spec = rp_env_get_spec(run->env);

    for (size_t i = 0; i < run->copies * spec->action_size; i++) {
        if (spec->action_kind == RP_ACTION_BOX)
            ((float *)(void *)run->actions)[i] = choose_float(run, i % spec->action_size);
        else
            ((int32_t *)(void *)run->actions)[i] =
                (int32_t)rp_pcg64_integers(&run->rng, 0, spec->action_count);
    }
}

rp_status rp_env_run_step(rp_env_run *run)
{
    return rp_env_step(run->env, run->actions, &run->out, &run->err);
}

bool rp_env_run_guards_hold(const rp_env_run *run)
{
    const unsigned char *memory = run->memory;
    size_t at = 0, next = GUARD_BYTES;

    for (size_t i = 0; i <= BUFFERS; i++) {
        for (; at < next; at++)
            if (memory[at] != GUARD) return false;
        if (i == BUFFERS) break;
        at = next + used_bytes(run, i);
        next += buffer_bytes(run, i) + GUARD_BYTES;
    }
    assert(at == run->memory_bytes);
    return true;
}

bool rp_env_run_same(const rp_env_run *a, size_t copy_a, const rp_env_run *b, size_t copy_b)
{
    assert(a->row_bytes == b->row_bytes);
    return memcmp(rp_env_run_row(a, a->observations, copy_a),
                  rp_env_run_row(b, b->observations, copy_b), a->row_bytes) == 0 &&
           memcmp(&a->out.rewards[copy_a], &b->out.rewards[copy_b], sizeof(double)) == 0 &&
           a->out.terminated[copy_a] == b->out.terminated[copy_b] &&
           a->out.truncated[copy_a] == b->out.truncated[copy_b];
}
