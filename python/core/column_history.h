/* SPDX-License-Identifier: Apache-2.0 */
/* The history of one column of a trajectory writer, as reprise._core.ColumnHistory.
 *
 * A history is indexed like a list of all steps since it was last cleared. An element is None
 * if the column had no value in that step, or if the value is no longer kept. */
#ifndef REPRISE_PYTHON_COLUMN_HISTORY_H
#define REPRISE_PYTHON_COLUMN_HISTORY_H

#include "writer_state.h"

/* A history has `length` steps. For each of the last `kept` steps, a ring buffer holds a cell
 * number: the number of the step's value in the writer (cell.h). */
typedef struct core_history {
    PyObject_HEAD
    writer_state *state; /* a reference */
    PyObject *path;      /* a tuple */
    PyObject *name;      /* the path for error texts: bytes, zero-terminated */
    uint32_t column;
    int32_t limit; /* upper bound of `kept` */
    int64_t length;
    int64_t kept, capacity; /* the capacity is a power of two, or 0 */
    int64_t *ring;          /* for each step, the cell number of its value; -1: no value */
    rp_column_options options;
    bool configured; /* the user has set its options */
    /* The first value of the column sets these: */
    bool known;
    rp_dtype dtype;
    rp_shape shape; /* shape of a row */
    size_t row_bytes;
    PyArray_Descr *descr; /* a reference */
} core_history;

/* Makes the history of a new column. Its first `length` steps have no value. */
PyObject *core_history_new(writer_state *state, PyObject *path, uint32_t column,
                           const rp_column_options *options, int64_t length);

/* Allocates memory for one more step. */
int core_history_reserve(core_history *history);

/* Adds a step without a value; core_history_last() then sets the value. The caller must call
 * core_history_reserve() first. */
static inline void core_history_push(core_history *h)
{
    assert(h->capacity > 0 && h->kept <= h->capacity);
    h->ring[h->length & (h->capacity - 1)] = -1;
    h->length++;
    if (h->kept < h->limit) h->kept++;
}

/* Returns the address of the last step's cell number, which the caller is allowed to change.
 * Returns NULL if there is no step. */
static inline int64_t *core_history_last(const core_history *h)
{
    assert(h->kept <= h->length);
    return h->kept > 0 ? &h->ring[(h->length - 1) & (h->capacity - 1)] : NULL;
}

/* Removes all steps. */
void core_history_clear(core_history *history);

/* Sets dtype and shape from the first value of the column. Does nothing for later values. */
int core_history_learn(core_history *history, const rp_tensor *tensor);

#endif
