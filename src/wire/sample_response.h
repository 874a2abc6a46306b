/* SPDX-License-Identifier: Apache-2.0 */
/* Writes samples: entries of a SampleStreamResponse, and their SampleInfo.
 *
 *   SampleStreamResponse   1 SampleEntry, repeated
 *   SampleEntry            1 SampleInfo  2 ChunkData, repeated  3 end_of_sequence
 *   SampleInfo             1 PrioritizedItem  2 probability  3 table_size  4 rate_limited
 *
 * Chunks are sent as the bytes that were received. */
#ifndef RP_WIRE_SAMPLE_RESPONSE_H
#define RP_WIRE_SAMPLE_RESPONSE_H

#include "reprise/table.h"
#include "wire/message.h"

/* The bytes of a serialised SampleInfo. rp_sample_info_write() writes exactly that many at
 * `at`, and returns the end. */
size_t rp_sample_info_size(const rp_sample *sample, size_t table_size);
uint8_t *rp_sample_info_write(uint8_t *at, const rp_sample *sample, const char *table,
                              size_t table_size);

/* Memory that is shared with the reader: [base, base + bytes). Chunks of `min_bytes` and more
 * in it are sent as their offset and size. SharedEntry: as SampleEntry, and
 *
 *   SharedEntry   4 hold   5 SharedChunk, repeated
 *   SharedChunk   1 offset  2 size */
typedef struct rp_sample_shared {
    const uint8_t *base;
    size_t bytes, min_bytes;
    uint64_t hold; /* not 0; written with the info */
} rp_sample_shared;

static inline bool rp_sample_is_shared(const rp_sample_shared *shared, const uint8_t *data,
                                       size_t size)
{
    return shared != NULL && size >= shared->min_bytes &&
           (uintptr_t)data - (uintptr_t)shared->base < shared->bytes;
}

/* Appends to `reply` an entry with chunks [first, first + count) of the sample's trajectory:
 * with its info if `first` is 0, with end_of_sequence if they include the last. The reply may
 * borrow the chunks, so it must hold the trajectory. `shared` may be NULL. False if there is no
 * memory. */
bool rp_sample_entry_append(rp_message *reply, const rp_sample *sample, const char *table,
                            size_t table_size, size_t first, size_t count,
                            const rp_sample_shared *shared);

#endif
