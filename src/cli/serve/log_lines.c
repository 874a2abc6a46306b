/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants:
 *   G1  a cursor has used < size; `full` is set once a part did not fit;
 *   G2  rp_fields: size < RP_FIELDS_BYTES, and text[size] is the terminator;
 *   G3  rp_log_rate: event_count <= RP_LOG_EVENTS. */
#include "cli/serve/log_lines.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/text/json_tree.h"
#include "cli/text/units.h"
#include "reprise/printable.h"

enum { CUT_BYTES = 32, VALUE_BYTES = 2048 };

static const char *const level_names[] = {"error", "warning", "info", "debug"};

/* Writes text to an array. A part that does not fit as a whole is not written. */
typedef struct cursor {
    char *text;
    size_t size, used;
    bool full;
} cursor;

static void put(cursor *c, const char *text, size_t length)
{
    assert(c->used < c->size); /* G1 */
    if (c->full || c->size - c->used <= length) {
        c->full = true;
        return;
    }
    memcpy(c->text + c->used, text, length);
    c->used += length;
}

static void put_text(cursor *c, const char *text)
{
    put(c, text, strlen(text));
}

static void put_char(cursor *c, char byte)
{
    put(c, &byte, 1);
}

static void put_part(void *c, const char *part, size_t size)
{
    put(c, part, size);
}

/* Writes text in double quotes. */
static void put_quoted(cursor *c, const char *text, rp_spelling how)
{
    put_char(c, '"');
    rp_spell_text(text, strlen(text), how, put_part, c);
    put_char(c, '"');
}

static bool needs_quotes(const char *value)
{
    if (value[0] == '\0') return true;
    for (const unsigned char *p = (const unsigned char *)value; *p != '\0'; p++)
        if (*p <= ' ' || *p == '"' || *p == '\\' || *p == '=' || *p >= 0x7f) return true;
    return false;
}

static void put_logfmt(cursor *c, const char *key, const char *value)
{
    if (c->used > 0) put_char(c, ' ');
    put_text(c, key);
    put_char(c, '=');
    if (needs_quotes(value))
        put_quoted(c, value, RP_SPELL_QUOTED);
    else
        put_text(c, value);
}

void rp_fields_init(rp_fields *fields)
{
    fields->size = 0;
    fields->text[0] = '\0';
}

void rp_fields_add(rp_fields *fields, const char *key, const char *format, ...)
{
    cursor c = {fields->text, sizeof fields->text, fields->size, false};
    char value[VALUE_BYTES];
    va_list args;

    assert(fields->size < sizeof fields->text && fields->text[fields->size] == '\0'); /* G2 */
    va_start(args, format);
    (void)vsnprintf(value, sizeof value, format, args);
    va_end(args);
    put_logfmt(&c, key, value);
    if (!c.full) fields->size = c.used;
    assert(fields->size < sizeof fields->text); /* G2 */
    fields->text[fields->size] = '\0';
}

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Parses `count` hexadecimal digits. Returns -1 if they are not. */
static int digits(const char *text, int count)
{
    int number = 0;

    for (int i = 0; i < count; i++) {
        if (hex(text[i]) < 0) return -1;
        number = number * 16 + hex(text[i]);
    }
    return number;
}

/* Writes the character of an escape. Returns the number of characters after the backslash. */
static size_t put_unescaped(cursor *c, const char *escape)
{
    int number = escape[0] == 'x' ? digits(escape + 1, 2) : -1;

    if (escape[0] == 'u') number = digits(escape + 1, 4);
    if (number >= 0 && escape[0] == 'x') { /* a byte */
        put_char(c, (char)number);
        return 3;
    }
    if (number >= 0x80) {
        char character[RP_UTF8_BYTES];

        put(c, character, rp_utf8_encode((uint32_t)number, character));
        return 5;
    }
    put_char(c, escape[0] == 'n'   ? '\n'
                : escape[0] == 't' ? '\t'
                : escape[0] == 'r' ? '\r'
                                   : escape[0]);
    return 1;
}

