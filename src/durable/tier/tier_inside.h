/* SPDX-License-Identifier: Apache-2.0 */
/* The private parts of the disk tier (durable/tier/tier.h), shared by
 *
 *   tier.c         start and stop, chunks that enter and leave, the spiller
 *   tier_load.c    reading back: views, the reader threads, the read cache
 *
 * Invariants, whenever mu is free (rp_tier_check()):
 *
 *   S1  an entry is held if a table holds its chunk. A held entry is in the list `dirty` if its
 *       state is RP_TIER_DIRTY, and in the list `clean` if its state is RP_TIER_CLEAN. No other
 *       entries are in these lists;
 *   S2  `resident` is the sum of the bytes of held entries that are not spilled, plus the bytes
 *       that the spiller is freeing; `spilled` is the sum of the bytes of held entries that are
 *       spilled;
 *   S3  an entry is in the ring of the cache exactly if it has a `loaded` chunk; such an
 *       entry is held and spilled. `cached` is the sum of the bytes of these entries;
 *   S4  `readers` is the list of the requests for the chunk of an entry. It is not NULL exactly
 *       while one of the requests is queued, or a reader thread reads the chunk for all of
 *       them;
 *   S5  a load (rp_tier_job) with queued requests is exactly once in the list that starts at
 *       `first_job`; other loads are not in this list.
 *
 * The lists and the cache have no references to the chunks of their entries. Before the last
 * table that holds a chunk releases it, the table calls spill.moved (table/spill.h), which
 * removes the entry of the chunk from its list and from the cache. The entry is freed with the
 * chunk. */
#ifndef RP_DURABLE_TIER_TIER_INSIDE_H
#define RP_DURABLE_TIER_TIER_INSIDE_H

#include <pthread.h>

#include "disk/segments.h"
#include "table/account.h"
#include "table/spill.h"
#include "util/mutex.h"
#include "util/thread.h"

enum {
    RP_TIER_BATCH = 4096,           /* most chunks written with one sync */
    RP_TIER_BATCH_BYTES = 32 << 20, /* approximate limit of their bytes */
};

typedef struct rp_tier rp_tier;

typedef enum rp_tier_state {
    RP_TIER_DIRTY,
    RP_TIER_WRITING,
    RP_TIER_CLEAN,
    RP_TIER_SPILLED,
} rp_tier_state;

/* A request to read a chunk back from disk: tier_load.c. */
typedef struct rp_want rp_want;
/* A load: one rp_sample_load with its requests: tier_load.c. */
typedef struct rp_tier_job rp_tier_job;

/* A chunk that was read back, in one block with its bytes. A table never holds it. */
typedef struct rp_loaded {
    rp_allocator alloc;
    size_t size;            /* bytes of the block */
    rp_chunk *chunk;        /* uses these bytes and owns the block */
    struct rp_loaded *next; /* next in a list of chunks to be released */
    uint8_t bytes[];
} rp_loaded;

/* The entry of a chunk in the tier, which is attached to rp_chunk.stay (chunk/chunk.h). */
typedef struct rp_tier_chunk {
    rp_chunk_tier_state base; /* first member */
    rp_chunk *chunk;
    struct rp_tier_chunk *prev,
        *next;         /* in the list `dirty` or `clean`, or in the ring of the cache */
    rp_loaded *loaded; /* the chunk in the read cache, with a reference; or NULL */
    rp_want *readers;  /* requests for the chunk, the latest first */
    uint8_t state;     /* rp_tier_state */
    bool held;
    bool recent; /* the cached chunk was used since the cache last considered to evict it */
} rp_tier_chunk;

typedef struct rp_tier_list {
    rp_tier_chunk *first, *last;
} rp_tier_list;

/* A thread that reads chunks. Each thread has its own condition variable: if several threads
 * wait on one, glibc before 2.41 can lose a wake-up (bug 25847 of glibc). */
typedef struct rp_tier_reader {
    pthread_t thread;
    rp_tier *tier;
    rp_cond cv;
    struct rp_tier_reader *next; /* next in the list of idle threads */
    bool is_idle; /* the thread is in the list of idle threads. rp_tier.mu guards `next` and
                     `is_idle` */
} rp_tier_reader;

struct rp_tier {
    rp_spill spill; /* first member: the interface for tables */
    /* These members never change after rp_tier_new(). */
    rp_allocator alloc;
    rp_budget *budget; /* a reference */
    rp_segments *segments;
    uint64_t cache_limit;
    uint64_t high, low; /* values of spill.resident at which the spiller starts and stops */
    void (*on_event)(void *ctx, bool degraded, const char *text);
    void *ctx;
    pthread_t spiller;
    bool has_spiller;
    size_t reader_count, reader_room;
    rp_tier_reader *readers;

    rp_mutex mu; /* rank 42 */
    rp_cond spill_cv;
    /* The oldest entry is first. A clean entry that is found pinned is moved to the end. */
    rp_tier_list dirty RP_GUARDED_BY(mu);
    rp_tier_list clean RP_GUARDED_BY(mu);
    rp_tier_list ring RP_GUARDED_BY(mu); /* the cache: the first entry is the next one that
                                            the cache (a clock, or second-chance, cache)
                                            considers to evict */
    uint64_t resident RP_GUARDED_BY(mu);
    uint64_t spilled RP_GUARDED_BY(mu);
    uint64_t cached RP_GUARDED_BY(mu);
    uint64_t admitted RP_GUARDED_BY(mu); /* bytes of chunks that recovery has admitted
                                            (rp_tier_admit()) and that are in memory */
    uint64_t wanted RP_GUARDED_BY(mu);   /* bytes of the largest waiting insert */
    rp_tier_job *first_job, *last_job RP_GUARDED_BY(mu); /* loads with chunks to be read */
    rp_tier_reader *idle_readers RP_GUARDED_BY(mu);      /* the latest first */
    rp_loaded *uncached RP_GUARDED_BY(mu); /* chunks evicted from the cache, to be released */
    uint64_t loads, load_bytes, hits, written RP_GUARDED_BY(mu);
    bool spiller_waits RP_GUARDED_BY(mu);
    bool stopping RP_GUARDED_BY(mu);
    bool degraded RP_GUARDED_BY(mu);

    rp_chunk *batch[RP_TIER_BATCH]; /* used only by the spiller */
};

void rp_tier_list_append(rp_tier_list *list, rp_tier_chunk *entry);
void rp_tier_list_unlink(rp_tier_list *list, rp_tier_chunk *entry);

/* Evicts a chunk from the cache to the list `uncached`, which is released later without the
 * lock. */
void rp_tier_uncache_locked(rp_tier *t, rp_tier_chunk *entry) RP_REQUIRES(t->mu);
/* Releases a list of chunks. The caller must hold no lock. */
void rp_tier_unref_loaded(rp_loaded *list);

bool rp_tier_start_readers(rp_tier *t, size_t count);
void rp_tier_stop_readers(rp_tier *t);

/* Checks the invariants. For RP_VERIFY(). */
bool rp_tier_is_valid_locked(rp_tier *t) RP_REQUIRES(t->mu);

#endif
