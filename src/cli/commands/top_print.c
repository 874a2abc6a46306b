/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants of a painter:
 *   N1  no line is wider than `width` columns;
 *   N2  `left` lines can still be written; with a height, all lines are written at the end. */
#include "cli/commands/top_print.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/units.h"

enum {
    NAME_MIN = 8,
    NAME_MAX = 24,
    NUMBERS = 7 + 9 + 4 * 7, /* items, bytes, four rates, each with a space before it */
    WAIT_WIDTH = 12,         /* "100 samples" */
    CLIENT_WIDTH = 28,       /* "[2001:db8::1:2]:12345" */
    BAR_MIN = 12,
    BAR_MAX = 40,
    HEAD_LINES = 4,
};

typedef struct rates {
    double inserts, samples, updates;
} rates;

double rp_rate(int64_t now, int64_t before, int64_t elapsed_ns)
{
    if (now <= before || elapsed_ns <= 0) return 0;
    return ((double)now - (double)before) * 1e9 / (double)elapsed_ns;
}

/* Returns the same table in another look, or NULL. */
static const rp_client_table *same_table(const rp_top_look *look, const rp_top_look *other,
                                         const rp_client_table *t)
{
    const char *shard = t->shard < look->view.shard_count ? look->view.shards[t->shard] : "";

    for (size_t i = 0; other != NULL && i < other->view.count; i++) {
        const rp_client_table *o = &other->view.tables[i];

        if (o->shard < other->view.shard_count &&
            strcmp(other->view.shards[o->shard], shard) == 0 &&
            strcmp(o->info.name, t->info.name) == 0)
            return o;
    }
    return NULL;
}

static rates rates_of(const rp_top_look *now, const rp_top_look *before,
                      const rp_client_table *t)
{
    const rp_client_table *o = same_table(now, before, t);
    int64_t elapsed;

    if (o == NULL) return (rates){0};
    elapsed = now->at_ns - before->at_ns;
    return (rates){
        rp_rate(t->info.inserts, o->info.inserts, elapsed),
        rp_rate(t->info.samples, o->info.samples, elapsed),
        rp_rate(t->info.updates, o->info.updates, elapsed),
    };
}

/* Writes a screen line by line. */
typedef struct painter {
    rp_text_buffer *out;
    rp_text_buffer line; /* the current one */
    size_t width;        /* columns */
    size_t left;         /* lines */
    size_t reserve;      /* lines that long texts leave free, by being cut */
} painter;

static void end_line(painter *p)
{
    const char *text = rp_text_buffer_text(&p->line);
    size_t i = rp_text_fit(text, p->line.size, p->width);

    assert(i <= p->line.size);
    assert(rp_text_columns(text, i) <= p->width); /* N1 */
    if (p->line.failed) p->out->failed = true;
    if (p->left == 0) {
        rp_text_buffer_clear(&p->line);
        return;
    }
    while (i > 0 && text[i - 1] == ' ') i--;
    rp_text_buffer_add(p->out, text, i);
    rp_text_buffer_put(p->out, "\n");
    rp_text_buffer_clear(&p->line);
    p->left--;
}

/* Writes text in a cell of `width` (>= 1) columns and a space. A longer text is cut and ends
 * with '+'. */
static void cell(painter *p, const char *text, size_t width)
{
    rp_text_buffer safe = {0};
    size_t columns;

    assert(width >= 1);
    rp_text_buffer_put_safe(&safe, text, strlen(text));
    columns = rp_text_columns(rp_text_buffer_text(&safe), safe.size);
    if (columns <= width) {
        rp_text_buffer_add(&p->line, rp_text_buffer_text(&safe), safe.size);
        rp_text_buffer_repeat(&p->line, ' ', width - columns);
    } else {
        rp_text_buffer_add(&p->line, rp_text_buffer_text(&safe),
                           rp_text_fit(rp_text_buffer_text(&safe), safe.size, width - 1));
        rp_text_buffer_put(&p->line, "+");
    }
    rp_text_buffer_put(&p->line, " ");
    rp_text_buffer_deinit(&safe);
}

