/* SPDX-License-Identifier: Apache-2.0 */
/* Converts steps to tensors. The lock of writers. See step.h.
 *
 * Invariants:
 *   G1  `owner` is the thread that holds the lock, 0 if none does, whenever the GIL is
 * released;
 *   G2  `is_closed` is never cleared;
 *   G3  keep[i] is NULL for i >= count of a step that is being made. */
#include "step.h"

#include <unistd.h>

enum { LARGE_BYTES = 64 << 10, LOCK_POLL_US = 50000 };

bool core_step_is_large(const core_step *step)
{
    return step->bytes >= LARGE_BYTES;
}

static size_t tensor_bytes(const rp_tensor *tensor)
{
    size_t elements = 0;

    if (rp_shape_elements(&tensor->shape, &elements) != RP_OK) return 0;
    return elements * rp_dtype_size(tensor->dtype);
}

/* Converts the leaf again, to raise the error with its path. The path is computed only after an
 * error, since that takes time. */
static void raise_with_path(PyObject *nest, PyObject *leaf, size_t index)
{
    PyObject *structure, *path = NULL, *keep = NULL;
    PyObject *type, *value, *trace;
    const char *text;
    rp_tensor tensor;

    PyErr_Fetch(&type, &value, &trace);
    structure = core_structure_of(nest);
    if (structure && (size_t)core_structure_leaf_count(structure) > index)
        path = core_structure_path(structure, (Py_ssize_t)index);
    Py_XDECREF(structure);
    text = path ? PyUnicode_AsUTF8(path) : NULL; /* NULL for a key that is not valid UTF-8 */
    PyErr_Clear();
    if (text && core_tensor_from(leaf, text, &tensor, &keep) != 0) {
        Py_DECREF(path);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        return;
    }
    Py_XDECREF(path);
    Py_XDECREF(keep);
    PyErr_Restore(type, value, trace);
}

int core_step_from(PyObject *nest, const core_leaves *leaves, bool none_ok, core_step *step)
{
    size_t count = (size_t)leaves->count;

    step->count = 0;
    step->bytes = 0;
    step->tensors = step->tensors_inside;
    step->keep = step->keep_inside;
    if (count > CORE_STEP_INSIDE) {
        step->tensors = PyMem_New(rp_tensor, count);
        step->keep = PyMem_New(PyObject *, count);
        if (!step->tensors || !step->keep) {
            core_step_release(step);
            PyErr_NoMemory();
            return -1;
        }
    }
    for (size_t i = 0; i < count; i++) {
        rp_tensor *tensor = &step->tensors[i];

        step->keep[i] = NULL;
        step->count = i + 1;
        assert(step->count <= count);
        if (leaves->items[i] == Py_None && none_ok) {
            *tensor = (rp_tensor){0};
            continue;
        }
        if (core_tensor_from(leaves->items[i], NULL, tensor, &step->keep[i]) != 0) {
            step->keep[i] = NULL;
            raise_with_path(nest, leaves->items[i], i);
            core_step_release(step);
            return -1;
        }
        step->bytes += tensor_bytes(tensor);
    }
    return 0;
}

void core_step_release(core_step *step)
{
    for (size_t i = 0; i < step->count; i++) Py_XDECREF(step->keep[i]);
    step->count = 0;
    if (step->tensors != step->tensors_inside) PyMem_Free(step->tensors);
    if (step->keep != step->keep_inside) PyMem_Free(step->keep);
    step->tensors = NULL;
    step->keep = NULL;
}

int core_check_process(pid_t process)
{
    rp_error err = {.code = RP_PRECONDITION,
                    .text = "the writer belongs to the process that forked this one"};

    if (process == getpid()) return 0;
    core_raise(RP_PRECONDITION, &err);
    return -1;
}

int core_guard_init(core_guard *guard)
{
    atomic_init(&guard->is_closed, false);
    guard->lock = PyThread_allocate_lock();
    if (guard->lock) return 0;
    PyErr_NoMemory();
    return -1;
}

void core_guard_deinit(core_guard *guard)
{
    if (guard->lock) PyThread_free_lock(guard->lock);
    guard->lock = NULL;
}

/* Waits for the lock in slices. Signal handlers run between two slices. */
static int wait_for_lock(PyThread_type_lock lock, int64_t until_ns)
{
    rp_error late = {.code = RP_DEADLINE, .text = "another thread is busy with the writer"};

    for (;;) {
        int64_t left_us = LOCK_POLL_US;
        PyLockStatus got;

        if (until_ns != RP_FOREVER) left_us = (until_ns - rp_now_ns()) / 1000 + 1;
        if (left_us <= 0) {
            core_raise(RP_DEADLINE, &late);
            return -1;
        }
        if (left_us > LOCK_POLL_US) left_us = LOCK_POLL_US;
        Py_BEGIN_ALLOW_THREADS;
        got = PyThread_acquire_lock_timed(lock, left_us, 0);
        Py_END_ALLOW_THREADS;
        if (got == PY_LOCK_ACQUIRED) return 0;
        if (PyErr_CheckSignals() != 0) return -1;
    }
}

static int check_not_inside(const core_guard *guard)
{
    if (guard->owner != PyThread_get_thread_ident()) return 0;
    PyErr_SetString(PyExc_RuntimeError, "the writer is called by what it is given: this thread "
                                        "is in a call of it already");
    return -1;
}

int core_guard_enter(core_guard *guard, int64_t *timeout_ms)
{
    if (check_not_inside(guard) != 0) return -1;
    if (!PyThread_acquire_lock(guard->lock, NOWAIT_LOCK)) {
        int64_t until_ns = *timeout_ms < 0 ? RP_FOREVER : rp_wait_ms(*timeout_ms).until_ns;

        if (wait_for_lock(guard->lock, until_ns) != 0) return -1;
        if (until_ns != RP_FOREVER) {
            int64_t left_ns = until_ns - rp_now_ns();
            *timeout_ms = left_ns > 0 ? left_ns / 1000000 : 0;
        }
    }
    assert(guard->owner == 0);
    guard->owner = PyThread_get_thread_ident();
    return 0;
}

void core_guard_leave(core_guard *guard)
{
    assert(guard->owner == PyThread_get_thread_ident());
    guard->owner = 0;
    PyThread_release_lock(guard->lock);
}

int core_guard_close(core_guard *guard)
{
    int64_t timeout_ms = -1;

    if (check_not_inside(guard) != 0) return -1;
    atomic_store(&guard->is_closed, true);
    return core_guard_enter(guard, &timeout_ms);
}

rp_status core_guard_check(const core_guard *guard, rp_error *err)
{
    if (!atomic_load(&guard->is_closed)) return RP_OK;
    err->code = RP_CANCELLED;
    PyOS_snprintf(err->text, sizeof err->text, "the writer was closed meanwhile");
    return RP_CANCELLED;
}
