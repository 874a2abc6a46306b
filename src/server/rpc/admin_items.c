/* SPDX-License-Identifier: Apache-2.0 */
/* Peek: items by key.
 *
 * Invariant D1: a reading of Peek that comes from disk is counted in worker->outstanding. */
#include <assert.h>

#include "server/bounds/limits.h"
#include "server/core/connection_room.h"
#include "server/core/deferral.h"
#include "server/core/worker.h"
#include "server/rpc/items_task.h"
#include "server/rpc/methods.h"
#include "table/spill.h"
#include "table/table_log.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/admin_messages.h"

enum { READ_PART = 8 }; /* reading this many keys is as much work as finding one */

typedef struct reading reading;

typedef struct peek_task {
    rp_items_task items;
    uint64_t *keys;
    size_t key_count; /* the array has room for one more */
    reading *reading; /* in progress, or NULL */
} peek_task;

/* Items that are being read from disk. It may outlive its call. */
struct reading {
    rp_sample_load load;
    rp_post post;
    rp_worker *worker;
    peek_task *peek;         /* NULL: its call has ended */
    rp_served_table *served; /* a reference */
    rp_sample_array room;    /* of load.samples */
};

static peek_task *peek_of(rp_task *task)
{
    return (peek_task *)(void *)task;
}

/* Frees a reading, with the samples unless they were moved to the task. */
static void free_reading(reading *r)
{
    rp_sample_array_deinit(&r->room, r->worker, r->load.count);
    rp_served_table_unref(r->served);
    rp_release(&r->worker->server->alloc, r, sizeof *r);
}

/* The reading has completed: responds with its items. Takes the reading. */
static void settle(rp_items_task *items, reading *r)
{
    if (r->load.status != RP_OK) {
        rp_task_finish(&items->task, r->load.status, r->load.error.text);
    } else if (!items->task.is_finished) {
        items->room = r->room;
        r->room = (rp_sample_array){0};
        rp_items_respond(items, r->load.count);
    }
    free_reading(r);
}

static void on_read(rp_post *post)
{
    reading *r = (reading *)((char *)post - offsetof(reading, post));
    rp_worker *worker = r->worker;
    peek_task *peek = r->peek;

    if (peek == NULL) {
        free_reading(r);
    } else {
        assert(peek->reading == r);
        peek->reading = NULL;
        settle(&peek->items, r);
    }
    rp_worker_returned(worker);
}

static void on_load_done(rp_sample_load *load)
{
    reading *r = load->user;

    rp_loop_post(r->worker->loop, &r->post);
}

/* Reads the items that are on disk, without blocking the loop, and responds. */
static void read_items(peek_task *peek)
{
    rp_items_task *items = &peek->items;
    rp_worker *worker = rp_task_worker(&items->task);
    reading *r = rp_alloc_zero(&worker->server->alloc, sizeof *r);
    rp_error error;

    if (r == NULL) {
        rp_sample_array_deinit(&items->room, worker, peek->key_count);
        (void)rp_fail_memory(&error, sizeof *r);
        rp_task_refuse(&items->task, RP_REFUSED_MEMORY, &error);
        return;
    }
    r->load = (rp_sample_load){.samples = items->room.samples,
                               .count = peek->key_count,
                               .max_bytes = worker->limits.message_bytes,
                               .on_done = on_load_done,
                               .user = r};
    r->room = items->room;
    items->room = (rp_sample_array){0};
    r->worker = worker;
    r->peek = peek;
    r->served = rp_served_table_ref(items->served);
    r->post.run = on_read;
    if (rp_table_start_load(items->served->table, &r->load)) {
        settle(items, r);
        return;
    }
    worker->outstanding++; /* D1 */
    peek->reading = r;
}

/* Takes room in the budget for a response with the chunks of all items. If there is none, ends
 * the call and returns false. */
