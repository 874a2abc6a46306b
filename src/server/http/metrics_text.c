/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus expects all samples of a metric together, below its HELP and TYPE. So the outer
 * loops run over metrics and the inner ones over tables. A table's name is in 67 lines: its
 * escaped form is made once. */
#include "server/http/metrics_text.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "rollouts/rollout_set.h"
#include "runs/runs.h"
#include "server/http/text.h"
#include "store/store.h"
#include "util/mem.h"

/* Histograms are shown at powers of 4, from 1.024 us to 68.7 s. */
enum { FIRST_SHOWN_BIT = 10, SHOWN_STEP = 2, SHOWN_BOUNDS = 14 };

typedef struct bound_texts {
    char text[SHOWN_BOUNDS][RP_NUMBER_TEXT_BYTES];
} bound_texts;

static void head(rp_buf *out, const char *prefix, const char *name, const char *type,
                 const char *help)
{
    assert(strchr(help, '\n') == NULL); /* one line */
    rp_buf_format(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", prefix, name, help, prefix, name,
                  type);
}

/* Writes the value of a label, quotes included. */
static void label(rp_buf *out, const char *text)
{
    rp_buf_text(out, "\"");
    rp_put_spelt(out, text, RP_SPELL_LABEL);
    rp_buf_text(out, "\"");
}

/* Writes a number and the end of the line. The largest double means "no bound" in limiters. */
static void value(rp_buf *out, double number)
{
    char text[RP_NUMBER_TEXT_BYTES];

    rp_buf_text(out, " ");
    if (isnan(number))
        rp_buf_text(out, "NaN");
    else if (fabs(number) >= DBL_MAX)
        rp_buf_text(out, number > 0 ? "+Inf" : "-Inf");
    else
        rp_buf_text(out, rp_number_text(number, text));
    rp_buf_text(out, "\n");
}

/* Writes a whole number with all its digits, and the end of the line. */
static void whole(rp_buf *out, uint64_t number)
{
    rp_buf_text(out, " ");
    rp_put_whole(out, number);
    rp_buf_text(out, "\n");
}

/* Writes reprise_name{key="text"}. */
static void labelled(rp_buf *out, const char *name, const char *key, const char *text)
{
    rp_buf_format(out, "reprise_%s{%s=", name, key);
    label(out, text);
    rp_buf_text(out, "}");
}

/* The tables that are shown. */
typedef struct shown {
    const rp_table_view *tables;
    size_t count;
    rp_buf labels; /* the names as values of labels, one after the other */
    size_t *ends;  /* the end of each name in `labels` */
} shown;

/* Writes reprise_table_name{table="text", without the closing brace. */
static void of_table(rp_buf *out, const char *name, const char *suffix, const shown *s,
                     size_t table)
{
    size_t start = table > 0 ? s->ends[table - 1] : 0;

    assert(table < s->count && start < s->ends[table]);
    rp_buf_text(out, "reprise_table_");
    rp_buf_text(out, name);
    rp_buf_text(out, suffix);
    rp_buf_text(out, "{table=");
    rp_buf_append(out, s->labels.data + start, s->ends[table] - start);
}

static void write_identity(rp_buf *out, const rp_server_view *server)
{
    head(out, "reprise_", "build_info", "gauge", "Always 1; the label says which version.");
    labelled(out, "build_info", "version", server->version != NULL ? server->version : "");
    whole(out, 1);
    head(out, "reprise_", "uptime_seconds", "gauge", "Time since the server started.");
    rp_buf_text(out, "reprise_uptime_seconds");
    value(out, (double)server->uptime_ns / 1e9);
    head(out, "reprise_", "health", "gauge", "1 for the state that the server is in.");
    for (rp_health state = RP_HEALTH_LOADING; state <= RP_HEALTH_DRAINING; state++) {
        labelled(out, "health", "state", rp_health_name(state));
        whole(out, server->health == state);
    }
    head(out, "reprise_", "loops", "gauge", "Event loops, a thread each.");
    rp_buf_text(out, "reprise_loops");
    whole(out, rp_metrics_loops(server->metrics));
    head(out, "reprise_", "pinned_bytes", "gauge",
         "Bytes of chunks that streams keep and no table holds, and of inserts that wait.");
    rp_buf_text(out, "reprise_pinned_bytes");
    whole(out, server->pinned_bytes);
    head(out, "reprise_", "limit", "gauge",
         "The limits in force, by their name in the configuration.");
#define WRITE(field)                                                                           \
    rp_buf_format(out, "reprise_limit{name=\"" #field "\"} %lld\n",                            \
                  (long long)server->limits.field);
    RP_LIMITS(WRITE)
#undef WRITE
}

