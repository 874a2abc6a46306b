/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a ListRolloutsResponse.
 *
 *   entry     1 name | 2 options | 3 version | 4 reserved | 5 partial | 6 complete | 7 leased
 *             8 items | 9 leases | 10 bytes | 11 begun | 12 may begin | 13 acknowledged
 *             14 stale | 15 evicted | 16 aborted | 17 expired reservations
 *             18 expired leases | 19 staleness* | 20 consumer* | 21 name of a cursor*
 *   consumer  1 name | 2 waiting | 3 ready | 4 leased | 5 done | 6 drawn | 7 acknowledged */
#include "rollouts/rollout_messages.h"
#include "rollouts/rollout_op_inside.h"
#include "rollouts/rollout_set.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"

static const char response_name[] = "ListRolloutsResponse";

/* X(number, field) for the numbers of an info. */
#define NUMBERS(X)                                                                             \
    X(4, reserved)                                                                             \
    X(5, partial)                                                                              \
    X(6, complete)                                                                             \
    X(7, leased)                                                                               \
    X(8, items)                                                                                \
    X(9, leases)                                                                               \
    X(10, bytes)                                                                               \
    X(11, begun)                                                                               \
    X(12, may_begin)                                                                           \
    X(13, acknowledged)                                                                        \
    X(14, stale)                                                                               \
    X(15, evicted)                                                                             \
    X(16, aborted)                                                                             \
    X(17, expired_reservations)                                                                \
    X(18, expired_leases)

#define CONSUMER_NUMBERS(X)                                                                    \
    X(2, waiting)                                                                              \
    X(3, ready)                                                                                \
    X(4, leased)                                                                               \
    X(5, done)                                                                                 \
    X(6, drawn)                                                                                \
    X(7, acknowledged)

static void put_info(rp_buf *out, const rp_rollout_info *info)
{
    rp_wire_put_int(out, 3, info->version);
#define PUT(number, field) rp_wire_put_number(out, number, info->field);
    NUMBERS(PUT)
#undef PUT
    rp_wire_put_packed(out, 19, info->staleness, RP_ROLLOUT_STALENESS_BUCKETS);
    for (size_t i = 0; i < info->consumer_count; i++) {
        const rp_rollout_consumer_info *c = &info->consumers[i];
        size_t mark = rp_wire_begin(out, 20);

        rp_wire_put_text(out, 1, c->name);
#define PUT(number, field) rp_wire_put_number(out, number, c->field);
        CONSUMER_NUMBERS(PUT)
#undef PUT
        rp_wire_end(out, mark);
    }
}

void rp_rollout_entry_write(rp_buf *out, const rp_rollouts_entry *entry)
{
    size_t mark = rp_wire_begin(out, 1), options;

    rp_wire_put_bytes(out, 1, entry->name.data, entry->name.size);
    options = rp_wire_begin(out, 2);
    rp_rollout_options_write(out, entry->options);
    rp_wire_end(out, options);
    put_info(out, entry->info);
    for (size_t i = 0; i < entry->cursor_count; i++)
        rp_wire_put_bytes(out, 21, entry->cursors[i].data, entry->cursors[i].size);
    rp_wire_end(out, mark);
}

/* An entry that is being read. */
typedef struct entry_reader {
    rp_rollouts_entry entry;
    rp_rollout_info info;
    rp_bytes options_bytes; /* the last ones count, and only they are parsed */
    rp_rollout_options *options;
    rp_string cursors[RP_ROLLOUT_CURSORS];
} entry_reader;

static bool read_consumer(const rp_pb_field *message, rp_rollout_info *info)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_rollout_consumer_info *c;
    rp_pb_step step;
    rp_pb_field f;

    if (info->consumer_count == RP_ROLLOUT_CONSUMERS) return false;
    c = &info->consumers[info->consumer_count++];
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) {
            if (f.size > 0 && !rp_rollout_is_name((rp_string){(const char *)f.data, f.size}))
                return false;
            memcpy(c->name, f.data, f.size);
            c->name[f.size] = '\0';
        }
