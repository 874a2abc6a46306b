/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise watch`: polls a table and prints what has happened to it. Nothing is printed while
 * nothing happens. A server that is away is an event: the command goes on. */
#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/commands/table_list.h"
#include "cli/commands/waiting_groups.h"
#include "cli/commands/watch_events.h"
#include "cli/text/units.h"

enum { DEFAULT_INTERVAL_MS = 1000, MIN_INTERVAL_MS = 50, MAX_INTERVAL_MS = 3600 * 1000 };

typedef enum option { INTERVAL, COUNT, OPTIONS } option;

static const rp_option options[OPTIONS] = {
    [INTERVAL] = {"interval", "SECONDS", "time between two looks at the table (1)", false, NULL,
                  NULL},
    [COUNT] = {"count", "N", "end after N looks (0: no limit)", false, NULL, NULL},
};

static const char text[] =
    "Prints a line when something has happened: inserts, samples, updates and deletes a "
    "second;\n"
    "the table was reset, paused, resumed, altered, created or dropped, has reached min_size "
    "or\n"
    "max_size; one side waits for a second or longer, and why, or proceeds again; the server "
    "is\n"
    "away or back. Ctrl-C ends it. --json prints an object for each line.\n";

static const char *const examples[] = {
    "reprise watch replay --count 2",
    "reprise watch replay --interval 0.2 --count 3 --json",
    NULL,
};

typedef struct watch {
    rp_remote r;
    const char *name;
    int64_t interval_ms, count;
    rp_table_list lists[2];
    size_t now;       /* the index of the newest list */
    int64_t at_ns[2]; /* when they were fetched */
    bool is_known;    /* the list before is valid */
    bool is_away;     /* the last look failed */
    bool has_shards;  /* there are several */
    size_t shard;     /* of the events that are reported now */
    rp_text_buffer out;
    char why[RP_ERROR_TEXT_BYTES];
} watch;

/* Starts a line: the time, and the table with its shard. */
static void begin_line(watch *w, const char *event)
{
    struct timespec at;
    struct tm local;
    char clock[16];
    const char *shard = rp_client_shard_address(w->r.client, w->shard);

    (void)clock_gettime(CLOCK_REALTIME, &at);
    if (w->r.json) {
        rp_json_open(&w->out, '{');
        rp_json_key(&w->out, "time");
        rp_json_put_number(&w->out, (double)(at.tv_sec * 1000 + at.tv_nsec / 1000000) / 1000);
        rp_json_key(&w->out, "table");
        rp_json_put_text(&w->out, w->name);
        rp_json_key(&w->out, "shard");
        rp_json_put_text(&w->out, shard);
        rp_json_key(&w->out, "event");
        rp_json_put_text(&w->out, event);
        return;
    }
    (void)localtime_r(&at.tv_sec, &local);
    (void)strftime(clock, sizeof clock, "%H:%M:%S", &local);
    rp_text_buffer_format(&w->out, "%s  ", clock);
    rp_text_buffer_put_safe(&w->out, w->name, strlen(w->name));
    if (w->has_shards) rp_text_buffer_format(&w->out, " on %s", shard);
    rp_text_buffer_put(&w->out, "  ");
}

static void end_line(watch *w)
{
    if (w->r.json) rp_json_close(&w->out, '}');
    rp_text_buffer_put(&w->out, "\n");
}

static void put_event(void *ctx, const char *event, const char *what)
{
    watch *w = ctx;

    begin_line(w, event);
    if (w->r.json) {
        rp_json_key(&w->out, "text");
        rp_json_put_text(&w->out, what);
    } else {
        rp_text_buffer_put_safe(&w->out, what, strlen(what));
    }
    end_line(w);
}

static void number(watch *w, const char *key, double value)
{
    rp_json_key(&w->out, key);
    rp_json_put_number(&w->out, value);
}

static void put_rates(watch *w, const rp_table_info *now, const rp_watch_rates *rates)
{
    begin_line(w, "rates");
    if (w->r.json) {
        number(w, "items", (double)now->size);
        number(w, "bytes", (double)now->bytes);
        number(w, "inserts_per_s", rates->inserts);
        number(w, "samples_per_s", rates->samples);
        number(w, "updates_per_s", rates->updates);
        number(w, "deletes_per_s", rates->deletes);
    } else {
        rp_watch_rates_text(&w->out, now, rates);
    }
    end_line(w);
}

/* Asks the server why a side of the table waits. */
static const char *ask_why(void *ctx, uint32_t side)
{
    watch *w = ctx;
    static rp_client_waiting calls[RP_MOST_WAITING]; /* too large for a stack */
    rp_client_blocked blocked = {.calls = calls, .capacity = RP_MOST_WAITING};
    rp_error err = {0};

    if (rp_client_why_blocked(w->r.client, w->name, &blocked, rp_remote_wait(&w->r), &err) !=
        RP_OK)
        return NULL;
    for (size_t i = 0; i < blocked.count; i++) {
        if (calls[i].shard != w->shard ||
            calls[i].waiting.is_insert != (side == RP_SIDE_INSERTS))
            continue;
        (void)snprintf(w->why, sizeof w->why, "%s", calls[i].waiting.why);
        return w->why;
    }
    return NULL;
}

/* Reports what has happened to the table of one shard, which may be in one of the lists only.
 */
static void compare(watch *w, const rp_client_table *before, const rp_client_table *now)
{
    rp_watch_rates rates;
    rp_table_info quiet;

    w->shard = now != NULL ? now->shard : before->shard;
    if (now == NULL) {
        put_event(w, "dropped", "the table was dropped");
        return;
    }
    if (before == NULL) {
        if (w->is_known) put_event(w, "created", "the table was created");
        (void)rp_watch_rates_of(NULL, &now->info, 0, &rates);
        put_rates(w, &now->info, &rates);
        quiet = now->info;
        quiet.paused = 0;
        quiet.waiting_inserts = quiet.waiting_samples = 0;
        /* Reports the state of a table that is seen for the first time. */
        rp_watch_events(&quiet, &now->info, ask_why, put_event, w);
        return;
    }
    rp_watch_events(&before->info, &now->info, ask_why, put_event, w);
    if (rp_watch_rates_of(&before->info, &now->info, w->at_ns[w->now] - w->at_ns[1 - w->now],
                          &rates))
        put_rates(w, &now->info, &rates);
}

static void compare_lists(watch *w)
{
    const rp_table_list *now = &w->lists[w->now], *before = &w->lists[1 - w->now];

    for (size_t i = 0; w->is_known && i < before->view.count; i++) {
        const rp_client_table *t = &before->view.tables[i];

        if (strcmp(t->info.name, w->name) == 0 &&
            rp_table_list_on_shard(now, w->name, t->shard) == NULL)
            compare(w, t, NULL);
    }
    for (size_t i = 0; i < now->view.count; i++) {
        const rp_client_table *t = &now->view.tables[i];

        if (strcmp(t->info.name, w->name) != 0) continue;
        compare(w, w->is_known ? rp_table_list_on_shard(before, w->name, t->shard) : NULL, t);
    }
}

/* Looks at the table once. A failure of the first look is returned, one of a later look is an
 * event. */
static rp_status look(watch *w, rp_error *err)
{
    size_t next = w->is_known ? 1 - w->now : w->now;
    rp_table_list list = {0};
    rp_status st = rp_table_list_fetch(&list, w->r.client, rp_remote_wait(&w->r), err);

    if (st == RP_OK && !w->is_known && rp_table_list_find(&list, w->name) == NULL)
        st = rp_table_list_missing(&list, w->name, err);
    if (st != RP_OK) {
        rp_table_list_deinit(&list);
        if (!w->is_known || atomic_load(&w->r.interrupts.number) != 0) return st;
        w->shard = 0;
        if (!w->is_away) put_event(w, "away", err->text);
        w->is_away = true;
        return RP_OK;
    }
    if (w->is_away) {
        w->shard = 0;
        put_event(w, "back", "the server responds again");
    }
    rp_table_list_deinit(&w->lists[next]);
    w->lists[next] = list;
    w->at_ns[next] = rp_now_ns();
    w->now = next;
    compare_lists(w);
    w->is_known = true;
    w->is_away = false;
    return RP_OK;
}

/* Sleeps until the time, or a signal. */
static void sleep_until(watch *w, int64_t until_ns)
{
    struct pollfd fd = {w->r.interrupts.wake_fd, POLLIN, 0};
    int64_t left_ns;

    while (atomic_load(&w->r.interrupts.number) == 0 &&
           (left_ns = until_ns - rp_now_ns()) > 0) {
        (void)poll(&fd, 1, (int)(left_ns / 1000000) + 1);
        rp_interrupts_drain(&w->r.interrupts);
    }
}

static int watch_table(watch *w)
{
    int64_t next_ns = rp_now_ns();
    rp_error err = {0};
    int status = 0;

    w->has_shards = rp_client_shard_count(w->r.client) > 1;
    for (int64_t looks = 0; status == 0 && (w->count == 0 || looks < w->count); looks++) {
        rp_status st;

        if (looks > 0) sleep_until(w, next_ns);
        if (atomic_load(&w->r.interrupts.number) != 0)
            return RP_EXIT_SIGNAL + atomic_load(&w->r.interrupts.number);
        st = look(w, &err);
        status =
            st == RP_OK ? rp_remote_print(&w->r, &w->out) : rp_remote_fail(&w->r, st, &err);
        (void)fflush(stdout);
        if (ferror(stdout)) break; /* the end of the program reports it */
        next_ns += w->interval_ms * 1000000;
        if (next_ns < rp_now_ns()) next_ns = rp_now_ns() + w->interval_ms * 1000000;
    }
    return status;
}

static rp_status read_options(watch *w, rp_problem *problem)
{
    rp_setting value;
    rp_status st = RP_OK;

    w->interval_ms = DEFAULT_INTERVAL_MS;
    if (rp_remote_setting(&w->r, INTERVAL, &value))
        st = rp_setting_duration(&value, 1000, MAX_INTERVAL_MS, &w->interval_ms, problem);
    if (st == RP_OK && w->interval_ms < MIN_INTERVAL_MS)
        return rp_problem_set(problem, NULL,
                              "--interval: expected at least 0.05 seconds, got '%.40s'",
                              value.text);
    if (st == RP_OK && rp_remote_setting(&w->r, COUNT, &value))
        st = rp_setting_integer(&value, 0, INT64_MAX, &w->count, problem);
    return st;
}

static int run(const rp_flags *flags)
{
    watch w = {.name = flags->words[0]};
    rp_problem problem;
    int status = rp_remote_open(&w.r, &rp_watch_command, flags);

    if (status == 0 && read_options(&w, &problem) != RP_OK)
        status = rp_remote_misuse(&w.r, &problem);
    if (status == 0) status = rp_remote_connect(&w.r);
    if (status == 0) status = watch_table(&w);
    rp_text_buffer_deinit(&w.out);
    rp_table_list_deinit(&w.lists[0]);
    rp_table_list_deinit(&w.lists[1]);
    rp_remote_close(&w.r);
    return status;
}

const rp_command rp_watch_command = {
    .name = "watch",
    .summary = "Prints what happens to a table, as it happens.",
    .usage = "[OPTION...] TABLE",
    .text = text,
    .examples = examples,
    .options = options,
    .option_count = OPTIONS,
    .shared = &rp_remote_options,
    .min_words = 1,
    .max_words = 1,
    .first_table = 1,
    .last_table = 1,
    .run = run,
};
