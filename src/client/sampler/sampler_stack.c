/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks samples as they arrive, in groups that fit into the private cache of a core. A group
 * is fetched, decoded to its place and released before the next one is fetched, so that the
 * next one reuses its memory. */
#include "client/sampler/sampler_inside.h"

#include "chunk/gather.h"
#include "table/op.h"
#include "util/error.h"
#include "util/mem.h"
#include <assert.h>

enum {
    GROUP_BYTES = 256 << 10, /* stacked for one group, at most */
    GROUP_ITEMS = 256, /* in one group, at most: items may have columns that are not stacked */
};

typedef struct stacking {
    rp_sampler *sampler;
    const rp_stack_place *places;
    size_t column_count;
    size_t all_bytes;                   /* stacked over all groups */
    size_t group;                       /* items of one group, at most */
    const rp_trajectory **trajectories; /* of a group */
    rp_stack_column *columns;           /* the columns that are stacked */
    rp_trajectory_column *first;        /* the columns of the first item */
    bool is_known;                      /* `first` is what it was in the stack before */
} stacking;

/* Checks the columns of item `index`. All items must have the columns of the first one. */
static rp_status check_item(const stacking *k, const rp_trajectory *t, size_t index,
                            rp_error *err)
{
    size_t columns = rp_trajectory_column_count(t);
    rp_status st = RP_OK;

    if (columns != k->column_count)
        return rp_fail(err, RP_INVALID, "item %zu: %zu column%s but there %s for %zu", index,
                       columns, columns == 1 ? "" : "s",
                       k->column_count == 1 ? "is a place" : "are places", k->column_count);
    for (size_t i = 0; st == RP_OK && i < columns; i++) {
        rp_trajectory_column own;

        if (k->places[i].dst == NULL) continue;
        own = rp_trajectory_get_column(t, i);
        if (own.dtype == RP_STRING)
            return rp_fail(err, RP_INVALID,
                           "item %zu, column %zu: strings are not stacked as they come; make "
                           "a batch",
                           index, i);
        if (own.bytes != k->places[i].item_bytes)
            return rp_fail(err, RP_INVALID,
                           "item %zu, column %zu: %zu bytes but its place has %zu", index, i,
                           own.bytes, k->places[i].item_bytes);
        if (index == 0)
            k->first[i] = own;
        else
            st = rp_batch_check_column(index, i, &own, &k->first[i], err);
    }
    return st;
}

/* Gathers the items of a group, if all of them have small plain rows like the first item of
 * all. False: decode them instead, or report what is wrong with them. */
static bool gather_group(const stacking *k, size_t count, size_t done)
{
    bool has_place = false;

    for (size_t i = 0; i < k->column_count; i++) {
        const rp_stack_place *place = &k->places[i];

        if (place->dst == NULL) continue;
        has_place = true;
        if (k->first[i].bytes != place->item_bytes) return false; /* of the stack before */
        if (rp_gather_plain(k->trajectories, count, i, k->column_count, &k->first[i],
                            (uint8_t *)place->dst + done * place->item_bytes) < count)
            return false;
    }
    return has_place; /* without one, nothing has counted the columns of the items */
}

/* Stacks the samples of a group behind the `done` items that are stacked already. */
static rp_status stack_group(const stacking *k, const rp_sample *group, size_t count,
                             size_t done, rp_error *err)
{
    size_t used = 0;
    rp_status st = RP_OK;

    assert(k->trajectories != NULL && count >= 1);
    for (size_t i = 0; i < count; i++) k->trajectories[i] = group[i].trajectory;
    rp_gather_fetch(k->trajectories, count);
    if (done == 0 && !k->is_known) st = check_item(k, group[0].trajectory, 0, err);
    if (st == RP_OK && gather_group(k, count, done)) return RP_OK;
    for (size_t i = 0; st == RP_OK && i < count; i++)
        st = check_item(k, group[i].trajectory, done + i, err);
    if (st != RP_OK) return st;
    for (size_t i = 0; i < k->column_count; i++) {
        const rp_stack_place *place = &k->places[i];

        if (place->dst == NULL) continue;
        k->columns[used++] =
            (rp_stack_column){.column = i,
                              .dst = (uint8_t *)place->dst + done * place->item_bytes,
                              .item_bytes = place->item_bytes};
    }
    return rp_stack_run(k->sampler->pool, k->trajectories, count, k->columns, used,
                        k->all_bytes, err);
}

