/* SPDX-License-Identifier: Apache-2.0 */
/* Batches as arrays; see batch_arrays.h.
 *
 * A block is a header of one cache line, followed by its memory. The reference count is atomic,
 * since the last reference may be dropped by an array, or by the thread that fills batches,
 * which does not hold the GIL. The pool is locked with trylock only: in a forked child its
 * mutex may stay locked for ever. If the lock fails, the block is allocated or freed without
 * the pool.
 *
 * Invariants:
 *   B1  a block that is in use counts as a reference to its pool, a free one does not;
 *   B2  count <= keep <= MAX_KEPT, and free[0 .. count) are blocks of POOLED_BYTES or more;
 *   B3  block_count is 0 or the number of columns of the batch. */
#include "batch_arrays.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <structmember.h>

enum { ALIGNMENT = 64, POOLED_BYTES = 1 << 15, MAX_KEPT = 256 };

struct core_block {
    atomic_size_t refs;
    core_pool *pool;
    size_t capacity; /* of the memory behind the header */
};

_Static_assert(sizeof(struct core_block) <= ALIGNMENT, "the header has one cache line");

struct core_pool {
    atomic_size_t refs;
    pthread_mutex_t mu;
    size_t keep, count, victim;
    core_block *free[MAX_KEPT];
};

core_pool *core_pool_new(size_t keep)
{
    core_pool *pool = calloc(1, sizeof *pool);

    if (pool == NULL) return NULL;
    atomic_init(&pool->refs, 1);
    pool->keep = keep < MAX_KEPT ? keep : MAX_KEPT;
    if (pthread_mutex_init(&pool->mu, NULL) != 0) {
        free(pool);
        return NULL;
    }
    return pool;
}

void core_pool_unref(core_pool *pool)
{
    if (pool == NULL) return;
    size_t before = atomic_fetch_sub(&pool->refs, 1);
    assert(before > 0);
    if (before != 1) return;
    assert(pool->count <= pool->keep); /* B2 */
    for (size_t i = 0; i < pool->count; i++) free(pool->free[i]);
    pthread_mutex_destroy(&pool->mu);
    free(pool);
}

/* Takes a free block of at least `bytes`, but not of more than twice that. */
static core_block *take_free(core_pool *pool, size_t bytes)
{
    core_block *found = NULL;

    if (pthread_mutex_trylock(&pool->mu) != 0) return NULL;
    for (size_t i = pool->count; found == NULL && i-- > 0;) {
        size_t capacity = pool->free[i]->capacity;

        if (capacity < bytes || capacity / 2 > bytes) continue;
        assert(capacity >= POOLED_BYTES); /* B2 */
        found = pool->free[i];
        pool->free[i] = pool->free[--pool->count];
    }
    pthread_mutex_unlock(&pool->mu);
    return found;
}

static core_block *block_new(core_pool *pool, size_t bytes)
{
    core_block *block = bytes >= POOLED_BYTES ? take_free(pool, bytes) : NULL;
    size_t capacity;

    if (block == NULL) {
        if (bytes > SIZE_MAX - 2 * (size_t)ALIGNMENT) return NULL;
        capacity = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        block = aligned_alloc(ALIGNMENT, ALIGNMENT + capacity);
        if (block == NULL) return NULL;
        block->capacity = capacity;
    }
    assert(block->capacity >= bytes);
    atomic_init(&block->refs, 1);
    atomic_fetch_add(&pool->refs, 1); /* B1 */
    block->pool = pool;
    return block;
}

static void *block_data(core_block *block)
{
    return (char *)block + ALIGNMENT;
}

void core_block_unref(core_block *block)
{
    core_block *drop = block;
    core_pool *pool;

    if (block == NULL) return;
    size_t before = atomic_fetch_sub(&block->refs, 1);
    assert(before > 0);
    if (before != 1) return;
    pool = block->pool;
    if (block->capacity >= POOLED_BYTES && pool->keep > 0 &&
        pthread_mutex_trylock(&pool->mu) == 0) {
        if (pool->count < pool->keep) {
            pool->free[pool->count++] = block;
            drop = NULL;
        } else { /* batches may have other sizes now: replace the old blocks, one by one */
            pool->victim = (pool->victim + 1) % pool->count;
            drop = pool->free[pool->victim];
            pool->free[pool->victim] = block;
        }
        pthread_mutex_unlock(&pool->mu);
    }
    free(drop);
    core_pool_unref(pool);
}

