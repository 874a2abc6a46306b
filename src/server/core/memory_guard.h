/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the resident memory of the process below the bound in docs/operations.md.
 *
 * Budgets count the bytes requested from the allocator. An allocator that cannot move blocks
 * may need more, without any bound: if a client deletes seven items of eight and inserts larger
 * ones, the gaps are too small for these. So a thread measures the resident memory. When it
 * comes near the bound, the thread returns empty pages to the system (trims). Memory that
 * cannot be returned counts as lost in the store's budget: inserts evict, wait or fail by the
 * store's policy until the items between the gaps have gone. With the policy `evict`, inserts
 * into small tables wait, and the thread evicts from the largest table for them
 * (rp_store_relieve()).
 *
 * Let L be the most that tables may have in memory, U what they have, and B what may be there
 * beside them. The bound is L + B. As lost = resident - U - B, an insert has room (U + lost <=
 * L) exactly as long as resident <= L + B. B is smaller than in the formula of the document by
 * the growth between two measurements.
 *
 * Only for a process that is the server's own: memory of an embedding program would be taken
 * for lost. So it is an option (rp_server_options.owns_process), and `reprise serve` sets it.
 *
 * Not measured: free pages of the shared arena, which cannot be returned (util/shared_arena.h),
 * and the growth while a checkpoint is written, which keeps items that were removed.
 *
 * Invariants:
 *   M1  the budget of the store has lost bytes only while the thread runs;
 *   M2  past.lost is at most L. */
#ifndef RP_SERVER_CORE_MEMORY_GUARD_H
#define RP_SERVER_CORE_MEMORY_GUARD_H

#include <pthread.h>
#include <stdio.h>

#include "reprise/server.h"
#include "util/mutex.h"
#include "util/shared_arena.h"

typedef struct rp_memory_look {
    uint64_t resident; /* of the process */
    uint64_t limit;    /* L, >= 1 */
    uint64_t used;     /* U */
    uint64_t beside;   /* B */
    bool is_cut;       /* tables are being written to a checkpoint */
} rp_memory_look;

/* What is kept of earlier measurements. Zeroed at the beginning. */
typedef struct rp_memory_past {
    int64_t trimmed_ns; /* when memory was trimmed last; 0: never */
    int64_t paid_ns;    /* when the time spent on trims will be a twentieth of all time */
    uint64_t excess;    /* the least since then */
    uint64_t lost;      /* as last decided */
} rp_memory_past;

/* Resident bytes beyond U + B: empty pages, or memory that no budget counts. */
uint64_t rp_memory_excess(const rp_memory_look *now);

/* Whether to trim: the bound is near, and there is more to return than last time. A trim holds
 * the allocator's locks, so trims may take a twentieth of the time at most, and a quarter of a
 * second in advance. */
bool rp_memory_wants_trim(const rp_memory_past *past, const rp_memory_look *now,
                          int64_t now_ns);

/* Records a trim that took from one time to another. */
void rp_memory_record_trim(rp_memory_past *past, int64_t from_ns, int64_t to_ns);

/* The most that may be lost after a trim: three quarters of L, so that an item of a quarter
 * always fits once others have been removed. */
uint64_t rp_memory_most_lost(uint64_t limit);

/* How many bytes are lost: none unless the bound is near. Of the excess that the last trim
 * left, at most rp_memory_most_lost(); the excess since then counts in full until the next
 * trim. During a checkpoint, at most as many as before. */
uint64_t rp_memory_decide_lost(rp_memory_past *past, const rp_memory_look *now);

/* How long the thread may sleep, if the process grows by at most 4 GB/s. */
int64_t rp_memory_rest_ns(const rp_memory_look *now);

/* What a server has beside its tables. */
typedef struct rp_memory_load {
    uint64_t held_bytes; /* for its peers */
    size_t connections, calls, tables;
    bool has_journal;
} rp_memory_load;

/* B for a server with this load. `limit` is L. */
uint64_t rp_memory_beside(uint64_t limit, const rp_memory_load *load);

/* Reads /proc/self/statm: pages that are resident and not shared. False: that is not it. */
bool rp_memory_parse_statm(const char *text, uint64_t *pages);

/* The server that is guarded. All is borrowed and must outlive the guard. */
typedef struct rp_memory_host {
    rp_store *store;
    rp_shared_arena *arena; /* or NULL */
    rp_log log;
    void *ctx;
    /* Fills in all but `tables`. False: the store is being loaded. On the guard's thread. */
    bool (*describe)(void *ctx, rp_memory_load *load);
} rp_memory_host;

typedef struct rp_memory_guard {
    rp_memory_host host;
    pthread_t thread;
    FILE *statm;
    bool is_running;
    rp_mutex mu;
    rp_cond stop_cv;
    bool stopping RP_GUARDED_BY(mu);
    rp_memory_past past; /* the thread's */
} rp_memory_guard;

/* Starts the thread. It does not touch the store while the store is being loaded, or if the
 * store has no limit. If memory cannot be measured no thread is started, and a log line is
 * written. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_memory_guard_start(rp_memory_guard *guard, const rp_memory_host *host,
                                             rp_error *err);
/* Ends the thread; nothing is lost afterwards. A zeroed guard that was not started is fine. */
void rp_memory_guard_stop(rp_memory_guard *guard);

#endif
