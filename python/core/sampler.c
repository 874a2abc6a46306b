/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.Sampler: single samples, batches, and prefetched batches.
 *
 *   next(limit)            samples that have arrived, decoded: one, or at most 16 MiB of arrays
 *   stack(limit)           the same samples, with one array for each column
 *   batch(size)            one batch; waits and decodes without the GIL
 *   start(size), take()    the same, but a thread prefetches the batches: prefetch.c
 *
 * At the end of the sequence (after max_samples, or at the rate limiter's timeout) next()
 * returns [], and the others return None.
 *
 * Invariants, whenever a thread releases the GIL:
 *   M1  `inside` counts the calls in progress, of all threads;
 *   M2  after close(), is_closed is set and no call enters; the last call that leaves frees
 *       the C sampler, the prefetcher and the kept samples;
 *   M3  next() and stack() take the kept samples first;
 *   M4  in a forked child no call enters, and nothing that threads of the parent use is freed.
 */
#include "kept.h"
#include "prefetch.h"
#include "sample_arrays.h"
#include "store.h"

#include <string.h>
#include <unistd.h>

enum {
    MAX_NEXT = 1 << 16,
    SAMPLES_INSIDE = 16,
    MAX_DEPTH = 1024,
};

typedef struct sampler_object {
    PyObject_HEAD
    rp_sampler *sampler; /* NULL: closed */
    PyObject *client;
    core_decoder decoder;
    core_pool *pool;
    core_prefetch *prefetch;
    pid_t pid;
    int inside;
    bool is_closed;
    const char *ended; /* NULL, "samples" or "timeout" */
    core_kept kept;    /* what next() has not decoded yet */
} sampler_object;

static int enter(sampler_object *self)
{
    rp_error err = {0};
    rp_status st = RP_OK;

    if (self->pid != getpid()) {
        st = RP_PRECONDITION;
        (void)snprintf(
            err.text, sizeof err.text,
            "the sampler belongs to the process that made it: make one after fork()");
    } else if (self->is_closed) {
        st = RP_CANCELLED;
        (void)snprintf(err.text, sizeof err.text, "the sampler is closed");
    }
    if (st != RP_OK) {
        err.code = st;
        (void)core_raise(st, &err);
        return -1;
    }
    self->inside++;
    return 0;
}

static void drop(sampler_object *self);

static void leave(sampler_object *self)
{
    assert(self->inside > 0);
    self->inside--;
    if (self->is_closed && self->inside == 0 && self->sampler != NULL) drop(self); /* M2 */
}

/* RP_DEADLINE before the end of `wait` is the rate limiter's timeout: the sequence is over. */
static rp_status note_timeout(rp_status st, rp_wait wait, bool *timed_out)
{
    if (st != RP_DEADLINE || wait.until_ns <= rp_now_ns()) return st;
    *timed_out = true;
    return RP_OK;
}

/* True at the end of the sequence. If false, a status other than RP_OK is an error. */
static bool is_end(sampler_object *self, rp_status st, bool timed_out)
{
    if (timed_out)
        self->ended = "timeout";
    else if (st == RP_PRECONDITION)
        self->ended = "samples";
    return timed_out || st == RP_PRECONDITION;
}

static PyObject *raise_deadline(sampler_object *self, int64_t timeout_ms, const char *what)
{
    char why[RP_ERROR_TEXT_BYTES - 64];
    rp_error err = {.code = RP_DEADLINE};

    core_sampler_why(self->sampler, timeout_ms, why, sizeof why);
    (void)snprintf(err.text, sizeof err.text, "no %s within %lld ms: %s", what,
                   (long long)timeout_ms, why);
    return core_raise(RP_DEADLINE, &err);
}

typedef struct next_arg {
    rp_sampler *sampler; /* first: core_explain_sampler() */
    rp_sample *samples;
    size_t limit, count;
    bool timed_out;
} next_arg;

static rp_status next_call(void *arg, rp_wait wait, rp_error *err)
{
    next_arg *a = arg;
    rp_status st = rp_sampler_next(a->sampler, a->samples, a->limit, &a->count, wait, err);

    return note_timeout(st, wait, &a->timed_out);
}

/* Decodes the first samples and keeps the others. Takes the references of all. */
static PyObject *decode_some(sampler_object *self, rp_sample *samples, size_t count,
                             bool stacked)
{
    size_t now = core_kept_fitting(samples, count);
    PyObject *made = NULL;

    if (stacked) now = core_samples_alike(samples, now);
    if (core_kept_add(&self->kept, samples + now, count - now) == 0)
        made = stacked ? core_samples_stack(&self->decoder, samples, now)
                       : core_samples_list(&self->decoder, samples, now);
    rp_samples_release(samples, now);
    return made;
}

static PyObject *next_samples(sampler_object *self, size_t limit, int64_t timeout_ms,
                              bool stacked)
{
    rp_sample inside[SAMPLES_INSIDE];
    next_arg a = {.sampler = self->sampler, .samples = inside, .limit = limit};
    rp_error err = {0};
    rp_status st = RP_OK;
    PyObject *list = NULL;

    if (limit > SAMPLES_INSIDE) {
        a.samples = PyMem_Malloc(limit * sizeof *a.samples);
        if (a.samples == NULL) return PyErr_NoMemory();
    }
    a.count = core_kept_take(&self->kept, a.samples, limit, stacked);
    if (a.count > 0) {
        list = decode_some(self, a.samples, a.count, stacked);
    } else if (core_wait(next_call, &a, timeout_ms, core_explain_sampler, true, &st, &err) ==
               0) {
        if (is_end(self, st, a.timed_out))
            list = stacked ? Py_NewRef(Py_None) : PyList_New(0);
        else if (st == RP_DEADLINE)
            (void)raise_deadline(self, timeout_ms, "sample");
        else if (st != RP_OK)
            (void)core_raise(st, &err);
        else
            list = decode_some(self, a.samples, a.count, stacked);
    }
    if (a.samples != inside) PyMem_Free(a.samples);
    return list;
}

/* Parses the arguments (limit=1, timeout_ms=-1) itself, since next() is called for each sample.
 */
static PyObject *call_next(PyObject *obj, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *names, bool stacked)
{
    sampler_object *self = (sampler_object *)obj;
    PyObject *given[2] = {NULL, NULL}, *result;
    Py_ssize_t keywords = names != NULL ? PyTuple_GET_SIZE(names) : 0;
    const char *method = stacked ? "stack" : "next";
    Py_ssize_t limit = 1;
    int64_t timeout_ms = -1;

    if (nargs > 2)
        return PyErr_Format(PyExc_TypeError, "%s() takes at most 2 arguments", method);
    for (Py_ssize_t i = 0; i < nargs; i++) given[i] = args[i];
    for (Py_ssize_t i = 0; i < keywords; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        bool is_limit = PyUnicode_CompareWithASCIIString(name, "limit") == 0;

        if (!is_limit && PyUnicode_CompareWithASCIIString(name, "timeout_ms") != 0)
            return PyErr_Format(PyExc_TypeError, "%s() has no argument '%U'", method, name);
        if (given[is_limit ? 0 : 1] != NULL)
            return PyErr_Format(PyExc_TypeError, "%s() got '%U' twice", method, name);
        given[is_limit ? 0 : 1] = args[nargs + i];
    }
    if (given[0] != NULL) {
        limit = PyNumber_AsSsize_t(given[0], PyExc_OverflowError);
        if (limit == -1 && PyErr_Occurred()) return NULL;
    }
    if (limit < 1) return PyErr_Format(PyExc_ValueError, "limit must be >= 1, got %zd", limit);
    if (limit > MAX_NEXT) limit = MAX_NEXT;
    if (given[1] != NULL && core_timeout_ms(given[1], &timeout_ms) != 0) return NULL;
    if (enter(self) != 0) return NULL;
    result = next_samples(self, (size_t)limit, timeout_ms, stacked);
    leave(self);
    return result;
}

static PyObject *sampler_next(PyObject *obj, PyObject *const *args, Py_ssize_t nargs,
                              PyObject *names)
{
    return call_next(obj, args, nargs, names, false);
}

static PyObject *sampler_stack(PyObject *obj, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *names)
{
    return call_next(obj, args, nargs, names, true);
}

static int parse_ragged(const char *text, rp_ragged *out)
{
    if (strcmp(text, "refuse") == 0)
        *out = RP_RAGGED_REFUSE;
    else if (strcmp(text, "pad") == 0)
        *out = RP_RAGGED_PAD;
    else if (strcmp(text, "offsets") == 0)
        *out = RP_RAGGED_OFFSETS;
    else {
        PyErr_Format(PyExc_ValueError, "ragged must be 'refuse', 'pad' or 'offsets', got '%s'",
                     text);
        return -1;
    }
    return 0;
}

typedef struct batch_arg {
    rp_sampler *sampler; /* first: core_explain_sampler() */
    size_t size;
    rp_ragged ragged;
    bool whole, timed_out;
    rp_batch *batch;
} batch_arg;

static rp_status batch_call(void *arg, rp_wait wait, rp_error *err)
{
    batch_arg *a = arg;
    rp_status st =
        rp_sampler_batch(a->sampler, a->size, a->ragged, a->whole, wait, &a->batch, err);

    return note_timeout(st, wait, &a->timed_out);
}

/* Makes a Batch of a fetched batch, which is freed in any case. */
static PyObject *stack(sampler_object *self, batch_arg *a, const core_given *given,
                       size_t count)
{
    assert(a->batch != NULL);
    core_stacked s = {.batch = a->batch, .given = given, .given_count = count};
    rp_error err = {0};
    rp_status st;
    PyObject *batch;

    Py_BEGIN_ALLOW_THREADS
    st = core_stacked_fill(&s, self->pool, &err);
    Py_END_ALLOW_THREADS
    batch =
        st == RP_OK ? core_batch_new(&s, a->ragged == RP_RAGGED_OFFSETS) : core_raise(st, &err);
    Py_BEGIN_ALLOW_THREADS
    core_stacked_clear(&s);
    Py_END_ALLOW_THREADS
    return batch;
}

static PyObject *make_batch(sampler_object *self, batch_arg *a, const core_given *given,
                            size_t count, int64_t timeout_ms)
{
    rp_error err = {0};
    rp_status st;

    a->sampler = self->sampler;
    if (core_wait(batch_call, a, timeout_ms, core_explain_sampler, false, &st, &err) != 0)
        return NULL;
    if (is_end(self, st, a->timed_out)) Py_RETURN_NONE;
    if (st == RP_DEADLINE) return raise_deadline(self, timeout_ms, "batch");
    if (st != RP_OK) return core_raise(st, &err);
    return stack(self, a, given, count);
}

static int check_size(Py_ssize_t size)
{
    if (size >= 1) return 0;
    PyErr_Format(PyExc_ValueError, "a batch has at least 1 item, got %zd", size);
    return -1;
}

static PyObject *sampler_batch(PyObject *obj, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"size", "ragged", "whole", "out", "timeout_ms", NULL};
    sampler_object *self = (sampler_object *)obj;
    const char *ragged = "refuse";
    PyObject *out = NULL, *timeout = NULL, *result = NULL;
    Py_ssize_t size;
    int whole = 0;
    int64_t timeout_ms = -1;
    core_given *given = NULL;
    size_t given_count = 0;
    batch_arg a = {0};

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n|$spOO:batch", names, &size, &ragged,
                                     &whole, &out, &timeout) ||
        check_size(size) != 0 || parse_ragged(ragged, &a.ragged) != 0 ||
        core_timeout_ms(timeout, &timeout_ms) != 0)
        return NULL;
    a.size = (size_t)size;
    a.whole = whole != 0;
    if (out != NULL && out != Py_None && core_given_new(out, &given, &given_count) != 0)
        return NULL;
    if (enter(self) == 0) {
        result = make_batch(self, &a, given, given_count, timeout_ms);
        leave(self);
    }
    core_given_free(given, given_count);
    return result;
}

