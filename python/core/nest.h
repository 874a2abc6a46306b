/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a structure: its nodes in preorder, a parent before its children. */
#ifndef REPRISE_PYTHON_NEST_H
#define REPRISE_PYTHON_NEST_H

#include "core.h"

typedef enum nest_kind {
    NEST_LEAF,
    NEST_LIST,
    NEST_TUPLE,    /* of a type that is called with an iterable */
    NEST_NAMED,    /* a named tuple: its type is called with its fields */
    NEST_DICT,     /* any mapping */
    NEST_SEQUENCE, /* any other sequence, but for strings and what has a buffer */
} nest_kind;

typedef struct nest_node {
    nest_kind kind;
    PyTypeObject *type; /* NULL for a leaf */
    PyObject *keys;     /* tuple: of a mapping sorted, of a named tuple its fields; else NULL */
    PyObject *given;    /* the keys of a mapping as they were given, if that is not sorted */
    PyObject *factory;  /* of a defaultdict: its default_factory; else NULL */
    Py_ssize_t children; /* 0 for a leaf */
} nest_node;

struct core_structure {
    PyObject_HEAD
    nest_node *nodes;
    Py_ssize_t node_count, node_capacity, leaf_count;
};

/* What `obj` is; -1 with an exception. */
int core_nest_kind(PyObject *obj);

/* For each leaf, in order, a tuple of the keys and positions on the way to it. */
PyObject *core_structure_paths(PyObject *structure);
/* One of those as messages show it: joined with '/'. */
PyObject *core_path_text(PyObject *path);

#endif
