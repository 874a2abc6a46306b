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

enum { SHAPES = 8 }; /* cached structures of steps, and of items */

/* A cached structure of steps: trajectory_append.c. */
typedef struct step_shape step_shape;
void core_step_shape_free(step_shape *shape); /* NULL is fine */

/* A part of the nest of histories as it was made: trajectory_history.c. */
typedef struct nest_part {
    PyObject *obj, *key; /* borrowed from the nest */
} nest_part;

typedef struct core_writer {
    PyObject_HEAD
    writer_state *state; /* NULL until __init__ has run */
    PyObject *client;
    core_history **columns; /* a reference each */
    size_t column_count, column_capacity;
    step_shape *shapes[SHAPES];        /* the latest first, then NULL */
    PyObject *item_structures[SHAPES]; /* the latest first, then NULL */
    PyObject *tables, *last_table; /* names of the tables that items were created in: a set */
    bool validates;                /* compares items with the signature of their table */
    core_names checked;
    int64_t final_steps; /* steps of the episode, once the writer is closed */
    /* The history: */
    PyObject *structure; /* NULL before there is a column */
    PyObject *leaves;    /* a tuple of histories */
    PyObject *nest;      /* made of them, or NULL */
    nest_part *parts;    /* of the nest */
    size_t part_count, part_capacity;
} core_writer;

/* trajectory_append.c */
PyObject *core_writer_append(core_writer *w, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames);

/* trajectory_history.c: set the nest of histories that _learn() has returned; return a nest of
 * them to the caller of TrajectoryWriter.history. */
int core_writer_set_history(core_writer *w, PyObject *nest);
PyObject *core_writer_history(core_writer *w, void *unused);

/* trajectory_items.c */
PyObject *core_writer_create_item(core_writer *w, PyObject *const *args, Py_ssize_t nargs,
                                  PyObject *kwnames);
PyObject *core_writer_flush(core_writer *w, PyObject *args, PyObject *kwargs);
PyObject *core_writer_end_episode(core_writer *w, PyObject *args, PyObject *kwargs);

#endif
