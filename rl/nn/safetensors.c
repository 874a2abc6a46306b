/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors: a parser for the JSON of its header, and a writer.
 *
 * The parser accepts exactly the members that the format has, in any order. It looks at each
 * byte of the header once, and recursion does not occur.
 *
 * Invariants of an accepted file:
 *   F1  names are 1 to RP_SAFETENSORS_MAX_NAME bytes of UTF-8 without control characters, and
 * differ;
 *   F2  the size of a tensor is that of its dtype times its shape;
 *   F3  the tensors fill the data exactly: no gap, no overlap, no byte left. */
#include "reprise/rl/safetensors.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error/fail.h"
#include "reprise/printable.h"

enum { PREFIX = 8, ALIGN = 8 };

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    {"F32", 4}, {"F64", 8}, {"F16", 2},  {"BF16", 2},    {"I8", 1},
    {"U8", 1},  {"I16", 2}, {"U16", 2},  {"I32", 4},     {"U32", 4},
    {"I64", 8}, {"U64", 8}, {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
};

/* What is left of the header. */
typedef struct cursor {
    const char *begin, *at, *end;
    rp_error *err;
} cursor;

typedef struct slice {
    const char *text;
    size_t size;
} slice;

static rp_status corrupt(const cursor *c, const char *what)
{
    return rp_rl_fail(c->err, RP_CORRUPT, "safetensors: header, byte %zu: %s",
                      (size_t)(c->at - c->begin), what);
}

/* Skips space and returns the next character, or 0 at the end. */
static char peek(cursor *c)
{
    while (c->at < c->end &&
           (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
    return c->at < c->end ? *c->at : 0;
}

static rp_status expect(cursor *c, char wanted)
{
    char text[] = "expected 'x'";

    text[10] = wanted;
    if (peek(c) != wanted) return corrupt(c, text);
    c->at++;
    return RP_OK;
}

/* Reads a string without escapes: F1. */
static rp_status read_string(cursor *c, slice *out)
{
    rp_status st = expect(c, '"');
    const char *first = c->at;

    if (st != RP_OK) return st;
    while (c->at < c->end && *c->at != '"') {
        uint32_t character;
        size_t length = rp_utf8_next(c->at, (size_t)(c->end - c->at), &character);

        if (character == '\\')
            return rp_rl_fail(
                c->err, RP_UNIMPLEMENTED,
                "safetensors: header, byte %zu: strings with escapes are not read",
                (size_t)(c->at - c->begin));
        if (character == RP_NO_CHARACTER) return corrupt(c, "a string that is not UTF-8");
        if (character < ' ') return corrupt(c, "a control character in a string");
        c->at += length;
    }
    if (c->at >= c->end) return corrupt(c, "a string without an end");
    *out = (slice){first, (size_t)(c->at - first)};
    c->at++;
    return RP_OK;
}

static bool equals(slice s, const char *text)
{
    return s.size == strlen(text) && memcmp(s.text, text, s.size) == 0;
}

static rp_status read_number(cursor *c, uint64_t *out)
{
    char first = peek(c);
    uint64_t value = 0;

    if (first < '0' || first > '9') return corrupt(c, "expected an integer >= 0");
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        if (first == '0' && value == 0 && c->at > c->begin && c->at[-1] == '0')
            return corrupt(c, "a number with a leading zero");
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*c->at - '0'), &value))
            return corrupt(c, "a number over 2^64");
        c->at++;
    }
    *out = value;
    return RP_OK;
}

/* Reads an array of at most `room` numbers. */
static rp_status read_numbers(cursor *c, uint64_t *numbers, size_t room, size_t *count)
{
    rp_status st = expect(c, '[');

    *count = 0;
    if (st != RP_OK) return st;
    if (peek(c) == ']') {
        c->at++;
        return RP_OK;
    }
    for (;;) {
        if (*count == room) return corrupt(c, "an array with too many numbers");
        st = read_number(c, &numbers[*count]);
        if (st != RP_OK) return st;
        ++*count;
        if (peek(c) != ',') return expect(c, ']');
        c->at++;
    }
}

static rp_status read_metadata(cursor *c)
{
    rp_status st = expect(c, '{');
    slice text;

    if (st == RP_OK && peek(c) == '}') return expect(c, '}');
    while (st == RP_OK) {
        st = read_string(c, &text);
        if (st == RP_OK) st = expect(c, ':');
        if (st == RP_OK) st = read_string(c, &text);
        if (st != RP_OK) break;
        if (peek(c) != ',') return expect(c, '}');
        c->at++;
    }
    return st;
}

static rp_status set_dtype(cursor *c, slice text, rp_safetensor *t)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (!equals(text, dtypes[i].name)) continue;
        memcpy(t->dtype, dtypes[i].name, strlen(dtypes[i].name) + 1);
        return RP_OK;
    }
    return rp_rl_fail(c->err, RP_UNIMPLEMENTED,
                      "safetensors: tensor '%.*s': unknown dtype '%.*s'", (int)t->name_size,
                      t->name, (int)(text.size < 32 ? text.size : 32), text.text);
}

