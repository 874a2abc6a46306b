/* SPDX-License-Identifier: Apache-2.0 */
/* What trajectory_writer.c and column.c share.
 *
 *   TrajectoryWriter ──► history: a ColumnHistory for each leaf ──► TrajectoryColumn
 *          │                         │                                   │
 *          └──────────────► writer_state ◄─────────────────────────────┴── WeakCellRef
 *
 * Histories, columns and cells outlive the writer they come from; what they share with it, and
 * whether it is still there, is in the state. Everything is protected by the GIL; the C writer,
 * which takes one thread at a time, by `busy` as well, since long calls let the GIL go. */
#ifndef REPRISE_PYTHON_TRAJECTORY_WRITER_H
#define REPRISE_PYTHON_TRAJECTORY_WRITER_H

#include "core.h"

#include <sys/types.h>

typedef struct writer_state {
    size_t refs;
    rp_trajectory_writer *writer; /* NULL: closed */
    int32_t default_history;
    bool busy;            /* somebody is inside */
    unsigned long inside; /* who: a thread */
    int waiters;          /* threads that want in */
    pid_t pid;            /* of the process that made it */
    PyObject *strings;    /* a dict of arrays, by strings_key(); NULL: none yet. The C writer
                             gives rows of strings to items only */
} writer_state;

void writer_state_unref(writer_state *state); /* NULL is fine */

/* Waits until the writer is ours; then it is until writer_leave(). A StatusError if the writer
 * is closed (with that, -1 as always), or if this thread is inside already. */
int writer_enter(writer_state *state);
static inline void writer_leave(writer_state *state)
{
    state->busy = false;
}
/* Waits until nobody is inside; then nobody is until the GIL is let go. */
int writer_settle(writer_state *state);

/* Makes a call that may wait, as core_wait() does; between its slices other threads may use the
 * writer. Not to be called from inside. 0 with `*status`, or -1 with an exception. */
int writer_wait(writer_state *state, core_call call, void *arg, int64_t timeout_ms,
                rp_status *status, rp_error *err);

/* core_raise() with a text. */
PyObject *writer_raise(rp_status status, const char *text);

/* The history of a column: the cells of the last `kept` of `length` steps, in a ring. The steps
 * before those are lost, and look like those in which the column had no value. */
typedef struct core_history {
    PyObject_HEAD
    writer_state *state;
    PyObject *path; /* a tuple */
    PyObject *name; /* its path as messages show it: bytes, zero-terminated */
    uint32_t column;
    int32_t limit; /* of `kept` */
    int64_t length;
    int64_t kept, capacity; /* the capacity is a power of two, or 0 */
    int64_t *ring;          /* by step; -1: no value */
    rp_column_options options;
    bool configured; /* by the user */
    /* once it has had a value */
    bool known;
    rp_dtype dtype;
    rp_shape shape; /* of a row */
    size_t row_bytes;
    PyArray_Descr *descr; /* a reference */
} core_history;

/* A new history of a column that has no value in the `length` steps there are. */
PyObject *core_history_new(writer_state *state, PyObject *path, uint32_t column,
                           const rp_column_options *options, int64_t length);
/* Makes room for one step more. */
int core_history_reserve(core_history *history);
/* Adds a step without a value, for which there is room. */
static inline void core_history_push(core_history *h)
{
    h->ring[h->length & (h->capacity - 1)] = -1;
    h->length++;
    if (h->kept < h->limit) h->kept++;
}
static inline int64_t *core_history_last(const core_history *h)
{
    return h->kept > 0 ? &h->ring[(h->length - 1) & (h->capacity - 1)] : NULL;
}
void core_history_clear(core_history *history);
/* Sets what is known of it from its first value. */
int core_history_learn(core_history *history, const rp_tensor *tensor);
/* Keeps the strings of a new cell for numpy(), and drops those of the one that it pushes out.
 * What fails for want of memory is only missed there. */
void core_history_keep_strings(core_history *history, uint64_t cell, const rp_tensor *tensor);

/* A column of an item: references to rows. One of rows of a writer has them inline; one that
 * was made of anything else has a tuple of it, and is only good for looking at. */
typedef struct core_column {
    PyObject_VAR_HEAD writer_state *state; /* NULL: see `objects` */
    PyObject *objects;                     /* NULL, or a tuple */
    char squeeze;
    rp_ref refs[];
} core_column;

static inline bool core_column_check(PyObject *obj)
{
    return Py_TYPE(obj) == &core_TrajectoryColumn ||
           PyObject_TypeCheck(obj, &core_TrajectoryColumn);
}

enum { SHAPES = 8 }; /* structures remembered */

/* A structure of steps. */
typedef struct step_shape step_shape;

/* What a part of the nest of histories was when it was made. */
typedef struct nest_part {
    PyObject *obj, *key; /* borrowed from the nest */
} nest_part;

typedef struct core_writer {
    PyObject_HEAD
    writer_state *state;
    PyObject *client;
    core_history **columns; /* a reference each */
    size_t column_count, column_capacity;
    step_shape *shapes[SHAPES]; /* the latest first */
    PyObject *item_structures[SHAPES];
    PyObject *tables, *last_table; /* the names of those that items were created in: a set */
    int64_t final_steps;           /* once it is closed */
    /* the history */
    PyObject *structure; /* NULL before there is a column */
    PyObject *leaves;    /* a tuple of histories */
    PyObject *nest;      /* made of them, or NULL */
    nest_part *parts;    /* of the nest */
    size_t part_count, part_capacity;
} core_writer;

/* trajectory_history.c: what _learn says the history looks like, and what callers get. */
int core_writer_set_history(core_writer *w, PyObject *nest);
PyObject *core_writer_history(core_writer *w, void *unused);

/* trajectory_items.c */
PyObject *core_writer_create_item(core_writer *w, PyObject *const *args, Py_ssize_t nargs,
                                  PyObject *kwnames);
PyObject *core_writer_flush(core_writer *w, PyObject *args, PyObject *kwargs);
PyObject *core_writer_end_episode(core_writer *w, PyObject *args, PyObject *kwargs);

#endif
