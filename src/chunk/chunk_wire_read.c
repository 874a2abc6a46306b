/* SPDX-License-Identifier: Apache-2.0 */
/* Reading ChunkData. */
#include "chunk/chunk_wire.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "chunk/codec.h"
#include "chunk/delta.h"
#include "chunk/protobuf.h"
#include "chunk/string_list.h"
#include "util/error.h"
#include "util/mem.h"

static rp_status corrupt(rp_error *err, const char *what)
{
    return rp_fail(err, RP_CORRUPT, "chunk: %s is not a valid message", what);
}

static rp_status read_range(const rp_pb_field *range, rp_chunk_origin *origin, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(range->data, range->size);
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (f.type != RP_PB_VARINT) continue;
        if (f.number == RP_PB_RANGE_EPISODE) origin->episode = f.value;
        /* An int32 is the low 32 bits of the varint. */
        if (f.number == RP_PB_RANGE_START) origin->first_step = (int32_t)(uint32_t)f.value;
        if (f.number == RP_PB_RANGE_END) origin->last_step = (int32_t)(uint32_t)f.value;
        if (f.number == RP_PB_RANGE_SPARSE) origin->sparse = f.value != 0;
    }
    return step == RP_PB_END ? RP_OK : corrupt(err, "the sequence range");
}

/* Counts the tensors of a Data, stopping as soon as there are too many. */
static rp_status count_tensors(const rp_pb_field *data, size_t max_columns, size_t *count,
                               rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data->data, data->size);
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (!rp_pb_is(&f, RP_PB_DATA_TENSOR, RP_PB_BYTES)) continue;
        if (*count == max_columns)
            return rp_fail(err, RP_NO_RESOURCE, "chunk: more than %zu columns", max_columns);
        ++*count;
    }
    return step == RP_PB_END ? RP_OK : corrupt(err, "the data");
}

/* Numbers of the message that are checked after all of it has been read. */
typedef struct declared {
    uint64_t codec;
    bool has_tensor_count;
    uint64_t tensor_count;
} declared;

static rp_status read_field(const rp_pb_field *f, const rp_chunk_limits *limits,
                            rp_chunk_outline *outline, declared *d, rp_error *err)
{
    if (rp_pb_is(f, RP_PB_CHUNK_RANGE, RP_PB_BYTES))
        return read_range(f, &outline->origin, err);
    if (rp_pb_is(f, RP_PB_CHUNK_DATA, RP_PB_BYTES))
        return count_tensors(f, limits->max_columns, &outline->column_count, err);
    if (f->type != RP_PB_VARINT) return RP_OK;
    if (f->number == RP_PB_CHUNK_KEY) outline->origin.key = f->value;
    if (f->number == RP_PB_CHUNK_DELTA) outline->delta = f->value != 0;
    if (f->number == RP_PB_CHUNK_CODEC) d->codec = f->value;
    if (f->number == RP_PB_CHUNK_TENSOR_COUNT) {
        d->has_tensor_count = true;
        d->tensor_count = f->value;
    }
    return RP_OK;
}

static rp_status check_outline(const rp_chunk_outline *outline, const declared *d,
                               rp_error *err)
{
    const rp_chunk_origin *origin = &outline->origin;

    if (rp_codec_name(outline->codec) == NULL || d->codec > RP_CODEC_LZ4)
        return rp_fail(err, RP_INVALID, "chunk %" PRIu64 ": unknown codec %" PRIu64,
                       origin->key, d->codec);
    if (origin->last_step < origin->first_step)
        return rp_fail(err, RP_CORRUPT, "chunk %" PRIu64 ": its last step %d is before step %d",
                       origin->key, (int)origin->last_step, (int)origin->first_step);
    if (outline->column_count == 0)
        return rp_fail(err, RP_CORRUPT, "chunk %" PRIu64 ": no tensors", origin->key);
    if (d->has_tensor_count && d->tensor_count != outline->column_count)
        return rp_fail(err, RP_CORRUPT,
                       "chunk %" PRIu64 ": %zu tensors where %" PRIu64 " are declared",
                       origin->key, outline->column_count, d->tensor_count);
    return RP_OK;
}

