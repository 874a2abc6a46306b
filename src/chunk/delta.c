/* SPDX-License-Identifier: Apache-2.0 */
/* Rows are combined in blocks of 64 bytes that are loaded, added and stored as a whole. The
 * copies through local arrays tell the compiler that a row and the row before it do not
 * overlap, and make alignment irrelevant; the loop of known length becomes vector instructions.
 * The rest of a row is combined element by element. */
#include "chunk/delta.h"

#include <assert.h>
#include <string.h>

#include "tensor/tensor.h"

enum { BLOCK = 64 };

bool rp_delta_applies(rp_dtype dtype, const rp_shape *shape)
{
    return rp_dtype_is_integer(dtype) && shape->rank >= 2;
}

/* Defines a function that applies `op` to every element of a row and of the row before. */
#define DEFINE_COMBINE(name, type, op)                                                         \
    static void name(uint8_t *row, const uint8_t *before, size_t bytes)                        \
    {                                                                                          \
        size_t i = 0;                                                                          \
        for (; i + BLOCK <= bytes; i += BLOCK) {                                               \
            type a[BLOCK / sizeof(type)], b[BLOCK / sizeof(type)];                             \
            memcpy(a, row + i, BLOCK);                                                         \
            memcpy(b, before + i, BLOCK);                                                      \
            for (size_t k = 0; k < BLOCK / sizeof(type); k++) a[k] = (type)(a[k] op b[k]);     \
            memcpy(row + i, a, BLOCK);                                                         \
        }                                                                                      \
        for (; i < bytes; i += sizeof(type)) {                                                 \
            type a, b;                                                                         \
            memcpy(&a, row + i, sizeof a);                                                     \
            memcpy(&b, before + i, sizeof b);                                                  \
            a = (type)(a op b);                                                                \
            memcpy(row + i, &a, sizeof a);                                                     \
        }                                                                                      \
    }

DEFINE_COMBINE(subtract_8, uint8_t, -)
DEFINE_COMBINE(subtract_16, uint16_t, -)
DEFINE_COMBINE(subtract_32, uint32_t, -)
DEFINE_COMBINE(subtract_64, uint64_t, -)
DEFINE_COMBINE(add_8, uint8_t, +)
DEFINE_COMBINE(add_16, uint16_t, +)
DEFINE_COMBINE(add_32, uint32_t, +)
DEFINE_COMBINE(add_64, uint64_t, +)

typedef void combine(uint8_t *row, const uint8_t *before, size_t bytes);

static combine *choose(combine *of_8, combine *of_16, combine *of_32, combine *of_64,
                       size_t element_bytes)
{
    assert(element_bytes == 1 || element_bytes == 2 || element_bytes == 4 ||
           element_bytes == 8);
    switch (element_bytes) {
    case 1: return of_8;
    case 2: return of_16;
    case 4: return of_32;
    default: return of_64;
    }
}

void rp_delta_encode(void *data, size_t rows, size_t row_bytes, size_t element_bytes)
{
    combine *subtract =
        choose(subtract_8, subtract_16, subtract_32, subtract_64, element_bytes);
    uint8_t *bytes = data;

    assert(row_bytes % element_bytes == 0);
    if (row_bytes == 0) return;
    /* Backwards: the row before must be plain. */
    for (size_t i = rows; i-- > 1;)
        subtract(bytes + i * row_bytes, bytes + (i - 1) * row_bytes, row_bytes);
}

void rp_delta_decode(void *data, size_t rows, size_t row_bytes, size_t element_bytes)
{
    combine *add = choose(add_8, add_16, add_32, add_64, element_bytes);
    uint8_t *bytes = data;

    assert(row_bytes % element_bytes == 0);
    if (row_bytes == 0) return;
    for (size_t i = 1; i < rows; i++)
        add(bytes + i * row_bytes, bytes + (i - 1) * row_bytes, row_bytes);
}
