/* SPDX-License-Identifier: Apache-2.0 */
/* TrajectoryWriter.append: the steps of a trajectory writer.
 *
 * A writer caches the structures of the last steps (step_shape). For each structure it stores
 * the column of each leaf, and the values of the last step of that structure: usually only
 * their pointers change. For a structure that is not in the cache, the writer calls the method
 * _learn() of the class in reprise/trajectory_writer.py, which returns the columns of the
 * leaves and the new structure of the history. */
#include "cell.h"
#include "trajectory_writer.h"

enum {
    RELEASE_BYTES = 64 << 10, /* an append of this size releases the GIL */
    COMPRESS_BYTES = 1 << 10, /* rows of this size and more are compressed */
};

static PyObject *learn_name; /* "_learn" */

/* The value of a Python or NumPy scalar. */
typedef union scalar {
    double f64;
    int64_t i64;
    npy_bool boolean;
    unsigned char bytes[16];
} scalar;

struct step_shape {
    PyObject *structure;
    Py_ssize_t count;
    int64_t *columns; /* of each leaf; -1: the leaf must be None */
    rp_value *values; /* of the last step; values[i].tensor is valid if ready[i] */
    bool *ready;
    scalar *scalars;
    PyObject **keeps; /* the arrays to which values were converted; NULL if not converted */
    rp_ref *refs;
};

void core_step_shape_free(step_shape *shape)
{
    if (shape == NULL) return;
    Py_XDECREF(shape->structure);
    PyMem_Free(shape->columns);
    PyMem_Free(shape->values);
    PyMem_Free(shape->ready);
    PyMem_Free(shape->scalars);
    PyMem_Free(shape->keeps);
    PyMem_Free(shape->refs);
    PyMem_Free(shape);
}

static void conflict(const step_shape *shape, Py_ssize_t leaf, PyObject *got)
{
    PyObject *path = core_structure_path(shape->structure, leaf);
    if (path != NULL)
        PyErr_Format(
            PyExc_ValueError,
            "'%U' was a structure in an earlier step and must be one, or None, but got: %S",
            path, got);
    Py_XDECREF(path);
}

static step_shape *shape_new(const core_writer *w, PyObject *structure, PyObject *columns)
{
    Py_ssize_t count = core_structure_leaf_count(structure);
    size_t room = (size_t)count + 1;
    step_shape *shape = PyMem_Calloc(1, sizeof(*shape));
    if (shape == NULL) goto fail;
    Py_INCREF(structure);
    shape->structure = structure;
    shape->count = count;
    shape->columns = PyMem_Calloc(room, sizeof(*shape->columns));
    shape->values = PyMem_Calloc(room, sizeof(*shape->values));
    shape->ready = PyMem_Calloc(room, sizeof(*shape->ready));
    shape->scalars = PyMem_Calloc(room, sizeof(*shape->scalars));
    shape->keeps = PyMem_Calloc(room, sizeof(*shape->keeps));
    shape->refs = PyMem_Calloc(room, sizeof(*shape->refs));
    if (shape->columns == NULL || shape->values == NULL || shape->ready == NULL ||
        shape->scalars == NULL || shape->keeps == NULL || shape->refs == NULL)
        goto fail;
    if (!PyList_Check(columns) || PyList_GET_SIZE(columns) != count) {
        PyErr_SetString(PyExc_ValueError, "_learn must name a column for each leaf");
        goto fail;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        shape->columns[i] = PyLong_AsLongLong(PyList_GET_ITEM(columns, i));
        if (shape->columns[i] == -1 && PyErr_Occurred()) goto fail;
        if (shape->columns[i] < -1 || shape->columns[i] >= (int64_t)w->column_count) {
            PyErr_SetString(PyExc_ValueError, "_learn must name columns that there are");
            goto fail;
        }
    }
    return shape;
fail:
    if (!PyErr_Occurred()) PyErr_NoMemory();
    core_step_shape_free(shape);
    return NULL;
}

