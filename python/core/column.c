/* SPDX-License-Identifier: Apache-2.0 */
/* Histories, the columns made of them, and references to single cells.
 *
 * A history is indexed like a list of all steps since it was last cleared, with None where the
 * column has no value, or no longer. A column takes no None: so what it holds was there when it
 * was made, and is looked up again when it is used. */
#include "nest.h"
#include "trajectory_writer.h"

#include <structmember.h>

enum { FIRST_CELLS = 16, SHOWN_CELLS = 64 };

static const char expired_text[] = "Cannot access data from expired WeakCellRef";

typedef struct cell_ref {
    PyObject_HEAD
    writer_state *state;
    rp_ref ref;
} cell_ref;

static PyObject *cell_new(writer_state *state, rp_ref ref)
{
    cell_ref *cell = PyObject_New(cell_ref, &core_WeakCellRef);
    if (cell == NULL) return NULL;
    cell->state = state;
    state->refs++;
    cell->ref = ref;
    return (PyObject *)cell;
}

static void cell_dealloc(cell_ref *cell)
{
    writer_state_unref(cell->state);
    PyObject_Free(cell);
}

static bool is_there(const writer_state *state, rp_ref ref)
{
    return state->writer != NULL && rp_trajectory_writer_has(state->writer, ref);
}

/* The dtype and shape of a row; RuntimeError if it is gone. */
static int spec_of(writer_state *state, rp_ref ref, rp_spec *spec)
{
    if (writer_settle(state) < 0) return -1;
    if (is_there(state, ref) && rp_trajectory_writer_spec(state->writer, ref.column, spec))
        return 0;
    PyErr_SetString(PyExc_RuntimeError, expired_text);
    return -1;
}

/* A new array for `rows` rows of that spec, or for one without the row dimension if -1. */
static PyObject *array_for(const rp_spec *spec, Py_ssize_t rows)
{
    rp_shape shape = spec->shape;
    if (rows >= 0) {
        shape.rank++;
        shape.dims[0] = rows;
        memcpy(shape.dims + 1, spec->shape.dims,
               (size_t)spec->shape.rank * sizeof(shape.dims[0]));
    }
    return core_array_new(spec->dtype, &shape);
}

static size_t bytes_of(const rp_spec *spec)
{
    size_t elements = 0;
    if (rp_shape_elements(&spec->shape, &elements) != RP_OK) return 0;
    return elements * rp_dtype_size(spec->dtype);
}

/* Cells are numbered from 0 in each column; a column has not 2^44 of them. */
static PyObject *strings_key(uint32_t column, uint64_t cell)
{
    return PyLong_FromUnsignedLongLong((uint64_t)column << 44 | cell);
}

/* The array of strings of a cell, borrowed. */
static PyObject *find_strings(const writer_state *state, rp_ref ref)
{
    PyObject *key = strings_key(ref.column, ref.cell);
    PyObject *found = key == NULL || state->strings == NULL
                          ? NULL
                          : PyDict_GetItemWithError(state->strings, key);
    Py_XDECREF(key);
    if (found == NULL && !PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, expired_text);
    return found;
}

void core_history_keep_strings(core_history *h, uint64_t cell, const rp_tensor *tensor)
{
    writer_state *state = h->state;
    size_t elements = 0;
    PyObject *key = strings_key(h->column, cell), *old = NULL, *array = NULL;
    if (state->strings == NULL) state->strings = PyDict_New();
    if (key == NULL || state->strings == NULL) goto out;
    array = core_array_new(RP_STRING, &tensor->shape);
    if (array == NULL || rp_shape_elements(&tensor->shape, &elements) != RP_OK) goto out;
    if (core_fill_strings(array, tensor->data, elements) < 0) goto out;
    if (PyDict_SetItem(state->strings, key, array) < 0) goto out;
    if (cell < (uint64_t)h->options.history) goto out;
    old = strings_key(h->column, cell - (uint64_t)h->options.history);
    if (old != NULL && PyDict_Contains(state->strings, old) == 1)
        (void)PyDict_DelItem(state->strings, old);
out:
    PyErr_Clear();
    Py_XDECREF(key);
    Py_XDECREF(old);
    Py_XDECREF(array);
}

