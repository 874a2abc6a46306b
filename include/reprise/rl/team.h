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
 *       rp_team_step_slices(team, member, steps, 1, &norm);   adds; steps the optimizer
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
 * returned. What the caller wrote before is visible to the members; what they wrote, to the
 * caller afterwards. */
RP_API void rp_team_run(rp_team *team, void (*work)(void *ctx, size_t member), void *ctx);

/* Waits in work() until all members have called it. What a member wrote before is visible to
 * all afterwards. All members make the same number of calls. */
RP_API void rp_team_meet(rp_team *team, size_t member);

/* A part of an array. */
typedef struct rp_slice {
    size_t first, count;
} rp_slice;

/* The slice of `count` numbers that is this member's: whole cache lines, if the array begins on
 * one. The slices of all members are disjoint, and cover the array. A slice may be empty. */
RP_API rp_slice rp_team_slice(const rp_team *team, size_t count, size_t member);

/* A step of an optimizer with the sum of the gradients of all members. All members pass the
 * same values. */
typedef struct rp_team_step {
    rp_optimizer *optimizer;
    rp_real *params;
    rp_real *const *grads; /* one array for each member. The first becomes the sum, scaled as
                              rp_optimizer_step() does */
    size_t first, count;   /* the optimizer's parameters in `params`, and in each array */
} rp_team_step;

enum { RP_TEAM_MAX_STEPS = 4 };

/* Makes `count` steps, 1 to RP_TEAM_MAX_STEPS, of different parameters. Called in work() by all
 * members, after a meeting at which their gradients were complete. Each member adds up and
 * applies its own slices; they meet once. `norms` receives the norm of each sum, before
 * scaling. If one is not finite, nothing of its step is applied. Unlike with
 * rp_optimizer_step() the norm is computed without max_norm as well. Sums are in the order of
 * members: the result depends on the size of the team only. After rp_team_run() the caller
 * calls rp_optimizer_end_slices() for each step. */
RP_API void rp_team_step_slices(rp_team *team, size_t member, const rp_team_step *steps,
                                size_t count, double *norms);

RP_END_DECLS

#endif
