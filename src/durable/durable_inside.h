/* SPDX-License-Identifier: Apache-2.0 */
/* The private parts of rp_durable (the data directory of a store), shared by
 *
 *   durable.c            open, close and info
 *   checkpoint_thread.c  requests for checkpoints, and the thread that writes them
 *   journaling.c         the journal: redo, start, stop, listeners
 *   reserve_size.c       the size of the reserve
 *   runs_file.c          the file RUNS
 *
 * Invariants, whenever mu is free:
 *
 *   D1  `waiting` has the requests that no checkpoint has taken yet, the latest first. The list
 *       is empty after the thread has ended;
 *   D2  backoff_ns is 0 if the last checkpoint succeeded; otherwise it is the delay before the
 *       retry;
 *   D3  `journal` is not NULL exactly while `log` is not NULL. */
#ifndef RP_DURABLE_DURABLE_INSIDE_H
#define RP_DURABLE_DURABLE_INSIDE_H

#include <pthread.h>

#include "disk/reserve.h"
#include "durable/async.h"
#include "durable/checkpoint/checkpoint.h"
#include "durable/journal/store_log.h"
#include "durable/recovery/recovery.h"
#include "util/mutex.h"

enum { RP_MAX_LISTENERS = 64, RP_DURABLE_PATH_BYTES = 4096 };

/* A request for a checkpoint. */
typedef struct rp_checkpoint_request {
    rp_checkpoint_done *on_done;
    void *ctx;
    struct rp_checkpoint_request *next;
    bool is_allocated; /* the request was allocated; it is freed before on_done is called */
} rp_checkpoint_request;

typedef struct rp_durable_listener {
    rp_safe_listener *on_safe;
    void *ctx;
} rp_durable_listener;

/* The parts of a durable store that can be in trouble (cannot work, because the disk is full or
 * fails). Each part reports the start and the end of its trouble with rp_durable_trouble(). */
typedef enum rp_trouble {
    RP_TROUBLE_CHECKPOINT,
    RP_TROUBLE_JOURNAL,
    RP_TROUBLE_TIER,
    RP_TROUBLE_RESERVE,
    RP_TROUBLE_FALLBACK, /* an older checkpoint was loaded; lasts until the next start */
    RP_TROUBLES,
} rp_trouble;

/* Settings for tests. 0 means the default. */
typedef struct rp_durable_tuning {
    uint64_t journal_bytes; /* size of a journal file */
    int64_t retry_ns;       /* time between attempts of the journal, or of a checkpoint */
    uint64_t max_backlog;   /* bound of the journal's backlog, in bytes */
    uint64_t reserve_bytes; /* the fixed part of the reserve (disk/reserve.h); 0: no reserve */
} rp_durable_tuning;

struct rp_durable {
    rp_allocator alloc;
    rp_durable_options options; /* with defaults; options.directory points to `directory` */
    char directory[RP_DURABLE_PATH_BYTES];
    char given[RP_DURABLE_PATH_BYTES]; /* the directory as the caller gave it */
    bool has_store;                    /* rp_store_enter_durable() has succeeded */
    rp_durable_tuning tuning;
    rp_files *files;
    bool owns_files;
    rp_store *store;
    rp_segments *segments;
    rp_tier *tier;       /* NULL: none */
    rp_journal *journal; /* NULL: none */
    rp_store_log *log;
    rp_checkpointer checkpointer; /* only the checkpoint thread uses it; while this thread does
                                     not run, rp_durable_open() and rp_durable_close() use it */
    rp_progress_meter meter;      /* used like `checkpointer` */
    rp_reserve reserve;           /* used like `checkpointer` */
    atomic_uint_fast64_t fixed;   /* fixed part of the reserve, limited by the disk size */
    /* counted_bytes + created_bytes is an upper bound of the bytes that the largest checkpoint
     * has in addition to items, slots and rollouts. created_bytes is the part of the tables
     * that were created since the start. rp_durable_keep_reserve() counts all these bytes from
     * time to time, and sets counted_bytes to the result less the present created_bytes. */
    atomic_uint_fast64_t counted_bytes, created_bytes;
    /* For mend_reserve(), while the reserve is smaller than it should be: `most_held` is the
     * largest size that it has reached in this time, and `mends` the number of checkpoints that
     * were written since then only to bring the reserve back to its full size. Used like
     * `checkpointer`. */
    int mends;
    uint64_t most_held;
    uint64_t saved_runs;  /* rp_runs_info.changes of RUNS; used like `checkpointer` */
    bool keeps_runs_file; /* RUNS must not be replaced: it has a newer format, or it could be
                             neither read nor moved */
    pthread_t thread;
    bool has_thread;

    rp_mutex mu; /* rank 15 (util/mutex.h) */
    rp_cond wake RP_GUARDED_BY(mu);
    rp_checkpoint_request *waiting RP_GUARDED_BY(mu); /* invariant D1 */
    bool stopping RP_GUARDED_BY(mu);
    bool is_wanted RP_GUARDED_BY(mu); /* a checkpoint is needed, even without a request */
    int64_t due_ns RP_GUARDED_BY(mu); /* time of the next regular checkpoint, or of a retry */
    int64_t not_before_ns RP_GUARDED_BY(mu); /* earliest time of a checkpoint that is_wanted */
    bool is_space_wanted RP_GUARDED_BY(mu);  /* the thread must read the free space again */
    /* Time at which space_total and space_free were read; 0: they are not known. */
    int64_t space_ns RP_GUARDED_BY(mu);
    uint64_t space_total RP_GUARDED_BY(mu), space_free RP_GUARDED_BY(mu);
    int64_t backoff_ns RP_GUARDED_BY(mu);    /* invariant D2 */
    int64_t last_ended_ns RP_GUARDED_BY(mu); /* end of the last success; 0: none yet */
    rp_durable_info info RP_GUARDED_BY(mu);
    char troubles[RP_TROUBLES][RP_ERROR_TEXT_BYTES] RP_GUARDED_BY(mu); /* "": no trouble */

