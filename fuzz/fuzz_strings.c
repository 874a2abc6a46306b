/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lists of strings, in both formats. The first byte of the input is the number of
 * elements. If a list is accepted, its strings must be within the input and fill it, and must
 * be the same after they were written and read again. */
#include "chunk/protobuf.h"
#include "chunk/string_list.h"
#include "fuzz.h"

static void check_inside(const rp_string *s, const uint8_t *data, size_t size)
{
    const uint8_t *begin = (const uint8_t *)s->data;

    if (s->size > 0) fuzz_check(begin >= data && s->size <= (size_t)(data + size - begin));
}

static void check_again(const rp_string *strings, size_t count)
{
    static uint8_t list[FUZZ_MAX_BYTES];
    rp_string again[256];
    uint8_t *at = list;

    for (size_t i = 0; i < count; i++) at = rp_pb_put_varint(at, strings[i].size);
    for (size_t i = 0; i < count; i++) {
        if (strings[i].size > (size_t)(list + sizeof list - at)) return;
        memcpy(at, strings[i].data, strings[i].size);
        at += strings[i].size;
    }
    fuzz_check(rp_string_list_get(list, (size_t)(at - list), count, again) == RP_OK);
    for (size_t i = 0; i < count; i++) {
        fuzz_check(again[i].size == strings[i].size);
        fuzz_check(memcmp(again[i].data, strings[i].data, strings[i].size) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, data + size};
    size_t count = fuzz_byte(&in), left = fuzz_left(&in), total = 0, measured = 0;
    rp_string strings[256];
    rp_status st = rp_string_list_get(in.at, left, count, strings);

    fuzz_check(st == RP_OK || st == RP_CORRUPT);
    fuzz_check(rp_string_list_get(in.at, left, count, NULL) == st);
    if (st == RP_OK) {
        for (size_t i = 0; i < count; i++) {
            check_inside(&strings[i], in.at, left);
            total += strings[i].size;
        }
        if (count > 0) fuzz_check(total < left);
        check_again(strings, count);
    }
    st = rp_string_values_get(in.at, left, count, strings);
    fuzz_check(st == RP_OK || st == RP_CORRUPT);
    fuzz_check(rp_string_values_get(in.at, left, count, NULL) == st);
    fuzz_check(rp_string_values_measure(in.at, left, count, &measured) == st);
    if (st == RP_OK) {
        for (size_t i = 0; i < count; i++) {
            check_inside(&strings[i], in.at, left);
            measured -= strings[i].size;
        }
        fuzz_check(measured == 0);
        check_again(strings, count);
    }
    return 0;
}
