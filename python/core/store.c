/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.Store: tables in this process.
 *
 * Methods return dicts of plain values, which the Python package converts to its own types. A
 * store belongs to the process that made it. A forked child has a copy, whose locks may be held
 * by threads that do not exist in the child. So the child neither uses nor frees it. */
#include "store.h"
#include "extension.h"

#include <string.h>
#include <unistd.h>

typedef struct store_object {
    core_store base;
    pid_t pid;
} store_object;

static const char *const policy_names[] = {"evict", "block", "reject"};

static int policy_from(const char *name, rp_budget_policy *policy)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, policy_names[i]) == 0) {
            *policy = (rp_budget_policy)i;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "policy must be 'evict', 'block' or 'reject', got '%s'",
                 name);
    return -1;
}

/* "O&" converters: 1 on success, 0 with an exception. */

/* A selector: its name, or a pair of name and exponent. */
static int selector_converter(PyObject *obj, void *out)
{
    rp_selector_options *selector = out;
    PyObject *name = obj;
    const char *text;

    selector->exponent = 0.0;
    if (PyTuple_Check(obj)) {
        if (PyTuple_GET_SIZE(obj) != 2) goto wrong;
        name = PyTuple_GET_ITEM(obj, 0);
        selector->exponent = PyFloat_AsDouble(PyTuple_GET_ITEM(obj, 1));
        if (selector->exponent == -1.0 && PyErr_Occurred()) return 0;
    }
    if (!PyUnicode_Check(name)) goto wrong;
    text = PyUnicode_AsUTF8(name);
    if (text == NULL) return 0;
    for (int kind = RP_FIFO; kind <= RP_MAX_HEAP; kind++) {
        if (strcmp(text, rp_selector_name((rp_selector_kind)kind)) == 0) {
            selector->kind = (rp_selector_kind)kind;
            return 1;
        }
    }
    PyErr_Format(PyExc_ValueError, "no selector is called '%s'", text);
    return 0;
wrong:
    PyErr_Format(PyExc_TypeError,
                 "a selector must be a name or a tuple (name, exponent), got %R", obj);
    return 0;
}

/* (samples_per_insert, min_size, min_diff, max_diff). */
int core_limiter_converter(PyObject *obj, void *out)
{
    rp_limiter_options *limiter = out;
    long long min_size;

    if (!PyTuple_Check(obj)) {
        PyErr_Format(PyExc_TypeError, "limiter must be a tuple of four numbers, got %R", obj);
        return 0;
    }
    if (!PyArg_ParseTuple(obj,
                          "dLdd;limiter must be a tuple (samples_per_insert, min_size, "
                          "min_diff, max_diff)",
                          &limiter->samples_per_insert, &min_size, &limiter->min_diff,
                          &limiter->max_diff))
        return 0;
    limiter->min_size = min_size;
    return 1;
}

int core_u64_converter(PyObject *obj, void *out)
{
    PyObject *index = PyNumber_Index(obj);
    unsigned long long value;

    if (index == NULL) return 0;
    value = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    if (value == (unsigned long long)-1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(PyExc_ValueError, "a number must be >= 0 and < 2**64, got %R", obj);
        return 0;
    }
    *(uint64_t *)out = value;
    return 1;
}

const char *core_name_from(PyObject *obj)
{
    Py_ssize_t size;
    const char *name;

    if (!PyUnicode_Check(obj)) {
        PyErr_Format(PyExc_TypeError, "the name of a table must be a str, got %s",
                     Py_TYPE(obj)->tp_name);
        return NULL;
    }
    name = PyUnicode_AsUTF8AndSize(obj, &size);
    if (name == NULL || strlen(name) == (size_t)size) return name;
    PyErr_Format(PyExc_ValueError, "the name of a table must not have a NUL in it, got %R",
                 obj);
    return NULL;
}

int core_name_converter(PyObject *obj, void *name)
{
    const char **out = name;

    *out = core_name_from(obj);
    return *out != NULL;
}

