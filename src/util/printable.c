/* SPDX-License-Identifier: Apache-2.0 */
#include "util/printable.h"

#include <assert.h>
#include <string.h>

size_t rp_utf8_next(const char *text, size_t size, uint32_t *character)
{
    const uint8_t *at = (const uint8_t *)text;
    uint8_t low = 0x80, high = 0xbf; /* of the second byte */
    size_t bytes;

    *character = at[0];
    if (at[0] < 0x80) return 1;
    *character = RP_NO_CHARACTER;
    if (at[0] < 0xc2 || at[0] > 0xf4) return 1;
    bytes = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    if (at[0] == 0xe0) low = 0xa0;  /* below: overlong */
    if (at[0] == 0xed) high = 0x9f; /* above: surrogates */
    if (at[0] == 0xf0) low = 0x90;
    if (at[0] == 0xf4) high = 0x8f; /* above: over 10ffff */
    if (size < bytes || at[1] < low || at[1] > high) return 1;
    for (size_t i = 2; i < bytes; i++)
        if (at[i] < 0x80 || at[i] > 0xbf) return 1;
    *character = at[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) *character = *character << 6 | (at[i] & 0x3f);
    return bytes;
}

bool rp_is_utf8(const char *text, size_t size)
{
    uint32_t character = 0;

    for (size_t i = 0; i < size && character != RP_NO_CHARACTER;)
        i += rp_utf8_next(text + i, size - i, &character);
    return character != RP_NO_CHARACTER;
}

size_t rp_utf8_whole(const char *text, size_t length)
{
    size_t tail = 0, needs;
    uint8_t first;

    while (tail < 3 && tail < length && ((uint8_t)text[length - 1 - tail] & 0xc0) == 0x80)
        tail++;
    if (tail == length) return length;
    first = (uint8_t)text[length - 1 - tail];
    needs = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
    return tail < needs ? length - 1 - tail : length;
}

/* False for control characters, direction marks and overrides, line separators, the byte order
 * mark, annotations and non-characters. */
static bool is_printable(uint32_t character)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},           {0x061c, 0x061c}, {0x200e, 0x200f},
        {0x2028, 0x202e}, {0x2066, 0x206f},       {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
        {0xfffe, 0xffff}, {0x110000, UINT32_MAX},
    };

    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (character <= hidden[i].last) return character < hidden[i].first;
    return true;
}

/* The letter after the backslash of a short escape, or 0. */
static char short_escape(char byte, rp_spelling how)
{
    if (byte == '\n') return 'n';
    if (byte == '\t' && how != RP_SPELL_LABEL) return 't';
    if (byte == '\r' && how != RP_SPELL_LABEL) return 'r';
    if ((byte == '"' || byte == '\\') && how != RP_SPELL_SHOWN) return byte;
    return '\0';
}

/* Writes a prefix and a number in hexadecimal, with `digits` digits. Returns the bytes. By
 * hand, since a peer may send many names of nothing but such characters. */
static size_t put_hex(char out[RP_SPELT_BYTES], const char *prefix, unsigned number,
                      size_t digits)
{
    size_t length = strlen(prefix);

    assert(length + digits <= RP_SPELT_BYTES && number >> (4 * digits) == 0);
    memcpy(out, prefix, length);
    for (size_t i = 0; i < digits; i++)
        out[length + i] = "0123456789abcdef"[number >> (4 * (digits - 1 - i)) & 15];
    return length + digits;
}

size_t rp_spell(const char *text, size_t size, rp_spelling how, char out[RP_SPELT_BYTES],
                size_t *spelt)
{
    uint32_t character;
    size_t bytes = rp_utf8_next(text, size, &character);
    char letter = bytes == 1 ? short_escape(text[0], how) : '\0';

    if (how == RP_SPELL_LABEL && letter == '\\') {
        memset(out, '\\', 4); /* Prometheus reads two, which start no escape of ours */
        *spelt = 4;
    } else if (letter != '\0') {
        out[0] = '\\';
        out[1] = letter;
        *spelt = 2;
    } else if (is_printable(character)) {
        memcpy(out, text, bytes);
        *spelt = bytes;
    } else if (how == RP_SPELL_JSON) {
        *spelt = put_hex(out, "\\u", character == RP_NO_CHARACTER ? 0xfffd : character, 4);
    } else if (bytes == 1) {
        *spelt = put_hex(out, how == RP_SPELL_LABEL ? "\\\\x" : "\\x", (uint8_t)text[0], 2);
    } else {
        *spelt = put_hex(out, how == RP_SPELL_LABEL ? "\\\\u" : "\\u", character, 4);
    }
    assert(*spelt >= 1 && *spelt <= RP_SPELT_BYTES);
    return bytes;
}

/* Returns how many bytes from `text` on are ASCII that no format escapes. */
static size_t plain_bytes(const char *text, size_t size)
{
    size_t n = 0;

    while (n < size && text[n] >= 0x20 && text[n] < 0x7f && text[n] != '"' && text[n] != '\\')
        n++;
    return n;
}

void rp_spell_text(const char *text, size_t size, rp_spelling how, rp_spell_sink *put,
                   void *ctx)
{
    char spelling[RP_SPELT_BYTES];
    size_t spelt, plain, i = 0;

    while (i < size) {
        plain = plain_bytes(text + i, size - i);
        if (plain > 0) put(ctx, text + i, plain);
        i += plain;
        if (i == size) break;
        i += rp_spell(text + i, size - i, how, spelling, &spelt);
        put(ctx, spelling, spelt);
    }
    assert(i == size);
}

size_t rp_printable(const char *text, size_t size, char *out, size_t capacity)
{
    char spelling[RP_SPELT_BYTES];
    size_t length = 0, spelt, i = 0;

    while (i < size && capacity - length > 1) {
        if (text[i] >= ' ' && text[i] < 0x7f) { /* the common case */
            out[length++] = text[i++];
            continue;
        }
        i += rp_spell(text + i, size - i, RP_SPELL_SHOWN, spelling, &spelt);
        if (capacity - length <= spelt) break;
        memcpy(out + length, spelling, spelt);
        length += spelt;
    }
    assert(length < capacity);
    out[length] = '\0';
    return length;
}
