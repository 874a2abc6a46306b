/* SPDX-License-Identifier: Apache-2.0 */
/* A replay buffer for one process: a ring of rows, drawn by priority or uniformly.
 *
 * A row is one transition. Each of its columns (an observation, an action, a reward, ...) has a
 * fixed size in bytes, and the buffer does not interpret the bytes. When the ring is full, a
 * new row overwrites the oldest row. One call adds, draws or updates a batch of rows, which is
 * faster than one call per row.
 *
 * Rows are numbered: the first row ever added is 0, the next 1, and so on. A number is never
 * used again, so an update of a row that has been overwritten is recognised and ignored.
 *
 * A row is drawn with probability weight / sum of all weights, where weight = (priority +
 * epsilon)^alpha (Schaul et al., 2016, equation 1). With alpha 0 all rows are equally likely,
 * and the buffer has no priorities.
 *
 * Columns can share frames. If a column has a `frame_count` above 0, its value consists of this
 * number of frames of equal size: one image, or a stack of images, for example. If several
 * rows, or several columns with the same frame size, contain a frame, the buffer stores the
 * frame once. For example, the next observation of a row is the observation of the row after
 * it, and consecutive stacks of four frames have three frames in common. The caller need not
 * say where episodes start or which environment a row is from: the buffer compares each frame
 * byte by byte with the frames added shortly before. Reading a row returns exactly the bytes
 * that were added. A new frame is divided into pieces of about 600 bytes, or into 64 larger
 * pieces if it has more than 36 KiB. The buffer compares and shares pieces like frames, so
 * frames with the same background share the pieces of this background.
 *
 * A call returns RP_INVALID if its options, rows or output arrays are NULL although the comment
 * on the call does not allow this.
 *
 * Every call is safe from any thread. A buffer has one lock, which is held while rows are
 * copied in or out. */
#ifndef REPRISE_REPLAY_BUFFER_H
#define REPRISE_REPLAY_BUFFER_H

#include "reprise/alloc.h"

RP_BEGIN_DECLS

enum {
    RP_REPLAY_MAX_COLUMNS = 256,
    RP_REPLAY_MAX_FRAMES = 256, /* the most frames of a row, over all its columns */
};

typedef struct rp_replay_column {
    const char *name;     /* for error texts; copied, cut at 63 bytes; may be NULL */
    size_t bytes;         /* size in one row, >= 1 */
    uint32_t frame_count; /* number of frames in a value; 0: the column shares no frames */
} rp_replay_column;

typedef struct rp_replay_options {
    size_t capacity; /* rows, 1 .. 2^31 */
    const rp_replay_column *columns;
    size_t column_count;
    double alpha;     /* >= 0; 0: uniform */
    double epsilon;   /* >= 0; added to every priority */
    uint64_t seed;    /* the same seed and calls give the same draws on every machine */
    bool preallocate; /* allocate the memory of all rows now, so that adding a row never waits
                         for new pages. Memory for frames is not allocated in advance */
} rp_replay_options;

typedef struct rp_replay_buffer rp_replay_buffer;

/* Makes an empty buffer. Memory for rows is allocated as they are added, unless `preallocate`
 * is set; the sum tree, 9 bytes per row, is allocated now. Returns owned: free it with
 * rp_replay_buffer_free().
 * Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_replay_buffer_new(const rp_allocator *alloc,
                                                   const rp_replay_options *options,
                                                   rp_replay_buffer **out, rp_error *err);
RP_API void rp_replay_buffer_free(rp_replay_buffer *buffer); /* NULL is fine */

/* rp_replay_buffer_size() returns how many rows can be drawn. rp_replay_buffer_added() returns
 * how many rows were ever added, which is also the number of the next row. */
RP_API size_t rp_replay_buffer_size(rp_replay_buffer *buffer);
RP_API uint64_t rp_replay_buffer_added(rp_replay_buffer *buffer);

/* Returns the bytes of memory that the buffer holds. */
RP_API size_t rp_replay_buffer_memory(rp_replay_buffer *buffer);

/* Adds `count` rows. columns[c] holds `count` values of column c, one after another. Priorities
 * must be finite and >= 0. If `priorities` is NULL, each row gets the largest priority that was
 * given so far, at first 1. If `count` is larger than the capacity, only the last rows are
 * stored.
 *
 * Errors: RP_INVALID (a bad priority, or a column that is NULL; nothing was added),
 * RP_NO_RESOURCE (the rows before the failed allocation have been added: compare
 * rp_replay_buffer_added() before and after the call). */
