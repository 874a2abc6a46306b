/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the progress of a training run to a server (reprise/runs.h) without slowing the run.
 * The trainer adds progress to a bounded queue, and a thread of the reporter sends it. If the
 * queue is full, or if the server cannot be reached, reports are dropped and counted; the
 * trainer never sees an error.
 *
 * From time to time, the thread also plays an episode with the latest parameters, and reports
 * the states of the episode, which the web page of the server draws.
 *
 * Invariants, whenever mu is free:
 *   Q1  count <= RP_REPORT_QUEUE; the entries are queue[(first + i) % RP_REPORT_QUEUE];
 *   Q2  only the reporter's thread uses `params` while has_params is true; otherwise only the
 *       trainer does. */
#ifndef RP_CLI_TRAIN_RUN_REPORT_H
#define RP_CLI_TRAIN_RUN_REPORT_H

#include "reprise/client.h"
#include "reprise/rl/agent_kinds.h"
#include "reprise/rl/run_log.h"
#include "reprise/runs.h"

enum { RP_REPORT_QUEUE = 64 };

typedef struct rp_run_reporter rp_run_reporter;

/* The caller must not free what the pointers refer to before the reporter is freed. */
typedef struct rp_run_reporter_options {
    const char *address; /* address of the server */
    const char *run;     /* name of the run */
    rp_client_options client;
    const rp_env_class *env_class;
    const rp_agent_kind *kind;
    const rp_agent_settings *settings;
    uint64_t seed;
    int64_t send_ms;    /* timeout of one report; 0: 2,000 */
    int64_t episode_ms; /* time between episodes; 0: 5,000 */
} rp_run_reporter_options;

/* Makes a reporter, which the caller owns, and starts its thread. Does no I/O itself. Returns
 * RP_INVALID for a wrong address. Other errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_run_reporter_new(const rp_run_reporter_options *options,
                                           rp_run_reporter **out, rp_error *err);

/* Queues a copy of `progress`. Copies `params`, the result of rp_trainer_get_parameters(), for
 * the next episode. Never blocks. This function and rp_run_reporter_set_actors() must be called
 * on the same thread. */
void rp_run_reporter_add(rp_run_reporter *reporter, const rp_run_progress *progress,
                         const rp_real *params);

/* Sets the actors that the following reports list: at most RP_REPORT_ACTORS, with names of at
 * most 31 bytes. The name of the actor at an index is fixed by the first call of this function
 * that sets this index. Before the first call, reports list a single actor named "actors". */
void rp_run_reporter_set_actors(rp_run_reporter *reporter, const rp_run_actor *actors,
                                size_t count);

/* Totals of a reporter. */
typedef struct rp_run_reported {
    size_t sent, dropped; /* numbers of reports that the server accepted, and that were
                             dropped */
    size_t episodes;      /* episodes that the server stored */
    size_t left_out; /* scalars, actors and episodes in accepted reports for which the server
                        had no room */
    char why[RP_ERROR_TEXT_BYTES]; /* why the last dropped report failed; "" if none has failed.
                                      Reports that rp_run_reporter_free() cancels do not replace
                                      an earlier reason */
} rp_run_reported;

/* Returns true if a line for the user about failing reports is due, and then writes the reason
 * of the last failure to `why`. A line is due when all reports have failed for 2, 6, 18 and 54
 * seconds, and so on. The function returns true once for each line. Any thread may call this
 * function. */
bool rp_run_reporter_take_trouble(rp_run_reporter *reporter, char why[RP_ERROR_TEXT_BYTES]);

/* Waits until the queued reports are sent, for at most send_ms plus one second. Does not wait
 * if the server has never accepted a report and one has failed. Then drops the reports that are
 * left, ends the thread and frees the reporter. Writes the totals to `out`, which may be NULL.
 * `reporter` may be NULL. */
void rp_run_reporter_free(rp_run_reporter *reporter, rp_run_reported *out);

#endif
