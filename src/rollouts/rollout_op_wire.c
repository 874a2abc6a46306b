/* SPDX-License-Identifier: Apache-2.0 */
/* The encoding of an operation: a protobuf message. Fields that the kind does not use are not
 * written; a reader skips fields that it does not know.
 *
 *   op      1 kind | 2 now | 3 ttl | 4 group | 5 index | 6 first version | 7 last version
 *           8 column* | 9 replace | 10 version | 11 consumer | 12 groups | 13 min groups
 *           14 column of the tokens | 15 tokens | 16 lease | 17 cursor | 18 data
 *           19 options (rollout_options.c)
 *   column  1 name | 2 dtype | 3 dimension* | 4 data, row-major, little-endian */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "rollouts/rollout_op_inside.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"

static size_t dims_size(const rp_shape *shape)
{
    size_t size = 0;

    for (int32_t i = 0; i < shape->rank; i++)
        size += rp_pb_varint_size((uint64_t)shape->dims[i]);
    return size;
}

size_t rp_rollout_column_size(const rp_rollout_column *column)
{
    size_t size = rp_pb_bytes_field_size(1, column->name.size) +
                  rp_pb_varint_field_size(2, (uint64_t)column->tensor.dtype) +
                  rp_pb_bytes_field_size(4, rp_rollout_tensor_bytes(&column->tensor));

    if (column->tensor.shape.rank > 0)
        size += rp_pb_bytes_field_size(3, dims_size(&column->tensor.shape));
    return size;
}

void rp_rollout_column_write(rp_buf *out, const rp_rollout_column *column)
{
    uint64_t dims[RP_MAX_RANK];

    for (int32_t i = 0; i < column->tensor.shape.rank; i++)
        dims[i] = (uint64_t)column->tensor.shape.dims[i];
    assert(column->tensor.shape.rank >= 0 && column->tensor.shape.rank <= RP_MAX_RANK);
    rp_wire_put_bytes_always(out, 1, column->name.data, column->name.size);
    rp_wire_put_number_always(out, 2, (uint64_t)column->tensor.dtype);
    rp_wire_put_packed(out, 3, dims, (size_t)column->tensor.shape.rank);
    rp_wire_put_bytes_always(out, 4, column->tensor.data,
                             rp_rollout_tensor_bytes(&column->tensor));
}

void rp_rollout_column_put(rp_buf *out, uint32_t number, const rp_rollout_column *column)
{
    size_t size = rp_rollout_column_size(column);
    uint8_t *at = rp_buf_reserve(out, rp_pb_bytes_field_size(number, size));

    if (at == NULL) return;
    out->size = (size_t)(rp_pb_put_bytes_head(at, number, size) - out->data);
    rp_rollout_column_write(out, column);
}

static rp_status read_dims(const rp_pb_field *f, rp_shape *shape, rp_error *err)
{
    uint64_t dims[RP_MAX_RANK];
    size_t count = 0;

    if (!rp_wire_count_numbers(f, &count)) return rp_wire_malformed(err, "Column");
    if (count > (size_t)(RP_MAX_RANK - shape->rank))
        return rp_fail(err, RP_INVALID, "a column has more than %d dimensions", RP_MAX_RANK);
    (void)rp_wire_copy_numbers(f, dims);
    for (size_t i = 0; i < count; i++) shape->dims[shape->rank++] = (int64_t)dims[i];
    return RP_OK;
}

