/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a replay buffer (reprise/replay_buffer.h) and its internal functions, for the
 * files that implement it. */
#ifndef RP_BUFFER_REPLAY_BUFFER_INSIDE_H
#define RP_BUFFER_REPLAY_BUFFER_INSIDE_H

#include <assert.h>

#include "buffer/frames.h"
#include "reprise/replay_buffer.h"
#include "table/selector/power.h"
#include "table/selector/sumtree.h"
#include "util/mutex.h"
#include "util/rng.h"

/* A column. Usually a row contains the column's value itself. If the value is made of frames
 * that are stored without duplicates, the row contains only the slots of these frames in a
 * frame store (frames.h). */
typedef struct buffer_column {
    char name[64];
    size_t bytes;         /* size of a value */
    size_t offset;        /* offset in a row of the value or of the slots */
    size_t frame_bytes;   /* size of a frame; 0: the row contains the value itself */
    uint32_t frame_count; /* frames in a value */
    uint32_t store;       /* index of the frame store */
} buffer_column;

/* A frame store: all frames of one size. */
typedef struct buffer_store {
    rp_frames frames;
    size_t mark_offset; /* offset in a row of a number: the result of rp_frames_mark() when the
                           row was added */
    uint32_t frames_per_row; /* frames of this size in a row, over all columns */
} buffer_store;

struct rp_replay_buffer {
    rp_allocator alloc;
    size_t capacity; /* the most rows. This and the fields up to `streams` are constant */
    double alpha, epsilon;
    rp_power_fn *power;
    buffer_column *columns;
    size_t column_count;
    size_t row_bytes; /* size of a row */
    size_t store_count;
    bool streams; /* rows are written with non-temporal stores */

    rp_mutex mu; /* rank 81; guards all below */
    buffer_store *stores RP_GUARDED_BY(mu);
    rp_sparse_array rows RP_GUARDED_BY(mu);
    /* Sum tree of the weights of rows; NULL: rows are drawn uniformly. */
    rp_sumtree *tree RP_GUARDED_BY(mu);
    rp_rng rng RP_GUARDED_BY(mu);
    double largest RP_GUARDED_BY(mu);  /* the largest priority so far */
    uint64_t added RP_GUARDED_BY(mu);  /* rows ever added; also the number of the next row */
    size_t size RP_GUARDED_BY(mu);     /* rows that can be drawn */
    uint32_t *slots RP_GUARDED_BY(mu); /* scratch buffer for draws: `room` slots */
    double *numbers RP_GUARDED_BY(mu); /* scratch buffer for draws: 2 * `room` numbers */
    size_t room RP_GUARDED_BY(mu);     /* size of the scratch buffers, in draws */
};

enum { BUFFER_BLOCK = 256 }; /* number of rows whose weights are computed together */

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

/* Returns the slot of row `number`, its index in the ring of rows, without a division. The row
 * must be in the buffer, and `lap` must be the result of buffer_lap(). */
static inline uint32_t buffer_slot(const rp_replay_buffer *b, uint64_t lap, uint64_t number)
{
    assert(number < lap + b->capacity && number + b->capacity >= lap);
    return (uint32_t)(number >= lap ? number - lap : number + b->capacity - lap);
}

/* Returns the number of the latest row that was added in slot 0. If the next row goes to slot
 * 0, returns the number of the next row. */
static inline uint64_t buffer_lap(const rp_replay_buffer *b)
{
    return b->added - b->added % b->capacity;
}

/* Computes weights[i] = (priorities[i] + epsilon)^alpha, clamped to positive finite numbers.
 * `count` must be at most BUFFER_BLOCK. */
void buffer_weigh(const rp_replay_buffer *b, const double *priorities, size_t count,
                  double *weights);

/* Copies the values of a row to index `at` of the arrays `columns`. Skips columns whose array
 * is NULL. */
void buffer_copy_row(const rp_replay_buffer *b, const char *row, size_t at,
                     void *const *columns);

#endif
