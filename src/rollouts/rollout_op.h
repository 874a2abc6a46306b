/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on a rollout buffer (reprise/rollouts.h). rp_rollout_op describes one operation
 * and contains everything on which the operation's effect depends, including the time. The same
 * operations in the same order therefore always produce the same state, so a journal can log
 * operations and execute them again after a restart.
 *
 * In a journal or a request, an operation is encoded as a protobuf message, whose fields are
 * listed in rollout_op_wire.c.
 *
 * A producer reserves a group (a number of items) for a time before it puts the items. A
 * consumer draws groups. A lease then gives the consumer the drawn groups for a limited time:
 * until it acknowledges or releases them, or the lease expires. A group is complete when it has
 * all its items. The version is the number of the current policy (the model that is trained); a
 * group is stale when its items were made with too old a version. */
#ifndef RP_ROLLOUTS_ROLLOUT_OP_H
#define RP_ROLLOUTS_ROLLOUT_OP_H

#include "reprise/rollouts.h"
#include "util/buf.h"
#include "util/bytes.h"

/* The numbers are part of the encoding. "May wait" means that the operation possibly has to
 * wait for room or for a newer version. */
typedef enum rp_rollout_op_kind {
    /* Reserves a group until now_ns + ttl_ns. Each put into the group restarts this time. The
     * reservation ends when the group is complete. If an earlier group with this name was
     * removed, a new group begins under the name. If the group has a reservation already, the
     * operation restarts its time and the outcome is RP_ROLLOUT_REPEATED. A group that has some
     * items but no reservation gets one, so that the group can expire. Returns RP_EXISTS if the
     * group is complete. May wait. */
    RP_ROLLOUT_RESERVE = 1,
    /* Removes a group with its items: a reserved or partial group that no producer will
     * complete, or a complete group that no consumer will draw. If an earlier operation has
     * removed the group, the outcome is RP_ROLLOUT_GONE. Returns RP_NOT_FOUND, or
     * RP_PRECONDITION if the group is leased. */
    RP_ROLLOUT_ABORT = 2,
    /* Puts the item `index` into a group, which begins if it does not exist. If the item
     * exists, adds the columns that it lacks, and extends its range of versions. If the item
     * does not change, the outcome is RP_ROLLOUT_REPEATED. The outcome is RP_ROLLOUT_GONE in
     * two cases: the group was removed earlier, or this operation drops the group because the
     * item is stale. Returns RP_EXISTS if a column exists with other values, or RP_INVALID if
     * the group would exceed RP_ROLLOUT_GROUP_BYTES. May wait. */
    RP_ROLLOUT_PUT = 3,
    /* Adds columns to an item. With `replace`, replaces existing columns; consumers that have
     * drawn the item keep the replaced columns. The outcomes, RP_EXISTS and RP_INVALID have the
     * same meaning as for a put. Returns RP_NOT_FOUND if there is no such group or item. May
     * wait. */
    RP_ROLLOUT_UPDATE = 4,
    /* Sets the version and drops the groups that become stale, at most RP_ROLLOUT_STEP of them.
     * result.goes_on says if more are left. If the version is not above the current one,
     * nothing changes and the outcome is RP_ROLLOUT_REPEATED, so a late retry does no harm. */
    RP_ROLLOUT_ADVANCE = 5,
    /* Leases groups to `consumer` until now_ns + ttl_ns. Takes the groups that are ready, in
     * the order of the options, at most `groups` of them. If `column` is not empty, the draw
     * counts the rows of that column in all its items, and stops before this number would
     * exceed `tokens`.
     *
     * Waits until min_groups groups are ready. Even then, `tokens` can limit the draw to fewer
     * than min_groups groups.
     *
     * The number of the lease is greater than the numbers of all earlier leases, and at least
     * now_ns / 1000. The bound by time avoids two kinds of used numbers: those of a dropped
     * buffer with the same name, and those of draws whose log records a crash has lost.
     *
     * Returns RP_NOT_FOUND if there is no such consumer, or if an item of the next group has no
     * such column. Returns RP_PRECONDITION if the next group alone has more than `tokens`
     * rows. */
    RP_ROLLOUT_DRAW = 6,
    /* Acknowledges a lease: the consumer has consumed its groups. The outcome is
     * RP_ROLLOUT_REPEATED if the lease was acknowledged before. Returns RP_NOT_FOUND if the
     * lease has expired or was released. */
    RP_ROLLOUT_ACK = 7,
    /* Ends a lease without consuming its groups, which return to their old positions in the
     * queue. Returns RP_PRECONDITION if the lease was acknowledged, and RP_NOT_FOUND if there
     * is no such lease. */
    RP_ROLLOUT_RELEASE = 8,
    /* Sets the end of a lease to now_ns + ttl_ns. Returns the same statuses as a release. */
    RP_ROLLOUT_RENEW = 9,
    /* First drops the stale groups that an advance has left, oldest version first. Then removes
     * the groups whose reservation is over, earliest end first. Then ends the leases whose time
     * is over, earliest end first. No other operation expires reservations and leases. Stops
     * when at least RP_ROLLOUT_STEP groups were removed or lost their lease. A lease ends for
     * all its groups at once, so the number can exceed RP_ROLLOUT_STEP. */
    RP_ROLLOUT_EXPIRE = 10,
    /* Stores `data`, such as the position of a data loader, under the name `cursor`. If `data`
     * is empty, removes the cursor. Returns RP_NO_RESOURCE if RP_ROLLOUT_CURSORS other cursors
     * exist. */
    RP_ROLLOUT_SET_CURSOR = 11,
    /* Replaces the options, and drops groups that become stale, as an advance does. Returns
     * RP_PRECONDITION if first_version differs, or if group_size or the consumers differ while
     * there are groups. Other errors: RP_INVALID. */
    RP_ROLLOUT_CONFIGURE = 12,
} rp_rollout_op_kind;

