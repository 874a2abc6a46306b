/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/info_print.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/signature_spec.h"
#include "cli/text/units.h"

enum { NUMBER_BYTES = 32, KEY_WIDTH = 14 };

bool rp_limiter_unbounded(double diff)
{
    return !(fabs(diff) < 1e300);
}

void rp_limiter_words(rp_text_buffer *out, const rp_limiter_options *l)
{
    char ratio[NUMBER_BYTES], low[NUMBER_BYTES], high[NUMBER_BYTES];

    if (rp_limiter_unbounded(l->min_diff) && rp_limiter_unbounded(l->max_diff)) {
        rp_text_buffer_format(out, "from %" PRId64 " item%s on", l->min_size,
                              l->min_size == 1 ? "" : "s");
        return;
    }
    rp_text_buffer_format(out, "%s sample%s an insert, ",
                          rp_decimal_text(l->samples_per_insert, ratio, sizeof ratio),
                          l->samples_per_insert == 1 ? "" : "s");
    (void)rp_decimal_text(l->min_diff, low, sizeof low);
    (void)rp_decimal_text(l->max_diff, high, sizeof high);
    if (rp_limiter_unbounded(l->min_diff))
        rp_text_buffer_format(out, "up to %s", high);
    else if (rp_limiter_unbounded(l->max_diff))
        rp_text_buffer_format(out, "from %s on", low);
    else
        rp_text_buffer_format(out, "within %s and %s", low, high);
    if (l->min_size > 1) rp_text_buffer_format(out, ", from %" PRId64 " items on", l->min_size);
}

/* Clamps a share, computed from numbers that a server sent, to 0 .. 1. NaN becomes 0. */
static double bounded(double share)
{
    if (!(share >= 0)) return 0;
    return share < 1 ? share : 1;
}

/* Returns the word for a limiter that lacks a bound: it has no position between two. */
static const char *bounds_word(const rp_table_info *info)
{
    const rp_limiter_options *l = &info->limiter;

    if (rp_limiter_unbounded(l->min_diff) && rp_limiter_unbounded(l->max_diff)) return "free";
    if (info->limiter_diff + l->samples_per_insert > l->max_diff) return "at max_diff";
    return info->limiter_diff - 1 < l->min_diff ? "at min_diff" : "open";
}

void rp_limiter_bar(rp_text_buffer *out, const rp_table_info *info, size_t width)
{
    const rp_limiter_options *l = &info->limiter;
    size_t inside = width - 2, length, at;
    const char *word;
    double share;

    assert(width >= 5);
    rp_text_buffer_put(out, "[");
    if (info->size < l->min_size) {
        share = bounded((double)info->size / (double)l->min_size);
        at = (size_t)(share * (double)inside);
        assert(at <= inside);
        rp_text_buffer_repeat(out, '#', at);
        rp_text_buffer_repeat(out, '.', inside - at);
    } else if (rp_limiter_unbounded(l->min_diff) || rp_limiter_unbounded(l->max_diff)) {
        word = info->paused != 0 ? "paused" : bounds_word(info);
        length = strlen(word) < inside ? strlen(word) : inside;
        at = (inside - length) / 2;
        rp_text_buffer_repeat(out, ' ', at);
        rp_text_buffer_add(out, word, length);
        rp_text_buffer_repeat(out, ' ', inside - length - at);
    } else {
        share = bounded((info->limiter_diff - l->min_diff) / (l->max_diff - l->min_diff));
        at = (size_t)(share * (double)(inside - 1) + 0.5);
        assert(at <= inside - 1);
        rp_text_buffer_repeat(out, '-', at);
        rp_text_buffer_put(out, "|");
        rp_text_buffer_repeat(out, '-', inside - 1 - at);
    }
    rp_text_buffer_put(out, "]");
}

char *rp_count_text(double count, char text[16])
{
    static const char units[] = " kMGTPE";
    size_t unit = 0;

    if (!(count >= 0)) count = 0;
    for (; count >= 999.95 && units[unit + 1] != '\0'; unit++) count /= 1000;
    assert(unit < sizeof units - 1);
    if (unit == 0)
        (void)snprintf(text, 16, count == floor(count) || count >= 100 ? "%.0f" : "%.1f",
                       count);
    else
        (void)snprintf(text, 16, "%.*f%c", count < 99.95 ? 1 : 0, count, units[unit]);
    return text;
}

