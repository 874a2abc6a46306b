/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a trajectory writer, which knows no client, only a sink:
 *
 *   trajectory_writer.c          birth and death, columns, configuring
 *   trajectory_writer_append.c   appending steps, what the history holds, episodes
 *   trajectory_writer_items.c    creating items
 *   trajectory_writer_send.c     compressing and sending in the background, waiting for it
 *   open_writers.c               the sink and the signatures of a client
 *
 * Three parties: the caller, on one thread at a time; the job, which the runtime runs on one of
 * its threads, never twice at once; the sink's threads, which say how items ended. What belongs
 * to whom stands at the fields. */
#ifndef RP_CLIENT_WRITER_TRAJECTORY_WRITER_H
#define RP_CLIENT_WRITER_TRAJECTORY_WRITER_H

#include <stdatomic.h>

#include "chunk/mould.h"
#include "chunk/trajectory.h"
#include "client/channel/runtime.h"
#include "client/sink/sink.h"
#include "client/writer/rows.h"
#include "reprise/trajectory_writer.h"
#include "util/mutex.h"
#include "util/rng.h"

/* Where a row of a column is. */
typedef struct rp_writer_cell {
    rp_rows *rows; /* see H */
    uint32_t row;
    int64_t step; /* counted from the last time the history was cleared */
} rp_writer_cell;

enum { RP_SPARE_BUILDERS = 4, RP_PUSH_ITEMS = 128 };

/* A column. Its history is a ring of cells: of the last `kept` of `cells` rows.
 *   H  The history holds one reference to each run of rows it has a cell of, and drops it with
 *      the cell of the last row, which is the last to go. The oldest cell is never one of open
 *      rows: a chunk is no longer than the history. Rows that have no row yet are the column's.
 */
struct rp_writer_column {
    uint32_t index;
    char *name; /* may be NULL */
    bool known; /* has had a value */
    bool configured;
    rp_spec spec; /* of a row, once known; `name` as above */
    rp_column_options options;
    uint64_t serial;   /* of the append that looked at it last */
    int64_t last_step; /* of its latest row; -1: none */
    rp_rows *open;     /* NULL: none. See H */
    uint64_t cells;    /* rows ever appended */
    size_t kept;       /* cells in the ring */
    size_t capacity;   /* of the ring: 0 or a power of two */
    rp_writer_cell *ring;
    rp_chunk_tuner tuner;        /* the job's */
    atomic_int_least32_t length; /* rows a chunk should have; relaxed: it is advice */
    rp_chunk_builder *own_spare; /* an empty one, the caller's; NULL: none */
    rp_chunk_mould mould;        /* of its chunks of one plain row, the caller's */
    /* guarded by the writer's lock */
    size_t spare_count;
    rp_chunk_builder *spares[RP_SPARE_BUILDERS]; /* empty ones, to be used again */
};

/* A table that items have been created for. */
typedef struct rp_writer_table {
    struct rp_writer_table *next;
    size_t size_bytes;
    rp_signature *signature; /* a reference; NULL: none, or not known */
    bool looked_up;          /* what is to be known is known */
    char name[];
} rp_writer_table;

/* An item that is created and not settled. One allocation: this, pieces, columns. */
typedef struct rp_outgoing_column {
    uint32_t piece_count;
    bool squeeze;
} rp_outgoing_column;

typedef struct rp_outgoing rp_outgoing;
struct rp_outgoing {
    rp_outgoing *next;
    uint64_t key;
    double priority;
    const rp_writer_table *table;
    rp_trajectory *trajectory; /* the job's, until the sink has it */
    bool has_read;             /* it has had one: its pieces' rows are only counted */
    size_t size_bytes;
    uint32_t piece_count, column_count;
    rp_outgoing_column *columns;
    rp_piece pieces[]; /* of all columns; a reference to the rows each */
};

/* Items by key: a table of pointers, each at the place that the low bits of its key name. For
 * that the set gives the keys out: their upper half is random and the lower counts up, but for
 * those whose place is taken. So items that follow each other stand next to each other. */
typedef struct rp_outgoing_set {
    rp_outgoing **places; /* 2^n; NULL: free */
    size_t capacity, count;
    uint32_t counter; /* of the last key */
} rp_outgoing_set;

