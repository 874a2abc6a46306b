/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/served_tables.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/info_print.h"
#include "cli/text/units.h"

enum {
    LISTED_TABLES = 8, /* in a log line */
    FIELDS = 5,
    VALUE_BYTES = 40,
};

static const char *const field_names[FIELDS] = {"max_size", "samples_per_insert", "min_size",
                                                "min_diff", "max_diff"};

/* Adds an element to a list in `text`, cut to fit. */
static void add_to_list(char *text, size_t size, const char *element)
{
    size_t used = strlen(text);

    assert(used < size);
    (void)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", element);
}

static bool same_limiter(const rp_limiter_options *a, const rp_limiter_options *b)
{
    return !(a->samples_per_insert < b->samples_per_insert) &&
           !(a->samples_per_insert > b->samples_per_insert) && a->min_size == b->min_size &&
           !(a->min_diff < b->min_diff) && !(a->min_diff > b->min_diff) &&
           !(a->max_diff < b->max_diff) && !(a->max_diff > b->max_diff);
}

/* Returns the name of the form in which the table can be configured. */
static const char *form_of(const rp_table_info *t)
{
    rp_limiter_options queue = rp_limiter_queue(t->max_size);
    rp_limiter_options stack = rp_limiter_stack(t->max_size);

    if (t->max_times_sampled == 1 && t->sampler.kind == RP_FIFO && t->remover.kind == RP_FIFO &&
        same_limiter(&t->limiter, &queue))
        return "queue";
    if (t->max_times_sampled == 1 && t->sampler.kind == RP_LIFO && t->remover.kind == RP_LIFO &&
        same_limiter(&t->limiter, &stack))
        return "stack";
    return rp_selector_name(t->sampler.kind);
}

static void put_summary(const rp_table_info *t, char *text, size_t size)
{
    char exponent[64] = "";

    if (t->sampler.kind == RP_PRIORITIZED)
        (void)snprintf(exponent, sizeof exponent, " exponent %g", t->sampler.exponent);
    (void)snprintf(text, size, "%.100s (%s%s, %" PRId64 " item%s)", t->name, form_of(t),
                   exponent, t->max_size, rp_plural((uint64_t)t->max_size));
}

char *rp_served_tables_list(rp_store *store, char *text, size_t size)
{
    rp_table *tables[LISTED_TABLES];
    size_t count = rp_store_find_tables(store, tables, LISTED_TABLES);
    char one[256];

    assert(size > 0);
    text[0] = '\0';
    for (size_t i = 0; i < count && i < LISTED_TABLES; i++) {
        rp_table_info info;

        rp_table_get_info(tables[i], &info);
        put_summary(&info, one, sizeof one);
        add_to_list(text, size, one);
        rp_table_unref(tables[i]);
    }
    if (count > LISTED_TABLES) {
        (void)snprintf(one, sizeof one, "and %zu more", count - LISTED_TABLES);
        add_to_list(text, size, one);
    }
    if (count == 0) add_to_list(text, size, "none");
    return text;
}

static const char *bound_text(double bound, char text[VALUE_BYTES])
{
    if (rp_limiter_unbounded(bound)) return "no bound";
    return rp_decimal_text(bound, text, VALUE_BYTES);
}

static const char *value_text(int64_t max_size, const rp_limiter_options *l, int field,
                              char text[VALUE_BYTES])
{
    assert(field >= 0 && field < FIELDS);
    switch (field) {
    case 0: (void)snprintf(text, VALUE_BYTES, "%" PRId64, max_size); return text;
    case 1: return rp_decimal_text(l->samples_per_insert, text, VALUE_BYTES);
    case 2: (void)snprintf(text, VALUE_BYTES, "%" PRId64, l->min_size); return text;
    case 3: return bound_text(l->min_diff, text);
    default: return bound_text(l->max_diff, text);
    }
}

bool rp_served_table_differs(rp_store *store, const rp_table_settings *configured_table,
                             char *used, char *configured, size_t size)
{
    rp_table_options wanted = rp_table_settings_options(configured_table);
    rp_table *found = rp_store_find_table(store, (rp_string){wanted.name, strlen(wanted.name)});
    rp_table_info info;

    assert(size > 0);
    used[0] = configured[0] = '\0';
    if (found == NULL) return false;
    rp_table_get_info(found, &info);
    for (int i = 0; i < FIELDS; i++) {
        char room[2][VALUE_BYTES], one[2 * VALUE_BYTES];
        const char *now = value_text(info.max_size, &info.limiter, i, room[0]);
        const char *then = value_text(wanted.max_size, &wanted.limiter, i, room[1]);

        if (strcmp(now, then) == 0) continue;
        (void)snprintf(one, sizeof one, "%s %s", field_names[i], now);
        add_to_list(used, size, one);
        (void)snprintf(one, sizeof one, "%s %s", field_names[i], then);
        add_to_list(configured, size, one);
    }
    rp_table_unref(found);
    return used[0] != '\0';
}
