/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of client.h: a request to every shard, and the result of their responses. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "client/unary.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/durability_wire.h"
#include "wire/request_write.h"
#include "wire/responses.h"

enum { PATH_BYTES = 4096 };

/* Adds to the text, as far as it fits. */
static void add_text(char text[RP_ERROR_TEXT_BYTES], const char *format, const char *a,
                     const char *b)
{
    size_t used = strlen(text);

    (void)snprintf(text + used, RP_ERROR_TEXT_BYTES - used, format, a, b);
}

/* Writes the error of a shard, without its address. An unknown table is compared with those of
 * the shard. */
static void explain(rp_client *client, const rp_unary *u, size_t shard, const char *table,
                    const rp_client_tables *tables, rp_error *why)
{
    const rp_unary_response *a = rp_unary_response_of(u, shard);
    const char *address = rp_client_shard_address(client, shard);
    size_t length = strlen(address);
    bool is_named =
        strncmp(a->text, address, length) == 0 && strncmp(a->text + length, ": ", 2) == 0;

    (void)snprintf(why->text, sizeof why->text, "%s", a->text + (is_named ? length + 2 : 0));
    if (a->status == RP_NOT_FOUND && table != NULL && tables != NULL)
        rp_client_name_shard_tables(tables, shard, table, why);
}

/* If some shards have done what others have not, replaces the error by one that names both.
 * Returns false if no shard has done it. */
static bool tell_done(rp_client *client, const rp_unary *u, const char *table, rp_wait wait,
                      rp_status st, rp_error *err)
{
    char text[RP_ERROR_TEXT_BYTES] = "";
    const char *comma = "done on ";
    rp_client_tables *tables = NULL;
    bool is_unknown = false; /* a shard does not know the table */

    for (size_t i = 0; i < rp_unary_count(u); i++) {
        if (rp_unary_response_of(u, i)->status == RP_NOT_FOUND) is_unknown = true;
        if (rp_unary_response_of(u, i)->status != RP_OK) continue;
        add_text(text, "%s%s", comma, rp_client_shard_address(client, i));
        comma = ", ";
    }
    if (text[0] == '\0') return false;
    /* Once for all shards, within the deadline of the call. */
    if (is_unknown && table != NULL && rp_client_tables_soon(client, wait, &tables) != RP_OK)
        tables = NULL;
    comma = ", but not on ";
    for (size_t i = 0; i < rp_unary_count(u); i++) {
        rp_error why = {0};

        if (rp_unary_response_of(u, i)->status == RP_OK) continue;
        explain(client, u, i, table, tables, &why);
        add_text(text, "%s%s", comma, rp_client_shard_address(client, i));
        add_text(text, " (%s)%s", why.text, "");
        comma = ", ";
    }
    rp_client_tables_free(tables);
    (void)rp_fail(err, st, "%s", text);
    return true;
}

/* Calls all shards. `table`: the name of the table that must exist, or NULL. */
static rp_status call_all(rp_client *client, const char *path, rp_buf *message, bool repeatable,
                          const char *table, rp_wait wait, rp_error *err)
{
    const rp_unary_request request = {path, message, repeatable, false, 0};
    rp_unary *u = NULL;
    rp_status st;

    assert(client->store == NULL);
    st = message->bad
             ? rp_fail(err, RP_NO_RESOURCE, "out of memory for a request")
             : rp_unary_call(client, &request, 0, client->addresses.count, wait, &u, err);
    if (st == RP_OK) st = rp_unary_result(u, err);
    if (st != RP_OK && err != NULL &&
        (u == NULL || !tell_done(client, u, table, wait, st, err)))
        st = rp_client_name_tables(client, table, wait, st, err);
    rp_unary_free(u);
    rp_buf_deinit(message);
    return st;
}

static rp_status need_name(const char *table, rp_error *err)
{
    if (table != NULL && table[0] != '\0') return RP_OK;
    return rp_fail(err, RP_INVALID, "no table name is given");
}

