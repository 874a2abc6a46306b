/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.ReplayBuffer: a replay buffer of this process, over <reprise/replay_buffer.h>.
 *
 * The class of that name in reprise.replay_buffer is a subclass, with specs, files and
 * pickling. add(), sample() and update_priorities() are not overridden there, so that a call to
 * them is one call into C. Copies of RELEASE_BYTES or more release the GIL.
 *
 * Invariant: U1  `buffer` is NULL until __init__() has succeeded; then `columns` are its
 * columns. */
#include "replay_columns.h"

enum { RELEASE_BYTES = 32 << 10 }; /* a copy of this size releases the GIL */

typedef struct replay_buffer {
    PyObject_HEAD
    rp_replay_buffer *buffer; /* NULL until __init__ has made it */
    core_replay_columns columns;
    Py_ssize_t capacity;
    double alpha, beta, epsilon;
} replay_buffer;

static PyObject *text_beta, *text_indices, *text_n, *text_out, *text_priorities, *text_weights;

static int make_texts(void)
{
    if (text_weights != NULL) return 0;
    text_beta = PyUnicode_InternFromString("beta");
    text_indices = PyUnicode_InternFromString("indices");
    text_n = PyUnicode_InternFromString("n");
    text_out = PyUnicode_InternFromString("out");
    text_priorities = PyUnicode_InternFromString("priorities");
    text_weights = PyUnicode_InternFromString("weights");
    return PyErr_Occurred() != NULL ? -1 : 0;
}

static int is_made(const replay_buffer *self)
{
    if (self->buffer != NULL) return 1;
    PyErr_SetString(PyExc_RuntimeError, "this ReplayBuffer has not been initialised");
    return 0;
}

static void dealloc(PyObject *obj)
{
    replay_buffer *self = (replay_buffer *)obj;

    rp_replay_buffer_free(self->buffer);
    core_replay_columns_clear(&self->columns);
    Py_TYPE(obj)->tp_free(obj);
}

static int init(PyObject *obj, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"capacity", "columns", "alpha",       "beta",
                               "epsilon",  "seed",    "preallocate", NULL};
    replay_buffer *self = (replay_buffer *)obj;
    rp_replay_column columns[RP_REPLAY_MAX_COLUMNS];
    rp_replay_options options = {.columns = columns};
    unsigned long long seed;
    PyObject *given;
    int preallocate = 0;
    rp_error err;
    rp_status st;

    if (make_texts() < 0) return -1;
    if (self->buffer != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "a ReplayBuffer is initialised once");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nO!dddK|p", keywords, &self->capacity,
                                     &PyTuple_Type, &given, &self->alpha, &self->beta,
                                     &self->epsilon, &seed, &preallocate))
        return -1;
    core_replay_columns_clear(&self->columns);
    if (core_replay_columns_read(&self->columns, given, columns) < 0) return -1;
    options.capacity = self->capacity < 0 ? 0 : (size_t)self->capacity;
    options.column_count = (size_t)self->columns.count;
    options.alpha = self->alpha;
    options.epsilon = self->epsilon;
    options.seed = seed;
    options.preallocate = preallocate != 0;
    st = rp_replay_buffer_new(rp_allocator_default(), &options, &self->buffer, &err);
    if (st == RP_OK) return 0;
    if (st == RP_NO_RESOURCE) return PyErr_NoMemory(), -1;
    return core_raise(st, &err), -1;
}

/* True if the elements of an array may be converted to `type`. Only integers are converted to
 * integers; any real numbers are converted to floats. An empty array may have any dtype. */
static bool can_become(PyArrayObject *any, int type)
{
    if (PyArray_SIZE(any) == 0) return true;
    if (type == NPY_INT64) return PyArray_ISINTEGER(any);
    return PyArray_ISOBJECT(any) || (PyArray_ISNUMBER(any) && !PyArray_ISCOMPLEX(any));
}

