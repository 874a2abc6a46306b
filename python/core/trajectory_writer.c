/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.TrajectoryWriter: steps in, items out.
 *
 * An append knows the structures that it has seen: for each, which leaf belongs to which
 * column, and the values of the last step with that structure, of which mostly only the
 * pointers change. What has not been seen is left to Python: the method _learn of the class in
 * reprise/trajectory_writer.py says what columns its leaves belong to, and what the history
 * looks like now. create_item does the same for the structures of items.
 *
 * Invariants, while nobody is inside:
 *   P1  all histories have the same length: that of the steps since the last clearing;
 *   P2  a history's cell is the C writer's cell of the same column, or -1. */
#include "trajectory_writer.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

enum {
    RELEASE_BYTES = 64 << 10, /* from here on an append lets the GIL go */
    COMPRESS_BYTES = 1 << 10, /* rows of this size and more are compressed */
    SLICE_MS = 20,            /* between two looks at signals, and at who wants in */
    GREET_MIN_MS = 100,       /* first wait for an answer of the server, doubling */
    GREET_MAX_MS = 1600,
};

/* A value of Python's or NumPy's that is not an array. */
typedef union scalar {
    double f64;
    int64_t i64;
    npy_bool boolean;
    unsigned char bytes[16];
} scalar;

struct step_shape {
    PyObject *structure;
    Py_ssize_t count;
    int64_t *columns; /* of each leaf; -1: it must be None */
    rp_value *values; /* the last ones; without a tensor where `ready` is not set */
    bool *ready;
    scalar *scalars;
    PyObject **keeps; /* what owns the memory of values that are not what was given */
    rp_ref *refs;
};

static PyObject *learn_name; /* "_learn" */

static const char once_text[] = "a writer is initialised once";
static const char never_text[] = "the writer was not initialised";

void writer_state_unref(writer_state *state)
{
    if (state == NULL || --state->refs > 0) return;
    Py_XDECREF(state->strings);
    PyMem_Free(state);
}

static void sleep_ms(long ms)
{
    struct timespec span = {0, ms * 1000000L};
    (void)nanosleep(&span, NULL);
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
        sleep_ms(1);
        Py_END_ALLOW_THREADS
        failed = PyErr_CheckSignals();
    }
    state->waiters--;
    return failed;
}

int writer_enter(writer_state *state)
{
    if (state == NULL) {
        PyErr_SetString(PyExc_RuntimeError, never_text);
        return -1;
    }
    if (state->busy && writer_settle(state) < 0) return -1;
    if (state->writer == NULL) {
        writer_raise(RP_CANCELLED, "TrajectoryWriter::Close has been called.");
        return -1;
    }
    state->busy = true;
    state->inside = PyThread_get_thread_ident();
    return 0;
}

int writer_wait(writer_state *state, core_call call, void *arg, int64_t timeout_ms,
                rp_status *status, rp_error *err)
{
    int64_t until_ns = timeout_ms < 0 ? RP_FOREVER : rp_wait_ms(timeout_ms).until_ns;
    for (;;) {
        if (writer_enter(state) < 0) return -1;
        Py_BEGIN_ALLOW_THREADS
        int64_t end_ns = until_ns == RP_NOW ? RP_NOW : rp_wait_ms(SLICE_MS).until_ns;
        rp_wait wait = {end_ns < until_ns ? end_ns : until_ns, NULL};
        *status = call(arg, wait, err);
        Py_END_ALLOW_THREADS
        writer_leave(state);
        if (*status != RP_DEADLINE) return 0;
        if (PyErr_CheckSignals() < 0) return -1;
        if (until_ns == RP_NOW || rp_now_ns() >= until_ns) return 0;
        if (state->waiters == 0) continue;
        Py_BEGIN_ALLOW_THREADS
        sleep_ms(2);
        Py_END_ALLOW_THREADS
    }
}

typedef struct greeting {
    rp_client *client;
    rp_client_tables *tables;
} greeting;

static rp_status ask_tables(greeting *g, int64_t wait_ms, rp_error *err)
{
    rp_status st = rp_client_get_tables(g->client, rp_wait_ms(wait_ms), &g->tables, err);
    if (st == RP_OK) rp_client_tables_free(g->tables);
    return st;
}

