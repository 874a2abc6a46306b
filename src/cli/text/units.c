/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/units.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit {
    const char *name;
    uint64_t factor;
} unit;

static const unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"K", 1ull << 10},
    {"KiB", 1ull << 10},
    {"M", 1ull << 20},
    {"MiB", 1ull << 20},
    {"G", 1ull << 30},
    {"GiB", 1ull << 30},
    {"T", 1ull << 40},
    {"TiB", 1ull << 40},
    {"kB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
};

static const unit time_units[] = {
    {"ms", 1},
    {"s", 1000},
    {"m", 60 * 1000},
    {"h", 60 * 60 * 1000},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Parses the digits at `*at` and advances it. */
static bool digits(const char **at, uint64_t *out)
{
    const char *p = *at;
    uint64_t value = 0;

    if (!is_digit(*p)) return false;
    for (; is_digit(*p) || (*p == '_' && is_digit(p[1])); p++) {
        if (*p == '_') continue;
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return false;
    }
    *at = p;
    *out = value;
    return true;
}

bool rp_parse_unsigned(const char *text, uint64_t *out)
{
    uint64_t value;

    if (!digits(&text, &value) || *text != '\0') return false;
    *out = value;
    return true;
}

bool rp_parse_integer(const char *text, int64_t *out)
{
    bool negative = *text == '-';
    uint64_t value;

    if (!rp_parse_unsigned(text + (negative ? 1 : 0), &value)) return false;
    if (value > (uint64_t)INT64_MAX) return false;
    *out = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

bool rp_parse_number(const char *text, double *out)
{
    const char *p = text;
    double value;
    char *end;

    /* strtod() also takes spaces, hexadecimal numbers, infinity and NaN. */
    if (*p == '-' || *p == '+') p++;
    if (!is_digit(*p) && !(*p == '.' && is_digit(p[1]))) return false;
    if (text[strspn(text, "+-.eE0123456789")] != '\0') return false;
    value = strtod(text, &end);
    if (*end != '\0' || !isfinite(value)) return false;
    *out = value;
    return true;
}

bool rp_parse_boolean(const char *text, bool *out)
{
    bool yes = strcmp(text, "true") == 0;

    if (!yes && strcmp(text, "false") != 0) return false;
    *out = yes;
    return true;
}

/* Parses "12" or "12.5" into the whole part and the fraction, and advances `*at`. */
static bool decimal(const char **at, uint64_t *whole, double *rest)
{
    double place = 0.1;

    *rest = 0;
    if (!digits(at, whole)) return false;
    if (**at != '.') return true;
    if (!is_digit((*at)[1])) return false;
    for ((*at)++; is_digit(**at); (*at)++, place /= 10) *rest += place * (**at - '0');
    assert(*rest >= 0 && *rest <= 1);
    return true;
}

/* Parses a decimal, an optional space and the name of a unit, and multiplies. */
static bool with_unit(const char *text, const unit *units, size_t unit_count, uint64_t *out)
{
    uint64_t whole, more;
    double rest;

    if (!decimal(&text, &whole, &rest)) return false;
    if (text[0] == ' ' && text[1] != '\0') text++;
    for (size_t i = 0; i < unit_count; i++) {
        if (strcmp(text, units[i].name) != 0) continue;
        if (__builtin_mul_overflow(whole, units[i].factor, &whole)) return false;
        more = (uint64_t)(rest * (double)units[i].factor);
        if (rest > 0 && units[i].factor == 1) return false; /* a fraction of a byte */
        return !__builtin_add_overflow(whole, more, out);
    }
    return false;
}

static bool percentage(const char *text, uint64_t whole, uint64_t *out)
{
    uint64_t part;
    double rest, share;

    if (whole == 0 || !decimal(&text, &part, &rest)) return false;
    if (text[0] == ' ' && text[1] != '\0') text++;
    if (strcmp(text, "%") != 0 || part > 100) return false;
    share = ((double)part + rest) / 100;
    if (share <= 0 || share > 1) return false;
    *out = share == 1 ? whole : (uint64_t)(share * (double)whole);
    return true;
}

bool rp_parse_size(const char *text, uint64_t whole, uint64_t *bytes)
{
    if (strchr(text, '%') != NULL) return percentage(text, whole, bytes);
    return with_unit(text, size_units, sizeof size_units / sizeof size_units[0], bytes);
}

bool rp_parse_duration(const char *text, int64_t unit_ms, int64_t *ms)
{
    unit plain = {"", (uint64_t)unit_ms};
    uint64_t value;

    assert(unit_ms > 0);
    if (!with_unit(text, &plain, 1, &value) &&
        !with_unit(text, time_units, sizeof time_units / sizeof time_units[0], &value))
        return false;
    if (value > (uint64_t)INT64_MAX) return false;
    *ms = (int64_t)value;
    return true;
}

uint64_t rp_per_second(uint64_t count, int64_t elapsed_ns)
{
    double rate = (double)count * 1e9 / (double)elapsed_ns;

    assert(elapsed_ns > 0);
    return rate < 0x1p64 ? (uint64_t)rate : UINT64_MAX;
}

char *rp_size_text(uint64_t bytes, char *text, size_t size)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t i = 0;

    assert(size >= 16);
    for (; value >= 1024 && i + 1 < sizeof names / sizeof names[0]; i++) value /= 1024;
    if (value == floor(value))
        (void)snprintf(text, size, "%.0f %s", value, names[i]);
    else
        (void)snprintf(text, size, "%.1f %s", value, names[i]);
    return text;
}

const char *rp_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

char *rp_elapsed_text(int64_t ns, char *text, size_t size)
{
    double seconds = (double)ns / 1e9;

    if (seconds < 9.95)
        (void)snprintf(text, size, "%.1f s", seconds);
    else if (seconds < 120)
        (void)snprintf(text, size, "%.0f s", seconds);
    else if (seconds < 2 * 3600)
        (void)snprintf(text, size, "%.0f min", seconds / 60);
    else if (seconds < 48 * 3600)
        (void)snprintf(text, size, "%.0f h", seconds / 3600);
    else
        (void)snprintf(text, size, "%.0f d", seconds / 86400);
    return text;
}

char *rp_decimal_text(double value, char *text, size_t size)
{
    assert(size >= 32);
    for (int precision = 6; precision <= 17; precision++) {
        (void)snprintf(text, size, "%.*g", precision, value);
        if (strtod(text, NULL) == value) break;
    }
    return text;
}
