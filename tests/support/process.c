/* SPDX-License-Identifier: Apache-2.0 */
#include "support/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/unit.h"

enum { MAX_PROCESSES = 64, WAIT_MS = 120000, LOG_BYTES = 8192 };

extern char **environ;
static pid_t alive[MAX_PROCESSES];
static pid_t owner; /* the process that starts them, not a child of it */

static void kill_all(void)
{
    if (getpid() != owner) return;
    for (size_t i = 0; i < MAX_PROCESSES; i++) {
        if (alive[i] == 0) continue;
        (void)kill(alive[i], SIGKILL);
        (void)waitpid(alive[i], NULL, 0);
    }
}

static void note(pid_t gone, pid_t come)
{
    if (owner == 0) {
        owner = getpid();
        (void)atexit(kill_all);
    }
    for (size_t i = 0; i < MAX_PROCESSES; i++)
        if (alive[i] == gone) {
            alive[i] = come;
            return;
        }
    fail_msg("more than %d processes", MAX_PROCESSES);
}

static size_t read_log(const rp_test_process *p, char text[LOG_BYTES])
{
    int fd = open(p->log, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, LOG_BYTES - 1) : 0;

    if (fd >= 0) (void)close(fd);
    if (n < 0) n = 0;
    text[n] = 0;
    return (size_t)n;
}

static void make_folder(rp_test_process *p)
{
    (void)snprintf(p->folder, sizeof p->folder, "/tmp/reprise-test-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    (void)snprintf(p->path, sizeof p->path, "%s/socket", p->folder);
    (void)snprintf(p->log, sizeof p->log, "%s/log", p->folder);
}

static void spawn(rp_test_process *p)
{
    char tcp[64], unix_socket[128];
    const char *arguments[8 + RP_TEST_PROCESS_EXTRAS] = {
        p->program, "serve", tcp, unix_socket, "--loops=1", "--drain-seconds=1"};
    posix_spawn_file_actions_t actions;
    size_t count = 6;

    (void)snprintf(tcp, sizeof tcp, "--listen=127.0.0.1:%d", p->port);
    (void)snprintf(unix_socket, sizeof unix_socket, "--listen=unix:%s", p->path);
    for (size_t i = 0; i < RP_TEST_PROCESS_EXTRAS && p->extras[i] != NULL; i++)
        arguments[count++] = p->extras[i];
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_addopen(&actions, 2, p->log,
                                                      O_WRONLY | O_CREAT | O_TRUNC, 0600),
                     0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, 2, 1), 0);
    assert_int_equal(posix_spawn(&p->pid, p->program, &actions, NULL,
                                 (char *const *)(uintptr_t)arguments, environ),
                     0);
    (void)posix_spawn_file_actions_destroy(&actions);
    note(0, p->pid);
}

void rp_test_process_start(rp_test_process *p)
{
    char text[LOG_BYTES];
    const char *found = NULL;

    assert_int_equal(p->pid, 0);
    if (p->folder[0] == 0) make_folder(p);
    (void)unlink(p->log);
    spawn(p);
    for (int ms = 0; found == NULL; ms++) {
        if (ms == WAIT_MS || waitpid(p->pid, NULL, WNOHANG) != 0)
            fail_msg("the server does not serve: %s", text);
        (void)usleep(1000);
        (void)read_log(p, text);
        found = strstr(text, "event=serving");
    }
    found = strstr(found, "127.0.0.1:");
    assert_non_null(found);
    p->port = (int)strtol(found + 10, NULL, 10);
    assert_true(p->port > 0);
}

/* Ends the process with a signal. Returns the status of waitpid(). */
static int end(rp_test_process *p, int signal)
{
    int status = 0;

    assert_true(p->pid > 0);
    assert_int_equal(kill(p->pid, signal), 0);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    note(p->pid, 0);
    p->pid = 0;
    return status;
}

void rp_test_process_kill(rp_test_process *p)
{
    assert_true(WIFSIGNALED(end(p, SIGKILL)));
}

void rp_test_process_stop(rp_test_process *p)
{
    int status = end(p, SIGTERM);
    char text[LOG_BYTES];

    if (status == 0) return;
    (void)read_log(p, text);
    fail_msg("the server ended with %d: %s", status, text);
}

void rp_test_process_forget(rp_test_process *p)
{
    if (p->pid != 0) rp_test_process_kill(p);
    if (p->folder[0] == 0) return;
    (void)unlink(p->path);
    (void)unlink(p->log);
    (void)rmdir(p->folder);
    p->folder[0] = 0;
}
