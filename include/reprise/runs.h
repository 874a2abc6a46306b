/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: numbers that a training program reports to a server while it trains. The web page of
 * the server draws them, and the command `reprise runs` lists and exports them.
 *
 * A run has a name, series (one for each named scalar, such as "loss"), a list of actors, and
 * the states of the latest episode that was reported. A store bounds the memory of runs: it
 * drops the run whose latest report is oldest, and it halves the resolution of a series that is
 * full. Checkpoints save runs. docs/runs.md has the details.
 *
 * Names are UTF-8 text of 1 to RP_RUN_NAME_BYTES bytes, without a zero byte. */
#ifndef REPRISE_RUNS_H
#define REPRISE_RUNS_H

#include "reprise/client.h"

RP_BEGIN_DECLS

enum {
    RP_RUN_NAME_BYTES = 255,    /* of the name of a run, a scalar, an actor or an environment */
    RP_REPORT_SCALARS = 1024,   /* the most scalars of one report */
    RP_REPORT_ACTORS = 256,     /* the most actors of one report, and of a run */
    RP_EPISODE_NUMBERS = 16384, /* the most numbers of the states of an episode together */
    RP_EPISODE_VARIABLES = 1024, /* the most numbers of one state */
};

/* A point of a series. `time_s` is the wall clock in seconds since 1970; 0 means the time at
 * which the report arrives. The step may be any number. The value may be infinite or NaN. */
typedef struct rp_scalar {
    rp_string name;
    int64_t step;
    double time_s;
    double value;
} rp_scalar;

/* The latest state of an actor. */
typedef struct rp_run_actor {
    rp_string name;
    double epsilon;        /* rate of random actions; NaN: not known */
    double episode_return; /* latest return of the actor; NaN: not known */
    int64_t version;       /* version of the parameters that the actor uses */
    int64_t version_lag;   /* number of versions that the actor is behind the learner */
} rp_run_actor;

/* The states of one episode, one row a step, for a drawing. */
typedef struct rp_run_episode {
    rp_string env;       /* name of the environment, "cartpole" */
    const float *states; /* `state_count` rows of `variable_count` numbers */
    size_t state_count, variable_count;
} rp_run_episode;

typedef struct rp_run_report {
    rp_string run;
    const rp_scalar *scalars;
    size_t scalar_count;
    const rp_run_actor *actors;
    size_t actor_count;
    const rp_run_episode *episode; /* NULL: the run keeps the episode that it has */
} rp_run_report;

/* What rp_client_runs() does. */
typedef enum rp_runs_action {
    RP_RUNS_REPORT = 0, /* adds `report` */
    RP_RUNS_LIST = 1,   /* reads the list of runs, one JSON object a line */
    RP_RUNS_CSV = 2,    /* reads the scalars of `run` as CSV: name,step,time,value */
    RP_RUNS_EVENTS = 3, /* reads the scalars of `run` as an event file of TensorBoard */
} rp_runs_action;

/* Zero-initialise it; fields marked * are needed by the action. */
typedef struct rp_runs_call {
    rp_runs_action action;
    const rp_run_report *report; /* * of RP_RUNS_REPORT */
    rp_string run;               /* * of RP_RUNS_CSV and RP_RUNS_EVENTS */
    /* * of the reading actions: called with one piece of the result after another, on the
     * calling thread. Returns false to end the call with RP_CANCELLED. */
    bool (*on_data)(void *ctx, const void *data, size_t size);
    void *ctx;
    size_t dropped; /* result of RP_RUNS_REPORT: number of scalars, actors and episodes that
                       were dropped, because the server has no room for them */
} rp_runs_call;

/* Reports to a run, or reads runs. If the client has several servers, the first one has the
 * runs. Reporting needs the role write, and reading needs the role read.
 * RP_INVALID (the text names the value and its bound), RP_NOT_FOUND (no such run),
 * RP_NO_RESOURCE, RP_UNIMPLEMENTED (a server of Reverb), and the statuses of all calls of
 * client.h. */
RP_API RP_NODISCARD rp_status rp_client_runs(rp_client *client, rp_runs_call *call,
                                             rp_wait wait, rp_error *err);

RP_END_DECLS

#endif
