/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the steps of an episode (nests of Python values) to tensors, for the writers. Also
 * declares core_guard, a lock that lets only one thread at a time use a writer. */
#ifndef REPRISE_PYTHON_STEP_H
#define REPRISE_PYTHON_STEP_H

#include "core.h"

#include <pythread.h>
#include <stdatomic.h>
#include <sys/types.h>

enum { CORE_STEP_INSIDE = 32 };

/* The tensors of a step, one for each leaf. The data of a leaf that is None is NULL. Up to
 * CORE_STEP_INSIDE leaves need no allocation. The caller releases the step with
 * core_step_release(). */
typedef struct core_step {
    size_t count;
    size_t bytes; /* sum of the bytes of all tensors */
    rp_tensor *tensors;
    PyObject **keep; /* the objects that own the memory of the tensors; NULL for None */
    rp_tensor tensors_inside[CORE_STEP_INSIDE];
    PyObject *keep_inside[CORE_STEP_INSIDE];
} core_step;

/* Makes tensors from the leaves of `nest`. If `none_ok` is false, a leaf that is None is an
 * error. */
int core_step_from(PyObject *nest, const core_leaves *leaves, bool none_ok, core_step *step);
void core_step_release(core_step *step);

/* Returns true if the step is so large that the caller should release the GIL while it copies
 * the step. */
bool core_step_is_large(const core_step *step);

/* Returns -1 with StatusError if `process`, which made the writer, is not this process. In a
 * forked child, a lock of the writer can stay locked for ever. */
int core_check_process(pid_t process);

/* A lock that one thread holds at a time, and that can be closed. Zero-initialise it. */
typedef struct core_guard {
    PyThread_type_lock lock;
    unsigned long owner;   /* the thread that holds the lock; 0: none. Guarded by the GIL */
    atomic_bool is_closed; /* the holder of the lock checks this while it waits */
} core_guard;

int core_guard_init(core_guard *guard);
void core_guard_deinit(core_guard *guard);

/* Acquires the lock. Waits at most `*timeout_ms` (negative: no timeout), and releases the GIL
 * meanwhile. Sets `*timeout_ms` to the time that is left. Returns -1 with an exception in three
 * cases: the timeout passes, a signal handler raises an exception, or this thread already holds
 * the lock. The last case occurs when Python code that the writer runs calls the writer. */
int core_guard_enter(core_guard *guard, int64_t *timeout_ms);
void core_guard_leave(core_guard *guard);

/* Closes the lock, and then acquires it without a timeout. If the holder of the lock waits, its
 * wait ends. Returns -1 with an exception in two cases. If this thread already holds the lock,
 * the lock is not closed. If a signal handler raises an exception, the lock is closed but not
 * acquired. */
int core_guard_close(core_guard *guard);
/* Returns RP_CANCELLED if the lock is closed. The holder of the lock must call this before each
 * wait. */
rp_status core_guard_check(const core_guard *guard, rp_error *err);

#endif
