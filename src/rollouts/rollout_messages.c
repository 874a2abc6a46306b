/* SPDX-License-Identifier: Apache-2.0 */
/* The responses of proto/reprise/v1/rollouts.proto.
 *
 *   response  1 outcome | 2 fate | 3 version | 4 removed | 5 lease | 6 expires | 7 group size
 *             8 group* | 9 item*, group_size of them for each group, in the same order
 *   group     1 name | 2 state | 3 first version | 4 last version
 *   item      1 first version | 2 last version | 3 absent | 4 column* (rollout_op_wire.c)
 *
 * A response is read in two passes: the first counts, so that the draw is one allocation, the
 * second fills it in. */
#include "rollouts/rollout_messages.h"

#include <assert.h>

#include "rollouts/rollout_draw.h"
#include "rollouts/rollout_op_inside.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"

static const char response_name[] = "ApplyRolloutsResponse";

void rp_rollout_result_write(rp_buf *out, const rp_rollout_result *result)
{
    rp_wire_put_number(out, 1, (uint64_t)result->outcome);
    rp_wire_put_number(out, 2, (uint64_t)result->fate);
    rp_wire_put_int(out, 3, result->version);
    rp_wire_put_number(out, 4, result->stale + result->evicted + result->acknowledged);
}

/* The bytes of a submessage with its tag and length. */
static size_t whole(size_t size)
{
    return rp_pb_bytes_field_size(1, size);
}

static size_t number_size(int64_t value)
{
    return value != 0 ? rp_pb_varint_field_size(1, (uint64_t)value) : 0;
}

static size_t item_size(const rp_rollout_item *item)
{
    size_t size;

    if (item == NULL) return rp_pb_varint_field_size(3, 1);
    size = number_size(item->first_version) + number_size(item->last_version);
    for (size_t i = 0; i < item->column_count; i++)
        size += whole(rp_rollout_column_size(&item->columns[i]));
    return size;
}

static const rp_rollout_item *item_of(const rp_rollout_drawn *group, size_t index)
{
    return group->items != NULL ? group->items[index] : NULL;
}

size_t rp_rollout_batch_measure(const rp_rollout_batch *batch, size_t most)
{
    enum { HEAD_BYTES = 128, GROUP_BYTES = 64 };
    size_t size = HEAD_BYTES;

    for (size_t i = 0; i < batch->count && size <= most; i++) {
        size += GROUP_BYTES + rp_rollout_name_text(batch->groups[i].name).size;
        for (size_t k = 0; k < batch->group_size && size <= most; k++)
            size += whole(item_size(item_of(&batch->groups[i], k)));
    }
    return size;
}

static void put_head(rp_buf *out, const rp_rollout_batch *batch)
{
    rp_wire_put_number(out, 5, batch->lease);
    rp_wire_put_int(out, 6, batch->expires_ns);
    rp_wire_put_number(out, 7, batch->group_size);
    for (size_t i = 0; i < batch->count; i++) {
        const rp_rollout_drawn *group = &batch->groups[i];
        rp_string name = rp_rollout_name_text(group->name);
        size_t mark = rp_wire_begin(out, 8);

        rp_wire_put_bytes(out, 1, name.data, name.size);
        rp_wire_put_number(out, 2, (uint64_t)group->state);
        rp_wire_put_int(out, 3, group->first_version);
        rp_wire_put_int(out, 4, group->last_version);
        rp_wire_end(out, mark);
    }
}

/* Appends the tag and the length of a submessage. */
static bool put_length(rp_buf *out, uint32_t number, size_t size)
{
    enum { MOST_BYTES = 15 };
    uint8_t *at = rp_buf_reserve(out, MOST_BYTES);

    if (at == NULL) return false;
    out->size = (size_t)(rp_pb_put_bytes_head(at, number, size) - out->data);
    return true;
}

/* As rp_rollout_column_put(), but a large value is borrowed. */
static void put_column(rp_message *message, const rp_rollout_column *column)
{
    size_t bytes = rp_rollout_tensor_bytes(&column->tensor);
    const rp_shape *shape = &column->tensor.shape;
    rp_buf *out = &message->bytes;
    uint64_t dims[RP_MAX_RANK];

    if (bytes < RP_MESSAGE_COPY_BYTES) {
        rp_rollout_column_put(out, 4, column);
        return;
    }
    for (int32_t i = 0; i < shape->rank; i++) dims[i] = (uint64_t)shape->dims[i];
    if (!put_length(out, 4, rp_rollout_column_size(column))) return;
    rp_wire_put_bytes_always(out, 1, column->name.data, column->name.size);
    rp_wire_put_number_always(out, 2, (uint64_t)column->tensor.dtype);
    rp_wire_put_packed(out, 3, dims, (size_t)shape->rank);
    if (put_length(out, 4, bytes)) (void)rp_message_add(message, column->tensor.data, bytes);
}

