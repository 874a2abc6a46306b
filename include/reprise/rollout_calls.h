/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on the rollouts (rollouts.h) of a server, or of a store of this process.
 *
 *   rp_rollouts_call call = {.action = RP_ROLLOUTS_DRAW,
 *                            .rollouts = {"train", 5},
 *                            .groups = 32,
 *                            .ttl_ns = 600 * INT64_C(1000000000)};
 *   st = rp_client_rollouts(client, &call, rp_wait_ms(60000), &err);
 *   ... train on call.draw->groups ...
 *   rp_rollouts_call ack = {.action = RP_ROLLOUTS_ACK,
 *                           .rollouts = {"train", 5},
 *                           .lease = call.draw->lease};
 *   st = rp_client_rollouts(client, &ack, rp_wait_ms(60000), &err);
 *   rp_rollouts_draw_free(call.draw);
 */
#ifndef REPRISE_ROLLOUT_CALLS_H
#define REPRISE_ROLLOUT_CALLS_H

#include "reprise/client.h"
#include "reprise/rollouts.h"

RP_BEGIN_DECLS

/* What rp_client_rollouts() does. The names in parentheses are the fields that the action
 * uses, besides `rollouts`. Fields after a semicolon are optional. */
typedef enum rp_rollouts_action {
    RP_ROLLOUTS_CREATE = 0, /* makes rollouts (options). RP_EXISTS */
    RP_ROLLOUTS_DROP = 1,   /* removes rollouts; all waits end with RP_CANCELLED */
    RP_ROLLOUTS_LIST = 2,   /* calls on_entry for the rollouts, or for all if `rollouts` is
                               empty, in the order of their names */
    /* Begins a group, and reserves it for ttl_ns from now (group, ttl_ns). Each put into the
     * group extends the reservation to ttl_ns from the put. A reserved group is reserved again:
     * `repeated`. A partial group without a reservation gets one. RP_EXISTS: the group is
     * complete. May wait. */
    RP_ROLLOUTS_RESERVE = 3,
    /* Removes a group with its items (group). `gone` if it was removed before. RP_NOT_FOUND.
     * RP_PRECONDITION: it is leased. */
    RP_ROLLOUTS_ABORT = 4,
    /* Puts an item, or columns of it (group, index, first_version, last_version, columns).
     * `repeated` if nothing is new, `gone` if the group was removed or is too stale: `fate`
     * says which. RP_EXISTS: a column exists with other values. RP_INVALID: the group would
     * have more than RP_ROLLOUT_GROUP_BYTES. May wait. */
    RP_ROLLOUTS_PUT = 5,
    /* Adds columns to an item (group, index, columns; replace). RP_EXISTS, as above, unless
     * `replace` is set. RP_NOT_FOUND (no such group or item). RP_INVALID as above. May wait. */
    RP_ROLLOUTS_UPDATE = 6,
    /* Sets the version, and drops the groups that are stale then (version). `repeated`, with no
     * effect, if it is not above the current one. Many groups are dropped in steps, between
     * which other calls go on. The call ends when the last one is gone, also with RP_NOW. If it
     * ends before, because it was cancelled or its connection broke, the version is set, and
     * the other stale groups are dropped later. */
    RP_ROLLOUTS_ADVANCE = 7,
    /* Leases groups (consumer, groups, ttl_ns; min_groups, column and tokens). `draw` has
     * them. With `column`, the drawn items have at most `tokens` rows of that column in all:
     * the draw ends before the group that would exceed this. Waits until min_groups groups are
     * ready. A server ends the draw before the group with which its message would be too large.
     * RP_INVALID: min_groups is above max_groups of the options. RP_PRECONDITION: the next
     * group alone has more tokens. RP_NO_RESOURCE: fewer than min_groups groups fit into a
     * message; they stay in the rollouts. */
    RP_ROLLOUTS_DRAW = 8,
    /* The consumer has consumed the groups of the lease (lease). `repeated` if that is known
     * already. RP_NOT_FOUND: the lease has expired or was released. */
    RP_ROLLOUTS_ACK = 9,
    RP_ROLLOUTS_RELEASE = 10,    /* ends the lease: its groups are drawn again (lease) */
    RP_ROLLOUTS_RENEW = 11,      /* the lease ends at ttl_ns from now (lease, ttl_ns) */
    RP_ROLLOUTS_SET_CURSOR = 12, /* stores bytes under a name; none: removes them (cursor, data,
                                    data_size) */
    RP_ROLLOUTS_CONFIGURE = 13,  /* replaces the options (options) */
    RP_ROLLOUTS_PEEK = 14,       /* reads a group: `fate`, and `draw` if it is there (group) */
    RP_ROLLOUTS_READ_CURSOR = 15, /* calls on_data with the bytes (cursor). RP_NOT_FOUND */
} rp_rollouts_action;

