/* SPDX-License-Identifier: Apache-2.0 */
/* Crews: see crew.h.
 *
 * Invariants, whenever mu is free:
 *   C1  a member makes a turn only if is_working and it has not failed since the last resume;
 *   C2  `busy` is the number of members in a turn;
 *   C3  status and error are those of the first failure since the last resume. */
#include "reprise/rl/crew.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "error/fail.h"

typedef struct member {
    rp_crew *crew;
    size_t index;
    pthread_t thread;
    bool has_failed; /* guarded by mu */
} member;

struct rp_crew {
    rp_allocator alloc;
    rp_crew_turn *turn;
    void *ctx;
    size_t size, started; /* members; threads */
    pthread_mutex_t mu;
    pthread_cond_t work, rest; /* signalled when is_working or is_ending is set; when `busy`
                                  becomes 0 */
    /* guarded by mu: */
    bool is_working, is_ending;
    size_t busy;      /* C2 */
    rp_status status; /* C3 */
    rp_error error;
    member members[];
};

/* Waits until the member may make a turn. Returns false if the crew ends. Holds mu. */
static bool await_turn_locked(rp_crew *c, const member *m)
{
    while (!c->is_ending && (!c->is_working || m->has_failed))
        (void)pthread_cond_wait(&c->work, &c->mu);
    return !c->is_ending;
}

static void *live(void *ctx)
{
    member *m = ctx;
    rp_crew *c = m->crew;

    (void)pthread_mutex_lock(&c->mu);
    while (await_turn_locked(c, m)) {
        rp_error err = {0};
        rp_status st;

        assert(c->busy < c->size && !m->has_failed); /* C1, C2 */
        c->busy++;
        (void)pthread_mutex_unlock(&c->mu);
        st = c->turn(c->ctx, m->index, &err);
        (void)pthread_mutex_lock(&c->mu);
        c->busy--;
        if (c->busy == 0) (void)pthread_cond_signal(&c->rest);
        if (st == RP_OK || st == RP_DEADLINE) continue;
        m->has_failed = true;
        if (c->status != RP_OK) continue; /* C3 */
        c->status = st;
        c->error = err;
    }
    (void)pthread_mutex_unlock(&c->mu);
    return NULL;
}

static size_t crew_bytes(size_t size)
{
    return sizeof(rp_crew) + size * sizeof(member);
}

rp_status rp_crew_new(const rp_allocator *alloc, size_t size, rp_crew_turn *turn, void *ctx,
                      rp_crew **out, rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_crew *c;

    if (size < 1 || size > RP_CREW_MAX_SIZE)
        return rp_rl_fail(err, RP_INVALID, "crew: size must be from 1 to %d, got %zu",
                          RP_CREW_MAX_SIZE, size);
    c = a.resize(a.ctx, NULL, 0, crew_bytes(size));
    if (c == NULL) return rp_rl_fail_memory(err, crew_bytes(size));
    memset(c, 0, crew_bytes(size));
    c->alloc = a;
    c->turn = turn;
    c->ctx = ctx;
    c->size = size;
    (void)pthread_mutex_init(&c->mu, NULL);
    (void)pthread_cond_init(&c->work, NULL);
    (void)pthread_cond_init(&c->rest, NULL);
    while (c->started < size) {
        member *m = &c->members[c->started];

        *m = (member){.crew = c, .index = c->started};
        if (pthread_create(&m->thread, NULL, live, m) != 0) break;
        c->started++;
    }
    if (c->started < size) {
        size_t missing = size - c->started;

        rp_crew_free(c);
        return rp_rl_fail(err, RP_NO_RESOURCE,
                          "crew: %zu of %zu threads could not be started: raise the limit on "
                          "processes, or ask for fewer learners",
                          missing, size);
    }
    *out = c;
    return RP_OK;
}

void rp_crew_free(rp_crew *c)
{
    if (c == NULL) return;
    rp_allocator alloc = c->alloc;
    (void)pthread_mutex_lock(&c->mu);
    c->is_ending = true;
    (void)pthread_cond_broadcast(&c->work);
    (void)pthread_mutex_unlock(&c->mu);
    for (size_t i = 0; i < c->started; i++) (void)pthread_join(c->members[i].thread, NULL);
    assert(c->busy == 0);
    (void)pthread_cond_destroy(&c->work);
    (void)pthread_cond_destroy(&c->rest);
    (void)pthread_mutex_destroy(&c->mu);
    (void)alloc.resize(alloc.ctx, c, crew_bytes(c->size), 0);
}

void rp_crew_resume(rp_crew *c)
{
    (void)pthread_mutex_lock(&c->mu);
    if (!c->is_working || c->status != RP_OK) {
        c->is_working = true;
        c->status = RP_OK;
        for (size_t i = 0; i < c->size; i++) c->members[i].has_failed = false;
        (void)pthread_cond_broadcast(&c->work);
    }
    (void)pthread_mutex_unlock(&c->mu);
}

void rp_crew_pause(rp_crew *c)
{
    (void)pthread_mutex_lock(&c->mu);
    c->is_working = false;
    while (c->busy > 0) (void)pthread_cond_wait(&c->rest, &c->mu);
    (void)pthread_mutex_unlock(&c->mu);
}

rp_status rp_crew_check(rp_crew *c, rp_error *err)
{
    rp_status st;

    (void)pthread_mutex_lock(&c->mu);
    st = c->status;
    if (st != RP_OK && err != NULL) *err = c->error;
    (void)pthread_mutex_unlock(&c->mu);
    return st;
}
