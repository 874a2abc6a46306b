/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the messages of gRPC's reflection service (proto/grpc/reflection). The
 * versions v1 and v1alpha have the same messages. The responses come from the tables of
 * descriptors.h. */
#ifndef RP_WIRE_REFLECTION_MESSAGES_H
#define RP_WIRE_REFLECTION_MESSAGES_H

#include "reprise/tensor.h"
#include "util/buf.h"

/* The kind of a request. The values are the field numbers of the request's oneof. */
typedef enum rp_wire_reflection_kind {
    RP_WIRE_REFLECT_NOTHING = 0,
    RP_WIRE_REFLECT_FILE = 3,
    RP_WIRE_REFLECT_SYMBOL = 4,
    RP_WIRE_REFLECT_EXTENSION = 5,
    RP_WIRE_REFLECT_EXTENSION_NUMBERS = 6,
    RP_WIRE_REFLECT_SERVICES = 7,
} rp_wire_reflection_kind;

/* A request. Its strings borrow from the bytes read. */
typedef struct rp_wire_reflection_request {
    rp_string host;
    rp_wire_reflection_kind kind;
    rp_string text;           /* name of the file, symbol or (for extensions) type */
    int32_t extension_number; /* for RP_WIRE_REFLECT_EXTENSION */
} rp_wire_reflection_request;

/* Reads a ServerReflectionRequest. Errors: RP_INVALID (the message is malformed; a text is not
 * UTF-8 or has more than 255 bytes). */
RP_NODISCARD rp_status rp_wire_read_reflection_request(const uint8_t *data, size_t size,
                                                       rp_wire_reflection_request *out,
                                                       rp_error *err);

/* Writes the response: the names of the services, a file with its imports, or an error in the
 * response (NOT_FOUND; UNIMPLEMENTED for an unknown kind). */
void rp_wire_write_reflection_response(rp_buf *out, const rp_wire_reflection_request *request);

#endif
