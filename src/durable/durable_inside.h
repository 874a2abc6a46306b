/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of rp_durable, shared by:
 *
 *   durable.c            opening and closing, what it says of itself
 *   checkpoint_thread.c  who asks for checkpoints, and the thread that writes them
 *   journaling.c         the journal: replay, start, stop, who listens
 */
#ifndef RP_DURABLE_DURABLE_INSIDE_H
#define RP_DURABLE_DURABLE_INSIDE_H

#include <pthread.h>

#include "disk/reserve.h"
#include "durable/durable.h"
#include "durable/journal/store_log.h"
#include "durable/recovery/recovery.h"
#include "util/mutex.h"

enum { RP_MAX_LISTENERS = 64, RP_DURABLE_PATH_BYTES = 4096, RP_RESERVE_ITEM_BYTES = 64 };

/* Somebody who wants a checkpoint. */
typedef struct rp_checkpoint_request {
    rp_checkpoint_done *on_done;
    void *ctx;
    struct rp_checkpoint_request *next;
    bool is_allocated; /* and freed once it is told */
} rp_checkpoint_request;

typedef struct rp_listener {
    rp_safe_listener *on_safe;
    void *ctx;
} rp_listener;

/* What is wrong. Each says so itself when it is well again. */
typedef enum rp_trouble {
    RP_TROUBLE_CHECKPOINT,
    RP_TROUBLE_JOURNAL,
    RP_TROUBLE_TIER,
    RP_TROUBLES,
} rp_trouble;

/* What only tests want otherwise. 0: as it is. */
typedef struct rp_durable_tuning {
    uint64_t journal_bytes; /* of a file of the journal */
    int64_t retry_ns;       /* until a journal or a checkpoint that failed is tried again */
    uint64_t reserve_bytes; /* kept for a checkpoint on a full disk, and RP_RESERVE_ITEM_BYTES
                               for each item; 0: nothing is kept */
} rp_durable_tuning;

struct rp_durable {
    rp_allocator alloc;
    rp_durable_options options; /* with its defaults; the directory is `directory` */
    char directory[RP_DURABLE_PATH_BYTES];
    rp_durable_tuning tuning;
    rp_files *files;
    bool owns_files;
    rp_store *store;
    rp_segments *segments;
    rp_tier *tier;       /* NULL: none */
    rp_journal *journal; /* NULL: none */
    rp_store_log *log;
    rp_checkpointer checkpointer; /* of the thread that writes, or of who opens or closes */
    rp_progress_meter meter;      /* the same */
    rp_reserve reserve;           /* the same */
    pthread_t thread;
    bool has_thread;

    rp_mutex mu; /* rank 15 */
    rp_cond wake RP_GUARDED_BY(mu);
    rp_checkpoint_request *waiting RP_GUARDED_BY(mu); /* for the next one, last first */
    bool stopping RP_GUARDED_BY(mu);
    bool is_wanted RP_GUARDED_BY(mu); /* another one, but nobody waits for it */
    int64_t due_ns RP_GUARDED_BY(mu);
    int64_t not_before_ns RP_GUARDED_BY(mu); /* unless somebody asks for one */
    int64_t backoff_ns RP_GUARDED_BY(mu);    /* 0: the last one went well */
    int64_t last_ended_ns RP_GUARDED_BY(mu); /* of those that went well; 0: none yet */
    rp_durable_info info RP_GUARDED_BY(mu);
    char troubles[RP_TROUBLES][RP_ERROR_TEXT_BYTES] RP_GUARDED_BY(mu); /* "": none */

    rp_mutex listeners_mu; /* rank 12: held while they are told */
    rp_listener listeners[RP_MAX_LISTENERS] RP_GUARDED_BY(listeners_mu);
    size_t listener_count RP_GUARDED_BY(listeners_mu);
};

/* The same as rp_durable_open() on files of the caller's, which are borrowed: for tests. They
 * must outlive every chunk of the store. */
RP_NODISCARD rp_status rp_durable_open_on(rp_files *files, const rp_durable_options *options,
                                          rp_store *store, rp_durable **out, rp_error *err);
RP_NODISCARD rp_status rp_durable_open_tuned(rp_files *files, const rp_durable_options *options,
                                             const rp_durable_tuning *tuning, rp_store *store,
                                             rp_durable **out, rp_error *err);

/* Loads what is in `files` into the store, the journal included, and changes nothing there but
 * what recovery tidies up: over files that are read only (disk/files_look.h), nothing at all.
 * No lock, no thread, no checkpoint. The files must outlive every chunk of the store. `out` has
 * what was recovered. */
RP_NODISCARD rp_status rp_durable_load_on(rp_files *files, const rp_durable_options *options,
                                          rp_store *store, rp_durable_info *out, rp_error *err);

/* Something is wrong (`text`), or well again (NULL): notes it and tells. Not under a lock. */
void rp_durable_trouble(rp_durable *d, rp_trouble what, const char *text) RP_EXCLUDES(d->mu);

/* Writes one on this thread, and notes how it went. */
RP_NODISCARD rp_status rp_durable_write_checkpoint(rp_durable *d, rp_error *err)
    RP_EXCLUDES(d->mu);
RP_NODISCARD rp_status rp_durable_start_thread(rp_durable *d, rp_error *err);
void rp_durable_stop_thread(rp_durable *d);

/* Makes the changes of the journal again, from r->lsn on, which it moves. */
RP_NODISCARD rp_status rp_durable_replay(rp_durable *d, rp_recovery *r, rp_error *err);
/* Starts the journal, and has the tables tell it. */
RP_NODISCARD rp_status rp_durable_start_journal(rp_durable *d, rp_error *err);
/* Writes what there is, and ends it. */
RP_NODISCARD rp_status rp_durable_stop_journal(rp_durable *d, rp_error *err);

#endif
