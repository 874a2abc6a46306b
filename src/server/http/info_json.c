/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/info_json.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "rollouts/rollout_set.h"
#include "server/http/json_out.h"
#include "store/store.h"

/* The most columns of one table that are shown, and their most bytes. Further columns are only
 * counted, to bound the size of the page. */
enum { SHOWN_COLUMNS = 256, SHOWN_COLUMN_BYTES = 64 << 10 };
enum { SHOWN_ROLLOUTS = 16 };

static void write_server(rp_buf *out, const rp_server_view *server)
{
    rp_loop_metrics sums;
    uint64_t calls = 0, refusals = 0, page_connections = 0;

    rp_metrics_sum(server->metrics, &sums);
    for (size_t i = 0; i < RP_METHODS; i++)
        for (size_t j = 0; j < RP_STATUS_CODES; j++) calls += rp_counter_get(&sums.calls[i][j]);
    for (size_t i = 0; i < RP_REFUSAL_COUNT; i++) refusals += rp_counter_get(&sums.refusals[i]);
    for (size_t i = 0; server->clients != NULL && i < server->clients->count; i++)
        page_connections += server->clients->views[i].protocol == RP_CLIENT_HTTP1;
    rp_out_open(out, "server");
    rp_out_text(out, "version", server->version);
    rp_out_text(out, "health", rp_health_name(server->health));
    rp_out_text(out, "why", server->why[0] != '\0' ? server->why : NULL);
    rp_out_seconds(out, "uptime_seconds", server->uptime_ns);
    rp_out_key(out, "addresses");
    rp_buf_text(out, "[");
    for (size_t i = 0; i < server->address_count; i++) {
        if (i > 0) rp_buf_text(out, ",");
        rp_out_string(out, server->addresses[i]);
    }
    rp_buf_text(out, "]");
    rp_out_bool(out, "tls", server->tls);
    rp_out_bool(out, "open", server->open);
    rp_out_count(out, "loops", rp_metrics_loops(server->metrics));
    rp_out_count(out, "connections", rp_counter_get(&sums.connections));
    rp_out_count(out, "connections_page", page_connections);
    rp_out_count(out, "streams", rp_counter_get(&sums.streams));
    rp_out_count(out, "calls", calls);
    rp_out_count(out, "refusals", refusals);
    rp_out_count(out, "read_bytes", rp_counter_get(&sums.bytes_read));
    rp_out_count(out, "written_bytes", rp_counter_get(&sums.bytes_written));
    rp_out_count(out, "read_messages", rp_counter_get(&sums.messages_read));
    rp_out_count(out, "written_messages", rp_counter_get(&sums.messages_written));
    rp_out_count(out, "queued_bytes", rp_counter_get(&sums.queued_bytes));
    rp_out_count(out, "pinned_bytes", server->pinned_bytes);
    rp_out_open(out, "limits");
#define WRITE(field) rp_out_whole(out, #field, (int64_t)server->limits.field);
    RP_LIMITS(WRITE)
#undef WRITE
    rp_out_close(out);
    rp_out_close(out);
}

static const char *policy_name(rp_budget_policy policy)
{
    switch (policy) {
    case RP_BUDGET_EVICT: return "evict";
    case RP_BUDGET_BLOCK: return "block";
    case RP_BUDGET_REJECT: return "reject";
    }
    return "unknown";
}

/* The seed is left out: a peer that knows it can choose keys that collide. */
static void write_store(rp_buf *out, const rp_store_info *store)
{
    rp_out_open(out, "store");
    rp_out_count(out, "bytes", store->bytes);
    rp_out_count(out, "lost_bytes", store->lost_bytes);
    rp_out_count(out, "max_bytes", store->max_bytes);
    rp_out_text(out, "policy", policy_name(store->policy));
    rp_out_count(out, "tables", store->table_count);
    rp_out_close(out);
}

