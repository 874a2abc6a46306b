/* SPDX-License-Identifier: Apache-2.0 */
/* CreateTable, DropTable, AlterTable, PauseTable, ResumeTable, WhyBlocked and Status. */
#include <assert.h>

#include "rollouts/rollout_set.h"
#include "server/core/deferral.h"
#include "server/core/served_table.h"
#include "server/core/worker.h"
#include "server/http/server_view.h"
#include "server/rpc/methods.h"
#include "store/store.h"
#include "table/op.h"
#include "table/table_log.h"
#include "tensor/tensor.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/admin_messages.h"
#include "wire/durability_wire.h"
#include "wire/fields.h"
#include "wire/signature_wire.h"

/* A name as a C string. Decoders refuse names that contain a zero byte. */
typedef struct zero_name {
    char text[RP_WIRE_MAX_NAME_BYTES + 1];
} zero_name;

static void copy_name(zero_name *to, rp_string name)
{
    assert(name.size < sizeof to->text); /* the decoder has checked it */
    memcpy(to->text, name.data, name.size);
    to->text[name.size] = '\0';
}

/* Responds once the change `lsn` is safe; if `st` is not RP_OK, with the error. */
static void end(rp_task *task, rp_status st, uint64_t lsn, const rp_error *error)
{
    if (st == RP_OK)
        rp_task_respond_when_safe(task, NULL, lsn);
    else
        rp_task_finish(task, st, error->text);
}

/* Memory that the signatures of all tables may take, since max_bytes of a table does not count
 * it. */
enum { MOST_SIGNATURE_BYTES = 16 << 20 };

/* Returns RP_NO_RESOURCE if the signatures of all tables and `more` would take too much memory.
 */
static rp_status check_signatures(rp_server *server, const rp_signature *more, rp_error *err)
{
    size_t count = rp_store_find_tables(server->store, NULL, 0), found;
    size_t bytes = rp_signature_bytes(more);
    rp_table **tables;

    if (more == NULL) return RP_OK;
    tables = rp_alloc_array(&server->alloc, count + 1, sizeof(rp_table *));
    if (tables == NULL) return rp_fail_memory(err, (count + 1) * sizeof(rp_table *));
    found = rp_store_find_tables(server->store, tables, count);
    for (size_t i = 0; i < found && i < count; i++) {
        rp_table_info info;

        rp_table_get_info(tables[i], &info);
        bytes += rp_signature_bytes(info.signature);
        rp_table_unref(tables[i]);
    }
    rp_release(&server->alloc, tables, (count + 1) * sizeof(rp_table *));
    if (bytes <= MOST_SIGNATURE_BYTES) return RP_OK;
    return rp_fail(
        err, RP_NO_RESOURCE,
        "with this one the signatures of %zu tables take %zu bytes, the limit is %d: "
        "use fewer columns or shorter names",
        count + 1, bytes, MOST_SIGNATURE_BYTES);
}

/* Adds a table. Holds a lock from the check of the limits to the addition. */
static rp_status add_table(rp_server *server, const rp_table_options *options, bool *is_over,
                           uint64_t *lsn, rp_error *err)
{
    rp_store_info info;
    rp_status st;

    rp_mutex_lock(&server->lock);
    rp_store_get_info(server->store, &info);
    *is_over = info.table_count >= server->limits.tables;
    if (*is_over)
        st = rp_fail(err, RP_NO_RESOURCE, "there are %zu tables, the limit is %zu",
                     info.table_count, server->limits.tables);
    else
        st = check_signatures(server, options->signature, err);
    *is_over = *is_over || st == RP_NO_RESOURCE;
    if (st == RP_OK) st = rp_store_add_table_logged(server->store, options, NULL, lsn, err);
    rp_mutex_unlock(&server->lock);
    return st;
}

static void create(rp_task *task, const rp_wire_table_options *asked)
{
    rp_server *server = rp_task_worker(task)->server;
    rp_table_options options = {
        .sampler = asked->sampler,
        .remover = asked->remover,
        .limiter = asked->limiter,
        .max_size = asked->max_size,
        .max_bytes = asked->max_bytes,
        .max_times_sampled = asked->max_times_sampled,
        .soft_limit = asked->soft_limit,
    };
    rp_status st = RP_OK;
    bool is_over = false;
    uint64_t lsn = 0;
    zero_name name;
    rp_error error;

    copy_name(&name, asked->name);
    options.name = name.text;
    if (asked->signature != NULL)
        st = rp_wire_read_signature(&server->alloc, asked->signature, asked->signature_size,
                                    &options.signature, &error);
    if (st == RP_OK) st = add_table(server, &options, &is_over, &lsn, &error);
    rp_signature_unref(options.signature);
    if (is_over)
        rp_task_refuse(task, RP_REFUSED_TABLES, &error);
    else
        end(task, st, lsn, &error);
}

