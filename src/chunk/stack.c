/* SPDX-License-Identifier: Apache-2.0 */
/* Stacking: decodes one column of many trajectories into one array.
 *
 *   dst   | rows of trajectory 0 | rows of trajectory 1 | ...      equal sizes
 *
 * Checks all trajectories first, which also loads them into the processor's cache. Then finds
 * and copies the rows of each slice; small plain rows are gathered (gather.h). */
#include <assert.h>
#include <inttypes.h>

#include "chunk/decoder.h"
#include "chunk/gather.h"
#include "chunk/trajectory.h"
#include "util/error.h"
#include "util/mem.h"

static rp_status check_count(const rp_trajectory *const *trajectories, size_t count,
                             size_t column, bool strings, rp_error *err)
{
    rp_trajectory_column first;

    if (trajectories == NULL)
        return rp_fail(err, RP_INVALID, "`trajectories` is NULL, count %zu", count);
    if (column >= trajectories[0]->column_count)
        return rp_fail(err, RP_INVALID, "item 0: column %zu of %u", column,
                       trajectories[0]->column_count);
    first = rp_trajectory_get_column(trajectories[0], column);
    if ((first.dtype == RP_STRING) != strings)
        return rp_fail(err, RP_INVALID, "column %zu holds %s", column,
                       rp_dtype_name(first.dtype));
    if (first.bytes > 0 && count > SIZE_MAX / first.bytes)
        return rp_fail(err, RP_INVALID, "column %zu: %zu items of %zu bytes are too many",
                       column, count, first.bytes);
    return RP_OK;
}

/* RP_INVALID, with the difference, if the column of item `index` differs from the first. */
static rp_status check_same(const rp_trajectory *t, size_t index, size_t column,
                            const rp_trajectory_column *first, rp_error *err)
{
    rp_trajectory_column own;
    char a[64], b[64];

    if (column >= t->column_count)
        return rp_fail(err, RP_INVALID, "item %zu: column %zu of %u", index, column,
                       t->column_count);
    own = rp_trajectory_get_column(t, column);
    if (own.dtype != first->dtype)
        return rp_fail(err, RP_INVALID, "item %zu, column %zu: dtype %s but item 0 has %s",
                       index, column, rp_dtype_name(own.dtype), rp_dtype_name(first->dtype));
    if (!rp_shape_equal(&own.shape, &first->shape))
        return rp_fail(err, RP_INVALID, "item %zu, column %zu: shape %s but item 0 has %s",
                       index, column, rp_shape_text(&own.shape, a, sizeof a),
                       rp_shape_text(&first->shape, b, sizeof b));
    return RP_OK;
}

static rp_status copy_one(rp_decoder *decoder, const rp_trajectory *t, size_t column,
                          uint8_t *dst, rp_error *err)
{
    rp_slices slices = rp_trajectory_slices(t, column);
    rp_status st;

    for (size_t i = 0; i < slices.slice_count; i++) {
        const rp_chunk_slice *s = &slices.slices[i];
        st = rp_decoder_copy(decoder, s->chunk, s->column, s->offset, s->length, dst, err);
        if (st != RP_OK) return st;
        dst += s->length * s->chunk->places[s->column].row_bytes;
    }
    return RP_OK;
}

static rp_status stack(rp_decoder *decoder, const rp_trajectory *const *trajectories,
                       size_t count, size_t column, uint8_t *dst, rp_error *err)
{
    rp_trajectory_column first = rp_trajectory_get_column(trajectories[0], column);
    size_t bytes = first.bytes;
    rp_status st;

    assert(count >= 1 && (bytes == 0 || count <= SIZE_MAX / bytes));
    if (column == 0) rp_gather_fetch(trajectories, count); /* callers stack all columns */
    if (rp_gather_plain(trajectories, count, column, 0, &first, NULL) == count) {
        (void)rp_gather_plain(trajectories, count, column, 0, &first, dst);
        return RP_OK;
    }
    for (size_t i = 1; i < count; i++) {
        if (i + 2 < count) __builtin_prefetch(trajectories[i + 2]);
        st = check_same(trajectories[i], i, column, &first, err);
        if (st != RP_OK) return st;
    }
    if (bytes == 0) return RP_OK;
    for (size_t i = 0; i < count; i++) {
        st = copy_one(decoder, trajectories[i], column, dst + i * bytes, err);
        if (st != RP_OK) return st;
    }
    return RP_OK;
}

rp_status rp_decoder_stack(rp_decoder *decoder, const rp_trajectory *const *trajectories,
                           size_t count, size_t column, void *dst, size_t dst_bytes,
                           rp_error *err)
{
    size_t bytes = 0;
    rp_status st;

    if (count > 0) {
        st = check_count(trajectories, count, column, false, err);
        if (st != RP_OK) return st;
        bytes = count * rp_trajectory_get_column(trajectories[0], column).bytes;
    }
    if (dst_bytes != bytes)
        return rp_fail(err, RP_INVALID, "column %zu: %zu item%s %zu bytes, got room for %zu",
                       column, count, count == 1 ? " has" : "s have", bytes, dst_bytes);
    if (dst == NULL && bytes > 0)
        return rp_fail(err, RP_INVALID, "column %zu: `dst` is NULL", column);
    return count == 0 ? RP_OK : stack(decoder, trajectories, count, column, dst, err);
}

rp_status rp_decoder_stack_strings(rp_decoder *decoder,
                                   const rp_trajectory *const *trajectories, size_t count,
                                   size_t column, rp_string *dst, size_t element_count,
                                   rp_error *err)
{
    size_t elements = 0;
    rp_status st;

    if (count > 0) {
        st = check_count(trajectories, count, column, true, err);
        if (st != RP_OK) return st;
        elements = count * (rp_trajectory_get_column(trajectories[0], column).bytes /
                            sizeof(rp_string));
    }
    if (element_count != elements)
        return rp_fail(err, RP_INVALID, "column %zu: %zu item%s %zu string%s, got room for %zu",
                       column, count, count == 1 ? " has" : "s have", elements,
                       elements == 1 ? "" : "s", element_count);
    if (dst == NULL && elements > 0)
        return rp_fail(err, RP_INVALID, "column %zu: `dst` is NULL", column);
    return count == 0 ? RP_OK
                      : stack(decoder, trajectories, count, column, (uint8_t *)dst, err);
}
