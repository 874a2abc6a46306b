/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the seeds of the corpora: small, valid inputs of every kind, from which a fuzzer finds
 * the way to the rest.
 *
 *   make_seeds fuzz/corpus
 *
 * Files that a fuzzer has added stand beside them under other names. */
#include <stdio.h>
#include <sys/stat.h>

#include "chunk/codec.h"
#include "chunk/protobuf.h"
#include "fuzz.h"
#include "reprise/chunk.h"
#include "util/rng.h"

static const char *root;

static void save(const char *target, const char *name, const void *data, size_t size)
{
    char path[1024];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", root, target);
    (void)mkdir(path, 0777);
    (void)snprintf(path, sizeof path, "%s/%s/%s", root, target, name);
    file = fopen(path, "wb");
    fuzz_check(file != NULL && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

/* Data of three kinds: zeroes, a pattern, noise. */
static void fill(uint8_t *data, size_t size, int kind)
{
    rp_rng rng;

    rp_rng_init(&rng, (uint64_t)kind);
    for (size_t i = 0; i < size; i++)
        data[i] = kind == 0 ? 0 : kind == 1 ? (uint8_t)(i % 7 * 3) : (uint8_t)rp_rng_next(&rng);
}

static void save_blocks(rp_codec codec)
{
    static const size_t sizes[] = {0, 1, 60, 61, 300, 1500};
    uint8_t raw[1500], block[4096];
    rp_codec_state state;
    size_t stored;
    char name[64];

    rp_codec_state_init(&state, rp_allocator_default());
    for (int kind = 0; kind < 3; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            fill(raw, sizes[i], kind);
            fuzz_check(rp_codec_compress(&state, codec, 0, raw, sizes[i], block, &stored) ==
                       RP_OK);
            (void)snprintf(name, sizeof name, "kind%d_%04zu", kind, sizes[i]);
            save(rp_codec_name(codec), name, block, stored);
        }
    rp_codec_state_deinit(&state);
}

/* The other two ways in which fuzz_zstd.c takes its input. */
static void save_zstd_modes(void)
{
    uint8_t input[400];
    char name[64];

    for (int kind = 0; kind < 3; kind++) {
        fill(input, sizeof input, kind);
        memset(input, 0, 10);
        input[0] = 1;
        (void)snprintf(name, sizeof name, "compress%d", kind);
        save("zstd", name, input, sizeof input);
        input[5] = 9; /* a byte that is changed */
        input[6] = 0x40;
        (void)snprintf(name, sizeof name, "change%d", kind);
        save("zstd", name, input, sizeof input);
    }
    /* after the header: a last block of 4 stored bytes, and one of 8 times the same byte */
    save("zstd", "header_stored", "\2\4\0\x21\0\0abcd", 10);
    save("zstd", "header_repeat", "\2\10\0\x43\0\0x", 7);
}

static void save_chunk(rp_codec codec, bool delta, size_t rows, int kind)
{
    static const rp_spec specs[] = {{"n", RP_INT32, {.rank = 2, .dims = {2, 3}}},
                                    {"s", RP_STRING, {.rank = 1, .dims = {2}}},
                                    {"b", RP_UINT8, {.rank = 0}}};
    rp_chunk_options options = {.codec = codec, .delta = delta};
    rp_chunk_origin origin = {.key = 1 + rows, .episode = 7, .last_step = (int32_t)rows - 1};
    rp_chunk_builder *builder = NULL;
    rp_chunk *chunk = NULL;
    const uint8_t *wire;
    uint8_t bytes[24];
    char name[64];
    size_t size;

    fuzz_check(rp_chunk_builder_new(rp_allocator_default(), specs, 3, &options, &builder,
                                    NULL) == RP_OK);
    for (size_t i = 0; i < rows; i++) {
        rp_string strings[2] = {{"step", 4}, {"", 0}};
        rp_tensor row[] = {{RP_INT32, specs[0].shape, bytes},
                           {RP_STRING, specs[1].shape, strings},
                           {RP_UINT8, specs[2].shape, bytes}};
        fill(bytes, sizeof bytes, kind);
        fuzz_check(rp_chunk_builder_append(builder, row, NULL) == RP_OK);
    }
    fuzz_check(rp_chunk_builder_finish(builder, &origin, &chunk, NULL) == RP_OK);
    wire = rp_chunk_wire(chunk, &size);
    (void)snprintf(name, sizeof name, "%s_%d_%zu_%d", rp_codec_name(codec), delta, rows, kind);
    save("chunk", name, wire, size);
    rp_chunk_unref(chunk);
    rp_chunk_builder_free(builder);
}

static void save_chunks(void)
{
    for (int codec = 0; codec < 4; codec++)
        for (int delta = 0; delta < 2; delta++)
            for (int kind = 0; kind < 3; kind++)
                save_chunk((rp_codec)codec, delta != 0, 1 + (size_t)kind * 5, kind);
    /* strings in string_val: dtype 7, shape [3], field 8 */
    save("chunk", "string_val",
         "\x2a\x0f\x0a\x0d\x08\x07\x12\x04\x12\x02\x08\x03\x42\x03"
         "abc",
         17);
    save("chunk", "unknown_fields", "\x08\x01\xa2\x06\x02hi\x2a\x00\x9d\x06\1\2\3\4", 15);
}

static void save_strings(void)
{
    save("strings", "empty", "\0", 1);
    save("strings", "list_one", "\1\3abc", 5);
    save("strings", "list_three", "\3\2\0\3hiyou", 9);
    save("strings", "list_long_length", "\1\x81\x00x", 4);
    save("strings", "values", "\4\x08\x07\x42\2hi\x42\3you", 12);
    save("strings", "values_none", "\4\x08\x07", 3);
}

static void save_tokens(void)
{
#define HASH "sha256:3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30"
    static const char *const files[][2] = {
        {"one", "0read dash " HASH "\n"},
        {"blanks", "0# who\n\n\tadmin\tops.1@x_y-z\t" HASH "  "},
        {"certificates", "1write a cert:actor\nadmin o cert:Ops Console\nread r cert:*\n"},
        {"both", "1write a cert:actor\nread d " HASH},
        {"short", "0read dash sha256:3d09"},
        {"twice", "1read a cert:x\nread b cert:x\n"},
    };

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        save("tokens", files[i][0], files[i][1], strlen(files[i][1]));
#undef HASH
}

static void save_roundtrips(void)
{
    char name[64];

    for (int how = 0; how < 8; how++)
        for (int kind = 0; kind < 3; kind++) {
            uint8_t input[300] = {1, (uint8_t)(how % 4 * 2 + how / 4 * 129),
                                  (uint8_t)(2 + kind)};
            fill(input + 3, sizeof input - 3, 2);
            input[3] = (uint8_t)(3 + kind); /* int32, uint8, int16 */
            input[4] = 2;
            (void)snprintf(name, sizeof name, "how%d_kind%d", how, kind);
            save("roundtrip", name, input, sizeof input);
        }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: make_seeds folder\n");
        return 2;
    }
    root = argv[1];
    save_blocks(RP_CODEC_SNAPPY);
    save_blocks(RP_CODEC_ZSTD);
    save_blocks(RP_CODEC_LZ4);
    save_zstd_modes();
    save_chunks();
    save_strings();
    save_tokens();
    save_roundtrips();
    return 0;
}
