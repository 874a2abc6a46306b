/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.Server: serves a store on the network, from this process.
 *
 * The threads of the server belong to the C library and never hold the GIL. A forked child does
 * not have these threads, so in the child stop() does not wait for them and frees nothing.
 *
 * Invariant: E1  `store` and `durable` are references that are held until `server` is NULL. */
#include "durable.h"
#include "store.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ADDRESSES = 16 };

typedef struct server_object {
    PyObject_HEAD
    rp_server *server; /* NULL once stopped */
    PyObject *store;   /* E1 */
    PyObject *durable; /* E1; may be NULL. The caller stops the server before it closes this */
    int port;
    int log_level;
    bool is_logged;
    pid_t pid;
} server_object;

static const char *const level_names[] = {"error", "warning", "info", "debug"};

/* Called on any thread, without the GIL. `ctx` is the highest level to write. */
static void write_log(void *ctx, rp_log_level level, const char *event, const char *fields)
{
    const int *limit = ctx;

    if ((int)level > *limit) return;
    assert((size_t)level < sizeof level_names / sizeof *level_names);
    (void)fprintf(stderr, "reprise: %s: %s %s\n", level_names[level], event, fields);
}

/* Logs that the server has started, or is about to stop, as `reprise serve` does. */
static void log_state(server_object *self, const char *event)
{
    char fields[32];

    if (!self->is_logged) return;
    (void)snprintf(fields, sizeof fields, "port=%d", self->port);
    write_log(&self->log_level, RP_LOG_INFO, event, fields);
}

static int level_from(const char *name, int *level)
{
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *level = i;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError,
                 "log must be 'error', 'warning', 'info' or 'debug', got '%s'", name);
    return -1;
}

typedef struct limit_field {
    const char *name;
    size_t offset;
    bool is_ms;
} limit_field;

#define COUNT(field)                                                                           \
    {                                                                                          \
#field, offsetof(rp_server_limits, field), false                                       \
    }
#define MILLIS(field)                                                                          \
    {                                                                                          \
#field, offsetof(rp_server_limits, field), true                                        \
    }

static const limit_field limit_fields[] = {
    COUNT(connections),
    COUNT(streams),
    COUNT(calls),
    COUNT(message_bytes),
    COUNT(chunk_bytes),
    COUNT(tensor_bytes),
    COUNT(item_bytes),
    COUNT(columns),
    COUNT(chunks),
    COUNT(slices),
    COUNT(items),
    COUNT(keys),
    COUNT(distinct_samples),
    COUNT(stream_pinned_bytes),
    COUNT(connection_pinned_bytes),
    COUNT(pinned_bytes),
    COUNT(stream_queued_bytes),
    COUNT(connection_queued_bytes),
    COUNT(queued_bytes),
    COUNT(shared_held_bytes),
    COUNT(run_bytes),
    COUNT(header_bytes),
    COUNT(header_fields),
    COUNT(abuse_burst),
    COUNT(abuse_per_second),
    MILLIS(handshake_ms),
    MILLIS(stall_ms),
    MILLIS(message_grace_ms),
    MILLIS(ping_ms),
    MILLIS(ping_timeout_ms),
    COUNT(tables),
    MILLIS(checkpoint_spacing_ms),
};

static int set_limit(rp_server_limits *limits, const char *name, PyObject *value)
{
    if (!PyIndex_Check(value)) {
        PyErr_Format(PyExc_TypeError, "limit '%s' must be an integer, got %R", name, value);
        return -1;
    }
    for (size_t i = 0; i < sizeof limit_fields / sizeof *limit_fields; i++) {
        const limit_field *field = &limit_fields[i];
        char *at = (char *)limits + field->offset;

        if (strcmp(field->name, name) != 0) continue;
        if (field->is_ms) {
            int64_t ms = PyLong_AsLongLong(value);

            if (ms == -1 && PyErr_Occurred()) return -1;
            memcpy(at, &ms, sizeof ms);
        } else {
            size_t count = PyLong_AsSize_t(value);

            if (count == (size_t)-1 && PyErr_Occurred()) return -1;
            memcpy(at, &count, sizeof count);
        }
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "no limit is called '%s'", name);
    return -1;
}

