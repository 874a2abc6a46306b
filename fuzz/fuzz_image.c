/* SPDX-License-Identifier: Apache-2.0 */
/* Reads blocks of slots, or states of tables, of a checkpoint. What is accepted must be the
 * same after it was written and read again. The first byte chooses between the two, and when
 * allocations fail. */
#include "durable/format/image.h"
#include "fuzz_memory.h"

static void check_block(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    static rp_image image, again;
    rp_buf out, out_again;

    rp_image_init(&image, alloc);
    rp_image_init(&again, alloc);
    rp_buf_init(&out, alloc);
    rp_buf_init(&out_again, alloc);
    if (rp_image_read(&image, data, size, NULL) == RP_OK) {
        for (size_t i = 0; i < image.slice_count; i++)
            fuzz_check(image.slices[i].location < image.location_count &&
                       image.slices[i].length > 0);
        if (rp_image_write(&image, &out) == RP_OK &&
            rp_image_read(&again, out.data, out.size, NULL) == RP_OK &&
            rp_image_write(&again, &out_again) == RP_OK)
            fuzz_check(out.size == out_again.size &&
                       memcmp(out.data, out_again.data, out.size) == 0);
    }
    rp_buf_deinit(&out);
    rp_buf_deinit(&out_again);
    rp_image_deinit(&image);
    rp_image_deinit(&again);
}

static void check_table(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_table_state state, again;
    rp_buf out;

    if (rp_image_read_table(alloc, data, size, &state, NULL) != RP_OK) return;
    rp_buf_init(&out, alloc);
    rp_image_write_table(&out, &state);
    if (!out.bad && rp_image_read_table(alloc, out.data, out.size, &again, NULL) == RP_OK) {
        fuzz_check(strcmp(state.options.name, again.options.name) == 0);
        fuzz_check(state.live == again.live && state.first_free == again.first_free);
        rp_image_release_table(alloc, &again);
    }
    rp_buf_deinit(&out);
    rp_image_release_table(alloc, &state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size > 0 ? data + size : data};
    uint8_t mode = fuzz_byte(&in);
    fuzz_memory memory = {.fails = (mode & 2) != 0, .until = mode >> 2};
    rp_allocator alloc = fuzz_memory_allocator(&memory);

    if (size > FUZZ_MAX_BYTES) return 0;
    if (mode & 1)
        check_table(&alloc, in.at, fuzz_left(&in));
    else
        check_block(&alloc, in.at, fuzz_left(&in));
    fuzz_check(memory.live == 0 && memory.live_bytes == 0);
    return 0;
}
