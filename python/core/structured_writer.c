/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.StructuredWriter and BatchWriter, which make items by patterns, for one
 * environment or for several.
 *
 * Both types have the same struct, but different C writers. The structure of the first step is
 * kept: steps of the same structure are flattened faster, and the paths of the structure name
 * the columns in errors.
 *
 * Invariants, while no thread holds the guard:
 *   V1  one of `writer` and `batch` is set, until close() has run: then neither is;
 *   V2  structure, names and columns are set together, by the first step, for leaf_count
 * leaves;
 *   V3  columns[i] is the spec of the values of leaf i so far, or has no dtype. */
#include "patterns.h"
#include "step.h"
#include "store.h"

#include <structmember.h>
#include <unistd.h>

typedef struct pattern_writer {
    PyObject_HEAD
    PyObject *client;
    rp_structured_writer *writer; /* of a StructuredWriter; NULL: closed */
    rp_batch_writer *batch;       /* of a BatchWriter; NULL: closed */
    Py_ssize_t environments;
    core_guard guard;
    pid_t process;       /* the one that made the writer */
    PyObject *structure; /* of the first step; NULL before that */
    PyObject *other;     /* the latest structure that differs but has no other names, or NULL */
    PyObject *names;     /* a tuple of the paths of the structure's leaves */
    Py_ssize_t leaf_count;
    rp_spec *columns;    /* of each leaf; V3 */
    bool *used;          /* for each column, whether a pattern uses it: RP_MAX_COLUMNS flags */
    long long waited_ns; /* for signatures, since the last flush that succeeded */
} pattern_writer;

/* Makes the object. Takes the C writer and `used`. */
static PyObject *wrap(PyTypeObject *type, PyObject *client, rp_structured_writer *writer,
                      rp_batch_writer *batch, Py_ssize_t environments, bool *used)
{
    pattern_writer *self = (pattern_writer *)type->tp_alloc(type, 0);

    assert((writer != NULL) != (batch != NULL)); /* V1 */
    if (!self || core_guard_init(&self->guard) != 0) {
        PyMem_Free(used);
        rp_structured_writer_free(writer);
        rp_batch_writer_free(batch);
        Py_XDECREF(self);
        return NULL;
    }
    self->writer = writer;
    self->batch = batch;
    self->process = getpid();
    self->environments = environments;
    self->used = used;
    Py_INCREF(client);
    self->client = client;
    return (PyObject *)self;
}

/* Finds the columns that the patterns use: RP_MAX_COLUMNS flags. */
static bool *used_by(const core_patterns *list)
{
    bool *used = PyMem_Calloc(RP_MAX_COLUMNS, sizeof *used);

    if (!used) PyErr_NoMemory();
    for (size_t i = 0; used && i < list->count; i++) {
        const rp_pattern *p = &list->patterns[i];
        for (size_t k = 0; k < p->node_count; k++)
            if (p->nodes[k].source < RP_MAX_COLUMNS) used[p->nodes[k].source] = true;
        for (size_t k = 0; k < p->condition_count; k++)
            if (p->conditions[k].left == RP_LEFT_DATA &&
                p->conditions[k].column < RP_MAX_COLUMNS)
                used[p->conditions[k].column] = true;
    }
    return used;
}

/* Sets the exception, whose text ends with a full stop, as in Reverb's errors about configs. */
static PyObject *raise_config(rp_status status, rp_error *err)
{
    size_t size = strlen(err->text);

    if (status == RP_INVALID && size + 1 < sizeof err->text) {
        err->text[size] = '.';
        err->text[size + 1] = 0;
    }
    return core_raise(status, err);
}

static int options_from(int chunk_length, Py_ssize_t max_items, Py_ssize_t max_bytes,
                        rp_structured_writer_options *options)
{
    if (chunk_length < 0 || max_items < 0 || max_bytes < 0) {
        PyErr_SetString(PyExc_ValueError, "chunk_length, max_items and max_bytes must be >= 0");
        return -1;
    }
    *options = (rp_structured_writer_options){.chunk_length = chunk_length,
                                              .max_items = (size_t)max_items,
                                              .max_bytes = (size_t)max_bytes};
    return 0;
}

