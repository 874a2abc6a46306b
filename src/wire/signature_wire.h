/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the signatures of tables in messages, where they are a
 * tensorflow.StructuredValue.
 *
 *   StructuredValue          33 TensorSpecProto  35 BoundedTensorSpecProto
 *                            51 ListValue  52 TupleValue  53 DictValue  54 NamedTupleValue
 *   ListValue, TupleValue    1 StructuredValue, repeated
 *   DictValue                1 entry, repeated: 1 key  2 StructuredValue
 *   NamedTupleValue          1 name  2 pair, repeated: 1 key  2 StructuredValue
 *   TensorSpecProto          1 name  2 TensorShapeProto  3 dtype
 *
 * A bounded spec is read as a plain spec: its bounds are ignored. */
#ifndef RP_WIRE_SIGNATURE_WIRE_H
#define RP_WIRE_SIGNATURE_WIRE_H

#include "reprise/tensor.h"
#include "util/buf.h"

/* The largest size of the name of a column or of a nested type. */
enum { RP_WIRE_MAX_COLUMN_NAME_BYTES = 1024 };

enum {
    RP_WIRE_MAX_SIGNATURE_BYTES = 1 << 20,
    RP_WIRE_MAX_SIGNATURE_NODES = 4 * RP_MAX_COLUMNS,
};

/* Makes a signature from a serialised StructuredValue, without recursion. The caller owns
 * `*out`. Errors: RP_INVALID (malformed, a value of another kind, a name that is not text, and
 * the errors of rp_signature_new()), RP_NO_RESOURCE (one of the limits above, or memory). */
RP_NODISCARD rp_status rp_wire_read_signature(const rp_allocator *alloc, const uint8_t *data,
                                              size_t size, rp_signature **out, rp_error *err);

/* Appends the signature as field `number` of the message in `out`. */
void rp_wire_put_signature(rp_buf *out, uint32_t number, const rp_signature *signature);

#endif