static void free_sets(core_given **sets, size_t set_count, size_t columns)
{
    for (size_t i = 0; sets != NULL && i < set_count; i++) core_given_free(sets[i], columns);
    PyMem_Free(sets);
}

/* Reads a sequence of sets. Each is a sequence of arrays; all have the same number of arrays.
 */
static int parse_sets(PyObject *memory, core_prefetch_options *o)
{
    PyObject *items = PySequence_Tuple(memory); /* a copy: `memory` may change */
    size_t count = o->depth + o->reuse;
    size_t columns = 0;

    if (items == NULL) return -1;
    if ((size_t)PyTuple_GET_SIZE(items) != count) {
        PyErr_Format(PyExc_ValueError,
                     "memory for %zu batches (depth + reuse) is needed, got that for %zd",
                     count, PyTuple_GET_SIZE(items));
        goto fail;
    }
    o->sets = PyMem_Calloc(count, sizeof *o->sets);
    if (o->sets == NULL) {
        PyErr_NoMemory();
        goto fail;
    }
    for (size_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(items, (Py_ssize_t)i);

        if (core_given_new(item, &o->sets[i], &columns) != 0) goto fail;
        if (i == 0) o->set_columns = columns;
        if (columns == o->set_columns) continue;
        core_given_free(o->sets[i], columns);
        o->sets[i] = NULL;
        PyErr_Format(PyExc_ValueError,
                     "memory: %zu array%s for batch %zu but %zu for the first", columns,
                     columns == 1 ? "" : "s", i, o->set_columns);
        goto fail;
    }
    Py_DECREF(items);
    return 0;
fail:
    Py_DECREF(items);
    return -1;
}