static PyObject *structured_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"client",    "patterns",  "chunk_length",
                            "max_items", "max_bytes", NULL};
    rp_structured_writer_options options;
    rp_structured_writer *writer = NULL;
    PyObject *client, *patterns;
    core_patterns list;
    bool *used;
    int chunk_length = 0;
    Py_ssize_t max_items = 0, max_bytes = 0;
    rp_error err = {0};
    rp_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|$inn", names, &core_Client, &client,
                                     &patterns, &chunk_length, &max_items, &max_bytes) ||
        core_client_check(client) != 0 ||
        options_from(chunk_length, max_items, max_bytes, &options) != 0 ||
        core_patterns_from(patterns, &list) != 0)
        return NULL;
    if (!(used = used_by(&list))) {
        core_patterns_free(&list);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = rp_structured_writer_new(((core_client *)client)->client, list.patterns,
                                      list.count, &options, &writer, &err);
    Py_END_ALLOW_THREADS;
    core_patterns_free(&list);
    if (status != RP_OK) {
        PyMem_Free(used);
        return raise_config(status, &err);
    }
    return wrap(type, client, writer, NULL, 1, used);
}

static PyObject *batch_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"client",    "environments", "patterns", "chunk_length",
                            "max_items", "max_bytes",    NULL};
    rp_structured_writer_options options;
    rp_batch_writer *batch = NULL;
    PyObject *client, *patterns;
    core_patterns list;
    bool *used;
    int chunk_length = 0;
    Py_ssize_t environments, max_items = 0, max_bytes = 0;
    rp_error err = {0};
    rp_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!nO|$inn", names, &core_Client, &client,
                                     &environments, &patterns, &chunk_length, &max_items,
                                     &max_bytes) ||
        core_client_check(client) != 0 ||
        options_from(chunk_length, max_items, max_bytes, &options) != 0)
        return NULL;
    if (environments < 1) {
        PyErr_Format(PyExc_ValueError, "environments must be >= 1, got %zd", environments);
        return NULL;
    }
    if (core_patterns_from(patterns, &list) != 0) return NULL;
    if (!(used = used_by(&list))) {
        core_patterns_free(&list);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = rp_batch_writer_new(((core_client *)client)->client, (size_t)environments,
                                 list.patterns, list.count, &options, &batch, &err);
    Py_END_ALLOW_THREADS;
    core_patterns_free(&list);
    if (status != RP_OK) {
        PyMem_Free(used);
        return raise_config(status, &err);
    }
    return wrap(type, client, NULL, batch, environments, used);
}

static void release_writers(pattern_writer *self)
{
    rp_structured_writer *writer = self->writer;
    rp_batch_writer *batch = self->batch;

    self->writer = NULL;
    self->batch = NULL;
    Py_BEGIN_ALLOW_THREADS;
    rp_structured_writer_free(writer);
    rp_batch_writer_free(batch);
    Py_END_ALLOW_THREADS;
}

