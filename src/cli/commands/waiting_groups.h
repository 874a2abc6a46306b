/* SPDX-License-Identifier: Apache-2.0 */
/* Groups blocked calls: those on one side of a table that wait for the same reason, and within
 * them those of the same client. A writer with many items has a call for each. Pure. */
#ifndef RP_CLI_COMMANDS_WAITING_GROUPS_H
#define RP_CLI_COMMANDS_WAITING_GROUPS_H

#include "reprise/client.h"

enum { RP_MOST_WAITING = 256 }; /* calls that are grouped */

/* The calls of one client in a group. */
typedef struct rp_waiter {
    const rp_client_waiting *first; /* the call that has waited longest */
    size_t calls;
    size_t group; /* its index */
} rp_waiter;

typedef struct rp_waiting_group {
    const rp_client_waiting *first; /* the call that has waited longest */
    const char *reason;             /* without the number of calls that wait ahead */
    size_t calls, clients;
} rp_waiting_group;

typedef struct rp_waiting_groups {
    rp_waiting_group groups[RP_MOST_WAITING]; /* in the order of their first calls */
    size_t group_count;
    rp_waiter
        waiters[RP_MOST_WAITING]; /* of all groups, those that have waited longest first */
    size_t waiter_count;
} rp_waiting_groups;

/* Groups `count` (<= RP_MOST_WAITING) calls, from which the result borrows. */
void rp_waiting_groups_make(rp_waiting_groups *groups, const rp_client_waiting *calls,
                            size_t count);

#endif
