/* SPDX-License-Identifier: Apache-2.0 */
/* Details of gRPC over HTTP/2: timeouts, texts in headers, and status codes. Pure functions. */
#ifndef RP_WIRE_H2_GRPC_H
#define RP_WIRE_H2_GRPC_H

#include "reprise/status.h"

/* Parses the value of `grpc-timeout`, one to eight digits and a unit (H M S m u n), to
 * nanoseconds. False if the value has another form. */
bool rp_grpc_parse_timeout(const uint8_t *text, size_t size, int64_t *timeout_ns);

enum { RP_GRPC_TIMEOUT_BYTES = 10 }; /* eight digits, the unit, and a zero byte */

/* Writes a time as the value of `grpc-timeout`, in the finest unit that fits. Rounds up, so
 * that the client's own timeout ends before the server's. Writes a nanosecond at least. */
void rp_grpc_format_timeout(int64_t timeout_ns, char out[RP_GRPC_TIMEOUT_BYTES]);

/* Writes `text` as the value of `grpc-message`: every byte that is '%' or not printable ASCII
 * becomes %XX. Cuts the value to fit, never within a %XX. Returns its length, which is less
 * than `capacity`. */
size_t rp_grpc_encode_message(const char *text, char *out, size_t capacity);

/* Decodes a value of `grpc-message`: each %XX but %00 becomes a byte, everything else is
 * copied. Cuts the text to fit, never within a character of UTF-8. Returns its length, which is
 * less than `capacity`. */
size_t rp_grpc_decode_message(const uint8_t *value, size_t size, char *out, size_t capacity);

/* The status for a value of `grpc-status`. Codes of gRPC without an rp_status become the
 * nearest one: ABORTED becomes RP_PRECONDITION, and OUT_OF_RANGE RP_INVALID. Every other value
 * becomes RP_INTERNAL. */
rp_status rp_grpc_parse_status(const uint8_t *value, size_t size);

/* The status of a call that ended without `grpc-status`, for the HTTP status of its response
 * or, if it was reset, for the HTTP/2 error code. Never RP_OK. */
rp_status rp_grpc_status_of_http(int http_status);
rp_status rp_grpc_status_of_reset(uint32_t code);

#endif
