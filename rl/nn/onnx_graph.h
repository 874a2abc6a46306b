/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of an ONNX file, written from front to back.
 *
 * A file is one message of protobuf, with these fields (onnx.proto):
 *
 *   Model { 1 int64 ir_version; 2 string producer_name; 7 Graph graph; 8 OperatorSet opsets }
 *   OperatorSet { 1 string domain; 2 int64 version }
 *   Graph { 1 Node nodes; 2 string name; 5 Tensor constants; 11 Value inputs; 12 Value outputs
 * }
 *   Node { 1 string inputs; 2 string outputs; 3 string name; 4 string operator;
 *          5 Attribute attributes }
 *   Attribute { 1 string name; 2 float f; 3 int64 i; 8 int64 ints; 20 int32 type }
 *   Tensor { 1 int64 dims; 2 int32 type; 8 string name; 9 bytes data }
 *   Value { 1 string name; 2 { 1 { 1 int32 type; 2 { 1 Dim dims } } } }
 *   Dim { 1 int64 size; 2 string variable }
 *
 * A message within a message begins with its length, which is inserted when the message ends.
 *
 * Invariants:
 *   G1  size <= room;
 *   G2  every message that was opened is closed, the last one first;
 *   G3  a value is written before it is used.
 * If memory runs out, `failed` is set, and all later calls do nothing. */
#ifndef RP_NN_ONNX_GRAPH_H
#define RP_NN_ONNX_GRAPH_H

#include "reprise/rl/onnx.h"

enum { RP_ONNX_FLOAT = 1, RP_ONNX_UINT8 = 2, RP_ONNX_INT64 = 7 }; /* types of tensors */

enum {
    RP_ONNX_MAX_INPUTS = 4,
    RP_ONNX_MAX_ATTRIBUTES = 3,
    RP_ONNX_MAX_OUTPUTS = 4,
    RP_ONNX_MAX_DEPTH = 8,
};

typedef struct rp_onnx_graph {
    rp_allocator alloc;
    uint8_t *bytes;
    size_t size, room;
    size_t open[RP_ONNX_MAX_DEPTH]; /* where the contents of each open message begin */
    size_t depth;
    size_t names; /* values named so far */
    bool failed;
} rp_onnx_graph;

/* The name of a value. */
typedef struct rp_onnx_value {
    char name[56];
} rp_onnx_value;

typedef enum rp_onnx_attribute_kind {
    RP_ONNX_A_FLOAT = 1, /* the numbers are ONNX's */
    RP_ONNX_AN_INT = 2,
    RP_ONNX_INTS = 7,
} rp_onnx_attribute_kind;

typedef struct rp_onnx_attribute {
    const char *name;
    rp_onnx_attribute_kind kind;
    float number;
    int64_t ints[4]; /* RP_ONNX_AN_INT: the first */
    size_t count;    /* RP_ONNX_INTS */
} rp_onnx_attribute;

/* One operator. The arrays end with the first entry that is NULL. */
typedef struct rp_onnx_node {
    const char *op;
    const rp_onnx_value *in[RP_ONNX_MAX_INPUTS];
    rp_onnx_value *out[RP_ONNX_MAX_OUTPUTS];
    rp_onnx_attribute attributes[RP_ONNX_MAX_ATTRIBUTES];
} rp_onnx_node;

/* Opens and closes a message that is field `field` of the open one. */
void rp_onnx_open(rp_onnx_graph *g, unsigned field);
void rp_onnx_close(rp_onnx_graph *g);
void rp_onnx_put_int(rp_onnx_graph *g, unsigned field, int64_t value);
void rp_onnx_put_text(rp_onnx_graph *g, unsigned field, const char *text);

/* Adds an operator. Those of its outputs that have no name get one. */
void rp_onnx_add(rp_onnx_graph *g, rp_onnx_node node);
/* Adds an operator of one or two inputs (`b` may be NULL) without attributes. */
rp_onnx_value rp_onnx_apply(rp_onnx_graph *g, const char *op, const rp_onnx_value *a,
                            const rp_onnx_value *b);

/* Opens a constant of `rank` dimensions and `bytes` bytes. Returns the place for its data, or
 * NULL if memory ran out, then closes it. The place is valid until the next call. `name` NULL:
 * a new name. */
uint8_t *rp_onnx_constant(rp_onnx_graph *g, const char *name, int type, const size_t *dims,
                          size_t rank, rp_onnx_value *out);
/* A constant of int64: a shape whose first dimension, 0, stands for the batch. */
rp_onnx_value rp_onnx_shape(rp_onnx_graph *g, const size_t *dims, size_t rank);
/* A constant of one number. */
rp_onnx_value rp_onnx_scalar(rp_onnx_graph *g, float number);

/* Adds an input (field 11) or an output (12): `dims` after the batch. */
void rp_onnx_port(rp_onnx_graph *g, unsigned field, const char *name, int type,
                  const int64_t *dims, size_t rank);

/* Asserts G1 and G2. */
void rp_onnx_graph_check(const rp_onnx_graph *g);

#endif
