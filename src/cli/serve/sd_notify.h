/* SPDX-License-Identifier: Apache-2.0 */
/* The protocols of systemd for services: passed sockets (LISTEN_FDS), and notifications of the
 * state over a datagram socket (NOTIFY_SOCKET). */
#ifndef RP_CLI_SERVE_SD_NOTIFY_H
#define RP_CLI_SERVE_SD_NOTIFY_H

#include <sys/types.h>

#include "cli/text/problem.h"

/* Gets the number of sockets that were passed to process `pid`; their descriptors begin with 3.
 * The other arguments are the values of LISTEN_PID and LISTEN_FDS (NULL: not set). RP_INVALID
 * if they are not numbers, or if there are more than 16 sockets. */
RP_NODISCARD rp_status rp_passed_sockets(const char *listen_pid, const char *listen_fds,
                                         pid_t pid, size_t *count, rp_problem *problem);

/* Sets close-on-exec on the `count` passed sockets. RP_INVALID if one is not open. Call it
 * before anything else opens a descriptor. */
RP_NODISCARD rp_status rp_keep_sockets(size_t count, rp_problem *problem);

typedef struct rp_notifier {
    int fd; /* -1: none */
} rp_notifier;

/* Connects to the socket at `path`, or to an abstract socket if `path` begins with '@'. NULL:
 * no notifications.
 * RP_INVALID (the name), RP_UNAVAILABLE; the notifier can be used in every case. */
RP_NODISCARD rp_status rp_notifier_open(rp_notifier *notifier, const char *path,
                                        rp_problem *problem);
void rp_notifier_close(rp_notifier *notifier);

/* Sends lines such as "READY=1\nSTATUS=...". Never blocks; lines that cannot be sent are
 * dropped. */
void rp_notifier_send(const rp_notifier *notifier, const char *format, ...) RP_PRINTF(2, 3);

/* Returns the monotonic clock in microseconds, for RELOADING=1. */
uint64_t rp_monotonic_us(void);

#endif
