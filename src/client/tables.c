/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of tables.
 *
 * Invariants:
 *   B1  count <= capacity, and capacity >= 1, so `tables` is never NULL;
 *   B2  the list owns the names of its entries and a reference to each signature. */
#include <assert.h>

#include "client/client.h"
#include "util/error.h"
#include "util/mem.h"

typedef struct table_list {
    rp_client_tables public; /* first */
    rp_allocator alloc;
    size_t capacity;
} table_list;

rp_status rp_client_tables_new(const rp_allocator *alloc, size_t capacity,
                               rp_client_tables **out, rp_error *err)
{
    table_list *list = rp_alloc_zero(alloc, sizeof *list);
    size_t bytes = (capacity + 1) * sizeof *list->public.tables;

    if (list == NULL) return rp_fail_memory(err, sizeof *list);
    list->alloc = *alloc;
    list->capacity = capacity + 1; /* B1 */
    list->public.tables = rp_alloc_zero(alloc, bytes);
    if (list->public.tables == NULL) {
        rp_release(alloc, list, sizeof *list);
        return rp_fail_memory(err, bytes);
    }
    *out = &list->public;
    return RP_OK;
}

rp_status rp_client_tables_add(rp_client_tables *tables, size_t shard,
                               const rp_table_info *info, rp_error *err)
{
    table_list *list = (table_list *)tables;
    size_t bytes = strlen(info->name) + 1;
    char *name;

    if (tables->count == list->capacity) {
        if (!rp_resize_array(&list->alloc, &tables->tables, list->capacity, 2 * list->capacity,
                             sizeof *tables->tables))
            return rp_fail_memory(err, 2 * list->capacity * sizeof *tables->tables);
        list->capacity *= 2;
    }
    name = rp_alloc(&list->alloc, bytes);
    if (name == NULL) return rp_fail_memory(err, bytes);
    memcpy(name, info->name, bytes);
    assert(tables->count < list->capacity); /* B1 */
    rp_client_table *t = &tables->tables[tables->count++];
    *t = (rp_client_table){.shard = shard, .total_weight = info->total_weight, .info = *info};
    t->info.name = name;
    if (info->signature != NULL) (void)rp_signature_ref(info->signature);
    return RP_OK;
}

void rp_client_tables_free(rp_client_tables *tables)
{
    table_list *list = (table_list *)tables;

    if (tables == NULL) return;
    assert(tables->count <= list->capacity);
    for (size_t i = 0; i < tables->count; i++) {
        const rp_table_info *info = &tables->tables[i].info;

        rp_signature_unref(info->signature);
        rp_release(&list->alloc, (char *)info->name, strlen(info->name) + 1);
    }
    rp_release(&list->alloc, tables->tables, list->capacity * sizeof *tables->tables);
    rp_allocator alloc = list->alloc;
    rp_release(&alloc, list, sizeof *list);
}