static const char block_name[] = "reprise.block";

static void drop_capsule(PyObject *capsule)
{
    core_block_unref(PyCapsule_GetPointer(capsule, block_name));
}

static int view_array(PyObject *array, size_t column, core_given *out)
{
    PyArrayObject *a = (PyArrayObject *)array;

    if (!PyArray_Check(array)) {
        PyErr_Format(PyExc_TypeError, "column %zu: memory for batches is a NumPy array, got %s",
                     column, Py_TYPE(array)->tp_name);
        return -1;
    }
    if (!PyArray_ISCARRAY(a)) {
        PyErr_Format(PyExc_ValueError,
                     "column %zu: memory for batches must be C contiguous, aligned, writable "
                     "and in native byte order",
                     column);
        return -1;
    }
    out->dtype = core_dtype_from(PyArray_DESCR(a));
    if (out->dtype == RP_INVALID_DTYPE || PyArray_NDIM(a) < 1 ||
        PyArray_NDIM(a) > RP_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "column %zu: no batch has dtype %R and %d dimensions",
                     column, (PyObject *)PyArray_DESCR(a), PyArray_NDIM(a));
        return -1;
    }
    if (out->dtype == RP_STRING &&
        PyArray_TYPE(a) != NPY_OBJECT) { /* core_fill_strings() fills it */
        PyErr_Format(PyExc_ValueError,
                     "column %zu: memory for strings is an array of dtype object, got %R",
                     column, (PyObject *)PyArray_DESCR(a));
        return -1;
    }
    out->shape.rank = PyArray_NDIM(a);
    for (int i = 0; i < PyArray_NDIM(a); i++) out->shape.dims[i] = PyArray_DIM(a, i);
    out->data = PyArray_DATA(a);
    Py_INCREF(array);
    out->array = array;
    return 0;
}

int core_given_new(PyObject *arrays, core_given **out, size_t *count)
{
    PyObject *items = PySequence_Tuple(arrays);
    core_given *given;
    size_t n;

    if (items == NULL) return -1;
    n = (size_t)PyTuple_GET_SIZE(items);
    given = PyMem_Calloc(n + 1, sizeof *given);
    if (given == NULL) {
        Py_DECREF(items);
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        if (view_array(PyTuple_GET_ITEM(items, (Py_ssize_t)i), i, &given[i]) == 0) continue;
        core_given_free(given, n);
        Py_DECREF(items);
        return -1;
    }
    Py_DECREF(items);
    *out = given;
    *count = n;
    return 0;
}

void core_given_free(core_given *given, size_t count)
{
    if (given == NULL) return;
    for (size_t i = 0; i < count; i++) Py_XDECREF(given[i].array);
    PyMem_Free(given);
}

/* Checks that the rows of a column have the shape of the rows of the caller's array, and that
 * the array has enough rows. */
static rp_status check_given(const core_given *given, size_t column,
                             const rp_batch_column *need, rp_error *err)
{
    rp_shape rows = given->shape;
    char has[64], needs[64];

    if (rows.rank > 0 && need->shape.rank > 0 && rows.dims[0] > need->shape.dims[0])
        rows.dims[0] = need->shape.dims[0];
    if (given->dtype == need->dtype && rp_shape_equal(&rows, &need->shape)) return RP_OK;
    if (err != NULL) {
        err->code = RP_INVALID;
        (void)snprintf(
            err->text, sizeof err->text,
            "column %zu: memory for %s %s was given, but the batch has %s %s", column,
            rp_dtype_name(given->dtype), rp_shape_text(&given->shape, has, sizeof has),
            rp_dtype_name(need->dtype), rp_shape_text(&need->shape, needs, sizeof needs));
    }
    return RP_INVALID;
}

