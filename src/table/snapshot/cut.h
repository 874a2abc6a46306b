/* SPDX-License-Identifier: Apache-2.0 */
/* A cut is the consistent state of several tables at one instant. It can be read while the
 * tables stay in use, for example to write a checkpoint.
 *
 * Taking a cut holds the locks of all its tables at once, for a time that does not depend on
 * their size: it copies the counters and starts copy-on-write for the arrays. While the cut is
 * open, the first change to a block of 16 KiB saves the old contents. The reader of the cut
 * reads these saved blocks, and copies unchanged blocks from the table, one by one. If an item
 * that was in a table at the cut is removed while the cut is open, the cut keeps the item's
 * trajectory until the cut ends or releases the item's block.
 *
 * A cut also knows which blocks of slots (places for items, slots.h) have changed since the
 * previous cut that was kept (rp_cut_free()). So a checkpoint writes only the changed blocks. A
 * table can be in one open cut at a time. */
#ifndef RP_TABLE_SNAPSHOT_CUT_H
#define RP_TABLE_SNAPSHOT_CUT_H

#include "table/table.h"

/* The state of a table except for its slots and the order of its dense sets
 * (selector/dense_set.h). A dense set is the array of slots of a selector that draws uniformly.
 * The name and the signature are borrowed from the table. Together with the slots and the sets,
 * this state determines all later results: a restored table behaves exactly like the original,
 * to the last bit. */
typedef struct rp_table_state {
    rp_table_options options; /* the present options, without extensions and seed */
    rp_rate_limiter limiter;
    rp_rng rng;
    double max_priority;
    int64_t updates, evictions, unique_samples, deleted_episodes;
    uint64_t next_sequence; /* number of the next item to be inserted */
    uint64_t next_turn;     /* number of the next priority to be set */
    uint32_t paused;
    bool times_altered;
    uint64_t slot_capacity, slots_used, live;
    uint32_t first_free;    /* head of the list of free slots */
    uint64_t set_counts[2]; /* numbers of slots in the dense sets of sampler and remover; 0 if
                               there is no set */
} rp_table_state;

/* Gets the present state of a table. If the table is empty, `*out` is its whole state, since
 * there are no slots and no sets. */
void rp_table_get_state(rp_table *t, rp_table_state *out);

typedef struct rp_cut rp_cut;

/* Prepares a cut of these tables, and adds references to them. Errors: RP_NO_RESOURCE,
 * RP_PRECONDITION (one of the tables is in another cut). */
RP_NODISCARD rp_status rp_cut_new(const rp_allocator *alloc, rp_table *const *tables,
                                  size_t count, rp_cut **out, rp_error *err);
/* Takes the cut. May be called once for each cut. `at_cut` (may be NULL) is called while all
 * locks are held, to record the position in the journal. Sets `*held_ns` to the time for which
 * the locks were held; `held_ns` may be NULL. If tables have grown since rp_cut_new(),
 * allocates more memory. Runs no callbacks of tables, so the caller may hold the store's lock.
 * Errors: RP_PRECONDITION (the cut was taken already), RP_NO_RESOURCE (no memory, or the tables
 * grow too fast; the caller should free the cut and start again). */
RP_NODISCARD rp_status rp_cut_take(rp_cut *cut, void (*at_cut)(void *ctx), void *ctx,
                                   int64_t *held_ns, rp_error *err);
/* Ends the cut and drops the trajectories that it keeps. `kept` says whether the blocks of this
 * cut were stored, so that the next checkpoint can refer to them. If `kept` is true, only
 * blocks that change after this cut count as changed in the next cut (rp_cut_block_changed()).
 * If `kept` is false, the blocks that count as changed in this cut also count as changed in the
 * next. */
void rp_cut_free(rp_cut *cut, bool kept); /* NULL is fine */

