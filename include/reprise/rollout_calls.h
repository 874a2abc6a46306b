/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on rollouts of a server, or of a store of this process. rollouts.h explains rollouts,
 * groups, items, versions, consumers, leases and cursors. In this example a consumer draws
 * groups, trains on them, and then acknowledges their lease:
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
 *   rp_rollouts_draw_free(call.draw); */
#ifndef REPRISE_ROLLOUT_CALLS_H
#define REPRISE_ROLLOUT_CALLS_H

#include "reprise/client.h"
#include "reprise/rollouts.h"

RP_BEGIN_DECLS

/* What rp_client_rollouts() does. The field names in parentheses are the fields of
 * rp_rollouts_call that the action needs, besides `rollouts`. `repeated`, `gone`, `fate` and
 * `draw` are results in rp_rollouts_call. "Can wait" means that the action waits while a limit
 * of the rollouts does not allow it. */
typedef enum rp_rollouts_action {
    RP_ROLLOUTS_CREATE = 0, /* makes rollouts (options). Errors: RP_EXISTS (name is taken) */
    RP_ROLLOUTS_DROP = 1,   /* removes rollouts; waiting calls on them end with RP_CANCELLED */
    /* Calls on_entry with the rollouts of this name. If `rollouts` is empty, calls on_entry
     * with all rollouts, in the order of their names. */
    RP_ROLLOUTS_LIST = 2,
    /* Reserves a group for ttl_ns from now (group, ttl_ns). Each put into the group restarts
     * this period. If the group has a reservation already, the action replaces it and sets
     * `repeated`. A group that has only some of its items can be reserved too. Can wait.
     * Errors: RP_EXISTS (the group is complete). */
    RP_ROLLOUTS_RESERVE = 3,
    /* Removes a group with its items (group). Sets `gone` if the group was removed before.
     * Errors: RP_NOT_FOUND (no such group), RP_PRECONDITION (the group is leased). */
    RP_ROLLOUTS_ABORT = 4,
    /* Puts an item, or further columns of an item (group, index, first_version, last_version,
     * columns). Sets `repeated` if the item already had all these columns. Sets `gone` if the
     * group was removed before, or if the put removes it because the item is too stale; `fate`
     * has the reason. Can wait. Errors: RP_EXISTS (a column exists with other values),
     * RP_INVALID (the group would have more than RP_ROLLOUT_GROUP_BYTES). */
    RP_ROLLOUTS_PUT = 5,
    /* Adds columns to an item (group, index, columns; optional: replace). With `replace`, also
     * replaces columns that exist with other values. Sets `gone` if the group was removed
     * before. Can wait. Errors: RP_EXISTS (a column exists with other values, and `replace` is
     * not set), RP_NOT_FOUND (no such group or item), RP_INVALID (as with a put). */
    RP_ROLLOUTS_UPDATE = 6,
    /* Sets the version and drops the groups that the new version makes stale (version). If
     * `version` is not above the current one, changes nothing and sets `repeated`. Drops many
     * groups in steps, and other calls can proceed between the steps. The call returns when all
     * stale groups are dropped, even with RP_NOW. If the call is cancelled or its connection
     * breaks after the first step, the version stays set, and the other stale groups are
     * dropped later. */
    RP_ROLLOUTS_ADVANCE = 7,
    /* Leases at most `groups` ready groups to a consumer (consumer, groups, ttl_ns; optional:
     * min_groups, column and tokens) and returns them in `draw`. Waits until min_groups groups
     * are ready. With `column`, the draw ends before the first group with which the groups of
     * the draw would have more than `tokens` rows in this column. A server also ends the draw
     * before a group that would make its response too large.
     * Errors: RP_INVALID (min_groups is above `groups` or the option max_groups),
     * RP_PRECONDITION (the next group alone has more than `tokens` rows), RP_NO_RESOURCE (fewer
     * than min_groups groups fit into a response; these groups are not leased). */
    RP_ROLLOUTS_DRAW = 8,
    /* Acknowledges a lease: the consumer has consumed the groups of the lease (lease). Sets
     * `repeated` if the lease was acknowledged before. Errors: RP_NOT_FOUND (the lease has
     * expired or was released). */
    RP_ROLLOUTS_ACK = 9,
    RP_ROLLOUTS_RELEASE = 10,    /* ends the lease: its groups can be drawn again (lease) */
    RP_ROLLOUTS_RENEW = 11,      /* extends the lease to ttl_ns from now (lease, ttl_ns) */
    RP_ROLLOUTS_SET_CURSOR = 12, /* stores `data` under the name `cursor`; removes the cursor if
                                    data_size is 0 (cursor, data, data_size) */
    RP_ROLLOUTS_CONFIGURE = 13,  /* replaces the options (options) */
    RP_ROLLOUTS_PEEK = 14, /* reads a group (group): sets `fate`, and `draw` if it exists */
    RP_ROLLOUTS_READ_CURSOR = 15, /* calls on_data with the bytes of a cursor (cursor). Errors:
                                     RP_NOT_FOUND */
} rp_rollouts_action;

