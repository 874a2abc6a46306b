/* SPDX-License-Identifier: Apache-2.0 */
/* The private parts of a journal (disk/journal.h), shared by
 *
 *   journal.c         append, queries, start and stop
 *   journal_wait.c    waiting for an LSN
 *   journal_write.c   encoding and writing records, on the thread
 *   journal_beside.c  in interval mode: syncing on a second thread
 *   journal_thread.c  the journal thread: when to write, what to give up, what to report
 *
 * The way of a raw record (journal_queue.h):
 *
 *   append -> queue -- moved by the thread, under the lock -> kept -- encode, write, sync ->
 *   released
 *
 * "The thread" below is the journal thread. A pass is one round of it: it moves the queue to
 * `kept`, writes, syncs if a sync is due, and reports the result.
 *
 * The lock `mu` (rank 46) guards the fields marked RP_GUARDED_BY(mu). Only the thread uses the
 * fields at the end and those marked "thread", without the lock. Invariants, whenever the lock
 * is free:
 *
 *   J5  synced <= written <= last. `safe` is one of the three, depending on mode and state. It
 *       never decreases;
 *   J6  if the journal is not lost, the raw records with LSNs above `synced` are in `kept` or
 *       in `queue`, without a gap;
 *   J7  `files` is ascending; file_count <= file_capacity;
 *   J8  the list of waiters is doubly linked, and no waiter in it has been woken;
 *   J9  while the journal waits for a checkpoint after a loss (hold > 0), the first record that
 *       it will write is the record after this checkpoint: resume is hold + 1. */
#ifndef RP_DISK_JOURNAL_INSIDE_H
#define RP_DISK_JOURNAL_INSIDE_H

#include <stdatomic.h>

#include "disk/journal_file.h"
#include "disk/journal_options.h"
#include "disk/journal_queue.h"
#include "disk/journal_space.h"
#include "util/cancel.h"
#include "util/mutex.h"
#include "util/thread.h"

/* A thread that waits for an LSN. The object is on the thread's stack, and in the list until
 * the thread is woken or stops waiting. */
typedef struct waiter {
    rp_cancel_link link; /* first member, since on_fire receives a pointer to it */
    struct waiter *prev, *next;
    uint64_t lsn;
    bool for_sync; /* true: waits until `lsn` is synced; false: until it is safe */
    rp_mutex mu;   /* rank 60 */
    rp_cond cv;
    bool is_over, is_cancelled RP_GUARDED_BY(mu);
} waiter;

typedef enum rp_beside_state {
    RP_BESIDE_NONE,
    RP_BESIDE_RUNNING,
    RP_BESIDE_DONE
} rp_beside_state;

/* A sync on the second thread, while the journal thread writes. */
typedef struct rp_beside {
    rp_beside_state state;
    rp_file *handle; /* the journal file, which stays open meanwhile */
    bool is_named;   /* as in rp_journal_file */
    uint64_t lsn;    /* LSN of the last record that the sync covers */
    uint64_t generation;
    uint64_t put; /* rp_segments_put_bytes() when the sync began; when the sync is done, how
                     many of these bytes are synced */
    /* Valid when the sync is done. */
    rp_status status;
    bool is_bad; /* the sync of the file has failed */
    rp_error why;
} rp_beside;

struct rp_journal {
    rp_journal_options o;
    rp_allocator alloc;
    pthread_t thread, second;
    bool has_second; /* only in interval mode */

    atomic_uint_fast64_t safe, last; /* written under the lock, read anywhere */
    atomic_uint_fast64_t queued;     /* bytes of raw records in memory: `queue` and `kept` */
    atomic_int_fast64_t pass_since;  /* time at which the current pass began; 0: no pass runs */
    atomic_int_fast64_t beside_since; /* when the sync on the second thread began; 0: none */
    atomic_bool is_degraded;          /* in interval mode: the journal cannot write */
    /* Inserts wait because the segments have too many chunks in their queue. */
    atomic_bool is_flush_wanted;
    /* While a checkpoint frees a full disk, changes that take space wait at most until this
     * time; 0: they do not wait. */
    atomic_int_fast64_t pause_until;
    rp_journal_space space; /* used in sync mode */
    atomic_bool is_lost;    /* records have been given up. Changed under the lock */
    bool has_marker;        /* thread: the next piece begins with RP_RECORD_SYNCED */
    bool begins_after_gap;  /* thread: the next file begins with RP_RECORD_LOST */
    bool gave_way;          /* thread: on a full disk, records were given up for a checkpoint */
    bool is_stopping RP_GUARDED_BY(mu);
    bool is_paused RP_GUARDED_BY(mu);  /* set by rp_journal_pause() */
    bool is_passing RP_GUARDED_BY(mu); /* the thread is in a pass, so it can write */

