/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.TrajectoryColumn; see trajectory_column.h.
 *
 * Invariants:
 *   J1  with `objects`, Py_SIZE() is 0 and `state` is NULL; without, `refs` are cells of the
 *       writer of `state`;
 *   J2  a column never holds None;
 *   J3  a squeezed column that was made here has one row.
 *
 * A column does not keep its cells alive: they may expire while the column exists, so each use
 * looks them up again. */
#include "trajectory_column.h"
#include "cell.h"

#include <structmember.h>

static core_column *column_alloc(PyTypeObject *type, writer_state *state, Py_ssize_t count,
                                 bool squeeze)
{
    core_column *c = type == &core_TrajectoryColumn
                         ? PyObject_NewVar(core_column, type, count)
                         : (core_column *)type->tp_alloc(type, count);
    if (c == NULL) return NULL;
    c->state = state == NULL ? NULL : writer_state_ref(state);
    assert(state != NULL || count == 0); /* J1 */
    c->objects = NULL;
    c->squeeze = squeeze;
    return c;
}

static void column_dealloc(core_column *c)
{
    writer_state_unref(c->state);
    Py_XDECREF(c->objects);
    Py_TYPE(c)->tp_free((PyObject *)c);
}

core_column *core_column_new(writer_state *state, Py_ssize_t count, bool squeeze)
{
    assert(state != NULL && count >= 0 && (!squeeze || count == 1));
    return column_alloc(&core_TrajectoryColumn, state, count, squeeze);
}

void core_column_refuse_none(PyObject *path, const char *got)
{
    PyErr_Format(PyExc_ValueError,
                 "TrajectoryColumns cannot contain any None data references: "
                 "TrajectoryColumn at path %R got %s",
                 path, got);
}

/* Makes a column of objects. If all objects are cells of one writer, it is a column of cells
 * (J1). */
static PyObject *column_of_objects(PyTypeObject *type, PyObject *tuple, bool squeeze)
{
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    writer_state *state = NULL;
    bool all_cells = count > 0;
    for (Py_ssize_t i = 0; i < count && all_cells; i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        all_cells = Py_TYPE(item) == &core_WeakCellRef;
        if (!all_cells) break;
        if (i == 0) state = ((core_cell *)item)->state;
        all_cells = state == ((core_cell *)item)->state;
    }
    core_column *c =
        column_alloc(type, all_cells ? state : NULL, all_cells ? count : 0, squeeze);
    if (c == NULL) return NULL;
    if (all_cells) {
        for (Py_ssize_t i = 0; i < count; i++)
            c->refs[i] = ((core_cell *)PyTuple_GET_ITEM(tuple, i))->ref;
    } else {
        c->objects = tuple;
        Py_INCREF(tuple);
    }
    return (PyObject *)c;
}

static PyObject *column_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data_references", "squeeze", "path", NULL};
    PyObject *given, *path = Py_None, *made = NULL;
    int squeeze = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$pO:TrajectoryColumn", names, &given,
                                     &squeeze, &path))
        return NULL;
    PyObject *tuple = PySequence_Tuple(given);
    if (tuple == NULL) return NULL;
    if (squeeze && PyTuple_GET_SIZE(tuple) != 1) {
        PyErr_Format(
            PyExc_ValueError,
            "Columns must contain exactly one data reference when squeeze set, got %zd",
            PyTuple_GET_SIZE(tuple));
        goto out;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (PyTuple_GET_ITEM(tuple, i) == Py_None) {
            char got[48];
            (void)snprintf(got, sizeof got, "None as reference %zd", i);
            core_column_refuse_none(path, got);
            goto out;
        }
    made = column_of_objects(type, tuple, squeeze != 0);
out:
    Py_DECREF(tuple);
    return made;
}

static Py_ssize_t column_length(core_column *c)
{
    return c->objects != NULL ? PyTuple_GET_SIZE(c->objects) : Py_SIZE(c);
}

/* Returns the cells or objects of a column, as a tuple. */
static PyObject *column_references(core_column *c, void *unused)
{
    (void)unused;
    if (c->objects != NULL) {
        Py_INCREF(c->objects);
        return c->objects;
    }
    PyObject *tuple = PyTuple_New(Py_SIZE(c));
    assert(Py_SIZE(c) == 0 || c->state != NULL); /* J1 */
    for (Py_ssize_t i = 0; tuple != NULL && i < Py_SIZE(c); i++) {
        PyObject *cell = core_cell_new(c->state, c->refs[i]);
        if (cell == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, cell);
    }
    return tuple;
}

static PyObject *column_iter(core_column *c)
{
    PyObject *tuple = column_references(c, NULL);
    if (tuple == NULL) return NULL;
    PyObject *iterator = PyObject_GetIter(tuple);
    Py_DECREF(tuple);
    return iterator;
}

