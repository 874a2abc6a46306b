/* SPDX-License-Identifier: Apache-2.0 */
/* A replay buffer for one process: a ring of rows, drawn by priority or uniformly.
 *
 * A row is one transition; its columns (an observation, an action, a reward, ...) have a fixed
 * size in bytes each, and what the bytes mean is the caller's affair. When the ring is full,
 * a new row takes the place of the oldest. Rows are added, drawn and given new priorities many
 * at a time: that is where the speed comes from.
 *
 * Rows are known by their number: the first row ever added is 0, the next 1, and so on. A
 * number is never used again, so an update for a row that has been overwritten since is seen
 * to be one, and ignored.
 *
 * A row is drawn with probability weight / sum of weights, weight = (priority + epsilon)^alpha
 * (Schaul et al., 2016, equation 1). With alpha 0 every row is as likely as any other, and
 * there are no priorities.
 *
 * Columns may share frames. A column that is declared to consist of `frame_count` frames (a
 * stack of images; 1 for the whole value) keeps each of them once, however many rows and
 * columns of that frame size it appears in: the next observation of a row is the observation
 * of the row after it, and three quarters of a stack of four. Nobody has to say where episodes
 * start or which environment a row is from: frames are compared, byte by byte, with those added
 * shortly before, and what is drawn is exactly what was added. The comparison goes down to
 * pieces of some 600 bytes, so that a still background is kept once for many frames.
 *
 * Every call is safe from any thread: one lock, held while rows are copied in or out. */
#ifndef REPRISE_REPLAY_BUFFER_H
#define REPRISE_REPLAY_BUFFER_H

#include "reprise/alloc.h"

RP_BEGIN_DECLS

enum {
    RP_REPLAY_MAX_COLUMNS = 256,
    RP_REPLAY_MAX_FRAMES = 256, /* of all columns of a row together */
};

typedef struct rp_replay_column {
    const char *name;     /* for messages; copied, cut at 63 bytes; may be NULL */
    size_t bytes;         /* of one row, >= 1 */
    uint32_t frame_count; /* 0: kept in the row; else so many frames of equal size, shared */
} rp_replay_column;

typedef struct rp_replay_options {
    size_t capacity; /* rows, 1 .. 2^31 */
    const rp_replay_column *columns;
    size_t column_count;
    double alpha;   /* >= 0; 0: uniform */
    double epsilon; /* >= 0; added to every priority */
    uint64_t seed;  /* the same seed and calls give the same draws on every machine */
} rp_replay_options;

typedef struct rp_replay_buffer rp_replay_buffer;

/* An empty buffer. Memory for rows is taken as they come; that of the sum tree, 9 bytes a row,
 * at once. Returns owned: free it with rp_replay_buffer_free().
 * RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_replay_buffer_new(const rp_allocator *alloc,
                                                   const rp_replay_options *options,
                                                   rp_replay_buffer **out, rp_error *err);
RP_API void rp_replay_buffer_free(rp_replay_buffer *buffer); /* NULL is fine */

/* Rows that can be drawn; and rows ever added, which is the number of the next one. */
RP_API size_t rp_replay_buffer_size(rp_replay_buffer *buffer);
RP_API uint64_t rp_replay_buffer_added(rp_replay_buffer *buffer);

/* Bytes of memory that the buffer holds. */
RP_API size_t rp_replay_buffer_memory(rp_replay_buffer *buffer);

/* Adds `count` rows. columns[c] holds `count` values of column c, one after another.
 * `priorities` are finite and >= 0; NULL: each gets the largest priority given so far, 1 at
 * first. Of more rows than the capacity only the last are kept.
 *
 * RP_INVALID (a priority; nothing was added), RP_NO_RESOURCE: the rows before the one that
 * found no memory have been added; rp_replay_buffer_added() says how many. */
RP_API RP_NODISCARD rp_status rp_replay_buffer_add(rp_replay_buffer *buffer,
                                                   const void *const *columns, size_t count,
                                                   const double *priorities, rp_error *err);

/* Where rp_replay_buffer_sample() writes. Any of them may be NULL. */
typedef struct rp_replay_sample {
    void *const *columns;  /* columns[c]: room for `count` values, or NULL */
    int64_t *indices;      /* numbers of the rows */
    double *probabilities; /* of each in this draw */
    float *weights;        /* importance weights, the largest of the batch being 1 */
} rp_replay_sample;

/* Draws `count` rows, independently and with replacement, and copies them out. The importance
 * weight of a row with probability p is (p / p_min)^-beta, p_min being the smallest of the
 * batch: equation 2 of Schaul et al., scaled so that the largest is 1. beta is finite and >= 0.
 * RP_PRECONDITION (the buffer is empty), RP_INVALID (beta), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_replay_buffer_sample(rp_replay_buffer *buffer, size_t count,
                                                      double beta, const rp_replay_sample *out,
                                                      rp_error *err);

/* Gives rows new priorities; of a number given twice the last counts. Rows that have been
 * overwritten are passed over; `*updated` (may be NULL) is the number of the others.
 * RP_INVALID (a priority that is negative or not finite, a number that no row has had yet),
 * RP_PRECONDITION (a uniform buffer): nothing was changed. */
RP_API RP_NODISCARD rp_status rp_replay_buffer_update(rp_replay_buffer *buffer,
                                                      const int64_t *indices,
                                                      const double *priorities, size_t count,
                                                      size_t *updated, rp_error *err);

/* Copies the rows `first` .. `first + count - 1` out, and their weights ((priority +
 * epsilon)^alpha; 1 in a uniform buffer), if that is not NULL. columns[c] may be NULL.
 * RP_NOT_FOUND (one of them is not in the buffer). */
RP_API RP_NODISCARD rp_status rp_replay_buffer_read(rp_replay_buffer *buffer, uint64_t first,
                                                    size_t count, void *const *columns,
                                                    double *weights, rp_error *err);

/* Forgets all rows; numbers go on where they were. */
RP_API void rp_replay_buffer_clear(rp_replay_buffer *buffer);

/* What else there is to a buffer, for those who save one: read the rows and this, later set
 * this, then put the rows back; what follows is as if nothing had happened. */
typedef struct rp_replay_state {
    uint64_t next;           /* number of the next row to be added or put back */
    double largest_priority; /* what a row without a priority gets */
    uint64_t rng[4];         /* the state of the random generator */
} rp_replay_state;

RP_API void rp_replay_buffer_state(rp_replay_buffer *buffer, rp_replay_state *state);

/* Empties the buffer and sets the state.
 * RP_INVALID (a priority that is negative or not finite, a generator of zeros). */
RP_API RP_NODISCARD rp_status rp_replay_buffer_set_state(rp_replay_buffer *buffer,
                                                         const rp_replay_state *state,
                                                         rp_error *err);

/* As rp_replay_buffer_add(), with weights from rp_replay_buffer_read(), positive and finite. */
RP_API RP_NODISCARD rp_status rp_replay_buffer_put_back(rp_replay_buffer *buffer,
                                                        const void *const *columns,
                                                        size_t count, const double *weights,
                                                        rp_error *err);

/* True if the numbered invariants of src/buffer/replay_buffer.c hold: for tests. */
RP_API bool rp_replay_buffer_check(rp_replay_buffer *buffer);

RP_END_DECLS

#endif
