/* SPDX-License-Identifier: Apache-2.0 */
/* Nests: flattening, structures, packing.
 *
 * There are two ways to flatten a nest. walk() examines each object and sorts the keys of each
 * mapping; it may record the structure. match() compares the nest with a structure, and looks
 * up the keys of the structure in their order. Every append uses match().
 *
 * Invariants of a structure:
 *   N1  nodes are in preorder: a parent before its children, node->children of them;
 *   N2  leaf_count is the number of nodes of the kind NEST_LEAF;
 *   N3  mappings and named tuples have `keys`, one for each child; other nodes have none. */
#include "nest.h"
#include "module.h"

static PyObject *mapping_type, *sequence_type; /* of collections.abc */
static PyObject *defaultdict_type;
static PyObject *fields_name; /* "_fields" */

static void leaves_init(core_leaves *leaves)
{
    leaves->items = leaves->inside;
    leaves->count = 0;
    leaves->capacity = (Py_ssize_t)(sizeof(leaves->inside) / sizeof(leaves->inside[0]));
}

void core_leaves_free(core_leaves *leaves)
{
    for (Py_ssize_t i = 0; i < leaves->count; i++) Py_DECREF(leaves->items[i]);
    if (leaves->items != leaves->inside) PyMem_Free(leaves->items);
    leaves_init(leaves);
}

static int leaves_grow(core_leaves *leaves)
{
    Py_ssize_t capacity = leaves->capacity * 2;
    size_t bytes = (size_t)capacity * sizeof(PyObject *);
    bool inside = leaves->items == leaves->inside;
    PyObject **items = PyMem_Realloc(inside ? NULL : leaves->items, bytes);
    if (items == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (inside) memcpy(items, leaves->inside, sizeof(leaves->inside));
    leaves->items = items;
    leaves->capacity = capacity;
    return 0;
}

static inline int leaves_push(core_leaves *leaves, PyObject *leaf)
{
    if (leaves->count == leaves->capacity && leaves_grow(leaves) < 0) return -1;
    Py_INCREF(leaf);
    assert(leaves->count < leaves->capacity);
    leaves->items[leaves->count++] = leaf;
    return 0;
}

static int is_named_tuple(PyObject *obj)
{
    PyObject *fields = PyObject_GetAttr((PyObject *)Py_TYPE(obj), fields_name);
    if (fields == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
        PyErr_Clear();
        return 0;
    }
    bool named = PyTuple_Check(fields) && PyTuple_GET_SIZE(fields) == PyTuple_GET_SIZE(obj);
    Py_DECREF(fields);
    return named;
}

/* True for the common types of leaves: arrays, and scalars of Python and of NumPy. */
static inline bool is_plain_leaf(PyObject *obj)
{
    return PyArray_CheckExact(obj) || PyFloat_CheckExact(obj) || PyLong_Check(obj) ||
           Py_TYPE(obj) == &core_TrajectoryColumn || obj == Py_None || PyUnicode_Check(obj) ||
           PyBytes_Check(obj) || PyArray_IsScalar(obj, Generic) || PyArray_Check(obj);
}

int core_nest_kind(PyObject *obj)
{
    if (PyDict_CheckExact(obj)) return NEST_DICT;
    if (PyTuple_CheckExact(obj)) return NEST_TUPLE;
    if (PyList_CheckExact(obj)) return NEST_LIST;
    if (is_plain_leaf(obj)) return NEST_LEAF;
    if (PyTuple_Check(obj)) {
        int named = is_named_tuple(obj);
        return named < 0 ? -1 : named ? NEST_NAMED : NEST_TUPLE;
    }
    if (PyList_Check(obj)) return NEST_LIST;
    if (PyDict_Check(obj)) return NEST_DICT;
    if (PyObject_CheckBuffer(obj)) return NEST_LEAF;
    int is = PyObject_IsInstance(obj, mapping_type);
    if (is != 0) return is < 0 ? -1 : NEST_DICT;
    is = PyObject_IsInstance(obj, sequence_type);
    return is < 0 ? -1 : is ? NEST_SEQUENCE : NEST_LEAF;
}

static int too_deep(int depth)
{
    if (depth < RP_MAX_NEST_DEPTH) return 0;
    PyErr_Format(PyExc_ValueError, "a nest has at most %d levels", RP_MAX_NEST_DEPTH);
    return -1;
}

/* Adds a node to the structure, unless that is NULL. Takes the references `keys` and `given`,
 * also on failure. */
static int add_node(core_structure *s, nest_kind kind, PyObject *obj, PyObject *keys,
                    PyObject *given, Py_ssize_t children)
{
    assert(keys == NULL || PyTuple_GET_SIZE(keys) == children); /* N3 */
    if (s == NULL) {
        Py_XDECREF(keys);
        Py_XDECREF(given);
        return 0;
    }
    if (s->node_count == s->node_capacity) {
        Py_ssize_t capacity = s->node_capacity * 2 + 4;
        nest_node *nodes = PyMem_Realloc(s->nodes, (size_t)capacity * sizeof(*nodes));
        if (nodes == NULL) {
            PyErr_NoMemory();
            Py_XDECREF(keys);
            Py_XDECREF(given);
            return -1;
        }
        s->nodes = nodes;
        s->node_capacity = capacity;
    }
    PyTypeObject *type = kind == NEST_LEAF ? NULL : Py_TYPE(obj);
    Py_XINCREF(type);
    nest_node *node = &s->nodes[s->node_count++];
    *node = (nest_node){kind, type, keys, given, NULL, children};
    if (kind == NEST_LEAF) s->leaf_count++;
    if (type != (PyTypeObject *)defaultdict_type) return 0;
    node->factory = PyObject_GetAttrString(obj, "default_factory");
    return node->factory == NULL ? -1 : 0;
}

static int walk(PyObject *obj, core_structure *s, core_leaves *leaves, int depth);

static int walk_items(PyObject *sequence, Py_ssize_t count, core_structure *s,
                      core_leaves *leaves, int depth)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        int failed = item == NULL ? -1 : walk(item, s, leaves, depth + 1);
        Py_XDECREF(item);
        if (failed) return -1;
    }
    return 0;
}