/* Waits until a server answers: the writer wants to know the signatures of its tables. */
static int greet(core_client *client, int64_t timeout_ms)
{
    greeting g = {.client = client->client};
    int64_t until_ns = timeout_ms < 0 ? RP_FOREVER : rp_wait_ms(timeout_ms).until_ns;
    rp_error err = {0};
    rp_status st;
    if (client->store != NULL) return 0;
    for (int64_t slice_ms = GREET_MIN_MS;;) {
        int64_t start_ns = rp_now_ns(), left_ms = (until_ns - start_ns) / 1000000;
        Py_BEGIN_ALLOW_THREADS
        st = ask_tables(&g, left_ms < slice_ms ? left_ms : slice_ms, &err);
        if (st == RP_UNAVAILABLE) sleep_ms(50);
        Py_END_ALLOW_THREADS
        if (st == RP_OK) return 0;
        if (PyErr_CheckSignals() < 0) return -1;
        if ((st != RP_DEADLINE && st != RP_UNAVAILABLE) || rp_now_ns() >= until_ns) break;
        if (slice_ms < GREET_MAX_MS && st == RP_DEADLINE) slice_ms *= 2;
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
    st = rp_trajectory_writer_new(client->client, options, rp_wait_ms(GREET_MAX_MS), &writer,
                                  &err);
    Py_END_ALLOW_THREADS
    if (st != RP_OK) {
        PyMem_Free(state);
        core_raise(st, &err);
        return -1;
    }
    if (w->state != NULL) { /* another thread was faster */
        PyMem_Free(state);
        rp_trajectory_writer_free(writer);
        PyErr_SetString(PyExc_RuntimeError, once_text);
        return -1;
    }
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
        PyErr_Format(PyExc_ValueError, "num_keep_alive_refs (%zd) must be a positive integer",
                     history);
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
    if (learn_name == NULL) learn_name = PyUnicode_InternFromString("_learn");
    if (learn_name == NULL) return -1;
    rp_trajectory_writer_options options = {.column = {.history = (int32_t)history},
                                            .unchecked = validate == 0,
                                            .exact = true,
                                            .max_items = (size_t)max_items,
                                            .max_bytes = (size_t)max_bytes};
    if (w->tables == NULL) w->tables = PySet_New(NULL);
    if (w->tables == NULL) return -1;
    if (validate && greet((core_client *)client, timeout_ms) < 0) return -1;
    return state_new(w, (core_client *)client, &options);
}

static void shape_free(step_shape *shape)
{
    if (shape == NULL) return;
    Py_XDECREF(shape->structure);
    PyMem_Free(shape->columns);
    PyMem_Free(shape->values);
    PyMem_Free(shape->ready);
    PyMem_Free(shape->scalars);
    PyMem_Free(shape->keeps);
    PyMem_Free(shape->refs);
    PyMem_Free(shape);
}

static bool is_finalizing(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

/* Waits until nobody is inside: a thread may be, copying rows of a column, without a reference
 * to the writer. False if that thread will never say that it has left, because the interpreter
 * ends. */
static bool all_left(const writer_state *state)
{
    while (state->busy && state->pid == getpid()) {
        if (is_finalizing()) return false;
        Py_BEGIN_ALLOW_THREADS
        sleep_ms(1);
        Py_END_ALLOW_THREADS
    }
    return true;
}

/* Frees the C writer, once nobody is inside. False if that will never be: then the writer
 * stays, and needs its client. */
static bool shut(core_writer *w)
{
    writer_state *state = w->state;
    rp_trajectory_writer *writer = state->writer;
    if (writer == NULL) return true;
    state->writer = NULL; /* from here on nobody enters */
    if (!all_left(state)) return false;
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
        shape_free(w->shapes[i]);
        Py_XDECREF(w->item_structures[i]);
    }
    Py_XDECREF(w->tables);
    Py_XDECREF(w->last_table);
    Py_XDECREF(w->structure);
    Py_XDECREF(w->leaves);
    Py_XDECREF(w->nest);
    PyMem_Free(w->parts);
    writer_state_unref(w->state);
    if (is_shut) Py_XDECREF(w->client); /* not before the C writer, which uses it */
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

/* _add_column(path, refs=0, length=0, codec=None, delta=False): a new one, or one that exists
 * configured anew. */
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
    int64_t steps = w->column_count > 0 ? w->columns[0]->length : 0;
    PyObject *made =
        core_history_new(w->state, path, (uint32_t)w->column_count, &options, steps);
    if (made == NULL) return NULL;
    ((core_history *)made)->configured = codec != NULL;
    w->columns[w->column_count++] = (core_history *)made;
    Py_INCREF(made);
    return made;
}

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
    if (refs > h->limit) h->limit = refs; /* what is kept is still in its place */
    Py_RETURN_NONE;
}