static int check_start(Py_ssize_t size, Py_ssize_t depth, Py_ssize_t reuse)
{
    if (check_size(size) != 0) return -1;
    if (depth < 1 || depth > MAX_DEPTH || reuse < 0 || reuse > MAX_DEPTH) {
        PyErr_Format(PyExc_ValueError,
                     "depth must be 1 .. %d and reuse 0 .. %d, got %zd and %zd", MAX_DEPTH,
                     MAX_DEPTH, depth, reuse);
        return -1;
    }
    return 0;
}

/* Starts the thread. The GIL is held throughout, so there is never a second thread. */
static int start(sampler_object *self, const core_prefetch_options *o)
{
    int failed = -1;

    if (enter(self) != 0) return -1;
    if (self->prefetch != NULL)
        PyErr_SetString(PyExc_RuntimeError, "the sampler makes batches ahead already");
    else
        failed = core_prefetch_new(self->sampler, self->pool, o, &self->prefetch);
    leave(self);
    return failed;
}

static PyObject *sampler_start(PyObject *obj, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"size", "ragged", "whole", "depth", "reuse", "memory", NULL};
    sampler_object *self = (sampler_object *)obj;
    const char *ragged = "refuse";
    PyObject *memory = Py_None;
    Py_ssize_t size, depth = 2, reuse = 0;
    int whole = 0, failed;
    core_prefetch_options o = {0};
    size_t set_count;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n|$spnnO:start", names, &size, &ragged,
                                     &whole, &depth, &reuse, &memory) ||
        parse_ragged(ragged, &o.ragged) != 0 || check_start(size, depth, reuse) != 0)
        return NULL;
    if (memory != Py_None && reuse == 0) {
        PyErr_SetString(PyExc_ValueError, "memory that is given is used again: reuse must be "
                                          ">= 1");
        return NULL;
    }
    o.size = (size_t)size;
    o.depth = (size_t)depth;
    o.reuse = (size_t)reuse;
    o.whole = whole != 0;
    set_count = o.depth + o.reuse;
    failed = memory != Py_None ? parse_sets(memory, &o) : 0;
    if (failed == 0) failed = start(self, &o);
    if (failed != 0) {
        free_sets(o.sets, set_count, o.set_columns);
        return NULL;
    }
    PyMem_Free(o.sets); /* the prefetcher owns its elements now */
    Py_RETURN_NONE;
}

