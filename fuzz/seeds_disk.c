/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "chunk/chunk_api.h"
#include "chunk/trajectory.h"
#include "disk/hash.h"
#include "disk/journal.h"
#include "disk/record.h"
#include "durable/format/journal_records.h"
#include "durable/format/manifest.h"
#include "seeds.h"
#include "util/little_endian.h"

/* Saves records, each after the first byte that fuzz_records.c reads. */
static void save_records(void)
{
    uint8_t input[1 + RP_FILE_HEADER_BYTES + 40];
    char name[64];

    for (int kind = RP_FILE_CURRENT; kind <= RP_FILE_JOURNAL; kind++) {
        rp_file_header header = {
            .version = 1, .kind = (rp_file_kind)kind, .number = 3, .store = {{1, 2, 3}}};
        input[0] = (uint8_t)(kind << 2 | (kind & 1));
        (void)rp_file_header_write(input + 1, &header);
        (void)snprintf(name, sizeof name, "file%d", kind);
        seeds_save("records", name, input, 1 + RP_FILE_HEADER_BYTES);
    }
    for (int size = 0; size <= 40; size += 20) {
        uint8_t *payload = input + 1 + RP_RECORD_HEADER_BYTES;
        input[0] = (uint8_t)(size << 2 | 2 | (size == 20));
        seeds_fill(payload, (size_t)size, 1);
        (void)rp_record_write(input + 1, RP_RECORD_CHUNK, 7, 0xabcdef, payload, (size_t)size);
        (void)snprintf(name, sizeof name, "record%d", size);
        seeds_save("records", name, input, 1 + RP_RECORD_HEADER_BYTES + (size_t)size);
    }
}

static rp_status some_location(void *ctx, rp_chunk *chunk, rp_disk_location *out)
{
    *out = (rp_disk_location){1 + chunk->origin.key, 64 * chunk->origin.key, 100};
    (void)ctx;
    return RP_OK;
}

static void save_image_seeds(void)
{
    static rp_image image;
    rp_table_state state = {.options = {.name = "t", .max_size = 5},
                            .slot_capacity = 256,
                            .slots_used = 3,
                            .live = 2,
                            .first_free = 1};
    rp_buf out;

    rp_buf_init(&out, rp_allocator_default());
    rp_image_init(&image, rp_allocator_default());
    for (int mode = 0; mode < 2; mode++) {
        rp_buf_clear(&out);
        rp_buf_append(&out, mode == 0 ? "\0" : "\1", 1);
        rp_image_clear(&image);
        for (size_t i = 0; i < 40; i++) {
            rp_disk_location location = {1 + i / 30, 64 + 100 * (i / 2), 68};

            image.slots[i].live = true;
            image.slots[i].key = i;
            rp_image_add_column(&image, i, i % 2 == 0);
            rp_image_add_slice(
                &image, &(rp_image_slice){rp_image_add_location(&image, &location), 0, 0, 1});
        }
        if (mode == 0)
            fuzz_check(rp_image_write(&image, &out) == RP_OK);
        else
            rp_image_write_table(&out, &state);
        seeds_save("image", mode == 0 ? "block" : "table", out.data, out.size);
    }
    rp_image_deinit(&image);
    rp_buf_deinit(&out);
}

/* Appends a record in the format of fuzz_manifest.c. */
static void add_manifest_record(rp_buf *out, uint8_t kind, const rp_buf *payload)
{
    uint8_t head[3] = {kind, (uint8_t)payload->size, (uint8_t)(payload->size >> 8)};

    rp_buf_append(out, head, sizeof head);
    rp_buf_append(out, payload->data, payload->size);
}