/* Reads a vector of `count` numbers; -1: of any length. A single number is a vector of one. */
static PyArrayObject *vector_from(PyObject *value, int type, npy_intp count, const char *what)
{
    PyArrayObject *any = (PyArrayObject *)PyArray_FROM_O(value), *array;

    if (any == NULL) return NULL;
    if (!can_become(any, type)) {
        PyErr_Format(PyExc_TypeError, "%s must be %s, got an array of %R", what,
                     type == NPY_INT64 ? "integers" : "numbers",
                     (PyObject *)PyArray_DESCR(any));
        Py_DECREF(any);
        return NULL;
    }
    array = (PyArrayObject *)PyArray_FROMANY((PyObject *)any, type, 0, 0,
                                             NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST);
    Py_DECREF(any);
    if (array == NULL || count < 0 || PyArray_SIZE(array) == count) return array;
    PyErr_Format(PyExc_ValueError, "there must be %zd %s, got %zd", (Py_ssize_t)count, what,
                 (Py_ssize_t)PyArray_SIZE(array));
    Py_DECREF(array);
    return NULL;
}

static Py_ssize_t find_column(const replay_buffer *self, PyObject *name)
{
    for (Py_ssize_t i = 0; i < self->columns.count; i++)
        if (self->columns.items[i].name == name) return i;
    for (Py_ssize_t i = 0; i < self->columns.count; i++)
        if (PyUnicode_Compare(self->columns.items[i].name, name) == 0) return i;
    return -1;
}

/* True if `name` is "priorities". Names of keyword arguments are usually interned, but need not
 * be. */
static bool is_priorities(PyObject *name)
{
    return name == text_priorities || PyUnicode_Compare(name, text_priorities) == 0;
}

static int missing(const replay_buffer *self, Py_ssize_t i)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "add() got nothing for column '%U'",
                     self->columns.items[i].name);
    return -1;
}

/* Refuses a column that the buffer does not have. The error suggests one that it has. */
static int unknown(const replay_buffer *self, PyObject *name)
{
    PyObject *module = PyImport_ImportModule("reprise._check"), *advice = NULL;
    PyObject *names = PyList_New(0);

    for (Py_ssize_t i = 0; names != NULL && i < self->columns.count; i++)
        if (PyList_Append(names, self->columns.items[i].name) < 0) Py_CLEAR(names);
    if (module != NULL && names != NULL)
        advice = PyObject_CallMethod(module, "advice", "OO", name, names);
    if (advice != NULL)
        PyErr_Format(PyExc_TypeError, "add() got '%U', which is no column: %U", name, advice);
    Py_XDECREF(advice);
    Py_XDECREF(names);
    Py_XDECREF(module);
    return -1;
}

/* Reads the values of all columns from a dict, which must have no other keys. Borrows them. */
static int values_of_dict(const replay_buffer *self, PyObject *dict, PyObject **values)
{
    for (Py_ssize_t i = 0; i < self->columns.count; i++) {
        values[i] = PyDict_GetItemWithError(dict, self->columns.items[i].name);
        if (values[i] == NULL) return missing(self, i);
    }
    if (PyDict_GET_SIZE(dict) == self->columns.count) return 0;
    PyErr_Format(PyExc_TypeError, "add() got %zd columns, there are %zd", PyDict_GET_SIZE(dict),
                 self->columns.count);
    return -1;
}

/* Reads the values of all columns from positional arguments, then from keywords. Sets
 * `*priorities` if that keyword is given. Borrows all of them. */