/* Copies rows of strings into `array`, an object array. */
static int copy_strings(const writer_state *state, const rp_ref *refs, Py_ssize_t count,
                        PyObject *array)
{
    PyObject **to = PyArray_DATA((PyArrayObject *)array);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *row = find_strings(state, refs[i]);
        if (row == NULL) return -1;
        npy_intp elements = PyArray_SIZE((PyArrayObject *)row);
        PyObject **from = PyArray_DATA((PyArrayObject *)row);
        for (npy_intp k = 0; k < elements; k++) {
            PyObject *old = to[k];
            Py_INCREF(from[k]);
            to[k] = from[k];
            Py_XDECREF(old);
        }
        to += elements;
    }
    return 0;
}

/* Copies rows, all of one spec, into `array`. The writer is ours meanwhile. */
static int copy_rows(writer_state *state, const rp_spec *spec, const rp_ref *refs,
                     Py_ssize_t count, PyObject *array)
{
    size_t bytes = bytes_of(spec);
    char *to = PyArray_BYTES((PyArrayObject *)array);
    rp_status st = RP_OK;
    rp_error err = {0};

    if (spec->dtype == RP_STRING) return copy_strings(state, refs, count, array);
    if (bytes == 0) return 0;
    if (writer_enter(state) < 0) return -1;
    rp_trajectory_writer *writer = state->writer; /* which may be shut meanwhile */
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; st == RP_OK && i < count; i++)
        st = rp_trajectory_writer_copy(writer, refs[i], to + (size_t)i * bytes, bytes, &err);
    Py_END_ALLOW_THREADS
    writer_leave(state);
    if (st == RP_OK) return 0;
    core_raise(st, &err);
    return -1;
}

static PyObject *cell_numpy(cell_ref *cell, PyObject *unused)
{
    rp_spec spec;
    (void)unused;
    if (spec_of(cell->state, cell->ref, &spec) < 0) return NULL;
    PyObject *array = array_for(&spec, -1);
    if (array != NULL && copy_rows(cell->state, &spec, &cell->ref, 1, array) < 0)
        Py_CLEAR(array);
    return array;
}

static PyObject *cell_expired(cell_ref *cell, void *unused)
{
    (void)unused;
    if (writer_settle(cell->state) < 0) return NULL;
    return PyBool_FromLong(!is_there(cell->state, cell->ref));
}

static PyObject *cell_shape(cell_ref *cell, void *unused)
{
    rp_spec spec;
    (void)unused;
    return spec_of(cell->state, cell->ref, &spec) < 0 ? NULL
                                                      : core_shape_tuple(&spec.shape, -1);
}

static PyObject *cell_dtype(cell_ref *cell, void *unused)
{
    rp_spec spec;
    (void)unused;
    if (spec_of(cell->state, cell->ref, &spec) < 0) return NULL;
    return (PyObject *)core_descr(spec.dtype);
}