/* Makes a column of `count` rows: start, start + step, ... */
static PyObject *column_part(core_column *c, Py_ssize_t start, Py_ssize_t count,
                             Py_ssize_t step, bool squeeze)
{
    assert(count >= 0 && (count == 0 || (start >= 0 && start < column_length(c))));
    core_column *part =
        column_alloc(&core_TrajectoryColumn, c->state, c->objects == NULL ? count : 0, squeeze);
    if (part == NULL) return NULL;
    if (c->objects == NULL) {
        for (Py_ssize_t i = 0; i < count; i++) part->refs[i] = c->refs[start + i * step];
        return (PyObject *)part;
    }
    part->objects = PyTuple_New(count);
    for (Py_ssize_t i = 0; part->objects != NULL && i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(c->objects, start + i * step);
        Py_INCREF(item);
        PyTuple_SET_ITEM(part->objects, i, item);
    }
    if (part->objects == NULL) Py_CLEAR(part);
    return (PyObject *)part;
}

static int column_index(PyObject *key, Py_ssize_t length, Py_ssize_t *index)
{
    *index = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (*index == -1 && PyErr_Occurred()) return -1;
    if (*index < 0) *index += length;
    if (*index >= 0 && *index < length) return 0;
    PyErr_SetString(PyExc_IndexError, "tuple index out of range");
    return -1;
}

/* Makes a column of the rows with these numbers. The list is copied, since reading a number may
 * run Python code, which may change the list. */
static PyObject *column_pick(core_column *c, PyObject *list)
{
    PyObject *numbers = PyList_AsTuple(list), *made = NULL;
    PyObject *all = numbers == NULL ? NULL : column_references(c, NULL);
    Py_ssize_t count = numbers == NULL ? 0 : PyTuple_GET_SIZE(numbers), at;
    PyObject *tuple = all == NULL ? NULL : PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        if (column_index(PyTuple_GET_ITEM(numbers, i), PyTuple_GET_SIZE(all), &at) < 0) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(PyTuple_GET_ITEM(all, at)));
    }
    if (tuple != NULL) made = column_of_objects(&core_TrajectoryColumn, tuple, false);
    Py_XDECREF(numbers);
    Py_XDECREF(all);
    Py_XDECREF(tuple);
    return made;
}

bool core_column_is_index(PyObject *key)
{
    return PyLong_Check(key) || PyArray_IsScalar(key, Integer);
}

static PyObject *column_subscript(core_column *c, PyObject *key)
{
    Py_ssize_t length = column_length(c), start, stop, step;
    if (core_column_is_index(key)) {
        if (column_index(key, length, &start) < 0) return NULL;
        return column_part(c, start, 1, 1, true);
    }
    if (PySlice_Check(key)) {
        if (PySlice_Unpack(key, &start, &stop, &step) < 0) return NULL;
        Py_ssize_t count = PySlice_AdjustIndices(length, &start, &stop, step);
        return column_part(c, start, count, step, false);
    }
    if (PyList_Check(key)) return column_pick(c, key);
    PyErr_Format(PyExc_TypeError, "TrajectoryColumn indices must be integers or slices, not %R",
                 (PyObject *)Py_TYPE(key));
    return NULL;
}

/* Returns an attribute of the first object; the other objects are assumed to have the same. */
static PyObject *column_first(core_column *c, const char *attribute)
{
    assert(c->objects != NULL);
    if (PyTuple_GET_SIZE(c->objects) > 0)
        return PyObject_GetAttrString(PyTuple_GET_ITEM(c->objects, 0), attribute);
    PyErr_SetString(PyExc_IndexError, "tuple index out of range");
    return NULL;
}

static int column_spec(core_column *c, rp_spec *spec)
{
    if (Py_SIZE(c) > 0) return core_cell_spec(c->state, c->refs[0], spec);
    PyErr_SetString(PyExc_IndexError, "tuple index out of range");
    return -1;
}

static PyObject *column_shape(core_column *c, void *unused)
{
    rp_spec spec;
    (void)unused;
    if (c->objects == NULL) {
        if (column_spec(c, &spec) < 0) return NULL;
        return core_shape_tuple(&spec.shape, c->squeeze ? -1 : Py_SIZE(c));
    }
    PyObject *shape = column_first(c, "shape");
    PyObject *inner = shape == NULL ? NULL : PySequence_Tuple(shape), *whole = NULL;
    Py_XDECREF(shape);
    if (inner == NULL || c->squeeze) return inner;
    PyObject *outer = Py_BuildValue("(n)", PyTuple_GET_SIZE(c->objects));
    if (outer != NULL) whole = PySequence_Concat(outer, inner);
    Py_XDECREF(outer);
    Py_DECREF(inner);
    return whole;
}

static PyObject *column_dtype(core_column *c, void *unused)
{
    rp_spec spec;
    (void)unused;
    if (c->objects != NULL) return column_first(c, "dtype");
    return column_spec(c, &spec) < 0 ? NULL : (PyObject *)core_descr(spec.dtype);
}

