/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/body_json.h"

#include <math.h>
#include <stdlib.h>

enum { NUMBER_BYTES = 64 };

void rp_body_init(rp_body *in, const void *text, size_t size)
{
    const char *start = text != NULL ? text : "";

    *in = (rp_body){.start = start, .at = start, .end = start + size};
}

/* Records the first mistake. */
bool rp_body_fail(rp_body *in, const char *what)
{
    if (in->what == NULL) {
        in->what = what;
        in->byte = (size_t)(in->at - in->start);
    }
    return false;
}

/* Skips white space. Returns the next byte, or 0 at the end and after a mistake. */
static char peek(rp_body *in)
{
    if (in->what != NULL) return '\0';
    while (in->at < in->end &&
           (*in->at == ' ' || *in->at == '\t' || *in->at == '\n' || *in->at == '\r'))
        in->at++;
    return in->at < in->end ? *in->at : '\0';
}

bool rp_body_open(rp_body *in, char bracket)
{
    if (peek(in) != bracket)
        return rp_body_fail(in,
                            bracket == '{' ? "an object is missing" : "an array is missing");
    if (in->depth == RP_BODY_DEPTH) return rp_body_fail(in, "the JSON is nested too deeply");
    in->at++;
    in->depth++;
    in->is_first = true;
    return true;
}

/* Moves behind the comma before the next value of an object or array, or behind the bracket
 * that closes it; then returns false. */
static bool step(rp_body *in, char bracket)
{
    char next = peek(in);

    if (in->what != NULL || in->depth == 0) return rp_body_fail(in, "nothing is open");
    if (next == bracket) {
        in->at++;
        in->depth--;
        in->is_first = false;
        return false;
    }
    if (in->is_first) {
        in->is_first = false;
        return true;
    }
    if (next != ',') return rp_body_fail(in, "a comma or a closing bracket is missing");
    in->at++;
    return true;
}

bool rp_body_next_key(rp_body *in, rp_ask_name *key)
{
    if (!step(in, '}') || !rp_body_text(in, key)) return false;
    if (peek(in) != ':') return rp_body_fail(in, "a colon is missing");
    in->at++;
    return true;
}

bool rp_body_next(rp_body *in)
{
    return step(in, ']');
}

/* Moves behind one or more digits. */
static bool digits(rp_body *in)
{
    const char *start = in->at;

    while (in->at < in->end && *in->at >= '0' && *in->at <= '9') in->at++;
    return in->at > start;
}

/* Moves behind a number. `*is_whole` is set if it has no fraction and no exponent. */
static bool number(rp_body *in, bool *is_whole)
{
    *is_whole = true;
    if (*in->at == '-') in->at++;
    if (in->at < in->end && *in->at == '0')
        in->at++;
    else if (!digits(in))
        return rp_body_fail(in, "a number is missing");
    if (in->at < in->end && *in->at == '.') {
        *is_whole = false;
        in->at++;
        if (!digits(in)) return rp_body_fail(in, "a digit is missing after the point");
    }
    if (in->at < in->end && (*in->at == 'e' || *in->at == 'E')) {
        *is_whole = false;
        in->at++;
        if (in->at < in->end && (*in->at == '+' || *in->at == '-')) in->at++;
        if (!digits(in)) return rp_body_fail(in, "a digit is missing in the exponent");
    }
    return true;
}

/* Reads a number as text that ends with a zero byte. */
static bool number_text(rp_body *in, char text[NUMBER_BYTES], bool *is_whole)
{
    char next = peek(in);
    const char *start = in->at;
    size_t size;

    if (next != '-' && (next < '0' || next > '9'))
        return rp_body_fail(in, "a number is missing");
    if (!number(in, is_whole)) return false;
    size = (size_t)(in->at - start);
    if (size >= NUMBER_BYTES) return rp_body_fail(in, "a number has too many digits");
    memcpy(text, start, size);
    text[size] = '\0';
    return true;
}

bool rp_body_number(rp_body *in, double *out)
{
    char text[NUMBER_BYTES], *end;
    bool is_whole;
    double value;

    if (!number_text(in, text, &is_whole)) return false;
    value = strtod(text, &end);
    if (*end == '.') { /* a locale whose decimal separator is a comma */
        *end = ',';
        value = strtod(text, &end);
    }
    if (*end != '\0' || !isfinite(value)) return rp_body_fail(in, "a number is too large");
    *out = value;
    return true;
}

bool rp_body_whole(rp_body *in, int64_t *out)
{
    char text[NUMBER_BYTES];
    const char *p = text;
    int64_t value = 0;
    bool is_whole;

    if (!number_text(in, text, &is_whole)) return false;
    if (!is_whole) return rp_body_fail(in, "a whole number is missing");
    if (*p == '-') p++;
    for (; *p != '\0'; p++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, (int64_t)(*p - '0'), &value))
            return rp_body_fail(in, "a whole number is too large");
    if (text[0] != '-' && value == INT64_MIN)
        return rp_body_fail(in, "a whole number is too large");
    *out = text[0] == '-' ? value : -value;
    return true;
}

/* Reads a word, if it is there. */
static bool word(rp_body *in, const char *text)
{
    size_t size = strlen(text);

    if (peek(in) != text[0] || (size_t)(in->end - in->at) < size ||
        memcmp(in->at, text, size) != 0)
        return false;
    in->at += size;
    return true;
}

