/* SPDX-License-Identifier: Apache-2.0 */
/* Reads samples from a server's responses, which sample_response.h and admin_messages.h write.
 *
 *   SampleStreamResponse           1 SampleEntry, repeated
 *   SampleEntry                    1 SampleInfo  2 ChunkData, repeated  3 end_of_sequence
 *   PeekResponse, SampleResponse   1 ChunkData, repeated   2 Entry, repeated
 *   Entry                          1 SampleInfo  2 weight
 *
 * A sample of a stream consists of one or more entries (its pieces), possibly in several
 * messages. The first piece has the sample's info, the last has end_of_sequence. A chunk is
 * sent with each sample that refers to it; within one message the reader usually parses it only
 * once. A chunk of RP_READ_COPY_BYTES or more stays in the block of the message and holds a
 * reference to this block. Smaller chunks are copied.
 *
 * Chunks of a SharedEntry (sample_response.h) are in memory that the server shares with the
 * reader. They are not copied.
 *
 * Errors of all readers: RP_CORRUPT (malformed, pieces that do not match, a missing chunk, a
 * slice outside its chunk, an unknown dtype or codec), RP_NO_RESOURCE (a limit, or memory).
 * Only one thread at a time may use a reader. */
#ifndef RP_WIRE_SAMPLE_RESPONSE_READ_H
#define RP_WIRE_SAMPLE_RESPONSE_READ_H

#include "chunk/chunk_api.h"
#include "reprise/table.h"
#include "wire/block.h"

enum { RP_READ_COPY_BYTES = 8 * 1024 };

/* Limits of one sample, and of one batch (a PeekResponse or SampleResponse). */
typedef struct rp_sample_limits {
    rp_chunk_limits chunk;                 /* limits of each chunk */
    size_t chunks, columns, slices, bytes; /* limits of one sample */
    size_t batch_chunks;                   /* limit of one PeekResponse or SampleResponse */
    size_t item_bytes;                     /* limit of one decoded sample */
} rp_sample_limits;

/* Returns the defaults. `chunk` is rp_chunk_limits_default() with a max_wire_bytes of 512 MiB.
 * The limits of one sample are 65,536 chunks, RP_MAX_COLUMNS columns, RP_MAX_SLICES slices and
 * 1 GiB. batch_chunks is 1,048,576, and item_bytes is 1 GiB. */
rp_sample_limits rp_sample_limits_default(void);

typedef struct rp_sample_reader rp_sample_reader;

/* Makes a reader. If `limits` is NULL, the reader has the default limits. Chunks and
 * trajectories are allocated with `alloc`. The caller owns `*out`. */
RP_NODISCARD rp_status rp_sample_reader_new(const rp_allocator *alloc,
                                            const rp_sample_limits *limits,
                                            rp_sample_reader **out, rp_error *err);
void rp_sample_reader_free(rp_sample_reader *reader); /* NULL is fine */

/* Memory shared with the server. A hold is the server's reference to the trajectory of one
 * sample, kept for this client (server/shm/lease.h). While the hold exists, the chunks of the
 * trajectory stay in the shared memory. While the reader assembles the sample, the reader has a
 * reference to the hold. Every chunk of the sample has a further reference to the hold. */
typedef struct rp_shared_source {
    /* Returns the address of `size` bytes at `offset`; NULL if these bytes are not in the
     * shared memory. */
    const uint8_t *(*find)(void *ctx, uint64_t offset, uint64_t size);
    /* Returns a reference to the hold with the number `hold`. Returns NULL if the allocation
     * failed. */
    void *(*take)(void *ctx, uint64_t hold);
    void (*ref)(void *hold);
    void (*unref)(void *hold);
    void *ctx;
} rp_shared_source;

/* Sets the shared memory; NULL means none. `shared` is borrowed. The caller must call this only
 * between streams. */
void rp_sample_reader_share(rp_sample_reader *reader, const rp_shared_source *shared);

/* Drops the unread part of the message, and the parts of an incomplete sample. The caller must
 * call this before a new stream and after an error. */
void rp_sample_reader_reset(rp_sample_reader *reader);

/* Returns true if a part of a sample has been read, and further pieces of it must follow. */
bool rp_sample_reader_is_within(const rp_sample_reader *reader);

/* Starts to read a SampleStreamResponse. `data` is in `block`; chunks that are not copied take
 * references to `block`. If `block` is NULL, every chunk is copied. `data` must stay valid
 * until rp_sample_reader_next() has returned 0 samples, or until the reader is reset. Drops the
 * unread part of the previous message. */
void rp_sample_reader_open(rp_sample_reader *reader, const uint8_t *data, size_t size,
                           rp_block *block);

/* Writes the next samples of the message to `out`, in order, up to `capacity` (>= 1). If
 * `*count` is 0, the message has no more samples. The samples in `out` have the weight 1. The
 * caller releases them with rp_samples_release(). On failure `out` has nothing to release, the
 * remaining samples of the message are lost, and the reader is reset. */
RP_NODISCARD rp_status rp_sample_reader_next(rp_sample_reader *reader, rp_sample *out,
                                             size_t capacity, size_t *count, rp_error *err);

/* A list of samples. The caller sets `samples` and `capacity`. */
typedef struct rp_sample_list {
    rp_sample *samples;
    size_t capacity, count;
} rp_sample_list;

/* Reads a PeekResponse or SampleResponse. If it has more than `out->capacity` samples, returns
 * RP_NO_RESOURCE. If `with_data` is false, the trajectories of the samples are NULL; this is
 * for a peek without chunks. Chunks are copied. Resets the reader. `out->count` is 0 on
 * failure. */
RP_NODISCARD rp_status rp_sample_reader_batch(rp_sample_reader *reader, const uint8_t *data,
                                              size_t size, bool with_data, rp_sample_list *out,
                                              rp_error *err);

#endif
