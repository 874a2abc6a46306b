/* SPDX-License-Identifier: Apache-2.0 */
/* Writes samples: the entries of a SampleStreamResponse, each with a SampleInfo and chunks.
 *
 *   SampleStreamResponse   1 SampleEntry, repeated
 *   SampleEntry            1 SampleInfo  2 ChunkData, repeated  3 end_of_sequence
 *   SampleInfo             1 PrioritizedItem  2 probability  3 table_size  4 rate_limited
 *
 * A chunk is sent unchanged, as the bytes that the server received from the writer. */
#ifndef RP_WIRE_SAMPLE_RESPONSE_H
#define RP_WIRE_SAMPLE_RESPONSE_H

#include "reprise/table.h"
#include "wire/message.h"

/* rp_sample_info_size() returns the size of a serialised SampleInfo. rp_sample_info_write()
 * writes exactly that many bytes at `at`, and returns the address after them. `table` is the
 * name of the table. */
size_t rp_sample_info_size(const rp_sample *sample, size_t table_size);
uint8_t *rp_sample_info_write(uint8_t *at, const rp_sample *sample, const char *table,
                              size_t table_size);

/* Memory that the server shares with the reader: [base, base + bytes). If a chunk is in this
 * memory and has `min_bytes` or more, only the offset and size of the chunk are sent. The entry
 * is then a SharedEntry: a SampleEntry with the further fields
 *
 *   SharedEntry   4 hold   5 SharedChunk, repeated
 *   SharedChunk   1 offset  2 size */
typedef struct rp_sample_shared {
    const uint8_t *base;
    size_t bytes, min_bytes;
    uint64_t hold; /* number of the hold: the server's reference that keeps these chunks in the
                      memory (server/shm/lease.h); not 0. The number is written with the
                      SampleInfo */
} rp_sample_shared;

static inline bool rp_sample_is_shared(const rp_sample_shared *shared, const uint8_t *data,
                                       size_t size)
{
    return shared != NULL && size >= shared->min_bytes &&
           (uintptr_t)data - (uintptr_t)shared->base < shared->bytes;
}

/* Appends to `reply` an entry with chunks [first, first + count) of the sample's trajectory.
 * The entry has the sample's info if `first` is 0, and end_of_sequence if these chunks include
 * the last one. The reply can borrow the bytes of the chunks, so the caller must make the reply
 * hold the trajectory (rp_message_hold()). `shared` may be NULL. Returns false if there is no
 * memory. */
bool rp_sample_entry_append(rp_message *reply, const rp_sample *sample, const char *table,
                            size_t table_size, size_t first, size_t count,
                            const rp_sample_shared *shared);

#endif