RP_API RP_NODISCARD rp_status rp_replay_buffer_add(rp_replay_buffer *buffer,
                                                   const void *const *columns, size_t count,
                                                   const double *priorities, rp_error *err);

/* The output arrays of rp_replay_buffer_sample(). Each may be NULL. */
typedef struct rp_replay_sample {
    void *const *columns;  /* columns[c]: room for `count` values, or NULL */
    int64_t *indices;      /* numbers of the rows */
    double *probabilities; /* probability of each row in this draw */
    float *weights;        /* importance weights, scaled so that the largest is 1 */
} rp_replay_sample;

/* Draws `count` rows, independently and with replacement, and copies them out. The importance
 * weight of a row with probability p is (p / p_min)^-beta, where p_min is the smallest
 * probability in the batch. This is equation 2 of Schaul et al., scaled so that the largest
 * weight is 1. beta must be finite and >= 0. Errors: RP_PRECONDITION (the buffer is empty),
 * RP_INVALID (a bad beta), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_replay_buffer_sample(rp_replay_buffer *buffer, size_t count,
                                                      double beta, const rp_replay_sample *out,
                                                      rp_error *err);

/* Sets the priorities of rows. An index is the number of a row. If an index is given twice, its
 * last priority counts. Rows that have been overwritten are skipped. `*updated` (`updated` may
 * be NULL) gets the number of indices that were not skipped. Errors, after which nothing has
 * changed: RP_INVALID (a priority that is negative or not finite, an index not yet used),
 * RP_PRECONDITION (a buffer with alpha 0, which has no priorities). */
RP_API RP_NODISCARD rp_status rp_replay_buffer_update(rp_replay_buffer *buffer,
                                                      const int64_t *indices,
                                                      const double *priorities, size_t count,
                                                      size_t *updated, rp_error *err);

/* Copies out the rows `first` .. `first + count - 1` and, if `weights` is not NULL, their
 * weights: (priority + epsilon)^alpha, or 1 if alpha is 0. If columns[c] is NULL, column c is
 * skipped. Errors: RP_NOT_FOUND (a row was overwritten or has not been added yet). */
RP_API RP_NODISCARD rp_status rp_replay_buffer_read(rp_replay_buffer *buffer, uint64_t first,
                                                    size_t count, void *const *columns,
                                                    double *weights, rp_error *err);

/* Removes all rows; the numbers of later rows continue. */
RP_API void rp_replay_buffer_clear(rp_replay_buffer *buffer);

/* The state of a buffer besides its rows. To save a buffer, read its rows and its state. To
 * restore the buffer, first replace the saved `next` by the number of the oldest saved row, and
 * set the state. Then put the rows back with rp_replay_buffer_put_back(). Later calls on the
 * restored buffer give the same results as on the original. */
typedef struct rp_replay_state {
    uint64_t next;           /* number of the next row to be added or put back */
    double largest_priority; /* assigned to rows that are added without a priority */
    uint64_t rng[4];         /* the state of the random generator */
} rp_replay_state;

RP_API void rp_replay_buffer_state(rp_replay_buffer *buffer, rp_replay_state *state);

/* Removes all rows and sets the state.
 * Errors: RP_INVALID (`largest_priority` is negative or not finite, or `rng` is all zero). */
RP_API RP_NODISCARD rp_status rp_replay_buffer_set_state(rp_replay_buffer *buffer,
                                                         const rp_replay_state *state,
                                                         rp_error *err);

/* Adds rows like rp_replay_buffer_add(), but takes weights, as rp_replay_buffer_read() wrote
 * them, instead of priorities. Weights must be positive and finite. */
RP_API RP_NODISCARD rp_status rp_replay_buffer_put_back(rp_replay_buffer *buffer,
                                                        const void *const *columns,
                                                        size_t count, const double *weights,
                                                        rp_error *err);

/* For tests: returns true if the numbered invariants of src/buffer/replay_buffer.c hold. */
RP_API bool rp_replay_buffer_check(rp_replay_buffer *buffer);

RP_END_DECLS

#endif
