/* SPDX-License-Identifier: Apache-2.0 */
/* A recursive descent parser with a bound on the depth. Keys of an object are compared in
 * pairs, so their number is bounded too.
 *
 * Invariants:
 *   R1  begin <= at <= end;
 *   R2  an array or object has `count` children, and those of an object have different keys. */
#include "cli/text/json_tree.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reprise/printable.h"

enum { NUMBER_BYTES = 512 };

typedef struct reader {
    rp_arena *arena;
    const char *begin, *at, *end;
    rp_json_error *error;
} reader;

static rp_status value(reader *r, size_t depth, rp_json **out);

/* Sets the error at the current byte. Returns RP_INVALID. */
static rp_status wrong(reader *r, const char *what)
{
    assert(r->begin <= r->at && r->at <= r->end); /* R1 */
    *r->error = (rp_json_error){(size_t)(r->at - r->begin), what};
    return RP_INVALID;
}

static rp_status memory(reader *r)
{
    (void)wrong(r, "out of memory");
    return RP_NO_RESOURCE;
}

static void skip_space(reader *r)
{
    while (r->at < r->end &&
           (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

/* Returns the next byte, or 0 at the end. A zero byte in the text is an error as well. */
static char peek(const reader *r)
{
    return r->at < r->end ? *r->at : '\0';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool four_digits(reader *r, uint32_t *code)
{
    uint32_t sum = 0;

    if (r->end - r->at < 4) return false;
    for (int i = 0; i < 4; i++) {
        char c = r->at[i];
        uint32_t digit;

        if (is_digit(c))
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A' + 10);
        else
            return false;
        sum = sum * 16 + digit;
    }
    r->at += 4;
    *code = sum;
    return true;
}

size_t rp_utf8_encode(uint32_t character, char out[RP_UTF8_BYTES])
{
    assert(character <= 0x10ffff);
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    if (character < 0x800) {
        out[0] = (char)(0xc0 | character >> 6);
        out[1] = (char)(0x80 | (character & 0x3f));
        return 2;
    }
    if (character < 0x10000) {
        out[0] = (char)(0xe0 | character >> 12);
        out[1] = (char)(0x80 | (character >> 6 & 0x3f));
        out[2] = (char)(0x80 | (character & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | character >> 18);
    out[1] = (char)(0x80 | (character >> 12 & 0x3f));
    out[2] = (char)(0x80 | (character >> 6 & 0x3f));
    out[3] = (char)(0x80 | (character & 0x3f));
    return 4;
}

/* Parses the code after "\u", or two codes that are a surrogate pair. */
static rp_status unicode(reader *r, char *out, size_t *size)
{
    uint32_t code, low;

    if (!four_digits(r, &code)) return wrong(r, "expected four hexadecimal digits");
    if (code >= 0xdc00 && code <= 0xdfff) return wrong(r, "half of a surrogate pair");
    if (code >= 0xd800 && code <= 0xdbff) {
        if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
            return wrong(r, "half of a surrogate pair");
        r->at += 2;
        if (!four_digits(r, &low)) return wrong(r, "expected four hexadecimal digits");
        if (low < 0xdc00 || low > 0xdfff) return wrong(r, "half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    *size += rp_utf8_encode(code, out + *size);
    return RP_OK;
}

static rp_status escape(reader *r, char *out, size_t *size)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = peek(r);
    const char *found = c != '\0' ? strchr(from, c) : NULL;

    if (c == 'u') {
        r->at++;
        return unicode(r, out, size);
    }
    if (found == NULL) return wrong(r, "unknown escape in a string");
    out[(*size)++] = to[found - from];
    r->at++;
    return RP_OK;
}

/* Returns the number of bytes up to the closing quote, an upper bound of the decoded length. */
static size_t longest(const reader *r)
{
    const char *p = r->at;

    while (p < r->end && *p != '"') p += *p == '\\' && p + 1 < r->end ? 2 : 1;
    return (size_t)((p < r->end ? p : r->end) - r->at);
}

static rp_status string(reader *r, const char **text, size_t *size)
{
    char *out;
    rp_status st = RP_OK;

    assert(peek(r) == '"');
    *size = 0;
    r->at++;
    out = rp_arena_take(r->arena, longest(r) + 1);
    if (out == NULL) return memory(r);
    while (st == RP_OK) {
        unsigned char c = (unsigned char)peek(r);
        uint32_t character;
        size_t length;

        if (r->at == r->end) return wrong(r, "a string has no end");
        if (c == '"') break;
        if (c == '\\') {
            r->at++;
            st = escape(r, out, size);
            continue;
        }
        if (c < ' ') return wrong(r, "a control character in a string: escape it");
        length = rp_utf8_next(r->at, (size_t)(r->end - r->at), &character);
        if (character == RP_NO_CHARACTER) return wrong(r, "bytes that are not UTF-8");
        assert(length <= (size_t)(r->end - r->at));
        memcpy(out + *size, r->at, length);
        *size += length;
        r->at += length;
    }
    if (st != RP_OK) return st;
    r->at++;
    *text = out;
    return RP_OK;
}

/* Stores an integer. Returns false if it does not fit. */
static bool as_integer(const char *text, size_t size, rp_json *node)
{
    bool minus = text[0] == '-';
    uint64_t sum = 0;

    assert(size > (minus ? 1u : 0u));
    for (size_t i = minus ? 1 : 0; i < size; i++)
        if (__builtin_mul_overflow(sum, (uint64_t)10, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(text[i] - '0'), &sum))
            return false;
    if (minus && (sum == 0 || sum > (uint64_t)INT64_MAX + 1)) return false; /* -0 has a sign */
    node->kind = RP_JSON_INTEGER;
    if (minus) {
        node->u.integer = (int64_t)(0 - sum);
    } else if (sum > (uint64_t)INT64_MAX) {
        node->kind = RP_JSON_UNSIGNED;
        node->u.number_unsigned = sum;
    } else {
        node->u.integer = (int64_t)sum;
    }
    return true;
}

static bool some_digits(reader *r)
{
    const char *begin = r->at;

    while (is_digit(peek(r))) r->at++;
    return r->at > begin;
}

static const char not_finite[] =
    "JSON has no NaN and no Infinity: data may have them as texts, \"NaN\", a priority may not";

/* Returns true if the text goes on as Python writes a number that is not finite. */
static bool is_not_finite(const reader *r)
{
    size_t left = (size_t)(r->end - r->at);

    return (left >= 3 && memcmp(r->at, "NaN", 3) == 0) ||
           (left >= 8 && memcmp(r->at, "Infinity", 8) == 0);
}

static rp_status number(reader *r, rp_json *node)
{
    const char *begin = r->at;
    char copy[NUMBER_BYTES];
    bool whole = true;
    size_t size;

    if (peek(r) == '-') r->at++;
    if (is_not_finite(r)) return wrong(r, not_finite);
    if (peek(r) == '0')
        r->at++;
    else if (!some_digits(r))
        return wrong(r, "expected a value");
    if (is_digit(peek(r))) return wrong(r, "a number begins with 0");
    if (peek(r) == '.') {
        r->at++;
        whole = false;
        if (!some_digits(r)) return wrong(r, "expected a digit");
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        r->at++;
        whole = false;
        if (peek(r) == '+' || peek(r) == '-') r->at++;
        if (!some_digits(r)) return wrong(r, "expected a digit");
    }
    size = (size_t)(r->at - begin);
    assert(size > 0 && r->at <= r->end);
    if (whole && as_integer(begin, size, node)) return RP_OK;
    if (size >= sizeof copy) return wrong(r, "a number has more than 511 characters");
    memcpy(copy, begin, size);
    copy[size] = '\0';
    node->kind = RP_JSON_NUMBER;
    node->u.number = strtod(copy, NULL);
    return isfinite(node->u.number) ? RP_OK : wrong(r, "a number is too large");
}

static rp_status word(reader *r, rp_json *node)
{
    static const struct {
        const char *text;
        rp_json_kind kind;
    } words[] = {{"null", RP_JSON_NULL}, {"false", RP_JSON_FALSE}, {"true", RP_JSON_TRUE}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i].text);

        if ((size_t)(r->end - r->at) < length || memcmp(r->at, words[i].text, length) != 0)
            continue;
        node->kind = words[i].kind;
        r->at += length;
        return RP_OK;
    }
    return wrong(r, is_not_finite(r) ? not_finite : "expected a value");
}

static rp_status array(reader *r, size_t depth, rp_json *node)
{
    rp_json **tail = &node->child;
    rp_status st = RP_OK;

    assert(peek(r) == '[' && depth <= RP_JSON_MAX_DEPTH);
    node->kind = RP_JSON_ARRAY;
    r->at++;
    skip_space(r);
    if (peek(r) == ']') {
        r->at++;
        return RP_OK;
    }
    while (st == RP_OK) {
        st = value(r, depth + 1, tail);
        if (st != RP_OK) return st;
        tail = &(*tail)->next;
        node->u.count++;
        skip_space(r);
        if (peek(r) == ']') break;
        if (peek(r) != ',') return wrong(r, "expected ',' or ']'");
        r->at++;
        skip_space(r);
    }
    r->at++;
    return RP_OK;
}

static rp_status member(reader *r, size_t depth, rp_json *node, rp_json **tail)
{
    const char *key;
    size_t size;
    rp_status st;

    if (peek(r) != '"') return wrong(r, "expected a key in quotes");
    assert(node->kind == RP_JSON_OBJECT);
    if (node->u.count == RP_JSON_MAX_KEYS) return wrong(r, "more than 4096 keys");
    st = string(r, &key, &size);
    if (st != RP_OK) return st;
    if (strlen(key) != size) return wrong(r, "a key with a zero byte");
    if (rp_json_find(node, key) != NULL) {
        const char *what = rp_arena_format(r->arena, "the key '%.60s' is given twice", key);

        return what != NULL ? wrong(r, what) : memory(r);
    }
    skip_space(r);
    if (peek(r) != ':') return wrong(r, "expected ':'");
    r->at++;
    skip_space(r);
    st = value(r, depth + 1, tail);
    assert(st != RP_OK || (*tail != NULL && (*tail)->next == NULL)); /* R2 */
    if (st == RP_OK) (*tail)->key = key;
    return st;
}

static rp_status object(reader *r, size_t depth, rp_json *node)
{
    rp_json **tail = &node->child;
    rp_status st;

    assert(peek(r) == '{' && depth <= RP_JSON_MAX_DEPTH);
    node->kind = RP_JSON_OBJECT;
    r->at++;
    skip_space(r);
    if (peek(r) == '}') {
        r->at++;
        return RP_OK;
    }
    for (;;) {
        rp_json *made = NULL;

        st = member(r, depth, node, &made);
        if (st != RP_OK) return st;
        *tail = made;
        tail = &made->next;
        node->u.count++;
        skip_space(r);
        if (peek(r) == '}') break;
        if (peek(r) != ',') return wrong(r, "expected ',' or '}'");
        r->at++;
        skip_space(r);
    }
    r->at++;
    return RP_OK;
}

static rp_status value(reader *r, size_t depth, rp_json **out)
{
    rp_json *node;

    if (depth > RP_JSON_MAX_DEPTH) return wrong(r, "more than 64 levels");
    node = rp_arena_take(r->arena, sizeof *node);
    if (node == NULL) return memory(r);
    node->offset = (size_t)(r->at - r->begin);
    *out = node;
    switch (peek(r)) {
    case '{': return object(r, depth, node);
    case '[': return array(r, depth, node);
    case '"':
        node->kind = RP_JSON_STRING;
        return string(r, &node->u.string.text, &node->u.string.size);
    case 'n':
    case 't':
    case 'f': return word(r, node);
    default: return number(r, node);
    }
}

rp_status rp_json_parse(rp_arena *arena, const char *text, size_t size, rp_json **out,
                        rp_json_error *error)
{
    reader r = {arena, text, text, text + size, error};
    rp_json *node = NULL;
    rp_status st;

    skip_space(&r);
    st = value(&r, 0, &node);
    if (st != RP_OK) return st;
    skip_space(&r);
    if (r.at != r.end) return wrong(&r, "unexpected text after the value");
    *out = node;
    return RP_OK;
}

const rp_json *rp_json_find(const rp_json *object, const char *key)
{
    if (object->kind != RP_JSON_OBJECT) return NULL;
    for (const rp_json *n = object->child; n != NULL; n = n->next)
        if (strcmp(n->key, key) == 0) return n;
    return NULL;
}

const char *rp_json_kind_text(rp_json_kind kind)
{
    switch (kind) {
    case RP_JSON_NULL: return "null";
    case RP_JSON_FALSE: return "false";
    case RP_JSON_TRUE: return "true";
    case RP_JSON_INTEGER:
    case RP_JSON_UNSIGNED: return "a whole number";
    case RP_JSON_NUMBER: return "a number";
    case RP_JSON_STRING: return "a string";
    case RP_JSON_ARRAY: return "an array";
    case RP_JSON_OBJECT: return "an object";
    }
    return "nothing";
}

void rp_json_put_tree(rp_text_buffer *out, const rp_json *value)
{
    bool is_array = value->kind == RP_JSON_ARRAY;

    assert(value->kind <= RP_JSON_OBJECT);
    switch (value->kind) {
    case RP_JSON_NULL: rp_json_put_raw(out, "null"); return;
    case RP_JSON_FALSE:
    case RP_JSON_TRUE: rp_json_put_boolean(out, value->kind == RP_JSON_TRUE); return;
    case RP_JSON_INTEGER: rp_json_put_integer(out, value->u.integer); return;
    case RP_JSON_UNSIGNED: rp_json_put_unsigned(out, value->u.number_unsigned); return;
    case RP_JSON_NUMBER: rp_json_put_number(out, value->u.number); return;
    case RP_JSON_STRING:
        rp_json_put_string(out, value->u.string.text, value->u.string.size);
        return;
    case RP_JSON_ARRAY:
    case RP_JSON_OBJECT: break;
    }
    rp_json_open(out, is_array ? '[' : '{');
    for (const rp_json *child = value->child; child != NULL; child = child->next) {
        if (!is_array) rp_json_key(out, child->key);
        rp_json_put_tree(out, child); /* as deep as the parser: RP_JSON_MAX_DEPTH */
    }
    rp_json_close(out, is_array ? ']' : '}');
}
