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
 *   G9  with RP_ROLLOUT_DROP, no group in `ages` is staler than max_staleness;
 *   G10 a group that every consumer has acknowledged is removed. */
#ifndef RP_ROLLOUTS_ROLLOUTS_INSIDE_H
#define RP_ROLLOUTS_ROLLOUTS_INSIDE_H

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
    uint64_t lsn;              /* of the last operation */

    rp_rollout_options *options; /* a copy, with at least one consumer */
    rp_rollout_need *needs;      /* in the order of their names */
    size_t need_count;
    rp_rollout_queue queues[RP_ROLLOUT_CONSUMERS];

    int64_t now_ns, version;
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
    int64_t now_ns;
    rp_rollout_stored *item; /* made before the lock is taken; of a put or update */
    /* Freed after the lock is released. */
    rp_rollout_group *removed;
    rp_rollout_entry *forgotten;
    rp_rollout_stored *replaced;
} rp_rollout_work;

/* rollouts_groups.c */

rp_rollout_entry *rp_rollout_find(const rp_rollouts *r, rp_string name) RP_REQUIRES(r->mu);

/* True if memory for one more group, one more entry and one more lease is there: a group can
 * then begin without a failure. */
bool rp_rollout_reserve(rp_rollouts *r) RP_REQUIRES(r->mu);

/* Makes an entry without a group, or a group without items, which are in no list. NULL if there
 * is no memory. The free functions accept NULL. */
rp_rollout_entry *rp_rollout_entry_new(const rp_rollouts *r, rp_string name);
void rp_rollout_entry_free(rp_rollouts *r, rp_rollout_entry *entry);
rp_rollout_group *rp_rollout_group_new(const rp_rollouts *r);
void rp_rollout_group_free(rp_rollouts *r, rp_rollout_group *group);
uint64_t rp_rollout_group_cost(const rp_rollouts *r);

/* Adds an entry to the map. */
void rp_rollout_entry_add(rp_rollouts *r, rp_rollout_entry *entry) RP_REQUIRES(r->mu);
/* Adds a group with the next number to the entry, which has none. */
void rp_rollout_begin(rp_rollouts *r, rp_rollout_entry *entry, rp_rollout_group *group)
    RP_REQUIRES(r->mu);
/* Makes an entry without a group one of the removed ones; forgets the oldest of them. */
void rp_rollout_retire(rp_rollout_work *w, rp_rollout_entry *entry, rp_rollout_fate fate)
    RP_REQUIRES(w->r->mu);
/* Takes an entry out of the removed ones. */
void rp_rollout_recall(rp_rollouts *r, rp_rollout_entry *entry) RP_REQUIRES(r->mu);
/* Removes a group that no consumer leases. */
void rp_rollout_remove(rp_rollout_work *w, rp_rollout_group *group, rp_rollout_fate fate)
    RP_REQUIRES(w->r->mu);

/* Sets the reservation of a group; ttl_ns 0: ends it. */
void rp_rollout_set_time(rp_rollouts *r, rp_rollout_group *group, int64_t ttl_ns,
                         int64_t until_ns) RP_REQUIRES(r->mu);
/* Sets an item of a group: a new one, or one with more columns. Takes the reference, and
 * returns the old item. */
rp_rollout_stored *rp_rollout_set_item(rp_rollouts *r, rp_rollout_group *group, uint32_t index,
                                       rp_rollout_stored *item) RP_REQUIRES(r->mu);
/* Gives a number to each turn for which nothing is missing and adds it to its queue. Returns
 * true if there is one. */
bool rp_rollout_make_ready(rp_rollouts *r, rp_rollout_group *group) RP_REQUIRES(r->mu);
/* Adds a turn to its queue. */
void rp_rollout_enqueue(rp_rollouts *r, rp_rollout_group *group, size_t consumer)
    RP_REQUIRES(r->mu);
/* Sets the keys of all queues, for another order. */
void rp_rollout_reorder(rp_rollouts *r) RP_REQUIRES(r->mu);
/* Adds 1 to or subtracts 1 from the leases of a group. */
void rp_rollout_lease_begins(rp_rollouts *r, rp_rollout_group *group) RP_REQUIRES(r->mu);
void rp_rollout_lease_ends(rp_rollouts *r, rp_rollout_group *group) RP_REQUIRES(r->mu);

rp_rollout_fate rp_rollout_state(const rp_rollout_group *group);
int64_t rp_rollout_staleness_of(const rp_rollouts *r, int64_t first_version) RP_REQUIRES(r->mu);
/* True if RP_ROLLOUT_DROP drops a group with this first version. */
bool rp_rollout_is_stale(const rp_rollouts *r, int64_t first_version) RP_REQUIRES(r->mu);
/* Drops all stale groups. */
void rp_rollout_drop_stale(rp_rollout_work *w) RP_REQUIRES(w->r->mu);

static inline rp_rollout_group *rp_rollout_group_of_turn(rp_rollout_node *node)
{
    return (rp_rollout_group *)(void *)((char *)node - offsetof(rp_rollout_group, turn));
}

/* rollouts_room.c */

