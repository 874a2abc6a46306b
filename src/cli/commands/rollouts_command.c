/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise rollouts`: lists the rollouts of a server, or describes one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/text/units.h"
#include "reprise/rollout_calls.h"

enum { NAME_COLUMNS = 40, COLUMNS = 9 };

static const char text[] = "Lists the rollouts of a server: version, groups by their state, "
                           "bytes, and the groups that\n"
                           "were dropped as stale or evicted. With a NAME, also its "
                           "consumers. Of several servers the\n"
                           "first one has the rollouts.\n";

static const char *const examples[] = {
    "reprise rollouts",
    "reprise rollouts train",
    "reprise rollouts --json",
    NULL,
};

/* The entries as they arrive, as text or as JSON. */
typedef struct listing {
    rp_text_buffer out;
    rp_grid grid;
    rp_grid consumers; /* of one */
    size_t count;
    bool is_json;
} listing;

/* A text of the server, escaped and cut to fit a column. */
static void put_cell(rp_grid *grid, const char *data, size_t size)
{
    rp_text_buffer cell = {0};

    rp_text_buffer_put_safe(&cell, data, size);
    rp_grid_cell(grid, "%.*s",
                 (int)rp_text_fit(rp_text_buffer_text(&cell), cell.size, NAME_COLUMNS),
                 rp_text_buffer_text(&cell));
    rp_text_buffer_deinit(&cell);
}

static void put_consumer(rp_grid *grid, const rp_rollout_consumer_info *c)
{
    put_cell(grid, c->name, strlen(c->name));
    rp_grid_cell(grid, "%" PRIu64, c->waiting);
    rp_grid_cell(grid, "%" PRIu64, c->ready);
    rp_grid_cell(grid, "%" PRIu64, c->leased);
    rp_grid_cell(grid, "%" PRIu64, c->drawn);
    rp_grid_cell(grid, "%" PRIu64, c->acknowledged);
}

static void put_row(listing *l, const rp_rollouts_entry *entry)
{
    const rp_rollout_info *info = entry->info;
    const uint64_t counts[] = {info->reserved, info->partial, info->complete,
                               info->leased,   info->stale,   info->evicted};
    char bytes[16];

    put_cell(&l->grid, entry->name.data, entry->name.size);
    rp_grid_cell(&l->grid, "%" PRId64, info->version);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        rp_grid_cell(&l->grid, "%" PRIu64, counts[i]);
    rp_grid_cell(&l->grid, "%s", rp_size_text(info->bytes, bytes, sizeof bytes));
    for (size_t i = 0; i < info->consumer_count; i++)
        put_consumer(&l->consumers, &info->consumers[i]);
}

static void number(rp_text_buffer *out, const char *key, uint64_t value)
{
    rp_json_key(out, key);
    rp_json_put_unsigned(out, value);
}

static void put_json_consumer(rp_text_buffer *out, const rp_rollout_consumer_info *c)
{
    rp_json_open(out, '{');
    rp_json_key(out, "name");
    rp_json_put_text(out, c->name);
    number(out, "waiting", c->waiting);
    number(out, "ready", c->ready);
    number(out, "leased", c->leased);
    number(out, "done", c->done);
    number(out, "drawn", c->drawn);
    number(out, "acknowledged", c->acknowledged);
    rp_json_close(out, '}');
}

static void put_json(rp_text_buffer *out, const rp_rollouts_entry *entry)
{
    const rp_rollout_info *info = entry->info;

    rp_json_open(out, '{');
    rp_json_key(out, "name");
    rp_json_put_string(out, entry->name.data, entry->name.size);
    rp_json_key(out, "version");
    rp_json_put_integer(out, info->version);
    number(out, "group_size", entry->options->group_size);
    rp_json_key(out, "max_staleness");
    rp_json_put_integer(out, entry->options->max_staleness);
    number(out, "max_groups", entry->options->max_groups);
    number(out, "max_bytes", entry->options->max_bytes);
    number(out, "groups", info->groups);
    number(out, "reserved", info->reserved);
    number(out, "partial", info->partial);
    number(out, "complete", info->complete);
    number(out, "leased", info->leased);
    number(out, "items", info->items);
    number(out, "leases", info->leases);
    number(out, "bytes", info->bytes);
    number(out, "acknowledged", info->acknowledged);
    number(out, "stale", info->stale);
    number(out, "evicted", info->evicted);
    number(out, "aborted", info->aborted);
    number(out, "expired_reservations", info->expired_reservations);
    number(out, "expired_leases", info->expired_leases);
    rp_json_key(out, "consumers");
    rp_json_open(out, '[');
    for (size_t i = 0; i < info->consumer_count; i++)
        put_json_consumer(out, &info->consumers[i]);
    rp_json_close(out, ']');
    rp_json_close(out, '}');
}

static void on_entry(void *ctx, const rp_rollouts_entry *entry)
{
    listing *l = ctx;

    l->count++;
    if (l->is_json)
        put_json(&l->out, entry);
    else
        put_row(l, entry);
}

static void begin(listing *l)
{
    static const char *const titles[COLUMNS] = {"rollouts", "version",  "reserved",
                                                "partial",  "complete", "leased",
                                                "stale",    "evicted",  "bytes"};
    static const char *const consumer_titles[] = {"consumer", "waiting", "ready",
                                                  "leased",   "drawn",   "acknowledged"};

    rp_grid_init(&l->grid, COLUMNS, ((1u << COLUMNS) - 1) & ~1u);
    for (size_t i = 0; i < COLUMNS; i++) rp_grid_cell(&l->grid, "%s", titles[i]);
    rp_grid_init(&l->consumers, 6, 0x3e);
    for (size_t i = 0; i < 6; i++) rp_grid_cell(&l->consumers, "%s", consumer_titles[i]);
    if (l->is_json) rp_json_open(&l->out, '[');
}

static int print(rp_remote *r, listing *l, bool is_one)
{
    if (l->is_json) {
        rp_json_close(&l->out, ']');
        rp_text_buffer_put(&l->out, "\n");
    } else if (l->count == 0) {
        rp_text_buffer_put(&l->out, "no rollouts; Client.rollouts() of Python creates them\n");
    } else {
        rp_grid_write(&l->grid, &l->out);
    }
    if (!l->is_json && is_one) {
        rp_text_buffer_put(&l->out, "\n");
        rp_grid_write(&l->consumers, &l->out);
    }
    return rp_remote_print(r, &l->out);
}

static int run(const rp_flags *flags)
{
    const char *name = flags->word_count > 0 ? flags->words[0] : "";
    listing l = {0};
    rp_rollouts_call call = {.action = RP_ROLLOUTS_LIST,
                             .rollouts = {name, strlen(name)},
                             .on_entry = on_entry,
                             .ctx = &l};
    rp_error err = {0};
    rp_remote r;
    rp_status st;
    int status = rp_remote_open(&r, &rp_rollouts_command, flags);

    if (status == 0) status = rp_remote_connect(&r);
    if (status == 0) {
        l.is_json = r.json;
        begin(&l);
        st = rp_client_rollouts(r.client, &call, rp_remote_wait(&r), &err);
        status = st == RP_OK ? print(&r, &l, name[0] != '\0') : rp_remote_fail(&r, st, &err);
        rp_grid_deinit(&l.grid);
        rp_grid_deinit(&l.consumers);
    }
    rp_text_buffer_deinit(&l.out);
    rp_remote_close(&r);
    return status;
}

const rp_command rp_rollouts_command = {
    .name = "rollouts",
    .summary = "Lists the buffers for training language models.",
    .usage = "[OPTION...] [NAME]",
    .text = text,
    .examples = examples,
    .shared = &rp_remote_options,
    .max_words = 1,
    .run = run,
};