static void conflict(const step_shape *shape, Py_ssize_t leaf, PyObject *got)
{
    PyObject *path = core_structure_path(shape->structure, leaf);
    if (path != NULL)
        PyErr_Format(
            PyExc_ValueError,
            "'%U' was a structure in an earlier step and must be one, or None, but got: %S",
            path, got);
    Py_XDECREF(path);
}

static step_shape *shape_new(const core_writer *w, PyObject *structure, PyObject *columns)
{
    Py_ssize_t count = core_structure_leaf_count(structure);
    size_t room = (size_t)count + 1;
    step_shape *shape = PyMem_Calloc(1, sizeof(*shape));
    if (shape == NULL) goto fail;
    Py_INCREF(structure);
    shape->structure = structure;
    shape->count = count;
    shape->columns = PyMem_Calloc(room, sizeof(*shape->columns));
    shape->values = PyMem_Calloc(room, sizeof(*shape->values));
    shape->ready = PyMem_Calloc(room, sizeof(*shape->ready));
    shape->scalars = PyMem_Calloc(room, sizeof(*shape->scalars));
    shape->keeps = PyMem_Calloc(room, sizeof(*shape->keeps));
    shape->refs = PyMem_Calloc(room, sizeof(*shape->refs));
    if (shape->columns == NULL || shape->values == NULL || shape->ready == NULL ||
        shape->scalars == NULL || shape->keeps == NULL || shape->refs == NULL)
        goto fail;
    if (!PyList_Check(columns) || PyList_GET_SIZE(columns) != count) {
        PyErr_SetString(PyExc_ValueError, "_learn must name a column for each leaf");
        goto fail;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        shape->columns[i] = PyLong_AsLongLong(PyList_GET_ITEM(columns, i));
        if (shape->columns[i] == -1 && PyErr_Occurred()) goto fail;
        if (shape->columns[i] < -1 || shape->columns[i] >= (int64_t)w->column_count) {
            PyErr_SetString(PyExc_ValueError, "_learn must name columns that there are");
            goto fail;
        }
    }
    return shape;
fail:
    if (!PyErr_Occurred()) PyErr_NoMemory();
    shape_free(shape);
    return NULL;
}

/* Meets a structure for the first time, or again after many others. */
static step_shape *learn(core_writer *w, PyObject *data)
{
    step_shape *shape = NULL;
    PyObject *structure = core_structure_of(data);
    PyObject *said = structure == NULL
                         ? NULL
                         : PyObject_CallMethodObjArgs((PyObject *)w, learn_name, data, NULL);
    if (said == NULL) goto out;
    PyObject *nest, *columns;
    if (!PyArg_ParseTuple(said, "OO:_learn", &nest, &columns)) goto out;
    if (nest != Py_None && core_writer_set_history(w, nest) < 0) goto out;
    shape = shape_new(w, structure, columns);
    if (shape == NULL) goto out;
    shape_free(w->shapes[SHAPES - 1]);
    memmove(&w->shapes[1], &w->shapes[0], (SHAPES - 1) * sizeof(w->shapes[0]));
    w->shapes[0] = shape;
out:
    Py_XDECREF(structure);
    Py_XDECREF(said);
    return shape;
}

/* Flattens a step; the structure is known then, and the first in the list. */
static step_shape *flatten_step(core_writer *w, PyObject *data, core_leaves *leaves)
{
    for (int i = 0; i < SHAPES && w->shapes[i] != NULL; i++) {
        step_shape *shape = w->shapes[i];
        int same = core_structure_flatten(shape->structure, data, leaves);
        if (same < 0) return NULL;
        if (same == 0) continue;
        memmove(&w->shapes[1], &w->shapes[0], (size_t)i * sizeof(shape));
        w->shapes[0] = shape;
        return shape;
    }
    step_shape *shape = learn(w, data);
    if (shape == NULL) return NULL;
    int same = core_structure_flatten(shape->structure, data, leaves);
    if (same == 1) return shape;
    if (same == 0)
        PyErr_SetString(PyExc_RuntimeError, "the step changed while it was looked at");
    return NULL;
}

