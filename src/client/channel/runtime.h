/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime: the threads that all clients of a process share. One thread runs the network
 * loop (net/loop.h). A few workers compress and decode. The threads start with the first client
 * and end with the last.
 *
 * After fork(), the child has none of these threads, and rp_runtime_get() starts new ones
 * there. Each process has a number, its generation. By this number the child recognises objects
 * that were made in the parent. */
#ifndef RP_CLIENT_CHANNEL_RUNTIME_H
#define RP_CLIENT_CHANNEL_RUNTIME_H

#include "net/loop.h"

typedef struct rp_runtime rp_runtime;

/* Sets `*out` to the runtime of this process, with a reference for the caller. Errors:
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_runtime_get(rp_runtime **out, rp_error *err);
/* Releases a reference. NULL is fine. Must not be called on a thread of the runtime. */
void rp_runtime_put(rp_runtime *runtime);

/* Returns the generation of this process, never 0. The child of a fork has another generation
 * than its parent. */
uint64_t rp_runtime_generation(void);

/* A lock that all clients of the process share, of rank RP_RANK_CLIENT. fork() waits for the
 * lock, so the state that it guards is consistent in the child. */
void rp_runtime_lock_clients(void);
void rp_runtime_unlock_clients(void);

rp_loop *rp_runtime_loop(rp_runtime *runtime);
/* Calls run(arg) on the loop thread and waits until it returns. Must not be called on that
 * thread. */
void rp_runtime_run_on_loop(rp_runtime *runtime, void (*run)(void *arg), void *arg);

enum { RP_RUNTIME_READ_BYTES = 256 << 10 };
/* Returns a buffer of RP_RUNTIME_READ_BYTES bytes to read into, valid until the next callback
 * of the loop. Only the loop thread and guests of the loop (net/loop.h) may call it. */
uint8_t *rp_runtime_read_buffer(rp_runtime *runtime);

/* A callback at the end of a turn (one round of callbacks) of the loop. The caller embeds the
 * struct, zero-initialises it and sets `run`. */
typedef struct rp_at_turn_end rp_at_turn_end;
struct rp_at_turn_end {
    void (*run)(rp_at_turn_end *end);
    rp_at_turn_end *prev, *next; /* private */
    bool queued;                 /* private */
};

/* Queues end->run, to be called once at the end of this turn of the loop. The callback is
 * allowed to queue other callbacks, which run in the same turn. Does nothing if `end` is queued
 * already. Only the loop thread and guests may call this function and the next. */
void rp_runtime_at_turn_end(rp_runtime *runtime, rp_at_turn_end *end);
/* Removes `end` from the queue, if it is queued. */
void rp_runtime_forget_turn_end(rp_runtime *runtime, rp_at_turn_end *end);

/* A job for the workers. The caller embeds the struct and sets `run`. The struct must stay
 * valid until `run` is called; `run` is allowed to free it. */
typedef struct rp_job rp_job;
struct rp_job {
    void (*run)(rp_job *job);
    rp_job *next; /* private */
};

/* Queues job->run for the workers. They start jobs in the order of submission and run several
 * at a time. Any thread may call this. */
void rp_runtime_submit(rp_runtime *runtime, rp_job *job);
size_t rp_runtime_workers(const rp_runtime *runtime);

#endif
