/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/server_view.h"

#include <assert.h>

#include "table/op.h"
#include "table/survey.h"
#include "util/clock.h"
#include "util/mem.h"

void rp_table_view_take(rp_table_view *view, rp_table *table)
{
    rp_table_get_info(table, &view->info);
    view->now_ns = rp_now_ns();
    view->median_age_ns = rp_table_median_age_ns(table, (uint64_t)view->now_ns);
    view->waiting_count =
        rp_table_waiting_clients(table, view->waiting, view->clients, RP_VIEW_WAITING);
    assert(rp_table_view_described(view) <= RP_VIEW_WAITING);
}

size_t rp_table_view_described(const rp_table_view *view)
{
    return view->waiting_count < RP_VIEW_WAITING ? view->waiting_count : RP_VIEW_WAITING;
}

rp_status rp_table_views_take(rp_table_views *views, const rp_allocator *alloc, rp_store *store)
{
    size_t capacity = store != NULL ? rp_store_find_tables(store, NULL, 0) : 0, count;

    assert(alloc != NULL);
    *views = (rp_table_views){.alloc = alloc, .capacity = capacity};
    if (capacity == 0) return RP_OK;
    views->refs = rp_alloc_array(alloc, capacity, sizeof(rp_table *));
    views->tables = rp_alloc_array(alloc, capacity, sizeof *views->tables);
    if (views->refs == NULL || views->tables == NULL) {
        rp_table_views_deinit(views);
        return RP_NO_RESOURCE;
    }
    count = rp_store_find_tables(store, views->refs, capacity);
    views->count = count < capacity ? count : capacity; /* tables added since are left out */
    assert(views->count <= views->capacity);
    for (size_t i = 0; i < views->count; i++)
        rp_table_view_take(&views->tables[i], views->refs[i]);
    return RP_OK;
}

void rp_table_views_deinit(rp_table_views *views)
{
    for (size_t i = 0; views->refs != NULL && i < views->count; i++)
        rp_table_unref(views->refs[i]);
    rp_release(views->alloc, views->refs, views->capacity * sizeof *views->refs);
    rp_release(views->alloc, views->tables, views->capacity * sizeof *views->tables);
    *views = (rp_table_views){.alloc = views->alloc};
}

size_t rp_page_most_bytes(size_t table_count)
{
    return ((size_t)1 << 20) + table_count * ((size_t)16 << 10);
}

const char *rp_health_name(rp_health health)
{
    switch (health) {
    case RP_HEALTH_LOADING: return "loading";
    case RP_HEALTH_SERVING: return "serving";
    case RP_HEALTH_DEGRADED: return "degraded";
    case RP_HEALTH_DRAINING: return "draining";
    }
    return "unknown";
}

rp_status rp_client_views_take(rp_client_views *views, const rp_allocator *alloc,
                               rp_clients *clients)
{
    *views = (rp_client_views){.alloc = alloc};
    if (clients == NULL) return RP_OK;
    views->views = rp_alloc_array(alloc, RP_VIEW_CLIENTS, sizeof *views->views);
    if (views->views == NULL) return RP_NO_RESOURCE;
    views->total = rp_clients_list(clients, views->views, RP_VIEW_CLIENTS);
    views->count = views->total < RP_VIEW_CLIENTS ? views->total : RP_VIEW_CLIENTS;
    return RP_OK;
}

void rp_client_views_deinit(rp_client_views *views)
{
    if (views->views != NULL)
        rp_release(views->alloc, views->views, RP_VIEW_CLIENTS * sizeof *views->views);
    views->views = NULL;
}

const char *rp_client_views_peer(const rp_client_views *views, uint64_t id)
{
    size_t low = 0, high = views->count;

    if (id == 0) return "this process";
    while (low < high) { /* ids descend */
        size_t middle = low + (high - low) / 2;

        if (views->views[middle].id == id) return views->views[middle].peer;
        if (views->views[middle].id > id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
