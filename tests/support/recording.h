/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the recorded conversations in tests/data/wire, line by line. */
#ifndef RP_TEST_RECORDING_H
#define RP_TEST_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rp_test_line {
    int call;
    bool from_client;
    char method[32];
    const char *event; /* "open", "status OK" and so on; NULL for a message */
    uint8_t *data;     /* of a message */
    size_t size;
} rp_test_line;

typedef struct rp_test_recording {
    rp_test_line *lines;
    size_t count;
} rp_test_recording;

/* Reads tests/data/wire/<name>. A file that cannot be read fails the test. */
rp_test_recording rp_test_recording_read(const char *name);
void rp_test_recording_free(rp_test_recording *recording);

/* True if the line is a message of that method from that side. */
bool rp_test_line_is(const rp_test_line *line, const char *method, bool from_client);

#endif
