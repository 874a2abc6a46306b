/* SPDX-License-Identifier: Apache-2.0 */
/* dm-reverb's checkpoints: reading one into a store, and writing a store as one.
 *
 *   <root>/<time>/tables.tfrecord   PriorityTableCheckpoint, one a table
 *                 chunks.tfrecord   ChunkData, each once
 *                 items.tfrecord    PrioritizedItem, grouped by table, oldest first
 *                 DONE              empty; written last
 *
 * Each .tfrecord file is one zlib stream, or plain, around TFRecord framing (tfrecord.h). Files
 * are read and written from one end to the other; what is held in memory besides the store's
 * items and chunks is one record and some 40 bytes an item. The files are hostile input.
 *
 * dm-reverb has no words for these, and they do not survive the way there and back: max_bytes,
 * soft_limit, pauses, extensions, the order of equal priorities in heaps, the state of random
 * generators, the counts of updates and evictions. */
#ifndef RP_DURABLE_REVERB_REVERB_CHECKPOINT_H
#define RP_DURABLE_REVERB_REVERB_CHECKPOINT_H

#include "disk/files.h"
#include "durable/checkpoint/progress.h"
#include "store/store.h"

/* Zero-initialise it; everything has a default. */
typedef struct rp_reverb_options {
    size_t max_record;  /* bytes of the largest record that is read; 0: 1 GiB */
    uint64_t max_bytes; /* of a file, before compression; 0: no limit */
    int64_t wall_ns;    /* what a saved checkpoint is named for; 0: now */
    void (*on_progress)(void *ctx, const rp_durable_progress *progress);
    void *ctx;
} rp_reverb_options;

/* What was read or written. */
typedef struct rp_reverb_report {
    char folder[256]; /* below the files' directory; "": that itself */
    uint64_t tables, items, chunks, unused_chunks;
    uint64_t bytes; /* of the files */
    bool compressed;
    bool old_form; /* of items or chunks: from before 2021 */
} rp_reverb_report;

/* Reads the checkpoint in `files`' directory, or the newest that is complete in a folder there,
 * into `store`: the tables in it are made as they were, or, if there are tables of these names,
 * new and with the same selectors, filled and given the options in the file. Items come in
 * their order without the rate limiters being asked, whose counts are those in the file.
 * `options` and `report` may be NULL. On failure the store's tables are as they were before,
 * and those made are gone.
 *
 * RP_NOT_FOUND (there is none), RP_CORRUPT (names file, record and reason), RP_PRECONDITION (a
 * table that is not new, or has other selectors), RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_reverb_load(rp_files *files, rp_store *store,
                                      const rp_reverb_options *options,
                                      rp_reverb_report *report, rp_error *err);

/* Writes the store as it is at one instant to a new folder in `files`' directory that dm-reverb
 * 0.14 loads, synced, DONE last. Chunks of codecs that it cannot read are encoded anew. All
 * chunks must be in memory. If it
 * fails the files are removed again, and the folder is empty.
 *
 * RP_EXISTS (there is such a folder), RP_PRECONDITION (a cut of one of the tables is being
 * made; two different chunks with one key), RP_UNIMPLEMENTED (a chunk that dm-reverb cannot
 * have), RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_reverb_save(rp_files *files, rp_store *store,
                                      const rp_reverb_options *options,
                                      rp_reverb_report *report, rp_error *err);

enum { RP_REVERB_PATH_BYTES = 288, RP_REVERB_MAX_RECORD = 1 << 30 };

/* The path of a file in a folder. Returns `out`. */
char *rp_reverb_path(char out[RP_REVERB_PATH_BYTES], const char *folder, const char *name);

/* Chunks by key. */
typedef struct rp_reverb_chunks rp_reverb_chunks;
RP_NODISCARD rp_status rp_reverb_chunks_new(const rp_allocator *alloc, rp_reverb_chunks **out);
void rp_reverb_chunks_free(rp_reverb_chunks *index); /* NULL is fine */
/* Adds a chunk, with a reference of its own, unless its key is there. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_reverb_chunks_add(rp_reverb_chunks *index, rp_chunk *chunk);
/* NULL if it is not there. Borrowed, as long as the index. */
rp_chunk *rp_reverb_chunks_get(const rp_reverb_chunks *index, uint64_t key);
size_t rp_reverb_chunks_count(const rp_reverb_chunks *index);
rp_chunk *rp_reverb_chunks_at(const rp_reverb_chunks *index, size_t i);

#endif
