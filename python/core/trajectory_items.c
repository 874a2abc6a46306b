/* SPDX-License-Identifier: Apache-2.0 */
/* Items of a trajectory writer: creating them, and waiting until they are confirmed.
 *
 * The C writer checks an item. If it refuses the item, create_item() finds the reason, to raise
 * the error with Reverb's text. */
#include "keys.h"
#include "trajectory_column.h"
#include "trajectory_writer.h"

#include <math.h>

enum {
    COLUMNS_INSIDE = 16, /* columns of an item that need no allocation */
    ASK_MS = 1000,       /* how long to wait for the signature that an item does not match */
};

/* The arguments and the result of create_call(). */
typedef struct new_item {
    core_writer *w;
    const char *table;
    double priority;
    PyObject *trajectory; /* borrowed */
    PyObject *structure;  /* of the trajectory; a reference */
    const rp_item_column *columns;
    size_t count;
    uint64_t key;
} new_item;

static rp_status create_call(void *arg, rp_wait wait, rp_error *err)
{
    new_item *item = arg;
    rp_trajectory_writer *writer = item->w->state->writer;
    assert(writer != NULL && item->w->state->busy && item->count > 0);
    return rp_trajectory_writer_create_item(
        writer, &(rp_new_item){item->table, item->priority, item->columns, item->count}, wait,
        &item->key, err);
}

/* Moves a structure to the front of the cache `known`, unless it was replaced meanwhile. */
static void prefer(PyObject **known, PyObject *structure)
{
    int at = 0;
    while (at < SHAPES && known[at] != structure) at++;
    if (at == SHAPES) return;
    memmove(&known[1], &known[0], (size_t)at * sizeof(structure));
    known[0] = structure;
}

/* Inserts a structure at the front of the cache `known`, and drops the last. Takes the
 * reference. */
static void remember(PyObject **known, PyObject *structure)
{
    PyObject *last = known[SHAPES - 1];
    memmove(&known[1], &known[0], (SHAPES - 1) * sizeof(structure));
    known[0] = structure;
    Py_XDECREF(last);
}

/* Flattens an item, with the help of a cached structure if one matches, and returns its
 * structure, a new reference. NULL on failure. Flattening a mapping may run Python code, which
 * may create other items and so change the cache. */
static PyObject *flatten_item(core_writer *w, PyObject *trajectory, core_leaves *leaves)
{
    PyObject **known = w->item_structures;
    for (int i = 0; i < SHAPES && known[i] != NULL; i++) {
        PyObject *structure = Py_NewRef(known[i]);
        int same = core_structure_flatten(structure, trajectory, leaves);
        if (same == 1) {
            prefer(known, structure);
            return structure;
        }
        Py_DECREF(structure);
        if (same < 0) return NULL;
    }
    PyObject *structure = core_structure_of(trajectory);
    if (structure == NULL) return NULL;
    remember(known, Py_NewRef(structure));
    if (core_flatten(trajectory, leaves) < 0) Py_CLEAR(structure);
    return structure;
}

static int refuse_leaves(PyObject *trajectory)
{
    PyErr_Format(PyExc_TypeError,
                 "All leaves of `trajectory` must be `TrajectoryColumn` but got %S. These are "
                 "slices of the history, such as writer.history['obs'][-2:]",
                 trajectory);
    return -1;
}

/* Makes the columns of an item from its leaves. */
static int gather(core_writer *w, PyObject *trajectory, const core_leaves *leaves,
                  rp_item_column *columns)
{
    for (Py_ssize_t i = 0; i < leaves->count; i++)
        if (!core_column_check(leaves->items[i])) return refuse_leaves(trajectory);
    for (Py_ssize_t i = 0; i < leaves->count; i++) {
        const core_column *c = (core_column *)leaves->items[i];
        size_t count = (size_t)Py_SIZE(c);
        if (count == 0 && (c->objects == NULL || PyTuple_GET_SIZE(c->objects) == 0)) {
            PyErr_Format(PyExc_ValueError,
                         "trajectory must not be empty. Column %zd of it has no rows.", i);
            return -1;
        }
        if (c->state != w->state) {
            PyErr_Format(PyExc_ValueError,
                         "Error in column %zd: its rows must be of the writer that creates the "
                         "item",
                         i);
            return -1;
        }
        if (c->squeeze && count != 1) {
            PyErr_Format(
                PyExc_ValueError,
                "Error in column %zd: TrajectoryColumn must contain exactly one row when "
                "squeeze is set but got %zu.",
                i, count);
            return -1;
        }
        assert(c->objects == NULL); /* J1: cells of this writer */
        columns[i] = (rp_item_column){.refs = c->refs, .count = count, .squeeze = c->squeeze};
    }
    if (leaves->count > 0) return 0;
    PyErr_SetString(PyExc_ValueError, "trajectory must not be empty.");
    return -1;
}

