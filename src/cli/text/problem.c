/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/problem.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/nearest.h"
#include "cli/text/units.h"
#include "reprise/printable.h"

enum { MAX_TEXT = 4095 };

rp_status rp_problem_set(rp_problem *problem, const rp_place *place, const char *format, ...)
{
    char text[2 * sizeof problem->text]; /* longer: rp_printable() cuts between characters */
    size_t used = 0;
    va_list args;

    if (place != NULL && place->file != NULL) {
        (void)snprintf(text, sizeof problem->text / 2, "%s:%zu:%zu: ", place->file, place->line,
                       place->column);
        used = strlen(text);
    }
    assert(used < sizeof text);
    va_start(args, format);
    (void)vsnprintf(text + used, sizeof text - used, format, args);
    va_end(args);
    (void)rp_printable(text, strlen(text), problem->text, sizeof problem->text);
    return RP_INVALID;
}

rp_status rp_problem_memory(rp_problem *problem)
{
    (void)rp_problem_set(problem, NULL, "out of memory");
    return RP_NO_RESOURCE;
}

/* Writes an error with the expected type and the value. Returns RP_INVALID. */
static rp_status expected(const rp_setting *v, const char *what, rp_problem *problem)
{
    assert(v->key != NULL && v->text != NULL);
    if (v->text[0] == '\0')
        return rp_problem_set(problem, &v->place, "%s: expected %s, got nothing", v->key, what);
    return rp_problem_set(problem, &v->place, "%s: expected %s, got %s'%.200s'", v->key, what,
                          v->quoted ? "the string " : "", v->text);
}

rp_status rp_setting_integer(const rp_setting *v, int64_t low, int64_t high, int64_t *out,
                             rp_problem *problem)
{
    char what[96];
    int64_t value;

    assert(low <= high);
    if (v->quoted || !rp_parse_integer(v->text, &value) || value < low || value > high) {
        (void)snprintf(what, sizeof what, "a whole number from %lld to %lld", (long long)low,
                       (long long)high);
        return expected(v, what, problem);
    }
    *out = value;
    return RP_OK;
}

rp_status rp_setting_unsigned(const rp_setting *v, uint64_t *out, rp_problem *problem)
{
    if (v->quoted || !rp_parse_unsigned(v->text, out))
        return expected(v, "a whole number from 0 to 18446744073709551615", problem);
    return RP_OK;
}

rp_status rp_setting_number(const rp_setting *v, double low, double high, double *out,
                            rp_problem *problem)
{
    char what[96];
    double value;

    assert(low <= high);
    if (v->quoted || !rp_parse_number(v->text, &value) || value < low || value > high) {
        (void)snprintf(what, sizeof what, "a number from %g to %g", low, high);
        return expected(v, what, problem);
    }
    *out = value;
    return RP_OK;
}

rp_status rp_setting_boolean(const rp_setting *v, bool *out, rp_problem *problem)
{
    if (v->quoted || !rp_parse_boolean(v->text, out))
        return expected(v, "true or false", problem);
    return RP_OK;
}

rp_status rp_setting_size(const rp_setting *v, uint64_t whole, uint64_t *out,
                          rp_problem *problem)
{
    size_t length = strlen(v->text), used;
    char last;

    if (!v->quoted && rp_parse_size(v->text, whole, out)) return RP_OK;
    (void)expected(v,
                   whole != 0 ? "a size such as 4GiB, or a part of the memory, at most 100%"
                              : "a size such as 64MiB",
                   problem);
    used = strlen(problem->text);
    last = length > 0 ? v->text[length - 1] : '\0';
    if (v->text[0] >= '0' && v->text[0] <= '9' && (last | 0x20) >= 'a' && (last | 0x20) <= 'z')
        (void)snprintf(problem->text + used, sizeof problem->text - used,
                       "; units are KiB, MiB, GiB, TiB, or kB, MB, GB, TB");
    return RP_INVALID;
}

rp_status rp_setting_duration(const rp_setting *v, int64_t unit_ms, int64_t high_ms,
                              int64_t *ms, rp_problem *problem)
{
    char what[96];
    int64_t value;

    assert(unit_ms > 0 && high_ms >= 0);
    if (v->quoted || !rp_parse_duration(v->text, unit_ms, &value) || value > high_ms) {
        (void)snprintf(what, sizeof what, "a time from 0 to %lld s, such as %s",
                       (long long)high_ms / 1000, unit_ms == 1000 ? "30 or 30s" : "500 or 10s");
        return expected(v, what, problem);
    }
    *ms = value;
    return RP_OK;
}

rp_status rp_setting_text(const rp_setting *v, const char **out, rp_problem *problem)
{
    if (v->text[0] == '\0') return expected(v, "a text", problem);
    if (strlen(v->text) > MAX_TEXT)
        return rp_problem_set(problem, &v->place, "%s: a text of %zu bytes is over %d", v->key,
                              strlen(v->text), MAX_TEXT);
    *out = v->text;
    return RP_OK;
}

rp_status rp_setting_choice(const rp_setting *v, const char *const *words, size_t count,
                            int *out, rp_problem *problem)
{
    rp_nearest nearest;
    char list[160];
    size_t used = 0;

    assert(count > 0 && count <= INT32_MAX);
    rp_nearest_init(&nearest, v->text);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(v->text, words[i]) == 0) {
            *out = (int)i;
            return RP_OK;
        }
        rp_nearest_offer(&nearest, words[i]);
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                     i == 0 ? "" : (i + 1 == count ? " or " : ", "), words[i]);
    }
    if (rp_nearest_get(&nearest) != NULL)
        return rp_problem_set(problem, &v->place,
                              "%s: unknown value '%.100s', did you mean '%s'? (%s)", v->key,
                              v->text, rp_nearest_get(&nearest), list);
    return expected(v, list, problem);
}