static PyObject *sampler_take(PyObject *obj, PyObject *const *args, Py_ssize_t nargs)
{
    sampler_object *self = (sampler_object *)obj;
    int64_t timeout_ms = -1;
    PyObject *result;

    if (nargs > 1) return PyErr_Format(PyExc_TypeError, "take() takes at most 1 argument");
    if (nargs == 1 && core_timeout_ms(args[0], &timeout_ms) != 0) return NULL;
    if (enter(self) != 0) return NULL;
    if (self->prefetch == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "call start() before take()");
        result = NULL;
    } else {
        result = core_prefetch_take(self->prefetch, timeout_ms, &self->ended);
    }
    leave(self);
    return result;
}

/* Frees the C sampler and the prefetcher. */
static void drop(sampler_object *self)
{
    assert(self->inside == 0 && self->is_closed);
    rp_sampler *sampler = self->sampler;
    core_prefetch *prefetch = self->prefetch;

    self->sampler = NULL;
    self->prefetch = NULL;
    core_prefetch_free(prefetch);
    core_kept_clear(&self->kept);
    Py_BEGIN_ALLOW_THREADS
    rp_sampler_free(sampler);
    Py_END_ALLOW_THREADS
}

static void shut(sampler_object *self)
{
    if (self->sampler == NULL || self->pid != getpid()) return;
    assert(self->inside >= 0);
    self->is_closed = true;
    rp_sampler_close(self->sampler);
    self->inside++; /* core_prefetch_stop() releases the GIL */
    core_prefetch_stop(self->prefetch);
    leave(self);
}

