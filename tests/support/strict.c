/* SPDX-License-Identifier: Apache-2.0 */
#include "support/strict.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/printable.h"

/* strspn() that stops at the first other character. The one of the address sanitizer first
 * reads the whole text. */
static size_t span(const char *text, const char *accepted)
{
    size_t n = 0;

    while (text[n] != '\0' && strchr(accepted, text[n]) != NULL) n++;
    return n;
}

static const char *json_value(const char *at, const char **mistake);

static const char *json_blanks(const char *at)
{
    return at + span(at, " \t\r\n");
}

/* All of these functions return where they stopped, and set `*mistake` to the position of an
 * error. */
static const char *json_fail(const char *at, const char **mistake)
{
    if (*mistake == NULL) *mistake = at;
    return at;
}

/* Returns the number of bytes of the character at `at`; 0 if there is none, or if it is not
 * printable. */
static size_t character_bytes(const char *at)
{
    char spelling[RP_SPELT_BYTES];
    size_t bytes, spelt;

    if (*at == '\0') return 0;
    bytes = rp_spell(at, strnlen(at, 4), RP_SPELL_SHOWN, spelling, &spelt);
    return spelt == bytes && memcmp(spelling, at, bytes) == 0 ? bytes : 0;
}

static const char *json_string(const char *at, const char **mistake)
{
    if (*at != '"') return json_fail(at, mistake);
    for (at++; *at != '"';) {
        size_t bytes = character_bytes(at);

        if (bytes == 0 || (unsigned char)*at < 0x20) return json_fail(at, mistake);
        if (*at == '\\') {
            bytes = 2;
            if (at[1] == 'u') {
                if (span(at + 2, "0123456789abcdefABCDEF") < 4) return json_fail(at, mistake);
                bytes = 6;
            } else if (at[1] == '\0' || strchr("\"\\/bfnrt", at[1]) == NULL) {
                return json_fail(at, mistake);
            }
        }
        at += bytes;
    }
    return at + 1;
}

static const char *json_digits(const char *at, const char **mistake)
{
    size_t n = span(at, "0123456789");

    return n > 0 ? at + n : json_fail(at, mistake);
}

static const char *json_number(const char *at, const char **mistake)
{
    if (*at == '-') at++;
    at = *at == '0' ? at + 1 : json_digits(at, mistake);
    if (*at == '.') at = json_digits(at + 1, mistake);
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '+' || *at == '-') at++;
        at = json_digits(at, mistake);
    }
    return at;
}

static bool json_seen(const char *keys[], const size_t sizes[], size_t count, const char *key,
                      size_t size)
{
    for (size_t i = 0; i < count; i++)
        if (sizes[i] == size && memcmp(keys[i], key, size) == 0) return true;
    return false;
}

static const char *json_object(const char *at, const char **mistake)
{
    const char *keys[128];
    size_t sizes[128], count = 0;

    at = json_blanks(at + 1);
    if (*at == '}') return at + 1;
    for (;;) {
        const char *key = at;

        at = json_string(at, mistake);
        if (*mistake != NULL || count == 128 ||
            json_seen(keys, sizes, count, key, (size_t)(at - key)))
            return json_fail(key, mistake);
        keys[count] = key;
        sizes[count++] = (size_t)(at - key);
        at = json_blanks(at);
        if (*at != ':') return json_fail(at, mistake);
        at = json_blanks(json_value(json_blanks(at + 1), mistake));
        if (*mistake != NULL) return at;
        if (*at == '}') return at + 1;
        if (*at != ',') return json_fail(at, mistake);
        at = json_blanks(at + 1);
    }
}

static const char *json_array(const char *at, const char **mistake)
{
    at = json_blanks(at + 1);
    if (*at == ']') return at + 1;
    for (;;) {
        at = json_blanks(json_value(at, mistake));
        if (*mistake != NULL) return at;
        if (*at == ']') return at + 1;
        if (*at != ',') return json_fail(at, mistake);
        at = json_blanks(at + 1);
    }
}

