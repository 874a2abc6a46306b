/* SPDX-License-Identifier: Apache-2.0 */
/* Talking to a service manager, by the protocols of systemd: sockets it passes (LISTEN_FDS),
 * and a datagram socket that it wants to hear of states on (NOTIFY_SOCKET). */
#ifndef RP_CLI_SERVE_SD_NOTIFY_H
#define RP_CLI_SERVE_SD_NOTIFY_H

#include <sys/types.h>

#include "cli/text/problem.h"

/* How many sockets were passed to process `pid`, from descriptor 3 on, by the values of
 * LISTEN_PID and LISTEN_FDS (NULL: not set). RP_INVALID if they are no numbers or over 16. */
RP_NODISCARD rp_status rp_passed_sockets(const char *listen_pid, const char *listen_fds,
                                         pid_t pid, size_t *count, rp_problem *problem);

/* Keeps `count` passed sockets from the children of this process. RP_INVALID if one is not
 * open: look before anything else takes its number. */
RP_NODISCARD rp_status rp_keep_sockets(size_t count, rp_problem *problem);

typedef struct rp_notifier {
    int fd; /* -1: nobody wants to know */
} rp_notifier;

/* Connects to a path, or to an abstract name that begins with '@'. NULL: nobody wants to know.
 * RP_INVALID (the name), RP_UNAVAILABLE; the notifier is good for use in every case. */
RP_NODISCARD rp_status rp_notifier_open(rp_notifier *notifier, const char *path,
                                        rp_problem *problem);
void rp_notifier_close(rp_notifier *notifier);

/* Sends lines such as "READY=1\nSTATUS=...". Does nothing without a listener, never blocks and
 * forgets what cannot be sent. */
void rp_notifier_send(const rp_notifier *notifier, const char *format, ...) RP_PRINTF(2, 3);

/* Microseconds on the monotonic clock, which a RELOADING=1 carries. */
uint64_t rp_monotonic_us(void);

#endif
