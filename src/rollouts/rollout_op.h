/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on rollouts, as values. An operation has everything that decides what it does, the
 * time included. So the same operations in the same order give the same state, and a journal
 * can log them and redo them.
 *
 * The encoding of an operation is a protobuf message; rollout_op_wire.c has its fields. */
#ifndef RP_ROLLOUTS_ROLLOUT_OP_H
#define RP_ROLLOUTS_ROLLOUT_OP_H

#include "reprise/rollouts.h"
#include "util/buf.h"
#include "util/bytes.h"

/* The numbers are those of the encoding. */
typedef enum rp_rollout_op_kind {
    /* Reserves a group until now_ns + ttl_ns. Each RP_ROLLOUT_PUT into it begins this time
     * again. The reservation ends when the group is complete. A group that was removed begins
     * anew. If the group is reserved already, its time begins again and the outcome is
     * RP_ROLLOUT_REPEATED. A partial group without a reservation gets one, so that it can
     * expire. RP_EXISTS (it is complete). May wait. */
    RP_ROLLOUT_RESERVE = 1,
    /* Removes a group that is not leased, with the items that it has: a reserved or partial
     * one that no producer will complete, or a complete one that no consumer will draw. If the
     * group was removed before, the outcome is RP_ROLLOUT_GONE. RP_NOT_FOUND, RP_PRECONDITION
     * (it is leased). */
    RP_ROLLOUT_ABORT = 2,
    /* Puts the item `index` of a group; begins the group if there is none. If the item exists,
     * adds the columns that it does not have and joins the versions. If nothing is new, the
     * outcome is RP_ROLLOUT_REPEATED; if the group was removed, or is dropped now because the
     * item is too stale, RP_ROLLOUT_GONE. RP_EXISTS (a column exists with other values),
     * RP_INVALID (the group would have more than RP_ROLLOUT_GROUP_BYTES). May wait. */
    RP_ROLLOUT_PUT = 3,
    /* Adds columns to an item. With `replace`, an existing column is replaced; readers that
     * have drawn it keep the old one. RP_ROLLOUT_REPEATED and RP_ROLLOUT_GONE as above.
     * RP_NOT_FOUND (no such group or item), RP_EXISTS, RP_INVALID as above. May wait. */
    RP_ROLLOUT_UPDATE = 4,
    /* Sets the version, and drops stale groups, at most RP_ROLLOUT_STEP of them: the result
     * says if more are left. If the version is not above the current one, nothing changes and
     * the outcome is RP_ROLLOUT_REPEATED: a call that is repeated late does no harm. */
    RP_ROLLOUT_ADVANCE = 5,
    /* Leases groups to `consumer` until now_ns + ttl_ns: at most `groups` of those that are
     * ready, in the order of the options. If `column` is not empty, the draw ends before the
     * first group with which the rows of that column of all items would be more than `tokens`.
     * Waits until min_groups are ready, also if fewer have more than `tokens` rows; then the
     * tokens may end it with fewer groups. The number of the lease is above all that were
     * given, and at least now_ns / 1000. So new rollouts under the name of dropped ones, and
     * rollouts whose last operations were lost in a crash, do not give a number again.
     * RP_NOT_FOUND (no such consumer, or an item of the next group has no such column),
     * RP_PRECONDITION (the next group alone has more than `tokens` rows). */
    RP_ROLLOUT_DRAW = 6,
    /* The consumer has consumed the groups of the lease. RP_ROLLOUT_REPEATED if it was
     * acknowledged before. RP_NOT_FOUND: it has expired or was released. */
    RP_ROLLOUT_ACK = 7,
    /* Ends the lease: its groups return to the places in the queue that they had. RP_NOT_FOUND,
     * RP_PRECONDITION (it was acknowledged). */
    RP_ROLLOUT_RELEASE = 8,
    /* The lease now ends at now_ns + ttl_ns. RP_NOT_FOUND, RP_PRECONDITION as above. */
    RP_ROLLOUT_RENEW = 9,
    /* Drops the stale groups that an advance has left, removes the groups whose reservation is
     * over, and ends the leases whose time is over, in this order, those with the earliest
     * versions and times first. Nothing else expires them. Ends when RP_ROLLOUT_STEP groups,
     * those of leases included, have changed; the last lease may have more. */
    RP_ROLLOUT_EXPIRE = 10,
    /* Stores `data` under the name `cursor`, such as the position of a data loader; empty data
     * removes it. RP_NO_RESOURCE (RP_ROLLOUT_CURSORS others). */
    RP_ROLLOUT_SET_CURSOR = 11,
    /* Replaces the options, and drops stale groups as RP_ROLLOUT_ADVANCE does. group_size,
     * first_version and consumers can change only while there are no groups: RP_PRECONDITION.
     * RP_INVALID. */
    RP_ROLLOUT_CONFIGURE = 12,
} rp_rollout_op_kind;

