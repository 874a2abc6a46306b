/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.Client: a client of servers, or of a store in this process.
 *
 * Invariants:
 *   I1  `client` is set from creation until the object is freed;
 *   I2  a local client holds a reference to its store. */
#include "core.h"
#include "durable.h"
#include "keys.h"
#include "left_out.h"
#include "rollouts.h"
#include "runs.h"
#include "sample_steps.h"
#include "server_call.h"
#include "store.h"

enum { WHY_MAX = 1024 };

/* The arguments and results of a call. Texts are borrowed from the arguments of the method; all
 * other members are owned. */
typedef struct request {
    core_request base;
    core_client *owner; /* borrowed; only the method uses it */
    rp_client *client;
    const char *table;
    rp_update *updates; /* `updates`, `deletes` and blocked.calls are from PyMem_RawMalloc() */
    uint64_t *deletes;
    rp_client_blocked blocked;
    rp_client_durability *durability; /* `capacity` elements, from PyMem_RawCalloc() */
    size_t capacity, durability_count;
    size_t update_count, delete_count;
    rp_table_options options;
    rp_table_alteration change;
    uint32_t sides;
    rp_client_tables *tables;
    char *path;
} request;

static void clear_request(void *arg)
{
    request *r = arg;

    PyMem_RawFree(r->updates);
    PyMem_RawFree(r->deletes);
    PyMem_RawFree(r->blocked.calls);
    PyMem_RawFree(r->durability);
    rp_signature_unref(r->options.signature);
    rp_client_tables_free(r->tables);
    rp_client_text_free(r->client, r->path);
}

int core_client_check(PyObject *client)
{
    PyObject *store = ((core_client *)client)->store;
    return store == NULL || core_store_of(store) != NULL ? 0 : -1;
}

static request *request_new(core_client *self)
{
    request *r;

    assert(self->client != NULL); /* I1 */
    if (core_client_check((PyObject *)self) != 0) return NULL;
    if (!(r = core_request_new(sizeof *r, clear_request))) return NULL;
    r->owner = self;
    r->base.peer = r->client = self->client;
    return r;
}

/* Ends the method `call` without a result: returns None, or NULL if it failed. */
static PyObject *request_done(request *r, const char *call, bool rare, bool failed)
{
    failed = failed || core_say_left_out(r->owner, call, r->table, rare) != 0;
    core_request_drop(&r->base);
    return failed ? NULL : Py_NewRef(Py_None);
}

static rp_status do_tables(void *arg, rp_wait wait, rp_error *err)
{
    request *r = arg;
    if (r->table != NULL)
        return rp_client_get_table(r->client, r->table, wait, &r->tables, err);
    return rp_client_get_tables(r->client, wait, &r->tables, err);
}

static rp_status do_mutate(void *arg, rp_wait wait, rp_error *err)
{
    request *r = arg;
    return rp_client_mutate(r->client, r->table,
                            &(rp_mutation){.updates = r->updates,
                                           .update_count = r->update_count,
                                           .deletes = r->deletes,
                                           .delete_count = r->delete_count},
                            wait, err);
}

static rp_status do_reset(void *arg, rp_wait wait, rp_error *err)
{
    request *r = arg;
    return rp_client_reset(r->client, r->table, wait, err);
}

static rp_status do_checkpoint(void *arg, rp_wait wait, rp_error *err)
{
    request *r = arg;
    return rp_client_checkpoint(r->client, wait, &r->path, err);
}

static rp_status do_durability(void *arg, rp_wait wait, rp_error *err)
{
    request *r = arg;
    return rp_client_get_durability(r->client, r->durability, r->capacity, &r->durability_count,
                                    wait, err);
}

static rp_status do_create(void *arg, rp_wait wait, rp_error *err)
{
    request *r = arg;
    return rp_client_create_table(r->client, &r->options, wait, err);
}

static rp_status do_drop(void *arg, rp_wait wait, rp_error *err)
{
    request *r = arg;
    return rp_client_drop_table(r->client, r->table, wait, err);
}

