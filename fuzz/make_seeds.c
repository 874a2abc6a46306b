/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the seeds of the corpora: small, valid inputs of every kind, from which a fuzzer
 * starts.
 *
 *   make_seeds fuzz/corpus
 *
 * Files that a fuzzer has added have other names in the same folders. */
#include <stdio.h>
#include <sys/stat.h>

#include "chunk/chunk_api.h"
#include "chunk/codec.h"
#include "chunk/protobuf.h"
#include "chunk/trajectory.h"
#include "reprise/trajectory.h"
#include "seeds.h"
#include "util/little_endian.h"
#include "util/rng.h"
#include "wire/admin_messages.h"
#include "wire/connection_messages.h"
#include "wire/reverb_messages.h"
#include "wire/sample_response.h"

static const char *root;

void seeds_save(const char *target, const char *name, const void *data, size_t size)
{
    char path[1024];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", root, target);
    (void)mkdir(path, 0777);
    (void)snprintf(path, sizeof path, "%s/%s/%s", root, target, name);
    file = fopen(path, "wb");
    fuzz_check(file != NULL && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

void seeds_save_hex(const char *target, const char *name, const char *hex)
{
    uint8_t bytes[1024];
    size_t digits = 0;

    for (; *hex != '\0'; hex++) {
        char digit[2] = {*hex, '\0'};
        if (*hex == ' ') continue;
        fuzz_check(digits / 2 < sizeof bytes);
        if (digits % 2 == 0) bytes[digits / 2] = 0;
        bytes[digits / 2] =
            (uint8_t)((unsigned)bytes[digits / 2] << 4 | strtoul(digit, NULL, 16));
        digits++;
    }
    fuzz_check(digits % 2 == 0);
    seeds_save(target, name, bytes, digits / 2);
}

void seeds_fill(uint8_t *data, size_t size, int kind)
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
            seeds_fill(raw, sizes[i], kind);
            fuzz_check(rp_codec_compress(&state, codec, 0, raw, sizes[i], block, &stored) ==
                       RP_OK);
            (void)snprintf(name, sizeof name, "kind%d_%04zu", kind, sizes[i]);
            seeds_save(rp_codec_name(codec), name, block, stored);
        }
    rp_codec_state_deinit(&state);
}

/* Saves seeds for the other two modes of fuzz_zstd.c. */
static void save_zstd_modes(void)
{
    uint8_t input[400];
    char name[64];

    for (int kind = 0; kind < 3; kind++) {
        seeds_fill(input, sizeof input, kind);
        memset(input, 0, 10);
        input[0] = 1;
        (void)snprintf(name, sizeof name, "compress%d", kind);
        seeds_save("zstd", name, input, sizeof input);
        input[5] = 9; /* a byte that is changed */
        input[6] = 0x40;
        (void)snprintf(name, sizeof name, "change%d", kind);
        seeds_save("zstd", name, input, sizeof input);
    }
    /* after the header: a last block of 4 stored bytes, and one of 8 times the same byte */
    seeds_save("zstd", "header_stored", "\2\4\0\x21\0\0abcd", 10);
    seeds_save("zstd", "header_repeat", "\2\10\0\x43\0\0x", 7);
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
        seeds_fill(bytes, sizeof bytes, kind);
        fuzz_check(rp_chunk_builder_append(builder, row, NULL) == RP_OK);
    }
    fuzz_check(rp_chunk_builder_finish(builder, &origin, &chunk, NULL) == RP_OK);
    wire = rp_chunk_wire(chunk, &size);
    (void)snprintf(name, sizeof name, "%s_%d_%zu_%d", rp_codec_name(codec), delta, rows, kind);
    seeds_save("chunk", name, wire, size);
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
    seeds_save("chunk", "string_val",
               "\x2a\x0f\x0a\x0d\x08\x07\x12\x04\x12\x02\x08\x03\x42\x03"
               "abc",
               17);
    seeds_save("chunk", "unknown_fields", "\x08\x01\xa2\x06\x02hi\x2a\x00\x9d\x06\1\2\3\4", 15);
}

