/* SPDX-License-Identifier: Apache-2.0 */
/* Teams: threads that compute one thing together, for parallel learners.
 *
 * A team has members 0, 1, ...: member 0 is the thread that calls rp_team_run(), the others
 * have threads of their own, which sleep between runs.
 *
 *   static void work(void *ctx, size_t member)
 *   {
 *       ... the gradient of this member's rows, in an array of its own ...
 *       rp_team_meet(team, member);
 *       rp_team_step_slices(team, member, steps, 1, &norm);   sums the gradients, applies them
 *   }
 *   rp_team_run(team, work, ctx);
 *   rp_optimizer_end_slices(optimizer, norm);
 *
 * A member that waits for others spins for some microseconds, then sleeps. If spinning was in
 * vain, as on a machine with more busy threads than cores, it spins less the next time.
 *
 * One thread at a time may use a team. After fork() the child has no threads of the team: it
 * must not use it, nor free it. */
#ifndef REPRISE_RL_TEAM_H
#define REPRISE_RL_TEAM_H

#include "reprise/rl/optimizer.h"

RP_BEGIN_DECLS

typedef struct rp_team rp_team;

enum { RP_TEAM_MAX_SIZE = 64 };

/* Makes a team of `size` members, 1 to RP_TEAM_MAX_SIZE. Returns owned. RP_INVALID,
 * RP_NO_RESOURCE (memory, or no thread can be started). */
RP_API RP_NODISCARD rp_status rp_team_new(const rp_allocator *alloc, size_t size, rp_team **out,
                                          rp_error *err);
/* Ends the threads and frees the team. NULL is fine. */
RP_API void rp_team_free(rp_team *team);

RP_API size_t rp_team_size(const rp_team *team);

/* Calls work(ctx, member) for each member, on the member's thread. Returns when all calls have
 * returned. The members see what the caller wrote before; afterwards the caller sees what the
 * members wrote. */
RP_API void rp_team_run(rp_team *team, void (*work)(void *ctx, size_t member), void *ctx);

/* Waits until all members have called rp_team_meet(). Called in work(), by all members equally
 * often. Afterwards all members see what each of them wrote before. */
RP_API void rp_team_meet(rp_team *team, size_t member);

/* A part of an array. */
typedef struct rp_slice {
    size_t first, count;
} rp_slice;

/* Returns this member's slice of an array of `count` numbers. The slices of all members are
 * disjoint, and cover the array. A slice may be empty. If the array begins on a cache line, no
 * two slices share one. */
RP_API rp_slice rp_team_slice(const rp_team *team, size_t count, size_t member);

/* A step of an optimizer with the sum of the gradients of all members. All members pass the
 * same values. */
typedef struct rp_team_step {
    rp_optimizer *optimizer;
    rp_real *params;
    rp_real *const *grads; /* one array for each member. The first becomes the sum, scaled as
                              rp_optimizer_step() does */
    size_t first, count;   /* where the optimizer's parameters are: in `params`, and in each
                              array of `grads` */
} rp_team_step;

enum { RP_TEAM_MAX_STEPS = 4 };

/* Makes `count` steps, 1 to RP_TEAM_MAX_STEPS, of different parameters. Called in work() by all
 * members, after an rp_team_meet() before which they completed their gradients. Each member
 * adds up and applies its own slices; the members meet once in between. `norms` receives the
 * norm of the sum of each step, before scaling, also without max_norm, where
 * rp_optimizer_step() returns 0. A step whose norm is not finite changes no parameters. Sums
 * are in the order of members: the result depends on the size of the team only. After
 * rp_team_run() the caller calls rp_optimizer_end_slices() for each step. */
RP_API void rp_team_step_slices(rp_team *team, size_t member, const rp_team_step *steps,
                                size_t count, double *norms);

RP_END_DECLS

#endif