static void write_calls(rp_buf *out, const rp_loop_metrics *sums)
{
    head(out, "reprise_", "calls_total", "counter",
         "Calls that have ended, by method and gRPC status.");
    for (rp_method method = RP_METHOD_UNKNOWN; method < RP_METHODS; method++)
        for (int code = 0; code < RP_STATUS_CODES; code++) {
            uint64_t n = rp_counter_get(&sums->calls[method][code]);

            /* Zeroes are left out, but a rate needs a first 0 to start from. */
            if (n == 0 && (code > 0 || method == RP_METHOD_UNKNOWN)) continue;
            rp_buf_format(out, "reprise_calls_total{method=\"%s\",code=\"%d\"}",
                          rp_method_name(method), code);
            whole(out, n);
        }
}

static void write_counters(rp_buf *out, const rp_loop_metrics *sums)
{
#define WRITE(field, name, type, help)                                                         \
    head(out, "reprise_", name, type, help);                                                   \
    rp_buf_text(out, "reprise_" name);                                                         \
    whole(out, rp_counter_get(&sums->field));
    RP_LOOP_COUNTERS(WRITE)
#undef WRITE
    write_calls(out, sums);
    head(out, "reprise_", "refusals_total", "counter",
         "Calls, connections and page requests that were refused or ended, by reason.");
    for (rp_refusal reason = 0; reason < RP_REFUSAL_COUNT; reason++) {
        labelled(out, "refusals_total", "reason", rp_refusal_name(reason));
        whole(out, rp_counter_get(&sums->refusals[reason]));
    }
    head(out, "reprise_", "abuse_events_total", "counter",
         "Events that were charged to the abuse budgets of connections.");
    for (rp_abuse_kind kind = 0; kind < RP_ABUSE_KINDS; kind++) {
        labelled(out, "abuse_events_total", "kind", rp_abuse_name(kind));
        whole(out, rp_counter_get(&sums->abuse[kind]));
    }
}

static void write_store(rp_buf *out, const rp_store_info *store)
{
    head(out, "reprise_", "store_bytes", "gauge",
         "Bytes of the chunks that items of any table refer to, each counted once.");
    rp_buf_text(out, "reprise_store_bytes");
    whole(out, store->bytes);
    head(out, "reprise_", "store_lost_bytes", "gauge",
         "Memory that is lost between items; it counts in the budget.");
    rp_buf_text(out, "reprise_store_lost_bytes");
    whole(out, store->lost_bytes);
    head(out, "reprise_", "store_max_bytes", "gauge",
         "The budget of reprise_store_bytes; 0 if there is none.");
    rp_buf_text(out, "reprise_store_max_bytes");
    whole(out, store->max_bytes);
    head(out, "reprise_", "tables", "gauge", "Tables.");
    rp_buf_text(out, "reprise_tables");
    whole(out, store->table_count);
}

/* Rollouts whose metrics are shown, the first by name: they are part of the head of a page. */
enum { SHOWN_ROLLOUTS = 16 };

/* The groups of one rollouts by a label, with its value and the count. */
static void write_groups(rp_buf *out, const char *name, rp_string rollouts, const char *key,
                         const char *text, uint64_t count)
{
    char label_text[RP_ROLLOUT_NAME_BYTES + 1];

    memcpy(label_text, rollouts.data, rollouts.size);
    label_text[rollouts.size] = '\0';
    rp_buf_format(out, "reprise_%s{rollouts=", name);
    label(out, label_text);
    if (key != NULL) rp_buf_format(out, ",%s=\"%s\"", key, text);
    rp_buf_text(out, "}");
    whole(out, count);
}