static void save_strings(void)
{
    seeds_save("strings", "empty", "\0", 1);
    seeds_save("strings", "list_one", "\1\3abc", 5);
    seeds_save("strings", "list_three", "\3\2\0\3hiyou", 9);
    seeds_save("strings", "list_long_length", "\1\x81\x00x", 4);
    seeds_save("strings", "values", "\4\x08\x07\x42\2hi\x42\3you", 12);
    seeds_save("strings", "values_none", "\4\x08\x07", 3);
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
        seeds_save("tokens", files[i][0], files[i][1], strlen(files[i][1]));
#undef HASH
}

static void save_roundtrips(void)
{
    char name[64];

    for (int how = 0; how < 8; how++)
        for (int kind = 0; kind < 3; kind++) {
            uint8_t input[300] = {1, (uint8_t)(how % 4 * 2 + how / 4 * 129),
                                  (uint8_t)(2 + kind)};
            seeds_fill(input + 3, sizeof input - 3, 2);
            input[3] = (uint8_t)(3 + kind); /* int32, uint8, int16 */
            input[4] = 2;
            (void)snprintf(name, sizeof name, "how%d_kind%d", how, kind);
            seeds_save("roundtrip", name, input, sizeof input);
        }
}

/* Messages: recorded ones of Reverb, and ours as protobuf writes them. The number is the index
 * of the reader in fuzz_messages.c. */
static const struct {
    uint8_t reader;
    const char *name, *hex;
} messages[] = {
    /* clang-format off */
    {0, "sample",
     "0a017510011a0b08ffffffffffffffffff01"},
    {0, "sample_timeout",
     "0a04736c6f7710021a0308ac02"},
    {0, "sample_now",
     "0a017410011a00"},
    {1, "mutate",
     "0a0175121308c0cca3dfeecc858b62110000000000002240120c08b96011000000000000f03f"},
    {1, "mutate_delete",
     "0a01751a09c0cca3dfeecc858b62"},
    {1, "mutate_unpacked",
     "0a0174180318041a0205061200"},
    {2, "reset",
     "0a0175"},
    {3, "initialize",
     "08969701120175"},
    {4, "insert_legacy",
     "0a4e08e2d9dfee80e0bddea701120b08eba88cabcdf0c0d0f9012a300a1c0801120812020801"
     "12020803220e0c2c000000000000803f000000400a1008031204120208012206040c07000000"
     "30023810123d0887afa0e098f3bc98980112017529000000000000f83f42240a0f0a0d08e2d9"
     "dfee80e0bddea70118010a110a0f08e2d9dfee80e0bddea701180120011a0ae2d9dfee80e0bd"
     "dea701"},
    {4, "insert_items",
     "125c08bf97f4a6ab93f8f11e12017529000000000000084042440a1e0a0e08fba2bedbb99497"
     "b344100118010a0c08cb9fbd8491bf98954a18020a220a1008fba2bedbb99497b34410011801"
     "20010a0e08cb9fbd8491bf98954a180220011a12fba2bedbb99497b344cb9fbd8491bf98954a"},
    {4, "insert_columns",
     "0a3c08ccf4d2eedfc4b7d4e601120f08a3b084afb7b3a794d801100218022a1a0a1808011208"
     "1202080112020802220a081c0000004000002040300138080a3708aaa9d1af94f182a274120f"
     "08a3b084afb7b3a794d801100218022a160a140809120412020801220a081c02000000000000"
     "0030013808124b08f790979694bcddccd201120373696729000000000000f03f42300a1e0a0d"
     "0883ffece0dba2ecd6a50118010a0d08ccf4d2eedfc4b7d4e60118010a0e0a0c08aaa9d1af94"
     "f182a27418011a30aaa9d1af94f182a27483ffece0dba2ecd6a501ccf4d2eedfc4b7d4e601dd"
     "d4a490a580fcedb801bfe883cfbaabb2e948"},
    {4, "insert_squeeze",
     "0a3508cff9dbd0feffc6d28301120f08e7f7fa98a3eece96f601100318032a130a1108041208"
     "12020801120208012203010003300138010a3208e5f9d7e699828fbc24120f08e7f7fa98a3ee"
     "ce96f601100118012a110a0f0807120412020801220504726f77313001381c0a3308a9e6818f"
     "b9cddcc4c901120f08e7f7fa98a3eece96f601100218022a110a0f0807120412020801220504"
     "726f77323001381c0a37088fd0e59e80c8869003120f08e7f7fa98a3eece96f601100318032a"
     "160a140802120412020801220a081c000000000000084030013808125208eae298a49aa0a8ab"
     "d50112017042420a0f0a0d08cff9dbd0feffc6d2830118010a1d0a0c08e5f9d7e699828fbc24"
     "18010a0d08a9e6818fb9cddcc4c90118010a100a0c088fd0e59e80c8869003180110011a26e5"
     "f9d7e699828fbc24a9e6818fb9cddcc4c901cff9dbd0feffc6d283018fd0e59e80c8869003"},
    {4, "insert_keep_unpacked",
     "1805120208010a0208031a0306ac027a01610a001807"},
    {5, "signature_dict",
     "aa033f0a1d0a016112188a02151211120b08ffffffffffffffffff011202080218010a1e0a01"
     "621219a203160a148a0211120d120b08ffffffffffffffffff011809"},
    {5, "signature_nested",
     "b2037d0a045374657012540a036f6273124daa034a0a280a03696d6712218a021e0a03696d67"
     "1215120b08ffffffffffffffffff01120208541202085418040a1e0a03706f7312179a03140a"
     "078a0204120018020a098a0206120218011807121f0a036163741218a203150a0e8a020b0a01"
     "7812041202080518030a03a20300"},
    {5, "signature_bounded",
     "9a02150a016e1204120208031801220208012a0408011200"},
    {6, "health",
     "0a15677270632e6865616c74682e76312e4865616c7468"},
    {7, "reflection_list",
     "0a01683a012a"},
    {7, "reflection_file",
     "1a1674656e736f72666c6f772f74797065732e70726f746f"},
    {7, "reflection_symbol",
     "2219646565706d696e642e7265766572622e4368756e6b44617461"},
    {7, "reflection_extension",
     "2a050a01611007"},
    {8, "create",
     "0a470a0174120b1a0909000000000000e03f1a0422020801206428c80130033801421d090000"
     "000000000040100a19000000000000f0bf21000000000000f03f4a078a020412001801"},
    {8, "create_defaults",
     "0a050a01742064"},
    {9, "drop",
     "0a0174"},
    {10, "alter",
     "0a0174100020052a0b10031900000000000000003001"},
    {11, "pause",
     "0a01741002"},
    {12, "peek",
     "0a017412020102100318012001"},
    {13, "why_blocked",
     "0a01741005"},
    {14, "update",
     "0a0174120b080211000000000000e03f1200"},
    {15, "delete",
     "0a0174120201021003"},
    {17, "status",
     "0a0174"},
    {16, "draw",
     "0a0174100518022000280131000000000000e03f3801"},
    /* clang-format on */
};

