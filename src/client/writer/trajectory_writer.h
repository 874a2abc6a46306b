/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a trajectory writer. A writer knows its sink, but no client:
 *
 *   trajectory_writer.c          create and free, columns, configuration
 *   trajectory_writer_append.c   append steps, history, episodes
 *   trajectory_writer_items.c    create items
 *   trajectory_writer_send.c     compress and send in the background
 *   trajectory_writer_wait.c     wait for confirmations
 *   trajectory_writer_group.c    hold complete items back until there is a group of them
 *   open_writers.c               connects a writer to the sink and signatures of a client
 *
 * A writer is used by the caller's thread, by its job, which runs on one worker of the runtime
 * at a time, and by threads of the sink, which settle items. The comments of the fields say
 * which of these use them. */
#ifndef RP_CLIENT_WRITER_TRAJECTORY_WRITER_H
#define RP_CLIENT_WRITER_TRAJECTORY_WRITER_H

#include <stdatomic.h>

#include "chunk/trajectory.h"
#include "client/channel/runtime.h"
#include "client/sink/sink.h"
#include "client/writer/codec_trial.h"
#include "client/writer/rows.h"
#include "reprise/trajectory_writer.h"
#include "util/mutex.h"
#include "util/rng.h"

/* A row in the history of a column. */
typedef struct rp_writer_cell {
    rp_rows *rows; /* see H */
    uint32_t row;
    int64_t step; /* counted from the last time the history was cleared */
} rp_writer_cell;

enum { RP_SPARE_BUILDERS = 4, RP_PUSH_ITEMS = 128 };

/* A column. Its history is a ring of cells, for the last `kept` of `cells` rows.
 *   H  The history holds one reference to each rp_rows of which it has a cell, and drops the
 *      reference with the cell of the last row. A cell that is dropped is never in open rows,
 *      because a chunk is no longer than the history. While open rows are empty, `open` holds
 *      the reference to them.
 *   H2 kept <= cells, kept <= capacity, kept <= options.history. */
struct rp_writer_column {
    uint32_t index;
    char *name; /* may be NULL */
    bool known; /* has had a value */
    bool configured;
    rp_spec spec; /* of a row, once known; `name` as above */
    rp_column_options options;
    uint64_t serial;   /* of the last append that had a value for this column */
    int64_t last_step; /* of its latest row; -1: none */
    rp_rows *open;     /* NULL: none. See H */
    uint64_t cells;    /* rows ever appended */
    size_t kept;       /* cells in the ring */
    size_t capacity;   /* of the ring: 0 or a power of two */
    rp_writer_cell *ring;
    rp_chunk_tuner tuner;        /* used by the job only */
    atomic_int_least32_t length; /* rows of the next chunks; relaxed: an old value is fine */
    rp_chunk_builder *own_spare; /* empty, or NULL; used by the caller only */
    rp_chunk_template template; /* of chunks of one uncompressed row; used by the caller only */
    rp_codec_trial trial; /* asked by the caller if rp_writer_is_single(), else by the job */
    /* guarded by the writer's lock */
    size_t spare_count;
    rp_chunk_builder *spares[RP_SPARE_BUILDERS]; /* empty */
};

/* A table that items have been created for. */
typedef struct rp_writer_table {
    struct rp_writer_table *next;
    size_t size_bytes;
    rp_signature *signature; /* a reference; NULL: none, or not known */
    bool looked_up;          /* `signature` is known */
    char name[];
} rp_writer_table;

/* An item that is created and not settled. One allocation: rp_outgoing, pieces, columns. */
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
    rp_trajectory *trajectory; /* set by the job, taken by the sink */
    bool has_read;             /* its trajectory is built: `pieces` no longer read (rows.h) */
    size_t size_bytes;
    uint32_t piece_count, column_count;
    rp_outgoing_column *columns;
    rp_piece pieces[]; /* of all columns, each with a reference to its rows */
};

/* Items by key: an array of pointers, indexed by the low bits of the key. The set chooses the
 * keys so that no two items collide: the upper half of a key is random; the lower half counts
 * up and skips places that are in use. Successive items are in adjacent places. */
typedef struct rp_outgoing_set {
    rp_outgoing **places; /* `capacity` of them; NULL: free */
    size_t capacity;      /* 0 or a power of two */
    size_t count;
    uint32_t counter; /* of the last key */
} rp_outgoing_set;

typedef struct rp_outgoing_list {
    rp_outgoing *first, **last; /* `last`: where the next item is linked; NULL: &first */
} rp_outgoing_list;

/* Finds the signature of a table. RP_OK: `*out` is a reference, or NULL if the table has no
 * signature. RP_NOT_FOUND: there is no such table. RP_UNAUTHENTICATED, RP_UNAVAILABLE: the
 * servers accept no item of this client. Any other status: the signature is not known now. */
typedef rp_status rp_find_signature(void *ctx, const char *table, rp_wait wait,
                                    rp_signature **out, rp_error *err);

