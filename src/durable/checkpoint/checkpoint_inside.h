/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a checkpoint that is being written (checkpoint.h has the steps), shared by
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
 *   P2  `kept` has the blocks of the tables of the cut, in order;
 *   P3  a block that is not fresh borrows its shares from the previous checkpoint
 *       (catalogue.h). */
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
    uint64_t *moving;    /* numbers of the segments to be vacated */
    size_t moving_count, moving_capacity;
    rp_manifest_segment *segments; /* the segments that this checkpoint needs */
    size_t segment_count, segment_capacity;
    rp_image image;
    rp_buf payload;
    rp_slot *slots;         /* the slots of one block */
    uint64_t chunk_bytes;   /* bytes of the chunks that were not on disk */
    uint64_t first_segment; /* number of the first segment that this checkpoint creates */
    uint64_t covered;       /* becomes c->covered if the checkpoint succeeds */
    rp_manifest_rollouts rollouts;
    bool is_trial; /* true: no checkpoint is written; the run only finds out which chunks the
                      tables have */
    rp_flusher flusher;
    bool is_alone; /* the flusher is no longer used, since other threads use the tables or there
                      is only one processor */
    bool has_written; /* a part of this checkpoint is possibly in segments on disk */
    rp_checkpoint_result result;
} rp_checkpoint_run;

/* Sets is_spared of each segment in which the cut has a chunk that the last checkpoint did not
 * have. Clears is_spared of all other segments. */
void rp_checkpoint_spare_segments(rp_checkpoint_run *r);
/* Chooses the segments to be vacated (checkpoint.h, "Compaction"): first the damaged segments,
 * then segments with little live data, lowest number first, until the limit of bytes to be
 * moved is reached. */
RP_NODISCARD rp_status rp_checkpoint_choose_moving(rp_checkpoint_run *r, rp_error *err);
/* Puts the chunks of r->slots that have no location yet into the segments. */
RP_NODISCARD rp_status rp_checkpoint_put_new(rp_checkpoint_run *r, rp_error *err);
/* Writes and syncs the blocks and chunks of all tables. */
RP_NODISCARD rp_status rp_checkpoint_write_segments(rp_checkpoint_run *r, rp_error *err);

/* Writes and syncs the file of the rollouts, if there are any, and sets r->rollouts. */
RP_NODISCARD rp_status rp_checkpoint_write_rollouts(rp_checkpoint_run *r, rp_error *err);
/* Removes the file of the rollouts after the checkpoint has failed. */
void rp_checkpoint_discard_rollouts(const rp_checkpoint_run *r);
/* Returns the bytes of the files of rollouts of older checkpoints. On a full disk these files
 * are removed when this checkpoint is complete. */
uint64_t rp_checkpoint_old_rollouts(const rp_checkpoint_run *r);

/* Computes r->segments from the blocks. */
RP_NODISCARD rp_status rp_checkpoint_list_segments(rp_checkpoint_run *r, rp_error *err);
RP_NODISCARD rp_status rp_checkpoint_write_manifest(rp_checkpoint_run *r, const char *path,
                                                    rp_current *current, rp_error *err);
/* Reads the manifest as recovery does, and checks that its segments exist. */
RP_NODISCARD rp_status rp_checkpoint_verify_manifest(rp_checkpoint_run *r, const char *path,
                                                     const rp_current *current, rp_error *err);

#endif
