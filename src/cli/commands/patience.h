/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the user what a command waits for. During a long wait, a line about it appears on
 * standard error after 2, 6, 18 and 54 seconds, and so on. A thread prints these lines, because
 * most calls of the client library do not return during the wait. */
#ifndef RP_CLI_COMMANDS_PATIENCE_H
#define RP_CLI_COMMANDS_PATIENCE_H

#include "reprise/client.h"

enum { RP_PATIENCE_MS = 2000, RP_PATIENCE_FACTOR = 3 };

typedef struct rp_patience rp_patience;

/* Starts the thread for a command that waits for the servers of `client` at `addresses`.
 * Borrows the arguments. The caller owns the result. If memory or threads run out, returns
 * NULL, and no lines are printed. */
rp_patience *rp_patience_new(const char *command, const char *addresses, rp_client *client);
void rp_patience_free(rp_patience *patience); /* every function here accepts NULL */

/* Sets a possible reason for late responses, which is printed if no other reason for a wait is
 * known. `reason` must be a static string. Must be called before the first wait. */
void rp_patience_explain(rp_patience *patience, const char *reason);

/* Record the begin of a wait that times out at `until_ns`, and the end of the current wait. Any
 * thread may call them. */
void rp_patience_begin(rp_patience *patience, int64_t until_ns);
void rp_patience_end(rp_patience *patience);

/* Returns when the next line is due about a wait that began at `since_ns`, if the last line was
 * due at `due_ns`. Each line is due when the wait has lasted RP_PATIENCE_FACTOR times as long
 * as at the previous line. The result is later than `now_ns`: lines that were due before
 * `now_ns` are skipped. Returns RP_FOREVER if the time would overflow. */
int64_t rp_patience_next(int64_t since_ns, int64_t due_ns, int64_t now_ns);

/* Prints a line with the command, what the command waits for, how long it has waited, and when
 * it will give up. */
void rp_patience_say(const char *command, const char *what, int64_t since_ns, int64_t until_ns);

#endif
