/* SPDX-License-Identifier: Apache-2.0 */
/* A sampler: samples of one table, fetched ahead over streams, handed out one by one, as
 * batches that are stacked into memory of the caller's, or stacked there as they come.
 *
 * With one stream to one server samples come in the order in which they were drawn. From
 * several, the order depends on who answers first, unless `ordered` is set: then it is a
 * function of the seed (and of what each server draws).
 *
 * Any thread may call it; samples go to whoever asks first. */
#ifndef REPRISE_SAMPLER_H
#define REPRISE_SAMPLER_H

#include "reprise/client.h"

RP_BEGIN_DECLS

typedef struct rp_sampler rp_sampler;

/* Zero-initialise it; fields marked * must be set. */
typedef struct rp_sampler_options {
    const char *table;               /* * */
    int64_t max_samples;             /* after which it ends; 0: no end */
    size_t max_in_flight;            /* drawn ahead on each stream; 0: 100 */
    size_t streams;                  /* to each server; 0: 1 */
    int64_t max_per_stream;          /* samples, then the stream is made anew; 0: no limit */
    int64_t rate_limiter_timeout_ms; /* with no sample for so long it ends; 0: not at all,
                                        i.e. at once; negative: never */
    size_t decoders; /* threads that decode a batch with the caller; 0: by processors */
    bool ordered;    /* see above */
    bool checked;    /* compare samples with the signature of the table, if it has one and it
                        can be had within 30 s */
    double beta;     /* > 0: importance weights, normalised in each batch */
} rp_sampler_options;

/* Begins to fetch. RP_INVALID, RP_NO_RESOURCE; if `checked`, it asks for the signature first:
 * RP_NOT_FOUND. The client must outlive it. Returns owned. */
RP_API RP_NODISCARD rp_status rp_sampler_new(rp_client *client,
                                             const rp_sampler_options *options,
                                             rp_sampler **out, rp_error *err);
/* Frees it; samples drawn ahead are lost, as they are in Reverb. Ends waits of other threads
 * with RP_CANCELLED before. NULL is fine. */
RP_API void rp_sampler_free(rp_sampler *sampler);
/* Ends all waits, now and later, with RP_CANCELLED. */
RP_API void rp_sampler_close(rp_sampler *sampler);

/* Takes 1 to `capacity` samples, as many as are there; waits for the first. Drop them with
 * rp_samples_release(). `probability` and `table_size` are those over all shards.
 * RP_DEADLINE (by `wait`, or the rate limiter's timeout: then the sentence says so and every
 * later call answers the same), RP_PRECONDITION (max_samples have been taken: it is over),
 * RP_CANCELLED, RP_NOT_FOUND (no such table), RP_CORRUPT, RP_INVALID (`checked`: a sample that
 * does not fit), RP_NO_RESOURCE (memory, or a sample over `item_bytes` of the client's
 * options),
 * RP_DENIED, RP_UNAUTHENTICATED. What came before such an end is given first. A
 * timeout of the rate limiter that passes while nobody waits does not count, unless it is 0.
 *
 * Tables of several servers whose sampler is not random (fifo, lifo, heaps) are drawn from in
 * turns; `probability` is then that of the shard. */
RP_API RP_NODISCARD rp_status rp_sampler_next(rp_sampler *sampler, rp_sample *out,
                                              size_t capacity, size_t *count, rp_wait wait,
                                              rp_error *err);

typedef enum rp_ragged {
    RP_RAGGED_REFUSE = 0,  /* all items of a column have one length */
    RP_RAGGED_PAD = 1,     /* filled up with zeros to the longest; lengths are told */
    RP_RAGGED_OFFSETS = 2, /* one behind the other; offsets are told */
} rp_ragged;

/* What a column of the next batch needs. */
typedef struct rp_batch_column {
    rp_dtype dtype;
    rp_shape shape; /* items first; of RP_RAGGED_OFFSETS rows of all items first */
    size_t bytes;   /* of RP_STRING: elements * sizeof(rp_string) */
} rp_batch_column;

