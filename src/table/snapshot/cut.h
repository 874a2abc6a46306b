/* SPDX-License-Identifier: Apache-2.0 */
/* The state of tables at one instant, to be read at leisure while they go on.
 *
 * Taking a cut holds the locks of all its tables at once, for a moment that does not depend on
 * how much is in them: it notes the counters and opens a copy-on-write over the arrays. From
 * then on the first change to a block of 16 KiB saves what it was; the reader takes the others
 * one by one. Trajectories that leave a table while a cut of it is open, and were in it at the
 * cut, are kept (in limbo) until the cut ends, or lets go of their block.
 *
 * Also: which blocks of slots have changed since the last cut that was kept, so that a
 * checkpoint writes only those. One cut of a table may be open at a time. */
#ifndef RP_TABLE_SNAPSHOT_CUT_H
#define RP_TABLE_SNAPSHOT_CUT_H

#include "table/table.h"

/* Everything of a table but its slots and the order of its dense sets. A plain value; the name
 * and the signature are the table's. With the slots and the sets, this is what decides every
 * later result: a table restored from it behaves alike to the bit. */
typedef struct rp_table_state {
    rp_table_options options; /* as they are now; no extensions, no seed */
    rp_rate_limiter limiter;
    rp_rng rng;
    double max_priority;
    int64_t updates, evictions, unique_samples, deleted_episodes;
    uint64_t next_sequence; /* of the next item inserted */
    uint64_t next_turn;     /* of the next priority set */
    uint32_t paused;
    bool times_altered;
    uint64_t slot_capacity, slots_used, live;
    uint32_t first_free;    /* the list goes on in the free slots */
    uint64_t set_counts[2]; /* slots in the dense set of the sampler and of the remover; 0 for
                               selectors without one */
} rp_table_state;

/* The state of a table now: of use alone if there is nothing in it, as in one that was just
 * made. */
void rp_table_get_state(rp_table *t, rp_table_state *out);

typedef struct rp_cut rp_cut;

/* Prepares a cut of these tables (takes references). RP_NO_RESOURCE, RP_PRECONDITION (one of
 * them is being cut). */
RP_NODISCARD rp_status rp_cut_new(const rp_allocator *alloc, rp_table *const *tables,
                                  size_t count, rp_cut **out, rp_error *err);
/* Takes it, once. `at_cut` (may be NULL) is called while all locks are held: to note the
 * journal's position. `*held_ns` (may be NULL): how long they were. Tables may have grown since
 * rp_cut_new(): then it prepares for that itself. Nobody is called back: whoever takes it may
 * hold the store's lock.
 * RP_PRECONDITION (taken already), RP_NO_RESOURCE (no memory, or tables that grow faster than
 * that; end it and begin anew). */
RP_NODISCARD rp_status rp_cut_take(rp_cut *cut, void (*at_cut)(void *ctx), void *ctx,
                                   int64_t *held_ns, rp_error *err);
/* Ends it: limbo is let go. If it is `kept`, blocks that did not change after it count as
 * unchanged in the next one; otherwise all that was changed still counts. */
void rp_cut_free(rp_cut *cut, bool kept); /* NULL is fine */

const rp_table_state *rp_cut_state(const rp_cut *cut, size_t table);
size_t rp_cut_block_count(const rp_cut *cut, size_t table); /* of RP_SLOTS_PER_BLOCK slots */
/* Whether anything in the block has changed since the cut before that was kept; true in the
 * first. */
bool rp_cut_block_changed(const rp_cut *cut, size_t table, size_t block);
/* Copies a block as it was. Live slots' trajectories are alive until the block is let
 * go of or the cut ends: borrowed, NULL in a free slot. `tag` and `references` mean nothing,
 * nor do slots from slots_used on. Any order, as often as wanted, from several threads at once.
 */
void rp_cut_read_block(rp_cut *cut, size_t table, size_t block,
                       rp_slot out[RP_SLOTS_PER_BLOCK]);
/* Lets go of a block that has been read, or is not wanted: what of it has left the table is
 * freed now and not at the end. It cannot be read any more. */
void rp_cut_release_block(rp_cut *cut, size_t table, size_t block);
/* Copies part of the dense set of the sampler (0) or remover (1): slots in their order. */
void rp_cut_read_set(rp_cut *cut, size_t table, int which, size_t from, size_t count,
                     uint32_t *out);

/* Where a restore gets the rest from; called in ascending order of blocks. */
typedef struct rp_restore_source {
    /* Fills in a block, which is all zeroes: of a live slot key, priority, trajectory (a
     * reference for the table), inserted_at_ns, times_sampled, sequence, turn, state; of a free
     * one, next. The rest is the table's, and slots from slots_used on stay zero. With RP_OK
     * every trajectory that is not NULL is the table's, otherwise none is. */
    rp_status (*block)(void *ctx, size_t block, rp_slot out[RP_SLOTS_PER_BLOCK], rp_error *err);
    /* Fills in the whole of a dense set; called after all blocks, if it is not empty. */
    rp_status (*set)(void *ctx, int which, uint32_t *out, size_t count, rp_error *err);
    void *ctx;
} rp_restore_source;

/* Puts a table that has just been made, with options that fit, into that state. Everything is
 * checked, as hostile input: RP_CORRUPT (names the slot and what is wrong); then the table is
 * empty as before.
 * RP_PRECONDITION (it is not new, or samples or removes in another way), RP_INVALID (a chunk is
 * in another store), RP_NO_RESOURCE (memory, or the store's limit of bytes), and what the
 * source returns. The state's options replace those of the table, but for name, signature,
 * extensions. Nobody else may use the table meanwhile, but operations may wait in it: they go
 * on. Its extensions are told nothing. All blocks count as changed: see
 * rp_table_set_unchanged(). */
RP_NODISCARD rp_status rp_table_restore(rp_table *t, const rp_table_state *state,
                                        const rp_restore_source *source, rp_error *err);

/* Gives the table another sampler and remover; the items stay. Nobody else may use the table
 * meanwhile. RP_PRECONDITION names an item whose priority a selector does not take;
 * RP_NO_RESOURCE. After a failure the table is as before. */
RP_NODISCARD rp_status rp_table_reselect(rp_table *t, const rp_selector_options *sampler,
                                         const rp_selector_options *remover, rp_error *err);

/* What is in the table now counts as unchanged, as after a cut that was kept: for who has
 * restored it from blocks that are on disk. No cut of it may be open. */
void rp_table_set_unchanged(rp_table *t);

/* A hash over everything that decides later results: equal digests, equal behaviour. Takes the
 * lock for a time proportional to the table: for tests and tools. */
uint64_t rp_table_digest(rp_table *t);

#endif
