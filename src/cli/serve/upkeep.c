/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/upkeep.h"

#include <assert.h>
enum { MAX_TABLES = 4096 }; /* of a store */

rp_upkeep_totals rp_upkeep_count(rp_store *store)
{
    rp_table *tables[MAX_TABLES];
    size_t count = rp_store_find_tables(store, tables, MAX_TABLES);
    rp_upkeep_totals totals = {0};

    assert(count <= MAX_TABLES);
    for (size_t i = 0; i < count; i++) {
        rp_table_info info;

        rp_table_get_info(tables[i], &info);
        assert(info.size >= 0 && info.inserts >= 0 && info.samples >= 0);
        totals.items += info.size;
        totals.inserts += info.inserts;
        totals.samples += info.samples;
        rp_table_unref(tables[i]);
    }
    return totals;
}
