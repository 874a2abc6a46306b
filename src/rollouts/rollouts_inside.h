/* SPDX-License-Identifier: Apache-2.0 */
/* The private parts of rp_rollouts, shared by
 *
 *   rollouts_apply.c   birth, the dispatch of operations, copies for readers
 *   rollouts_groups.c  groups, their names, the queues
 *   rollouts_room.c    limits, eviction, why an operation waits
 *   rollouts_put.c     reserve, abort, put, update
 *   rollouts_lease.c   draw, ack, release, renew, expire
 *   rollouts_options.c advance, configure, cursors
 *   rollouts_check.c   the checker
 *   rollouts_wait.c    waiting
 *   rollouts_image.c   images; rollouts_load.c loads them
 *
 * Invariants, whenever mu is free:
 *
 *   G1  an entry is in the map under its name. It has a group, or it is in the list of removed
 *       ones, which has at most RP_ROLLOUT_REMEMBERED entries, oldest first;
 *   G2  groups are in a list in the order of their numbers, which is the order in which they
 *       began; group_count is their number, and counts[] counts them by state;
 *   G3  a group has 0 to group_size items, and its item_count counts them. Its versions are the
 *       oldest and the newest of its items, its bytes what it costs; bytes is the sum over all
 *       groups, and leased_bytes that over the leased ones;
 *   G4  a group with a reservation is not complete, and is in by_time. A group without one is
 *       not;
 *   G5  `missing` of a consumer's turn counts the items and needed columns that are not there;
 *   G6  a turn is in the queue of its consumer exactly if nothing is missing, and the consumer
 *       neither leases the group nor is done with it. ready_number is not 0 exactly if nothing
 *       is missing, and each is given once;
 *   G7  a group is in `oldest` exactly if it is not leased, and in `ages` exactly if it is not
 *       leased and has an item;
 *   G8  leases are in ascending order of their ids, each is in lease_times, and the groups of a
 *       lease are those whose turn of its consumer has its id;
 *   G9  has_stale is set exactly while, with RP_ROLLOUT_DROP, a group in `ages` is staler than
 *       max_staleness. Then only operations that cannot see such a group are executed;
 *   G10 a group that every consumer has acknowledged is removed. */
#ifndef RP_ROLLOUTS_ROLLOUTS_INSIDE_H
#define RP_ROLLOUTS_ROLLOUTS_INSIDE_H

#include <stdatomic.h>

#include "rollouts/rollout_heap.h"
#include "rollouts/rollout_op_inside.h"
#include "rollouts/rollouts.h"
#include "util/map.h"
#include "util/mutex.h"

typedef struct rp_rollout_group rp_rollout_group;
typedef struct rp_rollout_sleeper rp_rollout_sleeper;

/* A name, with the group or with what has become of it. */
typedef struct rp_rollout_entry rp_rollout_entry;
struct rp_rollout_entry {
    rp_rollout_name *name;
    uint32_t tag, slot; /* in the map */
    rp_rollout_group *group;
    rp_rollout_fate fate;   /* if there is no group */
    rp_rollout_entry *next; /* of the removed ones */
    rp_rollout_entry *prev;
};

/* What a consumer has to do with a group. */
typedef struct rp_rollout_turn {
    rp_rollout_node node;
    uint64_t ready_number; /* G6 */
    uint64_t lease;        /* 0: none */
    uint32_t missing;      /* G5 */
    bool is_done;
} rp_rollout_turn;

struct rp_rollout_group {
    rp_rollout_entry *entry;
    uint64_t number;
    rp_rollout_group *prev, *next; /* G2; next also links removed groups until they are freed */
    rp_rollout_node age;           /* key: first_version */
    rp_rollout_node turn;          /* in `oldest`; key: number */
    rp_rollout_node time;          /* key: the end of the reservation */
    int64_t ttl_ns;                /* of the reservation; 0: none */
    int64_t first_version, last_version;
    uint64_t bytes;
    uint32_t item_count, lease_count, done_count;
    uint32_t size, consumer_count;
    uint64_t cut;              /* the number of the last cut that has copied it */
    rp_rollout_stored **items; /* NULL: not there */
    rp_rollout_turn turns[];   /* of the consumers, then the items */
};