static void put_item(rp_message *message, const rp_rollout_item *item)
{
    rp_buf *out = &message->bytes;

    if (!put_length(out, 9, item_size(item))) return;
    if (item == NULL) {
        rp_wire_put_number(out, 3, 1);
        return;
    }
    rp_wire_put_int(out, 1, item->first_version);
    rp_wire_put_int(out, 2, item->last_version);
    for (size_t i = 0; i < item->column_count; i++) put_column(message, &item->columns[i]);
}

bool rp_rollout_batch_step(rp_rollout_batch_writer *w, size_t bytes)
{
    rp_buf *out = &w->message->bytes;
    size_t until = out->size + bytes;

    if (!w->has_begun) put_head(out, w->batch);
    w->has_begun = true;
    while (w->group < w->batch->count && out->size < until && !out->bad) {
        put_item(w->message, item_of(&w->batch->groups[w->group], w->item));
        if (++w->item < w->batch->group_size) continue;
        w->item = 0;
        w->group++;
    }
    return w->group < w->batch->count && !out->bad;
}

static rp_status malformed(rp_error *err, const char *message)
{
    return rp_wire_blame_peer(rp_wire_malformed(err, message), err);
}

/* What the second pass needs besides the parts of the draw. */
typedef struct draw_reader {
    rp_rollout_draw_size size;
    size_t items; /* so far */
    rp_rollout_draw_parts parts;
} draw_reader;

static size_t aligned(size_t bytes)
{
    return (bytes + RP_ROLLOUT_ALIGNMENT - 1) / RP_ROLLOUT_ALIGNMENT * RP_ROLLOUT_ALIGNMENT;
}

static rp_status count_column(draw_reader *r, const rp_pb_field *f, rp_error *err)
{
    rp_rollout_column column;
    rp_status st = rp_rollout_column_read(f->data, f->size, &column, err);

    if (st != RP_OK) return st;
    r->size.columns++;
    r->size.name_bytes += column.name.size;
    r->size.value_bytes += aligned(rp_rollout_tensor_bytes(&column.tensor));
    return RP_OK;
}

static rp_status count_item(draw_reader *r, const rp_pb_field *message, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    size_t before = r->size.columns;
    rp_status st = RP_OK;
    rp_pb_step step;
    rp_pb_field f;

    r->items++;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD && st == RP_OK)
        if (rp_pb_is(&f, 4, RP_PB_BYTES)) st = count_column(r, &f, err);
    if (st != RP_OK) return st;
    if (step != RP_PB_END || r->size.columns - before > RP_ROLLOUT_COLUMNS)
        return malformed(err, response_name);
    return RP_OK;
}

static rp_status count_group(draw_reader *r, const rp_pb_field *message, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_pb_step step;
    rp_pb_field f;

    r->size.groups++;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (!rp_pb_is(&f, 1, RP_PB_BYTES)) continue;
        if (!rp_rollout_is_name((rp_string){(const char *)f.data, f.size}))
            return malformed(err, response_name);
        r->size.name_bytes += f.size;
    }
    return step == RP_PB_END ? RP_OK : malformed(err, response_name);
}

static bool is_fate(uint64_t value)
{
    return value <= RP_ROLLOUT_EXPIRED;
}

/* The first pass: counts, and reads the numbers. */
static rp_status count_all(draw_reader *r, const uint8_t *data, size_t size,
                           rp_rollout_response *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_status st = RP_OK;
    rp_pb_step step;
    rp_pb_field f;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD && st == RP_OK) {
        if (rp_pb_is(&f, 1, RP_PB_VARINT) && f.value <= RP_ROLLOUT_GONE)
            out->outcome = (rp_rollout_outcome)f.value;
        if (rp_pb_is(&f, 2, RP_PB_VARINT) && is_fate(f.value))
            out->fate = (rp_rollout_fate)f.value;
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) out->version = (int64_t)f.value;
        if (rp_pb_is(&f, 4, RP_PB_VARINT)) out->removed = f.value;
        if (rp_pb_is(&f, 7, RP_PB_VARINT)) r->size.group_size = f.value;
        if (rp_pb_is(&f, 8, RP_PB_BYTES)) st = count_group(r, &f, err);
        if (rp_pb_is(&f, 9, RP_PB_BYTES)) st = count_item(r, &f, err);
        if (r->items > RP_ROLLOUT_DRAW_ITEMS || r->size.groups > RP_ROLLOUT_DRAW_ITEMS)
            return malformed(err, response_name);
    }
    if (st != RP_OK) return rp_wire_blame_peer(st, err);
    if (step != RP_PB_END || r->size.group_size > RP_ROLLOUT_GROUP_SIZE ||
        (r->size.groups > 0 && r->size.group_size == 0) ||
        r->size.groups * r->size.group_size != r->items)
        return malformed(err, response_name);
    return RP_OK;
}