static void write_rollout_states(rp_buf *out, rp_string name, const rp_rollout_info *info)
{
    static const char metric[] = "rollouts_groups";

    write_groups(out, metric, name, "state", "reserved", info->reserved);
    write_groups(out, metric, name, "state", "partial", info->partial);
    write_groups(out, metric, name, "state", "complete", info->complete);
    write_groups(out, metric, name, "state", "leased", info->leased);
}

static void write_rollout_ends(rp_buf *out, rp_string name, const rp_rollout_info *info)
{
    static const char metric[] = "rollouts_removed_groups_total";

    write_groups(out, metric, name, "reason", "acknowledged", info->acknowledged);
    write_groups(out, metric, name, "reason", "stale", info->stale);
    write_groups(out, metric, name, "reason", "evicted", info->evicted);
    write_groups(out, metric, name, "reason", "aborted", info->aborted);
    write_groups(out, metric, name, "reason", "expired", info->expired_reservations);
}

static void write_rollout_version(rp_buf *out, rp_string name, const rp_rollout_info *info)
{
    write_groups(out, "rollouts_version", name, NULL, NULL, (uint64_t)info->version);
}

static void write_rollout_leases(rp_buf *out, rp_string name, const rp_rollout_info *info)
{
    write_groups(out, "rollouts_expired_leases_total", name, NULL, NULL, info->expired_leases);
}

/* Also counts the operations of this process, which `rollouts_waiting_calls` does not. */
static void write_rollout_load(rp_buf *out, rp_rollouts *rollouts)
{
    static const char metric[] = "rollouts_waiting";
    const rp_rollout_sides load = rp_rollouts_count_waiting(rollouts);

    write_groups(out, metric, rp_rollouts_name(rollouts), "side", "insert", load.inserts);
    write_groups(out, metric, rp_rollouts_name(rollouts), "side", "sample", load.draws);
}

/* Writes a metric of all rollouts that are shown. */
static void write_each(rp_buf *out, rp_rollouts **all, size_t count,
                       void (*write)(rp_buf *, rp_string, const rp_rollout_info *))
{
    rp_rollout_info info;

    for (size_t i = 0; i < count; i++) {
        rp_rollouts_get_info(all[i], &info);
        write(out, rp_rollouts_name(all[i]), &info);
    }
}

static void write_rollouts(rp_buf *out, rp_store *store)
{
    rp_rollouts *all[RP_ROLLOUT_SET_COUNT];
    size_t count = store != NULL ? rp_rollout_set_list(rp_store_rollouts(store), all) : 0;
    size_t shown_count = count < SHOWN_ROLLOUTS ? count : SHOWN_ROLLOUTS;

    head(out, "reprise_", "rollouts", "gauge",
         "Buffers for training language models. The first 16 by name have metrics.");
    rp_buf_text(out, "reprise_rollouts");
    whole(out, count);
    head(out, "reprise_", "rollouts_groups", "gauge", "Groups, by their state.");
    write_each(out, all, shown_count, write_rollout_states);
    head(out, "reprise_", "rollouts_removed_groups_total", "counter",
         "Groups that were removed, by the reason.");
    write_each(out, all, shown_count, write_rollout_ends);
    head(out, "reprise_", "rollouts_version", "gauge", "The version of the policy.");
    write_each(out, all, shown_count, write_rollout_version);
    head(out, "reprise_", "rollouts_expired_leases_total", "counter",
         "Leases that expired before they were acknowledged.");
    write_each(out, all, shown_count, write_rollout_leases);
    head(out, "reprise_", "rollouts_waiting", "gauge",
         "Operations that wait: draws (sample), and those that put or reserve (insert).");
    for (size_t i = 0; i < shown_count; i++) write_rollout_load(out, all[i]);
    for (size_t i = 0; i < count; i++) rp_rollouts_unref(all[i]);
}

