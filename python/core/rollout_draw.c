/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.RolloutDraw: the groups of a draw. Arrays of items refer to its memory, and are
 * read-only; ragged batches are copies. */
#define PY_SSIZE_T_CLEAN
#include "rollouts.h"

#include <structmember.h>

typedef struct draw_object {
    PyObject_HEAD
    rp_rollouts_draw *draw;
} draw_object;

PyObject *core_rollout_draw(rp_rollouts_draw *draw)
{
    draw_object *self = PyObject_New(draw_object, &core_RolloutDraw);

    if (self == NULL)
        rp_rollouts_draw_free(draw);
    else
        self->draw = draw;
    return (PyObject *)self;
}

static void draw_dealloc(draw_object *self)
{
    rp_rollouts_draw_free(self->draw);
    PyObject_Free(self);
}

/* Finds a group. NULL with IndexError. */
static const rp_rollouts_group *group_at(const draw_object *self, Py_ssize_t index)
{
    if (index >= 0 && (size_t)index < self->draw->group_count)
        return &self->draw->groups[index];
    PyErr_SetString(PyExc_IndexError, "the draw has no such group");
    return NULL;
}

static PyObject *draw_group(draw_object *self, PyObject *arg)
{
    Py_ssize_t index = PyNumber_AsSsize_t(arg, PyExc_IndexError);
    const rp_rollouts_group *g;

    if (index == -1 && PyErr_Occurred()) return NULL;
    g = group_at(self, index);
    if (g == NULL) return NULL;
    return Py_BuildValue("(s#LLs)", g->name.data, (Py_ssize_t)g->name.size,
                         (long long)g->first_version, (long long)g->last_version,
                         rp_rollout_fate_name(g->state));
}

/* Makes an array of a column that refers to the memory of the draw. */
static PyObject *array_of(draw_object *self, const rp_tensor *tensor)
{
    npy_intp dims[RP_MAX_RANK], size = 1;
    PyArray_Descr *descr = core_descr(tensor->dtype);
    PyObject *array;

    if (descr == NULL) return NULL;
    for (int i = 0; i < tensor->shape.rank; i++) {
        dims[i] = (npy_intp)tensor->shape.dims[i];
        size *= dims[i];
    }
    if (size == 0)
        return PyArray_NewFromDescr(&PyArray_Type, descr, tensor->shape.rank, dims, NULL, NULL,
                                    0, NULL);
    array = PyArray_NewFromDescr(&PyArray_Type, descr, tensor->shape.rank, dims, NULL,
                                 (void *)(uintptr_t)tensor->data, NPY_ARRAY_C_CONTIGUOUS, NULL);
    if (array == NULL) return NULL;
    PyArray_UpdateFlags((PyArrayObject *)array, NPY_ARRAY_ALIGNED);
    Py_INCREF(self);
    if (PyArray_SetBaseObject((PyArrayObject *)array, (PyObject *)self) != 0) Py_CLEAR(array);
    return array;
}

static PyObject *columns_of(draw_object *self, const rp_rollout_item *item)
{
    PyObject *dict = PyDict_New();

    for (size_t i = 0; dict != NULL && i < item->column_count; i++) {
        const rp_rollout_column *c = &item->columns[i];
        PyObject *name = PyUnicode_DecodeUTF8(c->name.data, (Py_ssize_t)c->name.size, NULL);
        PyObject *array = name != NULL ? array_of(self, &c->tensor) : NULL;

        if (array == NULL || PyDict_SetItem(dict, name, array) != 0) Py_CLEAR(dict);
        Py_XDECREF(name);
        Py_XDECREF(array);
    }
    return dict;
}

static PyObject *draw_item(draw_object *self, PyObject *args)
{
    const rp_rollouts_group *group;
    const rp_rollout_item *item;
    Py_ssize_t index, place;

    if (!PyArg_ParseTuple(args, "nn", &index, &place)) return NULL;
    group = group_at(self, index);
    if (group == NULL) return NULL;
    if (place < 0 || (size_t)place >= self->draw->group_size) {
        PyErr_SetString(PyExc_IndexError, "the group has no such item");
        return NULL;
    }
    item = group->items[place];
    if (item == NULL) Py_RETURN_NONE;
    return Py_BuildValue("(LLN)", (long long)item->first_version, (long long)item->last_version,
                         columns_of(self, item));
}

/* The items [first, last) of all groups, one group after the other, and the name of a column.
 */
typedef struct choice {
    rp_string name;
    const rp_rollout_item **items; /* from PyMem_RawMalloc() */
    size_t count;
} choice;

static int choose(const draw_object *self, PyObject *args, choice *out)
{
    size_t all = self->draw->group_count * self->draw->group_size;
    Py_ssize_t first, last, size;

    if (!PyArg_ParseTuple(args, "s#nn", &out->name.data, &size, &first, &last)) return -1;
    out->name.size = (size_t)size;
    if (first < 0 || last < first || (size_t)last > all) {
        PyErr_SetString(PyExc_IndexError, "the draw has no such items");
        return -1;
    }
    out->count = (size_t)(last - first);
    out->items = PyMem_RawMalloc((out->count + 1) * sizeof *out->items);
    if (out->items == NULL) return PyErr_NoMemory() ? 0 : -1;
    for (size_t i = 0; i < out->count; i++) {
        size_t at = (size_t)first + i;

        out->items[i] =
            self->draw->groups[at / self->draw->group_size].items[at % self->draw->group_size];
        if (out->items[i] != NULL) continue;
        PyErr_SetString(PyExc_ValueError, "an item of the group is not there yet");
        PyMem_RawFree(out->items);
        return -1;
    }
    return 0;
}

