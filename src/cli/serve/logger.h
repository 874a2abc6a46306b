/* SPDX-License-Identifier: Apache-2.0 */
/* Writes log lines to a descriptor, one write() each, with a rate limit for each event. Safe
 * from any thread, except for init and deinit. */
#ifndef RP_CLI_SERVE_LOGGER_H
#define RP_CLI_SERVE_LOGGER_H

#include <pthread.h>

#include "cli/serve/log_lines.h"

typedef struct rp_logger {
    int fd;
    bool json;
    pthread_mutex_t mu;
    rp_log_level level; /* guarded by mu, as is `rate` */
    rp_log_rate rate;
} rp_logger;

void rp_logger_init(rp_logger *logger, int fd, bool json, rp_log_level level);
/* Logs the number of lines that are still suppressed. */
void rp_logger_deinit(rp_logger *logger);

void rp_logger_set_level(rp_logger *logger, rp_log_level level);

/* Writes a line unless its level or its rate is over the limit. `fields` as in rp_fields; may
 * be NULL. A line that cannot be written is lost. */
void rp_logger_write(rp_logger *logger, rp_log_level level, const char *event,
                     const char *fields);

/* Returns the rp_log for a server. Borrows the logger. */
rp_log rp_logger_sink(rp_logger *logger);

#endif
