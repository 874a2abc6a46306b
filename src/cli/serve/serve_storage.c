/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants:
 *   J1  `is_loading` is true from rp_storage_begin() to rp_storage_take();
 *   J2  the loading thread alone writes durable, status and err until `loaded` is set. */
#include "cli/serve/serve_storage.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/serve/signals.h"
#include "cli/serve/upkeep.h"
#include "cli/text/info_print.h"
#include "cli/text/units.h"

enum {
    LOG_EVERY_S = 10,             /* between log lines about progress */
    EXTEND_US = 60 * 1000 * 1000, /* requested from the service manager at each progress */
    PROGRESS_BYTES = 160,
};

char *rp_storage_health_text(const rp_durable_progress *progress, char *out, size_t size)
{
    char text[PROGRESS_BYTES];

    (void)rp_progress_words(progress, text, sizeof text);
    if (strcmp(progress->what, "loading") == 0)
        (void)snprintf(out, size, "%s", text);
    else
        (void)snprintf(out, size, "%s, %s", progress->what, text);
    return out;
}

/* Reports progress. Called on the thread that loads or writes. */
static void on_progress(void *ctx, const rp_durable_progress *progress)
{
    rp_storage *s = ctx;
    char text[PROGRESS_BYTES], line[PROGRESS_BYTES + 32], health[PROGRESS_BYTES + 32];
    int64_t now_ns = rp_now_ns();
    rp_fields f;

    if (!atomic_load(&s->shows)) return;
    (void)rp_progress_words(progress, text, sizeof text);
    (void)snprintf(line, sizeof line, "%s, %s", progress->what, text);
    if (s->server != NULL && !atomic_load(&s->loaded))
        rp_server_set_health(s->server, RP_HEALTH_LOADING,
                             rp_storage_health_text(progress, health, sizeof health));
    rp_notifier_send(s->notifier, "STATUS=%s\nEXTEND_TIMEOUT_USEC=%d", line, EXTEND_US);
    if (s->terminal) {
        (void)fprintf(stderr, "\r\033[K%s", line);
        (void)fflush(stderr);
        return;
    }
    if (now_ns - s->logged_ns < LOG_EVERY_S * INT64_C(1000000000)) return;
    s->logged_ns = now_ns;
    rp_fields_init(&f);
    rp_fields_add(&f, "what", "%s", progress->what);
    rp_fields_add(&f, "done", "%s", text);
    rp_logger_write(s->logger, RP_LOG_INFO, "progress", f.text);
}

/* Stops showing progress and clears its line. */
static void end_progress(rp_storage *s)
{
    atomic_store(&s->shows, false);
    if (!s->terminal) return;
    (void)fputs("\r\033[K", stderr);
    (void)fflush(stderr);
}

static void begin_progress(rp_storage *s)
{
    s->begun_ns = s->logged_ns = rp_now_ns();
    atomic_store(&s->shows, true);
}

/* Logs an event of the storage. Called on any thread. */
static void on_event(void *ctx, bool degraded, const char *text)
{
    rp_storage *s = ctx;
    rp_fields f;

    rp_fields_init(&f);
    rp_fields_add(&f, "data", "%s", s->settings->directory);
    rp_fields_add(&f, degraded ? "error" : "note", "%s", text);
    rp_logger_write(s->logger, degraded ? RP_LOG_ERROR : RP_LOG_INFO,
                    degraded ? "storage_trouble" : "storage", f.text);
}

/* Logs a checkpoint. Called on any thread. */
static void on_checkpoint(void *ctx, const rp_durable_written *written)
{
    rp_storage *s = ctx;
    char bytes[32];
    rp_fields f;

    rp_fields_init(&f);
    rp_fields_add(&f, "number", "%" PRIu64, written->number);
    rp_fields_add(&f, "written", "%s", rp_size_text(written->bytes, bytes, sizeof bytes));
    rp_fields_add(&f, "seconds", "%.3f", (double)written->took_ns / 1e9);
    rp_fields_add(&f, "pause_ms", "%.3f", (double)written->pause_ns / 1e6);
    rp_logger_write(s->logger, RP_LOG_INFO, "checkpoint", f.text);
}