rp_status rp_chunk_wire_outline(const uint8_t *wire, size_t size, const rp_chunk_limits *limits,
                                rp_chunk_outline *outline, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(wire, size);
    rp_chunk_outline found = {0};
    declared d = {.codec = RP_CODEC_SNAPPY};
    size_t at = 0;
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (found.column_count == 0) found.tensors_from = at;
        st = read_field(&f, limits, &found, &d, err);
        if (st != RP_OK) return st;
        at = (size_t)(reader.at - wire);
    }
    if (step == RP_PB_BAD) return corrupt(err, "it");
    found.codec = d.codec == RP_CODEC_NONE ? RP_CODEC_SNAPPY : (rp_codec)(d.codec & 0xff);
    st = check_outline(&found, &d, err);
    if (st == RP_OK) *outline = found;
    return st;
}

static bool range_in_order(rp_pb_reader r, rp_chunk_origin *origin)
{
    uint64_t first, last, sparse;

    if (!rp_pb_take_if(&r, RP_PB_RANGE_EPISODE, &origin->episode) ||
        !rp_pb_take_if(&r, RP_PB_RANGE_START, &first) ||
        !rp_pb_take_if(&r, RP_PB_RANGE_END, &last) ||
        !rp_pb_take_if(&r, RP_PB_RANGE_SPARSE, &sparse))
        return false;
    origin->first_step = (int32_t)(uint32_t)first;
    origin->last_step = (int32_t)(uint32_t)last;
    origin->sparse = sparse != 0;
    return r.at == r.end && origin->last_step >= origin->first_step;
}

static rp_status malformed(rp_error *err)
{
    return rp_fail(err, RP_INVALID, "malformed ChunkData");
}

static rp_status search_key(rp_pb_reader reader, uint64_t *key, rp_error *err)
{
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD)
        if (rp_pb_is(&f, RP_PB_CHUNK_KEY, RP_PB_VARINT)) *key = f.value;
    return step == RP_PB_END ? RP_OK : malformed(err);
}

rp_status rp_chunk_wire_peek(const uint8_t *wire, size_t size, rp_chunk_head *head,
                             rp_error *err)
{
    rp_pb_reader r = rp_pb_open(wire, size), range;

    *head = (rp_chunk_head){0};
    if (!rp_pb_begins(&r, RP_PB_CHUNK_KEY, RP_PB_VARINT))
        return search_key(r, &head->origin.key, err);
    if (!rp_pb_take_number(&r, &head->origin.key)) return malformed(err);
    if (rp_pb_begins(&r, RP_PB_CHUNK_RANGE, RP_PB_BYTES) && rp_pb_take_bytes(&r, &range) &&
        range_in_order(range, &head->origin))
        head->bytes = (size_t)(r.at - wire);
    return RP_OK;
}

/* The fields of a TensorProto. */
typedef struct tensor {
    uint64_t dtype;
    rp_shape shape;
    bool unknown_rank, too_many_dims, typed_values;
    const uint8_t *self, *content;
    size_t self_bytes, content_bytes;
} tensor;

static bool read_dim(const rp_pb_field *dim, int64_t *size)
{
    rp_pb_reader reader = rp_pb_open(dim->data, dim->size);
    rp_pb_field f;
    rp_pb_step step;

    *size = 0;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD)
        if (rp_pb_is(&f, RP_PB_DIM_SIZE, RP_PB_VARINT)) *size = (int64_t)f.value;
    return step == RP_PB_END;
}

static bool read_shape(const rp_pb_field *shape, tensor *t)
{
    rp_pb_reader reader = rp_pb_open(shape->data, shape->size);
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, RP_PB_SHAPE_UNKNOWN_RANK, RP_PB_VARINT))
            t->unknown_rank = f.value != 0;
        if (!rp_pb_is(&f, RP_PB_SHAPE_DIM, RP_PB_BYTES)) continue;
        if (t->shape.rank == RP_MAX_RANK) {
            t->too_many_dims = true;
            continue;
        }
        if (!read_dim(&f, &t->shape.dims[t->shape.rank++])) return false;
    }
    return step == RP_PB_END;
}

