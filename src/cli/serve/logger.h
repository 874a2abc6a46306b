/* SPDX-License-Identifier: Apache-2.0 */
/* A logger: writes log lines to a file descriptor, with one write() per line and a rate limit
 * per event (log_lines.h). Any thread may call any function except rp_logger_init() and
 * rp_logger_deinit(). */
#ifndef RP_CLI_SERVE_LOGGER_H
#define RP_CLI_SERVE_LOGGER_H

#include <pthread.h>

#include "cli/serve/log_lines.h"

typedef struct rp_logger {
    int fd;
    bool json;
    pthread_mutex_t mu;
    rp_log_level level; /* guarded by mu */
    rp_log_rate rate;   /* guarded by mu */
} rp_logger;

void rp_logger_init(rp_logger *logger, int fd, bool json, rp_log_level level);
/* Logs how many lines were dropped and not yet reported, then releases the logger. */
void rp_logger_deinit(rp_logger *logger);

void rp_logger_set_level(rp_logger *logger, rp_log_level level);

/* Writes a line, if the logger's level and the event's rate limit admit it. `fields` is the
 * text of an rp_fields (log_lines.h), such as "key=value", or NULL for no fields. A line that
 * cannot be written is lost. */
void rp_logger_write(rp_logger *logger, rp_log_level level, const char *event,
                     const char *fields);

/* Returns an rp_log (reprise/server.h), with which a server logs to this logger. Borrows the
 * logger. */
rp_log rp_logger_sink(rp_logger *logger);

#endif