static void put_totals(painter *p, const rp_top_look *now, const rp_top_look *before)
{
    char items_text[16], inserts_text[16], samples_text[16], bytes_text[32];
    double items = 0; /* a sum of sizes that servers report may overflow an integer */
    uint64_t bytes = 0;
    rates sum = {0};

    for (size_t i = 0; i < now->view.count; i++) {
        rates r = rates_of(now, before, &now->view.tables[i]);

        items += (double)now->view.tables[i].info.size;
        bytes += now->view.tables[i].info.bytes;
        sum.inserts += r.inserts;
        sum.samples += r.samples;
    }
    rp_text_buffer_format(
        &p->line, "%zu table%s, %s item%s, %s; %s inserts/s, %s samples/s; ", now->view.count,
        now->view.count == 1 ? "" : "s", rp_count_text(items, items_text),
        items == 1 ? "" : "s", rp_size_text(bytes, bytes_text, sizeof bytes_text),
        rp_count_text(sum.inserts, inserts_text), rp_count_text(sum.samples, samples_text));
    if (now->waiting_total == 0)
        rp_text_buffer_put(&p->line, "no call waits");
    else
        rp_text_buffer_format(&p->line, "%zu call%s", now->waiting_total,
                              now->waiting_total == 1 ? " waits" : "s wait");
}

/* Writes which servers cannot be reached: the first with its error, and how many more. */
static void put_unreachable(painter *p, const rp_top_look *now)
{
    const rp_unreachable *u = now->view.unreachable;

    if (now->view.unreachable_count == 0) return;
    rp_text_buffer_format(&p->line, "without %s (", u->address);
    rp_text_buffer_put_safe(&p->line, u->error, strlen(u->error));
    rp_text_buffer_put(&p->line, ")");
    if (now->view.unreachable_count > 1)
        rp_text_buffer_format(&p->line, " and %zu more", now->view.unreachable_count - 1);
    rp_text_buffer_put(&p->line, ": ");
}

static void head(painter *p, const rp_top_screen *s, const rp_top_look *now,
                 const rp_top_look *before)
{
    static const char keys[] = "? keys  q quits";
    size_t used;

    rp_text_buffer_format(&p->line, "reprise top  %s", s->title);
    used = rp_text_columns(rp_text_buffer_text(&p->line), p->line.size);
    if (s->height > 0 && used + sizeof keys + 1 <= p->width) {
        rp_text_buffer_repeat(&p->line, ' ', p->width - used - (sizeof keys - 1));
        rp_text_buffer_put(&p->line, keys);
    }
    end_line(p);
    if (s->trouble != NULL) {
        rp_text_buffer_put_safe(&p->line, s->trouble, strlen(s->trouble));
    } else {
        put_unreachable(p, now);
        put_totals(p, now, before);
    }
    end_line(p);
    for (size_t i = 0; i < now->view.durability_count; i++) {
        const rp_client_durability *d = &now->view.durability[i];

        if (!d->is_durable) continue;
        if (now->view.shard_count > 1) rp_text_buffer_format(&p->line, "%zu/", d->shard);
        rp_durability_words(&p->line, d);
        end_line(p);
    }
    end_line(p);
}

/* Returns the number of lines above the tables. */
static size_t head_lines(const rp_top_look *now)
{
    size_t lines = HEAD_LINES;

    for (size_t i = 0; i < now->view.durability_count; i++)
        if (now->view.durability[i].is_durable) lines++;
    return lines;
}

typedef struct widths {
    size_t name, bar;
} widths;

/* Chooses the widths of names and bars so that lines fit the screen, if they can. */
static widths fit(const rp_top_screen *s, const rp_top_look *now)
{
    widths w = {NAME_MIN, BAR_MIN};
    size_t rest;

    for (size_t i = 0; i < now->view.count; i++) {
        size_t length = strlen(now->view.tables[i].info.name);

        if (now->view.shard_count > 1) length += now->view.tables[i].shard > 9 ? 3 : 2;
        if (length > w.name) w.name = length;
    }
    if (w.name > NAME_MAX) w.name = NAME_MAX;
    rest = w.name + 1 + NUMBERS + WAIT_WIDTH + 1;
    if (s->width > rest + BAR_MIN) w.bar = s->width - rest;
    if (w.bar > BAR_MAX) w.bar = BAR_MAX;
    if (s->width < rest + BAR_MIN && w.name > NAME_MIN) {
        size_t over = rest + BAR_MIN - s->width;

        w.name = w.name - NAME_MIN > over ? w.name - over : NAME_MIN;
    }
    assert(w.name >= NAME_MIN && w.name <= NAME_MAX && w.bar >= BAR_MIN && w.bar <= BAR_MAX);
    return w;
}

