/* SPDX-License-Identifier: Apache-2.0 */
/* Crews: threads that repeat a function until they are paused, for asynchronous learners. The
 * threads are the members of the crew, and one call of the function is a turn.
 *
 * A new crew is paused. The caller may access the data of the members only while the crew is
 * paused. One thread at a time may use a crew. After fork(), the child has no threads of the
 * crew, so the child must neither use nor free the crew. */
#ifndef REPRISE_RL_CREW_H
#define REPRISE_RL_CREW_H

#include "reprise/alloc.h"

RP_BEGIN_DECLS

typedef struct rp_crew rp_crew;

enum { RP_CREW_MAX_SIZE = 64 };

/* One turn of a member, on the member's thread. A turn must not wait for long, because a pause
 * waits for it. Returns RP_OK, or RP_DEADLINE if there was nothing to do. Any other status is a
 * failure: the member makes no turn until the crew is resumed. */
typedef rp_status rp_crew_turn(void *ctx, size_t member, rp_error *err);

/* Makes a crew of `size` members, 1 to RP_CREW_MAX_SIZE, with the numbers 0 to `size` - 1.
 * Returns owned. RP_INVALID, RP_NO_RESOURCE (memory, or no thread can be started). */
RP_API RP_NODISCARD rp_status rp_crew_new(const rp_allocator *alloc, size_t size,
                                          rp_crew_turn *turn, void *ctx, rp_crew **out,
                                          rp_error *err);
/* Waits until every member has ended its turn, then ends the threads and frees the crew. NULL
 * is fine. */
RP_API void rp_crew_free(rp_crew *crew);

/* Lets all members of a paused crew make turns. In a running crew, lets the members that have
 * failed make turns again, and has no effect on the others. */
RP_API void rp_crew_resume(rp_crew *crew);

/* Waits until every member has ended its turn. No member makes another turn before the crew is
 * resumed. The caller sees what the members wrote. */
RP_API void rp_crew_pause(rp_crew *crew);

/* Returns the status of the first failure since the crew was last resumed, or RP_OK if there is
 * none. Does not wait for turns. */
RP_API RP_NODISCARD rp_status rp_crew_check(rp_crew *crew, rp_error *err);

RP_END_DECLS

#endif