/* Calls _learn() for a structure that is not in the cache, and puts it first in the cache. */
static step_shape *learn(core_writer *w, PyObject *data)
{
    step_shape *shape = NULL;
    PyObject *structure = NULL;
    if (learn_name == NULL) learn_name = PyUnicode_InternFromString("_learn");
    if (learn_name != NULL) structure = core_structure_of(data);
    PyObject *said = structure == NULL
                         ? NULL
                         : PyObject_CallMethodObjArgs((PyObject *)w, learn_name, data, NULL);
    if (said == NULL) goto out;
    PyObject *nest, *columns;
    if (!PyArg_ParseTuple(said, "OO:_learn", &nest, &columns)) goto out;
    if (nest != Py_None && core_writer_set_history(w, nest) < 0) goto out;
    shape = shape_new(w, structure, columns);
    if (shape == NULL) goto out;
    core_step_shape_free(w->shapes[SHAPES - 1]);
    memmove(&w->shapes[1], &w->shapes[0], (SHAPES - 1) * sizeof(w->shapes[0]));
    w->shapes[0] = shape;
out:
    Py_XDECREF(structure);
    Py_XDECREF(said);
    return shape;
}

/* Flattens a step. Its structure is then the first in the cache. */
static step_shape *flatten_step(core_writer *w, PyObject *data, core_leaves *leaves)
{
    for (int i = 0; i < SHAPES && w->shapes[i] != NULL; i++) {
        step_shape *shape = w->shapes[i];
        int same = core_structure_flatten(shape->structure, data, leaves);
        if (same < 0) return NULL;
        if (same == 0) continue;
        memmove(&w->shapes[1], &w->shapes[0], (size_t)i * sizeof(shape));
        w->shapes[0] = shape;
        return shape;
    }
    step_shape *shape = learn(w, data);
    if (shape == NULL) return NULL;
    int same = core_structure_flatten(shape->structure, data, leaves);
    if (same == 1) return shape;
    if (same == 0)
        PyErr_SetString(PyExc_RuntimeError, "the step changed while it was looked at");
    return NULL;
}

static bool has_shape(PyArrayObject *array, const rp_shape *shape)
{
    if (PyArray_NDIM(array) != shape->rank) return false;
    for (int i = 0; i < shape->rank; i++)
        if (PyArray_DIM(array, i) != shape->dims[i]) return false;
    return true;
}

/* Points the tensor at a value that has the dtype and shape of its column, without copying an
 * array and without running Python code. Returns false if that is not possible. */
static bool take_quickly(const core_history *h, PyObject *obj, scalar *s, rp_tensor *tensor)
{
    if (PyArray_CheckExact(obj)) {
        PyArrayObject *array = (PyArrayObject *)obj;
        if (PyArray_DESCR(array) != h->descr || h->dtype == RP_STRING ||
            !PyArray_ISCARRAY_RO(array) || !has_shape(array, &h->shape))
            return false;
        tensor->data = PyArray_DATA(array);
        return true;
    }
    if (h->shape.rank != 0) return false;
    if (PyFloat_CheckExact(obj) && h->dtype == RP_FLOAT64) {
        s->f64 = PyFloat_AS_DOUBLE(obj);
    } else if (PyLong_CheckExact(obj) && h->dtype == RP_INT64) {
        int overflow;
        s->i64 = PyLong_AsLongLongAndOverflow(obj, &overflow);
        if (overflow != 0) return false;
    } else if (PyBool_Check(obj) && h->dtype == RP_BOOL) {
        s->boolean = obj == Py_True;
    } else if (Py_TYPE(obj) == h->descr->typeobj && h->dtype != RP_STRING &&
               h->descr->type_num != NPY_VOID && /* it would give a pointer */
               h->row_bytes <= sizeof(*s) && PyArray_IsScalar(obj, Generic)) {
        PyArray_ScalarAsCtype(obj, s);
    } else {
        return false;
    }
    tensor->data = s;
    return true;
}