static rp_status no_memory(size_t bytes, rp_error *err)
{
    if (err != NULL) {
        err->code = RP_NO_RESOURCE;
        (void)snprintf(err->text, sizeof err->text, "no memory for %zu bytes of a batch",
                       bytes);
    }
    return RP_NO_RESOURCE;
}

static void drop_blocks(core_stacked *s)
{
    for (size_t i = 0; i < s->block_count; i++) core_block_unref(s->blocks[i]);
    free(s->blocks);
    s->blocks = NULL;
    s->block_count = 0;
}

static rp_status make_blocks(core_stacked *s, size_t count, core_pool *pool, rp_error *err)
{
    if (s->block_count != count) drop_blocks(s); /* B3 */
    assert((s->blocks == NULL) == (s->block_count == 0) || count == 0);
    if (s->blocks == NULL) {
        s->blocks = calloc(count + 1, sizeof(core_block *));
        if (s->blocks == NULL) return no_memory(count * sizeof(core_block *), err);
        s->block_count = count;
    }
    if (s->given != NULL && s->given_count != count) {
        if (err != NULL) {
            err->code = RP_INVALID;
            (void)snprintf(err->text, sizeof err->text,
                           "memory for %zu column%s was given, but the batch has %zu",
                           s->given_count, s->given_count == 1 ? "" : "s", count);
        }
        return RP_INVALID;
    }
    for (size_t i = 0; i < count; i++) {
        const rp_batch_column *column = rp_batch_get_column(s->batch, i);

        if (s->given != NULL) {
            rp_status st = check_given(&s->given[i], i, column, err);
            if (st != RP_OK) return st;
            if (column->dtype != RP_STRING) continue;
        }
        if (s->blocks[i] != NULL && s->blocks[i]->capacity >= column->bytes) continue;
        core_block_unref(s->blocks[i]);
        s->blocks[i] = block_new(pool, column->bytes);
        if (s->blocks[i] == NULL) return no_memory(column->bytes, err);
    }
    return RP_OK;
}

rp_status core_stacked_fill(core_stacked *s, core_pool *pool, rp_error *err)
{
    size_t count = rp_batch_column_count(s->batch), inside_bytes[32];
    void *inside[32], **dst = inside;
    size_t *bytes = inside_bytes;
    rp_status st = make_blocks(s, count, pool, err);

    if (st != RP_OK) return st;
    if (count > 32) {
        dst = malloc(count * sizeof *dst);
        bytes = malloc(count * sizeof *bytes);
    }
    if (dst == NULL || bytes == NULL) {
        st = no_memory(count * sizeof *dst, err);
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        assert(s->blocks[i] != NULL || s->given != NULL);
        dst[i] = s->blocks[i] != NULL ? block_data(s->blocks[i]) : s->given[i].data;
        bytes[i] = rp_batch_get_column(s->batch, i)->bytes;
    }
    st = rp_batch_decode(s->batch, dst, bytes, err);
out:
    if (dst != inside) free(dst);
    if (bytes != inside_bytes) free(bytes);
    return st;
}

void core_stacked_clear(core_stacked *s)
{
    rp_batch_free(s->batch);
    s->batch = NULL;
    drop_blocks(s);
}

/* Returns an array that shares the memory of a block, and holds a reference to it. */
static PyObject *array_over(core_block *block, const rp_batch_column *column)
{
    PyArray_Descr *descr = core_descr(column->dtype);
    npy_intp dims[RP_MAX_RANK];
    PyObject *array, *capsule;

    assert(column->bytes <= block->capacity);
    if (descr == NULL) return NULL;
    for (int i = 0; i < column->shape.rank; i++) dims[i] = (npy_intp)column->shape.dims[i];
    array = PyArray_NewFromDescr(&PyArray_Type, descr, column->shape.rank, dims, NULL,
                                 block_data(block), NPY_ARRAY_CARRAY, NULL);
    if (array == NULL) return NULL;
    capsule = PyCapsule_New(block, block_name, drop_capsule);
    if (capsule == NULL) {
        Py_DECREF(array);
        return NULL;
    }
    atomic_fetch_add(&block->refs, 1);
    if (PyArray_SetBaseObject((PyArrayObject *)array, capsule) != 0) {
        Py_DECREF(array);
        return NULL;
    }
    return array;
}

