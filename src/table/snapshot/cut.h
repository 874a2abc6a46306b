/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts: the consistent state of several tables at one instant, read while the tables stay in
 * use.
 *
 * Taking a cut holds the locks of all its tables at once, for a time that does not depend on
 * their size: it copies the counters and starts copy-on-write for the arrays. From then on the
 * first change to a block of 16 KiB saves the old contents; the reader copies unchanged blocks
 * from the table, one by one. The cut keeps the trajectories of items that were in a table at
 * the cut and are removed while it is open, until it ends or releases their block.
 *
 * A cut also knows which blocks of slots have changed since the last cut that was kept
 * (rp_cut_free()), so that a checkpoint writes only these blocks. One cut of a table may be
 * open at a time. */
#ifndef RP_TABLE_SNAPSHOT_CUT_H
#define RP_TABLE_SNAPSHOT_CUT_H

#include "table/table.h"

/* The state of a table except for its slots and the order of its dense sets
 * (selector/dense_set.h). A plain value; the name and the signature are borrowed from the
 * table. With the slots and the sets it determines all later results: a restored table behaves
 * bit by bit like the original. */
typedef struct rp_table_state {
    rp_table_options options; /* present values; no extensions, no seed */
    rp_rate_limiter limiter;
    rp_rng rng;
    double max_priority;
    int64_t updates, evictions, unique_samples, deleted_episodes;
    uint64_t next_sequence; /* of the next item inserted */
    uint64_t next_turn;     /* of the next priority set */
    uint32_t paused;
    bool times_altered;
    uint64_t slot_capacity, slots_used, live;
    uint32_t first_free;    /* each free slot links to the next */
    uint64_t set_counts[2]; /* slots in the dense set of the sampler and of the remover; 0 for
                               selectors without one */
} rp_table_state;

/* Gets the present state of a table. For an empty table, such as a new one, this is the whole
 * state. */
void rp_table_get_state(rp_table *t, rp_table_state *out);

typedef struct rp_cut rp_cut;

/* Prepares a cut of these tables, to which it takes references. RP_NO_RESOURCE, RP_PRECONDITION
 * (another cut includes one of them). */
RP_NODISCARD rp_status rp_cut_new(const rp_allocator *alloc, rp_table *const *tables,
                                  size_t count, rp_cut **out, rp_error *err);
/* Takes the cut, once. `at_cut` (may be NULL) is called while all locks are held, to record the
 * position in the journal. `*held_ns` (may be NULL) gets the time for which the locks were
 * held. If tables have grown since rp_cut_new(), allocates again. Runs no callbacks of tables,
 * so the caller may hold the store's lock.
 * RP_PRECONDITION (taken already), RP_NO_RESOURCE (no memory, or tables that grow too fast;
 * free the cut and start again). */
RP_NODISCARD rp_status rp_cut_take(rp_cut *cut, void (*at_cut)(void *ctx), void *ctx,
                                   int64_t *held_ns, rp_error *err);
/* Ends the cut and drops the trajectories that it keeps. If `kept`, blocks that do not change
 * after this cut count as unchanged in the next one. Otherwise changes before this cut still
 * count in the next one. */
void rp_cut_free(rp_cut *cut, bool kept); /* NULL is fine */

const rp_table_state *rp_cut_state(const rp_cut *cut, size_t table);
size_t rp_cut_block_count(const rp_cut *cut, size_t table); /* of RP_SLOTS_PER_BLOCK slots */
/* How many blocks of slots of all tables have changed since this cut. Safe from any thread. */
size_t rp_cut_saved_blocks(const rp_cut *cut);
/* True if anything in the block has changed since the last cut that was kept, or if no cut was
 * kept. */
bool rp_cut_block_changed(const rp_cut *cut, size_t table, size_t block);
/* Copies a block as it was at the cut. The trajectories of live slots are borrowed and valid
 * until the block is released or the cut ends. The trajectory of a free slot is NULL. `tag`,
 * `references` and slots from slots_used on are undefined. Blocks may be read in any order,
 * repeatedly, and by several threads at once. */
void rp_cut_read_block(rp_cut *cut, size_t table, size_t block,
                       rp_slot out[RP_SLOTS_PER_BLOCK]);
/* Releases a block that has been read or is not needed: the trajectories that the cut keeps for
 * it are dropped now instead of at the end. The block cannot be read afterwards. */
void rp_cut_release_block(rp_cut *cut, size_t table, size_t block);
/* Copies part of the dense set of the sampler (`which` 0) or remover (1): `count` slots in
 * their order, from index `from` on. */
void rp_cut_read_set(rp_cut *cut, size_t table, int which, size_t from, size_t count,
                     uint32_t *out);

/* The source of slots and sets for a restore; called in ascending order of blocks. */
typedef struct rp_restore_source {
    /* Fills in a zeroed block: for a live slot key, priority, trajectory (a reference for the
     * table), inserted_at_ns, times_sampled, sequence, turn and state; for a free slot, next.
     * Leaves the other fields and slots from slots_used on zero. With RP_OK the table owns
     * every trajectory that is not NULL, otherwise none. */
    rp_status (*block)(void *ctx, size_t block, rp_slot out[RP_SLOTS_PER_BLOCK], rp_error *err);
    /* Fills in a whole dense set; called after all blocks, unless the set is empty. */
    rp_status (*set)(void *ctx, int which, uint32_t *out, size_t count, rp_error *err);
    void *ctx;
} rp_restore_source;

/* Restores a state into a new table with the same selectors. The state and the source are
 * untrusted, and everything is checked: RP_CORRUPT (names the slot and the error) leaves the
 * table empty.
 * RP_PRECONDITION (the table is not new, or has other selectors), RP_INVALID (a chunk is in
 * another store), RP_NO_RESOURCE (memory, or the store's byte limit), or the status of the
 * source. The options of the state replace those of the table, except for name, signature and
 * extensions. No other thread may use the table meanwhile; operations that are parked in it
 * proceed afterwards. Extensions get no events. All blocks count as changed: see
 * rp_table_set_unchanged(). */
RP_NODISCARD rp_status rp_table_restore(rp_table *t, const rp_table_state *state,
                                        const rp_restore_source *source, rp_error *err);

/* Gives the table another sampler and remover; the items stay. No other thread may use the
 * table meanwhile. After a failure the table is as before.
 * RP_PRECONDITION (a selector refuses the priority of an item; names the item),
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_table_reselect(rp_table *t, const rp_selector_options *sampler,
                                         const rp_selector_options *remover, rp_error *err);

/* Marks all blocks as unchanged, as after a cut that was kept: for a table that was restored
 * from blocks on disk. No cut of the table may be open. */
void rp_table_set_unchanged(rp_table *t);

/* A hash of all state that later results depend on: equal digests, equal behaviour. Holds the
 * lock for a time proportional to the table: for tests and tools. */
uint64_t rp_table_digest(rp_table *t);

#endif