static PyMethodDef cell_methods[] = {
    {"numpy", (PyCFunction)(void (*)(void))cell_numpy, METH_NOARGS,
     "numpy($self, /)\n--\n\nA copy of the value. RuntimeError if it has expired."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef cell_properties[] = {
    {"expired", (getter)cell_expired, NULL, "Whether items can no longer refer to it.", NULL},
    {"shape", (getter)cell_shape, NULL, "The shape of the value.", NULL},
    {"dtype", (getter)cell_dtype, NULL, "The dtype of the value.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject core_WeakCellRef = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.WeakCellRef",
    .tp_basicsize = sizeof(cell_ref),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A reference to one value that was appended to a writer.",
    .tp_dealloc = (destructor)cell_dealloc,
    .tp_methods = cell_methods,
    .tp_getset = cell_properties,
};

static core_column *column_alloc(PyTypeObject *type, writer_state *state, Py_ssize_t count,
                                 bool squeeze)
{
    core_column *c = type == &core_TrajectoryColumn
                         ? PyObject_NewVar(core_column, type, count)
                         : (core_column *)type->tp_alloc(type, count);
    if (c == NULL) return NULL;
    c->state = state;
    if (state != NULL) state->refs++;
    c->objects = NULL;
    c->squeeze = squeeze;
    return c;
}

static void column_dealloc(core_column *c)
{
    writer_state_unref(c->state);
    Py_XDECREF(c->objects);
    Py_TYPE(c)->tp_free((PyObject *)c);
}

/* ValueError: a column takes no None. `path` is what was indexed, and with what. */
static PyObject *refuse_none(PyObject *path, PyObject *got)
{
    if (path != NULL && got != NULL)
        PyErr_Format(PyExc_ValueError,
                     "TrajectoryColumns cannot contain any None data references: "
                     "TrajectoryColumn at path %R got %R.",
                     path, got);
    return NULL;
}

/* Makes a column of objects: of references to cells of one writer, or of anything else. */
static PyObject *column_of_objects(PyTypeObject *type, PyObject *tuple, bool squeeze)
{
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    writer_state *state = NULL;
    bool all_cells = count > 0;
    for (Py_ssize_t i = 0; i < count && all_cells; i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        all_cells = Py_TYPE(item) == &core_WeakCellRef;
        if (!all_cells) break;
        if (i == 0) state = ((cell_ref *)item)->state;
        all_cells = state == ((cell_ref *)item)->state;
    }
    core_column *c =
        column_alloc(type, all_cells ? state : NULL, all_cells ? count : 0, squeeze);
    if (c == NULL) return NULL;
    if (all_cells) {
        for (Py_ssize_t i = 0; i < count; i++)
            c->refs[i] = ((cell_ref *)PyTuple_GET_ITEM(tuple, i))->ref;
    } else {
        c->objects = tuple;
        Py_INCREF(tuple);
    }
    return (PyObject *)c;
}

static PyObject *column_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data_references", "squeeze", "path", NULL};
    PyObject *given, *path = Py_None, *made = NULL;
    int squeeze = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$pO:TrajectoryColumn", names, &given,
                                     &squeeze, &path))
        return NULL;
    PyObject *tuple = PySequence_Tuple(given);
    if (tuple == NULL) return NULL;
    if (squeeze && PyTuple_GET_SIZE(tuple) != 1) {
        PyErr_Format(
            PyExc_ValueError,
            "Columns must contain exactly one data reference when squeeze set, got %zd",
            PyTuple_GET_SIZE(tuple));
        goto out;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (PyTuple_GET_ITEM(tuple, i) == Py_None) {
            PyObject *list = PySequence_List(tuple);
            refuse_none(path, list);
            Py_XDECREF(list);
            goto out;
        }
    made = column_of_objects(type, tuple, squeeze != 0);
out:
    Py_DECREF(tuple);
    return made;
}

static Py_ssize_t column_length(core_column *c)
{
    return c->objects != NULL ? PyTuple_GET_SIZE(c->objects) : Py_SIZE(c);
}

/* The references as a tuple of objects. */
static PyObject *column_references(core_column *c, void *unused)
{
    (void)unused;
    if (c->objects != NULL) {
        Py_INCREF(c->objects);
        return c->objects;
    }
    PyObject *tuple = PyTuple_New(Py_SIZE(c));
    for (Py_ssize_t i = 0; tuple != NULL && i < Py_SIZE(c); i++) {
        PyObject *cell = cell_new(c->state, c->refs[i]);
        if (cell == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, cell);
    }
    return tuple;
}

static PyObject *column_iter(core_column *c)
{
    PyObject *tuple = column_references(c, NULL);
    if (tuple == NULL) return NULL;
    PyObject *iterator = PyObject_GetIter(tuple);
    Py_DECREF(tuple);
    return iterator;
}

/* Rows `start`, `start + step`, ... of a column as another one. */
static PyObject *column_part(core_column *c, Py_ssize_t start, Py_ssize_t count,
                             Py_ssize_t step, bool squeeze)
{
    core_column *part =
        column_alloc(&core_TrajectoryColumn, c->state, c->objects == NULL ? count : 0, squeeze);
    if (part == NULL) return NULL;
    if (c->objects == NULL) {
        for (Py_ssize_t i = 0; i < count; i++) part->refs[i] = c->refs[start + i * step];
        return (PyObject *)part;
    }
    part->objects = PyTuple_New(count);
    for (Py_ssize_t i = 0; part->objects != NULL && i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(c->objects, start + i * step);
        Py_INCREF(item);
        PyTuple_SET_ITEM(part->objects, i, item);
    }
    if (part->objects == NULL) Py_CLEAR(part);
    return (PyObject *)part;
}

static int column_index(PyObject *key, Py_ssize_t length, Py_ssize_t *index)
{
    *index = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (*index == -1 && PyErr_Occurred()) return -1;
    if (*index < 0) *index += length;
    if (*index >= 0 && *index < length) return 0;
    PyErr_SetString(PyExc_IndexError, "tuple index out of range");
    return -1;
}

/* Rows by a list of their numbers. The numbers are taken from a copy of it: to ask one for its
 * value may run Python, which may change the list. */
static PyObject *column_pick(core_column *c, PyObject *list)
{
    PyObject *numbers = PyList_AsTuple(list), *made = NULL;
    PyObject *all = numbers == NULL ? NULL : column_references(c, NULL);
    Py_ssize_t count = numbers == NULL ? 0 : PyTuple_GET_SIZE(numbers), at;
    PyObject *tuple = all == NULL ? NULL : PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        if (column_index(PyTuple_GET_ITEM(numbers, i), PyTuple_GET_SIZE(all), &at) < 0) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(PyTuple_GET_ITEM(all, at)));
    }
    if (tuple != NULL) made = column_of_objects(&core_TrajectoryColumn, tuple, false);
    Py_XDECREF(numbers);
    Py_XDECREF(all);
    Py_XDECREF(tuple);
    return made;
}

