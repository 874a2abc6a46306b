/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/fields.h"

#include <assert.h>

#include "reprise/printable.h"
#include "util/error.h"
#include "util/mem.h"

bool rp_wire_is_text(const void *data, size_t size)
{
    const char *at = data;
    uint32_t character;

    for (size_t i = 0; i < size;) {
        if (at[i] == '\0') return false;
        if ((at[i] & 0x80) == 0) {
            i++;
            continue;
        }
        i += rp_utf8_next(at + i, size - i, &character);
        if (character == RP_NO_CHARACTER) return false;
    }
    return true;
}

rp_status rp_wire_read_text(const rp_pb_field *field, const char *what, rp_string *out,
                            rp_error *err)
{
    if (field->size > RP_WIRE_MAX_NAME_BYTES)
        return rp_fail(err, RP_INVALID, "%s has %zu bytes, the limit is %d", what, field->size,
                       RP_WIRE_MAX_NAME_BYTES);
    if (!rp_wire_is_text(field->data, field->size))
        return rp_fail(err, RP_INVALID, "%s is not UTF-8 text", what);
    assert(field->type == RP_PB_BYTES);
    *out = (rp_string){(const char *)field->data, field->size};
    return RP_OK;
}

rp_status rp_wire_read_only_text(const uint8_t *data, size_t size, const char *message,
                                 const char *what, rp_string *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_string found = {"", 0};
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (!rp_pb_is(&f, 1, RP_PB_BYTES)) continue;
        st = rp_wire_read_text(&f, what, &found, err);
        if (st != RP_OK) return st;
    }
    if (step != RP_PB_END) return rp_wire_malformed(err, message);
    *out = found;
    return RP_OK;
}

rp_status rp_wire_malformed(rp_error *err, const char *message)
{
    return rp_fail(err, RP_INVALID, "%s: the bytes are not such a message", message);
}

rp_status rp_wire_blame_peer(rp_status status, rp_error *err)
{
    assert(status == RP_OK || err == NULL || err->code == status);
    if (status != RP_INVALID) return status;
    if (err != NULL) err->code = RP_CORRUPT;
    return RP_CORRUPT;
}

bool rp_wire_count_numbers(const rp_pb_field *field, size_t *count)
{
    const uint8_t *at = field->data, *end;
    uint64_t value;

    if (field->type == RP_PB_VARINT) {
        ++*count;
        return true;
    }
    if (field->type != RP_PB_BYTES) return true; /* the wrong type: skipped */
    for (end = at + field->size; at < end; ++*count)
        if (!rp_pb_get_varint(&at, end, &value)) return false;
    return true;
}

uint64_t *rp_wire_copy_numbers(const rp_pb_field *field, uint64_t *out)
{
    const uint8_t *at = field->data, *end;

    if (field->type == RP_PB_VARINT) *out++ = field->value;
    if (field->type != RP_PB_BYTES) return out;
    for (end = at + field->size; at < end && rp_pb_get_varint(&at, end, out);) out++;
    return out;
}

enum {
    MAX_VARINT = 10,
    MAX_TAG = 5,
    KEY_TAG = 1 << 3 | RP_PB_VARINT,
    PRIORITY_TAG = 2 << 3 | RP_PB_FIXED64,
    PRIORITY_BYTES = 9, /* with its tag */
};

static bool read_update(const rp_pb_field *field, rp_update *update)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;

    *update = (rp_update){0, 0.0};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_VARINT)) update->key = f.value;
        if (rp_pb_is(&f, 2, RP_PB_FIXED64)) update->priority = rp_wire_double(&f);
    }
    return step == RP_PB_END;
}

bool rp_wire_is_update(const rp_pb_field *field)
{
    rp_update update;

    return read_update(field, &update);
}

bool rp_wire_next_update(rp_pb_reader *reader, uint32_t number, rp_update *update)
{
    const uint8_t *start = reader->at, *at;
    uint64_t key, bits;

    assert(number < 16); /* its tag is one byte */
    if (reader->end - start < 3 + MAX_VARINT + PRIORITY_BYTES ||
        start[0] != (number << 3 | RP_PB_BYTES) || start[2] != KEY_TAG)
        return false;
    at = start + 3;
    if (!rp_pb_get_varint(&at, reader->end, &key) || *at != PRIORITY_TAG ||
        at + PRIORITY_BYTES != start + 2 + start[1])
        return false;
    bits = rp_pb_load64(at + 1);
    update->key = key;
    memcpy(&update->priority, &bits, sizeof bits);
    reader->at = at + PRIORITY_BYTES;
    return true;
}

/* True if the `size` bytes, of ten that can be read, are one varint. */
static bool is_varint(const uint8_t *at, size_t size)
{
    const uint64_t high = 0x8080808080808080;
    uint64_t goes_on = rp_pb_load64(at) & high;

    assert(size >= 1 && size <= MAX_VARINT);
    if (size <= 8)
        return (goes_on << (64 - 8 * size)) == (high << (64 - 8 * size) & ~(UINT64_C(1) << 63));
    if (goes_on != high) return false;
    return size == 9 ? at[8] < 0x80 : at[8] >= 0x80 && at[9] <= 1;
}