static void save_messages(void)
{
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        uint8_t bytes[1024] = {messages[i].reader};
        size_t size = strlen(messages[i].hex) / 2;
        fuzz_check(size < sizeof bytes);
        for (size_t k = 0; k < size; k++) {
            char digits[3] = {messages[i].hex[2 * k], messages[i].hex[2 * k + 1], '\0'};
            bytes[1 + k] = (uint8_t)strtoul(digits, NULL, 16);
        }
        seeds_save("messages", messages[i].name, bytes, 1 + size);
    }
}

static void save_answer(uint8_t reader, const char *name, const uint8_t *data, size_t size)
{
    uint8_t bytes[4096] = {reader};

    fuzz_check(size + 2 <= sizeof bytes);
    if (size > 0) memcpy(bytes + 2, data, size);
    seeds_save("answers", name, bytes, size + 2);
}

/* Saves what was written to `out`, and clears it. */
static void save_written(uint8_t reader, const char *name, rp_buf *out)
{
    save_answer(reader, name, out->data, out->size);
    rp_buf_clear(out);
}

/* Makes a sample with one column of each of the chunks. */
static rp_sample sample_of(rp_chunk **chunks, size_t count)
{
    rp_sample sample = {.key = 2,
                        .priority = 1,
                        .probability = 0.5,
                        .weight = 1,
                        .table_size = 3,
                        .inserted_at_ns = 1700000000000000042,
                        .times_sampled = 1};
    rp_chunk_slice slices[8];
    rp_slices columns[8];

    for (size_t i = 0; i < count; i++) {
        slices[i] = (rp_chunk_slice){chunks[i], 0, (uint32_t)i % 2, 1};
        columns[i] = (rp_slices){&slices[i], 1, i % 2 == 0};
    }
    fuzz_check(rp_trajectory_new(rp_allocator_default(), columns, count, &sample.trajectory,
                                 NULL) == RP_OK);
    return sample;
}

