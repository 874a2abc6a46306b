/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants:
 *   L1  once episodes have begun, `observations` are the present ones of the environments;
 *   L2  saved.steps is the number of steps of all copies, a multiple of their number;
 *   L3  the ring holds the last min(episodes, RING) returns and lengths; those of episode e are
 *       in place e modulo RING. */
#include "reprise/rl/env_loop.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "error/fail.h"
#include "reprise/rl/random.h"

enum { RING = 100 };

/* Saved as it is. */
typedef struct loop_saved {
    int64_t steps, episodes;
    double returns[RING], lengths[RING];
} loop_saved;

/* The episode of a copy so far. Saved as it is. */
typedef struct loop_copy {
    double sum;
    int64_t steps;
} loop_copy;

struct rp_env_loop {
    rp_allocator alloc;
    size_t size_bytes;
    rp_env *env;
    rp_agent *agent;
    size_t copies, row_bytes, snapshot_bytes;
    bool began;
    loop_saved saved;
    /* one entry or row a copy, in the same block */
    loop_copy *running;
    uint8_t *snapshots; /* of the environments, for rp_env_loop_get_state() */
    uint64_t *seeds;
    uint8_t *observations, *next, *last;
    void *actions;
    double *rewards;
    bool *terminated, *truncated;
};

