/* SPDX-License-Identifier: Apache-2.0 */
/* Messages read and written again, so that a test can hold what comes out against what went in.
 *
 * Of a request, the library reads and the test writes; of a response, the test reads and the
 * library writes. Both keep to ascending field numbers and leave out defaults, as other
 * implementations do, so the bytes come out as they went in, unless said here:
 *
 *   ServerInfoResponse    TableWorkerTime comes out empty
 *   CreateTableRequest    defaults come out filled in
 *   AlterTableRequest     an absent limiter comes out empty
 *   PauseTableRequest     also stands for ResumeTableRequest
 *   ServerReflectionRequest comes out as the response to it */
#ifndef RP_TEST_ECHO_H
#define RP_TEST_ECHO_H

#include "reprise/status.h"
#include "util/buf.h"

/* Reads a message of that name and appends it to `out` as written again. RP_NOT_FOUND for a
 * name that is not known; otherwise what the reader says. */
rp_status rp_test_echo(const char *message, const uint8_t *data, size_t size, rp_buf *out,
                       rp_error *err);

/* The two halves of it: messages that the library reads, and those that it writes. */
rp_status rp_test_echo_request(const char *message, const uint8_t *data, size_t size,
                               rp_buf *out, rp_error *err);
rp_status rp_test_echo_response(const char *message, const uint8_t *data, size_t size,
                                rp_buf *out, rp_error *err);

#endif
