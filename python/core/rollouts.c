/* SPDX-License-Identifier: Apache-2.0 */
/* Client.rollouts(): one method for all actions; reprise.rollouts has a method for each. This
 * file reads the arguments and makes the call, rollout_results.c makes the dict of results. */
#define PY_SSIZE_T_CLEAN
#include "rollouts.h"

#include <string.h>

#include "server_call.h"

/* A block of memory of a request, followed by its bytes. */
typedef struct piece {
    struct piece *next;
    max_align_t bytes[];
} piece;

/* A call with its memory: the thread that makes it may outlive the method. */
typedef struct rollouts_request {
    core_request base;
    rp_client *client;
    rp_rollouts_call call;
    rp_rollout_options options;
    piece *pieces; /* from PyMem_RawMalloc() */
    core_rollout_entry *first, **last;
    void *data; /* of a cursor */
    size_t data_size;
    bool out_of_memory;
} rollouts_request;

static void clear_request(void *arg)
{
    rollouts_request *r = arg;

    for (piece *p = r->pieces, *next; p != NULL; p = next) {
        next = p->next;
        PyMem_RawFree(p);
    }
    rp_rollouts_draw_free(r->call.draw);
}

/* Allocates memory that lives as long as the request. Any thread. NULL: none. */
static void *room(rollouts_request *r, size_t size)
{
    piece *p = PyMem_RawMalloc(sizeof *p + size + 1);

    if (p == NULL) {
        r->out_of_memory = true;
        return NULL;
    }
    p->next = r->pieces;
    r->pieces = p;
    return p->bytes;
}

static void *copy(rollouts_request *r, const void *data, size_t size)
{
    void *to = room(r, size);

    if (to != NULL && size > 0) memcpy(to, data, size);
    return to;
}

static rp_string copy_string(rollouts_request *r, rp_string text)
{
    const char *to = copy(r, text.data, text.size);

    return to != NULL ? (rp_string){to, text.size} : (rp_string){"", 0};
}

/* The callbacks run on the thread of the call, without the GIL. */

static void on_entry(void *ctx, const rp_rollouts_entry *from)
{
    rollouts_request *r = ctx;
    core_rollout_entry *e = room(r, sizeof *e);
    rp_rollout_consumer *consumers;

    if (e == NULL) return;
    *e = (core_rollout_entry){.name = copy_string(r, from->name),
                              .options = *from->options,
                              .info = *from->info,
                              .cursor_count = from->cursor_count};
    consumers = copy(r, from->options->consumers,
                     from->options->consumer_count * sizeof(rp_rollout_consumer));
    e->cursors = copy(r, from->cursors, from->cursor_count * sizeof(rp_string));
    for (size_t i = 0; consumers != NULL && i < from->options->consumer_count; i++) {
        rp_string *columns =
            copy(r, consumers[i].columns, consumers[i].column_count * sizeof(rp_string));

        for (size_t k = 0; columns != NULL && k < consumers[i].column_count; k++)
            columns[k] = copy_string(r, columns[k]);
        consumers[i].columns = columns;
    }
    for (size_t i = 0; e->cursors != NULL && i < e->cursor_count; i++)
        e->cursors[i] = copy_string(r, e->cursors[i]);
    e->options.consumers = consumers;
    *r->last = e;
    r->last = &e->next;
}

static void on_data(void *ctx, const void *data, size_t size)
{
    rollouts_request *r = ctx;

    r->data = copy(r, data, size);
    r->data_size = size;
}

static void on_wait(void *ctx, const char *why)
{
    rollouts_request *r = ctx;

    core_request_explain(&r->base, why);
}

/* A second draw would lease other groups, and a second release would find no lease. The others
 * would undo what another client did after the first. */
static bool has_effect_again(const rp_rollouts_call *call)
{
    switch (call->action) {
    case RP_ROLLOUTS_DRAW:
    case RP_ROLLOUTS_RELEASE:
    case RP_ROLLOUTS_ABORT:
    case RP_ROLLOUTS_SET_CURSOR:
    case RP_ROLLOUTS_CONFIGURE: return true;
    case RP_ROLLOUTS_UPDATE: return call->replace;
    default: return false;
    }
}

static rp_status do_call(void *arg, rp_wait wait, rp_error *err)
{
    rollouts_request *r = arg;
    rp_status st = rp_client_rollouts(r->client, &r->call, wait, err);

    r->base.is_final = r->call.is_sent && has_effect_again(&r->call);
    return st;
}