/* The runs that programs report; zeroes while the store is loading. */
static void write_runs(rp_buf *out, rp_store *store)
{
    rp_runs_info info = {0};

    if (store != NULL) rp_runs_get_info(rp_store_runs(store), &info);
    head(out, "reprise_", "runs", "gauge", "Runs that programs report.");
    rp_buf_text(out, "reprise_runs");
    whole(out, info.count);
    head(out, "reprise_", "run_bytes", "gauge", "Memory of all runs.");
    rp_buf_text(out, "reprise_run_bytes");
    whole(out, info.bytes);
    head(out, "reprise_", "runs_dropped_total", "counter",
         "Runs that were dropped to make room for others.");
    rp_buf_text(out, "reprise_runs_dropped_total");
    whole(out, info.dropped_runs);
    head(out, "reprise_", "run_scalars_dropped_total", "counter",
         "Scalars for which a run had no room.");
    rp_buf_text(out, "reprise_run_scalars_dropped_total");
    whole(out, info.dropped_scalars);
}

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

/* X(name, type, help, expression over `d`, an rp_durable_info) */
#define DURABLE_METRICS(X)                                                                     \
    X("degraded", "gauge", "1 if less is safe than the mode promises.", (double)d->degraded)   \
    X("checkpoints_total", "counter", "Checkpoints written.", (double)d->checkpoints)          \
    X("failed_checkpoints_total", "counter", "Checkpoints that failed.",                       \
      (double)d->failed_checkpoints)                                                           \
    X("last_checkpoint", "gauge", "Number of the newest checkpoint; 0 if there is none.",      \
      (double)d->last_checkpoint)                                                              \
    X("last_checkpoint_age_seconds", "gauge",                                                  \
      "Time since the newest checkpoint; NaN if none was written since the server started.",   \
      d->last_checkpoint_age_ns < 0 ? NAN : seconds(d->last_checkpoint_age_ns))                \
    X("last_checkpoint_seconds", "gauge", "How long the newest checkpoint took to write.",     \
      seconds(d->last_checkpoint_took_ns))                                                     \
    X("last_checkpoint_pause_seconds", "gauge", "How long the newest one stopped changes.",    \
      seconds(d->last_pause_ns))                                                               \
    X("last_checkpoint_bytes", "gauge", "Bytes that the newest checkpoint wrote.",             \
      (double)d->last_checkpoint_bytes)                                                        \
    X("lsn", "gauge", "Number of the last change in the journal; 0 without one.",              \
      (double)d->lsn)                                                                          \
    X("safe_lsn", "gauge", "Number up to which changes are safe.", (double)d->safe_lsn)        \
    X("backlog_bytes", "gauge", "Bytes that wait in memory for the journal.",                  \
      (double)d->backlog_bytes)                                                                \
    X("max_backlog_bytes", "gauge", "Bytes of backlog from which changes wait.",               \
      (double)d->max_backlog_bytes)                                                            \
    X("segments", "gauge", "Data files.", (double)d->segments)                                 \
    X("disk_bytes", "gauge", "Bytes of data on disk.", (double)d->disk_bytes)                  \
    X("live_bytes", "gauge", "Bytes of data on disk that the newest state needs.",             \
      (double)d->live_bytes)                                                                   \
    X("recovered_items", "gauge", "Items of all tables once the server had started.",          \
      (double)d->recovered_items)                                                              \
    X("recovered_records", "gauge", "Journal records redone when the server started.",         \
      (double)d->recovered_records)                                                            \
    X("torn_bytes", "gauge", "Bytes cut off the journal's end when the server started.",       \
      (double)d->torn_bytes)                                                                   \
    X("resident_bytes", "gauge", "Bytes of chunks that are in memory.",                        \
      (double)d->resident_bytes)                                                               \
    X("spilled_bytes", "gauge", "Bytes of chunks that are on disk only.",                      \
      (double)d->spilled_bytes)                                                                \
    X("loads_total", "counter", "Chunks read back from disk.", (double)d->loads)               \
    X("load_bytes_total", "counter", "Bytes of chunks read back from disk.",                   \
      (double)d->load_bytes)                                                                   \
    X("load_hits_total", "counter", "Chunks on disk that samples found in the read cache.",    \
      (double)d->load_hits)

static const char *const durability_names[] = {"checkpoint", "interval", "sync"};