static bool has_shape(PyArrayObject *array, const rp_shape *shape)
{
    if (PyArray_NDIM(array) != shape->rank) return false;
    for (int i = 0; i < shape->rank; i++)
        if (PyArray_DIM(array, i) != shape->dims[i]) return false;
    return true;
}

/* Points the tensor at a value of the dtype and shape of its column, if that takes neither a
 * copy of an array nor a question to Python. */
static bool take_quickly(const core_history *h, PyObject *obj, scalar *s, rp_tensor *tensor)
{
    if (PyArray_CheckExact(obj)) {
        PyArrayObject *array = (PyArrayObject *)obj;
        if (PyArray_DESCR(array) != h->descr || h->dtype == RP_STRING ||
            !PyArray_ISCARRAY_RO(array) || !has_shape(array, &h->shape))
            return false;
        tensor->data = PyArray_DATA(array);
        return true;
    }
    if (h->shape.rank != 0) return false;
    if (PyFloat_CheckExact(obj) && h->dtype == RP_FLOAT64) {
        s->f64 = PyFloat_AS_DOUBLE(obj);
    } else if (PyLong_CheckExact(obj) && h->dtype == RP_INT64) {
        int overflow;
        s->i64 = PyLong_AsLongLongAndOverflow(obj, &overflow);
        if (overflow != 0) return false;
    } else if (PyBool_Check(obj) && h->dtype == RP_BOOL) {
        s->boolean = obj == Py_True;
    } else if (Py_TYPE(obj) == h->descr->typeobj && h->dtype != RP_STRING &&
               h->descr->type_num != NPY_VOID && /* which gives a pointer */
               h->row_bytes <= sizeof(*s) && PyArray_IsScalar(obj, Generic)) {
        PyArray_ScalarAsCtype(obj, s);
    } else {
        return false;
    }
    tensor->data = s;
    return true;
}

/* ValueError: not of the dtype or shape of its column. */
static int refuse_value(const core_history *h, const rp_tensor *tensor)
{
    char got[96], expected[96];
    if (tensor->dtype != h->dtype)
        PyErr_Format(PyExc_ValueError,
                     "Tensor of wrong dtype provided for column %R. Got %s but expected %s.",
                     h->path, rp_dtype_name(tensor->dtype), rp_dtype_name(h->dtype));
    else
        PyErr_Format(PyExc_ValueError,
                     "Tensor of incompatible shape provided for column %R. Got %s which is "
                     "incompatible with %s.",
                     h->path, rp_shape_text(&tensor->shape, got, sizeof(got)),
                     rp_shape_text(&h->shape, expected, sizeof(expected)));
    return -1;
}

/* Prepares a column for its first value. */
static int prepare(const core_writer *w, core_history *h, const rp_value *value)
{
    rp_column_options options = h->options;
    size_t elements = 0;
    rp_error err = {0};
    if (rp_shape_elements(&value->tensor.shape, &elements) != RP_OK) elements = 0;
    if (!h->configured) {
        size_t bytes = elements * rp_dtype_size(value->tensor.dtype);
        options.chunk.codec = bytes < COMPRESS_BYTES ? RP_CODEC_NONE : RP_CODEC_SNAPPY;
    }
    rp_status st = rp_trajectory_writer_configure(w->state->writer, h->column, value->name,
                                                  &options, &err);
    if (st == RP_OK) return 0;
    core_raise(st, &err);
    return -1;
}

/* Takes the value of a leaf as number `n` of the step's values. */
static int take(core_writer *w, step_shape *shape, Py_ssize_t n, core_history *h, PyObject *obj)
{
    rp_value *value = &shape->values[n];
    if (!shape->ready[n] || value->column != h->column) {
        *value = (rp_value){.column = h->column, .name = PyBytes_AS_STRING(h->name)};
        if (h->known) value->tensor = (rp_tensor){.dtype = h->dtype, .shape = h->shape};
        shape->ready[n] = h->known;
    }
    if (h->known && take_quickly(h, obj, &shape->scalars[n], &value->tensor)) return 0;
    shape->ready[n] = false;
    if (core_tensor_from(obj, value->name, &value->tensor, &shape->keeps[n]) < 0) return -1;
    if (!h->known) return prepare(w, h, value);
    if (value->tensor.dtype != h->dtype || !rp_shape_equal(&value->tensor.shape, &h->shape))
        return refuse_value(h, &value->tensor);
    return 0;
}

