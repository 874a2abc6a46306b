/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes every reader of a server's responses.
 *
 *   input   | reader | allocations that succeed, 0: all | message |
 *
 * For a stream of samples there are several messages, each after its length in two bytes. A
 * message that is accepted is written again, and must then be read as the same. No memory may
 * be left. */
#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "fuzz.h"
#include "fuzz_memory.h"
#include "wire/admin_messages.h"
#include "wire/connection_messages.h"
#include "wire/durability_wire.h"
#include "wire/fields.h"
#include "wire/responses.h"
#include "wire/reverb_messages.h"
#include "wire/sample_response.h"
#include "wire/sample_response_read.h"

enum { MAX_SAMPLES = 32 };

typedef void fuzz_reader(const rp_allocator *alloc, const uint8_t *data, size_t size);

static bool is_read(rp_status st, const rp_error *err)
{
    fuzz_check(st == RP_OK || st == RP_CORRUPT || st == RP_NO_RESOURCE);
    fuzz_check((st == RP_OK) == (err->text[0] == '\0') && (st == RP_OK || err->code == st));
    return st == RP_OK;
}

static void read_keys(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_error err = {0};
    uint64_t *keys, *again;
    size_t count, found;
    rp_buf out;

    (void)alloc;
    if (!is_read(rp_wire_read_insert_response(data, size, &count, &err), &err)) return;
    keys = malloc((count + 1) * sizeof *keys);
    again = malloc((count + 1) * sizeof *keys);
    fuzz_check(keys != NULL && again != NULL);
    keys[count] = 77;
    rp_wire_insert_response_keys(data, size, keys);
    fuzz_check(keys[count] == 77);
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_insert_response(&out, keys, count);
    fuzz_check(rp_wire_read_insert_response(out.data, out.size, &found, &err) == RP_OK);
    fuzz_check(found == count);
    rp_wire_insert_response_keys(out.data, out.size, again);
    fuzz_check(memcmp(keys, again, count * sizeof *keys) == 0);
    rp_buf_deinit(&out);
    free(keys);
    free(again);
}

static void read_checkpoint(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_error err = {0};
    rp_string path;

    (void)alloc;
    if (!is_read(rp_wire_read_checkpoint_response(data, size, &path, &err), &err)) return;
    fuzz_check(path.size <= 4096 && rp_wire_is_text(path.data, path.size));
}

static void read_found(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_error err = {0};
    int64_t found;

    (void)alloc;
    (void)is_read(rp_wire_read_found(data, size, &found, &err), &err);
}

static void read_blocked(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_wire_waiting calls[8];
    rp_wire_blocked found = {.calls = calls, .capacity = 8};
    rp_error err = {0};

    (void)alloc;
    if (!is_read(rp_wire_read_blocked(data, size, 1000, &found, &err), &err)) return;
    fuzz_check(found.count <= 8);
    for (size_t i = 0; i < found.count; i++) {
        const rp_waiting *w = &calls[i].waiting;
        fuzz_check(w->until_ns >= 1000 && w->waiting_ns >= 0);
        fuzz_check(rp_wire_is_text(w->why, strlen(w->why)));
        fuzz_check(rp_wire_is_text(calls[i].table.data, calls[i].table.size));
    }
}

static void read_clients(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_wire_connection list[8];
    rp_wire_connections found = {.list = list, .capacity = 8};
    rp_error err = {0};

    (void)alloc;
    if (!is_read(rp_wire_read_connections(data, size, &found, &err), &err)) return;
    fuzz_check(found.count <= 8);
    for (size_t i = 0; i < found.count; i++) {
        fuzz_check(list[i].open_ms >= 0);
        fuzz_check(rp_wire_is_text(list[i].address.data, list[i].address.size));
    }
}