/* Prefixes the error with the address of the shard. Returns `st`. */
static rp_status name_shard(const rp_client *client, size_t shard, rp_status st, rp_error *err)
{
    char text[RP_ERROR_TEXT_BYTES];

    assert(st != RP_OK);
    if (err == NULL) return st;
    (void)snprintf(text, sizeof text, "%s", err->text);
    return rp_fail(err, st, "%.80s: %.160s", rp_client_shard_address(client, shard), text);
}

/* Adds the tables of one shard. `status` is NULL for a Reverb server. */
static rp_status add_shard(rp_client *client, size_t shard, const rp_unary_response *info,
                           const rp_unary_response *status, rp_client_tables *out,
                           rp_error *err)
{
    rp_wire_tables *tables = NULL, *more = NULL;
    rp_status st =
        rp_wire_read_server_info(&client->alloc, info->data, info->size, NULL, &tables, err);

    if (st == RP_OK && status != NULL)
        st = rp_wire_read_status(&client->alloc, status->data, status->size, &more, err);
    if (st == RP_OK && more != NULL) rp_wire_tables_merge(tables, more);
    if (st != RP_OK) st = name_shard(client, shard, st, err);
    for (size_t i = 0; st == RP_OK && i < tables->count; i++) {
        rp_table_info *t = &tables->tables[i];

        /* A Reverb server does not report weights; without priorities every item weighs 1. */
        if (status == NULL && t->sampler.kind != RP_PRIORITIZED)
            t->total_weight = (double)t->size;
        st = rp_client_tables_add(out, shard, t, err);
    }
    rp_wire_tables_free(more);
    rp_wire_tables_free(tables);
    return st;
}

/* Merges the responses to ServerInfo and Status. A server without Status is Reverb's. Of a
 * server that went away between the two calls, ServerInfo is used. */
static rp_status merge(rp_client *client, const rp_unary *infos, const rp_unary *statuses,
                       rp_client_tables *out, rp_error *err)
{
    rp_status st = RP_OK;

    assert(rp_unary_count(infos) == rp_unary_count(statuses));
    for (size_t i = 0; i < rp_unary_count(infos) && st == RP_OK; i++) {
        const rp_unary_response *info = rp_unary_response_of(infos, i);
        const rp_unary_response *status = rp_unary_response_of(statuses, i);

        if (info->status != RP_OK) continue;
        if (status->status == RP_CANCELLED || status->status == RP_NO_RESOURCE)
            return rp_fail(err, status->status, "%s", status->text);
        st = add_shard(client, i, info, status->status == RP_OK ? status : NULL, out, err);
    }
    return st;
}

static rp_status get_remote_tables(rp_client *client, rp_wait wait, bool skips_away,
                                   rp_client_tables **out, rp_error *err)
{
    const rp_unary_request info = {RP_CLIENT_REVERB "ServerInfo", NULL, true, skips_away, 0};
    const rp_unary_request status = {RP_CLIENT_REPLAY "Status", NULL, true, skips_away, 0};
    size_t shards = client->addresses.count;
    rp_client_tables *tables = NULL;
    rp_unary *infos = NULL, *statuses = NULL;
    rp_status st = rp_unary_call(client, &info, 0, shards, wait, &infos, err);

    if (st == RP_OK) st = rp_unary_result(infos, err);
    if (st == RP_OK) st = rp_unary_call(client, &status, 0, shards, wait, &statuses, err);
    if (st == RP_OK) st = rp_client_tables_new(&client->alloc, 4 * shards, &tables, err);
    if (st == RP_OK) st = merge(client, infos, statuses, tables, err);
    rp_unary_free(infos);
    rp_unary_free(statuses);
    if (st == RP_OK)
        *out = tables;
    else
        rp_client_tables_free(tables);
    return st;
}

rp_status rp_client_get_tables(rp_client *client, rp_wait wait, rp_client_tables **out,
                               rp_error *err)
{
    if (client->store != NULL) return rp_local_tables(client, out, err);
    return get_remote_tables(client, wait, false, out, err);
}

rp_status rp_client_get_tables_there(rp_client *client, rp_wait wait, rp_client_tables **out,
                                     rp_error *err)
{
    if (client->store != NULL) return rp_local_tables(client, out, err);
    return get_remote_tables(client, wait, true, out, err);
}

