/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a logger, which writes the progress of a training run (reprise/rl/run_log.h),
 * for the files that implement loggers. */
#ifndef RP_LOOP_RUN_LOG_H
#define RP_LOOP_RUN_LOG_H

#include "reprise/rl/run_log.h"

struct rp_run_log {
    rp_status (*write)(rp_run_log *logger, const rp_run_progress *progress, rp_error *err);
    void (*free)(rp_run_log *logger);
    rp_allocator alloc;
};

#endif