/* Checks that the tables in the message `out` are those of `list`. */
static void check_again(const rp_wire_tables *list, const rp_buf *out, bool is_status)
{
    rp_wire_tables *again = NULL;
    rp_error err = {0};
    rp_status st = is_status ? rp_wire_read_status(rp_allocator_default(), out->data, out->size,
                                                   &again, &err)
                             : rp_wire_read_server_info(rp_allocator_default(), out->data,
                                                        out->size, NULL, &again, &err);

    fuzz_check(st == RP_OK && again->count == list->count);
    for (size_t i = 0; i < list->count; i++) {
        const rp_table_info *a = &list->tables[i], *b = &again->tables[i];
        fuzz_check(strcmp(a->name, b->name) == 0 && a->size == b->size);
        fuzz_check(a->max_size == b->max_size && a->paused == b->paused);
        fuzz_check(a->sampler.kind == b->sampler.kind && a->remover.kind == b->remover.kind);
        fuzz_check((a->signature != NULL) == (b->signature != NULL));
        fuzz_check(memcmp(&a->insert_waits, &b->insert_waits, sizeof a->insert_waits) == 0);
    }
    rp_wire_tables_merge(again, list);
    rp_wire_tables_free(again);
}

static void read_server_info(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_wire_tables *list = NULL;
    uint64_t id[2];
    rp_error err = {0};
    rp_buf out;

    if (!is_read(rp_wire_read_server_info(alloc, data, size, id, &list, &err), &err)) return;
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_server_info(&out, id, list->tables, list->count);
    check_again(list, &out, false);
    rp_buf_deinit(&out);
    rp_wire_tables_free(list);
}

/* Checks that a message that was read is the same after it was written and read again. */
static void read_durability(const uint8_t *data, size_t size)
{
    rp_durable_info info, again;
    bool is_there = false;
    rp_error err = {0};
    rp_buf out;

    if (!is_read(rp_wire_read_durability(data, size, &is_there, &info, &err), &err)) return;
    if (!is_there) return;
    fuzz_check(info.mode <= RP_DURABLE_SYNC);
    fuzz_check(rp_wire_is_text(info.trouble, strlen(info.trouble)));
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_durability(&out, &info);
    fuzz_check(rp_wire_read_durability(out.data, out.size, &is_there, &again, &err) == RP_OK);
    fuzz_check(is_there && strcmp(info.trouble, again.trouble) == 0);
    fuzz_check(info.load_bytes == again.load_bytes && info.lsn == again.lsn);
    fuzz_check(info.progress.what == again.progress.what);
    rp_buf_deinit(&out);
}

static void read_status(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_wire_tables *list = NULL;
    rp_error err = {0};
    rp_buf out;

    read_durability(data, size);
    if (!is_read(rp_wire_read_status(alloc, data, size, &list, &err), &err)) return;
    rp_buf_init(&out, rp_allocator_default());
    for (size_t i = 0; i < list->count; i++) rp_wire_write_table_status(&out, &list->tables[i]);
    check_again(list, &out, true);
    rp_buf_deinit(&out);
    rp_wire_tables_free(list);
}

static rp_sample_reader *make_reader(const rp_allocator *alloc)
{
    rp_sample_limits limits = rp_sample_limits_default();
    rp_sample_reader *reader = NULL;

    limits.chunks = 40;
    limits.columns = 20;
    limits.slices = 100;
    limits.bytes = 1 << 15;
    limits.batch_chunks = 50;
    limits.chunk.max_raw_bytes = 1 << 20;
    return rp_sample_reader_new(alloc, &limits, &reader, NULL) == RP_OK ? reader : NULL;
}

/* Writes a sample as a server does, and reads it again. */
static void check_sample(const rp_sample *sample)
{
    const rp_trajectory *t = sample->trajectory;
    rp_sample_reader *reader = make_reader(rp_allocator_default());
    rp_message_pool pool;
    rp_message *reply;
    rp_buf flat;
    rp_sample again;
    const uint8_t *data;
    size_t count = 0;

    fuzz_check(t->chunk_count >= 1 && t->column_count >= 1);
    rp_message_pool_init(&pool, rp_allocator_default());
    rp_buf_init(&flat, rp_allocator_default());
    reply = rp_message_new(&pool);
    fuzz_check(rp_sample_entry_append(reply, sample, "t", 1, 0, t->chunk_count, NULL));
    fuzz_check(rp_message_close(reply));
    (void)rp_message_take(reply, RP_GRPC_PREFIX, &data);
    while (rp_message_remaining(reply) > 0) {
        size_t size = rp_message_take(reply, SIZE_MAX, &data);
        rp_buf_append(&flat, data, size);
    }
    rp_sample_reader_open(reader, flat.data, flat.size, NULL);
    fuzz_check(rp_sample_reader_next(reader, &again, 1, &count, NULL) == RP_OK && count == 1);
    fuzz_check(again.key == sample->key && again.table_size == sample->table_size);
    fuzz_check(again.inserted_at_ns == sample->inserted_at_ns);
    fuzz_check(again.trajectory->chunk_count == t->chunk_count);
    fuzz_check(again.trajectory->column_count == t->column_count);
    rp_trajectory_unref(again.trajectory);
    rp_sample_reader_free(reader);
    rp_buf_deinit(&flat);
    rp_message_release(&pool, reply);
    rp_message_pool_deinit(&pool);
}

