/* SPDX-License-Identifier: Apache-2.0 */
/* Runs as text: JSON for the page, CSV and event files of TensorBoard for other programs.
 * docs/runs.md has the fields. */
#ifndef RP_RUNS_RUN_TEXT_H
#define RP_RUNS_RUN_TEXT_H

#include "runs/runs.h"

/* Appends the list of all runs as JSON, at most 2 MiB: if names are long, the last runs are
 * without the names of their scalars. `out` is bad if there is no memory. */
void rp_runs_write_list(rp_runs *runs, rp_buf *out);

/* Appends at most `max_runs` runs, one JSON object a line: those whose id is above `*after`. No
 * more than one run follows the first 64 KiB.
 * Sets `*after` to the id of the last, and `*more` to whether there may be others. `out` is bad
 * if there is no memory. */
void rp_runs_write_lines(rp_runs *runs, size_t max_runs, uint64_t *after, bool *more,
                         rp_buf *out);

/* Appends a run as JSON: the points whose numbers are above `after`, the actors, and the
 * latest episode if its number is. RP_NOT_FOUND. `out` is bad if there is no memory. */
RP_NODISCARD rp_status rp_runs_write_json(rp_runs *runs, rp_string name, uint64_t after,
                                          rp_buf *out, rp_error *err);

typedef enum rp_run_format {
    RP_RUN_CSV,   /* name,step,time,value; a head, then a line for each point */
    RP_RUN_EVENTS /* an event file of TensorBoard */
} rp_run_format;

/* A page of a file. */
typedef struct rp_run_page {
    rp_run_format format;
    size_t max_rows; /* the most points of the page */
    uint64_t after;  /* the number of the last point of the page before; 0: none */
    bool more;       /* there may be other points */
} rp_run_page;

/* Appends points of a run, in order of arrival, from the point after page->after; if that is 0,
 * the head of the file before them. Sets page->after and page->more. A file is made by calls
 * until page->more is false. RP_NOT_FOUND, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_runs_write_rows(rp_runs *runs, rp_string name, rp_run_page *page,
                                          rp_buf *out, rp_error *err);

/* Appends one record of an event file. `tag` data NULL: the record that begins the file. */
void rp_run_event(rp_buf *out, double wall_s, int64_t step, rp_string tag, float value);

#endif
