/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a replay buffer; see replay_columns.h.
 *
 * Invariants of a set of columns that was read:
 *   R1  row_bytes is the sum of `bytes` over all columns;
 *   R2  bytes is elements times the size of the dtype, and elements the product of dims. */
#include "replay_columns.h"

void core_replay_columns_clear(core_replay_columns *set)
{
    for (Py_ssize_t i = 0; i < set->count; i++) {
        Py_XDECREF(set->items[i].name);
        Py_XDECREF(set->items[i].descr);
    }
    PyMem_Free(set->items);
    set->items = NULL;
    set->count = 0;
}

/* Reads (name, dtype, shape, frame_count). */
static int read_column(PyObject *given, core_replay_column *c, rp_replay_column *out)
{
    PyObject *name, *shape;
    unsigned int frame_count;

    if (!PyArg_ParseTuple(given, "UO&O!I", &name, PyArray_DescrConverter, &c->descr,
                          &PyTuple_Type, &shape, &frame_count))
        return -1;
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name);
    c->name = name;
    if (PyDataType_REFCHK(c->descr) || PyDataType_ELSIZE(c->descr) <= 0) {
        PyErr_Format(PyExc_TypeError, "column '%U': a buffer cannot hold values of dtype %R",
                     name, c->descr);
        return -1;
    }
    if (PyDataType_ISBYTESWAPPED(c->descr)) { /* rows are stored in native byte order */
        Py_SETREF(c->descr, PyArray_DescrNewByteorder(c->descr, NPY_NATIVE));
        if (c->descr == NULL) return -1;
    }
    c->rank = (int)PyTuple_GET_SIZE(shape);
    if (c->rank > CORE_REPLAY_MAX_RANK) {
        PyErr_Format(PyExc_ValueError,
                     "column '%U' has %d dimensions; at most %d are supported", name, c->rank,
                     CORE_REPLAY_MAX_RANK);
        return -1;
    }
    c->elements = 1;
    for (int i = 0; i < c->rank; i++) {
        c->dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        if (c->dims[i] == -1 && PyErr_Occurred()) return -1;
        if (c->dims[i] < 1 || c->dims[i] > PY_SSIZE_T_MAX / 16 / c->elements) {
            PyErr_Format(PyExc_ValueError, "column '%U': no such dimension in a row: %zd", name,
                         c->dims[i]);
            return -1;
        }
        c->elements *= c->dims[i];
    }
    assert(c->elements > 0); /* R2 */
    c->bytes = (size_t)c->elements * (size_t)PyDataType_ELSIZE(c->descr);
    *out = (rp_replay_column){PyUnicode_AsUTF8(name), c->bytes, frame_count};
    return out->name == NULL ? -1 : 0;
}

int core_replay_columns_read(core_replay_columns *set, PyObject *columns, rp_replay_column *out)
{
    Py_ssize_t count = PyTuple_GET_SIZE(columns);

    if (count > RP_REPLAY_MAX_COLUMNS) {
        PyErr_Format(PyExc_ValueError, "there must be at most %d columns, got %zd",
                     RP_REPLAY_MAX_COLUMNS, count);
        return -1;
    }
    set->items = PyMem_Calloc((size_t)(count > 0 ? count : 1), sizeof(core_replay_column));
    if (set->items == NULL) return PyErr_NoMemory(), -1;
    set->count = count;
    set->row_bytes = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (read_column(PyTuple_GET_ITEM(columns, i), &set->items[i], &out[i]) < 0) return -1;
        set->row_bytes += set->items[i].bytes;
    }
    return 0;
}

/* Converts a value to an array of the column's dtype, C contiguous and in native byte order;
 * returns `value` itself if it is such an array. Numbers are converted if they keep their kind.
 */
static PyArrayObject *as_array(const core_replay_column *c, PyObject *value)
{
    PyArrayObject *any, *array;

    if (PyArray_Check(value)) {
        any = (PyArrayObject *)value;
        if (PyArray_ISCARRAY_RO(any) && (PyArray_DESCR(any) == c->descr ||
                                         PyArray_EquivTypes(PyArray_DESCR(any), c->descr))) {
            Py_INCREF(any);
            return any;
        }
        Py_INCREF(any);
    } else {
        any = (PyArrayObject *)PyArray_FromAny(value, NULL, 0, 0, 0, NULL);
        if (any == NULL) return NULL;
    }
    if (!PyArray_CanCastArrayTo(any, c->descr, NPY_SAME_KIND_CASTING)) {
        PyErr_Format(PyExc_TypeError, "column '%U' has dtype %S; %S cannot become that",
                     c->name, c->descr, PyArray_DESCR(any));
        Py_DECREF(any);
        return NULL;
    }
    Py_INCREF(c->descr);
    array = (PyArrayObject *)PyArray_FromArray(any, c->descr,
                                               NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST);
    Py_DECREF(any);
    return array;
}

/* True if `dims` are the dimensions of a row. Dimensions of size 1 are ignored in both. */
static bool fits(const core_replay_column *c, const npy_intp *dims, int rank)
{
    int i = 0, k = 0;

    for (;;) {
        while (i < rank && dims[i] == 1) i++;
        while (k < c->rank && c->dims[k] == 1) k++;
        if (i == rank || k == c->rank) return i == rank && k == c->rank;
        if (dims[i++] != c->dims[k++]) return false;
    }
}

/* The number of rows of an array; -1 for one row without a row dimension; -2 with an
 * exception. */