static void save_manifest_seeds(void)
{
    static const uint8_t locations[] = {0, 1, 2, 200, 1, 9, 1, 2, 3, 4, 5, 6, 7, 8};
    static const uint8_t segments[] = {1, 1, 200, 2, 9}, end = 255;
    rp_table_state state = {.options = {.name = "t", .max_size = 5},
                            .slot_capacity = 256,
                            .slots_used = 3,
                            .live = 2,
                            .first_free = 1};
    rp_current current = {.checkpoint = 3, .bytes = 500};
    uint8_t bytes[1 + RP_CURRENT_BYTES] = {1};
    rp_buf out, payload;

    rp_buf_init(&out, rp_allocator_default());
    rp_buf_init(&payload, rp_allocator_default());
    rp_buf_append(&out, "\0", 1);
    for (int i = 0; i < 64; i++) rp_buf_append(&payload, i % 8 == 0 ? "\1" : "\0", 1);
    rp_buf_append(&payload, "\1", 1);
    add_manifest_record(&out, 0, &payload); /* store */
    rp_buf_clear(&payload);
    rp_buf_append(&payload, "\1", 1);
    rp_image_write_table(&payload, &state);
    add_manifest_record(&out, 1, &payload);
    rp_buf_clear(&payload);
    rp_buf_append(&payload, locations, sizeof locations);
    add_manifest_record(&out, 2, &payload);
    rp_buf_clear(&payload);
    rp_buf_append(&payload, segments, sizeof segments);
    add_manifest_record(&out, 4, &payload);
    rp_buf_append(&out, &end, 1);
    seeds_save("manifest", "one_table", out.data, out.size);
    rp_current_encode(&current, bytes + 1);
    seeds_save("manifest", "current", bytes, sizeof bytes);
    rp_buf_deinit(&out);
    rp_buf_deinit(&payload);
}

/* Saves the payload of a log record, after the first byte that fuzz_journal.c reads. */
static void save_change(const char *name, const rp_log_record *change)
{
    rp_journal_encoder encoder;
    rp_buf out;
    uint8_t what = (uint8_t)(rp_journal_kind_of(change) - RP_RECORD_INSERT);

    rp_journal_encoder_init(&encoder, rp_allocator_default());
    rp_buf_init(&out, rp_allocator_default());
    rp_buf_append(&out, &what, 1);
    fuzz_check(rp_journal_encode(&encoder, (rp_string){"table", 5}, change, some_location, NULL,
                                 &out) == RP_OK);
    seeds_save("journal", name, out.data, out.size);
    rp_buf_deinit(&out);
    rp_journal_encoder_deinit(&encoder);
}

static void save_insert(void)
{
    rp_spec spec = {"x", RP_INT32, {.rank = 0}};
    rp_chunk_options plain = {.codec = RP_CODEC_NONE};
    rp_chunk *chunks[2];
    rp_chunk_slice slices[3];
    rp_slices columns[2] = {{slices, 2, false}, {slices + 2, 1, true}};
    rp_trajectory *trajectory = NULL;
    rp_inserted items[3] = {{.key = 7, .priority = 1.5, .times_sampled = 2, .evicted = 3},
                            {.key = 8, .priority = 0},
                            {.key = 9, .priority = 2}};
    rp_log_record change = {.kind = RP_LOGGED_INSERT,
                            .wall_ns = 1234567890,
                            .dead = 2,
                            .inserted = items,
                            .count = 3};

    for (uint64_t i = 0; i < 2; i++) {
        rp_chunk_builder *builder = NULL;
        rp_chunk_origin origin = {.key = i, .episode = 1, .last_step = 3};

        fuzz_check(rp_chunk_builder_new(rp_allocator_default(), &spec, 1, &plain, &builder,
                                        NULL) == RP_OK);
        for (int32_t row = 0; row < 4; row++) {
            rp_tensor tensor = {RP_INT32, {.rank = 0}, &row};
            fuzz_check(rp_chunk_builder_append(builder, &tensor, NULL) == RP_OK);
        }
        fuzz_check(rp_chunk_builder_finish(builder, &origin, &chunks[i], NULL) == RP_OK);
        rp_chunk_builder_free(builder);
    }
    for (int i = 0; i < 3; i++) slices[i] = (rp_chunk_slice){chunks[i % 2], 0, (uint32_t)i, 1};
    fuzz_check(rp_trajectory_new(rp_allocator_default(), columns, 2, &trajectory, NULL) ==
               RP_OK);
    items[0].trajectory = items[2].trajectory = trajectory;
    save_change("insert", &change);
    rp_trajectory_unref(trajectory);
    for (int i = 0; i < 2; i++) rp_chunk_unref(chunks[i]);
}