static size_t rounded(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static void *place(uint8_t **at, size_t bytes)
{
    uint8_t *here = *at;

    *at += rounded(bytes);
    return here;
}

rp_status rp_env_loop_new(const rp_allocator *alloc, rp_env *env, rp_agent *agent,
                          rp_env_loop **out, rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    const size_t copies = rp_env_copies(env), row = rp_env_observation_bytes(env);
    const size_t snapshot = rp_env_snapshot_bytes(env), action = rp_env_action_bytes(env);
    const size_t size = rounded(sizeof(rp_env_loop)) + rounded(copies * sizeof(loop_copy)) +
                        rounded(copies * snapshot) + rounded(copies * sizeof(uint64_t)) +
                        3 * rounded(copies * row) + rounded(copies * action) +
                        rounded(copies * sizeof(double)) + 2 * rounded(copies * sizeof(bool));
    uint8_t *at = a.resize(a.ctx, NULL, 0, size);
    rp_env_loop *l;

    if (at == NULL) return rp_rl_fail_memory(err, size);
    memset(at, 0, size);
    l = place(&at, sizeof *l);
    *l = (rp_env_loop){.alloc = a,
                       .size_bytes = size,
                       .env = env,
                       .agent = agent,
                       .copies = copies,
                       .row_bytes = row,
                       .snapshot_bytes = snapshot};
    l->running = place(&at, copies * sizeof(loop_copy));
    l->snapshots = place(&at, copies * snapshot);
    l->seeds = place(&at, copies * sizeof(uint64_t));
    l->observations = place(&at, copies * row);
    l->next = place(&at, copies * row);
    l->last = place(&at, copies * row);
    l->actions = place(&at, copies * action);
    l->rewards = place(&at, copies * sizeof(double));
    l->terminated = place(&at, copies * sizeof(bool));
    l->truncated = place(&at, copies * sizeof(bool));
    assert(at == (uint8_t *)l + size);
    *out = l;
    return RP_OK;
}

void rp_env_loop_free(rp_env_loop *l)
{
    if (l == NULL) return;
    rp_allocator alloc = l->alloc;
    (void)alloc.resize(alloc.ctx, l, l->size_bytes, 0);
}

rp_status rp_env_loop_begin(rp_env_loop *l, uint64_t seed, rp_error *err)
{
    rp_status st;

    assert(!l->began && l->saved.steps == 0);
    for (size_t i = 0; i < l->copies; i++) {
        const uint32_t words[] = {(uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)i};
        uint32_t word;
        rp_seed_sequence(words, 3, &word, 1);
        l->seeds[i] = word;
    }
    st = rp_env_reset(l->env, l->seeds, l->observations, err);
    if (st == RP_OK) st = l->agent->type->begin(l->agent, l->observations, err);
    l->began = st == RP_OK;
    return st;
}

static void count_episodes(rp_env_loop *l)
{
    for (size_t i = 0; i < l->copies; i++) {
        loop_copy *copy = &l->running[i];
        size_t place = (size_t)(l->saved.episodes % RING);

        copy->sum += l->rewards[i];
        copy->steps++;
        if (!l->terminated[i] && !l->truncated[i]) continue;
        l->saved.returns[place] = copy->sum; /* L3 */
        l->saved.lengths[place] = (double)copy->steps;
        l->saved.episodes++;
        *copy = (loop_copy){0};
    }
}

rp_status rp_env_loop_step(rp_env_loop *l, rp_error *err)
{
    const rp_agent_class *type = l->agent->type;
    const rp_env_buffers result = {l->next, l->last, l->rewards, l->terminated, l->truncated};
    const rp_agent_step step = {l->observations, l->actions, &result};
    uint8_t *swap = l->observations;
    rp_status st;

    assert(l->began);
    type->act(l->agent, l->observations, l->actions);
    st = rp_env_step(l->env, l->actions, &result, err);
    if (st != RP_OK) return st;
    st = type->observe(l->agent, &step, err);
    if (st != RP_OK) return st;
    count_episodes(l);
    l->saved.steps += (int64_t)l->copies; /* L2 */
    l->observations = l->next;            /* L1 */
    l->next = swap;
    return type->learn(l->agent, err);
}

rp_env_loop_counts rp_env_loop_get_counts(const rp_env_loop *l)
{
    size_t held = l->saved.episodes < RING ? (size_t)l->saved.episodes : RING;
    rp_env_loop_counts out = {.steps = l->saved.steps, .episodes = l->saved.episodes};

    for (size_t i = 0; i < held; i++) {
        out.mean_return += l->saved.returns[i];
        out.mean_length += l->saved.lengths[i];
    }
    assert(held <= RING); /* L3 */
    out.mean_return = held > 0 ? out.mean_return / (double)held : (double)NAN;
    out.mean_length = held > 0 ? out.mean_length / (double)held : (double)NAN;
    return out;
}

size_t rp_env_loop_get_state(rp_env_loop *l, rp_state_part *parts)
{
    size_t count = 0;

    for (size_t i = 0; l->began && i < l->copies; i++)
        rp_env_save(l->env, i, l->snapshots + i * l->snapshot_bytes);
    parts[count++] = (rp_state_part){"loop", &l->saved, sizeof l->saved};
    parts[count++] =
        (rp_state_part){"loop.copies", l->running, l->copies * sizeof l->running[0]};
    parts[count++] = (rp_state_part){"loop.envs", l->snapshots, l->copies * l->snapshot_bytes};
    count += l->agent->type->get_state(l->agent, parts + count);
    assert(count <= RP_ENV_LOOP_MAX_PARTS);
    return count;
}

rp_status rp_env_loop_restored(rp_env_loop *l, rp_error *err)
{
    rp_status st = RP_OK;

    if (l->saved.steps < 0 || l->saved.episodes < 0 ||
        l->saved.steps % (int64_t)l->copies != 0) /* L2 */
        return rp_rl_fail(err, RP_CORRUPT, "loop: a snapshot of %lld steps and %lld episodes",
                          (long long)l->saved.steps, (long long)l->saved.episodes);
    for (size_t i = 0; st == RP_OK && i < l->copies; i++)
        st = rp_env_load(l->env, i, l->snapshots + i * l->snapshot_bytes, l->snapshot_bytes,
                         l->observations + i * l->row_bytes, err);
    if (st == RP_OK) st = l->agent->type->restored(l->agent, err);
    l->began = st == RP_OK;
    return st;
}