static npy_intp rows_in(const core_replay_column *c, PyArrayObject *array)
{
    int rank = PyArray_NDIM(array);
    const npy_intp *dims = PyArray_DIMS(array);
    PyObject *got, *wanted;

    if (rank == c->rank && PyArray_CompareLists(dims, c->dims, rank)) return -1;
    if (rank > 0 && fits(c, dims + 1, rank - 1)) return dims[0];
    got = PyArray_IntTupleFromIntp(rank, dims);
    wanted = PyArray_IntTupleFromIntp(c->rank, c->dims);
    if (got != NULL && wanted != NULL)
        PyErr_Format(PyExc_ValueError,
                     "column '%U': a row has shape %R, or %R behind the number of rows, got %R",
                     c->name, wanted, wanted, got);
    Py_XDECREF(got);
    Py_XDECREF(wanted);
    return -2;
}

void core_replay_rows_free(core_replay_rows *r)
{
    for (Py_ssize_t i = 0; i < r->array_count; i++) Py_DECREF(r->arrays[i]);
}

/* core_replay_rows_from() for values to which the caller holds references. */
static int rows_from(const core_replay_columns *set, PyObject *const *values,
                     core_replay_rows *r)
{
    assert(set->count <= RP_REPLAY_MAX_COLUMNS);
    r->count = 1;
    for (r->array_count = 0; r->array_count < set->count;) {
        const core_replay_column *c = &set->items[r->array_count];
        PyArrayObject *array = as_array(c, values[r->array_count]);
        npy_intp count;

        if (array == NULL) goto fail;
        r->data[r->array_count] = PyArray_DATA(array);
        r->arrays[r->array_count++] = array;
        count = rows_in(c, array);
        if (count == -2) goto fail;
        if (count == -1) count = 1;
        if (r->array_count == 1) {
            r->count = count;
        } else if (count != r->count) {
            PyErr_Format(PyExc_ValueError, "column '%U' has %zd rows, column '%U' has %zd",
                         c->name, (Py_ssize_t)count, set->items[0].name, (Py_ssize_t)r->count);
            goto fail;
        }
    }
    return 0;
fail:
    core_replay_rows_free(r);
    return -1;
}

int core_replay_rows_from(const core_replay_columns *set, PyObject *const *values,
                          core_replay_rows *r)
{
    int result;

    for (Py_ssize_t i = 0; i < set->count; i++) Py_INCREF(values[i]);
    result = rows_from(set, values, r);
    for (Py_ssize_t i = 0; i < set->count; i++) Py_DECREF(values[i]);
    return result;
}

PyObject *core_replay_array_new(const core_replay_column *c, int type, npy_intp count)
{
    npy_intp dims[CORE_REPLAY_MAX_RANK + 1] = {count};
    PyArray_Descr *descr = c != NULL ? c->descr : PyArray_DescrFromType(type);

    if (descr == NULL) return NULL;
    if (c != NULL) {
        Py_INCREF(descr);
        memcpy(dims + 1, c->dims, (size_t)c->rank * sizeof *dims);
    }
    return PyArray_NewFromDescr(&PyArray_Type, descr, c != NULL ? c->rank + 1 : 1, dims, NULL,
                                NULL, 0, NULL);
}

/* Returns the caller's array of that name, borrowed. ValueError if its dtype or shape is not
 * that of a new one. */
static PyObject *given_array(PyObject *out, PyObject *name, const core_replay_column *c,
                             int type, npy_intp count)
{
    PyObject *obj = PyDict_GetItemWithError(out, name);
    PyArrayObject *array = (PyArrayObject *)obj;
    bool good;

    if (obj == NULL) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "out has no '%U'", name);
        return NULL;
    }
    good = PyArray_Check(obj) && PyArray_ISCARRAY(array) &&
           PyArray_NDIM(array) == (c != NULL ? c->rank : 0) + 1 &&
           PyArray_DIM(array, 0) == count;
    if (good && c != NULL)
        good = PyArray_EquivTypes(PyArray_DESCR(array), c->descr) &&
               memcmp(PyArray_DIMS(array) + 1, c->dims, (size_t)c->rank * sizeof *c->dims) == 0;
    else if (good)
        good = PyArray_TYPE(array) == type;
    if (good) return obj;
    PyErr_Format(PyExc_ValueError,
                 "out['%U'] must be a writable, C contiguous array of %zd rows as sample() "
                 "returns it",
                 name, (Py_ssize_t)count);
    return NULL;
}

PyObject *core_replay_array_for(PyObject *into, bool given, PyObject *name,
                                const core_replay_column *c, int type, npy_intp count)
{
    PyObject *array;

    if (given) {
        array = given_array(into, name, c, type, count);
        return array == NULL ? NULL : Py_NewRef(array);
    }
    array = core_replay_array_new(c, type, count);
    if (array != NULL && PyDict_SetItem(into, name, array) < 0) Py_CLEAR(array);
    return array;
}

void core_replay_arrays_free(core_replay_arrays *p)
{
    for (Py_ssize_t i = 0; i < p->count; i++) Py_DECREF(p->arrays[i]);
}

int core_replay_arrays_add(core_replay_arrays *p, PyObject *array)
{
    if (array == NULL) return -1;
    assert(p->count < RP_REPLAY_MAX_COLUMNS + 2);
    p->data[p->count] = PyArray_DATA((PyArrayObject *)array);
    p->arrays[p->count++] = array;
    return 0;
}

int core_replay_arrays_make(const core_replay_columns *set, core_replay_arrays *p,
                            PyObject *into, bool given, npy_intp count)
{
    for (p->count = 0; p->count < set->count;) {
        const core_replay_column *c = &set->items[p->count];
        if (core_replay_arrays_add(
                p, core_replay_array_for(into, given, c->name, c, 0, count)) < 0)
            return -1;
    }
    return 0;
}
