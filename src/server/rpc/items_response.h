/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the response of Peek and Sample from samples: first each chunk once, then an entry for
 * each sample.
 *
 * Phases:
 *   gather    collects the chunks, and which rows of each are used
 *   chunks    writes each chunk: only these rows (a cut chunk), if that is requested, possible
 *             and shorter; otherwise the whole chunk
 *   entries   writes one entry for each sample; offsets count from the first row of a cut chunk
 *
 * Writers choose the keys of chunks, and several may have chosen the same key. Then one chunk
 * keeps the key, and each of the others gets a key that no other chunk of this response has.
 *
 * The response is made in steps, because cutting takes time and the loop has other connections
 * to serve. An item over cut chunks gets a trajectory of its own, which the reply holds.
 *
 * Invariants:
 *   R1  the phases follow each other in this order;
 *   R2  `map` has, for each key, the index of the first chunk with this key. Each further chunk
 *       with the same key is in `others`, found by its address. If its message equals that of
 *       the first chunk, its index is that of the first chunk; otherwise the chunk is in
 *       `chunks` itself, with an index of its own;
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

/* The input. Its pointers are borrowed and must outlive the response. */
typedef struct rp_items_material {
    const rp_sample *samples; /* samples without a trajectory are left out */
    size_t count;
    const char *table;
    bool with_chunks, cut_rows;
    size_t max_bytes;     /* of the response */
    size_t max_cut_bytes; /* bytes to decompress for cuts, in all; chunks beyond that are not
                             cut */
} rp_items_material;

typedef struct rp_items_response {
    rp_allocator alloc;
    rp_items_material material;
    rp_message *reply;  /* borrowed: written to */
    int phase;          /* this field and the following ones are private */
    size_t next;        /* index of the next sample or chunk */
    size_t work_left;   /* bytes of work that this step may still do */
    size_t work_done;   /* bytes of work that it has done */
    size_t cut_left;    /* the rest of max_cut_bytes */
    size_t slice_bytes; /* lower bound of the bytes that the slices of all entries take */
    rp_map map;         /* from keys of chunks to indexes in `chunks` */
    rp_map other_map;   /* from addresses of chunks to indexes in `others` */
    rp_other_chunk *others;
    size_t other_count, other_capacity;
    uint64_t next_key; /* to try for a chunk that needs another key; smaller keys are in use */
    rp_response_chunk *chunks;
    size_t chunk_count, chunk_capacity;
    rp_decoder *decoder;
    rp_slice *slices;
    size_t slice_capacity;
    rp_slices *columns;
    size_t column_capacity;
} rp_items_response;

/* Begins a response. `seed` is the hash seed of the maps, since peers choose the keys.
 * `material` is copied. `reply` must be empty. Cannot fail. */
void rp_items_response_init(rp_items_response *response, const rp_allocator *alloc,
                            uint64_t seed, const rp_items_material *material,
                            rp_message *reply);
void rp_items_response_deinit(rp_items_response *response);

/* Makes the next step: reads and writes about `work` bytes (>= 1), and at most one chunk or
 * entry more. On RP_OK, `*done` tells whether the reply is complete. RP_NO_RESOURCE (the reply
 * would pass max_bytes, or there is no memory); then the reply must not be sent. */
RP_NODISCARD rp_status rp_items_response_step(rp_items_response *response, size_t work,
                                              bool *done, rp_error *err);

/* Bytes of the reply so far, and bytes of work of the last step. */
size_t rp_items_response_bytes(const rp_items_response *response);
size_t rp_items_response_work(const rp_items_response *response);

#endif