/* Sets ValueError: the value has another dtype or shape than its column. */
static int refuse_value(const core_history *h, const rp_tensor *tensor)
{
    char got[96], expected[96];
    if (tensor->dtype != h->dtype)
        PyErr_Format(PyExc_ValueError,
                     "Tensor of wrong dtype provided for column %R. Got %s but expected %s.",
                     h->path, rp_dtype_name(tensor->dtype), rp_dtype_name(h->dtype));
    else
        PyErr_Format(PyExc_ValueError,
                     "Tensor of incompatible shape provided for column %R. Got %s which is "
                     "incompatible with %s.",
                     h->path, rp_shape_text(&tensor->shape, got, sizeof(got)),
                     rp_shape_text(&h->shape, expected, sizeof(expected)));
    return -1;
}

/* Configures a column in the C writer before its first value. */
static int prepare(const core_writer *w, core_history *h, const rp_value *value)
{
    rp_column_options options = h->options;
    size_t elements = 0;
    rp_error err = {0};
    if (rp_shape_elements(&value->tensor.shape, &elements) != RP_OK) elements = 0;
    if (!h->configured) {
        size_t bytes = elements * rp_dtype_size(value->tensor.dtype);
        options.chunk.codec = bytes < COMPRESS_BYTES ? RP_CODEC_NONE : RP_CODEC_SNAPPY;
    }
    rp_status st = rp_trajectory_writer_configure(w->state->writer, h->column, value->name,
                                                  &options, &err);
    if (st == RP_OK) return 0;
    core_raise(st, &err);
    return -1;
}

/* Stores the value of a leaf as value `n` of the step. */
static int take(core_writer *w, step_shape *shape, Py_ssize_t n, core_history *h, PyObject *obj)
{
    rp_value *value = &shape->values[n];
    assert(shape->keeps[n] == NULL);
    if (!shape->ready[n] || value->column != h->column) {
        *value = (rp_value){.column = h->column, .name = PyBytes_AS_STRING(h->name)};
        if (h->known) value->tensor = (rp_tensor){.dtype = h->dtype, .shape = h->shape};
        shape->ready[n] = h->known;
    }
    if (h->known && take_quickly(h, obj, &shape->scalars[n], &value->tensor)) return 0;
    shape->ready[n] = false;
    if (core_tensor_from(obj, value->name, &value->tensor, &shape->keeps[n]) < 0) return -1;
    if (!h->known) return prepare(w, h, value);
    if (value->tensor.dtype != h->dtype || !rp_shape_equal(&value->tensor.shape, &h->shape))
        return refuse_value(h, &value->tensor);
    return 0;
}

/* Stores the values of all leaves that are not None. Sets `*count` to their number and `*bytes`
 * to their size together. */
static int take_all(core_writer *w, step_shape *shape, const core_leaves *leaves, bool open,
                    Py_ssize_t *count, size_t *bytes)
{
    assert(leaves->count == shape->count);
    for (Py_ssize_t i = 0; i < leaves->count; i++) {
        PyObject *obj = leaves->items[i];
        if (obj == Py_None) continue;
        if (shape->columns[i] < 0) {
            conflict(shape, i, obj);
            return -1;
        }
        core_history *h = w->columns[shape->columns[i]];
        const int64_t *last = open ? core_history_last(h) : NULL;
        if (last != NULL && *last >= 0) {
            PyErr_Format(
                PyExc_ValueError,
                "Field %R has already been set in the active step by previous (partial) "
                "append call and thus must be omitted or set to None but got: %S",
                h->path, obj);
            return -1;
        }
        assert(*count < shape->count);
        Py_ssize_t n = (*count)++;
        if (take(w, shape, n, h, obj) < 0) return -1;
        *bytes += h->row_bytes;
    }
    return 0;
}