    rp_mutex mu;
    rp_cond cv RP_GUARDED_BY(mu);        /* wakes the thread */
    rp_cond beside_cv RP_GUARDED_BY(mu); /* wakes the second thread */
    rp_cond idle RP_GUARDED_BY(mu);      /* wakes rp_journal_pause() */
    rp_beside beside RP_GUARDED_BY(mu);
    bool beside_is_ending RP_GUARDED_BY(mu);
    rp_raw_queue queue RP_GUARDED_BY(mu);
    rp_raw_batch *spare RP_GUARDED_BY(mu);
    uint64_t written, synced RP_GUARDED_BY(mu); /* only the thread changes them */
    uint64_t reached RP_GUARDED_BY(mu); /* no file has, or had, a record with a larger LSN */
    uint64_t sync_wanted RP_GUARDED_BY(mu); /* the largest LSN that a caller wants synced */
    uint64_t losses RP_GUARDED_BY(mu);      /* how many times records were given up */
    uint64_t freed RP_GUARDED_BY(mu);       /* LSN of the last change after which a checkpoint
                                               possibly frees space */
    uint64_t resume RP_GUARDED_BY(mu); /* the first LSN after lost records; 0: none are lost */
    /* After a loss: until a checkpoint up to this LSN is complete, no record becomes safe in
     * sync mode, and nothing is written if the disk is full. 0: there is no such checkpoint. */
    uint64_t hold RP_GUARDED_BY(mu);
    waiter *waiters RP_GUARDED_BY(mu);
    uint64_t *files RP_GUARDED_BY(mu); /* the first LSN of each file */
    size_t file_count, file_capacity RP_GUARDED_BY(mu);
    rp_journal_info info RP_GUARDED_BY(mu); /* counters, and the reported trouble */

    /* Used only by the thread. */
    rp_raw_queue kept; /* records taken from the queue and not synced */
    rp_journal_file file;
    rp_journal_piece piece;
    uint64_t generation; /* rp_journal_generation() for the records that are written and not
                            synced */
    uint64_t reported_losses; /* how many of `losses` were reported to on_trouble */
    uint64_t put_synced;      /* how many of the bytes of rp_segments_put_bytes() the last sync
                                 covered */
    uint64_t superseded;      /* condemned files have records up to this LSN; 0: none */
    uint64_t yielded_at; /* `freed` when the thread last yielded to a checkpoint because space
                            was short */
    int yields;          /* how many times it has yielded with this value of `freed` */
    int64_t yield_at;    /* the earliest time of the next yield */
    bool is_reported;    /* the last call of on_trouble reported trouble, not the end of
                            trouble */
    /* Time of the next attempt after a failure (0: the last attempt succeeded), and time of the
     * next sync. */
    int64_t retry_at, due_at;
    int64_t look_at;     /* time of the next check for space, if an insert waits for it */
    int64_t short_since; /* time since which an insert waits for space; 0: no insert waits, or
                            there is enough */
};

/* Calls the owner's release callback for a record. */
void rp_journal_release(const rp_journal *j, rp_record_kind kind, const void *raw, size_t size);
/* Marks the journal as lost: it gives up the records that are not written. */
void rp_journal_lose_locked(rp_journal *j) RP_REQUIRES(j->mu);

/* Wakes the waiters whose LSN is reached, or all waiters if `all` is set. */
void rp_journal_wake_locked(rp_journal *j, bool all) RP_REQUIRES(j->mu);

/* The following functions run on the journal thread. */

/* Returns how often locations in the segments have changed. */
uint64_t rp_journal_generation(const rp_journal *j);
/* Releases the batches of `kept` in which every LSN is at most `lsn`. */
void rp_journal_release_kept(rp_journal *j, uint64_t lsn);
void rp_journal_set_written(rp_journal *j, uint64_t written, uint64_t synced);
/* Advances `synced` to `lsn` and releases the records up to `lsn`. `put` is how many of the
 * bytes of rp_segments_put_bytes() are synced. */
void rp_journal_note_synced(rp_journal *j, uint64_t lsn, uint64_t put);
/* Returns the bytes put into the segments so far; 0 without segments. */
uint64_t rp_journal_put_bytes(const rp_journal *j);
/* Pads the file to a sector boundary (invariant J4). */
RP_NODISCARD rp_status rp_journal_write_pad(rp_journal *j, rp_error *err);
/* Condemns the open file: its records that are not synced are written again, to a new file. */
void rp_journal_condemn(rp_journal *j);
/* Writes the records of `kept` that are not written, and syncs if `is_sync`. Errors:
 * RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_journal_write_out(rp_journal *j, bool is_sync, rp_error *err);

/* If the second thread is idle, makes it sync the written records. */
RP_NODISCARD rp_status rp_journal_begin_sync(rp_journal *j, rp_error *err);
/* If a sync on the second thread is done, takes over its result and returns its status. If
 * `is_waiting` is set, or if too many chunks were put since the sync began, the call first
 * waits until the sync is done. A file whose sync has failed is condemned. */
RP_NODISCARD rp_status rp_journal_end_sync(rp_journal *j, bool is_waiting, rp_error *err);

/* The functions of the threads; `arg` is the journal. */
void *rp_journal_run(void *arg);
void *rp_journal_run_beside(void *arg);
/* True on the journal thread, where the owner's callbacks run. Callbacks must not wait for this
 * thread. */
bool rp_journal_is_own_thread(const rp_journal *j);

#ifndef NDEBUG
/* Checks the invariants J5, J7, J8 and J9. For RP_VERIFY(). */
bool rp_journal_is_valid_locked(rp_journal *j) RP_REQUIRES(j->mu);
#endif

#endif