static void waiting_cell(painter *p, const rp_table_info *info)
{
    char number[16];
    const char *comma = "";

    if (info->waiting_inserts > 0) {
        rp_text_buffer_format(&p->line, " %s insert%s",
                              rp_count_text((double)info->waiting_inserts, number),
                              rp_plural((uint64_t)info->waiting_inserts));
        comma = ",";
    }
    if (info->waiting_samples > 0) {
        rp_text_buffer_format(&p->line, "%s %s sample%s", comma,
                              rp_count_text((double)info->waiting_samples, number),
                              rp_plural((uint64_t)info->waiting_samples));
        comma = ",";
    }
    if (info->paused != 0)
        rp_text_buffer_format(&p->line, "%s %spaused", comma,
                              info->paused == RP_SIDE_INSERTS   ? "inserts "
                              : info->paused == RP_SIDE_SAMPLES ? "samples "
                                                                : "");
}

static void table_line(painter *p, const widths *w, const rp_top_look *now,
                       const rp_top_look *before, const rp_client_table *t)
{
    rates r = rates_of(now, before, t);
    char text[64], number[16], name[256];

    if (now->view.shard_count > 1)
        (void)snprintf(name, sizeof name, "%zu/%s", t->shard, t->info.name);
    else
        (void)snprintf(name, sizeof name, "%s", t->info.name);
    cell(p, name, w->name);
    rp_text_buffer_format(&p->line, "%6s ", rp_count_text((double)t->info.size, number));
    rp_text_buffer_format(&p->line, "%8s ", rp_bytes_text((double)t->info.bytes, number));
    rp_text_buffer_format(&p->line, "%6s ", rp_count_text(r.inserts, number));
    rp_text_buffer_format(&p->line, "%6s ", rp_count_text(r.samples, number));
    rp_text_buffer_format(&p->line, "%6s ", rp_count_text(r.updates, number));
    if (r.inserts > 0)
        (void)snprintf(text, sizeof text, "%.2f", r.samples / r.inserts);
    else
        (void)snprintf(text, sizeof text, "-");
    rp_text_buffer_format(&p->line, "%6s ", text);
    rp_limiter_bar(&p->line, &t->info, w->bar);
    waiting_cell(p, &t->info);
    end_line(p);
}

/* Writes text that continues the current line, in as many lines as it takes, broken between
 * words; the second and later lines are indented. */
static void put_wrapped(painter *p, const char *text)
{
    enum { INDENT = 4 };
    rp_text_buffer safe = {0};
    const char *at;

    rp_text_buffer_put_safe(&safe, text, strlen(text));
    if (safe.failed) p->out->failed = true;
    for (at = rp_text_buffer_text(&safe); *at != '\0';) {
        size_t used = rp_text_columns(rp_text_buffer_text(&p->line), p->line.size);
        size_t left = strlen(at);
        size_t fits = rp_text_fit(at, left, p->width > used ? p->width - used : 0);
        size_t end = fits;

        if (fits < left) {
            while (end > 0 && at[end] != ' ') end--;
            if (end == 0) end = fits; /* a word longer than a line */
        }
        if (p->left <= p->reserve) break;
        if (end == 0 && used <= INDENT) break; /* not even a character fits */
        rp_text_buffer_add(&p->line, at, end); /* nothing, if the line is full: it is cut */
        at += end;
        while (*at == ' ') at++;
        end_line(p);
        if (*at != '\0') rp_text_buffer_repeat(&p->line, ' ', INDENT);
    }
    if (p->left <= p->reserve) rp_text_buffer_clear(&p->line);
    if (p->line.size > 0) end_line(p);
    rp_text_buffer_deinit(&safe);
}

/* Writes the reason of a group, with the number of calls that wait for it. */
static void group_lines(painter *p, const rp_top_look *now, const rp_waiting_group *g)
{
    static const char paused[] = ": resume the table"; /* the command is more useful here */
    rp_text_buffer reason = {0};
    char number[24];

    if (now->view.shard_count > 1) rp_text_buffer_format(&p->line, "%zu/", g->first->shard);
    rp_text_buffer_put_safe(&p->line, g->first->table, strlen(g->first->table));
    (void)snprintf(number, sizeof number, "%zu", g->calls);
    rp_text_buffer_format(&p->line, "  %s %s%s  ", number,
                          g->first->waiting.is_insert ? "insert" : "sample",
                          g->calls == 1 ? "" : "s");
    if (strlen(g->reason) >= sizeof paused - 1 &&
        strcmp(g->reason + strlen(g->reason) - (sizeof paused - 1), paused) == 0) {
        rp_text_buffer_add(&reason, g->reason, strlen(g->reason) - (sizeof paused - 1));
        rp_text_buffer_put(&reason, ": reprise tables resume ");
        rp_text_buffer_put_word(&reason, g->first->table);
        rp_text_buffer_put(&reason, " lets them continue");
    } else {
        rp_text_buffer_put(&reason, g->reason);
    }
    put_wrapped(p, rp_text_buffer_text(&reason));
    rp_text_buffer_deinit(&reason);
}