static bool read_tensor(const rp_pb_field *field, tensor *t)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;

    *t = (tensor){.self = field->data, .self_bytes = field->size};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, RP_PB_TENSOR_DTYPE, RP_PB_VARINT)) {
            t->dtype = f.value;
        } else if (rp_pb_is(&f, RP_PB_TENSOR_SHAPE, RP_PB_BYTES)) {
            if (!read_shape(&f, t)) return false;
        } else if (rp_pb_is(&f, RP_PB_TENSOR_CONTENT, RP_PB_BYTES)) {
            t->content = f.data;
            t->content_bytes = f.size;
        } else if (f.number > RP_PB_TENSOR_CONTENT && f.number <= RP_PB_TENSOR_LAST_VAL &&
                   f.number != RP_PB_TENSOR_STRING_VAL) {
            t->typed_values = true;
        }
    }
    return step == RP_PB_END;
}

/* The state of reading the columns. */
typedef struct columns_reader {
    const uint8_t *wire;
    const rp_chunk_limits *limits;
    const rp_chunk_outline *outline;
    rp_chunk_column *columns;
    rp_column_place *places;
    size_t filled;
    size_t raw_bytes; /* of the columns so far */
    rp_error *err;
} columns_reader;

static rp_status fail(const columns_reader *r, rp_status code, const char *what)
{
    return rp_fail(r->err, code, "chunk %" PRIu64 ", tensor %zu: %s", r->outline->origin.key,
                   r->filled, what);
}

/* Checks that the dtype is known, the shape has a dimension for rows, and its size fits. */
static rp_status check_tensor(const columns_reader *r, const tensor *t, size_t *elements)
{
    if (t->dtype > INT32_MAX || rp_dtype_size((rp_dtype)t->dtype) == 0)
        return rp_fail(r->err, RP_INVALID,
                       "chunk %" PRIu64 ", tensor %zu: unsupported dtype %" PRIu64,
                       r->outline->origin.key, r->filled, t->dtype);
    if (t->too_many_dims)
        return rp_fail(r->err, RP_NO_RESOURCE,
                       "chunk %" PRIu64 ", tensor %zu: its rank is over the limit of %d",
                       r->outline->origin.key, r->filled, RP_MAX_RANK);
    if (t->unknown_rank || t->shape.rank == 0)
        return fail(r, RP_CORRUPT, "it has no dimension for its rows");
    if (rp_shape_elements(&t->shape, elements) != RP_OK)
        return fail(r, RP_CORRUPT, "its shape has a negative dimension or is too large");
    return RP_OK;
}

static rp_status fail_size(const columns_reader *r)
{
    return rp_fail(r->err, RP_NO_RESOURCE,
                   "chunk %" PRIu64 ", tensor %zu: decompressed, the chunk would be over the "
                   "limit of %zu bytes",
                   r->outline->origin.key, r->filled, r->limits->max_raw_bytes);
}

/* Adds to the decompressed size of the chunk. RP_NO_RESOURCE over the limit. */
static rp_status charge(columns_reader *r, size_t elements, size_t element_bytes)
{
    size_t bytes;

    assert(r->raw_bytes <= r->limits->max_raw_bytes);
    if (!rp_size_mul(elements, element_bytes, &bytes) || bytes > RP_CODEC_MAX_RAW_BYTES ||
        bytes > r->limits->max_raw_bytes - r->raw_bytes)
        return fail_size(r);
    r->raw_bytes += bytes;
    return RP_OK;
}

static rp_status place_strings(columns_reader *r, const tensor *t, size_t elements,
                               rp_chunk_column *column, rp_column_place *place)
{
    bool values = t->content_bytes == 0 && elements > 0;
    size_t bytes = t->content_bytes;
    rp_status st = charge(r, elements, sizeof(rp_string));

    if (st != RP_OK) return st;
    if (values)
        st = rp_string_values_measure(t->self, t->self_bytes, elements, &bytes);
    else
        st = rp_string_list_get(t->content, t->content_bytes, elements, NULL);
    if (st == RP_NO_RESOURCE) return fail_size(r);
    if (st != RP_OK) return fail(r, st, "its strings are malformed");
    place->form = values ? RP_FORM_STRING_VALUES : RP_FORM_STRING_LIST;
    column->stored_bytes = values ? t->self_bytes : t->content_bytes;
    column->raw_bytes = bytes;
    if (column->stored_bytes > 0)
        place->content_at = (size_t)((values ? t->self : t->content) - r->wire);
    return charge(r, bytes, 1);
}

