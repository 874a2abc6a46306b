/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.ColumnHistory; see column_history.h.
 *
 * Invariants:
 *   H1  0 <= kept <= length, kept <= limit and kept <= capacity;
 *   H2  the cell of step i, length - kept <= i < length, is ring[i & (capacity - 1)];
 *   H3  a cell number is -1 or a cell of the C writer's column of the same number;
 *   H4  dtype, shape, row_bytes and descr are set if and only if `known`. */
#include "column_history.h"
#include "cell.h"
#include "nest.h"
#include "trajectory_column.h"

#include <structmember.h>

enum { FIRST_CELLS = 16 };

/* Returns the path for error texts, as UTF-8. */
static PyObject *path_name(PyObject *path)
{
    PyObject *text = core_path_text(path);
    PyObject *bytes =
        text == NULL ? NULL : PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    Py_XDECREF(text);
    return bytes;
}

PyObject *core_history_new(writer_state *state, PyObject *path, uint32_t column,
                           const rp_column_options *options, int64_t length)
{
    PyObject *name = path_name(path);
    core_history *h = name == NULL ? NULL : PyObject_New(core_history, &core_ColumnHistory);
    if (h == NULL) {
        Py_XDECREF(name);
        return NULL;
    }
    assert(length >= 0 && options->history > 0);
    memset((char *)h + sizeof(PyObject), 0, sizeof(*h) - sizeof(PyObject));
    h->state = writer_state_ref(state);
    h->path = path;
    Py_INCREF(path);
    h->name = name;
    h->column = column;
    h->options = *options;
    h->limit =
        options->history > state->default_history ? options->history : state->default_history;
    h->length = length > 0 ? length - 1 : 0;
    if (length > 0) {
        if (core_history_reserve(h) < 0) {
            Py_DECREF(h);
            return NULL;
        }
        core_history_push(h);
    }
    return (PyObject *)h;
}

static void history_dealloc(core_history *h)
{
    writer_state_unref(h->state);
    Py_XDECREF(h->path);
    Py_XDECREF(h->name);
    Py_XDECREF((PyObject *)h->descr);
    PyMem_Free(h->ring);
    PyObject_Free(h);
}

int core_history_reserve(core_history *h)
{
    if (h->kept < h->capacity || h->kept == h->limit) return 0;
    int64_t capacity = h->capacity > 0 ? 2 * h->capacity : FIRST_CELLS;
    int64_t *ring = PyMem_Malloc((size_t)capacity * sizeof(*ring));
    if (ring == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int64_t i = h->length - h->kept; i < h->length; i++)
        ring[i & (capacity - 1)] = h->ring[i & (h->capacity - 1)];
    PyMem_Free(h->ring);
    h->ring = ring;
    h->capacity = capacity;
    assert(h->kept <= capacity && (capacity & (capacity - 1)) == 0); /* H1 */
    return 0;
}

void core_history_clear(core_history *h)
{
    assert(h->kept <= h->length); /* H1 */
    h->length = h->kept = 0;
}

int core_history_learn(core_history *h, const rp_tensor *tensor)
{
    size_t elements = 0;
    if (h->known) return 0;
    assert(h->descr == NULL); /* H4 */
    if (rp_shape_elements(&tensor->shape, &elements) != RP_OK) elements = 0;
    h->descr = core_descr(tensor->dtype);
    if (h->descr == NULL) return -1;
    h->dtype = tensor->dtype;
    h->shape = tensor->shape;
    h->row_bytes = elements * rp_dtype_size(tensor->dtype);
    h->known = true;
    return 0;
}

/* Returns the cell of a step; -1 if the step has no value, or is no longer kept. */
static inline int64_t cell_at(const core_history *h, int64_t step)
{
    if (step < h->length - h->kept || step >= h->length) return -1;
    assert(h->kept <= h->capacity);           /* H1 */
    return h->ring[step & (h->capacity - 1)]; /* H2 */
}

/* Sets ValueError: the column has no value for a step, which is -1 for a step before the first.
 */
static PyObject *refuse_step(core_history *h, PyObject *key, int64_t step)
{
    char why[192];
    if (step < 0)
        (void)snprintf(why, sizeof why,
                       "None for a step before the first: the history has %lld step%s",
                       (long long)h->length, h->length == 1 ? "" : "s");
    else if (step < h->length - h->kept && h->kept == h->limit)
        (void)snprintf(
            why, sizeof why,
            "None for step %lld of %lld: the writer keeps the last %ld steps. Create "
            "it with a larger num_keep_alive_refs to use older ones",
            (long long)step, (long long)h->length, (long)h->limit);
    else
        (void)snprintf(why, sizeof why, "None for step %lld, which has no value in this column",
                       (long long)step);
    PyObject *last = PyTuple_Pack(1, key);
    PyObject *path = last == NULL ? NULL : PySequence_Concat(h->path, last);
    if (path != NULL) core_column_refuse_none(path, why);
    Py_XDECREF(last);
    Py_XDECREF(path);
    return NULL;
}

/* Returns a column of `count` steps from `start`. `missing` is the number of requested steps
 * that are before the first step: ValueError if it is not 0. */
