/* SPDX-License-Identifier: Apache-2.0 */
/* rp_client_runs(): reports to runs and reads them, on the first shard or in a store of this
 * process. */
#include <assert.h>
#include <string.h>

#include "client/unary.h"
#include "runs/run_text.h"
#include "store/store.h"
#include "util/clock.h"
#include "util/error.h"
#include "wire/run_messages.h"

#define RUNS_PATH "/reprise.v1.Runs/"

enum { LIST_RUNS = 64 };

/* Calls the first shard. On RP_OK `*out` has the response, which the caller frees. Takes the
 * message. */
static rp_status call_first(rp_client *client, const char *path, rp_buf *message,
                            bool repeatable, rp_wait wait, rp_unary **out, rp_error *err)
{
    const rp_unary_request request = {path, message, repeatable, false, 0};
    rp_status st = message->bad ? rp_fail(err, RP_NO_RESOURCE, "out of memory for a request")
                                : rp_unary_call(client, &request, 0, 1, wait, out, err);

    if (st == RP_OK) st = rp_unary_result(*out, err);
    rp_buf_deinit(message);
    return st;
}

static rp_status report_remote(rp_client *client, rp_runs_call *call, rp_wait wait,
                               rp_error *err)
{
    const rp_unary_response *response;
    rp_unary *u = NULL;
    uint64_t dropped = 0;
    rp_buf message;
    rp_status st;

    rp_buf_init(&message, &client->alloc);
    rp_wire_write_report(&message, call->report);
    /* Not repeatable: a report that arrived twice would add its points twice. */
    st = call_first(client, RUNS_PATH "LogScalars", &message, false, wait, &u, err);
    if (st == RP_OK) {
        response = rp_unary_response_of(u, 0);
        st = rp_wire_read_report_response(response->data, response->size, &dropped, err);
    }
    if (st == RP_OK) call->dropped = (size_t)dropped;
    rp_unary_free(u);
    return st;
}

static rp_status report(rp_client *client, rp_runs_call *call, rp_wait wait, rp_error *err)
{
    rp_status st;

    if (call->report == NULL) return rp_fail(err, RP_INVALID, "no report is given");
    st = rp_run_report_check(call->report, err);
    if (st != RP_OK) return st;
    if (client->store == NULL) return report_remote(client, call, wait, err);
    return rp_runs_report(rp_store_runs(client->store), call->report,
                          (double)rp_wall_ns(NULL) * 1e-9, &call->dropped, err);
}

/* Passes a piece of the result on. RP_CANCELLED if the callback wants no more. */
static rp_status deliver(const rp_runs_call *call, const void *data, size_t size, rp_error *err)
{
    if (size == 0 || call->on_data(call->ctx, data, size)) return RP_OK;
    return rp_fail(err, RP_CANCELLED, "on_data has ended the call");
}

static rp_wire_run_format format_of(const rp_runs_call *call)
{
    if (call->action == RP_RUNS_CSV) return RP_WIRE_RUN_CSV;
    return call->action == RP_RUNS_EVENTS ? RP_WIRE_RUN_EVENTS : RP_WIRE_RUN_LIST;
}

static rp_status read_remote_page(rp_client *client, const rp_runs_call *call, rp_wait wait,
                                  uint64_t *after, bool *more, rp_error *err)
{
    const rp_wire_read_runs request = {call->run, format_of(call), *after};
    const rp_unary_response *response;
    rp_wire_runs_page page = {0};
    rp_unary *u = NULL;
    rp_buf message;
    rp_status st;

    rp_buf_init(&message, &client->alloc);
    rp_wire_write_runs_request(&message, &request);
    st = call_first(client, RUNS_PATH "ReadRuns", &message, true, wait, &u, err);
    if (st == RP_OK) {
        response = rp_unary_response_of(u, 0);
        st = rp_wire_read_runs_page(response->data, response->size, &page, err);
    }
    if (st == RP_OK && page.more && page.after <= *after)
        st = rp_fail(err, RP_CORRUPT, "the pages of a run do not advance");
    if (st == RP_OK) st = deliver(call, page.data.data, page.data.size, err);
    *after = page.after;
    *more = page.more;
    rp_unary_free(u);
    return st;
}

static rp_status read_local_page(rp_client *client, const rp_runs_call *call, uint64_t *after,
                                 bool *more, rp_error *err)
{
    rp_runs *runs = rp_store_runs(client->store);
    rp_run_page page = {.format = call->action == RP_RUNS_CSV ? RP_RUN_CSV : RP_RUN_EVENTS,
                        .max_rows = RP_RUN_PAGE_ROWS,
                        .after = *after};
    rp_status st = RP_OK;
    rp_buf text;

    rp_buf_init(&text, &client->alloc);
    if (call->action == RP_RUNS_LIST) {
        rp_runs_write_lines(runs, LIST_RUNS, after, more, &text);
    } else {
        st = rp_runs_write_rows(runs, call->run, &page, &text, err);
        *after = page.after;
        *more = page.more;
    }
    if (st == RP_OK && text.bad) st = rp_fail_memory(err, text.size);
    if (st == RP_OK) st = deliver(call, text.data, text.size, err);
    rp_buf_deinit(&text);
    return st;
}

rp_status rp_client_runs(rp_client *client, rp_runs_call *call, rp_wait wait, rp_error *err)
{
    uint64_t after = 0;
    bool more = true;
    rp_status st = RP_OK;

    if (call == NULL) return rp_fail(err, RP_INVALID, "no call is given");
    call->dropped = 0;
    if (call->action == RP_RUNS_REPORT) return report(client, call, wait, err);
    if (call->action != RP_RUNS_LIST && call->action != RP_RUNS_CSV &&
        call->action != RP_RUNS_EVENTS)
        return rp_fail(err, RP_INVALID, "there is no action %d", (int)call->action);
    if (call->on_data == NULL) return rp_fail(err, RP_INVALID, "on_data is not set");
    if (call->run.data == NULL && (call->run.size > 0 || call->action != RP_RUNS_LIST))
        return rp_fail(err, RP_INVALID, "no run is given");
    while (st == RP_OK && more)
        st = client->store == NULL ? read_remote_page(client, call, wait, &after, &more, err)
                                   : read_local_page(client, call, &after, &more, err);
    return st;
}
