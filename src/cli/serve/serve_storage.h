/* SPDX-License-Identifier: Apache-2.0 */
/* The data directory of `reprise serve`: loads it, logs checkpoints and failures, closes it.
 *
 * Loading runs on its own thread, so that the main thread can handle signals. Its progress is
 * shown in /healthz, in the status for the service manager, and on one line of the terminal;
 * without a terminal, in the log every few seconds. */
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

    pthread_t loader, waiting; /* the loading thread; the thread to wake when it ends */
    bool is_loading;           /* `loader` must be joined */
    atomic_bool loaded;        /* loading has ended, with success or not */
    atomic_bool shows;         /* progress is shown: while loading and in rp_storage_close() */
    rp_status status;          /* of loading */
    rp_error err;              /* of loading */

    bool terminal;       /* standard error is a terminal */
    int64_t begun_ns;    /* when loading began */
    int64_t logged_ns;   /* when progress was logged last */
    uint64_t checkpoint; /* number of the last one that was logged */
    uint64_t failed;     /* failed checkpoints that were logged */
} rp_storage;

/* Starts loading. The caller has set settings, logger, notifier, store and server, which are
 * borrowed; all other fields are 0. When loading ends, the calling thread is woken with
 * rp_signals_wake(). RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_storage_begin(rp_storage *storage, rp_error *err);
/* Returns true once loading has ended. */
bool rp_storage_is_loaded(rp_storage *storage);
/* Call it once loading has ended. If loading has failed, returns its error. Otherwise logs what
 * was loaded and passes `durable` to the server; see rp_server_set_durable() for errors. The
 * caller sets the server's health. */
RP_NODISCARD rp_status rp_storage_take(rp_storage *storage, rp_error *err);

/* Logs new checkpoints. Call it from time to time. */
void rp_storage_log_checkpoints(rp_storage *storage);

/* Closes the directory, with a last checkpoint if the settings ask for one. The store must not
 * be in use. If something could not be written, logs the error and returns false. */
bool rp_storage_close(rp_storage *storage);

/* Returns advice for a directory that could not be loaded, by the reason; or NULL. Static. */
const char *rp_storage_hint(const rp_error *err);

#endif