static const char *json_value(const char *at, const char **mistake)
{
    static const char *const words[] = {"true", "false", "null"};

    if (*at == '{') return json_object(at, mistake);
    if (*at == '[') return json_array(at, mistake);
    if (*at == '"') return json_string(at, mistake);
    for (size_t i = 0; i < 3; i++)
        if (memcmp(at, words[i], strnlen(at, strlen(words[i]))) == 0 &&
            strnlen(at, strlen(words[i])) == strlen(words[i]))
            return at + strlen(words[i]);
    return json_number(at, mistake);
}

const char *rp_test_json_mistake(const char *text, size_t size)
{
    const char *mistake = NULL, *at;

    if (memchr(text, '\0', size) != NULL || text[size] != '\0') return "no zero may be in it";
    at = json_blanks(json_value(json_blanks(text), &mistake));
    if (mistake == NULL && *at != '\0') mistake = at;
    return mistake;
}

enum { MOST_LINES = 65536, NAME_BYTES = 128 };

typedef struct scrape {
    const char *series[MOST_LINES]; /* the start of each */
    size_t series_bytes[MOST_LINES];
    size_t count;
    char families[512][NAME_BYTES];
    size_t family_count;
    char family[NAME_BYTES], type[NAME_BYTES]; /* the current family */
    bool typed;
    double last_bucket; /* of the current histogram; -1: none */
    bool last_was_inf;
} scrape;

static size_t name_length(const char *at, bool colon)
{
    size_t n = 0;

    while ((at[n] >= 'a' && at[n] <= 'z') || (at[n] >= 'A' && at[n] <= 'Z') || at[n] == '_' ||
           (colon && at[n] == ':') || (n > 0 && at[n] >= '0' && at[n] <= '9'))
        n++;
    return n;
}

static const char *read_help(scrape *s, const char *at)
{
    size_t n = name_length(at, true);

    if (n == 0 || n >= NAME_BYTES || at[n] != ' ') return "HELP without a name";
    if (s->family_count == 512) return "too many families for this test";
    (void)snprintf(s->family, sizeof s->family, "%.*s", (int)n, at);
    for (size_t i = 0; i < s->family_count; i++)
        if (strcmp(s->families[i], s->family) == 0) return "a family comes twice";
    memcpy(s->families[s->family_count++], s->family, NAME_BYTES);
    s->typed = false;
    s->last_bucket = -1;
    return at[n + 1] == '\n' ? "HELP without a text" : NULL;
}

static const char *read_type(scrape *s, const char *at)
{
    size_t n = strlen(s->family), length;

    if (strncmp(at, s->family, n) != 0 || at[n] != ' ' || s->typed)
        return "TYPE does not follow its HELP";
    length = strcspn(at + n + 1, "\n");
    (void)snprintf(s->type, sizeof s->type, "%.*s", (int)length, at + n + 1);
    if (strcmp(s->type, "counter") != 0 && strcmp(s->type, "gauge") != 0 &&
        strcmp(s->type, "histogram") != 0)
        return "an unknown TYPE";
    if ((strcmp(s->type, "counter") == 0) !=
        (n > 6 && strcmp(s->family + n - 6, "_total") == 0))
        return "counters, and only they, end in _total";
    s->typed = true;
    return NULL;
}

/* Reads {a="b",c="d"}; `le` receives the value of that label, if there is one. */
static const char *read_labels(const char **place, char *le)
{
    const char *at = *place;

    if (*at != '{') return NULL;
    do {
        const char *name = ++at, *value;
        size_t n = name_length(name, false);

        if (n == 0 || name[n] != '=' || name[n + 1] != '"') return "a label without a name";
        value = at = name + n + 2;
        while (*at != '"') {
            size_t bytes = character_bytes(at);

            if (bytes == 0 || *at == '\n') return "a label that is no UTF-8, or does not end";
            if (*at == '\\' && (at[1] == '\0' || strchr("\\\"n", at[1]) == NULL))
                return "a wrong escape in a label";
            at += *at == '\\' ? 2 : bytes;
        }
        if (n == 2 && memcmp(name, "le", 2) == 0)
            (void)snprintf(le, NAME_BYTES, "%.*s", (int)(at - value), value);
        at++;
    } while (*at == ',');
    if (*at != '}') return "labels that do not end";
    *place = at + 1;
    return NULL;
}