typedef struct rp_outgoing_list {
    rp_outgoing *first, **last; /* `last` NULL stands for &first */
} rp_outgoing_list;

/* Says what signature items of a table must have: RP_OK with a reference, or NULL if any will
 * do; RP_NOT_FOUND; any other status: it cannot be known now. */
typedef rp_status rp_find_signature(void *ctx, const char *table, rp_wait wait,
                                    rp_signature **out, rp_error *err);

/* What makes a writer besides its public options. */
typedef struct rp_writer_parts {
    const rp_allocator *alloc;
    rp_runtime *runtime; /* a reference of the writer's from now on */
    uint64_t seed;
    rp_find_signature *find; /* NULL: nothing is checked */
    void *find_ctx;
    void (*find_free)(void *ctx); /* may be NULL; called when the writer is freed */
    size_t max_in_flight; /* complete and unsettled items; at the bound create_item waits. 0:
                             no such bound */
} rp_writer_parts;

struct rp_trajectory_writer {
    rp_allocator alloc;
    rp_trajectory_writer_options options;
    rp_writer_parts parts;
    uint64_t generation; /* of the runtime */
    rp_sink *sink;       /* set by attach */

    /* the caller's */
    rp_rng rng;
    uint64_t episode;
    int64_t base;  /* step 0 of the episode, counted as in the cells */
    int64_t steps; /* complete ones of the episode */
    bool open;
    bool is_over; /* nothing more is sent: rp_writer_send_deinit() */
    uint64_t serial;
    uint64_t created; /* items ever */
    size_t unpushed;  /* of them, that the caller gave the sink since the last push */
    rp_writer_column **columns;
    size_t column_capacity;
    rp_writer_table *tables;
    rp_decoder *decoder; /* NULL until needed */
    bool cancelled;      /* the caller's wait; guarded by mu */

    /* the job's; the caller's as well while the job is not busy, since nobody else has it run
     */
    rp_job job;
    rp_chunk_press press;
    rp_outgoing_list line; /* not sent yet, in order */
    rp_slice *slices;
    size_t slice_capacity;

    rp_mutex mu; /* rank 80 */
    rp_cond cv;  /* the caller waits here, nobody else */
    bool waiting RP_GUARDED_BY(mu);
    bool busy RP_GUARDED_BY(mu);       /* the job is submitted, or runs */
    bool kicked RP_GUARDED_BY(mu);     /* since it began to run */
    rp_rows *closed RP_GUARDED_BY(mu); /* to be compressed, oldest first */
    rp_rows **closed_last RP_GUARDED_BY(mu);
    rp_outgoing_list incoming RP_GUARDED_BY(mu); /* not yet seen by the job */
    rp_outgoing_set set RP_GUARDED_BY(mu);       /* all unsettled */
    size_t sent RP_GUARDED_BY(mu);               /* of those, with the sink */
    size_t bytes RP_GUARDED_BY(mu);              /* of the rows they hold */
    rp_error trouble RP_GUARDED_BY(mu);          /* what the job met; RP_OK: nothing */
    size_t refused RP_GUARDED_BY(mu);            /* since the last flush */
    rp_error refusal RP_GUARDED_BY(mu);          /* of the first of them */
};

/* Makes a writer without a sink: open one with the events of the second, then attach it. A
 * failure leaves `parts` to the caller. RP_INVALID, RP_NO_RESOURCE. Returns owned. */
RP_NODISCARD rp_status rp_trajectory_writer_open(const rp_writer_parts *parts,
                                                 const rp_trajectory_writer_options *options,
                                                 rp_trajectory_writer **out, rp_error *err);
rp_sink_events rp_trajectory_writer_events(rp_trajectory_writer *writer);
void rp_trajectory_writer_attach(rp_trajectory_writer *writer, rp_sink *sink); /* takes it */

/* What create_item is told. */
typedef struct rp_new_item {
    const char *table;
    double priority;
    const rp_item_column *columns;
    size_t column_count;
} rp_new_item;

/* The same as create_item; with a NULL `wait` the bounds on what is unsettled are ignored. */
RP_NODISCARD rp_status rp_writer_create(rp_trajectory_writer *w, const rp_new_item *item,
                                        const rp_wait *wait, uint64_t *key, rp_error *err);
