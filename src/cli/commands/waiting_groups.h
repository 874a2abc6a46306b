/* SPDX-License-Identifier: Apache-2.0 */
/* Groups calls that wait on a server, for `reprise top`. A group contains the inserts, or the
 * samples, of one table that wait for the same reason. Within a group, calls of the same client
 * are counted together, because a writer has a waiting call for each of its items. Pure
 * functions. */
#ifndef RP_CLI_COMMANDS_WAITING_GROUPS_H
#define RP_CLI_COMMANDS_WAITING_GROUPS_H

#include "reprise/client.h"

enum { RP_MOST_WAITING = 256 }; /* the most calls that can be grouped */

/* The calls of one client in a group. */
typedef struct rp_waiter {
    const rp_client_waiting *first; /* the call that has waited longest */
    size_t calls;                   /* number of the client's calls in the group */
    size_t group;                   /* index of the group */
} rp_waiter;

typedef struct rp_waiting_group {
    const rp_client_waiting *first; /* the call that has waited longest */
    const char *reason;             /* reason of `first`, without the part about calls that wait
                                       before it */
    size_t calls, clients;          /* numbers of calls and of clients */
} rp_waiting_group;

typedef struct rp_waiting_groups {
    rp_waiting_group groups[RP_MOST_WAITING]; /* in the order of their first calls in the
                                                 input */
    size_t group_count;
    rp_waiter waiters[RP_MOST_WAITING]; /* of all groups; longest waiting time first */
    size_t waiter_count;
} rp_waiting_groups;

/* Groups `count` <= RP_MOST_WAITING calls. The result points to these calls and their texts. */
void rp_waiting_groups_make(rp_waiting_groups *groups, const rp_client_waiting *calls,
                            size_t count);

#endif
