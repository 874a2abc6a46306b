/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise serve`: a server as a process.
 *
 * The main thread starts the server and then waits for signals. After SIGTERM or SIGINT the
 * server drains on another thread, so that a second signal can stop it at once. SIGHUP reads
 * the configuration again and applies the settings that can change while the server runs. */
#ifndef RP_CLI_SERVE_SERVE_H
#define RP_CLI_SERVE_SERVE_H

#include "cli/help/flags.h"

/* Runs a server until a signal stops it, or only checks the configuration. Returns the exit
 * status: 0 if the server drained, or the configuration is valid; 1 if the server could not
 * start or was stopped at once; 2 if the configuration is not valid. */
int rp_serve_run(const rp_flags *flags);

#endif
