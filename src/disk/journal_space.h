/* SPDX-License-Identifier: Apache-2.0 */
/* Admission by disk space, for the journal (disk/journal.h): counts how many bytes of chunks
 * the journal can still write. This number is the free space of the disk, less the backlog of
 * data to be written, and less the bytes that the reserve for checkpoints (disk/reserve.h)
 * lacks.
 *
 * In sync mode an insert enters a table only if its chunks fit on the disk, and if the reserve
 * can still grow to the size that the tables then need. So the journal can write the chunks of
 * all items in the tables, and can acknowledge every item. And a checkpoint on a full disk has
 * space, and need not write chunks.
 *
 * Invariants, if no other process writes to the file system:
 *
 *   M1  limit = bytes that the segments had written before the last update + bytes free at that
 *       update;
 *   M2  whenever a claim has been granted: claims + bytes put into the segments + bytes of
 *       queued records + bytes that the reserve lacks <= limit;
 *   M3  `wanted` is the smallest claim refused since waiting inserts were last retried.
 *
 * An update first reads the number of written bytes, then the free space. Bytes that are
 * written between the two reads are in neither number, so `limit` can be too small, but never
 * too large. One thread updates; any thread may claim. */
#ifndef RP_DISK_JOURNAL_SPACE_H
#define RP_DISK_JOURNAL_SPACE_H

#include <stdatomic.h>

#include "disk/segments.h"

/* Returns how many bytes the reserve should have now, and sets `*held` to the bytes that it
 * has. Called on any thread; takes no lock. */
typedef uint64_t rp_reserve_wanted(void *ctx, uint64_t *held);

typedef struct rp_journal_space {
    rp_files *files;                    /* borrowed */
    rp_segments *segments;              /* NULL: there is always space */
    rp_reserve_wanted *reserve;         /* NULL: there is no reserve */
    void *ctx;                          /* argument of `reserve` */
    atomic_uint_fast64_t claimed;       /* bytes of items about to enter a table */
    atomic_uint_fast64_t held;          /* bytes of the reserve at the last update */
    atomic_uint_fast64_t limit, wanted; /* `wanted` is UINT64_MAX if no insert waits */
    atomic_uint_fast64_t total;         /* size of the disk in bytes; UINT64_MAX: not known */
    uint64_t available; /* free bytes at the last update, for messages; only for the thread that
                           updates */
} rp_journal_space;

/* `segments` and `reserve` may be NULL, as in the struct. */
void rp_journal_space_init(rp_journal_space *space, rp_files *files, rp_segments *segments,
                           rp_reserve_wanted *reserve, void *ctx);
/* Reads the free space of the file system. `queued` is the bytes of queued records. Returns
 * false if an insert waits and there is still no space for it. */
bool rp_journal_space_update(rp_journal_space *space, uint64_t queued);
/* Returns how many bytes the reserve lacks now. */
uint64_t rp_journal_space_lack(const rp_journal_space *space);
/* Claims space for `bytes` of items, in addition to `queued` bytes of queued records. Returns
 * false if the items do not fit. In that case the caller's insert must wait until an update
 * finds space for `least` bytes (`least` <= `bytes`), the least with which a retry is
 * useful. */
RP_NODISCARD bool rp_journal_space_claim(rp_journal_space *space, uint64_t queued,
                                         uint64_t bytes, uint64_t least);
/* Returns the largest claim that fits on this disk when it is empty; UINT64_MAX if the size of
 * the disk is not known. */
uint64_t rp_journal_space_most(const rp_journal_space *space);
/* Ends a claim, or a part of it: the items have used the space, or will not use it. */
void rp_journal_space_release(rp_journal_space *space, uint64_t bytes);
/* Returns true if an insert waits for space. */
bool rp_journal_space_is_wanted(const rp_journal_space *space);
/* Resets `wanted`, before the waiting inserts are retried. An insert that is refused again sets
 * `wanted` again. */
void rp_journal_space_clear_wanted(rp_journal_space *space);

#endif