/* Returns the caller's array, or a view of its first rows if the batch has fewer. */
static PyObject *array_given(const core_given *given, const rp_batch_column *column)
{
    PyObject *end, *slice, *part;

    assert(given->shape.dims[0] >= column->shape.dims[0]);
    if (given->shape.dims[0] == column->shape.dims[0]) {
        Py_INCREF(given->array);
        return given->array;
    }
    end = PyLong_FromLongLong(column->shape.dims[0]);
    if (end == NULL) return NULL;
    slice = PySlice_New(NULL, end, NULL);
    Py_DECREF(end);
    if (slice == NULL) return NULL;
    part = PyObject_GetItem(given->array, slice);
    Py_DECREF(slice);
    return part;
}

static PyObject *column_array(core_stacked *s, size_t i)
{
    const rp_batch_column *column = rp_batch_get_column(s->batch, i);
    PyObject *array;
    size_t count;

    if (s->given != NULL)
        array = array_given(&s->given[i], column);
    else if (column->dtype == RP_STRING)
        array = core_array_new(RP_STRING, &column->shape);
    else
        array = array_over(s->blocks[i], column);
    if (array == NULL || column->dtype != RP_STRING) return array;
    count = column->bytes / sizeof(rp_string);
    if (core_fill_strings(array, block_data(s->blocks[i]), count) == 0) return array;
    Py_DECREF(array);
    return NULL;
}

static PyObject *columns_list(core_stacked *s)
{
    size_t count = rp_batch_column_count(s->batch);
    PyObject *list = PyList_New((Py_ssize_t)count);

    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *array = column_array(s, i);

        if (array != NULL)
            PyList_SET_ITEM(list, (Py_ssize_t)i, array);
        else
            Py_CLEAR(list);
    }
    return list;
}

/* Returns the lengths of column i, or its offsets: these are one number more, so `extra` is 1.
 */
static PyObject *numbers_array(const rp_batch *batch, size_t i, size_t extra)
{
    const int64_t *numbers = rp_batch_lengths(batch, i);
    npy_intp count = (npy_intp)(rp_batch_size(batch) + extra);
    PyObject *array;

    if (numbers == NULL) Py_RETURN_NONE;
    array = PyArray_SimpleNew(1, &count, NPY_INT64);
    if (array != NULL)
        memcpy(PyArray_DATA((PyArrayObject *)array), numbers, (size_t)count * sizeof *numbers);
    return array;
}

static PyObject *lengths_list(const rp_batch *batch, size_t extra)
{
    size_t count = rp_batch_column_count(batch);
    PyObject *list = PyList_New((Py_ssize_t)count);

    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *array = numbers_array(batch, i, extra);

        if (array != NULL)
            PyList_SET_ITEM(list, (Py_ssize_t)i, array);
        else
            Py_CLEAR(list);
    }
    return list;
}

typedef struct batch_object {
    PyObject_HEAD
    Py_ssize_t size;
    PyObject *columns, *lengths;
    PyObject *keys, *probabilities, *priorities, *weights, *times_sampled, *table_sizes;
} batch_object;

static PyObject *info_array(int type, size_t size)
{
    npy_intp count = (npy_intp)size;

    return PyArray_SimpleNew(1, &count, type);
}

static int fill_info(batch_object *b, const rp_sample *samples, size_t size)
{
    uint64_t *keys;
    double *probabilities, *priorities, *weights;
    int32_t *times_sampled;
    int64_t *table_sizes;

    b->keys = info_array(NPY_UINT64, size);
    b->probabilities = info_array(NPY_DOUBLE, size);
    b->priorities = info_array(NPY_DOUBLE, size);
    b->weights = info_array(NPY_DOUBLE, size);
    b->times_sampled = info_array(NPY_INT32, size);
    b->table_sizes = info_array(NPY_INT64, size);
    if (b->keys == NULL || b->probabilities == NULL || b->priorities == NULL ||
        b->weights == NULL || b->times_sampled == NULL || b->table_sizes == NULL)
        return -1;
    keys = PyArray_DATA((PyArrayObject *)b->keys);
    probabilities = PyArray_DATA((PyArrayObject *)b->probabilities);
    priorities = PyArray_DATA((PyArrayObject *)b->priorities);
    weights = PyArray_DATA((PyArrayObject *)b->weights);
    times_sampled = PyArray_DATA((PyArrayObject *)b->times_sampled);
    table_sizes = PyArray_DATA((PyArrayObject *)b->table_sizes);
    for (size_t i = 0; i < size; i++) {
        keys[i] = samples[i].key;
        probabilities[i] = samples[i].probability;
        priorities[i] = samples[i].priority;
        weights[i] = samples[i].weight;
        times_sampled[i] = samples[i].times_sampled;
        table_sizes[i] = samples[i].table_size;
    }
    return 0;
}

