/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/sd_notify.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cli/text/units.h"

enum { MAX_SOCKETS = 16, FIRST_SOCKET = 3, MESSAGE_BYTES = 1024 };

rp_status rp_passed_sockets(const char *listen_pid, const char *listen_fds, pid_t pid,
                            size_t *count, rp_problem *problem)
{
    int64_t number;

    *count = 0;
    if (listen_pid == NULL || listen_fds == NULL) return RP_OK;
    if (!rp_parse_integer(listen_pid, &number))
        return rp_problem_set(problem, NULL, "LISTEN_PID: expected a process, got '%.50s'",
                              listen_pid);
    if (number != pid) return RP_OK; /* the sockets are for another process */
    if (!rp_parse_integer(listen_fds, &number) || number < 0 || number > MAX_SOCKETS)
        return rp_problem_set(problem, NULL,
                              "LISTEN_FDS: expected a whole number from 0 to %d, got '%.50s'",
                              MAX_SOCKETS, listen_fds);
    assert(number >= 0 && number <= MAX_SOCKETS);
    *count = (size_t)number;
    return RP_OK;
}

rp_status rp_keep_sockets(size_t count, rp_problem *problem)
{
    assert(count <= MAX_SOCKETS);
    for (size_t i = 0; i < count; i++)
        if (fcntl(FIRST_SOCKET + (int)i, F_SETFD, FD_CLOEXEC) != 0)
            return rp_problem_set(problem, NULL,
                                  "LISTEN_FDS: %zu, but descriptor %d is not open", count,
                                  FIRST_SOCKET + (int)i);
    return RP_OK;
}

rp_status rp_notifier_open(rp_notifier *n, const char *path, rp_problem *problem)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length;
    socklen_t size;

    n->fd = -1;
    if (path == NULL) return RP_OK;
    length = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || length < 2 || length >= sizeof address.sun_path)
        return rp_problem_set(problem, NULL,
                              "NOTIFY_SOCKET: '%.120s' is neither a path nor an abstract name, "
                              "or longer than %zu bytes",
                              path, sizeof address.sun_path - 1);
    memcpy(address.sun_path, path, length);
    size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    else
        size++;
    n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (n->fd >= 0 && connect(n->fd, (const struct sockaddr *)&address, size) == 0)
        return RP_OK;
    (void)rp_problem_set(problem, NULL, "NOTIFY_SOCKET: '%s': %s", path, strerror(errno));
    rp_notifier_close(n);
    assert(n->fd == -1);
    return RP_UNAVAILABLE;
}

void rp_notifier_close(rp_notifier *n)
{
    if (n->fd >= 0) (void)close(n->fd);
    n->fd = -1;
}

void rp_notifier_send(const rp_notifier *n, const char *format, ...)
{
    char message[MESSAGE_BYTES];
    va_list args;

    if (n->fd < 0) return;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    (void)send(n->fd, message, strlen(message), MSG_NOSIGNAL);
}

uint64_t rp_monotonic_us(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}
