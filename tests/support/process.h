/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise serve` as a process of its own, on a port of loopback and on a Unix socket.
 *
 *   rp_test_process p = {.program = RP_TEST_REPRISE};
 *   rp_test_process_start(&p);
 *   ...
 *   rp_test_process_kill(&p);        // SIGKILL
 *   rp_test_process_start(&p);       // where it was, empty
 *   rp_test_process_stop(&p);        // in order: it must end well
 *   rp_test_process_forget(&p);      // its folder
 *
 * What is still alive when the test ends is killed. */
#ifndef RP_TEST_PROCESS_H
#define RP_TEST_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

enum { RP_TEST_PROCESS_EXTRAS = 4 };

typedef struct rp_test_process {
    const char *program;
    const char *extras[RP_TEST_PROCESS_EXTRAS]; /* more arguments, up to the first NULL */
    pid_t pid;                                  /* 0: does not run */
    int port;                                   /* 0 before the first start */
    char folder[64], path[96];                  /* of the socket */
    char log[96];                               /* what it says goes there */
} rp_test_process;

/* Returns once it serves. */
void rp_test_process_start(rp_test_process *p);
void rp_test_process_kill(rp_test_process *p);
void rp_test_process_stop(rp_test_process *p);
void rp_test_process_forget(rp_test_process *p);

#endif
