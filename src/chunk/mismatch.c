/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/mismatch.h"

#include <stdio.h>

#include "tensor/tensor.h"
#include "util/error.h"

enum { LABEL_BYTES = 96 };

/* The name that NumPy uses; rp_dtype_name() has TensorFlow's. */
static const char *name_of(rp_dtype dtype)
{
    const char *name = rp_dtype_name(dtype);

    switch (dtype) {
    case RP_FLOAT16: return "float16";
    case RP_FLOAT32: return "float32";
    case RP_FLOAT64: return "float64";
    default: return name != NULL ? name : "invalid";
    }
}

/* Names a column: "column 1 'obs'". Returns `text`. */
static const char *label_of(size_t index, const rp_spec *spec, char text[LABEL_BYTES])
{
    if (spec->name == NULL)
        (void)snprintf(text, LABEL_BYTES, "column %zu", index);
    else
        (void)snprintf(text, LABEL_BYTES, "column %zu '%.64s'", index, spec->name);
    return text;
}

static rp_status mismatch(size_t index, const rp_spec *expected, const char *what,
                          const char *got, const char *wanted, rp_error *err)
{
    char label[LABEL_BYTES];

    return rp_fail(err, RP_INVALID, "%s: got %s %s but expected %s",
                   label_of(index, expected, label), what, got, wanted);
}

rp_status rp_column_match(size_t index, rp_dtype dtype, const rp_shape *shape,
                          const rp_spec *expected, rp_error *err)
{
    char got[64], wanted[64], label[LABEL_BYTES];

    if (dtype != expected->dtype && rp_dtype_size(dtype) == 0)
        return rp_refuse_dtype(label_of(index, expected, label), dtype, err);
    if (dtype != expected->dtype)
        return mismatch(index, expected, "dtype", name_of(dtype), name_of(expected->dtype),
                        err);
    if (rp_shape_fits(shape, &expected->shape)) return RP_OK;
    if (shape->rank > RP_MAX_RANK)
        return rp_refuse_rank(label_of(index, expected, label), shape->rank, RP_MAX_RANK, err);
    return mismatch(index, expected, "shape", rp_shape_text(shape, got, sizeof got),
                    rp_shape_text(&expected->shape, wanted, sizeof wanted), err);
}
