/* SPDX-License-Identifier: Apache-2.0 */
/* Extensions: callbacks that get events. An event reports an operation on one item of a table
 * (an insert, update, sample or delete), or a reset of the table.
 *
 * An atomic extension is called under the table's lock, before other threads can see the effect
 * of the operation. The extension must be fast, and it must access the table only through its
 * rp_table_view.
 *
 * A deferred extension is called after the operation, with no lock held. It gets the events in
 * order. The thread that runs it can be in any call to a table of the store, not necessarily in
 * the call that caused the events. A deferred extension is allowed to call any table. The
 * trajectory of an event stays valid until the extension returns, even if the item was deleted.
 * A call that runs deferred extensions returns only when no events are left, so a slow
 * extension delays callers. */
#ifndef REPRISE_EXTENSION_H
#define REPRISE_EXTENSION_H

#include "reprise/trajectory.h"
#include "reprise/wait.h"

RP_BEGIN_DECLS

typedef struct rp_table rp_table;

typedef enum rp_event_kind {
    RP_EVENT_INSERT = 0,
    RP_EVENT_UPDATE = 1, /* a priority was set */
    RP_EVENT_SAMPLE = 2,
    RP_EVENT_DELETE = 3, /* evicted, sampled max_times_sampled times, or deleted by key */
    RP_EVENT_RESET = 4,  /* all items were removed; the other fields of the event are not set */
} rp_event_kind;

typedef struct rp_event {
    rp_event_kind kind;
    int32_t times_sampled; /* at the time of the event */
    uint64_t key;
    double priority;           /* at the time of the event */
    rp_trajectory *trajectory; /* borrowed, valid during the callback */
} rp_event;

/* An atomic extension's access to its table. Valid during the callback. */
typedef struct rp_table_view rp_table_view;

RP_API int64_t rp_view_size(const rp_table_view *view);

/* Gets the priority of an item. Returns false if no item has this key. */
RP_API bool rp_view_priority(const rp_table_view *view, uint64_t key, double *priority);

/* Sets the priority of an item, without causing an event. Returns false if no item has this
 * key, or if the selectors refuse the priority. */
RP_API bool rp_view_update(rp_table_view *view, uint64_t key, double priority);

typedef struct rp_extension {
    const char *name; /* for error texts when the table is made; may be NULL */
    bool deferred;
    void *ctx;
    /* `view` is NULL for a deferred extension. */
    void (*on_events)(void *ctx, rp_table_view *view, const rp_event *events, size_t count);
    void (*free)(void *ctx); /* called once, when the table is freed; may be NULL */
} rp_extension;

/* Counts of the operations of a table. */
typedef struct rp_statistics {
    int64_t inserts, updates, samples, deletes, resets;
    int64_t deleted_unsampled; /* items that were deleted without ever being sampled */
    double priority_mean;      /* over inserts and updates */
    double priority_min, priority_max;
    double times_sampled_mean; /* over deleted items */
} rp_statistics;

/* Makes an atomic extension that counts operations. The caller must give it to a table
 * (rp_table_options.extensions), or free it with rp_extension_discard(). Errors:
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_statistics_extension(const rp_allocator *alloc,
                                                      rp_extension *out);

/* Reads the counts of a statistics extension, as one consistent set. Any thread may call this
 * function as long as the table exists. */
RP_API void rp_statistics_read(const rp_extension *extension, rp_statistics *out);

/* Makes an atomic extension that spreads the update of an item's priority to its neighbours
 * (Gruslys et al., 2017). The neighbours are the items of the same episode that were inserted
 * directly before and after the item. The priority of the k-th neighbour on either side (k = 1
 * .. radius) moves towards the new priority by the fraction decay^k of the difference. Errors:
 * RP_INVALID (unless 1 <= radius <= 64 and 0 < decay < 1), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_diffusion_extension(const rp_allocator *alloc, int32_t radius,
                                                     double decay, rp_extension *out,
                                                     rp_error *err);

/* Makes a deferred extension that inserts a copy of an item into another table, `target`, when
 * the item is sampled for the first time. The copy has the same key, priority and trajectory,
 * and times_sampled 1. The extension takes a reference to `target`. Each time the extension
 * runs, it waits at most `timeout_ms` for the rate limiter of `target`. It discards and counts
 * the copies that it cannot insert. Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_insert_on_sample_extension(const rp_allocator *alloc,
                                                            rp_table *target,
                                                            int64_t timeout_ms,
                                                            rp_extension *out, rp_error *err);

/* Reads how many copies an insert-on-sample extension has inserted (`copied`) and discarded
 * (`dropped`). Safe from any thread. */
RP_API void rp_insert_on_sample_read(const rp_extension *extension, int64_t *copied,
                                     int64_t *dropped);

/* Frees an extension that no table owns. */
RP_API void rp_extension_discard(rp_extension *extension);

RP_END_DECLS

#endif
