/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the resident memory of the process below the bound in docs/operations.md.
 *
 * Budgets count the bytes requested from the allocator. An allocator that cannot move blocks
 * may need more, without any bound: if a client deletes seven of every eight items and inserts
 * larger ones, the gaps are too small for these. So a thread measures the resident memory. When
 * it comes near the bound, the thread returns empty pages to the system (trims). Memory that
 * cannot be returned counts as lost in the store's budget: inserts evict, wait or fail, by the
 * store's policy, until the items between the gaps have been removed. With the policy `evict`,
 * inserts into small tables wait, and the thread evicts from the largest table for them
 * (rp_store_relieve()).
 *
 * Let L be the most bytes that tables may have in memory, U the bytes that they have now, and B
 * the bytes that the server may have beside its tables. The bound is L + B. As lost = resident
 * - U - B, an insert has room (U + lost <= L) exactly as long as resident <= L + B. B is
 * smaller than in the formula of the document by the growth between two measurements.
 *
 * The guard is only for a process that runs nothing but the server, since memory of an
 * embedding program would count as lost. So it is an option, rp_server_options.owns_process,
 * which `reprise serve` sets.
 *
 * While a checkpoint is written, it keeps items that are removed, and copies of what changes.
 * So B then includes the bytes that were removed since, and an upper bound on the copies.
 *
 * Not measured: free pages of the shared arena, which cannot be returned
 * (util/shared_arena.h).
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

/* A measurement. */
typedef struct rp_memory_look {
    uint64_t resident; /* of the process */
    uint64_t limit;    /* L, >= 1 */
    uint64_t used;     /* U */
    uint64_t beside;   /* B */
} rp_memory_look;

/* Results of earlier measurements and trims. Zero-initialise it. */
typedef struct rp_memory_past {
    int64_t trimmed_ns; /* when memory was last trimmed; 0: never */
    int64_t paid_ns;    /* from then on, the trims so far are within their share of time */
    uint64_t excess;    /* the least excess that was measured since the last trim */
    uint64_t lost;      /* the last result of rp_memory_decide_lost() */
} rp_memory_past;

/* Resident bytes beyond U + B: empty pages, or memory that no budget counts. */
uint64_t rp_memory_excess(const rp_memory_look *now);

/* Whether to trim: the bound is near, and there is more memory to return than after the last
 * trim. A trim holds the allocator's locks, so trims take at most a twentieth of the time. They
 * may run ahead of that share by a quarter of a second. */
bool rp_memory_wants_trim(const rp_memory_past *past, const rp_memory_look *now,
                          int64_t now_ns);

/* Records a trim that began at `from_ns` and ended at `to_ns`. */
void rp_memory_record_trim(rp_memory_past *past, int64_t from_ns, int64_t to_ns);

/* The most bytes that may be lost after a trim: three quarters of L, so that an item of L / 4
 * always fits once others have been removed. */
uint64_t rp_memory_most_lost(uint64_t limit);

/* How many bytes are lost: none unless the bound is near. Excess that was there after the last
 * trim counts up to rp_memory_most_lost(); excess that was added since then counts in full
 * until the next trim. */
uint64_t rp_memory_decide_lost(rp_memory_past *past, const rp_memory_look *now);

/* How long the thread may sleep, if the process grows by at most 4 GB/s. */
int64_t rp_memory_rest_ns(const rp_memory_look *now);

/* The numbers on which B depends. */
typedef struct rp_memory_load {
    uint64_t held_bytes; /* that the server holds for its peers */
    size_t connections, tables;
    /* The sum over the loops of the most calls that were open at once. Memory of calls that
     * have ended may lie between blocks in use, so that it cannot be returned. B includes it,
     * so it does not count as lost. */
    size_t calls;
    bool has_journal;
} rp_memory_load;

/* B for a server with this load. `limit` is L. */
uint64_t rp_memory_beside(uint64_t limit, const rp_memory_load *load);

/* The part of B for a checkpoint that is being written: `removed` bytes of items have left the
 * tables since it began, and `image` bounds its copies of the items and slots
 * (table/account.h). The result is at most L, since a checkpoint keeps no more than the tables
 * had. */
uint64_t rp_memory_for_checkpoint(uint64_t limit, uint64_t removed, uint64_t image);

/* Parses the text of /proc/self/statm. `*pages` receives the number of pages that are resident
 * and not shared. False if the text has another format. */
bool rp_memory_parse_statm(const char *text, uint64_t *pages);

/* The guarded server. All pointers are borrowed and must outlive the guard. */
typedef struct rp_memory_host {
    rp_store *store;
    rp_shared_arena *arena; /* or NULL */
    rp_log log;
    void *ctx;
    /* Fills in all fields but `tables`. False: the store is being loaded. Called on the guard's
     * thread. */
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
    rp_memory_past past; /* this and the next are used by the thread only */
    uint64_t freed;      /* rp_budget.freed, last read while no checkpoint was being written */
} rp_memory_guard;

/* Starts the thread. It does not change the store's budget while the store is being loaded, or
 * if the store has no limit. If memory cannot be measured, writes a log line, starts no thread
 * and returns RP_OK. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_memory_guard_start(rp_memory_guard *guard, const rp_memory_host *host,
                                             rp_error *err);
/* Ends the thread and sets the lost bytes to 0. A zeroed guard that was not started is fine. */
void rp_memory_guard_stop(rp_memory_guard *guard);

#endif
