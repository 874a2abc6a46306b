/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rollouts/rollout_op_inside.h"
#include "tensor/tensor.h"
#include "util/error.h"
#include "util/mem.h"

enum { SHOWN_BYTES = 64, LABEL_BYTES = SHOWN_BYTES + 16 };

static const char *const names[] = {
    [RP_ROLLOUT_RESERVE] = "reserve",
    [RP_ROLLOUT_ABORT] = "abort",
    [RP_ROLLOUT_PUT] = "put",
    [RP_ROLLOUT_UPDATE] = "update",
    [RP_ROLLOUT_ADVANCE] = "advance",
    [RP_ROLLOUT_DRAW] = "draw",
    [RP_ROLLOUT_ACK] = "ack",
    [RP_ROLLOUT_RELEASE] = "release",
    [RP_ROLLOUT_RENEW] = "renew",
    [RP_ROLLOUT_EXPIRE] = "expire",
    [RP_ROLLOUT_SET_CURSOR] = "set_cursor",
    [RP_ROLLOUT_CONFIGURE] = "configure",
};

const char *rp_rollout_op_name(rp_rollout_op_kind kind)
{
    size_t index = (size_t)kind;

    return index >= 1 && index < sizeof names / sizeof names[0] ? names[index] : "unknown";
}

const char *rp_rollout_fate_name(rp_rollout_fate fate)
{
    static const char *const fates[] = {"unknown", "reserved",     "partial", "complete",
                                        "leased",  "acknowledged", "stale",   "evicted",
                                        "aborted", "expired"};
    size_t index = (size_t)fate;

    return fates[index < sizeof fates / sizeof fates[0] ? index : 0];
}

/* Also a shape without elements has few rows, so that rows can be counted and drawn. */
static bool has_large_dimension(const rp_shape *shape)
{
    for (int32_t i = 0; i < shape->rank && i < RP_MAX_RANK; i++)
        if (shape->dims[i] > RP_ROLLOUT_ITEM_BYTES) return true;
    return false;
}

/* Names a column in a message: "column 'obs'". Returns `text`. */
static const char *label_of(const rp_rollout_column *c, char text[LABEL_BYTES])
{
    const int shown = c->name.size < SHOWN_BYTES ? (int)c->name.size : SHOWN_BYTES;

    (void)snprintf(text, LABEL_BYTES, "column '%.*s'", shown, c->name.data);
    return text;
}

static rp_status check_column(const rp_rollout_column *c, size_t *bytes, rp_error *err)
{
    rp_status st = rp_rollout_check_name(c->name, "a column", err);
    char label[LABEL_BYTES];
    size_t elements;

    if (st != RP_OK) return st;
    if (rp_dtype_size(c->tensor.dtype) == 0)
        return rp_refuse_dtype(label_of(c, label), c->tensor.dtype, err);
    if (c->tensor.shape.rank < 0 || c->tensor.shape.rank > RP_MAX_RANK)
        return rp_refuse_rank(label_of(c, label), c->tensor.shape.rank, RP_MAX_RANK, err);
    if (c->tensor.dtype == RP_STRING)
        return rp_fail(err, RP_INVALID,
                       "column '%.*s' has the dtype string; text is a column of uint8",
                       (int)c->name.size, c->name.data);
    if (rp_shape_elements(&c->tensor.shape, &elements) != RP_OK ||
        !rp_size_mul(elements, rp_dtype_size(c->tensor.dtype), bytes))
        return rp_fail(err, RP_INVALID, "column '%.*s' has a bad shape", (int)c->name.size,
                       c->name.data);
    if (has_large_dimension(&c->tensor.shape))
        return rp_fail(err, RP_INVALID, "column '%.*s' has a dimension above the limit of %d",
                       (int)c->name.size, c->name.data, RP_ROLLOUT_ITEM_BYTES);
    if (c->tensor.data == NULL && *bytes > 0)
        return rp_fail(err, RP_INVALID, "column '%.*s': `data` is NULL, with %zu bytes",
                       (int)c->name.size, c->name.data, *bytes);
    return RP_OK;
}

rp_status rp_rollout_check_columns(const rp_rollout_column *columns, size_t count,
                                   rp_error *err)
{
    size_t total = 0;

    if (count > RP_ROLLOUT_COLUMNS)
        return rp_fail(err, RP_INVALID, "an item has %zu columns, the limit is %d", count,
                       RP_ROLLOUT_COLUMNS);
    if (columns == NULL && count > 0)
        return rp_fail(err, RP_INVALID, "`columns` is NULL, column_count %zu", count);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = 0;
        rp_status st = check_column(&columns[i], &bytes, err);

        if (st != RP_OK) return st;
        if (!rp_size_add(total, bytes, &total) || total > RP_ROLLOUT_ITEM_BYTES)
            return rp_fail(err, RP_INVALID,
                           "the columns of an item have more bytes than the limit of %d",
                           RP_ROLLOUT_ITEM_BYTES);
        for (size_t k = 0; k < i; k++)
            if (rp_rollout_equal(columns[k].name, columns[i].name))
                return rp_fail(err, RP_INVALID, "an item has the column '%.*s' twice",
                               (int)columns[i].name.size, columns[i].name.data);
    }
    return RP_OK;
}

