/* SPDX-License-Identifier: Apache-2.0 */
/* The data directory of `reprise serve`: loads it, logs checkpoints, and closes it.
 *
 * Loading runs on its own thread, so that the main thread can handle signals. The progress of
 * loading is shown in /healthz, in the status for the service manager, and on one line of the
 * terminal. Without a terminal, the log shows it every few seconds. */
#ifndef RP_CLI_SERVE_SERVE_STORAGE_H
#define RP_CLI_SERVE_SERVE_STORAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cli/serve/logger.h"
#include "cli/serve/sd_notify.h"
#include "cli/serve/serve_config.h"

typedef struct rp_storage {
    const rp_storage_settings *settings;
    rp_logger *logger;
    const rp_notifier *notifier;
    rp_store *store;
    rp_server *server;   /* rp_storage_close() sets it to NULL */
    rp_durable *durable; /* owned; NULL unless loading has succeeded */

    pthread_t loader, waiting; /* loader: the thread that loads the directory; waiting: the
                                  thread that `loader` wakes when it ends */
    bool is_loading;           /* `loader` has not been joined yet */
    atomic_bool loaded;        /* loading has succeeded or failed */
    atomic_bool shows; /* progress is shown now: true while the directory is loaded, and during
                          rp_storage_close() */
    rp_status status;  /* result of loading */
    rp_error err;      /* why loading failed */

    bool terminal;     /* standard error is a terminal */
    int64_t begun_ns;  /* when loading began */
    int64_t logged_ns; /* when progress was last logged */
} rp_storage;

/* Starts loading. The caller must set settings, logger, notifier, store and server, which the
 * storage borrows, and all other fields to 0. When loading ends, the loading thread calls
 * rp_signals_wake() for the calling thread. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_storage_begin(rp_storage *storage, rp_error *err);
/* Returns true once loading has ended. */
bool rp_storage_is_loaded(rp_storage *storage);
/* Completes loading. The caller must wait until rp_storage_is_loaded(). If loading has failed,
 * returns its error. Otherwise logs what was loaded, and returns the status of
 * rp_server_set_durable(), with which it passes `durable` to the server. Does not set the
 * server's health; the caller must do this. */
RP_NODISCARD rp_status rp_storage_take(rp_storage *storage, rp_error *err);

/* Writes a last checkpoint, unless no_final_checkpoint is set, and closes the directory. The
 * store must not be in use. If a write fails, logs the error and returns false. */
bool rp_storage_close(rp_storage *storage);

/* Writes the progress of loading, as the reason for the health state "loading" of a server.
 * Leaves out the word "loading", because the server writes it before the reason. Returns
 * `out`. */
char *rp_storage_health_text(const rp_durable_progress *progress, char *out, size_t size);

/* Returns advice on the error with which loading failed, as a static string, or NULL if there
 * is none. */
const char *rp_storage_hint(const rp_error *err);

#endif
