/* SPDX-License-Identifier: Apache-2.0 */
/* Each key has one declaration: the kind of its value, its field and its bounds. Parsing and
 * printing both use it.
 *
 * Invariants of settings after rp_table_settings_finish():
 *   E1  sampler < RP_FORMS, and remover is a plain selector;
 *   E2  1 <= max_size, 1 <= min_size, and with a ratio min_diff <= max_diff unless both were
 *       given. */
#include "cli/serve/table_spec.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/nearest.h"
#include "cli/text/units.h"

enum { MAX_ITEMS = 1 << 30, DEFAULT_ITEMS = 1000000 };

static const double default_exponent = 0.6; /* of Schaul et al. 2016, proportional variant */

static const char *const forms[RP_FORMS] = {
    [RP_FIFO] = "fifo",         [RP_LIFO] = "lifo",
    [RP_UNIFORM] = "uniform",   [RP_PRIORITIZED] = "prioritized",
    [RP_MIN_HEAP] = "min_heap", [RP_MAX_HEAP] = "max_heap",
    [RP_FORM_QUEUE] = "queue",  [RP_FORM_STACK] = "stack",
};

typedef enum kind { SELECTOR, COUNT, NUMBER, BYTES, SWITCH, SEED } kind;

typedef struct key_info {
    const char *name;
    size_t offset;
    double low, high; /* bounds of a COUNT or a NUMBER; high: number of words of a SELECTOR */
    kind kind;
    bool any_form; /* allowed for a queue and a stack too */
} key_info;

#define AT(field) offsetof(rp_table_settings, field)

static const key_info infos[RP_TABLE_KEYS] = {
    [RP_KEY_SAMPLER] = {"sampler", AT(sampler), 0, RP_FORMS, SELECTOR, true},
    [RP_KEY_EXPONENT] = {"exponent", AT(exponent), -RP_MAX_EXPONENT, RP_MAX_EXPONENT, NUMBER,
                         false},
    [RP_KEY_REMOVER] = {"remover", AT(remover), 0, RP_MAX_HEAP + 1, SELECTOR, false},
    [RP_KEY_REMOVER_EXPONENT] = {"remover_exponent", AT(remover_exponent), -RP_MAX_EXPONENT,
                                 RP_MAX_EXPONENT, NUMBER, false},
    [RP_KEY_MAX_SIZE] = {"max_size", AT(max_size), 1, MAX_ITEMS, COUNT, true},
    [RP_KEY_MIN_SIZE] = {"min_size", AT(min_size), 1, MAX_ITEMS, COUNT, false},
    [RP_KEY_SAMPLES_PER_INSERT] = {"samples_per_insert", AT(samples_per_insert),
                                   RP_MIN_SAMPLES_PER_INSERT, RP_MAX_SAMPLES_PER_INSERT, NUMBER,
                                   false},
    [RP_KEY_ERROR_BUFFER] = {"error_buffer", AT(error_buffer), 0, 1e15, NUMBER, false},
    [RP_KEY_MIN_DIFF] = {"min_diff", AT(min_diff), -DBL_MAX, DBL_MAX, NUMBER, false},
    [RP_KEY_MAX_DIFF] = {"max_diff", AT(max_diff), -DBL_MAX, DBL_MAX, NUMBER, false},
    [RP_KEY_MAX_TIMES_SAMPLED] = {"max_times_sampled", AT(max_times_sampled), 0, INT32_MAX,
                                  COUNT, false},
    [RP_KEY_MAX_BYTES] = {"max_bytes", AT(max_bytes), 0, 0, BYTES, true},
    [RP_KEY_SOFT_LIMIT] = {"soft_limit", AT(soft_limit), 0, 0, SWITCH, false},
    [RP_KEY_SEED] = {"seed", AT(seed), 0, 0, SEED, true},
};

static bool is_given(const rp_table_settings *t, rp_table_key key)
{
    assert(key < RP_TABLE_KEYS);
    return (t->given & (1u << key)) != 0;
}

/* Returns true if the table is neither a queue nor a stack. */
static bool is_plain(const rp_table_settings *t)
{
    return t->sampler < RP_FORM_QUEUE;
}

