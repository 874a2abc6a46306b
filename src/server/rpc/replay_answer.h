/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of Peek and Sample, made of samples: chunks, each once, then the entries.
 *
 *   gather    which chunks are there, and which of their rows
 *   chunks    cut, if that was asked for and saves something, or as they are
 *   entries   one a sample; offsets count from the rows that are left of a chunk
 *
 * It is made in steps, since cutting takes time and a loop has others to serve. A cut item is
 * an item over cut chunks: a trajectory of its own, which the reply holds. One thread. */
#ifndef RP_SERVER_RPC_REPLAY_ANSWER_H
#define RP_SERVER_RPC_REPLAY_ANSWER_H

#include "chunk/trajectory.h"
#include "reprise/table.h"
#include "util/map.h"
#include "wire/reply.h"

typedef struct rp_answer_chunk rp_answer_chunk;

/* What it is made of. All is borrowed and must stay until the answer is over. */
typedef struct rp_replay_material {
    const rp_sample *samples; /* those without a trajectory are left out */
    size_t count;
    const char *table;
    bool with_chunks, cut_rows;
    size_t max_bytes;     /* of the answer */
    size_t max_cut_bytes; /* to be decompressed for cuts; what is left travels as it is */
} rp_replay_material;

typedef struct rp_replay_answer {
    rp_allocator alloc;
    rp_replay_material material;
    rp_reply *reply;  /* borrowed: written to */
    int phase;        /* private from here */
    size_t next;      /* sample or chunk */
    size_t work_left; /* of this step */
    size_t cut_left;
    size_t slice_bytes; /* that the entries will have at least */
    rp_map map;         /* of chunk keys, to places in chunks */
    rp_answer_chunk *chunks;
    size_t chunk_count, chunk_capacity;
    rp_decoder *decoder;
    rp_slice *slices;
    size_t slice_capacity;
    rp_slices *columns;
    size_t column_capacity;
} rp_replay_answer;

/* `seed` is of the map: peers choose keys. `material` is copied. Cannot fail. */
void rp_replay_answer_init(rp_replay_answer *answer, const rp_allocator *alloc, uint64_t seed,
                           const rp_replay_material *material, rp_reply *reply);
void rp_replay_answer_deinit(rp_replay_answer *answer);

/* Goes on for about `work` bytes (>= 1) of reading and writing, a chunk or an entry more at
 * most. `*done` on RP_OK: the reply is complete. RP_NO_RESOURCE (over max_bytes, as the text
 * says; memory), RP_CORRUPT (a chunk to be cut cannot be decoded; one key stands for two
 * different chunks); then it is over, and the reply of no use. */
RP_NODISCARD rp_status rp_replay_answer_step(rp_replay_answer *answer, size_t work, bool *done,
                                             rp_error *err);

/* Bytes of the reply so far. */
size_t rp_replay_answer_bytes(const rp_replay_answer *answer);

#endif
