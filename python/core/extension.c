/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.TableExtension: the extensions of tables, as Python objects.
 *
 * The C library calls an extension as long as its table exists, and Python may read its counts
 * as long as it likes. So both hold a reference to a hook, which forwards the calls:
 *
 *   table --> hook --> rp_extension of the library, or a queue of events
 *               ^
 *   TableExtension
 *
 * When the table is freed, the hook keeps the last counts.
 *
 * The hook of a callback is a deferred extension that only puts events into a bounded queue: no
 * Python code runs on a thread that calls a table, and no such thread waits for Python. A
 * thread of the package takes the events and calls the function (reprise/callbacks.py).
 *
 * Invariants:
 *   X1  a hook is NEW, then ATTACHED, then DETACHED; a table calls it only while ATTACHED;
 *   X2  `mu` guards `state` and `counts`; it is held briefly, never while waiting for the GIL;
 *   X3  in a forked child nothing is locked, freed or taken: a thread of the parent may hold a
 *       lock. */
#include "extension.h"

#include "event_queue.h"
#include "store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WAITING = 1 << 20, MAX_TAKEN = 256, TAKE_MS = 1000 };

typedef enum hook_kind { STATISTICS = 0, DIFFUSION, INSERT_ON_SAMPLE, EVENTS } hook_kind;

static const char *const kind_names[] = {"statistics", "diffusion", "insert_on_sample",
                                         "events"};
static const char *const event_names[] = {"insert", "update", "sample", "delete", "reset"};
enum { KINDS = sizeof kind_names / sizeof *kind_names };

typedef struct hook_counts {
    rp_statistics statistics;
    int64_t copied, dropped;
} hook_counts;

typedef struct hook {
    atomic_int refs;
    hook_kind kind;
    pthread_mutex_t mu;
    enum { NEW = 0, ATTACHED, DETACHED } state;
    rp_extension inner;      /* while ATTACHED, unless the kind is EVENTS */
    hook_counts counts;      /* once DETACHED */
    core_event_queue *queue; /* of the kind EVENTS */
} hook;

typedef struct settings {
    int32_t radius;
    double decay;
    PyObject *target; /* a str, or NULL */
    int64_t timeout_ms;
} settings;

typedef struct extension_object {
    PyObject_HEAD
    hook *hook;
    pid_t pid;
    settings settings;
} extension_object;

static hook *hook_new(hook_kind kind, size_t capacity, unsigned kinds)
{
    hook *h = calloc(1, sizeof *h);

    if (h == NULL) return NULL;
    atomic_init(&h->refs, 1);
    h->kind = kind;
    (void)pthread_mutex_init(&h->mu, NULL);
    if (kind == EVENTS) h->queue = core_event_queue_new(capacity, kinds);
    if (kind != EVENTS || h->queue != NULL) return h;
    pthread_mutex_destroy(&h->mu);
    free(h);
    return NULL;
}

static void hook_unref(hook *h)
{
    int before = atomic_fetch_sub(&h->refs, 1);

    assert(before > 0);
    if (before != 1) return;
    assert(h->state != ATTACHED); /* X1: the table has a reference */
    core_event_queue_free(h->queue);
    pthread_mutex_destroy(&h->mu);
    free(h);
}

static void forward(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    hook *h = ctx;

    h->inner.on_events(h->inner.ctx, view, events, count); /* constant while ATTACHED */
}

static void put(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    (void)view;
    core_event_queue_put(((hook *)ctx)->queue, events, count);
}

/* Reads the counts. The caller holds `mu`. */
static hook_counts read_counts(hook *h)
{
    hook_counts counts = h->counts;

    if (h->state != ATTACHED) return counts;
    if (h->kind == STATISTICS) rp_statistics_read(&h->inner, &counts.statistics);
    if (h->kind == INSERT_ON_SAMPLE)
        rp_insert_on_sample_read(&h->inner, &counts.copied, &counts.dropped);
    return counts;
}

