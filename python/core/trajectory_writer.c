/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.TrajectoryWriter. trajectory_writer.h lists the files of its implementation.
 *
 * Invariants, while no thread has acquired the writer:
 *   P1  all histories have the same length: the number of steps since they were last cleared;
 *   P2  columns[i]->column is i: histories and columns of the C writer have the same numbers;
 *   P3  the writer holds a reference to its client until the C writer is freed. */
#include "trajectory_writer.h"

#include <unistd.h>

enum {
    ASK_MIN_MS = 100, /* the first timeout of a request to the server; later ones are doubled */
    ASK_MAX_MS = 1600,
    RETRY_MS = 50, /* pause before the next attempt if a server has refused the connection */
};

static const char once_text[] = "a writer is initialised once";
static const char never_text[] = "the writer was not initialised";

static rp_status ask_tables(rp_client *client, int64_t wait_ms, rp_error *err)
{
    rp_client_tables *tables = NULL;
    rp_status st = rp_client_get_tables(client, rp_wait_ms(wait_ms), &tables, err);
    if (st == RP_OK) rp_client_tables_free(tables);
    return st;
}

/* Waits until a server responds. After that the client has the signatures of its tables, with
 * which items are compared. */
static int await_server(core_client *client, int64_t timeout_ms)
{
    int64_t until_ns = timeout_ms < 0 ? RP_FOREVER : rp_wait_ms(timeout_ms).until_ns;
    core_patience patience = core_patience_begin();
    rp_error err = {0};
    rp_status st;
    if (client->store != NULL) return 0;
    for (int64_t slice_ms = ASK_MIN_MS;;) {
        int64_t start_ns = rp_now_ns(), end_ns = start_ns + slice_ms * 1000000;
        if (patience.warn_ns < end_ns) end_ns = patience.warn_ns; /* > start_ns */
        if (until_ns < end_ns) end_ns = until_ns;
        Py_BEGIN_ALLOW_THREADS
        st = ask_tables(client->client, (end_ns - start_ns) / 1000000, &err);
        if (st == RP_UNAVAILABLE) core_sleep_ms(RETRY_MS);
        Py_END_ALLOW_THREADS
        if (st == RP_OK) return 0;
        if (PyErr_CheckSignals() < 0) return -1;
        if ((st != RP_DEADLINE && st != RP_UNAVAILABLE) || rp_now_ns() >= until_ns) break;
        if (st == RP_UNAVAILABLE && core_is_refused(client->client)) {
            core_raise(st, &err);
            return -1;
        }
        if (core_patience_is_over(&patience) && core_patience_warn(&patience, err.text) < 0)
            return -1;
        if (slice_ms < ASK_MAX_MS && st == RP_DEADLINE) slice_ms *= 2;
    }
    if (st == RP_UNAVAILABLE) st = err.code = RP_DEADLINE;
    core_raise(st, &err);
    return -1;
}

