/* SPDX-License-Identifier: Apache-2.0 */
/* Runs `reprise serve` as a process, on a port of loopback and on a Unix socket.
 *
 *   rp_test_process p = {.program = RP_TEST_REPRISE};
 *   rp_test_process_start(&p);
 *   ...
 *   rp_test_process_kill(&p);        // SIGKILL
 *   rp_test_process_start(&p);       // at the same addresses, empty
 *   rp_test_process_stop(&p);        // SIGTERM: it must end with status 0
 *   rp_test_process_forget(&p);      // removes its folder
 *
 * A process that still runs when the test ends is killed. */
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
    char log[96];                               /* file of its output */
} rp_test_process;

/* Starts the process, and returns once it serves. */
void rp_test_process_start(rp_test_process *p);
void rp_test_process_kill(rp_test_process *p);
void rp_test_process_stop(rp_test_process *p);
void rp_test_process_forget(rp_test_process *p);

#endif
