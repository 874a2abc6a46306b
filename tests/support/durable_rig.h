/* SPDX-License-Identifier: Apache-2.0 */
/* A durable store under a scripted load, and the history that whatever is recovered of it must
 * be a prefix of.
 *
 *   rp_rig rig;
 *   rp_rig_init(&rig, &options);             // the script: a seed, a mode, how long
 *   rp_sim *disk = rp_sim_new();
 *   rp_rig_open(&rig, disk);
 *   while (rp_rig_step(&rig)) ...            // one change to one table, or a checkpoint
 *   rp_rig_close(&rig);
 *   rp_rig_recover(&rig, image, &recovered); // opens a disk as a new process would
 *   rp_rig_find(&rig, recovered.digest, from, to);
 *
 * Every step makes at most one record in the journal, so the state after any of them is one
 * that may be found after a crash; in between there is none. */
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
    size_t checkpoint_every; /* steps, about; 0: never */
    int32_t keep;            /* checkpoints; 0: 2 */
    bool beside;             /* every other checkpoint is written while the steps go on */
    size_t chunk_bytes;      /* at most; 0: 200 */
    uint64_t segment_bytes;  /* 0: 3000 */
    uint64_t journal_bytes;  /* of a file; 0: 1500 */
    uint64_t max_memory;     /* 0: all of it */
} rp_rig_options;

typedef struct rp_rig {
    rp_rig_options options;
    uint64_t number; /* of all rigs */
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
    size_t changed[RP_RIG_TABLES]; /* the step that did, last */
    size_t touching;               /* the table that the step under way changes, */
    uint64_t known[RP_RIG_TABLES]; /* and the digests before it */
    uint64_t *digests;             /* [i]: of all tables after i steps */
    size_t *checkpoints;           /* steps before each checkpoint that was finished */
    size_t checkpoint_count;
    atomic_bool writing; /* a checkpoint, beside the steps, */
    size_t writing_from; /* which had come so far when it began */
    size_t failed_steps;
    atomic_size_t failed_checkpoints;
    rp_error err; /* of the last */
    /* What may be relied on at any moment, also from the hook of the disk. */
    atomic_size_t started, acked, synced, checkpointed;
    atomic_bool degraded;
    atomic_size_t events;
    char event[RP_ERROR_TEXT_BYTES]; /* the first, for who has to find out what happened */
    uint32_t *crcs;                  /* by key, of the wire bytes of chunks */
} rp_rig;

void rp_rig_init(rp_rig *r, const rp_rig_options *options);
void rp_rig_deinit(rp_rig *r);

/* Opens it on a mount of the disk; the first step is what the script is at. */
rp_status rp_rig_try_open(rp_rig *r, rp_sim *disk, rp_error *err);
void rp_rig_open(rp_rig *r, rp_sim *disk);
/* The same with any files, which it owns from then on. */
rp_status rp_rig_try_open_on(rp_rig *r, rp_files *files, rp_error *err);
rp_status rp_rig_close(rp_rig *r);

/* False when the script is at its end. What fails is counted, and is not acknowledged. */
bool rp_rig_step(rp_rig *r);
rp_status rp_rig_checkpoint(rp_rig *r);
/* Waits until none is being written beside. */
void rp_rig_await(rp_rig *r);
/* Tells the rig of a call of the disk: how it knows in interval mode what has been synced. */
void rp_rig_saw_call(rp_rig *r, rp_sim *disk, const char *call, const char *path);

/* The first step that must be there after a power cut now, and after a kill. */
size_t rp_rig_promised(rp_rig *r, bool power_cut);

uint64_t rp_rig_digest(rp_rig *r);
/* Whether some state of steps [from, to] has it. */
bool rp_rig_find(const rp_rig *r, uint64_t digest, size_t from, size_t to, size_t *step);

/* Whether it may be the state after the step under way, which its process did not live to see:
 * all other tables are as before. */
struct rp_rig_recovered;
bool rp_rig_is_next(const rp_rig *r, const struct rp_rig_recovered *recovered);

typedef struct rp_rig_recovered {
    rp_status status;
    rp_error err;
    uint64_t digest;
    uint64_t digests[RP_RIG_TABLES]; /* of each table */
    bool sound; /* tables are consistent, and the bytes of chunks those of their keys */
    bool told;  /* on_event or torn bytes: somebody learns of it */
    uint64_t torn_bytes, last_checkpoint;
    const char *stuck; /* why it cannot be gone on with; NULL: it can, or was not to be */
} rp_rig_recovered;

enum { RP_RIG_GO_ON = 1 };

/* Opens what is on a disk as a new process would. With RP_RIG_GO_ON it is also used, and opened
 * once more. */
void rp_rig_recover(const rp_rig *r, rp_sim *disk, int how, rp_rig_recovered *out);
/* The same with any files, which it frees. */
void rp_rig_recover_on(const rp_rig *r, rp_files *files, rp_rig_recovered *out);

#endif
