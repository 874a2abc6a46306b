/* SPDX-License-Identifier: Apache-2.0 */
/* Stacking samples as they come: a group that a core's own cache holds is fetched, decoded to
 * its place and let go of, then the next, whose memory is what the one before has left. Groups
 * are too small for helpers: whoever wakes one for so little waits longer than it saves. */
#include "chunk/trajectory.h"
#include "client/sampler_inside.h"
#include "table/operation.h"
#include "util/error.h"
#include "util/mem.h"

enum { GROUP_BYTES = 256 << 10 };

typedef struct stacking {
    rp_sampler *sampler;
    const rp_stack_place *places;
    size_t column_count;
    size_t item_bytes;                  /* of all columns */
    size_t group;                       /* items, at most */
    const rp_trajectory **trajectories; /* of a group */
    rp_stack_column *columns;           /* as many as have a place */
} stacking;

static rp_status check_call(const rp_sampler *s, size_t size, rp_error *err)
{
    if (size >= 1 && size <= RP_MAX_BATCH_SIZE) return RP_OK;
    return rp_fail(err, RP_INVALID, "sampler of '%s': a batch has 1 .. %d samples, got %zu",
                   s->table, RP_MAX_BATCH_SIZE, size);
}

/* `index`: of the item, for the message. */
static rp_status check_item(const stacking *k, const rp_trajectory *t, size_t index,
                            rp_error *err)
{
    size_t columns = rp_trajectory_column_count(t);

    if (columns != k->column_count)
        return rp_fail(err, RP_INVALID, "item %zu: %zu columns but there are places for %zu",
                       index, columns, k->column_count);
    for (size_t i = 0; i < columns; i++) {
        rp_trajectory_column column;

        if (k->places[i].dst == NULL) continue;
        column = rp_trajectory_get_column(t, i);
        if (column.dtype == RP_STRING)
            return rp_fail(err, RP_INVALID,
                           "item %zu, column %zu: strings are not stacked as they come; make "
                           "a batch",
                           index, i);
        if (column.bytes != k->places[i].item_bytes)
            return rp_fail(err, RP_INVALID,
                           "item %zu, column %zu: %zu bytes but its place has %zu", index, i,
                           column.bytes, k->places[i].item_bytes);
    }
    return RP_OK;
}

/* Stacks the samples of a group behind the `done` that are in place. */
static rp_status stack_group(const stacking *k, const rp_sample *group, size_t count,
                             size_t done, size_t all_bytes, rp_error *err)
{
    size_t used = 0;
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < count; i++) {
        k->trajectories[i] = group[i].trajectory;
        st = check_item(k, group[i].trajectory, done + i, err);
    }
    if (st != RP_OK) return st;
    for (size_t i = 0; i < k->column_count; i++) {
        const rp_stack_place *place = &k->places[i];

        if (place->dst == NULL) continue;
        k->columns[used++] =
            (rp_stack_column){.column = i,
                              .dst = (uint8_t *)place->dst + done * place->item_bytes,
                              .item_bytes = place->item_bytes};
    }
    return rp_stack_run(k->sampler->pool, k->trajectories, count, k->columns, used, all_bytes,
                        err);
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
        if (got > 0) stacked = stack_group(k, group, got, *count, size * k->item_bytes, err);
        rp_samples_release(group, got);
        if (stacked != RP_OK) return stacked;
        *count += got;
    }
    if (st != RP_OK && *count > 0 && rp_sampler_is_over(k->sampler)) st = RP_OK; /* the last */
    return st;
}

static rp_status prepare(stacking *k, size_t size, rp_error *err)
{
    const rp_allocator *alloc = &k->sampler->alloc;
    size_t all;

    for (size_t i = 0; i < k->column_count; i++)
        if (k->places[i].dst != NULL &&
            !rp_size_add(k->item_bytes, k->places[i].item_bytes, &k->item_bytes))
            return rp_fail(err, RP_INVALID, "column %zu: %zu bytes are too many", i,
                           k->places[i].item_bytes);
    if (!rp_size_mul(size, k->item_bytes, &all))
        return rp_fail(err, RP_INVALID, "%zu items of %zu bytes are too many", size,
                       k->item_bytes);
    k->group = k->item_bytes > 0 ? GROUP_BYTES / k->item_bytes : size;
    if (k->group < 1) k->group = 1;
    if (k->group > size) k->group = size;
    k->trajectories = rp_alloc_array(alloc, k->group, sizeof *k->trajectories);
    k->columns = rp_alloc_array(alloc, k->column_count, sizeof *k->columns);
    if (k->trajectories != NULL && (k->columns != NULL || k->column_count == 0)) return RP_OK;
    return rp_fail_memory(err, k->group * sizeof *k->trajectories);
}

rp_status rp_sampler_stack(rp_sampler *s, size_t size, const rp_stack_place *columns,
                           size_t column_count, rp_sample *samples, size_t *count, rp_wait wait,
                           rp_error *err)
{
    stacking k = {.sampler = s, .places = columns, .column_count = column_count};
    rp_status st = check_call(s, size, err);

    *count = 0;
    if (st == RP_OK) st = prepare(&k, size, err);
    if (st == RP_OK) st = stack_all(&k, size, samples, count, wait, err);
    if (s->options.beta > 0) rp_samples_weigh(samples, *count, s->options.beta);
    rp_release(&s->alloc, k.trajectories, k.group * sizeof *k.trajectories);
    rp_release(&s->alloc, k.columns, column_count * sizeof *k.columns);
    return st;
}