static void waiter_line(painter *p, const rp_waiter *w)
{
    const rp_waiting *call = &w->first->waiting;
    char since[32];

    rp_text_buffer_put(&p->line, "    ");
    cell(p, w->first->client[0] != '\0' ? w->first->client : "unknown client", CLIENT_WIDTH);
    rp_text_buffer_format(&p->line, "%4zu call%s  for %s", w->calls, w->calls == 1 ? " " : "s",
                          rp_elapsed_text(call->waiting_ns, since, sizeof since));
    if (w->calls == 1 && call->wanted > 1)
        rp_text_buffer_format(&p->line, ", %zu of %zu items done", call->done, call->wanted);
    end_line(p);
}

/* Writes the clients of a group: all, or those that have waited longest and fit `room` lines,
 * with a line about the others. */
static void waiter_lines(painter *p, const rp_waiting_groups *all, size_t group, size_t room)
{
    size_t clients = all->groups[group].clients, shown = 0, calls = 0;
    size_t most = clients <= room ? clients : room > 1 ? room - 1 : 0;

    for (size_t i = 0; i < all->waiter_count; i++) {
        if (all->waiters[i].group != group) continue;
        if (shown < most) {
            waiter_line(p, &all->waiters[i]);
            shown++;
        } else {
            calls += all->waiters[i].calls;
        }
    }
    if (shown == clients || room == 0) return;
    rp_text_buffer_format(&p->line, "    %zu more client%s, %zu call%s", clients - shown,
                          clients - shown == 1 ? "" : "s", calls, calls == 1 ? "" : "s");
    end_line(p);
}

static void waiting_lines(painter *p, const rp_top_look *now)
{
    rp_waiting_groups all;
    size_t hidden = now->waiting_total - now->waiting_count, shown = 0;

    assert(now->waiting_count <= now->waiting_total);
    rp_waiting_groups_make(&all, now->waiting, now->waiting_count);
    for (; shown < all.group_count; shown++) {
        size_t groups_left = all.group_count - shown - 1;

        p->reserve = groups_left > 0 || hidden > 0; /* for the last line */
        if (p->left <= p->reserve) break;
        group_lines(p, now, &all.groups[shown]);
        waiter_lines(p, &all, shown, (p->left - p->reserve) / (groups_left + 1));
    }
    for (; shown < all.group_count; shown++) hidden += all.groups[shown].calls;
    if (hidden == 0) return;
    rp_text_buffer_format(&p->line, "... and %zu more call%s", hidden, hidden == 1 ? "" : "s");
    end_line(p);
}

static void help_lines(painter *p)
{
    static const char *const lines[] = {
        "q          quits",
        "space      refreshes at once",
        "j, down    scrolls down the tables",
        "k, up      scrolls up",
        "?          shows or hides this page",
        "",
        "IN/S       inserts a second",
        "OUT/S      samples a second",
        "UPD/S      updates of priorities a second",
        "RATIO      samples an insert, since the last refresh",
        "LIMITER    [--|--] stands between min_diff, where samples wait, and",
        "           max_diff, where inserts wait; [##..] has fewer items than",
        "           min_size; [free] has no bounds, [open] one that is not reached,",
        "           [at max_diff] or [at min_diff] one that is",
        "WAIT       calls that wait, inserts and samples; reasons are below the tables",
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        rp_text_buffer_put(&p->line, lines[i]);
        end_line(p);
    }
}

/* Returns the number of tables to show: all, or as many as leave a third of the screen for
 * waiting calls. */
static size_t table_lines(const rp_top_screen *s, const rp_top_look *now)
{
    size_t room;

    if (s->height == 0) return now->view.count;
    room = s->height > head_lines(now) ? s->height - head_lines(now) : 0;
    if (now->waiting_total > 0 && room > 6) room -= room / 3;
    return now->view.count < room ? now->view.count : room;
}