static int values_of_call(const replay_buffer *self, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *names, PyObject **values, PyObject **priorities)
{
    Py_ssize_t name_count = names == NULL ? 0 : PyTuple_GET_SIZE(names), dict_like;

    for (Py_ssize_t k = 0; k < name_count; k++)
        if (is_priorities(PyTuple_GET_ITEM(names, k))) *priorities = args[nargs + k];
    dict_like =
        nargs == 1 && PyDict_Check(args[0]) && name_count == (*priorities != NULL ? 1 : 0);
    if (dict_like) return values_of_dict(self, args[0], values);
    if (nargs > self->columns.count) {
        PyErr_Format(PyExc_TypeError, "add() got %zd values, there are %zd columns", nargs,
                     self->columns.count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < self->columns.count; i++) values[i] = i < nargs ? args[i] : NULL;
    for (Py_ssize_t k = 0; k < name_count; k++) {
        PyObject *name = PyTuple_GET_ITEM(names, k);
        Py_ssize_t i;

        if (is_priorities(name)) continue;
        i = find_column(self, name);
        if (i < 0 || values[i] != NULL) {
            if (i >= 0)
                PyErr_Format(PyExc_TypeError, "add() got two values for column '%U'", name);
            return i >= 0 ? -1 : unknown(self, name);
        }
        values[i] = args[nargs + k];
    }
    for (Py_ssize_t i = 0; i < self->columns.count; i++)
        if (values[i] == NULL) return missing(self, i);
    return 0;
}

static rp_status add_rows(replay_buffer *self, const core_replay_rows *r,
                          const double *priorities, const double *weights, rp_error *err)
{
    size_t count = (size_t)r->count;
    assert(self->buffer != NULL && r->array_count == self->columns.count); /* U1 */
    rp_status st;

    PyThreadState *thread =
        count * self->columns.row_bytes >= RELEASE_BYTES ? PyEval_SaveThread() : NULL;
    st = weights != NULL ? rp_replay_buffer_put_back(self->buffer, r->data, count, weights, err)
                         : rp_replay_buffer_add(self->buffer, r->data, count, priorities, err);
    if (thread != NULL) PyEval_RestoreThread(thread);
    return st;
}

static PyObject *add(PyObject *obj, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    replay_buffer *self = (replay_buffer *)obj;
    PyObject *values[RP_REPLAY_MAX_COLUMNS], *priorities = NULL, *result = NULL;
    PyArrayObject *vector = NULL;
    rp_error err;
    rp_status st;
    core_replay_rows r;

    if (!is_made(self)) return NULL;
    if (values_of_call(self, args, nargs, names, values, &priorities) < 0) return NULL;
    if (core_replay_rows_from(&self->columns, values, &r) < 0) return NULL;
    if (priorities != NULL && priorities != Py_None) {
        vector = vector_from(priorities, NPY_DOUBLE, r.count, "priorities");
        if (vector == NULL) goto out;
    }
    st = add_rows(self, &r, vector == NULL ? NULL : PyArray_DATA(vector), NULL, &err);
    if (st == RP_OK)
        result = Py_NewRef(Py_None);
    else
        (void)(st == RP_NO_RESOURCE ? PyErr_NoMemory() : core_raise(st, &err));
out:
    Py_XDECREF(vector);
    core_replay_rows_free(&r);
    return result;
}

static PyObject *sample_into(replay_buffer *self, npy_intp count, double beta, PyObject *into,
                             bool given)
{
    PyThreadState *thread = NULL;
    PyObject *result = NULL;
    rp_replay_sample out;
    rp_error err;
    rp_status st;
    core_replay_arrays p;

    if (core_replay_arrays_make(&self->columns, &p, into, given, count) < 0) goto out;
    if (core_replay_arrays_add(
            &p, core_replay_array_for(into, given, text_weights, NULL, NPY_FLOAT, count)) < 0)
        goto out;
    if (core_replay_arrays_add(
            &p, core_replay_array_for(into, given, text_indices, NULL, NPY_INT64, count)) < 0)
        goto out;
    out = (rp_replay_sample){.columns = p.data,
                             .weights = p.data[self->columns.count],
                             .indices = p.data[self->columns.count + 1]};
    if ((size_t)count * self->columns.row_bytes >= RELEASE_BYTES) thread = PyEval_SaveThread();
    st = rp_replay_buffer_sample(self->buffer, (size_t)count, beta, &out, &err);
    if (thread != NULL) PyEval_RestoreThread(thread);
    if (st == RP_OK)
        result = Py_NewRef(into);
    else
        (void)(st == RP_NO_RESOURCE ? PyErr_NoMemory() : core_raise(st, &err));
out:
    core_replay_arrays_free(&p);
    return result;
}

/* Reads the arguments n, beta and out of sample(), positional or by keyword. */
static int sample_arguments(PyObject *const *args, Py_ssize_t nargs, PyObject *names,
                            PyObject *values[3])
{
    Py_ssize_t name_count = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    PyObject *const known[3] = {text_n, text_beta, text_out};

    if (nargs > 3) {
        PyErr_Format(PyExc_TypeError, "sample() takes n, beta and out, got %zd values", nargs);
        return -1;
    }
    for (Py_ssize_t i = 0; i < nargs; i++) values[i] = args[i];
    for (Py_ssize_t k = 0; k < name_count; k++) {
        PyObject *name = PyTuple_GET_ITEM(names, k);
        int i = 0;
        while (i < 3 && name != known[i] && PyUnicode_Compare(name, known[i]) != 0) i++;
        if (i == 3 || values[i] != NULL) {
            PyErr_Format(PyExc_TypeError, "sample() got '%U', %s", name,
                         i == 3 ? "which it does not know: it takes n, beta and out" : "twice");
            return -1;
        }
        values[i] = args[nargs + k];
    }
    if (values[0] != NULL) return 0;
    PyErr_SetString(PyExc_TypeError, "sample() must be told how many rows");
    return -1;
}

static PyObject *sample(PyObject *obj, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    replay_buffer *self = (replay_buffer *)obj;
    PyObject *values[3] = {NULL, NULL, NULL}, *into, *result;
    double beta = self->beta;
    Py_ssize_t count;

    if (!is_made(self) || sample_arguments(args, nargs, names, values) < 0) return NULL;
    count = PyNumber_AsSsize_t(values[0], PyExc_OverflowError);
    if (count == -1 && PyErr_Occurred()) return NULL;
    if (count < 0 || (size_t)count > PY_SSIZE_T_MAX / 64 / self->columns.row_bytes)
        return PyErr_Format(PyExc_ValueError, "cannot sample %zd rows", count);
    if (values[1] != NULL && values[1] != Py_None) {
        beta = PyFloat_AsDouble(values[1]);
        if (beta == -1 && PyErr_Occurred()) return NULL;
    }
    if (values[2] != NULL && values[2] != Py_None) {
        if (PyDict_Check(values[2])) return sample_into(self, count, beta, values[2], true);
        return PyErr_Format(PyExc_TypeError, "out must be a dict of arrays, got %s",
                            Py_TYPE(values[2])->tp_name);
    }
    into = PyDict_New();
    if (into == NULL) return NULL;
    result = sample_into(self, count, beta, into, false);
    Py_DECREF(into);
    return result;
}

static PyObject *update_priorities(PyObject *obj, PyObject *const *args, Py_ssize_t nargs)
{
    replay_buffer *self = (replay_buffer *)obj;
    PyArrayObject *indices, *priorities = NULL;
    PyObject *result = NULL;
    size_t updated = 0;
    rp_error err;
    rp_status st;

    if (!is_made(self)) return NULL;
    if (nargs != 2)
        return PyErr_Format(PyExc_TypeError,
                            "update_priorities() takes indices and priorities, got %zd values",
                            nargs);
    indices = vector_from(args[0], NPY_INT64, -1, "indices");
    if (indices == NULL) return NULL;
    priorities = vector_from(args[1], NPY_DOUBLE, PyArray_SIZE(indices), "priorities");
    if (priorities == NULL) goto out;
    st = rp_replay_buffer_update(self->buffer, PyArray_DATA(indices), PyArray_DATA(priorities),
                                 (size_t)PyArray_SIZE(indices), &updated, &err);
    result = st == RP_OK ? PyLong_FromSize_t(updated) : core_raise(st, &err);
out:
    Py_XDECREF(priorities);
    Py_DECREF(indices);
    return result;
}

/* _read(first, count): the columns and the weights of consecutive rows. */
static PyObject *read_rows(PyObject *obj, PyObject *args)
{
    replay_buffer *self = (replay_buffer *)obj;
    PyObject *into, *weights = NULL, *result = NULL;
    unsigned long long first;
    Py_ssize_t count;
    rp_error err;
    rp_status st;
    core_replay_arrays p;

    if (!is_made(self) || !PyArg_ParseTuple(args, "Kn", &first, &count)) return NULL;
    if (count < 0 || (size_t)count > rp_replay_buffer_size(self->buffer))
        return PyErr_Format(PyExc_ValueError, "cannot read %zd rows", count);
    into = PyDict_New();
    if (into == NULL) return NULL;
    if (core_replay_arrays_make(&self->columns, &p, into, false, count) < 0) goto out;
    weights = core_replay_array_new(NULL, NPY_DOUBLE, count);
    if (core_replay_arrays_add(&p, weights) < 0) goto out;
    Py_BEGIN_ALLOW_THREADS
    st = rp_replay_buffer_read(self->buffer, first, (size_t)count, p.data,
                               p.data[self->columns.count], &err);
    Py_END_ALLOW_THREADS
    result = st == RP_OK ? PyTuple_Pack(2, into, weights) : core_raise(st, &err);
out:
    core_replay_arrays_free(&p);
    Py_DECREF(into);
    return result;
}

/* _put_back(columns, weights): adds rows that _read() has returned. */
static PyObject *put_back(PyObject *obj, PyObject *args)
{
    replay_buffer *self = (replay_buffer *)obj;
    PyObject *values[RP_REPLAY_MAX_COLUMNS], *dict, *weights, *result = NULL;
    PyArrayObject *vector;
    rp_error err;
    rp_status st;
    core_replay_rows r;

    if (!is_made(self) || !PyArg_ParseTuple(args, "O!O", &PyDict_Type, &dict, &weights))
        return NULL;
    if (values_of_dict(self, dict, values) < 0 ||
        core_replay_rows_from(&self->columns, values, &r) < 0)
        return NULL;
    vector = vector_from(weights, NPY_DOUBLE, r.count, "weights");
    if (vector != NULL) {
        st = add_rows(self, &r, NULL, PyArray_DATA(vector), &err);
        result = st == RP_OK ? Py_NewRef(Py_None) : core_raise(st, &err);
        Py_DECREF(vector);
    }
    core_replay_rows_free(&r);
    return result;
}

static PyObject *get_state(PyObject *obj, PyObject *unused)
{
    replay_buffer *self = (replay_buffer *)obj;
    rp_replay_state s;

    (void)unused;
    if (!is_made(self)) return NULL;
    rp_replay_buffer_state(self->buffer, &s);
    return Py_BuildValue("Kd(KKKK)", (unsigned long long)s.next, s.largest_priority,
                         (unsigned long long)s.rng[0], (unsigned long long)s.rng[1],
                         (unsigned long long)s.rng[2], (unsigned long long)s.rng[3]);
}

static PyObject *set_state(PyObject *obj, PyObject *args)
{
    replay_buffer *self = (replay_buffer *)obj;
    unsigned long long next, rng[4];
    rp_replay_state s;
    rp_error err;
    rp_status st;

    if (!is_made(self)) return NULL;
    if (!PyArg_ParseTuple(args, "Kd(KKKK)", &next, &s.largest_priority, &rng[0], &rng[1],
                          &rng[2], &rng[3]))
        return NULL;
    s.next = next;
    for (int i = 0; i < 4; i++) s.rng[i] = rng[i];
    st = rp_replay_buffer_set_state(self->buffer, &s, &err);
    if (st != RP_OK) return core_raise(st, &err);
    Py_RETURN_NONE;
}

static PyObject *clear(PyObject *obj, PyObject *unused)
{
    (void)unused;
    if (!is_made((replay_buffer *)obj)) return NULL;
    rp_replay_buffer_clear(((replay_buffer *)obj)->buffer);
    Py_RETURN_NONE;
}

static PyObject *check(PyObject *obj, PyObject *unused)
{
    (void)unused;
    if (!is_made((replay_buffer *)obj)) return NULL;
    return PyBool_FromLong(rp_replay_buffer_check(((replay_buffer *)obj)->buffer));
}

static Py_ssize_t length(PyObject *obj)
{
    replay_buffer *self = (replay_buffer *)obj;
    return is_made(self) ? (Py_ssize_t)rp_replay_buffer_size(self->buffer) : -1;
}

static PyObject *get_added(PyObject *obj, void *unused)
{
    (void)unused;
    if (!is_made((replay_buffer *)obj)) return NULL;
    return PyLong_FromUnsignedLongLong(rp_replay_buffer_added(((replay_buffer *)obj)->buffer));
}

static PyObject *get_nbytes(PyObject *obj, void *unused)
{
    (void)unused;
    if (!is_made((replay_buffer *)obj)) return NULL;
    return PyLong_FromSize_t(rp_replay_buffer_memory(((replay_buffer *)obj)->buffer));
}

static PyObject *get_capacity(PyObject *obj, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(((replay_buffer *)obj)->capacity);
}

PyDoc_STRVAR(
    add_doc,
    "add($self, /, *args, priorities=None, **columns)\n--\n\n"
    "Adds one transition, or many in arrays with one more dimension in front.\n\n"
    "Columns are given by name, by position in the order of the spec, or as one dict. Without\n"
    "`priorities`, each transition gets the largest priority that was given so far, or 1 if\n"
    "there was none. Numbers are converted to the column's dtype if that keeps their kind:\n"
    "floats are not converted to integers.");
PyDoc_STRVAR(
    sample_doc,
    "sample($self, /, n, beta=None, out=None)\n--\n\n"
    "Draws n transitions, independently and with replacement. Returns a dict with an array of\n"
    "n rows for each column, and with\n\n"
    "  weights  importance weights, float32, of which the largest is 1: (p / p_min) ** -beta\n"
    "  indices  numbers of the transitions, int64, for update_priorities(); the first ever\n"
    "           added has number 0, and `indices % capacity` is the index in the ring\n\n"
    "`out` is a dict that an earlier call with the same n has returned. Its arrays are used\n"
    "instead of new ones, which saves time for large batches. StatusError if the buffer is\n"
    "empty.");
PyDoc_STRVAR(
    update_doc,
    "update_priorities($self, indices, priorities, /)\n--\n\n"
    "Sets the priorities of transitions; they must be finite and >= 0. Transitions "
    "that\n"
    "have been overwritten since they were sampled are ignored. Returns the number of\n"
    "the others.");
PyDoc_STRVAR(clear_doc, "clear($self, /)\n--\n\n"
                        "Removes all transitions. Their numbers are not used again.");

static PyMethodDef methods[] = {
    {"add", CORE_METHOD(add), METH_FASTCALL | METH_KEYWORDS, add_doc},
    {"sample", CORE_METHOD(sample), METH_FASTCALL | METH_KEYWORDS, sample_doc},
    {"update_priorities", CORE_METHOD(update_priorities), METH_FASTCALL, update_doc},
    {"clear", clear, METH_NOARGS, clear_doc},
    {"_check", check, METH_NOARGS, NULL},
    {"_read", read_rows, METH_VARARGS, NULL},
    {"_put_back", put_back, METH_VARARGS, NULL},
    {"_state", get_state, METH_NOARGS, NULL},
    {"_set_state", set_state, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"added", get_added, NULL, "How many rows were ever added.", NULL},
    {"capacity", get_capacity, NULL, "The largest number of rows.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of memory that the buffer holds.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PySequenceMethods as_sequence = {.sq_length = length};

PyTypeObject core_ReplayBuffer = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.ReplayBuffer",
    .tp_doc = "A replay buffer of this process; see reprise.ReplayBuffer.",
    .tp_basicsize = sizeof(replay_buffer),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_init = init,
    .tp_dealloc = dealloc,
    .tp_methods = methods,
    .tp_getset = getters,
    .tp_as_sequence = &as_sequence,
};
