/* SPDX-License-Identifier: Apache-2.0 */
/* Details of gRPC over HTTP/2: timeouts, texts in headers, and status codes. Pure functions. */
#ifndef RP_WIRE_H2_GRPC_H
#define RP_WIRE_H2_GRPC_H

#include "reprise/status.h"

/* The value of `grpc-timeout`: one to eight digits and a unit (H M S m u n), in nanoseconds.
 * False if it is anything else. */
bool rp_grpc_parse_timeout(const uint8_t *text, size_t size, int64_t *timeout_ns);

enum { RP_GRPC_TIMEOUT_BYTES = 10 }; /* eight digits, the unit, and a zero */

/* Writes a time as the value of `grpc-timeout`, in the finest unit that fits, rounded up, so
 * that the client gives up before the server. At least a nanosecond. */
void rp_grpc_format_timeout(int64_t timeout_ns, char out[RP_GRPC_TIMEOUT_BYTES]);

/* Writes `text` as the value of `grpc-message`: printable ASCII but '%' as it is, every other
 * byte as %XX. Cut to fit, never within a %XX; returns the length, < `capacity`. */
size_t rp_grpc_encode_message(const char *text, char *out, size_t capacity);

/* The text of such a value: %XX becomes a byte, and what is no %XX, or %00, stays as it is. Cut
 * to fit, never within a character of UTF-8; returns the length, < `capacity`. */
size_t rp_grpc_decode_message(const uint8_t *value, size_t size, char *out, size_t capacity);

/* The status of a value of `grpc-status`. Codes of gRPC that we do not have become the nearest:
 * ABORTED is RP_PRECONDITION, OUT_OF_RANGE is RP_INVALID; every other value is RP_INTERNAL. */
rp_status rp_grpc_parse_status(const uint8_t *value, size_t size);

/* The status of a call without `grpc-status`: by the HTTP status of its response or, if it was
 * reset, by the HTTP/2 error code. Never RP_OK. */
rp_status rp_grpc_status_of_http(int http_status);
rp_status rp_grpc_status_of_reset(uint32_t code);

#endif
