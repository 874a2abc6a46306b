/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the samples in a stream of SampleStreamResponses that arrives in pieces of any size.
 *
 * It parses the messages down to the fields of an entry and skips the bytes of these. One entry
 * in `check_every` is collected and compared. */
#ifndef BENCH_H2_LOAD_SAMPLES_H
#define BENCH_H2_LOAD_SAMPLES_H

#include "h2_load_message.h"

typedef struct h2_samples {
    const h2_shape *shape;
    uint32_t check_every; /* check one in this number of entries; 0: none */
    uint32_t until_check;
    uint64_t count; /* samples that are complete */
    uint64_t checked;
    size_t message_left; /* bytes left of the message that is being read */
    size_t entry_left;   /* bytes left of the entry that is being read */
    size_t skip;         /* bytes left of the field that is being skipped */
    bool checking;       /* this entry is collected */
    h2_bytes entry;
    uint8_t carry[24]; /* an incomplete prefix or tag */
    size_t carry_size;
    bool wrong; /* the bytes are no such stream, or a sample is not what was inserted */
} h2_samples;

void h2_samples_init(h2_samples *samples, const h2_shape *shape, uint32_t check_every);
void h2_samples_deinit(h2_samples *samples);

/* Reads the next bytes. Returns false if they are wrong. */
bool h2_samples_read(h2_samples *samples, const uint8_t *data, size_t size);

#endif
