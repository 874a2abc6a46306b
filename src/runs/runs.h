/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of a server: the numbers that training programs report (reprise/runs.h), within
 * bounds.
 *
 * A run has at most RP_RUN_SERIES series, one for each scalar. A series keeps at most
 * RP_SERIES_POINTS points: those that arrived as number 0, `stride`, 2 * `stride` and so on.
 * The stride is 1 at first. When a series is full, it drops every second point and doubles its
 * stride. A series also keeps its newest point, so a reader always sees the latest value.
 *
 * All runs together take at most `most_bytes`. If a report needs more, the run whose latest
 * report is the oldest is dropped. The run to which the report belongs is never dropped. If
 * there is no other run to drop, the scalars, actors and episodes of the report that do not fit
 * are left out and counted. Loading a run from an image (a copy of a run in a checkpoint) never
 * drops other runs.
 *
 * The points and episodes of a run are numbered in order of arrival, from 1. Dropping a point
 * does not change the numbers of other points. So a reader that wants only new points asks for
 * those above the last number that it has seen.
 *
 * Any thread may make any call. One lock (rank RP_RANK_RUNS) is held for one report (at most
 * RP_REPORT_SCALARS points), for one page of a reader, for the image of one series, or while
 * one run is loaded. Nothing is logged or sent while the lock is held. */
#ifndef RP_RUNS_RUNS_H
#define RP_RUNS_RUNS_H

#include "reprise/runs.h"
#include "util/buf.h"

enum {
    RP_RUNS = 256,            /* the most runs */
    RP_RUN_SERIES = 128,      /* the most series of a run */
    RP_SERIES_POINTS = 2048,  /* the most points of a series, not counting the newest one */
    RP_RUN_PAGE_ROWS = 1024,  /* the most rows of rp_runs_read_rows() */
    RP_RUNS_BYTES = 64 << 20, /* the default of most_bytes */
};

typedef struct rp_runs rp_runs;

typedef struct rp_run_point {
    uint64_t number; /* order of arrival in the run, from 1 */
    int64_t step;
    double time_s, value; /* time_s: seconds since 1970 */
} rp_run_point;

/* Returns an empty set of runs, which the caller owns, or NULL if memory runs out. */
rp_runs *rp_runs_new(const rp_allocator *alloc);
void rp_runs_free(rp_runs *runs); /* NULL is fine */

/* Sets most_bytes. Drops runs if all runs together take more. */
void rp_runs_set_most_bytes(rp_runs *runs, uint64_t most_bytes);

/* Adds a report. `now_s` is the wall clock in seconds. Sets `*dropped` to the number of
 * scalars, actors and episodes for which there was no room; `dropped` may be NULL. On
 * RP_INVALID, nothing has changed. On RP_NO_RESOURCE (memory runs out), a part of the report is
 * possibly added. */
RP_NODISCARD rp_status rp_runs_report(rp_runs *runs, const rp_run_report *report, double now_s,
                                      size_t *dropped, rp_error *err);

/* Returns an upper bound on the work of adding a report, in the units of
 * server/core/deferral.h. */
size_t rp_run_report_work(const rp_run_report *report);

/* Checks the names, counts and times of a report. rp_runs_report() makes the same checks.
 * Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_run_report_check(const rp_run_report *report, rp_error *err);

typedef struct rp_runs_info {
    size_t count; /* number of runs */
    uint64_t bytes, most_bytes;
    uint64_t dropped_runs;    /* runs dropped to make room, since the start */
    uint64_t dropped_scalars; /* scalars for which there was no room */
    uint64_t changes;         /* incremented at each change */
} rp_runs_info;

void rp_runs_get_info(rp_runs *runs, rp_runs_info *out);

typedef struct rp_run_name {
    char text[RP_RUN_NAME_BYTES + 1];
} rp_run_name;

/* A copy of a run without its points. */
typedef struct rp_run_view {
    uint64_t id; /* identifies the run; a run that begins later has a greater id */
    rp_run_name name;
    double started_s, seen_s; /* times of the first and the latest report */
    uint64_t last_number;     /* number of the latest point or episode; 0: none */
    size_t points;            /* number of points that are kept */
    size_t actor_count;
    uint64_t episode; /* number of the latest episode; 0: none */
    size_t series_count;
    rp_run_name series[RP_RUN_SERIES]; /* the names of the series */
} rp_run_view;

/* Copies the run with the lowest id above `after`. Returns false if there is none. */
bool rp_runs_next(rp_runs *runs, uint64_t after, rp_run_view *out);
/* Copies the run with this name. Returns false if there is none. */
bool rp_runs_find(rp_runs *runs, rp_string name, rp_run_view *out);

/* Copies the points of a series whose numbers are above `after`. Returns the number of points
 * copied, or 0 if there is no such run or series. */
size_t rp_runs_read_series(rp_runs *runs, uint64_t id, size_t series, uint64_t after,
                           rp_run_point out[RP_SERIES_POINTS + 1]);

typedef struct rp_run_row {
    size_t series; /* index in rp_run_view.series */
    rp_run_point point;
} rp_run_row;

/* Copies the points of all series whose numbers are above `after`, in the order of their
 * numbers: at most `capacity`, and at most RP_RUN_PAGE_ROWS. Returns the number of points
 * copied. */
size_t rp_runs_read_rows(rp_runs *runs, uint64_t id, uint64_t after, rp_run_row *out,
                         size_t capacity);

typedef struct rp_actor_view {
    rp_run_name name;
    double epsilon, episode_return, seen_s;
    int64_t version, version_lag;
} rp_actor_view;

/* Copies the actors of a run. Returns their number. */
size_t rp_runs_read_actors(rp_runs *runs, uint64_t id, rp_actor_view out[RP_REPORT_ACTORS]);

typedef struct rp_episode_view {
    rp_run_name env;
    size_t state_count, variable_count;
    float states[RP_EPISODE_NUMBERS];
} rp_episode_view;

/* Copies the latest episode of a run. Returns false if there is none. */
bool rp_runs_read_episode(rp_runs *runs, uint64_t id, rp_episode_view *out);

/* Save and load a run as an image, whose format is in run_image.c. rp_runs_save() appends the
 * image, or nothing if there is no such run. Other threads may add reports to the run during
 * the call. rp_runs_load() adds the run of an image. Errors of rp_runs_load(): RP_EXISTS (there
 * is a run with that name), RP_CORRUPT, RP_NO_RESOURCE (memory runs out, or the run does not
 * fit within the bounds). */
void rp_runs_save(rp_runs *runs, uint64_t id, rp_buf *out);
RP_NODISCARD rp_status rp_runs_load(rp_runs *runs, const uint8_t *data, size_t size,
                                    rp_error *err);

/* Returns true if the invariants of runs_inside.h hold. For tests. */
bool rp_runs_check(rp_runs *runs);

#endif