static int take_text(rollouts_request *r, PyObject *value, rp_string *out)
{
    Py_ssize_t size;
    const char *text;

    if (!PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "a name must be a str, got %R", value);
        return -1;
    }
    text = PyUnicode_AsUTF8AndSize(value, &size);
    if (text == NULL) return -1;
    *out = copy_string(r, (rp_string){text, (size_t)size});
    return 0;
}

/* The list of (name, array, name of a dtype or None), with the data copied. */
static int take_columns(rollouts_request *r, PyObject *list)
{
    size_t count = PyList_Check(list) ? (size_t)PyList_GET_SIZE(list) : 0;
    rp_rollout_column *columns = room(r, count * sizeof *columns);

    if (columns == NULL) return 0;
    for (size_t i = 0; i < count; i++) {
        PyObject *name, *array, *keep;
        rp_tensor *tensor = &columns[i].tensor;
        npy_intp bytes;
        int raw;

        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, (Py_ssize_t)i), "OOp", &name, &array, &raw))
            return -1;
        if (take_text(r, name, &columns[i].name) != 0 ||
            core_tensor_from(array, PyUnicode_AsUTF8(name), tensor, &keep) != 0)
            return -1;
        if (tensor->dtype == RP_STRING) {
            Py_DECREF(keep);
            PyErr_Format(PyExc_TypeError,
                         "column %R: text is not supported; put its bytes as uint8", name);
            return -1;
        }
        if (raw && tensor->dtype == RP_UINT16) tensor->dtype = RP_BFLOAT16;
        bytes = PyArray_NBYTES((PyArrayObject *)keep);
        tensor->data = copy(r, tensor->data, (size_t)bytes);
        Py_DECREF(keep);
    }
    r->call.columns = columns;
    r->call.column_count = count;
    return 0;
}

static int take_consumers(rollouts_request *r, PyObject *list)
{
    size_t count = PyList_Check(list) ? (size_t)PyList_GET_SIZE(list) : 0;
    rp_rollout_consumer *consumers = room(r, count * sizeof *consumers);

    if (consumers == NULL) return 0;
    for (size_t i = 0; i < count; i++) {
        PyObject *name, *names;
        rp_string *columns;
        size_t n;

        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, (Py_ssize_t)i), "OO!", &name, &PyList_Type,
                              &names) ||
            take_text(r, name, &consumers[i].name) != 0)
            return -1;
        n = (size_t)PyList_GET_SIZE(names);
        columns = room(r, n * sizeof *columns);
        for (size_t k = 0; columns != NULL && k < n; k++)
            if (take_text(r, PyList_GET_ITEM(names, (Py_ssize_t)k), &columns[k]) != 0)
                return -1;
        consumers[i].columns = columns;
        consumers[i].column_count = n;
    }
    r->options.consumers = consumers;
    r->options.consumer_count = count;
    return 0;
}

/* Where a number of the arguments goes. */
typedef struct number_field {
    const char *name;
    void *at;
    size_t size;
} number_field;

/* Returns 1 if `key` is one of the fields, and sets it; 0 if not; -1 with an exception. */
static int take_number(const number_field *fields, size_t count, PyObject *key, PyObject *value)
{
    for (size_t i = 0; i < count; i++) {
        long long number;
        uint32_t half;

        if (PyUnicode_CompareWithASCIIString(key, fields[i].name) != 0) continue;
        number = PyLong_AsLongLong(value);
        if (number == -1 && PyErr_Occurred()) return -1;
        half = number < 0 || number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
        if (fields[i].size == sizeof half)
            memcpy(fields[i].at, &half, sizeof half);
        else
            memcpy(fields[i].at, &number, sizeof number);
        return 1;
    }
    return 0;
}

#define FIELD(name, place)                                                                     \
    {                                                                                          \
        name, &(place), sizeof(place)                                                          \
    }

static int take_options(rollouts_request *r, PyObject *options)
{
    uint32_t staleness, full, order;
    const number_field fields[] = {
        FIELD("group_size", r->options.group_size),
        FIELD("max_staleness", r->options.max_staleness),
        FIELD("groups_per_version", r->options.groups_per_version),
        FIELD("first_version", r->options.first_version),
        FIELD("max_groups", r->options.max_groups),
        FIELD("max_bytes", r->options.max_bytes),
        FIELD("staleness", staleness),
        FIELD("full", full),
        FIELD("order", order),
    };
    PyObject *key, *value;
    Py_ssize_t at = 0;
    int found;

    rp_rollout_options_init(&r->options);
    staleness = (uint32_t)r->options.staleness;
    full = (uint32_t)r->options.full;
    order = (uint32_t)r->options.order;
    while (PyDict_Next(options, &at, &key, &value)) {
        if (PyUnicode_CompareWithASCIIString(key, "consumers") == 0)
            found = take_consumers(r, value) == 0 ? 1 : -1;
        else
            found = take_number(fields, sizeof fields / sizeof fields[0], key, value);
        if (found < 0) return -1;
        if (found == 0) {
            PyErr_Format(PyExc_TypeError, "rollouts have no option %R", key);
            return -1;
        }
    }
    r->options.staleness = (rp_rollout_staleness)staleness;
    r->options.full = (rp_rollout_full)full;
    r->options.order = (rp_rollout_order)order;
    r->call.options = &r->options;
    return 0;
}

