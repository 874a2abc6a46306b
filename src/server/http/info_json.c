/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/info_json.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "server/http/text.h"

/* The most columns of one table that are shown, and their most bytes. Further columns are only
 * counted, to bound the size of the page. */
enum { SHOWN_COLUMNS = 256, SHOWN_COLUMN_BYTES = 64 << 10 };

void rp_info_json_string(rp_buf *out, const char *text)
{
    if (text == NULL) {
        rp_buf_text(out, "null");
        return;
    }
    rp_buf_text(out, "\"");
    rp_put_spelt(out, text, RP_SPELL_JSON);
    rp_buf_text(out, "\"");
}

void rp_info_json_number(rp_buf *out, double number)
{
    char text[RP_NUMBER_TEXT_BYTES];

    rp_buf_text(out, isfinite(number) ? rp_number_text(number, text) : "null");
}

/* Writes a key and its colon, with a comma before them unless the key is the first of its
 * object. */
static void key(rp_buf *out, const char *name)
{
    assert(name != NULL && strpbrk(name, "\"\\") == NULL); /* needs no escape */
    uint8_t last = out->size > 0 ? out->data[out->size - 1] : '{';

    rp_buf_text(out, last == '{' ? "\"" : ",\"");
    rp_buf_text(out, name);
    rp_buf_text(out, "\":");
}

static void put_text(rp_buf *out, const char *name, const char *text)
{
    key(out, name);
    rp_info_json_string(out, text);
}

static void put_number(rp_buf *out, const char *name, double number)
{
    key(out, name);
    rp_info_json_number(out, number);
}

