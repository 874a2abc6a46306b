/* SPDX-License-Identifier: Apache-2.0 */
/* Stores frames (images of one size) without duplicates, for a replay buffer.
 *
 * Frames are added and released in order. A frame is stored in a slot, by whose number readers
 * find it. If a new frame equals a recent frame, it gets the slot of the recent frame.
 * Otherwise, the new frame is divided into pieces, and a piece that equals a recent piece is
 * not stored again. A recent frame or piece is one of the last `window` frames or pieces that
 * were stored. Hashes find equal candidates, and memcmp() confirms them, so a reader always
 * gets the bytes that were added.
 *
 * Not thread-safe: the owner must serialise all calls. */
#ifndef RP_BUFFER_FRAMES_H
#define RP_BUFFER_FRAMES_H

#include "buffer/sparse_array.h"

enum { RP_FRAMES_MAX_PIECES = 64 };

/* The hash and the number of a recent frame or piece. */
typedef struct rp_frame_memo {
    uint64_t hash, number;
} rp_frame_memo;

/* A ring buffer of elements, allocated in segments. Elements are numbered in order of arrival.
 * The ring holds the elements with the numbers `tail` to next - 1. */
typedef struct rp_frame_ring {
    rp_sparse_array segments;
    uint64_t tail, next;
    uint64_t window;      /* how many previous elements a new element is compared with */
    uint32_t slot_mask;   /* the slot of an element is number & slot_mask */
    uint32_t memo_mask;   /* the memo of an element is at hash & memo_mask */
    rp_frame_memo *memos; /* a new memo overwrites the old one with the same index */
} rp_frame_ring;

typedef struct rp_frames {
    rp_allocator alloc;
    size_t frame_bytes, piece_bytes; /* size of a frame, and of each of its pieces. The last
                                        piece can be shorter */
    uint32_t piece_count;
    rp_frame_ring frames; /* the ring of records; a record lists the pieces of one frame */
    rp_frame_ring pieces; /* the ring of pieces, with their bytes */
} rp_frames;

/* Initialises a store with room for `capacity` frames in use, in addition to the frames of the
 * window. On RP_NO_RESOURCE, there is nothing to deinitialise. */
RP_NODISCARD rp_status rp_frames_init(rp_frames *f, const rp_allocator *alloc,
                                      size_t frame_bytes, size_t capacity);
void rp_frames_deinit(rp_frames *f); /* *f may be zeroed memory */

/* Returns a mark for rp_frames_release(), the number of the next new frame. After this call,
 * rp_frames_put() does not return slots of frames whose numbers are below mark - window. */
static inline uint64_t rp_frames_mark(const rp_frames *f)
{
    return f->frames.next;
}

/* Adds a frame and writes its slot. On RP_NO_RESOURCE, nothing has changed. */
RP_NODISCARD rp_status rp_frames_put(rp_frames *f, const char *data, uint32_t *slot);

/* Undoes all calls of rp_frames_put() since rp_frames_mark() returned frame_mark and
 * f->pieces.next was piece_mark. */
void rp_frames_undo(rp_frames *f, uint64_t frame_mark, uint64_t piece_mark);

/* Releases the frames with numbers below mark - window. `mark` is a result of rp_frames_mark();
 * the owner must not use slots from before that call. */
void rp_frames_release(rp_frames *f, uint64_t mark);

/* Copies the frame in a slot to `out`. */
void rp_frames_copy(const rp_frames *f, uint32_t slot, char *out);

/* The first function prefetches the list of a frame's pieces into the CPU's cache. The second
 * reads this list and prefetches the beginning of each piece. */
void rp_frames_prefetch_list(const rp_frames *f, uint32_t slot);
void rp_frames_prefetch_pieces(const rp_frames *f, uint32_t slot);

/* Removes all frames. */
void rp_frames_clear(rp_frames *f);

/* Returns the bytes of memory that the store holds. */
size_t rp_frames_memory(const rp_frames *f);

/* For tests: returns true if the slot holds a frame with all its pieces (invariants F1 to F3 of
 * frames.c). */
bool rp_frames_check(const rp_frames *f, uint32_t slot);

#endif
