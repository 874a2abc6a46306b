/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of the single-process replay buffer: dtypes and shapes, rows to add, and arrays
 * into which samples are written. */
#ifndef REPRISE_PYTHON_REPLAY_COLUMNS_H
#define REPRISE_PYTHON_REPLAY_COLUMNS_H

#include "core.h"

enum { CORE_REPLAY_MAX_RANK = 16 };

typedef struct core_replay_column {
    PyObject *name;                      /* interned */
    PyArray_Descr *descr;                /* in native byte order */
    npy_intp dims[CORE_REPLAY_MAX_RANK]; /* the shape of one row */
    int rank;
    npy_intp elements;
    size_t bytes; /* size of one row */
} core_replay_column;

/* Zero-initialise it. */
typedef struct core_replay_columns {
    core_replay_column *items;
    Py_ssize_t count;
    size_t row_bytes; /* bytes of a row in all columns */
} core_replay_columns;

/* Reads a tuple of columns, each (name, dtype, shape, frame_count), into `set` and `out`. `set`
 * must be empty. `out` must have space for RP_REPLAY_MAX_COLUMNS columns and borrows names from
 * `set`. On failure the caller must clear `set`. */
int core_replay_columns_read(core_replay_columns *set, PyObject *columns,
                             rp_replay_column *out);
void core_replay_columns_clear(core_replay_columns *set);

/* Rows to add: a C contiguous array for each column, with the dtype of the column. */
typedef struct core_replay_rows {
    PyArrayObject *arrays[RP_REPLAY_MAX_COLUMNS];
    const void *data[RP_REPLAY_MAX_COLUMNS];
    Py_ssize_t array_count;
    npy_intp count; /* number of rows */
} core_replay_rows;

/* Makes rows from `values`, which has one value for each column. `values` are allowed to be
 * borrowed references from a dict: converting a value can run Python code that changes the
 * dict, and this does no harm. After a failure there is nothing to free. */
int core_replay_rows_from(const core_replay_columns *set, PyObject *const *values,
                          core_replay_rows *r);
void core_replay_rows_free(core_replay_rows *r);

/* Arrays into which samples are written: one for each column, and up to two others (the weights
 * and indices of the rows). */
typedef struct core_replay_arrays {
    PyObject *arrays[RP_REPLAY_MAX_COLUMNS + 2];
    void *data[RP_REPLAY_MAX_COLUMNS + 2];
    Py_ssize_t count;
} core_replay_arrays;

/* Makes an array for `count` rows of a column. If `c` is NULL, the array is for `count` scalars
 * of the NumPy type `type`. */
PyObject *core_replay_array_new(const core_replay_column *c, int type, npy_intp count);

/* Returns the array called `name` of the dict `into`. If `given` is true, this is an array that
 * the Python caller has put there; its dtype and shape are checked. Otherwise makes an array
 * and adds it to the dict. Returns a new reference, because another thread can change the dict
 * while the array is written without the GIL. */
PyObject *core_replay_array_for(PyObject *into, bool given, PyObject *name,
                                const core_replay_column *c, int type, npy_intp count);

/* Adds an array to `p` and takes over the reference. Returns -1 if `array` is NULL. */
int core_replay_arrays_add(core_replay_arrays *p, PyObject *array);

/* Sets `p` to arrays for all columns. The caller frees them, also after a failure. */
int core_replay_arrays_make(const core_replay_columns *set, core_replay_arrays *p,
                            PyObject *into, bool given, npy_intp count);
void core_replay_arrays_free(core_replay_arrays *p);

#endif
