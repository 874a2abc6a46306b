/* SPDX-License-Identifier: Apache-2.0 */
/* Batches as arrays: the memory that columns are stacked into, and the Python object that shows
 * them.
 *
 * Memory comes in blocks that NumPy arrays share by reference. A block whose last array dies
 * goes back to the pool of its sampler, so that large batches do not fetch fresh pages from the
 * system each time; that is as quick as a ring of buffers, and nothing is ever overwritten. */
#ifndef REPRISE_PYTHON_BATCH_ARRAYS_H
#define REPRISE_PYTHON_BATCH_ARRAYS_H

#include "core.h"

/* Blocks that are not in use. Counted; any thread, with the GIL or without. */
typedef struct core_pool core_pool;

/* Keeps up to `keep` blocks. NULL: out of memory; no exception is set. */
core_pool *core_pool_new(size_t keep);
void core_pool_unref(core_pool *pool); /* NULL is fine */

/* A piece of memory, aligned to 64 bytes. Counted; any thread, with the GIL or without. */
typedef struct core_block core_block;

void core_block_unref(core_block *block); /* NULL is fine */

/* A column of the caller's memory: an array that batches are stacked into. */
typedef struct core_given {
    PyObject *array; /* a reference */
    void *data;
    rp_dtype dtype;
    rp_shape shape;
} core_given;

/* Arrays (a sequence, one a column) as memory. They must be C contiguous, aligned, writable and
 * in native byte order: ValueError names the one that is not. Returns owned. */
int core_given_new(PyObject *arrays, core_given **out, size_t *count);
void core_given_free(core_given *given, size_t count); /* NULL is fine */

/* A batch and where its columns are. Zero-initialise it. */
typedef struct core_stacked {
    rp_batch *batch;     /* owned; holds the strings and the samples */
    core_block **blocks; /* owned; one a column; NULL where `given` has it */
    size_t block_count;
    const core_given *given; /* borrowed; NULL: our own memory */
    size_t given_count;
    bool keeps_blocks; /* blocks are filled again and again: arrays of earlier batches change */
} core_stacked;

/* Decodes `s->batch` into its memory, which is made where it is missing. Without the GIL.
 * RP_INVALID (the caller's memory does not fit: names column, what it has, what is needed),
 * RP_CORRUPT, RP_NO_RESOURCE. */
rp_status core_stacked_fill(core_stacked *s, core_pool *pool, rp_error *err);
/* Drops everything but `given`. With the GIL or without. */
void core_stacked_clear(core_stacked *s);

/* The Python object, reprise._core.Batch, over the memory of `s`, which gives its blocks away
 * unless it keeps them. `offsets`: the numbers of ragged columns are offsets. Its attributes:
 * `size`; `columns`, a list of arrays; `lengths`, a list of int64 arrays (or None), one a
 * column; and of each item `keys`, `probabilities`, `priorities`, `weights`, `times_sampled`,
 * `table_sizes`. */
PyObject *core_batch_new(core_stacked *s, bool offsets);

#endif