static void save_journal(void)
{
    static const rp_update updates[] = {{1, 0.5}, {2, 1.5}};
    static const uint64_t keys[] = {3, 4, 5};
    uint8_t file[1 + RP_FILE_HEADER_BYTES + 3 * RP_RECORD_HEADER_BYTES], *to = file + 1;
    rp_file_header header = {
        .version = 1, .kind = RP_FILE_JOURNAL, .number = 3, .store = {{1, 2, 3}}};
    uint32_t crc;

    save_insert();
    save_change("sample",
                &(rp_log_record){.kind = RP_LOGGED_SAMPLE, .count = 5, .distinct = true});
    save_change("update",
                &(rp_log_record){.kind = RP_LOGGED_UPDATE, .updates = updates, .count = 2});
    save_change("delete", &(rp_log_record){.kind = RP_LOGGED_DELETE, .keys = keys, .count = 3});
    save_change("evict", &(rp_log_record){.kind = RP_LOGGED_EVICT, .count = 300});
    save_change("reset", &(rp_log_record){.kind = RP_LOGGED_RESET});
    save_change("alter",
                &(rp_log_record){.kind = RP_LOGGED_ALTER,
                                 .alter = {.which = 3, .max_size = 10, .max_bytes = 20}});
    save_change("pause", &(rp_log_record){.kind = RP_LOGGED_PAUSE, .paused = 1});
    seeds_save_hex("journal", "drop", "09 05 7461626c65");
    file[0] = RP_RECORD_PAUSE - RP_RECORD_INSERT + 1;
    crc = rp_file_header_write(to, &header);
    to += RP_FILE_HEADER_BYTES;
    crc = rp_record_write(to, RP_RECORD_RESET, 3, crc, NULL, 0);
    to += RP_RECORD_HEADER_BYTES;
    crc = rp_record_write(to, RP_RECORD_SYNCED, 3, crc, NULL, 0);
    to += RP_RECORD_HEADER_BYTES;
    (void)rp_record_write(to, RP_RECORD_EVICT, 4, crc, NULL, 0);
    seeds_save("journal", "file", file, sizeof file);
}

/* Saves a segment of three records, with a seal and without. */
static void save_scans(void)
{
    rp_file_header header = {.version = 1, .kind = RP_FILE_SEGMENT, .number = 1};
    uint8_t input[1024], seal[32 + 4 * 3] = {3};
    uint32_t before;
    size_t at = 1 + RP_FILE_HEADER_BYTES;
    rp_hash *hash = rp_hash_new(rp_allocator_default());

    fuzz_check(hash != NULL);
    before = rp_file_header_write(input + 1, &header);
    for (size_t i = 0; i < 3; i++) {
        uint8_t *payload = input + at + RP_RECORD_HEADER_BYTES;
        seeds_fill(payload, 50 * i, 1);
        rp_put_u32(seal + 32 + 4 * i, (uint32_t)(at - 1));
        before = rp_record_write(input + at, RP_RECORD_CHUNK, i, before, payload, 50 * i);
        at += RP_RECORD_HEADER_BYTES + 50 * i;
    }
    input[0] = 0;
    seeds_save("scan", "open", input, at);
    input[0] = 3;
    seeds_save("scan", "mended", input, at);
    input[0] = 4;
    seeds_save("scan", "no_memory", input, at);
    rp_put_u64(seal + 8, at - 1);
    rp_hash_update(hash, input + 1, at - 1);
    rp_hash_digest(hash, seal + 16);
    (void)rp_record_write(input + at, RP_RECORD_SEAL, 1, before, seal, sizeof seal);
    memcpy(input + at + RP_RECORD_HEADER_BYTES, seal, sizeof seal);
    input[0] = 0;
    seeds_save("scan", "sealed", input, at + RP_RECORD_HEADER_BYTES + sizeof seal);
    rp_hash_free(hash);
}

void seeds_save_disk(void)
{
    save_records();
    save_journal();
    save_scans();
    save_image_seeds();
    save_manifest_seeds();
}
