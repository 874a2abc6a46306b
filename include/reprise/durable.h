/* SPDX-License-Identifier: Apache-2.0 */
/* Durability: a store that survives its process.
 *
 * An rp_durable connects a store with a data directory. Opening it loads the directory into the
 * store. From then on it writes checkpoints and, in the modes with a journal (interval and
 * sync), every change between them. The mode decides which acknowledged changes a crash can
 * lose:
 *
 *   mode                    an acknowledged         lost if the process     lost if the power
 *                           change is               is killed               fails
 *   RP_DURABLE_CHECKPOINT   in memory               both: changes since the last checkpoint
 *   RP_DURABLE_INTERVAL     handed to the kernel    nothing                 the last interval
 *   RP_DURABLE_SYNC         on stable storage       nothing                 nothing
 *
 * A checkpoint contains all tables as of one instant. Tables are locked only for that instant,
 * and only data that is not on disk yet is written. One process at a time may use a directory.
 * Any thread may make any call. */
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

/* Zero-initialise it; fields marked * must be set. */
typedef struct rp_durable_options {
    const char *directory; /* * created if it does not exist */
    rp_durability mode;
    int64_t interval_ns;    /* between syncs of the journal; 0: 100 ms */
    int64_t period_ns;      /* between checkpoints; 0: 300 s; RP_FOREVER: on demand only */
    int32_t keep;           /* checkpoints to keep; 0: 3 */
    uint64_t segment_bytes; /* size of a segment file; 0: 256 MiB. At most 1/64 of the file
                               system, but at least 1 MiB */
    uint64_t max_memory;    /* > 0: the store has a disk tier. Tables take at most this many
                               bytes of memory, counted by rp_trajectory_cost(); chunks that do
                               not fit are on disk until they are sampled. An eighth of the
                               memory is the cache of chunks read back from disk. Items, and
                               chunks below 1 KiB, stay in memory: if they fill it, the policy
                               of the store applies, as with max_bytes. Rollouts may take a third
                               of it in addition, or of max_bytes if that is less. 0:
                               everything is in memory */
    uint64_t run_bytes; /* > 0: the most bytes of all runs (reprise/runs.h), set before they are
                           loaded. 0: as the store has it, at first 64 MiB. A server sets it
                           again, to its own limit */
    bool checkpoint_at_end; /* rp_durable_close() writes a last checkpoint */
    bool salvage;           /* load the readable part of damaged data, and report the rest */
    bool accept_changes; /* load the items of tables that now have other selectors than saved */
    /* Called at least once a second, on the thread that does the work. May be NULL. */
    void (*on_progress)(void *ctx, const rp_durable_progress *progress);
    /* Called with a text for an operator: a checkpoint failed or the journal cannot be written
     * (degraded), or works again. May be NULL. */
    void (*on_event)(void *ctx, bool degraded, const char *text);
    void *ctx;
} rp_durable_options;

/* Loads the directory into `store`, whose tables must be new, and starts the threads of the
 * mode. Creates tables that are saved and missing in the store. Tables that are saved and
 * present must have the same signature and, unless accept_changes is set, the same selectors;
 * they get all other options as saved, but keep their max_size if it is larger. The store is
 * borrowed and must outlive the rp_durable.
 * RP_INVALID, RP_PRECONDITION (the store has an rp_durable already: names its directory;
 * another process uses the directory; a newer format; tables that differ: names them),
 * RP_CORRUPT (names file, offset and reason; nothing on disk was changed, except that damaged
 * files may have moved to quarantine), RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_API RP_NODISCARD rp_status rp_durable_open(const rp_durable_options *options,
                                              rp_store *store, rp_durable **out, rp_error *err);

/* Writes a last checkpoint if checkpoint_at_end, syncs and seals the journal, and frees
 * `durable` in every case. Returns the status of the first write that failed. Call it before
 * the store is freed and when no thread uses `durable` any more. NULL is fine. */
RP_API RP_NODISCARD rp_status rp_durable_close(rp_durable *durable, rp_error *err);

/* Writes a checkpoint and waits for it. If a checkpoint is being written that began before this
 * call, waits for the next one. `path` (may be NULL, `path_bytes` long) gets the absolute path
 * of its manifest. RP_NO_RESOURCE (disk full), RP_UNAVAILABLE, RP_DEADLINE and RP_CANCELLED
 * (the checkpoint is written all the same). */
RP_API RP_NODISCARD rp_status rp_durable_checkpoint(rp_durable *durable, rp_wait wait,
                                                    char *path, size_t path_bytes,
                                                    rp_error *err);

typedef struct rp_durable_info {
    rp_durability mode;
    bool degraded;
    char trouble[RP_ERROR_TEXT_BYTES];        /* the reason, if degraded */
    uint64_t checkpoints, failed_checkpoints; /* since the directory was opened */
    uint64_t last_checkpoint;                 /* number of the latest one; 0: none */
    int64_t last_checkpoint_age_ns; /* time since it was written; -1: an earlier process wrote
                                       it, or there is none */
    /* Time to write the latest one; time for which all tables were locked for it. */
    int64_t last_checkpoint_took_ns, last_pause_ns;
    uint64_t last_checkpoint_bytes; /* written by it */
    uint64_t lsn, safe_lsn; /* number of the last change in the journal; of the last change that
                               is as safe as the mode promises */
    uint64_t backlog_bytes, max_backlog_bytes; /* that wait in memory for the journal; from the
                                                  second on, changes wait */
    uint64_t segments, disk_bytes, live_bytes; /* segment files; their bytes; those in use */
    /* By rp_durable_open(): items of all tables, those of the journal included; journal records
     * redone; bytes cut off at the end of the journal. */
    uint64_t recovered_items, recovered_records, torn_bytes;
    uint64_t resident_bytes, spilled_bytes, loads, load_bytes; /* of the disk tier */
    uint64_t load_hits; /* chunks on disk that a sample found in the tier's read cache */
    rp_durable_progress progress; /* of the running operation; `what` is NULL if none runs */
} rp_durable_info;

RP_API void rp_durable_get_info(rp_durable *durable, rp_durable_info *out);

RP_END_DECLS

#endif
