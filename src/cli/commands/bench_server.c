/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a server with a process has a descriptor to it. The child ends when the descriptor
 * is closed. */
#include "cli/commands/bench_server.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reprise/server.h"

/* The first message of the child: its port, or 0 and an error. */
typedef struct greeting {
    int port;
    char text[RP_ERROR_TEXT_BYTES];
} greeting;

/* The child process: serves until the parent closes its end. */
static _Noreturn void serve(int fd)
{
    static const char *const address = "127.0.0.1:0";
    rp_server_options options = {.addresses = &address, .address_count = 1};
    greeting hello = {0};
    rp_server *server = NULL;
    rp_store *store = NULL;
    rp_error err = {0};
    char byte;

    (void)signal(SIGINT, SIG_IGN); /* the parent handles Ctrl-C */
    (void)signal(SIGPIPE, SIG_IGN);
    if (rp_store_new(NULL, &store, &err) == RP_OK &&
        rp_server_start(store, &options, &server, &err) == RP_OK)
        hello.port = rp_server_port(server);
    memcpy(hello.text, err.text, sizeof hello.text);
    (void)!write(fd, &hello, sizeof hello);
    while (hello.port > 0 && read(fd, &byte, 1) < 0 && errno == EINTR) continue;
    _exit(hello.port > 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

rp_status rp_bench_server_start(rp_bench_server *s, rp_problem *problem)
{
    greeting hello = {0};
    int fds[2];

    *s = (rp_bench_server){.fd = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
        return rp_problem_set(problem, NULL, "no server could be started: %s", strerror(errno));
    (void)fflush(NULL);
    s->process = fork();
    if (s->process == 0) {
        (void)close(fds[0]);
        serve(fds[1]);
    }
    (void)close(fds[1]);
    s->fd = fds[0];
    assert(s->fd >= 0);
    if (s->process < 0) {
        s->process = 0;
        (void)rp_problem_set(problem, NULL, "no server could be started: %s", strerror(errno));
    } else if (read(s->fd, &hello, sizeof hello) == (ssize_t)sizeof hello && hello.port > 0) {
        (void)snprintf(s->address, sizeof s->address, "127.0.0.1:%d", hello.port);
        return RP_OK;
    } else {
        (void)rp_problem_set(problem, NULL, "no server could be started: %s",
                             hello.text[0] != '\0' ? hello.text : "it ended at once");
    }
    rp_bench_server_stop(s);
    return RP_INVALID;
}

void rp_bench_server_stop(rp_bench_server *s)
{
    assert(s->process == 0 || s->fd >= 0);
    if (s->fd >= 0) (void)close(s->fd);
    if (s->process > 0)
        while (waitpid(s->process, NULL, 0) < 0 && errno == EINTR) continue;
    *s = (rp_bench_server){.fd = -1};
}