typedef struct rp_rollout_lease {
    rp_rollout_node time; /* first; key: its end */
    uint64_t id;
    size_t consumer;
    size_t count, capacity;
    rp_rollout_group *groups[]; /* in the order of the draw */
} rp_rollout_lease;

/* A column that some consumers need. */
typedef struct rp_rollout_need {
    rp_string name;
    uint32_t consumers; /* a bit for each */
} rp_rollout_need;

typedef struct rp_rollout_queue {
    rp_rollout_heap ready;
    uint64_t leased, done, drawn, acknowledged; /* rp_rollout_consumer_info */
} rp_rollout_queue;

typedef struct rp_rollout_cursor {
    rp_rollout_name *name;
    void *data;
    size_t size;
} rp_rollout_cursor;

/* What the rollouts of a set share: the sum of their max_bytes, its bound, and the watch. */
typedef struct rp_rollout_common {
    rp_mutex mu; /* rank RP_RANK_ROLLOUT_COMMON */
    uint64_t bytes, most_bytes RP_GUARDED_BY(mu);
    atomic_uint_fast64_t image_bytes;                /* the sum over the rollouts */
    void (*watch)(void *ctx, rp_rollouts *rollouts); /* set before other threads are there */
    void *ctx;
} rp_rollout_common;

enum {
    RP_ROLLOUT_STATES = RP_ROLLOUT_LEASED + 1,
    RP_ROLLOUT_NUMBERS = 11, /* the counters in an image */
};

struct rp_rollouts {
    rp_refcount refs;
    rp_allocator alloc;
    rp_rollout_name *name;
    uint64_t seed;
    rp_mutex mu;                  /* rank RP_RANK_ROLLOUTS; guards all below */
    rp_rollout_sleeper *sleepers; /* of threads that wait */
    bool is_closed;
    rp_rollout_log *log;
    rp_rollout_common *common; /* NULL: in no set */
    uint64_t lsn;              /* of the last operation, or of the birth; 0 without a log */
    uint64_t image_bytes;      /* as counted in `common` */

    rp_rollout_options *options; /* a copy, with at least one consumer */
    rp_rollout_need *needs;      /* in the order of their names */
    size_t need_count;
    rp_rollout_queue queues[RP_ROLLOUT_CONSUMERS];

    bool has_stale;             /* G9 */
    struct rp_rollout_cut *cut; /* that is copying groups (rollouts_image.c), or NULL */
    uint64_t cut_count;
    int64_t now_ns; /* of the last change; images have it */
    int64_t version;
    uint64_t next_number, next_ready, next_lease; /* from 1 */

    rp_map map;
    rp_rollout_entry **entries; /* by slot; NULL: free */
    uint32_t *free_slots;       /* room for all slots */
    size_t slot_count, slot_capacity, free_count;
    rp_rollout_entry *gone_first, *gone_last;
    size_t gone_count;

    rp_rollout_group *first, *last;
    uint64_t group_count, item_count, bytes, leased_bytes;
    uint64_t counts[RP_ROLLOUT_STATES]; /* by rp_rollout_fate */
    rp_rollout_heap ages, oldest, times, lease_times;
    rp_rollout_lease **leases;
    size_t lease_count, lease_capacity;
    uint64_t acked[RP_ROLLOUT_REMEMBERED]; /* a ring of the leases acknowledged last */
    size_t acked_count, acked_next;

    uint64_t acknowledged, stale, evicted, aborted, expired_reservations, expired_leases;
    uint64_t staleness[RP_ROLLOUT_STALENESS_BUCKETS];

    rp_rollout_cursor cursors[RP_ROLLOUT_CURSORS];
    size_t cursor_count;
};

/* One operation while it is executed. */
typedef struct rp_rollout_work {
    rp_rollouts *r;
    const rp_rollout_op *op;
    rp_rollout_result *result;
    rp_error *err;
    /* Of a put or update: made before the lock is taken, with borrowed columns. */
    rp_rollout_stored *item;
    bool needs_copy, is_copied; /* the columns are to be copied; they are */
    bool has_record;            /* `record` has the encoding of the operation, for the log */
    rp_buf record;
    /* Freed after the lock is released. */
    rp_rollout_group *removed;
    rp_rollout_entry *forgotten;
    rp_rollout_stored *replaced;
} rp_rollout_work;

#endif