static int state_new(core_writer *w, core_client *client,
                     const rp_trajectory_writer_options *options)
{
    rp_trajectory_writer *writer = NULL;
    rp_error err = {0};
    rp_status st;
    writer_state *state = PyMem_Calloc(1, sizeof(*state));
    if (state == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    st = rp_trajectory_writer_new(client->client, options, rp_wait_ms(ASK_MAX_MS), &writer,
                                  &err);
    Py_END_ALLOW_THREADS
    if (st != RP_OK) {
        PyMem_Free(state);
        core_raise(st, &err);
        return -1;
    }
    if (w->state != NULL) { /* another thread has initialised it meanwhile */
        PyMem_Free(state);
        rp_trajectory_writer_free(writer);
        PyErr_SetString(PyExc_RuntimeError, once_text);
        return -1;
    }
    assert(writer != NULL && client != NULL);
    state->refs = 1;
    state->writer = writer;
    state->default_history = options->column.history;
    state->pid = getpid();
    w->state = state;
    w->client = Py_NewRef((PyObject *)client);
    return 0;
}

static int writer_init(core_writer *w, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"client",    "history", "validate", "max_items",
                            "max_bytes", "timeout", NULL};
    PyObject *client, *timeout = Py_None;
    Py_ssize_t history, max_items = 0, max_bytes = 0;
    int validate = 1;
    int64_t timeout_ms;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!n|$pnnO:TrajectoryWriter", names,
                                     &core_Client, &client, &history, &validate, &max_items,
                                     &max_bytes, &timeout))
        return -1;
    if (w->state != NULL) {
        PyErr_SetString(PyExc_RuntimeError, once_text);
        return -1;
    }
    if (history < 1 || history > INT32_MAX) {
        PyErr_Format(PyExc_ValueError,
                     "num_keep_alive_refs (%zd) must be a positive integer, at most %d",
                     history, INT32_MAX);
        return -1;
    }
    if (max_items < 0 || max_bytes < 0) {
        PyErr_Format(PyExc_ValueError, "max_items and max_bytes must be >= 0, got %zd and %zd",
                     max_items, max_bytes);
        return -1;
    }
    if (core_timeout_s(timeout, &timeout_ms) < 0) return -1;
    if (((core_client *)client)->client == NULL) {
        writer_raise(RP_PRECONDITION, "the client is closed");
        return -1;
    }
    rp_trajectory_writer_options options = {.column = {.history = (int32_t)history},
                                            .unchecked = validate == 0,
                                            .exact = true,
                                            .max_items = (size_t)max_items,
                                            .max_bytes = (size_t)max_bytes};
    w->validates = validate != 0;
    if (w->tables == NULL) w->tables = PySet_New(NULL);
    if (w->tables == NULL) return -1;
    if (validate && await_server((core_client *)client, timeout_ms) < 0) return -1;
    return state_new(w, (core_client *)client, &options);
}

/* Waits until no thread has acquired the C writer, then closes and frees it. Returns false if
 * that never happens (see writer_drain): then the C writer is not freed, and still uses its
 * client. */
static bool shut(core_writer *w)
{
    writer_state *state = w->state;
    rp_trajectory_writer *writer = state->writer;
    if (writer == NULL) return true;
    state->writer = NULL; /* from here on writer_enter() fails */
    if (!writer_drain(state)) return false;
    assert(!state->busy || state->pid != getpid());
    w->final_steps = rp_trajectory_writer_steps(writer);
    Py_CLEAR(state->strings);
    Py_BEGIN_ALLOW_THREADS
    rp_trajectory_writer_free(writer);
    Py_END_ALLOW_THREADS
    return true;
}

static void writer_dealloc(core_writer *w)
{
    PyTypeObject *type = Py_TYPE(w);
    bool is_shut = w->state == NULL || shut(w);
    for (size_t i = 0; i < w->column_count; i++) Py_DECREF((PyObject *)w->columns[i]);
    PyMem_Free(w->columns);
    for (int i = 0; i < SHAPES; i++) {
        core_step_shape_free(w->shapes[i]);
        Py_XDECREF(w->item_structures[i]);
    }
    core_names_clear(&w->checked);
    Py_XDECREF(w->tables);
    Py_XDECREF(w->last_table);
    Py_XDECREF(w->structure);
    Py_XDECREF(w->leaves);
    Py_XDECREF(w->nest);
    PyMem_Free(w->parts);
    writer_state_unref(w->state);
    if (is_shut) Py_XDECREF(w->client); /* P3 */
    type->tp_free((PyObject *)w);
}

static PyObject *writer_close(core_writer *w, PyObject *unused)
{
    (void)unused;
    if (w->state == NULL || w->state->writer == NULL) Py_RETURN_NONE;
    if (writer_settle(w->state) < 0) return NULL;
    (void)shut(w);
    Py_RETURN_NONE;
}

static int parse_codec(const char *name, rp_codec *codec)
{
    for (int i = 0; rp_codec_name((rp_codec)i) != NULL; i++)
        if (strcmp(rp_codec_name((rp_codec)i), name) == 0) {
            *codec = (rp_codec)i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError,
                 "codec must be None, 'snappy', 'none', 'zstd' or 'lz4', got '%s'", name);
    return -1;
}