static void writer_dealloc(pattern_writer *self)
{
    release_writers(self);
    core_guard_deinit(&self->guard);
    PyMem_Free(self->columns);
    PyMem_Free(self->used);
    Py_CLEAR(self->structure);
    Py_CLEAR(self->other);
    Py_CLEAR(self->names);
    Py_CLEAR(self->client);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Acquires an open writer within `*timeout_ms`, and sets that to the time left. */
static int enter(pattern_writer *self, int64_t *timeout_ms)
{
    rp_error err = {.code = RP_PRECONDITION}, closed;

    if (core_check_process(self->process) != 0 ||
        core_guard_enter(&self->guard, timeout_ms) != 0)
        return -1;
    if ((self->writer || self->batch) && core_guard_check(&self->guard, &closed) == RP_OK)
        return 0;
    core_guard_leave(&self->guard);
    PyOS_snprintf(err.text, sizeof err.text,
                  "the writer is closed; make a new one with client.%s()",
                  Py_TYPE(self) == &core_BatchWriter ? "batch_writer" : "structured_writer");
    core_raise(RP_PRECONDITION, &err);
    return -1;
}

/* Returns the number of items that were not confirmed and are dropped. */
static PyObject *writer_close(pattern_writer *self, PyObject *Py_UNUSED(ignored))
{
    size_t dropped = 0;

    if (core_check_process(self->process) != 0 || core_guard_close(&self->guard) != 0)
        return NULL;
    if (self->writer) dropped = rp_structured_writer_pending(self->writer);
    if (self->batch) dropped = rp_batch_writer_pending(self->batch);
    release_writers(self);
    core_guard_leave(&self->guard);
    return PyLong_FromSize_t(dropped);
}

typedef struct appending {
    pattern_writer *self;
    const rp_value *values;
    size_t count;
    uint32_t flags;
    const bool *ends;
} appending;

static rp_status do_append(void *arg, rp_wait wait, rp_error *err)
{
    appending *a = arg;
    rp_status status = core_guard_check(&a->self->guard, err);

    if (status != RP_OK) return status;
    if (a->self->batch)
        return rp_batch_writer_append(a->self->batch, a->values, a->count, a->ends, wait, err);
    return rp_structured_writer_append(a->self->writer, a->values, a->count, a->flags, wait,
                                       err);
}

/* Stores the structure of the first step. */
static int keep_structure(pattern_writer *self, PyObject *nest)
{
    PyObject *structure = core_structure_of(nest), *names = NULL;
    Py_ssize_t count = structure ? core_structure_leaf_count(structure) : 0;

    if (structure) names = PyTuple_New(count);
    for (Py_ssize_t i = 0; names && i < count; i++) {
        PyObject *path = core_structure_path(structure, i);
        if (!path || !PyUnicode_AsUTF8(path)) {
            Py_XDECREF(path);
            Py_CLEAR(names);
        } else {
            PyTuple_SET_ITEM(names, i, path);
        }
    }
    if (names && !(self->columns = PyMem_Calloc((size_t)count + 1, sizeof *self->columns))) {
        PyErr_NoMemory();
        Py_CLEAR(names);
    }
    if (!names) {
        Py_XDECREF(structure);
        return -1;
    }
    self->structure = structure;
    self->names = names;
    self->leaf_count = count;
    return 0;
}

/* Keeps the structure of a step that differs from the first, if it has no other names than the
 * first step; otherwise ValueError. */
static int keep_other(pattern_writer *self, PyObject *nest)
{
    PyObject *structure = core_structure_of(nest);
    PyObject *module = structure ? PyImport_ImportModule("reprise._check") : NULL;
    PyObject *text = module ? PyObject_CallMethod(module, "differing_steps", "OO", structure,
                                                  self->structure)
                            : NULL;

    if (text && text != Py_None) PyErr_SetObject(PyExc_ValueError, text);
    Py_XDECREF(text);
    Py_XDECREF(module);
    if (PyErr_Occurred()) {
        Py_XDECREF(structure);
        return -1;
    }
    Py_XSETREF(self->other, structure);
    return 0;
}

/* Flattens a step. As in Reverb, it must have as many leaves as the first step, in any
 * structure; but a column that has a name may neither get another nor lose it. */
static int flatten_step(pattern_writer *self, PyObject *nest, core_leaves *leaves)
{
    int same;

    assert((self->structure == NULL) == (self->names == NULL)); /* V2 */
    if (!self->structure && keep_structure(self, nest) != 0) return -1;
    same = core_structure_flatten(self->structure, nest, leaves);
    if (same == 0 && self->other) same = core_structure_flatten(self->other, nest, leaves);
    if (same != 0) return same > 0 ? 0 : -1;
    if (core_flatten(nest, leaves) != 0) return -1;
    if (leaves->count == self->leaf_count && keep_other(self, nest) == 0) return 0;
    if (PyErr_Occurred()) {
        core_leaves_free(leaves);
        return -1;
    }
    PyErr_Format(PyExc_ValueError,
                 "Flattened data has an unexpected length, got %zd but wanted %zd.",
                 leaves->count, self->leaf_count);
    core_leaves_free(leaves);
    return -1;
}

/* Sets ValueError with Reverb's text if a value differs from its column in dtype or shape. */
static int check_like_before(pattern_writer *self, const core_step *step)
{
    for (size_t i = 0; i < step->count; i++) {
        const rp_tensor *is = &step->tensors[i];
        const rp_spec *was = &self->columns[i];
        char got[128], wanted[128];
        PyObject *paths;
        bool dtype = is->dtype != was->dtype;

        if (!step->keep[i] || was->dtype == RP_INVALID_DTYPE ||
            (!dtype && rp_shape_equal(&is->shape, &was->shape)))
            continue;
        paths = PyObject_CallMethod(self->structure, "paths", NULL);
        if (!paths) return -1;
        PyErr_Format(PyExc_ValueError,
                     dtype ? "Tensor of wrong dtype provided for column %zu (path=%R). Got %s "
                             "but expected %s."
                           : "Tensor of incompatible shape provided for column %zu (path=%R). "
                             "Got %s which is incompatible with %s.",
                     i, PyList_GET_ITEM(paths, (Py_ssize_t)i),
                     dtype ? rp_dtype_name(is->dtype)
                           : rp_shape_text(&is->shape, got, sizeof got),
                     dtype ? rp_dtype_name(was->dtype)
                           : rp_shape_text(&was->shape, wanted, sizeof wanted));
        Py_DECREF(paths);
        return -1;
    }
    return 0;
}

static void keep_columns(pattern_writer *self, const core_step *step)
{
    for (size_t i = 0; i < step->count; i++)
        if (step->keep[i] && self->columns[i].dtype == RP_INVALID_DTYPE)
            self->columns[i] =
                (rp_spec){.dtype = step->tensors[i].dtype, .shape = step->tensors[i].shape};
}

/* Appends the tensors of a step, except for leaves that are None. The caller holds the guard.
 */
static int append_step(pattern_writer *self, const core_step *step, uint32_t flags,
                       const bool *ends, int64_t timeout_ms)
{
    rp_value inside[CORE_STEP_INSIDE], *values = inside;
    appending a = {.self = self, .flags = flags, .ends = ends};
    rp_error err = {0};
    rp_status status;
    int failed;

    assert((Py_ssize_t)step->count == self->leaf_count);
    if (check_like_before(self, step) != 0) return -1;
    if (step->count > CORE_STEP_INSIDE && !(values = PyMem_New(rp_value, step->count))) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < step->count; i++)
        if (step->keep[i])
            values[a.count++] = (rp_value){
                .column = (uint32_t)i,
                .name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(self->names, (Py_ssize_t)i)),
                .tensor = step->tensors[i]};
    a.values = values;
    failed =
        core_wait(do_append, &a, timeout_ms, NULL, !core_step_is_large(step), &status, &err);
    if (values != inside) PyMem_Free(values);
    if (failed) return -1;
    if (status == RP_OK) {
        keep_columns(self, step);
        return 0;
    }
    core_raise(status, &err);
    return -1;
}