static rp_status do_alter(void *arg, rp_wait wait, rp_error *err)
{
    request *r = arg;
    return rp_client_alter_table(r->client, r->table, &r->change, wait, err);
}

static rp_status do_pause(void *arg, rp_wait wait, rp_error *err)
{
    request *r = arg;
    return rp_client_pause_table(r->client, r->table, r->sides, wait, err);
}

static rp_status do_resume(void *arg, rp_wait wait, rp_error *err)
{
    request *r = arg;
    return rp_client_resume_table(r->client, r->table, r->sides, wait, err);
}

static rp_status do_why(void *arg, rp_wait wait, rp_error *err)
{
    request *r = arg;
    return rp_client_why_blocked(r->client, r->table, &r->blocked, wait, err);
}

static int spread_from(const char *name, rp_spread *spread)
{
    if (strcmp(name, "turns") == 0)
        *spread = RP_SPREAD_TURNS;
    else if (strcmp(name, "keys") == 0)
        *spread = RP_SPREAD_KEYS;
    else {
        PyErr_Format(PyExc_ValueError, "spread must be 'turns' or 'keys', got '%s'", name);
        return -1;
    }
    return 0;
}

static PyObject *client_wrap(PyTypeObject *type, rp_client *client, PyObject *store)
{
    core_client *self = (core_client *)type->tp_alloc(type, 0);

    assert(client != NULL); /* I1 */
    if (!self) {
        rp_client_free(client);
        return NULL;
    }
    self->client = client;
    Py_XINCREF(store);
    self->store = store;
    return (PyObject *)self;
}

static PyObject *client_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"addresses",   "tls",         "ca_file",       "certificate_file",
                            "key_file",    "server_name", "token",         "connect_timeout",
                            "retry_min",   "retry_max",   "message_bytes", "item_bytes",
                            "batch_bytes", "spread",      "shared_memory", "seed",
                            NULL};
    rp_client_options options = {0};
    const char *addresses, *spread = "turns";
    int tls = 0, shared_memory = 1;
    double connect_s = 0, retry_min_s = 0, retry_max_s = 0;
    Py_ssize_t message_bytes = 0, item_bytes = 0, batch_bytes = 0;
    rp_client *client = NULL;
    rp_error err = {0};
    rp_status status;

    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "s|$pzzzzzdddnnnspO&", names, &addresses, &tls, &options.ca_file,
            &options.certificate_file, &options.key_file, &options.server_name, &options.token,
            &connect_s, &retry_min_s, &retry_max_s, &message_bytes, &item_bytes, &batch_bytes,
            &spread, &shared_memory, core_u64_converter, &options.seed))
        return NULL;
    if (!(connect_s >= 0 && retry_min_s >= 0 && retry_max_s >= 0 && connect_s < 1e9 &&
          retry_min_s < 1e9 && retry_max_s < 1e9)) {
        PyErr_Format(PyExc_ValueError, "connect_timeout%s must be >= 0 and < 1e9 s",
                     retry_min_s == 0 && retry_max_s == 0 ? "" : ", retry_min and retry_max");
        return NULL;
    }
    if (message_bytes < 0 || item_bytes < 0 || batch_bytes < 0) {
        PyErr_Format(
            PyExc_ValueError,
            "message_bytes, item_bytes and batch_bytes must be >= 0, got %zd, %zd, %zd",
            message_bytes, item_bytes, batch_bytes);
        return NULL;
    }
    if (spread_from(spread, &options.spread) != 0) return NULL;
    options.tls = tls != 0;
    options.shared_memory_off = shared_memory == 0;
    options.connect_timeout_ms = (int64_t)(connect_s * 1e3);
    options.retry_min_ms = (int64_t)(retry_min_s * 1e3);
    options.retry_max_ms = (int64_t)(retry_max_s * 1e3);
    options.message_bytes = (size_t)message_bytes;
    options.item_bytes = (size_t)item_bytes;
    options.batch_bytes = (size_t)batch_bytes;
    Py_BEGIN_ALLOW_THREADS;
    status = rp_client_new(addresses, &options, &client, &err);
    Py_END_ALLOW_THREADS;
    if (status != RP_OK) return core_raise(status, &err);
    return client_wrap(type, client, NULL);
}