char *rp_bytes_text(double bytes, char text[16])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    enum { UNITS = sizeof units / sizeof units[0] };
    size_t unit = 0;

    if (!(bytes >= 0)) bytes = 0;
    for (; bytes >= 1023.5 && unit + 1 < UNITS; unit++) bytes /= 1024;
    assert(unit < UNITS);
    (void)snprintf(text, 16, "%.*f %s", unit > 0 && bytes < 99.95 ? 1 : 0, bytes, units[unit]);
    return text;
}

static void selector_words(const rp_selector_options *s, char *text, size_t size)
{
    char exponent[NUMBER_BYTES];
    const char *name = rp_selector_name(s->kind);

    if (s->kind == RP_PRIORITIZED)
        (void)snprintf(text, size, "%s %s", name,
                       rp_decimal_text(s->exponent, exponent, sizeof exponent));
    else
        (void)snprintf(text, size, "%s", name != NULL ? name : "?");
}

static void waiting_words(const rp_table_info *info, char *text, size_t size)
{
    size_t used;

    text[0] = '\0';
    if (info->waiting_inserts > 0)
        (void)snprintf(text, size, "%" PRId64 " insert%s", info->waiting_inserts,
                       info->waiting_inserts == 1 ? "" : "s");
    used = strlen(text);
    assert(used < size);
    if (info->waiting_samples > 0)
        (void)snprintf(text + used, size - used, "%s%" PRId64 " sample%s", used > 0 ? ", " : "",
                       info->waiting_samples, info->waiting_samples == 1 ? "" : "s");
    if (text[0] == '\0') (void)snprintf(text, size, "nobody");
}

static const char *paused_words(uint32_t paused)
{
    static const char *const words[] = {"", "inserts", "samples", "inserts and samples"};

    static_assert(RP_SIDE_INSERTS == 1 && RP_SIDE_SAMPLES == 2, "sides index `words`");
    return words[paused & (RP_SIDE_INSERTS | RP_SIDE_SAMPLES)];
}

static const char *shard_of(const rp_tables_view *v, const rp_client_table *t)
{
    return t->shard < v->shard_count ? v->shards[t->shard] : "?";
}

void rp_info_glance(rp_text_buffer *out, const rp_tables_view *v)
{
    static const char *const heads[] = {"TABLE", "SAMPLER", "ITEMS",   "MAX",
                                        "BYTES", "INSERTS", "SAMPLES", "WAITING"};
    enum { HEADS = sizeof heads / sizeof heads[0] };
    bool shards = v->shard_count > 1;
    char text[64];
    rp_grid g;

    if (v->count == 0) {
        rp_text_buffer_put(
            out, "no tables; reprise tables create NAME:SAMPLER:MAX_SIZE creates one\n");
        return;
    }
    rp_grid_init(&g, HEADS + (shards ? 1 : 0), shards ? 0xf8 : 0x7c);
    if (shards) rp_grid_cell(&g, "SHARD");
    for (size_t i = 0; i < HEADS; i++) rp_grid_cell(&g, "%s", heads[i]);
    for (size_t i = 0; i < v->count; i++) {
        const rp_table_info *info = &v->tables[i].info;

        if (shards) rp_grid_cell(&g, "%s", shard_of(v, &v->tables[i]));
        rp_grid_cell(&g, "%s", info->name);
        selector_words(&info->sampler, text, sizeof text);
        rp_grid_cell(&g, "%s", text);
        rp_grid_cell(&g, "%" PRId64, info->size);
        rp_grid_cell(&g, "%" PRId64, info->max_size);
        rp_grid_cell(&g, "%s", rp_size_text(info->bytes, text, sizeof text));
        rp_grid_cell(&g, "%" PRId64, info->inserts);
        rp_grid_cell(&g, "%" PRId64, info->samples);
        waiting_words(info, text, sizeof text);
        if (info->paused != 0)
            rp_grid_cell(&g, "%s, %s paused", text, paused_words(info->paused));
        else
            rp_grid_cell(&g, "%s%s", text, info->closed ? ", closed" : "");
    }
    assert(g.cell_count == (v->count + 1) * g.columns);
    rp_grid_write(&g, out);
    rp_grid_deinit(&g);
    rp_durability_lines(out, v);
}

static void key(rp_text_buffer *out, const char *name)
{
    rp_text_buffer_format(out, "  %-*s", KEY_WIDTH, name);
}

