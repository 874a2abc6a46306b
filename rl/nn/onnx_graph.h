/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the bytes of an ONNX file from front to back.
 *
 * A file is one protobuf message with these fields (onnx.proto):
 *
 *   Model { 1 int64 ir_version; 2 string producer_name; 7 Graph graph; 8 OperatorSet opsets }
 *   OperatorSet { 1 string domain; 2 int64 version }
 *   Graph { 1 Node nodes; 2 string name; 5 Tensor constants; 11 Value inputs;
 *           12 Value outputs }
 *   Node { 1 string inputs; 2 string outputs; 3 string name; 4 string operator;
 *          5 Attribute attributes }
 *   Attribute { 1 string name; 2 float f; 3 int64 i; 8 int64 ints; 20 int32 type }
 *   Tensor { 1 int64 dims; 2 int32 type; 8 string name; 9 bytes data }
 *   Value { 1 string name; 2 { 1 { 1 int32 type; 2 { 1 Dim dims } } } }
 *   Dim { 1 int64 size; 2 string variable }
 *
 * A message within a message begins with its length. While fields can still be added to a
 * message, it is called open. rp_onnx_close() closes a message: it inserts the length in front
 * of the contents.
 *
 * Invariants:
 *   G1  size <= room;
 *   G2  every message that was opened is closed, in the reverse order of opening;
 *   G3  a value is written before an operator reads it.
 *
 * If memory runs out, the field `failed` is set, and no later call adds anything to the
 * file. */
#ifndef RP_NN_ONNX_GRAPH_H
#define RP_NN_ONNX_GRAPH_H

#include "reprise/rl/onnx.h"

enum { RP_ONNX_FLOAT = 1, RP_ONNX_UINT8 = 2, RP_ONNX_INT64 = 7 }; /* ONNX's tensor types */

enum {
    RP_ONNX_MAX_INPUTS = 4,
    RP_ONNX_MAX_ATTRIBUTES = 3,
    RP_ONNX_MAX_OUTPUTS = 4,
    RP_ONNX_MAX_DEPTH = 8,
};

typedef struct rp_onnx_graph {
    rp_allocator alloc;
    uint8_t *bytes;
    size_t size, room;              /* bytes written, bytes allocated */
    size_t open[RP_ONNX_MAX_DEPTH]; /* offset of the contents of each open message */
    size_t depth;                   /* number of open messages */
    size_t names;                   /* number of values named so far */
    bool failed;
} rp_onnx_graph;

/* A value of the graph (an input, a constant or an output of an operator), given by its
 * name. */
typedef struct rp_onnx_value {
    char name[56];
} rp_onnx_value;

typedef enum rp_onnx_attribute_kind {
    RP_ONNX_A_FLOAT = 1, /* the codes of the three kinds are ONNX's */
    RP_ONNX_AN_INT = 2,
    RP_ONNX_INTS = 7,
} rp_onnx_attribute_kind;

typedef struct rp_onnx_attribute {
    const char *name;
    rp_onnx_attribute_kind kind;
    float number;    /* value of a RP_ONNX_A_FLOAT */
    int64_t ints[4]; /* values of RP_ONNX_INTS; the value of a RP_ONNX_AN_INT is ints[0] */
    size_t count;    /* entries of `ints` in use, for RP_ONNX_INTS */
} rp_onnx_attribute;

/* One operator. The entries of an array after the last input, output or attribute must be
 * zero. */
typedef struct rp_onnx_node {
    const char *op;
    const rp_onnx_value *in[RP_ONNX_MAX_INPUTS];
    rp_onnx_value *out[RP_ONNX_MAX_OUTPUTS];
    rp_onnx_attribute attributes[RP_ONNX_MAX_ATTRIBUTES];
} rp_onnx_node;

/* Opens a message as field number `field` of the innermost open message. */
void rp_onnx_open(rp_onnx_graph *g, unsigned field);
/* Closes the innermost open message. */
void rp_onnx_close(rp_onnx_graph *g);
/* Add a field to the innermost open message. */
void rp_onnx_put_int(rp_onnx_graph *g, unsigned field, int64_t value);
void rp_onnx_put_text(rp_onnx_graph *g, unsigned field, const char *text);

/* Adds an operator. An output without a name gets a new name. */
void rp_onnx_add(rp_onnx_graph *g, rp_onnx_node node);
/* Adds an operator without attributes, with the inputs `a` and `b`, and returns its output. `b`
 * may be NULL. */
rp_onnx_value rp_onnx_apply(rp_onnx_graph *g, const char *op, const rp_onnx_value *a,
                            const rp_onnx_value *b);

/* Adds a constant tensor with the dimensions `dims`. Returns the memory to which the caller
 * must write its data, or NULL if memory has run out. The memory is valid until the next call.
 * If `name` is NULL, the constant gets a new name. */
uint8_t *rp_onnx_constant(rp_onnx_graph *g, const char *name, int type, const size_t *dims,
                          size_t rank, rp_onnx_value *out);
/* Adds an int64 constant that holds `dims`, a shape for a Reshape operator. A first dimension
 * of 0 stands for the batch. */
rp_onnx_value rp_onnx_shape(rp_onnx_graph *g, const size_t *dims, size_t rank);
/* Adds a constant of one number. */
rp_onnx_value rp_onnx_scalar(rp_onnx_graph *g, float number);

/* Adds an input (`field` 11) or an output (`field` 12) of the graph. `dims` are its dimensions
 * after the batch. */
void rp_onnx_port(rp_onnx_graph *g, unsigned field, const char *name, int type,
                  const int64_t *dims, size_t rank);

/* Asserts the invariants G1 and G2. */
void rp_onnx_graph_check(const rp_onnx_graph *g);

#endif