/* The parts of a writer besides its public options. */
typedef struct rp_writer_parts {
    const rp_allocator *alloc;
    rp_runtime *runtime; /* the writer takes the reference */
    uint64_t seed;
    rp_find_signature *find; /* NULL: items are not checked */
    /* Writes why inserts into a table wait, "" if that is not known. May wait for half a
     * second. NULL: only the sink is asked. */
    void (*why)(void *ctx, const char *table, char *text, size_t size);
    void *find_ctx;               /* of both */
    void (*find_free)(void *ctx); /* may be NULL; called when the writer is freed */
    size_t max_in_flight; /* bound on complete, unsettled items; at the bound create_item waits.
                             0: no bound */
} rp_writer_parts;

/* What a server said last about items that wait. */
typedef struct rp_writer_reason {
    int64_t asked_ns; /* 0: never */
    uint64_t settled; /* items that were settled by then */
    char text[RP_ERROR_TEXT_BYTES];
} rp_writer_reason;

struct rp_trajectory_writer {
    rp_allocator alloc;
    rp_trajectory_writer_options options;
    rp_writer_parts parts;
    uint64_t generation; /* of the runtime */
    rp_sink *sink;       /* set by attach */

    /* used by the caller only */
    rp_rng rng;
    uint64_t episode;
    int64_t base;     /* step 0 of the episode, counted as in the cells */
    int64_t steps;    /* complete steps of the episode */
    bool open;        /* the latest step is incomplete */
    bool is_over;     /* rp_writer_send_deinit() was called */
    uint64_t serial;  /* of the last append */
    uint64_t created; /* number of items so far */
    size_t unpushed;  /* items that the caller gave the sink since the last push */
    rp_sink_item
        *held; /* of options.group, which it owns the trajectories of; NULL: none yet */
    size_t held_count;
    rp_writer_column **columns;
    size_t column_capacity;
    rp_writer_table *tables;
    rp_writer_reason reason;
    rp_decoder *decoder; /* NULL until needed */
    bool cancelled;      /* the caller's wait was cancelled; guarded by mu */

    /* used by the job; by the caller while the job is not busy */
    rp_job job;
    rp_chunk_compressor press;
    rp_outgoing_list line; /* items not sent yet, in order */
    rp_slice *slices;
    size_t slice_capacity;

    rp_mutex mu; /* rank 80 */
    rp_cond cv;  /* the caller waits here */
    bool waiting RP_GUARDED_BY(mu);
    bool busy RP_GUARDED_BY(mu);       /* the job is submitted, or runs */
    bool kicked RP_GUARDED_BY(mu);     /* rp_writer_kick() was called since the job began */
    rp_rows *closed RP_GUARDED_BY(mu); /* rows to compress, oldest first */
    rp_rows **closed_last RP_GUARDED_BY(mu);
    rp_outgoing_list incoming RP_GUARDED_BY(mu); /* new items for the job */
    rp_outgoing_set set RP_GUARDED_BY(mu);       /* all unsettled items */
    size_t sent RP_GUARDED_BY(mu);               /* items of `set` that the sink has */
    size_t bytes RP_GUARDED_BY(mu);              /* of the rows that `set` holds */
    uint64_t settled RP_GUARDED_BY(mu);          /* items that the sink has settled so far */
    uint64_t confirmed RP_GUARDED_BY(mu);        /* those of them that are in their tables */
    size_t awaited_items RP_GUARDED_BY(mu);      /* the bounds for which the caller waits */
    size_t awaited_bytes RP_GUARDED_BY(mu);
    rp_error trouble RP_GUARDED_BY(mu); /* failure of the job; RP_OK: none */
    size_t refused RP_GUARDED_BY(mu);   /* items rejected since the last flush */
    rp_error refusal RP_GUARDED_BY(mu); /* status and text of the first rejection */
};

/* Creates a writer without a sink. Then open a sink with rp_trajectory_writer_events() and
 * attach it. On failure `parts` still belong to the caller. Returns owned. RP_INVALID,
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_trajectory_writer_open(const rp_writer_parts *parts,
                                                 const rp_trajectory_writer_options *options,
                                                 rp_trajectory_writer **out, rp_error *err);
rp_sink_events rp_trajectory_writer_events(rp_trajectory_writer *writer);
void rp_trajectory_writer_attach(rp_trajectory_writer *writer, rp_sink *sink); /* takes it */

/* As rp_trajectory_writer_create_item(); a NULL `wait` ignores the bounds on unsettled items.
 */
RP_NODISCARD rp_status rp_writer_create(rp_trajectory_writer *w, const rp_new_item *item,
                                        const rp_wait *wait, uint64_t *key, rp_error *err);
/* Waits until one more item may be created. */
RP_NODISCARD rp_status rp_writer_make_room(rp_trajectory_writer *w, rp_wait wait,
                                           rp_error *err);
/* Closes the sink and drops unsettled items. Only rp_trajectory_writer_free() may follow. */
void rp_writer_stop(rp_trajectory_writer *w);
/* Starts a new episode, as rp_trajectory_writer_end_episode() does after its flush. */
void rp_writer_begin_episode(rp_trajectory_writer *w, bool clear);