/* Takes all leaves that are not None; `*count` is how many. */
static int take_all(core_writer *w, step_shape *shape, const core_leaves *leaves, bool open,
                    Py_ssize_t *count, size_t *bytes)
{
    for (Py_ssize_t i = 0; i < leaves->count; i++) {
        PyObject *obj = leaves->items[i];
        if (obj == Py_None) continue;
        if (shape->columns[i] < 0) {
            conflict(shape, i, obj);
            return -1;
        }
        core_history *h = w->columns[shape->columns[i]];
        const int64_t *last = open ? core_history_last(h) : NULL;
        if (last != NULL && *last >= 0) {
            PyErr_Format(
                PyExc_ValueError,
                "Field %R has already been set in the active step by previous (partial) "
                "append call and thus must be omitted or set to None but got: %S",
                h->path, obj);
            return -1;
        }
        Py_ssize_t n = (*count)++;
        if (take(w, shape, n, h, obj) < 0) return -1;
        *bytes += h->row_bytes;
    }
    return 0;
}

/* Enters a step that the C writer has taken into the histories. */
static int note_step(core_writer *w, step_shape *shape, Py_ssize_t count, bool was_open)
{
    int failed = 0;
    /* A step that was opened before there was a column is in no history yet. */
    for (size_t i = 0; i < w->column_count; i++)
        if (!was_open || w->columns[i]->length == 0) core_history_push(w->columns[i]);
    for (Py_ssize_t n = 0; n < count; n++) {
        const rp_value *value = &shape->values[n];
        core_history *h = w->columns[value->column];
        int64_t *last = core_history_last(h);
        if (last != NULL) *last = (int64_t)shape->refs[n].cell;
        if (h->known && h->dtype != RP_STRING) continue;
        if (core_history_learn(h, &value->tensor) < 0) failed = -1;
        if (h->dtype == RP_STRING)
            core_history_keep_strings(h, shape->refs[n].cell, &value->tensor);
    }
    return failed;
}

static int append_values(core_writer *w, step_shape *shape, Py_ssize_t count, size_t bytes,
                         bool partial)
{
    rp_trajectory_writer *writer = w->state->writer;
    uint32_t flags = partial ? RP_STEP_OPEN : 0;
    bool was_open = rp_trajectory_writer_is_open(writer);
    rp_error err = {0};
    rp_status st;
    for (size_t i = 0; i < w->column_count; i++)
        if (core_history_reserve(w->columns[i]) < 0) return -1;
    if (bytes >= RELEASE_BYTES) {
        Py_BEGIN_ALLOW_THREADS
        st = rp_trajectory_writer_append(writer, shape->values, (size_t)count, flags,
                                         shape->refs, &err);
        Py_END_ALLOW_THREADS
    } else {
        st = rp_trajectory_writer_append(writer, shape->values, (size_t)count, flags,
                                         shape->refs, &err);
    }
    if (st == RP_OK) return note_step(w, shape, count, was_open);
    core_raise(st, &err);
    return -1;
}

static int append_inside(core_writer *w, PyObject *data, bool partial)
{
    bool open = rp_trajectory_writer_is_open(w->state->writer);
    core_leaves leaves;
    Py_ssize_t count = 0;
    size_t bytes = 0;
    step_shape *shape = flatten_step(w, data, &leaves);
    if (shape == NULL) return -1;
    int failed = take_all(w, shape, &leaves, open, &count, &bytes);
    if (failed == 0) failed = append_values(w, shape, count, bytes, partial);
    for (Py_ssize_t n = 0; n < count; n++) Py_CLEAR(shape->keeps[n]);
    core_leaves_free(&leaves);
    return failed;
}