rp_status rp_client_mutate(rp_client *client, const char *table, const rp_mutation *mutation,
                           rp_wait wait, rp_error *err)
{
    rp_status st = need_name(table, err);
    rp_buf message;

    if (st != RP_OK) return st;
    if (mutation == NULL)
        return rp_fail(err, RP_INVALID, "table '%s': no mutation is given", table);
    if ((mutation->updates == NULL && mutation->update_count > 0) ||
        (mutation->deletes == NULL && mutation->delete_count > 0))
        return rp_fail(err, RP_INVALID, "table '%s': %zu updates and %zu deletes, and no array",
                       table, mutation->update_count, mutation->delete_count);
    /* A NaN would make a table of a Reverb server unusable. */
    for (size_t i = 0; i < mutation->update_count; i++)
        if (isnan(mutation->updates[i].priority))
            return rp_fail(err, RP_INVALID,
                           "table '%s': the priority of item %" PRIu64 " is not a number",
                           table, mutation->updates[i].key);
    if (client->store != NULL) {
        st = rp_local_mutate(client, table, mutation, err);
    } else {
        rp_buf_init(&message, &client->alloc);
        rp_wire_write_mutate_request(&message, table, mutation->updates, mutation->update_count,
                                     mutation->deletes, mutation->delete_count);
        st = call_all(client, RP_CLIENT_REVERB "MutatePriorities", &message, true, table, wait,
                      err);
    }
    return st;
}

rp_status rp_client_reset(rp_client *client, const char *table, rp_wait wait, rp_error *err)
{
    rp_status st = need_name(table, err);
    rp_buf message;

    if (st != RP_OK) return st;
    if (client->store != NULL) {
        st = rp_local_reset(client, table, err);
    } else {
        rp_buf_init(&message, &client->alloc);
        rp_wire_write_reset_request(&message, table);
        st = call_all(client, RP_CLIENT_REVERB "Reset", &message, true, table, wait, err);
    }
    return st;
}

static rp_status copy_path(rp_client *client, const rp_unary *u, char **out, rp_error *err)
{
    for (size_t i = 0; i < rp_unary_count(u); i++) {
        const rp_unary_response *a = rp_unary_response_of(u, i);
        rp_string path;
        rp_status st;

        if (a->status != RP_OK) continue;
        st = rp_wire_read_checkpoint_response(a->data, a->size, &path, err);
        if (st != RP_OK) return name_shard(client, i, st, err);
        /* rp_client_text_free() uses strlen(), so the path must not contain a zero byte. */
        if (memchr(path.data, '\0', path.size) != NULL)
            return rp_fail(err, RP_CORRUPT, "a checkpoint path with a zero byte");
        *out = rp_alloc(&client->alloc, path.size + 1);
        if (*out == NULL) return rp_fail_memory(err, path.size + 1);
        if (path.size > 0) memcpy(*out, path.data, path.size);
        (*out)[path.size] = '\0';
        return RP_OK;
    }
    return rp_fail(err, RP_INTERNAL, "no shard has written a checkpoint");
}

static rp_status local_checkpoint(rp_client *client, rp_wait wait, char **path, rp_error *err)
{
    char *room;
    rp_status st;

    if (client->options.durable == NULL)
        return rp_fail(err, RP_INVALID,
                       "no checkpointer is configured for this store: in C, open a data "
                       "directory with rp_durable_open() and set rp_client_options.durable; "
                       "give its server storage= in Python");
    room = rp_alloc(&client->alloc, PATH_BYTES);
    if (room == NULL) return rp_fail_memory(err, PATH_BYTES);
    st = rp_durable_checkpoint(client->options.durable, wait, room, PATH_BYTES, err);
    if (st == RP_OK && path != NULL) {
        *path = rp_alloc(&client->alloc, strlen(room) + 1);
        if (*path == NULL)
            st = rp_fail_memory(err, strlen(room) + 1);
        else
            memcpy(*path, room, strlen(room) + 1);
    }
    rp_release(&client->alloc, room, PATH_BYTES);
    return st;
}