static void put_whole(rp_buf *out, const char *name, int64_t number)
{
    key(out, name);
    if (number < 0) rp_buf_text(out, "-");
    rp_put_whole(out, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static void put_count(rp_buf *out, const char *name, uint64_t number)
{
    key(out, name);
    rp_put_whole(out, number);
}

static void put_bool(rp_buf *out, const char *name, bool yes)
{
    key(out, name);
    rp_buf_text(out, yes ? "true" : "false");
}

static void put_seconds(rp_buf *out, const char *name, int64_t ns)
{
    put_number(out, name, (double)ns / 1e9);
}

static void open_object(rp_buf *out, const char *name)
{
    key(out, name);
    rp_buf_text(out, "{");
}

static void close_object(rp_buf *out)
{
    rp_buf_text(out, "}");
}

static void write_server(rp_buf *out, const rp_server_view *server)
{
    rp_loop_metrics sums;

    rp_metrics_sum(server->metrics, &sums);
    open_object(out, "server");
    put_text(out, "version", server->version);
    put_text(out, "health", rp_health_name(server->health));
    put_text(out, "why", server->why[0] != '\0' ? server->why : NULL);
    put_seconds(out, "uptime_seconds", server->uptime_ns);
    key(out, "addresses");
    rp_buf_text(out, "[");
    for (size_t i = 0; i < server->address_count; i++) {
        if (i > 0) rp_buf_text(out, ",");
        rp_info_json_string(out, server->addresses[i]);
    }
    rp_buf_text(out, "]");
    put_bool(out, "tls", server->tls);
    put_bool(out, "open", server->open);
    put_count(out, "loops", rp_metrics_loops(server->metrics));
    put_count(out, "connections", rp_counter_get(&sums.connections));
    put_count(out, "streams", rp_counter_get(&sums.streams));
    put_count(out, "queued_bytes", rp_counter_get(&sums.queued_bytes));
    put_count(out, "pinned_bytes", server->pinned_bytes);
    open_object(out, "limits");
#define WRITE(field) put_whole(out, #field, (int64_t)server->limits.field);
    RP_LIMITS(WRITE)
#undef WRITE
    close_object(out);
    close_object(out);
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
    open_object(out, "store");
    put_count(out, "bytes", store->bytes);
    put_count(out, "lost_bytes", store->lost_bytes);
    put_count(out, "max_bytes", store->max_bytes);
    put_text(out, "policy", policy_name(store->policy));
    put_count(out, "tables", store->table_count);
    close_object(out);
}

static void write_progress(rp_buf *out, const rp_durable_progress *progress)
{
    if (progress->what == NULL) {
        key(out, "progress");
        rp_buf_text(out, "null");
        return;
    }
    open_object(out, "progress");
    put_text(out, "what", progress->what);
    put_count(out, "done_bytes", progress->done);
    put_count(out, "total_bytes", progress->total);
    put_seconds(out, "elapsed_seconds", progress->elapsed_ns);
    put_number(out, "left_seconds",
               progress->left_ns < 0 ? INFINITY : (double)progress->left_ns / 1e9);
    close_object(out);
}

static const char *durability_name(rp_durability mode)
{
    static const char *const names[] = {"checkpoint", "interval", "sync"};

    return (size_t)mode < sizeof names / sizeof names[0] ? names[mode] : "unknown";
}

static void write_last_checkpoint(rp_buf *out, const rp_durable_info *d)
{
    if (d->last_checkpoint == 0) {
        key(out, "last_checkpoint");
        rp_buf_text(out, "null");
        return;
    }
    open_object(out, "last_checkpoint");
    put_count(out, "number", d->last_checkpoint);
    put_number(out, "age_seconds", /* null: it was written before the server started */
               d->last_checkpoint_age_ns < 0 ? NAN : (double)d->last_checkpoint_age_ns / 1e9);
    put_seconds(out, "seconds", d->last_checkpoint_took_ns);
    put_seconds(out, "pause_seconds", d->last_pause_ns);
    put_count(out, "bytes", d->last_checkpoint_bytes);
    close_object(out);
}

/* Writes null if the server keeps everything in memory only. */
static void write_durable(rp_buf *out, const rp_server_view *server)
{
    const rp_durable_info *d = &server->durable;

    if (!server->is_durable) {
        key(out, "durable");
        rp_buf_text(out, "null");
        return;
    }
    open_object(out, "durable");
    put_text(out, "mode", durability_name(d->mode));
    put_bool(out, "degraded", d->degraded);
    put_text(out, "trouble", d->trouble[0] != '\0' ? d->trouble : NULL);
    put_count(out, "checkpoints", d->checkpoints);
    put_count(out, "failed_checkpoints", d->failed_checkpoints);
    write_last_checkpoint(out, d);
    put_count(out, "lsn", d->lsn);
    put_count(out, "safe_lsn", d->safe_lsn);
    put_count(out, "backlog_bytes", d->backlog_bytes);
    put_count(out, "max_backlog_bytes", d->max_backlog_bytes);
    put_count(out, "segments", d->segments);
    put_count(out, "disk_bytes", d->disk_bytes);
    put_count(out, "live_bytes", d->live_bytes);
    put_count(out, "recovered_items", d->recovered_items);
    put_count(out, "recovered_records", d->recovered_records);
    put_count(out, "torn_bytes", d->torn_bytes);
    put_count(out, "resident_bytes", d->resident_bytes);
    put_count(out, "spilled_bytes", d->spilled_bytes);
    put_count(out, "loads", d->loads);
    put_count(out, "load_bytes", d->load_bytes);
    write_progress(out, &d->progress);
    close_object(out);
}

static void write_selector(rp_buf *out, const char *name, const rp_selector_options *selector)
{
    open_object(out, name);
    put_text(out, "kind", rp_selector_name(selector->kind));
    if (selector->kind == RP_PRIORITIZED) put_number(out, "exponent", selector->exponent);
    close_object(out);
}

/* Writes a bound. The largest numbers mean "no bound" and become null. */
static void put_bound(rp_buf *out, const char *name, double bound)
{
    put_number(out, name, fabs(bound) < DBL_MAX ? bound : INFINITY);
}

static void write_limiter(rp_buf *out, const rp_table_info *info)
{
    open_object(out, "limiter");
    put_number(out, "samples_per_insert", info->limiter.samples_per_insert);
    put_whole(out, "min_size", info->limiter.min_size);
    put_bound(out, "min_diff", info->limiter.min_diff);
    put_bound(out, "max_diff", info->limiter.max_diff);
    put_number(out, "cursor", info->limiter_diff);
    close_object(out);
}

static void write_shape(rp_buf *out, const rp_shape *shape)
{
    key(out, "shape");
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

    key(out, "signature");
    if (signature == NULL) {
        rp_buf_text(out, "null");
        return;
    }
    rp_buf_text(out, "{");
    put_count(out, "column_count", count);
    key(out, "columns");
    rp_buf_text(out, "[");
    start = out->size;
    for (size_t i = 0; i < count && i < SHOWN_COLUMNS; i++) {
        const rp_spec *spec = rp_signature_column(signature, i);

        if (out->size - start + column_bytes(spec) > SHOWN_COLUMN_BYTES) break;
        rp_buf_text(out, i > 0 ? ",{" : "{");
        put_text(out, "name", spec->name);
        put_text(out, "dtype", rp_dtype_name(spec->dtype));
        write_shape(out, &spec->shape);
        close_object(out);
    }
    rp_buf_text(out, "]");
    close_object(out);
}

static void write_waits(rp_buf *out, const char *name, int64_t now, const rp_waits *waits)
{
    open_object(out, name);
    put_whole(out, "now", now);
    put_seconds(out, "longest_seconds", waits->longest_ns);
    put_whole(out, "so_far", waits->parked);
    put_seconds(out, "total_seconds", waits->total_ns);
    close_object(out);
}

static void write_waiting(rp_buf *out, const rp_table_view *view)
{
    open_object(out, "waiting");
    write_waits(out, "inserts", view->info.waiting_inserts, &view->info.insert_waits);
    write_waits(out, "samples", view->info.waiting_samples, &view->info.sample_waits);
    key(out, "calls");
    rp_buf_text(out, "[");
    for (size_t i = 0; i < rp_table_view_described(view); i++) {
        const rp_waiting *w = &view->waiting[i];

        rp_buf_text(out, i > 0 ? ",{" : "{");
        put_text(out, "kind", w->is_insert ? "insert" : "sample");
        put_count(out, "wanted", w->wanted);
        put_count(out, "done", w->done);
        put_seconds(out, "waiting_seconds", w->waiting_ns);
        key(out, "deadline_seconds"); /* from now on */
        rp_info_json_number(out, w->until_ns == RP_FOREVER
                                     ? INFINITY
                                     : ((double)w->until_ns - (double)view->now_ns) / 1e9);
        put_text(out, "why", w->why);
        close_object(out);
    }
    rp_buf_text(out, "]");
    close_object(out);
}

static void write_latency(rp_buf *out, const char *name, const rp_histogram_sum *h)
{
    open_object(out, name);
    put_count(out, "count", h->count);
    put_seconds(out, "p50_seconds", rp_histogram_quantile_ns(h, 0.5));
    put_seconds(out, "p99_seconds", rp_histogram_quantile_ns(h, 0.99));
    put_number(out, "mean_seconds",
               h->count > 0 ? (double)h->sum_ns / (double)h->count / 1e9 : 0);
    close_object(out);
}

static void write_network(rp_buf *out, rp_metrics *metrics, const char *name)
{
    rp_table_sums sums;

    rp_metrics_sum_table(metrics, name, &sums);
    open_object(out, "network");
    put_count(out, "inserted_items", sums.inserted_items);
    put_count(out, "sampled_items", sums.sampled_items);
    put_count(out, "inserted_bytes", sums.inserted_bytes);
    put_count(out, "sampled_bytes", sums.sampled_bytes);
    write_latency(out, "insert", &sums.insert_ns);
    write_latency(out, "sample", &sums.sample_ns);
    close_object(out);
}

static void write_table(rp_buf *out, rp_metrics *metrics, const rp_table_view *view)
{
    const rp_table_info *info = &view->info;

    rp_buf_text(out, "{");
    put_text(out, "name", info->name);
    write_selector(out, "sampler", &info->sampler);
    write_selector(out, "remover", &info->remover);
    write_limiter(out, info);
    put_whole(out, "max_size", info->max_size);
    put_count(out, "max_bytes", info->max_bytes);
    put_whole(out, "max_times_sampled", info->max_times_sampled);
    put_bool(out, "soft_limit", info->soft_limit);
    put_bool(out, "closed", info->closed);
    put_bool(out, "inserts_paused", (info->paused & RP_SIDE_INSERTS) != 0);
    put_bool(out, "samples_paused", (info->paused & RP_SIDE_SAMPLES) != 0);
    put_whole(out, "size", info->size);
    put_count(out, "bytes", info->bytes);
    put_whole(out, "inserts", info->inserts);
    put_whole(out, "samples", info->samples);
    put_whole(out, "deletes", info->deletes);
    put_whole(out, "updates", info->updates);
    put_whole(out, "evictions", info->evictions);
    put_whole(out, "episodes", info->episodes);
    put_whole(out, "deleted_episodes", info->deleted_episodes);
    put_whole(out, "unique_samples", info->unique_samples);
    put_number(out, "max_priority", info->max_priority);
    write_signature(out, info->signature);
    write_waiting(out, view);
    write_network(out, metrics, info->name);
    close_object(out);
}

enum { END_BYTES = 64 }; /* bytes after the last table */

void rp_info_json_write(rp_buf *out, const rp_server_view *server, const rp_store_info *store,
                        const rp_table_view *tables, size_t table_count)
{
    size_t room = rp_page_most_bytes(table_count) - END_BYTES, shown;

    rp_buf_text(out, "{");
    write_server(out, server);
    write_store(out, store);
    write_durable(out, server);
    key(out, "tables");
    rp_buf_text(out, "[");
    for (shown = 0; shown < table_count && !out->bad; shown++) {
        size_t before = out->size;

        if (shown > 0) rp_buf_text(out, ",");
        write_table(out, server->metrics, &tables[shown]);
        if (out->size <= room && !out->full) continue;
        if (out->full) out->bad = out->full = false;
        out->size = before;
        break;
    }
    rp_buf_text(out, "]");
    put_count(out, "tables_left_out", table_count - shown);
    rp_buf_text(out, "}\n");
}
