/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.StepWriter: the writer of whole steps, for reprise.Writer and Client.insert().
 *
 * Errors for which Reverb has a text are found here, before the C writer finds them, and have
 * Reverb's text.
 *
 * Invariants, while no thread holds the guard:
 *   W1  column_count is 0 before the first step; then columns[i] is the spec of leaf i;
 *   W2  `steps` counts the steps of the episode that the C writer has accepted;
 *   W3  `writer` is NULL if and only if close() has run;
 *   W4  `structure` is that of the latest step, or NULL before the first. */
#include "keys.h"
#include "names.h"
#include "server_call.h"
#include "step.h"
#include "store.h"

#include <math.h>
#include <unistd.h>

typedef struct step_writer {
    PyObject_HEAD
    PyObject *client;
    rp_step_writer *writer; /* NULL: closed */
    core_guard guard;
    pid_t process; /* the one that made the writer */
    int32_t longest;
    int64_t steps;
    size_t column_count; /* of a step; 0 before the first */
    rp_spec *columns;    /* the specs of the first step */
    PyObject *structure; /* of the latest step; NULL before the first */
    core_names checked;
} step_writer;

typedef struct opening {
    core_request base;
    rp_client *client;
    rp_step_writer_options options;
    rp_step_writer *writer;
} opening;

/* Frees the writer if the caller was interrupted before it took the writer. */
static void clear_opening(void *arg)
{
    rp_step_writer_free(((opening *)arg)->writer);
}

static rp_status do_open(void *arg, rp_wait wait, rp_error *err)
{
    opening *o = arg;
    return rp_step_writer_new(o->client, &o->options, wait, &o->writer, err);
}

static PyObject *step_writer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"client", "max_sequence_length", "chunk_length",
                            "delta",  "max_in_flight",       "timeout",
                            NULL};
    opening *o;
    PyObject *client, *timeout = Py_None;
    int longest, chunk = 0, delta = 0;
    Py_ssize_t in_flight = 0;
    int64_t timeout_ms, begun_ns;
    step_writer *self;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!i|$ipnO", names, &core_Client, &client,
                                     &longest, &chunk, &delta, &in_flight, &timeout) ||
        core_timeout_s(timeout, &timeout_ms) != 0)
        return NULL;
    if (in_flight < 0) {
        PyErr_Format(PyExc_ValueError, "max_in_flight must be >= 0, got %zd", in_flight);
        return NULL;
    }
    if (core_client_check(client) != 0 || !(o = core_request_new(sizeof *o, clear_opening)))
        return NULL;
    o->client = ((core_client *)client)->client;
    o->base.peer = o->client;
    o->options = (rp_step_writer_options){.max_sequence_length = longest,
                                          .chunk_length = chunk,
                                          .delta = delta != 0,
                                          .max_in_flight = (size_t)in_flight};
    begun_ns = rp_now_ns();
    /* Not repeated in slices, since at its deadline the call succeeds without the signatures.
     */
    if (core_call_server(do_open, &o->base, 0, timeout_ms) != 0) {
        core_request_drop(&o->base);
        return NULL;
    }
    self = (step_writer *)type->tp_alloc(type, 0);
    if (!self || core_guard_init(&self->guard) != 0) {
        core_request_drop(&o->base);
        Py_XDECREF(self);
        return NULL;
    }
    self->writer = o->writer;
    o->writer = NULL;
    core_request_drop(&o->base);
    self->checked.waited_ns = rp_now_ns() - begun_ns;
    self->process = getpid();
    self->longest = longest;
    Py_INCREF(client);
    self->client = client;
    return (PyObject *)self;
}

static void release_writer(step_writer *self)
{
    rp_step_writer *writer = self->writer;

    self->writer = NULL;
    if (!writer) return;
    Py_BEGIN_ALLOW_THREADS;
    rp_step_writer_free(writer);
    Py_END_ALLOW_THREADS;
}

