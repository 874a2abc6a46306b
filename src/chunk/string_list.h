/* SPDX-License-Identifier: Apache-2.0 */
/* String columns: their elements as bytes, in the two forms that TensorFlow writes.
 *
 *   list      varint32 length x n | bytes of element 0 | bytes of element 1 | ...
 *   values    a TensorProto with a field 8 for each element; the last one stands for those
 *             that are missing, and if there is none, every element is empty
 *
 * Pure functions of the bytes. */
#ifndef RP_CHUNK_STRING_LIST_H
#define RP_CHUNK_STRING_LIST_H

#include "reprise/tensor.h"

/* Reads a list of exactly `count` elements that fills `size` bytes. Writes them to `out`,
 * borrowed from `list`; with `out` NULL it only checks. RP_CORRUPT. */
RP_NODISCARD rp_status rp_string_list_get(const uint8_t *list, size_t size, size_t count,
                                          rp_string *out);

/* The same for the elements of a TensorProto. Fields other than 8 are skipped. */
RP_NODISCARD rp_status rp_string_values_get(const uint8_t *tensor, size_t size, size_t count,
                                            rp_string *out);

/* Checks the elements of a TensorProto like rp_string_values_get(), and adds up their bytes:
 * one that stands for many counts as often. RP_CORRUPT; RP_NO_RESOURCE if no size_t holds the
 * sum. */
RP_NODISCARD rp_status rp_string_values_measure(const uint8_t *tensor, size_t size,
                                                size_t count, size_t *bytes);

#endif
