/* SPDX-License-Identifier: Apache-2.0 */
/* LogScalars and ReadRuns. Both take a bounded time: a report has at most RP_REPORT_SCALARS
 * scalars, and a page of ReadRuns at most RP_RUN_PAGE_ROWS points or LIST_RUNS runs. */
#include "runs/run_text.h"
#include "server/core/deferral.h"
#include "server/rpc/methods.h"
#include "util/clock.h"
#include "util/error.h"
#include "wire/run_messages.h"

enum { LIST_RUNS = 8 }; /* of a page of the list */

static rp_runs *runs_of(const rp_task *task)
{
    return rp_store_runs(rp_task_worker(task)->server->store);
}

static void on_report(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    const rp_allocator *alloc = &rp_task_worker(task)->server->alloc;
    double now_s = (double)rp_wall_ns(NULL) * 1e-9;
    rp_error error = {0};
    rp_wire_report report;
    rp_message *reply;
    size_t dropped = 0;
    rp_status st;

    (void)block;
    if (rp_wire_read_report(alloc, data, size, &report, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    rp_defer_add_work(rp_task_worker(task), rp_run_report_work(&report.report));
    st = rp_runs_report(runs_of(task), &report.report, now_s, &dropped, &error);
    rp_wire_report_deinit(&report, alloc);
    if (st != RP_OK) {
        rp_task_finish(task, st, error.text);
        return;
    }
    reply = rp_task_new_message(task);
    if (reply == NULL) return;
    rp_wire_write_report_response(&reply->bytes, dropped);
    rp_task_respond(task, reply);
}

const rp_task_kind rp_log_scalars_kind = {.bytes = sizeof(rp_task), .on_message = on_report};

static rp_status write_page(rp_task *task, rp_wire_read_runs *request, bool *more, rp_buf *out,
                            rp_error *err)
{
    rp_run_page page = {.format =
                            request->format == RP_WIRE_RUN_CSV ? RP_RUN_CSV : RP_RUN_EVENTS,
                        .max_rows = RP_RUN_PAGE_ROWS,
                        .after = request->after};
    rp_status st;

    if (request->format == RP_WIRE_RUN_LIST) {
        rp_runs_write_lines(runs_of(task), LIST_RUNS, &request->after, more, out);
        return RP_OK;
    }
    st = rp_runs_write_rows(runs_of(task), request->run, &page, out, err);
    request->after = page.after;
    *more = page.more;
    return st;
}

static void on_read(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_wire_read_runs request;
    rp_error error = {0};
    rp_message *reply;
    bool more = false;
    rp_status st;
    size_t mark;

    (void)block;
    if (rp_wire_read_runs_request(data, size, &request, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    reply = rp_defer_reply(task);
    if (reply == NULL) return;
    mark = rp_wire_begin_runs(&reply->bytes);
    st = write_page(task, &request, &more, &reply->bytes, &error);
    rp_wire_end_runs(&reply->bytes, mark, request.after, more);
    if (st == RP_OK || reply->bytes.bad) { /* too large for the connection, or no memory */
        rp_defer_respond(task, reply);
        return;
    }
    rp_message_release(&rp_task_worker(task)->replies, reply);
    rp_task_finish(task, st, error.text);
}

const rp_task_kind rp_read_runs_kind = {.bytes = sizeof(rp_task), .on_message = on_read};