static rp_chunk *chunk_of(uint64_t key)
{
    rp_spec spec = {"x", RP_INT16, {1, {3}}};
    rp_chunk_origin origin = {.key = key, .episode = 7, .last_step = 1};
    const int16_t row[3] = {1, 2, 3};
    rp_tensor tensor = {RP_INT16, {1, {3}}, row};
    rp_chunk_builder *builder = NULL;
    rp_chunk *chunk = NULL;

    fuzz_check(rp_chunk_builder_new(rp_allocator_default(), &spec, 1, NULL, &builder, NULL) ==
               RP_OK);
    fuzz_check(rp_chunk_builder_append(builder, &tensor, NULL) == RP_OK &&
               rp_chunk_builder_append(builder, &tensor, NULL) == RP_OK);
    fuzz_check(rp_chunk_builder_finish(builder, &origin, &chunk, NULL) == RP_OK);
    rp_chunk_builder_free(builder);
    return chunk;
}

/* Appends the message to `out`, with `with_length` after its length. */
static void append_message(rp_message_pool *pool, rp_message *reply, rp_buf *out,
                           bool with_length)
{
    size_t size = reply->bytes.size - RP_GRPC_PREFIX;
    uint8_t length[2] = {(uint8_t)size, (uint8_t)(size >> 8)};

    if (with_length) rp_buf_append(out, length, 2);
    rp_buf_append(out, reply->bytes.data + RP_GRPC_PREFIX, size);
    rp_message_release(pool, reply);
}

static void save_samples(rp_buf *out)
{
    rp_chunk *chunks[4];
    rp_sample few, one;
    rp_message_pool pool;
    rp_message *reply;

    rp_message_pool_init(&pool, rp_allocator_default());
    for (uint64_t i = 0; i < 4; i++) chunks[i] = chunk_of(i + 1);
    few = sample_of(chunks, 4);
    one = sample_of(chunks, 1);
    reply = rp_message_new(&pool);
    fuzz_check(rp_sample_entry_append(reply, &one, "t", 1, 0, 1, NULL) &&
               rp_sample_entry_append(reply, &few, "t", 1, 0, 4, NULL));
    append_message(&pool, reply, out, true);
    save_written(6, "samples", out);
    for (size_t i = 0; i < 4; i += 2) {
        reply = rp_message_new(&pool);
        fuzz_check(rp_sample_entry_append(reply, &few, "t", 1, i, 2, NULL));
        append_message(&pool, reply, out, true);
    }
    save_written(6, "pieces", out);
    reply = rp_message_new(&pool);
    for (size_t i = 0; i < 4; i++) fuzz_check(rp_wire_add_chunk(reply, chunks[i]));
    fuzz_check(rp_wire_add_entry(reply, &few, "t") && rp_wire_add_entry(reply, &one, "t"));
    append_message(&pool, reply, out, false);
    save_written(7, "batch", out);
    reply = rp_message_new(&pool);
    fuzz_check(rp_wire_add_entry(reply, &few, "t"));
    append_message(&pool, reply, out, false);
    save_written(7, "peek", out);
    rp_trajectory_unref(few.trajectory);
    rp_trajectory_unref(one.trajectory);
    for (size_t i = 0; i < 4; i++) rp_chunk_unref(chunks[i]);
    rp_message_pool_deinit(&pool);
}

