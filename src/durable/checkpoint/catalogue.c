/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/checkpoint/catalogue.h"

#include <assert.h>

#include "util/mem.h"
#include "util/verify.h"

#ifndef NDEBUG
static bool is_valid(const rp_catalogue *c)
{
    if (c->checkpoint_count > c->checkpoint_capacity) return false;
    if (c->segment_count > c->segment_capacity || c->held_count > c->held_capacity)
        return false;
    for (size_t i = 1; i < c->checkpoint_count; i++)
        if (c->checkpoints[i - 1].number >= c->checkpoints[i].number) return false; /* K2 */
    for (size_t i = 1; i < c->segment_count; i++)
        if (c->segments[i - 1].number >= c->segments[i].number) return false; /* K2 */
    return true;
}
#endif

void rp_catalogue_init(rp_catalogue *c, const rp_allocator *alloc)
{
    *c = (rp_catalogue){.alloc = *alloc};
}

static void free_checkpoint(const rp_allocator *alloc, rp_kept_checkpoint *k)
{
    rp_release(alloc, k->segments, k->segment_count * sizeof *k->segments);
}

void rp_catalogue_deinit(rp_catalogue *c)
{
    for (size_t i = 0; i < c->checkpoint_count; i++)
        free_checkpoint(&c->alloc, &c->checkpoints[i]);
    rp_release(&c->alloc, c->checkpoints, c->checkpoint_capacity * sizeof *c->checkpoints);
    rp_release(&c->alloc, c->segments, c->segment_capacity * sizeof *c->segments);
    rp_release(&c->alloc, c->held, c->held_capacity * sizeof *c->held);
    rp_kept_tables_free(&c->alloc, &c->last, false);
}

static bool make_room(const rp_allocator *alloc, void *array, size_t count, size_t *capacity,
                      size_t element_size)
{
    size_t more = *capacity < 8 ? 8 : 2 * *capacity;

    if (count < *capacity) return true;
    if (!rp_resize_array(alloc, array, *capacity, more, element_size)) return false;
    *capacity = more;
    return true;
}

rp_status rp_catalogue_add_checkpoint(rp_catalogue *c, uint64_t number, uint64_t lsn,
                                      const rp_manifest_segment *segments, size_t count)
{
    rp_kept_checkpoint k = {number, lsn, NULL, count};
    size_t at;

    for (size_t i = 0; i < count; i++)
        if (rp_catalogue_add_segment(c, segments[i].number) != RP_OK) return RP_NO_RESOURCE;
    if (!make_room(&c->alloc, &c->checkpoints, c->checkpoint_count, &c->checkpoint_capacity,
                   sizeof k))
        return RP_NO_RESOURCE;
    if (count > 0) {
        k.segments = rp_alloc_array(&c->alloc, count, sizeof *k.segments);
        if (k.segments == NULL) return RP_NO_RESOURCE;
        memcpy(k.segments, segments, count * sizeof *segments);
    }
    at = c->checkpoint_count;
    while (at > 0 && c->checkpoints[at - 1].number > number) at--;
    assert(at == 0 || c->checkpoints[at - 1].number < number); /* K2 */
    memmove(c->checkpoints + at + 1, c->checkpoints + at,
            (c->checkpoint_count - at) * sizeof k);
    c->checkpoints[at] = k;
    c->checkpoint_count++;
    RP_VERIFY(c->segment_count, is_valid(c));
    return RP_OK;
}

void rp_catalogue_drop_checkpoint(rp_catalogue *c, size_t index)
{
    assert(index < c->checkpoint_count);
    free_checkpoint(&c->alloc, &c->checkpoints[index]);
    c->checkpoint_count--;
    memmove(c->checkpoints + index, c->checkpoints + index + 1,
            (c->checkpoint_count - index) * sizeof *c->checkpoints);
}

size_t rp_catalogue_position(const rp_catalogue *c, uint64_t number)
{
    size_t low = 0, high = c->segment_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->segments[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

rp_status rp_catalogue_add_segment(rp_catalogue *c, uint64_t number)
{
    size_t at = rp_catalogue_position(c, number);

    if (at < c->segment_count && c->segments[at].number == number) return RP_OK;
    if (!make_room(&c->alloc, &c->segments, c->segment_count, &c->segment_capacity,
                   sizeof *c->segments))
        return RP_NO_RESOURCE;
    memmove(c->segments + at + 1, c->segments + at,
            (c->segment_count - at) * sizeof *c->segments);
    c->segments[at] = (rp_owned_segment){.number = number};
    c->segment_count++;
    RP_VERIFY(c->segment_count, is_valid(c));
    return RP_OK;
}

void rp_catalogue_drop_segment(rp_catalogue *c, uint64_t number)
{
    size_t at = rp_catalogue_position(c, number);

    if (at == c->segment_count || c->segments[at].number != number) return;
    assert(!rp_catalogue_needs(c, number)); /* K1 */
    c->segment_count--;
    memmove(c->segments + at, c->segments + at + 1,
            (c->segment_count - at) * sizeof *c->segments);
}

const rp_manifest_segment *rp_find_segment(const rp_manifest_segment *segments, size_t count,
                                           uint64_t number)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (segments[middle].number == number) return &segments[middle];
        if (segments[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

rp_status rp_catalogue_hold(rp_catalogue *c, const rp_manifest_segment *segments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!make_room(&c->alloc, &c->held, c->held_count, &c->held_capacity, sizeof *c->held))
            return RP_NO_RESOURCE;
        c->held[c->held_count++] = segments[i].number;
    }
    return RP_OK;
}

bool rp_catalogue_holds(const rp_catalogue *c, uint64_t number)
{
    for (size_t i = 0; i < c->held_count; i++)
        if (c->held[i] == number) return true;
    return false;
}

bool rp_catalogue_needs(const rp_catalogue *c, uint64_t number)
{
    if (rp_catalogue_holds(c, number)) return true;
    for (size_t i = 0; i < c->checkpoint_count; i++)
        if (rp_find_segment(c->checkpoints[i].segments, c->checkpoints[i].segment_count,
                            number) != NULL)
            return true;
    return false;
}

void rp_kept_tables_free(const rp_allocator *alloc, rp_kept_tables *tables, bool only_fresh)
{
    for (size_t t = 0; t < tables->count; t++) {
        rp_kept_table *table = &tables->tables[t];

        for (size_t b = 0; b < table->block_count; b++) {
            rp_kept_block *block = &table->blocks[b];

            assert(block->share_count == 0 || block->shares != NULL);
            if (block->fresh || !only_fresh)
                rp_release(alloc, block->shares, block->share_count * sizeof(rp_share));
        }
        rp_release(alloc, table->blocks, table->block_count * sizeof *table->blocks);
        rp_table_unref(table->table);
    }
    rp_release(alloc, tables->tables, tables->count * sizeof *tables->tables);
    *tables = (rp_kept_tables){0};
}

const rp_kept_table *rp_kept_tables_find(const rp_kept_tables *tables, const rp_table *table)
{
    for (size_t i = 0; i < tables->count; i++)
        if (tables->tables[i].table == table) return &tables->tables[i];
    return NULL;
}