/* Returns the keys of a mapping as a sorted tuple. If the mapping's own order differs, sets
 * `*given` to the keys in that order. */
static PyObject *sorted_keys(PyObject *mapping, PyObject **given)
{
    PyObject *keys =
        PyDict_CheckExact(mapping) ? PyDict_Keys(mapping) : PyMapping_Keys(mapping);
    PyObject *unsorted = keys == NULL ? NULL : PyList_AsTuple(keys);
    PyObject *sorted = NULL;
    if (unsorted == NULL) goto out;
    if (PyList_Sort(keys) < 0) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "a nest takes dicts with sortable keys only, got %R",
                         unsorted);
        goto out;
    }
    sorted = PyList_AsTuple(keys);
    if (sorted == NULL) goto out;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sorted); i++) {
        if (PyTuple_GET_ITEM(sorted, i) == PyTuple_GET_ITEM(unsorted, i)) continue;
        *given = unsorted;
        unsorted = NULL;
        break;
    }
out:
    Py_XDECREF(unsorted);
    Py_XDECREF(keys);
    return sorted;
}

/* Returns the value of a key, a new reference. NULL without an exception if there is no such
 * key. */
static PyObject *value_of(PyObject *mapping, PyObject *key)
{
    if (PyDict_CheckExact(mapping)) {
        PyObject *value = PyDict_GetItemWithError(mapping, key);
        Py_XINCREF(value);
        return value;
    }
    /* Test for the key first: some mappings create a value for a key that they do not have. */
    if (PySequence_Contains(mapping, key) != 1) return NULL;
    PyObject *value = PyObject_GetItem(mapping, key);
    if (value == NULL && PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_Clear();
    return value;
}

static int walk_mapping(PyObject *mapping, core_structure *s, core_leaves *leaves, int depth)
{
    PyObject *given = NULL;
    PyObject *keys = sorted_keys(mapping, &given);
    if (keys == NULL) return -1;
    Py_INCREF(keys);
    int failed = add_node(s, NEST_DICT, mapping, keys, given, PyTuple_GET_SIZE(keys));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys) && !failed; i++) {
        PyObject *value = value_of(mapping, PyTuple_GET_ITEM(keys, i));
        if (value == NULL && !PyErr_Occurred())
            PyErr_SetObject(PyExc_KeyError, PyTuple_GET_ITEM(keys, i));
        failed = value == NULL ? -1 : walk(value, s, leaves, depth + 1);
        Py_XDECREF(value);
    }
    Py_DECREF(keys);
    return failed;
}