static PyObject *numpy_stack(PyObject *arrays)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL) return NULL;
    PyObject *array = PyObject_CallMethod(numpy, "stack", "(O)", arrays);
    Py_DECREF(numpy);
    return array;
}

/* Calls numpy.stack() with the rows: for objects, and for rows of different specs, for which it
 * raises the error. */
static PyObject *column_stack(core_column *c)
{
    PyObject *all = column_references(c, NULL), *array = NULL;
    PyObject *arrays = all == NULL ? NULL : PyList_New(0);
    for (Py_ssize_t i = 0; arrays != NULL && i < PyTuple_GET_SIZE(all); i++) {
        PyObject *one = PyObject_CallMethod(PyTuple_GET_ITEM(all, i), "numpy", NULL);
        if (one == NULL || PyList_Append(arrays, one) < 0) Py_CLEAR(arrays);
        Py_XDECREF(one);
    }
    if (arrays != NULL && c->squeeze && PyList_GET_SIZE(arrays) == 1) {
        array = PyList_GET_ITEM(arrays, 0);
        Py_INCREF(array);
    } else if (arrays != NULL) {
        array = numpy_stack(arrays);
    }
    Py_XDECREF(arrays);
    Py_XDECREF(all);
    return array;
}

/* 1 if a row has expired, 0 if not, -1 with an exception. */
static int has_expired(core_column *c)
{
    if (c->objects == NULL) {
        if (c->state == NULL) return 0; /* it is empty */
        if (writer_settle(c->state) < 0) return -1;
        for (Py_ssize_t i = 0; i < Py_SIZE(c); i++)
            if (!core_cell_exists(c->state, c->refs[i])) return 1;
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c->objects); i++) {
        PyObject *value = PyObject_GetAttrString(PyTuple_GET_ITEM(c->objects, i), "expired");
        int is = value == NULL ? -1 : PyObject_IsTrue(value);
        Py_XDECREF(value);
        if (is != 0) return is;
    }
    return 0;
}

static PyObject *column_numpy(core_column *c, PyObject *unused)
{
    rp_spec spec, other;
    (void)unused;
    int expired = has_expired(c);
    if (expired != 0) {
        if (expired > 0)
            PyErr_SetString(PyExc_RuntimeError,
                            "Cannot convert TrajectoryColumn with expired data references to "
                            "numpy array.");
        return NULL;
    }
    if (c->objects != NULL || Py_SIZE(c) == 0) return column_stack(c);
    if (column_spec(c, &spec) < 0) return NULL;
    for (Py_ssize_t i = 1; i < Py_SIZE(c); i++) {
        if (c->refs[i].column == c->refs[0].column) continue;
        if (core_cell_spec(c->state, c->refs[i], &other) < 0) return NULL;
        if (other.dtype != spec.dtype || !rp_shape_equal(&other.shape, &spec.shape))
            return column_stack(c);
    }
    return core_cells_copy(c->state, &spec, c->refs, Py_SIZE(c), c->squeeze != 0);
}

static PyMethodDef column_methods[] = {
    {"numpy", CORE_METHOD(column_numpy), METH_NOARGS,
     "numpy($self, /)\n--\n\n"
     "Returns a copy of the rows, stacked; for a squeezed column, of its only row.\n\n"
     "RuntimeError if a row has expired."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef column_properties[] = {
    {"shape", (getter)column_shape, NULL,
     "The shape: the number of rows first, unless the column is squeezed.", NULL},
    {"dtype", (getter)column_dtype, NULL, "The dtype of its rows.", NULL},
    {"_data_references", (getter)column_references, NULL, "Its cells.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef column_members[] = {
    {"is_squeezed", T_BOOL, offsetof(core_column, squeeze), 0,
     "Whether it is one row, shown to the reader without the row dimension."},
    {NULL, 0, 0, 0, NULL},
};

static PyMappingMethods column_mapping = {
    .mp_length = (lenfunc)column_length,
    .mp_subscript = (binaryfunc)column_subscript,
};

PyTypeObject core_TrajectoryColumn = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.TrajectoryColumn",
    .tp_basicsize = offsetof(core_column, refs),
    .tp_itemsize = sizeof(rp_ref),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc =
        "TrajectoryColumn(data_references, *, squeeze=False, path=None)\n--\n\n"
        "A column of an item: rows that were appended to a writer.\n\n"
        "Made by indexing `writer.history`. It has a length, and can be iterated over, cell "
        "by\n"
        "cell. Indexing it by a slice or a list of ints makes a column of these rows; an int\n"
        "makes a squeezed column, which is one row without a row dimension.",
    .tp_new = column_new,
    .tp_dealloc = (destructor)column_dealloc,
    .tp_iter = (getiterfunc)column_iter,
    .tp_as_mapping = &column_mapping,
    .tp_methods = column_methods,
    .tp_getset = column_properties,
    .tp_members = column_members,
};
