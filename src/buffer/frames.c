/* SPDX-License-Identifier: Apache-2.0 */
/* Frames, stored without duplicates.
 *
 *   slot -> record: [ mark of the pieces | piece 0, piece 1, ... ]     ring of records
 *                                            |        \
 *           bytes:                        [ ... ]   [ ... ]            ring of pieces
 *
 * Both rings grow at `next` and are released at `tail`. A record that was made when the next
 * piece was m refers only to pieces >= m - window. Likewise a row that was added when the next
 * record was m refers only to records >= m - window. So the mark of the oldest row tells which
 * records and pieces can be released:
 *
 *   F1  a record in use has a number in [tail, next) of the records;
 *   F2  a piece of such a record has a number in [tail, next) of the pieces;
 *   F3  numbers in [tail, next) have memory and different slots.
 *
 * The window keeps memory that may not be in use: about 1/50 of a large buffer whose rows have
 * eight frames. */
#include "buffer/frames.h"

#include <assert.h>

#include "util/verify.h"
#include "util/wide.h"

enum {
    PIECE_BYTES = 576, /* approximate; some lines of a small image */
    LEAST_WINDOW = 1024,
    MOST_WINDOW = 16384,  /* frames */
    PIECES_PER_FRAME = 4, /* in the window; most frames share most pieces, or none */
};

typedef struct record {
    uint64_t piece_mark;
    uint32_t pieces[];
} record;

static size_t power_of_two_from(size_t least)
{
    size_t n = 1;
    while (n < least) n *= 2;
    return n;
}

static void ring_deinit(rp_frame_ring *r, const rp_allocator *alloc)
{
    rp_sparse_array_deinit(&r->segments);
    rp_release(alloc, r->memos, ((size_t)r->memo_mask + 1) * sizeof *r->memos);
}

static rp_status ring_init(rp_frame_ring *r, const rp_allocator *alloc, size_t element_bytes,
                           size_t in_use, size_t window)
{
    /* Segments are allocated and freed as a whole, so there is room for one more at each end.
     */
    size_t slots = power_of_two_from(in_use + window);
    size_t memo_count = power_of_two_from(2 * window);

    memset(r, 0, sizeof *r);
    slots += slots / 2; /* a segment is a small part of the ring, or 64 KiB */
    slots = power_of_two_from(slots + 65536 / element_bytes);
    if (slots > (size_t)1 << 32) return RP_NO_RESOURCE;
    r->window = window;
    r->slot_mask = (uint32_t)(slots - 1);
    r->memo_mask = (uint32_t)(memo_count - 1);
    if (rp_sparse_array_init(&r->segments, alloc, element_bytes, slots, 256) != RP_OK)
        return RP_NO_RESOURCE;
    r->memos = rp_alloc_array(alloc, memo_count, sizeof *r->memos);
    if (r->memos != NULL) return RP_OK;
    rp_sparse_array_deinit(&r->segments);
    return RP_NO_RESOURCE;
}

static inline char *ring_at(const rp_frame_ring *r, uint32_t slot)
{
    return rp_sparse_array_at(&r->segments, slot);
}

/* The number of the element in a slot, or UINT64_MAX if the slot is not in use. */
static uint64_t number_of(const rp_frame_ring *r, uint32_t slot)
{
    uint64_t number = r->tail + ((slot - (uint32_t)r->tail) & r->slot_mask);
    return number < r->next ? number : UINT64_MAX;
}

/* The memo of a hash, if it is within the window; else NULL. The element may have been undone
 * and its number reused, so the caller compares the contents. */
static inline const rp_frame_memo *recall(const rp_frame_ring *r, uint64_t hash)
{
    const rp_frame_memo *memo = &r->memos[hash & r->memo_mask];
    bool near = memo->number < r->next && memo->number + r->window >= r->next &&
                memo->number >= r->tail;

    return near && memo->hash == hash ? memo : NULL;
}

static inline void remember(rp_frame_ring *r, uint64_t hash)
{
    r->memos[hash & r->memo_mask] = (rp_frame_memo){hash, r->next};
}

/* Releases all numbers below `tail`, segment by segment. */
static void ring_release(rp_frame_ring *r, uint64_t tail)
{
    uint64_t length = rp_sparse_array_length(&r->segments);

    assert(tail <= r->next);
    if (tail <= r->tail) return;
    for (uint64_t at = r->tail / length; at < tail / length; at++)
        rp_sparse_array_drop(&r->segments, (size_t)(at * length & r->slot_mask));
    r->tail = tail;
}