/* Replaces leaves that no pattern uses by None, so that they are not converted. */
static void forget_unused(const pattern_writer *self, core_leaves *leaves)
{
    for (Py_ssize_t i = 0; i < leaves->count; i++) {
        if (i < RP_MAX_COLUMNS && self->used[i]) continue;
        Py_INCREF(Py_None);
        Py_SETREF(leaves->items[i], Py_None);
    }
}

static int append_nest(pattern_writer *self, PyObject *nest, uint32_t flags, const bool *ends,
                       int64_t timeout_ms)
{
    core_leaves leaves;
    core_step step;
    int failed;

    if (enter(self, &timeout_ms) != 0) return -1;
    failed = flatten_step(self, nest, &leaves);
    if (!failed) {
        forget_unused(self, &leaves);
        failed = core_step_from(nest, &leaves, true, &step);
        core_leaves_free(&leaves);
        if (!failed) {
            failed = append_step(self, &step, flags, ends, timeout_ms);
            core_step_release(&step);
        }
    }
    core_guard_leave(&self->guard);
    return failed ? -1 : 0;
}

/* append(data, partial_step=False, timeout=None), by position. */
static PyObject *structured_append(pattern_writer *self, PyObject *const *args,
                                   Py_ssize_t count)
{
    int64_t timeout_ms = -1;
    int open = 0;

    if (count < 1 || count > 3) {
        PyErr_SetString(PyExc_TypeError, "append(data, partial_step=False, timeout=None)");
        return NULL;
    }
    if (count > 1 && (open = PyObject_IsTrue(args[1])) < 0) return NULL;
    if (count > 2 && core_timeout_s(args[2], &timeout_ms) != 0) return NULL;
    if (append_nest(self, args[0], open ? RP_STEP_OPEN : 0, NULL, timeout_ms) != 0) return NULL;
    Py_RETURN_NONE;
}

