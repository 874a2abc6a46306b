/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes every reader of src/wire. The first byte of the input chooses the reader; the rest is
 * its message, in a block of exactly its size. If the message is accepted, the results must be
 * within the message and as many as were counted, and must be the same after they were written
 * and read again. */
#include "chunk/chunk_wire.h"
#include "fuzz.h"
#include "util/buf.h"
#include "wire/admin_messages.h"
#include "wire/durability_wire.h"
#include "wire/fields.h"
#include "wire/health_messages.h"
#include "wire/insert_request.h"
#include "wire/reflection_messages.h"
#include "wire/reverb_messages.h"
#include "wire/signature_wire.h"

enum { MAX_KEYS = 4096, MAX_COLUMNS = 64, MAX_SLICES = 256 };

typedef void fuzz_reader(const uint8_t *data, size_t size);

/* Checks the status of a reader. Returns true if the message was accepted. */
static bool is_read(rp_status st, const rp_error *err)
{
    fuzz_check(st == RP_OK || st == RP_INVALID || st == RP_NO_RESOURCE);
    fuzz_check((st == RP_OK) == (err->text[0] == '\0'));
    return st == RP_OK;
}

static void check_text(rp_string text, const uint8_t *data, size_t size)
{
    const uint8_t *begin = (const uint8_t *)text.data;

    if (text.size == 0) return;
    fuzz_check(text.size <= RP_WIRE_MAX_NAME_BYTES && rp_wire_is_text(text.data, text.size));
    fuzz_check(begin >= data && text.size <= (size_t)(data + size - begin));
}

/* Allocates memory for exactly `count` entries, so that a sanitizer finds a write of one more.
 */
static void *room_for(size_t count, size_t entry_bytes)
{
    void *room = malloc(count > 0 ? count * entry_bytes : 1);

    fuzz_check(room != NULL);
    return room;
}

static void read_sample(const uint8_t *data, size_t size)
{
    rp_wire_sample_request request;
    rp_error err = {0};

    if (is_read(rp_wire_read_sample_request(data, size, &request, &err), &err))
        check_text(request.table, data, size);
}

static void read_mutate(const uint8_t *data, size_t size)
{
    rp_wire_mutate_request request;
    rp_error err = {0};
    rp_update *updates;
    uint64_t *keys;

    if (!is_read(rp_wire_read_mutate_request(data, size, MAX_KEYS, &request, &err), &err))
        return;
    check_text(request.table, data, size);
    fuzz_check(request.update_count + request.delete_count <= MAX_KEYS);
    updates = room_for(request.update_count, sizeof *updates);
    keys = room_for(request.delete_count, sizeof *keys);
    rp_wire_mutate_updates(&request, updates);
    rp_wire_mutate_deletes(&request, keys);
    free(updates);
    free(keys);
}

static void read_reset(const uint8_t *data, size_t size)
{
    rp_string table;
    rp_error err = {0};

    if (is_read(rp_wire_read_reset_request(data, size, &table, &err), &err))
        check_text(table, data, size);
}

static void read_initialize(const uint8_t *data, size_t size)
{
    int64_t pid;
    rp_string table;
    rp_error err = {0};

    if (is_read(rp_wire_read_initialize_request(data, size, &pid, &table, &err), &err))
        check_text(table, data, size);
}

static void read_item(const uint8_t *data, size_t size)
{
    rp_wire_column columns[MAX_COLUMNS];
    rp_wire_slice slices[MAX_SLICES];
    rp_wire_item item;
    rp_error err = {0};
    size_t sum = 0;
    rp_status st = rp_wire_item_read(
        data, size, &(rp_wire_item_arrays){columns, MAX_COLUMNS, slices, MAX_SLICES}, &item,
        &err);

    if (!is_read(st, &err)) return;
    fuzz_check(item.column_count >= 1 && item.column_count <= MAX_COLUMNS);
    for (size_t i = 0; i < item.column_count; i++) {
        fuzz_check(columns[i].slice_count >= 1);
        sum += columns[i].slice_count;
    }
    fuzz_check(sum == item.slice_count && sum <= MAX_SLICES);
    for (size_t i = 0; i < sum; i++)
        fuzz_check(slices[i].offset <= INT32_MAX && slices[i].length <= INT32_MAX &&
                   slices[i].index <= INT32_MAX);
}