#define READ(number, field)                                                                    \
    if (rp_pb_is(&f, number, RP_PB_VARINT)) c->field = f.value;
        CONSUMER_NUMBERS(READ)
#undef READ
    }
    return step == RP_PB_END;
}

static bool read_staleness(const rp_pb_field *f, rp_rollout_info *info)
{
    size_t count = 0;

    if (!rp_wire_count_numbers(f, &count) || count > RP_ROLLOUT_STALENESS_BUCKETS) return false;
    (void)rp_wire_copy_numbers(f, info->staleness);
    return true;
}

/* Reads a field with a length. */
static rp_status read_bytes(const rp_pb_field *f, entry_reader *r, rp_error *err)
{
    rp_string text = {(const char *)f->data, f->size};

    switch (f->number) {
    case 1: return rp_wire_read_text(f, "the name of the rollouts", &r->entry.name, err);
    case 2: r->options_bytes = (rp_bytes){f->data, f->size}; return RP_OK;
    case 19: return read_staleness(f, &r->info) ? RP_OK : rp_wire_malformed(err, response_name);
    case 20: return read_consumer(f, &r->info) ? RP_OK : rp_wire_malformed(err, response_name);
    case 21:
        if (r->entry.cursor_count == RP_ROLLOUT_CURSORS || !rp_rollout_is_name(text))
            return rp_wire_malformed(err, response_name);
        r->cursors[r->entry.cursor_count++] = text;
        return RP_OK;
    default: return RP_OK;
    }
}

static rp_status read_entry(const rp_allocator *alloc, const rp_pb_field *message,
                            entry_reader *r, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_status st = RP_OK;
    rp_pb_step step;
    rp_pb_field f;

    r->entry.name = (rp_string){"", 0};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD && st == RP_OK) {
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) r->info.version = (int64_t)f.value;
#define READ(number_, field)                                                                   \
    if (rp_pb_is(&f, number_, RP_PB_VARINT)) r->info.field = f.value;
        NUMBERS(READ)
#undef READ
        if (f.type == RP_PB_BYTES) st = read_bytes(&f, r, err);
    }
    if (st != RP_OK) return st;
    if (step != RP_PB_END || r->options_bytes.data == NULL ||
        !rp_rollout_is_name(r->entry.name))
        return rp_wire_malformed(err, response_name);
    st = rp_rollout_options_read(alloc, r->options_bytes.data, r->options_bytes.size,
                                 &r->options, err);
    if (st != RP_OK) return st;
    r->info.groups = r->info.reserved + r->info.partial + r->info.complete + r->info.leased;
    r->entry.options = r->options;
    r->entry.info = &r->info;
    r->entry.cursors = r->cursors;
    return RP_OK;
}

rp_status rp_rollout_entries_read(const rp_allocator *alloc, const uint8_t *data, size_t size,
                                  const rp_rollouts_call *call, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_status st = RP_OK;
    size_t count = 0;
    entry_reader r;
    rp_pb_step step;
    rp_pb_field f;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD && st == RP_OK) {
        if (!rp_pb_is(&f, 1, RP_PB_BYTES)) continue;
        if (count++ == RP_ROLLOUT_SET_COUNT) {
            st = rp_fail(err, RP_INVALID, "%s has more than %d rollouts", response_name,
                         RP_ROLLOUT_SET_COUNT);
            break;
        }
        memset(&r, 0, sizeof r);
        st = read_entry(alloc, &f, &r, err);
        if (st == RP_OK) call->on_entry(call->ctx, &r.entry);
        if (r.options != NULL) rp_rollout_options_free(r.options, alloc);
    }
    if (st == RP_OK && step != RP_PB_END) st = rp_wire_malformed(err, response_name);
    return rp_wire_blame_peer(st, err);
}
