/* SPDX-License-Identifier: Apache-2.0 */
/* The pages about runs: their list, the points of one, its export, and reports. docs/runs.md
 * has the JSON. */
#include "runs/run_text.h"
#include "server/http/pages.h"
#include "server/http/run_body.h"
#include "store/store.h"
#include "util/clock.h"
#include "util/mem.h"

enum { MOST_BYTES = 16 << 20 }; /* of a page */

/* The runs of the server. NULL while it loads its data; then the response says so. */
static rp_runs *runs_of(const rp_page_host *host, rp_page_response *answer)
{
    rp_server_view server = rp_page_view(host);

    answer->body.most = MOST_BYTES;
    if (server.store != NULL) return rp_store_runs(server.store);
    rp_page_say(answer, 503, "the server is loading its data");
    return NULL;
}

static int status_of(rp_status st)
{
    if (st == RP_NOT_FOUND) return 404;
    return st == RP_INVALID ? 400 : 503;
}

/* The status of a page that was written with `st`. */
static int finish(rp_page_response *answer, rp_status st, const rp_error *err)
{
    if (answer->body.full)
        return rp_page_fail(answer, 413,
                            "the run is larger than %d bytes: read it with 'reprise runs'",
                            MOST_BYTES);
    return st == RP_OK ? 200 : rp_page_fail(answer, status_of(st), "%s", err->text);
}

int rp_page_runs(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    rp_runs *runs = runs_of(host, answer);
    rp_error err = {0};

    (void)ask;
    if (runs == NULL) return 503;
    rp_runs_write_list(runs, &answer->body);
    return finish(answer, RP_OK, &err);
}

static rp_string name_of(const rp_page_ask *ask)
{
    return (rp_string){ask->names[0].text, ask->names[0].size};
}

int rp_page_run(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    rp_runs *runs = runs_of(host, answer);
    rp_error err = {0};
    rp_status st;

    if (runs == NULL) return 503;
    st = rp_runs_write_json(runs, name_of(ask), ask->after, &answer->body, &err);
    return finish(answer, st, &err);
}

/* A whole file, made page by page, so that the lock of the runs is held for short times. */
static int write_file(const rp_page_host *host, const rp_page_ask *ask, rp_run_format format,
                      rp_page_response *answer)
{
    rp_runs *runs = runs_of(host, answer);
    rp_run_page page = {.format = format, .max_rows = RP_RUN_PAGE_ROWS, .more = true};
    rp_status st = RP_OK;
    rp_error err = {0};

    if (runs == NULL) return 503;
    while (st == RP_OK && page.more)
        st = rp_runs_write_rows(runs, name_of(ask), &page, &answer->body, &err);
    return finish(answer, st, &err);
}

int rp_page_run_csv(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    answer->content_type = "text/csv; charset=utf-8";
    return write_file(host, ask, RP_RUN_CSV, answer);
}

int rp_page_run_events(const rp_page_host *host, const rp_page_ask *ask,
                       rp_page_response *answer)
{
    answer->content_type = "application/octet-stream";
    return write_file(host, ask, RP_RUN_EVENTS, answer);
}

int rp_page_report(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    rp_runs *runs = runs_of(host, answer);
    rp_run_body *body;
    rp_error err = {0};
    size_t dropped = 0;
    rp_status st;
    rp_body in;

    if (runs == NULL) return 503;
    body = rp_alloc(answer->body.alloc, sizeof *body);
    if (body == NULL) return 503;
    rp_body_init(&in, ask->body.data, ask->body.size);
    if (!rp_run_body_read(&in, name_of(ask), body)) {
        rp_release(answer->body.alloc, body, sizeof *body);
        return rp_page_fail(answer, 400, "the body is not a report: %s at byte %zu",
                            in.what != NULL ? in.what : "malformed", in.byte);
    }
    st = rp_runs_report(runs, &body->report, (double)rp_wall_ns(NULL) * 1e-9, &dropped, &err);
    rp_release(answer->body.alloc, body, sizeof *body);
    if (st != RP_OK) return rp_page_fail(answer, status_of(st), "%s", err.text);
    rp_buf_format(&answer->body, "{\"dropped\":%zu}\n", dropped);
    return 200;
}
