/* SPDX-License-Identifier: Apache-2.0 */
/* The size of a sub-message is before its bytes. So each sub-message is built in its own buffer
 * and then appended. This is slow, but happens only once. */
#include "h2_load_message.h"

#include <stdio.h>
#include <string.h>

#include "bench.h"

/* Odd factors, so that they have inverses modulo 2^63: by Newton's method, five rounds. */
#define KEY_MASK (UINT64_MAX >> 1)
#define KEY_TOP (UINT64_C(1) << 63)
#define FACTOR_1 UINT64_C(0x2545f4914f6cdd1d)
#define FACTOR_2 UINT64_C(0x1b03738712fad5c9)

static inline uint64_t inverse(uint64_t factor)
{
    uint64_t x = factor; /* correct in the lowest three bits */

    for (int i = 0; i < 5; i++) x *= 2 - factor * x;
    return x;
}

uint64_t h2_key(uint64_t number)
{
    uint64_t x = (number * FACTOR_1) & KEY_MASK;

    x ^= x >> 32; /* this step is its own inverse */
    return ((x * FACTOR_2) & KEY_MASK) | KEY_TOP;
}

uint64_t h2_key_number(uint64_t key)
{
    uint64_t x = ((key & KEY_MASK) * inverse(FACTOR_2)) & KEY_MASK;

    x ^= x >> 32;
    return (x * inverse(FACTOR_1)) & KEY_MASK;
}

uint8_t *h2_payload_new(size_t bytes)
{
    float *values = bench_array(bytes / sizeof *values, sizeof *values);
    bench_rng rng = {.state = 11};

    for (size_t i = 0; i < bytes / sizeof *values; i++)
        values[i] = (float)(bench_random(&rng) >> 40) * 0x1p-24F;
    return (uint8_t *)values;
}

void h2_bytes_deinit(h2_bytes *bytes)
{
    free(bytes->data);
    *bytes = (h2_bytes){0};
}

static void put(h2_bytes *out, const void *data, size_t size)
{
    if (size > out->capacity - out->size) {
        out->capacity = 2 * (out->size + size);
        out->data = bench_memory(realloc(out->data, out->capacity));
    }
    if (size > 0) memcpy(out->data + out->size, data, size);
    out->size += size;
}

static void put_byte(h2_bytes *out, unsigned value)
{
    uint8_t byte = (uint8_t)value;

    put(out, &byte, 1);
}

