/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of one size, stored without duplicates.
 *
 * Frames are added and released in order. If a new frame equals a frame added shortly before,
 * it gets the slot of that frame. Otherwise the frame is divided into pieces, and a piece that
 * equals a piece added shortly before is not stored again. Hashes find candidates and memcmp()
 * decides, so that a reader gets exactly the bytes that were added.
 *
 * Not thread-safe: the owner serialises all calls. */
#ifndef RP_BUFFER_FRAMES_H
#define RP_BUFFER_FRAMES_H

#include "buffer/sparse_array.h"

enum { RP_FRAMES_MAX_PIECES = 64 };

/* The hash and the number of a frame or piece. */
typedef struct rp_frame_memo {
    uint64_t hash, number;
} rp_frame_memo;

/* A ring of elements in segments; it holds the elements with numbers [tail, next). */
typedef struct rp_frame_ring {
    rp_sparse_array segments;
    uint64_t tail, next;
    uint64_t window;    /* a new element is compared with so many elements before it */
    uint32_t slot_mask; /* the slot of an element is its number & slot_mask */
    uint32_t memo_mask;
    rp_frame_memo *memos; /* by hash; a new memo overwrites an old one */
} rp_frame_ring;

typedef struct rp_frames {
    rp_allocator alloc;
    size_t frame_bytes, piece_bytes; /* the last piece may be shorter */
    uint32_t piece_count;
    rp_frame_ring frames; /* a ring of records; a record lists the pieces of a frame */
    rp_frame_ring pieces;
} rp_frames;

/* Prepares for `capacity` frames in use at once, in addition to the window. RP_NO_RESOURCE,
 * with nothing to deinit. */
RP_NODISCARD rp_status rp_frames_init(rp_frames *f, const rp_allocator *alloc,
                                      size_t frame_bytes, size_t capacity);
void rp_frames_deinit(rp_frames *f); /* zeroed memory is fine */

/* The number of the next new frame, for rp_frames_release(). From now on, rp_frames_put()
 * returns no slot of a frame with a number below this mark less the window. */
static inline uint64_t rp_frames_mark(const rp_frames *f)
{
    return f->frames.next;
}

/* Adds a frame and writes its slot. RP_NO_RESOURCE, with nothing changed. */
RP_NODISCARD rp_status rp_frames_put(rp_frames *f, const char *data, uint32_t *slot);

/* Undoes every rp_frames_put() since the marks were read with rp_frames_mark() and
 * `pieces.next`. */
void rp_frames_undo(rp_frames *f, uint64_t frame_mark, uint64_t piece_mark);

/* Releases the frames that no rp_frames_put() since `mark` can have returned. */
void rp_frames_release(rp_frames *f, uint64_t mark);

/* Copies a frame out. */
void rp_frames_copy(const rp_frames *f, uint32_t slot, char *out);

/* Prefetch the list of the pieces of a frame, and the beginning of each piece. */
void rp_frames_prefetch_list(const rp_frames *f, uint32_t slot);
void rp_frames_prefetch_pieces(const rp_frames *f, uint32_t slot);

/* Removes every frame. */
void rp_frames_clear(rp_frames *f);

/* Bytes held. */
size_t rp_frames_memory(const rp_frames *f);

/* For tests: true if the slot holds a frame, with all its pieces (F1 to F3 of frames.c). */
bool rp_frames_check(const rp_frames *f, uint32_t slot);

#endif