/* _add_column(path, refs=0, length=0, codec=None, delta=False): adds a column and returns its
 * history. */
static PyObject *writer_add_column(core_writer *w, PyObject *args)
{
    PyObject *path;
    int refs = 0, length = 0, delta = 0;
    const char *codec = NULL;
    if (!PyArg_ParseTuple(args, "O!|iizp:_add_column", &PyTuple_Type, &path, &refs, &length,
                          &codec, &delta))
        return NULL;
    if (w->state == NULL) {
        PyErr_SetString(PyExc_RuntimeError, never_text);
        return NULL;
    }
    rp_column_options options = {.history = refs > 0 ? refs : w->state->default_history,
                                 .chunk_length = length,
                                 .chunk.delta = delta != 0};
    if (codec != NULL && parse_codec(codec, &options.chunk.codec) < 0) return NULL;
    if (w->column_count >= RP_MAX_COLUMNS) {
        PyErr_Format(PyExc_ValueError, "a writer has at most %d columns", RP_MAX_COLUMNS);
        return NULL;
    }
    if (w->column_count == w->column_capacity) {
        size_t capacity = w->column_capacity > 0 ? 2 * w->column_capacity : 8;
        core_history **columns = PyMem_Realloc(w->columns, capacity * sizeof(*columns));
        if (columns == NULL) return PyErr_NoMemory();
        w->columns = columns;
        w->column_capacity = capacity;
    }
    assert(w->column_count < w->column_capacity);
    int64_t steps = w->column_count > 0 ? w->columns[0]->length : 0;
    PyObject *made =
        core_history_new(w->state, path, (uint32_t)w->column_count, &options, steps);
    if (made == NULL) return NULL;
    ((core_history *)made)->configured = codec != NULL;
    assert(((core_history *)made)->column == w->column_count); /* P2 */
    w->columns[w->column_count++] = (core_history *)made;
    Py_INCREF(made);
    return made;
}

/* _configure(history, refs, length, codec, delta): changes the options of a column. */
static PyObject *writer_configure(core_writer *w, PyObject *args)
{
    core_history *h;
    int refs = 0, length = 0, delta = 0;
    const char *codec = NULL;
    rp_error err = {0};
    if (!PyArg_ParseTuple(args, "O!iizp:_configure", &core_ColumnHistory, &h, &refs, &length,
                          &codec, &delta))
        return NULL;
    rp_column_options options = {
        .history = refs, .chunk_length = length, .chunk = h->options.chunk};
    if (codec != NULL && parse_codec(codec, &options.chunk.codec) < 0) return NULL;
    options.chunk.delta = delta != 0;
    if (writer_enter(w->state) < 0) return NULL;
    rp_status st =
        rp_trajectory_writer_configure(w->state->writer, h->column, NULL, &options, &err);
    writer_leave(w->state);
    if (st != RP_OK) return core_raise(st, &err);
    h->options = options;
    if (codec != NULL) h->configured = true;
    if (refs > h->limit) h->limit = refs; /* cells keep their places in the ring */
    Py_RETURN_NONE;
}

static PyObject *writer_steps(core_writer *w, void *unused)
{
    (void)unused;
    if (w->state != NULL && w->state->inside != PyThread_get_thread_ident() &&
        writer_settle(w->state) < 0)
        return NULL;
    if (w->state == NULL || w->state->writer == NULL)
        return PyLong_FromLongLong(w->final_steps);
    return PyLong_FromLongLong(rp_trajectory_writer_steps(w->state->writer));
}

static PyObject *writer_pending(core_writer *w, void *unused)
{
    (void)unused;
    if (w->state == NULL || w->state->writer == NULL) return PyLong_FromLong(0);
    return PyLong_FromSize_t(rp_trajectory_writer_pending(w->state->writer));
}

