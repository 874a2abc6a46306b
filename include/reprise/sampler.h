/* SPDX-License-Identifier: Apache-2.0 */
/* A sampler draws items from one table before the caller asks for them. A drawn item is called
 * a sample. The caller reads samples in one of three ways:
 *
 *   rp_sampler_next()    one by one, still compressed
 *   rp_sampler_batch()   as a batch, decoded by several threads into the caller's memory
 *   rp_sampler_stack()   decoded on the caller's thread as they arrive
 *
 * A stream is an open gRPC call on which a server sends samples. With one stream to one server,
 * samples come in the order in which the server drew them. With several streams or servers, the
 * order depends on which response arrives first. With the option `ordered`, the order depends
 * only on the client's seed and on the draws of each server.
 *
 * Every call is safe from any thread. Threads get samples in the order of their calls. */
#ifndef REPRISE_SAMPLER_H
#define REPRISE_SAMPLER_H

#include "reprise/client.h"

RP_BEGIN_DECLS

typedef struct rp_sampler rp_sampler;

/* Zero-initialise it; fields whose comment begins with * must be set. */
typedef struct rp_sampler_options {
    const char *table;      /* * */
    int64_t max_samples;    /* the sampler ends after this many samples; 0: never */
    size_t max_in_flight;   /* samples prefetched on each stream; 0: 100 */
    size_t streams;         /* streams to each server; 0: 1 */
    int64_t max_per_stream; /* samples after which a stream is reopened; 0: no limit */
    /* If the rate limiter of the table allows no sample for this long, the sampler ends. 0: the
     * sampler ends as soon as the rate limiter refuses a sample. Negative: no limit. If no
     * server can be reached or responds for this long, the sampler ends with RP_UNAVAILABLE;
     * later if a server is connected and silent: after 2 s of silence, or as long as this time,
     * but at most 10 s. The sampler ends at once if the TLS handshake has failed with every
     * server and has never succeeded. */
    int64_t rate_limiter_timeout_ms;
    size_t decoders; /* threads that help the caller to decode a batch; 0: chosen by the number
                        of processors */
    bool ordered;    /* the order does not depend on which response arrives first */
    bool checked;    /* compare samples with the signature of the table (tensor.h), if the table
                        has one and the server sends it within 30 s */
    double beta;     /* exponent of importance weights, normalised in each batch; 0: none */
    bool direct;     /* for a store of this process: draw samples on the thread that calls the
                        sampler, and prefetch nothing. This costs less, and each draw uses the
                        latest priorities. No effect with a server or `checked` */
} rp_sampler_options;

/* Creates a sampler and starts prefetching. The client must outlive the sampler. Returns owned.
 * With `checked`, the call first fetches the signature. If the client has fetched this
 * signature before, the call waits at most a second for the server, and then uses the signature
 * that the client has. Errors: RP_INVALID, RP_NO_RESOURCE, RP_NOT_FOUND (no such table; only
 * with `checked`). */
RP_API RP_NODISCARD rp_status rp_sampler_new(rp_client *client,
                                             const rp_sampler_options *options,
                                             rp_sampler **out, rp_error *err);
/* Ends the waits of other threads with RP_CANCELLED, then frees the sampler. Prefetched samples
 * are lost, as in Reverb. NULL is fine. */
RP_API void rp_sampler_free(rp_sampler *sampler);
/* Ends all waits on the sampler, now and later, with RP_CANCELLED. */
RP_API void rp_sampler_close(rp_sampler *sampler);

/* Takes 1 to `capacity` samples: waits for the first sample, then returns all samples that have
 * arrived, at most `capacity`. The caller releases the samples with rp_samples_release(). If
 * the client has several servers, `probability` and `table_size` refer to the tables of all
 * servers together.
 *
 * If the deadline of `wait` passes after at least 0.1 s, the call asks the server why no sample
 * came, and adds the reason to the error text. It asks at most once a second. The timeout of
 * this request is a tenth of the time that the call has waited so far, but not below 50 ms and
 * not above half a second. If the server does not respond, the call therefore returns late, by
 * this timeout.
 *
 * Errors: RP_DEADLINE (`wait` ended; or rate_limiter_timeout_ms passed, in which case the text
 * says so and every later call returns RP_DEADLINE), RP_PRECONDITION (max_samples have been
 * taken), RP_UNAVAILABLE (no server could be reached or responded for rate_limiter_timeout_ms;
 * every later call returns RP_UNAVAILABLE), RP_CANCELLED, RP_NOT_FOUND (no such table),
 * RP_CORRUPT, RP_INVALID (`checked`, and a sample does not fit the signature), RP_NO_RESOURCE
 * (memory, or a sample over the client's `item_bytes`), RP_DENIED, RP_UNAUTHENTICATED. Samples
 * that arrived before the failure are returned first. If rate_limiter_timeout_ms is positive,
 * only time in which a call waits counts towards this timeout. If it is 0, the sampler can end
 * even if no call waits.
 *
 * If the table is on several servers and is sampled in a fixed order (by fifo, lifo or a heap,
 * table_options.h), the rp_sampler draws from the servers in turns. `probability` is then the
 * probability within the table of one server. */
RP_API RP_NODISCARD rp_status rp_sampler_next(rp_sampler *sampler, rp_sample *out,
                                              size_t capacity, size_t *count, rp_wait wait,
                                              rp_error *err);

