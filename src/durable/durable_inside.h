/* SPDX-License-Identifier: Apache-2.0 */
/* The private parts of rp_durable, shared by
 *
 *   durable.c            open, close and info
 *   checkpoint_thread.c  requests for checkpoints, and the thread that writes them
 *   journaling.c         the journal: redo, start, stop, listeners
 *   reserve_size.c       the size of the reserve
 *   runs_file.c          the file RUNS
 *
 * Invariants, whenever mu is free:
 *
 *   D1  `waiting` has the requests that no checkpoint has taken yet, the latest first; it is
 *       empty after the thread has ended;
 *   D2  backoff_ns is 0 if the last checkpoint succeeded, otherwise the time until the retry;
 *   D3  `journal` is set exactly while `log` is. */
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
    bool is_allocated; /* freed before on_done is called */
} rp_checkpoint_request;

typedef struct rp_durable_listener {
    rp_safe_listener *on_safe;
    void *ctx;
} rp_durable_listener;

/* The parts that can be in trouble. Each reports the end of its own trouble. */
typedef enum rp_trouble {
    RP_TROUBLE_CHECKPOINT,
    RP_TROUBLE_JOURNAL,
    RP_TROUBLE_TIER,
    RP_TROUBLE_RESERVE,
    RP_TROUBLES,
} rp_trouble;

/* Settings for tests. 0: the default. */
typedef struct rp_durable_tuning {
    uint64_t journal_bytes; /* of a journal file */
    int64_t retry_ns; /* between attempts of the journal or of a checkpoint after a failure */
    uint64_t max_backlog;   /* of the journal, in bytes */
    uint64_t reserve_bytes; /* the fixed part of the reserve (disk/reserve.h); 0: no reserve */
} rp_durable_tuning;

struct rp_durable {
    rp_allocator alloc;
    rp_durable_options options; /* with the defaults filled in; its directory is `directory` */
    char directory[RP_DURABLE_PATH_BYTES];
    char given[RP_DURABLE_PATH_BYTES]; /* the directory as the caller gave it */
    bool has_store;                    /* it is the durable store of `store` */
    rp_durable_tuning tuning;
    rp_files *files;
    bool owns_files;
    rp_store *store;
    rp_segments *segments;
    rp_tier *tier;       /* NULL: none */
    rp_journal *journal; /* NULL: none */
    rp_store_log *log;
    rp_checkpointer checkpointer; /* used by the checkpoint thread; while it does not run, by
                                     open and close */
    rp_progress_meter meter;      /* used as checkpointer */
    rp_reserve reserve;           /* used as checkpointer */
    atomic_uint_fast64_t fixed;   /* the fixed part of the reserve, as the disk allows it */
    /* Their sum is an upper bound on the bytes that the largest checkpoint takes besides items
     * and slots. created_bytes is for all tables created since the start. counted_bytes is for
     * everything that was counted before the last checkpoint, less created_bytes at that
     * time. */
    atomic_uint_fast64_t counted_bytes, created_bytes;
    /* Checkpoints that are written only to make the reserve whole again (mend_reserve()): those
     * since it was larger than ever, and its size then. Used as checkpointer. */
    int mends;
    uint64_t most_held;
    uint64_t saved_runs;  /* rp_runs_info.changes of the runs in RUNS; used as checkpointer */
    bool keeps_runs_file; /* RUNS is not replaced: it has a newer format, or it could be neither
                             read nor moved */
    pthread_t thread;
    bool has_thread;

    rp_mutex mu; /* rank 15 */
    rp_cond wake RP_GUARDED_BY(mu);
    rp_checkpoint_request *waiting RP_GUARDED_BY(mu); /* D1 */
    bool stopping RP_GUARDED_BY(mu);
    bool is_wanted RP_GUARDED_BY(mu); /* a checkpoint is needed, even without a request */
    int64_t due_ns RP_GUARDED_BY(mu); /* time of the next regular checkpoint, or of a retry */
    int64_t not_before_ns RP_GUARDED_BY(mu); /* earliest time of a checkpoint that is_wanted */
    bool is_space_wanted RP_GUARDED_BY(mu);  /* the thread is to read the free space again */
    int64_t space_ns RP_GUARDED_BY(mu);      /* time of the next two; 0: they are not known */
    uint64_t space_total RP_GUARDED_BY(mu), space_free RP_GUARDED_BY(mu);
    int64_t backoff_ns RP_GUARDED_BY(mu);    /* D2 */
    int64_t last_ended_ns RP_GUARDED_BY(mu); /* end of the last successful one; 0: none yet */
    rp_durable_info info RP_GUARDED_BY(mu);
    char troubles[RP_TROUBLES][RP_ERROR_TEXT_BYTES] RP_GUARDED_BY(mu); /* "": none */