bool rp_fields_next(const char **fields, char *key, size_t key_bytes, char *value,
                    size_t value_bytes)
{
    cursor k = {key, key_bytes, 0, false}, v = {value, value_bytes, 0, false};
    const char *p = *fields + strspn(*fields, " ");

    assert(key_bytes > 0 && value_bytes > 0);
    if (*p == '\0') return false;
    for (; *p != '\0' && *p != '=' && *p != ' '; p++) put_char(&k, *p);
    if (*p == '=' && p[1] == '"') {
        for (p += 2; *p != '\0' && *p != '"';) {
            if (*p == '\\' && p[1] != '\0')
                p += 1 + put_unescaped(&v, p + 1);
            else
                put_char(&v, *p++);
        }
        if (*p == '"') p++;
    } else if (*p == '=') {
        for (p++; *p != '\0' && *p != ' '; p++) put_char(&v, *p);
    }
    key[k.used] = '\0';
    value[v.used] = '\0';
    *fields = p;
    return true;
}

/* Returns true if the text is a number of JSON. */
static bool is_json_number(const char *text)
{
    const char *digits = text + (text[0] == '-' ? 1 : 0);
    double value;

    if (digits[0] == '0' && digits[1] != '\0' && digits[1] != '.') return false;
    if (digits[0] < '0' || digits[0] > '9' || strchr(digits, 'e') != NULL ||
        strchr(digits, 'E') != NULL || text[strlen(text) - 1] == '.')
        return false;
    return rp_parse_number(text, &value);
}

static void put_json(cursor *c, const char *key, const char *value)
{
    put_char(c, c->used == 0 ? '{' : ',');
    put_quoted(c, key, RP_SPELL_JSON);
    put_char(c, ':');
    if (is_json_number(value) || strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
        put_text(c, value);
    else
        put_quoted(c, value, RP_SPELL_JSON);
}

/* Writes a field, or nothing of it if it does not fit. */
static void put_field(cursor *c, bool json, const char *key, const char *value)
{
    size_t before = c->used;
    bool cut = c->full;

    c->full = false;
    if (json)
        put_json(c, key, value);
    else
        put_logfmt(c, key, value);
    assert(c->used >= before);
    if (c->full) c->used = before;
    c->full = c->full || cut;
}

static void time_text(int64_t wall_ns, char *text, size_t size)
{
    time_t seconds = (time_t)(wall_ns / 1000000000);
    char date[32];
    struct tm tm;

    if (gmtime_r(&seconds, &tm) == NULL ||
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        (void)snprintf(date, sizeof date, "%lld", (long long)seconds);
    (void)snprintf(text, size, "%s.%03dZ", date, (int)(wall_ns / 1000000 % 1000));
}

size_t rp_log_line(const rp_log_entry *entry, bool json, char *line, size_t size)
{
    cursor c = {line, size - CUT_BYTES, 0, false};
    const char *fields = entry->fields != NULL ? entry->fields : "";
    char key[64], value[VALUE_BYTES];

    assert(size >= 512 && entry->event != NULL);
    time_text(entry->wall_ns, value, sizeof value);
    put_field(&c, json, "time", value);
    put_field(&c, json, "level", level_names[entry->level & 3]);
    put_field(&c, json, "event", entry->event);
    if (entry->suppressed > 0) {
        (void)snprintf(value, sizeof value, "%" PRIu64, entry->suppressed);
        put_field(&c, json, "suppressed", value);
    }
    while (rp_fields_next(&fields, key, sizeof key, value, sizeof value))
        put_field(&c, json, key, value);
    c.size = size;
    if (c.full) {
        c.full = false;
        put_field(&c, json, "cut", "true");
    }
    put_text(&c, json ? "}\n" : "\n");
    assert(!c.full && line[c.used - 1] == '\n'); /* CUT_BYTES are enough */
    return c.used;
}

bool rp_log_rate_admit(rp_log_rate *rate, const char *event, int64_t now_ns,
                       uint64_t *suppressed)
{
    struct rp_log_rate_event *e;
    size_t i = 0;

    assert(rate->event_count <= RP_LOG_EVENTS && rate->burst > 0); /* G3 */
    while (i < rate->event_count &&
           strncmp(rate->events[i].name, event, sizeof rate->events[i].name - 1) != 0)
        i++;
    if (i == RP_LOG_EVENTS) i = RP_LOG_EVENTS - 1;
    e = &rate->events[i];
    if (i == rate->event_count) {
        rate->event_count++;
        *e = (struct rp_log_rate_event){.begin_ns = now_ns};
        (void)snprintf(e->name, sizeof e->name, "%s", event);
    }
    if (now_ns - e->begin_ns >= rate->window_ns) {
        e->begin_ns = now_ns;
        e->count = 0;
    }
    if (e->count >= rate->burst) {
        e->suppressed++;
        return false;
    }
    e->count++;
    *suppressed = e->suppressed;
    e->suppressed = 0;
    return true;
}