/* Called when the table is freed, with the GIL or without. */
static void detach(void *ctx)
{
    hook *h = ctx;

    pthread_mutex_lock(&h->mu);
    assert(h->state == ATTACHED); /* X1 */
    h->counts = read_counts(h);
    h->state = DETACHED;
    pthread_mutex_unlock(&h->mu);
    if (h->queue != NULL) core_event_queue_close(h->queue, false);
    rp_extension_discard(&h->inner); /* may free another table */
    hook_unref(h);
}

static int open_copier(const extension_object *self, rp_store *store, rp_error *err,
                       rp_status *st)
{
    const char *name = core_name_from(self->settings.target);
    rp_table *target;

    if (name == NULL) return -1;
    target = rp_store_find_table(store, (rp_string){name, strlen(name)});
    if (target == NULL) {
        PyErr_Format(PyExc_ValueError,
                     "insert on sample: there is no table '%s' yet; it must come before the "
                     "table with the extension",
                     name);
        return -1;
    }
    *st = rp_insert_on_sample_extension(rp_allocator_default(), target,
                                        self->settings.timeout_ms, &self->hook->inner, err);
    rp_table_unref(target);
    return 0;
}

/* Makes the extension of the library, or none for a queue. */
static int open_inner(const extension_object *self, rp_store *store)
{
    hook *h = self->hook;
    rp_error err = {0};
    rp_status st = RP_OK;

    switch (h->kind) {
    case STATISTICS: st = rp_statistics_extension(rp_allocator_default(), &h->inner); break;
    case DIFFUSION:
        st = rp_diffusion_extension(rp_allocator_default(), self->settings.radius,
                                    self->settings.decay, &h->inner, &err);
        break;
    case INSERT_ON_SAMPLE:
        if (open_copier(self, store, &err, &st) != 0) return -1;
        break;
    case EVENTS: break;
    }
    if (st == RP_OK) return 0;
    (void)core_raise(st, &err);
    return -1;
}

static int check_process(const extension_object *self)
{
    rp_error err = {RP_PRECONDITION,
                    "the extension belongs to the process that forked this one"};

    if (self->pid == getpid()) return 0;
    (void)core_raise(RP_PRECONDITION, &err);
    return -1;
}

/* Attaches an extension to a table that is about to be made. */
static int attach(PyObject *obj, rp_store *store, rp_extension *out)
{
    extension_object *self = (extension_object *)obj;
    bool is_new;
    hook *h;

    if (!PyObject_TypeCheck(obj, &core_TableExtension)) {
        PyErr_Format(PyExc_TypeError, "an extension must be a TableExtension, got %s",
                     Py_TYPE(obj)->tp_name);
        return -1;
    }
    if (check_process(self) != 0) return -1;
    h = self->hook;
    pthread_mutex_lock(&h->mu);
    is_new = h->state == NEW; /* which only this function changes, with the GIL */
    pthread_mutex_unlock(&h->mu);
    if (!is_new) {
        PyErr_Format(PyExc_ValueError, "the extension %s belongs to a table already",
                     kind_names[h->kind]);
        return -1;
    }
    if (open_inner(self, store) != 0) return -1;
    pthread_mutex_lock(&h->mu);
    h->state = ATTACHED;
    pthread_mutex_unlock(&h->mu);
    atomic_fetch_add(&h->refs, 1);
    *out = (rp_extension){.name = kind_names[h->kind],
                          .deferred = h->kind == EVENTS || h->inner.deferred,
                          .ctx = h,
                          .on_events = h->kind == EVENTS ? put : forward,
                          .free = detach};
    return 0;
}

int core_extensions_from(PyObject *sequence, rp_store *store, rp_extension **out, size_t *count)
{
    PyObject *items;
    size_t n;

    *out = NULL;
    *count = 0;
    if (sequence == NULL || sequence == Py_None) return 0;
    items = PySequence_Tuple(sequence); /* a copy: the sequence may change */
    if (items == NULL) return -1;
    n = (size_t)PyTuple_GET_SIZE(items);
    *out = PyMem_Calloc(n + 1, sizeof **out);
    if (*out == NULL) {
        Py_DECREF(items);
        PyErr_NoMemory();
        return -1;
    }
    while (*count < n &&
           attach(PyTuple_GET_ITEM(items, (Py_ssize_t)*count), store, &(*out)[*count]) == 0)
        ++*count;
    Py_DECREF(items);
    if (*count == n) return 0;
    core_extensions_free(*out, *count, true);
    *out = NULL;
    *count = 0;
    return -1;
}

