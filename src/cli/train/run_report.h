/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a training to a server (reprise/runs.h) without slowing it: the trainer adds its
 * progress to a bounded queue, and a thread sends it. What does not fit into the queue, or does
 * not arrive, is dropped and counted; no failure reaches the trainer.
 *
 * The thread also plays an episode with the latest parameters now and then, and reports its
 * states for the page to draw.
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

/* Strings, class and settings are borrowed until the reporter is freed. */
typedef struct rp_run_reporter_options {
    const char *address;
    const char *run; /* its name */
    rp_client_options client;
    const rp_env_class *env_class;
    const rp_agent_kind *kind;
    const rp_agent_settings *settings;
    uint64_t seed;
    int64_t send_ms;    /* the longest time for one report; 0: 2,000 */
    int64_t episode_ms; /* between episodes; 0: 5,000 */
} rp_run_reporter_options;

/* Makes the client and starts the thread. Does no I/O itself. Returns owned. RP_INVALID (the
 * address), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_run_reporter_new(const rp_run_reporter_options *options,
                                           rp_run_reporter **out, rp_error *err);

/* Queues a progress; `params` are the parameters to use, as rp_trainer_get_parameters() returns
 * them. Takes no longer than a copy of both. One thread. */
void rp_run_reporter_add(rp_run_reporter *reporter, const rp_run_progress *progress,
                         const rp_real *params);

/* Sets the actors that the following reports have, at most RP_REPORT_ACTORS, with names of at
 * most 31 bytes. Before the first call there is one, "actors". The same thread. */
void rp_run_reporter_set_actors(rp_run_reporter *reporter, const rp_run_actor *actors,
                                size_t count);

typedef struct rp_run_reported {
    size_t sent, dropped; /* reports that the server has; reports that it has not */
    size_t episodes;      /* that the server has */
    size_t left_out; /* scalars, actors and episodes of reports that the server has, for which
                        it had no room */
    char why[RP_ERROR_TEXT_BYTES]; /* of the last failure; "" if there was none */
} rp_run_reported;

/* Sends what is queued, for at most one send_ms, and ends the thread. `out` may be NULL. NULL
 * is fine. */
void rp_run_reporter_free(rp_run_reporter *reporter, rp_run_reported *out);

#endif