static PyObject *client_local(PyObject *type, PyObject *const *args, Py_ssize_t count)
{
    rp_client_options options = {0};
    rp_client *client = NULL;
    uint64_t batch_bytes = 0;
    rp_store *store;
    rp_error err = {0};
    rp_status status;

    if (count < 1 || count > 3 || !PyObject_TypeCheck(args[0], &core_Store)) {
        PyErr_SetString(PyExc_TypeError,
                        "local(store, seed=0, batch_bytes=0): store must be a Store");
        return NULL;
    }
    if (count >= 2 && !core_u64_converter(args[1], &options.seed)) return NULL;
    if (count >= 3 && !core_u64_converter(args[2], &batch_bytes)) return NULL;
    options.batch_bytes = (size_t)batch_bytes;
    if (!(store = core_store_of(args[0]))) return NULL;
    status = rp_client_local(store, &options, &client, &err);
    if (status != RP_OK) return core_raise(status, &err);
    return client_wrap((PyTypeObject *)type, client, args[0]);
}

static void client_dealloc(core_client *self)
{
    rp_client *client = self->client;

    self->client = NULL;
    Py_BEGIN_ALLOW_THREADS;
    rp_client_free(client);
    Py_END_ALLOW_THREADS;
    Py_CLEAR(self->store);
    PyMem_Free(self->left_out);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *client_get_addresses(core_client *self, void *closure)
{
    size_t count = rp_client_shard_count(self->client);
    PyObject *list = PyList_New((Py_ssize_t)count);

    (void)closure;
    for (size_t i = 0; list && i < count; i++) {
        PyObject *text = PyUnicode_FromString(rp_client_shard_address(self->client, i));
        if (!text)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, text);
    }
    return list;
}

static PyObject *client_get_is_connected(core_client *self, void *closure)
{
    char text[8];

    (void)closure;
    (void)rp_client_why_away(self->client, 0, text, sizeof text);
    return PyBool_FromLong(text[0] == '\0');
}

static PyObject *client_get_is_local(core_client *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(self->store != NULL);
}

/* Returns information on one table, with its shard and total weight. */
static PyObject *table_dict(const rp_client_table *table)
{
    PyObject *dict = core_table_info(&table->info);
    PyObject *shard = PyLong_FromSize_t(table->shard);
    PyObject *weight = PyFloat_FromDouble(table->total_weight);

    if (dict && (!shard || !weight || PyDict_SetItemString(dict, "shard", shard) != 0 ||
                 PyDict_SetItemString(dict, "total_weight", weight) != 0))
        Py_CLEAR(dict);
    Py_XDECREF(shard);
    Py_XDECREF(weight);
    return dict;
}

static PyObject *client_tables(core_client *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", "table", NULL};
    PyObject *timeout = Py_None, *list = NULL;
    const char *table = NULL;
    int64_t timeout_ms;
    request *r;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Oz", names, &timeout, &table) ||
        core_timeout_s(timeout, &timeout_ms) != 0 || !(r = request_new(self)))
        return NULL;
    r->table = table;
    if (core_call_server(do_tables, &r->base, CORE_CALL_AGAIN | CORE_CALL_PATIENT,
                         timeout_ms) == 0)
        list = PyList_New((Py_ssize_t)r->tables->count);
    for (size_t i = 0; list && i < r->tables->count; i++) {
        PyObject *dict = table_dict(&r->tables->tables[i]);
        if (!dict)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, dict);
    }
    if (list && core_say_left_out(self, "server_info", table, false) != 0) Py_CLEAR(list);
    core_request_drop(&r->base);
    return list;
}

/* mutate(table, keys, priorities, deletes=None, timeout=None); `keys` may be a dict of key to
 * priority. */