static int take_other(rollouts_request *r, PyObject *key, PyObject *value)
{
    const struct {
        const char *name;
        rp_string *at;
    } texts[] = {{"group", &r->call.group},
                 {"consumer", &r->call.consumer},
                 {"column", &r->call.column},
                 {"cursor", &r->call.cursor}};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (PyUnicode_CompareWithASCIIString(key, texts[i].name) == 0)
            return take_text(r, value, texts[i].at);
    if (PyUnicode_CompareWithASCIIString(key, "columns") == 0) return take_columns(r, value);
    if (PyUnicode_CompareWithASCIIString(key, "options") == 0 && PyDict_Check(value))
        return take_options(r, value);
    if (PyUnicode_CompareWithASCIIString(key, "replace") == 0) {
        r->call.replace = PyObject_IsTrue(value) == 1;
        return 0;
    }
    if (PyUnicode_CompareWithASCIIString(key, "data") == 0 && PyBytes_Check(value)) {
        r->call.data_size = (size_t)PyBytes_GET_SIZE(value);
        r->call.data = copy(r, PyBytes_AS_STRING(value), r->call.data_size);
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "there is no argument %R", key);
    return -1;
}

static int take_arguments(rollouts_request *r, PyObject *arguments)
{
    const number_field fields[] = {
        FIELD("index", r->call.index),
        FIELD("first_version", r->call.first_version),
        FIELD("last_version", r->call.last_version),
        FIELD("version", r->call.version),
        FIELD("ttl", r->call.ttl_ns),
        FIELD("groups", r->call.groups),
        FIELD("min_groups", r->call.min_groups),
        FIELD("tokens", r->call.tokens),
        FIELD("lease", r->call.lease),
    };
    PyObject *key, *value;
    Py_ssize_t at = 0;
    int found = 0;

    while (found >= 0 && PyDict_Next(arguments, &at, &key, &value)) {
        found = take_number(fields, sizeof fields / sizeof fields[0], key, value);
        if (found == 0) found = take_other(r, key, value);
    }
    if (found >= 0 && r->out_of_memory) PyErr_NoMemory();
    return found < 0 || r->out_of_memory ? -1 : 0;
}

/* All calls wait for the server, as those of tables do. In a store of this process,
 * RP_UNAVAILABLE says that its journal has failed: nothing to wait for. */
static int call_server(core_client *self, rollouts_request *r, int64_t timeout_ms)
{
    int flags = self->store == NULL ? CORE_CALL_PATIENT : 0;

    if (r->call.action == RP_ROLLOUTS_CREATE || r->call.action == RP_ROLLOUTS_DROP)
        return core_client_call_there(self, do_call, &r->base, timeout_ms);
    return core_call_server(do_call, &r->base, flags, timeout_ms);
}

PyObject *core_client_rollouts(core_client *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *results = NULL;
    rollouts_request *r;
    int64_t timeout_ms;
    long action;

    if (count != 4 || !PyLong_Check(args[0]) || !PyDict_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "rollouts(action, name, arguments, timeout)");
        return NULL;
    }
    action = PyLong_AsLong(args[0]);
    if (action == -1 && PyErr_Occurred()) return NULL;
    if (core_timeout_s(args[3], &timeout_ms) != 0 || core_client_check((PyObject *)self) != 0)
        return NULL;
    r = core_request_new(sizeof *r, clear_request);
    if (r == NULL) return NULL;
    r->base.peer = r->client = self->client;
    r->last = &r->first;
    r->call = (rp_rollouts_call){.action = (rp_rollouts_action)action,
                                 .on_entry = on_entry,
                                 .on_data = on_data,
                                 .on_wait = on_wait,
                                 .ctx = r};
    if (take_text(r, args[1], &r->call.rollouts) == 0 && take_arguments(r, args[2]) == 0 &&
        call_server(self, r, timeout_ms) == 0) {
        if (r->out_of_memory)
            PyErr_NoMemory();
        else
            results = core_rollout_results(&r->call, r->first, r->data, r->data_size);
    }
    core_request_drop(&r->base);
    return results;
}
