/* SPDX-License-Identifier: Apache-2.0 */
/* Converts nests of specs to signatures, and signatures to nests.
 *
 * Any object with `shape`, `dtype` and `name` is a spec. Specs that are made here are
 * reprise.specs.TensorSpec. */
#include "core.h"
#include "module.h"
#include "nest.h"

/* Reads a dimension; None is a dimension of any size, -1. */
static int dimension_of(PyObject *obj, int64_t *dim)
{
    *dim = -1;
    if (obj == Py_None) return 0;
    PyObject *number = PyNumber_Index(obj);
    if (number == NULL) return -1;
    *dim = PyLong_AsLongLong(number);
    Py_DECREF(number);
    if (*dim == -1 && PyErr_Occurred()) return -1;
    if (*dim >= 0) return 0;
    PyErr_Format(PyExc_ValueError, "a dimension must be >= 0 or None, got %R", obj);
    return -1;
}

static int spec_shape(PyObject *leaf, rp_shape *shape)
{
    int failed = -1;
    PyObject *obj = PyObject_GetAttrString(leaf, "shape"), *dims = NULL;
    if (obj == NULL) return -1;
    shape->rank = -1;
    if (obj == Py_None) {
        failed = 0;
        goto out;
    }
    dims = PySequence_Tuple(obj);
    if (dims == NULL) goto out;
    Py_ssize_t rank = PyTuple_GET_SIZE(dims);
    if (rank > RP_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "a spec has at most %d dimensions, got %zd", RP_MAX_RANK,
                     rank);
        goto out;
    }
    shape->rank = (int32_t)rank;
    failed = 0;
    for (Py_ssize_t i = 0; i < rank && !failed; i++)
        failed = dimension_of(PyTuple_GET_ITEM(dims, i), &shape->dims[i]);
out:
    Py_XDECREF(dims);
    Py_DECREF(obj);
    return failed;
}

static int spec_dtype(PyObject *leaf, rp_dtype *dtype)
{
    PyArray_Descr *descr = NULL;
    PyObject *obj = PyObject_GetAttrString(leaf, "dtype");
    if (obj == NULL) return -1;
    int converted = PyArray_DescrConverter(obj, &descr);
    Py_DECREF(obj);
    if (converted != NPY_SUCCEED) return -1;
    *dtype = core_dtype_from(descr);
    if (*dtype == RP_INVALID_DTYPE)
        PyErr_Format(PyExc_TypeError, "a spec of dtype %R has no place here",
                     (PyObject *)descr);
    Py_DECREF(descr);
    return *dtype == RP_INVALID_DTYPE ? -1 : 0;
}

/* The nodes of a signature that is being made. `kept` is a list of the objects that own the
 * texts of the nodes. */
typedef struct nodes {
    rp_nest_node *items;
    PyObject *kept;
} nodes;

/* Returns the UTF-8 text of a str, which is valid as long as the nodes. */
static const char *text_of(nodes *n, PyObject *obj, const char *what)
{
    if (!PyUnicode_Check(obj)) {
        PyErr_Format(PyExc_TypeError, "%s of a signature must be a str, got %R", what, obj);
        return NULL;
    }
    Py_ssize_t size = 0;
    const char *text = PyUnicode_AsUTF8AndSize(obj, &size);
    if (text == NULL) return NULL;
    if (strlen(text) != (size_t)size) {
        PyErr_Format(PyExc_ValueError, "%s of a signature has no null character, got %R", what,
                     obj);
        return NULL;
    }
    return PyList_Append(n->kept, obj) < 0 ? NULL : text;
}

static int spec_of(nodes *n, PyObject *leaf, rp_spec *spec)
{
    if (spec_shape(leaf, &spec->shape) < 0 || spec_dtype(leaf, &spec->dtype) < 0) return -1;
    PyObject *name = PyObject_GetAttrString(leaf, "name");
    if (name == NULL) return -1;
    if (name != Py_None) spec->name = text_of(n, name, "the name of a spec");
    int failed = name != Py_None && spec->name == NULL ? -1 : 0;
    Py_DECREF(name);
    return failed;
}