static void check_samples(rp_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (samples[i].trajectory == NULL) continue;
        check_sample(&samples[i]);
        rp_trajectory_unref(samples[i].trajectory);
    }
}

/* Reads one message of a stream. With `with_block`, the message is in its own rp_block. */
static bool read_message(rp_sample_reader *reader, const rp_allocator *alloc,
                         const uint8_t *data, size_t size, bool with_block)
{
    rp_block *block = with_block ? rp_block_new(alloc, size) : NULL;
    uint8_t *copy = block == NULL ? malloc(size > 0 ? size : 1) : NULL;
    rp_sample out[4];
    rp_error err = {0};
    size_t count;
    bool ok;

    fuzz_check(block != NULL || copy != NULL);
    if (size > 0) memcpy(block != NULL ? block->data : copy, data, size);
    rp_sample_reader_open(reader, block != NULL ? block->data : copy, size, block);
    do {
        ok = is_read(rp_sample_reader_next(reader, out, 4, &count, &err), &err);
        fuzz_check(ok || (count == 0 && !rp_sample_reader_is_within(reader)));
        check_samples(out, count);
    } while (count > 0);
    rp_block_unref(block);
    free(copy);
    return ok;
}

static void read_stream(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_sample_reader *reader = make_reader(alloc);
    fuzz_input in = {data, data + size};
    bool ok = reader != NULL, with_block = true;

    while (ok && fuzz_left(&in) > 0) {
        size_t length = fuzz_short(&in);
        if (length > fuzz_left(&in)) length = fuzz_left(&in);
        ok = read_message(reader, alloc, in.at, length, with_block);
        in.at += length;
        with_block = !with_block;
    }
    rp_sample_reader_free(reader);
}

static void read_batch(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_sample_reader *reader = make_reader(alloc);
    rp_sample out[MAX_SAMPLES];
    rp_sample_list list = {.samples = out, .capacity = MAX_SAMPLES};
    rp_error err = {0};

    if (reader == NULL) return;
    (void)is_read(rp_sample_reader_batch(reader, data, size, true, &list, &err), &err);
    check_samples(out, list.count);
    err = (rp_error){0};
    (void)is_read(rp_sample_reader_batch(reader, data, size, false, &list, &err), &err);
    for (size_t i = 0; i < list.count; i++) fuzz_check(out[i].trajectory == NULL);
    rp_sample_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Seeds and corpora select a reader by its index, so new readers are added at the end. */
    static fuzz_reader *const readers[] = {
        read_keys,   read_checkpoint, read_found, read_blocked, read_server_info,
        read_status, read_stream,     read_batch, read_clients,
    };
    fuzz_memory memory = {0};
    rp_allocator alloc = fuzz_memory_allocator(&memory);
    uint8_t *message;

    if (size < 2 || size > FUZZ_MAX_BYTES) return 0;
    memory.fails = data[1] > 0;
    memory.until = data[1] > 0 ? data[1] - 1u : 0;
    message = malloc(size - 1);
    fuzz_check(message != NULL);
    memcpy(message, data + 2, size - 2);
    readers[data[0] % (sizeof readers / sizeof readers[0])](&alloc, message, size - 2);
    free(message);
    fuzz_check(memory.live == 0 && memory.live_bytes == 0);
    return 0;
}
