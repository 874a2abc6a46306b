/* SPDX-License-Identifier: Apache-2.0 */
/* Teams: see team.h.
 *
 * A run is: all members meet at `start`, work, and meet at `end`. Between runs members wait at
 * `start`, for as long as the caller likes: rp_team_free() comes there as well, with is_ending.
 *
 * Invariants:
 *   T1  work, ctx and is_ending change only between runs: other members, which may still be
 *       leaving `end`, read them only after the next `start`;
 *   T2  the slices of members are disjoint, cover all numbers, and begin on cache lines of the
 *       array;
 *   T3  in a step a slice of the sum, of the parameters and of the moments is written by its
 *       member only. */
#include "reprise/rl/team.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "error/fail.h"
#include "pal/barrier.h"

/* Its own cache lines: members write to theirs all the time. */
typedef struct member {
    alignas(RP_CACHE_LINE) rp_team *team;
    size_t index;
    pthread_t thread; /* not of member 0 */
    rp_barrier_waiter idle, busy;
    /* Of its slices of the sums: of this call, and of the one before, which others may still
     * read. */
    alignas(RP_CACHE_LINE) double squares[2][RP_TEAM_MAX_STEPS];
    unsigned turns;
} member;

struct rp_team {
    rp_barrier start, middle, end;
    rp_allocator alloc;
    void *block; /* what was allocated: the team is in it, on a cache line */
    size_t block_bytes;
    size_t size, started; /* members; threads, member 0 counted */
    bool is_ending;
    void (*work)(void *ctx, size_t member);
    void *ctx;
    member members[];
};

static void *live(void *ctx)
{
    member *m = ctx;
    rp_team *t = m->team;

    for (;;) {
        rp_barrier_meet(&t->start, &m->idle);
        if (t->is_ending) return NULL; /* T1 */
        t->work(t->ctx, m->index);
        rp_barrier_meet(&t->end, &m->busy);
    }
}

static rp_team *allocate(const rp_allocator *a, size_t size)
{
    size_t bytes = sizeof(rp_team) + size * sizeof(member) + RP_CACHE_LINE;
    uint8_t *block = a->resize(a->ctx, NULL, 0, bytes);
    rp_team *t;

    if (block == NULL) return NULL;
    memset(block, 0, bytes);
    t = (void *)(block + (RP_CACHE_LINE - (uintptr_t)block % RP_CACHE_LINE) % RP_CACHE_LINE);
    t->alloc = *a;
    t->block = block;
    t->block_bytes = bytes;
    t->size = size;
    return t;
}

rp_status rp_team_new(const rp_allocator *alloc, size_t size, rp_team **out, rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_team *t;

    if (size < 1 || size > RP_TEAM_MAX_SIZE)
        return rp_rl_fail(err, RP_INVALID, "team: size must be from 1 to %d, got %zu",
                          RP_TEAM_MAX_SIZE, size);
    t = allocate(&a, size);
    if (t == NULL) return rp_rl_fail_memory(err, sizeof *t + size * sizeof(member));
    rp_barrier_init(&t->middle, (unsigned)size);
    rp_barrier_init(&t->end, (unsigned)size);
    rp_barrier_init(&t->start, (unsigned)size);
    for (size_t i = 0; i < size; i++) {
        t->members[i].team = t;
        t->members[i].index = i;
    }
    t->started = 1;
    while (t->started < size && pthread_create(&t->members[t->started].thread, NULL, live,
                                               &t->members[t->started]) == 0)
        t->started++;
    if (t->started < size) {
        size_t missing = size - t->started;

        rp_team_free(t);
        return rp_rl_fail(err, RP_NO_RESOURCE,
                          "team: %zu of %zu threads could not be started: raise the limit on "
                          "processes, or ask for fewer learners",
                          missing, size - 1);
    }
    *out = t;
    return RP_OK;
}

void rp_team_free(rp_team *t)
{
    if (t == NULL) return;
    rp_allocator alloc = t->alloc;
    t->is_ending = true; /* T1 */
    /* Stands in for threads that could not be started. */
    for (size_t i = t->started; i < t->size; i++)
        (void)atomic_fetch_add_explicit(&t->start.arrived, 1, memory_order_acq_rel);
    rp_barrier_meet(&t->start, &t->members[0].idle);
    for (size_t i = 1; i < t->started; i++) (void)pthread_join(t->members[i].thread, NULL);
    (void)alloc.resize(alloc.ctx, t->block, t->block_bytes, 0);
}

size_t rp_team_size(const rp_team *t)
{
    return t->size;
}

void rp_team_run(rp_team *t, void (*work)(void *ctx, size_t member), void *ctx)
{
    assert(!t->is_ending && t->started == t->size);
    t->work = work; /* T1 */
    t->ctx = ctx;
    rp_barrier_meet(&t->start, &t->members[0].idle);
    work(ctx, 0);
    rp_barrier_meet(&t->end, &t->members[0].busy);
}

void rp_team_meet(rp_team *t, size_t index)
{
    assert(index < t->size);
    rp_barrier_meet(&t->middle, &t->members[index].busy);
}

rp_slice rp_team_slice(const rp_team *t, size_t count, size_t index)
{
    const size_t line = RP_CACHE_LINE / sizeof(rp_real);
    size_t lines = (count + line - 1) / line;
    size_t first = lines * index / t->size * line, end = lines * (index + 1) / t->size * line;

    assert(index < t->size);
    if (end > count) end = count; /* T2 */
    return first < end ? (rp_slice){first, end - first} : (rp_slice){end, 0};
}

/* Adds up this member's slice of a step (T3). Returns its place. */
static rp_optimizer_slice sum_slice(const rp_team *t, size_t index, const rp_team_step *step)
{
    const rp_slice slice = rp_team_slice(t, step->count, index);
    size_t at = step->first + slice.first;

    for (size_t i = 1; i < t->size; i++)
        rp_add_numbers(step->grads[0] + at, step->grads[i] + at, slice.count);
    return (rp_optimizer_slice){slice.first, slice.count, step->params + at,
                                step->grads[0] + at};
}

void rp_team_step_slices(rp_team *t, size_t index, const rp_team_step *steps, size_t count,
                         double *norms)
{
    rp_optimizer_slice slices[RP_TEAM_MAX_STEPS];
    size_t turn = t->members[index].turns++ % 2; /* the same for all members */

    assert(count >= 1 && count <= RP_TEAM_MAX_STEPS);
    for (size_t k = 0; k < count; k++) {
        double norm;

        slices[k] = sum_slice(t, index, &steps[k]);
        norm = rp_global_norm(slices[k].grads, slices[k].count);
        t->members[index].squares[turn][k] = norm * norm;
    }
    rp_team_meet(t, index);
    for (size_t k = 0; k < count; k++) {
        double squares = 0;

        for (size_t i = 0; i < t->size; i++) squares += t->members[i].squares[turn][k];
        norms[k] = sqrt(squares);
        rp_optimizer_step_slice(steps[k].optimizer, &slices[k], norms[k]);
    }
}