static void *load_main(void *ctx)
{
    rp_storage *s = ctx;
    const rp_storage_settings *settings = s->settings;
    const rp_durable_options options = {
        .directory = settings->directory,
        .mode = (rp_durability)settings->mode,
        .interval_ns = settings->sync_ms * 1000000,
        .period_ns =
            settings->checkpoint_ms > 0 ? settings->checkpoint_ms * 1000000 : RP_FOREVER,
        .keep = (int32_t)settings->keep,
        .max_memory = settings->max_memory,
        .checkpoint_at_end = !settings->no_final_checkpoint,
        .salvage = settings->salvage,
        .accept_changes = settings->accept_changes,
        .on_progress = on_progress,
        .on_event = on_event,
        .on_checkpoint = on_checkpoint,
        .ctx = s,
    };

    s->status = rp_durable_open(&options, s->store, &s->durable, &s->err);
    atomic_store(&s->loaded, true);
    rp_signals_wake(s->waiting);
    return NULL;
}

rp_status rp_storage_begin(rp_storage *s, rp_error *err)
{
    assert(!s->is_loading && s->durable == NULL && s->settings->directory != NULL); /* J1 */
    s->terminal = isatty(STDERR_FILENO) != 0;
    s->waiting = pthread_self();
    begin_progress(s);
    if (pthread_create(&s->loader, NULL, load_main, s) != 0) {
        end_progress(s);
        *err = (rp_error){.code = RP_NO_RESOURCE, .text = "no thread to load the data"};
        return RP_NO_RESOURCE;
    }
    s->is_loading = true;
    return RP_OK;
}

bool rp_storage_is_loaded(rp_storage *s)
{
    return atomic_load(&s->loaded);
}

static void log_loaded(rp_storage *s, const rp_durable_info *info)
{
    rp_fields f;

    rp_fields_init(&f);
    rp_fields_add(&f, "data", "%s", s->settings->directory);
    rp_fields_add(&f, "items", "%" PRId64, rp_upkeep_count(s->store).items);
    rp_fields_add(&f, "checkpoint", "%" PRIu64, info->last_checkpoint);
    rp_fields_add(&f, "records", "%" PRIu64, info->recovered_records);
    if (info->torn_bytes > 0) rp_fields_add(&f, "torn_bytes", "%" PRIu64, info->torn_bytes);
    rp_fields_add(&f, "seconds", "%.3f", (double)(rp_now_ns() - s->begun_ns) / 1e9);
    rp_logger_write(s->logger, RP_LOG_INFO, "loaded", f.text);
}

rp_status rp_storage_take(rp_storage *s, rp_error *err)
{
    rp_durable_info info;

    assert(s->is_loading && atomic_load(&s->loaded)); /* J1, J2 */
    (void)pthread_join(s->loader, NULL);
    s->is_loading = false;
    end_progress(s);
    assert((s->status == RP_OK) == (s->durable != NULL));
    if (s->status != RP_OK) {
        *err = s->err;
        return s->status;
    }
    rp_durable_get_info(s->durable, &info);
    log_loaded(s, &info);
    return rp_server_set_durable(s->server, s->durable, err);
}

const char *rp_storage_hint(const rp_error *err)
{
    bool is_memory = strstr(err->text, "could not be allocated") != NULL ||
                     strstr(err->text, "max_bytes") != NULL;

    if (strstr(err->text, "has this directory") != NULL)
        return "stop that process, or give another directory";
    if (strstr(err->text, "it is saved with") != NULL)
        return "configure the table as it is saved, or --accept-changes to keep its items";
    if (err->code == RP_NOT_FOUND)
        return "mkdir -p the folder of --data: only its last part is made";
    if (err->code == RP_CORRUPT)
        return "reprise data verify lists the damage, --salvage loads what can be read";
    if (err->code == RP_NO_RESOURCE && is_memory)
        return "give it more memory, or keep chunks on disk with --max-memory";
    if (err->code == RP_NO_RESOURCE)
        return "make room on the disk of --data (df, df -i), or copy the directory to a larger "
               "one";
    if (err->code == RP_UNAVAILABLE)
        return "look at the disk and the permissions of --data; --salvage loads what can be "
               "read";
    return NULL;
}

bool rp_storage_close(rp_storage *s)
{
    rp_durable *durable = s->durable;
    rp_error err = {0};
    rp_status st;
    rp_fields f;

    assert(!s->is_loading); /* J1 */
    if (durable == NULL) return true;
    s->durable = NULL;
    s->server = NULL;
    begin_progress(s);
    st = rp_durable_close(durable, &err);
    end_progress(s);
    if (st == RP_OK) return true;
    rp_fields_init(&f);
    rp_fields_add(&f, "data", "%s", s->settings->directory);
    rp_fields_add(&f, "status", "%s", rp_status_name(st));
    rp_fields_add(&f, "error", "%s", err.text);
    rp_logger_write(s->logger, RP_LOG_ERROR, "storage_not_closed", f.text);
    return false;
}
