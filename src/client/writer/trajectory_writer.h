/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a trajectory writer (reprise/trajectory_writer.h) and its internal functions. A
 * writer passes its items to a sink (client/sink/sink.h) and does not depend on a client. The
 * files:
 *
 *   trajectory_writer.c          create and free, columns, configuration
 *   trajectory_writer_append.c   append steps, history, episodes
 *   trajectory_writer_items.c    create items
 *   trajectory_writer_send.c     compress and send in the background
 *   trajectory_writer_wait.c     wait for confirmations
 *   trajectory_writer_group.c    hold complete items back until there is a group of them
 *   open_writers.c               connect a writer to the sink and signatures of a client
 *
 * Three kinds of threads use a writer. "The caller" below is the thread that calls the writer.
 * "The job" runs in the background, on one worker of the runtime at a time. Threads of the sink
 * settle items: they report items as confirmed or rejected. Comments at the fields say which of
 * these threads use a field. */
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
    rp_rows *rows; /* invariant H below */
    uint32_t row;  /* index in `rows` */
    int64_t step;  /* counted since the history was last cleared */
} rp_writer_cell;

enum { RP_SPARE_BUILDERS = 4, RP_PUSH_ITEMS = 128 };

/* A column. Of the `cells` rows that were appended to it, its history contains the last `kept`,
 * in a ring of cells. Invariants:
 *
 *   H   The history holds one reference to each rp_rows of which it contains a cell. The
 *       reference is released when the cell of the last of these rows is dropped. A dropped
 *       cell is never in open rows, because a chunk is no longer than the history. While open
 *       rows are empty, `open` holds the reference to them.
 *   H2  kept <= cells, kept <= capacity, kept <= options.history. */
struct rp_writer_column {
    uint32_t index;
    char *name; /* may be NULL */
    bool known; /* a value was appended, so `spec` is known */
    bool configured;
    rp_spec spec; /* type of a row; spec.name is `name` */
    rp_column_options options;
    uint64_t serial;   /* number of the last append with a value for this column */
    int64_t last_step; /* step of the latest row; -1: no row yet */
    rp_rows *open;     /* the open rows; NULL: none. See H */
    uint64_t cells;    /* number of rows ever appended */
    size_t kept;       /* number of cells in the ring */
    size_t capacity;   /* size of the ring: 0 or a power of two */
    rp_writer_cell *ring;
    rp_chunk_tuner tuner;        /* only the job uses it */
    atomic_int_least32_t length; /* rows of the next chunks; relaxed: an old value is fine */
    rp_chunk_builder *own_spare; /* empty, or NULL; only the caller uses it */
    rp_chunk_template template; /* of chunks of one uncompressed row; only the caller uses it */
    rp_codec_trial trial;       /* used by the job, or by the caller if rp_writer_is_single() */
    /* The writer's lock guards these: */
    size_t spare_count;
    rp_chunk_builder *spares[RP_SPARE_BUILDERS]; /* empty builders for reuse */
};

/* A table for which items have been created. */
typedef struct rp_writer_table {
    struct rp_writer_table *next;
    size_t size_bytes;       /* of this struct with its name */
    rp_signature *signature; /* a reference; NULL: the table has none, or it is not known */
    bool looked_up;          /* whether the signature is known */
    char name[];
} rp_writer_table;

/* A column of an outgoing item. */
typedef struct rp_outgoing_column {
    uint32_t piece_count; /* pieces (rows.h) of this column */
    bool squeeze;         /* the column has one row and no dimension for rows */
} rp_outgoing_column;

/* An outgoing item: it has been created and is not settled yet. One block of memory holds the
 * struct, its pieces and its columns. */
typedef struct rp_outgoing rp_outgoing;
struct rp_outgoing {
    rp_outgoing *next;
    uint64_t key;
    double priority;
    const rp_writer_table *table;
    rp_trajectory *trajectory; /* the job sets it, and the sink takes it over */
    bool has_read;     /* the trajectory is built, so `pieces` have stopped reading (rows.h) */
    size_t size_bytes; /* of the block of memory */
    uint32_t piece_count, column_count;
    rp_outgoing_column *columns;
    rp_piece pieces[]; /* of all columns, each with a reference to its rows */
};

