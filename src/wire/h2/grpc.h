/* SPDX-License-Identifier: Apache-2.0 */
/* Converts values of gRPC's headers: timeouts, error texts and status codes. The results depend
 * only on the arguments. */
#ifndef RP_WIRE_H2_GRPC_H
#define RP_WIRE_H2_GRPC_H

#include "reprise/status.h"

/* Parses a value of `grpc-timeout`: one to eight digits and a unit (H M S m u n). Sets
 * `*timeout_ns`. Returns false if the value has another form. */
bool rp_grpc_parse_timeout(const uint8_t *text, size_t size, int64_t *timeout_ns);

enum { RP_GRPC_TIMEOUT_BYTES = 10 }; /* eight digits, the unit, and a zero byte */

/* Writes a timeout as a value of `grpc-timeout`, in the finest unit with which it has at most
 * eight digits. Rounds up, so that the client's own timeout ends before the server's. A timeout
 * below one nanosecond is written as one nanosecond. */
void rp_grpc_format_timeout(int64_t timeout_ns, char out[RP_GRPC_TIMEOUT_BYTES]);

/* Writes `text` as a value of `grpc-message`: every byte that is '%' or not printable ASCII
 * becomes %XX. Truncates the value to fit, never within a %XX. Returns the length of the value,
 * which is less than `capacity`. */
size_t rp_grpc_encode_message(const char *text, char *out, size_t capacity);

/* Decodes a value of `grpc-message`: each %XX other than %00 becomes a byte, and all other
 * bytes are copied. Truncates the text to fit, never within a UTF-8 character. Returns the
 * length of the text, which is less than `capacity`. */
size_t rp_grpc_decode_message(const uint8_t *value, size_t size, char *out, size_t capacity);

/* Returns the status for a value of `grpc-status`. Two codes of gRPC have no rp_status of their
 * own: ABORTED becomes RP_PRECONDITION, and OUT_OF_RANGE becomes RP_INVALID. A value that is
 * not a code of gRPC becomes RP_INTERNAL. */
rp_status rp_grpc_parse_status(const uint8_t *value, size_t size);

/* Return the status of a call that ended without `grpc-status`: from the HTTP status of its
 * response or, if the call was reset, from the HTTP/2 error code. Never RP_OK. */
rp_status rp_grpc_status_of_http(int http_status);
rp_status rp_grpc_status_of_reset(uint32_t code);

#endif