int core_table_options_from(PyObject *args, PyObject *kwargs, rp_table_options *out)
{
    static char *names[] = {
        "name",      "limiter",    "max_size",  "sampler", "remover", "max_times_sampled",
        "max_bytes", "soft_limit", "signature", "seed",    NULL};
    long long max_size = 0;
    int soft_limit = 0;
    PyObject *signature = Py_None;

    *out = (rp_table_options){.sampler = {RP_UNIFORM, 0.0}, .remover = {RP_FIFO, 0.0}};
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "s|$O&LO&O&iO&pOO&", names, &out->name, core_limiter_converter,
            &out->limiter, &max_size, selector_converter, &out->sampler, selector_converter,
            &out->remover, &out->max_times_sampled, core_u64_converter, &out->max_bytes,
            &soft_limit, &signature, core_u64_converter, &out->seed))
        return -1;
    out->max_size = max_size;
    out->soft_limit = soft_limit != 0;
    return core_signature_from(signature, &out->signature);
}

static PyObject *store_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"max_bytes", "policy", "seed", NULL};
    const char *policy = "evict";
    rp_store_options options = {0};
    rp_error err = {0};
    store_object *self;
    rp_status st;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$O&sO&:Store", names, core_u64_converter,
                                     &options.max_bytes, &policy, core_u64_converter,
                                     &options.seed))
        return NULL;
    if (policy_from(policy, &options.policy) < 0) return NULL;
    self = (store_object *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->pid = getpid();
    st = rp_store_new(&options, &self->base.store, &err);
    if (st == RP_OK) return (PyObject *)self;
    self->base.store = NULL;
    Py_DECREF(self);
    return core_raise(st, &err);
}

static void store_dealloc(PyObject *obj)
{
    store_object *self = (store_object *)obj;
    rp_store *store = self->base.store;

    if (store != NULL && self->pid == getpid()) {
        Py_BEGIN_ALLOW_THREADS
        rp_store_free(store);
        Py_END_ALLOW_THREADS
    }
    Py_TYPE(obj)->tp_free(obj);
}

rp_store *core_store_of(PyObject *obj)
{
    store_object *self = (store_object *)obj;
    rp_error err = {RP_PRECONDITION, "the store belongs to the process that forked this one: "
                                     "connect to its server instead"};

    assert(PyObject_TypeCheck(obj, &core_Store));
    if (self->pid == getpid()) return self->base.store;
    (void)core_raise(RP_PRECONDITION, &err);
    return NULL;
}

/* Sets the error about a table that does not exist, which lists those that do, as a client of
 * the store has it. */
static void raise_no_table(rp_store *store, const char *name)
{
    rp_client *client = NULL;
    rp_client_tables *tables = NULL;
    rp_error err = {0};
    rp_status st;

    Py_BEGIN_ALLOW_THREADS
    st = rp_client_local(store, NULL, &client, &err);
    if (st == RP_OK) st = rp_client_get_table(client, name, rp_wait_none(), &tables, &err);
    rp_client_tables_free(tables);
    rp_client_free(client);
    Py_END_ALLOW_THREADS
    if (st == RP_OK) /* it was added meanwhile */
        PyErr_Format(core_NotFoundError, "Priority table %s was not found", name);
    else
        (void)core_raise(st, &err);
}

/* Returns the table of that name; NULL with an exception. Drop the reference with
 * rp_table_unref(). */
static rp_table *table_of(PyObject *self, PyObject *text)
{
    const char *name = core_name_from(text);
    rp_store *store = name != NULL ? core_store_of(self) : NULL;
    rp_table *table;

    if (store == NULL) return NULL;
    table = rp_store_find_table(store, (rp_string){name, strlen(name)});
    if (table == NULL) raise_no_table(store, name);
    return table;
}