/* A group as it was when it was drawn. */
typedef struct rp_rollouts_group {
    rp_string name;
    rp_rollout_fate state; /* of RP_ROLLOUTS_PEEK */
    /* group_size items. An element is NULL if the item is not there, after RP_ROLLOUTS_PEEK. */
    const rp_rollout_item *const *items;
    int64_t first_version, last_version; /* the oldest and the newest of all items */
} rp_rollouts_group;

/* Groups that were drawn, in the order of the draw. Immutable; any thread. */
typedef struct rp_rollouts_draw {
    uint64_t lease;     /* 0: none, after RP_ROLLOUTS_PEEK */
    int64_t version;    /* the current one at the time of the draw */
    int64_t expires_ns; /* when the lease ends, by the wall clock of the server */
    size_t group_size, group_count;
    const rp_rollouts_group *groups;
} rp_rollouts_draw;

/* Frees a draw, with its groups. Does not end the lease. NULL is fine. */
RP_API void rp_rollouts_draw_free(rp_rollouts_draw *draw);

/* A description of rollouts. All pointers are valid until on_entry returns. */
typedef struct rp_rollouts_entry {
    rp_string name;
    const rp_rollout_options *options;
    const rp_rollout_info *info;
    const rp_string *cursors; /* the names of the cursors */
    size_t cursor_count;
} rp_rollouts_entry;

/* Zero-initialise it. The fields that an action does not need are ignored. */
typedef struct rp_rollouts_call {
    rp_rollouts_action action;
    rp_string rollouts; /* the name of the rollouts */
    const rp_rollout_options *options;
    rp_string group;
    uint32_t index; /* of an item in its group */
    int64_t first_version, last_version;
    const rp_rollout_column *columns;
    size_t column_count;
    bool replace;
    int64_t version;
    int64_t ttl_ns; /* 1 to RP_ROLLOUT_MOST_TTL_NS */
    rp_string consumer;
    uint32_t groups;     /* >= 1; groups * group_size <= RP_ROLLOUT_DRAW_ITEMS */
    uint32_t min_groups; /* 1 to groups; 0 stands for 1 */
    rp_string column;    /* empty: no bound on tokens */
    uint64_t tokens;
    uint64_t lease;
    rp_string cursor;
    const void *data;
    size_t data_size;
    /* Called on the calling thread. on_wait (may be NULL) gets the reason why the call waits,
     * now and then. */
    void (*on_entry)(void *ctx, const rp_rollouts_entry *entry);
    void (*on_data)(void *ctx, const void *data, size_t size);
    void (*on_wait)(void *ctx, const char *why);
    void *ctx;

    /* Results. */
    bool repeated, gone;     /* it had been done before; the group was removed */
    rp_rollout_fate fate;    /* of the group, after reserve, abort, put, update and peek */
    int64_t current_version; /* of the rollouts, after the actions from RESERVE to CONFIGURE */
    /* Groups that the action removed: stale, evicted, acknowledged. After RP_ROLLOUTS_ADVANCE
     * and RP_ROLLOUTS_CONFIGURE: also groups that other calls dropped as stale while the action
     * was dropping its own. */
    uint64_t removed;
    rp_rollouts_draw *draw; /* owned by the caller: rp_rollouts_draw_free() */
} rp_rollouts_call;

/* Makes a call on rollouts. A client of several servers calls the first one. PEEK, LIST and
 * READ_CURSOR need the role read, CREATE and DROP admin, the others write.
 *
 * An action may have to wait until other calls make room, set the version or put items. `wait`
 * bounds this time. RP_NOW: the action does not wait. The response of a server may take 10 s
 * more. RP_DEADLINE: nothing was changed; the text says which limit the action waits for, and
 * what would lift it.
 *
 * If the connection breaks, actions that may be repeated are repeated once. DRAW, RELEASE,
 * CREATE and DROP are not: RP_UNAVAILABLE then. Groups of a draw whose response was lost are
 * drawn again when their lease expires.
 *
 * RP_INVALID (names the value and its bound), RP_NOT_FOUND (no such rollouts), RP_NO_RESOURCE,
 * RP_CANCELLED (the rollouts were dropped), RP_UNIMPLEMENTED (a server of Reverb), and the
 * statuses of all calls of client.h. */
RP_API RP_NODISCARD rp_status rp_client_rollouts(rp_client *client, rp_rollouts_call *call,
                                                 rp_wait wait, rp_error *err);

RP_END_DECLS

#endif