static void on_create(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_wire_table_options asked;
    rp_error error;

    (void)block;
    if (rp_wire_read_create_table(data, size, &asked, &error) == RP_OK) {
        create(task, &asked);
        return;
    }
    error.code = RP_INVALID; /* even for a name that is too long */
    rp_task_refuse(task, RP_REFUSED_DECODE, &error);
}

const rp_task_kind rp_create_table_kind = {
    .bytes = sizeof(rp_task), .logs = true, .on_message = on_create};

static void on_drop(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_server *server = rp_task_worker(task)->server;
    rp_served_table *served;
    rp_string table;
    zero_name name;
    rp_error error;
    rp_status st;
    uint64_t lsn = 0;

    (void)block;
    if (rp_wire_read_drop_table(data, size, &table, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    served = rp_served_table_of(task, table);
    if (served == NULL) return;
    copy_name(&name, table);
    st = rp_store_drop_table_logged(server->store, table, &lsn, &error);
    if (st == RP_OK) {
        rp_served_table_forget(server, name.text);
        for (size_t i = 0; i < server->worker_count; i++)
            rp_worker_release_dropped(&server->workers[i]);
    }
    rp_served_table_unref(served);
    end(task, st, lsn, &error);
}

const rp_task_kind rp_drop_table_kind = {
    .bytes = sizeof(rp_task), .logs = true, .on_message = on_drop};

rp_table_alteration rp_alteration_of(const rp_wire_alter_table *asked, rp_table *table)
{
    const rp_wire_limiter *limiter = &asked->limiter;
    rp_table_alteration change = {
        .max_size = asked->max_size,
        .max_bytes = asked->max_bytes,
        .max_times_sampled = asked->max_times_sampled,
    };
    rp_table_info info;

    if (asked->has_max_size) change.which |= RP_ALTER_MAX_SIZE;
    if (asked->has_max_bytes) change.which |= RP_ALTER_MAX_BYTES;
    if (asked->has_max_times_sampled) change.which |= RP_ALTER_MAX_TIMES_SAMPLED;
    if (limiter->has_samples_per_insert || limiter->has_min_size || limiter->has_min_diff ||
        limiter->has_max_diff) {
        rp_table_get_info(table, &info);
        change.which |= RP_ALTER_LIMITER;
        change.limiter = info.limiter;
        rp_wire_limiter_apply(limiter, &change.limiter);
    }
    if (asked->recenter) change.which |= RP_ALTER_RECENTER;
    return change;
}

/* Lowering a bound evicts items in blocks: in each turn of the loop as many blocks as its work
 * allows. */
typedef struct alter_task {
    rp_task task;
    rp_served_table *served; /* a reference, until the alteration is done or given up */
    rp_altering altering;
} alter_task;

static alter_task *alter_of(rp_task *task)
{
    return (alter_task *)(void *)task;
}

/* Ends the alteration, whether it is done or not. May be called again. */
static void stop_altering(rp_task *task)
{
    alter_task *alter = alter_of(task);

    if (alter->served == NULL) return;
    rp_table_alter_give_up(alter->served->table, &alter->altering);
    rp_served_table_altered(alter->served); /* even after a failure: a part may have changed */
    rp_served_table_unref(alter->served);
    alter->served = NULL;
}

static void alter_some(alter_task *alter)
{
    rp_task *task = &alter->task;
    rp_altering *altering = &alter->altering;
    rp_status st = RP_OK;
    rp_error error;
    uint64_t lsn = 0;

    assert(alter->served != NULL && !altering->is_done);
    while (st == RP_OK && !altering->is_done) {
        if (altering->has_begun && !rp_defer_may_go_on(task)) return;
        st = rp_table_alter_step(alter->served->table, altering, &lsn, &error);
        rp_defer_add_work(rp_task_worker(task), RP_BLOCK);
    }
    stop_altering(task);
    end(task, st, lsn, &error);
}

static void on_alter(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    alter_task *alter = alter_of(task);
    rp_wire_alter_table asked;
    rp_error error;

    (void)block;
    if (rp_wire_read_alter_table(data, size, &asked, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    alter->served = rp_served_table_of(task, asked.table);
    if (alter->served == NULL) return;
    alter->altering = (rp_altering){.change = rp_alteration_of(&asked, alter->served->table)};
    alter_some(alter);
}

static void on_alter_turn(rp_task *task)
{
    if (alter_of(task)->served != NULL)
        alter_some(alter_of(task));
    else
        rp_call_resume(task->call);
}

const rp_task_kind rp_alter_table_kind = {
    .bytes = sizeof(alter_task),
    .logs = true,
    .on_message = on_alter,
    .on_turn = on_alter_turn,
    .on_end = stop_altering,
    .on_close = stop_altering,
};

static void on_pause_or_resume(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    bool is_pause = task->method == RP_METHOD_PAUSE_TABLE;
    rp_wire_pause_table asked;
    rp_served_table *served;
    uint32_t sides;
    rp_error error;
    rp_status st;
    uint64_t lsn;

    (void)block;
    if (rp_wire_read_pause_table(data, size, &asked, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    served = rp_served_table_of(task, asked.table);
    if (served == NULL) return;
    sides = (asked.inserts ? (uint32_t)RP_SIDE_INSERTS : 0) |
            (asked.samples ? (uint32_t)RP_SIDE_SAMPLES : 0);
    st = rp_table_set_paused_logged(served->table, sides, is_pause, &lsn, &error);
    rp_served_table_unref(served);
    end(task, st, lsn, &error);
}

const rp_task_kind rp_pause_table_kind = {
    .bytes = sizeof(rp_task), .logs = true, .on_message = on_pause_or_resume};
const rp_task_kind rp_resume_table_kind = {
    .bytes = sizeof(rp_task), .logs = true, .on_message = on_pause_or_resume};

/* Calls `visit` for every table. False if there is no memory. */
static bool visit_all(rp_server *server, void (*visit)(void *ctx, rp_table *table), void *ctx)
{
    size_t capacity = rp_store_find_tables(server->store, NULL, 0) + 1, count;
    rp_table **tables = rp_alloc_array(&server->alloc, capacity, sizeof *tables);

    if (tables == NULL) return false;
    count = rp_store_find_tables(server->store, tables, capacity);
    if (count > capacity) count = capacity;
    for (size_t i = 0; i < count; i++) {
        assert(tables[i] != NULL);
        visit(ctx, tables[i]);
        rp_table_unref(tables[i]);
    }
    rp_release(&server->alloc, tables, capacity * sizeof *tables);
    return true;
}

/* Calls `visit` for the table `name`, or for all tables if `name` is empty. If there is no such
 * table or no memory, ends the call and returns false. */
static bool visit_named(rp_task *task, rp_string name,
                        void (*visit)(void *ctx, rp_table *table), void *ctx)
{
    rp_served_table *served;

    if (name.size == 0) {
        if (visit_all(rp_task_worker(task)->server, visit, ctx)) return true;
        rp_task_finish(task, RP_NO_RESOURCE, "out of memory to list the tables");
        return false;
    }
    served = rp_served_table_of(task, name);
    if (served == NULL) return false;
    visit(ctx, served->table);
    rp_served_table_unref(served);
    return true;
}

/* The calls that WhyBlocked has found so far. */
typedef struct description {
    rp_waiting *room;
    uint64_t *ids; /* of the connections of these calls */
    rp_client_views clients;
    size_t max_calls, calls, total;
    rp_buf *out;
} description;

/* Writes the calls in d->room, of which there are `total`, on a table or rollouts. */
static void write_calls(description *d, const char *name, size_t total)
{
    int64_t now_ns = rp_now_ns();
    size_t capacity = d->max_calls - d->calls, count = total < capacity ? total : capacity;

    d->total += total;
    for (size_t i = 0; i < count; i++) {
        const rp_wire_caller caller = {rp_client_views_peer(&d->clients, d->ids[i]), d->ids[i]};

        rp_wire_write_waiting_call(d->out, name, &d->room[i], &caller, now_ns);
    }
    d->calls += count;
}

static void describe(void *ctx, rp_table *table)
{
    description *d = ctx;

    assert(d->calls <= d->max_calls);
    write_calls(d, rp_table_name(table),
                rp_table_waiting_clients(table, d->room, d->ids, d->max_calls - d->calls));
}

/* Takes the reference. */
static void describe_rollouts(description *d, rp_rollouts *rollouts)
{
    zero_name name;

    copy_name(&name, rp_rollouts_name(rollouts));
    write_calls(d, name.text,
                rp_rollouts_waiting(rollouts, d->room, d->ids, d->max_calls - d->calls));
    rp_rollouts_unref(rollouts);
}

/* Describes what waits on a table, or on rollouts if no table has the name; or on all of them
 * if `name` is empty. If there is none or no memory, ends the call and returns false. */
static bool describe_named(rp_task *task, rp_string name, description *d)
{
    rp_store *store = rp_task_worker(task)->server->store;
    rp_rollouts *all[RP_ROLLOUT_SET_COUNT];
    rp_table *table = name.size > 0 ? rp_store_find_table(store, name) : NULL;
    size_t count = 0;

    if (name.size > 0 && table == NULL) {
        rp_rollouts *rollouts = rp_rollout_set_find(rp_store_rollouts(store), name);

        if (rollouts != NULL) {
            describe_rollouts(d, rollouts);
            return true;
        }
    }
    rp_table_unref(table);
    if (!visit_named(task, name, describe, d)) return false;
    if (name.size == 0) count = rp_rollout_set_list(rp_store_rollouts(store), all);
    for (size_t i = 0; i < count; i++) describe_rollouts(d, all[i]);
    return true;
}

/* Describes the waiting calls of a table, or of all. If there is no such table or no memory,
 * ends the call and returns false. */
static bool describe_all(rp_task *task, rp_string table, description *d)
{
    rp_server *server = rp_task_worker(task)->server;
    bool ok = false;

    d->room = rp_alloc_array(&server->alloc, d->max_calls, sizeof *d->room);
    d->ids = rp_alloc_array(&server->alloc, d->max_calls, sizeof *d->ids);
    if (d->room == NULL || d->ids == NULL ||
        rp_client_views_take(&d->clients, &server->alloc, &server->clients) != RP_OK)
        rp_task_finish(task, RP_NO_RESOURCE, "out of memory to describe what waits");
    else
        ok = describe_named(task, table, d);
    rp_client_views_deinit(&d->clients);
    rp_release(&server->alloc, d->ids, d->max_calls * sizeof *d->ids);
    rp_release(&server->alloc, d->room, d->max_calls * sizeof *d->room);
    return ok;
}

static void on_why_blocked(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_worker *worker = rp_task_worker(task);
    description d = {0};
    rp_message *reply;
    rp_string table;
    rp_error error;

    (void)block;
    if (rp_wire_read_why_blocked(data, size, &table, &d.max_calls, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    reply = rp_defer_reply(task);
    if (reply == NULL) return;
    d.out = &reply->bytes;
    if (!describe_all(task, table, &d)) {
        rp_message_release(&worker->replies, reply);
        return;
    }
    rp_wire_write_waiting_total(d.out, d.total);
    rp_defer_respond(task, reply);
}

const rp_task_kind rp_why_blocked_kind = {.bytes = sizeof(rp_task),
                                          .on_message = on_why_blocked};

static void write_status(void *out, rp_table *table)
{
    rp_table_info info;

    rp_table_get_info(table, &info);
    rp_wire_write_table_status(out, &info);
}

static void on_status(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_durable *durable = rp_task_worker(task)->server->safety.durable;
    rp_durable_info info;
    bool without_tables;
    rp_message *reply;
    rp_string table;
    rp_error error;

    (void)block;
    if (rp_wire_read_status_request(data, size, &table, &without_tables, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    reply = rp_defer_reply(task);
    if (reply == NULL) return;
    if (!without_tables && !visit_named(task, table, write_status, &reply->bytes)) {
        rp_message_release(&rp_task_worker(task)->replies, reply);
        return;
    }
    if (durable != NULL) {
        rp_durable_get_info(durable, &info);
        rp_wire_write_durability(&reply->bytes, &info);
    }
    rp_defer_respond(task, reply);
}

const rp_task_kind rp_status_kind = {.bytes = sizeof(rp_task), .on_message = on_status};