void rp_top_print(rp_text_buffer *out, const rp_top_screen *s, const rp_top_look *now,
                  const rp_top_look *before)
{
    painter p = {.out = out, .width = SIZE_MAX, .left = SIZE_MAX};
    widths w = fit(s, now);
    size_t lines = table_lines(s, now), first = s->scroll;

    if (s->height > 0) {
        p.width = s->width;
        p.left = s->height;
    }
    assert(lines <= now->view.count);
    if (first > now->view.count - lines) first = now->view.count - lines;
    head(&p, s, now, before);
    if (s->help) {
        help_lines(&p);
        lines = 0;
        goto fill;
    }
    cell(&p, "TABLE", w.name);
    rp_text_buffer_format(&p.line, "%6s %8s %6s %6s %6s %6s LIMITER", "ITEMS", "BYTES", "IN/S",
                          "OUT/S", "UPD/S", "RATIO");
    static_assert(BAR_MIN >= 7, "the heading LIMITER fits above a bar");
    rp_text_buffer_repeat(&p.line, ' ', w.bar - 7);
    rp_text_buffer_put(&p.line, " WAIT");
    end_line(&p);
    for (size_t i = first; i < first + lines; i++)
        table_line(&p, &w, now, before, &now->view.tables[i]);
    if (now->waiting_total > 0) {
        end_line(&p);
        rp_text_buffer_put(&p.line, "WAITING");
        end_line(&p);
        waiting_lines(&p, now);
    }
fill:
    while (s->height > 0 && p.left > 0) end_line(&p);
    assert(s->height == 0 || p.left == 0); /* N2 */
    rp_text_buffer_deinit(&p.line);
}

void rp_top_waiting(rp_text_buffer *out, const rp_top_look *now)
{
    painter p = {.out = out, .width = SIZE_MAX, .left = SIZE_MAX};

    waiting_lines(&p, now);
    rp_text_buffer_deinit(&p.line);
}

static void json_waiting(rp_text_buffer *out, const rp_top_look *now)
{
    rp_json_key(out, "waiting");
    rp_json_open(out, '[');
    for (size_t i = 0; i < now->waiting_count; i++) {
        const rp_client_waiting *c = &now->waiting[i];

        rp_json_open(out, '{');
        rp_json_key(out, "table");
        rp_json_put_text(out, c->table);
        rp_json_key(out, "shard");
        rp_json_put_text(out,
                         c->shard < now->view.shard_count ? now->view.shards[c->shard] : NULL);
        rp_json_key(out, "client");
        rp_json_put_text(out, c->client[0] != '\0' ? c->client : NULL);
        rp_json_key(out, "side");
        rp_json_put_text(out, c->waiting.is_insert ? "insert" : "sample");
        rp_json_key(out, "wanted");
        rp_json_put_unsigned(out, c->waiting.wanted);
        rp_json_key(out, "done");
        rp_json_put_unsigned(out, c->waiting.done);
        rp_json_key(out, "seconds");
        rp_json_put_number(out, (double)c->waiting.waiting_ns / 1e9);
        rp_json_key(out, "why");
        rp_json_put_text(out, c->waiting.why);
        rp_json_close(out, '}');
    }
    rp_json_close(out, ']');
    rp_json_key(out, "waiting_total");
    rp_json_put_unsigned(out, now->waiting_total);
}

void rp_top_waiting_json(rp_text_buffer *out, const rp_top_look *now)
{
    rp_json_open(out, '{');
    json_waiting(out, now);
    rp_unreachable_json(out, now->view.unreachable, now->view.unreachable_count);
    rp_json_close(out, '}');
    rp_text_buffer_put(out, "\n");
}

void rp_top_json(rp_text_buffer *out, const rp_top_look *now, const rp_top_look *before)
{
    rp_json_open(out, '{');
    rp_json_key(out, "tables");
    rp_json_open(out, '[');
    for (size_t i = 0; i < now->view.count; i++) {
        rates r = rates_of(now, before, &now->view.tables[i]);

        rp_json_open(out, '{');
        rp_tables_json_members(out, &now->view, &now->view.tables[i]);
        rp_json_key(out, "inserts_per_s");
        rp_json_put_number(out, r.inserts);
        rp_json_key(out, "samples_per_s");
        rp_json_put_number(out, r.samples);
        rp_json_key(out, "updates_per_s");
        rp_json_put_number(out, r.updates);
        rp_json_close(out, '}');
    }
    rp_json_close(out, ']');
    json_waiting(out, now);
    rp_json_key(out, "storage");
    rp_durability_json(out, &now->view);
    rp_unreachable_json(out, now->view.unreachable, now->view.unreachable_count);
    rp_json_close(out, '}');
    rp_text_buffer_put(out, "\n");
}
