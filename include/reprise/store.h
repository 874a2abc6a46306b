/* SPDX-License-Identifier: Apache-2.0 */
/* The store: a set of tables that share one byte budget, one seed, one clock and one allocator.
 *
 * A table can be dropped while other threads use it. If a program drops tables, its other
 * threads must hold references to them (rp_store_find_table(), rp_table_ref()). If a program
 * drops no tables, borrowed pointers to tables are valid as long as the store. */
#ifndef REPRISE_STORE_H
#define REPRISE_STORE_H

#include "reprise/table.h"

RP_BEGIN_DECLS

typedef struct rp_store rp_store;

/* What happens to an insert that would make all tables together exceed `max_bytes`. */
typedef enum rp_budget_policy {
    RP_BUDGET_EVICT = 0,  /* the remover of its table evicts items first */
    RP_BUDGET_BLOCK = 1,  /* the insert waits until there is room */
    RP_BUDGET_REJECT = 2, /* the insert fails with RP_NO_RESOURCE */
} rp_budget_policy;

/* Zero-initialise it; every field has a default. */
typedef struct rp_store_options {
    const rp_allocator *alloc; /* NULL: rp_allocator_default(). The struct is copied */
    /* A limit on the memory of all tables, 0 for none. It counts rp_trajectory_cost() of the
     * items, each chunk once, and for each table the index memory of removed items beyond 128
     * KiB. Rollouts (rollouts.h) may take a third of max_bytes in addition. If max_bytes is 0,
     * they may take 8 GiB, or half of the machine's memory if that is less. */
    uint64_t max_bytes;
    rp_budget_policy policy;
    /* The seed of all random choices. Two stores with the same seed and the same sequence of
     * calls give bit-identical results. 0: from the system. */
    uint64_t seed;
    /* The wall clock in nanoseconds, for rp_sample.inserted_at_ns. NULL: the system's. The
     * function is called on any thread, also under a table's lock: it must not call the store
     * or its tables. */
    int64_t (*wall_ns)(void *ctx);
    void *wall_ctx;
} rp_store_options;

/* Makes an empty store. `options` may be NULL. Returns owned.
 * RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_store_new(const rp_store_options *options, rp_store **out,
                                           rp_error *err);

/* Closes the store if it is open, drops its tables and frees it. The caller must ensure that no
 * call is in progress on the store or on a borrowed table, and that no writer exists. Held
 * references to tables and samples stay valid. The last of them frees the remaining memory with
 * the store's allocator. */
RP_API void rp_store_free(rp_store *store); /* NULL is fine */

/* Closes every table: all waits end with RP_CANCELLED, as do later calls. */
RP_API void rp_store_close(rp_store *store);

/* Makes a table. `*out` (`out` may be NULL) is borrowed, valid until the table is dropped or
 * the store freed. The table takes over the extensions. If the call fails, no table is made,
 * `*out` is not set, and the caller still owns the extensions. There is one exception: if the
 * journal fails, the call returns its status, but the table exists and `*out` is set.
 * RP_INVALID (the text names the option, the value and the bound; or the name is not UTF-8),
 * RP_EXISTS, RP_PRECONDITION (store closed), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_store_add_table(rp_store *store,
                                                 const rp_table_options *options,
                                                 rp_table **out, rp_error *err);

/* Returns the table with this name, or NULL. `name.data` may be NULL. The caller owns a
 * reference: drop it with rp_table_unref(). */
RP_API rp_table *rp_store_find_table(rp_store *store, rp_string name);

/* Writes up to `capacity` tables to `out`, in the order in which they were made, and returns
 * the number of all tables. The caller owns a reference to each table in `out`: drop it with
 * rp_table_unref(). */
RP_API size_t rp_store_find_tables(rp_store *store, rp_table **out, size_t capacity);

/* Drops a table: all its waits end with RP_CANCELLED, as do later calls, and its items are
 * removed, so that their bytes no longer count against `max_bytes`. The name is free for a new
 * table even before this call returns. The memory of the table is freed with the last reference
 * to it. Extensions get no events for the removed items.
 * RP_NOT_FOUND, RP_PRECONDITION (store closed). */
RP_API RP_NODISCARD rp_status rp_store_drop_table(rp_store *store, rp_string name,
                                                  rp_error *err);

/* Trims every table that has a soft limit and more than max_size items, as rp_table_trim()
 * does. Unlike that call, it does not wait until the journal is on disk (durable.h), so a slow
 * disk does not block the calling thread. */
RP_API void rp_store_trim(rp_store *store);

typedef struct rp_store_info {
    uint64_t max_bytes;
    rp_budget_policy policy;
    uint64_t bytes; /* in use, as max_bytes counts them */
    /* Memory of the process that is lost to fragmentation. It counts against max_bytes, or
     * against the memory of a disk tier. 0 unless a server measures it
     * (rp_server_options.owns_process). */
    uint64_t lost_bytes;
    size_t table_count;
    uint64_t seed; /* the seed in use, to repeat a run in another store */
} rp_store_info;

RP_API void rp_store_get_info(rp_store *store, rp_store_info *out);

RP_END_DECLS

#endif