static PyObject *client_mutate(core_client *self, PyObject *const *args, Py_ssize_t count)
{
    int64_t timeout_ms = -1;
    request *r;
    bool failed;

    if (count < 3 || count > 5) {
        PyErr_SetString(PyExc_TypeError,
                        "mutate(table, keys, priorities, deletes=None, timeout=None)");
        return NULL;
    }
    if ((count > 4 && core_timeout_s(args[4], &timeout_ms) != 0) || !(r = request_new(self)))
        return NULL;
    r->table = core_name_from(args[0]);
    failed =
        !r->table || core_updates_from(args[1], args[2], &r->updates, &r->update_count) != 0 ||
        (count > 3 && core_keys_from(args[3], "deletes", &r->deletes, &r->delete_count) != 0) ||
        core_call_server(do_mutate, &r->base, CORE_CALL_AGAIN | CORE_CALL_PATIENT,
                         timeout_ms) != 0;
    return request_done(r, "mutate_priorities", false, failed);
}

int core_client_call_there(core_client *self, core_call call, core_request *r,
                           int64_t timeout_ms)
{
    int64_t until_ns = core_until_ns(timeout_ms);
    request *there = request_new(self);
    int failed;

    if (!there) return -1;
    failed = core_call_server(do_tables, &there->base, CORE_CALL_AGAIN | CORE_CALL_PATIENT,
                              timeout_ms);
    core_request_drop(&there->base);
    return failed ? failed : core_call_server(call, r, 0, core_left_ms(until_ns));
}

/* Makes a call whose arguments are (table, timeout=None). */
static PyObject *table_call(core_client *self, PyObject *args, PyObject *kwargs, bool drops)
{
    static char *names[] = {"table", "timeout", NULL};
    PyObject *timeout = Py_None;
    const char *table;
    int64_t timeout_ms;
    request *r;
    int failed;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O", names, core_name_converter, &table,
                                     &timeout) ||
        core_timeout_s(timeout, &timeout_ms) != 0 || !(r = request_new(self)))
        return NULL;
    r->table = table;
    failed = drops ? core_client_call_there(self, do_drop, &r->base, timeout_ms)
                   : core_call_server(do_reset, &r->base, CORE_CALL_PATIENT, timeout_ms);
    return request_done(r, drops ? "drop_table" : "reset", true, failed != 0);
}

static PyObject *client_reset(core_client *self, PyObject *args, PyObject *kwargs)
{
    return table_call(self, args, kwargs, false);
}

static PyObject *client_drop_table(core_client *self, PyObject *args, PyObject *kwargs)
{
    return table_call(self, args, kwargs, true);
}

/* create_table(timeout=None and the arguments of Store.add_table()). */
static PyObject *client_create_table(core_client *self, PyObject *args, PyObject *kwargs)
{
    request *r = request_new(self);
    PyObject *rest = !r ? NULL : kwargs ? PyDict_Copy(kwargs) : PyDict_New();
    PyObject *timeout = rest ? PyDict_GetItemString(rest, "timeout") : NULL; /* borrowed */
    int64_t timeout_ms = -1;
    bool failed;

    if (!r) return NULL;
    failed = !rest ||
             (timeout && (core_timeout_s(timeout, &timeout_ms) != 0 ||
                          PyDict_DelItemString(rest, "timeout") != 0)) ||
             core_table_options_from(args, rest, &r->options) != 0 ||
             core_client_call_there(self, do_create, &r->base, timeout_ms) != 0;
    Py_XDECREF(rest);
    r->table = r->options.name;
    return request_done(r, "create_table", true, failed);
}

/* Makes a call of (table, sides=3, timeout=None). `sides`: 1 inserts, 2 samples, 3 both. */
static PyObject *sides_call(core_client *self, PyObject *args, PyObject *kwargs, core_call call)
{
    static char *names[] = {"table", "sides", "timeout", NULL};
    PyObject *timeout = Py_None;
    unsigned int sides = RP_SIDE_INSERTS | RP_SIDE_SAMPLES;
    const char *table;
    int64_t timeout_ms;
    request *r;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|IO", names, core_name_converter, &table,
                                     &sides, &timeout) ||
        core_timeout_s(timeout, &timeout_ms) != 0 || !(r = request_new(self)))
        return NULL;
    r->table = table;
    r->sides = sides;
    return request_done(
        r, call == do_pause ? "pause_table" : "resume_table", true,
        core_call_server(call, &r->base, CORE_CALL_AGAIN | CORE_CALL_PATIENT, timeout_ms) != 0);
}