/* Outgoing items by key: an array of pointers, indexed by the low bits of the key. The set
 * chooses the keys such that no two items need the same place: the upper half of a key is
 * random; the lower half is a counter that skips places in use. Successive items are in
 * adjacent places. */
typedef struct rp_outgoing_set {
    rp_outgoing **places; /* `capacity` of them; NULL: free */
    size_t capacity;      /* 0 or a power of two */
    size_t count;
    uint32_t counter; /* lower half of the last key */
} rp_outgoing_set;

typedef struct rp_outgoing_list {
    rp_outgoing *first, **last; /* `last`: where the next item is linked; NULL means &first */
} rp_outgoing_list;

/* Finds the signature of a table. On RP_OK, `*out` is a reference to it, or NULL if the table
 * has no signature. Returns RP_NOT_FOUND if there is no such table, and RP_UNAUTHENTICATED or
 * RP_UNAVAILABLE if the servers accept no items of this client. Any other status means that the
 * signature is not known at the moment. */
typedef rp_status rp_find_signature(void *ctx, const char *table, rp_wait wait,
                                    rp_signature **out, rp_error *err);

/* What a writer needs besides its public options. */
typedef struct rp_writer_parts {
    const rp_allocator *alloc;
    rp_runtime *runtime; /* the writer takes over the reference */
    uint64_t seed;
    rp_find_signature *find; /* NULL: items are not checked against signatures */
    void (*forget)(void *ctx, const char *table); /* makes find() query again; NULL: no cache */
    /* Writes why inserts into a table wait, or "" if not known. Is allowed to block for a tenth
     * of `waited_ns`, the time that the caller has waited, but at least 50 ms and at most 500
     * ms. NULL: only the sink reports reasons. */
    void (*why)(void *ctx, const char *table, int64_t waited_ns, char *text, size_t size);
    /* Lists the tables in the error about one that does not exist. May be NULL. */
    void (*missing)(void *ctx, const char *table, rp_wait wait, rp_error *err);
    void (*away)(void *ctx, char *text, size_t size); /* why no server is up; may be NULL */
    void *find_ctx;                                   /* argument of the functions above */
    void (*find_free)(void *ctx);                     /* frees find_ctx; may be NULL */
    size_t max_in_flight; /* complete, unsettled items at which creation waits; 0: no limit */
} rp_writer_parts;

/* The latest response of a server to the question why items wait. */
typedef struct rp_writer_reason {
    int64_t ask_ns; /* no server is asked before this time; 0: none was asked so far */
    int64_t since_ns, end_ns; /* of the last uninterrupted series of waits */
    uint64_t settled;         /* number of items settled when the server responded */
    char text[RP_ERROR_TEXT_BYTES];
} rp_writer_reason;

struct rp_trajectory_writer {
    rp_allocator alloc;
    rp_trajectory_writer_options options;
    rp_writer_parts parts;
    uint64_t generation; /* of the process (runtime.h) that created the writer */
    rp_sink *sink;       /* set by rp_trajectory_writer_attach() */

    /* Only the caller uses these: */
    rp_rng rng;
    uint64_t episode;
    int64_t base;       /* number of the episode's step 0, counted as rp_writer_cell.step */
    int64_t steps;      /* number of complete steps in the episode */
    bool open;          /* the latest step is incomplete */
    bool is_over;       /* rp_writer_send_deinit() was called */
    uint64_t serial;    /* number of the last append */
    uint64_t created;   /* number of items created so far */
    size_t unpushed;    /* items that the caller has given to the sink since the last push */
    rp_sink_item *held; /* up to options.group items that are held back; NULL: none yet */
    size_t held_count;
    rp_writer_column **columns;
    size_t column_capacity;
    rp_writer_table *tables;
    rp_writer_reason reason;
    rp_decoder *decoder; /* NULL until needed */
    bool cancelled;      /* the caller's wait was cancelled; guarded by mu */

    /* The job uses these. The caller can use them while `busy` is false: */
    rp_job job;
    rp_chunk_compressor press;
    rp_outgoing_list line; /* items that were not sent yet, in order */
    rp_chunk_slice *slices;
    size_t slice_capacity;