/* Reads one member of a tensor. `seen` has a bit for each member that was there. */
static rp_status read_member(cursor *c, rp_safetensor *t, uint64_t *offsets, unsigned *seen)
{
    unsigned bit = 0;
    size_t count;
    slice key, text;
    rp_status st = read_string(c, &key);

    if (st != RP_OK) return st;
    if (equals(key, "dtype")) bit = 1;
    if (equals(key, "shape")) bit = 2;
    if (equals(key, "data_offsets")) bit = 4;
    if (bit == 0) return corrupt(c, "a member that is not dtype, shape or data_offsets");
    if ((*seen & bit) != 0) return corrupt(c, "a member that is there twice");
    *seen |= bit;
    st = expect(c, ':');
    if (st != RP_OK) return st;
    if (bit == 2) return read_numbers(c, t->shape, RP_SAFETENSORS_MAX_RANK, &t->rank);
    if (bit == 1) {
        st = read_string(c, &text);
        return st == RP_OK ? set_dtype(c, text, t) : st;
    }
    st = read_numbers(c, offsets, 2, &count);
    if (st == RP_OK && count != 2) st = corrupt(c, "data_offsets must be two numbers");
    return st;
}

static size_t dtype_bytes(const rp_safetensor *t)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(t->dtype, dtypes[i].name) == 0) return dtypes[i].bytes;
    assert(t->dtype[0] == '\0');
    return 0;
}

/* Checks F2, and sets the data of a tensor. */
static rp_status place(cursor *c, rp_safetensor *t, const uint64_t *offsets, size_t data_size)
{
    uint64_t size = dtype_bytes(t);

    for (size_t i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(size, t->shape[i], &size)) size = UINT64_MAX;
    if (offsets[0] > offsets[1] || offsets[1] > data_size || offsets[1] - offsets[0] != size)
        return rp_rl_fail(c->err, RP_CORRUPT,
                          "safetensors: tensor '%.*s': data_offsets %" PRIu64 " to %" PRIu64
                          " do not fit its shape, or the %zu bytes of data",
                          (int)t->name_size, t->name, offsets[0], offsets[1], data_size);
    t->data = (const uint8_t *)c->end + offsets[0];
    t->size_bytes = (size_t)size;
    return RP_OK;
}

static rp_status read_tensor(cursor *c, rp_safetensor *t, size_t data_size)
{
    uint64_t offsets[2] = {0, 0};
    unsigned seen = 0;
    rp_status st = expect(c, '{');

    if (t->name_size == 0) return corrupt(c, "a tensor without a name");
    if (t->name_size > RP_SAFETENSORS_MAX_NAME)
        return rp_rl_fail(c->err, RP_NO_RESOURCE,
                          "safetensors: a name has %zu bytes, the limit is %d", t->name_size,
                          RP_SAFETENSORS_MAX_NAME);
    while (st == RP_OK) {
        st = read_member(c, t, offsets, &seen);
        if (st == RP_OK && peek(c) != ',') break;
        c->at += st == RP_OK;
    }
    if (st == RP_OK) st = expect(c, '}');
    if (st != RP_OK) return st;
    if (seen != 7) return corrupt(c, "a tensor without dtype, shape or data_offsets");
    return place(c, t, offsets, data_size);
}

/* Checks F3, and that names differ (F1). A tensor must begin where all those before it end. */
static rp_status check_layout(const cursor *c, const rp_safetensor *tensors, size_t count,
                              size_t data_size)
{
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        const rp_safetensor *t = &tensors[i];
        size_t before = 0;
        bool overlap = false;

        for (size_t j = 0; j < count; j++) {
            const rp_safetensor *o = &tensors[j];

            if (o->data < t->data) before += o->size_bytes;
            if (j == i) continue;
            if (o->name_size == t->name_size && memcmp(o->name, t->name, t->name_size) == 0)
                return rp_rl_fail(c->err, RP_CORRUPT,
                                  "safetensors: tensor '%.*s' is there twice",
                                  (int)t->name_size, t->name);
            if (o->data == t->data && o->size_bytes > 0 && t->size_bytes > 0) overlap = true;
        }
        if (overlap || before != (size_t)(t->data - (const uint8_t *)c->end))
            return rp_rl_fail(c->err, RP_CORRUPT,
                              "safetensors: tensor '%.*s': gap or overlap before its data",
                              (int)t->name_size, t->name);
        total += t->size_bytes;
    }
    if (total == data_size) return RP_OK;
    return rp_rl_fail(c->err, RP_CORRUPT,
                      "safetensors: the tensors have %zu bytes, but the file has %zu", total,
                      data_size);
}

