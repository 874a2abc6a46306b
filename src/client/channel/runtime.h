/* SPDX-License-Identifier: Apache-2.0 */
/* The threads behind all clients of a process: one that runs the network's loop, and a few that
 * compress and decode. They start with the first client and end with the last.
 *
 * After fork() a child has none of them: rp_runtime_get() starts new ones there, and what was
 * made before knows by its generation that it belongs to the parent. */
#ifndef RP_CLIENT_CHANNEL_RUNTIME_H
#define RP_CLIENT_CHANNEL_RUNTIME_H

#include "net/loop.h"

typedef struct rp_runtime rp_runtime;

/* The runtime of this process, with a reference more. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_runtime_get(rp_runtime **out, rp_error *err);
void rp_runtime_put(rp_runtime *runtime); /* NULL is fine. Not on one of its threads */

/* Changes in the child of a fork; never 0. */
uint64_t rp_runtime_generation(void);

/* One lock for all clients of the process, rank RP_RANK_CLIENT, for what a child of a fork has
 * to find whole: no fork happens while it is held. */
void rp_runtime_lock_clients(void);
void rp_runtime_unlock_clients(void);

rp_loop *rp_runtime_loop(rp_runtime *runtime);
/* Runs `run` on the loop's thread and returns when it has. Not from that thread. */
void rp_runtime_run_on_loop(rp_runtime *runtime, void (*run)(void *arg), void *arg);

/* Where to read to, before anybody knows whose the bytes are: valid until the next callback. */
enum { RP_RUNTIME_READ_BYTES = 256 << 10 };
uint8_t *rp_runtime_read_buffer(rp_runtime *runtime);

/* Embed it; zero-initialise it and set run. */
typedef struct rp_turn_end rp_turn_end;
struct rp_turn_end {
    void (*run)(rp_turn_end *end);
    rp_turn_end *prev, *next; /* private */
    bool queued;              /* private */
};

/* Has end->run called once at the end of this turn of the loop, after those that are queued
 * already; asked for by one of them, still in this turn. Asking again is fine. Forgetting takes
 * it back, if it is queued. */
void rp_runtime_at_turn_end(rp_runtime *runtime, rp_turn_end *end);
void rp_runtime_forget_turn_end(rp_runtime *runtime, rp_turn_end *end);

/* Embed it; its memory must stay until it has run. */
typedef struct rp_job rp_job;
struct rp_job {
    void (*run)(rp_job *job);
    rp_job *next; /* private */
};

/* Has job->run called on one of the working threads, in order of submission, several at a
 * time. Any thread. */
void rp_runtime_submit(rp_runtime *runtime, rp_job *job);
size_t rp_runtime_workers(const rp_runtime *runtime);

#endif
