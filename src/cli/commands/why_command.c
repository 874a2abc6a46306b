/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise why`: the calls that wait, grouped by their reasons. */
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/commands/table_list.h"
#include "cli/commands/top_print.h"

static const char text[] =
    "Each reason is a line, with the table, the number of inserts or samples that wait for "
    "it,\n"
    "and what would release one. Below it are the clients that wait: address, calls, and how\n"
    "long the first of them has waited. Draws of rollouts count as samples, and what puts or\n"
    "reserves groups as inserts. With TABLE, a table or rollouts, only its calls are listed.\n";

static const char *const examples[] = {
    "reprise why",
    "reprise why replay",
    "reprise why --json",
    NULL,
};

typedef struct answer {
    rp_remote r;
    rp_table_list list;
    rp_client_waiting waiting[RP_MOST_WAITING];
    rp_top_look look;
} answer;

static rp_status fetch(answer *a, const char *name, rp_error *err)
{
    rp_client_blocked blocked = {.calls = a->waiting, .capacity = RP_MOST_WAITING};
    rp_wait wait = rp_remote_wait(&a->r);
    rp_status st = rp_table_list_fetch(&a->list, a->r.client, wait, err);

    if (st == RP_OK) {
        st = rp_client_why_blocked(a->r.client, name, &blocked, wait, err);
        if (st == RP_NOT_FOUND && name != NULL && rp_table_list_find(&a->list, name) == NULL)
            st = rp_table_list_missing(&a->list, name, err);
    }
    if (st != RP_OK) return st;
    a->look = (rp_top_look){.at_ns = rp_now_ns(),
                            .view = a->list.view,
                            .waiting = a->waiting,
                            .waiting_count = blocked.count,
                            .waiting_total = blocked.total};
    return RP_OK;
}

/* Lists the tables without items of several shards. A sampler of several shards draws from
 * those that have items, so it waits in the client and no server knows about it. */
static void put_empty(rp_text_buffer *out, const answer *a, const char *name)
{
    const rp_tables_view *v = &a->list.view;

    for (size_t i = 0; v->shard_count > 1 && i < v->count; i++) {
        const rp_table_info *info = &v->tables[i].info;

        if (v->tables[i].shard >= v->shard_count || info->size > 0) continue;
        if (name != NULL && strcmp(info->name, name) != 0) continue;
        rp_text_buffer_format(out, "%s: ", v->shards[v->tables[i].shard]);
        rp_text_buffer_put_safe(out, info->name, strlen(info->name));
        rp_text_buffer_put(out,
                           " has no items: samplers of all shards draw from the others, and "
                           "wait in the client if none has items\n");
    }
}

static void print(const answer *a, const char *name, rp_text_buffer *out)
{
    if (a->r.json) {
        rp_top_waiting_json(out, &a->look);
    } else if (a->look.waiting_total > 0) {
        rp_top_waiting(out, &a->look);
    } else {
        rp_text_buffer_put(out, "no call waits");
        if (name != NULL) rp_text_buffer_put(out, " on ");
        if (name != NULL) rp_text_buffer_put_safe(out, name, strlen(name));
        rp_text_buffer_put(out, "\n");
    }
    if (!a->r.json) put_empty(out, a, name);
}

static int run(const rp_flags *flags)
{
    static answer a; /* too large for a stack */
    const char *name = flags->word_count > 0 ? flags->words[0] : NULL;
    rp_text_buffer buffer = {0};
    rp_error err = {0};
    rp_status st;
    int status = rp_remote_open(&a.r, &rp_why_command, flags);

    if (status == 0) status = rp_remote_connect(&a.r);
    if (status == 0) {
        st = fetch(&a, name, &err);
        if (st == RP_OK) print(&a, name, &buffer);
        status = st == RP_OK ? rp_remote_print(&a.r, &buffer) : rp_remote_fail(&a.r, st, &err);
    }
    rp_text_buffer_deinit(&buffer);
    rp_table_list_deinit(&a.list);
    rp_remote_close(&a.r);
    return status;
}

const rp_command rp_why_command = {
    .name = "why",
    .summary = "Lists the calls that wait, and why.",
    .usage = "[OPTION...] [TABLE]",
    .text = text,
    .examples = examples,
    .shared = &rp_remote_options,
    .max_words = 1,
    .first_table = 1,
    .last_table = 1,
    .run = run,
};