static void step_writer_dealloc(step_writer *self)
{
    release_writer(self);
    core_guard_deinit(&self->guard);
    PyMem_Free(self->columns);
    core_names_clear(&self->checked);
    Py_CLEAR(self->structure);
    Py_CLEAR(self->client);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Acquires an open writer within `*timeout_ms`, and sets that to the time left. `method` is
 * Reverb's name of the method, for the error. */
static int enter(step_writer *self, const char *method, int64_t *timeout_ms)
{
    rp_error err = {.code = RP_PRECONDITION}, closed;

    if (core_check_process(self->process) != 0 ||
        core_guard_enter(&self->guard, timeout_ms) != 0)
        return -1;
    if (self->writer && core_guard_check(&self->guard, &closed) == RP_OK) return 0;
    core_guard_leave(&self->guard);
    PyOS_snprintf(
        err.text, sizeof err.text,
        "Calling method %s after Close has been called: the writer is closed; make a new one "
        "with client.writer()",
        method);
    core_raise(RP_PRECONDITION, &err);
    return -1;
}

/* Returns the number of items that were not confirmed and are dropped. */
static PyObject *step_writer_close(step_writer *self, PyObject *Py_UNUSED(ignored))
{
    size_t dropped = 0;

    if (core_check_process(self->process) != 0 || core_guard_close(&self->guard) != 0)
        return NULL;
    if (self->writer) dropped = rp_step_writer_pending(self->writer);
    release_writer(self);
    core_guard_leave(&self->guard);
    return PyLong_FromSize_t(dropped);
}

/* Returns the shape of one row. For a sequence, this is the shape without its first dimension.
 */
static rp_shape row_shape(const rp_tensor *tensor, bool sequence)
{
    rp_shape shape = tensor->shape;

    if (!sequence) return shape;
    assert(shape.rank > 0);
    shape.rank--;
    for (int32_t i = 0; i < shape.rank; i++) shape.dims[i] = tensor->shape.dims[i + 1];
    return shape;
}

/* Returns the index of the first column that differs from the first step in dtype or shape. If
 * the number of columns differs, returns the new number. -1 if the step is like the first. */
static Py_ssize_t differs(const step_writer *self, const core_step *step, bool sequence)
{
    if (self->column_count == 0) return -1;
    if (step->count != self->column_count) return (Py_ssize_t)step->count;
    for (size_t i = 0; i < step->count; i++) {
        rp_shape shape = row_shape(&step->tensors[i], sequence);
        if (step->tensors[i].dtype != self->columns[i].dtype ||
            !rp_shape_equal(&shape, &self->columns[i].shape))
            return (Py_ssize_t)i;
    }
    return -1;
}

/* ValueError with Reverb's text for a step that is not like the first. */
static int check_like_first(const step_writer *self, const core_step *step, bool sequence)
{
    Py_ssize_t i = differs(self, step, sequence);
    char was[128], is[128];
    rp_shape shape;

    if (i < 0) return 0;
    if (step->count != self->column_count) {
        PyErr_Format(PyExc_ValueError,
                     "Number of tensors per timestep was inconsistent. Previously it was %zu, "
                     "but is now %zu.",
                     self->column_count, step->count);
        return -1;
    }
    if (step->tensors[i].dtype != self->columns[i].dtype) {
        PyErr_Format(PyExc_ValueError,
                     "Cannot concatenate tensors that have different data types. Got %s and "
                     "%s.",
                     rp_dtype_name(self->columns[i].dtype),
                     rp_dtype_name(step->tensors[i].dtype));
        return -1;
    }
    shape = row_shape(&step->tensors[i], sequence);
    PyErr_Format(PyExc_ValueError,
                 "Unable to concatenate tensors at index %zd due to mismatched shapes.  Tensor "
                 "0 has shape: %s, but tensor 1 has shape: %s",
                 i, rp_shape_text(&self->columns[i].shape, was, sizeof was),
                 rp_shape_text(&shape, is, sizeof is));
    return -1;
}

/* Allocates the specs of the first step, so that commit_columns() cannot fail. */
static int reserve_columns(step_writer *self, const core_step *step)
{
    if (self->column_count > 0 || step->count == 0) return 0;
    PyMem_Free(self->columns);
    self->columns = PyMem_New(rp_spec, step->count);
    if (self->columns) return 0;
    PyErr_NoMemory();
    return -1;
}

static void commit_columns(step_writer *self, const core_step *step, bool sequence)
{
    if (self->column_count > 0) return;
    assert(step->count == 0 || self->columns != NULL);
    for (size_t i = 0; i < step->count; i++)
        self->columns[i] = (rp_spec){.dtype = step->tensors[i].dtype,
                                     .shape = row_shape(&step->tensors[i], sequence)};
    self->column_count = step->count;
}

/* Appends a step, or a sequence of one or more rows. Holds the guard. */
static int append_locked(step_writer *self, const core_step *step, bool sequence)
{
    int64_t rows = sequence ? step->tensors[0].shape.dims[0] : 1;
    PyThreadState *thread = NULL;
    rp_error err = {0};
    rp_status status;

    assert(rows > 0 && self->writer != NULL);
    if (reserve_columns(self, step) != 0) return -1;
    if (core_step_is_large(step)) thread = PyEval_SaveThread();
    if (sequence)
        status = rp_step_writer_append_sequence(self->writer, step->tensors, step->count, &err);
    else
        status = rp_step_writer_append(self->writer, step->tensors, step->count, &err);
    if (thread) PyEval_RestoreThread(thread);
    if (status != RP_OK) {
        core_raise(status, &err);
        return -1;
    }
    commit_columns(self, step, sequence);
    self->steps += rows;
    return 0;
}

/* Converts a step, and returns its structure, a new reference. NULL on failure. Does not hold
 * the guard, since flattening may run Python code. */
static PyObject *step_of(const step_writer *self, PyObject *nest, core_step *step)
{
    PyObject *structure = self->structure;
    core_leaves leaves;
    int same = 0;

    Py_XINCREF(structure);
    if (structure) same = core_structure_flatten(structure, nest, &leaves);
    if (same == 0) {
        Py_XDECREF(structure);
        structure = core_structure_of(nest);
        if (!structure) return NULL;
        same = core_flatten(nest, &leaves) == 0 ? 1 : -1;
    }
    if (same < 0 || core_step_from(nest, &leaves, false, step) != 0) Py_CLEAR(structure);
    if (same > 0) core_leaves_free(&leaves);
    return structure;
}

/* Stores the structure of the step that was appended. Holds the guard. */
static void keep_structure(step_writer *self, PyObject *structure)
{
    Py_INCREF(structure);
    Py_XSETREF(self->structure, structure);
}

static PyObject *step_writer_append(step_writer *self, PyObject *nest)
{
    int64_t timeout_ms = -1;
    PyObject *structure;
    core_step step;
    int failed;

    if (!(structure = step_of(self, nest, &step))) return NULL;
    failed = enter(self, "Append", &timeout_ms);
    if (!failed) {
        failed = check_like_first(self, &step, false) || append_locked(self, &step, false);
        if (!failed) keep_structure(self, structure);
        core_guard_leave(&self->guard);
    }
    core_step_release(&step);
    Py_DECREF(structure);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* ValueError with Reverb's text for a step that is no sequence. */
static int check_sequence(const core_step *step)
{
    if (step->count == 0) {
        PyErr_SetString(PyExc_ValueError, "AppendSequence called with empty data.");
        return -1;
    }
    for (size_t i = 0; i < step->count; i++) {
        if (step->tensors[i].shape.rank == 0) {
            PyErr_Format(PyExc_ValueError,
                         "AppendSequence called with scalar tensor at index %zu.", i);
            return -1;
        }
        if (step->tensors[i].shape.dims[0] != step->tensors[0].shape.dims[0]) {
            PyErr_Format(PyExc_ValueError,
                         "AppendSequence called with tensors of non equal batch dimension: "
                         "tensor 0 has %lld rows, tensor %zu has %lld.",
                         (long long)step->tensors[0].shape.dims[0], i,
                         (long long)step->tensors[i].shape.dims[0]);
            return -1;
        }
    }
    return 0;
}

static PyObject *step_writer_append_sequence(step_writer *self, PyObject *nest)
{
    int64_t timeout_ms = -1;
    PyObject *structure;
    core_step step;
    int failed;

    if (!(structure = step_of(self, nest, &step))) return NULL;
    failed = enter(self, "AppendSequence", &timeout_ms);
    if (!failed) {
        failed = check_sequence(&step);
        if (!failed && step.tensors[0].shape.dims[0] > 0) {
            failed = check_like_first(self, &step, true) || append_locked(self, &step, true);
            if (!failed) keep_structure(self, structure);
        }
        core_guard_leave(&self->guard);
    }
    core_step_release(&step);
    Py_DECREF(structure);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

typedef struct creation {
    step_writer *self;
    PyObject *name; /* of the table */
    const char *table;
    int32_t steps;
    double priority;
    uint64_t key;
} creation;

static rp_status do_create(void *arg, rp_wait wait, rp_error *err)
{
    creation *c = arg;
    rp_status status = core_guard_check(&c->self->guard, err);

    if (status != RP_OK) return status;
    return rp_step_writer_create_item(c->self->writer, c->table, c->steps, c->priority, wait,
                                      &c->key, err);
}

static rp_status do_flush(void *arg, rp_wait wait, rp_error *err)
{
    step_writer *self = arg;
    rp_status status = core_guard_check(&self->guard, err);

    return status == RP_OK ? rp_step_writer_flush(self->writer, wait, err) : status;
}

static rp_status do_end(void *arg, rp_wait wait, rp_error *err)
{
    step_writer *self = arg;
    rp_status status = core_guard_check(&self->guard, err);

    return status == RP_OK ? rp_step_writer_end_episode(self->writer, wait, err) : status;
}

static int check_priority(const creation *c)
{
    if (!isnan(c->priority)) return 0;
    PyErr_Format(PyExc_ValueError, "`priority` must not be nan. It is for table '%s'",
                 c->table);
    return -1;
}

static int check_item(const step_writer *self, const creation *c)
{
    if (check_priority(c) != 0) return -1;
    /* The first words are those of Reverb. */
    if (c->steps > self->longest)
        PyErr_Format(PyExc_ValueError,
                     "`num_timesteps` must be <= `max_timesteps`: it is %d for table '%s', and "
                     "the writer was made with max_sequence_length=%d",
                     (int)c->steps, c->table, (int)self->longest);
    else if (c->steps > self->steps)
        PyErr_Format(PyExc_ValueError,
                     "Argument `num_timesteps` is larger than number of buffered timesteps. It "
                     "is %d for table '%s', and %d have been appended",
                     (int)c->steps, c->table, (int)self->steps);
    else
        return 0;
    return -1;
}

/* Creates an item. Errors that Reverb's writer finds by itself are ValueErrors. Holds the
 * guard. */
static int create_locked(step_writer *self, creation *c, int64_t timeout_ms)
{
    core_names_question names = {self->client, c->name, c->table, self->structure, true};
    int64_t until_ns = core_until_ns(timeout_ms);
    const char *named;
    rp_error err = {0};
    rp_status status;

    c->self = self;
    if (check_item(self, c) != 0 || core_names_check(&self->checked, &names, timeout_ms) != 0)
        return -1;
    /* Not `quick`: the signature of a table may have to be requested from the server. */
    if (core_wait_after(self->checked.waited_ns, do_create, c, core_left_ms(until_ns), false,
                        &status, &err) != 0)
        return -1;
    if (status == RP_OK) return 0;
    /* The text begins with the table, too. */
    named = strncmp(err.text, "table '", 7) == 0 ? strstr(err.text, "': ") : NULL;
    if (status == RP_INVALID)
        PyErr_Format(PyExc_ValueError,
                     "Unable to CreateItem in table '%s' because Append was called with a "
                     "tensor signature inconsistent with the table signature: %s.",
                     c->table, named != NULL ? named + 3 : err.text);
    else
        core_raise(status, &err);
    return -1;
}

static int flush_locked(step_writer *self, core_call call, int64_t timeout_ms)
{
    rp_error err = {0};
    rp_status status;

    if (core_wait_after(self->checked.waited_ns, call, self, timeout_ms, false, &status,
                        &err) != 0)
        return -1;
    if (status == RP_OK) {
        self->checked.waited_ns = 0;
        return 0;
    }
    core_raise(status, &err);
    return -1;
}

static PyObject *step_writer_create_item(step_writer *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"table", "num_timesteps", "priority", "timeout", NULL};
    creation c = {0};
    PyObject *timeout = Py_None;
    int64_t timeout_ms;
    int failed;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&id|O", names, core_name_converter,
                                     &c.table, &c.steps, &c.priority, &timeout) ||
        core_timeout_s(timeout, &timeout_ms) != 0 ||
        !(c.name = PyUnicode_DecodeFSDefault(c.table)))
        return NULL;
    failed = enter(self, "CreateItem", &timeout_ms);
    if (!failed) {
        failed = create_locked(self, &c, timeout_ms);
        core_guard_leave(&self->guard);
    }
    Py_DECREF(c.name);
    return failed ? NULL : PyLong_FromUnsignedLongLong(c.key);
}