    rp_mutex listeners_mu; /* rank 12: held while listeners are called */
    rp_durable_listener listeners[RP_MAX_LISTENERS] RP_GUARDED_BY(listeners_mu);
    size_t listener_count RP_GUARDED_BY(listeners_mu);
};

/* As rp_durable_open(), but on given files and with given tuning: for tests. The files are
 * borrowed and must outlive every chunk of the store. */
RP_NODISCARD rp_status rp_durable_open_on(rp_files *files, const rp_durable_options *options,
                                          rp_store *store, rp_durable **out, rp_error *err);
RP_NODISCARD rp_status rp_durable_open_tuned(rp_files *files, const rp_durable_options *options,
                                             const rp_durable_tuning *tuning, rp_store *store,
                                             rp_durable **out, rp_error *err);

/* Loads `files`, with the changes in the journal, into the store. Takes no lock, starts no
 * thread, writes no checkpoint. Recovery removes left-over files; on read-only files
 * (disk/files_read_only.h) nothing is changed. The files must outlive every chunk of the store.
 * `out` describes what was recovered. */
RP_NODISCARD rp_status rp_durable_load_on(rp_files *files, const rp_durable_options *options,
                                          rp_store *store, rp_durable_info *out, rp_error *err);

/* Records and reports that the part `what` is in trouble (`text` says why), or no longer is
 * (`text` is NULL). Call it without a lock. */
void rp_durable_trouble(rp_durable *d, rp_trouble what, const char *text) RP_EXCLUDES(d->mu);

/* Writes a checkpoint on this thread and records the result. */
RP_NODISCARD rp_status rp_durable_write_checkpoint(rp_durable *d, rp_error *err)
    RP_EXCLUDES(d->mu);
RP_NODISCARD rp_status rp_durable_start_thread(rp_durable *d, rp_error *err);
void rp_durable_stop_thread(rp_durable *d);

/* Loads the runs of the directory into the store, or writes them if they have changed and the
 * disk has room for them. Call the latter after a checkpoint. Failures are reported to
 * on_event. */
void rp_durable_load_runs(rp_durable *d);
void rp_durable_save_runs(rp_durable *d);

/* An upper bound on the bytes of records of the largest checkpoint: one in which every block of
 * every table has changed. Any thread. */
uint64_t rp_durable_largest(const rp_durable *d);
/* The part of it for rollouts. */
uint64_t rp_durable_largest_rollouts(const rp_durable *d);
/* An rp_reserve_wanted(); `ctx` is the rp_durable. */
uint64_t rp_durable_reserve_wanted(void *ctx, uint64_t *held);
/* The part of the fixed part that new chunks must leave free (R3). */
uint64_t rp_durable_spare(const rp_durable *d);
/* What the reserve has on a full disk, before the journal gets any space: enough for the next
 * checkpoint. Any thread. */
uint64_t rp_durable_least_reserve(const rp_durable *d);
/* Counts the tables, and creates the reserve or changes its size. Returns the statuses of
 * rp_reserve_keep(). */
rp_status rp_durable_keep_reserve(rp_durable *d);
/* Reports whether the reserve is smaller than rp_durable_least_reserve() because the disk has
 * no space. Returns false if the reserve is smaller than it should be for that reason. */
bool rp_durable_check_reserve(rp_durable *d) RP_EXCLUDES(d->mu);
/* RP_NO_RESOURCE if the reserve could not grow for a table with these options. `ctx` is the
 * rp_durable. */
RP_NODISCARD rp_status rp_durable_admit_table(void *ctx, const rp_table_options *options,
                                              rp_error *err);
/* Counts a table that was created. `ctx` is the rp_durable. */
void rp_durable_count_table(void *ctx, const rp_table_options *options);

/* Redoes the changes of the journal after r->lsn, and advances r->lsn. */
RP_NODISCARD rp_status rp_durable_redo(rp_durable *d, rp_recovery *r, rp_error *err);
/* Starts the journal and logs all changes of the tables. */
RP_NODISCARD rp_status rp_durable_start_journal(rp_durable *d, rp_error *err);
/* Writes the backlog and stops the journal. */
RP_NODISCARD rp_status rp_durable_stop_journal(rp_durable *d, rp_error *err);

#endif