static size_t varint(uint8_t *out, uint64_t value)
{
    size_t n = 0;

    while (value >= 0x80) {
        out[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (uint8_t)value;
    return n;
}

static void put_varint(h2_bytes *out, uint64_t value)
{
    uint8_t bytes[10];

    put(out, bytes, varint(bytes, value));
}

static void put_number(h2_bytes *out, unsigned field, uint64_t value)
{
    put_byte(out, field << 3);
    put_varint(out, value);
}

static void put_double(h2_bytes *out, unsigned field, double value)
{
    put_byte(out, field << 3 | 1);
    put(out, &value, sizeof value);
}

static void put_bytes(h2_bytes *out, unsigned field, const void *data, size_t size)
{
    put_byte(out, field << 3 | 2);
    put_varint(out, size);
    put(out, data, size);
}

/* Appends `part` as a field and empties it. */
static void put_part(h2_bytes *out, unsigned field, h2_bytes *part)
{
    put_bytes(out, field, part->data, part->size);
    part->size = 0;
}

static size_t put_table(h2_bytes *out, unsigned field, size_t table)
{
    char name[24];
    int size = snprintf(name, sizeof name, "t%zu", table);

    put_bytes(out, field, name, (size_t)size);
    return (size_t)size;
}

/* Appends the header of a snappy block that consists of one literal. */
static void put_snappy_literal(h2_bytes *out, size_t size)
{
    uint8_t length[4] = {(uint8_t)(size - 1), (uint8_t)((size - 1) >> 8),
                         (uint8_t)((size - 1) >> 16), (uint8_t)((size - 1) >> 24)};
    unsigned bytes = size <= 0x100 ? 1 : size <= 0x10000 ? 2 : size <= 0x1000000 ? 3 : 4;

    put_varint(out, size);
    put_byte(out, (59 + bytes) << 2);
    put(out, length, bytes);
}

/* Writes a ChunkData up to the payload to `chunk`; the caller appends the size of the payload.
 * Writes the bytes that follow the payload to `after`. */
static void put_chunk_start(h2_bytes *chunk, h2_bytes *after, const h2_shape *shape,
                            uint64_t key)
{
    size_t floats = shape->payload_bytes / 4;
    h2_bytes shape_part = {0}, tensor = {0}, literal = {0}, part = {0}, data = {0};

    put_number(chunk, 1, key);
    put_number(&part, 1, UINT64_C(0x8000000000000007)); /* an episode; its step is 0 */
    put_part(chunk, 2, &part);

    put_number(&tensor, 1, 1); /* float32 */
    put_number(&part, 1, 1);
    put_part(&shape_part, 2, &part);
    put_number(&part, 1, floats);
    put_part(&shape_part, 2, &part);
    put_part(&tensor, 2, &shape_part);
    put_snappy_literal(&literal, shape->payload_bytes);
    put_byte(&tensor, 4 << 3 | 2);
    put_varint(&tensor, literal.size + shape->payload_bytes);
    put(&tensor, literal.data, literal.size);

    put_byte(&data, 1 << 3 | 2);
    put_varint(&data, tensor.size + shape->payload_bytes);
    put(&data, tensor.data, tensor.size);
    put_byte(chunk, 5 << 3 | 2);
    put_varint(chunk, data.size + shape->payload_bytes);
    put(chunk, data.data, data.size);
    put_number(after, 6, 1);
    put_number(after, 7, shape->payload_bytes);

    h2_bytes_deinit(&shape_part);
    h2_bytes_deinit(&tensor);
    h2_bytes_deinit(&literal);
    h2_bytes_deinit(&part);
    h2_bytes_deinit(&data);
}

static void put_item(h2_bytes *item, size_t table, uint64_t key, bool sampled)
{
    h2_bytes slice = {0}, column = {0}, trajectory = {0};

    put_number(item, 1, key);
    put_table(item, 2, table);
    put_double(item, 5, 1);
    if (sampled) {
        put_number(item, 6, 1);
        put_number(&slice, 1, 1700000000);
        put_number(&slice, 2, 123456789);
        put_part(item, 7, &slice);
    }
    put_number(&slice, 1, key);
    put_number(&slice, 3, 1);
    put_part(&column, 1, &slice);
    put_number(&column, 2, 1);
    put_part(&trajectory, 1, &column);
    put_part(item, 8, &trajectory);

    h2_bytes_deinit(&slice);
    h2_bytes_deinit(&column);
    h2_bytes_deinit(&trajectory);
}

static size_t prefix_begin(h2_bytes *out)
{
    put(out, "\0\0\0\0", H2_PREFIX_BYTES);
    return out->size;
}

static void prefix_end(h2_bytes *out, size_t began, size_t more)
{
    size_t size = out->size - began + more;

    for (int i = 0; i < 4; i++)
        out->data[began - 4 + (size_t)i] = (uint8_t)(size >> (24 - 8 * i));
}

typedef struct builder {
    h2_batch *batch;
    const h2_shape *shape;
    size_t own_from; /* the start of the piece that is being written */
} builder;

static void end_own_piece(builder *b)
{
    h2_batch *batch = b->batch;

    if (batch->own.size == b->own_from) return;
    batch->pieces[batch->piece_count++] =
        (h2_piece){.at = b->own_from, .size = batch->own.size - b->own_from};
    b->own_from = batch->own.size;
}

/* Returns the offset of `key` in the bytes from `from` on, which contain it. */
static size_t find_key(const h2_bytes *bytes, size_t from, uint64_t key)
{
    uint8_t wanted[H2_KEY_BYTES];

    varint(wanted, key);
    while (memcmp(bytes->data + from, wanted, sizeof wanted) != 0) from++;
    return from;
}

/* Appends a chunk. Returns how many bytes of its payload are shared, not copied. */
static size_t build_chunk(builder *b, size_t item, uint64_t key)
{
    const h2_shape *shape = b->shape;
    size_t own = shape->payload_bytes >= H2_SHARE_FROM ? H2_PAYLOAD_OWN : shape->payload_bytes;
    size_t *places = b->batch->key_at + item * H2_KEY_PLACES;
    h2_bytes *out = &b->batch->own, chunk = {0}, after = {0};
    size_t began = out->size;

    put_chunk_start(&chunk, &after, shape, key);
    put_byte(out, 1 << 3 | 2);
    put_varint(out, chunk.size + shape->payload_bytes + after.size);
    put(out, chunk.data, chunk.size);
    places[0] = find_key(out, began, key);
    places[1] = out->size;
    put(out, shape->payload, own);
    if (own < shape->payload_bytes) {
        end_own_piece(b);
        b->batch->pieces[b->batch->piece_count++] =
            (h2_piece){.shared = true, .at = own, .size = shape->payload_bytes - own};
    }
    put(out, after.data, after.size);
    h2_bytes_deinit(&chunk);
    h2_bytes_deinit(&after);
    return shape->payload_bytes - own;
}

static void build_item(builder *b, size_t item, uint64_t key)
{
    size_t *places = b->batch->key_at + item * H2_KEY_PLACES;
    h2_bytes *out = &b->batch->own, part = {0};
    size_t began = out->size;

    put_item(&part, item % b->shape->table_count, key, false);
    put_part(out, 2, &part);
    places[2] = find_key(out, began, key);
    places[3] = find_key(out, places[2] + H2_KEY_BYTES, key);
    h2_bytes_deinit(&part);
}

void h2_batch_init_insert(h2_batch *batch, const h2_shape *shape, size_t messages)
{
    size_t items = shape->items * messages;
    builder b = {.batch = batch, .shape = shape};

    *batch = (h2_batch){.item_count = items, .message_count = messages};
    batch->key_at = bench_array(items * H2_KEY_PLACES, sizeof *batch->key_at);
    batch->pieces = bench_array(2 * items + 1, sizeof *batch->pieces);
    for (size_t m = 0; m < messages; m++) {
        size_t first = m * shape->items, began = prefix_begin(&batch->own), shared = 0;
        for (size_t i = 0; i < shape->items; i++)
            shared += build_chunk(&b, first + i, h2_key(first + i));
        for (size_t i = 0; i < shape->items; i++) build_item(&b, first + i, h2_key(first + i));
        prefix_end(&batch->own, began, shared);
        batch->size += shared;
    }
    end_own_piece(&b);
    batch->size += batch->own.size;
}

void h2_batch_deinit(h2_batch *batch)
{
    h2_bytes_deinit(&batch->own);
    free(batch->key_at);
    free(batch->pieces);
    *batch = (h2_batch){0};
}

void h2_batch_number(h2_batch *batch, uint64_t first)
{
    uint8_t *own = batch->own.data;

    for (size_t i = 0; i < batch->item_count; i++) {
        const size_t *places = batch->key_at + i * H2_KEY_PLACES;
        uint64_t key = h2_key(first + i);
        uint8_t bytes[H2_KEY_BYTES];
        for (size_t j = 0; j < H2_KEY_BYTES - 1; j++)
            bytes[j] = (uint8_t)(0x80 | (key >> (7 * j)));
        bytes[H2_KEY_BYTES - 1] = 1; /* the highest bit */
        memcpy(own + places[0], bytes, sizeof bytes);
        memcpy(own + places[1], &key, sizeof key);
        memcpy(own + places[2], bytes, sizeof bytes);
        memcpy(own + places[3], bytes, sizeof bytes);
    }
}

static void put_entry(h2_bytes *out, const h2_shape *shape, size_t item, uint64_t key)
{
    h2_bytes part = {0}, after = {0}, info = {0}, entry = {0};

    put_item(&part, item % shape->table_count, key, true);
    put_part(&info, 1, &part);
    put_double(&info, 2, 1e-6);
    put_number(&info, 3, 1000000);
    put_part(&entry, 1, &info);
    put_chunk_start(&part, &after, shape, key);
    put(&part, &key, sizeof key);
    put(&part, shape->payload + sizeof key, shape->payload_bytes - sizeof key);
    put(&part, after.data, after.size);
    put_part(&entry, 2, &part);
    put_number(&entry, 3, 1);
    put_part(out, 1, &entry);

    h2_bytes_deinit(&part);
    h2_bytes_deinit(&after);
    h2_bytes_deinit(&info);
    h2_bytes_deinit(&entry);
}

void h2_append_sample_response(h2_bytes *out, const h2_shape *shape, uint64_t first)
{
    size_t began = prefix_begin(out);

    for (size_t i = 0; i < shape->items; i++) put_entry(out, shape, i, h2_key(first + i));
    prefix_end(out, began, 0);
}

void h2_append_sample_request(h2_bytes *out, size_t table, size_t samples)
{
    size_t began = prefix_begin(out);
    h2_bytes timeout = {0};

    put_table(out, 1, table);
    put_number(out, 2, samples);
    put_number(&timeout, 1, UINT64_MAX); /* -1: for ever */
    put_part(out, 3, &timeout);
    prefix_end(out, began, 0);
    h2_bytes_deinit(&timeout);
}

const uint8_t *h2_read_varint(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (at == end) return NULL;
        v |= (uint64_t)(*at & 0x7f) << shift;
        if ((*at++ & 0x80) == 0) {
            *value = v;
            return at;
        }
    }
    return NULL;
}

const uint8_t *h2_read_field(const uint8_t *at, const uint8_t *end, h2_field *field)
{
    uint64_t tag, size;

    at = h2_read_varint(at, end, &tag);
    if (at == NULL) return NULL;
    *field = (h2_field){.number = (unsigned)(tag >> 3), .type = (unsigned)(tag & 7)};
    switch (field->type) {
    case 0: return h2_read_varint(at, end, &field->value);
    case 1: size = 8; break;
    case 2:
        at = h2_read_varint(at, end, &size);
        if (at == NULL) return NULL;
        break;
    case 5: size = 4; break;
    default: return NULL;
    }
    if (size > (size_t)(end - at)) return NULL;
    field->value = size;
    field->data = at;
    return at + size;
}

/* Returns the last field with this number, or an empty field. */
static h2_field find(h2_field in, unsigned number)
{
    const uint8_t *at = in.data, *end = at == NULL ? at : at + in.value;
    h2_field field, found = {0};

    while (at != end) {
        at = h2_read_field(at, end, &field);
        if (at == NULL) return (h2_field){0};
        if (field.number == number) found = field;
    }
    return found;
}

bool h2_sample_entry_ok(const uint8_t *data, size_t size, const h2_shape *shape)
{
    h2_field entry = {.data = data, .value = size}, chunk = find(entry, 2);
    h2_field item = find(find(entry, 1), 1), slice = find(find(find(item, 8), 1), 1);
    h2_field content = find(find(find(chunk, 5), 1), 4);
    uint64_t key = find(item, 1).value, stored;
    const uint8_t *payload;

    if (find(entry, 3).value != 1 || key == 0) return false;
    if (find(chunk, 1).value != key || find(slice, 1).value != key) return false;
    if (content.data == NULL || content.value < shape->payload_bytes) return false;
    payload = content.data + content.value - shape->payload_bytes;
    memcpy(&stored, payload, sizeof stored);
    return stored == key && memcmp(payload + sizeof key, shape->payload + sizeof key,
                                   shape->payload_bytes - sizeof key) == 0;
}
