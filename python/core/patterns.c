/* SPDX-License-Identifier: Apache-2.0 */
/* Reads patterns from tuples. Only the types are checked here; the C library checks the values,
 * with Reverb's error texts. */
#include "patterns.h"

/* Reads an int32 or None. */
static int number_or_none(PyObject *obj, bool *has, int32_t *value)
{
    long number;

    *has = obj != Py_None;
    *value = 0;
    if (!*has) return 0;
    number = PyLong_AsLong(obj);
    if (number == -1 && PyErr_Occurred()) return -1;
    if (number < INT32_MIN || number > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "Value out of range: %ld", number);
        return -1;
    }
    *value = (int32_t)number;
    return 0;
}

/* Sets TypeError if `obj` is not a tuple: PyArg_ParseTuple() would set SystemError. */
static int check_tuple(PyObject *obj, const char *what)
{
    if (PyTuple_Check(obj)) return 0;
    PyErr_Format(PyExc_TypeError, "%s must be a tuple, got %s", what, Py_TYPE(obj)->tp_name);
    return -1;
}

static int node_from(PyObject *obj, rp_pattern_node *node)
{
    PyObject *start, *stop, *step;
    bool has_step;
    int source;

    if (check_tuple(obj, "a node") != 0) return -1;
    if (!PyArg_ParseTuple(obj, "iOOO", &source, &start, &stop, &step)) return -1;
    if (source < 0) {
        PyErr_Format(PyExc_ValueError, "`flat_source_index` must be >= 0 but got %d", source);
        return -1;
    }
    node->source = (uint32_t)source;
    node->name = NULL;
    return number_or_none(start, &node->has_start, &node->start) ||
           number_or_none(stop, &node->has_stop, &node->stop) ||
           number_or_none(step, &has_step, &node->step);
}

static int condition_from(PyObject *obj, rp_condition *condition)
{
    int left, column, compare, inverse;

    if (check_tuple(obj, "a condition") != 0) return -1;
    if (!PyArg_ParseTuple(obj, "iiiiip", &left, &column, &compare, &condition->mod,
                          &condition->value, &inverse))
        return -1;
    if (column < 0) {
        PyErr_Format(PyExc_ValueError, "flat_source_index must be >= 0 but got %d", column);
        return -1;
    }
    condition->left = (rp_condition_left)left;
    condition->compare = (rp_condition_compare)compare;
    condition->column = (uint32_t)column;
    condition->inverse = inverse != 0;
    return 0;
}

static int priority_from(PyObject *obj, rp_pattern_priority *priority)
{
    int kind, column;

    if (!PyArg_ParseTuple(obj, "iddi", &kind, &priority->value, &priority->max_priority_weight,
                          &column))
        return -1;
    if (column < 0) {
        PyErr_Format(PyExc_ValueError, "flat_source_index must be >= 0 but got %d", column);
        return -1;
    }
    priority->kind = (rp_priority_kind)kind;
    priority->column = (uint32_t)column;
    return 0;
}

/* Allocates a zeroed array with as many elements, of `size` bytes, as the tuple has. */
static void *array_for(PyObject *tuple, size_t size)
{
    assert(PyTuple_Check(tuple));
    void *array = PyMem_Calloc((size_t)PyTuple_GET_SIZE(tuple) + 1, size);

    if (!array) PyErr_NoMemory();
    return array;
}

static int pattern_from(PyObject *obj, rp_pattern *pattern)
{
    PyObject *nodes, *conditions, *priority;
    rp_pattern_node *node;
    rp_condition *condition;

    if (check_tuple(obj, "a pattern") != 0) return -1;
    if (!PyArg_ParseTuple(obj, "sO!O!O!", &pattern->table, &PyTuple_Type, &nodes, &PyTuple_Type,
                          &conditions, &PyTuple_Type, &priority))
        return -1;
    if (!(node = array_for(nodes, sizeof *node))) return -1;
    pattern->nodes = node;
    if (!(condition = array_for(conditions, sizeof *condition))) return -1;
    pattern->conditions = condition;
    pattern->node_count = (size_t)PyTuple_GET_SIZE(nodes);
    pattern->condition_count = (size_t)PyTuple_GET_SIZE(conditions);
    for (size_t i = 0; i < pattern->node_count; i++)
        if (node_from(PyTuple_GET_ITEM(nodes, (Py_ssize_t)i), &node[i]) != 0) return -1;
    for (size_t i = 0; i < pattern->condition_count; i++)
        if (condition_from(PyTuple_GET_ITEM(conditions, (Py_ssize_t)i), &condition[i]) != 0)
            return -1;
    return priority_from(priority, &pattern->priority);
}

/* Adds the number of the pattern to the exception, as the C library does. */
static void name_position(size_t position)
{
    PyObject *type, *value, *trace;

    assert(PyErr_Occurred());
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) return;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyErr_Format(PyExc_ValueError, "Invalid configuration at position %zu: %S.", position,
                 value ? value : Py_None);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

int core_patterns_from(PyObject *obj, core_patterns *out)
{
    *out = (core_patterns){0};
    if (!PyTuple_Check(obj)) {
        PyErr_SetString(PyExc_TypeError, "patterns must be a tuple");
        return -1;
    }
    if (!(out->patterns = array_for(obj, sizeof *out->patterns))) return -1;
    out->count = (size_t)PyTuple_GET_SIZE(obj);
    for (size_t i = 0; i < out->count; i++) {
        if (pattern_from(PyTuple_GET_ITEM(obj, (Py_ssize_t)i), &out->patterns[i]) != 0) {
            name_position(i);
            core_patterns_free(out);
            return -1;
        }
    }
    return 0;
}

void core_patterns_free(core_patterns *patterns)
{
    for (size_t i = 0; i < patterns->count; i++) {
        PyMem_Free((void *)(uintptr_t)patterns->patterns[i].nodes);
        PyMem_Free((void *)(uintptr_t)patterns->patterns[i].conditions);
    }
    PyMem_Free(patterns->patterns);
    *patterns = (core_patterns){0};
}
