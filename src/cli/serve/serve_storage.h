/* SPDX-License-Identifier: Apache-2.0 */
/* The data directory of `reprise serve`: loading it while the server says so, telling of
 * checkpoints and of trouble while it runs, and closing it.
 *
 * Loading is on a thread of its own, so that signals are heeded meanwhile. How far it is goes
 * to a line of the terminal that is written over and over, or to the log every so often where
 * there is none; to /healthz; and to the service manager. */
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
    rp_server *server; /* NULL: nobody is told */
    rp_durable *durable;

    pthread_t loader, waiting; /* who loads, and who is woken then */
    bool is_loading;           /* the thread is there */
    atomic_bool loaded;
    atomic_bool shows; /* progress is worth a line: loading, and the last checkpoint */
    rp_status status;  /* of loading */
    rp_error err;

    bool terminal;       /* standard error is one */
    int64_t begun_ns;    /* the thread that works */
    int64_t told_ns;     /* when the log was told last */
    uint64_t checkpoint; /* the last that was told of */
    uint64_t failed;     /* the same of those that failed */
} rp_storage;

/* Begins to load; the thread that calls is woken with rp_signals_wake() when it is over. All
 * that the struct points to is borrowed. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_storage_begin(rp_storage *storage, rp_error *err);
/* True once it is over. */
bool rp_storage_is_loaded(rp_storage *storage);
/* What came of it, then: the server has its durable, and the log a line. */
RP_NODISCARD rp_status rp_storage_take(rp_storage *storage, rp_error *err);

/* From time to time: tells of checkpoints that were written. */
void rp_storage_tell(rp_storage *storage);

/* Closes it, with a last checkpoint if that is wished; nobody may use the store any more. False
 * if something could not be written: the log says what. */
bool rp_storage_close(rp_storage *storage);

/* What to do about a directory that could not be loaded; NULL: nothing can be said. */
const char *rp_storage_hint(rp_status status);

#endif