static int limits_from(PyObject *dict, rp_server_limits *limits)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    int result = 0;

    if (dict == Py_None) return 0;
    if (!PyDict_Check(dict)) {
        PyErr_Format(PyExc_TypeError, "limits must be a dict, got %R", dict);
        return -1;
    }
    dict = PyDict_Copy(
        dict); /* a copy: reading a value may run Python, which may change the dict */
    if (dict == NULL) return -1;
    while (result == 0 && PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8(key);

        result = name == NULL ? -1 : set_limit(limits, name, value);
    }
    Py_DECREF(dict);
    return result;
}

/* Reads the addresses. The strings are borrowed from `sequence`. */
static int addresses_from(PyObject *sequence, const char **addresses, size_t *count)
{
    Py_ssize_t size = PyTuple_GET_SIZE(sequence);

    if (size < 1 || size > MAX_ADDRESSES) {
        PyErr_Format(PyExc_ValueError, "a server needs 1 to %d addresses, got %zd",
                     MAX_ADDRESSES, size);
        return -1;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        addresses[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(sequence, i));
        if (addresses[i] == NULL) return -1;
    }
    *count = (size_t)size;
    return 0;
}

static int parse(PyObject *args, PyObject *kwargs, server_object *self, PyObject **addresses,
                 rp_server_options *options)
{
    static char *names[] = {"store",
                            "addresses",
                            "loops",
                            "limits",
                            "certificate_file",
                            "key_file",
                            "client_ca_file",
                            "require_client_certificate",
                            "tokens_file",
                            "insecure",
                            "reset",
                            "shared_memory",
                            "shared_memory_bytes",
                            "gather",
                            "log",
                            "durable",
                            "page_hosts",
                            NULL};
    rp_server_security *security = &options->security;
    PyObject *store, *sequence, *limits = Py_None, *durable = Py_None;
    int require = 0, insecure = 0, reset = 1, shared = 1, gather = 1;
    const char *log = NULL;
    Py_ssize_t loops = 0;
    uint64_t shared_bytes = 0;

    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!O|$nOzzzpzpppO&pzOz:Server", names, &core_Store, &store, &sequence,
            &loops, &limits, &security->certificate_file, &security->key_file,
            &security->client_ca_file, &require, &security->tokens_file, &insecure, &reset,
            &shared, core_u64_converter, &shared_bytes, &gather, &log, &durable,
            &security->page_hosts))
        return -1;
    if (loops < 0) {
        PyErr_Format(PyExc_ValueError, "loops must be >= 0, got %zd", loops);
        return -1;
    }
    if (limits_from(limits, &options->limits) < 0) return -1;
    if (log != NULL) {
        if (level_from(log, &self->log_level) < 0) return -1;
        options->log = (rp_log){write_log, &self->log_level};
        self->is_logged = true;
    }
    options->loops = (size_t)loops;
    options->shared_memory_bytes = (size_t)shared_bytes;
    options->shared_memory_off = shared == 0;
    options->moderate_off = gather == 0;
    security->require_client_certificate = require != 0;
    security->insecure = insecure != 0;
    security->reset_off = reset == 0;
    *addresses =
        PyUnicode_Check(sequence) ? PyTuple_Pack(1, sequence) : PySequence_Tuple(sequence);
    if (*addresses == NULL) return -1;
    Py_INCREF(store);
    self->store = store;
    if (durable == Py_None) return 0;
    if (Py_TYPE(durable) != &core_Durable) {
        PyErr_Format(PyExc_TypeError, "durable must be a Durable, got %R", durable);
        return -1;
    }
    Py_INCREF(durable);
    self->durable = durable;
    options->durable = core_durable_of(durable);
    return options->durable != NULL ? 0 : -1;
}

