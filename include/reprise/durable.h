/* SPDX-License-Identifier: Apache-2.0 */
/* Durability: a store that survives its process.
 *
 * An rp_durable connects a store with a data directory. rp_durable_open() loads the directory
 * into the store. From then on the rp_durable writes checkpoints of the store. In the modes
 * interval and sync it also writes a journal, which is a log of every change after a
 * checkpoint. A change is acknowledged when the call that makes it returns, or when a server
 * confirms it. The mode decides which acknowledged changes a crash can lose:
 *
 *   mode                    an acknowledged         lost if the process     lost if the power
 *                           change is               is killed               fails
 *   RP_DURABLE_CHECKPOINT   in memory               changes since the       changes since the
 *                                                   last checkpoint         last checkpoint
 *   RP_DURABLE_INTERVAL     handed to the kernel    nothing                 the last interval
 *   RP_DURABLE_SYNC         on stable storage       nothing                 nothing
 *
 * A checkpoint contains all tables as of one instant. Tables are locked only for that instant.
 * A checkpoint does not rewrite data that is already on disk. One process at a time can use a
 * directory. Any thread may make any call. */
#ifndef REPRISE_DURABLE_H
#define REPRISE_DURABLE_H

#include "reprise/store.h"

RP_BEGIN_DECLS

typedef struct rp_durable rp_durable;

typedef enum rp_durability {
    RP_DURABLE_CHECKPOINT = 0,
    RP_DURABLE_INTERVAL = 1,
    RP_DURABLE_SYNC = 2,
} rp_durability;

/* The progress of a long operation. */
typedef struct rp_durable_progress {
    const char *what;     /* "loading", "redoing", "checkpoint", "verifying". Static */
    uint64_t done, total; /* bytes; total 0: unknown */
    int64_t elapsed_ns;
    int64_t left_ns; /* estimate; -1: unknown */
} rp_durable_progress;

/* A checkpoint that was written. */
typedef struct rp_durable_written {
    uint64_t number, bytes;
    int64_t took_ns, pause_ns; /* how long the checkpoint took, and for how long changes had to
                                  wait */
} rp_durable_written;

/* Zero-initialise it; fields whose comment begins with * must be set. */
typedef struct rp_durable_options {
    const char *directory; /* * created if it does not exist */
    rp_durability mode;
    int64_t interval_ns;    /* time between syncs of the journal; 0: 100 ms */
    int64_t period_ns;      /* time between checkpoints; 0: 300 s; RP_FOREVER: only on demand */
    int32_t keep;           /* number of checkpoints to keep; 0: 3 */
    uint64_t segment_bytes; /* size of a segment, a file of chunks and items; at most 2 GiB; 0:
                               256 MiB. A size over 1/64 of the file system is reduced to this
                               share, but not below 1 MiB */
    /* 0: all chunks are in memory. If > 0, the store has a disk tier: its tables take at most
     * this many bytes of memory, as rp_trajectory_cost() counts them, and chunks that do not
     * fit are on disk only, until they are sampled. An eighth of max_memory is a cache of
     * chunks that were read back from disk. Items, and chunks below 1 KiB, always stay in
     * memory. If they fill max_memory, the store's budget policy (rp_budget_policy) applies, as
     * if max_bytes of the store were reached. Rollouts (rollouts.h) can take additional memory:
     * a third of max_memory, or a third of the store's max_bytes if max_bytes is set and
     * smaller. */
    uint64_t max_memory;
    uint64_t run_bytes; /* the most bytes of all runs (reprise/runs.h). rp_durable_open() sets
                           this limit before it loads the saved runs, so the limit also bounds
                           the saved runs. 0: keeps the limit of the store, which is 64 MiB in a
                           new store. A server that starts replaces the limit by its own
                           (rp_server_limits.run_bytes) */
    bool checkpoint_at_end; /* rp_durable_close() writes a last checkpoint */
    bool salvage;           /* if data is damaged, load the readable part and report the rest to
                               on_event */
    bool accept_changes;    /* accept saved tables whose selectors differ from those in the
                               store; the store's selectors apply */
    /* Called at least once a second, on the thread that does the work. May be NULL. */
    void (*on_progress)(void *ctx, const rp_durable_progress *progress);
    /* Called with a text for an operator. `degraded` is true if something failed, such as a
     * checkpoint or a write to the journal. `degraded` is false if the operation that failed
     * works again, or if the text is only a notice. May be NULL. */
    void (*on_event)(void *ctx, bool degraded, const char *text);
    /* Called after each checkpoint, also in rp_durable_open() and rp_durable_close(), on the
     * thread that wrote it. `written` is valid during the call. May be NULL. */
    void (*on_checkpoint)(void *ctx, const rp_durable_written *written);
    void *ctx;
} rp_durable_options;

