/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the response of Peek and Sample from the samples that a call has drawn. The response
 * contains each chunk (encoded columns of steps) once, and then an entry for each sample.
 *
 * Phases:
 *   gather    collects the chunks, and which rows (steps) of each chunk are used
 *   chunks    writes each chunk. Only the used rows of a chunk are written (a cut chunk) if the
 *             request asks for that, and it is possible and shorter
 *   entries   writes one entry for each sample. Offsets count from the first row of a cut chunk
 *
 * Writers choose the keys of chunks, and two writers may have chosen the same key. If so, one
 * of these chunks keeps the key. Each other chunk with this key gets a key that no other chunk
 * of the response has.
 *
 * The response is made in steps, because cutting takes time and the event loop has other
 * connections to serve. If chunks of an item are cut, a new trajectory is made for the item,
 * and the reply holds a reference to it.
 *
 * Invariants:
 *   R1  the phases follow each other in the order above;
 *   R2  `map` has, for each key, the index in `chunks` of the first chunk with this key. Each
 *       further chunk with the same key is in `others`, found by its address. If its bytes
 *       equal the bytes of the first chunk, its entry has the index of the first chunk.
 *       Otherwise the chunk has its own index in `chunks`;
 *   R3  after the phase gather, each chunk of each sample is in `chunks`.
 *
 * An rp_items_response must be used by one thread at a time. */
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
    size_t max_bytes;     /* the most bytes of the response */
    size_t max_cut_bytes; /* the most bytes to decompress for all cuts. If a cut would exceed
                             it, the whole chunk is written */
} rp_items_material;

typedef struct rp_items_response {
    rp_allocator alloc;
    rp_items_material material;
    rp_message *reply;  /* borrowed: the response is written to it */
    int phase;          /* this field and the following ones are private */
    size_t next;        /* index of the next sample or chunk */
    size_t work_left;   /* bytes of work that this step is still allowed to do */
    size_t work_done;   /* bytes of work that this step has done */
    size_t cut_left;    /* the rest of max_cut_bytes */
    size_t slice_bytes; /* lower bound of the bytes that the slices of all entries take */
    rp_map map;         /* from keys of chunks to indexes in `chunks` */
    rp_map other_map;   /* from addresses of chunks to indexes in `others` */
    rp_other_chunk *others;
    size_t other_count, other_capacity;
    uint64_t next_key; /* next key to try for a chunk that needs another key; smaller keys are
                          in use */
    rp_response_chunk *chunks;
    size_t chunk_count, chunk_capacity;
    rp_decoder *decoder;
    rp_chunk_slice *slices;
    size_t slice_capacity;
    rp_slices *columns;
    size_t column_capacity;
} rp_items_response;

/* Begins a response. `seed` is the hash seed of the maps. It is secret, since peers choose the
 * keys. `material` is copied. `reply` must be empty. Cannot fail. */
void rp_items_response_init(rp_items_response *response, const rp_allocator *alloc,
                            uint64_t seed, const rp_items_material *material,
                            rp_message *reply);
void rp_items_response_deinit(rp_items_response *response);

/* Makes the next step: reads and writes about `work` bytes (>= 1), and at most one chunk or
 * entry more. On RP_OK, `*done` receives whether the reply is complete. Returns RP_NO_RESOURCE
 * if the reply would exceed max_bytes, or there is no memory. In this case the caller must not
 * send the reply. */
RP_NODISCARD rp_status rp_items_response_step(rp_items_response *response, size_t work,
                                              bool *done, rp_error *err);

/* Return the bytes of the reply so far, and the bytes of work of the last step. */
size_t rp_items_response_bytes(const rp_items_response *response);
size_t rp_items_response_work(const rp_items_response *response);

#endif