/* Replaces the error of a checkpoint of several servers, or a late one, by one that names the
 * server of the error, and the servers that have written a checkpoint. */
static rp_status fail_checkpoint(const rp_client *client, const rp_unary *u, rp_status st,
                                 rp_error *err)
{
    char text[RP_ERROR_TEXT_BYTES], done[RP_ERROR_TEXT_BYTES / 2] = "";
    const char *address = NULL;

    if (err == NULL || (rp_unary_count(u) == 1 && st != RP_DEADLINE)) return st;
    (void)snprintf(text, sizeof text, "%s", err->text);
    for (size_t i = 0; i < rp_unary_count(u); i++) {
        const rp_unary_response *a = rp_unary_response_of(u, i);
        const char *of = rp_client_shard_address(client, i);
        size_t used = strlen(done);

        if (a->status == RP_OK)
            (void)snprintf(done + used, sizeof done - used, "%s%s",
                           used > 0 ? ", " : "; written on ", of);
        else if (address == NULL && a->status == st && strcmp(a->text, text) == 0)
            address = of;
    }
    if (address == NULL || strstr(text, address) != NULL)
        return rp_fail(err, st, "%s%s", text, done);
    return rp_fail(err, st, "%.80s: %s%s", address, text, done);
}

rp_status rp_client_checkpoint(rp_client *client, rp_wait wait, char **path, rp_error *err)
{
    const rp_unary_request request = {RP_CLIENT_REVERB "Checkpoint", NULL, false, false, 0};
    rp_unary *u = NULL;
    rp_status st;

    if (client->store != NULL) return local_checkpoint(client, wait, path, err);
    st = rp_unary_call(client, &request, 0, client->addresses.count, wait, &u, err);
    if (st == RP_OK) {
        st = rp_unary_result(u, err);
        if (st != RP_OK) st = fail_checkpoint(client, u, st, err);
    }
    if (st == RP_OK && path != NULL) st = copy_path(client, u, path, err);
    rp_unary_free(u);
    return st;
}

static rp_status read_durability(const rp_client *client, const rp_unary *u,
                                 rp_client_durability *out, size_t capacity, size_t *count,
                                 rp_error *err)
{
    for (size_t i = 0; i < rp_unary_count(u) && *count < capacity; i++) {
        const rp_unary_response *a = rp_unary_response_of(u, i);
        rp_client_durability *d = &out[*count];
        rp_status st = RP_OK;

        if (a->status != RP_OK && a->status != RP_UNIMPLEMENTED) continue;
        *d = (rp_client_durability){.shard = i};
        if (a->status == RP_OK)
            st = rp_wire_read_durability(a->data, a->size, &d->is_durable, &d->info, err);
        if (st != RP_OK) return name_shard(client, i, st, err);
        ++*count;
        assert(*count <= capacity);
    }
    return RP_OK;
}

static rp_status request_durability(rp_client *client, rp_client_durability *out,
                                    size_t capacity, size_t *count, rp_wait wait, rp_error *err)
{
    rp_unary *u = NULL;
    rp_buf message;
    rp_status st;

    rp_buf_init(&message, &client->alloc);
    rp_wire_write_status_request(&message, NULL, true);
    const rp_unary_request request = {RP_CLIENT_REPLAY "Status", &message, true, false, 0};
    st = message.bad
             ? rp_fail(err, RP_NO_RESOURCE, "out of memory for a request")
             : rp_unary_call(client, &request, 0, client->addresses.count, wait, &u, err);
    if (st == RP_OK) st = rp_unary_result(u, err);
    if (st == RP_UNIMPLEMENTED) st = RP_OK; /* a Reverb server */
    if (st == RP_OK) st = read_durability(client, u, out, capacity, count, err);
    rp_unary_free(u);
    rp_buf_deinit(&message);
    return st;
}

