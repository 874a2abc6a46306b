/* SPDX-License-Identifier: Apache-2.0 */
/* A durable store under a scripted load, and the history of its states. A state that is
 * recovered must be one of this history.
 *
 *   rp_rig rig;
 *   rp_rig_init(&rig, &options);             // the script: a seed, a mode, a number of steps
 *   rp_sim *disk = rp_sim_new();
 *   rp_rig_open(&rig, disk);
 *   while (rp_rig_step(&rig)) ...            // one change to one table, or a checkpoint
 *   rp_rig_close(&rig);
 *   rp_rig_recover(&rig, image, &recovered); // opens a disk as a new process would
 *   rp_rig_find(&rig, recovered.digest, from, to);
 *
 * Every step makes at most one record in the journal. So after a crash the state is that after
 * one of the steps, and never one in between. */
#ifndef RP_TEST_DURABLE_RIG_H
#define RP_TEST_DURABLE_RIG_H

#include <stdatomic.h>

#include "durable/durable_inside.h"
#include "support/fixture.h"
#include "support/sim_files.h"
#include "util/rng.h"

enum { RP_RIG_TABLES = 5, RP_RIG_KEYS = 40, RP_RIG_RECENT = 12, RP_RIG_CHUNKS = 4096 };

typedef struct rp_rig_options {
    uint64_t seed;
    rp_durability mode;
    size_t steps;
    size_t checkpoint_every; /* after about this many steps; 0: never */
    int32_t keep;            /* checkpoints that are kept; 0: 2 */
    bool beside;             /* every second checkpoint is written while steps continue */
    size_t chunk_bytes;      /* largest chunk; 0: 200 */
    uint64_t segment_bytes;  /* largest segment; 0: 3000 */
    uint64_t journal_bytes;  /* largest file of the journal; 0: 1500 */
    uint64_t max_memory;     /* of chunks; 0: no limit */
} rp_rig_options;

typedef struct rp_rig {
    rp_rig_options options;
    uint64_t number; /* unique among all rigs */
    rp_rng rng;
    rp_files *files;
    rp_store *store;
    rp_durable *durable;
    rp_table *tables[RP_RIG_TABLES];
    rp_trajectory *recent[RP_RIG_RECENT];
    rp_chunk *last_chunk;
    size_t row_bytes; /* of it */
    uint64_t next_chunk;
    int64_t wall_ns;
    size_t changed[RP_RIG_TABLES]; /* the last step that changed each table */
    size_t touching;               /* the table that the current step changes */
    uint64_t known[RP_RIG_TABLES]; /* the digest of each table before the current step */
    uint64_t *digests;             /* [i]: of all tables after i steps */
    size_t *checkpoints;           /* steps before each checkpoint that was finished */
    size_t checkpoint_count;
    atomic_bool writing; /* a checkpoint is written while steps continue */
    size_t writing_from; /* the step at which that checkpoint began */
    size_t failed_steps;
    atomic_size_t failed_checkpoints;
    rp_error err; /* of the last failure */
    /* May be read at any moment, also in the hook of the disk. */
    atomic_size_t started, acked, synced, checkpointed;
    atomic_bool degraded;
    atomic_size_t events;
    char event[RP_ERROR_TEXT_BYTES]; /* the first event, for the report of a failure */
    uint32_t *crcs;                  /* checksums of the wire bytes of chunks, by key */
} rp_rig;

void rp_rig_init(rp_rig *r, const rp_rig_options *options);
void rp_rig_deinit(rp_rig *r);

/* Opens the store on a mount of the disk. The script continues at its current step. */
rp_status rp_rig_try_open(rp_rig *r, rp_sim *disk, rp_error *err);
void rp_rig_open(rp_rig *r, rp_sim *disk);
/* Opens the store on `files`, and takes ownership of these. */
rp_status rp_rig_try_open_on(rp_rig *r, rp_files *files, rp_error *err);
rp_status rp_rig_close(rp_rig *r);

/* Makes one step. Returns false at the end of the script. A step that fails is counted, and is
 * not acknowledged. */
bool rp_rig_step(rp_rig *r);
rp_status rp_rig_checkpoint(rp_rig *r);
/* Waits until no checkpoint is being written. */
void rp_rig_await(rp_rig *r);
/* Reports a call of the disk to the rig. In interval mode the rig derives from these calls
 * which steps have been synced. */
void rp_rig_saw_call(rp_rig *r, rp_sim *disk, const char *call, const char *path);

/* Returns how many steps must survive a power cut now, or a kill now. */
size_t rp_rig_promised(rp_rig *r, bool power_cut);

uint64_t rp_rig_digest(rp_rig *r);
/* Returns true if the state after one of the steps [from, to] has this digest. */
bool rp_rig_find(const rp_rig *r, uint64_t digest, size_t from, size_t to, size_t *step);

/* Returns true if the recovered state may be the state after the step that was in progress:
 * only the table that it changes differs from the state before. */
struct rp_rig_recovered;
bool rp_rig_is_next(const rp_rig *r, const struct rp_rig_recovered *recovered);

typedef struct rp_rig_recovered {
    rp_status status;
    rp_error err;
    uint64_t digest;
    uint64_t digests[RP_RIG_TABLES]; /* of each table */
    bool sound; /* tables are consistent, and the bytes of chunks those of their keys */
    bool told;  /* the loss was reported: by on_event, or as torn bytes */
    uint64_t torn_bytes, last_checkpoint;
    const char *stuck; /* why it cannot be used further; NULL: it can, or was not tried */
} rp_rig_recovered;

enum { RP_RIG_GO_ON = 1 };

/* Opens the store on a disk as a new process would. With RP_RIG_GO_ON the store is also used
 * further, and opened once more. */
void rp_rig_recover(const rp_rig *r, rp_sim *disk, int how, rp_rig_recovered *out);
/* Opens the store on `files`, and frees these. */
void rp_rig_recover_on(const rp_rig *r, rp_files *files, rp_rig_recovered *out);

#endif
