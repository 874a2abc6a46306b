/* SPDX-License-Identifier: Apache-2.0 */
/* A step as Python gives it, a nest of arrays, as tensors; and a lock for what belongs to one
 * thread at a time. */
#ifndef REPRISE_PYTHON_STEP_H
#define REPRISE_PYTHON_STEP_H

#include "core.h"

#include <pythread.h>
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

/* Takes a lock, letting other threads run while it waits. -1 if a signal handler raises. */
int core_lock(PyThread_type_lock lock);
void core_unlock(PyThread_type_lock lock);

#endif