static void write_progress(rp_buf *out, const rp_durable_progress *progress)
{
    if (progress->what == NULL) {
        rp_out_key(out, "progress");
        rp_buf_text(out, "null");
        return;
    }
    rp_out_open(out, "progress");
    rp_out_text(out, "what", progress->what);
    rp_out_count(out, "done_bytes", progress->done);
    rp_out_count(out, "total_bytes", progress->total);
    rp_out_seconds(out, "elapsed_seconds", progress->elapsed_ns);
    rp_out_number(out, "left_seconds",
                  progress->left_ns < 0 ? INFINITY : (double)progress->left_ns / 1e9);
    rp_out_close(out);
}

static const char *durability_name(rp_durability mode)
{
    static const char *const names[] = {"checkpoint", "interval", "sync"};

    return (size_t)mode < sizeof names / sizeof names[0] ? names[mode] : "unknown";
}

static void write_last_checkpoint(rp_buf *out, const rp_durable_info *d)
{
    if (d->last_checkpoint == 0) {
        rp_out_key(out, "last_checkpoint");
        rp_buf_text(out, "null");
        return;
    }
    rp_out_open(out, "last_checkpoint");
    rp_out_count(out, "number", d->last_checkpoint);
    rp_out_number(out, "age_seconds", /* null: it was written before the server started */
                  d->last_checkpoint_age_ns < 0 ? NAN
                                                : (double)d->last_checkpoint_age_ns / 1e9);
    rp_out_seconds(out, "seconds", d->last_checkpoint_took_ns);
    rp_out_seconds(out, "pause_seconds", d->last_pause_ns);
    rp_out_count(out, "bytes", d->last_checkpoint_bytes);
    rp_out_close(out);
}

/* Writes null if the server keeps everything in memory only. */
static void write_durable(rp_buf *out, const rp_server_view *server)
{
    const rp_durable_info *d = &server->durable;

    if (!server->is_durable) {
        rp_out_key(out, "durable");
        rp_buf_text(out, "null");
        return;
    }
    rp_out_open(out, "durable");
    rp_out_text(out, "mode", durability_name(d->mode));
    rp_out_bool(out, "degraded", d->degraded);
    rp_out_text(out, "trouble", d->trouble[0] != '\0' ? d->trouble : NULL);
    rp_out_count(out, "checkpoints", d->checkpoints);
    rp_out_count(out, "failed_checkpoints", d->failed_checkpoints);
    write_last_checkpoint(out, d);
    rp_out_count(out, "lsn", d->lsn);
    rp_out_count(out, "safe_lsn", d->safe_lsn);
    rp_out_count(out, "backlog_bytes", d->backlog_bytes);
    rp_out_count(out, "max_backlog_bytes", d->max_backlog_bytes);
    rp_out_count(out, "segments", d->segments);
    rp_out_count(out, "disk_bytes", d->disk_bytes);
    rp_out_count(out, "live_bytes", d->live_bytes);
    rp_out_number(out, "disk_free_bytes",
                  server->disk_free_bytes == UINT64_MAX ? NAN
                                                        : (double)server->disk_free_bytes);
    rp_out_number(out, "disk_total_bytes",
                  server->disk_total_bytes == UINT64_MAX ? NAN
                                                         : (double)server->disk_total_bytes);
    rp_out_count(out, "recovered_items", d->recovered_items);
    rp_out_count(out, "recovered_records", d->recovered_records);
    rp_out_count(out, "torn_bytes", d->torn_bytes);
    rp_out_count(out, "resident_bytes", d->resident_bytes);
    rp_out_count(out, "spilled_bytes", d->spilled_bytes);
    rp_out_count(out, "loads", d->loads);
    rp_out_count(out, "load_bytes", d->load_bytes);
    rp_out_count(out, "load_hits", d->load_hits);
    write_progress(out, &d->progress);
    rp_out_close(out);
}

static void write_selector(rp_buf *out, const char *name, const rp_selector_options *selector)
{
    rp_out_open(out, name);
    rp_out_text(out, "kind", rp_selector_name(selector->kind));
    if (selector->kind == RP_PRIORITIZED) rp_out_number(out, "exponent", selector->exponent);
    rp_out_close(out);
}

/* Writes a bound. The largest numbers mean "no bound" and become null. */
static void put_bound(rp_buf *out, const char *name, double bound)
{
    rp_out_number(out, name, fabs(bound) < DBL_MAX ? bound : INFINITY);
}

