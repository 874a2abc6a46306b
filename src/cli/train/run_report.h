/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the progress of a training run to a server (reprise/runs.h) without slowing the run.
 * The trainer adds progress to a bounded queue, and a thread of the reporter sends it. If the
 * queue is full, or if the server cannot be reached, reports are dropped and counted; the
 * trainer never sees an error.
 *
 * The thread also plays an episode with the latest parameters from time to time, and reports
 * its states, which the web page draws.
 *
 * Invariants, whenever mu is free:
 *   Q1  count <= RP_REPORT_QUEUE; the entries are queue[(first + i) % RP_REPORT_QUEUE];
 *   Q2  `params` belong to the thread while has_params is true, else to the trainer. */
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
    const char *address; /* of the server */
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
 * RP_INVALID for a wrong address. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_run_reporter_new(const rp_run_reporter_options *options,
                                           rp_run_reporter **out, rp_error *err);

/* Queues a copy of `progress`. Copies `params`, the result of rp_trainer_get_parameters(), for
 * the next episode. Never blocks. This function and rp_run_reporter_set_actors() must be called
 * on the same thread. */
void rp_run_reporter_add(rp_run_reporter *reporter, const rp_run_progress *progress,
                         const rp_real *params);

/* Sets the actors that the following reports list: at most RP_REPORT_ACTORS, with names of at
 * most 31 bytes. Before the first call, reports list a single actor named "actors". */
void rp_run_reporter_set_actors(rp_run_reporter *reporter, const rp_run_actor *actors,
                                size_t count);

/* Totals of a reporter. */
typedef struct rp_run_reported {
    size_t sent, dropped; /* reports that the server accepted; reports that were dropped */
    size_t episodes;      /* episodes that the server stored */
    size_t left_out; /* scalars, actors and episodes in accepted reports for which the server
                        had no room */
    char why[RP_ERROR_TEXT_BYTES]; /* text of the last failure other than the end of the
                                      reporter; "" if there was none */
} rp_run_reported;

/* Returns true if all reports of the last two seconds or more have failed, and a line about it
 * is due: after 2, 6, 18 and 54 seconds, and so on. Writes why the last one failed. Any thread
 * may call it. */
bool rp_run_reporter_take_trouble(rp_run_reporter *reporter, char why[RP_ERROR_TEXT_BYTES]);

/* Sends the queued reports, for at most send_ms in all, and not at all if one has failed and
 * none was accepted before. Then ends the thread and frees the
 * reporter. Writes the totals to `out`, which may be NULL. `reporter` may be NULL. */
void rp_run_reporter_free(rp_run_reporter *reporter, rp_run_reported *out);

#endif
