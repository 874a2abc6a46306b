/* SPDX-License-Identifier: Apache-2.0 */
/* Ragged batches: pure functions over items. */
#include <assert.h>
#include <string.h>

#include "rollouts/rollout_item.h"
#include "util/error.h"
#include "util/mem.h"

/* The rows of a column: its first dimension, 1 for a scalar. */
static size_t rows_of(const rp_tensor *tensor)
{
    return tensor->shape.rank > 0 ? (size_t)tensor->shape.dims[0] : 1;
}

/* Sets `shape` to the shape of one row, with a first dimension of 0 before it. */
static void row_shape(const rp_tensor *tensor, rp_shape *shape)
{
    *shape = (rp_shape){.rank = 1};
    for (int32_t i = 1; i < tensor->shape.rank; i++)
        shape->dims[shape->rank++] = tensor->shape.dims[i];
}

rp_status rp_rollout_ragged_measure(const rp_rollout_item *const *items, size_t count,
                                    rp_string name, rp_rollout_ragged *out, rp_error *err)
{
    rp_rollout_ragged ragged = {.count = count, .shape = {.rank = 1}};
    size_t rows = 0, bytes = 0;
    char a[64], b[64];

    if (items == NULL && count > 0)
        return rp_fail(err, RP_INVALID, "`items` is NULL, count %zu", count);
    if (name.data == NULL && name.size > 0)
        return rp_fail(err, RP_INVALID, "the name of a column is NULL, size %zu", name.size);
    for (size_t i = 0; i < count; i++) {
        const rp_rollout_column *column = rp_rollout_item_column(items[i], name);
        rp_shape shape;

        if (column == NULL)
            return rp_fail(err, RP_NOT_FOUND, "item %zu of the batch has no column '%.*s'", i,
                           (int)name.size, name.data);
        row_shape(&column->tensor, &shape);
        if (i == 0) {
            ragged.shape = shape;
            ragged.dtype = column->tensor.dtype;
        }
        if (column->tensor.dtype != ragged.dtype || !rp_shape_equal(&shape, &ragged.shape))
            return rp_fail(err, RP_INVALID,
                           "column '%.*s' of item %zu has rows of %s %s, that of item 0 has "
                           "rows of %s %s",
                           (int)name.size, name.data, i, rp_dtype_name(column->tensor.dtype),
                           rp_shape_text(&shape, a, sizeof a), rp_dtype_name(ragged.dtype),
                           rp_shape_text(&ragged.shape, b, sizeof b));
        if (!rp_size_add(rows, rows_of(&column->tensor), &rows) || rows > INT64_MAX ||
            !rp_size_add(bytes, rp_rollout_tensor_bytes(&column->tensor), &bytes))
            return rp_fail(err, RP_INVALID, "the batch of column '%.*s' is too large",
                           (int)name.size, name.data);
    }
    ragged.shape.dims[0] = (int64_t)rows;
    ragged.bytes = bytes;
    *out = ragged;
    return RP_OK;
}

void rp_rollout_ragged_fill(const rp_rollout_item *const *items, rp_string name,
                            const rp_rollout_ragged *ragged, void *values, int64_t *offsets)
{
    uint8_t *at = values;
    int64_t rows = 0;

    assert(ragged->shape.rank >= 1);
    offsets[0] = 0;
    for (size_t i = 0; i < ragged->count; i++) {
        const rp_rollout_column *column = rp_rollout_item_column(items[i], name);
        size_t bytes = rp_rollout_tensor_bytes(&column->tensor);

        assert(bytes <= ragged->bytes - (size_t)(at - (uint8_t *)values));
        if (bytes > 0) memcpy(at, column->tensor.data, bytes);
        at += bytes;
        rows += (int64_t)rows_of(&column->tensor);
        offsets[i + 1] = rows;
    }
}

size_t rp_rollout_pack(const int64_t *offsets, size_t count, int64_t budget, size_t *first)
{
    size_t batches = 0;

    for (size_t i = 0; i < count; batches++) {
        first[batches] = i++;
        while (i < count && offsets[i + 1] - offsets[first[batches]] <= budget) i++;
    }
    first[batches] = count;
    return batches;
}