/* Adds a step that the C writer has accepted to the histories. */
static int add_to_histories(core_writer *w, step_shape *shape, Py_ssize_t count, bool was_open)
{
    int failed = 0;
    /* A step that was opened before the first column existed is in no history yet. */
    for (size_t i = 0; i < w->column_count; i++) assert(w->columns[i]->column == i); /* P2 */
    for (size_t i = 0; i < w->column_count; i++)
        if (!was_open || w->columns[i]->length == 0) core_history_push(w->columns[i]);
    for (Py_ssize_t n = 0; n < count; n++) {
        const rp_value *value = &shape->values[n];
        assert(value->column < w->column_count);
        core_history *h = w->columns[value->column];
        int64_t *last = core_history_last(h);
        if (last != NULL) *last = (int64_t)shape->refs[n].cell;
        if (h->known && h->dtype != RP_STRING) continue;
        if (core_history_learn(h, &value->tensor) < 0) failed = -1;
        if (h->dtype == RP_STRING)
            core_cell_keep_strings(h->state, shape->refs[n], h->options.history,
                                   &value->tensor);
    }
    return failed;
}

static int append_values(core_writer *w, step_shape *shape, Py_ssize_t count, size_t bytes,
                         bool partial)
{
    rp_trajectory_writer *writer = w->state->writer;
    uint32_t flags = partial ? RP_STEP_OPEN : 0;
    assert(w->state->busy);
    bool was_open = rp_trajectory_writer_is_open(writer);
    rp_error err = {0};
    rp_status st;
    for (size_t i = 0; i < w->column_count; i++)
        if (core_history_reserve(w->columns[i]) < 0) return -1;
    if (bytes >= RELEASE_BYTES) {
        Py_BEGIN_ALLOW_THREADS
        st = rp_trajectory_writer_append(writer, shape->values, (size_t)count, flags,
                                         shape->refs, &err);
        Py_END_ALLOW_THREADS
    } else {
        st = rp_trajectory_writer_append(writer, shape->values, (size_t)count, flags,
                                         shape->refs, &err);
    }
    if (st == RP_OK) return add_to_histories(w, shape, count, was_open);
    core_raise(st, &err);
    return -1;
}

static int append_inside(core_writer *w, PyObject *data, bool partial)
{
    bool open = rp_trajectory_writer_is_open(w->state->writer);
    core_leaves leaves;
    Py_ssize_t count = 0;
    size_t bytes = 0;
    step_shape *shape = flatten_step(w, data, &leaves);
    if (shape == NULL) return -1;
    int failed = take_all(w, shape, &leaves, open, &count, &bytes);
    if (failed == 0) failed = append_values(w, shape, count, bytes, partial);
    for (Py_ssize_t n = 0; n < count; n++) Py_CLEAR(shape->keeps[n]);
    core_leaves_free(&leaves);
    return failed;
}

PyObject *core_writer_append(core_writer *w, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    PyObject *data = nargs > 0 ? args[0] : NULL;
    int partial = 0;
    if (nargs > 1) {
        PyErr_Format(
            PyExc_TypeError,
            "TrajectoryWriter.append() takes 2 positional arguments but %zd were given",
            nargs + 1);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        if (PyUnicode_CompareWithASCIIString(name, "partial_step") == 0) {
            partial = PyObject_IsTrue(args[nargs + i]);
            if (partial < 0) return NULL;
        } else if (data == NULL && PyUnicode_CompareWithASCIIString(name, "data") == 0) {
            data = args[nargs + i];
        } else {
            PyErr_Format(PyExc_TypeError,
                         "TrajectoryWriter.append() got an unexpected keyword argument '%U'",
                         name);
            return NULL;
        }
    }
    if (data == NULL) {
        PyErr_SetString(PyExc_TypeError,
                        "TrajectoryWriter.append() misses its argument 'data'");
        return NULL;
    }
    if (writer_enter(w->state) < 0) return NULL;
    int failed = append_inside(w, data, partial != 0);
    writer_leave(w->state);
    if (failed) return NULL;
    Py_RETURN_NONE;
}