static PyObject *draw_ragged(draw_object *self, PyObject *args)
{
    PyObject *values = NULL, *offsets = NULL;
    rp_rollout_ragged ragged;
    rp_error err = {0};
    npy_intp length;
    rp_status st;
    choice c;

    if (choose(self, args, &c) != 0) return NULL;
    st = rp_rollout_ragged_measure(c.items, c.count, c.name, &ragged, &err);
    if (st != RP_OK) {
        core_raise(st, &err);
        goto out;
    }
    length = (npy_intp)c.count + 1;
    values = core_array_new(ragged.dtype, &ragged.shape);
    offsets = PyArray_SimpleNew(1, &length, NPY_INT64);
    if (values == NULL || offsets == NULL) {
        Py_CLEAR(values);
        goto out;
    }
    Py_BEGIN_ALLOW_THREADS;
    rp_rollout_ragged_fill(c.items, c.name, &ragged, PyArray_DATA((PyArrayObject *)values),
                           PyArray_DATA((PyArrayObject *)offsets));
    Py_END_ALLOW_THREADS;
out:
    PyMem_RawFree(c.items);
    if (values == NULL) {
        Py_XDECREF(offsets);
        return NULL;
    }
    return Py_BuildValue("(NNs)", values, offsets, rp_dtype_name(ragged.dtype));
}

/* The rows of a column; -1 if the item has none. */
static int64_t rows_of(const rp_rollout_item *item, rp_string name)
{
    for (size_t i = 0; i < item->column_count; i++) {
        const rp_rollout_column *c = &item->columns[i];

        if (c->name.size == name.size && memcmp(c->name.data, name.data, name.size) == 0)
            return c->tensor.shape.rank > 0 ? c->tensor.shape.dims[0] : 1;
    }
    return -1;
}

static PyObject *draw_pack(draw_object *self, PyObject *args)
{
    PyObject *list = NULL, *rest = NULL;
    int64_t *offsets;
    long long budget;
    size_t *first, batches;
    rp_error err = {.code = RP_NOT_FOUND};
    choice c;

    if (!PyArg_ParseTuple(args, "OL", &rest, &budget)) return NULL;
    if (choose(self, rest, &c) != 0) return NULL;
    offsets = PyMem_RawMalloc((c.count + 1) * sizeof *offsets);
    first = PyMem_RawMalloc((c.count + 1) * sizeof *first);
    if (offsets == NULL || first == NULL) {
        PyErr_NoMemory();
        goto out;
    }
    offsets[0] = 0;
    for (size_t i = 0; i < c.count; i++) {
        int64_t rows = rows_of(c.items[i], c.name);

        if (rows < 0) {
            (void)snprintf(err.text, sizeof err.text,
                           "item %zu of the batch has no column '%s'", i, c.name.data);
            core_raise(RP_NOT_FOUND, &err); /* as ragged() */
            goto out;
        }
        if (__builtin_add_overflow(offsets[i], rows, &offsets[i + 1])) {
            PyErr_Format(PyExc_OverflowError, "the items have too many rows of column '%s'",
                         c.name.data);
            goto out;
        }
    }
    batches = rp_rollout_pack(offsets, c.count, budget, first);
    list = PyList_New((Py_ssize_t)batches + 1);
    for (size_t i = 0; list != NULL && i <= batches; i++) {
        PyObject *number = PyLong_FromSize_t(first[i]);

        if (number == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, number);
    }
out:
    PyMem_RawFree(offsets);
    PyMem_RawFree(first);
    PyMem_RawFree(c.items);
    return list;
}

static PyObject *get_lease(draw_object *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->draw->lease);
}

static PyObject *get_version(draw_object *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(self->draw->version);
}

static PyObject *get_expires(draw_object *self, void *unused)
{
    (void)unused;
    return PyFloat_FromDouble((double)self->draw->expires_ns * 1e-9);
}

static PyObject *get_group_size(draw_object *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(self->draw->group_size);
}

static PyObject *get_group_count(draw_object *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(self->draw->group_count);
}

static PyGetSetDef draw_getset[] = {
    {"lease", (getter)get_lease, NULL, "The number of the lease; 0: none.", NULL},
    {"version", (getter)get_version, NULL, "The version at the time of the draw.", NULL},
    {"expires", (getter)get_expires, NULL, "When the lease ends, in seconds since 1970.", NULL},
    {"group_size", (getter)get_group_size, NULL, "Items of a group.", NULL},
    {"group_count", (getter)get_group_count, NULL, "Groups.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef draw_methods[] = {
    {"group", (PyCFunction)draw_group, METH_O,
     "group($self, index, /)\n--\n\nReturns (name, first version, last version, state)."},
    {"item", (PyCFunction)draw_item, METH_VARARGS,
     "item($self, group, index, /)\n--\n\nReturns (first version, last version, columns), or "
     "None."},
    {"ragged", (PyCFunction)draw_ragged, METH_VARARGS,
     "ragged($self, name, first, last, /)\n--\n\nReturns the values and the offsets of a "
     "column "
     "of the items [first, last), and the name of its dtype."},
    {"pack", (PyCFunction)draw_pack, METH_VARARGS,
     "pack($self, items, budget, /)\n--\n\nDivides the items (name, first, last) into batches. "
     "Returns where each begins, and the end."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject core_RolloutDraw = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.RolloutDraw",
    .tp_basicsize = sizeof(draw_object),
    .tp_dealloc = (destructor)draw_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The groups of a draw.",
    .tp_methods = draw_methods,
    .tp_getset = draw_getset,
};
