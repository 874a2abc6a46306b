/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that make chunks for tests. */
#ifndef RP_TEST_CHUNKS_H
#define RP_TEST_CHUNKS_H

#include "chunk/chunk_api.h"
#include "reprise/trajectory.h"
#include "support/unit.h"
#include "util/rng.h"

/* Makes a shape from its dimensions: SHAPE(2, 3). A scalar is SCALAR. */
#define SHAPE(...)                                                                             \
    ((rp_shape){.rank = (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),         \
                .dims = {__VA_ARGS__}})
#define SCALAR ((rp_shape){.rank = 0})

static const rp_dtype rp_test_dtypes[] = {
    RP_FLOAT32,   RP_FLOAT64, RP_INT32,       RP_UINT8,         RP_INT16,      RP_INT8,
    RP_COMPLEX64, RP_INT64,   RP_BOOL,        RP_QINT8,         RP_QUINT8,     RP_QINT32,
    RP_BFLOAT16,  RP_QINT16,  RP_QUINT16,     RP_UINT16,        RP_COMPLEX128, RP_FLOAT16,
    RP_UINT32,    RP_UINT64,  RP_FLOAT8_E5M2, RP_FLOAT8_E4M3FN, RP_INT4,       RP_UINT4,
}; /* all but RP_STRING */

/* Makes a chunk of one column from `rows` consecutive rows of plain data. Returns owned. */
static inline rp_status rp_test_try_chunk(const rp_allocator *alloc, uint64_t key,
                                          const rp_chunk_options *options, const rp_spec *spec,
                                          size_t rows, const void *data, rp_chunk **out)
{
    rp_chunk_origin origin = {.key = key, .episode = 7, .last_step = (int32_t)rows - 1};
    rp_chunk_builder *builder = NULL;
    size_t elements;
    rp_status st = rp_shape_elements(&spec->shape, &elements);

    if (st == RP_OK) st = rp_chunk_builder_new(alloc, spec, 1, options, &builder, NULL);
    for (size_t i = 0; st == RP_OK && i < rows; i++) {
        const char *row = (const char *)data + i * elements * rp_dtype_size(spec->dtype);
        rp_tensor tensor = {spec->dtype, spec->shape, row};
        st = rp_chunk_builder_append(builder, &tensor, NULL);
    }
    if (st == RP_OK) st = rp_chunk_builder_finish(builder, &origin, out, NULL);
    rp_chunk_builder_free(builder);
    return st;
}

static inline rp_chunk *rp_test_chunk(uint64_t key, const rp_chunk_options *options,
                                      const rp_spec *spec, size_t rows, const void *data)
{
    rp_chunk *chunk = NULL;
    assert_ok(
        rp_test_try_chunk(rp_allocator_default(), key, options, spec, rows, data, &chunk));
    return chunk;
}

/* Makes a chunk of `rows` rows of `cols` int32, which count up from 1000 * key. Returns owned.
 */
static inline rp_status rp_test_try_ints(const rp_allocator *alloc, uint64_t key,
                                         rp_codec codec, size_t rows, size_t cols,
                                         rp_chunk **out)
{
    int32_t *data = calloc(rows * cols + 1, sizeof *data);
    rp_spec spec = {"x", RP_INT32, SHAPE((int64_t)cols)};
    rp_chunk_options options = {.codec = codec};
    rp_status st;

    assert_non_null(data);
    for (size_t i = 0; i < rows * cols; i++) data[i] = (int32_t)(1000 * key + i);
    st = rp_test_try_chunk(alloc, key, &options, &spec, rows, data, out);
    free(data);
    return st;
}

static inline rp_chunk *rp_test_ints(uint64_t key, rp_codec codec, size_t rows, size_t cols)
{
    rp_chunk *chunk = NULL;
    assert_ok(rp_test_try_ints(rp_allocator_default(), key, codec, rows, cols, &chunk));
    return chunk;
}

/* Fills memory with bytes like real data: runs, repeats and noise in turn. */
static inline void rp_test_fill(rp_rng *rng, uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size;) {
        size_t length = 1 + rp_rng_below(rng, 40), kind = rp_rng_below(rng, 3);
        uint8_t byte = (uint8_t)rp_rng_next(rng);
        size_t back = i > 0 ? 1 + rp_rng_below(rng, i) : 0;
        for (; length > 0 && i < size; length--, i++)
            data[i] = kind == 0               ? byte
                      : kind == 1 && back > 0 ? data[i - back]
                                              : (uint8_t)rp_rng_next(rng);
    }
}

#endif
