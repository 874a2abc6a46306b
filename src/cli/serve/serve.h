/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise serve`: a server as a process.
 *
 * The main thread starts the server and then waits for signals. After SIGTERM or SIGINT,
 * another thread drains the server, that is, lets running requests finish for a limited time. A
 * second signal stops the server at once. After SIGHUP, the main thread reads the configuration
 * again and applies the settings that can change while the server runs. */
#ifndef RP_CLI_SERVE_SERVE_H
#define RP_CLI_SERVE_SERVE_H

#include "cli/help/flags.h"

/* Runs a server until a signal stops it. With --check-config, only checks the configuration.
 * Returns the exit status: 0 if the server drained or the checked configuration is valid; 1 if
 * the server could not start or was stopped at once; 2 if the configuration is not valid. */
int rp_serve_run(const rp_flags *flags);

#endif