static void save_answers(void)
{
    rp_spec column = {"x", RP_FLOAT32, {2, {-1, 4}}};
    rp_table_info table = {.name = "t",
                           .sampler = {RP_PRIORITIZED, 0.6},
                           .remover = {RP_MIN_HEAP, 0},
                           .limiter = {1.5, 2, -3.5, 4.5},
                           .max_size = 100,
                           .max_bytes = 1000,
                           .size = 5,
                           .paused = RP_SIDE_SAMPLES,
                           .inserts = 6,
                           .total_weight = 2.5,
                           .waiting_samples = 2,
                           .sample_waits = {1, 2, 3}};
    rp_waiting waiting = {.wanted = 3, .waiting_ns = 5000000, .until_ns = 9000000, .why = "so"};
    rp_buf out;

    fuzz_check(rp_signature_flat(rp_allocator_default(), &column, 1, &table.signature, NULL) ==
               RP_OK);
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_insert_response(&out, (const uint64_t[]){2, 300, UINT64_MAX}, 3);
    save_written(0, "keys", &out);
    rp_wire_write_checkpoint_response(&out, "/tmp/x");
    save_written(1, "checkpoint", &out);
    rp_wire_write_found(&out, 12);
    save_written(2, "found", &out);
    rp_wire_write_waiting_call(&out, "t", &waiting, &(rp_wire_caller){"a:1", 5}, 1000000);
    rp_wire_write_waiting_total(&out, 4);
    save_written(3, "blocked", &out);
    rp_wire_write_server_info(&out, (const uint64_t[]){1, 2}, &table, 1);
    save_written(4, "server_info", &out);
    rp_wire_write_table_status(&out, &table);
    save_written(5, "status", &out);
    rp_wire_write_connection(&out, &(rp_wire_connection){.id = 7,
                                                         .address = {"10.0.0.1:5", 10},
                                                         .role = {"read", 4},
                                                         .protocol = {"HTTP/2", 6},
                                                         .open_ms = 300,
                                                         .calls = 9,
                                                         .is_caller = true});
    rp_wire_write_connection_total(&out, 3);
    save_written(8, "clients", &out);
    save_samples(&out);
    rp_buf_deinit(&out);
    rp_signature_unref(table.signature);
}

/* Saves connections, with the steps of fuzz_framing.c. If 0x80 is set in a step, the frames so
 * far are sent. */
static void save_framing(void)
{
    static const struct {
        const char *name, *hex;
    } inputs[] = {
        {"echo", "000080028200000300616263 8d"},
        {"finish", "0000800582000003036162638d8d"},
        {"half_close", "000080080282000b0504000000000d8d"},
        {"pause", "000080088200000102 82000005006162636465 8f0300 8d"},
        {"window", "0000 88040400 8008 82001010 01616263 8d 8700ff00 8d 8700ffff 8d"},
        {"large", "000080088200003f01 61626364656668 8d 8c 9c ac bc 8d"},
        {"cut", "00008008 0b01 82002003006162 82000003006364 8d"},
        {"abort", "00008008 82000001c8 8f2c00 8d"},
        {"trailers_only", "0000 8003 8d"},
        {"answer", "0000 8007 8d"},
        {"resets", "0000 8008 8600 8008 8600 8d"},
        {"sweep", "0000 8003 8d 8f0000 8f0000 8d"},
        {"go_away", "0000 8008 8fc200 8fc200 8d"},
        {"pings", "0000 89 89 99 8f0100 8d"},
        {"settings", "0000 880100 00 8802ffff 8805ffff 8d"},
        {"memory", "10002080088200000300616263 8d"},
        {"memory_gone", "30001880088200000300616263 8d"},
        {"limits", "4f00008008 82001f4000616263 8d"},
        {"direct", "0010 8008 8e0079 8e0078 8e0078 8d"},
        {"growing", "0010 8008 8e00ff 8e007e 8e007e 8e007e 8e007e 8e007e 8e007e 8e007e 8e007e "
                    "8e007e 8e007e"
                    "8e007e 8e007e 8e007e 8e007e 8e007e 8e007e 8e007e 8e007e 8d"},
        {"much", "0000 87fe ffff f70fffff 8008 f700ffff "
                 "820000010182000001c982000001c982000001c9 8dac8d"},
        {"raw",
         "00 07 00 000004 01 05 00000001 82868400 000004 00 01 00000001 00000000 000008 06 00"
         "00000000 0102030405060708"},
        {"no_preface", "80 07 00 474554202f"},
    };

    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        seeds_save_hex("framing", inputs[i].name, inputs[i].hex);
}

/* Saves connections of clients, with the steps of fuzz_h2_client.c. If 0x80 is set in a step,
 * the frames so far are delivered to the client. */