enum {
    RP_ROLLOUT_STEP = 1024, /* the most groups that one step drops or expires */
    /* The most bytes of the encoding of an operation. */
    RP_ROLLOUT_OP_BYTES = RP_ROLLOUT_ITEM_BYTES + RP_ROLLOUT_COLUMNS * 512,
};

#define RP_ROLLOUT_MOST_NOW_NS ((int64_t)1 << 62)

/* An operation. The caller must zero-initialise it. The comment of each field names the kinds
 * that use the field; other kinds ignore the field and do not encode it. */
typedef struct rp_rollout_op {
    rp_rollout_op_kind kind;
    /* The time by the clock of the caller, >= 0. Callers must use the wall clock, because times
     * must remain valid after a restart. Setting the clock back does no harm: each operation
     * uses only its own time, and the end of a reservation or lease is computed when it begins
     * or is renewed. */
    int64_t now_ns;
    int64_t ttl_ns;  /* reserve, draw, renew: time to live, 1 to RP_ROLLOUT_MOST_TTL_NS */
    rp_string group; /* reserve, abort, put, update */
    uint32_t index;  /* put, update */
    int64_t first_version, last_version; /* put */
    /* put, update: the columns, in any order, with unique names; an update needs at least one.
     * Borrowed */
    const rp_rollout_column *columns;
    size_t column_count;
    bool replace;        /* update */
    int64_t version;     /* advance */
    rp_string consumer;  /* draw */
    uint32_t groups;     /* draw: >= 1; groups * group_size <= RP_ROLLOUT_DRAW_ITEMS */
    uint32_t min_groups; /* draw: 1 to `groups`, at most max_groups; 0 means 1 */
    rp_string column;    /* draw: may be empty */
    uint64_t tokens;     /* draw, if `column` is not empty: >= 1 */
    uint64_t lease;      /* ack, release, renew: number of the lease */
    rp_string cursor;    /* set cursor: its name */
    rp_bytes data;       /* set cursor: at most RP_ROLLOUT_CURSOR_BYTES. Borrowed */
    const rp_rollout_options *options; /* configure. Borrowed */
    /* The last two fields are neither encoded nor checked. waited_ns: how long earlier calls
     * with this operation have waited. parked: the entry of this operation in the list of
     * waiting operations (rp_rollouts_park() in rollouts.h), or NULL. If `parked` is not NULL
     * and the operation has to wait for a limit, no error text is written; rp_rollouts_why()
     * can write it later. */
    int64_t waited_ns;
    struct rp_rollout_parked *parked;
} rp_rollout_op;

/* Returns the name of a kind, such as "put", or "unknown". The text is static. */
const char *rp_rollout_op_name(rp_rollout_op_kind kind);

/* Checks the fields that the kind uses against the bounds that do not depend on the state of
 * the buffer. rp_rollouts_apply() makes the same checks. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_rollout_op_check(const rp_rollout_op *op, rp_error *err);

/* Checks options as rp_rollout_op_check() does. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_rollout_options_check(const rp_rollout_options *options,
                                                rp_error *err);

/* Appends the encoding of an operation, which rp_rollout_op_check() must accept. */
void rp_rollout_op_write(rp_buf *out, const rp_rollout_op *op);

/* Decodes an operation and checks it. `op` borrows from the bytes, except for its arrays of
 * columns and options, which the caller must release with rp_rollout_op_deinit(). Returns
 * RP_INVALID if the bytes are malformed or rp_rollout_op_check() refuses the operation. Other
 * errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_op_read(const rp_allocator *alloc, const uint8_t *data,
                                          size_t size, rp_rollout_op *op, rp_error *err);
void rp_rollout_op_deinit(rp_rollout_op *op, const rp_allocator *alloc);

/* Encode and decode columns and options. The encoding is the fields of a submessage, which
 * other messages contain. */
void rp_rollout_column_write(rp_buf *out, const rp_rollout_column *column);
RP_NODISCARD rp_status rp_rollout_column_read(const uint8_t *data, size_t size,
                                              rp_rollout_column *column, rp_error *err);
void rp_rollout_options_write(rp_buf *out, const rp_rollout_options *options);
/* Decodes options into one block, which the caller must release with rp_rollout_options_free().
 * The names borrow from the bytes. Sets `*out` to NULL on a failure. Errors: RP_INVALID,
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_options_read(const rp_allocator *alloc, const uint8_t *data,
                                               size_t size, rp_rollout_options **out,
                                               rp_error *err);
void rp_rollout_options_free(rp_rollout_options *options, const rp_allocator *alloc);

#endif