/* Writes nothing if the server has no data directory. */
static void write_durable(rp_buf *out, const rp_server_view *server)
{
    const rp_durable_info *d = &server->durable;

    if (!server->is_durable) return;
    head(out, "reprise_durable_", "mode", "gauge", "1 for the mode of durability in force.");
    for (rp_durability mode = RP_DURABLE_CHECKPOINT; mode <= RP_DURABLE_SYNC; mode++) {
        labelled(out, "durable_mode", "mode", durability_names[mode]);
        whole(out, mode == d->mode);
    }
#define WRITE(name, type, help, number)                                                        \
    head(out, "reprise_durable_", name, type, help);                                           \
    rp_buf_text(out, "reprise_durable_" name);                                                 \
    value(out, number);
    DURABLE_METRICS(WRITE)
#undef WRITE
}

/* X(name, type, help, expression over `t`, a view) */
#define TABLE_METRICS(X)                                                                       \
    X("size", "gauge", "Items.", (double)t->info.size)                                         \
    X("max_size", "gauge", "Items before the remover makes room.", (double)t->info.max_size)   \
    X("bytes", "gauge", "Bytes of the chunks its items refer to.", (double)t->info.bytes)      \
    X("max_bytes", "gauge", "Bytes before the remover makes room; 0 if there is no limit.",    \
      (double)t->info.max_bytes)                                                               \
    X("inserts_total", "counter", "Inserts since the table was created or reset.",             \
      (double)t->info.inserts)                                                                 \
    X("samples_total", "counter", "Samples since the table was created or reset.",             \
      (double)t->info.samples)                                                                 \
    X("deletes_total", "counter",                                                              \
      "Deletes since the table was created or reset, evictions included.",                     \
      (double)t->info.deletes)                                                                 \
    X("evictions_total", "counter", "Deletes made by the remover.", (double)t->info.evictions) \
    X("updates_total", "counter", "Priorities set by key.", (double)t->info.updates)           \
    X("episodes", "gauge", "Episodes that items refer to.", (double)t->info.episodes)          \
    X("deleted_episodes_total", "counter", "Episodes that no item refers to any more.",        \
      (double)t->info.deleted_episodes)                                                        \
    X("unique_samples_total", "counter", "Items sampled at least once.",                       \
      (double)t->info.unique_samples)                                                          \
    X("max_priority", "gauge", "The largest priority so far.", t->info.max_priority)           \
    X("closed", "gauge", "1 if the table refuses everything.", (double)t->info.closed)         \
    X("limiter_cursor", "gauge",                                                               \
      "inserts * samples_per_insert - samples, which the limiter keeps within its bounds.",    \
      t->info.limiter_diff)                                                                    \
    X("limiter_min_diff", "gauge", "Samples wait rather than take the cursor below this.",     \
      t->info.limiter.min_diff)                                                                \
    X("limiter_max_diff", "gauge", "Inserts wait rather than take the cursor above this.",     \
      t->info.limiter.max_diff)                                                                \
    X("limiter_samples_per_insert", "gauge", "Samples that one insert allows.",                \
      t->info.limiter.samples_per_insert)                                                      \
    X("limiter_min_size", "gauge", "Samples wait until the table holds so many items.",        \
      (double)t->info.limiter.min_size)                                                        \
    X("waiting_inserts", "gauge", "Inserts that wait now.", (double)t->info.waiting_inserts)   \
    X("waiting_samples", "gauge", "Samples that wait now.", (double)t->info.waiting_samples)   \
    X("longest_insert_wait_seconds", "gauge",                                                  \
      "How long the insert that waits longest has waited.",                                    \
      seconds(t->info.insert_waits.longest_ns))                                                \
    X("longest_sample_wait_seconds", "gauge",                                                  \
      "How long the sample that waits longest has waited.",                                    \
      seconds(t->info.sample_waits.longest_ns))                                                \
    X("insert_waits_total", "counter", "Inserts that have had to wait.",                       \
      (double)t->info.insert_waits.parked)                                                     \
    X("sample_waits_total", "counter", "Samples that have had to wait.",                       \
      (double)t->info.sample_waits.parked)                                                     \
    X("insert_wait_seconds_total", "counter", "How long inserts have waited, all together.",   \
      seconds(t->info.insert_waits.total_ns))                                                  \
    X("sample_wait_seconds_total", "counter", "How long samples have waited, all together.",   \
      seconds(t->info.sample_waits.total_ns))                                                  \
    X("inserts_paused", "gauge", "1 if inserts wait until they are resumed.",                  \
      (t->info.paused & RP_SIDE_INSERTS) != 0)                                                 \
    X("samples_paused", "gauge", "1 if samples wait until they are resumed.",                  \
      (t->info.paused & RP_SIDE_SAMPLES) != 0)

