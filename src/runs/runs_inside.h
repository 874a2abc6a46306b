/* SPDX-License-Identifier: Apache-2.0 */
/* The private parts of struct rp_runs (runs.h has its rules, such as the thinning of series by
 * `stride`), for
 *
 *   runs_report.c  reports, bounds and the check of the invariants
 *   runs_read.c    copies for readers
 *   run_image.c    images for checkpoints
 *
 * Invariants, whenever mu is free:
 *
 *   U1  run_count <= RP_RUNS. In each run, series_count <= RP_RUN_SERIES, actor_count <=
 *       RP_REPORT_ACTORS, and state_count * variable_count <= RP_EPISODE_NUMBERS;
 *   U2  runs are in ascending order of their ids. Names of runs, of the series of a run and of
 *       the actors of a run are unique, and are texts of 1 to RP_RUN_NAME_BYTES bytes;
 *   U3  a series keeps every stride-th of the `seen` points that have arrived in it, beginning
 *       with the first. So count is seen / stride, rounded up. Also, count <= RP_SERIES_POINTS,
 *       and stride is a power of two;
 *   U4  rp_run_point.number ascends in each series, and newest.number is at least the number of
 *       the last point that the series keeps. The numbers of points and of the episode are at
 *       most last_number of the run, so a new point gets an unused number, last_number + 1.
 *       last_number is at most RP_RUN_LAST_NUMBER;
 *   U5  rp_runs.bytes is the sum of run->bytes over all runs; run->bytes is the memory of a run
 *       as measure() in runs_report.c counts it;
 *   U6  rp_runs.bytes <= most_bytes. */
#ifndef RP_RUNS_RUNS_INSIDE_H
#define RP_RUNS_RUNS_INSIDE_H

#include "runs/runs.h"
#include "util/mutex.h"

#define RP_RUN_LAST_NUMBER (UINT64_MAX / 2)

/* The points of one scalar. */
typedef struct rp_series {
    rp_run_name name;
    size_t name_size;
    rp_run_point *points;
    size_t count, capacity;
    uint64_t seen; /* number of points that have arrived */
    uint64_t stride;
    rp_run_point newest; /* the point that arrived last, even if the series does not keep it in
                            `points` */
} rp_series;

typedef struct rp_actor {
    rp_actor_view view;
    size_t name_size;
} rp_actor;

typedef struct rp_run {
    uint64_t id;
    uint64_t touched; /* rp_runs.clock at the latest report; 0: none since loading */
    rp_run_name name;
    size_t name_size;
    double started_s, seen_s; /* times of the first and the latest report */
    uint64_t last_number;     /* number of the latest point or episode */
    rp_series *series;
    size_t series_count, series_capacity;
    rp_actor *actors;
    size_t actor_count, actor_capacity;
    rp_run_name env; /* the latest episode: environment and states */
    float *states;
    size_t state_count, variable_count;
    uint64_t episode; /* number of the latest episode; 0: none */
    uint64_t bytes;   /* see invariant U5 */
} rp_run;

struct rp_runs {
    rp_allocator alloc;
    rp_mutex mu; /* rank RP_RANK_RUNS; guards all below */
    rp_run *runs[RP_RUNS] RP_GUARDED_BY(mu);
    size_t run_count RP_GUARDED_BY(mu);
    uint64_t next_id, clock RP_GUARDED_BY(mu); /* clock: incremented at each report */
    uint64_t bytes, most_bytes RP_GUARDED_BY(mu);
    bool is_loading RP_GUARDED_BY(mu); /* an image is being loaded: no run may be dropped */
    uint64_t dropped_runs, dropped_scalars, changes RP_GUARDED_BY(mu);
};

/* Return the run with this id or name, or NULL if there is none. */
rp_run *rp_run_of_id(const rp_runs *runs, uint64_t id) RP_REQUIRES(runs->mu);
rp_run *rp_run_of_name(const rp_runs *runs, rp_string name) RP_REQUIRES(runs->mu);

/* Adds a run without series, dropping other runs if necessary. Returns NULL if memory runs out,
 * or if the bounds leave no room. While runs->is_loading is true, drops no run. */
rp_run *rp_run_add(rp_runs *runs, rp_string name, double now_s) RP_REQUIRES(runs->mu);
void rp_run_drop(rp_runs *runs, rp_run *run) RP_REQUIRES(runs->mu);

/* Adds a series without points. No series of the run may have this name. Returns NULL if memory
 * runs out or the bounds leave no room. */
rp_series *rp_run_add_series(rp_runs *runs, rp_run *run, rp_string name) RP_REQUIRES(runs->mu);
/* Makes room for `capacity` points in a series. Returns false if memory runs out or the bounds
 * leave no room. */
bool rp_series_grow(rp_runs *runs, rp_run *run, rp_series *series, size_t capacity)
    RP_REQUIRES(runs->mu);

/* The result of the next two functions. */
typedef enum rp_run_room { RP_ROOM, RP_NO_ROOM, RP_NO_MEMORY } rp_run_room;
/* Sets the entry of an actor in a run, or adds an entry. Searches for the entry from the index
 * `*hint` on, and sets `*hint` to the index after the entry. This makes the search short, since
 * successive reports mostly list the actors in the same order. */
rp_run_room rp_run_set_actor(rp_runs *runs, rp_run *run, const rp_run_actor *actor,
                             double now_s, size_t *hint) RP_REQUIRES(runs->mu);
rp_run_room rp_run_set_episode(rp_runs *runs, rp_run *run, const rp_run_episode *episode)
    RP_REQUIRES(runs->mu);

/* Returns true if the parts of the invariants U1 to U5 that concern a single run hold for this
 * run. */
bool rp_run_is_valid(const rp_run *run);

/* Returns true if `name` is a text of 1 to RP_RUN_NAME_BYTES bytes. */
bool rp_run_is_name(rp_string name);

#endif