rp_status rp_rollout_column_read(const uint8_t *data, size_t size, rp_rollout_column *column,
                                 rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_status st = RP_OK;
    size_t data_size = 0;
    rp_pb_step step;
    rp_pb_field f;

    *column = (rp_rollout_column){.name = {"", 0}};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD && st == RP_OK) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES))
            column->name = (rp_string){(const char *)f.data, f.size};
        if (rp_pb_is(&f, 2, RP_PB_VARINT))
            column->tensor.dtype = f.value <= INT8_MAX ? (rp_dtype)f.value : RP_INVALID_DTYPE;
        if (f.number == 3 && (f.type == RP_PB_BYTES || f.type == RP_PB_VARINT))
            st = read_dims(&f, &column->tensor.shape, err);
        if (rp_pb_is(&f, 4, RP_PB_BYTES)) {
            column->tensor.data = f.data;
            data_size = f.size;
        }
    }
    if (st != RP_OK) return st;
    if (step != RP_PB_END) return rp_wire_malformed(err, "Column");
    st = rp_rollout_check_columns(column, 1, err);
    if (st == RP_OK && rp_rollout_tensor_bytes(&column->tensor) != data_size)
        return rp_fail(err, RP_INVALID, "column '%.*s' has %zu bytes, its shape needs %zu",
                       (int)column->name.size, column->name.data, data_size,
                       rp_rollout_tensor_bytes(&column->tensor));
    return st;
}

static void put_string(rp_buf *out, uint32_t number, rp_string text)
{
    rp_wire_put_bytes(out, number, text.data, text.size);
}

static void put_item(rp_buf *out, const rp_rollout_op *op)
{
    put_string(out, 4, op->group);
    rp_wire_put_number(out, 5, op->index);
    if (op->kind == RP_ROLLOUT_PUT) {
        rp_wire_put_int(out, 6, op->first_version);
        rp_wire_put_int(out, 7, op->last_version);
    }
    for (size_t i = 0; i < op->column_count; i++)
        rp_rollout_column_put(out, 8, &op->columns[i]);
    if (op->kind == RP_ROLLOUT_UPDATE) rp_wire_put_number(out, 9, op->replace);
}

static void put_draw(rp_buf *out, const rp_rollout_op *op)
{
    put_string(out, 11, op->consumer);
    rp_wire_put_number(out, 12, op->groups);
    rp_wire_put_number(out, 13, op->min_groups);
    if (op->column.size == 0) return;
    put_string(out, 14, op->column);
    rp_wire_put_number(out, 15, op->tokens);
}

static void put_options(rp_buf *out, const rp_rollout_options *options)
{
    size_t mark = rp_wire_begin(out, 19);

    rp_rollout_options_write(out, options);
    rp_wire_end(out, mark);
}

static bool has_ttl(rp_rollout_op_kind kind)
{
    return kind == RP_ROLLOUT_RESERVE || kind == RP_ROLLOUT_DRAW || kind == RP_ROLLOUT_RENEW;
}

void rp_rollout_op_write(rp_buf *out, const rp_rollout_op *op)
{
    rp_wire_put_number(out, 1, (uint64_t)op->kind);
    rp_wire_put_int(out, 2, op->now_ns);
    if (has_ttl(op->kind)) rp_wire_put_int(out, 3, op->ttl_ns);
    switch (op->kind) {
    case RP_ROLLOUT_RESERVE:
    case RP_ROLLOUT_ABORT: put_string(out, 4, op->group); break;
    case RP_ROLLOUT_PUT:
    case RP_ROLLOUT_UPDATE: put_item(out, op); break;
    case RP_ROLLOUT_ADVANCE: rp_wire_put_int(out, 10, op->version); break;
    case RP_ROLLOUT_DRAW: put_draw(out, op); break;
    case RP_ROLLOUT_ACK:
    case RP_ROLLOUT_RELEASE:
    case RP_ROLLOUT_RENEW: rp_wire_put_number(out, 16, op->lease); break;
    case RP_ROLLOUT_EXPIRE: break;
    case RP_ROLLOUT_SET_CURSOR:
        put_string(out, 17, op->cursor);
        rp_wire_put_bytes(out, 18, op->data.data, op->data.size);
        break;
    case RP_ROLLOUT_CONFIGURE: put_options(out, op->options); break;
    }
}

bool rp_rollout_count_fields(const uint8_t *data, size_t size, uint32_t number, size_t *count)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_step step;
    rp_pb_field f;

    *count = 0;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD)
        *count += rp_pb_is(&f, number, RP_PB_BYTES);
    return step == RP_PB_END;
}