const rp_table_state *rp_cut_state(const rp_cut *cut, size_t table);
/* Returns the number of blocks of RP_SLOTS_PER_BLOCK slots. */
size_t rp_cut_block_count(const rp_cut *cut, size_t table);
/* Returns how many blocks of slots of all tables have changed since this cut was taken. Any
 * thread may call this. */
size_t rp_cut_saved_blocks(const rp_cut *cut);
/* Returns true if anything in the block has changed since the last cut that was kept, or if no
 * cut was kept. */
bool rp_cut_block_changed(const rp_cut *cut, size_t table, size_t block);
/* Copies a block as it was at the cut. The trajectories of live slots are borrowed and valid
 * until the block is released or the cut ends. The trajectory of a free slot is NULL. The
 * fields `tag` and `references`, and slots from slots_used on, are undefined. Blocks may be
 * read in any order, more than once, and by several threads at once. */
void rp_cut_read_block(rp_cut *cut, size_t table, size_t block,
                       rp_slot out[RP_SLOTS_PER_BLOCK]);
/* Releases a block that has been read or is not needed: drops the trajectories that the cut
 * keeps for this block, which would otherwise be dropped at the end of the cut. The block must
 * not be read afterwards. */
void rp_cut_release_block(rp_cut *cut, size_t table, size_t block);
/* Copies part of the dense set of the sampler (`which` is 0) or of the remover (`which` is 1):
 * `count` slots in the order of the set, from index `from` on. */
void rp_cut_read_set(rp_cut *cut, size_t table, int which, size_t from, size_t count,
                     uint32_t *out);

/* The source from which rp_table_restore() reads slots and dense sets. It reads the blocks in
 * ascending order. */
typedef struct rp_restore_source {
    /* Fills in a zeroed block. For a live slot, it sets key, priority, trajectory (a reference
     * for the table), inserted_at_ns, times_sampled, sequence, turn and state. For a free slot,
     * it sets `next`. It leaves the other fields, and slots from slots_used on, zero. On RP_OK
     * the table owns every trajectory in `out`; on failure the table owns none of them. */
    rp_status (*block)(void *ctx, size_t block, rp_slot out[RP_SLOTS_PER_BLOCK], rp_error *err);
    /* Fills in a whole dense set. Called after all blocks, if the set is not empty. */
    rp_status (*set)(void *ctx, int which, uint32_t *out, size_t count, rp_error *err);
    void *ctx;
} rp_restore_source;

/* Restores a state into a new table with the same selectors. The options in the state replace
 * the options of the table, except for name, signature and extensions. No other thread may use
 * the table during the call. Operations that are parked in the table (op.h) proceed afterwards.
 * Extensions get no events. All blocks count as changed until rp_table_set_unchanged() is
 * called.
 *
 * The state and the source are not trusted: everything is checked. On RP_CORRUPT, the table is
 * empty, and the error text names the slot and what is wrong. Other errors: RP_PRECONDITION
 * (the table is not new, or has other selectors), RP_INVALID (a chunk is in another store),
 * RP_NO_RESOURCE (memory, or the store's byte limit), and the status of the source. */
RP_NODISCARD rp_status rp_table_restore(rp_table *t, const rp_table_state *state,
                                        const rp_restore_source *source, rp_error *err);

/* Gives the table another sampler and remover, and keeps its items. No other thread may use the
 * table during the call. On failure the table is unchanged. Errors: RP_PRECONDITION (a selector
 * refuses the priority of an item; the error text names the item), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_table_reselect(rp_table *t, const rp_selector_options *sampler,
                                         const rp_selector_options *remover, rp_error *err);

/* Marks all blocks as unchanged, as if a cut had just been kept. Used for a table that was
 * restored from blocks on disk. No cut of the table may be open. */
void rp_table_set_unchanged(rp_table *t);

/* Returns a hash of all state on which later results depend. Two tables whose states are equal
 * have equal digests. Holds the lock for a time proportional to the size of the table. For
 * tests and tools. */
uint64_t rp_table_digest(rp_table *t);

#endif
