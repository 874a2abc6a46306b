/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes zstd blocks from a peer. If a block can be decoded, any prefix of it must be decoded
 * to the same bytes. The last byte of the input chooses the prefix.
 *
 * The library is not instrumented, so the fuzzer gets no feedback from a rejected frame. So the
 * first byte of the input says how the rest is used:
 *
 *   0x28   the input is the frame (0x28 is the first byte of the magic number)
 *   even   the rest follows a valid frame header
 *   odd    the rest is compressed, and then a few bytes of the frame are changed */
#include <zstd.h>

#include "chunk/codec.h"
#include "fuzz.h"

enum { MAX_FRAME = 1 << 13, CHANGES = 3 };

static uint8_t frame[MAX_FRAME];
static rp_codec_state codec;

/* Writes the magic number, a header with a content size of two bytes, and the rest as it is. */
static size_t put_header(fuzz_input *in)
{
    static const uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd, 0x60};
    size_t left;

    memcpy(frame, magic, sizeof magic);
    frame[5] = fuzz_byte(in);
    frame[6] = fuzz_byte(in) & 0x3f;
    left = fuzz_left(in) < sizeof frame - 7 ? fuzz_left(in) : sizeof frame - 7;
    memcpy(frame + 7, in->at, left);
    return 7 + left;
}

static size_t compress_and_change(fuzz_input *in)
{
    uint16_t at[CHANGES];
    uint8_t value[CHANGES];
    size_t size, left;

    for (int i = 0; i < CHANGES; i++) {
        at[i] = fuzz_short(in);
        value[i] = fuzz_byte(in);
    }
    left = fuzz_left(in) < MAX_FRAME / 2 ? fuzz_left(in) : MAX_FRAME / 2;
    fuzz_check(rp_codec_compress(&codec, RP_CODEC_ZSTD, 1, in->at, left, frame, &size) ==
               RP_OK);
    for (int i = 0; i < CHANGES; i++) frame[at[i] % size] ^= value[i];
    return size;
}

static void check(const uint8_t *data, size_t size, uint8_t choice)
{
    static uint8_t whole[FUZZ_MAX_BYTES], prefix[FUZZ_MAX_BYTES + 1];
    unsigned long long declared = ZSTD_getFrameContentSize(data, size);
    size_t raw = declared <= FUZZ_MAX_BYTES ? (size_t)declared : 100;
    size_t want = raw * choice / 256;
    rp_status st, prefix_st;

    if (declared > FUZZ_MAX_BYTES)
        fuzz_check(!rp_codec_check_head(RP_CODEC_ZSTD, data, size, raw));
    st = rp_codec_decompress(&codec, RP_CODEC_ZSTD, data, size, raw, whole, raw);
    fuzz_check(st == RP_OK || st == RP_CORRUPT);
    prefix[want] = 0xa5;
    prefix_st = rp_codec_decompress(&codec, RP_CODEC_ZSTD, data, size, raw, prefix, want);
    fuzz_check(prefix_st == RP_OK || prefix_st == RP_CORRUPT);
    fuzz_check(prefix[want] == 0xa5);
    if (st == RP_OK) fuzz_check(prefix_st == RP_OK && memcmp(whole, prefix, want) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, data + size};
    uint8_t mode;

    if (codec.alloc.resize == NULL) rp_codec_state_init(&codec, rp_allocator_default());
    if (size == 0) return 0;
    mode = fuzz_byte(&in);
    if (mode == 0x28)
        check(data, size, data[size - 1]);
    else if (mode % 2 == 0)
        check(frame, put_header(&in), data[size - 1]);
    else
        check(frame, compress_and_change(&in), data[size - 1]);
    return 0;
}
