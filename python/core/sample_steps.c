/* SPDX-License-Identifier: Apache-2.0 */
/* Converts lists of samples to Reverb's ReplaySample. Written in C, since in Python the
 * conversion took longer than all other work for a sample. */
#include "sample_steps.h"

typedef struct making {
    PyTypeObject *info_type, *sample_type; /* named tuples: subclasses of tuple */
    PyObject *structure;                   /* of the data; None: the data is a list */
    bool steps;
} making;

/* Makes a named tuple of the elements of a tuple. Takes `elements`, which may be NULL. */
static PyObject *named(PyTypeObject *type, PyObject *elements)
{
    PyObject *args = elements ? PyTuple_Pack(1, elements) : NULL;
    PyObject *made = args ? PyTuple_Type.tp_new(type, args, NULL) : NULL;

    Py_XDECREF(elements);
    Py_XDECREF(args);
    return made;
}

/* Makes ReplaySample(info, data). Takes `data`, a list or a tuple of leaves, or NULL. If it is
 * packed, it must be a tuple, or a list to which no other object refers: packing may run Python
 * code, which must not change it. */
static PyObject *replay_sample(const making *m, PyObject *info, PyObject *data)
{
    if (data && m->structure != Py_None) {
        assert(PyTuple_Check(data) || Py_REFCNT(data) == 1);
        PyObject *packed = core_structure_pack(m->structure, PySequence_Fast_ITEMS(data),
                                               PySequence_Fast_GET_SIZE(data));
        Py_DECREF(data);
        data = packed;
    }
    if (!data) return NULL;
    Py_INCREF(info);
    PyObject *pair = PyTuple_New(2);
    if (!pair) {
        Py_DECREF(info);
        Py_DECREF(data);
        return NULL;
    }
    PyTuple_SET_ITEM(pair, 0, info);
    PyTuple_SET_ITEM(pair, 1, data);
    return named(m->sample_type, pair);
}

/* Returns a view of one row, which is an array of rank 0 if the row is a scalar. */
static PyObject *row_of(PyArrayObject *array, Py_ssize_t row)
{
    PyArray_Descr *descr = PyArray_DESCR(array);
    char *data = PyArray_BYTES(array) + row * PyArray_STRIDES(array)[0];
    PyObject *view;

    assert(PyArray_NDIM(array) > 0 && row >= 0 && row < PyArray_DIM(array, 0));
    Py_INCREF(descr);
    view = PyArray_NewFromDescr(&PyArray_Type, descr, PyArray_NDIM(array) - 1,
                                PyArray_DIMS(array) + 1, PyArray_STRIDES(array) + 1, data,
                                PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE, NULL);
    if (!view) return NULL;
    Py_INCREF(array);
    if (PyArray_SetBaseObject((PyArrayObject *)view, (PyObject *)array) != 0) {
        Py_DECREF(view);
        return NULL;
    }
    return view;
}

static PyObject *row_list(PyObject *columns, Py_ssize_t row)
{
    Py_ssize_t count = PyTuple_GET_SIZE(columns);
    PyObject *list = PyList_New(count);

    for (Py_ssize_t i = 0; list && i < count; i++) {
        PyObject *view = row_of((PyArrayObject *)PyTuple_GET_ITEM(columns, i), row);
        if (!view)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, view);
    }
    return list;
}

/* Returns the number of steps of the columns; -1 with an exception if they differ in length. */
static Py_ssize_t step_count(PyObject *columns)
{
    Py_ssize_t rows = -1;

    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(columns); i++) {
        PyArrayObject *array = (PyArrayObject *)PyTuple_GET_ITEM(columns, i);
        Py_ssize_t its;
        if (!PyArray_Check(array)) {
            PyErr_SetString(PyExc_TypeError, "columns must be arrays");
            return -1;
        }
        its = PyArray_NDIM(array) > 0 ? PyArray_DIM(array, 0) : -1;
        if (i > 0 && its != rows) rows = -1;
        if (i == 0) rows = its;
        if (rows < 0) break;
    }
    if (rows < 0)
        PyErr_SetString(
            PyExc_ValueError,
            "Can't split non timestep trajectory into timesteps. Its columns differ "
            "in length: emit_timesteps=False gives them whole.");
    return rows;
}

static PyObject *one(const making *m, PyObject *found)
{
    PyObject *list, *columns, *info, *made = NULL;
    Py_ssize_t rows;

    if (!PyTuple_Check(found) || PyTuple_GET_SIZE(found) != 6 ||
        !PyList_Check(list = PyTuple_GET_ITEM(found, 5))) {
        PyErr_SetString(PyExc_TypeError, "a sample is a tuple of six");
        return NULL;
    }
    info = named(m->info_type, PyTuple_GetSlice(found, 0, 5));
    columns = info ? PyList_AsTuple(list) : NULL; /* a copy: packing may run Python */
    if (!columns) {
        Py_XDECREF(info);
        return NULL;
    }
    if (!m->steps) {
        made = replay_sample(m, info, Py_NewRef(m->structure == Py_None ? list : columns));
    } else if ((rows = step_count(columns)) >= 0 && (made = PyList_New(rows))) {
        for (Py_ssize_t i = 0; made && i < rows; i++) {
            PyObject *step = replay_sample(m, info, row_list(columns, i));
            if (!step)
                Py_CLEAR(made);
            else
                PyList_SET_ITEM(made, i, step);
        }
    }
    Py_DECREF(columns);
    Py_DECREF(info);
    return made;
}

PyObject *core_replay_samples(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    making m;
    PyObject *found, *list;
    int steps;

    (void)self;
    if (count != 5 || !PyList_Check(args[0]) || !PyType_Check(args[1]) ||
        !PyType_Check(args[2]) || !PyType_IsSubtype((PyTypeObject *)args[1], &PyTuple_Type) ||
        !PyType_IsSubtype((PyTypeObject *)args[2], &PyTuple_Type) ||
        (args[3] != Py_None && !PyObject_TypeCheck(args[3], &core_Structure))) {
        PyErr_SetString(PyExc_TypeError,
                        "replay_samples(found, SampleInfo, ReplaySample, structure, steps)");
        return NULL;
    }
    steps = PyObject_IsTrue(args[4]);
    if (steps < 0) return NULL;
    m = (making){.info_type = (PyTypeObject *)args[1],
                 .sample_type = (PyTypeObject *)args[2],
                 .structure = args[3],
                 .steps = steps != 0};
    found = PyList_AsTuple(args[0]);
    list = found ? PyList_New(PyTuple_GET_SIZE(found)) : NULL;
    for (Py_ssize_t i = 0; list && i < PyTuple_GET_SIZE(found); i++) {
        PyObject *made = one(&m, PyTuple_GET_ITEM(found, i));
        if (!made)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, made);
    }
    Py_XDECREF(found);
    return list;
}
