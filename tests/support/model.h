/* SPDX-License-Identifier: Apache-2.0 */
/* A model of a table, with arrays and linear scans. It is written from the documentation of
 * Reverb's tables and ours, not from the code.
 *
 * Random choices follow the documented use of the generator:
 *
 *   uniform      index rp_rng_below(n) of an array. An insert appends; a removal moves the last
 *                into the gap. In a distinct draw, picked slots are swapped to the end.
 *   prioritized  position rp_rng_unit() * total over the weights in order of slots. If all
 *                weights are 0, uniform over the slots. Distinct draws are made in rounds of as
 *                many positions as are still wanted, at most 256; slots that were drawn before
 *                are skipped.
 *
 * The slot that was freed last is reused first. The slots that a call frees are free after it
 * (for an insert, after each 256 items), in order of removal. Only calls that do not wait are
 * modelled. */
#ifndef RP_TEST_MODEL_H
#define RP_TEST_MODEL_H

#include "reprise/table.h"
#include "util/rng.h"

enum { RP_MODEL_SLOTS = 2048, RP_MODEL_CHUNKS = 24, RP_MODEL_TRAJECTORIES = 32 };

/* The trajectories that items may have, and their chunks. */
typedef struct rp_model_data {
    rp_trajectory *trajectories[RP_MODEL_TRAJECTORIES];
    uint32_t chunk_counts[RP_MODEL_TRAJECTORIES];
    uint32_t chunks[RP_MODEL_TRAJECTORIES][3]; /* distinct, in order */
    uint64_t chunk_bytes[RP_MODEL_CHUNKS];
    uint64_t chunk_episodes[RP_MODEL_CHUNKS];
} rp_model_data;

typedef struct rp_model_selector {
    rp_selector_options options;
    uint32_t order[RP_MODEL_SLOTS]; /* fifo, lifo: by age; uniform, heaps: dense */
    size_t count;
    uint32_t zeros[RP_MODEL_SLOTS]; /* prioritized: slots of weight 0, dense */
    size_t zero_count;
    double values[RP_MODEL_SLOTS]; /* by slot: weight, or priority; 0 if the slot is free */
    uint64_t turns[RP_MODEL_SLOTS];
    uint64_t next_turn;
    size_t used; /* all slots in use are below this */
} rp_model_selector;

typedef struct rp_model_item {
    bool live;
    uint64_t key;
    double priority;
    int32_t times_sampled;
    int64_t inserted_at_ns;
    uint32_t trajectory;
} rp_model_item;

typedef struct rp_model {
    rp_table_options options;
    const rp_model_data *data;
    rp_rng rng;
    rp_model_selector sampler, remover;
    rp_model_item items[RP_MODEL_SLOTS]; /* by slot */
    uint32_t free[RP_MODEL_SLOTS], dead[RP_MODEL_SLOTS];
    size_t free_count, dead_count, used;
    uint32_t chunk_refs[RP_MODEL_CHUNKS];
    int64_t size, inserts, samples, deletes, updates, evictions, unique_samples,
        deleted_episodes;
    double max_priority;
} rp_model;

/* An item to insert; `trajectory` is an index. */
typedef struct rp_model_insert {
    uint64_t key;
    double priority;
    uint32_t trajectory;
    int32_t times_sampled;
    bool max_priority;
} rp_model_insert;

/* `seed` is that of the table's options, not 0. */
void rp_model_init(rp_model *m, const rp_table_options *options, const rp_model_data *data);

bool rp_model_can_insert(const rp_model *m, int64_t n);
bool rp_model_can_sample(const rp_model *m, int64_t n);

/* Do what the calls of reprise/table.h do with rp_wait_none(). */
rp_status rp_model_try_insert(rp_model *m, const rp_model_insert *items, size_t count,
                              int64_t wall_ns, size_t *inserted);
rp_status rp_model_try_sample(rp_model *m, const rp_sample_options *options, rp_sample *out,
                              size_t *drawn);
size_t rp_model_update(rp_model *m, const rp_update *updates, size_t count);
size_t rp_model_delete(rp_model *m, const uint64_t *keys, size_t count);
size_t rp_model_peek(const rp_model *m, const uint64_t *keys, size_t count, rp_sample *out);
size_t rp_model_trim(rp_model *m);
void rp_model_reset(rp_model *m);

/* Fills in the fields that the model has. */
void rp_model_info(const rp_model *m, rp_table_info *out);

#endif