typedef enum rp_ragged {
    RP_RAGGED_REFUSE = 0,  /* items must have equal lengths */
    RP_RAGGED_PAD = 1,     /* pad items with zeros; rp_batch_lengths() returns the lengths */
    RP_RAGGED_OFFSETS = 2, /* concatenate items; rp_batch_lengths() returns offsets */
} rp_ragged;

/* The type and size of one decoded column of a batch. */
typedef struct rp_batch_column {
    rp_dtype dtype;
    rp_shape shape; /* the first dimension counts items, or rows with RP_RAGGED_OFFSETS */
    size_t bytes;   /* decoded size; for RP_STRING, elements * sizeof(rp_string) */
} rp_batch_column;

typedef struct rp_batch rp_batch;

/* Waits for `size` (1 to 2^20) consecutive samples and makes a batch of them, which is not
 * decoded yet. While this call waits, other callers of the sampler wait, too. If the sampler
 * ends before there are `size` samples, and `whole` is false, the samples so far become a last,
 * smaller batch. If `whole` is true, or if the wait ends, the samples so far stay for the next
 * call. Returns owned. The batch can outlive the sampler, but not the client. One thread at a
 * time may use the batch.
 *
 * Errors: those of rp_sampler_next(), and two after which the samples are lost: RP_INVALID (the
 * items differ; the text names the item, its value and the expected one), RP_NO_RESOURCE (the
 * batch is over the client's `batch_bytes`). */
RP_API RP_NODISCARD rp_status rp_sampler_batch(rp_sampler *sampler, size_t size,
                                               rp_ragged ragged, bool whole, rp_wait wait,
                                               rp_batch **out, rp_error *err);
RP_API void rp_batch_free(rp_batch *batch); /* NULL is fine */

RP_API size_t rp_batch_size(const rp_batch *batch);
/* Returns the samples, in order. Borrowed. */
RP_API const rp_sample *rp_batch_samples(const rp_batch *batch);
RP_API size_t rp_batch_column_count(const rp_batch *batch);
RP_API const rp_batch_column *rp_batch_get_column(const rp_batch *batch, size_t column);
/* With RP_RAGGED_PAD: returns the number of rows of each item, or NULL if all are equal. With
 * RP_RAGGED_OFFSETS: returns size + 1 offsets: the first row of each item, then the number of
 * all rows. Returns NULL for a column with `squeeze` (one row without a row dimension,
 * trajectory.h), which is never ragged. Borrowed. */
RP_API const int64_t *rp_batch_lengths(const rp_batch *batch, size_t column);

/* Decodes every column into dst[column]; NULL skips a column. dst_bytes[column] must be exactly
 * the bytes of that column. The sampler's threads help the calling thread. Strings are borrowed
 * from the batch.
 * Errors: RP_INVALID, RP_CORRUPT, RP_NO_RESOURCE, RP_PRECONDITION (in the child of a fork). */
RP_API RP_NODISCARD rp_status rp_batch_decode(rp_batch *batch, void *const *dst,
                                              const size_t *dst_bytes, rp_error *err);

/* The memory for one column of stacked items: item i goes to dst + i * item_bytes. */
typedef struct rp_stack_place {
    void *dst;         /* NULL skips the column */
    size_t item_bytes; /* bytes of one item in this column, exactly */
} rp_stack_place;

/* The memory of a stack of items. */
typedef struct rp_stack {
    const rp_stack_place *columns; /* one for each column of the items */
    size_t column_count;
    rp_sample *samples; /* `size` of them; all fields are written, and the trajectory is set to
                           NULL */
    size_t size;        /* items, 1 to 2^20 */
} rp_stack;

/* For callers that know the columns of the items. Waits for `to->size` samples and decodes each
 * on the calling thread as it arrives, because its data is then in the processor's cache. This
 * is faster than a batch if items are large and not compressed. The call decodes and releases
 * samples in groups, so the memory in use does not grow with `to->size`. A group is one item,
 * or up to 256 items with at most 256 KiB of decoded data. Between two groups, other callers
 * can get samples. Importance weights are normalised over the samples of one call.
 *
 * `*count`, the number of samples that were decoded, is written whatever the status. If the
 * sampler ends early, `*count` is less than `to->size`. The call returns RP_OK if `*count` is
 * at least 1, and the next call returns the reason. If the wait ends early, or the sampler is
 * closed, the call returns RP_DEADLINE or RP_CANCELLED, even if `*count` is at least 1. To
 * continue after RP_DEADLINE, the caller adds `*count` items to the addresses in `columns` and
 * `samples`, subtracts `*count` from `size`, and calls again.
 *
 * Errors: those of rp_sampler_batch(), and RP_PRECONDITION in the child of a fork. RP_INVALID
 * also means that an item does not have the columns and bytes of `to->columns`, differs from
 * the first item, or has strings. After RP_INVALID, RP_CORRUPT and RP_NO_RESOURCE the current
 * group of samples is lost. */
RP_API RP_NODISCARD rp_status rp_sampler_stack(rp_sampler *sampler, const rp_stack *to,
                                               size_t *count, rp_wait wait, rp_error *err);

/* Writes a sentence that says what the sampler waits for, cut to fit `size`. If only the server
 * knows the reason, the call asks the server, at most once a second and for at most half a
 * second. */
RP_API void rp_sampler_why(rp_sampler *sampler, char *text, size_t size);

RP_END_DECLS

#endif