static bool take_room(peek_task *peek)
{
    rp_items_task *items = &peek->items;
    rp_worker *worker = rp_task_worker(&items->task);
    rp_drawn *drawn = items->task.connection->drawn;
    size_t bytes = 0, most = worker->limits.message_bytes;
    rp_error error;

    for (size_t i = 0; i < peek->key_count && bytes < most; i++)
        if (items->room.samples[i].trajectory != NULL)
            bytes += rp_trajectory_cost(items->room.samples[i].trajectory);
    if (bytes > most) bytes = most;
    rp_connection_update_drawn(items->task.connection);
    if (bytes == 0) return true;
    if (rp_drawn_take(drawn, 0, bytes, bytes) > 0) {
        rp_items_hold(items, drawn, bytes);
        return true;
    }
    items->count = peek->key_count; /* samples to be released */
    (void)rp_fail(&error, RP_NO_RESOURCE,
                  "no room for a response of up to %zu bytes: answers to all connections "
                  "together hold %zu of %zu bytes, half of queued_bytes; ask for fewer items, "
                  "or later",
                  bytes, rp_queue_bytes(&worker->queue, RP_QUEUE_OUT),
                  rp_server_limits_side_bytes(&worker->limits));
    rp_task_refuse(&items->task, RP_REFUSED_QUEUED, &error);
    return false;
}

static void find_items(rp_items_task *items)
{
    peek_task *peek = peek_of(&items->task);
    size_t found = 0;
    rp_error error;

    assert(peek->key_count < items->room.count && peek->reading == NULL);
    rp_defer_add_work(rp_task_worker(&items->task), peek->key_count);
    if (rp_table_peek_unread(items->served->table, peek->keys, peek->key_count,
                             items->room.samples, &found, &error) != RP_OK) {
        rp_task_finish(&items->task, error.code, error.text);
        return;
    }
    if (items->with_chunks && !take_room(peek)) return;
    if (items->with_chunks && rp_table_has_tier(items->served->table))
        read_items(peek);
    else
        rp_items_respond(items, peek->key_count);
}

/* Allocates the keys and the samples. If there is no memory, ends the call and returns false.
 */
static bool make_room(peek_task *peek, const rp_wire_keys_request *request)
{
    rp_items_task *items = &peek->items;
    rp_worker *worker = rp_task_worker(&items->task);
    rp_refusal why = RP_REFUSED_MEMORY;
    rp_error error;

    if (rp_sample_array_init(&items->room, worker, request->count + 1, true, &why, &error) !=
        RP_OK) {
        rp_task_refuse(&items->task, why, &error);
        return false;
    }
    peek->keys = rp_alloc_array(&worker->server->alloc, items->room.count, sizeof *peek->keys);
    if (peek->keys == NULL) {
        (void)rp_fail_memory(&error, items->room.count * sizeof *peek->keys);
        rp_task_refuse(&items->task, why, &error);
        return false;
    }
    peek->key_count = request->count;
    return true;
}

static void on_peek(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    peek_task *peek = peek_of(task);
    rp_items_task *items = &peek->items;
    rp_wire_keys_request request;
    rp_error error;

    (void)block;
    if (!rp_items_take_message(items)) return;
    if (rp_wire_read_peek(data, size, rp_task_worker(task)->limits.keys, &request, &error) !=
        RP_OK) {
        rp_task_refuse(task, error.code == RP_NO_RESOURCE ? RP_REFUSED_KEYS : RP_REFUSED_DECODE,
                       &error);
        return;
    }
    items->served = rp_served_table_of(task, request.table);
    if (items->served == NULL || !make_room(peek, &request)) return;
    rp_wire_request_keys(&request, peek->keys);
    items->with_chunks = request.with_data;
    items->cut_rows = request.cut_rows;
    rp_items_begin(items, request.count, find_items);
    rp_defer_add_work(rp_task_worker(task), request.count / READ_PART);
}

static void on_peek_close(rp_task *task)
{
    peek_task *peek = peek_of(task);

    if (peek->reading != NULL) peek->reading->peek = NULL;
    rp_release(&rp_task_worker(task)->server->alloc, peek->keys,
               (peek->key_count + 1) * sizeof *peek->keys);
    rp_items_close(&peek->items);
}

const rp_task_kind rp_peek_kind = {
    .bytes = sizeof(peek_task),
    .on_message = on_peek,
    .on_turn = rp_items_turn,
    .on_half_close = rp_items_half_close,
    .on_close = on_peek_close,
    .on_room = rp_items_room,
};
