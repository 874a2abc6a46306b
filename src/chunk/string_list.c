/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/string_list.h"

#include <assert.h>

#include "chunk/chunk_wire.h"
#include "chunk/protobuf.h"
#include "util/mem.h"

/* Reads one length, at most 32 bits in at most five bytes. */
static bool get_length(const uint8_t **at, const uint8_t *end, size_t *length)
{
    const uint8_t *stop = end - *at > 5 ? *at + 5 : end;
    uint64_t value;

    if (!rp_pb_get_varint(at, stop, &value) || value > UINT32_MAX) return false;
    *length = (size_t)value;
    return true;
}

rp_status rp_string_list_get(const uint8_t *list, size_t size, size_t count, rp_string *out)
{
    const uint8_t *at = list, *end = list;
    size_t left = size, length;

    if (count > size) return RP_CORRUPT; /* each length has at least one byte */
    if (count == 0) return size == 0 ? RP_OK : RP_CORRUPT;
    end += size;
    for (size_t i = 0; i < count; i++) {
        if (!get_length(&at, end, &length) || length > left) return RP_CORRUPT;
        left -= length;
        if (out != NULL) out[i].size = length;
    }
    if (left != (size_t)(at - list)) return RP_CORRUPT; /* lengths and bytes fill the list */
    if (out == NULL) return RP_OK;
    for (size_t i = 0; i < count; i++) {
        out[i].data = (const char *)at;
        at += out[i].size;
    }
    return RP_OK;
}

rp_status rp_string_values_get(const uint8_t *tensor, size_t size, size_t count, rp_string *out)
{
    rp_pb_reader reader = rp_pb_open(tensor, size);
    rp_string last = {"", 0};
    rp_pb_field field;
    size_t filled = 0;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &field)) == RP_PB_FIELD) {
        if (!rp_pb_is(&field, RP_PB_TENSOR_STRING_VAL, RP_PB_BYTES) || filled == count)
            continue;
        last = (rp_string){(const char *)field.data, field.size};
        if (out != NULL) out[filled] = last;
        filled++;
    }
    assert(filled <= count);
    if (step == RP_PB_BAD) return RP_CORRUPT;
    if (out == NULL) return RP_OK;
    while (filled < count) out[filled++] = last;
    return RP_OK;
}

rp_status rp_string_values_measure(const uint8_t *tensor, size_t size, size_t count,
                                   size_t *bytes)
{
    rp_pb_reader reader = rp_pb_open(tensor, size);
    size_t filled = 0, last = 0, total = 0, rest;
    rp_pb_field field;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &field)) == RP_PB_FIELD) {
        if (!rp_pb_is(&field, RP_PB_TENSOR_STRING_VAL, RP_PB_BYTES) || filled == count)
            continue;
        last = field.size;
        total += last; /* no overflow: they are within `size` */
        filled++;
    }
    assert(total <= size && filled <= count);
    if (step == RP_PB_BAD) return RP_CORRUPT;
    if (!rp_size_mul(count - filled, last, &rest) || !rp_size_add(total, rest, bytes))
        return RP_NO_RESOURCE;
    return RP_OK;
}
