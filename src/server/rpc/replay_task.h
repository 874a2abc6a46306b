/* SPDX-License-Identifier: Apache-2.0 */
/* What Peek and Sample have in common: calls that are answered with items.
 *
 * A call begins when answers of its connection may be queued: until then it waits, so that a
 * reader that is slow pins no memory. Its items count in the budget of queued bytes from before
 * they are drawn until the response is made of them, so that it always has room (Q5). The
 * response is made in steps, a turn of the loop each, and waits for a slow reader before the
 * first one: a draw may have taken long. */
#ifndef RP_SERVER_RPC_REPLAY_TASK_H
#define RP_SERVER_RPC_REPLAY_TASK_H

#include "server/core/served.h"
#include "server/rpc/replay_answer.h"
#include "server/rpc/sample_room.h"

typedef struct rp_items_task rp_items_task;
struct rp_items_task {
    rp_task task;
    rp_timer timer;               /* for whatever it waits for */
    void (*due)(rp_items_task *); /* then */
    void (*begin)(rp_items_task *);
    rp_served *served;   /* a reference */
    rp_sample_room room; /* with its samples, once they are here */
    size_t count;        /* of them */
    bool has_message;
    bool waits_for_room; /* that is what the timer is for */
    bool with_chunks, cut_rows;
    bool is_answering;
    bool is_making; /* its response takes more than one step: counts in connection->makers */
    rp_reply *reply;
    rp_drawn *drawn;     /* a reference, if it holds bytes */
    size_t held_bytes;   /* taken from it for the samples */
    size_t made_bytes;   /* of the response beyond these, in connection->making_bytes */
    size_t wanted_bytes; /* that it lacked when it began the last time */
    int64_t until_ns;    /* it does not wait for them any longer; 0: it does */
    rp_replay_answer answer;
};

static inline rp_items_task *rp_items_of(rp_task *task)
{
    return (rp_items_task *)(void *)task;
}

/* The on_room of such a task: begins, if it waits for room. */
void rp_items_room(rp_task *task);

/* Takes note of the request message. False, with the call ended, if it is not the first. */
bool rp_items_take_message(rp_items_task *items);
/* For rp_task_kind: a call that ends before its message is refused. */
void rp_items_half_close(rp_task *task);

/* Calls `begin` as soon as answers may be queued: now, or later. */
void rp_items_begin(rp_items_task *items, void (*begin)(rp_items_task *));

/* The items that it was about to draw have no room: calls `begin` again when they may, but
 * ends the call at until_ns. To be called when the draw has given back all that it had. */
void rp_items_begin_again(rp_items_task *items, size_t bytes);

/* Has `due` called at that time, unless the call is over by then, or something else armed.
 * False, with the call ended, if there is no memory. */
bool rp_items_wait(rp_items_task *items, int64_t due_ns, void (*due)(rp_items_task *));
void rp_items_stop_waiting(rp_items_task *items);

/* Answers with the first `count` of its samples. */
void rp_items_answer(rp_items_task *items, size_t count);
/* Takes over the bytes that were taken for the samples: it gives them back when it has let go
 * of these. Takes a reference. */
void rp_items_hold(rp_items_task *items, rp_drawn *drawn, size_t held_bytes);

/* For rp_task_kind.on_close: lets everything go. */
void rp_items_close(rp_items_task *items);

#endif
