/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/left_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t shards_of(const rp_client *client)
{
    size_t shards = rp_client_shard_count(client);

    return shards < RP_LISTED_SHARDS ? shards : RP_LISTED_SHARDS;
}

uint64_t rp_unreachable_set(rp_unreachable *u, rp_client *client, size_t shard)
{
    char text[RP_ERROR_TEXT_BYTES];
    const char *why = text;
    uint64_t calls = rp_client_why_away(client, shard, text, sizeof text);
    size_t length;

    u->address = rp_client_shard_address(client, shard);
    length = strlen(u->address);
    if (strncmp(text, u->address, length) == 0 && strncmp(text + length, ": ", 2) == 0)
        why = text + length + 2;
    if (why[0] == '\0') why = "it could not be reached"; /* it is back since */
    (void)snprintf(u->error, sizeof u->error, "%s", why);
    return calls;
}

void rp_left_out_begin(rp_left_out *l, rp_client *client)
{
    rp_unreachable u;

    rp_left_out_deinit(l);
    for (size_t i = 0; i < shards_of(client); i++)
        l->before[i] = rp_unreachable_set(&u, client, i);
}

void rp_left_out_end(rp_left_out *l, rp_client *client)
{
    size_t shards = shards_of(client);
    rp_unreachable u;

    for (size_t i = 0; i < shards; i++) {
        if (rp_unreachable_set(&u, client, i) == l->before[i]) continue;
        if (l->list == NULL) l->list = calloc(shards, sizeof *l->list);
        if (l->list == NULL) return;
        l->list[l->count++] = u;
    }
}

void rp_left_out_deinit(rp_left_out *l)
{
    free(l->list);
    l->list = NULL;
    l->count = 0;
}
