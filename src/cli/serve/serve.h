/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise serve`: a server as a process.
 *
 * The main thread starts it and then waits for signals. SIGTERM and SIGINT drain it, on a
 * thread of their own, so that a second one can stop it at once; SIGHUP reads the configuration
 * again and takes from it what can be changed while it runs. */
#ifndef RP_CLI_SERVE_SERVE_H
#define RP_CLI_SERVE_SERVE_H

#include "cli/help/flags.h"

/* Runs until it is told to stop. Returns the exit status: 0 stopped in order, or the
 * configuration is good; 1 it could not start, or was stopped at once; 2 the configuration is
 * not good. */
int rp_serve_run(const rp_flags *flags);

#endif
