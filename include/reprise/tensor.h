/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors, and signatures. A signature lists the columns (tensors) that each item of a table
 * must have, with their dtypes and shapes.
 *
 * Data is row-major and little-endian. The dtype numbers are those of TensorFlow, also on the
 * wire. */
#ifndef REPRISE_TENSOR_H
#define REPRISE_TENSOR_H

#include "reprise/alloc.h"

RP_BEGIN_DECLS

typedef enum rp_dtype {
    RP_INVALID_DTYPE = 0,
    RP_FLOAT32 = 1,
    RP_FLOAT64 = 2,
    RP_INT32 = 3,
    RP_UINT8 = 4,
    RP_INT16 = 5,
    RP_INT8 = 6,
    RP_STRING = 7, /* elements are rp_string, of any length */
    RP_COMPLEX64 = 8,
    RP_INT64 = 9,
    RP_BOOL = 10,
    RP_QINT8 = 11,
    RP_QUINT8 = 12,
    RP_QINT32 = 13,
    RP_BFLOAT16 = 14,
    RP_QINT16 = 15,
    RP_QUINT16 = 16,
    RP_UINT16 = 17,
    RP_COMPLEX128 = 18,
    RP_FLOAT16 = 19,
    RP_UINT32 = 22,
    RP_UINT64 = 23,
    RP_FLOAT8_E5M2 = 24,
    RP_FLOAT8_E4M3FN = 25,
    RP_INT4 = 29,  /* one element a byte */
    RP_UINT4 = 30, /* one element a byte */
} rp_dtype;

/* Returns the number of bytes of one element: sizeof(rp_string) for RP_STRING, 0 if `dtype` is
 * none of the dtypes above. */
RP_API size_t rp_dtype_size(rp_dtype dtype);

/* Returns the name that TensorFlow prints ("float", "double", "int32", "half", ...), or NULL if
 * `dtype` is none of the dtypes above. Static. */
RP_API const char *rp_dtype_name(rp_dtype dtype);

enum { RP_MAX_RANK = 8 };

/* A shape, outermost dimension first. Rank 0 is a scalar. In a signature a dimension of -1
 * accepts any size, and rank -1 accepts any shape. */
typedef struct rp_shape {
    int32_t rank;
    int64_t dims[RP_MAX_RANK];
} rp_shape;

/* Computes the number of elements: the product of the dimensions, 1 for a scalar. Errors:
 * RP_INVALID (`shape` is NULL, a dimension is negative, the rank is not in 0 .. RP_MAX_RANK, or
 * the number does not fit into a size_t). */
RP_API RP_NODISCARD rp_status rp_shape_elements(const rp_shape *shape, size_t *elements);

/* Returns true if ranks and dimensions are the same. */
RP_API bool rp_shape_equal(const rp_shape *a, const rp_shape *b);

/* Returns true if `shape`, which has no -1, fits `pattern`. In the pattern a dimension of -1
 * accepts any size, and rank -1 accepts any shape. */
RP_API bool rp_shape_fits(const rp_shape *shape, const rp_shape *pattern);

/* Writes the shape as "[2,?,3]", or "<unknown>" for rank -1, into `text` and returns `text`.
 * The result is cut to fit `size` (>= 1) bytes. */
RP_API char *rp_shape_text(const rp_shape *shape, char *text, size_t size);

/* One element of a string tensor: bytes, not necessarily zero-terminated. */
typedef struct rp_string {
    const char *data;
    size_t size;
} rp_string;

/* A view of memory that the caller owns. `data` has rp_shape_elements() elements of `dtype`. */
typedef struct rp_tensor {
    rp_dtype dtype;
    rp_shape shape;
    const void *data;
} rp_tensor;

/* The type of one column. For a column of a writer's steps, `shape` is the shape of one row.
 * For a column of a table's signature, `shape` is the shape of an item's whole column. Its
 * first dimension is then the number of rows. */
typedef struct rp_spec {
    const char *name; /* may be NULL */
    rp_dtype dtype;
    rp_shape shape;
} rp_spec;

/* A nested structure is given as its nodes in preorder: a parent, then its children. */
typedef enum rp_nest_kind {
    RP_NEST_LEAF = 0,
    RP_NEST_LIST = 1,
    RP_NEST_TUPLE = 2,
    RP_NEST_DICT = 3, /* flattened in the order of the keys, which are compared as bytes */
    RP_NEST_NAMEDTUPLE = 4, /* flattened in the order given */
} rp_nest_kind;

typedef struct rp_nest_node {
    rp_nest_kind kind;
    const char *key;       /* the name of a child of a dict or named tuple; else NULL */
    const char *type_name; /* the class of a named tuple; else NULL */
    uint32_t child_count;  /* 0 for a leaf */
    rp_spec spec;          /* the type of a leaf; spec.name may be NULL */
} rp_nest_node;

/* The signature of a table: a nested structure. Its leaves, flattened, are the columns that an
 * item must have. A signature is immutable and reference counted. Every call is safe from any
 * thread. */
typedef struct rp_signature rp_signature;

enum { RP_MAX_COLUMNS = 4096, RP_MAX_NEST_DEPTH = 64 };

/* Makes a signature of `nodes` (in preorder, with one root). Nodes, names and keys are copied.
 * Returns owned: drop it with rp_signature_unref().
 * Errors: RP_INVALID (no leaf, a bad dtype or shape, child counts that do not match the number
 * of nodes, a missing or repeated key, too deep, too many columns), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_signature_new(const rp_allocator *alloc,
                                               const rp_nest_node *nodes, size_t node_count,
                                               rp_signature **out, rp_error *err);

/* Makes a signature without nesting: a dict of `column_count` named columns, or a tuple if the
 * first column has no name. The columns of a dict are sorted by name, and items must have their
 * columns in this order. Errors: those of rp_signature_new(). */
RP_API RP_NODISCARD rp_status rp_signature_flat(const rp_allocator *alloc,
                                                const rp_spec *columns, size_t column_count,
                                                rp_signature **out, rp_error *err);

RP_API rp_signature *rp_signature_ref(rp_signature *signature);
RP_API void rp_signature_unref(rp_signature *signature); /* NULL is fine */

/* The columns: the leaves in flattened order. The name of a column is its path: the keys, and
 * the positions in lists and tuples, joined with '/'. A path has at most 4095 bytes, all paths
 * together at most 1 MiB. If the whole signature is one leaf, the column has the name in the
 * spec of the leaf, or "". Borrowed, valid as long as the signature. */
RP_API size_t rp_signature_column_count(const rp_signature *signature);
RP_API const rp_spec *rp_signature_column(const rp_signature *signature, size_t index);

/* Returns the nodes as they were given, in preorder. Borrowed, valid as long as the signature.
 */
RP_API const rp_nest_node *rp_signature_nodes(const rp_signature *signature,
                                              size_t *node_count);

RP_END_DECLS

#endif
