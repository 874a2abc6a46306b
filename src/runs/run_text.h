/* SPDX-License-Identifier: Apache-2.0 */
/* Writes runs, the numbers that training programs report (reprise/runs.h), as JSON for the web
 * page, and as CSV or TensorBoard event files for other programs. docs/runs.md describes the
 * fields. If memory runs out, the functions set out->bad (util/buf.h). */
#ifndef RP_RUNS_RUN_TEXT_H
#define RP_RUNS_RUN_TEXT_H

#include "runs/runs.h"

/* Appends the list of all runs as JSON, at most 2 MiB. If the list would be longer, the last
 * runs lack the names of their scalars. */
void rp_runs_write_list(rp_runs *runs, rp_buf *out);

/* Appends the runs whose id is above `*after`, each as a JSON object on a line of its own.
 * Stops after `max_runs` runs, or once it has appended more than 64 KiB. Sets `*after` to the
 * id of the last run that it has appended. Sets `*more` to false if there are no further
 * runs. */
void rp_runs_write_lines(rp_runs *runs, size_t max_runs, uint64_t *after, bool *more,
                         rp_buf *out);

/* Appends a run as JSON, with three parts: the points whose numbers are above `after`; the
 * actors; and the latest episode, if its number is above `after`. Errors: RP_NOT_FOUND. */
RP_NODISCARD rp_status rp_runs_write_json(rp_runs *runs, rp_string name, uint64_t after,
                                          rp_buf *out, rp_error *err);

typedef enum rp_run_format {
    RP_RUN_CSV,   /* a heading "name,step,time,value", then a line per point */
    RP_RUN_EVENTS /* an event file of TensorBoard */
} rp_run_format;

/* A part of a file in one of these formats. */
typedef struct rp_run_page {
    rp_run_format format;
    size_t max_rows; /* the most points in this page */
    uint64_t after;  /* number of the last point of the previous page; 0: the first page */
    bool more;       /* set by the call: false if there are no further points */
} rp_run_page;

/* Appends a page of the file of a run: the points after page->after, in order of arrival. The
 * first page begins with the head of the file. Sets page->after and page->more for the next
 * call. To write a whole file, the caller repeats the call until page->more is false. Errors:
 * RP_NOT_FOUND, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_runs_write_rows(rp_runs *runs, rp_string name, rp_run_page *page,
                                          rp_buf *out, rp_error *err);

/* Appends a record of an event file: a point of the series `tag`. If tag.data is NULL, appends
 * the record that begins the file. */
void rp_run_event(rp_buf *out, double wall_s, int64_t step, rp_string tag, float value);

#endif
