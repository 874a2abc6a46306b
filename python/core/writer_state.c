/* SPDX-License-Identifier: Apache-2.0 */
/* Acquiring and releasing a trajectory writer; see writer_state.h.
 *
 * Invariants, whenever a thread releases the GIL:
 *   S1  refs counts the writer, and each history, column and cell made from it;
 *   S2  `inside` is the thread that has the writer if `busy` is set;
 *   S3  the C writer is used by the thread `inside` only. */
#include "writer_state.h"

#include <unistd.h>

enum {
    SLICE_MS = 20, /* between two checks for signals and for other threads that wait */
    YIELD_MS = 2, /* pause for a thread that waits, before this one acquires the writer again */
};

void writer_state_unref(writer_state *state)
{
    if (state == NULL) return;
    assert(state->refs > 0); /* S1 */
    if (--state->refs > 0) return;
    /* A forked child may have the copy of a busy writer. */
    assert((!state->busy && state->waiters == 0) || state->pid != getpid());
    Py_XDECREF(state->strings);
    PyMem_Free(state);
}

PyObject *writer_raise(rp_status status, const char *text)
{
    rp_error err = {.code = status};
    (void)snprintf(err.text, sizeof(err.text), "%s", text);
    return core_raise(status, &err);
}

int writer_settle(writer_state *state)
{
    int failed = 0;
    if (!state->busy) return 0;
    if (state->inside == PyThread_get_thread_ident()) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the writer is busy with an earlier call of this thread");
        return -1;
    }
    if (state->pid != getpid()) {
        writer_raise(RP_PRECONDITION,
                     "the writer was made before a fork and belongs to the parent");
        return -1;
    }
    state->waiters++;
    while (state->busy && failed == 0) {
        Py_BEGIN_ALLOW_THREADS
        core_sleep_ms(1);
        Py_END_ALLOW_THREADS
        failed = PyErr_CheckSignals();
    }
    assert(state->waiters > 0);
    state->waiters--;
    return failed;
}

int writer_enter(writer_state *state)
{
    if (state == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the writer was not initialised");
        return -1;
    }
    if (state->busy && writer_settle(state) < 0) return -1;
    if (state->writer == NULL) {
        writer_raise(RP_CANCELLED, "TrajectoryWriter::Close has been called. The writer is "
                                   "closed; make a new one with "
                                   "client.trajectory_writer()");
        return -1;
    }
    assert(!state->busy);
    state->busy = true;
    state->inside = PyThread_get_thread_ident();
    return 0;
}

int writer_wait(writer_state *state, core_call call, void *arg, int64_t timeout_ms,
                rp_status *status, rp_error *err)
{
    int64_t until_ns = timeout_ms < 0 ? RP_FOREVER : rp_wait_ms(timeout_ms).until_ns;
    core_patience patience = core_patience_after(state != NULL ? state->waited_ns : 0);
    for (;;) {
        if (writer_enter(state) < 0) return -1;
        Py_BEGIN_ALLOW_THREADS
        int64_t end_ns = until_ns == RP_NOW ? RP_NOW : rp_wait_ms(SLICE_MS).until_ns;
        rp_wait wait = {end_ns < until_ns ? end_ns : until_ns, NULL};
        *status = call(arg, wait, err);
        Py_END_ALLOW_THREADS
        writer_leave(state);
        if (*status == RP_OK) state->waited_ns = 0;
        if (*status != RP_DEADLINE) return 0;
        if (PyErr_CheckSignals() < 0) return -1;
        if (until_ns == RP_NOW || rp_now_ns() >= until_ns) return 0;
        if (core_patience_is_over(&patience) && core_patience_warn(&patience, err->text) < 0)
            return -1;
        if (state->waiters == 0) continue;
        Py_BEGIN_ALLOW_THREADS
        core_sleep_ms(YIELD_MS);
        Py_END_ALLOW_THREADS
    }
}

static bool is_finalizing(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

bool writer_drain(const writer_state *state)
{
    while (state->busy && state->pid == getpid()) {
        if (is_finalizing()) return false;
        Py_BEGIN_ALLOW_THREADS
        core_sleep_ms(1);
        Py_END_ALLOW_THREADS
    }
    return true;
}
