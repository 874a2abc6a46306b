/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the readers of rollouts. The first byte of the input chooses the reader, the second
 * one when allocations fail; the rest is what the reader gets, in a block of exactly its size.
 *
 *   0  one operation: what is read is written and read again
 *   1  operations, each after its size in two bytes: they are applied, and the invariants hold
 *      after each
 *   2  an image: what is loaded is valid, and has the same digest when it is saved and loaded
 */
#include "fuzz_memory.h"
#include "rollouts/rollouts_image.h"

enum { MAX_OPERATIONS = 64 };

typedef void fuzz_reader(const rp_allocator *alloc, const uint8_t *data, size_t size);

static void check_status(rp_status st, const rp_error *err)
{
    fuzz_check(st != RP_INTERNAL);
    fuzz_check((st == RP_OK) == (err->text[0] == '\0'));
}

static void read_op(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_rollout_op op, again;
    rp_error err = {0};
    rp_status st = rp_rollout_op_read(alloc, data, size, &op, &err);
    rp_buf out;

    check_status(st, &err);
    fuzz_check(st == RP_OK || st == RP_INVALID || st == RP_NO_RESOURCE);
    if (st != RP_OK) return;
    rp_buf_init(&out, alloc);
    rp_rollout_op_write(&out, &op);
    fuzz_check(out.size <= RP_ROLLOUT_OP_BYTES);
    if (!out.bad) {
        st = rp_rollout_op_read(alloc, out.data, out.size, &again, NULL);
        fuzz_check(st == RP_OK || st == RP_NO_RESOURCE);
        if (st == RP_OK) fuzz_check(again.kind == op.kind && again.now_ns == op.now_ns);
        if (st == RP_OK) rp_rollout_op_deinit(&again, alloc);
    }
    rp_buf_deinit(&out);
    rp_rollout_op_deinit(&op, alloc);
}

static rp_rollouts *new_rollouts(const rp_allocator *alloc)
{
    static const rp_string needs[] = {{"r", 1}};
    static const rp_rollout_consumer consumers[] = {{{"", 0}, NULL, 0}, {{"t", 1}, needs, 1}};
    rp_rollout_options o;
    rp_rollouts *r;

    rp_rollout_options_init(&o);
    o.group_size = 2;
    o.max_staleness = 2;
    o.max_groups = 8;
    o.max_bytes = 1 << 20;
    o.full = RP_ROLLOUT_FULL_EVICT;
    o.consumers = consumers;
    o.consumer_count = 2;
    return rp_rollouts_new(alloc, 7, (rp_string){"f", 1}, &o, &r, NULL) == RP_OK ? r : NULL;
}

/* Saves, loads and compares. */
static void check_image(const rp_allocator *alloc, rp_rollouts *r)
{
    rp_rollout_loader *loader = rp_rollout_loader_new(alloc, 9);
    rp_rollouts *copy = NULL;
    rp_rollout_cut *cut = NULL;
    uint64_t first, second;
    rp_status st = RP_OK;
    rp_buf buf;

    rp_buf_init(&buf, alloc);
    if (loader != NULL && rp_rollouts_cut(r, &cut, NULL) == RP_OK) {
        while (st == RP_OK && rp_rollout_cut_next(cut, &buf) && !buf.bad) {
            st = rp_rollout_loader_add(loader, buf.data, buf.size, NULL);
            rp_buf_clear(&buf);
        }
        fuzz_check(st == RP_OK || st == RP_NO_RESOURCE);
        if (st == RP_OK && !buf.bad) {
            fuzz_check(rp_rollout_loader_finish(loader, &copy, NULL) == RP_OK);
            if (rp_rollouts_digest(r, &first) == RP_OK &&
                rp_rollouts_digest(copy, &second) == RP_OK)
                fuzz_check(first == second);
        }
    }
    rp_buf_deinit(&buf);
    rp_rollout_cut_free(cut);
    rp_rollout_loader_free(loader);
    rp_rollouts_unref(copy);
}

static void apply_ops(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_rollouts *r = new_rollouts(alloc);

    for (int i = 0; r != NULL && i < MAX_OPERATIONS && size >= 2; i++) {
        size_t bytes = data[0] | (size_t)data[1] << 8;
        rp_rollout_result result;
        rp_rollout_op op;
        rp_error err = {0};

        data += 2;
        size -= 2;
        if (bytes > size) break;
        if (rp_rollout_op_read(alloc, data, bytes, &op, NULL) == RP_OK) {
            check_status(rp_rollouts_apply(r, &op, &result, &err), &err);
            fuzz_check(rp_rollouts_check(r));
            rp_rollout_batch_free(result.batch);
            rp_rollout_op_deinit(&op, alloc);
        }
        data += bytes;
        size -= bytes;
    }
    if (r != NULL) check_image(alloc, r);
    rp_rollouts_unref(r);
}

static void load_image(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_rollout_loader *loader = rp_rollout_loader_new(alloc, 3);
    rp_rollouts *r = NULL;
    rp_error err = {0};
    rp_status st;

    if (loader == NULL) return;
    st = rp_rollout_loader_add(loader, data, size, &err);
    check_status(st, &err);
    fuzz_check(st == RP_OK || st == RP_CORRUPT || st == RP_NO_RESOURCE);
    if (st == RP_OK) {
        st = rp_rollout_loader_finish(loader, &r, &err);
        fuzz_check(st == RP_OK || st == RP_CORRUPT);
    }
    if (st == RP_OK) {
        rp_rollout_op draw = {.kind = RP_ROLLOUT_DRAW, .ttl_ns = 1, .groups = 1};
        rp_rollout_result result = {.batch = NULL};

        fuzz_check(rp_rollouts_check(r));
        check_image(alloc, r);
        (void)!rp_rollouts_apply(r, &draw, &result, NULL);
        rp_rollout_batch_free(result.batch);
        fuzz_check(rp_rollouts_check(r));
    }
    rp_rollouts_unref(r);
    rp_rollout_loader_free(loader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fuzz_reader *const readers[] = {read_op, apply_ops, load_image};
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
