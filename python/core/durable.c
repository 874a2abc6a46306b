/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.Durable: the data directory of a store.
 *
 * A Durable belongs to the process that made it, as its store does.
 *
 * Invariants, whenever a thread releases the GIL:
 *   D1  `uses` counts the calls in progress that use the C object;
 *   D2  close() clears `durable` first, so that no new call starts, and closes the C object
 * when
 *       `uses` is 0. */
#include "durable.h"

#include <string.h>
#include <unistd.h>

#include "server_call.h"
#include "store.h"

enum { PATH_BYTES = 4096, POLL_MS = 5 };

typedef struct durable_object {
    PyObject_HEAD
    rp_durable *durable; /* NULL once closed */
    PyObject *store;     /* a reference: outlives `durable` */
    int uses;            /* calls in progress */
    pid_t pid;
} durable_object;

static const char *const mode_names[] = {"checkpoint", "interval", "sync"};

rp_durable *core_durable_of(PyObject *obj)
{
    const durable_object *self = (durable_object *)obj;
    rp_error err = {RP_PRECONDITION, "the data directory is closed"};

    if (self->durable != NULL && self->pid == getpid()) return self->durable;
    (void)core_raise(RP_PRECONDITION, &err);
    return NULL;
}

static int mode_from(const char *name, rp_durability *mode)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, mode_names[i]) == 0) {
            *mode = (rp_durability)i;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError,
                 "durability must be 'checkpoint', 'interval' or 'sync', got '%s'", name);
    return -1;
}

/* Converts milliseconds to nanoseconds; negative numbers to RP_FOREVER. */
static int64_t ns_of(long long ms)
{
    return ms < 0 || ms > INT64_MAX / 1000000 ? RP_FOREVER : ms * 1000000;
}

static int parse(PyObject *args, PyObject *kwargs, durable_object *self, PyObject **path,
                 rp_durable_options *options)
{
    static char *names[] = {"store",     "path",           "durability", "sync_ms",
                            "period_ms", "keep",           "max_memory", "final_checkpoint",
                            "salvage",   "accept_changes", "run_bytes",  NULL};
    long long sync_ms = 0, period_ms = -1;
    int final = 0, salvage = 0, accept = 0;
    const char *mode = "checkpoint";
    PyObject *store;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O&|$sLLiO&pppO&:Durable", names,
                                     &core_Store, &store, PyUnicode_FSConverter, path, &mode,
                                     &sync_ms, &period_ms, &options->keep, core_u64_converter,
                                     &options->max_memory, &final, &salvage, &accept,
                                     core_u64_converter, &options->run_bytes))
        return -1;
    if (mode_from(mode, &options->mode) < 0) return -1;
    if (sync_ms < 0 || options->keep < 0) {
        PyErr_SetString(PyExc_ValueError, "sync_ms and keep must be >= 0");
        return -1;
    }
    options->directory = PyBytes_AS_STRING(*path);
    options->interval_ns = ns_of(sync_ms);
    options->period_ns = ns_of(period_ms);
    options->checkpoint_at_end = final != 0;
    options->salvage = salvage != 0;
    options->accept_changes = accept != 0;
    Py_INCREF(store);
    self->store = store;
    return 0;
}

static PyObject *durable_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    rp_durable_options options = {0};
    PyObject *path = NULL;
    rp_error err = {0};
    rp_store *store;
    rp_status st;
    durable_object *self = (durable_object *)type->tp_alloc(type, 0);

    if (self == NULL) return NULL;
    self->pid = getpid();
    if (parse(args, kwargs, self, &path, &options) < 0) goto fail;
    store = core_store_of(self->store);
    if (store == NULL) goto fail;
    Py_BEGIN_ALLOW_THREADS
    st = rp_durable_open(&options, store, &self->durable, &err);
    Py_END_ALLOW_THREADS
    if (st != RP_OK) {
        self->durable = NULL;
        (void)core_raise(st, &err);
        goto fail;
    }
    Py_DECREF(path);
    return (PyObject *)self;
