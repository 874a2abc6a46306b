/* SPDX-License-Identifier: Apache-2.0 */
/* The arrays of batches: the memory into which the columns of a batch's samples are decoded,
 * and the Python type Batch.
 *
 * The memory is in blocks, to which NumPy arrays hold references. When the last array of a
 * block is freed, the block returns to the pool of its sampler, so that large batches do not
 * need new pages from the system each time. The pool is as fast as a ring of buffers, but never
 * overwrites an array that is in use. */
#ifndef REPRISE_PYTHON_BATCH_ARRAYS_H
#define REPRISE_PYTHON_BATCH_ARRAYS_H

#include "core.h"

/* A pool of free blocks. Refcounted. Safe from any thread, with the GIL or without. */
typedef struct core_pool core_pool;

/* Makes a pool that keeps up to `keep` free blocks. Returns NULL, without an exception, if
 * there is no memory. */
core_pool *core_pool_new(size_t keep);
void core_pool_unref(core_pool *pool); /* NULL is fine */

/* A block of memory, aligned to 64 bytes. Refcounted. Safe from any thread, with the GIL or
 * without. */
typedef struct core_block core_block;

void core_block_unref(core_block *block); /* NULL is fine */

/* An array of the Python caller, into which one column of each batch is decoded. */
typedef struct core_given {
    PyObject *array; /* a reference */
    void *data;
    rp_dtype dtype;
    rp_shape shape;
} core_given;

/* Reads a sequence of the caller's arrays, one for each column. ValueError if an array is not C
 * contiguous, aligned, writable and in native byte order. The caller must free `*out` with
 * core_given_free(). */
int core_given_new(PyObject *arrays, core_given **out, size_t *count);
void core_given_free(core_given *given, size_t count); /* NULL is fine */

/* A batch and the memory of its columns. Zero-initialise it. */
typedef struct core_stacked {
    rp_batch *batch;     /* owned; holds the strings and the samples */
    core_block **blocks; /* owned, one for each column; an entry is NULL if its column is in
                            `given` */
    size_t block_count;
    const core_given *given; /* borrowed; NULL: all columns are in blocks */
    size_t given_count;
    bool keeps_blocks; /* later batches reuse the blocks, so arrays of earlier batches change */
} core_stacked;

/* Decodes `s->batch` into the blocks and the arrays in `given`. Allocates the blocks that are
 * missing. Must be called without the GIL. Errors: RP_INVALID (the caller's arrays have other
 * shapes or dtypes), RP_CORRUPT, RP_NO_RESOURCE. */
rp_status core_stacked_fill(core_stacked *s, core_pool *pool, rp_error *err);
/* Frees all members except `given`. May be called with or without the GIL. */
void core_stacked_clear(core_stacked *s);

/* Makes a reprise._core.Batch over the memory of `s`. Takes over the blocks of `s`, unless
 * `keeps_blocks` is set. A ragged column (its items differ in length) has lengths, or offsets
 * if `offsets` is true. Attributes: `size`; `columns`, a list of arrays; `lengths`, a list with
 * an int64 array or None for each column; and arrays with one value for each item: `keys`,
 * `probabilities`, `priorities`, `weights`, `times_sampled`, `table_sizes`. */
PyObject *core_batch_new(core_stacked *s, bool offsets);

#endif
