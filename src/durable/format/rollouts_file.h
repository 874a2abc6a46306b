/* SPDX-License-Identifier: Apache-2.0 */
/* The file rollouts/<n> of checkpoint n. It has the state of all rollouts objects of the store.
 * A rollouts object is a named buffer of groups of items (reprise/rollouts.h).
 * docs/checkpoint.md specifies the bytes.
 *
 *   BEGIN PIECE*   for each rollouts object: its image, which is its serialised state
 *                  (rollouts/rollouts_image.h). BEGIN has the name, and the LSN (log sequence
 *                  number) of the last operation in the image. Each PIECE is a part of the image
 *   END            the last record: the number of rollouts objects
 *
 * The `number` of a record is its position in the file, from 1. The manifest of the checkpoint
 * has the number of rollouts objects, the size of the file, and a hash of all records before
 * END. */
#ifndef RP_DURABLE_FORMAT_ROLLOUTS_FILE_H
#define RP_DURABLE_FORMAT_ROLLOUTS_FILE_H

#include "durable/format/manifest.h"
#include "rollouts/rollout_set.h"

typedef struct rp_rollouts_write_options {
    const rp_allocator *alloc;
    rp_files *files;
    rp_store_id store;
    uint64_t checkpoint;
    uint64_t lsn; /* every operation up to this LSN is in the images */
    rp_rollouts *const *rollouts;
    size_t count;
} rp_rollouts_write_options;

/* Takes the images of options->rollouts, one after the other, and writes and syncs the file and
 * its folder. Sets `count`, `bytes` and `hash` of `out`. After a failure there is no file.
 * Errors: RP_NO_RESOURCE (disk or memory), RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_rollouts_file_write(const rp_rollouts_write_options *options,
                                              rp_manifest_rollouts *out, rp_error *err);

/* Rollouts that were read. */
typedef struct rp_rollouts_found {
    struct {
        rp_rollouts *rollouts; /* a reference */
        uint64_t lsn;          /* LSN of the last operation in its image */
    } at[RP_ROLLOUT_SET_COUNT];
    size_t count;
    uint64_t records, end; /* number of good records from the first on, and offset of the first
                              byte after them */
    uint64_t left_out;     /* with on_damage: number of images that could not be read */
} rp_rollouts_found;

typedef struct rp_rollouts_read_options {
    const rp_allocator *alloc;
    rp_files *files;
    const rp_store_id *store; /* NULL: any store */
    uint64_t checkpoint;
    const rp_manifest_rollouts *wanted; /* the record of the manifest */
    /* Called for each damage; the images without damage are then read. NULL: if there is
     * damage, reading fails with RP_CORRUPT. */
    void (*on_damage)(void *ctx, const char *text);
    void *ctx;
} rp_rollouts_read_options;

/* Reads the file, and checks that it is the file that `wanted` describes. The caller calls
 * rp_rollouts_found_free() in every case. Errors: RP_CORRUPT (also if the file is missing),
 * RP_PRECONDITION (a newer format), RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollouts_file_read(const rp_rollouts_read_options *options,
                                             rp_rollouts_found *out, rp_error *err);
void rp_rollouts_found_free(rp_rollouts_found *found);

/* Checks that the file has as many bytes as the manifest says. Errors: RP_CORRUPT,
 * RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_rollouts_file_check(rp_files *files, uint64_t checkpoint,
                                              const rp_manifest_rollouts *wanted,
                                              rp_error *err);

#endif
