/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/journal_room.h"

enum {
    RECORDS_BYTES = 64 << 10, /* left for changes that have no chunks, such as deletes */
    RECORDS_SHARE = 64        /* headers and places: one of so many parts of the chunks */
};

void rp_journal_room_init(rp_journal_room *room, rp_files *files, rp_segments *segments)
{
    *room = (rp_journal_room){.files = files, .segments = segments};
    atomic_init(&room->claimed, 0);
    atomic_init(&room->limit, UINT64_MAX);
    atomic_init(&room->wanted, UINT64_MAX);
    atomic_init(&room->total, UINT64_MAX);
}

/* Whether `bytes` fit, with what segments have been given and `others` bytes before them. */
static bool fits(const rp_journal_room *room, uint64_t others, uint64_t bytes)
{
    uint64_t limit = atomic_load(&room->limit), waiting = 0, put;

    if (limit == UINT64_MAX) return true;
    put = rp_segments_put_bytes(room->segments, &waiting);
    return put <= limit && others <= limit - put &&
           bytes + bytes / RECORDS_SHARE + RECORDS_BYTES <= limit - put - others;
}

bool rp_journal_room_look(rp_journal_room *room, uint64_t queued)
{
    uint64_t waiting, put, total, wanted = atomic_load(&room->wanted);

    if (room->segments == NULL) return true;
    put = rp_segments_put_bytes(room->segments, &waiting); /* before the look: M1 */
    if (room->files->ops->space == NULL ||
        room->files->ops->space(room->files, &total, &room->available, NULL) != RP_OK ||
        total == 0 || room->available > UINT64_MAX / 2) /* it does not say */
        total = UINT64_MAX;
    atomic_store(&room->total, total);
    atomic_store(&room->limit, total == UINT64_MAX ? total : put - waiting + room->available);
    while (wanted != UINT64_MAX)
        if (!fits(room, queued + atomic_load(&room->claimed), wanted))
            return false;
        else if (atomic_compare_exchange_weak(&room->wanted, &wanted, UINT64_MAX))
            break;
    return true;
}

bool rp_journal_room_claim(rp_journal_room *room, uint64_t queued, uint64_t bytes,
                           uint64_t least)
{
    uint64_t wanted = atomic_load(&room->wanted), others;

    if (room->segments == NULL) return true;
    others = atomic_fetch_add(&room->claimed, bytes);
    if (fits(room, queued + others, bytes)) return true;
    rp_journal_room_release(room, bytes);
    while (least < wanted && !atomic_compare_exchange_weak(&room->wanted, &wanted, least)) {}
    return false;
}

uint64_t rp_journal_room_most(const rp_journal_room *room)
{
    uint64_t total = atomic_load(&room->total);

    if (total == UINT64_MAX) return total;
    if (total <= RECORDS_BYTES) return 0;
    return (total - RECORDS_BYTES) / (RECORDS_SHARE + 1) * RECORDS_SHARE;
}

void rp_journal_room_release(rp_journal_room *room, uint64_t bytes)
{
    if (room->segments != NULL) atomic_fetch_sub(&room->claimed, bytes);
}

bool rp_journal_room_is_wanted(const rp_journal_room *room)
{
    return atomic_load(&room->wanted) != UINT64_MAX;
}

void rp_journal_room_forget(rp_journal_room *room)
{
    atomic_store(&room->wanted, UINT64_MAX);
}