enum {
    RP_ROLLOUT_STEP = 1024, /* groups that an operation drops or expires under one lock */
    /* A bound on the encoding of an operation. */
    RP_ROLLOUT_OP_BYTES = RP_ROLLOUT_ITEM_BYTES + RP_ROLLOUT_COLUMNS * 512,
};

#define RP_ROLLOUT_MOST_NOW_NS ((int64_t)1 << 62)

/* Zero-initialise it. Fields that the kind does not use are ignored and not encoded. */
typedef struct rp_rollout_op {
    rp_rollout_op_kind kind;
    /* The time by the clock of the caller, >= 0. The clock must go on after a restart, so it is
     * the wall clock. It may go back, or have been ahead: each operation counts with its own
     * time, and what began before ends at the time that was set then. */
    int64_t now_ns;
    int64_t ttl_ns;                      /* reserve, draw, renew: 1 to RP_ROLLOUT_MOST_TTL_NS */
    rp_string group;                     /* reserve, abort, put, update */
    uint32_t index;                      /* put, update */
    int64_t first_version, last_version; /* put */
    /* put, update: in any order, with unique names; not none for an update. Borrowed */
    const rp_rollout_column *columns;
    size_t column_count;
    bool replace;        /* update */
    int64_t version;     /* advance */
    rp_string consumer;  /* draw */
    uint32_t groups;     /* draw: >= 1; groups * group_size <= RP_ROLLOUT_DRAW_ITEMS */
    uint32_t min_groups; /* draw: 1 to groups, and to max_groups; 0 stands for 1 */
    rp_string column;    /* draw: may be empty */
    uint64_t tokens;     /* draw, with a column: >= 1 */
    uint64_t lease;      /* ack, release, renew */
    rp_string cursor;    /* set cursor */
    rp_bytes data;       /* set cursor: at most RP_ROLLOUT_CURSOR_BYTES. Borrowed */
    const rp_rollout_options *options; /* configure. Borrowed */
} rp_rollout_op;

/* "put". Static; "unknown" for any other number. */
const char *rp_rollout_op_name(rp_rollout_op_kind kind);

/* Checks what can be checked without the rollouts: the fields that the kind uses, their bounds.
 * rp_rollouts_apply() checks it too. RP_INVALID. */
RP_NODISCARD rp_status rp_rollout_op_check(const rp_rollout_op *op, rp_error *err);

/* Checks options, as rp_rollout_op_check() does. RP_INVALID. */
RP_NODISCARD rp_status rp_rollout_options_check(const rp_rollout_options *options,
                                                rp_error *err);

/* Appends the encoding of an operation that rp_rollout_op_check() accepts. */
void rp_rollout_op_write(rp_buf *out, const rp_rollout_op *op);

/* Reads an operation and checks it. `op` borrows from the bytes; it has memory of its own only
 * for columns and options: free it with rp_rollout_op_deinit(). A pure function of the bytes.
 * RP_INVALID (malformed, or refused by rp_rollout_op_check()), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_op_read(const rp_allocator *alloc, const uint8_t *data,
                                          size_t size, rp_rollout_op *op, rp_error *err);
void rp_rollout_op_deinit(rp_rollout_op *op, const rp_allocator *alloc);

/* Columns and options on their own, for other messages: the fields of a submessage. */
void rp_rollout_column_write(rp_buf *out, const rp_rollout_column *column);
RP_NODISCARD rp_status rp_rollout_column_read(const uint8_t *data, size_t size,
                                              rp_rollout_column *column, rp_error *err);
void rp_rollout_options_write(rp_buf *out, const rp_rollout_options *options);
/* Returns options in one block, or NULL; rp_rollout_options_free() frees it. The names borrow
 * from the bytes. RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_options_read(const rp_allocator *alloc, const uint8_t *data,
                                               size_t size, rp_rollout_options **out,
                                               rp_error *err);
void rp_rollout_options_free(rp_rollout_options *options, const rp_allocator *alloc);

#endif
