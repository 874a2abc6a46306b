/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/upkeep.h"

enum { MAX_TABLES = 4096 }; /* the most a store has */

/* Calls `each` for the tables there are now. */
static void for_each_table(rp_store *store, void (*each)(rp_table *table, void *ctx), void *ctx)
{
    rp_table *tables[MAX_TABLES];
    size_t count = rp_store_find_tables(store, tables, MAX_TABLES);

    for (size_t i = 0; i < count && i < MAX_TABLES; i++) {
        each(tables[i], ctx);
        rp_table_unref(tables[i]);
    }
}

static void add(rp_table *table, void *ctx)
{
    rp_upkeep_totals *totals = ctx;
    rp_table_info info;

    rp_table_get_info(table, &info);
    totals->items += info.size;
    totals->inserts += info.inserts;
    totals->samples += info.samples;
}

rp_upkeep_totals rp_upkeep_count(rp_store *store)
{
    rp_upkeep_totals totals = {0};

    for_each_table(store, add, &totals);
    return totals;
}
