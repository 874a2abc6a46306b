/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: one table, indexed by TensorFlow's number. */
#include <assert.h>

#include "reprise/tensor.h"
#include "tensor/tensor.h"
#include "util/error.h"

static_assert(sizeof(float) == 4 && sizeof(double) == 8, "the columns hold IEEE 754 numbers");

typedef struct dtype_info {
    const char *name; /* NULL: not a dtype of ours */
    uint8_t size;
    bool integer;
} dtype_info;

static const dtype_info infos[] = {
    [RP_FLOAT32] = {"float", 4, false},
    [RP_FLOAT64] = {"double", 8, false},
    [RP_INT32] = {"int32", 4, true},
    [RP_UINT8] = {"uint8", 1, true},
    [RP_INT16] = {"int16", 2, true},
    [RP_INT8] = {"int8", 1, true},
    [RP_STRING] = {"string", sizeof(rp_string), false},
    [RP_COMPLEX64] = {"complex64", 8, false},
    [RP_INT64] = {"int64", 8, true},
    [RP_BOOL] = {"bool", 1, false},
    [RP_QINT8] = {"qint8", 1, false},
    [RP_QUINT8] = {"quint8", 1, false},
    [RP_QINT32] = {"qint32", 4, false},
    [RP_BFLOAT16] = {"bfloat16", 2, false},
    [RP_QINT16] = {"qint16", 2, false},
    [RP_QUINT16] = {"quint16", 2, false},
    [RP_UINT16] = {"uint16", 2, true},
    [RP_COMPLEX128] = {"complex128", 16, false},
    [RP_FLOAT16] = {"half", 2, false},
    [RP_UINT32] = {"uint32", 4, true},
    [RP_UINT64] = {"uint64", 8, true},
    [RP_FLOAT8_E5M2] = {"float8_e5m2", 1, false},
    [RP_FLOAT8_E4M3FN] = {"float8_e4m3fn", 1, false},
    [RP_INT4] = {"int4", 1, false},
    [RP_UINT4] = {"uint4", 1, false},
};

/* The entry of `dtype`, or the empty one: callers may pass any number. */
static const dtype_info *info_of(rp_dtype dtype)
{
    size_t index = (size_t)dtype;
    return &infos[index < sizeof infos / sizeof infos[0] ? index : RP_INVALID_DTYPE];
}

size_t rp_dtype_size(rp_dtype dtype)
{
    return info_of(dtype)->size;
}

const char *rp_dtype_name(rp_dtype dtype)
{
    return info_of(dtype)->name;
}

bool rp_dtype_is_integer(rp_dtype dtype)
{
    return info_of(dtype)->integer;
}

rp_status rp_refuse_dtype(const char *what, rp_dtype dtype, rp_error *err)
{
    return rp_fail(err, RP_INVALID,
                   "%s: type code %d is none of rp_dtype, such as 1 (float32) or 3 (int32)",
                   what, (int)dtype);
}
