/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise checkpoint`. On a terminal the call runs on a thread of its own, and the main thread
 * shows the progress of the servers. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/text/info_print.h"

enum { LOOK_MS = 250, SHOWN_SHARDS = 64, TEXT_BYTES = 160 };

static const char *const examples[] = {
    "reprise checkpoint",
    "reprise checkpoint --timeout 10m --json",
    NULL,
};

/* The call, and its result once `over` is true. */
typedef struct asking {
    const rp_remote *remote;
    char *path;
    rp_status status;
    rp_error err;
    atomic_bool over;
} asking;

static void *ask_main(void *ctx)
{
    asking *a = ctx;

    a->status =
        rp_client_checkpoint(a->remote->client, rp_remote_wait(a->remote), &a->path, &a->err);
    atomic_store(&a->over, true);
    return NULL;
}

/* Overwrites the progress line with that of the first server that writes a checkpoint. */
static void show(const rp_remote *r)
{
    static rp_client_durability shards[SHOWN_SHARDS]; /* too large for a stack */
    rp_wait wait = rp_wait_ms(LOOK_MS);
    char text[TEXT_BYTES];
    size_t count = 0;
    rp_error err;

    wait.cancel = r->interrupts.cancel;
    if (rp_client_get_durability(r->client, shards, SHOWN_SHARDS, &count, wait, &err) != RP_OK)
        return;
    assert(count <= SHOWN_SHARDS);
    for (size_t i = 0; i < count; i++) {
        const rp_durable_progress *p = &shards[i].info.progress;

        if (p->what == NULL) continue;
        rp_remote_rest(r);
        (void)fprintf(stderr, "\r\033[K%s: %s, %s",
                      rp_client_shard_address(r->client, shards[i].shard), p->what,
                      rp_progress_words(p, text, sizeof text));
        (void)fflush(stderr);
        return;
    }
}

static void ask(asking *a)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
    pthread_t thread;

    if (!isatty(STDERR_FILENO) || pthread_create(&thread, NULL, ask_main, a) != 0) {
        (void)ask_main(a);
        return;
    }
    while (!atomic_load(&a->over)) {
        (void)nanosleep(&pause, NULL);
        if (!atomic_load(&a->over)) show(a->remote);
    }
    (void)pthread_join(thread, NULL);
    (void)fputs("\r\033[K", stderr);
}

static int run(const rp_flags *flags)
{
    rp_text_buffer buffer = {0};
    rp_remote r;
    asking a = {.remote = &r};
    int status = rp_remote_open(&r, &rp_checkpoint_command, flags);

    if (status == 0) status = rp_remote_connect(&r);
    if (status != 0) goto out;
    rp_patience_explain(r.patience, "it writes a checkpoint, or it spaces the requested ones: "
                                    "its limit checkpoint_spacing_ms");
    rp_remote_begin_change(&r);
    ask(&a);
    rp_remote_end_change(&r);
    assert(atomic_load(&a.over));
    if (a.status != RP_OK) {
        status = rp_remote_fail(&r, a.status, &a.err);
        goto out;
    }
    if (r.json) {
        rp_json_open(&buffer, '{');
        rp_json_key(&buffer, "path");
        rp_json_put_text(&buffer, a.path);
        rp_unreachable_json(&buffer, r.change.list, r.change.count);
        rp_json_close(&buffer, '}');
    } else {
        rp_text_buffer_put_safe(&buffer, a.path, a.path != NULL ? strlen(a.path) : 0);
    }
    rp_text_buffer_put(&buffer, "\n");
    status = rp_remote_print(&r, &buffer);
    if (status == 0 && r.change.count > 0)
        status = rp_remote_fail_partly(&r, "a checkpoint is written");
out:
    rp_text_buffer_deinit(&buffer);
    if (r.client != NULL) rp_client_text_free(r.client, a.path);
    rp_remote_close(&r);
    return status;
}

const rp_command rp_checkpoint_command = {
    .name = "checkpoint",
    .summary = "Makes every server write a checkpoint, and prints the path of the first one.",
    .usage = "[OPTION...]",
    .examples = examples,
    .shared = &rp_remote_options,
    .run = run,
};