static void save_h2_clients(void)
{
    static const struct {
        const char *name, *hex;
    } inputs[] = {
        {"answer", "0000 020000 00 05 00 00 03 616207 82 00 01 03 8d"},
        {"many_messages",
         "0000 020000 00 05 00 03 04 61626307 85 00 03 02 6107 82 00 01 03 8d"},
        {"trailers_only", "0000 82 00 00 03 8d"},
        {"refusal", "0000 82 00 00 67 8d"},
        {"page", "0000 82 00 26 00 85 00 00 04 3c68746d 8d"},
        {"hint", "0000 820a 00 00 82 00 0a 00 82 00 00 00 82 00 01 03 8d"},
        {"status_unknown", "0000 02 00 00 00 82 00 01 b3 8d"},
        {"too_many_headers", "0400 82 00 80 00 8d"},
        {"paused", "0000 02 00 00 00 85 00 02 01 02 85 00 01 01 07 82 00 01 03 8e 01 00 8d"},
        {"cancelled", "0000 02 00 00 00 85 00 01 01 04 85 00 01 01 07 8d 82 00 01 03"},
        {"half_closed", "0000 8e 0e 00 8d 02 00 00 00 85 00 01 01 07 82 00 01 03 8d"},
        {"sends", "0800 8e 04 00 8e 04 00 8e 06 00 8d 89 01 00 ffff 89 01 f0 ffff 8d 8d"},
        {"reset", "0000 02 00 00 00 f9 00 00 8d"},
        {"goodbye", "c000 8d 89 04 01 80 82 00 00 03 8d"},
        {"fewer_calls", "c000 89 12 0100 80 80 8d 89 00 00 8d 80 8d"},
        {"large", "0010 02 00 00 00 87 00 79 87 00 78 87 00 78 87 00 78 8d"},
        {"growing", "0010 02 00 00 00 87 00 ff 87 00 7e 87 00 7e 87 00 7e 87 00 7e 87 00 7e "
                    "87 00 7e 87 00 7e 87 00 7e 87 00 7e 87 00 7e 87 00 7e 87 00 7e 87 00 7e "
                    "87 00 7e 87 00 7e 87 00 7e 87 00 7e 87 00 7e 87 00 7e 8d"},
        {"cut", "0000 0b 01 02 00 00 00 85 00 20 02 6107 82 00 01 03 8d"},
        {"pushed", "0008 8d 88 04 00 f0 00 88 05 04 00 04 00000002 8d"},
        {"pings", "0000 89 03 89 13 8e 00 00 8d"},
        {"memory", "1000 28 02 00 00 00 85 00 00 03 616207 82 00 01 03 8d"},
        {"memory_gone", "3000 1c 02 00 00 00 85 00 00 03 616207 82 00 01 03 8d"},
        {"raw", "00 07 00 000006 04 00 00000000 000300000001 000001 01 04 00000001 88"},
        {"http1", "00 0f 00 485454502f312e312034303020426164"},
    };

    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        seeds_save_hex("h2_client", inputs[i].name, inputs[i].hex);
}

/* Saves sessions, with the steps of fuzz_session.c. 0x60 added to a step gives the server a
 * turn. */