static uint32_t number32(uint64_t value)
{
    return value <= UINT32_MAX ? (uint32_t)value : UINT32_MAX; /* which no check accepts */
}

static void read_number(const rp_pb_field *f, rp_rollout_op *op)
{
    switch (f->number) {
    case 1: op->kind = f->value <= INT8_MAX ? (rp_rollout_op_kind)f->value : 0; break;
    case 2: op->now_ns = (int64_t)f->value; break;
    case 3: op->ttl_ns = (int64_t)f->value; break;
    case 5: op->index = number32(f->value); break;
    case 6: op->first_version = (int64_t)f->value; break;
    case 7: op->last_version = (int64_t)f->value; break;
    case 9: op->replace = f->value != 0; break;
    case 10: op->version = (int64_t)f->value; break;
    case 12: op->groups = number32(f->value); break;
    case 13: op->min_groups = number32(f->value); break;
    case 15: op->tokens = f->value; break;
    case 16: op->lease = f->value; break;
    default: break;
    }
}

static void read_bytes(const rp_pb_field *f, rp_rollout_op *op)
{
    rp_string text = {(const char *)f->data, f->size};

    switch (f->number) {
    case 4: op->group = text; break;
    case 11: op->consumer = text; break;
    case 14: op->column = text; break;
    case 17: op->cursor = text; break;
    case 18: op->data = (rp_bytes){f->data, f->size}; break;
    default: break;
    }
}

/* Reads the fields into `op`, whose columns have room. The last options count, and only they
 * are parsed: a message may have many. */
static rp_status read_fields(const rp_allocator *alloc, rp_pb_reader reader, rp_rollout_op *op,
                             rp_rollout_column *column, rp_error *err)
{
    rp_rollout_options *options = NULL;
    rp_bytes last = {NULL, 0};
    rp_status st = RP_OK;
    rp_pb_field f;

    while (st == RP_OK && rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (f.type == RP_PB_VARINT) read_number(&f, op);
        if (f.type != RP_PB_BYTES) continue;
        read_bytes(&f, op);
        if (f.number == 8) st = rp_rollout_column_read(f.data, f.size, column++, err);
        if (f.number == 19) last = (rp_bytes){f.data, f.size};
    }
    if (st == RP_OK && last.data != NULL)
        st = rp_rollout_options_read(alloc, last.data, last.size, &options, err);
    op->options = options;
    return st;
}

rp_status rp_rollout_op_read(const rp_allocator *alloc, const uint8_t *data, size_t size,
                             rp_rollout_op *op, rp_error *err)
{
    rp_rollout_column *columns = NULL;
    size_t count;
    rp_status st;

    *op = (rp_rollout_op){.kind = 0};
    if (size > RP_ROLLOUT_OP_BYTES)
        return rp_fail(err, RP_INVALID, "an operation has %zu bytes, the limit is %d", size,
                       RP_ROLLOUT_OP_BYTES);
    if (!rp_rollout_count_fields(data, size, 8, &count))
        return rp_wire_malformed(err, "RolloutOp");
    if (count > RP_ROLLOUT_COLUMNS)
        return rp_fail(err, RP_INVALID, "an item has %zu columns, the limit is %d", count,
                       RP_ROLLOUT_COLUMNS);
    if (count > 0) {
        columns = rp_alloc_array(alloc, count, sizeof *columns);
        if (columns == NULL) return rp_fail_memory(err, count * sizeof *columns);
        op->columns = columns;
        op->column_count = count;
    }
    st = read_fields(alloc, rp_pb_open(data, size), op, columns, err);
    if (st == RP_OK) st = rp_rollout_op_check(op, err);
    if (st != RP_OK) rp_rollout_op_deinit(op, alloc);
    return st;
}

void rp_rollout_op_deinit(rp_rollout_op *op, const rp_allocator *alloc)
{
    rp_release(alloc, (void *)(uintptr_t)op->columns, op->column_count * sizeof *op->columns);
    rp_rollout_options_free((rp_rollout_options *)(uintptr_t)op->options, alloc);
    *op = (rp_rollout_op){.kind = 0};
}
