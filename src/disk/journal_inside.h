/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a journal, for the files that make it up:
 *
 *   journal.c         takes records, answers questions, begins and ends
 *   journal_wait.c    who waits for a number
 *   journal_write.c   the thread's writing: records become bytes in a file
 *   journal_thread.c  the thread: when it writes, what it gives up, whom it tells
 *
 *   append -> queue -- the thread, under the lock -> kept -- encode, write, sync -> released
 *
 * Numbers, all ascending: synced <= written <= last. `safe` is one of the three, by mode and
 * state. The lock (rank 46) guards what is marked so; the rest is the thread's own.
 *
 *   J4  raw records over `synced` are in `kept` or in `queue`, without a gap, unless it is
 *       lost;
 *   J5  `safe` goes up only. */
#ifndef RP_DISK_JOURNAL_INSIDE_H
#define RP_DISK_JOURNAL_INSIDE_H

#include <stdatomic.h>

#include "disk/journal.h"
#include "disk/journal_file.h"
#include "disk/journal_queue.h"
#include "disk/journal_room.h"
#include "util/cancel.h"
#include "util/mutex.h"
#include "util/thread.h"

/* Somebody who waits for a number. On his stack; in the list until he is woken or gives up. */
typedef struct waiter {
    rp_cancel_link link; /* first: on_fire gets this */
    struct waiter *prev, *next;
    uint64_t lsn;
    bool for_sync; /* until it is synced, not safe */
    rp_mutex mu;   /* rank 60 */
    rp_cond cv;
    bool is_over, is_cancelled RP_GUARDED_BY(mu);
} waiter;

struct rp_journal {
    rp_journal_options o;
    rp_allocator alloc;
    pthread_t thread;

    atomic_uint_fast64_t safe, last; /* written under the lock, read anywhere */
    atomic_uint_fast64_t queued;     /* bytes of raw records not written yet */
    atomic_bool is_degraded;         /* interval mode, and it cannot write */
    /* While a checkpoint frees a full disk, changes that take room wait for it, until this time
     * at most. 0: they do not wait. */
    atomic_int_fast64_t pause_until;
    rp_journal_room room;  /* of sync mode */
    atomic_bool is_lost;   /* records have been given up. Set under the lock */
    bool has_marker;       /* the thread's: SYNCED is to be written */
    bool begins_after_gap; /* the thread's: the next file begins with LOST */
    bool gave_way;         /* the thread's: it was lost because the disk was full */
    bool is_stopping RP_GUARDED_BY(mu);

    rp_mutex mu;
    rp_cond cv RP_GUARDED_BY(mu); /* wakes the thread */
    rp_raw_queue queue RP_GUARDED_BY(mu);
    rp_raw_batch *spare RP_GUARDED_BY(mu);
    uint64_t written, synced RP_GUARDED_BY(mu); /* changed by the thread */
    uint64_t reached RP_GUARDED_BY(mu);         /* no file has a record over this */
    uint64_t sync_wanted RP_GUARDED_BY(mu);     /* up to here, by somebody */
    uint64_t losses RP_GUARDED_BY(mu);          /* how often */
    uint64_t freed RP_GUARDED_BY(mu);  /* the last record that may have freed bytes on disk */
    uint64_t resume RP_GUARDED_BY(mu); /* the first number after those given up; 0: none were */
    uint64_t hold RP_GUARDED_BY(mu);   /* a checkpoint up to here must be complete first; 0 */
    waiter *waiters RP_GUARDED_BY(mu);
    uint64_t *files RP_GUARDED_BY(mu); /* first numbers, ascending */
    size_t file_count, file_capacity RP_GUARDED_BY(mu);
    rp_journal_info info RP_GUARDED_BY(mu); /* counts, and the trouble */

    /* the thread's own */
    rp_raw_queue kept; /* taken and not synced */
    rp_journal_file file;
    rp_journal_piece piece;
    uint64_t generation;      /* of the places in records written and not synced */
    uint64_t told_losses;     /* of `losses`, those that on_trouble has reported */
    uint64_t superseded;      /* condemned files have records up to here; 0: no more */
    uint64_t yielded_at;      /* `freed` when it last yielded for want of room */
    int yields;               /* how often it has since then */
    int64_t yield_at;         /* not before */
    bool is_told;             /* the last report of on_trouble was trouble */
    int64_t retry_at, due_at; /* the next try after a failure; the next sync */
    int64_t look_at;          /* the next look for room, if somebody waits for it */
    int64_t short_since;      /* since when there is none; 0: there is, or no insert waits */
};

/* journal.c */

/* Tells the owner that a record is not needed any more. */
void rp_journal_release(const rp_journal *j, rp_record_kind kind, const void *raw, size_t size);
/* Gives up what waits to be written. */
void rp_journal_lose_locked(rp_journal *j) RP_REQUIRES(j->mu);

/* journal_wait.c */

/* Wakes those whose number is reached, or all of them: it cannot be for now. */
void rp_journal_wake_locked(rp_journal *j, bool all) RP_REQUIRES(j->mu);

/* journal_write.c, on the thread */

/* How often places have changed. */
uint64_t rp_journal_generation(const rp_journal *j);
/* Lets go of batches that are not needed any more: all of whose numbers are <= lsn. */
void rp_journal_release_kept(rp_journal *j, uint64_t lsn);
void rp_journal_set_written(rp_journal *j, uint64_t written, uint64_t synced);
/* Writes what is kept and not written, and syncs if that is wanted or due.
 * RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_journal_write_out(rp_journal *j, bool is_sync, rp_error *err);

/* journal_thread.c */

/* The thread's function; `arg` is the journal. */
void *rp_journal_run(void *arg);
/* True on the journal's own thread. The owner's callbacks run there, and must not wait for that
 * thread. */
bool rp_journal_is_own_thread(const rp_journal *j);

#endif