static void write_limiter(rp_buf *out, const rp_table_info *info)
{
    rp_out_open(out, "limiter");
    rp_out_number(out, "samples_per_insert", info->limiter.samples_per_insert);
    rp_out_whole(out, "min_size", info->limiter.min_size);
    put_bound(out, "min_diff", info->limiter.min_diff);
    put_bound(out, "max_diff", info->limiter.max_diff);
    rp_out_number(out, "cursor", info->limiter_diff);
    rp_out_close(out);
}

static void write_shape(rp_buf *out, const rp_shape *shape)
{
    rp_out_key(out, "shape");
    if (shape->rank < 0) {
        rp_buf_text(out, "null");
        return;
    }
    rp_buf_text(out, "[");
    assert(shape->rank <= RP_MAX_RANK);
    for (int32_t i = 0; i < shape->rank; i++) {
        if (i > 0) rp_buf_text(out, ",");
        if (shape->dims[i] < 0)
            rp_buf_text(out, "null");
        else
            rp_buf_format(out, "%lld", (long long)shape->dims[i]);
    }
    rp_buf_text(out, "]");
}

/* The most bytes of JSON for a column: 6 for each byte of its name, 21 for each dimension. */
static size_t column_bytes(const rp_spec *spec)
{
    size_t name = spec->name != NULL ? strlen(spec->name) : 0;
    size_t rank = spec->shape.rank > 0 ? (size_t)spec->shape.rank : 0;

    return 6 * name + 21 * rank + 128;
}

/* Writes the columns, flattened. A dimension or shape that is not fixed is null. */
static void write_signature(rp_buf *out, const rp_signature *signature)
{
    size_t count = signature != NULL ? rp_signature_column_count(signature) : 0, start;

    rp_out_key(out, "signature");
    if (signature == NULL) {
        rp_buf_text(out, "null");
        return;
    }
    rp_buf_text(out, "{");
    rp_out_count(out, "column_count", count);
    rp_out_key(out, "columns");
    rp_buf_text(out, "[");
    start = out->size;
    for (size_t i = 0; i < count && i < SHOWN_COLUMNS; i++) {
        const rp_spec *spec = rp_signature_column(signature, i);

        if (out->size - start + column_bytes(spec) > SHOWN_COLUMN_BYTES) break;
        rp_buf_text(out, i > 0 ? ",{" : "{");
        rp_out_text(out, "name", spec->name);
        rp_out_text(out, "dtype", rp_dtype_name(spec->dtype));
        write_shape(out, &spec->shape);
        rp_out_close(out);
    }
    rp_buf_text(out, "]");
    rp_out_close(out);
}

static void write_calls(rp_buf *out, const rp_server_view *server, int64_t now_ns,
                        const rp_waiting_calls *calls)
{
    rp_out_key(out, "calls");
    rp_buf_text(out, "[");
    for (size_t i = 0; i < calls->count; i++) {
        const rp_waiting *w = &calls->calls[i];

        rp_buf_text(out, i > 0 ? ",{" : "{");
        rp_out_text(out, "client",
                    server->clients != NULL
                        ? rp_client_views_peer(server->clients, calls->clients[i])
                        : NULL);
        rp_out_text(out, "kind", w->is_insert ? "insert" : "sample");
        rp_out_count(out, "wanted", w->wanted);
        rp_out_count(out, "done", w->done);
        rp_out_seconds(out, "waiting_seconds", w->waiting_ns);
        rp_out_key(out, "deadline_seconds"); /* from now on */
        rp_out_double(out, w->until_ns == RP_FOREVER
                               ? INFINITY
                               : ((double)w->until_ns - (double)now_ns) / 1e9);
        rp_out_text(out, "why", w->why);
        rp_out_close(out);
    }
    rp_buf_text(out, "]");
}

