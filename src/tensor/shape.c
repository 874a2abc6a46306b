/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: products, patterns, text. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "reprise/tensor.h"
#include "tensor/tensor.h"
#include "util/error.h"
#include "util/mem.h"

rp_status rp_shape_elements(const rp_shape *shape, size_t *elements)
{
    size_t product = 1;
    bool empty = false;

    if (shape == NULL || shape->rank < 0 || shape->rank > RP_MAX_RANK) return RP_INVALID;
    /* The product omits zeroes, so that it bounds the product of any subset of the dimensions,
     * for instance of the row of a tensor without rows. */
    for (int32_t i = 0; i < shape->rank; i++) {
        int64_t dim = shape->dims[i];
        if (dim < 0 || (uint64_t)dim > SIZE_MAX) return RP_INVALID;
        if (dim == 0)
            empty = true;
        else if (!rp_size_mul(product, (size_t)dim, &product))
            return RP_INVALID;
    }
    *elements = empty ? 0 : product;
    return RP_OK;
}

bool rp_shape_equal(const rp_shape *a, const rp_shape *b)
{
    if (a->rank != b->rank) return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

bool rp_shape_fits(const rp_shape *shape, const rp_shape *pattern)
{
    if (pattern->rank == -1) return true;
    if (shape->rank != pattern->rank) return false;
    for (int32_t i = 0; i < shape->rank; i++)
        if (pattern->dims[i] != -1 && pattern->dims[i] != shape->dims[i]) return false;
    return true;
}

/* Appends `more` to `text`, which has `size` bytes, at `*used`. Cuts it to fit. */
static void put(char *text, size_t size, size_t *used, const char *more)
{
    size_t room = size - 1 - *used, length = strlen(more);

    assert(*used < size);
    if (length > room) length = room;
    memcpy(text + *used, more, length);
    *used += length;
    text[*used] = '\0';
}

char *rp_shape_text(const rp_shape *shape, char *text, size_t size)
{
    size_t used = 0;
    char dim[24];

    text[0] = '\0';
    if (shape->rank < 0 || shape->rank > RP_MAX_RANK) {
        put(text, size, &used, "<unknown>");
        return text;
    }
    put(text, size, &used, "[");
    for (int32_t i = 0; i < shape->rank; i++) {
        if (i > 0) put(text, size, &used, ",");
        if (shape->dims[i] == -1)
            (void)snprintf(dim, sizeof dim, "?");
        else
            (void)snprintf(dim, sizeof dim, "%" PRId64, shape->dims[i]);
        put(text, size, &used, dim);
    }
    put(text, size, &used, "]");
    return text;
}

rp_status rp_refuse_rank(const char *what, int32_t rank, int32_t most, rp_error *err)
{
    if (rank < 0)
        return rp_fail(err, RP_INVALID, "%s: the rank must be >= 0, got %d", what, (int)rank);
    return rp_fail(err, RP_INVALID, "%s has %d dimensions; at most %d are supported", what,
                   (int)rank, (int)most);
}
