/* SPDX-License-Identifier: Apache-2.0 */
/* How much the journal can still write: the room on the disk, less what waits to be written.
 *
 * In sync mode an insert enters a table only if its chunks have room. So no item is in a table
 * that cannot be acknowledged, and a checkpoint on a full disk has no new chunks to write.
 *
 * Invariants, if no other process writes to the file system:
 *
 *   M1  limit = bytes that segments had written before the last look + bytes free at that look;
 *   M2  bytes that segments were given, and those of waiting records, are at most limit;
 *   M3  `wanted` is the smallest claim that was refused since the waiting were last woken.
 *
 * Bytes that are written between the two parts of a look count twice, so limit errs to the safe
 * side. One thread looks; any thread asks. */
#ifndef RP_DISK_JOURNAL_ROOM_H
#define RP_DISK_JOURNAL_ROOM_H

#include <stdatomic.h>

#include "disk/segments.h"

typedef struct rp_journal_room {
    rp_files *files;                    /* borrowed */
    rp_segments *segments;              /* NULL: there is always room */
    atomic_uint_fast64_t limit, wanted; /* wanted: UINT64_MAX if nobody waits */
    uint64_t available;                 /* at the last look, for messages; the looker's */
} rp_journal_room;

/* `segments` NULL: there is always room. */
void rp_journal_room_init(rp_journal_room *room, rp_files *files, rp_segments *segments);
/* Asks the file system. False if somebody waits who still has no room. */
bool rp_journal_room_look(rp_journal_room *room, uint64_t queued);
/* Whether `bytes` of chunks have room, with `queued` bytes of records before them. If not,
 * `least` bytes are wanted: the caller waits until a look finds these. */
bool rp_journal_room_has(rp_journal_room *room, uint64_t queued, uint64_t bytes,
                         uint64_t least);
/* Whether somebody waits. */
bool rp_journal_room_is_wanted(const rp_journal_room *room);

#endif