static void write_waits(rp_buf *out, const char *name, int64_t now, const rp_waits *waits)
{
    rp_out_open(out, name);
    rp_out_whole(out, "now", now);
    rp_out_seconds(out, "longest_seconds", waits->longest_ns);
    rp_out_whole(out, "so_far", waits->parked);
    rp_out_seconds(out, "total_seconds", waits->total_ns);
    rp_out_close(out);
}

static void write_waiting(rp_buf *out, const rp_server_view *server, const rp_table_view *view,
                          const rp_waiting_calls *calls)
{
    rp_out_open(out, "waiting");
    write_waits(out, "inserts", view->info.waiting_inserts, &view->info.insert_waits);
    write_waits(out, "samples", view->info.waiting_samples, &view->info.sample_waits);
    write_calls(out, server, view->now_ns, calls);
    rp_out_close(out);
}

static void write_rollout_waits(rp_buf *out, const char *name, size_t now, int64_t longest_ns)
{
    rp_out_open(out, name);
    rp_out_count(out, "now", now);
    rp_out_seconds(out, "longest_seconds", longest_ns);
    rp_out_close(out);
}

/* Writes the calls that wait at rollouts. */
static void write_one_rollouts(rp_buf *out, const rp_server_view *server, rp_rollouts *rollouts,
                               const rp_rollout_sides *load)
{
    const rp_string name = rp_rollouts_name(rollouts);
    char text[RP_ROLLOUT_NAME_BYTES + 1];
    rp_waiting waiting[RP_VIEW_WAITING];
    uint64_t clients[RP_VIEW_WAITING];
    size_t total = rp_rollouts_waiting(rollouts, waiting, clients, RP_VIEW_WAITING);
    const rp_waiting_calls calls = {waiting, clients,
                                    total < RP_VIEW_WAITING ? total : RP_VIEW_WAITING};

    assert(name.size <= RP_ROLLOUT_NAME_BYTES);
    memcpy(text, name.data, name.size);
    text[name.size] = '\0';
    rp_out_text(out, "name", text);
    rp_out_open(out, "waiting");
    write_rollout_waits(out, "inserts", load->inserts, load->longest_insert_ns);
    write_rollout_waits(out, "samples", load->draws, load->longest_draw_ns);
    write_calls(out, server, rp_now_ns(), &calls);
    rp_out_close(out);
}

/* Writes the first rollouts at which calls wait. */
static void write_rollouts(rp_buf *out, const rp_server_view *server)
{
    rp_rollouts *all[RP_ROLLOUT_SET_COUNT];
    size_t count =
        server->store != NULL ? rp_rollout_set_list(rp_store_rollouts(server->store), all) : 0;
    size_t shown = 0;

    rp_out_key(out, "rollouts");
    rp_buf_text(out, "[");
    for (size_t i = 0; i < count; i++) {
        const rp_rollout_sides load = rp_rollouts_count_waiting(all[i]);

        if (load.inserts + load.draws > 0 && shown < SHOWN_ROLLOUTS) {
            rp_buf_text(out, shown++ > 0 ? ",{" : "{");
            write_one_rollouts(out, server, all[i], &load);
            rp_out_close(out);
        }
        rp_rollouts_unref(all[i]);
    }
    rp_buf_text(out, "]");
}

static void write_latency(rp_buf *out, const char *name, const rp_histogram_sum *h)
{
    rp_out_open(out, name);
    rp_out_count(out, "count", h->count);
    rp_out_seconds(out, "p50_seconds", rp_histogram_quantile_ns(h, 0.5));
    rp_out_seconds(out, "p99_seconds", rp_histogram_quantile_ns(h, 0.99));
    rp_out_number(out, "mean_seconds",
                  h->count > 0 ? (double)h->sum_ns / (double)h->count / 1e9 : 0);
    rp_out_close(out);
}

static void write_network(rp_buf *out, rp_metrics *metrics, const char *name)
{
    rp_table_sums sums;

    rp_metrics_sum_table(metrics, name, &sums);
    rp_out_open(out, "network");
    rp_out_count(out, "inserted_items", sums.inserted_items);
    rp_out_count(out, "sampled_items", sums.sampled_items);
    rp_out_count(out, "inserted_bytes", sums.inserted_bytes);
    rp_out_count(out, "sampled_bytes", sums.sampled_bytes);
    write_latency(out, "insert", &sums.insert_ns);
    write_latency(out, "sample", &sums.sample_ns);
    rp_out_close(out);
}