/* Returns 1 with ValueError if the item was refused because of the rows of this column,
 * otherwise 0. No other thread has the writer. */
static int explain_rows(const new_item *item, size_t index)
{
    const rp_trajectory_writer *writer = item->w->state->writer;
    const rp_item_column *column = &item->columns[index];
    rp_spec first = {0}, other;
    assert(index < item->count && writer != NULL);
    char a[96], b[96];
    for (size_t i = 0; i < column->count; i++) {
        if (!rp_trajectory_writer_has(writer, column->refs[i]) ||
            !rp_trajectory_writer_spec(writer, column->refs[i].column, &other)) {
            PyErr_Format(PyExc_ValueError,
                         "Error in column %zu: Column contains expired CellRef.", index);
            return 1;
        }
        if (i == 0) first = other;
        if (other.dtype != first.dtype) {
            PyErr_Format(
                PyExc_ValueError,
                "Error in column %zu: Column references tensors with different dtypes: "
                "%s (index 0) != %s (index %zu).",
                index, rp_dtype_name(first.dtype), rp_dtype_name(other.dtype), i);
            return 1;
        }
        if (rp_shape_equal(&first.shape, &other.shape)) continue;
        PyErr_Format(PyExc_ValueError,
                     "Error in column %zu: Column references tensors with incompatible shapes: "
                     "%s (index 0) not compatible with %s (index %zu).",
                     index, rp_shape_text(&first.shape, a, sizeof(a)),
                     rp_shape_text(&other.shape, b, sizeof(b)), i);
        return 1;
    }
    return 0;
}

/* Returns the spec of a column of an item. Its first dimension counts rows, unless the column
 * is squeezed. */
static rp_spec column_spec(const new_item *item, size_t index)
{
    const rp_item_column *column = &item->columns[index];
    rp_spec row = {0}, spec;
    (void)rp_trajectory_writer_spec(item->w->state->writer, column->refs[0].column, &row);
    assert(column->count > 0);
    spec = row;
    if (column->squeeze) return spec;
    spec.shape.rank++;
    spec.shape.dims[0] = (int64_t)column->count;
    memcpy(spec.shape.dims + 1, row.shape.dims,
           (size_t)row.shape.rank * sizeof(spec.shape.dims[0]));
    return spec;
}

/* Returns the names of the columns of the signature, or of the item if that is NULL, as a list:
 * paths, or numbers. */
