/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of an item, as reprise._core.TrajectoryColumn: references to cells of a writer. */
#ifndef REPRISE_PYTHON_TRAJECTORY_COLUMN_H
#define REPRISE_PYTHON_TRAJECTORY_COLUMN_H

#include "writer_state.h"

/* A column of cells of one writer holds them in `refs`. A column of other objects holds these
 * in `objects`: it can be read, but no item can be created with it. */
typedef struct core_column {
    PyObject_VAR_HEAD writer_state *state; /* counted; NULL if there are `objects` */
    PyObject *objects;                     /* NULL, or a tuple */
    char squeeze;                          /* one row, without the row dimension */
    rp_ref refs[];                         /* Py_SIZE() of them */
} core_column;

static inline bool core_column_check(PyObject *obj)
{
    return Py_TYPE(obj) == &core_TrajectoryColumn ||
           PyObject_TypeCheck(obj, &core_TrajectoryColumn);
}

/* A new column of `count` cells of a writer, for the caller to fill in. */
core_column *core_column_new(writer_state *state, Py_ssize_t count, bool squeeze);

/* Sets ValueError: a column must not contain None. `path` is the path of the column in the
 * history, `got` says where None is. */
void core_column_refuse_none(PyObject *path, const char *got);

/* True if `key` indexes one element: an int, or an integer of NumPy. */
bool core_column_is_index(PyObject *key);

#endif