static const char *class_name(const PyTypeObject *type)
{
    const char *dot = strrchr(type->tp_name, '.');
    return dot == NULL ? type->tp_name : dot + 1;
}

/* Adds the node `*at` of the structure and all nodes below it. `key` may be NULL. */
static int add_nodes(nodes *n, const core_structure *s, Py_ssize_t *at, PyObject *const **leaf,
                     const char *key)
{
    static const rp_nest_kind kinds[] = {
        [NEST_LEAF] = RP_NEST_LEAF,   [NEST_LIST] = RP_NEST_LIST,
        [NEST_TUPLE] = RP_NEST_TUPLE, [NEST_NAMED] = RP_NEST_NAMEDTUPLE,
        [NEST_DICT] = RP_NEST_DICT,   [NEST_SEQUENCE] = RP_NEST_LIST,
    };
    assert(*at < s->node_count);
    const nest_node *from = &s->nodes[*at];
    rp_nest_node *to = &n->items[(*at)++];
    *to = (rp_nest_node){.kind = kinds[from->kind], .key = key};
    if (from->kind == NEST_LEAF) return spec_of(n, *(*leaf)++, &to->spec);
    to->child_count = (uint32_t)from->children;
    if (from->kind == NEST_NAMED) to->type_name = class_name(from->type);
    for (Py_ssize_t i = 0; i < from->children; i++) {
        const char *child = NULL;
        if (from->keys != NULL) {
            child = text_of(n, PyTuple_GET_ITEM(from->keys, i), "a key");
            if (child == NULL) return -1;
        }
        if (add_nodes(n, s, at, leaf, child) < 0) return -1;
    }
    return 0;
}

int core_signature_from(PyObject *nest, rp_signature **out)
{
    *out = NULL;
    if (nest == NULL || nest == Py_None) return 0;
    int failed = -1;
    nodes n = {NULL, NULL};
    core_leaves leaves;
    PyObject *structure = core_structure_of(nest);
    if (structure == NULL) return -1;
    const core_structure *s = (core_structure *)structure;
    if (s->leaf_count == 0) {
        Py_DECREF(structure);
        return 0;
    }
    int same = core_structure_flatten(structure, nest, &leaves);
    if (same != 1) {
        if (same == 0) PyErr_SetString(PyExc_RuntimeError, "the nest changed meanwhile");
        Py_DECREF(structure);
        return -1;
    }
    n.items = PyMem_Calloc((size_t)s->node_count, sizeof(*n.items));
    n.kept = PyList_New(0);
    if (n.items == NULL || n.kept == NULL) {
        PyErr_NoMemory();
        goto out;
    }
    Py_ssize_t at = 0;
    PyObject *const *leaf = leaves.items;
    if (add_nodes(&n, s, &at, &leaf, NULL) < 0) goto out;
    assert(at == s->node_count && leaf == leaves.items + leaves.count);
    rp_error err;
    rp_status status =
        rp_signature_new(rp_allocator_default(), n.items, (size_t)s->node_count, out, &err);
    if (status != RP_OK) core_raise(status, &err);
    failed = status == RP_OK ? 0 : -1;
out:
    PyMem_Free(n.items);
    Py_XDECREF(n.kept);
    core_leaves_free(&leaves);
    Py_DECREF(structure);
    return failed;
}

