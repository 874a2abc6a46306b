/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.Structure, and functions of the module about nests and arrays. */
#include "module.h"
#include "nest.h"

static PyObject *structure_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"nest", NULL};
    PyObject *nest;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Structure", names, &nest)) return NULL;
    return core_structure_of(nest);
}

static int structure_traverse(core_structure *s, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < s->node_count; i++) {
        Py_VISIT(s->nodes[i].type);
        Py_VISIT(s->nodes[i].keys);
        Py_VISIT(s->nodes[i].given);
        Py_VISIT(s->nodes[i].factory);
    }
    return 0;
}

static void structure_dealloc(core_structure *s)
{
    PyObject_GC_UnTrack(s);
    for (Py_ssize_t i = 0; i < s->node_count; i++) {
        Py_XDECREF(s->nodes[i].type);
        Py_XDECREF(s->nodes[i].keys);
        Py_XDECREF(s->nodes[i].given);
        Py_XDECREF(s->nodes[i].factory);
    }
    PyMem_Free(s->nodes);
    PyObject_GC_Del(s);
}

/* Returns 1 if two nodes are equal by the rules of core_structure_flatten(), 0 if not, -1 on
 * failure. */
static int node_equal(const nest_node *a, const nest_node *b)
{
    if (a->kind != b->kind || a->children != b->children) return 0;
    assert((a->keys == NULL) == (b->keys == NULL)); /* N3 */
    switch (a->kind) {
    case NEST_LEAF:
    case NEST_LIST: return 1;
    case NEST_TUPLE:
    case NEST_SEQUENCE: return a->type == b->type;
    case NEST_NAMED:
        if (a->type == b->type) return 1;
        if (strcmp(a->type->tp_name, b->type->tp_name) != 0) return 0;
        break;
    case NEST_DICT: break;
    }
    return PyObject_RichCompareBool(a->keys, b->keys, Py_EQ);
}

static PyObject *structure_compare(PyObject *self, PyObject *other, int op)
{
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(other) != &core_Structure)
        Py_RETURN_NOTIMPLEMENTED;
    const core_structure *a = (core_structure *)self, *b = (core_structure *)other;
    int equal = a->node_count == b->node_count;
    for (Py_ssize_t i = 0; i < a->node_count && equal == 1; i++)
        equal = node_equal(&a->nodes[i], &b->nodes[i]);
    if (equal < 0) return NULL;
    return PyBool_FromLong(equal == (op == Py_EQ));
}

static Py_hash_t structure_hash(PyObject *self)
{
    const core_structure *s = (core_structure *)self;
    Py_uhash_t hash = 0x9e3779b9u;
    for (Py_ssize_t i = 0; i < s->node_count; i++) {
        const nest_node *node = &s->nodes[i];
        Py_hash_t keys = node->keys == NULL ? 0 : PyObject_Hash(node->keys);
        if (keys == -1) return -1;
        hash = hash * 1000003u ^ (Py_uhash_t)keys;
        hash = hash * 1000003u ^ ((Py_uhash_t)node->children * 8 + (Py_uhash_t)node->kind);
    }
    return (Py_hash_t)hash == -1 ? -2 : (Py_hash_t)hash;
}

/* Makes a nest of the structure whose leaves are all `leaf`; if that is NULL, they are 0, 1,
 * ... */
static PyObject *filled(PyObject *self, PyObject *leaf)
{
    Py_ssize_t count = core_structure_leaf_count(self);
    PyObject *leaves = PyTuple_New(count), *nest = NULL;
    if (leaves == NULL) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = leaf == NULL ? PyLong_FromSsize_t(i) : leaf;
        if (leaf != NULL) Py_INCREF(leaf);
        if (item == NULL) goto out;
        PyTuple_SET_ITEM(leaves, i, item);
    }
    nest = core_structure_pack(self, &PyTuple_GET_ITEM(leaves, 0), count);
out:
    Py_DECREF(leaves);
    return nest;
}

static PyObject *structure_repr(PyObject *self)
{
    PyObject *nest = filled(self, Py_Ellipsis);
    if (nest == NULL) return NULL;
    PyObject *text = PyUnicode_FromFormat("Structure(%R)", nest);
    Py_DECREF(nest);
    return text;
}

static PyObject *structure_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *nest = filled(self, NULL);
    return nest == NULL ? NULL : Py_BuildValue("(O(N))", (PyObject *)Py_TYPE(self), nest);
}

/* Moves the leaves into a list. */
static PyObject *leaves_list(core_leaves *leaves)
{
    PyObject *list = PyList_New(leaves->count);
    if (list != NULL) {
        for (Py_ssize_t i = 0; i < leaves->count; i++)
            PyList_SET_ITEM(list, i, leaves->items[i]);
        leaves->count = 0;
    }
    core_leaves_free(leaves);
    return list;
}

/* Sets the exception for two structures that differ. TypeError if the first node that differs
 * is a container in both, but of different types; otherwise ValueError. */
