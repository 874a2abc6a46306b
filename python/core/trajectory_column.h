/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of an item, as reprise._core.TrajectoryColumn: references to cells (appended values,
 * cell.h) of a writer. */
#ifndef REPRISE_PYTHON_TRAJECTORY_COLUMN_H
#define REPRISE_PYTHON_TRAJECTORY_COLUMN_H

#include "writer_state.h"

/* A column made from cells of one writer holds references to the cells in `refs`. A column made
 * from other objects holds the objects in `objects`: it can be read, but no item can be created
 * with it. */
typedef struct core_column {
    PyObject_VAR_HEAD writer_state *state; /* a reference; NULL if `objects` is set */
    PyObject *objects;                     /* a tuple; NULL if `refs` is used */
    char squeeze;  /* the column has one row, and its array has no row dimension */
    rp_ref refs[]; /* the number of cells is Py_SIZE() */
} core_column;

static inline bool core_column_check(PyObject *obj)
{
    return Py_TYPE(obj) == &core_TrajectoryColumn ||
           PyObject_TypeCheck(obj, &core_TrajectoryColumn);
}

/* Makes a column of `count` cells of a writer. The caller must fill in `refs`. */
core_column *core_column_new(writer_state *state, Py_ssize_t count, bool squeeze);

/* Sets a ValueError that says that a column must not contain None. `path` is the column's path
 * in the step; `got` is the part of the error text that says where None is. */
void core_column_refuse_none(PyObject *path, const char *got);

/* Returns true if `key` is an index of one element: an int or a NumPy integer. */
bool core_column_is_index(PyObject *key);

#endif
