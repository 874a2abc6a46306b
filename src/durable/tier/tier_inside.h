/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the disk tier:
 *
 *   tier.c         birth and death, what comes and goes, the thread that spills
 *   tier_load.c    what is read back: views, the threads that read, the read cache
 *
 * Invariants, whenever mu is free:
 *   S1  a stay whose chunk is held by a table, as far as the tier has been told, is in the list
 *       of the dirty or of the clean ones if it is that, and in neither otherwise;
 *   S2  `resident` is the sum of the bytes of the held ones that are not spilled, those that
 *       the spiller is writing included, and of those whose bytes the spiller is freeing;
 *       `spilled` is the sum of the held ones that are spilled;
 *   S3  a stay is in the ring of the cache exactly if it has a `loaded` chunk; then it is held
 *       and spilled, and `cached` is the sum of their bytes;
 *   S4  a stay has `readers` exactly while one of them is in the queue or with a thread.
 *
 * A chunk is alive while its stay is listed, cached or held: its table tells us before it lets
 * go. Its stay goes with it. */
#ifndef RP_DURABLE_TIER_TIER_INSIDE_H
#define RP_DURABLE_TIER_TIER_INSIDE_H

#include <pthread.h>

#include "disk/segments.h"
#include "table/account.h"
#include "table/spill.h"
#include "util/mutex.h"
#include "util/thread.h"

enum {
    RP_TIER_BATCH = 4096,           /* chunks written with one sync */
    RP_TIER_BATCH_BYTES = 32 << 20, /* about */
};

typedef struct rp_tier rp_tier;

typedef enum rp_tier_state {
    RP_TIER_DIRTY,
    RP_TIER_WRITING,
    RP_TIER_CLEAN,
    RP_TIER_SPILLED,
} rp_tier_state;

typedef struct rp_want rp_want;

/* A chunk that was read, in a block with its bytes: the tier's, and never a table's. */
typedef struct rp_loaded {
    rp_allocator alloc;
    size_t size;            /* of the block */
    rp_chunk *chunk;        /* whose bytes these are: it owns the block */
    struct rp_loaded *next; /* among those to be let go */
    uint8_t bytes[];
} rp_loaded;

/* What the tier knows of a chunk. */
typedef struct rp_tier_chunk {
    rp_chunk_stay base; /* first */
    rp_chunk *chunk;
    struct rp_tier_chunk *prev,
        *next;         /* among the dirty, the clean, or in the ring of the cache */
    rp_loaded *loaded; /* in the read cache; a reference to its chunk */
    rp_want *readers;  /* who waits for it to be read; the last is the first */
    uint8_t state;     /* rp_tier_state */
    bool held;
    bool recent; /* used since the cache's hand passed */
} rp_tier_chunk;

typedef struct rp_tier_list {
    rp_tier_chunk *first, *last;
} rp_tier_list;

struct rp_tier {
    rp_spill spill; /* first: what tables know of it */
    /* fixed at birth */
    rp_allocator alloc;
    rp_budget *budget; /* a reference */
    rp_segments *segments;
    uint64_t cache_limit;
    uint64_t high, low; /* of spill.resident */
    void (*on_event)(void *ctx, bool degraded, const char *text);
    void *ctx;
    pthread_t spiller;
    bool has_spiller;
    size_t reader_count, reader_room;
    pthread_t *readers;

    rp_mutex mu; /* rank 42 */
    rp_cond spill_cv, read_cv;
    rp_tier_list dirty RP_GUARDED_BY(mu); /* oldest first */
    rp_tier_list clean RP_GUARDED_BY(mu); /* oldest first, but for those that were pinned */
    rp_tier_list ring RP_GUARDED_BY(mu);  /* of the cache: the hand is at the first */
    uint64_t resident RP_GUARDED_BY(mu);
    uint64_t spilled RP_GUARDED_BY(mu);
    uint64_t cached RP_GUARDED_BY(mu);
    uint64_t admitted RP_GUARDED_BY(mu); /* by recovery, and in memory */
    uint64_t wanted RP_GUARDED_BY(mu);   /* by the largest insert that waits; <= the limit */
    rp_want *first_want, *last_want RP_GUARDED_BY(mu); /* to be read */
    size_t idle_readers RP_GUARDED_BY(mu);
    rp_loaded *uncached RP_GUARDED_BY(mu); /* no longer cached, and still to be let go */
    uint64_t loads, load_bytes, hits, written RP_GUARDED_BY(mu);
    bool spiller_waits RP_GUARDED_BY(mu);
    bool stopping RP_GUARDED_BY(mu);
    bool degraded RP_GUARDED_BY(mu);

    rp_chunk *batch[RP_TIER_BATCH]; /* the spiller's */
};

void rp_tier_list_append(rp_tier_list *list, rp_tier_chunk *entry);
void rp_tier_list_unlink(rp_tier_list *list, rp_tier_chunk *entry);

/* Takes a chunk out of the cache: it is waste, which is let go without the lock. */
void rp_tier_uncache_locked(rp_tier *t, rp_tier_chunk *entry) RP_REQUIRES(t->mu);
void rp_tier_unref_loaded(rp_loaded *list);

bool rp_tier_start_readers(rp_tier *t, size_t count);
void rp_tier_stop_readers(rp_tier *t);

#endif
