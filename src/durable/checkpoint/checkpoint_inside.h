/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint that is being written, shared by
 *
 *   checkpoint.c            the cut, the order of the steps, clean-up
 *   checkpoint_rollouts.c   step 2: rollouts go to a file of their own
 *   checkpoint_segments.c   step 2: chunks and blocks of slots go to segments
 *   checkpoint_chunks.c     puts the new chunks of a block
 *   checkpoint_manifest.c   step 3: the manifest
 *
 * Invariants:
 *
 *   P1  `moving` and `segments` are ascending, without duplicates;
 *   P2  the blocks of `kept` are those of the tables of the cut, in order;
 *   P3  a block that is not fresh borrows its shares from the checkpoint before. */
#ifndef RP_DURABLE_CHECKPOINT_CHECKPOINT_INSIDE_H
#define RP_DURABLE_CHECKPOINT_CHECKPOINT_INSIDE_H

#include "durable/checkpoint/checkpointer.h"
#include "durable/checkpoint/flusher.h"

enum { RP_SLOT_BLOCK_BYTES = RP_SLOTS_PER_BLOCK * sizeof(rp_slot) };

typedef struct rp_checkpoint_run {
    rp_checkpointer *c;
    rp_cut *cut;
    rp_table **tables; /* references */
    size_t table_count;
    rp_store_state store;
    uint64_t lsn;
    rp_kept_tables kept; /* the blocks of this checkpoint so far */
    uint64_t *moving;    /* segments to be vacated */
    size_t moving_count, moving_capacity;
    rp_manifest_segment *segments; /* that this checkpoint needs */
    size_t segment_count, segment_capacity;
    rp_image image;
    rp_buf payload;
    rp_slot *slots;         /* of one block */
    uint64_t chunk_bytes;   /* of chunks that were not on disk */
    uint64_t first_segment; /* segments that it creates have this number or a higher one */
    uint64_t covered;       /* becomes c->covered if the checkpoint succeeds */
    rp_manifest_rollouts rollouts;
    bool is_trial; /* the cut only finds the chunks that tables have now */
    rp_flusher flusher;
    bool is_alone;    /* does not use the flusher any more: the tables are in use */
    bool has_written; /* a part of this checkpoint may be in segments on disk */
    rp_checkpoint_result result;
} rp_checkpoint_run;

/* Sets is_spared of the segments in which the cut has chunks that the last checkpoint did not
 * have, and clears it of the others. */
void rp_checkpoint_spare_segments(rp_checkpoint_run *r);
/* Chooses the segments to be vacated: the damaged ones, and those with little live data, lowest
 * number first, as long as their live data may be moved. */
RP_NODISCARD rp_status rp_checkpoint_choose_moving(rp_checkpoint_run *r, rp_error *err);
/* Puts the chunks of r->slots that have no location yet. */
RP_NODISCARD rp_status rp_checkpoint_put_new(rp_checkpoint_run *r, rp_error *err);
/* Writes and syncs the blocks and chunks of all tables. */
RP_NODISCARD rp_status rp_checkpoint_write_segments(rp_checkpoint_run *r, rp_error *err);

/* Writes and syncs the file of the rollouts, if there are any, and sets r->rollouts. */
RP_NODISCARD rp_status rp_checkpoint_write_rollouts(rp_checkpoint_run *r, rp_error *err);
/* Removes the file of a checkpoint that has failed. */
void rp_checkpoint_discard_rollouts(const rp_checkpoint_run *r);
/* Bytes of the files that are removed once this checkpoint is complete, on a full disk. */
uint64_t rp_checkpoint_old_rollouts(const rp_checkpoint_run *r);

/* Computes r->segments from the blocks. */
RP_NODISCARD rp_status rp_checkpoint_list_segments(rp_checkpoint_run *r, rp_error *err);
RP_NODISCARD rp_status rp_checkpoint_write_manifest(rp_checkpoint_run *r, const char *path,
                                                    rp_current *current, rp_error *err);
/* Reads the manifest as recovery does, and checks that its segments exist. */
RP_NODISCARD rp_status rp_checkpoint_verify_manifest(rp_checkpoint_run *r, const char *path,
                                                     const rp_current *current, rp_error *err);

#endif