static rp_status check_ttl(const rp_rollout_op *op, rp_error *err)
{
    if (op->ttl_ns >= 1 && op->ttl_ns <= RP_ROLLOUT_MOST_TTL_NS) return RP_OK;
    return rp_fail(err, RP_INVALID, "ttl_ns must be 1 to 2^60, got %" PRId64, op->ttl_ns);
}

static rp_status check_item(const rp_rollout_op *op, rp_error *err)
{
    rp_status st = rp_rollout_check_name(op->group, "a group", err);

    if (st != RP_OK) return st;
    if (op->index >= RP_ROLLOUT_GROUP_SIZE)
        return rp_fail(err, RP_INVALID, "the index of an item is %" PRIu32 ", the limit is %d",
                       op->index, RP_ROLLOUT_GROUP_SIZE - 1);
    if (op->kind == RP_ROLLOUT_PUT &&
        (op->first_version < 0 || op->last_version < op->first_version ||
         op->last_version > RP_ROLLOUT_MOST_VERSION))
        return rp_fail(err, RP_INVALID,
                       "the versions of an item must be 0 <= first <= last <= 2^60, got "
                       "%" PRId64 " and %" PRId64,
                       op->first_version, op->last_version);
    if (op->kind == RP_ROLLOUT_UPDATE && op->column_count == 0)
        return rp_fail(err, RP_INVALID, "an update needs a column");
    return rp_rollout_check_columns(op->columns, op->column_count, err);
}

static rp_status check_draw(const rp_rollout_op *op, rp_error *err)
{
    rp_status st = check_ttl(op, err);

    if (st == RP_OK && op->consumer.size > 0)
        st = rp_rollout_check_name(op->consumer, "a consumer", err);
    if (st == RP_OK && op->column.size > 0)
        st = rp_rollout_check_name(op->column, "a column", err);
    if (st != RP_OK) return st;
    if (op->groups < 1 || op->groups > RP_ROLLOUT_DRAW_ITEMS)
        return rp_fail(err, RP_INVALID, "groups must be 1 to %d, got %" PRIu32,
                       RP_ROLLOUT_DRAW_ITEMS, op->groups);
    if (op->min_groups > op->groups)
        return rp_fail(err, RP_INVALID, "min_groups is %" PRIu32 ", groups is %" PRIu32,
                       op->min_groups, op->groups);
    if (op->column.size > 0 && op->tokens == 0)
        return rp_fail(err, RP_INVALID, "tokens must be >= 1, got 0");
    return RP_OK;
}

static rp_status check_cursor(const rp_rollout_op *op, rp_error *err)
{
    if (op->data.size > RP_ROLLOUT_CURSOR_BYTES)
        return rp_fail(err, RP_INVALID, "a cursor has %zu bytes, the limit is %d",
                       op->data.size, RP_ROLLOUT_CURSOR_BYTES);
    if (op->data.data == NULL && op->data.size > 0)
        return rp_fail(err, RP_INVALID, "`data` is NULL, data_size %zu", op->data.size);
    return rp_rollout_check_name(op->cursor, "a cursor", err);
}

static rp_status check_kind(const rp_rollout_op *op, rp_error *err)
{
    rp_status st;

    switch (op->kind) {
    case RP_ROLLOUT_RESERVE:
        st = check_ttl(op, err);
        return st == RP_OK ? rp_rollout_check_name(op->group, "a group", err) : st;
    case RP_ROLLOUT_ABORT: return rp_rollout_check_name(op->group, "a group", err);
    case RP_ROLLOUT_PUT:
    case RP_ROLLOUT_UPDATE: return check_item(op, err);
    case RP_ROLLOUT_ADVANCE:
        if (op->version >= 0 && op->version <= RP_ROLLOUT_MOST_VERSION) return RP_OK;
        return rp_fail(err, RP_INVALID, "version must be 0 to 2^60, got %" PRId64, op->version);
    case RP_ROLLOUT_DRAW: return check_draw(op, err);
    case RP_ROLLOUT_ACK:
    case RP_ROLLOUT_RELEASE:
    case RP_ROLLOUT_EXPIRE: return RP_OK;
    case RP_ROLLOUT_RENEW: return check_ttl(op, err);
    case RP_ROLLOUT_SET_CURSOR: return check_cursor(op, err);
    case RP_ROLLOUT_CONFIGURE:
        if (op->options == NULL) return rp_fail(err, RP_INVALID, "options are missing");
        return rp_rollout_options_check(op->options, err);
    }
    return rp_fail(err, RP_INVALID, "%d is no operation on rollouts", (int)op->kind);
}

rp_status rp_rollout_op_check(const rp_rollout_op *op, rp_error *err)
{
    if (op->now_ns < 0 || op->now_ns > RP_ROLLOUT_MOST_NOW_NS)
        return rp_fail(err, RP_INVALID, "now_ns must be 0 to 2^62, got %" PRId64, op->now_ns);
    return check_kind(op, err);
}