/* The metrics of a table: first those of rp_table_info, then the counters of the server. */
static const struct {
    const char *name, *type, *help;
} table_metrics[] = {
#define ROW(name, type, help, number) {name, type, help},
    TABLE_METRICS(ROW)
#undef ROW
#define ROW(field, name, help) {name, "counter", help},
        RP_TABLE_COUNTERS(ROW)
#undef ROW
};

enum { TABLE_METRIC_COUNT = sizeof table_metrics / sizeof table_metrics[0] };

/* Sets `numbers` to all values of a table, in the order of the array above. */
static void measure(const rp_table_view *t, rp_metrics *metrics, double *numbers)
{
    const double *end = numbers + TABLE_METRIC_COUNT;
    rp_table_sums sums;

    rp_metrics_sum_table(metrics, t->info.name, &sums);
#define NUMBER(name, type, help, number) *numbers++ = (number);
    TABLE_METRICS(NUMBER)
#undef NUMBER
#define NUMBER(field, name, help) *numbers++ = (double)sums.field;
    RP_TABLE_COUNTERS(NUMBER)
#undef NUMBER
    assert(numbers == end);
    (void)end;
}

static void write_tables(rp_buf *out, rp_metrics *metrics, const shown *s)
{
    double(*numbers)[TABLE_METRIC_COUNT] = NULL;

    if (s->count > 0) {
        numbers = rp_alloc_array(out->alloc, s->count, sizeof *numbers);
        out->bad |= numbers == NULL;
    }
    if (out->bad) goto out;
    for (size_t i = 0; i < s->count; i++) measure(&s->tables[i], metrics, numbers[i]);
    for (size_t m = 0; m < TABLE_METRIC_COUNT; m++) {
        head(out, "reprise_table_", table_metrics[m].name, table_metrics[m].type,
             table_metrics[m].help);
        for (size_t i = 0; i < s->count; i++) {
            of_table(out, table_metrics[m].name, "", s, i);
            rp_buf_text(out, "}");
            value(out, numbers[i][m]);
        }
    }
out:
    rp_release(out->alloc, numbers, s->count * sizeof *numbers);
}

static void write_histogram(rp_buf *out, const char *name, const shown *s, size_t table,
                            const rp_histogram_sum *h, const bound_texts *bounds)
{
    assert(rp_histogram_below(h, RP_HISTOGRAM_LAST_BIT) <= h->count);
    for (int i = 0; i < SHOWN_BOUNDS; i++) {
        of_table(out, name, "_bucket", s, table);
        rp_buf_text(out, ",le=\"");
        rp_buf_text(out, bounds->text[i]);
        rp_buf_text(out, "\"}");
        whole(out, rp_histogram_below(h, FIRST_SHOWN_BIT + i * SHOWN_STEP));
    }
    of_table(out, name, "_bucket", s, table);
    rp_buf_text(out, ",le=\"+Inf\"}");
    whole(out, h->count);
    of_table(out, name, "_sum", s, table);
    rp_buf_text(out, "}");
    value(out, (double)h->sum_ns / 1e9);
    of_table(out, name, "_count", s, table);
    rp_buf_text(out, "}");
    whole(out, h->count);
}

