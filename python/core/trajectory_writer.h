/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.TrajectoryWriter: the declarations that its files share.
 *
 *   trajectory_writer.c    creates and closes a writer, configures its columns
 *   trajectory_append.c    adds steps
 *   trajectory_history.c   returns the history
 *   trajectory_items.c     creates items and waits for them */
#ifndef REPRISE_PYTHON_TRAJECTORY_WRITER_H
#define REPRISE_PYTHON_TRAJECTORY_WRITER_H

#include "column_history.h"
#include "names.h"
#include "writer_state.h"

enum { SHAPES = 8 }; /* how many structures of steps, and of items, are cached */

/* A cached structure of steps: trajectory_append.c. */
typedef struct step_shape step_shape;
void core_step_shape_free(step_shape *shape); /* NULL is fine */

/* One element of the nest of histories (see core_writer), as it was when the nest was made.
 * With it, trajectory_history.c finds out whether the user has changed the nest. */
typedef struct nest_part {
    PyObject *obj, *key; /* borrowed from the nest */
} nest_part;

typedef struct core_writer {
    PyObject_HEAD
    writer_state *state; /* NULL until __init__ has run */
    PyObject *client;
    core_history **columns; /* each entry is a reference */
    size_t column_count, column_capacity;
    step_shape *shapes[SHAPES];        /* structures of steps, latest first; unused entries are
                                          NULL */
    PyObject *item_structures[SHAPES]; /* structures of items; likewise */
    PyObject *tables, *last_table; /* `tables` is a set with the names of the tables in which
                                      items were created */
    bool validates;                /* the names of an item's columns are compared with the
                                      signature of its table (names.h) */
    core_names checked;
    int64_t final_steps; /* number of steps of the episode; set when the writer is closed */
    /* What TrajectoryWriter.history returns: a nest (nest.h) of ColumnHistory objects. */
    PyObject *structure; /* NULL if there is no column yet */
    PyObject *leaves;    /* a tuple of histories */
    PyObject *nest;      /* the nest that was returned last; NULL: none, or it must be made
                            anew */
    nest_part *parts;    /* the elements of the nest */
    size_t part_count, part_capacity;
} core_writer;

/* trajectory_append.c */
PyObject *core_writer_append(core_writer *w, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames);

/* trajectory_history.c. The first function sets the nest of histories to the result of the
 * Python method _learn(). The second returns a nest of histories to the caller of
 * TrajectoryWriter.history. */
int core_writer_set_history(core_writer *w, PyObject *nest);
PyObject *core_writer_history(core_writer *w, void *unused);

/* trajectory_items.c */
PyObject *core_writer_create_item(core_writer *w, PyObject *const *args, Py_ssize_t nargs,
                                  PyObject *kwnames);
PyObject *core_writer_flush(core_writer *w, PyObject *args, PyObject *kwargs);
PyObject *core_writer_end_episode(core_writer *w, PyObject *args, PyObject *kwargs);

#endif
