/* SPDX-License-Identifier: Apache-2.0 */
/* The response of Peek and Sample, made of samples: the chunks, each once, then the entries.
 *
 * Phases:
 *   gather    collects the chunks, and the rows of each that are used
 *   chunks    writes each chunk: cut to these rows, if requested, possible and shorter, or as
 * it is
 *   entries   writes one entry for each sample; offsets count from the first row of a cut chunk
 *
 * Writers choose the keys of chunks, and several may have chosen the same one. Then one chunk
 * keeps the key, and the others have keys in this response that no other chunk has.
 *
 * The response is made in steps, as cutting takes time and the loop has other connections. A
 * cut item is an item over cut chunks: a trajectory of its own, which the reply holds.
 *
 * Invariants:
 *   R1  the phases follow each other in this order;
 *   R2  the map has the index of the first chunk of each key; `others` has the other chunks of
 *       these keys, by address, each with its index in `chunks`: that of the first chunk of its
 *       key if their messages are equal, or one of its own;
 *   R3  after the phase gather, each chunk of each sample is in `chunks`.
 *
 * One thread. */
#ifndef RP_SERVER_RPC_ITEMS_RESPONSE_H
#define RP_SERVER_RPC_ITEMS_RESPONSE_H

#include "chunk/trajectory.h"
#include "reprise/table.h"
#include "util/map.h"
#include "wire/message.h"

typedef struct rp_response_chunk rp_response_chunk;
typedef struct rp_other_chunk rp_other_chunk;

/* The input. All is borrowed and must outlive the response. */
typedef struct rp_items_material {
    const rp_sample *samples; /* those without a trajectory are left out */
    size_t count;
    const char *table;
    bool with_chunks, cut_rows;
    size_t max_bytes;     /* of the response */
    size_t max_cut_bytes; /* to be decompressed for cuts; further chunks are not cut */
} rp_items_material;

typedef struct rp_items_response {
    rp_allocator alloc;
    rp_items_material material;
    rp_message *reply; /* borrowed: written to */
    int phase;         /* private from here */
    size_t next;       /* sample or chunk */
    size_t work_left;  /* of this step */
    size_t cut_left;
    size_t slice_bytes; /* of the entries, at least */
    rp_map map;         /* of chunk keys, to indexes in chunks */
    rp_map other_map;   /* of addresses of chunks, to indexes in others */
    rp_other_chunk *others;
    size_t other_count, other_capacity;
    uint64_t next_key; /* for a chunk that needs another key; smaller ones are taken */
    rp_response_chunk *chunks;
    size_t chunk_count, chunk_capacity;
    rp_decoder *decoder;
    rp_slice *slices;
    size_t slice_capacity;
    rp_slices *columns;
    size_t column_capacity;
} rp_items_response;

/* `seed` is for the map, as peers choose keys. `material` is copied. Cannot fail. */
void rp_items_response_init(rp_items_response *response, const rp_allocator *alloc,
                            uint64_t seed, const rp_items_material *material,
                            rp_message *reply);
void rp_items_response_deinit(rp_items_response *response);

/* Continues for about `work` bytes (>= 1) of reading and writing, a chunk or an entry more at
 * most. `*done` on RP_OK: the reply is complete. RP_NO_RESOURCE (over max_bytes, as the text
 * says; memory); then the reply must not
 * be sent. */
RP_NODISCARD rp_status rp_items_response_step(rp_items_response *response, size_t work,
                                              bool *done, rp_error *err);

/* Bytes of the reply so far. */
size_t rp_items_response_bytes(const rp_items_response *response);

#endif
