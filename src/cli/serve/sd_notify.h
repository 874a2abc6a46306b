/* SPDX-License-Identifier: Apache-2.0 */
/* Two protocols between systemd and a service, for `reprise serve`. With the first, systemd
 * passes open sockets to the service (LISTEN_FDS). With the second, the service reports its
 * state over a datagram socket (NOTIFY_SOCKET). */
#ifndef RP_CLI_SERVE_SD_NOTIFY_H
#define RP_CLI_SERVE_SD_NOTIFY_H

#include <sys/types.h>

#include "cli/text/problem.h"

/* Writes to `*count` how many sockets were passed to the process `pid`. Their descriptors begin
 * with 3. `listen_pid` and `listen_fds` are the values of the environment variables LISTEN_PID
 * and LISTEN_FDS; NULL: not set. Returns RP_INVALID if they are not numbers, or if there are
 * more than 16 sockets. */
RP_NODISCARD rp_status rp_passed_sockets(const char *listen_pid, const char *listen_fds,
                                         pid_t pid, size_t *count, rp_problem *problem);

/* Sets close-on-exec on the `count` passed sockets. Returns RP_INVALID if one of them is not
 * open. Must be called before anything else opens a descriptor. */
RP_NODISCARD rp_status rp_keep_sockets(size_t count, rp_problem *problem);

/* Sends notifications. */
typedef struct rp_notifier {
    int fd; /* the datagram socket; -1: none */
} rp_notifier;

/* Connects to the socket at `path`, which is abstract if `path` begins with '@'. If `path` is
 * NULL, no notifications are sent. Returns RP_INVALID for a wrong path, or RP_UNAVAILABLE.
 * After a failure, the caller can still use the notifier, which then sends nothing. */
RP_NODISCARD rp_status rp_notifier_open(rp_notifier *notifier, const char *path,
                                        rp_problem *problem);
void rp_notifier_close(rp_notifier *notifier);

/* Sends a text of lines such as "READY=1\nSTATUS=...". Never blocks: a text that cannot be sent
 * is dropped. */
void rp_notifier_send(const rp_notifier *notifier, const char *format, ...) RP_PRINTF(2, 3);

/* Returns the time of the monotonic clock in microseconds, which systemd requires together with
 * RELOADING=1. */
uint64_t rp_monotonic_us(void);

#endif
