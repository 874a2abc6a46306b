/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/logger.h"

#include <assert.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

enum { BURST = 20 };

static const int64_t window_ns = INT64_C(10) * 1000000000; /* 20 lines of an event in 10 s */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};

    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void rp_logger_init(rp_logger *logger, int fd, bool json, rp_log_level level)
{
    *logger = (rp_logger){
        .fd = fd,
        .json = json,
        .level = level,
        .rate = {.window_ns = window_ns, .burst = BURST},
    };
    (void)pthread_mutex_init(&logger->mu, NULL);
}

/* Writes a line with one write(): lines of several threads, or of several processes on one
 * pipe, are not mixed. */
static void write_line(const rp_logger *logger, const rp_log_entry *entry)
{
    char line[RP_LOG_LINE_BYTES];
    size_t size = rp_log_line(entry, logger->json, line, sizeof line);
    ssize_t written;

    assert(size > 0 && size <= sizeof line);
    do written = write(logger->fd, line, size);
    while (written < 0 && errno == EINTR);
}

void rp_logger_deinit(rp_logger *logger)
{
    if (logger == NULL) return;
    for (size_t i = 0; i < logger->rate.event_count; i++) {
        const struct rp_log_rate_event *e = &logger->rate.events[i];
        rp_log_entry entry = {.wall_ns = clock_ns(CLOCK_REALTIME),
                              .level = RP_LOG_WARNING,
                              .event = e->name,
                              .suppressed = e->suppressed};

        if (e->suppressed > 0) write_line(logger, &entry);
    }
    (void)pthread_mutex_destroy(&logger->mu);
}

void rp_logger_set_level(rp_logger *logger, rp_log_level level)
{
    (void)pthread_mutex_lock(&logger->mu);
    logger->level = level;
    (void)pthread_mutex_unlock(&logger->mu);
}

void rp_logger_write(rp_logger *logger, rp_log_level level, const char *event,
                     const char *fields)
{
    rp_log_entry entry = {
        .wall_ns = clock_ns(CLOCK_REALTIME), .level = level, .event = event, .fields = fields};
    bool wanted;

    assert(event != NULL && level <= RP_LOG_DEBUG);
    (void)pthread_mutex_lock(&logger->mu);
    wanted =
        level <= logger->level &&
        rp_log_rate_admit(&logger->rate, event, clock_ns(CLOCK_MONOTONIC), &entry.suppressed);
    (void)pthread_mutex_unlock(&logger->mu);
    if (wanted) write_line(logger, &entry);
}

static void sink(void *ctx, rp_log_level level, const char *event, const char *fields)
{
    rp_logger_write(ctx, level, event, fields);
}

rp_log rp_logger_sink(rp_logger *logger)
{
    return (rp_log){sink, logger};
}
