/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a structure, for nest.c (which states the invariants) and structure.c. A nest is
 * a value of nested lists, tuples and mappings, by the rules of dm-tree. A structure describes
 * a nest without its leaves: the types, keys and order of its containers. */
#ifndef REPRISE_PYTHON_NEST_H
#define REPRISE_PYTHON_NEST_H

#include "core.h"

typedef enum nest_kind {
    NEST_LEAF,
    NEST_LIST,
    NEST_TUPLE,    /* a tuple; to make one, its type is called with an iterable */
    NEST_NAMED,    /* a named tuple; to make one, its type is called with the fields */
    NEST_DICT,     /* any mapping */
    NEST_SEQUENCE, /* any other sequence, except strings and objects with a buffer */
} nest_kind;

typedef struct nest_node {
    nest_kind kind;
    PyTypeObject *type; /* NULL for a leaf */
    PyObject *keys;  /* a tuple: sorted keys of a mapping, fields of a named tuple; else NULL */
    PyObject *given; /* keys of a mapping in the mapping's own order; NULL if this order is
                        sorted, and for other kinds */
    PyObject *factory;   /* default_factory of a defaultdict; else NULL */
    Py_ssize_t children; /* 0 for a leaf */
} nest_node;

struct core_structure {
    PyObject_HEAD
    nest_node *nodes;
    Py_ssize_t node_count, node_capacity, leaf_count;
};

/* Returns the kind of `obj`, or -1 with an exception. */
int core_nest_kind(PyObject *obj);

/* Returns a list with the path of each leaf, in order: a tuple of keys and indices. */
PyObject *core_structure_paths(PyObject *structure);
/* Formats a path for error texts: keys and indices joined with '/'. */
PyObject *core_path_text(PyObject *path);

#endif
