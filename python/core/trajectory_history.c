/* SPDX-License-Identifier: Apache-2.0 */
/* TrajectoryWriter.history: a nest of ColumnHistory.
 *
 * Callers read `history` several times in each step, and may change the nest that they get. So
 * the writer keeps one nest, and returns it again if it is unchanged and no caller holds a
 * mutable part of it. This is checked each time, which is much cheaper than making a new nest.
 *
 * Invariants:
 *   K1  structure and leaves are set together, and `leaves` has a history for each leaf;
 *   K2  if `nest` is set, parts[0 .. part_count) are its parts in preorder, as it was made. */
#include "trajectory_writer.h"

static bool add_part(core_writer *w, PyObject *obj, PyObject *key)
{
    if (w->part_count == w->part_capacity) {
        size_t capacity = 2 * w->part_capacity + 8;
        nest_part *parts = PyMem_Realloc(w->parts, capacity * sizeof(*parts));
        if (parts == NULL) return false;
        w->parts = parts;
        w->part_capacity = capacity;
    }
    assert(w->part_count < w->part_capacity);
    w->parts[w->part_count++] = (nest_part){obj, key};
    return true;
}

/* Records the parts of a nest (K2). False if it has a type that is_intact() cannot compare. */
static bool record_parts(core_writer *w, PyObject *obj, PyObject *key)
{
    PyObject *child_key, *child;
    Py_ssize_t at = 0;
    bool done = add_part(w, obj, key);
    if (Py_TYPE(obj) == &core_ColumnHistory) return done;
    if (PyDict_CheckExact(obj)) {
        while (done && PyDict_Next(obj, &at, &child_key, &child))
            done = record_parts(w, child, child_key);
    } else if (PyTuple_Check(obj)) {
        for (; done && at < PyTuple_GET_SIZE(obj); at++)
            done = record_parts(w, PyTuple_GET_ITEM(obj, at), NULL);
    } else if (PyList_CheckExact(obj)) {
        for (; done && at < PyList_GET_SIZE(obj); at++)
            done = record_parts(w, PyList_GET_ITEM(obj, at), NULL);
    } else {
        return false;
    }
    return done;
}

/* True if the nest at `*part` is unchanged, and no caller holds a mutable part of it. Advances
 * `*part` past the nest. */
static bool is_intact(const nest_part **part, const nest_part *end, PyObject *obj,
                      PyObject *key)
{
    PyObject *child_key, *child;
    Py_ssize_t at = 0;
    bool same = *part < end && (*part)->obj == obj && (*part)->key == key;
    ++*part;
    if (!same || Py_TYPE(obj) == &core_ColumnHistory) return same;
    if (PyTuple_Check(obj)) {
        for (; same && at < PyTuple_GET_SIZE(obj); at++)
            same = is_intact(part, end, PyTuple_GET_ITEM(obj, at), NULL);
        return same;
    }
    if (Py_REFCNT(obj) != 1) return false;
    if (PyDict_CheckExact(obj)) {
        while (same && PyDict_Next(obj, &at, &child_key, &child))
            same = is_intact(part, end, child, child_key);
    } else {
        for (; same && at < PyList_GET_SIZE(obj); at++)
            same = is_intact(part, end, PyList_GET_ITEM(obj, at), NULL);
    }
    return same;
}

/* Makes a new nest. Keeps it unless the history has changed meanwhile: making the nest calls
 * its types, which may append steps. */
static PyObject *pack_history(core_writer *w)
{
    assert(w->structure != NULL && w->leaves != NULL); /* K1 */
    PyObject *structure = Py_NewRef(w->structure), *leaves = Py_NewRef(w->leaves);
    PyObject *nest =
        core_structure_pack(structure, &PyTuple_GET_ITEM(leaves, 0), PyTuple_GET_SIZE(leaves));
    if (nest != NULL && w->structure == structure) {
        PyObject *old = w->nest;
        w->part_count = 0;
        w->nest = record_parts(w, nest, NULL) ? Py_NewRef(nest) : NULL;
        Py_XDECREF(old);
    }
    Py_DECREF(structure);
    Py_DECREF(leaves);
    return nest;
}

int core_writer_set_history(core_writer *w, PyObject *nest)
{
    core_leaves leaves;
    PyObject *structure = core_structure_of(nest), *tuple = NULL;
    int same = structure == NULL ? -1 : core_structure_flatten(structure, nest, &leaves);
    if (same != 1) {
        if (same == 0) PyErr_SetString(PyExc_RuntimeError, "the nest changed meanwhile");
        Py_XDECREF(structure);
        return -1;
    }
    tuple = PyTuple_New(leaves.count);
    for (Py_ssize_t i = 0; tuple != NULL && i < leaves.count; i++) {
        Py_INCREF(leaves.items[i]);
        PyTuple_SET_ITEM(tuple, i, leaves.items[i]);
    }
    core_leaves_free(&leaves);
    if (tuple == NULL) {
        Py_DECREF(structure);
        return -1;
    }
    PyObject *old[] = {w->structure, w->leaves, w->nest};
    w->structure = structure;
    w->leaves = tuple;
    w->nest = NULL;
    for (int i = 0; i < 3; i++) Py_XDECREF(old[i]);
    return 0;
}

PyObject *core_writer_history(core_writer *w, void *unused)
{
    const nest_part *part = w->parts;
    assert((w->structure == NULL) == (w->leaves == NULL)); /* K1 */
    (void)unused;
    if (w->column_count == 0 || w->structure == NULL) {
        PyErr_SetString(PyExc_RuntimeError,
                        "history cannot be accessed before `append` is called at least once.");
        return NULL;
    }
    if (w->nest == NULL || !is_intact(&part, w->parts + w->part_count, w->nest, NULL) ||
        part != w->parts + w->part_count)
        return pack_history(w);
    Py_INCREF(w->nest);
    return w->nest;
}