static const char *read_number(const char *at, double *number)
{
    char *end;

    *number = strtod(at, &end);
    if (end == at || *end != '\n') return "a value that is no number";
    if (isinf(*number) && *at != '+' && *at != '-') return "infinity without a sign";
    if (isnan(*number) && strncmp(at, "NaN\n", 4) != 0) return "NaN misspelt";
    return NULL;
}

static const char *check_histogram(scrape *s, const char *suffix, const char *le, double number)
{
    if (strcmp(suffix, "_bucket") == 0) {
        if (*le == '\0') return "a bucket without le";
        if (s->last_was_inf || s->last_bucket < 0) s->last_bucket = 0; /* a new series */
        if (number < s->last_bucket) return "buckets must not fall";
        s->last_bucket = number;
        s->last_was_inf = strcmp(le, "+Inf") == 0;
        return NULL;
    }
    if (!s->last_was_inf) return "a histogram without its last bucket";
    if (strcmp(suffix, "_sum") == 0) return number >= 0 ? NULL : "a negative sum";
    if (strcmp(suffix, "_count") == 0)
        return number == s->last_bucket ? NULL : "count and last bucket differ";
    return "a sample that no histogram has";
}

static const char *read_sample(scrape *s, const char *line)
{
    size_t family = strlen(s->family), n = name_length(line, true);
    char suffix[NAME_BYTES], le[NAME_BYTES] = "";
    const char *at = line + n, *mistake;
    double number;

    if (!s->typed || strncmp(line, s->family, family) != 0 || n >= NAME_BYTES)
        return "a sample outside its family";
    (void)snprintf(suffix, sizeof suffix, "%.*s", (int)(n - family), line + family);
    mistake = read_labels(&at, le);
    if (mistake != NULL) return mistake;
    for (size_t i = 0; i < s->count; i++)
        if (s->series_bytes[i] == (size_t)(at - line) &&
            memcmp(s->series[i], line, s->series_bytes[i]) == 0)
            return "a series comes twice";
    if (s->count == MOST_LINES) return "too many series for this test";
    s->series[s->count] = line;
    s->series_bytes[s->count++] = (size_t)(at - line);
    if (*at != ' ') return "a series without a value";
    mistake = read_number(at + 1, &number);
    if (mistake != NULL) return mistake;
    if (strcmp(s->type, "histogram") == 0) return check_histogram(s, suffix, le, number);
    if (suffix[0] != '\0') return "a sample outside its family";
    return strcmp(s->type, "counter") == 0 && !(number >= 0) ? "a negative counter" : NULL;
}

const char *rp_test_prometheus_mistake(const char *text, size_t size)
{
    static char message[512];
    scrape *s = calloc(1, sizeof *s);
    const char *mistake = NULL, *line = text;

    if (s == NULL) return "no memory";
    if (memchr(text, '\0', size) != NULL || size == 0 || text[size - 1] != '\n')
        mistake = "it must end in a newline, and have no zero";
    while (mistake == NULL && line < text + size) {
        if (strncmp(line, "# HELP ", 7) == 0)
            mistake = read_help(s, line + 7);
        else if (strncmp(line, "# TYPE ", 7) == 0)
            mistake = read_type(s, line + 7);
        else
            mistake = read_sample(s, line);
        if (mistake == NULL) line = strchr(line, '\n') + 1;
    }
    free(s);
    if (mistake == NULL) return NULL;
    (void)snprintf(message, sizeof message, "%.*s: %s", (int)(strcspn(line, "\n") % 300), line,
                   mistake);
    return message;
}

double rp_test_prometheus_value(const char *text, const char *series)
{
    size_t n = strlen(series);

    for (const char *at = text; (at = strstr(at, series)) != NULL; at++)
        if ((at == text || at[-1] == '\n') && at[n] == ' ') return strtod(at + n, NULL);
    return NAN;
}
