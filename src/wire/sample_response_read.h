/* SPDX-License-Identifier: Apache-2.0 */
/* Reads samples, which sample_response.h and admin_messages.h write, and assembles them.
 *
 *   SampleStreamResponse           1 SampleEntry, repeated
 *   SampleEntry                    1 SampleInfo  2 ChunkData, repeated  3 end_of_sequence
 *   PeekResponse, SampleResponse   1 ChunkData, repeated   2 Entry, repeated
 *   Entry                          1 SampleInfo  2 weight
 *
 * A sample of a stream may have several pieces, also in several messages: the first has its
 * info, the last end_of_sequence. A chunk is sent with each sample that refers to it; within
 * one message it is mostly parsed once. Chunks of RP_READ_COPY_BYTES and more stay in the block
 * of the message, with a reference to it; smaller ones are copied.
 *
 * A stream of SharedEntry (sample_response.h) has chunks in memory that the reader shares with
 * the server: they are not copied.
 *
 * Statuses of all readers: RP_CORRUPT (malformed, pieces that do not match, a missing chunk, a
 * slice outside its chunk, an unknown dtype or codec), RP_NO_RESOURCE (a limit, or memory). One
 * thread at a time. */
#ifndef RP_WIRE_SAMPLE_RESPONSE_READ_H
#define RP_WIRE_SAMPLE_RESPONSE_READ_H

#include "chunk/chunk_api.h"
#include "reprise/table.h"
#include "wire/block.h"

enum { RP_READ_COPY_BYTES = 8 * 1024 };

/* Limits of one sample, and of one batch. */
typedef struct rp_sample_limits {
    rp_chunk_limits chunk;                 /* each */
    size_t chunks, columns, slices, bytes; /* of one sample */
    size_t batch_chunks;                   /* of one PeekResponse or SampleResponse */
    size_t item_bytes;                     /* of one sample, decoded */
} rp_sample_limits;

/* rp_chunk_limits_default() with 512 MiB; 65,536 chunks, RP_MAX_COLUMNS, RP_MAX_SLICES, 1 GiB;
 * 1,048,576 chunks; 1 GiB. */
rp_sample_limits rp_sample_limits_default(void);

typedef struct rp_sample_reader rp_sample_reader;

/* `limits` may be NULL. Chunks and trajectories come from `alloc`. Returns owned. */
RP_NODISCARD rp_status rp_sample_reader_new(const rp_allocator *alloc,
                                            const rp_sample_limits *limits,
                                            rp_sample_reader **out, rp_error *err);
void rp_sample_reader_free(rp_sample_reader *reader); /* NULL is fine */

/* Memory shared with the server. A hold keeps its chunks there: the reader has a reference to
 * it while it assembles the sample, and every chunk has one. */
typedef struct rp_shared_source {
    const uint8_t *(*find)(void *ctx, uint64_t offset, uint64_t size); /* NULL: not there */
    void *(*take)(void *ctx, uint64_t hold); /* one reference; NULL: no memory */
    void (*ref)(void *hold);
    void (*unref)(void *hold);
    void *ctx;
} rp_shared_source;

/* Sets the shared memory; NULL: none. `shared` is borrowed. Between streams only. */
void rp_sample_reader_share(rp_sample_reader *reader, const rp_shared_source *shared);

/* Drops the message and an incomplete sample: for a new stream, or after an error. */
void rp_sample_reader_reset(rp_sample_reader *reader);

/* True between two pieces of a sample. */
bool rp_sample_reader_is_within(const rp_sample_reader *reader);

/* Starts to read a SampleStreamResponse. `data` is in `block`, to which the reader takes
 * references if necessary; `block` NULL: every chunk is copied. `data` must stay valid until
 * rp_sample_reader_next() has returned 0 samples, or the reader is reset. The rest of the
 * message before is dropped. */
void rp_sample_reader_open(rp_sample_reader *reader, const uint8_t *data, size_t size,
                           rp_block *block);

/* Returns the next samples of the message, up to `capacity` (>= 1), in their order; `*count` 0:
 * there are no more. `weight` is 1; release them with rp_samples_release(). On failure `out`
 * has nothing to release, the remaining samples of the message are lost and the reader is
 * reset. */
RP_NODISCARD rp_status rp_sample_reader_next(rp_sample_reader *reader, rp_sample *out,
                                             size_t capacity, size_t *count, rp_error *err);

/* A list of samples. The caller sets `samples` and `capacity`. */
typedef struct rp_sample_list {
    rp_sample *samples;
    size_t capacity, count;
} rp_sample_list;

/* Reads a PeekResponse or SampleResponse; more than `out->capacity` samples are RP_NO_RESOURCE.
 * Without `with_data`, for a peek without chunks, trajectories are NULL. Chunks are copied.
 * Resets the reader. `out->count` is 0 on failure. */
RP_NODISCARD rp_status rp_sample_reader_batch(rp_sample_reader *reader, const uint8_t *data,
                                              size_t size, bool with_data, rp_sample_list *out,
                                              rp_error *err);

#endif
