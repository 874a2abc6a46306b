/* SPDX-License-Identifier: Apache-2.0 */
/* The small parts of gRPC over HTTP/2: time limits, and texts in headers. Pure functions. */
#ifndef RP_WIRE_GRPC_H
#define RP_WIRE_GRPC_H

#include "reprise/status.h"

/* The value of `grpc-timeout`: one to eight digits and a unit (H M S m u n), in nanoseconds.
 * False if it is anything else. */
bool rp_grpc_parse_timeout(const uint8_t *text, size_t size, int64_t *timeout_ns);

/* Writes `text` as the value of `grpc-message`: printable ASCII but '%' as it is, every other
 * byte as %XX. Cut to fit, never within a %XX; returns the length, < `capacity`. */
size_t rp_grpc_encode_message(const char *text, char *out, size_t capacity);

#endif