static PyObject *column_names(const new_item *item, const rp_signature *signature)
{
    size_t count = signature != NULL ? rp_signature_column_count(signature) : item->count;
    PyObject *structure = signature != NULL ? NULL : core_structure_of(item->trajectory);
    PyObject *names = signature == NULL && structure == NULL ? NULL : PyList_New(0);
    for (size_t i = 0; names != NULL && i < count; i++) {
        PyObject *name = NULL;
        if (signature == NULL)
            name = core_structure_path(structure, (Py_ssize_t)i);
        else if (rp_signature_column(signature, i)->name != NULL)
            name = core_text(rp_signature_column(signature, i)->name);
        if (!PyErr_Occurred() && (name == NULL || PyUnicode_GET_LENGTH(name) == 0))
            Py_XSETREF(name, PyUnicode_FromFormat("%zu", i));
        if (name == NULL || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    Py_XDECREF(structure);
    return names;
}

/* Lists the columns of the signature, or of the item if that is NULL, in Reverb's format. */
static PyObject *list_columns(const new_item *item, const rp_signature *signature)
{
    PyObject *names = column_names(item, signature);
    PyObject *text = names == NULL ? NULL : PyUnicode_FromString("");
    for (Py_ssize_t i = 0; text != NULL && i < PyList_GET_SIZE(names); i++) {
        rp_spec spec = signature != NULL ? *rp_signature_column(signature, (size_t)i)
                                         : column_spec(item, (size_t)i);
        char shape[128];
        PyObject *longer = PyUnicode_FromFormat(
            "%U%s%zd: Tensor<name: '%U', dtype: %s, shape: %s>", text, i == 0 ? "" : ", ", i,
            PyList_GET_ITEM(names, i), rp_dtype_name(spec.dtype),
            rp_shape_text(&spec.shape, shape, sizeof(shape)));
        Py_DECREF(text);
        text = longer;
    }
    Py_XDECREF(names);
    return text;
}

/* Describes how an item differs from the signature of its table. */
static PyObject *mismatch(const new_item *item, const rp_signature *signature,
                          const rp_error *err)
{
    size_t expected = rp_signature_column_count(signature);
    char wanted[128], got[128];
    if (item->count != expected)
        return PyUnicode_FromFormat(
            "The trajectory has %zu columns but the table signature has %zu columns.",
            item->count, expected);
    for (size_t i = 0; i < expected; i++) {
        const rp_spec *to = rp_signature_column(signature, i);
        rp_spec spec = column_spec(item, i);
        if (spec.dtype == to->dtype && rp_shape_fits(&spec.shape, &to->shape)) continue;
        PyObject *names = column_names(item, signature), *text = NULL;
        if (names != NULL)
            text = PyUnicode_FromFormat(
                "The table expects column '%U' to be a %s %s tensor but got a %s %s tensor.",
                PyList_GET_ITEM(names, (Py_ssize_t)i), rp_dtype_name(to->dtype),
                rp_shape_text(&to->shape, wanted, sizeof(wanted)), rp_dtype_name(spec.dtype),
                rp_shape_text(&spec.shape, got, sizeof(got)));
        Py_XDECREF(names);
        return text;
    }
    return PyUnicode_FromFormat("%s.", err->text);
}

/* Sets ValueError: the item does not match the signature of its table. */
static void refuse_signature(const new_item *item, const rp_signature *signature,
                             const rp_error *err)
{
    PyObject *what = mismatch(item, signature, err);
    PyObject *theirs = what == NULL ? NULL : list_columns(item, signature);
    PyObject *ours = theirs == NULL ? NULL : list_columns(item, NULL);
    if (ours != NULL)
        PyErr_Format(
            PyExc_ValueError,
            "Unable to create item in table '%s' since the provided trajectory is "
            "inconsistent with the table signature. %U\n\nThe table signature is:\n\t%U"
            "\n\nThe provided trajectory signature is:\n\t%U.\n",
            item->table, what, theirs, ours);
    Py_XDECREF(what);
    Py_XDECREF(theirs);
    Py_XDECREF(ours);
}

/* Requests the signature that the item does not match from the server, and sets ValueError.
 * False if the server does not respond in time. */
static bool explain_signature(const new_item *item, const rp_error *err)
{
    rp_client *client = ((core_client *)item->w->client)->client;
    rp_client_tables *tables = NULL;
    rp_status st;
    bool said = false;
    Py_BEGIN_ALLOW_THREADS
    st = rp_client_get_tables(client, rp_wait_ms(ASK_MS), &tables, NULL);
    Py_END_ALLOW_THREADS
    if (st != RP_OK) return false;
    for (size_t i = 0; i < tables->count && !said; i++) {
        const rp_table_info *info = &tables->tables[i].info;
        if (strcmp(info->name, item->table) != 0 || info->signature == NULL) continue;
        if (writer_settle(item->w->state) == 0 && item->w->state->writer != NULL)
            refuse_signature(item, info->signature, err);
        said = PyErr_Occurred() != NULL;
    }
    rp_client_tables_free(tables);
    return said;
}

/* Sets the exception for an item that was refused. */
static PyObject *explain(const new_item *item, rp_status st, const rp_error *err)
{
    if (st != RP_INVALID && st != RP_PRECONDITION) return core_raise(st, err);
    if (writer_settle(item->w->state) < 0) return NULL;
    if (item->w->state->writer == NULL) return core_raise(st, err);
    for (size_t i = 0; i < item->count; i++)
        if (explain_rows(item, i)) return NULL;
    if (st != RP_INVALID || strncmp(err->text, "table '", 7) != 0) return core_raise(st, err);
    if (explain_signature(item, err)) return NULL;
    const char *why = strstr(err->text, "': ");
    PyErr_Format(PyExc_ValueError,
                 "Unable to create item in table '%s' since the provided trajectory is "
                 "inconsistent with the table signature. %s.",
                 item->table, why == NULL ? err->text : why + 3);
    return NULL;
}

/* Creates the item. For the first item in a table, the signature may have to be requested from
 * the server. */
static PyObject *create(new_item *item, PyObject *table)
{
    core_writer *w = item->w;
    bool is_known = table == w->last_table;
    rp_status st = RP_DEADLINE;
    rp_error err;
    err.code = RP_OK;
    core_names_question names = {w->client, table, item->table, item->structure, false};
    if (w->validates && core_names_check(&w->checked, &names, -1) < 0) return NULL;
    w->state->waited_ns += w->checked.waited_ns;
    w->checked.waited_ns = 0;
    if (!is_known) {
        int has = PySet_Contains(w->tables, table);
        if (has < 0) return NULL;
        is_known = has == 1;
    }
    if (is_known) {
        if (writer_enter(w->state) < 0) return NULL;
        st = create_call(item, rp_wait_none(), &err);
        writer_leave(w->state);
        if (st == RP_INVALID)
            st = RP_DEADLINE; /* a signature can only be asked for in a wait */
    }
    if (st == RP_DEADLINE && writer_wait(w->state, create_call, item, -1, &st, &err) < 0)
        return NULL;
    if (st != RP_OK) return explain(item, st, &err);
    if (table != w->last_table) {
        if (PySet_Add(w->tables, table) < 0) return NULL;
        Py_INCREF(table);
        Py_XDECREF(w->last_table);
        w->last_table = table;
    }
    return PyLong_FromUnsignedLongLong(item->key);
}

static PyObject *create_of_leaves(new_item *item, PyObject *table, PyObject *trajectory,
                                  const core_leaves *leaves)
{
    rp_item_column few[COLUMNS_INSIDE], *columns = few;
    PyObject *key = NULL;
    if (leaves->count > COLUMNS_INSIDE) {
        columns = PyMem_Malloc((size_t)leaves->count * sizeof(*columns));
        if (columns == NULL) return PyErr_NoMemory();
    }
    item->columns = columns;
    item->trajectory = trajectory;
    item->count = (size_t)leaves->count;
    if (gather(item->w, trajectory, leaves, columns) == 0) key = create(item, table);
    item->columns = NULL;
    if (columns != few) PyMem_Free(columns);
    return key;
}

/* Reads the three arguments, positional or by keyword. */
static int item_arguments(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                          PyObject *out[3])
{
    static const char *const names[3] = {"table", "priority", "trajectory"};
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    if (nargs > 3) {
        PyErr_Format(PyExc_TypeError,
                     "TrajectoryWriter.create_item() takes 4 positional arguments but %zd were "
                     "given",
                     nargs + 1);
        return -1;
    }
    for (Py_ssize_t i = 0; i < nargs; i++) out[i] = args[i];
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        int k = 0;
        while (k < 3 && PyUnicode_CompareWithASCIIString(name, names[k]) != 0) k++;
        if (k == 3 || out[k] != NULL) {
            PyErr_Format(PyExc_TypeError, "TrajectoryWriter.create_item() got %s argument '%U'",
                         k == 3 ? "an unexpected keyword" : "multiple values for", name);
            return -1;
        }
        out[k] = args[nargs + i];
    }
    for (int k = 0; k < 3; k++)
        if (out[k] == NULL) {
            PyErr_Format(PyExc_TypeError,
                         "TrajectoryWriter.create_item() misses its argument '%s'", names[k]);
            return -1;
        }
    return 0;
}

static const char *table_name(PyObject *table)
{
    const char *name = NULL;
    Py_ssize_t size = 0;
    if (PyUnicode_Check(table)) {
        name = PyUnicode_AsUTF8AndSize(table, &size);
        if (name == NULL) return NULL;
    } else if (PyBytes_Check(table)) {
        name = PyBytes_AS_STRING(table);
        size = PyBytes_GET_SIZE(table);
    } else {
        PyErr_Format(PyExc_TypeError, "table must be a str, got %R", table);
        return NULL;
    }
    if (strlen(name) == (size_t)size) return name;
    PyErr_Format(PyExc_ValueError, "the name of a table has no null character, got %R", table);
    return NULL;
}

PyObject *core_writer_create_item(core_writer *w, PyObject *const *args, Py_ssize_t nargs,
                                  PyObject *kwnames)
{
    PyObject *given[3] = {NULL, NULL, NULL};
    new_item item = {.w = w};
    core_leaves leaves;
    if (item_arguments(args, nargs, kwnames, given) < 0) return NULL;
    item.table = table_name(given[0]);
    if (item.table == NULL) return NULL;
    if (core_priority_from(given[1], &item.priority) < 0) return NULL;
    if (w->state == NULL || w->state->writer == NULL) {
        (void)writer_enter(w->state); /* sets the exception */
        return NULL;
    }
    item.structure = flatten_item(w, given[2], &leaves);
    if (item.structure == NULL) return NULL;
    PyObject *key = NULL;
    if (isnan(item.priority))
        PyErr_Format(PyExc_ValueError, "`priority` must not be nan. It is for table '%s'",
                     item.table);
    else
        key = create_of_leaves(&item, given[0], given[2], &leaves);
    core_leaves_free(&leaves);
    Py_DECREF(item.structure);
    return key;
}

/* Sets DeadlineExceededError with Reverb's text for the call and its timeout, and the reason.
 */
static PyObject *raise_late(const char *what, int64_t timeout_ms, const rp_error *err)
{
    PyObject *datetime = PyImport_ImportModule("datetime");
    PyObject *type = datetime == NULL ? NULL : PyObject_GetAttrString(datetime, "timedelta");
    PyObject *span =
        type == NULL ? NULL
                     : PyObject_CallFunction(type, "iiL", 0, 0, (long long)timeout_ms * 1000);
    PyObject *why =
        span == NULL ? NULL : core_reason(err->code == RP_DEADLINE ? err->text : "");
    if (why != NULL)
        PyErr_Format(core_DeadlineExceededError,
                     "%s call did not complete within provided timeout of %S%s%U", what, span,
                     err->code == RP_DEADLINE ? ": " : "", why);
    Py_XDECREF(why);
    Py_XDECREF(span);
    Py_XDECREF(type);
    Py_XDECREF(datetime);
    return NULL;
}

typedef struct ending {
    core_writer *w;
    size_t leave;
    bool clear;
} ending;

static rp_status flush_call(void *arg, rp_wait wait, rp_error *err)
{
    ending *e = arg;
    return rp_trajectory_writer_flush(e->w->state->writer, e->leave, wait, err);
}

static rp_status end_call(void *arg, rp_wait wait, rp_error *err)
{
    ending *e = arg;
    return rp_trajectory_writer_end_episode(e->w->state->writer, e->clear, wait, err);
}

/* Reads two arguments of which at most one may be given: `timeout_ms`, in Reverb's units, and
 * `timeout`, in seconds. */
static int either_timeout(PyObject *in_ms, PyObject *in_s, int64_t *timeout_ms)
{
    if (in_s == Py_None) return core_timeout_ms(in_ms, timeout_ms);
    if (in_ms == Py_None) return core_timeout_s(in_s, timeout_ms);
    PyErr_SetString(PyExc_TypeError, "give timeout, in seconds, or timeout_ms, not both");
    return -1;
}

PyObject *core_writer_flush(core_writer *w, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"block_until_num_items", "timeout_ms", "timeout", NULL};
    PyObject *number = NULL, *in_ms = Py_None, *in_s = Py_None;
    Py_ssize_t leave = 0;
    int64_t timeout_ms;
    rp_status st;
    rp_error err = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO$O:flush", names, &number, &in_ms,
                                     &in_s))
        return NULL;
    if (number != NULL && !PyIndex_Check(number)) {
        PyErr_Format(PyExc_TypeError, "block_until_num_items must be an integer, got %R",
                     number);
        return NULL;
    }
    if (number != NULL) leave = PyNumber_AsSsize_t(number, PyExc_OverflowError);
    if (leave == -1 && PyErr_Occurred()) return NULL;
    if (leave < 0) {
        PyErr_Format(PyExc_ValueError, "block_until_num_items must be >= 0, got %zd", leave);
        return NULL;
    }
    if (either_timeout(in_ms, in_s, &timeout_ms) < 0) return NULL;
    if (timeout_ms == 0 && in_ms != Py_None) timeout_ms = -1;
    ending e = {.w = w, .leave = (size_t)leave};
    if (writer_wait(w->state, flush_call, &e, timeout_ms, &st, &err) < 0) return NULL;
    if (st == RP_DEADLINE) return raise_late("Flush", timeout_ms, &err);
    if (st != RP_OK) return core_raise(st, &err);
    Py_RETURN_NONE;
}

PyObject *core_writer_end_episode(core_writer *w, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"clear_buffers", "timeout_ms", "timeout", NULL};
    PyObject *in_ms = Py_None, *in_s = Py_None;
    int clear = 1;
    int64_t timeout_ms;
    rp_status st;
    rp_error err = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pO$O:end_episode", names, &clear, &in_ms,
                                     &in_s))
        return NULL;
    if (either_timeout(in_ms, in_s, &timeout_ms) < 0) return NULL;
    if (timeout_ms < 0 && in_ms != Py_None) timeout_ms = 0;
    ending e = {.w = w, .clear = clear != 0};
    if (writer_wait(w->state, end_call, &e, timeout_ms, &st, &err) < 0) return NULL;
    if (st == RP_DEADLINE) return raise_late("End episode", timeout_ms, &err);
    if (st != RP_OK) return core_raise(st, &err);
    for (size_t i = 0; clear && i < w->column_count; i++) core_history_clear(w->columns[i]);
    if (clear && w->state->strings != NULL) PyDict_Clear(w->state->strings);
    Py_RETURN_NONE;
}