static PyObject *sampler_close(PyObject *obj, PyObject *unused)
{
    (void)unused;
    shut((sampler_object *)obj);
    Py_RETURN_NONE;
}

static void sampler_dealloc(PyObject *obj)
{
    sampler_object *self = (sampler_object *)obj;

    if (self->pid == getpid()) {
        shut(self);
        rp_decoder_free(self->decoder.decoder);
        core_pool_unref(self->pool);
    }
    Py_XDECREF(self->client);
    Py_TYPE(obj)->tp_free(obj);
}

static int check_options(PyObject *client, Py_ssize_t max_samples, Py_ssize_t in_flight,
                         Py_ssize_t streams, Py_ssize_t per_stream)
{
    const struct {
        const char *name;
        Py_ssize_t value;
        bool or_minus_1;
    } numbers[] = {{"max_samples", max_samples, true},
                   {"max_in_flight", in_flight, false},
                   {"streams", streams, false},
                   {"max_per_stream", per_stream, true}};

    if (!PyObject_TypeCheck(client, &core_Client)) {
        PyErr_Format(PyExc_TypeError, "client must be a reprise._core.Client, got %s",
                     Py_TYPE(client)->tp_name);
        return -1;
    }
    if (((core_client *)client)->client == NULL) {
        PyErr_SetString(PyExc_ValueError, "the client is closed");
        return -1;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].value >= 1 || (numbers[i].or_minus_1 && numbers[i].value == -1))
            continue;
        PyErr_Format(PyExc_ValueError, "%s must be a positive integer%s, got %zd",
                     numbers[i].name, numbers[i].or_minus_1 ? " or -1" : "", numbers[i].value);
        return -1;
    }
    return 0;
}

/* Makes the C objects of a sampler that has a client. */
static int open_sampler(sampler_object *self, const rp_sampler_options *options)
{
    rp_client *client = ((core_client *)self->client)->client;
    rp_error err = {0};
    rp_status st;

    self->pool = core_pool_new(64);
    if (self->pool == NULL || rp_decoder_new(rp_allocator_default(), CORE_DECODER_BYTES,
                                             &self->decoder.decoder) != RP_OK) {
        PyErr_NoMemory();
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    st = rp_sampler_new(client, options, &self->sampler, &err);
    Py_END_ALLOW_THREADS
    if (st == RP_OK) return 0;
    (void)core_raise(st, &err);
    return -1;
}

static PyObject *sampler_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"client",
                            "table",
                            "max_samples",
                            "max_in_flight",
                            "streams",
                            "max_per_stream",
                            "rate_limiter_timeout_ms",
                            "ordered",
                            "checked",
                            "beta",
                            "decoders",
                            NULL};
    PyObject *client;
    Py_ssize_t max_samples = -1, in_flight = 100, streams = 1, per_stream = -1, decoders = 0;
    PyObject *timeout = NULL;
    int ordered = 0, checked = 0;
    rp_sampler_options o = {0};
    sampler_object *self;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO&|$nnnnOppdn:Sampler", names, &client,
                                     core_name_converter, &o.table, &max_samples, &in_flight,
                                     &streams, &per_stream, &timeout, &ordered, &checked,
                                     &o.beta, &decoders) ||
        check_options(client, max_samples, in_flight, streams, per_stream) != 0 ||
        core_client_check(client) != 0 ||
        core_timeout_ms(timeout, &o.rate_limiter_timeout_ms) != 0)
        return NULL;
    o.max_samples = max_samples < 0 ? 0 : max_samples;
    o.max_in_flight = (size_t)in_flight;
    o.streams = (size_t)streams;
    o.max_per_stream = per_stream < 0 ? 0 : per_stream;
    o.decoders = decoders < 0 ? 0 : (size_t)decoders;
    o.ordered = ordered != 0;
    o.checked = checked != 0;
    self = (sampler_object *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->pid = getpid();
    Py_INCREF(client);
    self->client = client;
    if (open_sampler(self, &o) != 0) Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *sampler_why(PyObject *obj, PyObject *unused)
{
    sampler_object *self = (sampler_object *)obj;
    char text[512];

    (void)unused;
    if (self->sampler == NULL || self->pid != getpid())
        return PyUnicode_FromString("the sampler is closed");
    self->inside++;
    core_sampler_why(self->sampler, -1, text, sizeof text);
    leave(self);
    return core_reason(text);
}

static PyObject *sampler_kept(PyObject *obj, void *unused)
{
    (void)unused;
    return PyBool_FromLong(core_kept_count(&((sampler_object *)obj)->kept) > 0);
}

static PyObject *sampler_ended(PyObject *obj, void *unused)
{
    const char *ended = ((sampler_object *)obj)->ended;

    (void)unused;
    if (ended == NULL) Py_RETURN_NONE;
    return PyUnicode_FromString(ended);
}

static PyObject *sampler_closed(PyObject *obj, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((sampler_object *)obj)->is_closed);
}