fail:
    Py_XDECREF(path);
    Py_DECREF(self);
    return NULL;
}

/* Closes the data directory (D2). */
static rp_status close_durable(durable_object *self, rp_error *err)
{
    rp_durable *durable = self->durable;
    rp_status st = RP_OK;

    self->durable = NULL;
    if (durable == NULL || self->pid != getpid()) return RP_OK;
    while (self->uses > 0) {
        Py_BEGIN_ALLOW_THREADS
        core_sleep_ms(POLL_MS);
        Py_END_ALLOW_THREADS
    }
    assert(self->uses == 0); /* D1 */
    Py_BEGIN_ALLOW_THREADS
    st = rp_durable_close(durable, err);
    Py_END_ALLOW_THREADS
    return st;
}

static void durable_dealloc(PyObject *obj)
{
    durable_object *self = (durable_object *)obj;
    rp_error err;
    rp_status st = close_durable(self, &err);

    (void)st; /* an error cannot be reported here */
    Py_XDECREF(self->store);
    Py_TYPE(obj)->tp_free(obj);
}

static PyObject *durable_close(PyObject *obj, PyObject *Py_UNUSED(ignored))
{
    rp_error err = {0};
    rp_status st = close_durable((durable_object *)obj, &err);

    if (st != RP_OK) return core_raise(st, &err);
    Py_RETURN_NONE;
}

typedef struct request {
    core_request base;
    rp_durable *durable;
    char path[PATH_BYTES];
} request;

static void clear_request(void *arg)
{
    (void)arg;
}

static rp_status do_checkpoint(void *arg, rp_wait wait, rp_error *err)
{
    request *r = arg;

    return rp_durable_checkpoint(r->durable, wait, r->path, sizeof r->path, err);
}

static PyObject *durable_checkpoint(PyObject *obj, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    durable_object *self = (durable_object *)obj;
    PyObject *timeout = Py_None, *path = NULL;
    int64_t timeout_ms;
    request *r;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &timeout) ||
        core_timeout_s(timeout, &timeout_ms) != 0 || core_durable_of(obj) == NULL)
        return NULL;
    r = core_request_new(sizeof *r, clear_request);
    if (r == NULL) return NULL;
    r->durable = self->durable;
    r->base.what = "a checkpoint is being written";
    self->uses++;
    if (core_call_server(do_checkpoint, &r->base, 0, timeout_ms) == 0)
        path = PyUnicode_DecodeFSDefault(r->path);
    assert(self->uses > 0);
    self->uses--;
    core_request_drop(&r->base);
    return path;
}

static int put(PyObject *dict, const char *name, PyObject *value)
{
    int result = value != NULL ? PyDict_SetItemString(dict, name, value) : -1;

    Py_XDECREF(value);
    return result;
}

static PyObject *progress_dict(const rp_durable_progress *p)
{
    if (p->what == NULL) Py_RETURN_NONE;
    return Py_BuildValue("{s:s,s:K,s:K,s:d,s:d}", "what", p->what, "done_bytes",
                         (unsigned long long)p->done, "total_bytes",
                         (unsigned long long)p->total, "elapsed_s", (double)p->elapsed_ns / 1e9,
                         "left_s", (double)p->left_ns / 1e9);
}