static void print_counts(rp_text_buffer *out, const rp_table_info *info)
{
    key(out, "inserts");
    rp_text_buffer_format(out, "%" PRId64 " (%" PRId64 " waited)\n", info->inserts,
                          info->insert_waits.parked);
    key(out, "samples");
    rp_text_buffer_format(out,
                          "%" PRId64 " (%" PRId64 " waited), %" PRId64 " different item%s\n",
                          info->samples, info->sample_waits.parked, info->unique_samples,
                          rp_plural((uint64_t)info->unique_samples));
    key(out, "deletes");
    rp_text_buffer_format(out, "%" PRId64 ", %" PRId64 " of them evictions\n", info->deletes,
                          info->evictions);
    key(out, "updates");
    rp_text_buffer_format(out, "%" PRId64 "\n", info->updates);
    key(out, "episodes");
    rp_text_buffer_format(out, "%" PRId64 "\n", info->episodes);
}

static void print_signature(rp_text_buffer *out, const rp_signature *signature)
{
    char text[160];
    rp_grid g;

    if (signature == NULL) {
        key(out, "signature");
        rp_text_buffer_put(out, "none: any columns\n");
        return;
    }
    rp_text_buffer_put(out, "  signature\n");
    rp_grid_init(&g, 2, 0);
    for (size_t i = 0; i < rp_signature_column_count(signature); i++) {
        const rp_spec *spec = rp_signature_column(signature, i);

        rp_grid_cell(&g, "    %s",
                     spec->name != NULL && spec->name[0] != '\0' ? spec->name : "-");
        rp_grid_cell(&g, "%s", rp_spec_text(spec, text, sizeof text));
    }
    rp_grid_write(&g, out);
    rp_grid_deinit(&g);
}

static void print_table(rp_text_buffer *out, const rp_tables_view *v, const rp_client_table *t)
{
    const rp_table_info *info = &t->info;
    char text[64];

    rp_text_buffer_put_safe(out, info->name, strlen(info->name));
    rp_text_buffer_format(out, "%s%s\n", v->shard_count > 1 ? " on " : "",
                          v->shard_count > 1 ? shard_of(v, t) : "");
    selector_words(&info->sampler, text, sizeof text);
    key(out, "sampler");
    rp_text_buffer_format(out, "%s\n", text);
    selector_words(&info->remover, text, sizeof text);
    key(out, "remover");
    rp_text_buffer_format(out, "%s\n", text);
    key(out, "items");
    rp_text_buffer_format(out, "%" PRId64 " of %" PRId64 "%s\n", info->size, info->max_size,
                          info->soft_limit ? ", a soft limit" : "");
    key(out, "bytes");
    rp_text_buffer_put(out, rp_size_text(info->bytes, text, sizeof text));
    if (info->max_bytes > 0)
        rp_text_buffer_format(out, " of %s", rp_size_text(info->max_bytes, text, sizeof text));
    rp_text_buffer_put(out, "\n");
    if (info->max_times_sampled > 0) {
        key(out, "sampled");
        rp_text_buffer_format(out, "at most %" PRId32 " time%s\n", info->max_times_sampled,
                              rp_plural((uint64_t)info->max_times_sampled));
    }
    key(out, "limiter");
    rp_limiter_words(out, &info->limiter);
    rp_text_buffer_put(out, "\n");
    key(out, "stands at");
    rp_limiter_bar(out, info, 42);
    rp_text_buffer_format(out, " %s\n", rp_decimal_text(info->limiter_diff, text, sizeof text));
    print_counts(out, info);
    waiting_words(info, text, sizeof text);
    key(out, "waiting");
    rp_text_buffer_format(out, "%s\n", text);
    if (info->paused != 0) {
        key(out, "paused");
        rp_text_buffer_format(out, "%s\n", paused_words(info->paused));
    }
    print_signature(out, info->signature);
}

void rp_info_details(rp_text_buffer *out, const rp_tables_view *v, const char *name)
{
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->tables[i].info.name, name) == 0) print_table(out, v, &v->tables[i]);
}

static void integer(rp_text_buffer *out, const char *name, int64_t value)
{
    rp_json_key(out, name);
    rp_json_put_integer(out, value);
}

static void number(rp_text_buffer *out, const char *name, double value)
{
    rp_json_key(out, name);
    rp_json_put_number(out, value);
}

static void json_selector(rp_text_buffer *out, const char *name, const rp_selector_options *s)
{
    rp_json_key(out, name);
    rp_json_open(out, '{');
    rp_json_key(out, "kind");
    rp_json_put_text(out, rp_selector_name(s->kind));
    if (s->kind == RP_PRIORITIZED) number(out, "exponent", s->exponent);
    rp_json_close(out, '}');
}