static bool is_integer(PyObject *key)
{
    return PyLong_Check(key) || PyArray_IsScalar(key, Integer);
}

static PyObject *column_subscript(core_column *c, PyObject *key)
{
    Py_ssize_t length = column_length(c), start, stop, step;
    if (is_integer(key)) {
        if (column_index(key, length, &start) < 0) return NULL;
        return column_part(c, start, 1, 1, true);
    }
    if (PySlice_Check(key)) {
        if (PySlice_Unpack(key, &start, &stop, &step) < 0) return NULL;
        Py_ssize_t count = PySlice_AdjustIndices(length, &start, &stop, step);
        return column_part(c, start, count, step, false);
    }
    if (PyList_Check(key)) return column_pick(c, key);
    PyErr_Format(PyExc_TypeError, "TrajectoryColumn indices must be integers or slices, not %R",
                 (PyObject *)Py_TYPE(key));
    return NULL;
}

/* The first of the references, for what they all have in common. */
static PyObject *column_first(core_column *c, const char *attribute)
{
    if (PyTuple_GET_SIZE(c->objects) > 0)
        return PyObject_GetAttrString(PyTuple_GET_ITEM(c->objects, 0), attribute);
    PyErr_SetString(PyExc_IndexError, "tuple index out of range");
    return NULL;
}

static int column_spec(core_column *c, rp_spec *spec)
{
    if (Py_SIZE(c) > 0) return spec_of(c->state, c->refs[0], spec);
    PyErr_SetString(PyExc_IndexError, "tuple index out of range");
    return -1;
}

