/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's reflection service (proto/grpc/reflection), v1 and v1alpha alike: the messages are the
 * same. Pure functions over the tables of descriptors.h. */
#ifndef RP_WIRE_REFLECTION_CALLS_H
#define RP_WIRE_REFLECTION_CALLS_H

#include "reprise/tensor.h"
#include "util/buf.h"

/* What is asked for; the values are the numbers of the fields. */
typedef enum rp_wire_reflection_kind {
    RP_WIRE_REFLECT_NOTHING = 0,
    RP_WIRE_REFLECT_FILE = 3,
    RP_WIRE_REFLECT_SYMBOL = 4,
    RP_WIRE_REFLECT_EXTENSION = 5,
    RP_WIRE_REFLECT_EXTENSION_NUMBERS = 6,
    RP_WIRE_REFLECT_SERVICES = 7,
} rp_wire_reflection_kind;

/* Strings are borrowed. */
typedef struct rp_wire_reflection_request {
    rp_string host;
    rp_wire_reflection_kind kind;
    rp_string text;           /* the file, symbol or type; of an extension, its type */
    int32_t extension_number; /* of RP_WIRE_REFLECT_EXTENSION */
} rp_wire_reflection_request;

/* RP_INVALID (not such a message, a text that is none or has more than 255 bytes). */
RP_NODISCARD rp_status rp_wire_read_reflection_request(const uint8_t *data, size_t size,
                                                       rp_wire_reflection_request *out,
                                                       rp_error *err);

/* Writes the answer: the services, a file with all that it imports, or an error within the
 * response (NOT_FOUND; UNIMPLEMENTED for a request that asks for nothing we know). */
void rp_wire_write_reflection_response(rp_buf *out, const rp_wire_reflection_request *request);

#endif