/* Writes a bound of a limiter; null if there is no bound. */
static void json_bound(rp_text_buffer *out, const char *name, double value)
{
    rp_json_key(out, name);
    if (rp_limiter_unbounded(value))
        rp_json_put_text(out, NULL);
    else
        rp_json_put_number(out, value);
}

static void json_limiter(rp_text_buffer *out, const rp_table_info *info)
{
    rp_json_key(out, "limiter");
    rp_json_open(out, '{');
    number(out, "samples_per_insert", info->limiter.samples_per_insert);
    integer(out, "min_size", info->limiter.min_size);
    json_bound(out, "min_diff", info->limiter.min_diff);
    json_bound(out, "max_diff", info->limiter.max_diff);
    number(out, "diff", info->limiter_diff);
    rp_json_close(out, '}');
}

static void json_signature(rp_text_buffer *out, const rp_signature *signature)
{
    rp_json_key(out, "signature");
    if (signature == NULL) {
        rp_json_put_text(out, NULL);
        return;
    }
    rp_json_open(out, '[');
    for (size_t i = 0; i < rp_signature_column_count(signature); i++) {
        const rp_spec *spec = rp_signature_column(signature, i);

        rp_json_open(out, '{');
        rp_json_key(out, "name");
        rp_json_put_text(out, spec->name);
        rp_json_key(out, "dtype");
        rp_json_put_text(out, rp_dtype_text(spec->dtype));
        rp_json_key(out, "shape");
        if (spec->shape.rank < 0) {
            rp_json_put_text(out, NULL);
        } else {
            rp_json_open(out, '[');
            for (int32_t d = 0; d < spec->shape.rank; d++)
                rp_json_put_integer(out, spec->shape.dims[d]);
            rp_json_close(out, ']');
        }
        rp_json_close(out, '}');
    }
    rp_json_close(out, ']');
}

void rp_tables_json_members(rp_text_buffer *out, const rp_tables_view *v,
                            const rp_client_table *t)
{
    const rp_table_info *info = &t->info;

    rp_json_key(out, "table");
    rp_json_put_text(out, info->name);
    rp_json_key(out, "shard");
    rp_json_put_text(out, shard_of(v, t));
    json_selector(out, "sampler", &info->sampler);
    json_selector(out, "remover", &info->remover);
    json_limiter(out, info);
    integer(out, "items", info->size);
    integer(out, "max_size", info->max_size);
    rp_json_key(out, "bytes");
    rp_json_put_unsigned(out, info->bytes);
    rp_json_key(out, "max_bytes");
    rp_json_put_unsigned(out, info->max_bytes);
    integer(out, "max_times_sampled", info->max_times_sampled);
    integer(out, "inserts", info->inserts);
    integer(out, "samples", info->samples);
    integer(out, "deletes", info->deletes);
    integer(out, "updates", info->updates);
    integer(out, "evictions", info->evictions);
    integer(out, "episodes", info->episodes);
    integer(out, "unique_samples", info->unique_samples);
    number(out, "total_weight", t->total_weight);
    number(out, "max_priority", info->max_priority);
    integer(out, "waiting_inserts", info->waiting_inserts);
    integer(out, "waiting_samples", info->waiting_samples);
    rp_json_key(out, "paused_inserts");
    rp_json_put_boolean(out, (info->paused & RP_SIDE_INSERTS) != 0);
    rp_json_key(out, "paused_samples");
    rp_json_put_boolean(out, (info->paused & RP_SIDE_SAMPLES) != 0);
    json_signature(out, info->signature);
}

void rp_unreachable_json(rp_text_buffer *out, const rp_unreachable *list, size_t count)
{
    rp_json_key(out, "unreachable");
    rp_json_open(out, '[');
    for (size_t i = 0; i < count; i++) {
        rp_json_open(out, '{');
        rp_json_key(out, "address");
        rp_json_put_text(out, list[i].address);
        rp_json_key(out, "error");
        rp_json_put_text(out, list[i].error);
        rp_json_close(out, '}');
    }
    rp_json_close(out, ']');
}

void rp_tables_json(rp_text_buffer *out, const rp_tables_view *v, const char *name)
{
    rp_json_open(out, '[');
    for (size_t i = 0; i < v->count; i++) {
        if (name != NULL && strcmp(v->tables[i].info.name, name) != 0) continue;
        rp_json_open(out, '{');
        rp_tables_json_members(out, v, &v->tables[i]);
        rp_unreachable_json(out, v->unreachable, v->unreachable_count);
        rp_json_close(out, '}');
    }
    rp_json_close(out, ']');
    rp_text_buffer_put(out, "\n");
}
