/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes KeyDistributionOptions: the kind of the selector that a table uses as its
 * sampler or its remover.
 *
 *   KeyDistributionOptions   one of 1 fifo  2 uniform  3 Prioritized  4 Heap  6 lifo
 *                            7 is_deterministic
 *   Prioritized              1 priority_exponent
 *   Heap                     1 min_heap */
#ifndef RP_WIRE_SELECTOR_WIRE_H
#define RP_WIRE_SELECTOR_WIRE_H

#include "wire/fields.h"

/* The part of a KeyDistributionOptions that has been read. Zero-initialise it. */
typedef struct rp_wire_selector {
    bool present;   /* the message has the field */
    uint32_t which; /* field number of the member of the oneof; 0: none */
    double exponent;
    bool min_heap;
} rp_wire_selector;

/* Reads a KeyDistributionOptions field. If a message has the field twice, the second call
 * merges the second field into `selector`. Returns false if the field is malformed. */
RP_NODISCARD bool rp_wire_read_selector(const rp_pb_field *field, rp_wire_selector *selector);

/* Converts `selector` to options. Must be called after all fields of the message have been
 * read. If the message did not have the field, `*out` is unchanged. Returns false if the kind
 * is missing or unknown. */
RP_NODISCARD bool rp_wire_take_selector(const rp_wire_selector *selector,
                                        rp_selector_options *out);

void rp_wire_put_selector(rp_buf *out, uint32_t number, const rp_selector_options *options);

#endif
