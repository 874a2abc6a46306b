/* SPDX-License-Identifier: Apache-2.0 */
/* Counts and checks the samples in a sequence of SampleStreamResponses. The bytes arrive in
 * pieces of any size.
 *
 * A message has entries, one for each sample. Most entries are skipped. One entry in every
 * `check_every` is copied and compared with the item that was inserted. */
#ifndef BENCH_H2_LOAD_SAMPLES_H
#define BENCH_H2_LOAD_SAMPLES_H

#include "h2_load_message.h"

typedef struct h2_samples {
    const h2_shape *shape;
    uint32_t check_every; /* one entry in every `check_every` is checked; 0: none is */
    uint32_t until_check;
    uint64_t count; /* number of complete samples */
    uint64_t checked;
    size_t message_left; /* bytes left of the message that is being read */
    size_t entry_left;   /* bytes left of the entry that is being read */
    size_t skip;         /* bytes left of the field that is being skipped */
    bool checking;       /* the entry that is being read is copied to `entry` and will be
                            checked */
    h2_bytes entry;
    uint8_t carry[24]; /* an incomplete prefix or tag */
    size_t carry_size;
    bool wrong; /* the bytes are not SampleStreamResponses, or a sample differs from the
                   inserted item */
} h2_samples;

void h2_samples_init(h2_samples *samples, const h2_shape *shape, uint32_t check_every);
void h2_samples_deinit(h2_samples *samples);

/* Reads the next bytes. Returns false if they are wrong. */
bool h2_samples_read(h2_samples *samples, const uint8_t *data, size_t size);

#endif
