/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the resident memory of the process below what docs/operations.md says.
 *
 * Budgets count what is asked of the allocator. An allocator that cannot move blocks may need
 * more, without any bound: if a client deletes seven items of eight and inserts larger ones,
 * the gaps are too small for these. So a thread measures what the process has. When that comes
 * near the bound it gives memory that holds nothing back to the system, and what cannot be
 * given back counts as lost in the store's budget: inserts evict, wait or fail by its policy
 * until items between the gaps have gone. With the policy `evict`, inserts into tables that are
 * small wait, and the thread evicts from the largest table for them (rp_store_relieve()).
 *
 * With L the most that tables may have in memory, U what they have, and B what may be there
 * beside them, the bound is L + B. As lost = resident - U - B, an insert has room (U + lost <=
 * L) exactly as long as resident <= L + B, and B is smaller than in the formula of the document
 * by what comes between two looks.
 *
 * Only for a process that is the server's own: memory of an embedding program would be taken
 * for lost. So it is an option (rp_server_options.owns_process), and `reprise serve` sets it.
 *
 * Not measured: free pages of the shared arena, which cannot be given back
 * (util/shared_arena.h), and what grows while a checkpoint is written, which keeps items that
 * have left. */
#ifndef RP_SERVER_CORE_MEMORY_GUARD_H
#define RP_SERVER_CORE_MEMORY_GUARD_H

#include <pthread.h>
#include <stdio.h>

#include "reprise/server.h"
#include "util/mutex.h"

typedef struct rp_memory_look {
    uint64_t resident; /* of the process */
    uint64_t limit;    /* L, >= 1 */
    uint64_t used;     /* U */
    uint64_t beside;   /* B */
    bool is_cut;       /* tables are being written to a checkpoint */
} rp_memory_look;

/* What remains of earlier looks. Zeroed at the beginning. */
typedef struct rp_memory_past {
    int64_t trimmed_ns; /* when memory was given back last; 0: never */
    int64_t paid_ns;    /* when the time that this took will be a twentieth of all */
    uint64_t excess;    /* the least since then */
    uint64_t lost;      /* as last decided */
} rp_memory_past;

/* Bytes that the process has beyond U + B: empty, or not counted by anybody. */
uint64_t rp_memory_excess(const rp_memory_look *now);

/* Whether to give memory back to the system: the bound is near, and there is more to give back
 * than last time. The allocator's locks are held for as long as that takes, so it may take a
 * twentieth of the time at most, and a quarter of a second in advance. */
bool rp_memory_wants_trim(const rp_memory_past *past, const rp_memory_look *now,
                          int64_t now_ns);

/* Takes note that it was done, from one time to another. */
void rp_memory_note_trim(rp_memory_past *past, int64_t from_ns, int64_t to_ns);

/* The most that is lost of what could not be given back: three quarters of L, so that an item
 * of a quarter can always go in once others have left. */
uint64_t rp_memory_most_lost(uint64_t limit);

/* How much is lost: nothing as long as the bound is not near. Of what could not be given back
 * at most rp_memory_most_lost(); what has become empty since counts in full until giving it
 * back has been tried. During a checkpoint, at most what was lost before. */
uint64_t rp_memory_decide_lost(rp_memory_past *past, const rp_memory_look *now);

/* How long the thread may sleep, if the process grows by at most 4 GB/s. */
int64_t rp_memory_rest_ns(const rp_memory_look *now);

/* B for a server that holds so many bytes for its peers, and so many connections, open calls
 * and tables. */
uint64_t rp_memory_beside(uint64_t limit, uint64_t held_bytes, size_t connections, size_t calls,
                          size_t tables, bool has_journal);

/* Reads /proc/self/statm: pages that are resident and not shared. False: that is not it. */
bool rp_memory_parse_statm(const char *text, uint64_t *pages);

typedef struct rp_memory_guard {
    rp_server *server;
    pthread_t thread;
    FILE *statm;
    bool is_running;
    rp_mutex mu;
    rp_cond stop_cv;
    bool stopping RP_GUARDED_BY(mu);
    rp_memory_past past; /* the thread's */
} rp_memory_guard;

/* Starts the thread. It leaves the store alone while that is loaded, or if it has no limit. If
 * memory cannot be measured there is no thread, and a log line. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_memory_guard_start(rp_memory_guard *guard, rp_server *server,
                                             rp_error *err);
/* Ends it; nothing is lost then. Also of one that was never started, if it is zeroed. */
void rp_memory_guard_stop(rp_memory_guard *guard);

#endif