/* Writes the path of the page about a table. Bytes of the name other than letters, digits and
 * "-._~" are escaped, so the path names the table exactly, even if the name is not UTF-8. */
static void write_path(rp_buf *out, const char *name)
{
    rp_out_key(out, "path");
    rp_buf_text(out, "\"/v1/tables/");
    for (; *name != '\0'; name++) {
        unsigned char c = (unsigned char)*name;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c >= '0' && c <= '9') || strchr("-._~", c) != NULL;

        if (plain)
            rp_buf_append(out, &c, 1);
        else
            rp_buf_format(out, "%%%02X", c);
    }
    rp_buf_text(out, "\"");
}

void rp_info_json_table(rp_buf *out, const rp_server_view *server, const rp_table_view *view,
                        const rp_waiting_calls *calls)
{
    const rp_table_info *info = &view->info;

    rp_out_text(out, "name", info->name);
    write_path(out, info->name);
    write_selector(out, "sampler", &info->sampler);
    write_selector(out, "remover", &info->remover);
    write_limiter(out, info);
    rp_out_whole(out, "max_size", info->max_size);
    rp_out_count(out, "max_bytes", info->max_bytes);
    rp_out_whole(out, "max_times_sampled", info->max_times_sampled);
    rp_out_bool(out, "soft_limit", info->soft_limit);
    rp_out_bool(out, "closed", info->closed);
    rp_out_bool(out, "inserts_paused", (info->paused & RP_SIDE_INSERTS) != 0);
    rp_out_bool(out, "samples_paused", (info->paused & RP_SIDE_SAMPLES) != 0);
    rp_out_whole(out, "size", info->size);
    rp_out_count(out, "bytes", info->bytes);
    rp_out_whole(out, "inserts", info->inserts);
    rp_out_whole(out, "samples", info->samples);
    rp_out_whole(out, "deletes", info->deletes);
    rp_out_whole(out, "updates", info->updates);
    rp_out_whole(out, "evictions", info->evictions);
    rp_out_whole(out, "episodes", info->episodes);
    rp_out_whole(out, "deleted_episodes", info->deleted_episodes);
    rp_out_whole(out, "unique_samples", info->unique_samples);
    rp_out_number(out, "max_priority", info->max_priority);
    rp_out_number(out, "median_age_seconds",
                  view->median_age_ns < 0 ? NAN : (double)view->median_age_ns / 1e9);
    write_signature(out, info->signature);
    write_waiting(out, server, view, calls);
    write_network(out, server->metrics, info->name);
}

static void write_table(rp_buf *out, const rp_server_view *server, const rp_table_view *view)
{
    const rp_waiting_calls calls = {view->waiting, view->clients,
                                    rp_table_view_described(view)};

    rp_buf_text(out, "{");
    rp_info_json_table(out, server, view, &calls);
    rp_out_close(out);
}

enum { END_BYTES = 64 }; /* bytes after the last table */

void rp_info_json_write(rp_buf *out, const rp_server_view *server, const rp_store_info *store,
                        const rp_table_view *tables, size_t table_count)
{
    size_t room = rp_page_most_bytes(table_count) - END_BYTES, shown;

    rp_buf_text(out, "{");
    rp_out_count(out, "page", server->page);
    write_server(out, server);
    write_store(out, store);
    write_durable(out, server);
    write_rollouts(out, server);
    rp_out_key(out, "tables");
    rp_buf_text(out, "[");
    for (shown = 0; shown < table_count && !out->bad; shown++) {
        size_t before = out->size;

        if (shown > 0) rp_buf_text(out, ",");
        write_table(out, server, &tables[shown]);
        if (out->size <= room && !out->full) continue;
        if (out->full) out->bad = out->full = false;
        out->size = before;
        break;
    }
    rp_buf_text(out, "]");
    rp_out_count(out, "tables_left_out", table_count - shown);
    rp_buf_text(out, "}\n");
}
