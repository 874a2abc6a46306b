/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the user what a command waits for: on standard error, after two seconds of waiting, and
 * again after 6, 18 and 54 seconds, and so on. A thread watches the waits, since most calls of
 * the client library return only at their end. */
#ifndef RP_CLI_COMMANDS_PATIENCE_H
#define RP_CLI_COMMANDS_PATIENCE_H

#include "reprise/client.h"

enum { RP_PATIENCE_MS = 2000, RP_PATIENCE_FACTOR = 3 };

typedef struct rp_patience rp_patience;

/* Starts watching the waits of a command for the servers of `client` at `addresses`. Borrows
 * all of them. Returns owned; NULL if there is no memory or no thread: then nothing is said. */
rp_patience *rp_patience_new(const char *command, const char *addresses, rp_client *client);
void rp_patience_free(rp_patience *patience); /* NULL is fine, as for all functions here */

/* Sets why a server may respond late, for lines about waits without any other reason. Static.
 * Call it before the first wait. */
void rp_patience_explain(rp_patience *patience, const char *reason);

/* A wait that ends at `until_ns` begins, or the current one has ended. Any thread. */
void rp_patience_begin(rp_patience *patience, int64_t until_ns);
void rp_patience_end(rp_patience *patience);

/* Returns when to print the line after the one that was due at `due_ns`: as soon as the wait
 * that began at `since_ns` is three, nine, ... times as long, and after `now_ns`. RP_FOREVER:
 * never. */
int64_t rp_patience_next(int64_t since_ns, int64_t due_ns, int64_t now_ns);

/* Prints a line: the command, what it waits for, how long it has waited, and when it gives up.
 */
void rp_patience_say(const char *command, const char *what, int64_t since_ns, int64_t until_ns);

#endif
