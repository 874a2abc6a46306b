/* SPDX-License-Identifier: Apache-2.0 */
/* The memory guard keeps the resident memory of the server's process below the bound in
 * docs/operations.md.
 *
 * The server's budgets count the bytes requested from the allocator. The allocator can need
 * much more, because it cannot move blocks: if a client deletes seven of every eight items and
 * then inserts larger items, these do not fit into the gaps. So the guard has a thread that
 * measures the resident memory. When the resident memory comes near the bound, the thread
 * trims: it returns empty pages to the system. Memory that cannot be returned counts as lost in
 * the store's budget. So inserts evict items, wait or fail, depending on the store's policy,
 * until the items between the gaps have been removed. With the policy `evict`, inserts into
 * small tables wait, and the guard's thread evicts items of the largest table
 * (rp_store_relieve()).
 *
 * Let L be the most bytes that tables may have in memory, U the bytes that they have now, and B
 * the bytes that the server may have beside its tables. The bound is L + B. The guard sets lost
 * = resident - U - B. So an insert has room (U + lost <= L) exactly while resident <= L + B.
 * docs/operations.md gives a larger B, which includes the growth between two measurements.
 *
 * The guard must only run in a process that runs nothing but the server, since the memory of an
 * embedding program would count as lost. The option rp_server_options.owns_process, which
 * `reprise serve` sets, enables the guard.
 *
 * A checkpoint that is being written keeps the items that are removed from the tables until it
 * is complete, and copies of what changes. So while a checkpoint is written, B includes the
 * bytes removed since the checkpoint began, and an upper bound on the copies.
 *
 * The guard does not measure the free pages of the shared arena, which cannot be returned
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

/* A measurement. L, U and B are defined at the top of this file. */
typedef struct rp_memory_look {
    uint64_t resident; /* resident bytes of the process */
    uint64_t limit;    /* L: the limit of the tables in bytes, >= 1 */
    uint64_t used;     /* U: bytes of the tables */
    uint64_t beside;   /* B: bytes that the server may have beside its tables */
} rp_memory_look;

/* Results of earlier measurements and trims. Zero-initialise it. */
typedef struct rp_memory_past {
    int64_t trimmed_ns; /* time of the last trim; 0: never */
    int64_t paid_ns;    /* until this time, the trims so far take more than a twentieth of the
                           time since the first of them */
    uint64_t excess;    /* the least excess that was measured since the last trim */
    uint64_t lost;      /* the last result of rp_memory_decide_lost() */
} rp_memory_past;

/* Returns the excess: the resident bytes beyond U + B. They are empty pages, or memory that no
 * budget counts. */
uint64_t rp_memory_excess(const rp_memory_look *now);

/* Returns whether to trim. It is true only if the bound is near and there is an excess. After
 * the first trim, one of two further conditions must hold: the excess has grown by more than a
 * 64th of L since the last trim; or the excess has changed, and the last trim was at least a
 * second ago. A trim holds the allocator's locks. So trims take at most a twentieth of the
 * time, plus a quarter of a second. */
bool rp_memory_wants_trim(const rp_memory_past *past, const rp_memory_look *now,
                          int64_t now_ns);

/* Records a trim that began at `from_ns` and ended at `to_ns`. */
void rp_memory_record_trim(rp_memory_past *past, int64_t from_ns, int64_t to_ns);

/* Returns the most bytes that may count as lost after a trim: three quarters of L. So an item
 * of L / 4 always fits once other items have been removed. */
uint64_t rp_memory_most_lost(uint64_t limit);

/* Returns how many bytes are lost. If the bound is not near, no bytes are lost. Of the excess
 * that remained after the last trim, at most rp_memory_most_lost() counts. Excess added since
 * the last trim counts in full until the next trim. */
uint64_t rp_memory_decide_lost(rp_memory_past *past, const rp_memory_look *now);

/* Returns how long the thread can sleep before the bound could be reached, if the process grows
 * by at most 4 GB/s. */
int64_t rp_memory_rest_ns(const rp_memory_look *now);

/* The load of the server, on which B depends. */
typedef struct rp_memory_load {
    uint64_t held_bytes; /* bytes that the server holds for its peers */
    size_t connections, tables;
    /* The sum over the event loops of the most calls that were ever open at once. Memory of
     * ended calls that lies between blocks in use cannot be returned. B includes this memory,
     * so it does not count as lost. */
    size_t calls;
    bool has_journal;
} rp_memory_load;

/* Returns B for a server with this load. `limit` is L. */
uint64_t rp_memory_beside(uint64_t limit, const rp_memory_load *load);

/* Returns the part of B for a checkpoint that is being written. `removed` is the number of
 * bytes of items that have left the tables since it began. `image` bounds the bytes of its
 * copies of items and slots (table/account.h). The result is at most L, since a checkpoint
 * keeps no more than the tables had. */
uint64_t rp_memory_for_checkpoint(uint64_t limit, uint64_t removed, uint64_t image);

/* Parses the text of /proc/self/statm. `*pages` receives the number of pages that are resident
 * and not shared. Returns false if the text has another format. */
bool rp_memory_parse_statm(const char *text, uint64_t *pages);

/* The guarded server. All pointers are borrowed and must outlive the guard. */
typedef struct rp_memory_host {
    rp_store *store;
    rp_shared_arena *arena; /* NULL: there is none */
    rp_log log;
    void *ctx;
    /* Fills in all fields of `load` but `tables`. Returns false while the store is being
     * loaded. Called on the guard's thread. */
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
    rp_memory_past past; /* this field and the next are used by the thread only */
    uint64_t freed;      /* rp_budget.freed, last read while no checkpoint was being written */
} rp_memory_guard;

/* Starts the guard's thread. While the store is being loaded, or if the store has no limit, the
 * thread does not change the store's budget. If the resident memory cannot be measured, writes
 * a log line, starts no thread and returns RP_OK. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_memory_guard_start(rp_memory_guard *guard, const rp_memory_host *host,
                                             rp_error *err);
/* Ends the thread and sets the lost bytes to 0. Does nothing for a zeroed guard that was not
 * started. */
void rp_memory_guard_stop(rp_memory_guard *guard);

#endif