PyObject *core_durable_dict(const rp_durable_info *info)
{
#define NUMBERS(X)                                                                             \
    X(checkpoints)                                                                             \
    X(failed_checkpoints)                                                                      \
    X(last_checkpoint)                                                                         \
    X(last_checkpoint_bytes)                                                                   \
    X(lsn)                                                                                     \
    X(safe_lsn)                                                                                \
    X(backlog_bytes)                                                                           \
    X(max_backlog_bytes)                                                                       \
    X(segments)                                                                                \
    X(disk_bytes)                                                                              \
    X(live_bytes)                                                                              \
    X(recovered_items)                                                                         \
    X(recovered_records)                                                                       \
    X(torn_bytes)                                                                              \
    X(resident_bytes)                                                                          \
    X(spilled_bytes)                                                                           \
    X(loads)                                                                                   \
    X(load_bytes)                                                                              \
    X(load_hits)
    size_t mode = (size_t)info->mode < 3 ? (size_t)info->mode : 2;
    PyObject *dict = PyDict_New();

    if (dict == NULL) return NULL;
    if (put(dict, "durability", PyUnicode_FromString(mode_names[mode])) < 0 ||
        put(dict, "degraded", PyBool_FromLong(info->degraded)) < 0 ||
        put(dict, "trouble", core_text(info->trouble)) < 0 ||
        put(dict, "last_checkpoint_age_s",
            PyFloat_FromDouble((double)info->last_checkpoint_age_ns / 1e9)) < 0 ||
        put(dict, "last_checkpoint_s",
            PyFloat_FromDouble((double)info->last_checkpoint_took_ns / 1e9)) < 0 ||
        put(dict, "last_pause_s", PyFloat_FromDouble((double)info->last_pause_ns / 1e9)) < 0 ||
        put(dict, "progress", progress_dict(&info->progress)) < 0)
        goto fail;
#define PUT(field)                                                                             \
    if (put(dict, #field, PyLong_FromUnsignedLongLong(info->field)) < 0) goto fail;
    NUMBERS(PUT)
#undef PUT
#undef NUMBERS
    return dict;
fail:
    Py_DECREF(dict);
    return NULL;
}

static PyObject *durable_info(PyObject *obj, PyObject *Py_UNUSED(ignored))
{
    rp_durable *durable = core_durable_of(obj);
    durable_object *self = (durable_object *)obj;
    rp_durable_info info;

    if (durable == NULL) return NULL;
    self->uses++;
    Py_BEGIN_ALLOW_THREADS
    rp_durable_get_info(durable, &info);
    Py_END_ALLOW_THREADS
    assert(self->uses > 0);
    self->uses--;
    return core_durable_dict(&info);
}

PyDoc_STRVAR(from_reverb_doc,
             "data_from_reverb(source, path)\n--\n\n"
             "Imports a checkpoint of dm-reverb, or the newest one of a folder, to `path`.");

static PyObject *data_from_reverb(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *source = NULL, *path = NULL;
    rp_data_move_options options = {0};
    rp_error err = {0};
    rp_status st;

    if (!PyArg_ParseTuple(args, "O&O&:data_from_reverb", PyUnicode_FSConverter, &source,
                          PyUnicode_FSConverter, &path)) {
        Py_XDECREF(source);
        return NULL;
    }
    options.from = PyBytes_AS_STRING(source);
    options.to = PyBytes_AS_STRING(path);
    Py_BEGIN_ALLOW_THREADS
    st = rp_data_from_reverb(&options, NULL, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(source);
    Py_DECREF(path);
    if (st != RP_OK) return core_raise(st, &err);
    Py_RETURN_NONE;
}

PyMethodDef core_durable_functions[] = {
    {"data_from_reverb", data_from_reverb, METH_VARARGS, from_reverb_doc},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef durable_methods[] = {
    {"checkpoint", CORE_METHOD(durable_checkpoint), METH_VARARGS | METH_KEYWORDS,
     "checkpoint($self, timeout=None)\n--\n\nWrites a checkpoint and returns its path."},
    {"close", durable_close, METH_NOARGS,
     "close($self)\n--\n\nWrites all data to disk and closes. May be called again."},
    {"info", durable_info, METH_NOARGS, "info($self)\n--\n\nReturns its state."},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(
    durable_doc,
    "Durable(store, path, *, durability='checkpoint', sync_ms=0, period_ms=-1, keep=0, "
    "max_memory=0, final_checkpoint=False, salvage=False, accept_changes=False, "
    "run_bytes=0)\n--\n\n"
    "Loads a data directory into a store of new tables, and writes its changes to it.");

PyTypeObject core_Durable = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.Durable",
    .tp_basicsize = sizeof(durable_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = durable_doc,
    .tp_new = durable_new,
    .tp_dealloc = durable_dealloc,
    .tp_methods = durable_methods,
};
