/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes string columns of chunks, in the two formats that TensorFlow writes.
 *
 *   list      varint32 length x n | bytes of element 0 | bytes of element 1 | ...
 *   values    a TensorProto with a field 8 for each element. Elements that are missing at the
 *             end equal the last one present; if there is none, every element is empty
 *
 * The functions have no state. */
#ifndef RP_CHUNK_STRING_LIST_H
#define RP_CHUNK_STRING_LIST_H

#include "reprise/tensor.h"

/* Reads a list of exactly `count` elements that fills `size` bytes. Writes the elements,
 * borrowed from `list`, to `out`. If `out` is NULL, only checks the list. Errors:
 * RP_CORRUPT. */
RP_NODISCARD rp_status rp_string_list_get(const uint8_t *list, size_t size, size_t count,
                                          rp_string *out);

/* Reads the elements of a TensorProto in the same way. Fields other than 8 are skipped. */
RP_NODISCARD rp_status rp_string_values_get(const uint8_t *tensor, size_t size, size_t count,
                                            rp_string *out);

/* Checks the elements of a TensorProto as rp_string_values_get() does, and sets `*bytes` to the
 * sum of their bytes, including missing elements. Errors: RP_CORRUPT, RP_NO_RESOURCE (the sum
 * overflows). */
RP_NODISCARD rp_status rp_string_values_measure(const uint8_t *tensor, size_t size,
                                                size_t count, size_t *bytes);

#endif
