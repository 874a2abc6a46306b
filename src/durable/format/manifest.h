/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the manifest of a checkpoint, which lists what the checkpoint consists of,
 * and the file CURRENT, which names the checkpoint that recovery loads. docs/checkpoint.md
 * specifies the bytes.
 *
 *   STORE                  one, first: number of the checkpoint, LSN (log sequence number) of
 *                          its last change, seed and key generator of the store
 *   ROLLOUTS               at most one: describes the file rollouts/<n>
 *   TABLE LOCATIONS* SET*  for each table: its state, the locations of its blocks (256 slots
 *                          each), and the order of its dense sets (arrays from which slots are
 *                          drawn uniformly)
 *   SEGMENTS*              the segments that the checkpoint needs, ascending
 *   END                    one, last: counts, and the XXH3-128 of all records before it
 *
 * The `number` of a record is its position in the file, from 1. Every record is small, so a
 * manifest of any size is written and read record by record. */
#ifndef RP_DURABLE_FORMAT_MANIFEST_H
#define RP_DURABLE_FORMAT_MANIFEST_H

#include "durable/format/image.h"
#include "util/rng.h"

enum {
    RP_MANIFEST_MAX_TABLES = 4096,
    RP_MANIFEST_LOCATIONS = 4096, /* the most locations in one record */
    RP_MANIFEST_SLOTS = 1 << 16,  /* the most slots of a set in one record */
    RP_MANIFEST_SEGMENTS = 4096,  /* the most segments in one record */
    RP_MANIFEST_PATH_BYTES = 40,
    RP_MANIFEST_HASH_BYTES = 16,
};

/* Writes the path of a manifest, "manifest/" and 16 hexadecimal digits. Returns `out`. */
char *rp_manifest_path(char out[RP_MANIFEST_PATH_BYTES], uint64_t checkpoint);
/* Writes the temporary path that a manifest has while it is being written. Returns `out`. */
char *rp_manifest_temporary(char out[RP_MANIFEST_PATH_BYTES], uint64_t checkpoint);
/* Writes the path of a manifest that has failed verification. Returns `out`. */
char *rp_manifest_quarantined(char out[RP_MANIFEST_PATH_BYTES], uint64_t checkpoint);
#define RP_CURRENT_PATH "CURRENT"
#define RP_CURRENT_TEMPORARY "CURRENT.tmp"

/* Describes the file with the rollouts of a checkpoint (format/rollouts_file.h). The rollouts
 * (named buffers of groups of items, reprise/rollouts.h) can be newer than the tables of the
 * same checkpoint. */
typedef struct rp_manifest_rollouts {
    bool is_there;  /* the manifest has this record. If false, there are no rollouts, and all
                       other members are 0 */
    uint32_t count; /* 0: there is no file */
    uint64_t bytes; /* size of the file */
    /* The last LSN of the journal when the images (serialised states) of all rollouts had been
     * taken. It is at least rp_manifest_store.lsn, and at least the LSN of each image. */
    uint64_t lsn;
    uint8_t hash[RP_MANIFEST_HASH_BYTES]; /* XXH3-128 of all records before END in the file */
} rp_manifest_rollouts;

typedef struct rp_manifest_store {
    uint64_t checkpoint; /* number of the checkpoint, from 1 */
    uint64_t lsn;        /* LSN of the last change in the checkpoint */
    uint64_t seed;
    rp_rng keys;           /* the key generator of the store */
    int64_t written_at_ns; /* by the wall clock, for users */
    uint32_t table_count;
    rp_manifest_rollouts rollouts;
} rp_manifest_store;

typedef struct rp_manifest_block {
    rp_disk_location location;
    uint64_t hash; /* XXH3-64 of the payload: detects that a location has another valid block */
} rp_manifest_block;

typedef struct rp_manifest_segment {
    uint64_t number;
    uint64_t bytes; /* the checkpoint needs only the first `bytes` bytes of the file */
    uint64_t live;  /* approximate bytes of the records that the checkpoint needs */
} rp_manifest_segment;

/* A table of a manifest in memory. */
typedef struct rp_manifest_table {
    rp_table_state state; /* the manifest owns options.name and options.signature */
    uint64_t block_count;
    rp_manifest_block *blocks;
    uint32_t *sets[2]; /* dense sets of sampler and remover, each with state.set_counts slots */
    /* private */
    size_t block_capacity, set_capacities[2];
} rp_manifest_table;

typedef struct rp_manifest {
    rp_allocator alloc;
    rp_store_id store_id;
    rp_manifest_store store;
    rp_manifest_table *tables;
    size_t table_count;
    rp_manifest_segment *segments;
    size_t segment_count;
    uint64_t bytes; /* size of the file */
    uint8_t hash[RP_MANIFEST_HASH_BYTES];
    /* private */
    size_t table_capacity, segment_capacity;
} rp_manifest;