    rp_mutex listeners_mu; /* rank 12; held while listeners are called */
    rp_durable_listener listeners[RP_MAX_LISTENERS] RP_GUARDED_BY(listeners_mu);
    size_t listener_count RP_GUARDED_BY(listeners_mu);
};

/* For tests: both functions do the same as rp_durable_open(), but on the given files, and the
 * second with the given tuning. The files are borrowed and must outlive every chunk of the
 * store. */
RP_NODISCARD rp_status rp_durable_open_on(rp_files *files, const rp_durable_options *options,
                                          rp_store *store, rp_durable **out, rp_error *err);
RP_NODISCARD rp_status rp_durable_open_tuned(rp_files *files, const rp_durable_options *options,
                                             const rp_durable_tuning *tuning, rp_store *store,
                                             rp_durable **out, rp_error *err);

/* Loads the checkpoint and the journal in `files` into the store. Takes no lock, starts no
 * thread, and writes no checkpoint. Recovery removes left-over files; on read-only files
 * (disk/files_read_only.h) it changes nothing. The files must outlive every chunk of the store.
 * `out` describes what was recovered. */
RP_NODISCARD rp_status rp_durable_load_on(rp_files *files, const rp_durable_options *options,
                                          rp_store *store, rp_durable_info *out, rp_error *err);

/* Records and reports that the part `what` is in trouble because of `text`, or, if `text` is
 * NULL, that its trouble has ended. The caller must hold no lock. */
void rp_durable_trouble(rp_durable *d, rp_trouble what, const char *text) RP_EXCLUDES(d->mu);

/* Writes a checkpoint on this thread and records the result. */
RP_NODISCARD rp_status rp_durable_write_checkpoint(rp_durable *d, rp_error *err)
    RP_EXCLUDES(d->mu);
RP_NODISCARD rp_status rp_durable_start_thread(rp_durable *d, rp_error *err);
void rp_durable_stop_thread(rp_durable *d);

/* rp_durable_load_runs() loads the training runs of the directory into the store.
 * rp_durable_save_runs() is called after a checkpoint: it writes the runs if they have changed
 * and the disk has space for them. Failures are reported to on_event. */
void rp_durable_load_runs(rp_durable *d);
void rp_durable_save_runs(rp_durable *d);

/* Returns an upper bound of the bytes of records of the largest possible checkpoint, which is
 * one with every block of every table. Any thread may call this function. */
uint64_t rp_durable_largest(const rp_durable *d);
/* Returns the part of rp_durable_largest() that is for rollouts. */
uint64_t rp_durable_largest_rollouts(const rp_durable *d);
/* An rp_reserve_wanted (disk/journal_space.h) whose `ctx` is the rp_durable. */
uint64_t rp_durable_reserve_wanted(void *ctx, uint64_t *held);
/* Returns how many bytes of the reserve's fixed part must stay free when a checkpoint writes
 * new chunks (disk/reserve.h, invariant R3). */
uint64_t rp_durable_spare(const rp_durable *d);
/* On a full disk, the reserve gets free space before the journal does, until it is large enough
 * for the next checkpoint. Returns this size. Any thread may call this function. */
uint64_t rp_durable_least_reserve(const rp_durable *d);
/* Counts the bytes that the tables add to a checkpoint, and creates the reserve or changes its
 * size. Returns a status of rp_reserve_keep(). */
rp_status rp_durable_keep_reserve(rp_durable *d);
/* Adds up the bytes of the reserve and the free space of the disk. If the sum is less than
 * rp_durable_least_reserve(), reports trouble; otherwise reports the end of the trouble.
 * Returns false if the sum is less than the full size of the reserve. */
bool rp_durable_check_reserve(rp_durable *d) RP_EXCLUDES(d->mu);
/* Called before a table with these options is created. Returns RP_NO_RESOURCE if the disk has
 * no space to enlarge the reserve for the table. `ctx` is the rp_durable. */
RP_NODISCARD rp_status rp_durable_admit_table(void *ctx, const rp_table_options *options,
                                              rp_error *err);
/* Adds the bytes of a new table to created_bytes. `ctx` is the rp_durable. */
void rp_durable_count_table(void *ctx, const rp_table_options *options);

/* Redoes the changes of the journal after r->lsn, and advances r->lsn. */
RP_NODISCARD rp_status rp_durable_redo(rp_durable *d, rp_recovery *r, rp_error *err);
/* Starts the journal and logs all changes of the tables. */
RP_NODISCARD rp_status rp_durable_start_journal(rp_durable *d, rp_error *err);
/* Writes the backlog and stops the journal. */
RP_NODISCARD rp_status rp_durable_stop_journal(rp_durable *d, rp_error *err);

#endif
