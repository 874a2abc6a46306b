/* SPDX-License-Identifier: Apache-2.0 */
/* Crews: groups of threads that call a function again and again until they are paused.
 * Asynchronous learners use them. The threads are called the members of the crew, and one call
 * of the function is called a turn.
 *
 * A new crew is paused. The caller is allowed to access data that the members use only while
 * the crew is paused. One thread at a time may use a crew. After fork(), the child has no
 * threads of the crew, so the child must neither use nor free the crew. */
#ifndef REPRISE_RL_CREW_H
#define REPRISE_RL_CREW_H

#include "reprise/alloc.h"

RP_BEGIN_DECLS

typedef struct rp_crew rp_crew;

enum { RP_CREW_MAX_SIZE = 64 };

/* Makes one turn of a member, on the member's thread. A turn must not wait for long, because
 * rp_crew_pause() waits until the turn has ended. Returns RP_OK, or RP_DEADLINE if there was
 * nothing to do. Any other status is a failure: the member makes no further turn until
 * rp_crew_resume() is called. */
typedef rp_status rp_crew_turn(void *ctx, size_t member, rp_error *err);

/* Makes a crew of `size` members, 1 to RP_CREW_MAX_SIZE, with the numbers 0 to `size` - 1.
 * Returns owned. Errors: RP_INVALID, RP_NO_RESOURCE (memory, or no thread can be started). */
RP_API RP_NODISCARD rp_status rp_crew_new(const rp_allocator *alloc, size_t size,
                                          rp_crew_turn *turn, void *ctx, rp_crew **out,
                                          rp_error *err);
/* Waits until every member has ended its turn, then ends the threads and frees the crew. NULL
 * is fine. */
RP_API void rp_crew_free(rp_crew *crew);

/* Lets all members of a paused crew make turns. In a running crew, lets the members that have
 * failed make turns again; this has no effect on the other members. */
RP_API void rp_crew_resume(rp_crew *crew);

/* Waits until every member has ended its turn. No member makes another turn before
 * rp_crew_resume(). After this call, the caller sees everything that the members wrote to
 * memory. */
RP_API void rp_crew_pause(rp_crew *crew);

/* Returns the status of the first failure since the last rp_crew_resume(), or RP_OK if there
 * was no failure. Does not wait for turns. */
RP_API RP_NODISCARD rp_status rp_crew_check(rp_crew *crew, rp_error *err);

RP_END_DECLS

#endif