static PyObject *error_for(const core_structure *a, const core_structure *b)
{
    for (Py_ssize_t i = 0; i < a->node_count && i < b->node_count; i++) {
        const nest_node *x = &a->nodes[i], *y = &b->nodes[i];
        if (node_equal(x, y) == 1) continue;
        if (x->kind == NEST_LEAF || y->kind == NEST_LEAF) break;
        if (x->kind == NEST_DICT && y->kind == NEST_DICT) break;
        if (x->type != y->type) return PyExc_TypeError;
        break;
    }
    return PyExc_ValueError;
}

static PyObject *structure_flatten(PyObject *self, PyObject *nest)
{
    core_leaves leaves;
    int same = core_structure_flatten(self, nest, &leaves);
    if (same < 0) return NULL;
    if (same == 1) return leaves_list(&leaves);
    PyObject *other = core_structure_of(nest);
    if (other != NULL)
        PyErr_Format(error_for((core_structure *)self, (core_structure *)other),
                     "the two nests don't have the same nested structure: %R and %R", self,
                     other);
    Py_XDECREF(other);
    return NULL;
}

static PyObject *structure_pack(PyObject *self, PyObject *leaves)
{
    PyObject *tuple =
        PySequence_Tuple(leaves); /* a copy: packing may run Python, which may change a list */
    if (tuple == NULL) return NULL;
    PyObject *nest =
        core_structure_pack(self, &PyTuple_GET_ITEM(tuple, 0), PyTuple_GET_SIZE(tuple));
    Py_DECREF(tuple);
    return nest;
}

static PyObject *structure_path(PyObject *self, PyObject *index)
{
    Py_ssize_t leaf = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if (leaf == -1 && PyErr_Occurred()) return NULL;
    return core_structure_path(self, leaf);
}

static PyObject *structure_paths(PyObject *self, PyObject *unused)
{
    (void)unused;
    return core_structure_paths(self);
}

static PyObject *structure_leaf_count(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(core_structure_leaf_count(self));
}

static PyMethodDef structure_methods[] = {
    {"flatten", structure_flatten, METH_O,
     "flatten($self, nest, /)\n--\n\n"
     "Returns the leaves of a nest of this structure; ValueError if it has another."},
    {"pack", structure_pack, METH_O,
     "pack($self, leaves, /)\n--\n\nMakes a nest of this structure with these leaves."},
    {"path", structure_path, METH_O,
     "path($self, leaf, /)\n--\n\nReturns the path of a leaf, such as 'a/0'."},
    {"paths", structure_paths, METH_NOARGS,
     "paths($self, /)\n--\n\nReturns the path of each leaf: a tuple of keys and indices."},
    {"__reduce__", structure_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef structure_properties[] = {
    {"leaf_count", structure_leaf_count, NULL, "How many leaves there are.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject core_Structure = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._core.Structure",
    .tp_basicsize = sizeof(core_structure),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Structure(nest)\n--\n\n"
              "The structure of a nest: types, keys and the order of leaves, but no leaves.",
    .tp_new = structure_new,
    .tp_dealloc = (destructor)structure_dealloc,
    .tp_traverse = (traverseproc)structure_traverse,
    .tp_richcompare = structure_compare,
    .tp_hash = structure_hash,
    .tp_repr = structure_repr,
    .tp_methods = structure_methods,
    .tp_getset = structure_properties,
};

static PyObject *flatten(PyObject *module, PyObject *nest)
{
    core_leaves leaves;
    (void)module;
    return core_flatten(nest, &leaves) < 0 ? NULL : leaves_list(&leaves);
}

static PyObject *is_nested(PyObject *module, PyObject *obj)
{
    (void)module;
    int kind = core_nest_kind(obj);
    return kind < 0 ? NULL : PyBool_FromLong(kind != NEST_LEAF);
}

/* Copies a tensor into a new array. */
static PyObject *array_of(const rp_tensor *tensor)
{
    PyObject *array = core_array_new(tensor->dtype, &tensor->shape);
    size_t elements = 0;
    if (array == NULL) return NULL;
    if (rp_shape_elements(&tensor->shape, &elements) != RP_OK) elements = 0;
    if (tensor->dtype != RP_STRING) {
        memcpy(PyArray_DATA((PyArrayObject *)array), tensor->data,
               elements * rp_dtype_size(tensor->dtype));
    } else if (core_fill_strings(array, tensor->data, elements) < 0) {
        Py_CLEAR(array);
    }
    return array;
}

static PyObject *as_sampled(PyObject *module, PyObject *obj)
{
    rp_tensor tensor;
    PyObject *keep;
    (void)module;
    if (core_tensor_from(obj, NULL, &tensor, &keep) < 0) return NULL;
    PyObject *array = array_of(&tensor);
    Py_DECREF(keep);
    return array;
}

PyMethodDef core_nest_functions[] = {
    {"flatten", flatten, METH_O,
     "flatten(nest, /)\n--\n\nReturns the leaves of a nest, dicts by sorted key."},
    {"is_nested", is_nested, METH_O,
     "is_nested(obj, /)\n--\n\nTrue for a dict, a list, a tuple; False for a leaf."},
    {"as_sampled", as_sampled, METH_O,
     "as_sampled(obj, /)\n--\n\n"
     "Returns the array that a sample has for a value `obj` of a step: a copy, in which "
     "strings are bytes."},
    {NULL, NULL, 0, NULL},
};