typedef struct rp_batch rp_batch;

/* Waits for `size` (1 to 2^20) samples and makes them a batch; nothing is decoded yet. They are
 * one piece of the sequence: others who ask meanwhile wait. If the sampler ends before, what
 * there is becomes the last batch, unless `whole`. If the wait ends before, or `whole` ones
 * cannot be had, what there was is given to whoever asks next. Returns owned. It may outlive
 * the sampler, but not the client; one thread at a time.
 * Statuses as above, and RP_INVALID: the items differ (names the item, what it has and what was
 * expected), or RP_NO_RESOURCE: they are more than `batch_bytes` of the client's options; then
 * they are dropped. */
RP_API RP_NODISCARD rp_status rp_sampler_batch(rp_sampler *sampler, size_t size,
                                               rp_ragged ragged, bool whole, rp_wait wait,
                                               rp_batch **out, rp_error *err);
RP_API void rp_batch_free(rp_batch *batch); /* NULL is fine */

RP_API size_t rp_batch_size(const rp_batch *batch);
/* The samples, in order. Borrowed. */
RP_API const rp_sample *rp_batch_samples(const rp_batch *batch);
RP_API size_t rp_batch_column_count(const rp_batch *batch);
RP_API const rp_batch_column *rp_batch_get_column(const rp_batch *batch, size_t column);
/* Rows of each item (RP_RAGGED_PAD; NULL if all have one length), or where each item's rows
 * begin, and the end (RP_RAGGED_OFFSETS: size + 1 numbers, whatever the lengths). Borrowed.
 * NULL for columns whose items are one row without the dimension: these are never ragged. */
RP_API const int64_t *rp_batch_lengths(const rp_batch *batch, size_t column);

/* Decodes every column into dst[column], which has exactly its bytes; NULL leaves a column out.
 * Works on the sampler's threads and the caller's together. Strings borrow from the batch.
 * RP_INVALID, RP_CORRUPT, RP_NO_RESOURCE, RP_PRECONDITION (in the child of a fork). */
RP_API RP_NODISCARD rp_status rp_batch_decode(rp_batch *batch, void *const *dst,
                                              const size_t *dst_bytes, rp_error *err);

/* Where a column of stacked items goes: item i to dst + i * item_bytes. */
typedef struct rp_stack_place {
    void *dst;         /* NULL leaves it out */
    size_t item_bytes; /* that every item has, exactly */
} rp_stack_place;

/* For who knows what items look like: waits for `size` (1 to 2^20) samples and stacks them as
 * they come, on the caller's thread, while the processor's cache has them. They are let go of
 * a group at a time (256 KiB that are stacked, or one item; 256 items at most), however many
 * there will be; samples[i] tells the rest of each, without a trajectory. Faster than a batch
 * if items are large and not compressed. Others who ask meanwhile may get samples in between.
 *
 * `*count` is written in every case: so many are in place, from the first on, and `samples`,
 * which has room for `size`, tells of them. Fewer than `size`: the wait ended (samples that are
 * there are not waited for, however long they take), or the sampler did: RP_OK if there is one
 * at all, and the next call says why. Call again for the others, with places further on.
 * Weights are those within one call.
 * Statuses as of rp_sampler_batch(), RP_PRECONDITION also in the child of a fork. RP_INVALID:
 * an item has not the columns or the bytes that there are places for, differs from the first in
 * anything else, or has strings; it, or RP_CORRUPT, or memory that is missing, costs the group
 * at hand. */
RP_API RP_NODISCARD rp_status rp_sampler_stack(rp_sampler *sampler, size_t size,
                                               const rp_stack_place *columns,
                                               size_t column_count, rp_sample *samples,
                                               size_t *count, rp_wait wait, rp_error *err);

/* What it waits for, as a sentence. */
RP_API void rp_sampler_why(rp_sampler *sampler, char *text, size_t size);

RP_END_DECLS

#endif
