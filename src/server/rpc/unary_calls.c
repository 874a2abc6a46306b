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

const rp_task_kind rp_reset_kind = {
    .bytes = sizeof(rp_task), .logs = true, .on_message = on_reset};

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

const rp_task_kind rp_server_info_kind = {.bytes = sizeof(rp_task),
                                          .on_message = on_server_info};

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
