/* SPDX-License-Identifier: Apache-2.0 */
/* Samples as Python objects; see sample_arrays.h.
 *
 * First all arrays are allocated, with the GIL: each column of each sample becomes a job. Then
 * all jobs are decoded, without the GIL if they are large. Strings are decoded into scratch
 * memory first, since the bytes objects are made with the GIL.
 *
 * Invariants:
 *   A1  count <= capacity, and items is `inside` if and only if capacity is JOBS_INSIDE;
 *   A2  bytes is the sum over all jobs;
 *   A3  `dst` of a job with strings is scratch memory of the job, else the memory of an array
 *       that the list of samples holds. */
#include "sample_arrays.h"

enum {
    JOBS_INSIDE = 64,
    GIL_BYTES = 1 << 15, /* samples of up to this size are decoded with the GIL held */
};

/* A column of a sample that is to be decoded. */
typedef struct job {
    const rp_trajectory *trajectory;
    size_t column, bytes;
    void *dst;
    PyObject *strings; /* borrowed: the object array to be filled from dst (A3); else NULL */
} job;

typedef struct jobs {
    job *items;
    size_t count, capacity, bytes;
    bool has_strings;
    job inside[JOBS_INSIDE];
} jobs;

static void jobs_init(jobs *all)
{
    all->items = all->inside;
    all->count = all->bytes = 0;
    all->capacity = JOBS_INSIDE;
    all->has_strings = false;
}

static void jobs_free(jobs *all)
{
    for (size_t i = 0; all->has_strings && i < all->count; i++)
        if (all->items[i].strings != NULL) PyMem_Free(all->items[i].dst);
    if (all->items != all->inside) PyMem_Free(all->items);
}

static job *jobs_add(jobs *all)
{
    job *more;

    if (all->count < all->capacity) return &all->items[all->count++];
    more = PyMem_Malloc(2 * all->capacity * sizeof *more);
    if (more == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(more, all->items, all->count * sizeof *more);
    if (all->items != all->inside) PyMem_Free(all->items);
    all->items = more;
    all->capacity *= 2;
    assert(all->count < all->capacity); /* A1 */
    return &all->items[all->count++];
}

/* Makes the array of a column, and adds a job that fills it. */
static PyObject *plan_column(const rp_trajectory *trajectory, size_t column, jobs *all)
{
    rp_trajectory_column info = rp_trajectory_get_column(trajectory, column);
    PyObject *array = core_array_new(info.dtype, &info.shape);
    job *j = array != NULL ? jobs_add(all) : NULL;

    if (j == NULL) {
        Py_XDECREF(array);
        return NULL;
    }
    *j = (job){.trajectory = trajectory, .column = column, .bytes = info.bytes};
    all->bytes += info.bytes;
    if (info.dtype != RP_STRING) {
        j->dst = PyArray_DATA((PyArrayObject *)array);
        return array;
    }
    j->dst = PyMem_Calloc(info.bytes + 1, 1);
    if (j->dst == NULL) {
        Py_DECREF(array);
        return PyErr_NoMemory();
    }
    j->strings = array;
    all->has_strings = true;
    return array;
}

static PyObject *plan_sample(const rp_sample *sample, jobs *all)
{
    size_t count = rp_trajectory_column_count(sample->trajectory);
    PyObject *arrays = PyList_New((Py_ssize_t)count), *values[6] = {NULL}, *tuple = NULL;

    for (size_t i = 0; arrays != NULL && i < count; i++) {
        PyObject *array = plan_column(sample->trajectory, i, all);

        if (array != NULL)
            PyList_SET_ITEM(arrays, (Py_ssize_t)i, array);
        else
            Py_CLEAR(arrays);
    }
    if (arrays == NULL) return NULL;
    values[0] = PyLong_FromUnsignedLongLong(sample->key);
    values[1] = PyFloat_FromDouble(sample->probability);
    values[2] = PyLong_FromLongLong(sample->table_size);
    values[3] = PyFloat_FromDouble(sample->priority);
    values[4] = PyLong_FromLong(sample->times_sampled);
    values[5] = arrays;
    if (values[0] != NULL && values[1] != NULL && values[2] != NULL && values[3] != NULL &&
        values[4] != NULL)
        tuple = PyTuple_New(6);
    for (Py_ssize_t i = 0; i < 6; i++) {
        if (tuple != NULL)
            PyTuple_SET_ITEM(tuple, i, values[i]);
        else
            Py_XDECREF(values[i]);
    }
    return tuple;
}

static rp_status run_jobs(rp_decoder *decoder, const void *arg, rp_error *err)
{
    const jobs *all = arg;
    rp_status st = RP_OK;

    assert(all->count <= all->capacity); /* A1 */
    for (size_t i = 0; st == RP_OK && i < all->count; i++) {
        const job *j = &all->items[i];

        if (j->strings != NULL)
            st = rp_decoder_stack_strings(decoder, &j->trajectory, 1, j->column, j->dst,
                                          j->bytes / sizeof(rp_string), err);
        else
            st = rp_decoder_stack(decoder, &j->trajectory, 1, j->column, j->dst, j->bytes, err);
    }
    return st;
}

int core_decoder_run(core_decoder *shared, core_decode run, const void *arg, size_t bytes)
{
    bool is_shared = !shared->busy;
    rp_decoder *decoder = shared->decoder;
    rp_error err = {0};
    rp_status st = RP_OK;

    if (!is_shared) st = rp_decoder_new(rp_allocator_default(), CORE_DECODER_BYTES, &decoder);
    if (st == RP_OK && bytes <= GIL_BYTES) {
        st = run(decoder, arg, &err);
    } else if (st == RP_OK) {
        if (is_shared) shared->busy = true;
        Py_BEGIN_ALLOW_THREADS
        st = run(decoder, arg, &err);
        Py_END_ALLOW_THREADS
        assert(!is_shared || shared->busy);
        if (is_shared) shared->busy = false;
    }
    if (!is_shared) rp_decoder_free(decoder);
    if (st == RP_OK) return 0;
    (void)core_raise(st, &err);
    return -1;
}

static int decode(core_decoder *shared, const jobs *all)
{
    if (core_decoder_run(shared, run_jobs, all, all->bytes) != 0) return -1;
    for (size_t i = 0; all->has_strings && i < all->count; i++) {
        const job *j = &all->items[i];

        if (j->strings != NULL &&
            core_fill_strings(j->strings, j->dst, j->bytes / sizeof(rp_string)) != 0)
            return -1;
    }
    return 0;
}

PyObject *core_samples_list(core_decoder *shared, const rp_sample *samples, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    jobs all;

    jobs_init(&all);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *sample = plan_sample(&samples[i], &all);

        if (sample != NULL)
            PyList_SET_ITEM(list, (Py_ssize_t)i, sample);
        else
            Py_CLEAR(list);
    }
    if (list != NULL && decode(shared, &all) != 0) Py_CLEAR(list);
    jobs_free(&all);
    return list;
}