/* Returns the fields of a named tuple, of which there must be `count`. */
static PyObject *fields_of(PyObject *obj, Py_ssize_t count)
{
    PyObject *fields = PyObject_GetAttr((PyObject *)Py_TYPE(obj), fields_name);
    if (fields == NULL || (PyTuple_Check(fields) && PyTuple_GET_SIZE(fields) == count))
        return fields;
    PyErr_Format(PyExc_ValueError, "a named tuple must have as many elements as fields: %s",
                 Py_TYPE(obj)->tp_name);
    Py_DECREF(fields);
    return NULL;
}

/* Appends the leaves of `obj` and, unless `s` is NULL, its nodes. */
static int walk(PyObject *obj, core_structure *s, core_leaves *leaves, int depth)
{
    int kind = core_nest_kind(obj);
    if (kind < 0) return -1;
    if (kind == NEST_LEAF) {
        if (add_node(s, NEST_LEAF, obj, NULL, NULL, 0) < 0) return -1;
        return leaves_push(leaves, obj);
    }
    if (too_deep(depth) < 0) return -1;
    if (kind == NEST_DICT) return walk_mapping(obj, s, leaves, depth);
    PyObject *fields = NULL;
    Py_ssize_t count = PySequence_Size(obj);
    if (count < 0) return -1;
    if (kind == NEST_NAMED) {
        fields = fields_of(obj, count);
        if (fields == NULL) return -1;
    }
    if (add_node(s, (nest_kind)kind, obj, fields, NULL, count) < 0) return -1;
    return walk_items(obj, count, s, leaves, depth);
}

int core_flatten(PyObject *nest, core_leaves *leaves)
{
    leaves_init(leaves);
    if (walk(nest, NULL, leaves, 0) == 0) return 0;
    core_leaves_free(leaves);
    return -1;
}

PyObject *core_structure_of(PyObject *nest)
{
    core_structure *s = PyObject_GC_New(core_structure, &core_Structure);
    if (s == NULL) return NULL;
    s->nodes = NULL;
    s->node_count = s->node_capacity = s->leaf_count = 0;
    core_leaves leaves;
    leaves_init(&leaves);
    int failed = walk(nest, s, &leaves, 0);
    core_leaves_free(&leaves);
    if (failed) {
        Py_DECREF(s);
        return NULL;
    }
    PyObject_GC_Track(s);
    return (PyObject *)s;
}

/* Returns 1 if `obj` is of the node's kind. A named tuple must have the class of the node's, or
 * a class with the same name and fields. */
static int same_kind(const nest_node *node, PyObject *obj)
{
    if (Py_TYPE(obj) == node->type) return 1;
    int kind = core_nest_kind(obj);
    if (kind < 0) return -1;
    if (kind != (int)node->kind) return 0;
    if (kind == NEST_LEAF || kind == NEST_LIST || kind == NEST_DICT) return 1;
    if (kind != NEST_NAMED) return 0;
    if (strcmp(Py_TYPE(obj)->tp_name, node->type->tp_name) != 0) return 0;
    PyObject *fields = PyObject_GetAttr((PyObject *)Py_TYPE(obj), fields_name);
    int same = fields == NULL ? -1 : PyObject_RichCompareBool(fields, node->keys, Py_EQ);
    Py_XDECREF(fields);
    return same;
}

static int match(const core_structure *s, Py_ssize_t *at, PyObject *obj, core_leaves *leaves);