/* Combines both halves of a product, so that every bit of a and b has an effect. */
static inline uint64_t fold(uint64_t a, uint64_t b)
{
    rp_u128 product = (rp_u128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A hash with four independent chains of products, 16 bytes per product. */
static uint64_t hash_of(const char *data, size_t size)
{
    static const uint64_t odd[4] = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu,
                                    0x165667b19e3779f9u, 0xd6e8feb86659fd93u};
    uint64_t lanes[4] = {size, 1, 2, 3}, words[8];

    while (size > 0) {
        size_t n = size < sizeof words ? size : sizeof words;

        if (n < sizeof words) memset(words, 0, sizeof words);
        memcpy(words, data, n);
        for (int i = 0; i < 4; i++)
            lanes[i] = fold(words[2 * i] ^ odd[i], words[2 * i + 1] ^ lanes[i]);
        data += n, size -= n;
    }
    return fold(fold(lanes[0] ^ odd[1], lanes[1] ^ odd[2]),
                fold(lanes[2] ^ odd[3], lanes[3] ^ odd[0]));
}

static inline size_t piece_size(const rp_frames *f, uint32_t piece)
{
    size_t at = piece * f->piece_bytes;

    assert(piece < f->piece_count && at < f->frame_bytes);
    return f->frame_bytes - at < f->piece_bytes ? f->frame_bytes - at : f->piece_bytes;
}

rp_status rp_frames_init(rp_frames *f, const rp_allocator *alloc, size_t frame_bytes,
                         size_t capacity)
{
    size_t window = capacity / 512, pieces, count;

    memset(f, 0, sizeof *f);
    if (window < LEAST_WINDOW) window = LEAST_WINDOW;
    if (window > MOST_WINDOW) window = MOST_WINDOW;
    count = (frame_bytes + PIECE_BYTES / 2) / PIECE_BYTES;
    if (count < 1) count = 1;
    if (count > RP_FRAMES_MAX_PIECES) count = RP_FRAMES_MAX_PIECES;
    f->alloc = *alloc;
    f->frame_bytes = frame_bytes;
    f->piece_bytes = (frame_bytes + count - 1) / count;
    count = (frame_bytes + f->piece_bytes - 1) / f->piece_bytes;
    f->piece_count = (uint32_t)count;
    if (!rp_size_mul(capacity + window, count, &pieces)) return RP_NO_RESOURCE;
    if (ring_init(&f->frames, alloc, (sizeof(record) + count * sizeof(uint32_t) + 7) / 8 * 8,
                  capacity, window) != RP_OK)
        return RP_NO_RESOURCE;
    if (ring_init(&f->pieces, alloc, f->piece_bytes, pieces,
                  count == 1 ? window : PIECES_PER_FRAME * window) == RP_OK)
        return RP_OK;
    ring_deinit(&f->frames, alloc);
    memset(f, 0, sizeof *f);
    return RP_NO_RESOURCE;
}

void rp_frames_deinit(rp_frames *f)
{
    if (f->frame_bytes == 0) return;
    ring_deinit(&f->frames, &f->alloc);
    ring_deinit(&f->pieces, &f->alloc);
    memset(f, 0, sizeof *f);
}

static bool equals(const rp_frames *f, uint32_t slot, const char *data)
{
    const record *r = (const record *)ring_at(&f->frames, slot);

    for (uint32_t i = 0; i < f->piece_count; i++)
        if (memcmp(ring_at(&f->pieces, r->pieces[i]), data + i * f->piece_bytes,
                   piece_size(f, i)) != 0)
            return false;
    return true;
}

/* Allocates memory for one more record and all its pieces. */
static rp_status reserve(rp_frames *f)
{
    for (uint32_t i = 0; i < f->piece_count; i++)
        if (rp_sparse_array_need(&f->pieces.segments,
                                 (uint32_t)(f->pieces.next + i) & f->pieces.slot_mask) != RP_OK)
            return RP_NO_RESOURCE;
    return rp_sparse_array_need(&f->frames.segments,
                                (uint32_t)f->frames.next & f->frames.slot_mask);
}

static uint32_t put_piece(rp_frames *f, const char *data, size_t size, uint64_t hash)
{
    rp_frame_ring *pieces = &f->pieces;
    const rp_frame_memo *memo = recall(pieces, hash);
    uint32_t slot;

    if (memo != NULL) {
        slot = (uint32_t)memo->number & pieces->slot_mask;
        if (memcmp(ring_at(pieces, slot), data, size) == 0) return slot;
    }
    slot = (uint32_t)pieces->next & pieces->slot_mask;
    memcpy(ring_at(pieces, slot), data, size);
    remember(pieces, hash);
    pieces->next++;
    assert(pieces->next - pieces->tail <= (uint64_t)pieces->slot_mask + 1); /* F3 */
    return slot;
}

rp_status rp_frames_put(rp_frames *f, const char *data, uint32_t *slot)
{
    uint64_t hashes[RP_FRAMES_MAX_PIECES], whole = 0;
    uint32_t count = f->piece_count;
    const rp_frame_memo *memo;
    record *made;

    for (uint32_t i = 0; i < count; i++) {
        hashes[i] = hash_of(data + i * f->piece_bytes, piece_size(f, i));
        whole = fold(whole ^ 0x9e3779b97f4a7c15u, hashes[i] ^ 0xd6e8feb86659fd93u);
    }
    memo = recall(&f->frames, whole);
    if (memo != NULL) {
        *slot = (uint32_t)memo->number & f->frames.slot_mask;
        if (equals(f, *slot, data)) return RP_OK;
    }
    if (reserve(f) != RP_OK) return RP_NO_RESOURCE;

    *slot = (uint32_t)f->frames.next & f->frames.slot_mask;
    made = (record *)ring_at(&f->frames, *slot);
    made->piece_mark = f->pieces.next;
    for (uint32_t i = 0; i < count; i++)
        made->pieces[i] = put_piece(f, data + i * f->piece_bytes, piece_size(f, i), hashes[i]);
    remember(&f->frames, whole);
    f->frames.next++;
    assert(f->frames.next - f->frames.tail <= (uint64_t)f->frames.slot_mask + 1); /* F3 */
    RP_VERIFY(f->piece_count, rp_frames_check(f, *slot));
    return RP_OK;
}

void rp_frames_undo(rp_frames *f, uint64_t frame_mark, uint64_t piece_mark)
{
    assert(frame_mark >= f->frames.tail && frame_mark <= f->frames.next);
    assert(piece_mark >= f->pieces.tail && piece_mark <= f->pieces.next);
    f->frames.next = frame_mark;
    f->pieces.next = piece_mark;
}

void rp_frames_release(rp_frames *f, uint64_t mark)
{
    const record *oldest;

    if (mark <= f->frames.tail + f->frames.window) return;
    ring_release(&f->frames, mark - f->frames.window);
    oldest =
        (const record *)ring_at(&f->frames, (uint32_t)f->frames.tail & f->frames.slot_mask);
    if (oldest->piece_mark > f->pieces.window)
        ring_release(&f->pieces, oldest->piece_mark - f->pieces.window);
}

void rp_frames_copy(const rp_frames *f, uint32_t slot, char *out)
{
    const record *r = (const record *)ring_at(&f->frames, slot);
    uint32_t last = f->piece_count - 1;

    for (uint32_t i = 0; i < last; i++, out += f->piece_bytes)
        memcpy(out, ring_at(&f->pieces, r->pieces[i]), f->piece_bytes);
    memcpy(out, ring_at(&f->pieces, r->pieces[last]), piece_size(f, last));
}

void rp_frames_prefetch_list(const rp_frames *f, uint32_t slot)
{
    __builtin_prefetch(ring_at(&f->frames, slot));
}

void rp_frames_prefetch_pieces(const rp_frames *f, uint32_t slot)
{
    const record *r = (const record *)ring_at(&f->frames, slot);

    for (uint32_t i = 0; i < f->piece_count; i++) {
        const char *piece = ring_at(&f->pieces, r->pieces[i]);
        __builtin_prefetch(piece);
        __builtin_prefetch(piece + RP_CACHE_LINE);
    }
}

void rp_frames_clear(rp_frames *f)
{
    ring_release(&f->frames, f->frames.next);
    ring_release(&f->pieces, f->pieces.next);
}

size_t rp_frames_memory(const rp_frames *f)
{
    const rp_frame_ring *rings[2] = {&f->frames, &f->pieces};
    size_t bytes = 0;

    for (int i = 0; i < 2; i++)
        bytes += rp_sparse_array_memory(&rings[i]->segments) +
                 ((size_t)rings[i]->memo_mask + 1) * sizeof(rp_frame_memo);
    return bytes;
}

bool rp_frames_check(const rp_frames *f, uint32_t slot)
{
    const record *r;

    if (number_of(&f->frames, slot) == UINT64_MAX) return false;       /* F1 */
    if (!rp_sparse_array_has(&f->frames.segments, slot)) return false; /* F3 */
    r = (const record *)ring_at(&f->frames, slot);
    for (uint32_t i = 0; i < f->piece_count; i++)
        if (number_of(&f->pieces, r->pieces[i]) == UINT64_MAX || /* F2 */
            !rp_sparse_array_has(&f->pieces.segments, r->pieces[i]))
            return false;
    return f->frames.next - f->frames.tail <= (uint64_t)f->frames.slot_mask + 1 &&
           f->pieces.next - f->pieces.tail <= (uint64_t)f->pieces.slot_mask + 1;
}
