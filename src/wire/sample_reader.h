/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a reader of samples (sample_response_read.h), shared by sample_reader.c and
 * sample_trajectory.c.
 *
 * Invariants:
 *   S1  chunk_count <= chunk_capacity; each of the first chunk_count entries of `chunks` is a
 *       reference;
 *   S2  column_count <= column_capacity and view_capacity; slice_count <= slice_capacity and
 *       cut_capacity;
 *   S3  `hold` is not NULL only if `shared` is not NULL;
 *   S4  entries of `recent` beyond 2^recent_bits are empty; if recent_dirty is false, all
 *       entries are empty. */
#ifndef RP_WIRE_SAMPLE_READER_H
#define RP_WIRE_SAMPLE_READER_H

#include "chunk/template.h"
#include "chunk/trajectory.h"
#include "util/map.h"
#include "wire/insert_request.h"
#include "wire/sample_response_read.h"

/* An entry of the cache of chunks that were parsed for the same message. */
typedef struct recent_chunk {
    uint64_t key;
    rp_chunk *chunk; /* borrowed; NULL: none */
} recent_chunk;

struct rp_sample_reader {
    rp_allocator alloc;
    rp_sample_limits limits;
    rp_pb_reader message; /* the part of the message that has not been read */
    rp_block *block;      /* borrowed while `message` has bytes; NULL: every chunk is copied */
    const rp_shared_source *shared; /* borrowed; NULL: none */
    /* The sample that is being assembled: */
    bool has_info; /* its SampleInfo has been read */
    void *hold; /* a reference to the hold that keeps its shared chunks in the shared memory, or
                   NULL */
    rp_sample sample;
    rp_wire_column *columns;
    rp_wire_slice *slices;
    size_t column_count, column_capacity, slice_count, slice_capacity;
    rp_chunk_template template;
    rp_chunk **chunks; /* references to the chunks of the sample, or of the batch */
    size_t chunk_count, chunk_capacity;
    size_t bytes; /* sum of the sizes of all chunks */
    size_t found; /* index of the chunk that was found last */
    rp_map map;   /* from keys to indexes in `chunks`, if `mapped` */
    bool mapped;
    /* Scratch arrays with the arguments for making the trajectory: an entry for each column,
     * and an entry for each slice. */
    rp_slices *views;
    rp_chunk_slice *cuts;
    size_t view_capacity, cut_capacity;
    recent_chunk
        *recent; /* 2^RECENT_MAX_BITS entries; a message uses the first 2^recent_bits */
    uint32_t recent_bits;
    bool recent_dirty;
};

/* Makes the trajectory of the sample that is being assembled. The trajectory takes no
 * references to its chunks. */
RP_NODISCARD rp_status rp_sample_make_trajectory(rp_sample_reader *r, rp_error *err);

#endif
