/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded set of runs (reprise/runs.h): numbers that training programs report.
 *
 * A run has at most RP_RUN_SERIES series. A series keeps at most RP_SERIES_POINTS points, at
 * equal distances of arrival: it keeps point 0, `stride`, 2 `stride` and so on, where stride is
 * 1 at first. When it is full, it drops every second point and doubles its stride. The newest
 * point is kept beside them, so a reader always sees the latest value.
 *
 * All runs together take at most `most_bytes`. If a report needs more, the run that was
 * reported to longest ago is dropped, but never the run of the report itself: what does not fit
 * then is dropped and counted. Loading a run drops no other.
 *
 * The points and episodes of a run are numbered in order of arrival, from 1. The numbers stay
 * the same when the resolution is halved, so a reader asks for the points after the last number
 * it has.
 *
 * Any thread. One lock (rank RP_RANK_RUNS), held for one report (at most RP_REPORT_SCALARS
 * points), for one page of a reader, for the image of one series, or for loading one run.
 * Nothing is logged or sent under it. */
#ifndef RP_RUNS_RUNS_H
#define RP_RUNS_RUNS_H

#include "reprise/runs.h"
#include "util/buf.h"

enum {
    RP_RUNS = 256,            /* the most runs */
    RP_RUN_SERIES = 128,      /* of a run */
    RP_SERIES_POINTS = 2048,  /* of a series, the newest one beside them */
    RP_RUN_PAGE_ROWS = 1024,  /* the most rows of rp_runs_read_rows() */
    RP_RUNS_BYTES = 64 << 20, /* the default of most_bytes */
};

typedef struct rp_runs rp_runs;

typedef struct rp_run_point {
    uint64_t number; /* in the run, from 1 */
    int64_t step;
    double time_s, value;
} rp_run_point;

/* Returns owned, or NULL if there is no memory. */
rp_runs *rp_runs_new(const rp_allocator *alloc);
void rp_runs_free(rp_runs *runs); /* NULL is fine */

/* Sets the bound on the bytes of all runs, and drops runs if they take more. */
void rp_runs_set_most_bytes(rp_runs *runs, uint64_t most_bytes);

/* Adds a report; `now_s` is the wall clock in seconds. `*dropped` (may be NULL) gets the number
 * of scalars, actors and episodes for which there was no room. RP_INVALID (nothing is changed),
 * RP_NO_RESOURCE (no memory: a part of the report may have been added). */
RP_NODISCARD rp_status rp_runs_report(rp_runs *runs, const rp_run_report *report, double now_s,
                                      size_t *dropped, rp_error *err);

/* An upper bound on the work of adding a report, in units of server/core/deferral.h. */
size_t rp_run_report_work(const rp_run_report *report);

/* Checks the names, counts and times of a report, as rp_runs_report() does. RP_INVALID. */
RP_NODISCARD rp_status rp_run_report_check(const rp_run_report *report, rp_error *err);

typedef struct rp_runs_info {
    size_t count;
    uint64_t bytes, most_bytes;
    uint64_t dropped_runs;    /* dropped for others since the start */
    uint64_t dropped_scalars; /* for which there was no room */
    uint64_t changes;         /* incremented by every change */
} rp_runs_info;

void rp_runs_get_info(rp_runs *runs, rp_runs_info *out);

typedef struct rp_run_name {
    char text[RP_RUN_NAME_BYTES + 1];
} rp_run_name;

/* A copy of what a run is, without its points. */
typedef struct rp_run_view {
    uint64_t id; /* identifies the run; ascending in the order in which runs began */
    rp_run_name name;
    double started_s, seen_s; /* the first and the latest report */
    uint64_t last_number;     /* of the latest point or episode; 0: none */
    size_t points;            /* kept */
    size_t actor_count;
    uint64_t episode; /* number of the latest episode; 0: none */
    size_t series_count;
    rp_run_name series[RP_RUN_SERIES];
} rp_run_view;

/* Copies the run with the lowest id above `after`. False if there is none. */
bool rp_runs_next(rp_runs *runs, uint64_t after, rp_run_view *out);
/* Copies the run of this name. False if there is none. */
bool rp_runs_find(rp_runs *runs, rp_string name, rp_run_view *out);

/* Copies the points of a series whose number is above `after`, at most RP_SERIES_POINTS + 1.
 * Returns their count; 0 if there is no such run or series. */
size_t rp_runs_read_series(rp_runs *runs, uint64_t id, size_t series, uint64_t after,
                           rp_run_point out[RP_SERIES_POINTS + 1]);

typedef struct rp_run_row {
    size_t series; /* index in rp_run_view.series */
    rp_run_point point;
} rp_run_row;

/* Copies points of all series in the order of their numbers: those above `after`, at most
 * `capacity` and at most RP_RUN_PAGE_ROWS. Returns their count. */
size_t rp_runs_read_rows(rp_runs *runs, uint64_t id, uint64_t after, rp_run_row *out,
                         size_t capacity);

typedef struct rp_actor_view {
    rp_run_name name;
    double epsilon, episode_return, seen_s;
    int64_t version, version_lag;
} rp_actor_view;

/* Copies the actors of a run. Returns their count. */
size_t rp_runs_read_actors(rp_runs *runs, uint64_t id, rp_actor_view out[RP_REPORT_ACTORS]);

typedef struct rp_episode_view {
    rp_run_name env;
    size_t state_count, variable_count;
    float states[RP_EPISODE_NUMBERS];
} rp_episode_view;

/* Copies the latest episode of a run. False if there is none. */
bool rp_runs_read_episode(rp_runs *runs, uint64_t id, rp_episode_view *out);

/* Saving and loading: run_image.c has the format. rp_runs_save() appends the image of a run,
 * and nothing if there is no such run. The run may change meanwhile. rp_runs_load() adds the
 * run of an image, and drops no other run for it. RP_EXISTS (a run has that name), RP_CORRUPT,
 * RP_NO_RESOURCE (memory, or no room below the bounds). */
void rp_runs_save(rp_runs *runs, uint64_t id, rp_buf *out);
RP_NODISCARD rp_status rp_runs_load(rp_runs *runs, const uint8_t *data, size_t size,
                                    rp_error *err);

/* True if the invariants of runs_inside.h hold. For tests. */
bool rp_runs_check(rp_runs *runs);

#endif