static PyObject *step_writer_flush(step_writer *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    PyObject *timeout = Py_None;
    int64_t timeout_ms;
    int failed;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &timeout) ||
        core_timeout_s(timeout, &timeout_ms) != 0 || enter(self, "Flush", &timeout_ms) != 0)
        return NULL;
    failed = flush_locked(self, do_flush, timeout_ms);
    core_guard_leave(&self->guard);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* The tables of the items of one step, with their priorities. */
typedef struct targets {
    PyObject *items; /* a list of pairs; owns the names of the tables */
    creation *creations;
    Py_ssize_t count;
} targets;

static void targets_free(targets *to)
{
    Py_XDECREF(to->items);
    PyMem_Free(to->creations);
}

/* Reads a dict from table to priority. May run Python code, so the writer must not be acquired
 * yet. */
static int targets_from(PyObject *priorities, targets *to)
{
    *to = (targets){0};
    if (!PyObject_HasAttrString(priorities, "items")) {
        PyErr_Format(PyExc_TypeError,
                     "priorities must map each table to a priority, as in {'replay': 1.0}, got "
                     "%R",
                     priorities);
        return -1;
    }
    to->items = PyMapping_Items(priorities);
    if (!to->items) return -1;
    to->count = PyList_GET_SIZE(to->items);
    to->creations = PyMem_Calloc((size_t)to->count + 1, sizeof *to->creations);
    if (!to->creations) {
        PyErr_NoMemory();
        goto fail;
    }
    for (Py_ssize_t i = 0; i < to->count; i++) {
        PyObject *pair = PyList_GET_ITEM(to->items, i);
        creation *c = &to->creations[i];

        PyObject *priority = NULL;

        c->steps = 1;
        if (!PyTuple_Check(pair)) {
            PyErr_SetString(PyExc_TypeError, "priorities must be a dict of table to priority");
            goto fail;
        }
        if (!PyArg_ParseTuple(pair, "sO;priorities must be a dict of table to priority",
                              &c->table, &priority) ||
            core_priority_from(priority, &c->priority) != 0 || check_priority(c) != 0)
            goto fail;
        c->name = PyTuple_GET_ITEM(pair, 0);
    }
    return 0;
fail:
    targets_free(to);
    return -1;
}

