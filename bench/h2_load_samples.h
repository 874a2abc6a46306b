/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the samples in a stream of SampleStreamResponses that comes in pieces of any size.
 *
 * It follows the messages down to the fields of an entry and steps over their bytes; one entry
 * in so many is put together and looked at. */
#ifndef BENCH_H2_LOAD_SAMPLES_H
#define BENCH_H2_LOAD_SAMPLES_H

#include "h2_load_message.h"

typedef struct h2_samples {
    const h2_shape *shape;
    uint32_t check_every; /* entries; 0: never */
    uint32_t until_check;
    uint64_t count; /* samples that are complete */
    uint64_t checked;
    size_t message_left; /* bytes of the message that is being read */
    size_t entry_left;   /* bytes of its entry */
    size_t skip;         /* bytes of the field of that */
    bool checking;       /* this entry is collected */
    h2_bytes entry;
    uint8_t carry[24]; /* a prefix or a tag that is not whole yet */
    size_t carry_size;
    bool wrong; /* it is no such stream, or a sample was not what was inserted */
} h2_samples;

void h2_samples_init(h2_samples *samples, const h2_shape *shape, uint32_t check_every);
void h2_samples_deinit(h2_samples *samples);

/* Takes the next bytes. False if they are wrong. */
bool h2_samples_read(h2_samples *samples, const uint8_t *data, size_t size);

#endif