enum { RP_LABEL_BYTES = 96 };
/* Writes the name of a column for a message, "column 3 'action'". Returns `text`. */
const char *rp_writer_label(uint32_t index, const char *name, char text[RP_LABEL_BYTES]);

/* Returns RP_PRECONDITION in the child of a fork. */
rp_status rp_writer_check_alive(const rp_trajectory_writer *w, rp_error *err);

/* Gets a column; creates it if it does not exist. RP_INVALID (the index is too large),
 * RP_NO_RESOURCE. */
rp_status rp_writer_get_column(rp_trajectory_writer *w, uint32_t index, const char *name,
                               rp_writer_column **out, rp_error *err);
/* Returns a column, or NULL if it does not exist. */
static inline rp_writer_column *rp_writer_column_at(const rp_trajectory_writer *w,
                                                    uint32_t index)
{
    return index < w->column_capacity ? w->columns[index] : NULL;
}

/* Returns the cell of a row, or NULL if it is not in the history. Valid until the next append.
 */
const rp_writer_cell *rp_writer_cell_of(const rp_writer_column *column, uint64_t cell);

bool rp_writer_is_single(const rp_writer_column *column); /* chunks have one row each */

/* Closes the open rows of a column, if any, and queues them for the job if an item needs them.
 */
void rp_writer_close_rows(rp_trajectory_writer *w, rp_writer_column *column);
/* Closes the open rows that the first `items` items need. */
void rp_writer_close_wanted(rp_trajectory_writer *w, uint64_t items);
/* Drops all cells of a column. */
void rp_writer_clear_history(rp_trajectory_writer *w, rp_writer_column *column);

void rp_writer_send_init(rp_trajectory_writer *w);
/* Waits for the job, closes the sink and frees all items. */
void rp_writer_send_deinit(rp_trajectory_writer *w);

/* Appends rows to the list of rows to compress; takes the reference. */
void rp_writer_queue_locked(rp_trajectory_writer *w, rp_rows *rows) RP_REQUIRES(w->mu);
/* Submits the job if there is work for it. */
void rp_writer_kick(rp_trajectory_writer *w);
/* Returns true if the job is not busy and no item waits: the caller may send an item itself. */
bool rp_writer_is_idle_locked(const rp_trajectory_writer *w) RP_REQUIRES(w->mu);
/* Sends a complete item on the caller's thread. The caller has added it to `sent` while the
 * writer was idle (rp_writer_is_idle_locked()). Returns false if the item could not be sent;
 * after true it may have been freed. */
bool rp_writer_send_now(rp_trajectory_writer *w, rp_outgoing *item);
/* Counts items that the caller gave the sink. Calls push() after every RP_PUSH_ITEMS. */
void rp_writer_count_given(rp_trajectory_writer *w, size_t count);
/* Hands over held items, then calls push() of the sink. */
void rp_writer_push(rp_trajectory_writer *w, size_t least);
/* Appends an item to those that wait for the job. */
void rp_writer_queue_item_locked(rp_trajectory_writer *w, rp_outgoing *item) RP_REQUIRES(w->mu);

/* Takes an item, with its trajectory, that the sink is to get with others. The caller has added
 * it to `sent`. Returns false if there is no memory: nothing is held then. */
bool rp_writer_hold(rp_trajectory_writer *w, const rp_sink_item *item);
/* Gives the held items to the sink; without memory for that, to the job. Caller only. */
void rp_writer_hand_over(rp_trajectory_writer *w);
/* Drops the held items. */
void rp_writer_drop_held(rp_trajectory_writer *w);

static inline void rp_writer_wake_locked(rp_trajectory_writer *w) RP_REQUIRES(w->mu)
{
    if (w->waiting) rp_cond_signal(&w->cv);
}
/* Returns true if no item is unsettled, or fewer than `max_items` with fewer than `max_bytes`.
 */
static inline bool rp_writer_is_room_locked(const rp_trajectory_writer *w, size_t max_items,
                                            size_t max_bytes) RP_REQUIRES(w->mu)
{
    return w->set.count == 0 || (w->set.count < max_items && w->bytes < max_bytes);
}

/* Waits until rp_writer_is_room_locked(). RP_DEADLINE, RP_CANCELLED, RP_NO_RESOURCE (the job
 * ran out of memory). */
rp_status rp_writer_await(rp_trajectory_writer *w, size_t max_items, size_t max_bytes,
                          rp_wait wait, rp_error *err);

/* Makes room for one more item. Returns false if there is no memory. */
bool rp_outgoing_set_reserve(rp_outgoing_set *set, const rp_allocator *alloc);
rp_outgoing *rp_outgoing_set_find(const rp_outgoing_set *set, uint64_t key);
/* Gives the item a key and adds it. There must be room. */
void rp_outgoing_set_add(rp_outgoing_set *set, rp_outgoing *item, uint64_t random);
void rp_outgoing_set_remove(rp_outgoing_set *set, const rp_outgoing *item);
void rp_outgoing_free(const rp_allocator *alloc, rp_outgoing *item); /* NULL is fine */

#endif
