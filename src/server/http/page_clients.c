/* SPDX-License-Identifier: Apache-2.0 */
/* The page about the connections, and what each of them waits for. */
#include <stdio.h>

#include "server/http/json_out.h"
#include "server/http/pages.h"
#include "table/op.h"
#include "util/clock.h"
#include "util/mem.h"

enum {
    MOST_WAITING = 64, /* calls of one table */
    MOST_WAITS = 4096, /* of all tables */
};

/* A call that waits. */
typedef struct waiter {
    uint64_t client;
    size_t table; /* in `tables` */
    bool is_insert;
} waiter;

/* Who waits for what. */
typedef struct waits {
    rp_table **tables;
    size_t table_count, count;
    rp_waiting room[MOST_WAITING];
    uint64_t clients[MOST_WAITING];
    waiter waiters[MOST_WAITS];
} waits;

static void find_waiters(waits *w)
{
    for (size_t t = 0; t < w->table_count; t++) {
        size_t count =
            rp_table_waiting_clients(w->tables[t], w->room, w->clients, MOST_WAITING);

        for (size_t i = 0; i < count && i < MOST_WAITING && w->count < MOST_WAITS; i++)
            w->waiters[w->count++] = (waiter){w->clients[i], t, w->room[i].is_insert};
    }
}

/* Writes what a client waits for: the first call that is found, and how many more there are. */
static void write_wait(rp_buf *out, const waits *w, uint64_t id)
{
    const waiter *first = NULL;
    char text[RP_MAX_TABLE_NAME_BYTES + 96];
    size_t count = 0;

    for (size_t i = 0; i < w->count; i++) {
        if (w->waiters[i].client != id) continue;
        if (first == NULL) first = &w->waiters[i];
        count++;
    }
    if (first == NULL) {
        rp_out_null(out, "waits_for");
        return;
    }
    (void)snprintf(text, sizeof text,
                   first->is_insert ? "to insert into '%s'" : "to sample '%s'",
                   rp_table_name(w->tables[first->table]));
    if (count > 1)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), ", and %zu more calls",
                       count - 1);
    rp_out_text(out, "waits_for", text);
}

static void write_clients(rp_buf *out, const rp_client_views *clients, const waits *w)
{
    int64_t now_ns = rp_now_ns();

    rp_buf_text(out, "{");
    rp_out_count(out, "connections", clients->total);
    rp_out_key(out, "clients");
    rp_buf_text(out, "[");
    for (size_t i = 0; i < clients->count; i++) {
        const rp_client_view *c = &clients->views[i];

        rp_buf_text(out, i > 0 ? ",{" : "{");
        rp_out_count(out, "id", c->id);
        rp_out_text(out, "address", c->peer);
        rp_out_text(out, "role", rp_role_name(c->role));
        rp_out_text(out, "protocol", rp_client_protocol_name(c->protocol));
        rp_out_seconds(out, "since_s", now_ns - c->since_ns);
        rp_out_count(out, "calls", c->calls);
        rp_out_count(out, "bytes_in", c->bytes_in);
        rp_out_count(out, "bytes_out", c->bytes_out);
        write_wait(out, w, c->id);
        rp_out_close(out);
    }
    rp_buf_text(out, "]}\n");
}

int rp_page_clients(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    const rp_allocator *alloc = answer->body.alloc;
    rp_server_view server = rp_page_view(host);
    rp_client_views clients;
    size_t capacity =
        server.store != NULL ? rp_store_find_tables(server.store, NULL, 0) + 1 : 1;
    bool has_tables = false;
    waits *w;

    (void)ask;
    if (rp_client_views_take(&clients, alloc, host->clients) != RP_OK) return 503;
    w = rp_alloc(alloc, sizeof *w);
    if (w != NULL) {
        w->count = w->table_count = 0;
        w->tables = rp_alloc_array(alloc, capacity, sizeof(rp_table *));
        has_tables = w->tables != NULL;
        if (has_tables && server.store != NULL)
            w->table_count = rp_store_find_tables(server.store, w->tables, capacity);
        if (w->table_count > capacity) w->table_count = capacity;
        find_waiters(w);
        if (has_tables) write_clients(&answer->body, &clients, w);
        for (size_t i = 0; i < w->table_count; i++) rp_table_unref(w->tables[i]);
        if (w->tables != NULL) rp_release(alloc, w->tables, capacity * sizeof(rp_table *));
        rp_release(alloc, w, sizeof *w);
    }
    rp_client_views_deinit(&clients);
    return has_tables ? 200 : 503;
}