PyDoc_STRVAR(
    add_table_doc,
    "add_table(name, *, limiter, max_size, sampler=('uniform', 0.0), "
    "remover=('fifo', 0.0), max_times_sampled=0, max_bytes=0, soft_limit=False, "
    "signature=None, seed=0, extensions=())\n--\n\n"
    "Creates a table. The limiter is (samples_per_insert, min_size, min_diff, max_diff).");

/* Adds a table with these options and extensions. If only the journal fails, the table exists
 * and owns the extensions. */
static int add_table(rp_store *store, rp_table_options *options, PyObject *extensions)
{
    rp_table *table = NULL; /* borrowed */
    rp_extension *made;
    rp_error err = {0};
    rp_status st;

    if (core_extensions_from(extensions, store, &made, &options->extension_count) < 0)
        return -1;
    options->extensions = made;
    Py_BEGIN_ALLOW_THREADS
    st = rp_store_add_table(store, options, &table, &err);
    Py_END_ALLOW_THREADS
    core_extensions_free(made, options->extension_count, table == NULL);
    if (st == RP_OK) return 0;
    (void)core_raise(st, &err);
    return -1;
}

/* Moves the argument `extensions` out of the others. `*out` is NULL if it is not given. */
static int take_extensions(PyObject *rest, PyObject **out)
{
    PyObject *name = PyUnicode_FromString("extensions");
    int failed = name == NULL ? -1 : 0;

    if (failed == 0) *out = Py_XNewRef(PyDict_GetItemWithError(rest, name));
    if (*out != NULL)
        failed = PyDict_DelItem(rest, name);
    else if (failed == 0 && PyErr_Occurred())
        failed = -1;
    Py_XDECREF(name);
    return failed;
}