static PyObject *column_shape(core_column *c, void *unused)
{
    rp_spec spec;
    (void)unused;
    if (c->objects == NULL) {
        if (column_spec(c, &spec) < 0) return NULL;
        return core_shape_tuple(&spec.shape, c->squeeze ? -1 : Py_SIZE(c));
    }
    PyObject *shape = column_first(c, "shape");
    PyObject *inner = shape == NULL ? NULL : PySequence_Tuple(shape), *whole = NULL;
    Py_XDECREF(shape);
    if (inner == NULL || c->squeeze) return inner;
    PyObject *outer = Py_BuildValue("(n)", PyTuple_GET_SIZE(c->objects));
    if (outer != NULL) whole = PySequence_Concat(outer, inner);
    Py_XDECREF(outer);
    Py_DECREF(inner);
    return whole;
}

static PyObject *column_dtype(core_column *c, void *unused)
{
    rp_spec spec;
    (void)unused;
    if (c->objects != NULL) return column_first(c, "dtype");
    return column_spec(c, &spec) < 0 ? NULL : (PyObject *)core_descr(spec.dtype);
}

static PyObject *numpy_stack(PyObject *arrays)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL) return NULL;
    PyObject *array = PyObject_CallMethod(numpy, "stack", "(O)", arrays);
    Py_DECREF(numpy);
    return array;
}

/* What numpy.stack() makes of the references: the way for those that are not all alike. */
static PyObject *column_stack(core_column *c)
{
    PyObject *all = column_references(c, NULL), *array = NULL;
    PyObject *arrays = all == NULL ? NULL : PyList_New(0);
    for (Py_ssize_t i = 0; arrays != NULL && i < PyTuple_GET_SIZE(all); i++) {
        PyObject *one = PyObject_CallMethod(PyTuple_GET_ITEM(all, i), "numpy", NULL);
        if (one == NULL || PyList_Append(arrays, one) < 0) Py_CLEAR(arrays);
        Py_XDECREF(one);
    }
    if (arrays != NULL && c->squeeze && PyList_GET_SIZE(arrays) == 1) {
        array = PyList_GET_ITEM(arrays, 0);
        Py_INCREF(array);
    } else if (arrays != NULL) {
        array = numpy_stack(arrays);
    }
    Py_XDECREF(arrays);
    Py_XDECREF(all);
    return array;
}

/* Whether any reference has expired; -1 with an exception. */
static int has_expired(core_column *c)
{
    if (c->objects == NULL) {
        if (c->state == NULL) return 0; /* it is empty */
        if (writer_settle(c->state) < 0) return -1;
        for (Py_ssize_t i = 0; i < Py_SIZE(c); i++)
            if (!is_there(c->state, c->refs[i])) return 1;
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c->objects); i++) {
        PyObject *value = PyObject_GetAttrString(PyTuple_GET_ITEM(c->objects, i), "expired");
        int is = value == NULL ? -1 : PyObject_IsTrue(value);
        Py_XDECREF(value);
        if (is != 0) return is;
    }
    return 0;
}

static PyObject *column_numpy(core_column *c, PyObject *unused)
{
    rp_spec spec, other;
    (void)unused;
    int expired = has_expired(c);
    if (expired != 0) {
        if (expired > 0)
            PyErr_SetString(PyExc_RuntimeError,
                            "Cannot convert TrajectoryColumn with expired data references to "
                            "numpy array.");
        return NULL;
    }
    if (c->objects != NULL || Py_SIZE(c) == 0) return column_stack(c);
    if (column_spec(c, &spec) < 0) return NULL;
    for (Py_ssize_t i = 1; i < Py_SIZE(c); i++) {
        if (c->refs[i].column == c->refs[0].column) continue;
        if (spec_of(c->state, c->refs[i], &other) < 0) return NULL;
        if (other.dtype != spec.dtype || !rp_shape_equal(&other.shape, &spec.shape))
            return column_stack(c);
    }
    PyObject *array = array_for(&spec, c->squeeze ? -1 : Py_SIZE(c));
    if (array != NULL &&
        copy_rows(c->state, &spec, c->refs, c->squeeze ? 1 : Py_SIZE(c), array) < 0)
        Py_CLEAR(array);
    return array;
}