static int match_mapping(const core_structure *s, Py_ssize_t *at, const nest_node *node,
                         PyObject *obj, core_leaves *leaves)
{
    for (Py_ssize_t i = 0; i < node->children; i++) {
        PyObject *value = value_of(obj, PyTuple_GET_ITEM(node->keys, i));
        if (value == NULL) return PyErr_Occurred() ? -1 : 0;
        int same = match(s, at, value, leaves);
        Py_DECREF(value);
        if (same != 1) return same;
    }
    return 1;
}

static int match(const core_structure *s, Py_ssize_t *at, PyObject *obj, core_leaves *leaves)
{
    assert(*at < s->node_count); /* N1 */
    const nest_node *node = &s->nodes[(*at)++];
    int same = same_kind(node, obj);
    if (same != 1) return same;
    if (node->kind == NEST_LEAF) return leaves_push(leaves, obj) < 0 ? -1 : 1;
    Py_ssize_t count = PyObject_Size(obj);
    if (count != node->children) return count < 0 ? -1 : 0;
    if (node->kind == NEST_DICT) return match_mapping(s, at, node, obj, leaves);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(obj, i);
        same = item == NULL ? -1 : match(s, at, item, leaves);
        Py_XDECREF(item);
        if (same != 1) return same;
    }
    return 1;
}

int core_structure_flatten(PyObject *structure, PyObject *nest, core_leaves *leaves)
{
    Py_ssize_t at = 0;
    leaves_init(leaves);
    int same = match((core_structure *)structure, &at, nest, leaves);
    assert(same != 1 || leaves->count == ((core_structure *)structure)->leaf_count); /* N2 */
    if (same != 1) core_leaves_free(leaves);
    return same;
}

Py_ssize_t core_structure_leaf_count(PyObject *structure)
{
    return ((core_structure *)structure)->leaf_count;
}

/* The next node and the next leaf. */
typedef struct position {
    Py_ssize_t node, leaf;
} position;

static PyObject *build(const core_structure *s, position *at, PyObject *const *leaves);

static PyObject *build_tuple(const core_structure *s, const nest_node *node, position *at,
                             PyObject *const *leaves)
{
    PyObject *tuple = PyTuple_New(node->children);
    if (tuple == NULL) return NULL;
    for (Py_ssize_t i = 0; i < node->children; i++) {
        PyObject *child = build(s, at, leaves);
        if (child == NULL) {
            Py_DECREF(tuple);
            return NULL;
        }
        PyTuple_SET_ITEM(tuple, i, child);
    }
    return tuple;
}

static PyObject *build_dict(const core_structure *s, const nest_node *node, position *at,
                            PyObject *const *leaves)
{
    PyObject *dict = PyDict_New();
    if (dict == NULL) return NULL;
    for (Py_ssize_t i = 0; node->given != NULL && i < node->children; i++)
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(node->given, i), Py_None) < 0) goto fail;
    for (Py_ssize_t i = 0; i < node->children; i++) {
        PyObject *child = build(s, at, leaves);
        if (child == NULL) goto fail;
        int failed = PyDict_SetItem(dict, PyTuple_GET_ITEM(node->keys, i), child);
        Py_DECREF(child);
        if (failed) goto fail;
    }
    if (node->type == &PyDict_Type) return dict;
    /* A mapping of another type is made by calling its type with the dict. If that fails, the
     * result is the dict. */
    PyObject *first = node->factory == NULL ? dict : node->factory;
    PyObject *second = node->factory == NULL ? NULL : dict;
    PyObject *other = PyObject_CallFunctionObjArgs((PyObject *)node->type, first, second, NULL);
    if (other == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        return dict;
    }
    Py_DECREF(dict);
    return other;
fail:
    Py_DECREF(dict);
    return NULL;
}

static PyObject *build(const core_structure *s, position *at, PyObject *const *leaves)
{
    assert(at->node < s->node_count); /* N1 */
    const nest_node *node = &s->nodes[at->node++];
    if (node->kind == NEST_LEAF) {
        assert(at->leaf < s->leaf_count); /* N2 */
        PyObject *leaf = leaves[at->leaf++];
        Py_INCREF(leaf);
        return leaf;
    }
    if (node->kind == NEST_DICT) return build_dict(s, node, at, leaves);
    PyObject *tuple = build_tuple(s, node, at, leaves), *nest = NULL;
    if (tuple == NULL || node->type == &PyTuple_Type) return tuple;
    if (node->type == &PyList_Type)
        nest = PySequence_List(tuple);
    else if (node->kind == NEST_NAMED)
        nest = PyObject_Call((PyObject *)node->type, tuple, NULL);
    else
        nest = PyObject_CallFunctionObjArgs((PyObject *)node->type, tuple, NULL);
    Py_DECREF(tuple);
    return nest;
}

