/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of one size, each kept once.
 *
 * Frames come in order and go in order. One that equals a frame put shortly before gets that
 * one's number; of another, the pieces that equal pieces put shortly before are not kept again.
 * Hashes find candidates, memcmp() decides: what is read is what was put.
 *
 * Not thread-safe: the owner serialises all calls. */
#ifndef RP_BUFFER_FRAMES_H
#define RP_BUFFER_FRAMES_H

#include "buffer/sparse_array.h"

enum { RP_FRAMES_MAX_PIECES = 64 };

/* A frame or piece that was put: its hash, and which one it was. */
typedef struct rp_frame_memo {
    uint64_t hash, number;
} rp_frame_memo;

/* A ring of things in segments: those with numbers tail .. next - 1 are there. */
typedef struct rp_frame_ring {
    rp_sparse_array segments;
    uint64_t tail, next;
    uint64_t window;    /* as far back as new frames look for an equal one */
    uint32_t slot_mask; /* number & slot_mask is its slot */
    uint32_t memo_mask;
    rp_frame_memo *memos; /* by hash; a newer one takes an older one's place */
} rp_frame_ring;

typedef struct rp_frames {
    rp_allocator alloc;
    size_t frame_bytes, piece_bytes; /* the last piece may be shorter */
    uint32_t piece_count;
    rp_frame_ring frames; /* of records: which pieces a frame consists of */
    rp_frame_ring pieces;
} rp_frames;

/* Room for `capacity` frames that are in use at once, plus what the window takes.
 * RP_NO_RESOURCE, with nothing to deinit. */
RP_NODISCARD rp_status rp_frames_init(rp_frames *f, const rp_allocator *alloc,
                                      size_t frame_bytes, size_t capacity);
void rp_frames_deinit(rp_frames *f); /* zeroed memory is fine */

/* Where the next new frame will go: frames that are put from now on may refer to older ones
 * only within the window. What rp_frames_release() wants. */
static inline uint64_t rp_frames_mark(const rp_frames *f)
{
    return f->frames.next;
}

/* Puts a frame; `*slot` is where it is. On failure nothing has changed. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_frames_put(rp_frames *f, const char *data, uint32_t *slot);

/* Undoes every put since the marks were taken with rp_frames_mark() and `pieces.next`. */
void rp_frames_undo(rp_frames *f, uint64_t frame_mark, uint64_t piece_mark);

/* Nobody will ask any more for what was put before `mark` was taken. */
void rp_frames_release(rp_frames *f, uint64_t mark);

/* Copies a frame out. */
void rp_frames_copy(const rp_frames *f, uint32_t slot, char *out);

/* Asks the processor to fetch the list of a frame's pieces, or the beginning of each piece. */
void rp_frames_prefetch_list(const rp_frames *f, uint32_t slot);
void rp_frames_prefetch_pieces(const rp_frames *f, uint32_t slot);

/* Forgets every frame. */
void rp_frames_clear(rp_frames *f);

/* Bytes held. */
size_t rp_frames_memory(const rp_frames *f);

/* True if the frame in the slot is there, with all its pieces: for tests. */
bool rp_frames_check(const rp_frames *f, uint32_t slot);

#endif