static void save_sessions(void)
{
    static const struct {
        const char *name, *hex;
    } inputs[] = {
        {"insert", "00 60 0c 15 01 01 00 05 20 01 fa"},
        {"insert_end", "00 60 0d 15 01 01 00 05 20 01 7f fa"},
        {"insert_cut", "00 60 0e 15 01 01 00 05 20 01 09 7f fa"},
        {"insert_zstd", "00 60 0c 15 09 01 00 05 20 01 fa"},
        {"insert_large", "00 60 0c 15 11 01 00 05 20 01 fa"},
        {"insert_many", "00 60 0c 1e 01 02 01 00 05 20 02 00 06 20 02 fa"},
        {"insert_signed", "00 60 00 15 01 01 30 05 20 01 fa"},
        {"insert_wrong", "00 60 00 15 11 01 30 05 20 01 fa"},
        {"insert_columns", "00 60 0c 1a 01 02 01 07 05 20 02 01 fa"},
        {"insert_squeeze", "00 60 0c 05 01 09 00 05 20 fa"},
        {"insert_nan", "00 60 00 05 01 01 30 05 06 fa"},
        {"insert_keep_wrong", "00 60 0c 35 01 01 00 05 20 01 02 03 fa"},
        {"insert_nowhere", "00 60 18 05 01 01 00 05 20 fa"},
        {"insert_again", "00 60 0c 15 01 01 00 05 20 01 62 0c 00 14 01 00 06 20 01 fa"},
        {"chunks_only", "08 60 0c 01 11 62 0c 00 01 12 62 0c 00 01 13 fa"},
        {"damaged", "00 60 0c 15 c1 08 ff 01 00 05 20 01 fa"},
        {"sample", "00 60 0c 1d 01 01 00 05 20 01 00 06 20 01 00 07 20 01 64 01 0c ff fa fa"},
        {"sample_large",
         "10 60 0c 19 11 01 00 05 20 01 00 06 20 01 64 02 0c ff fa fa fa fa fa fa fa"},
        {"sample_waits", "00 64 02 0c ff 60 0c 19 01 01 00 05 20 01 00 06 20 01 fa 68 01 fa"},
        {"sample_times_out", "00 64 00 04 ff 7b 7f fa"},
        {"queue",
         "00 60 04 1d 01 01 00 05 20 01 00 06 20 01 00 07 20 01 62 04 00 0c 01 00 08 20 01"
         "00 09 20 01 00 0a 20 7f 64 01 04 ff 7f fa fa"},
        {"slow",
         "00 60 08 1d 01 01 00 05 20 01 00 06 20 01 00 07 20 01 62 08 00 1c 01 00 08 20 01"
         "00 09 20 01 00 0a 20 01 7f 6c 0c 32 7f fa"},
        {"parked_and_gone",
         "00 60 04 1d 01 01 00 05 20 01 00 06 20 01 00 07 20 01 62 04 00 0c 01 00 08 20 01"
         "00 09 20 01 00 0a 20 7f 7e 7f"},
        {"parked_and_dropped",
         "00 60 04 1d 01 01 00 05 20 01 00 06 20 01 00 07 20 01 62 04 00 0c 01 00 08 20 01"
         "00 09 20 01 00 0a 20 7f 6c 04 29 7f fa"},
        {"mutate", "00 60 0c 15 01 01 00 01 20 01 64 03 0c ff 64 04 0c ff fa"},
        {"unary", "00 64 05 00 ff 64 06 00 ff 64 07 00 ff fa"},
        {"create", "00 64 08 14 ff 60 14 05 01 01 00 05 20 64 0a 14 ff 64 09 14 ff fa"},
        {"alter", "00 64 0b 00 ff 64 0c 08 ff 64 0d 08 ff 64 0f 08 ff 64 0e 08 ff fa"},
        {"items",
         "00 60 0c 19 11 01 00 01 20 01 00 02 20 01 64 10 0c ff 64 11 0c ff 64 13 0c ff"
         "64 14 0c ff 64 12 0c ff fa fa fa"},
        {"health", "00 64 15 00 ff 64 16 01 ff 6c 01 7f 6c 19 7b 7f fa"},
        {"reflection", "00 64 17 00 ff 66 18 00 00 ff fa"},
        {"pages", "00 69 79 89 99 fa fa"},
        {"long_pages", "e0 69 79 89 99 fa fa"},
        {"two_peers", "00 60 0c 05 01 01 00 05 20 7d 64 01 0c ff 6d 68 00 fa 7d fa"},
        {"half_close", "00 60 0c 15 01 01 00 05 20 01 6e 7f fa"},
        {"reset", "00 60 04 15 01 01 00 05 20 01 a8 00 7f 60 04 15 01 01 00 05 20 01 a8 00 7f"},
        {"drain", "00 60 04 15 01 01 00 05 20 01 6c c0 7f 7b 7f 60 0c 15 01 01 00 05 20 01 fa"},
        {"slow_reader",
         "10 d8 00 00 60 0c 19 11 01 00 05 20 01 00 06 20 01 64 02 0c ff bb 7f bb 7f"},
        {"silence", "00 bb 7f bb 7f bb 7f bb 7f"},
        {"memory", "00 6c 42 60 0c 15 01 01 00 05 20 01 64 01 0c ff fa"},
        {"memory_insert",
         "00 60 0c 15 01 01 00 05 20 01 6c 12 62 0c 00 15 02 02 00 06 20 02 fa"},
        {"budget", "06 60 0c 15 11 01 00 05 20 01 62 0c 00 15 12 02 00 06 20 02 62 0c 00 15 13"
                   "03 00 07 20 03 fa"},
        {"raw",
         "00 60 0c 15 01 01 00 05 20 01 67 00 00 05 aabbccddee 00 c7 00 00 03 0a0161 00 fa"},
        {"deadline", "00 64 02 84 ff bb 7f fa"},
    };

    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        seeds_save_hex("session", inputs[i].name, inputs[i].hex);
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
    save_framing();
    save_h2_clients();
    save_messages();
    save_answers();
    save_sessions();
    save_strings();
    save_tokens();
    save_roundtrips();
    seeds_save_disk();
    return 0;
}
