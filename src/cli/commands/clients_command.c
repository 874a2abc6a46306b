/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise clients`: the connections of all servers, and what each of them waits for. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/commands/waiting_groups.h"
#include "cli/text/units.h"

enum { MOST_LISTED = 16 * 1000, FIRST_LISTED = 1000 };

static const char text[] = "For each connection: address, protocol, the role of its "
                           "credentials, how long it is open,\n"
                           "its calls, the bytes that the server has read (IN) and written "
                           "(OUT), and the inserts and\n"
                           "samples with which it waits. The newest is first; * is this "
                           "command. A server lists 1000.\n";

static const char *const examples[] = {
    "reprise clients",
    "reprise clients --json",
    NULL,
};

typedef struct listing {
    rp_remote r;
    rp_client_connections connections;
    rp_client_waiting waiting[RP_MOST_WAITING];
    rp_client_blocked blocked;
    rp_waiting_groups groups;
} listing;

/* Lists the connections, in a larger array if there are more than fit. */
static rp_status fetch(listing *l, rp_wait wait, rp_error *err)
{
    size_t capacity = FIRST_LISTED;
    rp_status st;

    for (;;) {
        rp_client_connection *list = realloc(l->connections.list, capacity * sizeof *list);

        if (list == NULL) return RP_NO_RESOURCE;
        l->connections = (rp_client_connections){.list = list, .capacity = capacity};
        st = rp_client_get_connections(l->r.client, &l->connections, wait, err);
        if (st != RP_OK || l->connections.count < capacity || capacity >= MOST_LISTED) break;
        capacity *= 4;
    }
    if (st != RP_OK) return st;
    l->blocked = (rp_client_blocked){.calls = l->waiting, .capacity = RP_MOST_WAITING};
    st = rp_client_why_blocked(l->r.client, NULL, &l->blocked, wait, err);
    if (st == RP_OK) rp_waiting_groups_make(&l->groups, l->waiting, l->blocked.count);
    return st;
}

/* Calls `visit` for each group of calls with which a connection waits. */
static void visit_waits(const listing *l, const rp_client_connection *c, rp_text_buffer *out,
                        void (*visit)(rp_text_buffer *out, const rp_waiter *waiter))
{
    for (size_t i = 0; i < l->groups.waiter_count; i++) {
        const rp_waiter *w = &l->groups.waiters[i];

        if (w->first->shard == c->shard && w->first->client_id == c->id) visit(out, w);
    }
}

static void put_wait(rp_text_buffer *out, const rp_waiter *w)
{
    if (out->size > 0) rp_text_buffer_put(out, ", ");
    rp_text_buffer_put_safe(out, w->first->table, strlen(w->first->table));
    rp_text_buffer_format(out, ": %zu %s%s", w->calls,
                          w->first->waiting.is_insert ? "insert" : "sample",
                          w->calls == 1 ? "" : "s");
}

static void put_json_wait(rp_text_buffer *out, const rp_waiter *w)
{
    rp_json_open(out, '{');
    rp_json_key(out, "table");
    rp_json_put_text(out, w->first->table);
    rp_json_key(out, "side");
    rp_json_put_text(out, w->first->waiting.is_insert ? "insert" : "sample");
    rp_json_key(out, "calls");
    rp_json_put_unsigned(out, w->calls);
    rp_json_key(out, "seconds");
    rp_json_put_number(out, (double)w->first->waiting.waiting_ns / 1e9);
    rp_json_close(out, '}');
}

static void print_text(const listing *l, rp_text_buffer *out)
{
    static const char *const heads[] = {"CLIENT", "PROTOCOL", "ROLE", "OPEN",
                                        "CALLS",  "IN",       "OUT",  "WAITS FOR"};
    enum { HEADS = sizeof heads / sizeof heads[0] };
    bool shards = rp_client_shard_count(l->r.client) > 1;
    size_t hidden = l->connections.total - l->connections.count;
    char size[32];
    rp_grid g;

    rp_grid_init(&g, HEADS + (shards ? 1 : 0), shards ? 0xf0 : 0x78);
    if (shards) rp_grid_cell(&g, "SHARD");
    for (size_t i = 0; i < HEADS; i++) rp_grid_cell(&g, "%s", heads[i]);
    for (size_t i = 0; i < l->connections.count; i++) {
        const rp_client_connection *c = &l->connections.list[i];
        rp_text_buffer waits = {0};

        if (shards) rp_grid_cell(&g, "%s", rp_client_shard_address(l->r.client, c->shard));
        rp_grid_cell(&g, "%s%s", c->address, c->is_caller ? " *" : "");
        rp_grid_cell(&g, "%s", c->protocol);
        rp_grid_cell(&g, "%s", c->role);
        rp_grid_cell(&g, "%s", rp_elapsed_text(c->open_ms * 1000000, size, sizeof size));
        rp_grid_cell(&g, "%llu", (unsigned long long)c->calls);
        rp_grid_cell(&g, "%s", rp_size_text(c->bytes_in, size, sizeof size));
        rp_grid_cell(&g, "%s", rp_size_text(c->bytes_out, size, sizeof size));
        visit_waits(l, c, &waits, put_wait);
        rp_grid_cell(&g, "%s", waits.size > 0 ? rp_text_buffer_text(&waits) : "-");
        rp_text_buffer_deinit(&waits);
    }
    rp_grid_write(&g, out);
    rp_grid_deinit(&g);
    if (l->connections.total > l->connections.count)
        rp_text_buffer_format(out, "%zu more connection%s\n", hidden, hidden == 1 ? "" : "s");
}

static void number(rp_text_buffer *out, const char *key, uint64_t value)
{
    rp_json_key(out, key);
    rp_json_put_unsigned(out, value);
}

static void print_json(const listing *l, rp_text_buffer *out)
{
    rp_json_open(out, '[');
    for (size_t i = 0; i < l->connections.count; i++) {
        const rp_client_connection *c = &l->connections.list[i];

        rp_json_open(out, '{');
        rp_json_key(out, "shard");
        rp_json_put_text(out, rp_client_shard_address(l->r.client, c->shard));
        number(out, "id", c->id);
        rp_json_key(out, "address");
        rp_json_put_text(out, c->address);
        rp_json_key(out, "protocol");
        rp_json_put_text(out, c->protocol);
        rp_json_key(out, "role");
        rp_json_put_text(out, c->role);
        rp_json_key(out, "open_s");
        rp_json_put_number(out, (double)c->open_ms / 1000);
        number(out, "calls", c->calls);
        number(out, "bytes_in", c->bytes_in);
        number(out, "bytes_out", c->bytes_out);
        rp_json_key(out, "is_this_command");
        rp_json_put_boolean(out, c->is_caller);
        rp_json_key(out, "waits");
        rp_json_open(out, '[');
        visit_waits(l, c, out, put_json_wait);
        rp_json_close(out, ']');
        rp_json_close(out, '}');
    }
    rp_json_close(out, ']');
    rp_text_buffer_put(out, "\n");
}

static int run(const rp_flags *flags)
{
    static listing l; /* too large for a stack */
    rp_text_buffer buffer = {0};
    rp_error err = {0};
    rp_status st;
    int status = rp_remote_open(&l.r, &rp_clients_command, flags);

    if (status == 0) status = rp_remote_connect(&l.r);
    if (status == 0) {
        st = fetch(&l, rp_remote_wait(&l.r), &err);
        assert(st != RP_OK || l.connections.count <= l.connections.capacity);
        if (st == RP_OK && l.r.json)
            print_json(&l, &buffer);
        else if (st == RP_OK)
            print_text(&l, &buffer);
        status = st == RP_OK ? rp_remote_print(&l.r, &buffer) : rp_remote_fail(&l.r, st, &err);
    }
    rp_text_buffer_deinit(&buffer);
    free(l.connections.list);
    rp_remote_close(&l.r);
    return status;
}

const rp_command rp_clients_command = {
    .name = "clients",
    .summary = "Lists the clients of a server, and what they wait for.",
    .usage = "[OPTION...]",
    .text = text,
    .examples = examples,
    .shared = &rp_remote_options,
    .run = run,
};
