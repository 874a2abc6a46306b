/* SPDX-License-Identifier: Apache-2.0 */
/* Rollouts: a buffer between producers, which generate text with a language model, and
 * consumers, which train the model on this text by reinforcement learning. docs/rollouts.md
 * describes the operations, and rollout_calls.h has the calls.
 *
 * The plural "rollouts" stands for one buffer, which has a name and holds groups. A group is a
 * number of items that belong together, such as the completions of one prompt. A group is
 * drawn, evicted and counted as a whole. An item has columns: named tensors of any length. Some
 * columns exist when a producer puts the item into its group (token ids); other columns are
 * added later (rewards, advantages).
 *
 * A consumer is a named reader, such as a trainer. It draws each group at least once. A group
 * is ready to be drawn when all its items have the columns that the consumer needs. A draw
 * leases its groups to the consumer for a time: no other draw of this consumer gets them. If
 * the consumer acknowledges the lease, it has consumed the groups. If the lease expires before
 * that, the consumer draws the groups again. A group that all consumers have consumed is
 * removed.
 *
 * The version counts the updates of the policy, which is the model that generates the items.
 * Each item has the first and the last version of the policy that generated it. The staleness
 * of a group is the current version minus the lowest first version of its items, at least 0.
 *
 * A producer can reserve a group for a time before it generates the items. The reserved group
 * counts against all limits. A group begins with its reservation. A group that was not reserved
 * begins with its first put. If the reservation expires, for example because the producer died,
 * the group is removed.
 *
 * Names are UTF-8 text of 1 to RP_ROLLOUT_NAME_BYTES bytes, without a zero byte. */
#ifndef REPRISE_ROLLOUTS_H
#define REPRISE_ROLLOUTS_H

#include "reprise/tensor.h"

RP_BEGIN_DECLS

enum {
    RP_ROLLOUT_NAME_BYTES = 255,      /* the most bytes of a name */
    RP_ROLLOUT_GROUP_SIZE = 4096,     /* the most items of a group */
    RP_ROLLOUT_COLUMNS = 256,         /* the most columns of an item */
    RP_ROLLOUT_ITEM_BYTES = 64 << 20, /* the most bytes of all columns of an item together. Also
                                         the largest number in the shape of a column */
    /* The most bytes of a group, as rp_rollout_info.bytes counts them. A response with one
     * group of this size has at most 64 MiB, the default message_bytes of a server. Clients
     * accept larger responses by default. */
    RP_ROLLOUT_GROUP_BYTES = 60 << 20,
    RP_ROLLOUT_CONSUMERS = 16,       /* the most consumers */
    RP_ROLLOUT_NEEDS = 64,           /* the most columns that one consumer can need */
    RP_ROLLOUT_MAX_GROUPS = 1 << 20, /* the largest max_groups */
    RP_ROLLOUT_DRAW_ITEMS = 1 << 16, /* the most items of a draw */
    RP_ROLLOUT_LEASES = 1 << 16,     /* the most leases at a time */
    /* The most cursors. A cursor is a byte string that is stored with the rollouts under a
     * name, such as the position of a data loader. */
    RP_ROLLOUT_CURSORS = 16,
    RP_ROLLOUT_CURSOR_BYTES = 64 << 10, /* the most bytes of one cursor */
    RP_ROLLOUT_REMEMBERED = 8192,       /* the most removed groups, and the most acknowledged
                                           leases, whose names or ids the rollouts remember */
    RP_ROLLOUT_STALENESS_BUCKETS = 17,  /* of a histogram: staleness 0, 1, ... 15, and 16 or
                                           more */
};

/* The largest version (the smallest is 0), and the longest time of a reservation or a lease in
 * nanoseconds (the shortest is 1). */
#define RP_ROLLOUT_MOST_VERSION ((int64_t)1 << 60)
#define RP_ROLLOUT_MOST_TTL_NS ((int64_t)1 << 60)
/* The largest max_bytes. */
#define RP_ROLLOUT_MOST_BYTES ((uint64_t)1 << 50)

/* How the option max_staleness bounds the staleness of groups. */
typedef enum rp_rollout_staleness {
    /* A group whose staleness exceeds max_staleness is dropped (removed as stale). If the group
     * is leased, it is dropped when its last lease ends, unless all consumers have acknowledged
     * it by then. A group that all consumers have acknowledged counts as acknowledged, not as
     * stale. */
    RP_ROLLOUT_DROP = 0,
    /* No group is dropped. groups_per_version keeps new groups from beginning too early. */
    RP_ROLLOUT_WAIT = 1,
} rp_rollout_staleness;

/* What an operation does if its new group would exceed max_groups, or if its new data would
 * exceed max_bytes. */
typedef enum rp_rollout_full {
    RP_ROLLOUT_FULL_WAIT = 0,  /* the operation waits */
    RP_ROLLOUT_FULL_EVICT = 1, /* the operation removes the oldest groups that are not leased.
                                  If that cannot make enough room, the operation removes none
                                  and waits */
} rp_rollout_full;