/* Waits until one more item may be created. */
RP_NODISCARD rp_status rp_writer_make_room(rp_trajectory_writer *w, rp_wait wait,
                                           rp_error *err);
/* Closes its sink, and forgets what is not settled. Only free may be called afterwards. */
void rp_writer_stop(rp_trajectory_writer *w);
/* The second half of end_episode: waits for nothing. */
void rp_writer_begin_episode(rp_trajectory_writer *w, bool clear);

enum { RP_LABEL_BYTES = 96 };
/* Names a column in a message: "column 3 'action'". Returns `text`. */
const char *rp_writer_label(uint32_t index, const char *name, char text[RP_LABEL_BYTES]);

/* RP_PRECONDITION in the child of a fork. */
rp_status rp_writer_check_alive(const rp_trajectory_writer *w, rp_error *err);

/* The column of that number, made if there is none. RP_INVALID (the number), RP_NO_RESOURCE. */
rp_status rp_writer_get_column(rp_trajectory_writer *w, uint32_t index, const char *name,
                               rp_writer_column **out, rp_error *err);
/* NULL if there is none. */
static inline rp_writer_column *rp_writer_column_at(const rp_trajectory_writer *w,
                                                    uint32_t index)
{
    return index < w->column_capacity ? w->columns[index] : NULL;
}

/* The cell of a row; NULL if it is not in the history. Valid until the next append. */
const rp_writer_cell *rp_writer_cell_of(const rp_writer_column *column, uint64_t cell);

/* Closes the column's open rows, if there are any, and hands them to the job if they are
 * wanted. */
void rp_writer_close_rows(rp_trajectory_writer *w, rp_writer_column *column);
/* Closes the open rows that the first `items` items ever created need. */
void rp_writer_close_wanted(rp_trajectory_writer *w, uint64_t items);
/* Forgets all cells of a column. */
void rp_writer_clear_history(rp_trajectory_writer *w, rp_writer_column *column);

void rp_writer_send_init(rp_trajectory_writer *w);
/* Ends the job, closes the sink, frees all items. */
void rp_writer_send_deinit(rp_trajectory_writer *w);

/* Adds rows at the end of what the job has to compress; takes the reference. */
void rp_writer_queue_locked(rp_trajectory_writer *w, rp_rows *rows) RP_REQUIRES(w->mu);
/* Has the job run, if there is something to do for it. */
void rp_writer_kick(rp_trajectory_writer *w);
/* Whether an item that is complete would be the next to be sent, with nobody to send it. */
bool rp_writer_is_idle_locked(const rp_trajectory_writer *w) RP_REQUIRES(w->mu);
/* Sends an item on the caller's thread. It is complete, and the writer was idle when it was
 * counted as sent; it may be gone when this returns true. False: it is still to be sent. */
bool rp_writer_send_now(rp_trajectory_writer *w, rp_outgoing *item);
/* Has the sink send what waits there, if it is so much, on the caller's thread. */
void rp_writer_push(rp_trajectory_writer *w, size_t least);

/* Fewer than `max_items` items are unsettled and they hold fewer than `max_bytes`; or none. */
static inline bool rp_writer_is_room_locked(const rp_trajectory_writer *w, size_t max_items,
                                            size_t max_bytes) RP_REQUIRES(w->mu)
{
    return w->set.count == 0 || (w->set.count < max_items && w->bytes < max_bytes);
}

/* Waits until there is room in that sense. What waiting ends with, and RP_NO_RESOURCE if the
 * job ran out of memory. */
rp_status rp_writer_await(rp_trajectory_writer *w, size_t max_items, size_t max_bytes,
                          rp_wait wait, rp_error *err);

/* Makes room for one more item. False if there is no memory. */
bool rp_outgoing_set_reserve(rp_outgoing_set *set, const rp_allocator *alloc);
rp_outgoing *rp_outgoing_set_find(const rp_outgoing_set *set, uint64_t key);
/* Gives the item a key and adds it, in the room reserved. */
void rp_outgoing_set_add(rp_outgoing_set *set, rp_outgoing *item, uint64_t random);
void rp_outgoing_set_remove(rp_outgoing_set *set, const rp_outgoing *item);
void rp_outgoing_free(const rp_allocator *alloc, rp_outgoing *item); /* NULL is fine */

#endif