static PyObject *writer_append(core_writer *w, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames)
{
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    PyObject *data = nargs > 0 ? args[0] : NULL;
    int partial = 0;
    if (nargs > 1) {
        PyErr_Format(
            PyExc_TypeError,
            "TrajectoryWriter.append() takes 2 positional arguments but %zd were given",
            nargs + 1);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        if (PyUnicode_CompareWithASCIIString(name, "partial_step") == 0) {
            partial = PyObject_IsTrue(args[nargs + i]);
            if (partial < 0) return NULL;
        } else if (data == NULL && PyUnicode_CompareWithASCIIString(name, "data") == 0) {
            data = args[nargs + i];
        } else {
            PyErr_Format(PyExc_TypeError,
                         "TrajectoryWriter.append() got an unexpected keyword argument '%U'",
                         name);
            return NULL;
        }
    }
    if (data == NULL) {
        PyErr_SetString(PyExc_TypeError,
                        "TrajectoryWriter.append() misses its argument 'data'");
        return NULL;
    }
    if (writer_enter(w->state) < 0) return NULL;
    int failed = append_inside(w, data, partial != 0);
    writer_leave(w->state);
    if (failed) return NULL;
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
    rp_trajectory_writer_why(w->state->writer, text, sizeof(text));
    writer_leave(w->state);
    return core_text(text);
}

#define METHOD(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef writer_methods[] = {
    {"append", METHOD(writer_append), METH_FASTCALL | METH_KEYWORDS,
     "append($self, data, *, partial_step=False)\n--\n\n"
     "Adds a step: any nest of values, each a row of the column of its path.\n\n"
     "A leaf that is None has no value in this step; leaves that were not there before are "
     "new\n"
     "columns. The first value of a column gives it its dtype and shape. With `partial_step` "
     "the\n"
     "step stays open, and the next append adds to it.\n\n"
     "ValueError if a value has another dtype or shape than its column, or has one in this "
     "step\n"
     "already; nothing was appended then."},
    {"create_item", METHOD(core_writer_create_item), METH_FASTCALL | METH_KEYWORDS,
     "create_item($self, table, priority, trajectory)\n--\n\n"
     "Creates an item of rows of the history: a nest of TrajectoryColumns. Returns its key.\n\n"
     "It is sent in the background, once the chunks it needs are complete: see flush(). Waits\n"
     "only while the writer holds as much as it may (max_items, max_bytes).\n\n"
     "TypeError if a leaf is no TrajectoryColumn. ValueError if the trajectory is empty, the\n"
     "priority is NaN, a row has expired, rows of a column have different dtypes or shapes, "
     "the\n"
     "table does not exist or has another signature."},
    {"flush", METHOD(core_writer_flush), METH_VARARGS | METH_KEYWORDS,
     "flush($self, block_until_num_items=0, timeout_ms=None)\n--\n\n"
     "Waits until the server has confirmed all items but `block_until_num_items`.\n\n"
     "DeadlineExceededError after `timeout_ms` (None, or 0 or less: never); the items go on "
     "in\n"
     "the background."},
    {"end_episode", METHOD(core_writer_end_episode), METH_VARARGS | METH_KEYWORDS,
     "end_episode($self, clear_buffers=True, timeout_ms=None)\n--\n\n"
     "Waits until the server has confirmed all items, then begins a new episode, at step 0.\n\n"
     "Without `clear_buffers` the history stays, and items may span both episodes.\n"
     "DeadlineExceededError after `timeout_ms`: the episode goes on."},
    {"close", METHOD(writer_close), METH_NOARGS,
     "close($self, /)\n--\n\n"
     "Ends the writer. Items that are not confirmed may be lost: flush() first."},
    {"why", METHOD(writer_why), METH_NOARGS,
     "why($self, /)\n--\n\nWhat the items that are not confirmed wait for, as a sentence."},
    {"_add_column", METHOD(writer_add_column), METH_VARARGS, NULL},
    {"_configure", METHOD(writer_configure), METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef writer_properties[] = {
    {"history", (getter)core_writer_history, NULL,
     "What was appended, structured like it: a nest of ColumnHistory, each to be indexed by\n"
     "step. RuntimeError before the first append.",
     NULL},
    {"episode_steps", (getter)writer_steps, NULL,
     "Steps appended since the episode began; an open one does not count.", NULL},
    {"pending", (getter)writer_pending, NULL, "Items created and not confirmed.", NULL},
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
