/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that change items by their keys: Update, Delete, MutatePriorities.
 *
 * Updates are applied before deletes. All updates are checked before the first is applied, so a
 * bad one changes nothing. A key that is in both lists is deleted in either order. Keys are
 * processed in blocks, as many in a turn of the loop as its work allows (deferral.h). Other
 * calls may change the table between two blocks. If the call ends before its last block, by
 * its deadline for example, the rest is not applied.
 *
 * Invariant Y1: `served` is set while there are keys that have not been processed. */
#include <assert.h>

#include "server/core/deferral.h"
#include "server/core/served_table.h"
#include "server/rpc/methods.h"
#include "table/table_log.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/admin_messages.h"
#include "wire/reverb_messages.h"

enum { CHANGE_WORK = 2 }; /* units of work to change an item */

typedef struct keys_task {
    rp_task task;
    rp_served_table *served; /* a reference, or NULL */
    rp_update *updates;
    uint64_t *keys; /* to delete */
    size_t update_count, key_count;
    size_t updated, deleted; /* how many of them have been processed */
    size_t found;            /* how many of these were in the table */
    uint64_t lsn;            /* at which the changes are safe */
} keys_task;

static keys_task *keys_of(rp_task *task)
{
    return (keys_task *)(void *)task;
}

/* Frees the keys. May be called again. */
static void release(rp_task *task)
{
    const rp_allocator *alloc = &rp_task_worker(task)->server->alloc;
    keys_task *k = keys_of(task);

    rp_release(alloc, k->updates, k->update_count * sizeof *k->updates);
    rp_release(alloc, k->keys, k->key_count * sizeof *k->keys);
    rp_served_table_unref(k->served);
    k->updates = NULL;
    k->keys = NULL;
    k->served = NULL;
}

/* Finds the table, and allocates arrays for the keys. If it cannot, ends the call and returns
 * false. */
static bool make_room(keys_task *k, rp_string table, size_t updates, size_t keys)
{
    const rp_allocator *alloc = &rp_task_worker(&k->task)->server->alloc;
    rp_error error;

    assert(k->served == NULL);
    k->served = rp_served_table_of(&k->task, table);
    if (k->served == NULL) return false;
    if (updates > 0) k->updates = rp_alloc_array(alloc, updates, sizeof *k->updates);
    if (k->updates != NULL) k->update_count = updates;
    if (keys > 0) k->keys = rp_alloc_array(alloc, keys, sizeof *k->keys);
    if (k->keys != NULL) k->key_count = keys;
    if (k->update_count == updates && k->key_count == keys) return true;
    (void)rp_fail_memory(&error, updates * sizeof *k->updates + keys * sizeof *k->keys);
    rp_task_finish(&k->task, error.code, error.text);
    return false;
}

static void respond(keys_task *k)
{
    rp_message *reply = NULL;

    release(&k->task);
    if (k->task.method != RP_METHOD_MUTATE_PRIORITIES) {
        reply = rp_task_new_message(&k->task);
        if (reply == NULL) return;
        rp_wire_write_found(&reply->bytes, k->found);
    }
    rp_task_respond_when_safe(&k->task, reply, k->lsn);
}

static size_t block_of(size_t count)
{
    return count < RP_BLOCK ? count : RP_BLOCK;
}

static rp_status change_block(keys_task *k, rp_error *err)
{
    size_t left = k->update_count - k->updated, found = 0, n;
    rp_table *table = k->served->table;
    rp_status st;

    if (left > 0) {
        n = block_of(left);
        st = rp_table_update_logged(table, k->updates + k->updated, n, &found, &k->lsn, err);
        k->updated += n;
    } else {
        n = block_of(k->key_count - k->deleted);
        st = rp_table_delete_logged(table, k->keys + k->deleted, n, &found, &k->lsn, err);
        k->deleted += n;
    }
    k->found += found;
    rp_defer_add_work(rp_task_worker(&k->task), n * CHANGE_WORK);
    return st;
}

/* Processes the keys, or those for which this turn has work left. */
static void change(keys_task *k)
{
    rp_error error;

    assert(k->served != NULL); /* Y1 */
    while (k->updated < k->update_count || k->deleted < k->key_count) {
        if (k->updated + k->deleted > 0 && !rp_defer_may_go_on(&k->task)) return;
        if (change_block(k, &error) != RP_OK) {
            rp_task_finish(&k->task, error.code, error.text);
            return;
        }
    }
    respond(k);
}

static void on_turn(rp_task *task)
{
    if (keys_of(task)->served != NULL)
        change(keys_of(task));
    else
        rp_call_resume(task->call);
}

/* Checks the updates and begins. */
static void begin(keys_task *k)
{
    rp_error error;

    /* A single block is checked when it is applied. */
    if (k->update_count > RP_BLOCK &&
        rp_table_check_updates(k->served->table, k->updates, k->update_count, &error) != RP_OK)
        rp_task_finish(&k->task, error.code, error.text);
    else
        change(k);
}

static void refuse(rp_task *task, const rp_error *error)
{
    rp_task_refuse(task, error->code == RP_NO_RESOURCE ? RP_REFUSED_KEYS : RP_REFUSED_DECODE,
                   error);
}

static void on_update(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    size_t most = rp_task_worker(task)->limits.keys;
    keys_task *k = keys_of(task);
    rp_wire_keys_request request;
    rp_error error;

    (void)block;
    if (rp_wire_read_update_request(data, size, most, &request, &error) != RP_OK) {
        refuse(task, &error);
        return;
    }
    if (!make_room(k, request.table, request.count, 0)) return;
    if (request.count > 0) rp_wire_request_updates(&request, k->updates);
    begin(k);
}

static void on_delete(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    size_t most = rp_task_worker(task)->limits.keys;
    keys_task *k = keys_of(task);
    rp_wire_keys_request request;
    rp_error error;

    (void)block;
    if (rp_wire_read_delete(data, size, most, &request, &error) != RP_OK) {
        refuse(task, &error);
        return;
    }
    if (!make_room(k, request.table, 0, request.count)) return;
    if (request.count > 0) rp_wire_request_keys(&request, k->keys);
    begin(k);
}

static void on_mutate(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    size_t most = rp_task_worker(task)->limits.keys;
    keys_task *k = keys_of(task);
    rp_wire_mutate_request request;
    rp_error error;

    (void)block;
    if (rp_wire_read_mutate_request(data, size, most, &request, &error) != RP_OK) {
        refuse(task, &error);
        return;
    }
    if (!make_room(k, request.table, request.update_count, request.delete_count)) return;
    if (k->update_count > 0) rp_wire_mutate_updates(&request, k->updates);
    if (k->key_count > 0) rp_wire_mutate_deletes(&request, k->keys);
    begin(k);
}

#define KEYS_KIND(message)                                                                     \
    {                                                                                          \
        .bytes = sizeof(keys_task), .logs = true, .on_message = (message), .on_turn = on_turn, \
        .on_end = release, .on_close = release,                                                \
    }

const rp_task_kind rp_update_kind = KEYS_KIND(on_update);
const rp_task_kind rp_delete_kind = KEYS_KIND(on_delete);
const rp_task_kind rp_mutate_kind = KEYS_KIND(on_mutate);
