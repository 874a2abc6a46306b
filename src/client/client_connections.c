/* SPDX-License-Identifier: Apache-2.0 */
/* The connections between servers and their clients: those that servers list, and those that a
 * client lacks. */
#include <assert.h>
#include <stdio.h>

#include "client/unary.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/connection_messages.h"

static void copy(char *to, size_t size, rp_string text)
{
    (void)snprintf(to, size, "%.*s", (int)text.size, text.data);
}

/* Adds the connections of one shard. */
static rp_status add_shard(rp_client *client, size_t shard, const rp_unary_response *response,
                           rp_client_connections *out, rp_error *err)
{
    size_t room = out->capacity - out->count;
    rp_wire_connections found = {0};
    rp_status st;

    assert(out->count <= out->capacity);
    /* Each takes at least a byte of the response: this bounds the allocation. */
    if (room > response->size) room = response->size;
    if (room > 0) {
        found.list = rp_alloc_array(&client->alloc, room, sizeof *found.list);
        if (found.list == NULL) return rp_fail_memory(err, room * sizeof *found.list);
    }
    found.capacity = room;
    st = rp_wire_read_connections(response->data, response->size, &found, err);
    for (size_t i = 0; st == RP_OK && i < found.count; i++) {
        const rp_wire_connection *from = &found.list[i];
        rp_client_connection *to = &out->list[out->count++];

        *to = (rp_client_connection){.shard = shard,
                                     .id = from->id,
                                     .open_ms = from->open_ms,
                                     .calls = from->calls,
                                     .bytes_in = from->bytes_in,
                                     .bytes_out = from->bytes_out,
                                     .is_caller = from->is_caller};
        copy(to->address, sizeof to->address, from->address);
        copy(to->role, sizeof to->role, from->role);
        copy(to->protocol, sizeof to->protocol, from->protocol);
    }
    if (st == RP_OK)
        out->total = found.total < SIZE_MAX - out->total ? out->total + found.total : SIZE_MAX;
    rp_release(&client->alloc, found.list, room * sizeof *found.list);
    return st;
}

rp_status rp_client_get_connections(rp_client *client, rp_client_connections *out, rp_wait wait,
                                    rp_error *err)
{
    const rp_unary_request request = {RP_CLIENT_REPLAY "Clients", NULL, true, false, 0};
    rp_client_connections found;
    rp_unary *u = NULL;
    rp_status st = RP_OK;

    if (out == NULL) return rp_fail(err, RP_INVALID, "no list of connections is given");
    found = (rp_client_connections){.list = out->list, .capacity = out->capacity};
    if (found.list == NULL && found.capacity > 0)
        return rp_fail(err, RP_INVALID, "`list` is NULL, capacity %zu", found.capacity);
    if (client->store == NULL) {
        st = rp_unary_call(client, &request, 0, client->addresses.count, wait, &u, err);
        if (st == RP_OK) st = rp_unary_result(u, err);
        for (size_t i = 0; st == RP_OK && i < rp_unary_count(u); i++) {
            const rp_unary_response *a = rp_unary_response_of(u, i);

            if (a->status == RP_OK) st = add_shard(client, i, a, &found, err);
        }
        rp_unary_free(u);
    }
    if (st == RP_OK) *out = found;
    return st;
}

uint64_t rp_client_why_away(rp_client *client, size_t shard, char *text, size_t size)
{
    rp_client_live *live = NULL;
    const rp_channel *channel;

    assert(size > 0);
    text[0] = '\0';
    if (client->store != NULL || rp_client_get_live(client, &live, NULL) != RP_OK) return 0;
    if (shard == SIZE_MAX) {
        (void)rp_client_is_refused(client, text, size);
        return atomic_load_explicit(&live->left_out, memory_order_relaxed);
    }
    assert(shard < live->channel_count);
    channel = live->channels[shard];
    if (!rp_channel_is_connected(channel)) {
        rp_channel_why(channel, text, size);
        if (text[0] == '\0')
            (void)snprintf(text, size, "%.80s: not connected yet",
                           rp_client_shard_address(client, shard));
    }
    return rp_channel_left_out(channel);
}