static PyMethodDef column_methods[] = {
    {"numpy", (PyCFunction)(void (*)(void))column_numpy, METH_NOARGS,
     "numpy($self, /)\n--\n\n"
     "A copy of the rows, stacked; of a squeezed column, of its only row.\n\n"
     "RuntimeError if a row has expired."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef column_properties[] = {
    {"shape", (getter)column_shape, NULL,
     "The shape of the column, rows first; of a squeezed one, of its row.", NULL},
    {"dtype", (getter)column_dtype, NULL, "The dtype of its rows.", NULL},
    {"_data_references", (getter)column_references, NULL, "Its cells.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef column_members[] = {
    {"is_squeezed", T_BOOL, offsetof(core_column, squeeze), 0,
     "Whether it is one row, shown to the reader without the row dimension."},
    {NULL, 0, 0, 0, NULL},
};

static PyMappingMethods column_mapping = {
    .mp_length = (lenfunc)column_length,
    .mp_subscript = (binaryfunc)column_subscript,
};

PyTypeObject core_TrajectoryColumn = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.TrajectoryColumn",
    .tp_basicsize = offsetof(core_column, refs),
    .tp_itemsize = sizeof(rp_ref),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc =
        "TrajectoryColumn(data_references, *, squeeze=False, path=None)\n--\n\n"
        "A column of an item: rows that were appended to a writer.\n\n"
        "Made by indexing `writer.history`. It has a length, is iterated cell by cell, and\n"
        "indexed by an int (which makes a squeezed column), a slice or a list of ints.",
    .tp_new = column_new,
    .tp_dealloc = (destructor)column_dealloc,
    .tp_iter = (getiterfunc)column_iter,
    .tp_as_mapping = &column_mapping,
    .tp_methods = column_methods,
    .tp_getset = column_properties,
    .tp_members = column_members,
};

/* The path as messages show it, as UTF-8. */
static PyObject *path_name(PyObject *path)
{
    PyObject *text = core_path_text(path);
    PyObject *bytes =
        text == NULL ? NULL : PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    Py_XDECREF(text);
    return bytes;
}

PyObject *core_history_new(writer_state *state, PyObject *path, uint32_t column,
                           const rp_column_options *options, int64_t length)
{
    PyObject *name = path_name(path);
    core_history *h = name == NULL ? NULL : PyObject_New(core_history, &core_ColumnHistory);
    if (h == NULL) {
        Py_XDECREF(name);
        return NULL;
    }
    memset((char *)h + sizeof(PyObject), 0, sizeof(*h) - sizeof(PyObject));
    h->state = state;
    state->refs++;
    h->path = path;
    Py_INCREF(path);
    h->name = name;
    h->column = column;
    h->options = *options;
    h->limit =
        options->history > state->default_history ? options->history : state->default_history;
    h->length = length > 0 ? length - 1 : 0;
    if (length > 0) {
        if (core_history_reserve(h) < 0) {
            Py_DECREF(h);
            return NULL;
        }
        core_history_push(h);
    }
    return (PyObject *)h;
}

static void history_dealloc(core_history *h)
{
    writer_state_unref(h->state);
    Py_XDECREF(h->path);
    Py_XDECREF(h->name);
    Py_XDECREF((PyObject *)h->descr);
    PyMem_Free(h->ring);
    PyObject_Free(h);
}

int core_history_reserve(core_history *h)
{
    if (h->kept < h->capacity || h->kept == h->limit) return 0;
    int64_t capacity = h->capacity > 0 ? 2 * h->capacity : FIRST_CELLS;
    int64_t *ring = PyMem_Malloc((size_t)capacity * sizeof(*ring));
    if (ring == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int64_t i = h->length - h->kept; i < h->length; i++)
        ring[i & (capacity - 1)] = h->ring[i & (h->capacity - 1)];
    PyMem_Free(h->ring);
    h->ring = ring;
    h->capacity = capacity;
    return 0;
}

void core_history_clear(core_history *h)
{
    h->length = h->kept = 0;
}

int core_history_learn(core_history *h, const rp_tensor *tensor)
{
    size_t elements = 0;
    if (h->known) return 0;
    if (rp_shape_elements(&tensor->shape, &elements) != RP_OK) elements = 0;
    h->descr = core_descr(tensor->dtype);
    if (h->descr == NULL) return -1;
    h->dtype = tensor->dtype;
    h->shape = tensor->shape;
    h->row_bytes = elements * rp_dtype_size(tensor->dtype);
    h->known = true;
    return 0;
}

/* The cell of a step; -1: none, or no longer. */
static inline int64_t cell_at(const core_history *h, int64_t step)
{
    if (step < h->length - h->kept || step >= h->length) return -1;
    return h->ring[step & (h->capacity - 1)];
}

/* What a list of these steps would be. */
static PyObject *cells_list(core_history *h, int64_t missing, int64_t start, int64_t count,
                            int64_t step)
{
    bool is_long = missing + count > SHOWN_CELLS;
    PyObject *list = PyList_New(0);
    if (is_long && missing > SHOWN_CELLS / 2) missing = SHOWN_CELLS / 2;
    if (is_long && count > SHOWN_CELLS / 2) count = SHOWN_CELLS / 2;
    for (int64_t i = -missing; list != NULL && i < count; i++) {
        int64_t cell = i < 0 ? -1 : cell_at(h, start + i * step);
        PyObject *item = Py_None;
        if (cell >= 0)
            item = cell_new(h->state, (rp_ref){h->column, (uint64_t)cell});
        else
            Py_INCREF(item);
        if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* ValueError: some of the steps have no value. */
static PyObject *refuse_steps(core_history *h, PyObject *key, PyObject *list)
{
    PyObject *last = PyTuple_Pack(1, key);
    PyObject *path = last == NULL ? NULL : PySequence_Concat(h->path, last);
    refuse_none(path, list);
    Py_XDECREF(last);
    Py_XDECREF(path);
    Py_XDECREF(list);
    return NULL;
}

/* A column of `count` steps from `start`; before them `missing` ones that never were. */
static PyObject *history_part(core_history *h, PyObject *key, int64_t missing, int64_t start,
                              int64_t count, int64_t step, bool squeeze)
{
    if (missing > 0) return refuse_steps(h, key, cells_list(h, missing, start, count, step));
    core_column *c = column_alloc(&core_TrajectoryColumn, h->state, (Py_ssize_t)count, squeeze);
    if (c == NULL) return NULL;
    for (int64_t i = 0; i < count; i++) {
        int64_t cell = cell_at(h, start + i * step);
        if (cell < 0) {
            Py_DECREF(c);
            return refuse_steps(h, key, cells_list(h, 0, start, count, step));
        }
        c->refs[i] = (rp_ref){h->column, (uint64_t)cell};
    }
    return (PyObject *)c;
}

/* A step by its number; a negative one counts from the end, also beyond the beginning. */
static int history_index(const core_history *h, PyObject *key, int64_t *step)
{
    Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred()) return -1;
    *step = index < 0 ? index + h->length : index;
    if (index < h->length) return 0;
    PyErr_SetString(PyExc_IndexError, "list index out of range");
    return -1;
}

/* Like the slice of a list, but that a start before the first step is not moved to it: those
 * who ask for the last five steps want five. */
static PyObject *history_slice(core_history *h, PyObject *slice)
{
    Py_ssize_t start, stop, step, missing = 0;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return NULL;
    bool has_start = ((PySliceObject *)slice)->start != Py_None;
    if (start < -PY_SSIZE_T_MAX) start = -PY_SSIZE_T_MAX;
    if (has_start && step > 0 && start < -h->length) missing = -(start + (Py_ssize_t)h->length);
    Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)h->length, &start, &stop, step);
    return history_part(h, slice, missing, start, count, step, false);
}

/* Steps by a list of their numbers. */
static PyObject *history_pick(core_history *h, PyObject *list)
{
    PyObject *numbers = PyList_AsTuple(list); /* which may change the list */
    if (numbers == NULL) return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(numbers), done = 0;
    bool has_none = false;
    core_column *c = column_alloc(&core_TrajectoryColumn, h->state, count, false);
    for (; c != NULL && done < count; done++) {
        int64_t step, cell;
        if (history_index(h, PyTuple_GET_ITEM(numbers, done), &step) < 0) break;
        cell = cell_at(h, step);
        if (cell < 0) has_none = true;
        c->refs[done] = (rp_ref){h->column, (uint64_t)cell};
    }
    Py_DECREF(numbers);
    if (c == NULL || done < count) {
        Py_XDECREF(c);
        return NULL;
    }
    if (!has_none) return (PyObject *)c;
    PyObject *shown = PyList_New(0);
    for (Py_ssize_t i = 0; shown != NULL && i < count && i < SHOWN_CELLS; i++) {
        PyObject *item = Py_None;
        if ((int64_t)c->refs[i].cell >= 0)
            item = cell_new(h->state, c->refs[i]);
        else
            Py_INCREF(item);
        if (item == NULL || PyList_Append(shown, item) < 0) Py_CLEAR(shown);
        Py_XDECREF(item);
    }
    Py_DECREF(c);
    return refuse_steps(h, list, shown);
}

static PyObject *history_subscript(core_history *h, PyObject *key)
{
    int64_t step;
    if (PySlice_Check(key)) return history_slice(h, key);
    if (is_integer(key)) {
        if (history_index(h, key, &step) < 0) return NULL;
        return history_part(h, key, 0, step, 1, 1, true);
    }
    if (PyList_Check(key)) return history_pick(h, key);
    PyErr_Format(PyExc_TypeError, "_ColumnHistory indices must be integers or slices, not %R",
                 (PyObject *)Py_TYPE(key));
    return NULL;
}

static Py_ssize_t history_length(core_history *h)
{
    return (Py_ssize_t)h->length;
}

static PyObject *history_list(core_history *h)
{
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list != NULL && i < h->length; i++) {
        int64_t cell = cell_at(h, i);
        PyObject *item = Py_None;
        if (cell >= 0)
            item = cell_new(h->state, (rp_ref){h->column, (uint64_t)cell});
        else
            Py_INCREF(item);
        if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *history_iter(core_history *h)
{
    PyObject *list = history_list(h);
    if (list == NULL) return NULL;
    PyObject *iterator = PyObject_GetIter(list);
    Py_DECREF(list);
    return iterator;
}

static PyObject *history_repr(core_history *h)
{
    return PyUnicode_FromFormat("ColumnHistory(path=%R, steps=%lld)", h->path,
                                (long long)h->length);
}

static PyObject *history_path(core_history *h, PyObject *unused)
{
    (void)unused;
    Py_INCREF(h->path);
    return h->path;
}

static PyObject *history_can_set_last(core_history *h, void *unused)
{
    (void)unused;
    const int64_t *last = core_history_last(h);
    return PyBool_FromLong(last != NULL && *last < 0);
}

static PyMethodDef history_methods[] = {
    {"path", (PyCFunction)(void (*)(void))history_path, METH_NOARGS,
     "path($self, /)\n--\n\nThe keys and positions on the way to this leaf, a tuple."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef history_properties[] = {
    {"can_set_last", (getter)history_can_set_last, NULL,
     "Whether the latest step has no value yet.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef history_members[] = {
    {"_number", T_UINT, offsetof(core_history, column), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMappingMethods history_mapping = {
    .mp_length = (lenfunc)history_length,
    .mp_subscript = (binaryfunc)history_subscript,
};

PyTypeObject core_ColumnHistory = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.ColumnHistory",
    .tp_basicsize = sizeof(core_history),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The values of one leaf, by step.\n\n"
              "Index it by an int, a slice or a list of ints to get a TrajectoryColumn. Steps\n"
              "count from the beginning of the episode, also when early ones are lost.",
    .tp_dealloc = (destructor)history_dealloc,
    .tp_iter = (getiterfunc)history_iter,
    .tp_repr = (reprfunc)history_repr,
    .tp_as_mapping = &history_mapping,
    .tp_methods = history_methods,
    .tp_getset = history_properties,
    .tp_members = history_members,
};
