/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the readers of the service of rollouts. The first byte of the input chooses the
 * reader, the second one when allocations fail; the rest is what the reader gets, in a block of
 * exactly its size.
 *
 *   0  CreateRolloutsRequest      1  a request with names   2  ApplyRolloutsRequest
 *   3  ApplyRolloutsResponse      4  ListRolloutsResponse   5  ReadCursorResponse
 *
 * A draw that is read must be within its bounds, and all of its values readable. */
#include "fuzz_memory.h"
#include "rollouts/rollout_draw.h"
#include "rollouts/rollout_messages.h"

typedef void fuzz_reader(const rp_allocator *alloc, const uint8_t *data, size_t size);

static void check_status(rp_status st, const rp_error *err)
{
    fuzz_check(st == RP_OK || st == RP_INVALID || st == RP_CORRUPT || st == RP_NO_RESOURCE);
    fuzz_check((st == RP_OK) == (err->text[0] == '\0'));
}

static void read_create(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_rollout_options *options, *again;
    rp_error err = {0};
    rp_string name;
    rp_status st = rp_rollout_create_read(alloc, data, size, &name, &options, &err);
    rp_buf out;

    check_status(st, &err);
    fuzz_check(st != RP_CORRUPT);
    if (st != RP_OK) return;
    rp_buf_init(&out, alloc);
    rp_rollout_create_write(&out, name, options);
    if (!out.bad &&
        rp_rollout_create_read(alloc, out.data, out.size, &name, &again, NULL) == RP_OK) {
        fuzz_check(again->group_size == options->group_size &&
                   again->consumer_count == options->consumer_count);
        rp_rollout_options_free(again, alloc);
    }
    rp_buf_deinit(&out);
    rp_rollout_options_free(options, alloc);
}

static void read_names(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_rollout_names names;
    rp_error err = {0};

    (void)alloc;
    check_status(rp_rollout_names_read(data, size, &names, &err), &err);
}

static void read_apply(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_rollout_apply apply, again;
    rp_error err = {0};
    rp_status st = rp_rollout_apply_read(alloc, data, size, &apply, &err);
    rp_buf out;

    check_status(st, &err);
    fuzz_check(st != RP_CORRUPT);
    if (st != RP_OK) return;
    fuzz_check(apply.op.kind != RP_ROLLOUT_EXPIRE);
    rp_buf_init(&out, alloc);
    rp_rollout_apply_write(&out, &apply);
    if (!out.bad && rp_rollout_apply_read(alloc, out.data, out.size, &again, NULL) == RP_OK) {
        fuzz_check(again.op.kind == apply.op.kind && again.timeout_ms == apply.timeout_ms);
        rp_rollout_op_deinit(&again.op, alloc);
    }
    rp_buf_deinit(&out);
    rp_rollout_op_deinit(&apply.op, alloc);
}

/* Reads every byte of an item. Returns a sum, so that the reads are not left out. */
static unsigned add_item(const rp_rollout_item *item)
{
    unsigned sum = 0;

    fuzz_check(item->column_count <= RP_ROLLOUT_COLUMNS);
    for (size_t i = 0; i < item->column_count; i++) {
        const rp_rollout_column *c = &item->columns[i];
        const uint8_t *bytes = c->tensor.data;
        size_t size = rp_dtype_size(c->tensor.dtype);

        fuzz_check((uintptr_t)bytes % RP_ROLLOUT_ALIGNMENT == 0);
        for (int32_t k = 0; k < c->tensor.shape.rank; k++)
            size *= (size_t)c->tensor.shape.dims[k];
        for (size_t k = 0; k < size; k++) sum += bytes[k];
        for (size_t k = 0; k < c->name.size; k++) sum += (uint8_t)c->name.data[k];
    }
    return sum;
}

static void read_response(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_rollout_response response;
    rp_error err = {0};
    rp_status st = rp_rollout_response_read(alloc, data, size, &response, &err);
    const rp_rollouts_draw *draw = response.draw;
    unsigned sum = 0;

    check_status(st, &err);
    fuzz_check(st != RP_INVALID);
    fuzz_check(st == RP_OK || draw == NULL);
    if (draw == NULL) return;
    fuzz_check(draw->group_count * draw->group_size <= RP_ROLLOUT_DRAW_ITEMS);
    for (size_t i = 0; i < draw->group_count; i++) {
        fuzz_check(draw->groups[i].name.size <= RP_ROLLOUT_NAME_BYTES);
        for (size_t k = 0; k < draw->group_size; k++)
            if (draw->groups[i].items[k] != NULL) sum += add_item(draw->groups[i].items[k]);
    }
    __asm__ volatile("" : : "r"(sum)); /* it is used */
    rp_rollouts_draw_free(response.draw);
}

static void on_entry(void *ctx, const rp_rollouts_entry *entry)
{
    (void)ctx;
    fuzz_check(entry->name.size > 0 && entry->cursor_count <= RP_ROLLOUT_CURSORS);
    fuzz_check(entry->info->consumer_count <= RP_ROLLOUT_CONSUMERS);
    for (size_t i = 0; i < entry->info->consumer_count; i++)
        fuzz_check(strlen(entry->info->consumers[i].name) <= RP_ROLLOUT_NAME_BYTES);
}

static void read_entries(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    const rp_rollouts_call call = {.on_entry = on_entry};
    rp_error err = {0};
    rp_status st = rp_rollout_entries_read(alloc, data, size, &call, &err);

    check_status(st, &err);
    fuzz_check(st != RP_INVALID);
}

static void read_cursor(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_error err = {0};
    rp_bytes bytes;
    rp_status st = rp_rollout_cursor_read(data, size, &bytes, &err);

    (void)alloc;
    check_status(st, &err);
    if (st == RP_OK) fuzz_check(bytes.size <= RP_ROLLOUT_CURSOR_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fuzz_reader *const readers[] = {read_create,   read_names,   read_apply,
                                           read_response, read_entries, read_cursor};
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