/* The order in which a consumer draws groups. */
typedef enum rp_rollout_order {
    RP_ROLLOUT_FIFO = 0,     /* first the group that became ready first */
    RP_ROLLOUT_LIFO = 1,     /* first the group that became ready last */
    RP_ROLLOUT_FRESHEST = 2, /* first the group with the smallest staleness; of groups with
                                equal staleness, the group that became ready first */
} rp_rollout_order;

/* A consumer. It draws only groups whose items all have the columns in `columns`. */
typedef struct rp_rollout_consumer {
    rp_string name; /* may be empty */
    const rp_string *columns;
    size_t column_count;
} rp_rollout_consumer;

/* rp_rollout_options_init() sets the defaults. Each comment names the default. */
typedef struct rp_rollout_options {
    uint32_t group_size;            /* number of items of a group; default 1 */
    int64_t max_staleness;          /* bound of the staleness of groups; default -1: no bound */
    rp_rollout_staleness staleness; /* default RP_ROLLOUT_DROP */
    /* Bounds how many groups can begin before the next version. If groups_per_version is not 0,
     * an operation that begins a group waits until
     *
     *   begun + 1 <= (max_staleness + version - first_version + 1) * groups_per_version,
     *
     * where `version` is the current version, and `begun` is the number of groups in the
     * buffer, reserved ones included, plus the number of groups that all consumers have
     * acknowledged. Groups that were dropped, evicted or aborted, or that expired, do not
     * count. The asynchronous trainers AReaL and SkyRL have the same rule, "accepted + running
     * <= (staleness + step) * batch", with steps counted from 1.
     *
     * If groups_per_version is not 0, max_staleness must be >= 0. With RP_ROLLOUT_WAIT and
     * max_staleness >= 0, groups_per_version must not be 0. Default: 0. */
    uint64_t groups_per_version;
    int64_t first_version; /* the version of new rollouts; cannot be changed later; default 0 */
    uint64_t max_groups;   /* the most groups, 1 to RP_ROLLOUT_MAX_GROUPS; default 65,536 */
    /* A bound on the memory of all groups, as rp_rollout_info.bytes counts it. A new group
     * begins only if all groups, including the new one, take at most 3/4 of max_bytes. The last
     * quarter is reserved for completing groups that have begun. A store bounds the sum of
     * max_bytes over all its rollouts (rp_store_options.max_bytes). Default: 1 GiB. */
    uint64_t max_bytes;
    rp_rollout_full full;   /* default RP_ROLLOUT_FULL_WAIT */
    rp_rollout_order order; /* default RP_ROLLOUT_FIFO */
    /* If consumer_count is 0, there is one consumer, with an empty name, and it needs no
     * column. */
    const rp_rollout_consumer *consumers;
    size_t consumer_count;
} rp_rollout_options;

RP_API void rp_rollout_options_init(rp_rollout_options *options);

/* A column of an item. RP_STRING is not supported: text is a column of uint8. */
typedef struct rp_rollout_column {
    rp_string name;
    rp_tensor tensor;
} rp_rollout_column;

/* An item. Its columns are sorted by name; names are compared as bytes. */
typedef struct rp_rollout_item {
    const rp_rollout_column *columns;
    size_t column_count;
    int64_t first_version, last_version;
} rp_rollout_item;

/* The state of a group: one that exists (RESERVED to LEASED), or one that was removed. */
typedef enum rp_rollout_fate {
    RP_ROLLOUT_UNKNOWN = 0, /* no such group, or it was removed so long ago that the rollouts do
                               not remember it (RP_ROLLOUT_REMEMBERED) */
    RP_ROLLOUT_RESERVED = 1,
    RP_ROLLOUT_PARTIAL = 2,  /* the group has some of its items */
    RP_ROLLOUT_COMPLETE = 3, /* the group has all its items, and is not leased */
    RP_ROLLOUT_LEASED = 4,
    RP_ROLLOUT_ACKNOWLEDGED = 5, /* removed: all consumers have acknowledged it */
    RP_ROLLOUT_STALE = 6,        /* removed: its staleness exceeded max_staleness */
    RP_ROLLOUT_EVICTED = 7,      /* removed to make room */
    RP_ROLLOUT_ABORTED = 8,      /* removed by an abort */
    RP_ROLLOUT_EXPIRED = 9, /* removed: its reservation expired before the group was complete */
} rp_rollout_fate;

/* Returns the name of a fate, such as "leased", or "unknown" for any other number. Static. */
RP_API const char *rp_rollout_fate_name(rp_rollout_fate fate);

/* Why an operation has to wait: the limit that it would exceed. Each comment first names the
 * option or constant with the limit. After the colon it names what `have`, `need` and `bound`
 * of rp_rollout_waiting count. */
