/* SPDX-License-Identifier: Apache-2.0 */
/* Images of rollout buffers (rollouts.h), for checkpoints. An image contains the whole state of
 * a buffer at one instant, as a sequence of pieces, whose format rollouts_image.c describes. A
 * checkpoint stores each piece as a record with a checksum. A cut (rp_rollout_cut) is an image
 * that is being made. Its use:
 *
 *   rp_rollout_cut *cut;
 *   st = rp_rollouts_cut(rollouts, &cut, NULL);
 *   while (rp_rollout_cut_next(cut, &buf)) ... check buf.bad, store and clear buf ...
 *   rp_rollout_cut_free(cut);
 *
 * To load an image, recovery calls rp_rollout_loader_new(), then rp_rollout_loader_add() for
 * each piece in order, then rp_rollout_loader_finish(). */
#ifndef RP_ROLLOUTS_ROLLOUTS_IMAGE_H
#define RP_ROLLOUTS_ROLLOUTS_IMAGE_H

#include "rollouts/rollouts.h"

enum {
    /* A piece ends once it has RP_ROLLOUT_PIECE_BYTES or more. RP_ROLLOUT_MOST_PIECE_BYTES is
     * the size that a piece can reach if its last item is one of the largest. */
    RP_ROLLOUT_PIECE_BYTES = 1 << 20,
    RP_ROLLOUT_MOST_PIECE_BYTES = RP_ROLLOUT_OP_BYTES + 2 * RP_ROLLOUT_PIECE_BYTES,
};

typedef struct rp_rollout_cut rp_rollout_cut;

/* Makes a cut of the present state; the caller owns it. Groups are copied in steps, and the
 * lock of the buffer is released between the steps. Columns are not copied. Operations are
 * allowed between the steps: an operation that changes a group first copies the unchanged group
 * into the cut. If `lsn` is not NULL, sets `*lsn` to the LSN (log sequence number) of the last
 * operation in the image. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollouts_cut(rp_rollouts *rollouts, rp_rollout_cut **out,
                                       uint64_t *lsn);

/* The two parts of rp_rollouts_cut(). rp_rollouts_cut_begin() fixes the instant whose state the
 * image has. rp_rollout_cut_step() copies the next groups; the caller must repeat it until
 * `*more` is false. The caller must free the cut before the buffer. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollouts_cut_begin(rp_rollouts *rollouts, rp_rollout_cut **out,
                                             uint64_t *lsn);
RP_NODISCARD rp_status rp_rollout_cut_step(rp_rollout_cut *cut, bool *more);
/* Appends the next piece to `out`. Returns false if there is none, or if out->bad was already
 * set. If memory runs out, sets out->bad and possibly returns true. So the caller must check
 * out->bad after each call. */
bool rp_rollout_cut_next(rp_rollout_cut *cut, rp_buf *out);
void rp_rollout_cut_free(rp_rollout_cut *cut); /* NULL is fine */

typedef struct rp_rollout_loader rp_rollout_loader;

/* Returns a loader, which the caller owns, or NULL if memory runs out. */
rp_rollout_loader *rp_rollout_loader_new(const rp_allocator *alloc, uint64_t seed);
/* Adds a piece. Returns RP_CORRUPT or RP_NO_RESOURCE if the image cannot be loaded. */
RP_NODISCARD rp_status rp_rollout_loader_add(rp_rollout_loader *loader, const uint8_t *data,
                                             size_t size, rp_error *err);
/* Makes a buffer from the pieces. Returns RP_CORRUPT if pieces are missing or the state breaks
 * an invariant. Other errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_loader_finish(rp_rollout_loader *loader, rp_rollouts **out,
                                                rp_error *err);
void rp_rollout_loader_free(rp_rollout_loader *loader); /* NULL is fine */

/* Computes a hash of the whole state. Equal states have equal digests. Errors:
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollouts_digest(rp_rollouts *rollouts, uint64_t *digest);

#endif