/* Loads the directory into `store`, and starts the threads of the mode. The tables of `store`
 * must never have had an item, and no other thread may use them during the call. The store is
 * borrowed and must outlive the rp_durable.
 *
 * The call creates saved tables that the store does not have. If the store already has a table
 * with the name of a saved table, both must have the same signature and, without
 * accept_changes, the same selectors. The store's table keeps its own selectors, and its own
 * max_size if that is larger than the saved one. All other options of the store's table become
 * the saved ones.
 *
 * Errors: RP_INVALID, RP_PRECONDITION (the store has an rp_durable already, whose directory the
 * text names; another process uses the directory; a newer format; tables that differ, which the
 * text names), RP_CORRUPT (the text names the file, the offset and the reason; the call can
 * have moved damaged files to the folder quarantine, and has changed nothing else on disk),
 * RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_API RP_NODISCARD rp_status rp_durable_open(const rp_durable_options *options,
                                              rp_store *store, rp_durable **out, rp_error *err);

/* Writes a last checkpoint if checkpoint_at_end is set, syncs and closes the journal, and frees
 * `durable`, even if one of these steps fails. Returns the status of the first step that
 * failed. The caller must make this call before it frees the store, when no thread uses
 * `durable` any more. NULL is fine. */
RP_API RP_NODISCARD rp_status rp_durable_close(rp_durable *durable, rp_error *err);

/* Requests a checkpoint, and waits until it is complete. The checkpoint contains all changes of
 * tables and rollouts that were made before this call. So if a checkpoint is already being
 * written, the call waits for the next one. `path` (may be NULL) has room for path_bytes bytes
 * and gets the absolute path of the checkpoint's manifest, its main file.
 * Errors: RP_NO_RESOURCE (disk full), RP_UNAVAILABLE, RP_DEADLINE and RP_CANCELLED (after these
 * two, the checkpoint is still written). */
RP_API RP_NODISCARD rp_status rp_durable_checkpoint(rp_durable *durable, rp_wait wait,
                                                    char *path, size_t path_bytes,
                                                    rp_error *err);

typedef struct rp_durable_info {
    rp_durability mode;
    bool degraded; /* an operation fails, or this start has loaded an older checkpoint, because
                      the newest is damaged */
    char trouble[RP_ERROR_TEXT_BYTES];        /* the reason, if degraded */
    uint64_t checkpoints, failed_checkpoints; /* since the directory was opened */
    uint64_t last_checkpoint;                 /* number of the latest checkpoint; 0: none */
    int64_t last_checkpoint_age_ns; /* time since the latest checkpoint was written; -1: an
                                       earlier process wrote it, or there is none */
    /* How long the latest checkpoint took, and for how long it locked all tables. */
    int64_t last_checkpoint_took_ns, last_pause_ns;
    uint64_t last_checkpoint_bytes; /* bytes written for the latest checkpoint */
    uint64_t lsn, safe_lsn; /* number of the last change in the journal; number of the last
                               change that is as safe as the mode promises */
    /* Bytes that wait in memory to be written to the journal, and the bound of backlog_bytes.
     * At the bound, changes wait. */
    uint64_t backlog_bytes, max_backlog_bytes;
    uint64_t segments, disk_bytes, live_bytes; /* number of segments; their bytes; how many of
                                                  these bytes are in use */
    /* Results of rp_durable_open(): the number of items of all tables, including those from the
     * journal; the number of journal records that were applied; the number of bytes cut off at
     * the end of the journal because they were incomplete. */
    uint64_t recovered_items, recovered_records, torn_bytes;
    /* Of the disk tier (max_memory): bytes of chunks in memory; bytes of chunks on disk only;
     * number and bytes of the chunks read back from disk. */
    uint64_t resident_bytes, spilled_bytes, loads, load_bytes;
    uint64_t load_hits; /* chunks on disk that a sample found in the tier's read cache */
    rp_durable_progress progress; /* of the running operation; if none runs, `what` is NULL */
} rp_durable_info;

RP_API void rp_durable_get_info(rp_durable *durable, rp_durable_info *out);

RP_END_DECLS

#endif