static rp_status stack_all(const stacking *k, size_t size, rp_sample *samples, size_t *count,
                           rp_wait wait, rp_error *err)
{
    rp_status st = RP_OK;

    while (st == RP_OK && *count < size) {
        size_t left = size - *count, want = left < k->group ? left : k->group, got;
        rp_sample *group = samples + *count;
        rp_status stacked = RP_OK;

        st = rp_sampler_fetch(k->sampler, group, want, want, &got, wait, err);
        if (got > 0) stacked = stack_group(k, group, got, *count, err);
        rp_samples_release(group, got);
        if (stacked != RP_OK) return stacked;
        *count += got;
    }
    if (st != RP_OK && *count > 0 && rp_sampler_is_over(k->sampler)) st = RP_OK; /* the last */
    return st;
}

/* Computes how many items a group has, and allocates the memory for one. */
static rp_status prepare(stacking *k, size_t size, rp_error *err)
{
    const rp_allocator *alloc = &k->sampler->alloc;
    size_t item_bytes = 0;

    for (size_t i = 0; i < k->column_count; i++)
        if (k->places[i].dst != NULL &&
            !rp_size_add(item_bytes, k->places[i].item_bytes, &item_bytes))
            return rp_fail(err, RP_INVALID, "column %zu: %zu bytes are too many", i,
                           k->places[i].item_bytes);
    if (!rp_size_mul(size, item_bytes, &k->all_bytes))
        return rp_fail(err, RP_INVALID, "%zu items of %zu bytes are too many", size,
                       item_bytes);
    k->group = GROUP_ITEMS;
    if (item_bytes > GROUP_BYTES / GROUP_ITEMS) k->group = GROUP_BYTES / item_bytes;
    if (k->group < 1) k->group = 1;
    if (k->group > size) k->group = size;
    k->trajectories = rp_alloc_array(alloc, k->group, sizeof *k->trajectories);
    k->columns = rp_alloc_array(alloc, k->column_count, sizeof *k->columns);
    k->is_known = k->first != NULL;
    if (!k->is_known) k->first = rp_alloc_array(alloc, k->column_count, sizeof *k->first);
    if (k->trajectories != NULL && k->columns != NULL && k->first != NULL) return RP_OK;
    return rp_fail_memory(err, k->column_count * sizeof *k->first);
}

/* Takes the columns of the stack before, if there are as many. */
static rp_trajectory_column *take_known(rp_sampler *s, size_t column_count)
{
    rp_trajectory_column *known = NULL;

    rp_mutex_lock(&s->mu);
    if (s->known_count == column_count) {
        known = s->known;
        s->known = NULL;
    }
    rp_mutex_unlock(&s->mu);
    return known;
}

/* Keeps the columns of this stack for the next one. */
static void keep_known(rp_sampler *s, rp_trajectory_column *first, size_t column_count)
{
    rp_trajectory_column *before;
    size_t before_count;

    rp_mutex_lock(&s->mu);
    before = s->known;
    before_count = s->known_count;
    s->known = first;
    s->known_count = column_count;
    rp_mutex_unlock(&s->mu);
    rp_release(&s->alloc, before, before_count * sizeof *before);
}

static rp_status check_stack(const rp_sampler *s, const rp_stack *to, rp_error *err)
{
    rp_status st;

    if (to == NULL) return rp_fail(err, RP_INVALID, "sampler of '%s': no stack", s->table);
    st = rp_batch_check_size(s, to->size, err);
    if (st != RP_OK) return st;
    if (to->column_count < 1)
        return rp_fail(err, RP_INVALID, "sampler of '%s': no column has a place", s->table);
    if (to->columns == NULL || to->samples == NULL)
        return rp_fail(err, RP_INVALID, "sampler of '%s': `%s` of a stack is NULL", s->table,
                       to->columns == NULL ? "columns" : "samples");
    return RP_OK;
}

rp_status rp_sampler_stack(rp_sampler *s, const rp_stack *to, size_t *count, rp_wait wait,
                           rp_error *err)
{
    stacking k = {.sampler = s};
    rp_status st;

    *count = 0;
    st = check_stack(s, to, err);
    if (st == RP_OK) st = rp_sampler_begin_call(s, err);
    if (st != RP_OK) return st;
    k.places = to->columns;
    k.column_count = to->column_count;
    k.first = take_known(s, k.column_count);
    st = prepare(&k, to->size, err);
    if (st == RP_OK) st = stack_all(&k, to->size, to->samples, count, wait, err);
    st = rp_batch_name_table(s, st, err);
    if (s->options.beta > 0) rp_samples_weigh(to->samples, *count, s->options.beta);
    rp_release(&s->alloc, k.trajectories, k.group * sizeof *k.trajectories);
    rp_release(&s->alloc, k.columns, k.column_count * sizeof *k.columns);
    if (st == RP_OK || st == RP_DEADLINE)
        keep_known(s, k.first, k.column_count);
    else
        rp_release(&s->alloc, k.first, k.column_count * sizeof *k.first);
    rp_sampler_end_call(s);
    return st;
}
