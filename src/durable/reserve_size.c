/* SPDX-License-Identifier: Apache-2.0 */
/* The size of the reserve: an upper bound of the largest checkpoint.
 *
 *   items and slots     the accounts of the tables keep the sum (table/account.h, A6)
 *   rollouts            their set keeps the sum
 *   tables, segments    counted before each checkpoint; new tables when they are created
 *
 * A dropped table counts until the next checkpoint. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "durable/durable_inside.h"
#include "util/error.h"
#include "util/mem.h"

/* On a full disk, this part of the fixed part is left to the journal, for changes that free
 * space or take little. */
enum { JOURNAL_SHARE = 4 };

uint64_t rp_durable_largest(const rp_durable *d)
{
    return rp_budget_image(rp_store_budget(d->store)) + atomic_load(&d->counted_bytes) +
           atomic_load(&d->created_bytes) + rp_durable_largest_rollouts(d);
}

uint64_t rp_durable_largest_rollouts(const rp_durable *d)
{
    return rp_rollout_set_image_bytes(rp_store_rollouts(d->store));
}

uint64_t rp_durable_reserve_wanted(void *ctx, uint64_t *held)
{
    const rp_durable *d = ctx;

    *held = atomic_load(&d->reserve.held);
    if (d->tuning.reserve_bytes == 0) return 0;
    return atomic_load(&d->fixed) + rp_reserve_for(rp_durable_largest(d));
}

uint64_t rp_durable_least_reserve(const rp_durable *d)
{
    return rp_durable_spare(d) + rp_reserve_one(rp_durable_largest(d));
}

uint64_t rp_durable_spare(const rp_durable *d)
{
    uint64_t fixed = atomic_load(&d->fixed);

    return fixed - fixed / JOURNAL_SHARE;
}

static rp_status count_tables(rp_durable *d, uint64_t *bytes)
{
    size_t count = rp_store_find_tables(d->store, NULL, 0), found;
    rp_table **tables = rp_alloc_array(&d->alloc, count + 1, sizeof(rp_table *));
    rp_status st = RP_OK;

    if (tables == NULL) return RP_NO_RESOURCE;
    found = rp_store_find_tables(d->store, tables, count);
    for (size_t i = 0; i < found && i < count; i++) {
        rp_table_info info;
        uint64_t more = 0;

        rp_table_get_info(tables[i], &info);
        if (st == RP_OK) st = rp_image_table_bytes(&d->alloc, info.signature, &more);
        *bytes += more;
        rp_table_unref(tables[i]);
    }
    rp_release(&d->alloc, tables, (count + 1) * sizeof(rp_table *));
    return st;
}

rp_status rp_durable_keep_reserve(rp_durable *d)
{
    /* Read first: a table that is created meanwhile may count twice, until the next time. */
    uint64_t created = atomic_load(&d->created_bytes), total = 0, available = 0, held, wanted;
    uint64_t fixed = d->tuning.reserve_bytes, bytes = rp_checkpoint_files(&d->checkpointer);
    uint64_t least, most;
    rp_status st, kept;

    if (fixed == 0 || d->files->ops->space == NULL) return RP_OK;
    /* Without memory, the numbers of the last time stay. */
    if (count_tables(d, &bytes) == RP_OK) atomic_store(&d->counted_bytes, bytes - created);
    if (d->files->ops->space(d->files, &total, &available, NULL) == RP_OK &&
        fixed > total / RP_RESERVE_SHARE)
        fixed = total / RP_RESERVE_SHARE;
    atomic_store(&d->fixed, fixed);
    wanted = rp_durable_reserve_wanted(d, &held);
    most = held + available;
    if (most >= wanted + fixed / JOURNAL_SHARE) return rp_reserve_keep(&d->reserve, wanted);
    /* The disk is full. Space for the next checkpoint comes first. */
    least = rp_durable_least_reserve(d);
    st = most < wanted ? RP_NO_RESOURCE : RP_OK;
    most -= most < fixed / JOURNAL_SHARE ? most : fixed / JOURNAL_SHARE;
    if (most < least) most = least;
    kept = rp_reserve_keep(&d->reserve, most < wanted ? most : wanted);
    return kept != RP_OK ? kept : st;
}

bool rp_durable_check_reserve(rp_durable *d)
{
    uint64_t held, wanted = rp_durable_reserve_wanted(d, &held), total = 0, available = 0, can;
    uint64_t least = rp_durable_least_reserve(d);
    char text[RP_ERROR_TEXT_BYTES];

    if (wanted == 0 || d->files->ops->space == NULL ||
        d->files->ops->space(d->files, &total, &available, NULL) != RP_OK)
        return true;
    can = held + available;
    (void)snprintf(text, sizeof text,
                   "the disk is full: the reserve for checkpoints has %" PRIu64
                   " bytes and needs %" PRIu64 ", so %" PRIu64
                   " are missing; delete items or make room",
                   can, least, can < least ? least - can : 0);
    rp_durable_trouble(d, RP_TROUBLE_RESERVE, can < least ? text : NULL);
    return can >= wanted;
}

rp_status rp_durable_admit_table(void *ctx, const rp_table_options *options, rp_error *err)
{
    rp_durable *d = ctx;
    uint64_t more = 0, wanted, held, total = 0, available = 0;
    rp_status st = rp_image_table_bytes(&d->alloc, options->signature, &more);

    if (st != RP_OK) return rp_fail_memory(err, (size_t)more);
    wanted = rp_durable_reserve_wanted(d, &held);
    if (d->tuning.reserve_bytes == 0 || d->files->ops->space == NULL ||
        d->files->ops->space(d->files, &total, &available, NULL) != RP_OK)
        return RP_OK;
    wanted += rp_reserve_for(more);
    if (wanted <= held || wanted - held <= available) return RP_OK;
    return rp_fail(
        err, RP_NO_RESOURCE,
        "the disk is full: a checkpoint takes %" PRIu64
        " bytes more with this table, the reserve for checkpoints would need %" PRIu64
        " bytes and can have %" PRIu64 "; delete items or make room",
        more, wanted, held + available);
}

void rp_durable_count_table(void *ctx, const rp_table_options *options)
{
    rp_durable *d = ctx;
    uint64_t more = 0;

    /* Without memory it counts without its signature, until the next checkpoint. */
    (void)!rp_image_table_bytes(&d->alloc, options->signature, &more);
    assert(more > 0);
    (void)atomic_fetch_add(&d->created_bytes, more);
}