void core_extensions_free(rp_extension *extensions, size_t count, bool discard)
{
    for (size_t i = 0; discard && i < count; i++) rp_extension_discard(&extensions[i]);
    PyMem_Free(extensions);
}

static int kind_from(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (strcmp(name, kind_names[i]) == 0) return i;
    PyErr_Format(PyExc_ValueError, "no extension is called '%s'", name);
    return -1;
}

/* Checks the numbers of an extension when it is made, not when its table is. */
static int check_numbers(const settings *s, hook_kind kind, Py_ssize_t capacity)
{
    rp_extension trial;
    rp_error err = {0};

    if (kind == EVENTS && (capacity < 1 || capacity > MAX_WAITING)) {
        PyErr_Format(PyExc_ValueError, "max_waiting must be from 1 to %d, got %zd", MAX_WAITING,
                     capacity);
        return -1;
    }
    if (kind == INSERT_ON_SAMPLE && (s->target == NULL || s->timeout_ms < 0)) {
        PyErr_SetString(PyExc_ValueError,
                        "insert on sample: needs a target and a timeout >= 0");
        return -1;
    }
    if (kind != DIFFUSION) return 0;
    rp_status st =
        rp_diffusion_extension(rp_allocator_default(), s->radius, s->decay, &trial, &err);
    if (st != RP_OK) {
        (void)core_raise(st, &err);
        return -1;
    }
    rp_extension_discard(&trial);
    return 0;
}

/* Makes the hook first: `timeout` and the end of an object can run code of Python, which must
 * not see an object without a hook. */
static PyObject *extension_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"",        "radius",      "decay", "target",
                            "timeout", "max_waiting", "kinds", NULL};
    const char *name;
    int kind;
    unsigned kinds = 0;
    settings s = {0};
    PyObject *timeout = NULL;
    Py_ssize_t capacity = 0;
    extension_object *self;
    hook *h;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|$idUOnI:TableExtension", names, &name,
                                     &s.radius, &s.decay, &s.target, &timeout, &capacity,
                                     &kinds))
        return NULL;
    kind = kind_from(name);
    if (kind < 0 || core_timeout_s(timeout, &s.timeout_ms) != 0 ||
        check_numbers(&s, (hook_kind)kind, capacity) != 0)
        return NULL;
    h = hook_new((hook_kind)kind, (size_t)capacity, kinds);
    if (h == NULL) return PyErr_NoMemory();
    self = (extension_object *)type->tp_alloc(type, 0);
    if (self == NULL) {
        hook_unref(h);
        return NULL;
    }
    self->hook = h;
    self->pid = getpid();
    self->settings = s;
    Py_XINCREF(s.target);
    return (PyObject *)self;
}

static void extension_dealloc(PyObject *obj)
{
    extension_object *self = (extension_object *)obj;

    if (self->pid == getpid()) hook_unref(self->hook); /* X3 */
    Py_XDECREF(self->settings.target);
    Py_TYPE(obj)->tp_free(obj);
}

static PyObject *statistics_dict(const rp_statistics *s)
{
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:d,s:d,s:d,s:d}", "inserts",
                         (long long)s->inserts, "updates", (long long)s->updates, "samples",
                         (long long)s->samples, "deletes", (long long)s->deletes, "resets",
                         (long long)s->resets, "deleted_unsampled",
                         (long long)s->deleted_unsampled, "priority_mean", s->priority_mean,
                         "priority_min", s->priority_min, "priority_max", s->priority_max,
                         "times_sampled_mean", s->times_sampled_mean);
}