static void read_insert(const uint8_t *data, size_t size)
{
    const rp_insert_limits limits = {1 << 15, 64, MAX_COLUMNS, MAX_SLICES, MAX_KEYS};
    rp_insert_request request;
    rp_error err = {0};
    rp_pb_reader parts;
    const uint8_t *part;
    size_t part_size, chunks = 0, items = 0;
    uint64_t *keep;

    if (!is_read(rp_insert_request_read(data, size, &limits, &request, &err), &err)) return;
    for (parts = rp_insert_request_parts(&request);
         rp_insert_request_next_chunk(&parts, &part, &part_size); chunks++) {
        rp_error chunk_err = {0};
        rp_chunk_head head;
        (void)is_read(rp_chunk_wire_peek(part, part_size, &head, &chunk_err), &chunk_err);
    }
    for (parts = rp_insert_request_parts(&request);
         rp_insert_request_next_item(&parts, &part, &part_size); items++)
        read_item(part, part_size);
    fuzz_check(chunks == request.chunk_count && items == request.item_count);
    keep = room_for(request.keep_count, sizeof *keep);
    rp_insert_request_keep(&request, keep);
    free(keep);
}

/* Checks that a signature that was accepted is accepted again after it was written, and is then
 * written to the same bytes. */
static void check_signature(const rp_signature *signature)
{
    rp_signature *again;
    rp_error err = {0};
    rp_buf first, second;
    rp_pb_reader reader;
    rp_pb_field f;

    rp_buf_init(&first, rp_allocator_default());
    rp_buf_init(&second, rp_allocator_default());
    rp_wire_put_signature(&first, 6, signature);
    reader = rp_pb_open(first.data, first.size);
    fuzz_check(rp_pb_next(&reader, &f) == RP_PB_FIELD && f.number == 6 &&
               reader.at == reader.end);
    fuzz_check(rp_wire_read_signature(rp_allocator_default(), f.data, f.size, &again, &err) ==
               RP_OK);
    rp_wire_put_signature(&second, 6, again);
    fuzz_check(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    rp_signature_unref(again);
    rp_buf_deinit(&first);
    rp_buf_deinit(&second);
}

static void read_signature(const uint8_t *data, size_t size)
{
    rp_signature *signature;
    rp_error err = {0};

    if (!is_read(rp_wire_read_signature(rp_allocator_default(), data, size, &signature, &err),
                 &err))
        return;
    check_signature(signature);
    rp_signature_unref(signature);
}

static void read_health(const uint8_t *data, size_t size)
{
    rp_string service;
    rp_error err = {0};

    if (is_read(rp_wire_read_health_request(data, size, &service, &err), &err))
        check_text(service, data, size);
}

static void read_reflection(const uint8_t *data, size_t size)
{
    rp_wire_reflection_request request;
    rp_error err = {0};
    rp_buf out;

    if (!is_read(rp_wire_read_reflection_request(data, size, &request, &err), &err)) return;
    check_text(request.host, data, size);
    check_text(request.text, data, size);
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_reflection_response(&out, &request);
    fuzz_check(!out.bad && out.size > 0);
    rp_buf_deinit(&out);
}

static void read_create(const uint8_t *data, size_t size)
{
    rp_wire_table_options options;
    rp_error err = {0};

    if (!is_read(rp_wire_read_create_table(data, size, &options, &err), &err)) return;
    check_text(options.name, data, size);
    fuzz_check(options.sampler.kind <= RP_MAX_HEAP && options.remover.kind <= RP_MAX_HEAP);
    if (options.signature == NULL) return;
    fuzz_check(options.signature >= data &&
               options.signature_size <= (size_t)(data + size - options.signature));
    read_signature(options.signature, options.signature_size);
}

static void read_drop(const uint8_t *data, size_t size)
{
    rp_string table;
    rp_error err = {0};

    if (is_read(rp_wire_read_drop_table(data, size, &table, &err), &err))
        check_text(table, data, size);
}

static void read_alter(const uint8_t *data, size_t size)
{
    rp_wire_alter_table alter;
    rp_limiter_options limiter = {1, 1, 0, 0};
    rp_error err = {0};

    if (!is_read(rp_wire_read_alter_table(data, size, &alter, &err), &err)) return;
    check_text(alter.table, data, size);
    rp_wire_limiter_apply(&alter.limiter, &limiter);
}

static void read_pause(const uint8_t *data, size_t size)
{
    rp_wire_pause_table pause;
    rp_error err = {0};

    if (!is_read(rp_wire_read_pause_table(data, size, &pause, &err), &err)) return;
    check_text(pause.table, data, size);
    fuzz_check(pause.inserts || pause.samples);
}

static void read_why_blocked(const uint8_t *data, size_t size)
{
    rp_string table;
    size_t max_calls;
    rp_error err = {0};

    if (!is_read(rp_wire_read_why_blocked(data, size, &table, &max_calls, &err), &err)) return;
    check_text(table, data, size);
    fuzz_check(max_calls >= 1 && max_calls <= 1000);
}

static void check_keys(const rp_wire_keys_request *request, const uint8_t *data, size_t size)
{
    uint64_t *keys;

    check_text(request->table, data, size);
    fuzz_check(request->count <= MAX_KEYS);
    keys = room_for(request->count, sizeof *keys);
    rp_wire_request_keys(request, keys);
    free(keys);
}

static void read_peek(const uint8_t *data, size_t size)
{
    rp_wire_keys_request request;
    rp_error err = {0};

    if (is_read(rp_wire_read_peek(data, size, MAX_KEYS, &request, &err), &err))
        check_keys(&request, data, size);
}

static void read_delete(const uint8_t *data, size_t size)
{
    rp_wire_keys_request request;
    rp_error err = {0};

    if (is_read(rp_wire_read_delete(data, size, MAX_KEYS, &request, &err), &err))
        check_keys(&request, data, size);
}

static void read_update(const uint8_t *data, size_t size)
{
    rp_wire_keys_request request;
    rp_update *updates;
    rp_error err = {0};

    if (!is_read(rp_wire_read_update_request(data, size, MAX_KEYS, &request, &err), &err))
        return;
    check_text(request.table, data, size);
    updates = room_for(request.count, sizeof *updates);
    rp_wire_request_updates(&request, updates);
    free(updates);
}

static void read_draw(const uint8_t *data, size_t size)
{
    rp_wire_draw_request request;
    rp_error err = {0};

    if (is_read(rp_wire_read_draw(data, size, &request, &err), &err))
        check_text(request.table, data, size);
}

static void read_status(const uint8_t *data, size_t size)
{
    bool without_tables;
    rp_string table;
    rp_error err = {0};

    if (is_read(rp_wire_read_status_request(data, size, &table, &without_tables, &err), &err))
        check_text(table, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Seeds and corpora select a reader by its index, so new readers are added at the end. */
    static fuzz_reader *const readers[] = {
        read_sample,    read_mutate, read_reset,      read_initialize,  read_insert,
        read_signature, read_health, read_reflection, read_create,      read_drop,
        read_alter,     read_pause,  read_peek,       read_why_blocked, read_update,
        read_delete,    read_draw,   read_status,
    };
    uint8_t *message;

    if (size == 0 || size > FUZZ_MAX_BYTES) return 0;
    message = room_for(size - 1, 1);
    memcpy(message, data + 1, size - 1);
    readers[data[0] % (sizeof readers / sizeof readers[0])](message, size - 1);
    free(message);
    return 0;
}
