/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/watch_events.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands/alter_report.h"
#include "cli/commands/top_print.h"

enum { NS_PER_MS = 1000000, TEXT_BYTES = 2 * RP_ERROR_TEXT_BYTES };

static bool is_long(const rp_waits *waits, int64_t calls)
{
    return calls > 0 && waits->longest_ns >= (int64_t)RP_WATCH_LONG_MS * NS_PER_MS;
}

uint32_t rp_watch_blocked(const rp_table_info *info)
{
    return (is_long(&info->insert_waits, info->waiting_inserts) ? (uint32_t)RP_SIDE_INSERTS
                                                                : 0) |
           (is_long(&info->sample_waits, info->waiting_samples) ? (uint32_t)RP_SIDE_SAMPLES
                                                                : 0);
}

static const char *side_name(uint32_t side)
{
    return side == RP_SIDE_INSERTS ? "inserts" : "samples";
}

static void report_pauses(const rp_table_info *before, const rp_table_info *now,
                          rp_watch_event *event, void *ctx)
{
    for (uint32_t side = RP_SIDE_INSERTS; side <= RP_SIDE_SAMPLES; side <<= 1) {
        bool is = (now->paused & side) != 0;
        char text[64];

        if (((before->paused ^ now->paused) & side) == 0) continue;
        (void)snprintf(text, sizeof text, "%s are %s", side_name(side),
                       is ? "paused" : "resumed");
        event(ctx, is ? "paused" : "resumed", text);
    }
}

/* Reports each line of what rp_alter_changes() finds. */
static void report_alterations(const rp_table_info *before, const rp_table_info *now,
                               rp_watch_event *event, void *ctx)
{
    rp_text_buffer lines = {0};
    const char *at;

    rp_alter_changes(&lines, &(rp_alter_report){before, now, 0});
    for (at = rp_text_buffer_text(&lines); *at != '\0';) {
        size_t length = strcspn(at, "\n");
        char text[TEXT_BYTES];

        (void)snprintf(text, sizeof text, "%.*s", (int)length, at);
        /* Evictions are part of the rates. */
        if (strstr(text, " -> ") != NULL) event(ctx, "altered", text + strspn(text, " "));
        at += length + (at[length] == '\n');
    }
    rp_text_buffer_deinit(&lines);
}

static void report_sizes(const rp_table_info *before, const rp_table_info *now,
                         rp_watch_event *event, void *ctx)
{
    int64_t least = now->limiter.min_size;
    char text[TEXT_BYTES];

    if (before->size < least && now->size >= least) {
        (void)snprintf(text, sizeof text, "min_size is reached: %" PRId64 " item%s", now->size,
                       now->size == 1 ? "" : "s");
        event(ctx, "filled", text);
    }
    if (before->size < before->max_size && now->size >= now->max_size) {
        (void)snprintf(text, sizeof text, "the table is full: %" PRId64 " item%s", now->size,
                       now->size == 1 ? "" : "s");
        event(ctx, "full", text);
    }
}

void rp_watch_events(const rp_table_info *before, const rp_table_info *now,
                     const char *(*why)(void *ctx, uint32_t side), rp_watch_event *event,
                     void *ctx)
{
    uint32_t was = rp_watch_blocked(before), is = rp_watch_blocked(now);
    char text[TEXT_BYTES];

    if (now->inserts < before->inserts || now->samples < before->samples)
        event(ctx, "reset", "all items were removed and the counters reset");
    report_pauses(before, now, event, ctx);
    report_alterations(before, now, event, ctx);
    report_sizes(before, now, event, ctx);
    for (uint32_t side = RP_SIDE_INSERTS; side <= RP_SIDE_SAMPLES; side <<= 1) {
        const char *reason;

        if (((was ^ is) & side) == 0) continue;
        if ((was & side) != 0) {
            (void)snprintf(text, sizeof text, "%s proceed again", side_name(side));
            event(ctx, "unblocked", text);
            continue;
        }
        reason = why(ctx, side);
        (void)snprintf(text, sizeof text, "%s wait%s%s", side_name(side),
                       reason != NULL ? ": " : "", reason != NULL ? reason : "");
        event(ctx, "blocked", text);
    }
}

bool rp_watch_rates_of(const rp_table_info *before, const rp_table_info *now,
                       int64_t elapsed_ns, rp_watch_rates *rates)
{
    *rates = (rp_watch_rates){0};
    if (before == NULL) return false;
    rates->inserts = rp_rate(now->inserts, before->inserts, elapsed_ns);
    rates->samples = rp_rate(now->samples, before->samples, elapsed_ns);
    rates->updates = rp_rate(now->updates, before->updates, elapsed_ns);
    rates->deletes = rp_rate(now->deletes, before->deletes, elapsed_ns);
    return rates->inserts > 0 || rates->samples > 0 || rates->updates > 0 || rates->deletes > 0;
}

void rp_watch_rates_text(rp_text_buffer *out, const rp_table_info *now,
                         const rp_watch_rates *rates)
{
    char bytes[16], inserts[16], samples[16], more[16];

    rp_text_buffer_format(out, "%" PRId64 " item%s, %s; %s inserts/s, %s samples/s", now->size,
                          now->size == 1 ? "" : "s", rp_bytes_text((double)now->bytes, bytes),
                          rp_count_text(rates->inserts, inserts),
                          rp_count_text(rates->samples, samples));
    if (rates->updates > 0)
        rp_text_buffer_format(out, ", %s updates/s", rp_count_text(rates->updates, more));
    if (rates->deletes > 0)
        rp_text_buffer_format(out, ", %s deletes/s", rp_count_text(rates->deletes, more));
}
