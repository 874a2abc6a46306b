/* SPDX-License-Identifier: Apache-2.0 */
/* The private parts of struct rp_rollouts, a rollout buffer (rollouts.h), for
 *
 *   rollouts_apply.c   creation, the dispatch of operations, copies for readers
 *   rollouts_groups.c  groups, their names, the queues of groups
 *   rollouts_room.c    limits, eviction, why an operation waits
 *   rollouts_put.c     reserve, abort, put, update
 *   rollouts_lease.c   draw, ack, release, renew, expire
 *   rollouts_options.c advance, configure, cursors
 *   rollouts_check.c   the checker
 *   rollouts_wait.c    waiting
 *   rollouts_parked.c  the list of waiting operations
 *   rollouts_image.c   images; rollouts_load.c loads them
 *
 * An entry is the name of a group, with the group or, after its removal, the reason of the
 * removal. A turn is the state of one group for one consumer: not ready, ready to draw, leased,
 * or acknowledged. A group is ready for a consumer when the group has all its items and the
 * items have all columns that the consumer needs. Each consumer has a queue of the groups that
 * it can draw. Four heaps order other objects: `ages` groups by their oldest version, `oldest`
 * groups by their number, `times` groups by the end of their reservation, and lease_times
 * leases by their end.
 *
 * Invariants, whenever mu is free:
 *
 *   G1  the map contains each entry under its name. An entry has a group, or it is in the list
 *       of removed groups, which has at most RP_ROLLOUT_REMEMBERED entries, oldest first;
 *   G2  groups are in a list (`first`, `last`) in the order of their numbers, which is the
 *       order in which they began. group_count is the number of groups, and counts[state] the
 *       number of groups in a state;
 *   G3  a group has 0 to group_size items; item_count is their number. first_version and
 *       last_version of a group are the oldest and the newest version of its items. `bytes` of
 *       a group is what rp_rollout_info.bytes counts for it. The buffer's `bytes` is the sum
 *       over all groups, and leased_bytes the sum over the leased groups;
 *   G4  a group is in `times` exactly if it has a reservation. Such a group is not complete;
 *   G5  `missing` of a turn is the number of missing items of the group, plus, over all
 *       group_size items, the number of columns that the consumer needs and the item lacks;
 *   G6  a turn is in its consumer's queue exactly if `missing` is 0 and the consumer neither
 *       leases the group nor has acknowledged it. ready_number is not 0 exactly if `missing` is
 *       0, and no ready_number is used twice;
 *   G7  a group is in `oldest` exactly if it is not leased, and in `ages` exactly if it is not
 *       leased and has an item;
 *   G8  leases are in ascending order of their ids, and each is in lease_times. A lease
 *       contains exactly the groups whose turn for the lease's consumer has the lease's id;
 *   G9  has_stale is set exactly if the options drop stale groups and the staleness of a group
 *       in `ages` exceeds max_staleness. While has_stale is set, operations that could see a
 *       stale group are not executed;
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

/* The name of a group, with the group or the reason of its removal. */
typedef struct rp_rollout_entry rp_rollout_entry;
struct rp_rollout_entry {
    rp_rollout_name *name;
    uint32_t tag, slot; /* the entry's tag and index in the map */
    rp_rollout_group *group;
    rp_rollout_fate fate;   /* if `group` is NULL: why the group was removed */
    rp_rollout_entry *next; /* in the list of removed groups */
    rp_rollout_entry *prev;
};

/* The state of one group for one consumer. */
typedef struct rp_rollout_turn {
    rp_rollout_node node;  /* in the consumer's queue */
    uint64_t ready_number; /* number in the order in which groups became ready */
    uint64_t lease;        /* id of the consumer's lease of the group; 0: none */
    uint32_t missing;      /* missing items and columns (invariant G5) */
    bool is_done;          /* the consumer has acknowledged the group */
} rp_rollout_turn;

struct rp_rollout_group {
    rp_rollout_entry *entry;
    uint64_t number;
    rp_rollout_group *prev, *next; /* the list of invariant G2; `next` also links removed groups
                                      until they are freed */
    rp_rollout_node age;           /* in `ages`; key: first_version */
    rp_rollout_node turn;          /* in `oldest`; key: number */
    rp_rollout_node time;          /* in `times`; key: end of the reservation */
    int64_t ttl_ns;                /* time to live of the reservation; 0: no reservation */
    int64_t first_version, last_version;
    uint64_t bytes;
    uint32_t item_count, lease_count, done_count;
    uint32_t size, consumer_count;
    uint64_t cut; /* number of the last cut that has copied the group. A cut is an image that is
                     being made (rollouts_image.h) */
    rp_rollout_stored **items; /* by index; NULL: not put yet */
    rp_rollout_turn turns[]; /* one per consumer; the array `items` follows in the same block */
};

