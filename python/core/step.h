/* SPDX-License-Identifier: Apache-2.0 */
/* A step as Python gives it, a nest of arrays, as tensors; and a guard for what belongs to one
 * thread at a time. */
#ifndef REPRISE_PYTHON_STEP_H
#define REPRISE_PYTHON_STEP_H

#include "core.h"

#include <pythread.h>
#include <stdatomic.h>
#include <sys/types.h>

enum { CORE_STEP_INSIDE = 32 };

/* The tensors of a step, one for each leaf; of a leaf that is None the data is NULL. Released
 * with core_step_release(). Up to CORE_STEP_INSIDE leaves do not allocate. */
typedef struct core_step {
    size_t count;
    size_t bytes; /* of all tensors */
    rp_tensor *tensors;
    PyObject **keep; /* what owns their memory; NULL for None */
    rp_tensor tensors_inside[CORE_STEP_INSIDE];
    PyObject *keep_inside[CORE_STEP_INSIDE];
} core_step;

/* `nest` is what the leaves are from, for messages. None is refused unless `none_ok`. */
int core_step_from(PyObject *nest, const core_leaves *leaves, bool none_ok, core_step *step);
void core_step_release(core_step *step);

/* A step of so many bytes is worth letting other threads run meanwhile. */
bool core_step_is_large(const core_step *step);

/* A writer stays with the process that made it: a lock of it may be held for ever in a forked
 * one. -1 with an exception elsewhere. */
int core_check_process(pid_t process);

/* Lets one thread in at a time. Zero-initialise it. */
typedef struct core_guard {
    PyThread_type_lock lock;
    unsigned long owner;   /* the thread inside; 0: none. Guarded by the GIL */
    atomic_bool is_closed; /* or about to be: whoever waits inside looks at it */
} core_guard;

int core_guard_init(core_guard *guard);
void core_guard_deinit(core_guard *guard);

/* Goes in, letting other threads run while it waits: at most `*timeout_ms` (negative: no end),
 * of which it leaves what is left. -1 with an exception: the time is over, a signal handler
 * raised, or this thread is inside already, and runs Python from there. */
int core_guard_enter(core_guard *guard, int64_t *timeout_ms);
void core_guard_leave(core_guard *guard);

/* Closes it, which ends the waits inside, and goes in. -1 as above; then it is closed if the
 * thread was not inside. */
int core_guard_close(core_guard *guard);
/* RP_CANCELLED if it is closed: for the calls that wait inside, before each wait. */
rp_status core_guard_check(const core_guard *guard, rp_error *err);

#endif
