/* SPDX-License-Identifier: Apache-2.0 */
/* How much the journal can still write: the room on the disk, less what waits to be written.
 *
 * In sync mode an insert enters a table only if its chunks have room. So no item is in a table
 * that cannot be acknowledged, and a checkpoint on a full disk has no new chunks to write.
 *
 * Invariants, if no other process writes to the file system:
 *
 *   M1  limit = bytes that segments had written before the last look + bytes free at that look;
 *   M2  claims, bytes that segments were given, and those of waiting records are at most limit;
 *   M3  `wanted` is the smallest claim that was refused since waiting inserts were last tried.
 *
 * Bytes that are written between the two parts of a look count twice, so limit errs to the safe
 * side. One thread looks; any thread claims. */
#ifndef RP_DISK_JOURNAL_ROOM_H
#define RP_DISK_JOURNAL_ROOM_H

#include <stdatomic.h>

#include "disk/segments.h"

typedef struct rp_journal_room {
    rp_files *files;                    /* borrowed */
    rp_segments *segments;              /* NULL: there is always room */
    atomic_uint_fast64_t claimed;       /* bytes of chunks that are about to be put */
    atomic_uint_fast64_t limit, wanted; /* wanted: UINT64_MAX if no insert waits */
    atomic_uint_fast64_t total;         /* bytes of the disk; UINT64_MAX: not known */
    uint64_t available;                 /* at the last look, for messages; the looker's */
} rp_journal_room;

/* `segments` NULL: there is always room. */
void rp_journal_room_init(rp_journal_room *room, rp_files *files, rp_segments *segments);
/* Asks the file system. False if an insert waits that still has no room. */
bool rp_journal_room_look(rp_journal_room *room, uint64_t queued);
/* Claims room for `bytes` of chunks, behind `queued` bytes of records. False if there is none:
 * the caller's insert waits until a look finds `least` bytes. */
RP_NODISCARD bool rp_journal_room_claim(rp_journal_room *room, uint64_t queued, uint64_t bytes,
                                        uint64_t least);
/* The largest claim that could be granted if the disk were empty; UINT64_MAX if its size is not
 * known. */
uint64_t rp_journal_room_most(const rp_journal_room *room);
/* The chunks have been put, or will not be. */
void rp_journal_room_release(rp_journal_room *room, uint64_t bytes);
/* Whether an insert waits for room. */
bool rp_journal_room_is_wanted(const rp_journal_room *room);
/* The inserts that wait are about to be tried: those that are refused again say so again. */
void rp_journal_room_forget(rp_journal_room *room);

#endif