typedef struct rp_rollout_lease {
    rp_rollout_node time; /* must be first; key: end of the lease */
    uint64_t id;
    size_t consumer;            /* index of the consumer */
    size_t count, capacity;     /* of `groups` */
    rp_rollout_group *groups[]; /* in the order in which they were drawn */
} rp_rollout_lease;

/* A column that some consumers need. */
typedef struct rp_rollout_need {
    rp_string name;
    uint32_t consumers; /* bit i is set if consumer i needs the column */
} rp_rollout_need;

/* The queue of a consumer. */
typedef struct rp_rollout_queue {
    rp_rollout_heap ready;                      /* groups that the consumer can draw */
    uint64_t leased, done, drawn, acknowledged; /* counts as in rp_rollout_consumer_info */
} rp_rollout_queue;

typedef struct rp_rollout_cursor {
    rp_rollout_name *name;
    void *data;
    size_t size;
} rp_rollout_cursor;

/* The data that the buffers of a set (rollout_set.h) share. */
typedef struct rp_rollout_common {
    rp_mutex mu;                                  /* rank RP_RANK_ROLLOUT_COMMON */
    uint64_t bytes, most_bytes RP_GUARDED_BY(mu); /* the sum of all max_bytes, and its bound */
    atomic_uint_fast64_t image_bytes; /* upper bound on the bytes of all buffers' images */
    void (*watch)(void *ctx, rp_rollouts *rollouts); /* set by rp_rollout_set_set_watch() */
    void *ctx;
} rp_rollout_common;

enum {
    RP_ROLLOUT_STATES = RP_ROLLOUT_LEASED + 1,
    RP_ROLLOUT_NUMBERS = 11, /* counters in an image */
};

struct rp_rollouts {
    rp_refcount refs;
    rp_allocator alloc;
    rp_rollout_name *name;
    uint64_t seed;
    rp_mutex mu;                                   /* rank RP_RANK_ROLLOUTS; guards all below */
    rp_rollout_sleeper *sleepers;                  /* one for each thread that waits */
    rp_rollout_parked *first_parked, *last_parked; /* operations that wait */
    bool is_closed;
    rp_rollout_log *log;
    rp_rollout_common *common; /* NULL: the buffer is in no set */
    uint64_t lsn;              /* of the last change or of the creation; 0 without a log */
    uint64_t image_bytes;      /* this buffer's part of common->image_bytes */

    rp_rollout_options *options; /* a copy, with at least one consumer */
    rp_rollout_need *needs;      /* ordered by name */
    size_t need_count;
    rp_rollout_queue queues[RP_ROLLOUT_CONSUMERS];

    bool has_stale;             /* invariant G9 */
    struct rp_rollout_cut *cut; /* the cut that still copies groups, or NULL if there is none */
    uint64_t cut_count;         /* number of cuts begun so far */
    int64_t now_ns;             /* time of the last change; part of images */
    int64_t version;            /* of the policy */
    uint64_t next_number, next_ready, next_lease; /* the next numbers; they begin with 1 */

    rp_map map;
    rp_rollout_entry **entries; /* by slot; NULL: free */
    uint32_t *free_slots; /* stack of the free slots, with room for slot_capacity of them */
    size_t slot_count, slot_capacity, free_count;
    rp_rollout_entry *gone_first, *gone_last; /* list of removed groups */
    size_t gone_count;

    rp_rollout_group *first, *last;
    uint64_t group_count, item_count, bytes, leased_bytes;
    uint64_t counts[RP_ROLLOUT_STATES]; /* by rp_rollout_fate */
    rp_rollout_heap ages, oldest, times, lease_times;
    rp_rollout_lease **leases;
    size_t lease_count, lease_capacity;
    uint64_t acked[RP_ROLLOUT_REMEMBERED]; /* ring of the latest acknowledged leases */
    size_t acked_count, acked_next;

    uint64_t acknowledged, stale, evicted, aborted, expired_reservations, expired_leases;
    uint64_t staleness[RP_ROLLOUT_STALENESS_BUCKETS];

    rp_rollout_cursor cursors[RP_ROLLOUT_CURSORS];
    size_t cursor_count;
};

/* An operation that is being executed. */
typedef struct rp_rollout_work {
    rp_rollouts *r;
    const rp_rollout_op *op;
    rp_rollout_result *result;
    rp_error *err;
    /* The item of a put or update. Made before the lock is acquired. Borrows the caller's
     * columns until they are copied. */
    rp_rollout_stored *item;
    bool needs_copy, is_copied; /* item's columns must be copied; they have been copied */
    bool has_record;            /* `record` is the encoding of the operation, for the log */
    rp_buf record;
    /* Objects to free after the lock is released. */
    rp_rollout_group *removed;
    rp_rollout_entry *forgotten;
    rp_rollout_stored *replaced;
} rp_rollout_work;

#endif
