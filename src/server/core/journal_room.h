/* SPDX-License-Identifier: Apache-2.0 */
/* Delays calls that change tables while the journal's backlog, the records that it has not yet
 * written to disk, is at its bound.
 *
 * Inserts and samples wait in the queues of their tables. Each call of another kind that logs a
 * change (rp_task_kind.logs) waits before its message is delivered to the task. So a call that
 * ends while it waits, by its deadline for example, changes nothing. The waiting message stays
 * in the HTTP/2 session, where it counts as queued bytes. All waiting messages together may
 * hold a quarter of the limit on queued messages (RP_QUEUE_IN, queue_budget.h), and each event
 * loop has an equal part of that quarter. But a loop that keeps no waiting message can keep one
 * message of any size. If the message of a call cannot be kept, the call is refused with
 * RP_UNAVAILABLE.
 *
 * A waiting call is resumed when the backlog has become shorter. rp_server.room counts how
 * often the backlog has become shorter. Each wait is an rp_safe_wait (safety.h) for the next
 * value of this count.
 *
 * Invariants:
 *   R1  task->waits_for_journal is set exactly while the task waits. While it waits,
 *       task->room_bytes is the size of its message, otherwise 0;
 *   R2  worker->room_bytes is the sum of task->room_bytes over the worker's tasks.
 *
 * All functions but rp_journal_room_made() must be called on the worker's thread. */
#ifndef RP_SERVER_CORE_JOURNAL_ROOM_H
#define RP_SERVER_CORE_JOURNAL_ROOM_H

#include "server/core/task.h"

/* Returns whether a message of `size` bytes may be delivered to the task. If false, the task
 * waits, and its call is resumed later. If the message cannot be kept, the call is refused and
 * the result is true: a finished task ignores its message. */
RP_NODISCARD bool rp_journal_room_may_begin(rp_task *task, size_t size);
/* Wakes the waiting calls if the backlog is below its bound. Called on the journal's thread
 * when the backlog may have become shorter. */
void rp_journal_room_made(rp_server *server);

#endif
