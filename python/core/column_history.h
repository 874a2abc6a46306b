/* SPDX-License-Identifier: Apache-2.0 */
/* The history of one column of a trajectory writer, as reprise._core.ColumnHistory.
 *
 * A history is indexed like a list of all steps since it was last cleared. A step is None if
 * the column had no value in it, or if its value is no longer kept. */
#ifndef REPRISE_PYTHON_COLUMN_HISTORY_H
#define REPRISE_PYTHON_COLUMN_HISTORY_H

#include "writer_state.h"

/* The cells of the last `kept` of `length` steps are in a ring buffer. */
typedef struct core_history {
    PyObject_HEAD
    writer_state *state; /* counted */
    PyObject *path;      /* a tuple */
    PyObject *name;      /* the path for error texts: bytes, zero-terminated */
    uint32_t column;
    int32_t limit; /* the largest `kept` */
    int64_t length;
    int64_t kept, capacity; /* the capacity is a power of two, or 0 */
    int64_t *ring;          /* cell numbers by step; -1: no value */
    rp_column_options options;
    bool configured; /* the user has set its options */
    /* Set once the column has had a value: */
    bool known;
    rp_dtype dtype;
    rp_shape shape; /* of a row */
    size_t row_bytes;
    PyArray_Descr *descr; /* a reference */
} core_history;

/* Makes the history of a column that has no value in the `length` steps so far. */
PyObject *core_history_new(writer_state *state, PyObject *path, uint32_t column,
                           const rp_column_options *options, int64_t length);

/* Allocates memory for one more step. */
int core_history_reserve(core_history *history);

/* Adds a step without a value. Call core_history_reserve() before. */
static inline void core_history_push(core_history *h)
{
    assert(h->capacity > 0 && h->kept <= h->capacity);
    h->ring[h->length & (h->capacity - 1)] = -1;
    h->length++;
    if (h->kept < h->limit) h->kept++;
}

/* The cell number of the last step, to be read or set; NULL before the first step. */
static inline int64_t *core_history_last(const core_history *h)
{
    assert(h->kept <= h->length);
    return h->kept > 0 ? &h->ring[(h->length - 1) & (h->capacity - 1)] : NULL;
}

/* Removes all steps. */
void core_history_clear(core_history *history);

/* Takes dtype and shape from the first value; later values change nothing. */
int core_history_learn(core_history *history, const rp_tensor *tensor);

#endif