void rp_manifest_free(rp_manifest *manifest); /* NULL is fine */

uint64_t rp_manifest_hash_block(const void *payload, size_t size);

/* A reader: builds a manifest from its records, in order, and checks them. */
typedef struct rp_manifest_reader rp_manifest_reader;

/* Makes a reader. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_manifest_reader_new(const rp_allocator *alloc,
                                              rp_manifest_reader **out);
void rp_manifest_reader_free(rp_manifest_reader *reader); /* NULL is fine */
/* Adds the next record. Errors: RP_CORRUPT, RP_NO_RESOURCE. After a failure the caller must not
 * add more records. */
RP_NODISCARD rp_status rp_manifest_reader_add(rp_manifest_reader *reader,
                                              const rp_record *record, rp_error *err);
/* Returns the manifest; the caller owns it. Errors: RP_CORRUPT (END was not added, or a block
 * is in a segment that is not listed). */
RP_NODISCARD rp_status rp_manifest_reader_take(rp_manifest_reader *reader, rp_manifest **out,
                                               rp_error *err);

/* Reads the manifest of a checkpoint, and checks that it belongs to `store` (NULL: any store).
 * The caller owns `*out`. Errors: RP_NOT_FOUND, RP_CORRUPT, RP_PRECONDITION (a newer format),
 * RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_manifest_load(const rp_allocator *alloc, rp_files *files,
                                        const char *path, uint64_t checkpoint,
                                        const rp_store_id *store, rp_manifest **out,
                                        rp_error *err);

/* A writer of a manifest. After a failure all further calls do nothing, and
 * rp_manifest_writer_finish() returns the status of the failure. Only one thread may use it. */
typedef struct rp_manifest_writer rp_manifest_writer;

/* Creates the file at `path`; replaces an existing one. */
RP_NODISCARD rp_status rp_manifest_writer_new(const rp_allocator *alloc, rp_files *files,
                                              const char *path, const rp_store_id *id,
                                              const rp_manifest_store *store,
                                              rp_manifest_writer **out, rp_error *err);
void rp_manifest_writer_free(rp_manifest_writer *w); /* NULL is fine; the file stays */

/* These functions add one table, and blocks and slots of the table that was added last. The
 * caller may add tables in any order. After each table it must add all blocks of the table in
 * order, and then all slots of its dense sets in order; it may divide blocks and slots among
 * several calls. `which` is the index in rp_manifest_table.sets. */
void rp_manifest_add_table(rp_manifest_writer *w, const rp_table_state *state,
                           uint64_t block_count);
void rp_manifest_add_blocks(rp_manifest_writer *w, const rp_manifest_block *blocks,
                            size_t count);
void rp_manifest_add_set(rp_manifest_writer *w, int which, const uint32_t *slots, size_t count);
/* Adds segments, in ascending order. The caller must add them after all tables. */
void rp_manifest_add_segments(rp_manifest_writer *w, const rp_manifest_segment *segments,
                              size_t count);
/* Writes END and syncs. Returns the status of the first failure. */
RP_NODISCARD rp_status rp_manifest_writer_finish(rp_manifest_writer *w, uint64_t *bytes,
                                                 uint8_t hash[RP_MANIFEST_HASH_BYTES],
                                                 rp_error *err);

typedef struct rp_current {
    rp_store_id store_id;
    uint64_t checkpoint;
    uint64_t bytes; /* size of the manifest of that checkpoint */
    uint8_t hash[RP_MANIFEST_HASH_BYTES];
} rp_current;

enum { RP_CURRENT_BYTES = RP_FILE_HEADER_BYTES + RP_RECORD_HEADER_BYTES + 32 };

void rp_current_encode(const rp_current *current, uint8_t out[RP_CURRENT_BYTES]);
/* Decodes the bytes of CURRENT. Errors: RP_CORRUPT, RP_PRECONDITION (a newer format). */
RP_NODISCARD rp_status rp_current_decode(const uint8_t *data, size_t size, rp_current *out,
                                         rp_error *err);
/* Reads and decodes CURRENT. Errors: RP_NOT_FOUND, and those of rp_current_decode(). */
RP_NODISCARD rp_status rp_current_load(rp_files *files, rp_current *out, rp_error *err);
/* Writes CURRENT under its temporary name and syncs the file. */
RP_NODISCARD rp_status rp_current_prepare(rp_files *files, const rp_current *current,
                                          rp_error *err);
/* Renames the temporary file to CURRENT and syncs the directory. If the call fails, it is not
 * known whether CURRENT names the old or the new checkpoint. */
RP_NODISCARD rp_status rp_current_switch(rp_files *files, rp_error *err);

#endif