    rp_mutex mu;                    /* lock rank 80 (util/mutex.h) */
    rp_cond cv;                     /* the caller waits here */
    bool waiting RP_GUARDED_BY(mu); /* the caller waits */
    bool busy RP_GUARDED_BY(mu);    /* the job is submitted or running */
    bool kicked RP_GUARDED_BY(mu);  /* rp_writer_kick() was called since the job began to run */
    rp_rows *closed RP_GUARDED_BY(mu); /* rows to compress, oldest first */
    rp_rows **closed_last RP_GUARDED_BY(mu);
    rp_outgoing_list incoming RP_GUARDED_BY(mu); /* new items for the job */
    rp_outgoing_set set RP_GUARDED_BY(mu);       /* all unsettled items */
    size_t sent RP_GUARDED_BY(mu);               /* items of `set` held or in the sink */
    size_t bytes RP_GUARDED_BY(mu);              /* of all rows that items of `set` use */
    uint64_t settled RP_GUARDED_BY(mu);          /* items settled so far */
    uint64_t confirmed RP_GUARDED_BY(mu);        /* items confirmed so far */
    size_t awaited_items RP_GUARDED_BY(mu); /* arguments of the caller's rp_writer_await() */
    size_t awaited_bytes RP_GUARDED_BY(mu);
    rp_error trouble RP_GUARDED_BY(mu); /* failure of the job; code RP_OK: none */
    size_t refused RP_GUARDED_BY(mu);   /* number of items rejected since the last flush */
    rp_error refusal RP_GUARDED_BY(mu); /* status and text for the first of these items */
    const rp_writer_table *refusing RP_GUARDED_BY(mu); /* of that item; valid if refused > 0 */
};

/* Creates a writer, which the caller owns. The caller must then open a sink with the events of
 * rp_trajectory_writer_events(), and attach it; the writer then owns the sink. On a failure,
 * the caller keeps the ownership of `parts`. Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_trajectory_writer_open(const rp_writer_parts *parts,
                                                 const rp_trajectory_writer_options *options,
                                                 rp_trajectory_writer **out, rp_error *err);
rp_sink_events rp_trajectory_writer_events(rp_trajectory_writer *writer);
void rp_trajectory_writer_attach(rp_trajectory_writer *writer, rp_sink *sink);

/* Does what rp_trajectory_writer_create_item() does. If `wait` is NULL, does not wait, even if
 * the writer has more unsettled items than its limits allow. */
RP_NODISCARD rp_status rp_writer_create(rp_trajectory_writer *w, const rp_new_item *item,
                                        const rp_wait *wait, uint64_t *key, rp_error *err);
/* Waits until the limits allow one more item. */
RP_NODISCARD rp_status rp_writer_make_room(rp_trajectory_writer *w, rp_wait wait,
                                           rp_error *err);
/* Closes the sink and drops unsettled items. The only call allowed afterwards is
 * rp_trajectory_writer_free(). */
void rp_writer_stop(rp_trajectory_writer *w);
/* Starts a new episode, as rp_trajectory_writer_end_episode() does after its flush. */
void rp_writer_begin_episode(rp_trajectory_writer *w, bool clear);

enum { RP_LABEL_BYTES = 96 };
/* Writes a column's name for error texts, such as "column 3 'action'". Returns `text`. */
const char *rp_writer_label(uint32_t index, const char *name, char text[RP_LABEL_BYTES]);

/* Returns RP_PRECONDITION in the child of a fork. */
rp_status rp_writer_check_alive(const rp_trajectory_writer *w, rp_error *err);

/* Finds or creates a column. Errors: RP_INVALID (the index is too large), RP_NO_RESOURCE. */
rp_status rp_writer_get_column(rp_trajectory_writer *w, uint32_t index, const char *name,
                               rp_writer_column **out, rp_error *err);
/* Returns a column, or NULL if it does not exist. */
static inline rp_writer_column *rp_writer_column_at(const rp_trajectory_writer *w,
                                                    uint32_t index)
{
    return index < w->column_capacity ? w->columns[index] : NULL;
}

/* Returns the cell with this number, or NULL if it is not in the history. The result is valid
 * until the next append. */
const rp_writer_cell *rp_writer_cell_of(const rp_writer_column *column, uint64_t cell);

bool rp_writer_is_single(const rp_writer_column *column); /* each chunk has one row */

