/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of any shapes, with one array for each column; see sample_arrays.h.
 *
 * First the arrays are allocated, with the GIL. Then all columns are decoded, without the GIL
 * if they are large. Strings are decoded into scratch memory first, since the bytes objects are
 * made with the GIL.
 *
 *   all shapes equal    array [count, ...]     shapes None
 *   otherwise           array [elements]       shapes [count, rank] */
#include "sample_arrays.h"

#include <string.h>

typedef struct stacked_column {
    bool is_even; /* all samples have the shape of the first */
    rp_trajectory_column first;
    size_t bytes;      /* of all samples */
    PyObject *values;  /* one dimension */
    PyObject *shapes;  /* or None */
    void *dst;         /* the memory of `values`, or scratch memory for strings */
    bool dst_is_owned; /* scratch memory */
} stacked_column;

typedef struct stacking {
    size_t count, column_count;
    const rp_trajectory **trajectories;
    stacked_column *columns;
    size_t bytes; /* of all columns */
} stacking;

static bool is_alike(const rp_trajectory *a, const rp_trajectory *b)
{
    size_t columns = rp_trajectory_column_count(a);

    if (rp_trajectory_column_count(b) != columns) return false;
    for (size_t i = 0; i < columns; i++) {
        rp_trajectory_column one = rp_trajectory_get_column(a, i);
        rp_trajectory_column other = rp_trajectory_get_column(b, i);

        if (one.dtype != other.dtype || one.shape.rank != other.shape.rank) return false;
    }
    return true;
}

size_t core_samples_alike(const rp_sample *samples, size_t count)
{
    size_t n = count > 0 ? 1 : 0;

    while (n < count && is_alike(samples[0].trajectory, samples[n].trajectory)) n++;
    return n;
}

/* Decodes one column: at once if it is even, otherwise one sample after the other. */
static rp_status decode_column(const stacking *s, size_t index, rp_decoder *decoder,
                               rp_error *err)
{
    const stacked_column *c = &s->columns[index];
    size_t at_once = c->is_even ? s->count : 1, offset = 0;
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < s->count; i += at_once) {
        const rp_trajectory *const *from = &s->trajectories[i];
        size_t bytes = c->bytes;
        uint8_t *dst = (uint8_t *)c->dst + offset;

        if (!c->is_even) bytes = rp_trajectory_get_column(*from, index).bytes;
        assert(offset + bytes <= c->bytes);
        if (c->first.dtype == RP_STRING)
            st = rp_decoder_stack_strings(decoder, from, at_once, index,
                                          (rp_string *)(void *)dst, bytes / sizeof(rp_string),
                                          err);
        else
            st = rp_decoder_stack(decoder, from, at_once, index, dst, bytes, err);
        offset += bytes;
    }
    return st;
}

static rp_status decode_columns(rp_decoder *decoder, const void *arg, rp_error *err)
{
    const stacking *s = arg;
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < s->column_count; i++)
        st = decode_column(s, i, decoder, err);
    return st;
}

/* Returns the shapes of a column: an array with a row for each sample. */
static PyObject *shapes_array(const stacking *s, size_t index)
{
    npy_intp dims[2] = {(npy_intp)s->count, s->columns[index].first.shape.rank};
    PyObject *array = PyArray_SimpleNew(2, dims, NPY_INT64);
    int64_t *rows;

    if (array == NULL) return NULL;
    rows = PyArray_DATA((PyArrayObject *)array);
    for (size_t i = 0; i < s->count; i++, rows += dims[1])
        memcpy(rows, rp_trajectory_get_column(s->trajectories[i], index).shape.dims,
               (size_t)dims[1] * sizeof *rows);
    return array;
}

/* Measures a column, and makes the memory that it is decoded into. */
static int plan_column(stacking *s, size_t index)
{
    stacked_column *c = &s->columns[index];
    rp_shape flat = {.rank = 1};

    c->is_even = true;
    c->first = rp_trajectory_get_column(s->trajectories[0], index);
    for (size_t i = 0; i < s->count; i++) {
        rp_trajectory_column own = rp_trajectory_get_column(s->trajectories[i], index);

        if (!rp_shape_equal(&own.shape, &c->first.shape)) c->is_even = false;
        c->bytes += own.bytes; /* at most 16 MiB, or one sample: core_kept_fitting() */
    }
    flat.dims[0] = (int64_t)(c->bytes / rp_dtype_size(c->first.dtype));
    c->values = core_array_new(c->first.dtype, &flat);
    c->shapes = c->is_even ? Py_NewRef(Py_None) : shapes_array(s, index);
    if (c->values == NULL || c->shapes == NULL) return -1;
    s->bytes += c->bytes;
    c->dst = PyArray_DATA((PyArrayObject *)c->values);
    if (c->first.dtype != RP_STRING) return 0;
    c->dst = PyMem_Calloc(c->bytes + 1, 1);
    c->dst_is_owned = true;
    if (c->dst != NULL) return 0;
    PyErr_NoMemory();
    return -1;
}

