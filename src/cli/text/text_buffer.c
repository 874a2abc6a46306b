/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/text_buffer.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/units.h"
#include "reprise/printable.h"

enum { FIRST_BYTES = 256 };

void rp_text_buffer_deinit(rp_text_buffer *s)
{
    const rp_allocator *alloc = rp_allocator_default();

    if (s->text != NULL) (void)alloc->resize(alloc->ctx, s->text, s->capacity, 0);
    *s = (rp_text_buffer){0};
}

void rp_text_buffer_clear(rp_text_buffer *s)
{
    s->size = 0;
    s->failed = false;
    if (s->text != NULL) s->text[0] = '\0';
}

/* Makes room for `more` bytes and the terminator. Returns false without memory. */
static bool reserve(rp_text_buffer *s, size_t more)
{
    const rp_allocator *alloc = rp_allocator_default();
    size_t needed, capacity = s->capacity > 0 ? s->capacity : FIRST_BYTES;
    char *text;

    assert(s->text == NULL ? s->size == 0 : s->size < s->capacity); /* X1 */
    if (s->failed) return false;
    s->failed = true;
    if (__builtin_add_overflow(s->size, more, &needed) || needed > SIZE_MAX / 4) return false;
    while (capacity <= needed) capacity *= 2;
    if (capacity > s->capacity) {
        text = alloc->resize(alloc->ctx, s->text, s->capacity, capacity);
        if (text == NULL) return false;
        s->text = text;
        s->capacity = capacity;
    }
    s->failed = false;
    assert(s->size + more < s->capacity);
    return true;
}

void rp_text_buffer_add(rp_text_buffer *s, const char *text, size_t size)
{
    if (!reserve(s, size)) return;
    if (size > 0) memcpy(s->text + s->size, text, size);
    s->size += size;
    s->text[s->size] = '\0';
    assert(s->size < s->capacity); /* X1 */
}

void rp_text_buffer_put(rp_text_buffer *s, const char *text)
{
    rp_text_buffer_add(s, text, strlen(text));
}

void rp_text_buffer_format(rp_text_buffer *s, const char *format, ...)
{
    char text[512];
    va_list args;
    int size;

    va_start(args, format);
    size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (size < 0) return;
    if ((size_t)size < sizeof text) {
        rp_text_buffer_add(s, text, (size_t)size);
        return;
    }
    if (!reserve(s, (size_t)size)) return;
    va_start(args, format);
    (void)vsnprintf(s->text + s->size, (size_t)size + 1, format, args);
    va_end(args);
    s->size += (size_t)size;
    assert(s->text[s->size] == '\0'); /* X1 */
}

void rp_text_buffer_repeat(rp_text_buffer *s, char byte, size_t count)
{
    if (!reserve(s, count)) return;
    memset(s->text + s->size, byte, count);
    s->size += count;
    s->text[s->size] = '\0';
}

const char *rp_text_buffer_text(const rp_text_buffer *s)
{
    return s->text != NULL ? s->text : "";
}

static void add_part(void *buffer, const char *part, size_t size)
{
    rp_text_buffer_add(buffer, part, size);
}

void rp_text_buffer_put_safe(rp_text_buffer *s, const char *text, size_t size)
{
    rp_spell_text(text, size, RP_SPELL_SHOWN, add_part, s);
}

void rp_text_buffer_put_word(rp_text_buffer *s, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:=@%+,-";
    size_t length = strlen(word);

    if (length > 0 && strspn(word, plain) == length) {
        rp_text_buffer_add(s, word, length);
        return;
    }
    rp_text_buffer_put(s, "'");
    for (const char *end; *word != '\0'; word = *end != '\0' ? end + 1 : end) {
        end = word + strcspn(word, "'");
        rp_text_buffer_put_safe(s, word, (size_t)(end - word));
        if (*end != '\0') rp_text_buffer_put(s, "'\\''");
    }
    rp_text_buffer_put(s, "'");
}

