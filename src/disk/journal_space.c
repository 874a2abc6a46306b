/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/journal_space.h"

#include <assert.h>

enum {
    RECORDS_BYTES = 64 << 10, /* kept free for changes without chunks, such as deletes */
    RECORDS_SHARE = 64        /* record headers and locations: 1/64 of the chunks */
};

void rp_journal_space_init(rp_journal_space *space, rp_files *files, rp_segments *segments,
                           rp_reserve_wanted *reserve, void *ctx)
{
    *space = (rp_journal_space){
        .files = files, .segments = segments, .reserve = reserve, .ctx = ctx};
    atomic_init(&space->claimed, 0);
    atomic_init(&space->held, 0);
    atomic_init(&space->limit, UINT64_MAX);
    atomic_init(&space->wanted, UINT64_MAX);
    atomic_init(&space->total, UINT64_MAX);
}

uint64_t rp_journal_space_lack(const rp_journal_space *space)
{
    uint64_t held = atomic_load(&space->held), ignored, wanted;

    if (space->reserve == NULL) return 0;
    wanted = space->reserve(space->ctx, &ignored);
    return wanted > held ? wanted - held : 0;
}

/* True if `bytes` fit after the bytes put into the segments, `others` bytes and those that the
 * reserve lacks. */
static bool fits(const rp_journal_space *space, uint64_t others, uint64_t bytes)
{
    uint64_t limit = atomic_load(&space->limit), waiting = 0, put;

    if (limit == UINT64_MAX) return true;
    others += rp_journal_space_lack(space);
    put = rp_segments_put_bytes(space->segments, &waiting);
    return put <= limit && others <= limit - put &&
           bytes + bytes / RECORDS_SHARE + RECORDS_BYTES <= limit - put - others;
}

bool rp_journal_space_update(rp_journal_space *space, uint64_t queued)
{
    uint64_t waiting, put, total, wanted = atomic_load(&space->wanted), held = 0, later = 0;

    if (space->segments == NULL) return true;
    if (space->reserve != NULL) (void)space->reserve(space->ctx, &held);
    put = rp_segments_put_bytes(space->segments,
                                &waiting); /* before the free space is read (M1) */
    if (space->files->ops->space == NULL ||
        space->files->ops->space(space->files, &total, &space->available, NULL) != RP_OK ||
        total == 0 || space->available > UINT64_MAX / 2) /* it is not known */
        total = UINT64_MAX;
    /* The reserve may have been released or created before the free space was read, or after:
     * the smaller size is on the safe side. */
    if (space->reserve != NULL) (void)space->reserve(space->ctx, &later);
    atomic_store(&space->held, held < later ? held : later);
    atomic_store(&space->total, total);
    atomic_store(&space->limit, total == UINT64_MAX ? total : put - waiting + space->available);
    assert(waiting <= put);
    while (wanted != UINT64_MAX)
        if (!fits(space, queued + atomic_load(&space->claimed), wanted))
            return false;
        else if (atomic_compare_exchange_weak(&space->wanted, &wanted, UINT64_MAX))
            break;
    return true;
}

bool rp_journal_space_claim(rp_journal_space *space, uint64_t queued, uint64_t bytes,
                            uint64_t least)
{
    uint64_t wanted = atomic_load(&space->wanted), others;

    if (space->segments == NULL) return true;
    others = atomic_fetch_add(&space->claimed, bytes);
    if (fits(space, queued + others, bytes)) return true;
    rp_journal_space_release(space, bytes);
    while (least < wanted && !atomic_compare_exchange_weak(&space->wanted, &wanted, least)) {}
    return false;
}

uint64_t rp_journal_space_most(const rp_journal_space *space)
{
    uint64_t total = atomic_load(&space->total);

    if (total == UINT64_MAX) return total;
    if (total <= RECORDS_BYTES) return 0;
    return (total - RECORDS_BYTES) / (RECORDS_SHARE + 1) * RECORDS_SHARE;
}

void rp_journal_space_release(rp_journal_space *space, uint64_t bytes)
{
    uint64_t claimed;

    if (space->segments == NULL) return;
    claimed = atomic_fetch_sub(&space->claimed, bytes);
    assert(claimed >= bytes); /* M2: claims do not go below zero */
    (void)claimed;
}

bool rp_journal_space_is_wanted(const rp_journal_space *space)
{
    return atomic_load(&space->wanted) != UINT64_MAX;
}

void rp_journal_space_clear_wanted(rp_journal_space *space)
{
    atomic_store(&space->wanted, UINT64_MAX);
}
