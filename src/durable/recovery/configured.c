/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/recovery/configured.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "table/snapshot/cut.h"
#include "util/error.h"
#include "util/mem.h"

enum { SELECTOR_BYTES = 64 };

rp_status rp_configured_read(rp_configured *c, const rp_allocator *alloc, rp_store *store,
                             rp_error *err)
{
    size_t count = rp_store_find_tables(store, NULL, 0);
    rp_table **found;

    *c = (rp_configured){.alloc = alloc};
    if (count == 0) return RP_OK;
    c->tables = rp_alloc_array(alloc, count, sizeof *c->tables);
    found = rp_alloc_array(alloc, count, sizeof *found);
    if (c->tables == NULL || found == NULL) {
        rp_release(alloc, found, count * sizeof *found);
        rp_release(alloc, c->tables, count * sizeof *c->tables);
        c->tables = NULL;
        return rp_fail_memory(err, count * sizeof *c->tables);
    }
    c->count = count; /* it cannot change: the store is not in use yet */
    (void)rp_store_find_tables(store, found, count);
    for (size_t i = 0; i < count; i++) {
        rp_table_info info;

        rp_table_get_info(found[i], &info);
        c->tables[i] = (rp_configured_table){.table = found[i],
                                             .max_size = info.max_size,
                                             .sampler = found[i]->options.sampler,
                                             .remover = found[i]->options.remover};
    }
    rp_release(alloc, found, count * sizeof *found);
    return RP_OK;
}

void rp_configured_free(rp_configured *c)
{
    for (size_t i = 0; i < c->count; i++) rp_table_unref(c->tables[i].table);
    rp_release(c->alloc, c->tables, c->count * sizeof *c->tables);
    c->tables = NULL;
    c->count = 0;
}

/* Finds the table that has the name of a configured one now; the redo may have dropped the
 * configured one and created another. */
static rp_table *find(const rp_configured_table *c, rp_store *store)
{
    const char *name = c->table->options.name;

    return rp_store_find_table(store, (rp_string){name, strlen(name)});
}

static bool has_other_selectors(const rp_configured_table *c, const rp_table *now)
{
    return !rp_selector_options_equal(&c->sampler, &now->options.sampler) ||
           !rp_selector_options_equal(&c->remover, &now->options.remover);
}

/* Writes the name of the selector, and its exponent if it has one. */
static const char *selector_text(const rp_selector_options *s, char text[SELECTOR_BYTES])
{
    if (s->kind != RP_PRIORITIZED) return rp_selector_name(s->kind);
    (void)snprintf(text, SELECTOR_BYTES, "%s with exponent %g", rp_selector_name(s->kind),
                   s->exponent);
    return text;
}

static rp_status fail_selectors(const rp_configured_table *wanted, const rp_table *now,
                                rp_error *err)
{
    char room[4][SELECTOR_BYTES];

    return rp_fail(err, RP_PRECONDITION,
                   "table '%.64s': it is saved with sampler %s and remover %s, not %s and %s",
                   now->options.name, selector_text(&now->options.sampler, room[0]),
                   selector_text(&now->options.remover, room[1]),
                   selector_text(&wanted->sampler, room[2]),
                   selector_text(&wanted->remover, room[3]));
}

rp_status rp_configured_compare(const rp_configured *c, rp_store *store, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t i = 0; i < c->count && st == RP_OK; i++) {
        const rp_configured_table *wanted = &c->tables[i];
        rp_table *now = find(wanted, store);

        if (now != NULL && has_other_selectors(wanted, now))
            st = fail_selectors(wanted, now, err);
        rp_table_unref(now);
    }
    return st;
}

static rp_status apply_to(rp_configured_table *c, rp_table *now, bool *changed, rp_error *err)
{
    rp_table_alteration larger = {.which = RP_ALTER_MAX_SIZE, .max_size = c->max_size};
    rp_table_info info;
    rp_status st = RP_OK;

    if (has_other_selectors(c, now)) {
        *changed = true;
        st = rp_table_reselect(now, &c->sampler, &c->remover, err);
    }
    rp_table_get_info(now, &info);
    assert(!info.closed);
    if (st != RP_OK || info.max_size >= c->max_size) return st;
    *changed = true;
    c->raised_from = info.max_size;
    return rp_table_alter(now, &larger, err);
}

/* A table with extensions cannot be created again: they belong to the dropped one. */
static rp_status create_again(const rp_configured_table *c, rp_store *store, bool *changed,
                              rp_error *err)
{
    rp_table_options options = c->table->options;

    if (options.extension_count > 0) return RP_OK;
    options.sampler = c->sampler;
    options.remover = c->remover;
    options.max_size = c->max_size;
    *changed = true;
    return rp_store_add_table(store, &options, NULL, err);
}

rp_status rp_configured_apply(rp_configured *c, rp_store *store, bool *changed, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t i = 0; i < c->count && st == RP_OK; i++) {
        rp_table *now = find(&c->tables[i], store);

        st = now != NULL ? apply_to(&c->tables[i], now, changed, err)
                         : create_again(&c->tables[i], store, changed, err);
        rp_table_unref(now);
    }
    return st;
}