static rp_status read_header(cursor *c, size_t data_size, rp_safetensor *tensors, size_t room,
                             size_t *count)
{
    rp_status st = expect(c, '{');
    bool has_metadata = false;
    slice name;

    *count = 0;
    if (st == RP_OK && peek(c) == '}') return expect(c, '}');
    while (st == RP_OK) {
        st = read_string(c, &name);
        if (st == RP_OK) st = expect(c, ':');
        if (st != RP_OK) return st;
        if (equals(name, "__metadata__")) {
            if (has_metadata) return corrupt(c, "metadata that is there twice");
            has_metadata = true;
            st = read_metadata(c);
        } else if (*count == room || *count == RP_SAFETENSORS_MAX_TENSORS) {
            return rp_rl_fail(c->err, RP_NO_RESOURCE, "safetensors: more than %zu tensors",
                              *count);
        } else {
            tensors[*count] = (rp_safetensor){.name = name.text, .name_size = name.size};
            st = read_tensor(c, &tensors[(*count)++], data_size);
        }
        if (st != RP_OK) return st;
        if (peek(c) != ',') return expect(c, '}');
        c->at++;
    }
    return st;
}

rp_status rp_safetensors_parse(const uint8_t *file, size_t size, rp_safetensor *tensors,
                               size_t room, size_t *count, rp_error *err)
{
    uint64_t header = 0;
    size_t data_size, found = 0;
    cursor c;
    rp_status st;

    if (size < PREFIX)
        return rp_rl_fail(
            err, RP_CORRUPT,
            "safetensors: the file is cut off: it has %zu bytes, less than the 8 of "
            "a length",
            size);
    for (int i = PREFIX; i-- > 0;) header = header << 8 | file[i];
    if (header > size - PREFIX)
        return rp_rl_fail(err, RP_CORRUPT,
                          "safetensors: the file is damaged or cut off: its header would have "
                          "%" PRIu64 " bytes, but %zu are left",
                          header, size - PREFIX);
    if (header > RP_SAFETENSORS_MAX_HEADER)
        return rp_rl_fail(err, RP_NO_RESOURCE,
                          "safetensors: the header has %" PRIu64 " bytes, the limit is %d",
                          header, RP_SAFETENSORS_MAX_HEADER);
    data_size = size - PREFIX - (size_t)header;
    c.begin = c.at = (const char *)file + PREFIX;
    c.end = c.begin + header;
    c.err = err;
    st = read_header(&c, data_size, tensors, room, &found);
    if (st == RP_OK && peek(&c) != 0) st = corrupt(&c, "bytes after the end");
    if (st == RP_OK && c.at != c.end) st = corrupt(&c, "bytes after the end");
    if (st == RP_OK) st = check_layout(&c, tensors, found, data_size);
    if (st == RP_OK) *count = found;
    return st;
}

const rp_safetensor *rp_safetensors_find(const rp_safetensor *tensors, size_t count,
                                         const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (equals((slice){tensors[i].name, tensors[i].name_size}, name)) return &tensors[i];
    return NULL;
}

/* Bytes that are counted, and written as long as they fit. */
typedef struct sink {
    uint8_t *out;
    size_t capacity, used;
} sink;

static void put(sink *s, const void *bytes, size_t size)
{
    if (s->used <= s->capacity && size <= s->capacity - s->used && size > 0)
        memcpy(s->out + s->used, bytes, size);
    s->used += size;
}

static void put_text(sink *s, const char *text)
{
    put(s, text, strlen(text));
}

static void put_number(sink *s, uint64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    put_text(s, text);
}

static void put_tensor(sink *s, const rp_safetensor *t, uint64_t offset)
{
    assert(t->rank <= RP_SAFETENSORS_MAX_RANK && t->name_size <= RP_SAFETENSORS_MAX_NAME);
    put_text(s, "\"");
    put(s, t->name, t->name_size);
    put_text(s, "\":{\"dtype\":\"");
    put_text(s, t->dtype);
    put_text(s, "\",\"shape\":[");
    for (size_t i = 0; i < t->rank; i++) {
        if (i > 0) put_text(s, ",");
        put_number(s, t->shape[i]);
    }
    put_text(s, "],\"data_offsets\":[");
    put_number(s, offset);
    put_text(s, ",");
    put_number(s, offset + t->size_bytes);
    put_text(s, "]}");
}

size_t rp_safetensors_write(const rp_safetensor *tensors, size_t count, uint8_t *out,
                            size_t capacity)
{
    sink s = {out, capacity, 0};
    uint8_t length[PREFIX] = {0};
    uint64_t offset = 0, header;

    put(&s, length, PREFIX);
    put_text(&s, "{");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) put_text(&s, ",");
        put_tensor(&s, &tensors[i], offset);
        offset += tensors[i].size_bytes;
    }
    put_text(&s, "}");
    while (s.used % ALIGN != 0) put_text(&s, " ");
    header = s.used - PREFIX;
    for (size_t i = 0; i < PREFIX; i++) length[i] = (uint8_t)(header >> (8 * i));
    if (s.used <= capacity) memcpy(out, length, PREFIX);
    for (size_t i = 0; i < count; i++) put(&s, tensors[i].data, tensors[i].size_bytes);
    return s.used;
}
