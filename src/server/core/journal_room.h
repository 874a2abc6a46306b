/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that change tables wait here while the backlog of the journal is at its bound.
 *
 * Inserts and samples wait in the queues of their tables. All other changes (rp_task_kind.logs)
 * ask before their message is delivered: a change that has begun is completed, and a call that
 * ends before, by its deadline for example, changes nothing. The message stays in the session,
 * where it counts as queued bytes. Waiting messages hold at most a quarter of the side of the
 * budget for messages, each event loop an equal part of it; a loop can always keep one. Further
 * calls are refused (RP_UNAVAILABLE).
 *
 * A wait is for the next time that the backlog becomes shorter: rp_server.room counts these
 * times, and safety.h completes the waits.
 *
 * Invariants:
 *   R1  task->waits_for_journal is set exactly while the task waits. Then task->room_bytes is
 *       the size of its message, otherwise 0;
 *   R2  worker->room_bytes is the sum of room_bytes of its tasks.
 *
 * All functions belong to the worker's thread, except rp_journal_room_made(). */
#ifndef RP_SERVER_CORE_JOURNAL_ROOM_H
#define RP_SERVER_CORE_JOURNAL_ROOM_H

#include "server/core/task.h"

/* Whether a message of `size` bytes may be delivered. If not, the task waits, and the call is
 * resumed later. If the task cannot wait, it is refused, and the result is true: a finished
 * task ignores its message. */
RP_NODISCARD bool rp_journal_room_may_begin(rp_task *task, size_t size);
/* The backlog may be shorter: wakes the waiting calls if it is. The journal's thread. */
void rp_journal_room_made(rp_server *server);

#endif