/* Checks all items before the first is created. */
static int check_all(step_writer *self, const targets *to, int64_t until_ns)
{
    for (Py_ssize_t i = 0; i < to->count; i++) {
        const creation *c = &to->creations[i];
        core_names_question names = {self->client, c->name, c->table, self->structure, true};

        if (core_names_check_all(&self->checked, &names, c->priority, core_left_ms(until_ns)) !=
            0)
            return -1;
    }
    return 0;
}

static int create_all_locked(step_writer *self, const targets *to, int64_t until_ns)
{
    if (to->count > 1 && check_all(self, to, until_ns) != 0) return -1;
    for (Py_ssize_t i = 0; i < to->count; i++)
        if (create_locked(self, &to->creations[i], core_left_ms(until_ns)) != 0) return -1;
    return 0;
}

/* insert(data, priorities, timeout=None): appends a step, makes it an item of each table, and
 * flushes. Returns False, and changes nothing, if the step is not like the first. */
static PyObject *step_writer_insert(step_writer *self, PyObject *const *args, Py_ssize_t count)
{
    int64_t timeout_ms = -1;
    PyObject *structure;
    core_step step;
    targets to;
    bool fits = false;
    int failed;

    if (count < 2 || count > 3) {
        PyErr_SetString(PyExc_TypeError, "insert(data, priorities, timeout=None)");
        return NULL;
    }
    if (count == 3 && core_timeout_s(args[2], &timeout_ms) != 0) return NULL;
    if (targets_from(args[1], &to) != 0) return NULL;
    if (!(structure = step_of(self, args[0], &step))) {
        targets_free(&to);
        return NULL;
    }
    failed = enter(self, "Append", &timeout_ms);
    if (!failed) {
        int64_t until_ns = core_until_ns(timeout_ms);

        fits = differs(self, &step, false) < 0;
        if (fits) failed = append_locked(self, &step, false);
        if (fits && !failed) keep_structure(self, structure);
        if (fits && !failed) failed = create_all_locked(self, &to, until_ns);
        if (fits && !failed) {
            int64_t left_ms = core_left_ms(until_ns);
            /* A call that does not wait would not say why the item is not confirmed. */
            if (left_ms == 0 && timeout_ms > 0) left_ms = 1;
            failed = flush_locked(self, do_end, left_ms);
        }
        core_guard_leave(&self->guard);
    }
    core_step_release(&step);
    Py_DECREF(structure);
    targets_free(&to);
    return failed ? NULL : PyBool_FromLong(fits);
}

