/* SPDX-License-Identifier: Apache-2.0 */
/* Compares our lz4 decoder with liblz4. If both accept a block, they must decode it to the same
 * bytes, and every prefix must be the beginning of these. Either may accept more than the
 * other: liblz4 accepts an offset of 0, ours a block that ends with a match. The last byte of
 * the input chooses the prefix. */
#include <lz4.h>

#include "chunk/codec.h"
#include "chunk/snappy_decode.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t whole[FUZZ_MAX_BYTES + 1], prefix[FUZZ_MAX_BYTES + 1];
    static char theirs[FUZZ_MAX_BYTES];
    static rp_codec_state codec;
    size_t raw, head, want;
    rp_status st, prefix_st;

    if (codec.alloc.resize == NULL) rp_codec_state_init(&codec, rp_allocator_default());
    if (!rp_snappy_head(data, size, &raw, &head)) {
        fuzz_check(!rp_codec_check_head(RP_CODEC_LZ4, data, size, 0));
        return 0;
    }
    if (raw > FUZZ_MAX_BYTES) return 0;
    whole[raw] = 0x5a;
    st = rp_codec_decompress(&codec, RP_CODEC_LZ4, data, size, raw, whole, raw);
    fuzz_check(st == RP_OK || st == RP_CORRUPT);
    fuzz_check(whole[raw] == 0x5a);
    if (st == RP_OK && raw > 0) {
        int got = LZ4_decompress_safe((const char *)data + head, theirs, (int)(size - head),
                                      (int)raw);
        if (got == (int)raw) fuzz_check(memcmp(whole, theirs, raw) == 0);
    }
    want = raw * data[size - 1] / 256;
    prefix[want] = 0xa5;
    prefix_st = rp_codec_decompress(&codec, RP_CODEC_LZ4, data, size, raw, prefix, want);
    fuzz_check(prefix_st == RP_OK || prefix_st == RP_CORRUPT);
    fuzz_check(prefix[want] == 0xa5);
    if (st == RP_OK) fuzz_check(prefix_st == RP_OK && memcmp(whole, prefix, want) == 0);
    return 0;
}