bool rp_body_bool(rp_body *in, bool *out)
{
    if (word(in, "true"))
        *out = true;
    else if (word(in, "false"))
        *out = false;
    else
        return rp_body_fail(in, "true or false is missing");
    return true;
}

bool rp_body_null(rp_body *in)
{
    return word(in, "null");
}

/* Reads the four digits of "\uXXXX". */
static bool unit(rp_body *in, uint32_t *out)
{
    uint32_t value = 0;

    if (in->end - in->at < 4) return rp_body_fail(in, "a string does not end");
    for (int i = 0; i < 4; i++, in->at++) {
        char c = *in->at;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;

        if (digit < 0) return rp_body_fail(in, "a string has a bad escape");
        value = value << 4 | (uint32_t)digit;
    }
    *out = value;
    return true;
}

/* Reads the rest of "\u...", which may be a pair of surrogates. */
static bool character(rp_body *in, uint32_t *out)
{
    uint32_t low;

    if (!unit(in, out)) return false;
    if (*out < 0xd800 || *out > 0xdfff) return true;
    if (*out > 0xdbff || in->end - in->at < 2 || in->at[0] != '\\' || in->at[1] != 'u')
        return rp_body_fail(in, "a string has a bad escape");
    in->at += 2;
    if (!unit(in, &low)) return false;
    if (low < 0xdc00 || low > 0xdfff) return rp_body_fail(in, "a string has a bad escape");
    *out = 0x10000 + ((*out - 0xd800) << 10 | (low - 0xdc00));
    return true;
}

/* Reads what follows a backslash. */
static bool escape(rp_body *in, uint32_t *out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *name;

    if (in->at == in->end) return rp_body_fail(in, "a string does not end");
    if (*in->at == 'u') {
        in->at++;
        return character(in, out);
    }
    name = *in->at != '\0' ? strchr(names, *in->at) : NULL;
    if (name == NULL) return rp_body_fail(in, "a string has a bad escape");
    in->at++;
    *out = (unsigned char)values[name - names];
    return true;
}

/* Appends a character of at most 10ffff as UTF-8. False if there is no room. */
static bool append(rp_ask_name *out, uint32_t c)
{
    static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    if (size > RP_ASK_NAME_BYTES - out->size) return false;
    for (size_t i = size; i > 1; i--, c >>= 6)
        out->text[out->size + i - 1] = (char)(0x80 | (c & 0x3f));
    out->text[out->size] = (char)(size == 1 ? c : leads[size] | c);
    out->size += size;
    return true;
}

/* Reads a string. `out` receives it; NULL: it is skipped and may be of any length. */
static bool string(rp_body *in, rp_ask_name *out)
{
    if (peek(in) != '"') return rp_body_fail(in, "a string is missing");
    if (out != NULL) out->size = 0;
    for (in->at++; in->at < in->end && *in->at != '"';) {
        uint32_t c = (unsigned char)*in->at++;
        bool is_escape = c == '\\';

        if (c < 0x20) return rp_body_fail(in, "a string has a control character");
        if (is_escape && !escape(in, &c)) return false;
        if (out == NULL) continue;
        if (c == 0) return rp_body_fail(in, "a string has a zero byte");
        if (!is_escape && c >= 0x80) { /* a byte of UTF-8 */
            if (out->size == RP_ASK_NAME_BYTES) return rp_body_fail(in, "a string is too long");
            out->text[out->size++] = (char)c;
        } else if (!append(out, c)) {
            return rp_body_fail(in, "a string is too long");
        }
    }
    if (in->at == in->end) return rp_body_fail(in, "a string does not end");
    in->at++;
    if (out != NULL) out->text[out->size] = '\0';
    return true;
}

bool rp_body_text(rp_body *in, rp_ask_name *out)
{
    if (!string(in, out)) return false;
    return out->size > 0 || rp_body_fail(in, "a string is empty");
}

/* Skips a value that is no object and no array. */
static bool skip_plain(rp_body *in)
{
    bool ignored;

    switch (peek(in)) {
    case '"': return string(in, NULL);
    case 't':
    case 'f': return rp_body_bool(in, &ignored);
    case 'n': return rp_body_null(in) || rp_body_fail(in, "a value is missing");
    case '\0': return rp_body_fail(in, "a value is missing");
    default: return number(in, &ignored);
    }
}

bool rp_body_skip(rp_body *in)
{
    rp_ask_name key;
    char next = peek(in);

    /* Keys are bounded even here; recursion is bounded by RP_BODY_DEPTH. */
    if (next == '{') {
        if (!rp_body_open(in, '{')) return false;
        while (rp_body_next_key(in, &key))
            if (!rp_body_skip(in)) return false;
    } else if (next == '[') {
        if (!rp_body_open(in, '[')) return false;
        while (rp_body_next(in))
            if (!rp_body_skip(in)) return false;
    } else {
        return skip_plain(in);
    }
    return in->what == NULL;
}

bool rp_body_end(rp_body *in)
{
    if (in->what != NULL) return false;
    (void)peek(in);
    if (in->depth > 0) return rp_body_fail(in, "an object or array is not closed");
    return in->at == in->end || rp_body_fail(in, "text follows the JSON");
}
