/* SPDX-License-Identifier: Apache-2.0 */
/* Reverb's calls with one request and one response. */
#include <assert.h>

#include "chunk/protobuf.h"
#include "server/core/deferral.h"
#include "server/core/served_table.h"
#include "server/rpc/methods.h"
#include "table/table_log.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/reverb_messages.h"

/* Applies updates before deletes: all updates are checked before the first is applied, so a bad
 * one changes nothing. A key that is in both lists is deleted in either order. */
static rp_status mutate(rp_table *table, const rp_wire_mutate_request *request,
                        rp_update *updates, uint64_t *keys, uint64_t *lsn, rp_error *err)
{
    rp_status st = RP_OK;

    assert(updates != NULL && keys != NULL);
    rp_wire_mutate_updates(request, updates);
    rp_wire_mutate_deletes(request, keys);
    if (request->update_count > 0)
        st = rp_table_update_logged(table, updates, request->update_count, NULL, lsn, err);
    if (st == RP_OK && request->delete_count > 0)
        st = rp_table_delete_logged(table, keys, request->delete_count, NULL, lsn, err);
    return st;
}

static void on_mutate(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_worker *worker = rp_task_worker(task);
    const rp_allocator *alloc = &worker->server->alloc;
    rp_wire_mutate_request request;
    rp_update *updates = NULL;
    uint64_t *keys = NULL;
    uint64_t lsn = 0;
    rp_served_table *served;
    rp_error error;
    rp_status st;

    (void)block;
    if (rp_wire_read_mutate_request(data, size, worker->limits.keys, &request, &error) !=
        RP_OK) {
        rp_task_refuse(task, error.code == RP_NO_RESOURCE ? RP_REFUSED_KEYS : RP_REFUSED_DECODE,
                       &error);
        return;
    }
    served = rp_served_table_of(task, request.table);
    if (served == NULL) return;
    updates = rp_alloc_array(alloc, request.update_count + 1, sizeof *updates);
    keys = rp_alloc_array(alloc, request.delete_count + 1, sizeof *keys);
    st = updates != NULL && keys != NULL
             ? mutate(served->table, &request, updates, keys, &lsn, &error)
             : rp_fail_memory(&error, request.update_count * sizeof *updates);
    rp_release(alloc, updates, (request.update_count + 1) * sizeof *updates);
    rp_release(alloc, keys, (request.delete_count + 1) * sizeof *keys);
    rp_served_table_unref(served);
    if (st == RP_OK)
        rp_task_respond_when_safe(task, NULL, lsn);
    else
        rp_task_finish(task, st, error.text);
}

const rp_task_kind rp_mutate_kind = {.bytes = sizeof(rp_task), .on_message = on_mutate};

static void on_reset(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_served_table *served;
    rp_string name;
    rp_error error;
    rp_status st;
    uint64_t lsn;

    (void)block;
    if (rp_wire_read_reset_request(data, size, &name, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    served = rp_served_table_of(task, name);
    if (served == NULL) return;
    st = rp_table_reset_logged(served->table, &lsn, &error);
    rp_served_table_unref(served);
    if (st == RP_OK)
        rp_task_respond_when_safe(task, NULL, lsn);
    else
        rp_task_finish(task, st, error.text);
}

const rp_task_kind rp_reset_kind = {.bytes = sizeof(rp_task), .on_message = on_reset};

static void respond_server_info(rp_task *task)
{
    rp_server *server = rp_task_worker(task)->server;
    size_t capacity = rp_store_find_tables(server->store, NULL, 0) + 1, count;
    rp_table **tables = rp_alloc_array(&server->alloc, capacity, sizeof *tables);
    rp_table_info *infos = rp_alloc_array(&server->alloc, capacity, sizeof *infos);
    rp_message *reply = rp_defer_reply(task);

    if (tables == NULL || infos == NULL || reply == NULL) {
        rp_task_finish(task, RP_NO_RESOURCE, "out of memory for the infos of tables");
        rp_message_release(&rp_task_worker(task)->replies, reply);
    } else {
        count = rp_store_find_tables(server->store, tables, capacity);
        if (count > capacity) count = capacity;
        for (size_t i = 0; i < count; i++) rp_table_get_info(tables[i], &infos[i]);
        rp_wire_write_server_info(&reply->bytes, server->state_id, infos, count);
        for (size_t i = 0; i < count; i++) rp_table_unref(tables[i]);
        rp_defer_respond(task, reply);
    }
    rp_release(&server->alloc, tables, capacity * sizeof *tables);
    rp_release(&server->alloc, infos, capacity * sizeof *infos);
}

static void on_server_info(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    (void)block;
    if (rp_task_is_message(task, data, size)) respond_server_info(task);
}

const rp_task_kind rp_server_info_kind = {
    .bytes = sizeof(rp_task), .visits_tables = true, .on_message = on_server_info};

/* The client requests the address of a table in memory, in case client and server are one
 * process. The response is address 0 (an empty message), so the client uses the network. */
static void on_initialize(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_string table;
    rp_error error;
    int64_t pid;

    (void)block;
    if (rp_wire_read_initialize_request(data, size, &pid, &table, &error) != RP_OK)
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
    else
        rp_task_respond_empty(task);
}

static void on_initialize_end(rp_task *task)
{
    rp_task_finish(task, RP_OK, NULL);
}

const rp_task_kind rp_initialize_kind = {
    .bytes = sizeof(rp_task),
    .on_message = on_initialize,
    .on_half_close = on_initialize_end,
};