static PyObject *history_part(core_history *h, PyObject *key, int64_t missing, int64_t start,
                              int64_t count, int64_t step, bool squeeze)
{
    if (missing > 0) return refuse_step(h, key, -1);
    core_column *c = core_column_new(h->state, (Py_ssize_t)count, squeeze);
    if (c == NULL) return NULL;
    for (int64_t i = 0; i < count; i++) {
        int64_t cell = cell_at(h, start + i * step);
        if (cell < 0) {
            Py_DECREF(c);
            return refuse_step(h, key, start + i * step);
        }
        c->refs[i] = (rp_ref){h->column, (uint64_t)cell};
    }
    return (PyObject *)c;
}

/* Reads the number of a step. A negative number counts from the end, and may be before the
 * first step. */
static int history_index(const core_history *h, PyObject *key, int64_t *step)
{
    Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred()) return -1;
    *step = index < 0 ? index + h->length : index;
    if (index < h->length) return 0;
    PyErr_Format(PyExc_IndexError, "list index out of range: step %zd of %lld", index,
                 (long long)h->length);
    return -1;
}

/* Returns a column for a slice. As with a list, except that a start before the first step is an
 * error: the last five steps of three steps do not exist. */
static PyObject *history_slice(core_history *h, PyObject *slice)
{
    Py_ssize_t start, stop, step, missing = 0;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return NULL;
    bool has_start = ((PySliceObject *)slice)->start != Py_None;
    if (start < -PY_SSIZE_T_MAX) start = -PY_SSIZE_T_MAX;
    if (has_start && step > 0 && start < -h->length) missing = -(start + (Py_ssize_t)h->length);
    Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)h->length, &start, &stop, step);
    return history_part(h, slice, missing, start, count, step, false);
}

/* Returns a column of the steps with these numbers. */
static PyObject *history_pick(core_history *h, PyObject *list)
{
    PyObject *numbers = PyList_AsTuple(
        list); /* a copy: reading a number may run Python, which may change the list */
    if (numbers == NULL) return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(numbers), done = 0;
    int64_t none = 0; /* a step without a value; has_none: there is one */
    bool has_none = false;
    core_column *c = core_column_new(h->state, count, false);
    for (; c != NULL && done < count; done++) {
        int64_t step, cell;
        if (history_index(h, PyTuple_GET_ITEM(numbers, done), &step) < 0) break;
        cell = cell_at(h, step);
        if (cell < 0 && !has_none) none = step;
        if (cell < 0) has_none = true;
        c->refs[done] = (rp_ref){h->column, (uint64_t)cell};
    }
    Py_DECREF(numbers);
    if (c == NULL || done < count) {
        Py_XDECREF(c);
        return NULL;
    }
    if (!has_none) return (PyObject *)c;
    Py_DECREF(c);
    return refuse_step(h, list, none);
}

static PyObject *history_subscript(core_history *h, PyObject *key)
{
    int64_t step;
    if (PySlice_Check(key)) return history_slice(h, key);
    if (core_column_is_index(key)) {
        if (history_index(h, key, &step) < 0) return NULL;
        return history_part(h, key, 0, step, 1, 1, true);
    }
    if (PyList_Check(key)) return history_pick(h, key);
    PyErr_Format(PyExc_TypeError, "_ColumnHistory indices must be integers or slices, not %R",
                 (PyObject *)Py_TYPE(key));
    return NULL;
}

static Py_ssize_t history_length(core_history *h)
{
    return (Py_ssize_t)h->length;
}

static PyObject *history_list(core_history *h)
{
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list != NULL && i < h->length; i++) {
        int64_t cell = cell_at(h, i);
        PyObject *item = Py_None;
        if (cell >= 0)
            item = core_cell_new(h->state, (rp_ref){h->column, (uint64_t)cell});
        else
            Py_INCREF(item);
        if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *history_iter(core_history *h)
{
    PyObject *list = history_list(h);
    if (list == NULL) return NULL;
    PyObject *iterator = PyObject_GetIter(list);
    Py_DECREF(list);
    return iterator;
}

static PyObject *history_repr(core_history *h)
{
    return PyUnicode_FromFormat("ColumnHistory(path=%R, steps=%lld)", h->path,
                                (long long)h->length);
}

static PyObject *history_path(core_history *h, PyObject *unused)
{
    (void)unused;
    Py_INCREF(h->path);
    return h->path;
}

static PyObject *history_can_set_last(core_history *h, void *unused)
{
    (void)unused;
    const int64_t *last = core_history_last(h);
    return PyBool_FromLong(last != NULL && *last < 0);
}

static PyMethodDef history_methods[] = {
    {"path", CORE_METHOD(history_path), METH_NOARGS,
     "path($self, /)\n--\n\nReturns the keys and indices that lead to this leaf."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef history_properties[] = {
    {"can_set_last", (getter)history_can_set_last, NULL,
     "True if the latest step has no value yet.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef history_members[] = {
    {"_number", T_UINT, offsetof(core_history, column), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMappingMethods history_mapping = {
    .mp_length = (lenfunc)history_length,
    .mp_subscript = (binaryfunc)history_subscript,
};

PyTypeObject core_ColumnHistory = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.ColumnHistory",
    .tp_basicsize = sizeof(core_history),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The values of one leaf, by step.\n\n"
              "Index it by an int, a slice or a list of ints to get a TrajectoryColumn. Steps\n"
              "count from the beginning of the episode, even if early ones are no longer kept.",
    .tp_dealloc = (destructor)history_dealloc,
    .tp_iter = (getiterfunc)history_iter,
    .tp_repr = (reprfunc)history_repr,
    .tp_as_mapping = &history_mapping,
    .tp_methods = history_methods,
    .tp_getset = history_properties,
    .tp_members = history_members,
};