const char *rp_table_key_name(rp_table_key key)
{
    assert(key < RP_TABLE_KEYS);
    return infos[key].name;
}

rp_table_key rp_table_key_find(const char *name)
{
    for (int i = 0; i < RP_TABLE_KEYS; i++)
        if (strcmp(infos[i].name, name) == 0) return (rp_table_key)i;
    return RP_TABLE_KEYS;
}

void rp_table_settings_init(rp_table_settings *table, const char *name, const char *title,
                            const rp_place *place)
{
    *table = (rp_table_settings){.name = name, .title = title, .place = *place};
}

rp_status rp_table_settings_set(rp_table_settings *table, rp_table_key key,
                                const rp_setting *value, uint64_t memory, rp_problem *problem)
{
    const key_info *info = &infos[key];
    void *at = (char *)table + info->offset;
    rp_status st = RP_OK;

    assert(key < RP_TABLE_KEYS && value->text != NULL);
    static_assert(RP_TABLE_KEYS <= 32, "`given` has a bit for each key");
    if (is_given(table, key))
        return rp_problem_set(problem, &value->place, "%s: given twice", value->key);
    switch (info->kind) {
    case SELECTOR: st = rp_setting_choice(value, forms, (size_t)info->high, at, problem); break;
    case COUNT:
        st = rp_setting_integer(value, (int64_t)info->low, (int64_t)info->high, at, problem);
        break;
    case NUMBER: st = rp_setting_number(value, info->low, info->high, at, problem); break;
    case BYTES: st = rp_setting_size(value, memory, at, problem); break;
    case SWITCH: st = rp_setting_boolean(value, at, problem); break;
    case SEED: st = rp_setting_unsigned(value, at, problem); break;
    }
    if (st == RP_OK) table->given |= 1u << key;
    return st;
}