size_t rp_text_columns(const char *text, size_t size)
{
    size_t columns = 0;

    for (size_t i = 0; i < size; i++) columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

size_t rp_text_fit(const char *text, size_t size, size_t columns)
{
    size_t i = 0;

    assert(text != NULL || size == 0);
    for (size_t used = 0; i < size; i++) {
        used += ((unsigned char)text[i] & 0xc0) != 0x80;
        if (used > columns) break;
    }
    return i;
}

void rp_grid_init(rp_grid *g, size_t columns, uint32_t right)
{
    assert(columns >= 1 && columns <= RP_GRID_COLUMNS);
    *g = (rp_grid){.columns = columns, .right = right};
}

void rp_grid_deinit(rp_grid *g)
{
    rp_text_buffer_deinit(&g->cells);
}

void rp_grid_cell(rp_grid *g, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    rp_text_buffer_put_safe(&g->cells, text, strlen(text));
    rp_text_buffer_add(&g->cells, "", 1);
    g->cell_count++;
}

void rp_grid_write(const rp_grid *g, rp_text_buffer *out)
{
    size_t widths[RP_GRID_COLUMNS] = {0};
    const char *cell = rp_text_buffer_text(&g->cells);

    if (g->cells.failed) {
        out->failed = true;
        return;
    }
    assert(g->cell_count % g->columns == 0);
    for (size_t i = 0; i < g->cell_count; i++, cell += strlen(cell) + 1) {
        size_t width = rp_text_columns(cell, strlen(cell));

        if (width > widths[i % g->columns]) widths[i % g->columns] = width;
    }
    cell = rp_text_buffer_text(&g->cells);
    for (size_t i = 0; i < g->cell_count; i++, cell += strlen(cell) + 1) {
        size_t column = i % g->columns;
        size_t pad = widths[column] - rp_text_columns(cell, strlen(cell));
        bool right = (g->right >> column & 1) != 0, last = column + 1 == g->columns;

        assert(pad <= widths[column]);
        if (right) rp_text_buffer_repeat(out, ' ', pad);
        rp_text_buffer_put(out, cell);
        if (!right && !last) rp_text_buffer_repeat(out, ' ', pad);
        rp_text_buffer_put(out, last ? "\n" : "  ");
    }
}

/* Adds a comma unless the value is the first of its array, object or line. */
static void separate(rp_text_buffer *s)
{
    char last = s->size > 0 ? s->text[s->size - 1] : '\n';

    if (last != '[' && last != '{' && last != ':' && last != '\n') rp_text_buffer_put(s, ",");
}

void rp_json_open(rp_text_buffer *s, char bracket)
{
    assert(bracket == '[' || bracket == '{');
    separate(s);
    rp_text_buffer_add(s, &bracket, 1);
}

void rp_json_close(rp_text_buffer *s, char bracket)
{
    assert(bracket == ']' || bracket == '}');
    rp_text_buffer_add(s, &bracket, 1);
}

void rp_json_key(rp_text_buffer *s, const char *key)
{
    rp_json_put_text(s, key);
    rp_text_buffer_put(s, ":");
}

void rp_json_put_string(rp_text_buffer *s, const char *text, size_t size)
{
    separate(s);
    rp_json_put_quote(s, text, size);
}

void rp_json_put_quote(rp_text_buffer *s, const char *text, size_t size)
{
    rp_text_buffer_put(s, "\"");
    rp_spell_text(text, size, RP_SPELL_JSON, add_part, s);
    rp_text_buffer_put(s, "\"");
}

void rp_json_put_text(rp_text_buffer *s, const char *text)
{
    if (text != NULL) {
        rp_json_put_string(s, text, strlen(text));
        return;
    }
    separate(s);
    rp_text_buffer_put(s, "null");
}

void rp_json_put_integer(rp_text_buffer *s, int64_t value)
{
    separate(s);
    rp_text_buffer_format(s, "%" PRId64, value);
}

void rp_json_put_unsigned(rp_text_buffer *s, uint64_t value)
{
    separate(s);
    rp_text_buffer_format(s, "%" PRIu64, value);
}

void rp_json_put_raw(rp_text_buffer *s, const char *text)
{
    separate(s);
    rp_text_buffer_put(s, text);
}

void rp_json_put_number(rp_text_buffer *s, double value)
{
    char text[32];

    if (isnan(value)) {
        rp_json_put_text(s, "NaN");
    } else if (isinf(value)) {
        rp_json_put_text(s, value > 0 ? "Infinity" : "-Infinity");
    } else {
        separate(s);
        rp_text_buffer_put(s, rp_decimal_text(value, text, sizeof text));
    }
}

void rp_json_put_boolean(rp_text_buffer *s, bool value)
{
    separate(s);
    rp_text_buffer_put(s, value ? "true" : "false");
}