static PyMethodDef sampler_methods[] = {
    {"next", CORE_METHOD(sampler_next), METH_FASTCALL | METH_KEYWORDS,
     "next(limit=1, timeout_ms=-1)\n--\n\n"
     "Returns the samples that have arrived, 1 to `limit`: tuples (key, probability,\n"
     "table_size, priority, times_sampled, [array of each column]). [] at the end of the\n"
     "sequence."},
    {"stack", CORE_METHOD(sampler_stack), METH_FASTCALL | METH_KEYWORDS,
     "stack(limit=1, timeout_ms=-1)\n--\n\n"
     "Returns the samples that have arrived, 1 to `limit`, stacked: a tuple (keys,\n"
     "probabilities, table_sizes, priorities, times_sampled, [array of each column],\n"
     "[shapes of each column]). The shapes are None if they are equal; otherwise the array "
     "has\n"
     "all values end to end. None at the end of the sequence."},
    {"batch", CORE_METHOD(sampler_batch), METH_VARARGS | METH_KEYWORDS,
     "batch(size, *, ragged='refuse', whole=False, out=None, timeout_ms=-1)\n--\n\n"
     "Returns the next `size` samples as a Batch. Unless `whole` is set, the last batch may\n"
     "have fewer. None at the end of the sequence. `out` is a list of arrays into which the\n"
     "columns are stacked."},
    {"start", CORE_METHOD(sampler_start), METH_VARARGS | METH_KEYWORDS,
     "start(size, *, ragged='refuse', whole=False, depth=2, reuse=0, memory=None)\n--\n\n"
     "Starts a thread that prefetches `depth` batches for take(). With reuse=n, the memory of\n"
     "a batch is overwritten once n more have been taken. Then `memory` may be the caller's\n"
     "memory: a list of depth + n lists of arrays."},
    {"take", CORE_METHOD(sampler_take), METH_FASTCALL,
     "take(timeout_ms=-1, /)\n--\n\nReturns the next prefetched batch, or None at the end "
     "of the sequence."},
    {"close", sampler_close, METH_NOARGS,
     "close()\n--\n\nCloses it. Calls in progress on other threads end with an error."},
    {"why", sampler_why, METH_NOARGS, "why()\n--\n\nSays what it waits for."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef sampler_getset[] = {
    {"ended", sampler_ended, NULL, "None, 'samples' (max_samples were taken) or 'timeout'.",
     NULL},
    {"kept", sampler_kept, NULL,
     "True if next() has samples that have arrived and are not decoded.", NULL},
    {"closed", sampler_closed, NULL, "True after close().", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject core_Sampler = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.Sampler",
    .tp_doc = "Samples of one table, drawn ahead in the background.",
    .tp_basicsize = sizeof(sampler_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = sampler_new,
    .tp_dealloc = sampler_dealloc,
    .tp_methods = sampler_methods,
    .tp_getset = sampler_getset,
};
