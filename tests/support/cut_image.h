/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of one table in a cut, in memory, and a source that restores a table from them.
 */
#ifndef RP_TEST_CUT_IMAGE_H
#define RP_TEST_CUT_IMAGE_H

#include "support/fixture.h"
#include "table/snapshot/cut.h"
#include "util/rng.h"

typedef struct rp_test_image {
    rp_table_state state;
    size_t block_count;
    rp_slot *slots; /* of all blocks; holds a reference to each trajectory */
    bool *changed;  /* by block */
    bool *read;     /* by block: it has been read */
    uint32_t *sets[2];
    size_t set_room[2];
    size_t blocks_left;              /* still to be read */
    bool refuse_blocks, refuse_sets; /* the source fails with
                                        RP_UNAVAILABLE, as for parts that it does not have */
} rp_test_image;

/* Reads everything but blocks and sets. */
void rp_test_image_init(rp_test_image *image, const rp_cut *cut, size_t table);
void rp_test_image_deinit(rp_test_image *image);

/* Reads up to `count` blocks that have not been read yet, in random order. */
void rp_test_image_read_some(rp_test_image *image, rp_cut *cut, size_t table, rp_rng *rng,
                             size_t count);
/* Reads all blocks that are left, and the sets in pieces of random size. */
void rp_test_image_read(rp_test_image *image, rp_cut *cut, size_t table, rp_rng *rng);

/* True if both blocks, which must have been read, are equal for every slot in use. */
bool rp_test_image_same_block(const rp_test_image *a, const rp_test_image *b, size_t block);

/* True if the counts of live and free slots, lists and sets match the state. */
bool rp_test_image_check(const rp_test_image *image);

/* Borrows the image. */
rp_restore_source rp_test_image_source(rp_test_image *image);

/* Takes a cut of one table and reads it. */
void rp_test_image_of(rp_test_image *image, rp_test_bed *bed, rp_table *table, bool kept);

#endif