rp_status rp_client_get_durability(rp_client *client, rp_client_durability *out,
                                   size_t capacity, size_t *count, rp_wait wait, rp_error *err)
{
    *count = 0;
    if (out == NULL && capacity > 0)
        return rp_fail(err, RP_INVALID, "`out` is NULL, capacity %zu", capacity);
    if (client->store == NULL)
        return request_durability(client, out, capacity, count, wait, err);
    if (capacity == 0) return RP_OK;
    *out = (rp_client_durability){.is_durable = client->options.durable != NULL};
    if (out->is_durable) rp_durable_get_info(client->options.durable, &out->info);
    *count = 1;
    return RP_OK;
}

rp_status rp_client_create_table(rp_client *client, const rp_table_options *options,
                                 rp_wait wait, rp_error *err)
{
    rp_status st;
    rp_buf message;

    if (options == NULL) return rp_fail(err, RP_INVALID, "no table options are given");
    st = need_name(options->name, err);
    if (st != RP_OK) return st;
    if (client->store != NULL) return rp_store_add_table(client->store, options, NULL, err);
    rp_buf_init(&message, &client->alloc);
    rp_wire_write_create_table(&message, options);
    return call_all(client, RP_CLIENT_REPLAY "CreateTable", &message, false, NULL, wait, err);
}

rp_status rp_client_drop_table(rp_client *client, const char *table, rp_wait wait,
                               rp_error *err)
{
    rp_status st = need_name(table, err);
    rp_buf message;

    if (st != RP_OK) return st;
    rp_client_forget_signature(client, table);
    if (client->store != NULL) {
        st = rp_local_drop(client, table, err);
    } else {
        rp_buf_init(&message, &client->alloc);
        rp_wire_write_drop_table(&message, table);
        st = call_all(client, RP_CLIENT_REPLAY "DropTable", &message, false, table, wait, err);
    }
    return st;
}

rp_status rp_client_alter_table(rp_client *client, const char *table,
                                const rp_table_alteration *change, rp_wait wait, rp_error *err)
{
    const uint32_t known = RP_ALTER_MAX_SIZE | RP_ALTER_MAX_BYTES | RP_ALTER_MAX_TIMES_SAMPLED |
                           RP_ALTER_LIMITER | RP_ALTER_RECENTER;
    rp_status st = need_name(table, err);
    rp_buf message;

    if (st != RP_OK) return st;
    if (change == NULL)
        return rp_fail(err, RP_INVALID, "table '%s': no alteration is given", table);
    if (change->which == 0)
        return rp_fail(err, RP_INVALID, "table '%s': `which` is 0: nothing is to be altered",
                       table);
    if ((change->which & ~known) != 0)
        return rp_fail(err, RP_INVALID, "table '%s': changes %#x are not all known", table,
                       (unsigned)change->which);
    if (client->store != NULL) {
        st = rp_local_alter(client, table, change, err);
    } else {
        rp_buf_init(&message, &client->alloc);
        rp_wire_write_alter_table(&message, table, change);
        st = call_all(client, RP_CLIENT_REPLAY "AlterTable", &message, true, table, wait, err);
    }
    return st;
}

static rp_status set_paused(rp_client *client, const char *table, uint32_t sides, bool resume,
                            rp_wait wait, rp_error *err)
{
    rp_status st = need_name(table, err);
    rp_buf message;

    if (st != RP_OK) return st;
    if (sides == 0 || (sides & ~(uint32_t)(RP_SIDE_INSERTS | RP_SIDE_SAMPLES)) != 0)
        return rp_fail(err, RP_INVALID, "sides are %u: inserts are %d, samples %d, both %d",
                       (unsigned)sides, RP_SIDE_INSERTS, RP_SIDE_SAMPLES,
                       RP_SIDE_INSERTS | RP_SIDE_SAMPLES);
    if (client->store != NULL) {
        st = rp_local_pause(client, table, sides, resume, err);
    } else {
        rp_buf_init(&message, &client->alloc);
        rp_wire_write_pause_table(&message, table, sides);
        st = call_all(client,
                      resume ? RP_CLIENT_REPLAY "ResumeTable" : RP_CLIENT_REPLAY "PauseTable",
                      &message, true, table, wait, err);
    }
    return st;
}