static PyObject *text_of_utf8(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *text_or_none(const char *text)
{
    return text == NULL || *text == 0 ? Py_NewRef(Py_None) : text_of_utf8(text);
}

/* Calls a function of reprise.specs. Takes `args`, which is NULL if an exception is set. */
static PyObject *call_specs(const char *function, PyObject *args)
{
    PyObject *module = PyImport_ImportModule("reprise.specs");
    PyObject *callable = module == NULL ? NULL : PyObject_GetAttrString(module, function);
    PyObject *result =
        callable == NULL || args == NULL ? NULL : PyObject_CallObject(callable, args);
    Py_XDECREF(args);
    Py_XDECREF(callable);
    Py_XDECREF(module);
    return result;
}

static PyObject *spec_new(const rp_spec *spec)
{
    PyObject *shape = core_shape_tuple(&spec->shape, -1);
    PyObject *descr = shape == NULL ? NULL : (PyObject *)core_descr(spec->dtype);
    PyObject *name = descr == NULL ? NULL : text_or_none(spec->name);
    PyObject *args = name == NULL ? NULL : PyTuple_Pack(3, shape, descr, name);
    Py_XDECREF(shape);
    Py_XDECREF(descr);
    Py_XDECREF(name);
    return args == NULL ? NULL : call_specs("TensorSpec", args);
}

static PyObject *nest_of(const rp_nest_node *items, size_t *at);

/* Returns the children of a node as a list of (key, value). The key is None in lists and
 * tuples. */
static PyObject *children_of(const rp_nest_node *items, const rp_nest_node *node, size_t *at)
{
    bool keyed = node->kind == RP_NEST_DICT || node->kind == RP_NEST_NAMEDTUPLE;
    PyObject *pairs = PyList_New(0);
    for (uint32_t i = 0; pairs != NULL && i < node->child_count; i++) {
        const char *text = items[*at].key == NULL ? "" : items[*at].key;
        PyObject *key = keyed ? text_of_utf8(text) : Py_NewRef(Py_None);
        PyObject *value = key == NULL ? NULL : nest_of(items, at);
        PyObject *pair = value == NULL ? NULL : PyTuple_Pack(2, key, value);
        if (pair == NULL || PyList_Append(pairs, pair) < 0) Py_CLEAR(pairs);
        Py_XDECREF(pair);
        Py_XDECREF(value);
        Py_XDECREF(key);
    }
    return pairs;
}

static PyObject *nest_of(const rp_nest_node *items, size_t *at)
{
    const rp_nest_node *node = &items[(*at)++];
    if (node->kind == RP_NEST_LEAF) return spec_new(&node->spec);
    PyObject *pairs = children_of(items, node, at);
    if (pairs == NULL) return NULL;
    static const char *const makers[] = {
        [RP_NEST_LIST] = "_list",
        [RP_NEST_TUPLE] = "_tuple",
        [RP_NEST_DICT] = "_dict",
        [RP_NEST_NAMEDTUPLE] = "_named_tuple",
    };
    PyObject *args = node->kind == RP_NEST_NAMEDTUPLE
                         ? Py_BuildValue("(NN)", text_or_none(node->type_name), pairs)
                         : Py_BuildValue("(N)", pairs);
    assert((size_t)node->kind < sizeof makers / sizeof *makers && makers[node->kind] != NULL);
    return args == NULL ? NULL : call_specs(makers[node->kind], args);
}

PyObject *core_signature_to(const rp_signature *signature)
{
    if (signature == NULL) Py_RETURN_NONE;
    size_t at = 0, count = 0;
    return nest_of(rp_signature_nodes(signature, &count), &at);
}

static PyObject *roundtrip(PyObject *module, PyObject *nest)
{
    rp_signature *signature = NULL;
    (void)module;
    if (core_signature_from(nest, &signature) < 0) return NULL;
    PyObject *result = core_signature_to(signature);
    rp_signature_unref(signature);
    return result;
}

PyMethodDef core_signature_functions[] = {
    {"signature_roundtrip", roundtrip, METH_O,
     "signature_roundtrip(nest, /)\n--\n\n"
     "Returns the nest of specs as a server returns it: without bounds, subclasses, key "
     "order."},
    {NULL, NULL, 0, NULL},
};