PyObject *core_batch_new(core_stacked *s, bool offsets)
{
    batch_object *b = PyObject_New(batch_object, &core_Batch);
    size_t size = rp_batch_size(s->batch);

    assert(s->blocks != NULL && s->block_count == rp_batch_column_count(s->batch)); /* B3 */
    if (b == NULL) return NULL;
    b->size = (Py_ssize_t)size;
    b->columns = b->lengths = b->keys = b->probabilities = b->priorities = b->weights = NULL;
    b->times_sampled = b->table_sizes = NULL;
    b->columns = columns_list(s);
    if (b->columns != NULL) b->lengths = lengths_list(s->batch, offsets);
    if (b->lengths == NULL || fill_info(b, rp_batch_samples(s->batch), size) != 0) {
        Py_DECREF(b);
        return NULL;
    }
    if (!s->keeps_blocks) drop_blocks(s);
    return (PyObject *)b;
}

static void batch_dealloc(PyObject *self)
{
    batch_object *b = (batch_object *)self;

    Py_XDECREF(b->columns);
    Py_XDECREF(b->lengths);
    Py_XDECREF(b->keys);
    Py_XDECREF(b->probabilities);
    Py_XDECREF(b->priorities);
    Py_XDECREF(b->weights);
    Py_XDECREF(b->times_sampled);
    Py_XDECREF(b->table_sizes);
    PyObject_Free(self);
}

static Py_ssize_t batch_len(PyObject *self)
{
    return ((batch_object *)self)->size;
}

static PyObject *batch_repr(PyObject *self)
{
    batch_object *b = (batch_object *)self;

    return PyUnicode_FromFormat("<reprise._core.Batch of %zd items, %zd columns>", b->size,
                                PyList_GET_SIZE(b->columns));
}

static PyMemberDef batch_members[] = {
    {"size", T_PYSSIZET, offsetof(batch_object, size), READONLY, "Items in the batch."},
    {"columns", T_OBJECT_EX, offsetof(batch_object, columns), READONLY,
     "A list of arrays, one a column, items first."},
    {"lengths", T_OBJECT_EX, offsetof(batch_object, lengths), READONLY,
     "A list, one entry a column: rows of each item, where each begins, or None."},
    {"keys", T_OBJECT_EX, offsetof(batch_object, keys), READONLY, "uint64."},
    {"probabilities", T_OBJECT_EX, offsetof(batch_object, probabilities), READONLY, "float64."},
    {"priorities", T_OBJECT_EX, offsetof(batch_object, priorities), READONLY, "float64."},
    {"weights", T_OBJECT_EX, offsetof(batch_object, weights), READONLY,
     "float64: importance weights; 1 without a beta."},
    {"times_sampled", T_OBJECT_EX, offsetof(batch_object, times_sampled), READONLY, "int32."},
    {"table_sizes", T_OBJECT_EX, offsetof(batch_object, table_sizes), READONLY, "int64."},
    {NULL, 0, 0, 0, NULL},
};

static PySequenceMethods batch_sequence = {.sq_length = batch_len};

PyTypeObject core_Batch = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.Batch",
    .tp_doc = "Items of a table, their columns stacked into arrays.",
    .tp_basicsize = sizeof(batch_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = batch_dealloc,
    .tp_repr = batch_repr,
    .tp_as_sequence = &batch_sequence,
    .tp_members = batch_members,
};