static PyObject *client_pause(core_client *self, PyObject *args, PyObject *kwargs)
{
    return sides_call(self, args, kwargs, do_pause);
}

static PyObject *client_resume(core_client *self, PyObject *args, PyObject *kwargs)
{
    return sides_call(self, args, kwargs, do_resume);
}

/* Reads the changes of a table; None changes nothing. */
static int change_from(PyObject *max_size, PyObject *max_bytes, PyObject *max_times,
                       PyObject *limiter, rp_table_alteration *change)
{
    if (max_size != Py_None) {
        change->which |= RP_ALTER_MAX_SIZE;
        change->max_size = PyLong_AsLongLong(max_size);
        if (PyErr_Occurred()) return -1;
    }
    if (max_bytes != Py_None) {
        change->which |= RP_ALTER_MAX_BYTES;
        if (!core_u64_converter(max_bytes, &change->max_bytes)) return -1;
    }
    if (max_times != Py_None) {
        long times = PyLong_AsLong(max_times);
        change->which |= RP_ALTER_MAX_TIMES_SAMPLED;
        if (PyErr_Occurred()) return -1;
        if (times < INT32_MIN || times > INT32_MAX) {
            PyErr_Format(PyExc_ValueError, "max_times_sampled must fit in 32 bits, got %ld",
                         times);
            return -1;
        }
        change->max_times_sampled = (int32_t)times;
    }
    if (limiter != Py_None) {
        change->which |= RP_ALTER_LIMITER;
        if (!core_limiter_converter(limiter, &change->limiter)) return -1;
    }
    return 0;
}

/* alter_table(table, *, max_size=None, max_bytes=None, max_times_sampled=None, limiter=None,
 * recenter=False, timeout=None) */
static PyObject *client_alter_table(core_client *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"table",   "max_size", "max_bytes", "max_times_sampled",
                            "limiter", "recenter", "timeout",   NULL};
    PyObject *max_size = Py_None, *max_bytes = Py_None, *max_times = Py_None;
    PyObject *limiter = Py_None, *timeout = Py_None;
    const char *table;
    int recenter = 0;
    int64_t timeout_ms;
    request *r;
    bool failed;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$OOOOpO", names, core_name_converter,
                                     &table, &max_size, &max_bytes, &max_times, &limiter,
                                     &recenter, &timeout) ||
        core_timeout_s(timeout, &timeout_ms) != 0 || !(r = request_new(self)))
        return NULL;
    r->table = table;
    if (recenter) r->change.which |= RP_ALTER_RECENTER;
    failed = change_from(max_size, max_bytes, max_times, limiter, &r->change) != 0;
    if (!failed && r->change.which == 0) {
        PyErr_Format(PyExc_ValueError,
                     "table '%s': nothing is to be altered: give max_size, "
                     "max_bytes, max_times_sampled, rate_limiter or recenter",
                     table);
        failed = true;
    }
    failed = failed || core_call_server(do_alter, &r->base, CORE_CALL_PATIENT, timeout_ms) != 0;
    return request_done(r, "alter_table", true, failed);
}

static PyObject *client_checkpoint(core_client *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    PyObject *timeout = Py_None, *path = NULL;
    int64_t timeout_ms;
    request *r;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &timeout) ||
        core_timeout_s(timeout, &timeout_ms) != 0 || !(r = request_new(self)))
        return NULL;
    if (core_call_server(do_checkpoint, &r->base, CORE_CALL_PATIENT, timeout_ms) == 0 &&
        core_say_left_out(self, "checkpoint", NULL, true) == 0)
        path = PyUnicode_DecodeFSDefault(r->path ? r->path : "");
    core_request_drop(&r->base);
    return path;
}

