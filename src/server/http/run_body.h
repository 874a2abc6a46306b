/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the body of POST /v1/runs/RUN, which docs/runs.md specifies:
 *
 *   {"scalars": [{"name": "loss", "step": 1, "time": 0, "value": 0.5}],
 *    "actors": [{"name": "a", "epsilon": 0.1, "return": 5, "version": 7, "version_lag": 0}],
 *    "episode": {"env": "cartpole", "states": [[0, 0, 0, 0]]}}
 *
 * Every part may be absent. If "value", "epsilon" or "return" is null, it is read as NaN. Other
 * keys are skipped. The result of rp_run_body_read() depends only on the bytes.
 * fuzz/fuzz_runs.c tests this function. */
#ifndef RP_SERVER_HTTP_RUN_BODY_H
#define RP_SERVER_HTTP_RUN_BODY_H

#include "reprise/runs.h"
#include "server/http/body_json.h"

typedef struct rp_run_body {
    rp_run_report report;
    rp_run_episode episode;
    rp_scalar scalars[RP_REPORT_SCALARS];
    rp_run_actor actors[RP_REPORT_ACTORS];
    float states[RP_EPISODE_NUMBERS];
    size_t names_used;
    char names[RP_ASK_BODY_BYTES]; /* copies of the names of scalars, actors and the
                                      environment; names_used bytes */
} rp_run_body;

/* Reads a body of at most RP_ASK_BODY_BYTES. `run`, the name of the run, is borrowed. The
 * report and episode in `out` refer to the other fields of `out`. On failure returns false, and
 * in->what and in->byte describe the mistake. */
RP_NODISCARD bool rp_run_body_read(rp_body *in, rp_string run, rp_run_body *out);

#endif
