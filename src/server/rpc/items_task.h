/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of Peek and Sample: tasks that respond with items.
 *
 * A task waits until its connection may queue responses, so that a slow reader holds no memory.
 * The budget of queued bytes counts the task's items from before they are drawn until the
 * response is made of them, so the response always has room (Q5). The response is made in
 * steps, one in each turn of the loop, and their work counts (deferral.h): a further step waits
 * for a turn that has not done enough. Before the first step the task waits again until the
 * connection may queue responses, since drawing may have taken long.
 *
 * Invariants:
 *   I1  is_making is set exactly while the task is counted in connection->makers;
 *   I2  made_bytes is the task's part of connection->making_bytes;
 *   I3  held_bytes > 0 only with `drawn`;
 *   I4  reply is set while is_responding. */
#ifndef RP_SERVER_RPC_ITEMS_TASK_H
#define RP_SERVER_RPC_ITEMS_TASK_H

#include "server/core/served_table.h"
#include "server/rpc/items_response.h"
#include "server/rpc/sample_array.h"

typedef struct rp_items_task rp_items_task;
struct rp_items_task {
    rp_task task;
    rp_timer timer;               /* armed while it waits */
    void (*due)(rp_items_task *); /* called when the timer is due */
    void (*begin)(rp_items_task *);
    /* What continues in the turn of a task that was deferred; NULL: only its next message. */
    void (*turn)(rp_items_task *);
    size_t work;             /* the most units of work that `begin` takes: deferral.h */
    rp_served_table *served; /* a reference */
    rp_sample_array room;    /* the samples, once they have been drawn */
    size_t count;            /* number of samples */
    bool has_message;        /* the request has arrived */
    bool is_beginning;       /* `begin` runs: this turn of the loop may work for the task */
    bool waits_for_room;     /* the timer is armed to try again to get room */
    bool with_chunks, cut_rows;
    bool is_responding;
    bool is_making; /* its response takes more than one step: I1 */
    rp_message *reply;
    rp_drawn *drawn;     /* a reference, if held_bytes > 0 */
    size_t held_bytes;   /* bytes that were taken from `drawn` for the samples */
    size_t made_bytes;   /* bytes of the response beyond held_bytes: I2 */
    size_t wanted_bytes; /* bytes for which the last draw found no room */
    int64_t until_ns;    /* when the task stops waiting for that room; 0: never */
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

/* Records the request message. False, with the call ended, if it is not the first. */
bool rp_items_take_message(rp_items_task *items);
/* For rp_task_kind.on_half_close: refuses a call that ends before its message. */
void rp_items_half_close(rp_task *task);

/* Calls `begin` as soon as responses may be queued and a turn of the loop may do more work:
 * now, or later. `begin` adds its work, at most `work` units. */
void rp_items_begin(rp_items_task *items, size_t work, void (*begin)(rp_items_task *));

/* Calls `begin` again when there may be room for `bytes` of items, for which the last draw
 * found no room. At until_ns it ends the call. Call it after the draw has returned all bytes
 * that it had taken. */
void rp_items_begin_again(rp_items_task *items, size_t bytes);

/* Makes the timer call `due` at `due_ns`, unless the call ends or another wait begins before
 * that time. If there is no memory, ends the call and returns false. */
bool rp_items_wait(rp_items_task *items, int64_t due_ns, void (*due)(rp_items_task *));
void rp_items_stop_waiting(rp_items_task *items);

/* Responds with the first `count` samples of items->room. */
void rp_items_respond(rp_items_task *items, size_t count);
/* Takes over `held_bytes` that were taken from `drawn` for the samples. They are returned when
 * the samples are released. Adds a reference to `drawn`. */
void rp_items_hold(rp_items_task *items, rp_drawn *drawn, size_t held_bytes);

/* For rp_task_kind.on_close: releases everything. */
void rp_items_close(rp_items_task *items);

#endif