/* Makes strings of the scratch memory of a column, and gives an even column its shape. */
static PyObject *finish_column(const stacking *s, const stacked_column *c)
{
    npy_intp dims[RP_MAX_RANK + 1] = {(npy_intp)s->count};
    PyArray_Dims shape = {dims, c->first.shape.rank + 1};

    if (c->first.dtype == RP_STRING &&
        core_fill_strings(c->values, c->dst, c->bytes / sizeof(rp_string)) != 0)
        return NULL;
    if (!c->is_even) return Py_NewRef(c->values);
    for (int i = 0; i < c->first.shape.rank; i++)
        dims[i + 1] = (npy_intp)c->first.shape.dims[i];
    return PyArray_Newshape((PyArrayObject *)c->values, &shape, NPY_CORDER);
}

/* Fills arrays with one value for each sample. */
static PyObject *infos_tuple(const rp_sample *samples, size_t count)
{
    static const int types[] = {NPY_UINT64, NPY_DOUBLE, NPY_INT64, NPY_DOUBLE, NPY_INT32};
    PyObject *tuple = PyTuple_New(7);
    void *to[5];
    npy_intp n = (npy_intp)count;

    if (tuple == NULL) return NULL;
    for (int i = 0; i < 5; i++) {
        PyObject *array = PyArray_SimpleNew(1, &n, types[i]);

        if (array == NULL) {
            Py_DECREF(tuple);
            return NULL;
        }
        to[i] = PyArray_DATA((PyArrayObject *)array);
        PyTuple_SET_ITEM(tuple, i, array);
    }
    for (size_t i = 0; i < count; i++) {
        ((uint64_t *)to[0])[i] = samples[i].key;
        ((double *)to[1])[i] = samples[i].probability;
        ((int64_t *)to[2])[i] = samples[i].table_size;
        ((double *)to[3])[i] = samples[i].priority;
        ((int32_t *)to[4])[i] = samples[i].times_sampled;
    }
    return tuple;
}

/* Returns the tuple of core_samples_stack(), after all columns were decoded. */
static PyObject *result_of(const stacking *s, const rp_sample *samples)
{
    PyObject *tuple = infos_tuple(samples, s->count);
    PyObject *arrays = PyList_New((Py_ssize_t)s->column_count);
    PyObject *shapes = PyList_New((Py_ssize_t)s->column_count);

    if (tuple == NULL || arrays == NULL || shapes == NULL) goto fail;
    for (size_t i = 0; i < s->column_count; i++) {
        PyObject *array = finish_column(s, &s->columns[i]);

        if (array == NULL) goto fail;
        PyList_SET_ITEM(arrays, (Py_ssize_t)i, array);
        PyList_SET_ITEM(shapes, (Py_ssize_t)i, Py_NewRef(s->columns[i].shapes));
    }
    PyTuple_SET_ITEM(tuple, 5, arrays);
    PyTuple_SET_ITEM(tuple, 6, shapes);
    return tuple;
fail:
    Py_XDECREF(tuple);
    Py_XDECREF(arrays);
    Py_XDECREF(shapes);
    return NULL;
}

static void drop(stacking *s)
{
    for (size_t i = 0; s->columns != NULL && i < s->column_count; i++) {
        stacked_column *c = &s->columns[i];

        Py_XDECREF(c->values);
        Py_XDECREF(c->shapes);
        if (c->dst_is_owned) PyMem_Free(c->dst);
    }
    PyMem_Free(s->columns);
    PyMem_Free(s->trajectories);
}

PyObject *core_samples_stack(core_decoder *decoder, const rp_sample *samples, size_t count)
{
    stacking s = {.count = count};
    PyObject *result = NULL;
    int failed = 0;

    assert(count >= 1 && core_samples_alike(samples, count) == count);
    s.column_count = rp_trajectory_column_count(samples[0].trajectory);
    s.columns = PyMem_Calloc(s.column_count, sizeof *s.columns);
    s.trajectories = PyMem_Malloc(count * sizeof *s.trajectories);
    if (s.columns == NULL || s.trajectories == NULL) {
        PyErr_NoMemory();
        failed = -1;
    }
    for (size_t i = 0; failed == 0 && i < count; i++) s.trajectories[i] = samples[i].trajectory;
    for (size_t i = 0; failed == 0 && i < s.column_count; i++) failed = plan_column(&s, i);
    if (failed == 0) failed = core_decoder_run(decoder, decode_columns, &s, s.bytes);
    if (failed == 0) result = result_of(&s, samples);
    drop(&s);
    return result;
}
