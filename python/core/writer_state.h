/* SPDX-License-Identifier: Apache-2.0 */
/* The state that a trajectory writer shares with the objects made from it.
 *
 *   TrajectoryWriter ──► history: a ColumnHistory for each leaf ──► TrajectoryColumn
 *          │                         │                                   │
 *          └──────────────► writer_state ◄─────────────────────────────┴── WeakCellRef
 *
 * Histories, columns and cells can outlive their writer. Each holds a reference to the state,
 * which shows whether the writer is still open.
 *
 * The GIL protects all fields. Only one thread at a time may use the C writer, and long calls
 * to the C writer release the GIL. Therefore a thread must also acquire the writer with
 * writer_enter(). */
#ifndef REPRISE_PYTHON_WRITER_STATE_H
#define REPRISE_PYTHON_WRITER_STATE_H

#include "core.h"

#include <sys/types.h>

typedef struct writer_state {
    size_t refs;
    rp_trajectory_writer *writer; /* NULL: closed */
    int32_t default_history;
    bool busy;            /* a thread has acquired the writer */
    unsigned long inside; /* the thread that has acquired the writer */
    int waiters;          /* threads that wait to acquire it */
    pid_t pid;            /* the process that made the writer */
    int64_t waited_ns;    /* time for which the writer has waited for signatures since its last
                             wait for items that succeeded */
    PyObject *strings;    /* a dict from cells to their arrays of strings (cell.c); NULL:
                             none */
} writer_state;

/* Adds a reference. */
static inline writer_state *writer_state_ref(writer_state *state)
{
    assert(state->refs > 0);
    state->refs++;
    return state;
}
void writer_state_unref(writer_state *state); /* NULL is fine */

/* Acquires the writer. Waits while another thread has acquired it. RuntimeError if this thread
 * has already acquired it. StatusError if the writer is closed, or was made before a fork. */
int writer_enter(writer_state *state);

/* Releases the writer. */
static inline void writer_leave(writer_state *state)
{
    assert(state->busy && state->inside == PyThread_get_thread_ident());
    state->busy = false;
}

/* Waits until no thread has acquired the writer. Afterwards, no other thread can acquire the
 * writer until the caller releases the GIL. Fails as writer_enter() does, but succeeds for a
 * closed writer. */
int writer_settle(writer_state *state);

/* Waits until no thread has acquired the writer. The caller must first set `writer` to NULL, so
 * that no other thread can acquire it. Returns false if the wait would never end, because the
 * interpreter is ending and the thread that has acquired the writer will not run again. */
bool writer_drain(const writer_state *state);

/* Runs `call`, which can block, as core_wait() does. It is repeated in slices of time, between
 * which other threads can use the writer. The caller must not have acquired the writer. Returns
 * 0 with `*status` set, or -1 with an exception. */
int writer_wait(writer_state *state, core_call call, void *arg, int64_t timeout_ms,
                rp_status *status, rp_error *err);

/* Calls core_raise() with `status` and an error whose text is `text`. */
PyObject *writer_raise(rp_status status, const char *text);

#endif
