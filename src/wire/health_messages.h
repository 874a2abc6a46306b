/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the messages of gRPC's health service (proto/grpc/health/v1). */
#ifndef RP_WIRE_HEALTH_MESSAGES_H
#define RP_WIRE_HEALTH_MESSAGES_H

#include "reprise/tensor.h"
#include "util/buf.h"

typedef enum rp_wire_serving {
    RP_WIRE_HEALTH_UNKNOWN = 0,
    RP_WIRE_SERVING = 1,
    RP_WIRE_NOT_SERVING = 2,
    RP_WIRE_SERVICE_UNKNOWN = 3, /* sent by Watch; Check fails with RP_NOT_FOUND instead */
} rp_wire_serving;

/* Reads a HealthCheckRequest. `*service` borrows from `data`. An empty `*service` means the
 * server as a whole. Errors: RP_INVALID (the message is malformed; the name is not text or has
 * more than 255 bytes). */
RP_NODISCARD rp_status rp_wire_read_health_request(const uint8_t *data, size_t size,
                                                   rp_string *service, rp_error *err);
void rp_wire_write_health_response(rp_buf *out, rp_wire_serving status);

#endif
