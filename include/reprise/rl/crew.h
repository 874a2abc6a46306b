/* SPDX-License-Identifier: Apache-2.0 */
/* Crews: threads that take turns at work until they are paused, for asynchronous learners.
 *
 * A new crew is paused. The caller may use what the members work on while the crew is paused.
 * One thread at a time may use a crew. After fork() the child has no threads of the crew: it
 * must not use it, nor free it. */
#ifndef REPRISE_RL_CREW_H
#define REPRISE_RL_CREW_H

#include "reprise/alloc.h"

RP_BEGIN_DECLS

typedef struct rp_crew rp_crew;

enum { RP_CREW_MAX_SIZE = 64 };

/* One turn of a member, on the member's thread. It must not wait for long: a pause waits for
 * it.
 * RP_DEADLINE: there was nothing to do. After another failure the member makes no turn until
 * the crew is resumed. */
typedef rp_status rp_crew_turn(void *ctx, size_t member, rp_error *err);

/* Makes a crew of members 0 to `size` - 1, at least 1 and at most RP_CREW_MAX_SIZE. Returns
 * owned. RP_INVALID, RP_NO_RESOURCE (memory, or no thread can be started). */
RP_API RP_NODISCARD rp_status rp_crew_new(const rp_allocator *alloc, size_t size,
                                          rp_crew_turn *turn, void *ctx, rp_crew **out,
                                          rp_error *err);
/* Waits for the turns that are under way, ends the threads and frees the crew. NULL is fine. */
RP_API void rp_crew_free(rp_crew *crew);

/* Lets the members work, unless they do; those that failed try again. */
RP_API void rp_crew_resume(rp_crew *crew);

/* Waits for the turns that are under way; then no member works. What members wrote is visible
 * to the caller. */
RP_API void rp_crew_pause(rp_crew *crew);

/* The first failure since the crew was last resumed; RP_OK: none. Does not wait for turns. */
RP_API RP_NODISCARD rp_status rp_crew_check(rp_crew *crew, rp_error *err);

RP_END_DECLS

#endif
