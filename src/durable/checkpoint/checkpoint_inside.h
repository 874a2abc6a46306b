/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint that is being written, for the files that make it up:
 *
 *   checkpoint.c            the cut, the order of steps, the end
 *   checkpoint_segments.c   chunks and blocks of slots go into segments
 *   checkpoint_manifest.c   the manifest that lists them
 */
#ifndef RP_DURABLE_CHECKPOINT_CHECKPOINT_INSIDE_H
#define RP_DURABLE_CHECKPOINT_CHECKPOINT_INSIDE_H

#include "durable/checkpoint/checkpoint.h"

enum { RP_SLOT_BLOCK_BYTES = RP_SLOTS_PER_BLOCK * sizeof(rp_slot) };

/* A checkpoint that is being written. */
typedef struct rp_checkpoint_run {
    rp_checkpointer *c;
    rp_cut *cut;
    rp_table **tables; /* references */
    size_t table_count;
    rp_store_state store;
    uint64_t lsn;
    rp_kept_tables kept; /* what it consists of so far */
    uint64_t *moving;    /* segments to be emptied, ascending */
    size_t moving_count, moving_capacity;
    rp_manifest_segment *segments; /* that it needs, ascending */
    size_t segment_count, segment_capacity;
    rp_image image;
    rp_buf payload;
    rp_slot *slots;       /* of one block */
    uint64_t chunk_bytes; /* of chunks that were not on disk */
    rp_checkpoint_result result;
} rp_checkpoint_run;

/* The segments that are damaged; and those that have little that is live, the first of them
 * first, as far as what is live there may be moved. */
RP_NODISCARD rp_status rp_checkpoint_choose_moving(rp_checkpoint_run *r, rp_error *err);
/* Writes all tables and syncs them. */
RP_NODISCARD rp_status rp_checkpoint_write_segments(rp_checkpoint_run *r, rp_error *err);

RP_NODISCARD rp_status rp_checkpoint_list_segments(rp_checkpoint_run *r, rp_error *err);
RP_NODISCARD rp_status rp_checkpoint_write_manifest(rp_checkpoint_run *r, const char *path,
                                                    rp_current *current, rp_error *err);
/* Reads it as recovery would: every record, and that the segments are there. */
RP_NODISCARD rp_status rp_checkpoint_verify_manifest(rp_checkpoint_run *r, const char *path,
                                                     const rp_current *current, rp_error *err);

#endif