rp_status rp_client_pause_table(rp_client *client, const char *table, uint32_t sides,
                                rp_wait wait, rp_error *err)
{
    return set_paused(client, table, sides, false, wait, err);
}

rp_status rp_client_resume_table(rp_client *client, const char *table, uint32_t sides,
                                 rp_wait wait, rp_error *err)
{
    return set_paused(client, table, sides, true, wait, err);
}

/* Adds the blocked calls of one shard. */
static rp_status add_blocked(rp_client *client, size_t shard, const rp_unary_response *response,
                             rp_client_blocked *b, rp_error *err)
{
    size_t room = b->capacity - b->count;
    rp_wire_blocked found = {0};
    rp_status st;

    assert(b->count <= b->capacity);
    /* Each call takes at least a byte of the response: this bounds the allocation. */
    if (room > response->size) room = response->size;
    if (room > 0) {
        found.calls = rp_alloc_array(&client->alloc, room, sizeof *found.calls);
        if (found.calls == NULL) return rp_fail_memory(err, room * sizeof *found.calls);
    }
    found.capacity = room;
    st = rp_wire_read_blocked(response->data, response->size, rp_now_ns(), &found, err);
    assert(st != RP_OK || found.count <= room);
    if (st != RP_OK) st = name_shard(client, shard, st, err);
    for (size_t i = 0; st == RP_OK && found.calls != NULL && i < found.count; i++) {
        const rp_wire_waiting *call = &found.calls[i];
        rp_client_waiting *w = &b->calls[b->count++];

        *w = (rp_client_waiting){
            .shard = shard, .client_id = call->client_id, .waiting = call->waiting};
        (void)snprintf(w->table, sizeof w->table, "%.*s", (int)call->table.size,
                       call->table.data);
        (void)snprintf(w->client, sizeof w->client, "%.*s", (int)call->client.size,
                       call->client.data);
    }
    if (st == RP_OK) b->total += found.total;
    rp_release(&client->alloc, found.calls, room * sizeof *found.calls);
    return st;
}

static rp_status request_blocked(rp_client *client, const char *table, rp_client_blocked *b,
                                 rp_wait wait, rp_error *err)
{
    rp_unary_request request = {RP_CLIENT_REPLAY "WhyBlocked", NULL, true, false, 0};
    rp_unary *u = NULL;
    rp_buf message;
    rp_status st;

    rp_buf_init(&message, &client->alloc);
    rp_wire_write_why_blocked(&message, table, b->capacity);
    request.message = &message;
    st = message.bad
             ? rp_fail(err, RP_NO_RESOURCE, "out of memory for a request")
             : rp_unary_call(client, &request, 0, client->addresses.count, wait, &u, err);
    if (st == RP_OK) st = rp_unary_result(u, err);
    /* Rollouts are on the first server only. */
    if (st == RP_NOT_FOUND && u != NULL && rp_unary_response_of(u, 0)->status == RP_OK)
        st = RP_OK;
    for (size_t i = 0; st == RP_OK && i < rp_unary_count(u); i++) {
        const rp_unary_response *a = rp_unary_response_of(u, i);

        if (a->status == RP_OK) st = add_blocked(client, i, a, b, err);
    }
    rp_unary_free(u);
    rp_buf_deinit(&message);
    return st;
}

rp_status rp_client_why_blocked(rp_client *client, const char *table, rp_client_blocked *out,
                                rp_wait wait, rp_error *err)
{
    rp_client_blocked b;
    rp_status st;

    if (out == NULL) return rp_fail(err, RP_INVALID, "no list of calls is given");
    b = (rp_client_blocked){.calls = out->calls, .capacity = out->capacity};
    if (b.calls == NULL && b.capacity > 0)
        return rp_fail(err, RP_INVALID, "`calls` is NULL, capacity %zu", b.capacity);
    st = client->store != NULL ? rp_local_why_blocked(client, table, &b, err)
                               : request_blocked(client, table, &b, wait, err);

    if (st != RP_OK) return rp_client_name_tables(client, table, wait, st, err);
    assert(b.count <= b.capacity && b.count <= b.total);
    *out = b;
    return RP_OK;
}
