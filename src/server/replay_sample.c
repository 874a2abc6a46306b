/* SPDX-License-Identifier: Apache-2.0 */
/* Sample: one batch of items, drawn at once or as soon as the table allows. */
#include "server/replay_task.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/replay_calls.h"

/* A batch on its way out of the table, which may outlive its call. */
typedef struct draw draw;

typedef struct sample_task {
    rp_items_task items;
    rp_sample_options options;
    int64_t timeout_ns; /* -1: none */
    draw *draw;         /* that waits in the table */
} sample_task;

struct draw {
    rp_op op;
    rp_sample_options options;
    rp_post post;
    rp_worker *worker;
    sample_task *task; /* NULL: its call is gone */
    rp_served *served; /* a reference */
    rp_sample *samples;
    int64_t started_ns;
};

static sample_task *sample_of(rp_task *task)
{
    return (sample_task *)(void *)task;
}

/* --- draws -------------------------------------------------------------------------------------- */

static void on_posted(rp_post *post);

/* NULL with the call ended. */
static draw *new_draw(sample_task *task)
{
    rp_worker *worker = rp_task_worker(&task->items.task);
    draw *d = rp_alloc_zero(&worker->server->alloc, sizeof *d);
    rp_refusal why = RP_REFUSED_MEMORY;
    rp_error error;

    if (d == NULL) {
        (void)rp_fail_memory(&error, sizeof *d);
        rp_task_refuse(&task->items.task, why, &error);
        return NULL;
    }
    d->samples = rp_samples_room_new(worker, task->options.count, &why, &error);
    if (d->samples == NULL) {
        rp_release(&worker->server->alloc, d, sizeof *d);
        rp_task_refuse(&task->items.task, why, &error);
        return NULL;
    }
    d->options = task->options;
    d->worker = worker;
    d->task = task;
    d->served = rp_served_ref(task->items.served);
    d->post.run = on_posted;
    return d;
}

/* With the samples, unless somebody has taken them. */
static void free_draw(draw *d)
{
    rp_samples_room_free(d->worker, d->samples, d->options.count, d->op.done);
    rp_served_unref(d->served);
    rp_release(&d->worker->server->alloc, d, sizeof *d);
}

static void on_done(rp_op *op)
{
    draw *d = op->user;

    rp_loop_post(d->worker->loop, &d->post);
}

/* A draw is over: answers with what it brought. Takes the draw. */
static void settle(sample_task *task, draw *d)
{
    rp_items_task *items = &task->items;
    rp_table_counters *counters = rp_table_metrics_loop(d->served->metrics, d->worker->index);
    int64_t took_ns = rp_now_ns() - d->started_ns;

    if (d->op.status != RP_OK) {
        rp_task_finish(&items->task, d->op.status, d->op.error.text);
    } else if (!items->task.is_finished) {
        rp_histogram_record(&counters->sample_ns, took_ns, d->op.done);
        items->samples = d->samples;
        items->room = d->options.count;
        d->samples = NULL;
        rp_items_answer(items, d->op.done);
    }
    free_draw(d);
}

static void take_home(draw *d)
{
    rp_worker *worker = d->worker;
    sample_task *task = d->task;

    if (task == NULL) {
        free_draw(d);
    } else {
        task->draw = NULL;
        rp_items_stop_waiting(&task->items);
        settle(task, d);
    }
    rp_worker_returned(worker);
}

static void on_posted(rp_post *post)
{
    take_home((draw *)((char *)post - offsetof(draw, post)));
}

static void on_time_out(rp_items_task *items)
{
    draw *d = sample_of(&items->task)->draw;

    if (rp_op_withdraw(&d->op, RP_DEADLINE)) take_home(d);
}

/* Until when it may wait: as it asked, or as long as the call lives. */
static int64_t deadline_of(const sample_task *task, int64_t now_ns)
{
    const rp_timer *call = &task->items.task.deadline;
    int64_t until_ns = call->due_ns > 0 ? call->due_ns : RP_FOREVER;

    if (task->timeout_ns == 0) return RP_NOW;
    if (task->timeout_ns > 0 && task->timeout_ns < until_ns - now_ns)
        until_ns = now_ns + task->timeout_ns;
    return until_ns > now_ns ? until_ns : now_ns + 1; /* RP_NOW is something else */
}

static void begin(rp_items_task *items)
{
    sample_task *task = sample_of(&items->task);
    draw *d = new_draw(task);

    if (d == NULL) return;
    d->started_ns = rp_now_ns();
    d->op = (rp_op){
        .options = &d->options,
        .samples = d->samples,
        .until_ns = deadline_of(task, d->started_ns),
        .on_done = on_done,
        .user = d,
    };
    if (rp_table_start_sample(items->served->table, &d->op)) {
        settle(task, d);
        return;
    }
    d->worker->outstanding++;
    task->draw = d;
    if (task->timeout_ns > 0)
        (void)rp_items_wait(items, d->started_ns + task->timeout_ns, on_time_out);
}

/* --- the call ----------------------------------------------------------------------------------- */

/* Checks what the table cannot: the rest it checks itself. */
static rp_status check(const rp_wire_draw_request *request, size_t max_count, rp_error *err)
{
    if (request->count < 1)
        return rp_fail(err, RP_INVALID, "count must be >= 1, got %lld",
                       (long long)request->count);
    if ((uint64_t)request->count > max_count)
        return rp_fail(err, RP_NO_RESOURCE, "count must be <= %zu, the limit keys, got %lld",
                       max_count, (long long)request->count);
    if (request->at_least < 0 || request->at_least > request->count)
        return rp_fail(err, RP_INVALID, "at_least must be from 0 to count, %lld, got %lld",
                       (long long)request->count, (long long)request->at_least);
    return RP_OK;
}

static void on_message(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    enum { NS_PER_MS = 1000000 };
    sample_task *sample = sample_of(task);
    rp_items_task *items = &sample->items;
    rp_wire_draw_request request;
    rp_error error;

    (void)block;
    if (!rp_items_take_message(items)) return;
    if (rp_wire_read_draw(data, size, &request, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    if (check(&request, rp_task_worker(task)->limits.keys, &error) != RP_OK) {
        rp_task_refuse(task, error.code == RP_NO_RESOURCE ? RP_REFUSED_KEYS : RP_REFUSED_DECODE,
                       &error);
        return;
    }
    items->served = rp_served_of(task, request.table);
    if (items->served == NULL) return;
    items->with_chunks = true;
    items->cut_rows = request.cut_rows;
    sample->options = (rp_sample_options){
        .count = (size_t)request.count,
        .at_least = (size_t)request.at_least,
        .distinct = request.distinct,
        .beta = request.beta,
    };
    sample->timeout_ns = -1;
    if (request.has_timeout && request.timeout_ms >= 0 &&
        request.timeout_ms < INT64_MAX / (4 * NS_PER_MS))
        sample->timeout_ns = request.timeout_ms * NS_PER_MS;
    rp_items_begin(items, begin);
}

static void on_close(rp_task *task)
{
    sample_task *sample = sample_of(task);
    draw *d = sample->draw;

    if (d != NULL) {
        d->task = NULL;
        if (rp_op_withdraw(&d->op, RP_CANCELLED)) {
            d->worker->outstanding--;
            free_draw(d);
        }
    }
    rp_items_close(&sample->items);
}

const rp_task_kind rp_sample_kind = {
    .bytes = sizeof(sample_task),
    .on_message = on_message,
    .on_half_close = rp_items_half_close,
    .on_close = on_close,
    .on_room = rp_items_room,
};