static PyObject *server_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    const char *addresses[MAX_ADDRESSES];
    rp_server_options options = {.addresses = addresses};
    PyObject *sequence = NULL;
    rp_error err = {0};
    rp_store *store;
    rp_status st;
    server_object *self = (server_object *)type->tp_alloc(type, 0);

    if (self == NULL) return NULL;
    self->pid = getpid();
    if (parse(args, kwargs, self, &sequence, &options) < 0) goto fail;
    if (addresses_from(sequence, addresses, &options.address_count) < 0) goto fail;
    store = core_store_of(self->store);
    if (store == NULL) goto fail;
    Py_BEGIN_ALLOW_THREADS
    st = rp_server_start(store, &options, &self->server, &err);
    Py_END_ALLOW_THREADS
    if (st != RP_OK) {
        self->server = NULL;
        (void)core_raise(st, &err);
        goto fail;
    }
    self->port = rp_server_port(self->server);
    log_state(self, "serving");
    Py_DECREF(sequence);
    return (PyObject *)self;
fail:
    Py_XDECREF(sequence);
    Py_DECREF(self);
    return NULL;
}

static rp_status do_drain(void *arg, rp_wait wait, rp_error *err)
{
    (void)err;
    return rp_server_drain_wait(arg, wait, NULL);
}

/* Stops the server. Clears self->server first, so that no other thread stops it as well.
 * Returns -1 if a signal handler raises an exception: then the grace period ends early, and the
 * server is still stopped. */
static int stop(server_object *self, int64_t grace_ms)
{
    rp_server *server = self->server;
    rp_error err = {0};
    rp_status st;
    int result = 0;

    self->server = NULL;
    if (server == NULL || self->pid != getpid()) return 0;
    log_state(self, "stopping");
    if (grace_ms > 0) result = core_wait(do_drain, server, grace_ms, NULL, false, &st, &err);
    Py_BEGIN_ALLOW_THREADS
    rp_server_free(server);
    Py_END_ALLOW_THREADS
    return result;
}

static void server_dealloc(PyObject *obj)
{
    server_object *self = (server_object *)obj;

    (void)stop(self, 0);
    assert(self->server == NULL); /* E1 */
    Py_XDECREF(self->durable);
    Py_XDECREF(self->store);
    Py_TYPE(obj)->tp_free(obj);
}

PyDoc_STRVAR(stop_doc,
             "stop(grace_ms=0)\n--\n\n"
             "Accepts no new calls, lets open ones continue for `grace_ms`, then ends "
             "them. May be called again.");

static PyObject *server_stop(PyObject *obj, PyObject *args)
{
    long long grace_ms = 0;

    if (!PyArg_ParseTuple(args, "|L:stop", &grace_ms)) return NULL;
    if (stop((server_object *)obj, grace_ms) != 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *server_get_port(PyObject *obj, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(((server_object *)obj)->port);
}

static PyObject *server_get_running(PyObject *obj, void *Py_UNUSED(closure))
{
    const server_object *self = (server_object *)obj;

    return PyBool_FromLong(self->server != NULL && self->pid == getpid());
}

static PyMethodDef server_methods[] = {
    {"stop", server_stop, METH_VARARGS, stop_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef server_getset[] = {
    {"port", server_get_port, NULL, "The port of the first TCP address; 0 if there is none.",
     NULL},
    {"running", server_get_running, NULL, "False once it has been stopped.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(server_doc,
             "Server(store, addresses, *, loops=0, limits=None, certificate_file=None, "
             "key_file=None, client_ca_file=None, require_client_certificate=False, "
             "tokens_file=None, insecure=False, reset=True, shared_memory=True, "
             "shared_memory_bytes=0, gather=True, log=None, durable=None, page_hosts=None)\n--"
             "\n\n"
             "Serves the tables of a store on the network. An address is 'host:port', "
             "'unix:/path' or 'fd:3'; `limits` are those of reprise/server.h by name.");

PyTypeObject core_Server = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.Server",
    .tp_basicsize = sizeof(server_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = server_doc,
    .tp_new = server_new,
    .tp_dealloc = server_dealloc,
    .tp_methods = server_methods,
    .tp_getset = server_getset,
};