bool rp_wire_skip_update(rp_pb_reader *reader, uint32_t number)
{
    const uint8_t *start = reader->at;
    size_t key_bytes;

    assert(number < 16); /* its tag is one byte */
    if (reader->end - start < 3 + MAX_VARINT + PRIORITY_BYTES ||
        start[0] != (number << 3 | RP_PB_BYTES) || start[2] != KEY_TAG ||
        start[1] < 1 + 1 + PRIORITY_BYTES || start[1] > 1 + MAX_VARINT + PRIORITY_BYTES)
        return false;
    key_bytes = start[1] - (size_t)(1 + PRIORITY_BYTES);
    if (start[3 + key_bytes] != PRIORITY_TAG || !is_varint(start + 3, key_bytes)) return false;
    reader->at = start + 2 + start[1];
    return true;
}

void rp_wire_copy_updates(const uint8_t *data, size_t size, uint32_t number, rp_update *updates)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field f;

    for (;;) {
        while (rp_wire_next_update(&reader, number, updates)) updates++;
        if (rp_pb_next(&reader, &f) != RP_PB_FIELD) return;
        if (rp_pb_is(&f, number, RP_PB_BYTES)) (void)read_update(&f, updates++);
    }
}

static void put_varint(rp_buf *out, uint64_t value)
{
    uint8_t *at = rp_buf_reserve(out, MAX_VARINT);

    if (at != NULL) out->size += (size_t)(rp_pb_put_varint(at, value) - at);
}

void rp_wire_put_number_always(rp_buf *out, uint32_t number, uint64_t value)
{
    uint8_t *at = rp_buf_reserve(out, MAX_TAG + MAX_VARINT);

    if (at != NULL) out->size += (size_t)(rp_pb_put_varint_field(at, number, value) - at);
}

void rp_wire_put_number(rp_buf *out, uint32_t number, uint64_t value)
{
    if (value != 0) rp_wire_put_number_always(out, number, value);
}

void rp_wire_put_int(rp_buf *out, uint32_t number, int64_t value)
{
    rp_wire_put_number(out, number, (uint64_t)value);
}

/* The default is 0.0 with all bits zero: -0.0 is written. */
void rp_wire_put_double(rp_buf *out, uint32_t number, double value)
{
    uint64_t bits;
    uint8_t bytes[8];

    memcpy(&bits, &value, sizeof bits);
    if (bits == 0) return;
    (void)rp_pb_put_fixed64(bytes, bits);
    put_varint(out, rp_pb_tag(number, RP_PB_FIXED64));
    rp_buf_append(out, bytes, sizeof bytes);
}

void rp_wire_put_bytes_always(rp_buf *out, uint32_t number, const void *data, size_t size)
{
    uint8_t *at = rp_buf_reserve(out, MAX_TAG + MAX_VARINT);

    if (at != NULL) out->size += (size_t)(rp_pb_put_bytes_head(at, number, size) - at);
    rp_buf_append(out, data, size);
}

void rp_wire_put_bytes(rp_buf *out, uint32_t number, const void *data, size_t size)
{
    if (size > 0) rp_wire_put_bytes_always(out, number, data, size);
}

void rp_wire_put_text(rp_buf *out, uint32_t number, const char *text)
{
    if (text != NULL) rp_wire_put_bytes(out, number, text, strlen(text));
}

void rp_wire_put_updates(rp_buf *out, uint32_t number, const rp_update *updates, size_t count)
{
    uint8_t *at;

    if (count == 0) return;
    at = rp_buf_reserve(out, count * (MAX_TAG + 2 + MAX_VARINT + PRIORITY_BYTES));
    if (at == NULL) return;
    for (size_t i = 0; i < count; i++) {
        uint8_t *start = rp_pb_put_varint(at, rp_pb_tag(number, RP_PB_BYTES)) + 1;
        uint64_t bits;

        at = start;
        memcpy(&bits, &updates[i].priority, sizeof bits);
        if (updates[i].key != 0) at = rp_pb_put_varint_field(at, 1, updates[i].key);
        if (bits != 0) {
            *at++ = PRIORITY_TAG;
            at = rp_pb_put_fixed64(at, bits);
        }
        assert(at - start < 128);
        start[-1] = (uint8_t)(at - start); /* its length: one byte */
    }
    out->size = (size_t)(at - out->data);
    assert(out->size <= out->capacity);
}

void rp_wire_put_packed(rp_buf *out, uint32_t number, const uint64_t *values, size_t count)
{
    size_t size = 0;
    uint8_t *at;

    if (count == 0) return;
    for (size_t i = 0; i < count; i++) size += rp_pb_varint_size(values[i]);
    at = rp_buf_reserve(out, MAX_TAG + MAX_VARINT + size);
    if (at == NULL) return;
    at = rp_pb_put_bytes_head(at, number, size);
    for (size_t i = 0; i < count; i++) at = rp_pb_put_varint(at, values[i]);
    out->size = (size_t)(at - out->data);
    assert(out->size <= out->capacity);
}

size_t rp_wire_begin(rp_buf *out, uint32_t number)
{
    put_varint(out, rp_pb_tag(number, RP_PB_BYTES));
    put_varint(out, 0);
    return out->size;
}

void rp_wire_end(rp_buf *out, size_t mark)
{
    size_t size, length_bytes;

    if (out->bad) return; /* marks are invalid */
    assert(mark > 0 && mark <= out->size);
    assert(out->data[mark - 1] == 0); /* the reserved byte: ended once, innermost first */
    size = out->size - mark;
    length_bytes = rp_pb_varint_size(size);
    if (length_bytes > 1) {
        if (rp_buf_reserve(out, length_bytes - 1) == NULL) return;
        memmove(out->data + mark + length_bytes - 1, out->data + mark, size);
        out->size += length_bytes - 1;
    }
    (void)rp_pb_put_varint(out->data + mark - 1, size);
}
