/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the messages about training runs, proto/reprise/v1/runs.proto. The functions
 * depend only on their arguments. Strings borrow from the bytes read.
 *
 * The functions that read requests return these errors: RP_INVALID (the message is malformed,
 * or exceeds a bound of reprise/runs.h), RP_NO_RESOURCE (memory). They do not check the values
 * in a report, such as the times; rp_runs_report() does. */
#ifndef RP_WIRE_RUN_MESSAGES_H
#define RP_WIRE_RUN_MESSAGES_H

#include "reprise/alloc.h"
#include "reprise/runs.h"
#include "util/buf.h"

/* A LogScalarsRequest. The arrays are owned; the names borrow from the message. */
typedef struct rp_wire_report {
    rp_run_report report;
    rp_run_episode episode; /* report.episode points to it if the request has an episode */
    rp_scalar *scalars;
    rp_run_actor *actors;
    float *states;        /* the numbers of all states of the episode */
    size_t state_numbers; /* length of `states` */
} rp_wire_report;

/* After RP_OK the caller must call rp_wire_report_deinit(). */
RP_NODISCARD rp_status rp_wire_read_report(const rp_allocator *alloc, const uint8_t *data,
                                           size_t size, rp_wire_report *out, rp_error *err);
void rp_wire_report_deinit(rp_wire_report *report, const rp_allocator *alloc);
void rp_wire_write_report(rp_buf *out, const rp_run_report *report);

void rp_wire_write_report_response(rp_buf *out, uint64_t dropped);
/* Reads the response to a report. Errors: RP_CORRUPT. */
RP_NODISCARD rp_status rp_wire_read_report_response(const uint8_t *data, size_t size,
                                                    uint64_t *dropped, rp_error *err);

/* The values are the same as in the enum RunFormat of runs.proto. */
typedef enum rp_wire_run_format {
    RP_WIRE_RUN_LIST = 0,
    RP_WIRE_RUN_CSV = 1,
    RP_WIRE_RUN_EVENTS = 2,
} rp_wire_run_format;

typedef struct rp_wire_read_runs {
    rp_string run;
    rp_wire_run_format format;
    uint64_t after; /* 0 for the first page, then `after` of the previous response */
} rp_wire_read_runs;

/* Reads a ReadRunsRequest. Also returns RP_INVALID if the format is unknown. */
RP_NODISCARD rp_status rp_wire_read_runs_request(const uint8_t *data, size_t size,
                                                 rp_wire_read_runs *out, rp_error *err);
void rp_wire_write_runs_request(rp_buf *out, const rp_wire_read_runs *request);

/* Both functions together write a ReadRunsResponse, one page of a list or file. The server
 * appends the data of the page to `out` between rp_wire_begin_runs() and rp_wire_end_runs().
 * `mark` is the result of rp_wire_begin_runs(). `after` and `more` are as in rp_wire_runs_page.
 */
size_t rp_wire_begin_runs(rp_buf *out);
void rp_wire_end_runs(rp_buf *out, size_t mark, uint64_t after, bool more);

typedef struct rp_wire_runs_page {
    rp_string data;
    uint64_t after; /* value for `after` of the next request */
    bool more;      /* false: this is the last page */
} rp_wire_runs_page;

/* Reads a ReadRunsResponse. Errors: RP_CORRUPT. */
RP_NODISCARD rp_status rp_wire_read_runs_page(const uint8_t *data, size_t size,
                                              rp_wire_runs_page *out, rp_error *err);

#endif
