/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a checkpoint of dm-reverb (Reverb's own format) into a store, and saves a store in this
 * format.
 *
 *   <root>/<time>/tables.tfrecord   PriorityTableCheckpoint, one for each table
 *                 chunks.tfrecord   ChunkData, one for each chunk
 *                 items.tfrecord    PrioritizedItem, grouped by table, oldest first
 *                 DONE              empty; written last
 *
 * Each .tfrecord file has TFRecord framing (tfrecord.h), and can be compressed as one zlib
 * stream. Files are read and written sequentially. In addition to the items and chunks of the
 * store, a load or save needs memory for one record of a file, and about 40 bytes for each
 * item. Reading malicious files is safe.
 *
 * The format of dm-reverb has no fields for the following, so they are lost in an export:
 * max_bytes, soft_limit, whether inserts or samples are paused, extensions, the order of equal
 * priorities in heaps, the state of random generators, the counts of updates and evictions. */
#ifndef RP_DURABLE_REVERB_REVERB_CHECKPOINT_H
#define RP_DURABLE_REVERB_REVERB_CHECKPOINT_H

#include "disk/files.h"
#include "durable/checkpoint/progress.h"
#include "store/store.h"

/* The caller zero-initialises the struct; every field has a default for 0. */
typedef struct rp_reverb_options {
    size_t max_record;  /* size of the largest accepted record, in bytes; 0: 1 GiB */
    uint64_t max_bytes; /* largest size of an uncompressed file; 0: no limit */
    int64_t wall_ns;    /* the time in the name of a saved checkpoint; 0: now */
    void (*on_progress)(void *ctx, const rp_durable_progress *progress);
    void *ctx;
} rp_reverb_options;

/* Describes the checkpoint that was read or written. */
typedef struct rp_reverb_report {
    char folder[256]; /* path below the directory of `files`; "": that directory itself */
    uint64_t tables, items, chunks, unused_chunks;
    uint64_t bytes; /* sum of the sizes of the files */
    bool compressed;
    bool old_form; /* items or chunks have the form that was used before 2021 */
} rp_reverb_report;

/* Loads a checkpoint into `store`: the checkpoint in the directory of `files`, or the newest
 * complete checkpoint in a folder of that directory. Creates the tables of the checkpoint. If
 * the store already has a table with the name of a table in the file, the existing table must
 * never have held an item and must have the same selectors. The existing table gets the options
 * in the file. Items are inserted in order, without waiting for the rate limiters. The rate
 * limiters get the counts in the file. `options` and `report` may be NULL. On failure the
 * tables of the store are unchanged, and created tables are dropped.
 *
 * Errors: RP_NOT_FOUND (there is no checkpoint), RP_CORRUPT (names file, record and reason),
 * RP_PRECONDITION (a table is not new, or has other selectors), RP_NO_RESOURCE,
 * RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_reverb_load(rp_files *files, rp_store *store,
                                      const rp_reverb_options *options,
                                      rp_reverb_report *report, rp_error *err);

/* Saves the state of the store at one instant to a new folder in the directory of `files`, in
 * the format of dm-reverb 0.14. Syncs all files; DONE is written last. Chunks whose codec
 * dm-reverb cannot read are encoded again. All chunks must be in memory. On failure, the files
 * are removed and an empty folder stays.
 *
 * Errors: RP_EXISTS (the folder exists), RP_PRECONDITION (another snapshot of one of the tables
 * is in progress (table/snapshot/cut.h); the store has a disk tier; two different chunks have
 * the same key), RP_UNIMPLEMENTED (a chunk that the format cannot express), RP_NO_RESOURCE,
 * RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_reverb_save(rp_files *files, rp_store *store,
                                      const rp_reverb_options *options,
                                      rp_reverb_report *report, rp_error *err);

enum { RP_REVERB_PATH_BYTES = 288, RP_REVERB_MAX_RECORD = 1 << 30 };

/* Writes the path of the file `name` in `folder`. Returns `out`. */
char *rp_reverb_path(char out[RP_REVERB_PATH_BYTES], const char *folder, const char *name);

/* A list of chunks in the order in which they were added, with look-up by key. Only one thread
 * may use it. */
typedef struct rp_reverb_chunks rp_reverb_chunks;
RP_NODISCARD rp_status rp_reverb_chunks_new(const rp_allocator *alloc, rp_reverb_chunks **out);
void rp_reverb_chunks_free(rp_reverb_chunks *index); /* NULL is fine */
/* If the list has no chunk with the key of `chunk`, adds `chunk` with a new reference. Errors:
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_reverb_chunks_add(rp_reverb_chunks *index, rp_chunk *chunk);
/* Returns the chunk with a key, borrowed from the list, or NULL. */
rp_chunk *rp_reverb_chunks_get(const rp_reverb_chunks *index, uint64_t key);
size_t rp_reverb_chunks_count(const rp_reverb_chunks *index);
rp_chunk *rp_reverb_chunks_at(const rp_reverb_chunks *index, size_t i);

#endif