static PyObject *step_writer_get_steps(step_writer *self, void *closure)
{
    (void)closure;
    return PyLong_FromLongLong(self->steps);
}

#define WITH_KEYWORDS(function) CORE_METHOD(function), METH_VARARGS | METH_KEYWORDS

static PyMethodDef step_writer_methods[] = {
    {"append", (PyCFunction)step_writer_append, METH_O,
     "append($self, data, /)\n--\n\nAppends a step, a nest of arrays."},
    {"append_sequence", (PyCFunction)step_writer_append_sequence, METH_O,
     "append_sequence($self, sequence, /)\n--\n\nAppends a step for each row of the arrays."},
    {"create_item", WITH_KEYWORDS(step_writer_create_item),
     "create_item($self, table, num_timesteps, priority, timeout=None)\n--\n\n"
     "Creates an item of the latest steps. Returns its key."},
    {"flush", WITH_KEYWORDS(step_writer_flush),
     "flush($self, timeout=None)\n--\n\nSends all items and waits until they are confirmed."},
    {"insert", CORE_METHOD(step_writer_insert), METH_FASTCALL,
     "insert($self, data, priorities, timeout=None, /)\n--\n\n"
     "Appends a step, makes it an item of each table, and flushes. Returns False, and does "
     "nothing, if the step is not like the first."},
    {"close", (PyCFunction)step_writer_close, METH_NOARGS,
     "close($self)\n--\n\nDrops items that are not confirmed; flush before."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef step_writer_getset[] = {
    {"steps", (getter)step_writer_get_steps, NULL, "Steps appended so far.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

PyTypeObject core_StepWriter = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.StepWriter",
    .tp_basicsize = sizeof(step_writer),
    .tp_dealloc = (destructor)step_writer_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "StepWriter(client, max_sequence_length, *, chunk_length=0, delta=False, "
        "max_in_flight=0, timeout=None)\n--\n\nWrites steps, and items of the latest steps.",
    .tp_methods = step_writer_methods,
    .tp_getset = step_writer_getset,
    .tp_new = step_writer_new,
};