/* Names that papers and other libraries have for a key. */
static const char *synonym(const char *name)
{
    static const char *const words[][2] = {
        {"alpha", "exponent"},
        {"capacity", "max_size"},
        {"priority_exponent", "exponent"},
        {"replay_ratio", "samples_per_insert"},
        {"size", "max_size"},
        {"spi", "samples_per_insert"},
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (rp_edit_distance(name, words[i][0]) == 0) return words[i][1];
    return NULL;
}

char *rp_table_key_hint(const char *name, rp_table_key first, const char *more,
                        char text[RP_TABLE_KEY_HINT_BYTES])
{
    const char *best = synonym(name);
    rp_nearest nearest;
    size_t used;

    rp_nearest_init(&nearest, name);
    if (more != NULL) rp_nearest_offer(&nearest, more);
    for (int i = 0; i < RP_TABLE_KEYS; i++) rp_nearest_offer(&nearest, infos[i].name);
    if (best == NULL) best = rp_nearest_get(&nearest);
    if (best != NULL) {
        (void)snprintf(text, RP_TABLE_KEY_HINT_BYTES, ", did you mean '%s'?", best);
        return text;
    }
    (void)snprintf(text, RP_TABLE_KEY_HINT_BYTES, "; the keys are %s", infos[first].name);
    for (int i = (int)first + 1; i < RP_TABLE_KEYS; i++) {
        used = strlen(text);
        (void)snprintf(text + used, RP_TABLE_KEY_HINT_BYTES - used, ", %s", infos[i].name);
    }
    used = strlen(text);
    if (more != NULL) (void)snprintf(text + used, RP_TABLE_KEY_HINT_BYTES - used, ", %s", more);
    return text;
}

static rp_status unknown_key(const rp_table_settings *t, const char *name, rp_problem *problem)
{
    char hint[RP_TABLE_KEY_HINT_BYTES];

    return rp_problem_set(problem, &t->place, "%s: unknown key '%.100s'%s", t->title, name,
                          rp_table_key_hint(name, RP_KEY_EXPONENT, NULL, hint));
}

/* Parses a part of the line: "key=value", or, unless `key` is RP_TABLE_KEYS, the value of
 * `key`. */
static rp_status take_part(rp_table_settings *t, rp_arena *arena, rp_table_key key, char *part,
                           uint64_t memory, rp_problem *problem)
{
    rp_setting value = {.text = part, .place = t->place};

    if (key == RP_TABLE_KEYS) {
        char *equals = strchr(part, '=');

        if (equals == NULL)
            return rp_problem_set(problem, &t->place, "%s: expected key=value, got '%.100s'",
                                  t->title, part);
        *equals = '\0';
        value.text = equals + 1;
        key = rp_table_key_find(part);
        if (key == RP_TABLE_KEYS) return unknown_key(t, part, problem);
    }
    value.key = rp_arena_format(arena, "%s: %s", t->title, infos[key].name);
    if (value.key == NULL) return rp_problem_memory(problem);
    return rp_table_settings_set(t, key, &value, memory, problem);
}

rp_status rp_table_settings_parse(rp_table_settings *t, rp_arena *arena, const char *text,
                                  uint64_t memory, rp_problem *problem)
{
    char *rest = rp_arena_text(arena, text, strlen(text)), *comma, *size;
    rp_status st;

    if (rest == NULL) return rp_problem_memory(problem);
    comma = strchr(rest, ',');
    if (comma != NULL) *comma++ = '\0';
    size = strchr(rest, ':');
    if (size != NULL) *size++ = '\0';
    st = take_part(t, arena, RP_KEY_SAMPLER, rest, memory, problem);
    if (st == RP_OK && size != NULL)
        st = take_part(t, arena, RP_KEY_MAX_SIZE, size, memory, problem);
    while (st == RP_OK && comma != NULL) {
        char *part = comma;

        comma = strchr(part, ',');
        if (comma != NULL) *comma++ = '\0';
        st = take_part(t, arena, RP_TABLE_KEYS, part, memory, problem);
    }
    return st;
}

rp_status rp_table_spec_parse(rp_table_settings *t, rp_arena *arena, const char *title,
                              const char *text, uint64_t memory, rp_problem *problem)
{
    const char *colon = strchr(text, ':'), *name;
    rp_place nowhere = {0};

    if (colon == NULL || colon == text)
        return rp_problem_set(problem, NULL,
                              "%s: expected NAME:SAMPLER[:MAX_SIZE][,key=value...], "
                              "such as replay:prioritized:1000000, got '%.200s'",
                              title, text);
    name = rp_arena_text(arena, text, (size_t)(colon - text));
    title = name != NULL ? rp_arena_format(arena, "%s %s", title, name) : NULL;
    if (title == NULL) return rp_problem_memory(problem);
    rp_table_settings_init(t, name, title, &nowhere);
    return rp_table_settings_parse(t, arena, colon + 1, memory, problem);
}

static rp_status refuse(const rp_table_settings *t, rp_table_key key, const char *why,
                        rp_problem *problem)
{
    return rp_problem_set(problem, &t->place, "%s: %s: %s", t->title, infos[key].name, why);
}

static rp_status check_limiter(const rp_table_settings *t, rp_problem *problem)
{
    if (is_given(t, RP_KEY_MIN_DIFF) != is_given(t, RP_KEY_MAX_DIFF))
        return refuse(t, is_given(t, RP_KEY_MIN_DIFF) ? RP_KEY_MIN_DIFF : RP_KEY_MAX_DIFF,
                      "min_diff and max_diff must be given together", problem);
    if (is_given(t, RP_KEY_ERROR_BUFFER) && is_given(t, RP_KEY_MIN_DIFF))
        return refuse(t, RP_KEY_ERROR_BUFFER,
                      "cannot be given together with min_diff and max_diff", problem);
    if (is_given(t, RP_KEY_SAMPLES_PER_INSERT)) {
        if (t->soft_limit)
            return refuse(t, RP_KEY_SOFT_LIMIT,
                          "inserts never wait with it, so samples_per_insert is not allowed",
                          problem);
        return RP_OK;
    }
    if (is_given(t, RP_KEY_ERROR_BUFFER) || is_given(t, RP_KEY_MIN_DIFF))
        return refuse(t,
                      is_given(t, RP_KEY_ERROR_BUFFER) ? RP_KEY_ERROR_BUFFER : RP_KEY_MIN_DIFF,
                      "needs samples_per_insert", problem);
    return RP_OK;
}

/* Computes min_diff and max_diff from the error buffer. Its default is a tenth of the samples
 * that min_size allows, at least the samples of two inserts. */
static void fill_limiter(rp_table_settings *t)
{
    double middle = t->samples_per_insert * (double)t->min_size;
    rp_limiter_options limiter;

    if (is_given(t, RP_KEY_MIN_DIFF)) return;
    if (!is_given(t, RP_KEY_ERROR_BUFFER))
        t->error_buffer = fmax(2 * fmax(1, t->samples_per_insert), 0.1 * middle);
    limiter = rp_limiter_ratio(t->samples_per_insert, t->min_size, t->error_buffer);
    assert(!(limiter.min_diff > limiter.max_diff));
    t->min_diff = limiter.min_diff;
    t->max_diff = limiter.max_diff;
}

rp_status rp_table_settings_finish(rp_table_settings *t, rp_problem *problem)
{
    rp_status st;

    if (!is_given(t, RP_KEY_SAMPLER))
        return rp_problem_set(problem, &t->place, "%s: needs a sampler", t->title);
    for (int i = 0; i < RP_TABLE_KEYS && !is_plain(t); i++)
        if (is_given(t, (rp_table_key)i) && !infos[i].any_form)
            return rp_problem_set(problem, &t->place, "%s: %s: a %s sets it itself", t->title,
                                  infos[i].name, forms[t->sampler]);
    if (is_given(t, RP_KEY_EXPONENT) && t->sampler != RP_PRIORITIZED)
        return refuse(t, RP_KEY_EXPONENT, "needs a prioritized sampler", problem);
    if (is_given(t, RP_KEY_REMOVER_EXPONENT) && t->remover != RP_PRIORITIZED)
        return refuse(t, RP_KEY_REMOVER_EXPONENT, "needs a prioritized remover", problem);
    if (!is_plain(t) && !is_given(t, RP_KEY_MAX_SIZE))
        return rp_problem_set(problem, &t->place, "%s: a %s needs a size, such as %s:%s:1000",
                              t->title, forms[t->sampler], t->name, forms[t->sampler]);
    st = check_limiter(t, problem);
    if (st != RP_OK) return st;

    if (!is_given(t, RP_KEY_EXPONENT)) t->exponent = default_exponent;
    if (!is_given(t, RP_KEY_REMOVER)) t->remover = RP_FIFO;
    if (!is_given(t, RP_KEY_REMOVER_EXPONENT)) t->remover_exponent = default_exponent;
    if (!is_given(t, RP_KEY_MAX_SIZE)) t->max_size = DEFAULT_ITEMS;
    if (!is_given(t, RP_KEY_MIN_SIZE)) t->min_size = 1;
    if (is_given(t, RP_KEY_SAMPLES_PER_INSERT)) fill_limiter(t);
    if (t->min_size > t->max_size && !t->soft_limit)
        return rp_problem_set(problem, &t->place,
                              "%s: min_size: must be at most max_size, or nothing can ever be "
                              "sampled; got %" PRId64 " > %" PRId64,
                              t->title, t->min_size, t->max_size);
    assert(t->sampler >= 0 && t->sampler < RP_FORMS && t->remover <= RP_MAX_HEAP); /* E1 */
    assert(t->max_size >= 1 && t->min_size >= 1);                                  /* E2 */
    return RP_OK;
}

static rp_selector_options selector(int word, double exponent)
{
    assert(word >= 0 && word <= RP_MAX_HEAP); /* E1 */
    return (rp_selector_options){(rp_selector_kind)word, word == RP_PRIORITIZED ? exponent : 0};
}

rp_table_options rp_table_settings_options(const rp_table_settings *t)
{
    rp_table_options o = {
        .name = t->name,
        .max_size = t->max_size,
        .max_bytes = t->max_bytes,
        .signature = t->signature,
        .seed = t->seed,
    };

    if (!is_plain(t)) {
        bool queue = t->sampler == RP_FORM_QUEUE;

        o.sampler.kind = o.remover.kind = queue ? RP_FIFO : RP_LIFO;
        o.limiter = queue ? rp_limiter_queue(t->max_size) : rp_limiter_stack(t->max_size);
        o.max_times_sampled = 1;
        return o;
    }
    o.sampler = selector(t->sampler, t->exponent);
    o.remover = selector(t->remover, t->remover_exponent);
    o.max_times_sampled = (int32_t)t->max_times_sampled;
    o.soft_limit = t->soft_limit;
    if (is_given(t, RP_KEY_SAMPLES_PER_INSERT))
        o.limiter =
            (rp_limiter_options){t->samples_per_insert, t->min_size, t->min_diff, t->max_diff};
    else
        o.limiter = rp_limiter_min_size(t->min_size);
    return o;
}

bool rp_table_key_matters(const rp_table_settings *t, rp_table_key key)
{
    assert(key < RP_TABLE_KEYS);
    if (!is_plain(t) && !infos[key].any_form) return false;
    switch (key) {
    case RP_KEY_EXPONENT: return t->sampler == RP_PRIORITIZED;
    case RP_KEY_REMOVER_EXPONENT: return t->remover == RP_PRIORITIZED;
    case RP_KEY_SAMPLES_PER_INSERT: return is_given(t, key);
    case RP_KEY_ERROR_BUFFER:
        return is_given(t, RP_KEY_SAMPLES_PER_INSERT) && !is_given(t, RP_KEY_MIN_DIFF);
    case RP_KEY_MIN_DIFF:
    case RP_KEY_MAX_DIFF:
    case RP_KEY_SEED: return is_given(t, key);
    case RP_KEY_SAMPLER:
    case RP_KEY_REMOVER:
    case RP_KEY_MAX_SIZE:
    case RP_KEY_MIN_SIZE:
    case RP_KEY_MAX_TIMES_SAMPLED:
    case RP_KEY_MAX_BYTES:
    case RP_KEY_SOFT_LIMIT:
    case RP_TABLE_KEYS:
    default: return true;
    }
}

char *rp_table_key_text(const rp_table_settings *t, rp_table_key key, char *text, size_t size)
{
    const void *at = (const char *)t + infos[key].offset;

    assert(key < RP_TABLE_KEYS && size >= 32);
    switch (infos[key].kind) {
    case SELECTOR: (void)snprintf(text, size, "%s", forms[*(const int *)at]); break;
    case COUNT: (void)snprintf(text, size, "%" PRId64, *(const int64_t *)at); break;
    case NUMBER: (void)rp_decimal_text(*(const double *)at, text, size); break;
    case BYTES:
    case SEED: (void)snprintf(text, size, "%" PRIu64, *(const uint64_t *)at); break;
    case SWITCH: (void)snprintf(text, size, "%s", *(const bool *)at ? "true" : "false"); break;
    }
    return text;
}

const char *rp_table_settings_hint(const rp_table_settings *t, const rp_error *err, char *text,
                                   size_t size)
{
    char least[32];

    if (!is_given(t, RP_KEY_ERROR_BUFFER) || strstr(err->text, "both wait for ever") == NULL)
        return "";
    (void)snprintf(text, size, "; error_buffer: at least %s",
                   rp_decimal_text((t->samples_per_insert + 1) / 2, least, sizeof least));
    return text;
}

char *rp_table_limiter_text(const rp_table_settings *t, char *text, size_t size)
{
    char ratio[32], least[40];

    if (t->min_size == 1)
        (void)snprintf(least, sizeof least, "is 1 item");
    else
        (void)snprintf(least, sizeof least, "are %" PRId64 " items", t->min_size);
    if (!is_plain(t))
        (void)snprintf(text, size,
                       "each item is sampled once, the %s first; inserts wait while %" PRId64
                       " are there",
                       t->sampler == RP_FORM_QUEUE ? "oldest" : "newest", t->max_size);
    else if (!is_given(t, RP_KEY_SAMPLES_PER_INSERT))
        (void)snprintf(text, size, "samples wait until there %s; inserts never wait", least);
    else
        (void)snprintf(text, size,
                       "samples wait until there %s; %s sample%s per insert, inserts * %s - "
                       "samples stays in %g .. %g: beyond, one side waits for the other",
                       least, rp_decimal_text(t->samples_per_insert, ratio, sizeof ratio),
                       t->samples_per_insert == 1 ? "" : "s", ratio, t->min_diff, t->max_diff);
    return text;
}
