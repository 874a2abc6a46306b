/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the tasks (core/task.h) of Peek and Sample, which respond with items of a
 * table.
 *
 * A task first waits until its connection may queue responses (core/connection_room.h), so that
 * the items for a slow reader take no memory. Then it draws the items, that is, samples or
 * looks them up in the table. The budget of queued bytes counts the items from before the draw
 * until the response is made of them, so the response always has room (core/queue_budget.h,
 * Q5). The draw can take long, so after the draw the task waits again until the connection may
 * queue responses. Then it makes the response in steps, one in each turn (iteration) of the
 * event loop. The steps count as work of the turn: if a turn has done too much work, the next
 * step waits for a later turn (core/deferral.h).
 *
 * Invariants:
 *   I1  is_making is set exactly while the task is counted in connection->makers;
 *   I2  made_bytes is the task's part of connection->making_bytes;
 *   I3  if held_bytes > 0, `drawn` is set;
 *   I4  reply is set while is_responding. */
#ifndef RP_SERVER_RPC_ITEMS_TASK_H
#define RP_SERVER_RPC_ITEMS_TASK_H

#include "server/core/served_table.h"
#include "server/rpc/items_response.h"
#include "server/rpc/sample_array.h"

typedef struct rp_items_task rp_items_task;
struct rp_items_task {
    rp_task task;
    rp_timer timer;               /* armed while the task waits */
    void (*due)(rp_items_task *); /* called when the timer is due */
    void (*begin)(rp_items_task *);
    /* Called in the turn in which a deferred task continues. May be NULL: then only the call's
     * message is delivered. */
    void (*turn)(rp_items_task *);
    size_t work;             /* the most units of work that `begin` does: deferral.h */
    rp_served_table *served; /* a reference */
    rp_sample_array room;    /* receives the drawn samples */
    size_t count;            /* number of samples */
    bool has_message;        /* the request has arrived */
    bool is_beginning;       /* `begin` is running: this turn of the loop is allowed to work for
                                the task */
    bool waits_for_room;     /* the timer is armed for another try to get room */
    bool with_chunks, cut_rows;
    bool is_responding;
    bool is_making; /* its response takes more than one step: I1 */
    rp_message *reply;
    rp_drawn *drawn;     /* a reference, if held_bytes > 0 */
    size_t held_bytes;   /* bytes that were taken from `drawn` for the samples */
    size_t made_bytes;   /* bytes of the response beyond held_bytes: I2 */
    size_t wanted_bytes; /* bytes of items for which the last draw found no room */
    int64_t until_ns;    /* time at which the task stops waiting for room for `wanted_bytes`; 0:
                            never */
    rp_items_response response;
};

static inline rp_items_task *rp_items_of(rp_task *task)
{
    return (rp_items_task *)(void *)task;
}

/* For rp_task_kind.on_room: continues a task that waits for room. */
void rp_items_room(rp_task *task);
/* For rp_task_kind.on_turn: continues a task that was deferred. */
void rp_items_turn(rp_task *task);

/* Records that the request message has arrived. If it is not the first, ends the call and
 * returns false. */
bool rp_items_take_message(rp_items_task *items);
/* For rp_task_kind.on_half_close: refuses a call if its client has ended its side without
 * sending a message. */
void rp_items_half_close(rp_task *task);

/* Calls `begin`, now or later, as soon as the connection may queue responses and the turn of
 * the loop may do more work. `begin` must add its work, at most `work` units, to the work of
 * the turn (rp_defer_add_work()). */
void rp_items_begin(rp_items_task *items, size_t work, void (*begin)(rp_items_task *));

/* Calls `begin` again when there may be room for `bytes` of items, for which the last draw
 * found no room. If there is no room until items->until_ns, ends the call. Must be called after
 * the draw has given back all bytes that it had taken. */
void rp_items_begin_again(rp_items_task *items, size_t bytes);

/* Makes the timer call `due` at `due_ns`. If the call ends or begins another wait before that
 * time, `due` is not called. If there is no memory, ends the call and returns false. */
bool rp_items_wait(rp_items_task *items, int64_t due_ns, void (*due)(rp_items_task *));
void rp_items_stop_waiting(rp_items_task *items);

/* Responds with the first `count` samples of items->room. */
void rp_items_respond(rp_items_task *items, size_t count);
/* Takes over `held_bytes`, which the draw has taken from `drawn` for the samples, and adds a
 * reference to `drawn`. The bytes are given back when the samples are released. */
void rp_items_hold(rp_items_task *items, rp_drawn *drawn, size_t held_bytes);

/* For rp_task_kind.on_close: releases everything. */
void rp_items_close(rp_items_task *items);

#endif
