/* SPDX-License-Identifier: Apache-2.0 */
/* Writing samples: entries of a SampleStreamResponse, and the SampleInfo in them.
 *
 *   SampleStreamResponse   1 SampleEntry, repeated
 *   SampleEntry            1 SampleInfo  2 ChunkData, repeated  3 end_of_sequence
 *   SampleInfo             1 PrioritizedItem  2 probability  3 table_size  4 rate_limited
 *
 * Chunks go out as the bytes they came as. */
#ifndef RP_WIRE_SAMPLE_RESPONSE_H
#define RP_WIRE_SAMPLE_RESPONSE_H

#include "reprise/table.h"
#include "wire/reply.h"

/* Bytes of a serialised SampleInfo, and writing them: exactly that many, at `at`; returns the
 * end. */
size_t rp_sample_info_size(const rp_sample *sample, size_t table_size);
uint8_t *rp_sample_info_write(uint8_t *at, const rp_sample *sample, const char *table,
                              size_t table_size);

/* Appends to `reply` an entry with chunks [first, first + count) of the sample's trajectory:
 * with its info if `first` is 0, with end_of_sequence if they are its last. The chunks may be
 * borrowed, so the trajectory must be held. False if there is no memory. */
bool rp_sample_entry_append(rp_reply *reply, const rp_sample *sample, const char *table,
                            size_t table_size, size_t first, size_t count);

#endif