/* durability(timeout=None): a dict for each shard, with "shard" and, if its data is durable,
 * the items of Durable.info(). */
static PyObject *client_durability(core_client *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    PyObject *timeout = Py_None, *list = NULL;
    int64_t timeout_ms;
    request *r;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &timeout) ||
        core_timeout_s(timeout, &timeout_ms) != 0 || !(r = request_new(self)))
        return NULL;
    r->capacity = rp_client_shard_count(self->client);
    r->durability = PyMem_RawCalloc(r->capacity, sizeof *r->durability);
    if (r->durability == NULL)
        PyErr_NoMemory();
    else if (core_call_server(do_durability, &r->base, CORE_CALL_AGAIN | CORE_CALL_PATIENT,
                              timeout_ms) == 0)
        list = PyList_New(0);
    assert(r->durability_count <= r->capacity);
    for (size_t i = 0; list != NULL && i < r->durability_count; i++) {
        const rp_client_durability *d = &r->durability[i];
        PyObject *dict = d->is_durable ? core_durable_dict(&d->info) : PyDict_New();
        PyObject *shard = PyUnicode_FromString(rp_client_shard_address(self->client, d->shard));

        if (dict == NULL || shard == NULL || PyDict_SetItemString(dict, "shard", shard) < 0 ||
            PyList_Append(list, dict) < 0)
            Py_CLEAR(list);
        Py_XDECREF(dict);
        Py_XDECREF(shard);
    }
    core_request_drop(&r->base);
    return list;
}

static PyObject *waiting_dict(const rp_client_waiting *w)
{
    return Py_BuildValue("{s:n,s:s,s:s,s:n,s:n,s:d,s:N}", "shard", (Py_ssize_t)w->shard,
                         "table", w->table, "side", w->waiting.is_insert ? "insert" : "sample",
                         "wanted", (Py_ssize_t)w->waiting.wanted, "done",
                         (Py_ssize_t)w->waiting.done, "waiting_s",
                         (double)w->waiting.waiting_ns / 1e9, "why", core_text(w->waiting.why));
}

/* why_blocked(table=None, timeout=None): a list of dicts, at most WHY_MAX. */
static PyObject *client_why_blocked(core_client *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"table", "timeout", NULL};
    PyObject *timeout = Py_None, *list = NULL;
    const char *table = NULL;
    int64_t timeout_ms;
    request *r;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zO", names, &table, &timeout) ||
        core_timeout_s(timeout, &timeout_ms) != 0 || !(r = request_new(self)))
        return NULL;
    r->table = table;
    r->blocked.capacity = WHY_MAX;
    r->blocked.calls = PyMem_RawMalloc(WHY_MAX * sizeof *r->blocked.calls);
    if (!r->blocked.calls) {
        PyErr_NoMemory();
        goto out;
    }
    if (core_call_server(do_why, &r->base, CORE_CALL_AGAIN | CORE_CALL_PATIENT, timeout_ms) !=
        0)
        goto out;
    assert(r->blocked.count <= WHY_MAX);
    list = PyList_New((Py_ssize_t)r->blocked.count);
    for (size_t i = 0; list && i < r->blocked.count; i++) {
        PyObject *dict = waiting_dict(&r->blocked.calls[i]);
        if (!dict)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, dict);
    }
out:
    core_request_drop(&r->base);
    return list;
}

