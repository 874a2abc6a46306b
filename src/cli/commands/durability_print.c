/* SPDX-License-Identifier: Apache-2.0 */
/* The durability of servers as text and as JSON. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/info_print.h"
#include "cli/text/units.h"

enum { KEY_WIDTH = 18, TEXT_BYTES = 160 };

static const char *mode_name(rp_durability mode)
{
    static const char *const names[] = {"checkpoint", "interval", "sync"};

    return (size_t)mode < sizeof names / sizeof names[0] ? names[mode] : "unknown";
}

static const char *shard_of(const rp_tables_view *v, const rp_client_durability *d)
{
    return d->shard < v->shard_count ? v->shards[d->shard] : "?";
}

/* Appends to a terminated text, cut to fit. */
static void add(char *text, size_t size, const char *format, ...) RP_PRINTF(3, 4);

static void add(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;

    assert(used < size);
    va_start(arguments, format);
    (void)vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

char *rp_progress_words(const rp_durable_progress *p, char *text, size_t size)
{
    char bytes[32];

    assert(size > 0);
    text[0] = '\0';
    if (p->total > 0)
        add(text, size, "%.0f %% of %s",
            100.0 * (double)(p->done < p->total ? p->done : p->total) / (double)p->total,
            rp_size_text(p->total, bytes, sizeof bytes));
    else
        add(text, size, "%s so far", rp_size_text(p->done, bytes, sizeof bytes));
    if (p->elapsed_ns > 0 && p->done > 0)
        add(text, size, ", %s/s",
            rp_size_text(rp_per_second(p->done, p->elapsed_ns), bytes, sizeof bytes));
    if (p->left_ns >= 0) add(text, size, ", %.0f s left", (double)p->left_ns / 1e9);
    return text;
}

void rp_durability_words(rp_text_buffer *out, const rp_client_durability *durability)
{
    const rp_durable_info *d = &durability->info;
    uint64_t unsafe = d->lsn > d->safe_lsn ? d->lsn - d->safe_lsn : 0;
    char text[TEXT_BYTES];

    if (!durability->is_durable) return;
    rp_text_buffer_format(out, "storage %s: ", mode_name(d->mode));
    if (d->degraded) {
        rp_text_buffer_put(out, "degraded, ");
        rp_text_buffer_put_safe(out, d->trouble, strlen(d->trouble));
        rp_text_buffer_put(out, "; ");
    }
    if (d->last_checkpoint == 0)
        rp_text_buffer_put(out, "no checkpoint yet");
    else if (d->last_checkpoint_age_ns < 0)
        rp_text_buffer_format(out, "checkpoint %" PRIu64 ", loaded at the start,",
                              d->last_checkpoint);
    else
        rp_text_buffer_format(out, "checkpoint %" PRIu64 " %s ago", d->last_checkpoint,
                              rp_elapsed_text(d->last_checkpoint_age_ns, text, sizeof text));
    rp_text_buffer_format(
        out, d->last_checkpoint == 0 ? ", %s in data files" : " with %s in data files",
        rp_size_text(d->disk_bytes, text, sizeof text));
    if (d->mode != RP_DURABLE_CHECKPOINT)
        rp_text_buffer_put(out, ", later changes in the journal");
    if (d->lsn > 0)
        rp_text_buffer_format(out, ", %" PRIu64 " change%s not safe yet", unsafe,
                              rp_plural(unsafe));
    if (d->spilled_bytes > 0)
        rp_text_buffer_format(out, ", %s of it not in memory",
                              rp_size_text(d->spilled_bytes, text, sizeof text));
    if (d->progress.what != NULL)
        rp_text_buffer_format(out, "; %s: %s", d->progress.what,
                              rp_progress_words(&d->progress, text, sizeof text));
}

void rp_durability_lines(rp_text_buffer *out, const rp_tables_view *v)
{
    for (size_t i = 0; i < v->durability_count; i++) {
        const rp_client_durability *d = &v->durability[i];

        if (!d->is_durable) continue;
        if (v->shard_count > 1) rp_text_buffer_format(out, "%s ", shard_of(v, d));
        rp_durability_words(out, d);
        rp_text_buffer_put(out, "\n");
    }
}

/* Writes a line with a name and a value, which is escaped. */
static void line(rp_text_buffer *out, const char *name, const char *format, ...)
    RP_PRINTF(3, 4);

static void line(rp_text_buffer *out, const char *name, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    rp_text_buffer_format(out, "  %-*s", KEY_WIDTH, name);
    rp_text_buffer_put_safe(out, text, strlen(text));
    rp_text_buffer_put(out, "\n");
}

static void report_checkpoints(rp_text_buffer *out, const rp_durable_info *d)
{
    char a[TEXT_BYTES], b[32];

    line(out, "checkpoints", "%" PRIu64 " written, %" PRIu64 " failed", d->checkpoints,
         d->failed_checkpoints);
    if (d->last_checkpoint == 0) {
        line(out, "last checkpoint", "none yet");
        return;
    }
    if (d->last_checkpoint_age_ns < 0) {
        line(out, "last checkpoint", "%" PRIu64 ", loaded when the server started",
             d->last_checkpoint);
        return;
    }
    line(out, "last checkpoint", "%" PRIu64 ", %s ago: %s in %.3f s, changes stopped %.3f ms",
         d->last_checkpoint, rp_elapsed_text(d->last_checkpoint_age_ns, a, sizeof a),
         rp_size_text(d->last_checkpoint_bytes, b, sizeof b),
         (double)d->last_checkpoint_took_ns / 1e9, (double)d->last_pause_ns / 1e6);
}

static void report_shard(rp_text_buffer *out, const rp_tables_view *v,
                         const rp_client_durability *s)
{
    const rp_durable_info *d = &s->info;
    char a[TEXT_BYTES], b[32];

    rp_text_buffer_format(out, "%s\n", shard_of(v, s));
    if (!s->is_durable) {
        line(out, "durability", "none: data is in memory only");
        return;
    }
    line(out, "durability", "%s", mode_name(d->mode));
    if (d->degraded) line(out, "degraded", "%s", d->trouble);
    report_checkpoints(out, d);
    if (d->lsn > 0)
        line(out, "journal", "change %" PRIu64 ", safe up to %" PRIu64 ", %s wait for it",
             d->lsn, d->safe_lsn, rp_size_text(d->backlog_bytes, a, sizeof a));
    line(out, "on disk", "%s in %" PRIu64 " segment%s, %s of it in use%s",
         rp_size_text(d->disk_bytes, a, sizeof a), d->segments, rp_plural(d->segments),
         rp_size_text(d->live_bytes, b, sizeof b),
         d->last_checkpoint > 0 ? ", at the last checkpoint" : "");
    line(out, "in memory", "%s, %s on disk only", rp_size_text(d->resident_bytes, a, sizeof a),
         rp_size_text(d->spilled_bytes, b, sizeof b));
    line(out, "read back", "%" PRIu64 " chunk%s, %s", d->loads, rp_plural(d->loads),
         rp_size_text(d->load_bytes, a, sizeof a));
    line(out, "at the start",
         "%" PRIu64 " item%s, %" PRIu64 " journal record%s, %" PRIu64 " torn byte%s",
         d->recovered_items, rp_plural((uint64_t)d->recovered_items), d->recovered_records,
         rp_plural(d->recovered_records), d->torn_bytes, rp_plural(d->torn_bytes));
    if (d->progress.what != NULL)
        line(out, d->progress.what, "%s", rp_progress_words(&d->progress, a, sizeof a));
}

static void put_unsigned(rp_text_buffer *out, const char *name, uint64_t value)
{
    rp_json_key(out, name);
    rp_json_put_unsigned(out, value);
}

static void put_seconds(rp_text_buffer *out, const char *name, int64_t ns)
{
    rp_json_key(out, name);
    rp_json_put_number(out, (double)ns / 1e9);
}

static void json_progress(rp_text_buffer *out, const rp_durable_progress *p)
{
    rp_json_key(out, "progress");
    if (p->what == NULL) {
        rp_json_put_text(out, NULL);
        return;
    }
    rp_json_open(out, '{');
    rp_json_key(out, "what");
    rp_json_put_text(out, p->what);
    put_unsigned(out, "done_bytes", p->done);
    put_unsigned(out, "total_bytes", p->total);
    put_seconds(out, "elapsed_seconds", p->elapsed_ns);
    rp_json_key(out, "left_seconds");
    if (p->left_ns < 0)
        rp_json_put_text(out, NULL);
    else
        rp_json_put_number(out, (double)p->left_ns / 1e9);
    rp_json_close(out, '}');
}

static void json_info(rp_text_buffer *out, const rp_durable_info *d)
{
    rp_json_key(out, "durability");
    rp_json_put_text(out, mode_name(d->mode));
    rp_json_key(out, "degraded");
    rp_json_put_boolean(out, d->degraded);
    rp_json_key(out, "trouble");
    rp_json_put_text(out, d->trouble[0] != '\0' ? d->trouble : NULL);
    put_unsigned(out, "checkpoints", d->checkpoints);
    put_unsigned(out, "failed_checkpoints", d->failed_checkpoints);
    put_unsigned(out, "last_checkpoint", d->last_checkpoint);
    rp_json_key(out, "last_checkpoint_age_seconds"); /* null: before the server started */
    if (d->last_checkpoint_age_ns < 0)
        rp_json_put_text(out, NULL);
    else
        rp_json_put_number(out, (double)d->last_checkpoint_age_ns / 1e9);
    put_seconds(out, "last_checkpoint_seconds", d->last_checkpoint_took_ns);
    put_seconds(out, "last_pause_seconds", d->last_pause_ns);
    put_unsigned(out, "last_checkpoint_bytes", d->last_checkpoint_bytes);
    put_unsigned(out, "lsn", d->lsn);
    put_unsigned(out, "safe_lsn", d->safe_lsn);
    put_unsigned(out, "backlog_bytes", d->backlog_bytes);
    put_unsigned(out, "max_backlog_bytes", d->max_backlog_bytes);
    put_unsigned(out, "segments", d->segments);
    put_unsigned(out, "disk_bytes", d->disk_bytes);
    put_unsigned(out, "live_bytes", d->live_bytes);
    put_unsigned(out, "recovered_items", d->recovered_items);
    put_unsigned(out, "recovered_records", d->recovered_records);
    put_unsigned(out, "torn_bytes", d->torn_bytes);
    put_unsigned(out, "resident_bytes", d->resident_bytes);
    put_unsigned(out, "spilled_bytes", d->spilled_bytes);
    put_unsigned(out, "loads", d->loads);
    put_unsigned(out, "load_bytes", d->load_bytes);
    put_unsigned(out, "load_hits", d->load_hits);
    json_progress(out, &d->progress);
}

void rp_durability_json(rp_text_buffer *out, const rp_tables_view *v)
{
    rp_json_open(out, '[');
    for (size_t i = 0; i < v->durability_count; i++) {
        rp_json_open(out, '{');
        rp_json_key(out, "shard");
        rp_json_put_text(out, shard_of(v, &v->durability[i]));
        if (v->durability[i].is_durable) {
            json_info(out, &v->durability[i].info);
        } else {
            rp_json_key(out, "durability");
            rp_json_put_text(out, NULL);
        }
        rp_json_close(out, '}');
    }
    rp_json_close(out, ']');
}

void rp_durability_report(rp_text_buffer *out, const rp_tables_view *v, bool json)
{
    if (json) {
        rp_durability_json(out, v);
        rp_text_buffer_put(out, "\n");
        return;
    }
    for (size_t i = 0; i < v->durability_count; i++) report_shard(out, v, &v->durability[i]);
}