/* What an operation needs. */
typedef struct rp_rollout_room {
    bool begins;                   /* a group */
    uint64_t bytes;                /* more than now; 0: none, or fewer */
    const rp_rollout_group *group; /* it changes this one, which is not evicted; NULL: none */
} rp_rollout_room;

/* The bound of the limiter. UINT64_MAX: none. */
uint64_t rp_rollout_may_begin(const rp_rollouts *r) RP_REQUIRES(r->mu);
/* RP_OK, RP_DEADLINE (with w->result->waiting), RP_NO_RESOURCE. Changes nothing. */
RP_NODISCARD rp_status rp_rollout_check_room(rp_rollout_work *w, const rp_rollout_room *room)
    RP_REQUIRES(w->r->mu);
/* Evicts what has to be evicted, after rp_rollout_check_room() has returned RP_OK. */
void rp_rollout_make_room(rp_rollout_work *w, const rp_rollout_room *room)
    RP_REQUIRES(w->r->mu);
/* Sets w->result->waiting and the error. Returns RP_DEADLINE. */
rp_status rp_rollout_must_wait(rp_rollout_work *w, rp_rollout_waiting waiting)
    RP_REQUIRES(w->r->mu);

/* The operations; each returns the status of the call. */
RP_NODISCARD rp_status rp_rollout_do_reserve(rp_rollout_work *w) RP_REQUIRES(w->r->mu);
RP_NODISCARD rp_status rp_rollout_do_abort(rp_rollout_work *w) RP_REQUIRES(w->r->mu);
RP_NODISCARD rp_status rp_rollout_do_put(rp_rollout_work *w) RP_REQUIRES(w->r->mu);
RP_NODISCARD rp_status rp_rollout_do_update(rp_rollout_work *w) RP_REQUIRES(w->r->mu);
RP_NODISCARD rp_status rp_rollout_do_advance(rp_rollout_work *w) RP_REQUIRES(w->r->mu);
RP_NODISCARD rp_status rp_rollout_do_draw(rp_rollout_work *w) RP_REQUIRES(w->r->mu);
RP_NODISCARD rp_status rp_rollout_do_ack(rp_rollout_work *w) RP_REQUIRES(w->r->mu);
RP_NODISCARD rp_status rp_rollout_do_release(rp_rollout_work *w) RP_REQUIRES(w->r->mu);
RP_NODISCARD rp_status rp_rollout_do_renew(rp_rollout_work *w) RP_REQUIRES(w->r->mu);
RP_NODISCARD rp_status rp_rollout_do_expire(rp_rollout_work *w) RP_REQUIRES(w->r->mu);
RP_NODISCARD rp_status rp_rollout_do_cursor(rp_rollout_work *w) RP_REQUIRES(w->r->mu);
RP_NODISCARD rp_status rp_rollout_do_configure(rp_rollout_work *w) RP_REQUIRES(w->r->mu);

/* rollouts_options.c: makes the table of needed columns. False if there is no memory. */
bool rp_rollout_needs_new(const rp_allocator *alloc, const rp_rollout_options *options,
                          rp_rollout_need **out, size_t *count);
void rp_rollout_needs_free(const rp_allocator *alloc, rp_rollout_need *needs, size_t count);
/* The consumers that need a column, as bits. */
uint32_t rp_rollout_needed_by(const rp_rollouts *r, rp_string column) RP_REQUIRES(r->mu);

/* rollouts_lease.c */

/* Adds a lease that has its groups, which are in no queue of its consumer, and its time. Its id
 * is above all others. False, with nothing changed, if there is no memory. */
RP_NODISCARD bool rp_rollout_lease_add(rp_rollouts *r, rp_rollout_lease *lease)
    RP_REQUIRES(r->mu);
rp_rollout_lease *rp_rollout_lease_new(const rp_rollouts *r, size_t capacity);
void rp_rollout_lease_free(rp_rollouts *r, rp_rollout_lease *lease); /* NULL is fine */
/* Adds a group to a batch that has room, with references to its name and its items. */
void rp_rollout_batch_add(rp_rollout_batch *batch, rp_rollout_group *group);

/* Sets a cursor; the data is not empty. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_set_cursor(rp_rollouts *r, rp_string name, rp_bytes data,
                                             rp_error *err) RP_REQUIRES(r->mu);
void rp_rollout_cursors_free(rp_rollouts *r);

/* rollouts_apply.c: like rp_rollouts_apply() for an operation that was checked, with the lock held.
 */
RP_NODISCARD rp_status rp_rollout_execute(rp_rollout_work *w) RP_REQUIRES(w->r->mu);
/* Frees what an operation has left, without the lock. */
void rp_rollout_work_end(rp_rollout_work *w);
/* Makes what is needed before the lock is taken. RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_work_begin(rp_rollout_work *w, rp_rollouts *r,
                                             const rp_rollout_op *op, rp_rollout_result *result,
                                             rp_error *err);

/* rollouts_wait.c: wakes the threads that wait. */
void rp_rollout_wake(rp_rollouts *r) RP_REQUIRES(r->mu);

/* rollouts_check.c: true if all invariants hold. */
bool rp_rollout_is_valid(const rp_rollouts *r) RP_REQUIRES(r->mu);

#endif
