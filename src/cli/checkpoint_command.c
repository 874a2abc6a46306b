/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/remote.h"

static const char *const examples[] = {
    "reprise checkpoint",
    "reprise checkpoint --timeout 10m --json",
    NULL,
};

static int run(const rp_flags *flags)
{
    rp_sheet sheet = {0};
    char *path = NULL;
    rp_error err = {0};
    rp_remote r;
    rp_status st;
    int status = rp_remote_open(&r, &rp_checkpoint_command, flags);

    if (status == 0) status = rp_remote_connect(&r);
    if (status != 0) goto out;
    st = rp_client_checkpoint(r.client, rp_remote_wait(&r), &path, &err);
    if (st != RP_OK) {
        status = rp_remote_fail(&r, st, &err);
        goto out;
    }
    if (r.json) {
        rp_json_open(&sheet, '{');
        rp_json_key(&sheet, "path");
        rp_json_put_text(&sheet, path);
        rp_json_close(&sheet, '}');
    } else {
        rp_sheet_put(&sheet, path != NULL ? path : "");
    }
    rp_sheet_put(&sheet, "\n");
    status = rp_remote_print(&r, &sheet);
out:
    rp_sheet_deinit(&sheet);
    if (r.client != NULL) rp_client_text_free(r.client, path);
    rp_remote_close(&r);
    return status;
}

const rp_command rp_checkpoint_command = {
    .name = "checkpoint",
    .summary = "Has every server write a checkpoint, and prints where the first one is.",
    .usage = "[OPTION...]",
    .examples = examples,
    .shared = &rp_remote_options,
    .run = run,
};
