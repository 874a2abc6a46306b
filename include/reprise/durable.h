/* SPDX-License-Identifier: Apache-2.0 */
/* Durability: a store that survives its process.
 *
 * A store and a data directory. Opening loads what is there into the store; from then on
 * checkpoints are written, and with a journal nothing that was acknowledged is lost:
 *
 *   mode                    acknowledged means      process killed            power cut
 *   RP_DURABLE_CHECKPOINT   in memory               since the last checkpoint  the same
 *   RP_DURABLE_INTERVAL     handed to the kernel    nothing                   the last interval
 *   RP_DURABLE_SYNC         on stable storage       nothing                   nothing
 *
 * A checkpoint is of one instant over all tables, stops nobody, and writes only what is new.
 * One process at a time uses a directory. Every call is safe from any thread. */
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

/* What a long operation is at. */
typedef struct rp_durable_progress {
    const char *what;     /* "loading", "replaying", "checkpoint", "verifying". Static */
    uint64_t done, total; /* bytes; total 0: not known yet */
    int64_t elapsed_ns;
    int64_t left_ns; /* estimate; -1: not known */
} rp_durable_progress;

/* Zero-initialise it; fields marked * must be set. */
typedef struct rp_durable_options {
    const char *directory; /* * made if it is not there */
    rp_durability mode;
    int64_t interval_ns;    /* 0: 100 ms */
    int64_t period_ns;      /* between checkpoints; 0: 300 s; RP_FOREVER: on demand only */
    int32_t keep;           /* checkpoints; 0: 3 */
    uint64_t segment_bytes; /* 0: 256 MiB; at most a 64th of the file system, or 1 MiB */
    uint64_t max_memory; /* bytes of tables in memory, as rp_trajectory_cost() counts them, an
                            eighth of it for what was read back; other chunks lie on disk
                            until they are sampled. Items and chunks below 1 KiB stay in
                            memory: if they fill it, the store's policy decides, as with
                            max_bytes. 0: all in memory */
    bool checkpoint_at_end; /* when it is closed in order */
    bool salvage;           /* load what can be read of damaged data, and report the rest */
    bool accept_changes;    /* tables whose selectors differ from those saved: keep the items */
    void (*on_progress)(void *ctx,
                        const rp_durable_progress
                            *progress); /* at least once a second; on the thread that works */
    /* Something a person should know: a checkpoint that failed, a journal that cannot write
     * (degraded), or is well again. */
    void (*on_event)(void *ctx, bool degraded, const char *text);
    void *ctx;
} rp_durable_options;

/* Loads the directory into `store`, whose tables are new, and starts what the mode asks for.
 * Tables that are saved and not in the store are made; those saved and there must have the same
 * selectors and signature, and take the other options as saved, but for a larger max_size. The
 * store is borrowed and must outlive it.
 * RP_INVALID, RP_PRECONDITION (another process has the directory; a newer format; tables that
 * differ: names them),
 * RP_CORRUPT (names file, offset and reason; nothing was changed on disk but what was moved to
 * quarantine), RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_API RP_NODISCARD rp_status rp_durable_open(const rp_durable_options *options,
                                              rp_store *store, rp_durable **out, rp_error *err);

/* Ends it in order: a last checkpoint if so wished, the journal synced and sealed. What could
 * not be written is the status. Call it before the store is freed and when nobody uses it any
 * more. Frees it in every case. NULL is fine. */
RP_API RP_NODISCARD rp_status rp_durable_close(rp_durable *durable, rp_error *err);

/* Writes a checkpoint and waits for it; if one is being written, and began after this call, for
 * that. `path` (may be NULL, `path_bytes` of room) gets where it is: the absolute path of its
 * manifest. RP_NO_RESOURCE (disk full), RP_UNAVAILABLE, RP_DEADLINE and RP_CANCELLED (it goes
 * on without you). */
RP_API RP_NODISCARD rp_status rp_durable_checkpoint(rp_durable *durable, rp_wait wait,
                                                    char *path, size_t path_bytes,
                                                    rp_error *err);

typedef struct rp_durable_info {
    rp_durability mode;
    bool degraded;
    char trouble[RP_ERROR_TEXT_BYTES];
    uint64_t checkpoints, failed_checkpoints; /* since it was opened */
    uint64_t last_checkpoint;                 /* its number; 0: none */
    int64_t last_checkpoint_age_ns; /* -1: it was there when it was opened, or there is none */
    int64_t last_checkpoint_took_ns, last_pause_ns;
    uint64_t last_checkpoint_bytes; /* written by it */
    uint64_t lsn, safe_lsn;
    uint64_t segments, disk_bytes, live_bytes;
    uint64_t recovered_items, recovered_records, torn_bytes;   /* when it was opened */
    uint64_t resident_bytes, spilled_bytes, loads, load_bytes; /* of the disk tier */
    rp_durable_progress progress; /* of what runs now; what: NULL: nothing does */
} rp_durable_info;

RP_API void rp_durable_get_info(rp_durable *durable, rp_durable_info *out);

RP_END_DECLS

#endif