/* append_batch(data, ends=None, timeout=None), by position. Each leaf, and `ends`, has a row
 * for each environment. */
static PyObject *batch_append(pattern_writer *self, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *ends = NULL;
    int64_t timeout_ms = -1;
    int failed;

    if (count < 1 || count > 3) {
        PyErr_SetString(PyExc_TypeError, "append_batch(data, ends=None, timeout=None)");
        return NULL;
    }
    if (count > 2 && core_timeout_s(args[2], &timeout_ms) != 0) return NULL;
    if (count > 1 && args[1] != Py_None) {
        ends = (PyArrayObject *)PyArray_FROM_OTF(args[1], NPY_BOOL,
                                                 NPY_ARRAY_IN_ARRAY | NPY_ARRAY_FORCECAST);
        if (!ends) return NULL;
        if (PyArray_SIZE(ends) != self->environments) {
            PyErr_Format(PyExc_ValueError,
                         "ends must have one value for each of %zd "
                         "environments, got %zd",
                         self->environments, PyArray_SIZE(ends));
            Py_DECREF(ends);
            return NULL;
        }
    }
    failed = append_nest(self, args[0], 0, ends ? (const bool *)PyArray_DATA(ends) : NULL,
                         timeout_ms);
    Py_XDECREF(ends);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

typedef struct flushing {
    pattern_writer *self;
    size_t leave;
    bool clear;
} flushing;

static rp_status do_flush(void *arg, rp_wait wait, rp_error *err)
{
    flushing *f = arg;
    rp_status status = core_guard_check(&f->self->guard, err);

    if (status != RP_OK) return status;
    if (f->self->batch) return rp_batch_writer_flush(f->self->batch, wait, err);
    return rp_structured_writer_flush(f->self->writer, f->leave, wait, err);
}

static rp_status do_end_episode(void *arg, rp_wait wait, rp_error *err)
{
    flushing *f = arg;
    rp_status status = core_guard_check(&f->self->guard, err);

    if (status != RP_OK) return status;
    return rp_structured_writer_end_episode(f->self->writer, f->clear, wait, err);
}

static PyObject *wait_for(pattern_writer *self, core_call call, flushing *f, PyObject *timeout)
{
    rp_error err = {0};
    rp_status status;
    int64_t timeout_ms;
    int failed;

    if (core_timeout_ms(timeout, &timeout_ms) != 0 || enter(self, &timeout_ms) != 0)
        return NULL;
    f->self = self;
    failed = core_wait_after(self->waited_ns, call, f, timeout_ms, false, &status, &err);
    core_guard_leave(&self->guard);
    if (failed) return NULL;
    if (status == RP_OK) self->waited_ns = 0;
    if (status != RP_OK) return core_raise(status, &err);
    Py_RETURN_NONE;
}

static PyObject *writer_flush(pattern_writer *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"leave", "timeout_ms", NULL};
    PyObject *timeout = Py_None;
    Py_ssize_t leave = 0;
    flushing f = {0};

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|nO", names, &leave, &timeout)) return NULL;
    if (leave < 0) {
        PyErr_Format(PyExc_ValueError, "block_until_num_items must be >= 0, got %zd", leave);
        return NULL;
    }
    f.leave = (size_t)leave;
    return wait_for(self, do_flush, &f, timeout);
}