static rp_status place_numbers(columns_reader *r, const tensor *t, size_t elements,
                               rp_chunk_column *column, rp_column_place *place)
{
    rp_codec codec = r->outline->codec;
    const uint8_t *stored;
    rp_status st = charge(r, elements, rp_dtype_size(column->dtype));

    if (st != RP_OK) return st;
    column->raw_bytes = elements * rp_dtype_size(column->dtype);
    column->stored_bytes = t->content_bytes;
    place->form = RP_FORM_STORED;
    if (column->raw_bytes == 0 && t->content_bytes == 0) return RP_OK;
    if (t->content_bytes == 0 && t->typed_values)
        return fail(r, RP_INVALID,
                    "its values are in typed fields; only tensor_content is read");
    if (t->content_bytes == 0) return fail(r, RP_CORRUPT, "it has no content");
    if (!rp_codec_check_head(codec, t->content, t->content_bytes, column->raw_bytes))
        return fail(r, RP_CORRUPT,
                    "its content does not declare the size of its shape, or cannot "
                    "hold it");
    place->content_at = (size_t)(t->content - r->wire);
    /* With at most one row, differences and numbers are the same. */
    place->delta =
        r->outline->delta && t->shape.dims[0] > 1 && rp_delta_applies(column->dtype, &t->shape);
    stored = rp_codec_stored(codec, t->content, t->content_bytes, column->raw_bytes);
    if (stored != NULL) place->rows_at = (size_t)(stored - r->wire);
    if (stored == NULL || place->delta) place->form = RP_FORM_CODED;
    return RP_OK;
}

static rp_status place_column(columns_reader *r, const tensor *t)
{
    rp_chunk_column *column = &r->columns[r->filled];
    rp_column_place *place = &r->places[r->filled];
    rp_shape row = t->shape;
    size_t elements = 0, row_elements;
    rp_status st = check_tensor(r, t, &elements);

    assert(r->filled < r->outline->column_count);
    if (st != RP_OK) return st;
    *column = (rp_chunk_column){.dtype = (rp_dtype)t->dtype, .shape = t->shape};
    *place = (rp_column_place){0};
    st = column->dtype == RP_STRING ? place_strings(r, t, elements, column, place)
                                    : place_numbers(r, t, elements, column, place);
    if (st != RP_OK) return st;
    row.dims[0] = 1;
    if (rp_shape_elements(&row, &row_elements) != RP_OK ||
        !rp_size_mul(row_elements, rp_dtype_size(column->dtype), &place->row_bytes))
        return fail(r, RP_CORRUPT, "its rows are too large");
    r->filled++;
    return RP_OK;
}

static rp_status read_data(columns_reader *r, const rp_pb_field *data)
{
    rp_pb_reader reader = rp_pb_open(data->data, data->size);
    rp_pb_field f;
    tensor t;
    rp_status st;

    /* The outline pass has validated and counted the tensors. But if the message is in shared
     * memory, the peer may have changed it since, so nothing is assumed. */
    while (r->filled < r->outline->column_count && rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (!rp_pb_is(&f, RP_PB_DATA_TENSOR, RP_PB_BYTES)) continue;
        if (!read_tensor(&f, &t)) return fail(r, RP_CORRUPT, "it is not a valid message");
        st = place_column(r, &t);
        if (st != RP_OK) return st;
    }
    return RP_OK;
}

rp_status rp_chunk_wire_columns(const uint8_t *wire, size_t size, const rp_chunk_limits *limits,
                                const rp_chunk_outline *outline, rp_chunk_column *columns,
                                rp_column_place *places, rp_error *err)
{
    columns_reader r = {.wire = wire,
                        .limits = limits,
                        .outline = outline,
                        .columns = columns,
                        .places = places,
                        .err = err};
    rp_pb_reader reader =
        rp_pb_open(wire + outline->tensors_from, size - outline->tensors_from);
    rp_pb_field f;
    rp_status st;

    assert(outline->column_count >= 1 && outline->tensors_from <= size);
    while (r.filled < outline->column_count && rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (!rp_pb_is(&f, RP_PB_CHUNK_DATA, RP_PB_BYTES)) continue;
        st = read_data(&r, &f);
        if (st != RP_OK) return st;
    }
    return r.filled == outline->column_count ? RP_OK : fail(&r, RP_CORRUPT, "it is missing");
}
