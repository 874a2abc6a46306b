/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a file of sim_files.h: pages that several images may share. Who writes to a
 * page that is shared makes it his own first. An image belongs to one thread at a time; the
 * pages may be shared by those of many. */
#ifndef RP_TEST_SIM_IMAGE_H
#define RP_TEST_SIM_IMAGE_H

#include "support/sim_files.h"
#include "util/refcount.h"
#include "util/rng.h"

enum { RP_SIM_PAGE_SECTORS = RP_SIM_PAGE / RP_SIM_SECTOR };

typedef struct rp_sim_page {
    rp_refcount refs;
    uint8_t bytes[RP_SIM_PAGE];
} rp_sim_page;

/* Zeroed memory is an empty one. Bytes of the last page behind the size are zero. */
typedef struct rp_sim_image {
    rp_sim_page **pages; /* NULL: a hole, which reads as zeroes */
    size_t count, capacity;
    uint64_t size;
} rp_sim_image;

void rp_sim_image_clear(rp_sim_image *image);
/* Makes `*to`, which is empty, the same as `*from`. */
void rp_sim_image_copy(rp_sim_image *to, const rp_sim_image *from);
void rp_sim_image_resize(rp_sim_image *image, uint64_t size);
/* Grows it if need be. */
void rp_sim_image_write(rp_sim_image *image, uint64_t offset, const void *data, size_t size);
size_t rp_sim_image_read(const rp_sim_image *image, uint64_t offset, void *data, size_t size);
/* Lets page `i` of `to` be that of `from`, or a hole where that has none. */
void rp_sim_image_share(rp_sim_image *to, const rp_sim_image *from, size_t i);

/* What a power cut leaves of a file that has `stored` on the disk and was written to be `now`.
 * `*to` is empty. */
void rp_sim_image_after(rp_sim_image *to, const rp_sim_image *stored, const rp_sim_image *now,
                        rp_sim_variant variant, rp_rng *rng);

#endif
