/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.WeakCellRef; see cell.h.
 *
 * Invariants:
 *   C1  a cell counts as a reference to the writer's state as long as it lives;
 *   C2  for a column of strings, the state's dict has the arrays of exactly those cells that
 *       the writer keeps, except those for which there was no memory. */
#include "cell.h"

static const char expired_text[] = "Cannot access data from expired WeakCellRef";

PyObject *core_cell_new(writer_state *state, rp_ref ref)
{
    core_cell *cell = PyObject_New(core_cell, &core_WeakCellRef);
    if (cell == NULL) return NULL;
    cell->state = writer_state_ref(state);
    cell->ref = ref;
    return (PyObject *)cell;
}

static void cell_dealloc(core_cell *cell)
{
    writer_state_unref(cell->state);
    PyObject_Free(cell);
}

bool core_cell_exists(const writer_state *state, rp_ref ref)
{
    return state->writer != NULL && rp_trajectory_writer_has(state->writer, ref);
}

int core_cell_spec(writer_state *state, rp_ref ref, rp_spec *spec)
{
    if (writer_settle(state) < 0) return -1;
    if (core_cell_exists(state, ref) &&
        rp_trajectory_writer_spec(state->writer, ref.column, spec))
        return 0;
    PyErr_SetString(PyExc_RuntimeError, expired_text);
    return -1;
}

/* Makes an array for `rows` rows of that spec. If `rows` is -1, makes one for a single row,
 * without a row dimension. */
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

/* The key of a cell in the dict of strings. Cells of a column are numbered from 0, and are
 * fewer than 2^44. */
static PyObject *strings_key(uint32_t column, uint64_t cell)
{
    assert(cell < UINT64_C(1) << 44 && column < RP_MAX_COLUMNS);
    return PyLong_FromUnsignedLongLong((uint64_t)column << 44 | cell);
}

/* Returns the array of strings of a cell, borrowed. NULL with RuntimeError if it is not kept.
 */
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

void core_cell_keep_strings(writer_state *state, rp_ref ref, int32_t history,
                            const rp_tensor *tensor)
{
    size_t elements = 0;
    PyObject *key = strings_key(ref.column, ref.cell), *old = NULL, *array = NULL;
    assert(tensor->dtype == RP_STRING && history > 0);
    if (state->strings == NULL) state->strings = PyDict_New();
    if (key == NULL || state->strings == NULL) goto out;
    array = core_array_new(RP_STRING, &tensor->shape);
    if (array == NULL || rp_shape_elements(&tensor->shape, &elements) != RP_OK) goto out;
    if (core_fill_strings(array, tensor->data, elements) < 0) goto out;
    if (PyDict_SetItem(state->strings, key, array) < 0) goto out;
    if (ref.cell < (uint64_t)history) goto out;
    old = strings_key(ref.column, ref.cell - (uint64_t)history);
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

/* Copies rows, all of one spec, into `array`. Acquires the writer for that. */
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
    rp_trajectory_writer *writer = state->writer; /* close() may set it to NULL meanwhile */
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; st == RP_OK && i < count; i++)
        st = rp_trajectory_writer_copy(writer, refs[i], to + (size_t)i * bytes, bytes, &err);
    Py_END_ALLOW_THREADS
    writer_leave(state);
    if (st == RP_OK) return 0;
    core_raise(st, &err);
    return -1;
}

PyObject *core_cells_copy(writer_state *state, const rp_spec *spec, const rp_ref *refs,
                          Py_ssize_t count, bool squeeze)
{
    assert(count >= 0 && (!squeeze || count == 1));
    PyObject *array = array_for(spec, squeeze ? -1 : count);
    if (array != NULL && copy_rows(state, spec, refs, count, array) < 0) Py_CLEAR(array);
    return array;
}

static PyObject *cell_numpy(core_cell *cell, PyObject *unused)
{
    rp_spec spec;
    (void)unused;
    if (core_cell_spec(cell->state, cell->ref, &spec) < 0) return NULL;
    return core_cells_copy(cell->state, &spec, &cell->ref, 1, true);
}

static PyObject *cell_expired(core_cell *cell, void *unused)
{
    (void)unused;
    if (writer_settle(cell->state) < 0) return NULL;
    return PyBool_FromLong(!core_cell_exists(cell->state, cell->ref));
}

static PyObject *cell_shape(core_cell *cell, void *unused)
{
    rp_spec spec;
    (void)unused;
    return core_cell_spec(cell->state, cell->ref, &spec) < 0
               ? NULL
               : core_shape_tuple(&spec.shape, -1);
}

static PyObject *cell_dtype(core_cell *cell, void *unused)
{
    rp_spec spec;
    (void)unused;
    if (core_cell_spec(cell->state, cell->ref, &spec) < 0) return NULL;
    return (PyObject *)core_descr(spec.dtype);
}

static PyMethodDef cell_methods[] = {
    {"numpy", CORE_METHOD(cell_numpy), METH_NOARGS,
     "numpy($self, /)\n--\n\nReturns a copy of the value. RuntimeError if it has expired."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef cell_properties[] = {
    {"expired", (getter)cell_expired, NULL, "True if items can no longer use the value.", NULL},
    {"shape", (getter)cell_shape, NULL, "The shape of the value.", NULL},
    {"dtype", (getter)cell_dtype, NULL, "The dtype of the value.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject core_WeakCellRef = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.WeakCellRef",
    .tp_basicsize = sizeof(core_cell),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A reference to one value that was appended to a writer.",
    .tp_dealloc = (destructor)cell_dealloc,
    .tp_methods = cell_methods,
    .tp_getset = cell_properties,
};