static PyObject *writer_why(core_writer *w, PyObject *unused)
{
    char text[512];
    (void)unused;
    if (writer_enter(w->state) < 0) return NULL;
    Py_BEGIN_ALLOW_THREADS
    rp_trajectory_writer_why(w->state->writer, text, sizeof(text));
    Py_END_ALLOW_THREADS
    writer_leave(w->state);
    return core_reason(text);
}

static PyMethodDef writer_methods[] = {
    {"append", CORE_METHOD(core_writer_append), METH_FASTCALL | METH_KEYWORDS,
     "append($self, data, *, partial_step=False)\n--\n\n"
     "Adds a step: a nest of values. Each value is a row of the column of its path.\n\n"
     "A leaf that is None has no value in this step. A leaf at a new path is a new column. "
     "The\n"
     "first value of a column determines its dtype and shape. With `partial_step` the step\n"
     "stays open, and the next append adds to it.\n\n"
     "ValueError if a value has another dtype or shape than its column, or if the column\n"
     "already has a value in this step. Then nothing was appended."},
    {"create_item", CORE_METHOD(core_writer_create_item), METH_FASTCALL | METH_KEYWORDS,
     "create_item($self, table, priority, trajectory)\n--\n\n"
     "Creates an item of rows of the history: a nest of TrajectoryColumns. Returns its key.\n\n"
     "The item is sent in the background, once its chunks are complete: see flush(). Waits\n"
     "while max_items items, or max_bytes bytes of them, are unconfirmed.\n\n"
     "TypeError if a leaf is not a TrajectoryColumn. ValueError if the trajectory is empty, "
     "if\n"
     "the priority is NaN, if a row has expired, if rows of a column have different dtypes or\n"
     "shapes, or if the table does not exist or has another signature."},
    {"flush", CORE_METHOD(core_writer_flush), METH_VARARGS | METH_KEYWORDS,
     "flush($self, block_until_num_items=0, timeout_ms=None, *, timeout=None)\n--\n\n"
     "Waits until the server has confirmed all items but `block_until_num_items`.\n\n"
     "DeadlineExceededError after `timeout_ms` (None, or 0 or less: never), or after "
     "`timeout`\n"
     "seconds (None: never); only one of them may be given. Then sending\n"
     "continues in the background."},
    {"end_episode", CORE_METHOD(core_writer_end_episode), METH_VARARGS | METH_KEYWORDS,
     "end_episode($self, clear_buffers=True, timeout_ms=None, *, timeout=None)\n--\n\n"
     "Waits until the server has confirmed all items, then begins a new episode, at step 0.\n\n"
     "Without `clear_buffers` the history stays, and items may have steps of both episodes.\n"
     "DeadlineExceededError after `timeout_ms`, or `timeout` seconds; then the episode has\n"
     "not ended."},
    {"close", CORE_METHOD(writer_close), METH_NOARGS,
     "close($self, /)\n--\n\n"
     "Closes the writer. Items that are not confirmed may be lost: flush() first."},
    {"why", CORE_METHOD(writer_why), METH_NOARGS,
     "why($self, /)\n--\n\nSays what the unconfirmed items wait for."},
    {"_add_column", CORE_METHOD(writer_add_column), METH_VARARGS, NULL},
    {"_configure", CORE_METHOD(writer_configure), METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef writer_properties[] = {
    {"history", (getter)core_writer_history, NULL,
     "The appended values: a nest like the steps, with a ColumnHistory for each leaf, which "
     "is\n"
     "indexed by step. RuntimeError before the first append.",
     NULL},
    {"episode_steps", (getter)writer_steps, NULL,
     "Steps appended since the episode began, without an open step.", NULL},
    {"pending", (getter)writer_pending, NULL, "The number of unconfirmed items.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject core_TrajectoryWriter = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.TrajectoryWriter",
    .tp_basicsize = sizeof(core_writer),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "The part of reprise.TrajectoryWriter that is C.",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)writer_init,
    .tp_dealloc = (destructor)writer_dealloc,
    .tp_methods = writer_methods,
    .tp_getset = writer_properties,
};
