/* SPDX-License-Identifier: Apache-2.0 */
/* The private parts of rp_runs, shared by
 *
 *   runs_report.c  reports, bounds and the checker
 *   runs_read.c    copies for readers
 *   run_image.c    images for checkpoints
 *
 * Invariants, whenever mu is free:
 *
 *   U1  run_count <= RP_RUNS, and in each run series_count <= RP_RUN_SERIES, actor_count <=
 *       RP_REPORT_ACTORS, and the numbers of the episode are at most RP_EPISODE_NUMBERS;
 *   U2  runs are in ascending order of their ids; names of runs, of the series of a run and of
 *       the actors of a run are unique, and are texts of 1 to RP_RUN_NAME_BYTES bytes;
 *   U3  in each series count <= RP_SERIES_POINTS, stride is a power of two, and count is
 *       seen / stride, rounded up: point i of the series is the one that arrived as number
 *       i * stride, from 0;
 *   U4  the numbers of the points of a series ascend, newest.number is at least the last of
 *       them, neither these nor the number of the episode are above last_number of the run,
 *       and no number is above RP_RUN_LAST_NUMBER, so that none is used twice;
 *   U5  bytes is the sum of run->bytes, and that is the memory of the run as measure() counts
 *       it;
 *   U6  bytes <= most_bytes. */
#ifndef RP_RUNS_RUNS_INSIDE_H
#define RP_RUNS_RUNS_INSIDE_H

#include "runs/runs.h"
#include "util/mutex.h"

#define RP_RUN_LAST_NUMBER (UINT64_MAX / 2)

typedef struct rp_series {
    rp_run_name name;
    size_t name_size;
    rp_run_point *points;
    size_t count, capacity;
    uint64_t seen; /* points that arrived */
    uint64_t stride;
    rp_run_point newest; /* the point that arrived last */
} rp_series;

typedef struct rp_actor {
    rp_actor_view view;
    size_t name_size;
} rp_actor;

typedef struct rp_run {
    uint64_t id;
    uint64_t touched; /* rp_runs.clock at the latest report; 0: none since the run was loaded */
    rp_run_name name;
    size_t name_size;
    double started_s, seen_s;
    uint64_t last_number;
    rp_series *series;
    size_t series_count, series_capacity;
    rp_actor *actors;
    size_t actor_count, actor_capacity;
    rp_run_name env;
    float *states;
    size_t state_count, variable_count;
    uint64_t episode; /* its number; 0: none */
    uint64_t bytes;   /* U5 */
} rp_run;

struct rp_runs {
    rp_allocator alloc;
    rp_mutex mu; /* rank RP_RANK_RUNS; guards all below */
    rp_run *runs[RP_RUNS] RP_GUARDED_BY(mu);
    size_t run_count RP_GUARDED_BY(mu);
    uint64_t next_id, clock RP_GUARDED_BY(mu);
    uint64_t bytes, most_bytes RP_GUARDED_BY(mu);
    bool is_loading RP_GUARDED_BY(mu); /* an image is loaded: no run makes room for it */
    uint64_t dropped_runs, dropped_scalars, changes RP_GUARDED_BY(mu);
};

/* NULL if there is none. */
rp_run *rp_run_of_id(const rp_runs *runs, uint64_t id) RP_REQUIRES(runs->mu);
rp_run *rp_run_of_name(const rp_runs *runs, rp_string name) RP_REQUIRES(runs->mu);

/* Makes a run without series and adds it. NULL if there is no memory, or no room that the
 * bounds allow. While runs->is_loading is true, no run is dropped to make room. */
rp_run *rp_run_add(rp_runs *runs, rp_string name, double now_s) RP_REQUIRES(runs->mu);
void rp_run_drop(rp_runs *runs, rp_run *run) RP_REQUIRES(runs->mu);

/* Adds a series without points; the name is new. NULL as for rp_run_add(). */
rp_series *rp_run_add_series(rp_runs *runs, rp_run *run, rp_string name) RP_REQUIRES(runs->mu);
/* Makes room for `capacity` points. False as for rp_run_add(). */
bool rp_series_grow(rp_runs *runs, rp_run *run, rp_series *series, size_t capacity)
    RP_REQUIRES(runs->mu);

/* The result of setting an actor or an episode. */
typedef enum rp_run_room { RP_ROOM, RP_NO_ROOM, RP_NO_MEMORY } rp_run_room;
/* Sets the entry of an actor. Searches it first at `*hint`, and sets `*hint` to the entry after
 * it. */
rp_run_room rp_run_set_actor(rp_runs *runs, rp_run *run, const rp_run_actor *actor,
                             double now_s, size_t *hint) RP_REQUIRES(runs->mu);
rp_run_room rp_run_set_episode(rp_runs *runs, rp_run *run, const rp_run_episode *episode)
    RP_REQUIRES(runs->mu);

/* True if U1 to U5 hold for one run. */
bool rp_run_is_valid(const rp_run *run);

/* True if `name` is a text of 1 to RP_RUN_NAME_BYTES bytes. */
bool rp_run_is_name(rp_string name);

#endif
