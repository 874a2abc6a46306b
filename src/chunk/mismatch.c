/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/mismatch.h"

#include "util/error.h"

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

static rp_status mismatch(size_t index, const rp_spec *expected, const char *what,
                          const char *got, const char *wanted, rp_error *err)
{
    if (expected->name == NULL)
        return rp_fail(err, RP_INVALID, "column %zu: got %s %s but expected %s", index, what,
                       got, wanted);
    return rp_fail(err, RP_INVALID, "column %zu '%.64s': got %s %s but expected %s", index,
                   expected->name, what, got, wanted);
}

rp_status rp_column_match(size_t index, rp_dtype dtype, const rp_shape *shape,
                          const rp_spec *expected, rp_error *err)
{
    char got[64], wanted[64];

    if (dtype != expected->dtype)
        return mismatch(index, expected, "dtype", name_of(dtype), name_of(expected->dtype),
                        err);
    if (rp_shape_fits(shape, &expected->shape)) return RP_OK;
    return mismatch(index, expected, "shape", rp_shape_text(shape, got, sizeof got),
                    rp_shape_text(&expected->shape, wanted, sizeof wanted), err);
}