/* A copy of a group, made when the group was drawn or read by RP_ROLLOUTS_PEEK. */
typedef struct rp_rollouts_group {
    rp_string name;
    rp_rollout_fate state; /* only after RP_ROLLOUTS_PEEK */
    /* group_size items. After RP_ROLLOUTS_PEEK, an item that the group lacks is NULL. */
    const rp_rollout_item *const *items;
    int64_t first_version, last_version; /* the lowest first_version and the highest
                                            last_version of all items */
} rp_rollouts_group;

/* Groups that were drawn, in the order of the draw. Immutable, so any thread can read it. */
typedef struct rp_rollouts_draw {
    uint64_t lease;     /* id of the lease; 0 after RP_ROLLOUTS_PEEK, which makes no lease */
    int64_t version;    /* current version of the rollouts at the time of the draw */
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
    uint32_t index; /* number of an item in its group, from 0 */
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
    /* All callbacks run on the calling thread. While the call waits, on_wait (may be NULL) gets
     * the reason of the wait from time to time. */
    void (*on_entry)(void *ctx, const rp_rollouts_entry *entry);
    void (*on_data)(void *ctx, const void *data, size_t size);
    void (*on_wait)(void *ctx, const char *why);
    void *ctx;

    /* Results. */
    bool repeated, gone;     /* repeated: the action had been done before. gone: the group was
                                removed before, or by this action */
    rp_rollout_fate fate;    /* of the group, after RESERVE, ABORT, PUT, UPDATE and PEEK */
    int64_t current_version; /* version of the rollouts, after the actions RESERVE (3) to PEEK
                                (14) */
    /* Number of groups that the action removed as stale, evicted or acknowledged. After
     * RP_ROLLOUTS_ADVANCE and RP_ROLLOUTS_CONFIGURE this number includes stale groups that
     * other calls dropped during the call. */
    uint64_t removed;
    rp_rollouts_draw *draw; /* owned by the caller: rp_rollouts_draw_free() */
    /* The request was sent to the server. If the call returns RP_UNAVAILABLE with `is_sent`,
     * the server has possibly done the action. If it returns an error without `is_sent`, the
     * server has not done the action. Always false for a store of this process. */
    bool is_sent;
} rp_rollouts_call;

/* Does an action on rollouts. If the client has several servers, the first one has the
 * rollouts. On a server, PEEK, LIST and READ_CURSOR need the role read (docs/security.md).
 * CREATE, DROP and CONFIGURE need the role admin. The other actions need the role write.
 *
 * `wait` bounds the time for which an action waits for a limit of the rollouts. With RP_NOW the
 * action does not wait for a limit, but the call still waits up to 2 s for the connection to
 * the server and the response. With a deadline, a call to a server that does not respond ends
 * at the deadline. The call returns at most 1 s after the deadline if the wait is shorter than
 * 1 s, or if the server stops responding during the wait.
 *
 * RP_DEADLINE normally means that nothing was changed. The text then names the limit for which
 * the action waited, and what would end the wait. The exception is a text that says that no
 * response came in time: the server has possibly done the action, or will still do it. A server
 * releases the lease of a draw if the client has disconnected before it could receive the
 * groups.
 *
 * If the connection breaks during DRAW, RELEASE, CREATE or DROP, the call returns
 * RP_UNAVAILABLE. The call repeats any other action once. If the response to a draw is lost,
 * the groups can be drawn again when their lease expires.
 *
 * Errors: RP_INVALID (the text names the value and its bound), RP_NOT_FOUND (no such rollouts),
 * RP_NO_RESOURCE, RP_CANCELLED (the rollouts were dropped), RP_UNIMPLEMENTED (a server of
 * Reverb), and the statuses of all calls of client.h. */
RP_API RP_NODISCARD rp_status rp_client_rollouts(rp_client *client, rp_rollouts_call *call,
                                                 rp_wait wait, rp_error *err);

RP_END_DECLS

#endif
