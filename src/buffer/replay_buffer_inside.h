/* SPDX-License-Identifier: Apache-2.0 */
/* The private part of a replay buffer, shared by the files that implement it. */
#ifndef RP_BUFFER_REPLAY_BUFFER_INSIDE_H
#define RP_BUFFER_REPLAY_BUFFER_INSIDE_H

#include <assert.h>

#include "buffer/frames.h"
#include "reprise/replay_buffer.h"
#include "table/selector/power.h"
#include "table/selector/sumtree.h"
#include "util/mutex.h"
#include "util/rng.h"

typedef struct buffer_column {
    char name[64];
    size_t bytes;       /* of a value */
    size_t offset;      /* offset in the row of the value, or of the slots of its frames */
    size_t frame_bytes; /* size of a frame; 0: the row holds the value itself */
    uint32_t frame_count;
    uint32_t store; /* index of its frame store */
} buffer_column;

/* The store of frames of one size. `mark_offset` is where a row holds the mark
 * (rp_frames_mark()) of this store. */
typedef struct buffer_store {
    rp_frames frames;
    size_t mark_offset;
    uint32_t frames_per_row;
} buffer_store;

struct rp_replay_buffer {
    rp_allocator alloc;
    size_t capacity; /* constant, like the fields up to `streams` */
    double alpha, epsilon;
    rp_power_fn *power;
    buffer_column *columns;
    size_t column_count;
    size_t row_bytes;
    size_t store_count;
    bool streams; /* rows are written with non-temporal stores */

    rp_mutex mu; /* rank 81 */
    buffer_store *stores RP_GUARDED_BY(mu);
    rp_sparse_array rows RP_GUARDED_BY(mu);
    rp_sumtree *tree RP_GUARDED_BY(mu); /* NULL: uniform */
    rp_rng rng RP_GUARDED_BY(mu);
    double largest RP_GUARDED_BY(mu); /* the largest priority so far */
    uint64_t added RP_GUARDED_BY(mu);
    size_t size RP_GUARDED_BY(mu);
    uint32_t *slots RP_GUARDED_BY(mu); /* scratch buffer for draws: `room` slots */
    double *numbers RP_GUARDED_BY(mu); /* scratch buffer: 2 * `room` numbers */
    size_t room RP_GUARDED_BY(mu);
};

enum { BUFFER_BLOCK = 256 }; /* rows whose weights are computed at once, on the stack */

/* memcpy() with fast paths for the sizes of numbers. */
static inline void buffer_copy_value(char *to, const char *from, size_t bytes)
{
    switch (bytes) {
    case 1: *to = *from; break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, bytes);
    }
}

/* Returns the slot of row `number`, which is in the buffer, without a division. `lap` is
 * buffer_lap(). */
static inline uint32_t buffer_slot(const rp_replay_buffer *b, uint64_t lap, uint64_t number)
{
    assert(number < lap + b->capacity && number + b->capacity >= lap);
    return (uint32_t)(number >= lap ? number - lap : number + b->capacity - lap);
}

/* Returns the number of the row in slot 0. If the next row goes to slot 0, returns its number
 * instead. */
static inline uint64_t buffer_lap(const rp_replay_buffer *b)
{
    return b->added - b->added % b->capacity;
}

/* weights[i] = (priorities[i] + epsilon)^alpha, clamped to positive finite numbers; `count` is
 * at most BUFFER_BLOCK. */
void buffer_weigh(const rp_replay_buffer *b, const double *priorities, size_t count,
                  double *weights);

/* Copies a row to index `at` of the columns; skips NULL columns. */
void buffer_copy_row(const rp_replay_buffer *b, const char *row, size_t at,
                     void *const *columns);

#endif
