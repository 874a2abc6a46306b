/* SPDX-License-Identifier: Apache-2.0 */
/* Reads messages and writes them again, so that a test can compare the input with the output.
 *
 * Requests are read by the library and written by this code; responses are read by this code
 * and written by the library. Both write fields in ascending order and leave out defaults, as
 * other implementations do, so that the output equals the input, except:
 *
 *   ServerInfoResponse    TableWorkerTime is written empty
 *   CreateTableRequest    defaults are filled in
 *   AlterTableRequest     an absent limiter is written empty
 *   PauseTableRequest     is also used for ResumeTableRequest
 *   ServerReflectionRequest is written as the response to it */
#ifndef RP_TEST_ECHO_H
#define RP_TEST_ECHO_H

#include "reprise/status.h"
#include "util/buf.h"

/* Reads a message of that name, and appends it to `out`. RP_NOT_FOUND for an unknown name;
 * otherwise the status of the reader. */
rp_status rp_test_echo(const char *message, const uint8_t *data, size_t size, rp_buf *out,
                       rp_error *err);

/* The parts of rp_test_echo() for messages that the library reads, and for those that it
 * writes. */
rp_status rp_test_echo_request(const char *message, const uint8_t *data, size_t size,
                               rp_buf *out, rp_error *err);
rp_status rp_test_echo_response(const char *message, const uint8_t *data, size_t size,
                                rp_buf *out, rp_error *err);

#endif
