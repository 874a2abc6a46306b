/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise info`: the tables of all servers, one table in detail, or the storage. */
#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/commands/table_list.h"

enum { STORAGE, OPTIONS };

static const rp_option options[OPTIONS] = {
    [STORAGE] = {"storage", NULL, "show checkpoints and journal, not the tables", false, NULL,
                 NULL},
};

static const char *const examples[] = {
    "reprise info",
    "reprise info replay",
    "reprise info --storage --json",
    "reprise info --server localhost:8000 --json",
    NULL,
};

static int run(const rp_flags *flags)
{
    const char *name = flags->word_count > 0 ? flags->words[0] : NULL;
    rp_text_buffer buffer = {0};
    rp_table_list list = {0};
    rp_error err = {0};
    rp_remote r;
    rp_status st;
    int status = rp_remote_open(&r, &rp_info_command, flags);

    if (status == 0) status = rp_remote_connect(&r);
    if (status != 0) goto out;
    st = rp_table_list_fetch(&list, r.client, rp_remote_wait(&r), &err);
    if (st == RP_OK && name != NULL && rp_table_list_find(&list, name) == NULL)
        st = rp_table_list_missing(&list, name, &err);
    if (st != RP_OK) {
        status = rp_remote_fail(&r, st, &err);
        goto out;
    }
    if (rp_remote_switch(&r, STORAGE))
        rp_durability_report(&buffer, &list.view, r.json);
    else if (r.json)
        rp_tables_json(&buffer, &list.view, name);
    else if (name != NULL)
        rp_info_details(&buffer, &list.view, name);
    else
        rp_info_glance(&buffer, &list.view);
    status = rp_remote_print(&r, &buffer);
out:
    rp_text_buffer_deinit(&buffer);
    rp_table_list_deinit(&list);
    rp_remote_close(&r);
    return status;
}

const rp_command rp_info_command = {
    .name = "info",
    .summary = "Shows the tables of a server, or everything about one.",
    .usage = "[OPTION...] [TABLE]",
    .examples = examples,
    .options = options,
    .option_count = OPTIONS,
    .shared = &rp_remote_options,
    .max_words = 1,
    .first_table = 1,
    .last_table = 1,
    .run = run,
};
