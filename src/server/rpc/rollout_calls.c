/* SPDX-License-Identifier: Apache-2.0 */
/* CreateRollouts, DropRollouts, ListRollouts and ReadCursor. */
#include "rollouts/rollout_set.h"
#include "server/core/deferral.h"
#include "server/rpc/methods.h"
#include "server/rpc/rollout_reply.h"
#include "store/rollout_journal.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"

static rp_rollout_set *set_of(const rp_task *task)
{
    return rp_store_rollouts(rp_task_worker(task)->server->store);
}

/* Ends a call that has changed the set, or failed. */
static void end(rp_task *task, rp_status st, uint64_t lsn, const rp_error *error)
{
    if (st == RP_OK)
        rp_task_respond_when_safe(task, NULL, lsn);
    else
        rp_task_finish(task, st, error->text);
}

static void on_create(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    const rp_allocator *alloc = &rp_task_worker(task)->server->alloc;
    rp_store *store = rp_task_worker(task)->server->store;
    rp_rollout_options *options;
    rp_error error = {0};
    uint64_t lsn = 0, claimed;
    rp_string name;
    rp_status st;

    (void)block;
    if (rp_rollout_create_read(alloc, data, size, &name, &options, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    st = rp_store_rollouts_admit(store, NULL, &claimed, &error);
    if (st == RP_OK)
        st = rp_rollout_set_create(set_of(task), name, options, NULL, &lsn, &error);
    rp_store_rollouts_unclaim(store, claimed);
    rp_rollout_options_free(options, alloc);
    end(task, st, lsn, &error);
}

const rp_task_kind rp_create_rollouts_kind = {
    .bytes = sizeof(rp_task), .logs = true, .on_message = on_create};

static bool read_names(rp_task *task, const uint8_t *data, size_t size, rp_rollout_names *names)
{
    rp_error error = {0};

    if (rp_rollout_names_read(data, size, names, &error) == RP_OK) return true;
    rp_task_refuse(task, RP_REFUSED_DECODE, &error);
    return false;
}

static void on_drop(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_rollout_names names;
    rp_error error = {0};
    uint64_t lsn = 0;
    rp_status st;

    (void)block;
    if (!read_names(task, data, size, &names)) return;
    st = rp_rollout_set_drop(set_of(task), names.rollouts, &lsn, &error);
    rp_store_wake_rollouts(rp_task_worker(task)->server->store);
    end(task, st, lsn, &error);
}

const rp_task_kind rp_drop_rollouts_kind = {
    .bytes = sizeof(rp_task), .logs = true, .on_message = on_drop};

/* Writes a description of rollouts. Sets `out` bad if there is no memory. */
static void write_entry(rp_worker *worker, rp_rollouts *rollouts, rp_buf *out)
{
    const rp_allocator *alloc = &worker->server->alloc;
    char names[RP_ROLLOUT_CURSORS][RP_ROLLOUT_NAME_BYTES + 1];
    rp_string cursors[RP_ROLLOUT_CURSORS];
    rp_rollouts_entry entry = {.name = rp_rollouts_name(rollouts), .cursors = cursors};
    rp_rollout_options *options = rp_rollouts_copy_options(rollouts, alloc);
    rp_rollout_info info;

    if (options == NULL) {
        out->bad = true;
        return;
    }
    (void)rp_rollout_waits_expire(&worker->rollout_waits, rollouts);
    rp_rollouts_get_info(rollouts, &info);
    while (entry.cursor_count < RP_ROLLOUT_CURSORS &&
           rp_rollouts_cursor_name(rollouts, entry.cursor_count, names[entry.cursor_count])) {
        const char *name = names[entry.cursor_count];

        cursors[entry.cursor_count++] = (rp_string){name, strlen(name)};
    }
    entry.options = options;
    entry.info = &info;
    rp_rollout_entry_write(out, &entry);
    rp_rollout_options_free(options, alloc);
}

static void on_list(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_rollouts *all[RP_ROLLOUT_SET_COUNT];
    rp_rollout_names names;
    rp_message *reply;
    size_t count = 1;

    (void)block;
    if (!read_names(task, data, size, &names)) return;
    if (names.rollouts.size > 0) {
        all[0] = rp_rollouts_of(task, names.rollouts);
        if (all[0] == NULL) return;
    } else {
        count = rp_rollout_set_list(set_of(task), all);
    }
    reply = rp_defer_reply(task);
    for (size_t i = 0; i < count; i++) {
        if (reply != NULL) write_entry(rp_task_worker(task), all[i], &reply->bytes);
        rp_rollouts_unref(all[i]);
    }
    if (reply != NULL) rp_defer_respond(task, reply);
}

const rp_task_kind rp_list_rollouts_kind = {.bytes = sizeof(rp_task), .on_message = on_list};

static void on_cursor(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_rollout_names names;
    rp_rollouts *rollouts;
    rp_error error;
    rp_message *reply;
    rp_status st;
    size_t mark;

    (void)block;
    if (!read_names(task, data, size, &names)) return;
    rollouts = rp_rollouts_of(task, names.rollouts);
    if (rollouts == NULL) return;
    reply = rp_task_new_message(task);
    if (reply != NULL) {
        mark = rp_wire_begin(&reply->bytes, 1);
        st = rp_rollouts_read_cursor(rollouts, names.other, &reply->bytes);
        rp_wire_end(&reply->bytes, mark);
        if (st == RP_OK) {
            rp_task_respond(task, reply);
        } else {
            (void)rp_fail(&error, st, "rollouts '%.*s' have no cursor '%.*s'",
                          (int)names.rollouts.size, names.rollouts.data, (int)names.other.size,
                          names.other.data);
            rp_message_release(&rp_task_worker(task)->replies, reply);
            rp_task_finish(task, st, error.text);
        }
    }
    rp_rollouts_unref(rollouts);
}

const rp_task_kind rp_read_cursor_kind = {.bytes = sizeof(rp_task), .on_message = on_cursor};