PyObject *core_structure_pack(PyObject *structure, PyObject *const *leaves, Py_ssize_t count)
{
    const core_structure *s = (core_structure *)structure;
    if (count != s->leaf_count) {
        PyErr_Format(PyExc_ValueError, "a structure of %zd leaves cannot be packed with %zd",
                     s->leaf_count, count);
        return NULL;
    }
    position at = {0, 0};
    PyObject *nest = build(s, &at, leaves);
    assert(nest == NULL || (at.node == s->node_count && at.leaf == count)); /* N1, N2 */
    return nest;
}

/* Appends the paths of the leaves below the node `*at`; `path` is the path of the node. */
static int add_paths(const core_structure *s, Py_ssize_t *at, PyObject *path, PyObject *list)
{
    assert(*at < s->node_count); /* N1 */
    const nest_node *node = &s->nodes[(*at)++];
    if (node->kind == NEST_LEAF) return PyList_Append(list, path);
    for (Py_ssize_t i = 0; i < node->children; i++) {
        PyObject *step = node->keys == NULL ? Py_BuildValue("(n)", i)
                                            : PyTuple_Pack(1, PyTuple_GET_ITEM(node->keys, i));
        PyObject *deeper = step == NULL ? NULL : PySequence_Concat(path, step);
        int failed = deeper == NULL ? -1 : add_paths(s, at, deeper, list);
        Py_XDECREF(step);
        Py_XDECREF(deeper);
        if (failed) return -1;
    }
    return 0;
}

PyObject *core_structure_paths(PyObject *structure)
{
    Py_ssize_t at = 0;
    PyObject *list = PyList_New(0), *root = PyTuple_New(0);
    if (list == NULL || root == NULL ||
        add_paths((core_structure *)structure, &at, root, list) < 0)
        Py_CLEAR(list);
    Py_XDECREF(root);
    return list;
}

PyObject *core_path_text(PyObject *path)
{
    PyObject *text = PyUnicode_FromString("");
    for (Py_ssize_t i = 0; text != NULL && i < PyTuple_GET_SIZE(path); i++) {
        PyObject *longer =
            PyUnicode_FromFormat(i == 0 ? "%U%S" : "%U/%S", text, PyTuple_GET_ITEM(path, i));
        Py_SETREF(text, longer);
    }
    return text;
}

PyObject *core_structure_path(PyObject *structure, Py_ssize_t leaf)
{
    PyObject *paths = core_structure_paths(structure), *text = NULL;
    if (paths == NULL) return NULL;
    if (leaf >= 0 && leaf < PyList_GET_SIZE(paths))
        text = core_path_text(PyList_GET_ITEM(paths, leaf));
    else
        PyErr_Format(PyExc_IndexError, "no leaf %zd among %zd", leaf, PyList_GET_SIZE(paths));
    Py_DECREF(paths);
    return text;
}

int core_init_nest(PyObject *module)
{
    (void)module;
    PyObject *abc = PyImport_ImportModule("collections.abc");
    if (abc == NULL) return -1;
    mapping_type = PyObject_GetAttrString(abc, "Mapping");
    sequence_type = PyObject_GetAttrString(abc, "Sequence");
    Py_DECREF(abc);
    PyObject *collections = PyImport_ImportModule("collections");
    if (collections == NULL) return -1;
    defaultdict_type = PyObject_GetAttrString(collections, "defaultdict");
    Py_DECREF(collections);
    fields_name = PyUnicode_InternFromString("_fields");
    bool all = mapping_type != NULL && sequence_type != NULL && defaultdict_type != NULL;
    return all && fields_name != NULL ? 0 : -1;
}
