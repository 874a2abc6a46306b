/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of proto/reprise/v1/runs.proto. Pure functions over bytes; strings are borrowed
 * from the bytes read.
 *
 * Readers of requests return RP_INVALID (the message is malformed, or more than a bound of
 * reprise/runs.h) and RP_NO_RESOURCE (memory). The values of a report are checked later, by
 * rp_runs_report(). */
#ifndef RP_WIRE_RUN_MESSAGES_H
#define RP_WIRE_RUN_MESSAGES_H

#include "reprise/alloc.h"
#include "reprise/runs.h"
#include "util/buf.h"

/* A LogScalarsRequest. The arrays are owned, the names borrow from the message. */
typedef struct rp_wire_report {
    rp_run_report report;
    rp_run_episode episode; /* report.episode, if the request has one */
    rp_scalar *scalars;
    rp_run_actor *actors;
    float *states;
    size_t state_numbers;
} rp_wire_report;

/* Call rp_wire_report_deinit() after RP_OK. */
RP_NODISCARD rp_status rp_wire_read_report(const rp_allocator *alloc, const uint8_t *data,
                                           size_t size, rp_wire_report *out, rp_error *err);
void rp_wire_report_deinit(rp_wire_report *report, const rp_allocator *alloc);
void rp_wire_write_report(rp_buf *out, const rp_run_report *report);

void rp_wire_write_report_response(rp_buf *out, uint64_t dropped);
/* RP_CORRUPT. */
RP_NODISCARD rp_status rp_wire_read_report_response(const uint8_t *data, size_t size,
                                                    uint64_t *dropped, rp_error *err);

/* As in the enum RunFormat. */
typedef enum rp_wire_run_format {
    RP_WIRE_RUN_LIST = 0,
    RP_WIRE_RUN_CSV = 1,
    RP_WIRE_RUN_EVENTS = 2,
} rp_wire_run_format;

typedef struct rp_wire_read_runs {
    rp_string run;
    rp_wire_run_format format;
    uint64_t after;
} rp_wire_read_runs;

/* RP_INVALID for an unknown format. */
RP_NODISCARD rp_status rp_wire_read_runs_request(const uint8_t *data, size_t size,
                                                 rp_wire_read_runs *out, rp_error *err);
void rp_wire_write_runs_request(rp_buf *out, const rp_wire_read_runs *request);

/* A ReadRunsResponse. The server writes the data between rp_wire_begin_runs() and
 * rp_wire_end_runs(). */
size_t rp_wire_begin_runs(rp_buf *out);
void rp_wire_end_runs(rp_buf *out, size_t mark, uint64_t after, bool more);

typedef struct rp_wire_runs_page {
    rp_string data;
    uint64_t after;
    bool more;
} rp_wire_runs_page;

/* RP_CORRUPT. */
RP_NODISCARD rp_status rp_wire_read_runs_page(const uint8_t *data, size_t size,
                                              rp_wire_runs_page *out, rp_error *err);

#endif
