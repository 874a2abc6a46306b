/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a trajectory, for tables. One allocation: header, chunks, columns, slices. */
#ifndef RP_CHUNK_TRAJECTORY_H
#define RP_CHUNK_TRAJECTORY_H

#include "reprise/trajectory.h"
#include "util/refcount.h"

struct rp_trajectory {
    rp_refcount refs;
    uint32_t chunk_count;
    uint32_t column_count;
    rp_chunk **chunks; /* one reference each */
    size_t bytes;      /* wire bytes of the chunks */
    rp_allocator alloc;
    size_t size_bytes; /* of the whole allocation */
    rp_trajectory_column *columns;
    const rp_slice **column_slices; /* where each column's slices begin */
};

/* Takes or drops `count` references at once. */
static inline rp_trajectory *rp_trajectory_ref_many(rp_trajectory *trajectory, uint32_t count)
{
    rp_refcount_add(&trajectory->refs, count);
    return trajectory;
}
void rp_trajectory_unref_many(rp_trajectory *trajectory, uint32_t count);

#endif