static PyObject *structured_end_episode(pattern_writer *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"clear", "timeout_ms", NULL};
    PyObject *timeout = Py_None;
    int clear = 1;
    flushing f = {0};

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pO", names, &clear, &timeout)) return NULL;
    f.clear = clear != 0;
    return wait_for(self, do_end_episode, &f, timeout);
}

static PyObject *structured_is_open(pattern_writer *self, void *closure)
{
    int64_t timeout_ms = -1;
    bool open;

    (void)closure;
    if (enter(self, &timeout_ms) != 0) return NULL;
    open = rp_structured_writer_is_open(self->writer);
    core_guard_leave(&self->guard);
    return PyBool_FromLong(open);
}

static PyObject *batch_environments(pattern_writer *self, void *closure)
{
    (void)closure;
    return PyLong_FromSsize_t(self->environments);
}

#define WITH_KEYWORDS(function) CORE_METHOD(function), METH_VARARGS | METH_KEYWORDS
#define FAST(function) CORE_METHOD(function), METH_FASTCALL

static PyMemberDef writer_members[] = {
    {"waited_ns", T_LONGLONG, offsetof(pattern_writer, waited_ns), 0,
     "How long requests of signatures have waited in vain: a flush that waits counts it."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef structured_methods[] = {
    {"append", FAST(structured_append),
     "append($self, data, partial_step=False, timeout=None, /)\n--\n\n"
     "Appends a step, or a part of one, and tries the patterns."},
    {"flush", WITH_KEYWORDS(writer_flush), "flush($self, leave=0, timeout_ms=None)\n--\n\n"},
    {"end_episode", WITH_KEYWORDS(structured_end_episode),
     "end_episode($self, clear=True, timeout_ms=None)\n--\n\n"},
    {"close", (PyCFunction)writer_close, METH_NOARGS, "close($self)\n--\n\n"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef structured_getset[] = {
    {"is_open", (getter)structured_is_open, NULL, "Whether a step is open.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

PyTypeObject core_StructuredWriter = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.StructuredWriter",
    .tp_basicsize = sizeof(pattern_writer),
    .tp_dealloc = (destructor)writer_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "StructuredWriter(client, patterns, *, chunk_length=0, max_items=0, "
              "max_bytes=0)\n--\n\nMakes items by patterns.",
    .tp_methods = structured_methods,
    .tp_members = writer_members,
    .tp_getset = structured_getset,
    .tp_new = structured_new,
};

static PyMethodDef batch_methods[] = {
    {"append_batch", FAST(batch_append),
     "append_batch($self, data, ends=None, timeout=None, /)\n--\n\n"
     "Appends a step of every environment and tries the patterns of each."},
    {"flush", WITH_KEYWORDS(writer_flush), "flush($self, leave=0, timeout_ms=None)\n--\n\n"},
    {"close", (PyCFunction)writer_close, METH_NOARGS, "close($self)\n--\n\n"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef batch_getset[] = {
    {"environments", (getter)batch_environments, NULL, "How many environments.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

PyTypeObject core_BatchWriter = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.BatchWriter",
    .tp_basicsize = sizeof(pattern_writer),
    .tp_dealloc = (destructor)writer_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "BatchWriter(client, environments, patterns, *, chunk_length=0, max_items=0, "
              "max_bytes=0)\n--\n\nMakes items by patterns, for N environments.",
    .tp_methods = batch_methods,
    .tp_members = writer_members,
    .tp_getset = batch_getset,
    .tp_new = batch_new,
};