static void write_histograms(rp_buf *out, rp_metrics *metrics, const shown *s)
{
    rp_table_sums sums;
    bound_texts bounds;

    for (int i = 0; i < SHOWN_BOUNDS; i++)
        (void)rp_number_text(ldexp(1, FIRST_SHOWN_BIT + i * SHOWN_STEP) / 1e9, bounds.text[i]);
    head(out, "reprise_table_", "insert_seconds", "histogram",
         "From the arrival of an item until it is in the table.");
    for (size_t i = 0; i < s->count; i++) {
        rp_metrics_sum_table(metrics, s->tables[i].info.name, &sums);
        write_histogram(out, "insert_seconds", s, i, &sums.insert_ns, &bounds);
    }
    head(out, "reprise_table_", "sample_seconds", "histogram",
         "From the request for a batch of samples to its response.");
    for (size_t i = 0; i < s->count; i++) {
        rp_metrics_sum_table(metrics, s->tables[i].info.name, &sums);
        write_histogram(out, "sample_seconds", s, i, &sums.sample_ns, &bounds);
    }
}

enum {
    HISTOGRAM_LINES = SHOWN_BOUNDS + 3,
    TABLE_LINES = TABLE_METRIC_COUNT + 2 * HISTOGRAM_LINES,
    /* The most bytes of a line besides the names of its metric and its table. */
    LINE_BYTES = sizeof "reprise_table_{table=} \n" + RP_NUMBER_TEXT_BYTES,
    BUCKET_BYTES = sizeof "_bucket,le=\"\"" + RP_NUMBER_TEXT_BYTES,
};

/* The most bytes of the lines of a table, without its name. */
static size_t table_bytes(void)
{
    size_t bytes = TABLE_LINES * (size_t)LINE_BYTES;

    for (size_t m = 0; m < TABLE_METRIC_COUNT; m++) bytes += strlen(table_metrics[m].name);
    bytes += HISTOGRAM_LINES *
             (sizeof "insert_seconds" + sizeof "sample_seconds" + 2 * (size_t)BUCKET_BYTES);
    return bytes;
}

/* Chooses the tables whose lines fit into `room` bytes, and escapes their names. */
static void choose(shown *s, size_t table_count, size_t room)
{
    size_t without_name = table_bytes();

    for (s->count = 0; s->count < table_count; s->count++) {
        size_t start = s->labels.size, bytes;

        label(&s->labels, s->tables[s->count].info.name);
        bytes = without_name + TABLE_LINES * (s->labels.size - start);
        if (bytes > room) return;
        room -= bytes;
        s->ends[s->count] = s->labels.size;
    }
}

static void write_left_out(rp_buf *out, size_t left_out)
{
    head(out, "reprise_", "page_tables_left_out", "gauge",
         "Tables left out of this page, the newest ones, because names are too long for it.");
    rp_buf_text(out, "reprise_page_tables_left_out");
    whole(out, left_out);
}

/* Writes the metrics of all tables that fit on the page. */
static void write_all_tables(rp_buf *out, rp_metrics *metrics, const rp_table_view *tables,
                             size_t table_count)
{
    size_t most = rp_page_most_bytes(table_count);
    shown s = {.tables = tables};

    rp_buf_init(&s.labels, out->alloc);
    if (table_count > 0) {
        s.ends = rp_alloc_array(out->alloc, table_count, sizeof *s.ends);
        out->bad |= s.ends == NULL;
    }
    if (!out->bad) choose(&s, table_count, most - RP_PAGE_HEAD_BYTES);
    out->bad |= s.labels.bad;
    if (!out->bad) {
        write_left_out(out, table_count - s.count);
        write_tables(out, metrics, &s);
        write_histograms(out, metrics, &s);
        assert(out->size <= most);
    }
    rp_buf_deinit(&s.labels);
    rp_release(out->alloc, s.ends, table_count * sizeof *s.ends);
}

void rp_metrics_text(rp_buf *out, const rp_server_view *server, const rp_store_info *store,
                     const rp_table_view *tables, size_t table_count)
{
    rp_loop_metrics sums;

    rp_metrics_sum(server->metrics, &sums);
    write_identity(out, server);
    write_counters(out, &sums);
    write_store(out, store);
    write_runs(out, server->store);
    write_rollouts(out, server->store);
    write_durable(out, server);
    write_all_tables(out, server->metrics, tables, table_count);
}
