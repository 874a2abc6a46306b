/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: numbers that a training program reports to a server while it trains. The web page of
 * the server shows them as curves, and the command `reprise runs` lists and exports them.
 *
 * A run has a name, series (one for each named scalar, such as "loss"), a list of actors (the
 * threads or processes that act in environments), and the states of the latest episode that was
 * reported. A store bounds the memory of runs. If the store needs room, it drops the run whose
 * latest report is oldest. If a series is full, the store halves its resolution. Checkpoints
 * (durable.h) save runs. docs/runs.md has the details.
 *
 * Names are UTF-8 text of 1 to RP_RUN_NAME_BYTES bytes, without a zero byte. */
#ifndef REPRISE_RUNS_H
#define REPRISE_RUNS_H

#include "reprise/client.h"

RP_BEGIN_DECLS

enum {
    RP_RUN_NAME_BYTES = 255,    /* the most bytes of the name of a run, a scalar, an actor or an
                                   environment */
    RP_REPORT_SCALARS = 1024,   /* the most scalars of one report */
    RP_REPORT_ACTORS = 256,     /* the most actors of one report, and of a run */
    RP_EPISODE_NUMBERS = 16384, /* the most numbers in all states of an episode together */
    RP_EPISODE_VARIABLES = 1024, /* the most numbers of one state */
};

/* A point of the series `name`. `time_s` is the wall clock in seconds since 1970; 0 stands for
 * the time at which the report arrives. `step` can be any number, such as the number of
 * training steps so far. `value` can be infinite or NaN. */
typedef struct rp_scalar {
    rp_string name;
    int64_t step;
    double time_s;
    double value;
} rp_scalar;

/* The latest state of an actor. */
typedef struct rp_run_actor {
    rp_string name;
    double epsilon;        /* probability of a random action; NaN: not known */
    double episode_return; /* return of the actor's latest episode; NaN: not known */
    int64_t version;       /* version of the parameters that the actor uses */
    int64_t version_lag;   /* number of versions that the actor is behind the learner */
} rp_run_actor;

/* The states of one episode, one row for each step. The web page draws them. */
typedef struct rp_run_episode {
    rp_string env;       /* name of the environment, such as "cartpole" */
    const float *states; /* `state_count` rows of `variable_count` numbers */
    size_t state_count, variable_count;
} rp_run_episode;

typedef struct rp_run_report {
    rp_string run;
    const rp_scalar *scalars;
    size_t scalar_count;
    const rp_run_actor *actors;
    size_t actor_count;
    const rp_run_episode *episode; /* NULL: the run keeps its latest episode */
} rp_run_report;

/* What rp_client_runs() does. */
typedef enum rp_runs_action {
    RP_RUNS_REPORT = 0, /* adds `report` */
    RP_RUNS_LIST = 1,   /* reads the list of runs, one JSON object a line */
    RP_RUNS_CSV = 2,    /* reads the scalars of `run` as CSV: name,step,time,value */
    RP_RUNS_EVENTS = 3, /* reads the scalars of `run` as an event file of TensorBoard */
} rp_runs_action;

/* Zero-initialise it; a field whose comment begins with * must be set for the actions that the
 * comment names. */
typedef struct rp_runs_call {
    rp_runs_action action;
    const rp_run_report *report; /* * for RP_RUNS_REPORT */
    rp_string run;               /* * for RP_RUNS_CSV and RP_RUNS_EVENTS */
    /* * for all actions except RP_RUNS_REPORT: called with one piece of the result after
     * another, on the calling thread. If on_data returns false, the call ends with
     * RP_CANCELLED. */
    bool (*on_data)(void *ctx, const void *data, size_t size);
    void *ctx;
    size_t dropped; /* result of RP_RUNS_REPORT: number of scalars, actors and episodes that
                       were dropped, because the server has no room for them */
} rp_runs_call;

/* Reports to a run, or reads runs. If the client has several servers, the first one has the
 * runs. On a server, reporting needs the role write, and reading needs the role read
 * (docs/security.md).
 * Errors: RP_INVALID (the text names the value and its bound), RP_NOT_FOUND (no such run),
 * RP_NO_RESOURCE, RP_UNIMPLEMENTED (a server of Reverb), and the errors that every call of
 * client.h can return. */
RP_API RP_NODISCARD rp_status rp_client_runs(rp_client *client, rp_runs_call *call,
                                             rp_wait wait, rp_error *err);

RP_END_DECLS

#endif
