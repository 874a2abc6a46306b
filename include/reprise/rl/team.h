/* SPDX-License-Identifier: Apache-2.0 */
/* Teams: groups of threads that work together on one computation. Learners with several threads
 * use them.
 *
 * A team has members 0, 1, ... Member 0 is the thread that calls rp_team_run(). Each other
 * member is a thread of the team, which sleeps between runs.
 *
 *   static void work(void *ctx, size_t member)
 *   {
 *       ... compute the gradient of this member's rows, in an array of its own ...
 *       rp_team_meet(team, member);
 *       ... make a step with the sum of all gradients, each member for a part of it ...
 *       rp_team_step_slices(team, member, steps, 1, &norms[member]);
 *   }
 *   rp_team_run(team, work, ctx);
 *   rp_optimizer_end_slices(optimizer, norms[0]);
 *
 * A member that waits for others spins for some microseconds, then sleeps. A member that slept
 * in one wait spins for a shorter time in its next wait, because it will probably sleep again:
 * members usually sleep if there are more busy threads than cores.
 *
 * One thread at a time may use a team. After fork(), the child has no threads of the team, so
 * the child must neither use nor free the team. */
#ifndef REPRISE_RL_TEAM_H
#define REPRISE_RL_TEAM_H

#include "reprise/rl/optimizer.h"

RP_BEGIN_DECLS

typedef struct rp_team rp_team;

enum { RP_TEAM_MAX_SIZE = 64 };

/* Makes a team of `size` members, 1 to RP_TEAM_MAX_SIZE. Returns owned. Errors: RP_INVALID,
 * RP_NO_RESOURCE (memory, or no thread can be started). */
RP_API RP_NODISCARD rp_status rp_team_new(const rp_allocator *alloc, size_t size, rp_team **out,
                                          rp_error *err);
/* Ends the threads and frees the team. NULL is fine. */
RP_API void rp_team_free(rp_team *team);

RP_API size_t rp_team_size(const rp_team *team);

/* Calls work(ctx, member) for each member on the member's thread. Returns when all these calls
 * have returned. The members see everything that the caller wrote before rp_team_run(). After
 * rp_team_run() the caller sees everything that the members wrote. */
RP_API void rp_team_run(rp_team *team, void (*work)(void *ctx, size_t member), void *ctx);

/* A barrier: waits until all members have called rp_team_meet(). Within work() every member
 * must call it the same number of times. After the call, each member sees everything that any
 * member wrote before its own call of rp_team_meet(). */
RP_API void rp_team_meet(rp_team *team, size_t member);

/* A range of an array. */
typedef struct rp_slice {
    size_t first, count; /* index of the first element; number of elements */
} rp_slice;

/* Returns the member's slice of an array of `count` numbers. The slices of all members are
 * disjoint and cover the array. A slice can be empty. If the array begins at the start of a
 * cache line, no two slices have a cache line in common. */
RP_API rp_slice rp_team_slice(const rp_team *team, size_t count, size_t member);

/* A step of an optimizer (optimizer.h) with the sum of the gradients of all members. All
 * members must pass a struct with the same values. */
typedef struct rp_team_step {
    rp_optimizer *optimizer;
    rp_real *params;
    rp_real *const *grads; /* one array for each member. The step overwrites the first array
                              with the sum, scaled as by rp_optimizer_step() */
    size_t first, count;   /* the optimizer has `count` parameters. They begin at index `first`
                              of `params`, and their gradients begin at index `first` of each
                              array of `grads` */
} rp_team_step;

enum { RP_TEAM_MAX_STEPS = 4 };

/* Makes `count` steps, 1 to RP_TEAM_MAX_STEPS, each for other parameters. All members must call
 * this function within work(). Before the call each member must complete its gradients and then
 * call rp_team_meet(). After rp_team_run() the caller must call rp_optimizer_end_slices() for
 * each step.
 *
 * Each member adds up the gradients of all members in its own slice of each step, then waits
 * once for the other members, and then updates the parameters of its slices. Gradients are
 * added in the order of the members, so the result depends on the size of the team, but not on
 * the timing of the threads. Each member must pass an array `norms` of its own. For each step,
 * `norms` receives the norm of the sum before scaling; all members receive the same norms.
 * Unlike rp_optimizer_step(), this function sets the norm even if max_norm is 0. A step whose
 * norm is not finite changes no parameters. */
RP_API void rp_team_step_slices(rp_team *team, size_t member, const rp_team_step *steps,
                                size_t count, double *norms);

RP_END_DECLS

#endif