typedef enum rp_rollout_limit {
    RP_ROLLOUT_NO_LIMIT = 0,
    RP_ROLLOUT_BY_VERSION = 1, /* groups_per_version: groups that have begun */
    RP_ROLLOUT_BY_GROUPS = 2,  /* max_groups: groups in the buffer */
    RP_ROLLOUT_BY_BYTES = 3,   /* max_bytes: bytes */
    RP_ROLLOUT_BY_READY = 4,   /* min_groups of a draw: groups that are ready. The draw waits
                                  until `bound` groups are ready */
    RP_ROLLOUT_BY_LEASES = 5,  /* RP_ROLLOUT_LEASES: leases */
} rp_rollout_limit;

typedef struct rp_rollout_waiting {
    rp_rollout_limit limit;
    uint64_t have, need, bound; /* the number now, the number to be added, the limit */
    int64_t version;            /* the current version */
    int64_t needs_version;      /* for RP_ROLLOUT_BY_VERSION: the version from which on the
                                   group can begin; else `version` */
} rp_rollout_waiting;

typedef struct rp_rollout_consumer_info {
    char name[RP_ROLLOUT_NAME_BYTES + 1];
    uint64_t waiting; /* groups that the consumer cannot draw yet */
    uint64_t ready;   /* groups that the consumer can draw */
    uint64_t leased;  /* groups that are leased to the consumer */
    uint64_t done;    /* groups still in the buffer that the consumer has acknowledged */
    /* Numbers of groups since the rollouts were created. `drawn` counts each draw of a group,
     * even if its lease was released or expired, or if no client received the group. */
    uint64_t drawn, acknowledged;
} rp_rollout_consumer_info;

/* A copy of the state of rollouts. `acknowledged` and all counts after it are numbers since the
 * rollouts were created. */
typedef struct rp_rollout_info {
    int64_t version;
    uint64_t groups; /* the sum of the next four fields */
    uint64_t reserved, partial, complete, leased;
    uint64_t items, leases;
    /* The memory of all groups. A group counts 1,024 bytes, plus 64 for each consumer and 16
     * for each of its group_size items. An item that was put counts 128 bytes more. A column
     * counts 256, plus the bytes of its name and of its tensor. */
    uint64_t bytes;
    uint64_t begun;     /* groups + acknowledged, the number that groups_per_version bounds */
    uint64_t may_begin; /* the present upper bound of `begun`; UINT64_MAX: none */
    uint64_t acknowledged;            /* groups that all consumers have acknowledged */
    uint64_t stale, evicted, aborted; /* groups */
    uint64_t expired_reservations, expired_leases;
    /* Number of draws of groups by the staleness that the group had when it was drawn. `drawn`
     * counts the same draws. */
    uint64_t staleness[RP_ROLLOUT_STALENESS_BUCKETS];
    size_t consumer_count;
    rp_rollout_consumer_info consumers[RP_ROLLOUT_CONSUMERS];
} rp_rollout_info;

/* A ragged batch: one column of several items, one after another.
 *
 *   values    the rows of item 0, the rows of item 1, ...
 *   offsets   count + 1 numbers: item i has the rows offsets[i] to offsets[i + 1] - 1
 *
 * The first dimension of a column is its number of rows. A scalar is one row. */
typedef struct rp_rollout_ragged {
    rp_dtype dtype;
    rp_shape shape; /* shape of the values: the number of rows, then the shape of a row */
    size_t count;   /* number of items */
    size_t bytes;   /* bytes of the values */
} rp_rollout_ragged;

/* Computes the dtype, the shape and the size of a batch: the column `name` of `count` items.
 * Errors: RP_NOT_FOUND (an item has no such column), RP_INVALID (the dtypes or the shapes of
 * the rows of two items differ; the batch is too large). */
RP_API RP_NODISCARD rp_status rp_rollout_ragged_measure(const rp_rollout_item *const *items,
                                                        size_t count, rp_string name,
                                                        rp_rollout_ragged *out, rp_error *err);

/* Writes the batch: ragged->bytes bytes of values and ragged->count + 1 offsets. `name` and
 * `items` must be those with which `ragged` was measured. */
RP_API void rp_rollout_ragged_fill(const rp_rollout_item *const *items, rp_string name,
                                   const rp_rollout_ragged *ragged, void *values,
                                   int64_t *offsets);

/* Divides the `count` items of a ragged batch, in their order, into smaller batches. `offsets`
 * are the offsets of the ragged batch. Each smaller batch takes as many of the next items as
 * have at most `budget` rows together. An item that alone has more rows becomes a batch of its
 * own. Writes the number of the first item of each batch to `first`, and then `count`: `first`
 * needs room for up to count + 1 numbers. Returns the number of batches. */
RP_API size_t rp_rollout_pack(const int64_t *offsets, size_t count, int64_t budget,
                              size_t *first);

RP_END_DECLS

#endif