/* Copies a name that the first pass has counted. */
static rp_string take_name(draw_reader *r, rp_string name)
{
    rp_string copy = {r->parts.names, name.size};

    memcpy(r->parts.names, name.data, name.size);
    r->parts.names += name.size;
    return copy;
}

static rp_status take_column(draw_reader *r, const rp_pb_field *f, rp_error *err)
{
    rp_rollout_column *column = r->parts.columns++;
    rp_status st = rp_rollout_column_read(f->data, f->size, column, err);
    size_t bytes;

    if (st != RP_OK) return st;
    bytes = rp_rollout_tensor_bytes(&column->tensor);
    column->name = take_name(r, column->name);
    if (bytes > 0) memcpy(r->parts.values, column->tensor.data, bytes);
    column->tensor.data = r->parts.values;
    r->parts.values += aligned(bytes);
    return RP_OK;
}

static rp_status take_item(draw_reader *r, const rp_pb_field *message, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_rollout_item *item = r->parts.items++;
    rp_rollout_column *columns = r->parts.columns;
    bool is_absent = false;
    rp_status st = RP_OK;
    rp_pb_field f;

    item->columns = columns;
    while (st == RP_OK && rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_VARINT)) item->first_version = (int64_t)f.value;
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) item->last_version = (int64_t)f.value;
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) is_absent = f.value != 0;
        if (rp_pb_is(&f, 4, RP_PB_BYTES)) st = take_column(r, &f, err);
    }
    if (st != RP_OK) return st;
    item->column_count = (size_t)(r->parts.columns - columns);
    for (size_t i = 1; i < item->column_count; i++)
        if (rp_rollout_compare(columns[i - 1].name, columns[i].name) >= 0)
            return malformed(err, response_name);
    *r->parts.places++ = is_absent ? NULL : item;
    return RP_OK;
}

static void take_group(draw_reader *r, const rp_pb_field *message)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_rollouts_group *group = r->parts.groups++;
    rp_pb_field f;

    group->name = (rp_string){"", 0};
    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES))
            group->name = take_name(r, (rp_string){(const char *)f.data, f.size});
        if (rp_pb_is(&f, 2, RP_PB_VARINT) && is_fate(f.value))
            group->state = (rp_rollout_fate)f.value;
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) group->first_version = (int64_t)f.value;
        if (rp_pb_is(&f, 4, RP_PB_VARINT)) group->last_version = (int64_t)f.value;
    }
}

static rp_status take_all(draw_reader *r, const uint8_t *data, size_t size, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_rollouts_draw *draw = r->parts.draw;
    const rp_rollout_item **places = r->parts.places;
    rp_rollouts_group *groups = r->parts.groups;
    rp_status st = RP_OK;
    rp_pb_field f;

    while (st == RP_OK && rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) draw->version = (int64_t)f.value;
        if (rp_pb_is(&f, 5, RP_PB_VARINT)) draw->lease = f.value;
        if (rp_pb_is(&f, 6, RP_PB_VARINT)) draw->expires_ns = (int64_t)f.value;
        if (rp_pb_is(&f, 8, RP_PB_BYTES)) take_group(r, &f);
        if (rp_pb_is(&f, 9, RP_PB_BYTES)) st = take_item(r, &f, err);
    }
    for (size_t i = 0; i < r->size.groups; i++)
        groups[i].items = places + i * r->size.group_size;
    return rp_wire_blame_peer(st, err);
}

rp_status rp_rollout_response_read(const rp_allocator *alloc, const uint8_t *data, size_t size,
                                   rp_rollout_response *out, rp_error *err)
{
    draw_reader r = {0};
    rp_status st;

    *out = (rp_rollout_response){0};
    st = count_all(&r, data, size, out, err);
    if (st != RP_OK || r.size.groups == 0) return st;
    st = rp_rollout_draw_new(alloc, &r.size, &r.parts, err);
    if (st == RP_OK) st = take_all(&r, data, size, err);
    if (st == RP_OK)
        out->draw = r.parts.draw;
    else
        rp_rollouts_draw_free(r.parts.draw);
    return st;
}

void rp_rollout_cursor_write(rp_buf *out, const void *data, size_t size)
{
    rp_wire_put_bytes(out, 1, data, size);
}

rp_status rp_rollout_cursor_read(const uint8_t *data, size_t size, rp_bytes *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_step step;
    rp_pb_field f;

    *out = (rp_bytes){NULL, 0};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD)
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) *out = (rp_bytes){f.data, f.size};
    if (step == RP_PB_END && out->size <= RP_ROLLOUT_CURSOR_BYTES) return RP_OK;
    return malformed(err, "ReadCursorResponse");
}