/* Closes the open rows of a column, if any. Queues them for the job if an item needs them. */
void rp_writer_close_rows(rp_trajectory_writer *w, rp_writer_column *column);
/* Closes the open rows that one of the writer's first `items` items needs. */
void rp_writer_close_wanted(rp_trajectory_writer *w, uint64_t items);
/* Drops all cells of a column. */
void rp_writer_clear_history(rp_trajectory_writer *w, rp_writer_column *column);

/* Initialises the fields for sending. */
void rp_writer_send_init(rp_trajectory_writer *w);
/* Waits for the job, closes the sink and frees all items. */
void rp_writer_send_deinit(rp_trajectory_writer *w);

/* Appends rows to the list of rows to compress, which takes over the reference. */
void rp_writer_queue_locked(rp_trajectory_writer *w, rp_rows *rows) RP_REQUIRES(w->mu);
/* Submits the job if there is work for it. */
void rp_writer_kick(rp_trajectory_writer *w);
/* Returns true if the job is not busy and no item waits for it. Then the caller can send an
 * item itself. */
bool rp_writer_is_idle_locked(const rp_trajectory_writer *w) RP_REQUIRES(w->mu);
/* Sends a complete item on the caller's thread. The caller must have counted the item in `sent`
 * while the writer was idle (rp_writer_is_idle_locked()). Returns false if the item could not
 * be sent. After true, the item has possibly been freed. */
bool rp_writer_send_now(rp_trajectory_writer *w, rp_outgoing *item);
/* Counts items that the caller has given to the sink. Calls the sink's push() after every
 * RP_PUSH_ITEMS items. */
void rp_writer_count_given(rp_trajectory_writer *w, size_t count);
/* Gives the held items to the sink, then calls the sink's push() with `least`. */
void rp_writer_push(rp_trajectory_writer *w, size_t least);
/* Appends an item to the items that wait for the job. */
void rp_writer_queue_item_locked(rp_trajectory_writer *w, rp_outgoing *item) RP_REQUIRES(w->mu);

/* Holds an item back, with its trajectory, to give it to the sink together with others. The
 * caller must have counted the item in `sent`. Returns false if memory runs out; the item is
 * not held then. */
bool rp_writer_hold(rp_trajectory_writer *w, const rp_sink_item *item);
/* Gives the held items to the sink, or to the job if memory runs out. Must be called on the
 * caller's thread. */
void rp_writer_hand_over(rp_trajectory_writer *w);
void rp_writer_drop_held(rp_trajectory_writer *w);

/* Wakes the caller if it waits. */
static inline void rp_writer_wake_locked(rp_trajectory_writer *w) RP_REQUIRES(w->mu)
{
    if (w->waiting) rp_cond_signal(&w->cv);
}
/* Returns true if no item is unsettled, or if there are fewer than `max_items` unsettled items
 * with fewer than `max_bytes` bytes. */
static inline bool rp_writer_is_room_locked(const rp_trajectory_writer *w, size_t max_items,
                                            size_t max_bytes) RP_REQUIRES(w->mu)
{
    return w->set.count == 0 || (w->set.count < max_items && w->bytes < max_bytes);
}

/* Waits until rp_writer_is_room_locked() with these arguments. Returns RP_NO_RESOURCE if the
 * job ran out of memory. Other errors: RP_DEADLINE, RP_CANCELLED. */
rp_status rp_writer_await(rp_trajectory_writer *w, size_t max_items, size_t max_bytes,
                          rp_wait wait, rp_error *err);

/* Makes room for one more item. Returns false if memory runs out. */
bool rp_outgoing_set_reserve(rp_outgoing_set *set, const rp_allocator *alloc);
/* Returns the item with this key, or NULL. */
rp_outgoing *rp_outgoing_set_find(const rp_outgoing_set *set, uint64_t key);
/* Chooses a key for the item, with `random` as its upper half, and adds the item. The set must
 * have room. */
void rp_outgoing_set_add(rp_outgoing_set *set, rp_outgoing *item, uint64_t random);
void rp_outgoing_set_remove(rp_outgoing_set *set, const rp_outgoing *item);
void rp_outgoing_free(const rp_allocator *alloc, rp_outgoing *item); /* NULL is fine */

#endif
