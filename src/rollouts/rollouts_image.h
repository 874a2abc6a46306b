/* SPDX-License-Identifier: Apache-2.0 */
/* Images of rollouts, for checkpoints. An image is a sequence of pieces; rollouts_image.c has
 * their format. A checkpoint stores each piece as a record, with a checksum.
 *
 *   rp_rollout_cut *cut;
 *   st = rp_rollouts_cut(rollouts, &cut);
 *   while (rp_rollout_cut_next(cut, &buf)) ... store and clear buf ...
 *   rp_rollout_cut_free(cut);
 *
 * Loading is the reverse: rp_rollout_loader_new(), _add() for each piece in order, _finish().
 */
#ifndef RP_ROLLOUTS_ROLLOUTS_IMAGE_H
#define RP_ROLLOUTS_ROLLOUTS_IMAGE_H

#include "rollouts/rollouts.h"

enum {
    /* A bound on one piece: an item, or the groups and leases of RP_ROLLOUT_PIECE_BYTES and one
     * more. */
    RP_ROLLOUT_PIECE_BYTES = 1 << 20,
    RP_ROLLOUT_MOST_PIECE_BYTES = RP_ROLLOUT_OP_BYTES + 2 * RP_ROLLOUT_PIECE_BYTES,
};

typedef struct rp_rollout_cut rp_rollout_cut;

/* Takes the state at one instant. Columns are not copied; groups are copied in steps, between
 * which the lock is released. Operations go on meanwhile: those that change a group copy it
 * first. If `lsn` is not NULL, sets it to the LSN of the last operation in the image. Returns
 * owned. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollouts_cut(rp_rollouts *rollouts, rp_rollout_cut **out,
                                       uint64_t *lsn);

/* The parts of rp_rollouts_cut(): takes the instant, and copies the next groups, until `*more`
 * is false. Free the cut before the rollouts. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollouts_cut_begin(rp_rollouts *rollouts, rp_rollout_cut **out,
                                             uint64_t *lsn);
RP_NODISCARD rp_status rp_rollout_cut_step(rp_rollout_cut *cut, bool *more);
/* Appends the next piece. False if there is none, or if `out` is bad: there was no memory. */
bool rp_rollout_cut_next(rp_rollout_cut *cut, rp_buf *out);
void rp_rollout_cut_free(rp_rollout_cut *cut); /* NULL is fine */

typedef struct rp_rollout_loader rp_rollout_loader;

/* Returns owned, or NULL if there is no memory. */
rp_rollout_loader *rp_rollout_loader_new(const rp_allocator *alloc, uint64_t seed);
/* Adds a piece. RP_CORRUPT, RP_NO_RESOURCE: then the image cannot be loaded. */
RP_NODISCARD rp_status rp_rollout_loader_add(rp_rollout_loader *loader, const uint8_t *data,
                                             size_t size, rp_error *err);
/* Makes rollouts of the pieces. RP_CORRUPT (pieces are missing, or the state breaks an
 * invariant), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_loader_finish(rp_rollout_loader *loader, rp_rollouts **out,
                                                rp_error *err);
void rp_rollout_loader_free(rp_rollout_loader *loader); /* NULL is fine */

/* A hash of the whole state: equal states have equal digests. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollouts_digest(rp_rollouts *rollouts, uint64_t *digest);

#endif