static PyObject *client_give_up(core_client *self, PyObject *ignored)
{
    rp_client *client = self->client;

    (void)ignored;
    if (client != NULL) {
        Py_BEGIN_ALLOW_THREADS
        rp_client_give_up(client);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

#define WITH_KEYWORDS(function) CORE_METHOD(function), METH_VARARGS | METH_KEYWORDS
#define FAST(function) CORE_METHOD(function), METH_FASTCALL

static PyMethodDef client_methods[] = {
    {"local", CORE_METHOD(client_local), METH_FASTCALL | METH_CLASS,
     "local(store, seed=0, batch_bytes=0)\n--\n\nMakes a client of a store in this process."},
    {"replay_samples", CORE_METHOD(core_replay_samples), METH_FASTCALL | METH_STATIC,
     "replay_samples(found, SampleInfo, ReplaySample, structure, steps, /)\n--\n\n"
     "Converts results of Sampler.next() to those of Client.sample()."},
    {"tables", WITH_KEYWORDS(client_tables),
     "tables($self, timeout=None, table=None)\n--\n\n"
     "Returns a dict for each table of each shard, or for that table only."},
    {"mutate", FAST(client_mutate),
     "mutate($self, table, keys, priorities, deletes=None, timeout=None, /)\n--\n\n"
     "Sets priorities and deletes items. `keys` may be a dict from key to priority."},
    {"give_up", CORE_METHOD(client_give_up), METH_NOARGS,
     "give_up($self)\n--\n\nEnds all waits: the server will not come back."},
    {"reset", WITH_KEYWORDS(client_reset), "reset($self, table, timeout=None)\n--\n\n"},
    {"checkpoint", WITH_KEYWORDS(client_checkpoint),
     "checkpoint($self, timeout=None)\n--\n\nReturns the path of the checkpoint."},
    {"durability", WITH_KEYWORDS(client_durability),
     "durability($self, timeout=None)\n--\n\nReturns the state of each shard's storage."},
    {"create_table", WITH_KEYWORDS(client_create_table),
     "create_table($self, name, *, timeout=None, **options)\n--\n\n"
     "Creates a table. The options are those of Store.add_table()."},
    {"drop_table", WITH_KEYWORDS(client_drop_table),
     "drop_table($self, table, timeout=None)\n--\n\n"},
    {"alter_table", WITH_KEYWORDS(client_alter_table),
     "alter_table($self, table, *, max_size=None, max_bytes=None, max_times_sampled=None, "
     "limiter=None, recenter=False, timeout=None)\n--\n\n"},
    {"pause", WITH_KEYWORDS(client_pause),
     "pause($self, table, sides=3, timeout=None)\n--\n\nSides: 1 inserts, 2 samples, 3 both."},
    {"resume", WITH_KEYWORDS(client_resume),
     "resume($self, table, sides=3, timeout=None)\n--\n\nSides: 1 inserts, 2 samples, 3 both."},
    {"report", FAST(core_client_report),
     "report($self, run, scalars, actors, env, states, timeout, /)\n--\n\n"
     "Adds to a run. Returns how many scalars and actors the server has no room for."},
    {"rollouts", FAST(core_client_rollouts),
     "rollouts($self, action, name, arguments, timeout, /)\n--\n\n"
     "Calls rollouts. Returns a dict of results."},
    {"why_blocked", WITH_KEYWORDS(client_why_blocked),
     "why_blocked($self, table=None, timeout=None)\n--\n\nReturns a dict for each waiting "
     "call."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef client_getset[] = {
    {"addresses", (getter)client_get_addresses, NULL, "The address of every shard.", NULL},
    {"is_connected", (getter)client_get_is_connected, NULL,
     "True while the client has a connection to its first server, or a local store.", NULL},
    {"is_local", (getter)client_get_is_local, NULL, "True for a client of a local store.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL}};

PyTypeObject core_Client = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.Client",
    .tp_basicsize = sizeof(core_client),
    .tp_dealloc = (destructor)client_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Client(addresses, *, tls=False, ca_file=None, certificate_file=None, "
              "key_file=None, server_name=None, token=None, connect_timeout=0, retry_min=0, "
              "retry_max=0, message_bytes=0, item_bytes=0, batch_bytes=0, spread='turns', "
              "shared_memory=True, seed=0)\n--\n\n"
              "A client of the servers at these addresses, which are separated by commas. "
              "Times are in seconds; 0 is the default.",
    .tp_methods = client_methods,
    .tp_getset = client_getset,
    .tp_new = client_new,
};
