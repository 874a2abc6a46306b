/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise serve`: a server as a process.
 *
 * The main thread starts the server and then waits for signals. SIGTERM and SIGINT drain it on
 * another thread, so that a second signal can stop it at once. SIGHUP reads the configuration
 * again and applies the settings that can change while the server runs. */
#ifndef RP_CLI_SERVE_SERVE_H
#define RP_CLI_SERVE_SERVE_H

#include "cli/help/flags.h"

/* Runs until a signal stops it. Returns the exit status: 0 drained, or the configuration is
 * valid; 1 it could not start, or was stopped at once; 2 the configuration is not valid. */
int rp_serve_run(const rp_flags *flags);

#endif