static PyObject *store_add_table(PyObject *self, PyObject *args, PyObject *kwargs)
{
    rp_store *store = core_store_of(self);
    PyObject *rest = kwargs != NULL ? PyDict_Copy(kwargs) : PyDict_New(), *extensions = NULL;
    rp_table_options options;
    int failed = store == NULL || rest == NULL ? -1 : take_extensions(rest, &extensions);

    if (failed == 0) failed = core_table_options_from(args, rest, &options);
    if (failed == 0) {
        failed = add_table(store, &options, extensions);
        rp_signature_unref(options.signature); /* the table holds its own reference */
    }
    Py_XDECREF(extensions);
    Py_XDECREF(rest);
    if (failed != 0) return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(drop_table_doc, "drop_table(name)\n--\n\n"
                             "Drops a table with its items. Calls that wait at it end.");

static PyObject *store_drop_table(PyObject *self, PyObject *arg)
{
    const char *name = core_name_from(arg);
    rp_store *store = name != NULL ? core_store_of(self) : NULL;
    rp_error err = {0};
    rp_status st;

    if (store == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = rp_store_drop_table(store, (rp_string){name, strlen(name)}, &err);
    Py_END_ALLOW_THREADS
    if (st != RP_OK) return core_raise(st, &err);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(close_doc, "close()\n--\n\n"
                        "Closes every table: waits end, and all later calls are refused. "
                        "Information on the tables can still be read.");

static PyObject *store_close(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    rp_store *store = core_store_of(self);

    if (store == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS
    rp_store_close(store);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *selector_tuple(const rp_selector_options *selector)
{
    return Py_BuildValue("(sd)", rp_selector_name(selector->kind), selector->exponent);
}

static PyObject *waits_dict(const rp_waits *waits)
{
    return Py_BuildValue("{s:L,s:L,s:L}", "longest_ns", (long long)waits->longest_ns, "parked",
                         (long long)waits->parked, "total_ns", (long long)waits->total_ns);
}

PyObject *core_table_info(const rp_table_info *info)
{
    /* "N" takes the references, also on failure. */
    return Py_BuildValue(
        "{s:s,s:N,s:N,s:(dLdd),s:L,s:K,s:i,s:N,s:N,s:I,s:N,s:L,s:K,s:L,s:L,s:L,s:L,s:L,s:L,"
        "s:L,s:L,s:d,s:d,s:d,s:L,s:L,s:N,s:N}",
        "name", info->name, "sampler", selector_tuple(&info->sampler), "remover",
        selector_tuple(&info->remover), "limiter", info->limiter.samples_per_insert,
        (long long)info->limiter.min_size, info->limiter.min_diff, info->limiter.max_diff,
        "max_size", (long long)info->max_size, "max_bytes", (unsigned long long)info->max_bytes,
        "max_times_sampled", (int)info->max_times_sampled, "soft_limit",
        PyBool_FromLong(info->soft_limit), "closed", PyBool_FromLong(info->closed), "paused",
        (unsigned)info->paused, "signature", core_signature_to(info->signature), "size",
        (long long)info->size, "bytes", (unsigned long long)info->bytes, "inserts",
        (long long)info->inserts, "samples", (long long)info->samples, "deletes",
        (long long)info->deletes, "updates", (long long)info->updates, "evictions",
        (long long)info->evictions, "episodes", (long long)info->episodes, "deleted_episodes",
        (long long)info->deleted_episodes, "unique_samples", (long long)info->unique_samples,
        "max_priority", info->max_priority, "total_weight", info->total_weight, "limiter_diff",
        info->limiter_diff, "waiting_inserts", (long long)info->waiting_inserts,
        "waiting_samples", (long long)info->waiting_samples, "insert_waits",
        waits_dict(&info->insert_waits), "sample_waits", waits_dict(&info->sample_waits));
}

PyDoc_STRVAR(table_info_doc,
             "table_info(name)\n--\n\nReturns the settings and the state of a table.");

static PyObject *store_table_info(PyObject *self, PyObject *arg)
{
    rp_table *table = table_of(self, arg);
    rp_table_info info;
    PyObject *dict;

    if (table == NULL) return NULL;
    rp_table_get_info(table, &info);
    dict = core_table_info(&info);
    rp_table_unref(table);
    return dict;
}

PyDoc_STRVAR(tables_doc,
             "tables()\n--\n\nReturns the names of the tables, in the order of creation.");

static PyObject *store_tables(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    rp_store *store = core_store_of(self);
    rp_table **tables;
    size_t capacity, count;
    PyObject *list = NULL;

    if (store == NULL) return NULL;
    capacity = rp_store_find_tables(store, NULL, 0);
    tables = PyMem_Malloc((capacity + 1) * sizeof(rp_table *));
    if (tables == NULL) return PyErr_NoMemory();
    count = rp_store_find_tables(store, tables, capacity);
    if (count > capacity) count = capacity;
    list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; i < count; i++) {
        PyObject *name = list != NULL ? PyUnicode_FromString(rp_table_name(tables[i])) : NULL;

        rp_table_unref(tables[i]);
        if (name != NULL)
            PyList_SET_ITEM(list, (Py_ssize_t)i, name);
        else
            Py_CLEAR(list);
    }
    PyMem_Free(tables);
    return list;
}

PyDoc_STRVAR(info_doc, "info()\n--\n\nReturns budget, bytes and seed.");

static PyObject *store_info(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    rp_store *store = core_store_of(self);
    rp_store_info info;

    if (store == NULL) return NULL;
    rp_store_get_info(store, &info);
    assert((size_t)info.policy < sizeof policy_names / sizeof *policy_names);
    return Py_BuildValue(
        "{s:K,s:s,s:K,s:n,s:K}", "max_bytes", (unsigned long long)info.max_bytes, "policy",
        policy_names[info.policy], "bytes", (unsigned long long)info.bytes, "table_count",
        (Py_ssize_t)info.table_count, "seed", (unsigned long long)info.seed);
}

/* Returns whether the limiter would admit `count` inserts or samples. */
static PyObject *ask(PyObject *self, PyObject *args, bool (*can)(rp_table *, int64_t))
{
    PyObject *name, *number;
    long long count;
    rp_table *table;
    bool yes;

    if (!PyArg_ParseTuple(args, "UO!", &name, &PyLong_Type, &number)) return NULL;
    count = PyLong_AsLongLong(number);
    if (count == -1 && PyErr_Occurred()) return NULL;
    if (count < 1) {
        PyErr_Format(PyExc_ValueError, "the count must be >= 1, got %lld", count);
        return NULL;
    }
    table = table_of(self, name);
    if (table == NULL) return NULL;
    yes = can(table, count);
    rp_table_unref(table);
    return PyBool_FromLong(yes);
}

PyDoc_STRVAR(can_sample_doc, "can_sample(name, count)\n--\n\n"
                             "Returns True if the limiter would admit `count` samples now.");

static PyObject *store_can_sample(PyObject *self, PyObject *args)
{
    return ask(self, args, rp_table_can_sample);
}

PyDoc_STRVAR(can_insert_doc, "can_insert(name, count)\n--\n\n"
                             "Returns True if the limiter would admit `count` inserts now.");

static PyObject *store_can_insert(PyObject *self, PyObject *args)
{
    return ask(self, args, rp_table_can_insert);
}

enum { MAX_WAITING = 256 };

static PyObject *waiting_list(const rp_waiting *waiting, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);

    for (size_t i = 0; list != NULL && i < count; i++) {
        const rp_waiting *w = &waiting[i];
        PyObject *item =
            Py_BuildValue("{s:s,s:n,s:n,s:d,s:s}", "side", w->is_insert ? "insert" : "sample",
                          "wanted", (Py_ssize_t)w->wanted, "done", (Py_ssize_t)w->done,
                          "waiting_s", (double)w->waiting_ns / 1e9, "why", w->why);

        if (item != NULL)
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
        else
            Py_CLEAR(list);
    }
    return list;
}

PyDoc_STRVAR(waiting_doc,
             "waiting(name)\n--\n\n"
             "Returns the calls that wait at a table: at most 256, inserts before samples, in "
             "order of arrival, as dicts with side, wanted, done, waiting_s and why.");

static PyObject *store_waiting(PyObject *self, PyObject *arg)
{
    rp_table *table = table_of(self, arg);
    rp_waiting *waiting;
    PyObject *list;
    size_t count;

    if (table == NULL) return NULL;
    waiting = PyMem_Malloc(MAX_WAITING * sizeof *waiting);
    if (waiting == NULL) {
        rp_table_unref(table);
        return PyErr_NoMemory();
    }
    count = rp_table_waiting(table, waiting, MAX_WAITING);
    list = waiting_list(waiting, count < MAX_WAITING ? count : MAX_WAITING);
    PyMem_Free(waiting);
    rp_table_unref(table);
    return list;
}

static PyMethodDef store_methods[] = {
    {"add_table", CORE_METHOD(store_add_table), METH_VARARGS | METH_KEYWORDS, add_table_doc},
    {"drop_table", store_drop_table, METH_O, drop_table_doc},
    {"tables", store_tables, METH_NOARGS, tables_doc},
    {"table_info", store_table_info, METH_O, table_info_doc},
    {"can_sample", store_can_sample, METH_VARARGS, can_sample_doc},
    {"can_insert", store_can_insert, METH_VARARGS, can_insert_doc},
    {"waiting", store_waiting, METH_O, waiting_doc},
    {"info", store_info, METH_NOARGS, info_doc},
    {"close", store_close, METH_NOARGS, close_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(store_doc, "Store(*, max_bytes=0, policy='evict', seed=0)\n--\n\n"
                        "Tables in this process that share one byte budget and one seed.");

PyTypeObject core_Store = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.Store",
    .tp_basicsize = sizeof(store_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = store_doc,
    .tp_new = store_new,
    .tp_dealloc = store_dealloc,
    .tp_methods = store_methods,
};