static PyObject *extension_read(PyObject *obj, PyObject *Py_UNUSED(ignored))
{
    extension_object *self = (extension_object *)obj;
    hook *h = self->hook;
    hook_counts counts;
    core_event_counts events;

    if (check_process(self) != 0) return NULL;
    pthread_mutex_lock(&h->mu);
    counts = read_counts(h);
    pthread_mutex_unlock(&h->mu);
    switch (h->kind) {
    case STATISTICS: return statistics_dict(&counts.statistics);
    case INSERT_ON_SAMPLE:
        return Py_BuildValue("{s:L,s:L}", "copied", (long long)counts.copied, "dropped",
                             (long long)counts.dropped);
    case EVENTS:
        events = core_event_queue_count(h->queue);
        return Py_BuildValue("{s:n,s:L,s:L}", "waiting", (Py_ssize_t)events.waiting, "taken",
                             (long long)events.taken, "dropped", (long long)events.dropped);
    case DIFFUSION: break;
    }
    return PyDict_New();
}

static PyObject *events_list(const core_event *events, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);

    for (size_t i = 0; list != NULL && i < count; i++) {
        const core_event *e = &events[i];
        PyObject *tuple =
            Py_BuildValue("(sKdi)", event_names[e->kind], (unsigned long long)e->key,
                          e->priority, (int)e->times_sampled);

        if (tuple != NULL)
            PyList_SET_ITEM(list, (Py_ssize_t)i, tuple);
        else
            Py_CLEAR(list);
    }
    return list;
}

static core_event_queue *queue_of(const extension_object *self)
{
    if (check_process(self) != 0) return NULL;
    if (self->hook->queue == NULL)
        PyErr_SetString(PyExc_TypeError, "the extension has no queue of events");
    return self->hook->queue;
}

static PyObject *extension_take(PyObject *obj, PyObject *Py_UNUSED(ignored))
{
    core_event_queue *queue = queue_of((extension_object *)obj);
    core_event events[MAX_TAKEN];
    bool ended = false;
    size_t count;

    if (queue == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS
    count =
        core_event_queue_take(queue, events, MAX_TAKEN, rp_wait_ms(TAKE_MS).until_ns, &ended);
    Py_END_ALLOW_THREADS
    if (ended) Py_RETURN_NONE;
    return events_list(events, count);
}

static PyObject *extension_close(PyObject *obj, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"discard", NULL};
    extension_object *self = (extension_object *)obj;
    int discard = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:close", names, &discard) ||
        check_process(self) != 0)
        return NULL;
    if (self->hook->queue != NULL) core_event_queue_close(self->hook->queue, discard != 0);
    Py_RETURN_NONE;
}

static PyObject *extension_kind(PyObject *obj, void *Py_UNUSED(ignored))
{
    return PyUnicode_FromString(kind_names[((extension_object *)obj)->hook->kind]);
}

static PyObject *extension_repr(PyObject *obj)
{
    return PyUnicode_FromFormat("<%s %s>", Py_TYPE(obj)->tp_name,
                                kind_names[((extension_object *)obj)->hook->kind]);
}

static PyMethodDef extension_methods[] = {
    {"read", extension_read, METH_NOARGS,
     "read()\n--\n\n"
     "Returns the counts, by name. After the table was freed, they are the last ones."},
    {"take", extension_take, METH_NOARGS,
     "take()\n--\n\n"
     "Waits up to a second for events and returns up to 256, as tuples (kind, key, priority,\n"
     "times_sampled). None once the queue is closed and empty."},
    {"close", CORE_METHOD(extension_close), METH_VARARGS | METH_KEYWORDS,
     "close(discard=False)\n--\n\n"
     "Ignores all later events. `discard`: drops those in the queue as well."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef extension_getset[] = {
    {"kind", extension_kind, NULL, "What it does.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject core_TableExtension = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.TableExtension",
    .tp_doc = "An extension of one table in this process.",
    .tp_basicsize = sizeof(extension_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = extension_new,
    .tp_dealloc = extension_dealloc,
    .tp_repr = extension_repr,
    .tp_methods = extension_methods,
    .tp_getset = extension_getset,
};
