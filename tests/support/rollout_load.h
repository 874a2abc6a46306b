/* SPDX-License-Identifier: Apache-2.0 */
/* A durable store with rollouts under a scripted load, and the history of their states.
 *
 *   rp_rollout_load rig;
 *   rp_rollout_load_init(&rig, seed, mode);
 *   rp_rollout_load_open(&rig, files);
 *   while (...) rp_rollout_load_step(&rig);     // one operation on one of the rollouts
 *   rp_rollout_load_close(&rig);
 *
 * The rollouts of a checkpoint are taken one after the other. So after a crash each of them has
 * the state after one of the steps, but not all of them that after the same step. */
#ifndef RP_TEST_ROLLOUT_LOAD_H
#define RP_TEST_ROLLOUT_LOAD_H

#include <stdatomic.h>

#include "durable/durable_inside.h"
#include "rollouts/rollout_set.h"
#include "store/rollout_journal.h"
#include "support/fixture.h"
#include "util/rng.h"

enum { RP_RIG_ROLLOUTS = 2, RP_RIG_STEPS = 4096 };

typedef struct rp_rollout_load {
    rp_durability mode;
    uint64_t seed;
    rp_rng rng;
    rp_store *store;
    rp_durable *durable;
    int64_t now_ns;
    uint64_t leases[RP_RIG_ROLLOUTS]; /* the last one of each */
    /* [i][k]: of rollouts k after i steps; 0: there were none */
    uint64_t digests[RP_RIG_STEPS + 1][RP_RIG_ROLLOUTS];
    atomic_size_t started;            /* steps */
    atomic_size_t acked;              /* steps whose result was confirmed */
    atomic_size_t checkpointed;       /* steps before the last checkpoint that was finished */
    atomic_size_t changed;            /* steps that changed something */
    char events[RP_ERROR_TEXT_BYTES]; /* the last one */
    atomic_size_t event_count;
} rp_rollout_load;

void rp_rollout_load_init(rp_rollout_load *r, uint64_t seed, rp_durability mode);

/* Opens the store on the files, which outlive it. */
rp_status rp_rollout_load_try_open(rp_rollout_load *r, rp_files *files, rp_error *err);
void rp_rollout_load_open(rp_rollout_load *r, rp_files *files);
/* Closes and frees the store. */
rp_status rp_rollout_load_close(rp_rollout_load *r);

/* Makes one operation, and waits until it is durable if the mode has a journal. */
void rp_rollout_load_step(rp_rollout_load *r);
void rp_rollout_load_checkpoint(rp_rollout_load *r);

/* The digests of the rollouts in a store. False if one breaks an invariant. */
bool rp_rollout_load_digest(rp_store *store, uint64_t out[RP_RIG_ROLLOUTS]);
/* True if each of the digests is one after a step in [from, to]. */
bool rp_rollout_load_knows(const rp_rollout_load *r, const uint64_t digests[RP_RIG_ROLLOUTS],
                           size_t from, size_t to);

/* An operation with its result. RP_OK, or the status of any part of it. */
rp_status rp_rollout_load_apply(rp_store *store, const char *name, const rp_rollout_op *op,
                                rp_rollout_result *result);

#endif
