/* SPDX-License-Identifier: Apache-2.0 */
/* Reading samples: what sample_response.h and replay_calls.h write, put together again.
 *
 *   SampleStreamResponse           1 SampleEntry, repeated
 *   SampleEntry                    1 SampleInfo  2 ChunkData, repeated  3 end_of_sequence
 *   PeekResponse, SampleResponse   1 ChunkData, repeated   2 Entry, repeated
 *   Entry                          1 SampleInfo  2 weight
 *
 * A sample of a stream may come in several pieces, also over several messages: the first has
 * its info, the last end_of_sequence. A chunk comes once for each sample that refers to it;
 * within one message it is parsed once, as long as it has one key and one size. Chunks of
 * RP_READ_COPY_BYTES and more stay where they are, in the block of the message, which is then
 * referenced; smaller ones are copied.
 *
 * A stream of SharedEntry (sample_response.h) has chunks that lie in memory which the reader
 * shares with the server: they stay there.
 *
 * Statuses of all readers: RP_CORRUPT (not such a message, pieces that do not fit together, a
 * chunk that is missing, a slice that is not in its chunk, a dtype or codec we do not know),
 * RP_NO_RESOURCE (a limit, or memory). One thread at a time. */
#ifndef RP_WIRE_SAMPLE_RESPONSE_READ_H
#define RP_WIRE_SAMPLE_RESPONSE_READ_H

#include "chunk/chunk_api.h"
#include "reprise/table.h"
#include "wire/block.h"

enum { RP_READ_COPY_BYTES = 8 * 1024 };

/* What a server may make us keep for one sample, and for one batch. */
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

/* Memory shared with the server. A hold is what lets its chunks stay there: the reader has a
 * reference while it puts the sample together, every chunk has one. */
typedef struct rp_shared_source {
    const uint8_t *(*find)(void *ctx, uint64_t offset, uint64_t size); /* NULL: not there */
    void *(*take)(void *ctx, uint64_t hold); /* one reference; NULL: no memory */
    void (*ref)(void *hold);
    void (*unref)(void *hold);
    void *ctx;
} rp_shared_source;

/* From now on there is such memory; NULL: there is none. `shared` is borrowed. Between streams
 * only. */
void rp_sample_reader_share(rp_sample_reader *reader, const rp_shared_source *shared);

/* Forgets the message and the sample begun: for a new stream, or after an error. */
void rp_sample_reader_reset(rp_sample_reader *reader);

/* True between two pieces of a sample. */
bool rp_sample_reader_is_within(const rp_sample_reader *reader);

/* Takes the next SampleStreamResponse. `data` lies in `block`, of which the reader takes
 * references of its own if it needs any; `block` NULL: every chunk is copied. `data` must stay
 * until rp_sample_reader_next() has said that nothing is left, or the reader is reset. What was
 * left of the message before is skipped. */
void rp_sample_reader_open(rp_sample_reader *reader, const uint8_t *data, size_t size,
                           rp_block *block);

/* Writes the next samples of the message, up to `capacity` (>= 1), in the order in which they
 * stand there; `*count` 0: nothing is left. `weight` is 1; release them with
 * rp_samples_release(). On failure nothing is written to `out` that must be released; samples
 * of that message not yet handed out are lost and the reader is as after a reset. */
RP_NODISCARD rp_status rp_sample_reader_next(rp_sample_reader *reader, rp_sample *out,
                                             size_t capacity, size_t *count, rp_error *err);

/* Reads a whole PeekResponse or SampleResponse: up to `capacity` samples, more are
 * RP_NO_RESOURCE. Without `with_data`, as of a peek that did not ask for it, trajectories are
 * NULL. The stream that the reader is in, if any, is forgotten. `*count` is 0 on failure. */
RP_NODISCARD rp_status rp_sample_reader_batch(rp_sample_reader *reader, const uint8_t *data,
                                              size_t size, rp_block *block, bool with_data,
                                              rp_sample *out, size_t capacity, size_t *count,
                                              rp_error *err);

#endif
