/* SPDX-License-Identifier: Apache-2.0 */
#include "rollouts/rollout_draw.h"

#include "util/error.h"
#include "util/mem.h"

/* The head of the block. */
typedef struct draw_block {
    rp_rollouts_draw draw; /* first */
    rp_allocator alloc;
    size_t bytes;
    rp_rollout_batch *batch; /* owned; NULL: the draw was received */
} draw_block;

/* Adds room for `count` elements to `*bytes`. Returns its offset, or SIZE_MAX if the sum
 * overflows. */
static size_t add(size_t *bytes, size_t count, size_t element)
{
    size_t at, size;

    if (*bytes == SIZE_MAX || !rp_size_add(*bytes, RP_ROLLOUT_ALIGNMENT - 1, &at) ||
        !rp_size_mul(count, element, &size)) {
        *bytes = SIZE_MAX;
        return SIZE_MAX;
    }
    at -= at % RP_ROLLOUT_ALIGNMENT;
    if (!rp_size_add(at, size, bytes)) *bytes = SIZE_MAX;
    return at;
}

static draw_block *new_block(const rp_allocator *alloc, size_t bytes, rp_error *err)
{
    draw_block *block = bytes != SIZE_MAX ? rp_alloc(alloc, bytes) : NULL;

    if (block == NULL) {
        (void)rp_fail_memory(err, bytes);
        return NULL;
    }
    *block = (draw_block){.alloc = *alloc, .bytes = bytes};
    return block;
}

rp_status rp_rollout_draw_new(const rp_allocator *alloc, const rp_rollout_draw_size *size,
                              rp_rollout_draw_parts *out, rp_error *err)
{
    size_t bytes = sizeof(draw_block), count = 0, groups, places, items, columns, values, names;
    draw_block *block;
    uint8_t *base;

    *out = (rp_rollout_draw_parts){0};
    if (!rp_size_mul(size->groups, size->group_size, &count)) return rp_fail_memory(err, count);
    groups = add(&bytes, size->groups, sizeof(rp_rollouts_group));
    places = add(&bytes, count, sizeof(rp_rollout_item *));
    items = add(&bytes, count, sizeof(rp_rollout_item));
    columns = add(&bytes, size->columns, sizeof(rp_rollout_column));
    values = add(&bytes, size->value_bytes, 1);
    names = add(&bytes, size->name_bytes, 1);
    block = new_block(alloc, bytes, err);
    if (block == NULL) return RP_NO_RESOURCE;
    base = (uint8_t *)block;
    memset(base + groups, 0, columns - groups);
    *out = (rp_rollout_draw_parts){
        .draw = &block->draw,
        .groups = (rp_rollouts_group *)(void *)(base + groups),
        .places = (const rp_rollout_item **)(void *)(base + places),
        .items = (rp_rollout_item *)(void *)(base + items),
        .columns = (rp_rollout_column *)(void *)(base + columns),
        .values = base + values,
        .names = (char *)(base + names),
    };
    block->draw.groups = out->groups;
    block->draw.group_count = size->groups;
    block->draw.group_size = size->group_size;
    return RP_OK;
}

rp_status rp_rollout_draw_of(const rp_allocator *alloc, rp_rollout_batch *batch,
                             rp_rollouts_draw **out, rp_error *err)
{
    size_t bytes = sizeof(draw_block), groups, places;
    const rp_rollout_item **place;
    rp_rollouts_group *group;
    draw_block *block;

    groups = add(&bytes, batch->count, sizeof(rp_rollouts_group));
    places = add(&bytes, batch->count * batch->group_size, sizeof(rp_rollout_item *));
    block = new_block(alloc, bytes, err);
    if (block == NULL) return RP_NO_RESOURCE;
    group = (rp_rollouts_group *)(void *)((uint8_t *)block + groups);
    place = (const rp_rollout_item **)(void *)((uint8_t *)block + places);
    block->batch = batch;
    block->draw = (rp_rollouts_draw){
        .lease = batch->lease,
        .version = batch->version,
        .expires_ns = batch->expires_ns,
        .group_size = batch->group_size,
        .group_count = batch->count,
        .groups = group,
    };
    for (size_t i = 0; i < batch->count; i++, group++) {
        const rp_rollout_drawn *drawn = &batch->groups[i];

        *group = (rp_rollouts_group){
            .name = rp_rollout_name_text(drawn->name),
            .state = drawn->state,
            .items = place,
            .first_version = drawn->first_version,
            .last_version = drawn->last_version,
        };
        for (size_t k = 0; k < batch->group_size; k++)
            *place++ = drawn->items != NULL ? drawn->items[k] : NULL;
    }
    *out = &block->draw;
    return RP_OK;
}

void rp_rollouts_draw_free(rp_rollouts_draw *draw)
{
    draw_block *block = (draw_block *)(void *)draw;
    rp_allocator alloc;

    if (draw == NULL) return;
    rp_rollout_batch_free(block->batch);
    alloc = block->alloc;
    rp_release(&alloc, block, block->bytes);
}
