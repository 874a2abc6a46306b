/* SPDX-License-Identifier: Apache-2.0 */
/* Steps as tensors. */
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

/* Once more, to have the path of the leaf in the message: paths are not made for nothing. */
static void raise_with_path(PyObject *nest, PyObject *leaf, size_t index)
{
    PyObject *structure, *path = NULL, *keep = NULL;
    PyObject *type, *value, *trace;
    rp_tensor tensor;

    PyErr_Fetch(&type, &value, &trace);
    structure = core_structure_of(nest);
    if (structure && (size_t)core_structure_leaf_count(structure) > index)
        path = core_structure_path(structure, (Py_ssize_t)index);
    Py_XDECREF(structure);
    PyErr_Clear();
    if (path && core_tensor_from(leaf, PyUnicode_AsUTF8(path), &tensor, &keep) != 0) {
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

int core_lock(PyThread_type_lock lock)
{
    PyLockStatus got;

    if (PyThread_acquire_lock(lock, NOWAIT_LOCK)) return 0;
    do {
        Py_BEGIN_ALLOW_THREADS;
        got = PyThread_acquire_lock_timed(lock, LOCK_POLL_US, 0);
        Py_END_ALLOW_THREADS;
        if (got != PY_LOCK_ACQUIRED && PyErr_CheckSignals() != 0) return -1;
    } while (got != PY_LOCK_ACQUIRED);
    return 0;
}

void core_unlock(PyThread_type_lock lock)
{
    PyThread_release_lock(lock);
}
