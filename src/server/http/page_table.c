/* SPDX-License-Identifier: Apache-2.0 */
/* The page about one table: everything that /v1/info has about it, a sample of its items as
 * histograms, its newest items, and all calls that wait for it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/http/histogram_json.h"
#include "server/http/info_json.h"
#include "server/http/json_out.h"
#include "server/http/pages.h"
#include "store/store.h"
#include "table/op.h"
#include "table/survey.h"
#include "table/table.h"
#include "util/mem.h"

enum { MOST_WAITING = 64 };

/* What the page is made of. Too large for a stack. */
typedef struct material {
    rp_table_view view;
    rp_waiting waiting[MOST_WAITING];
    uint64_t clients[MOST_WAITING];
    rp_survey survey;
    double values[RP_SURVEY_ITEMS];
} material;

int rp_page_no_table(rp_store *store, const char *name, rp_page_response *answer)
{
    rp_error err;

    (void)rp_store_no_table(store, (rp_string){name, strlen(name)}, &err);
    return rp_page_fail(answer, 404, "%s", err.text);
}

rp_table *rp_page_table_of(const rp_page_host *host, const rp_page_ask *ask,
                           rp_page_response *answer, int *status)
{
    rp_server_view server = rp_page_view(host);
    const rp_ask_name *name = &ask->names[0];
    rp_table *table;

    if (server.store == NULL) {
        *status = rp_page_fail(answer, 503, "the server is loading its tables: try again");
        return NULL;
    }
    table = rp_store_find_table(server.store, (rp_string){name->text, name->size});
    if (table == NULL) *status = rp_page_no_table(server.store, name->text, answer);
    return table;
}

static double age_s(const rp_survey *survey, const rp_surveyed *item)
{
    return (double)(survey->wall_ns - item->inserted_at_ns) / 1e9;
}

static double priority_of(const rp_survey *survey, const rp_surveyed *item)
{
    (void)survey;
    return item->priority;
}

static double probability_of(const rp_survey *survey, const rp_surveyed *item)
{
    (void)survey;
    return item->probability;
}

static double times_of(const rp_survey *survey, const rp_surveyed *item)
{
    (void)survey;
    return item->times_sampled;
}

static void write_histograms(rp_buf *out, material *m)
{
    static const struct {
        const char *name;
        double (*value_of)(const rp_survey *survey, const rp_surveyed *item);
        bool is_whole;
    } kinds[] = {
        {"priorities", priority_of, false},
        {"probabilities", probability_of, false},
        {"ages_s", age_s, false},
        {"times_sampled", times_of, true},
    };
    rp_bins bins;

    rp_out_open(out, "histograms");
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (size_t i = 0; i < m->survey.count; i++)
            m->values[i] = kinds[k].value_of(&m->survey, &m->survey.items[i]);
        rp_bins_make(&bins, m->values, m->survey.count, kinds[k].is_whole);
        rp_out_bins(out, kinds[k].name, &bins);
    }
    rp_out_close(out);
}

/* Keys are texts: JavaScript's numbers have 53 bits. */
static void write_recent(rp_buf *out, const rp_survey *survey)
{
    char key[24];

    rp_out_key(out, "recent");
    rp_buf_text(out, "[");
    for (size_t i = 0; i < survey->recent_count; i++) {
        const rp_surveyed *item = &survey->recent[i];

        (void)snprintf(key, sizeof key, "%llu", (unsigned long long)item->key);
        rp_buf_text(out, i > 0 ? ",{" : "{");
        rp_out_text(out, "key", key);
        rp_out_number(out, "priority", item->priority);
        rp_out_number(out, "probability", item->probability);
        rp_out_whole(out, "times_sampled", item->times_sampled);
        rp_out_number(out, "age_s", age_s(survey, item));
        rp_out_number(out, "length", item->length > 0 ? (double)item->length : NAN);
        rp_out_close(out);
    }
    rp_buf_text(out, "]");
}

static void write_page(rp_buf *out, const rp_page_host *host, const rp_page_ask *ask,
                       const rp_client_views *clients, material *m)
{
    rp_server_view server = rp_page_view(host);
    rp_waiting_calls calls = {m->waiting, m->clients, m->view.waiting_count};

    if (calls.count > MOST_WAITING) calls.count = MOST_WAITING;
    server.clients = clients;
    rp_buf_text(out, "{");
    rp_out_count(out, "page", ask->number);
    rp_info_json_table(out, &server, &m->view, &calls);
    rp_out_count(out, "sampled_items", m->survey.count);
    write_histograms(out, m);
    write_recent(out, &m->survey);
    rp_buf_text(out, "}\n");
}

int rp_page_table(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    const rp_allocator *alloc = answer->body.alloc;
    material *m;
    rp_client_views clients;
    int status = 503;
    rp_table *table = rp_page_table_of(host, ask, answer, &status);

    if (table == NULL) return status;
    m = rp_alloc(alloc, sizeof *m);
    if (m != NULL) {
        rp_table_view_take(&m->view, table);
        m->view.waiting_count =
            rp_table_waiting_clients(table, m->waiting, m->clients, MOST_WAITING);
        rp_table_survey(table, ask->number, &m->survey);
        /* After the calls: so the list has the clients of all calls, if they are connected. */
        if (rp_client_views_take(&clients, alloc, host->clients) == RP_OK) {
            write_page(&answer->body, host, ask, &clients, m);
            status = 200;
            rp_client_views_deinit(&clients);
        }
        rp_release(alloc, m, sizeof *m);
    }
    rp_table_unref(table);
    return status;
}
