/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a file of sim_files.h: pages that several images may share. A shared page is
 * copied before it is written to. One thread at a time may use an image; images of different
 * threads may share pages. */
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

/* Zeroed memory is an empty image. Bytes of the last page after the size are zero. */
typedef struct rp_sim_image {
    rp_sim_page **pages; /* NULL: a hole, which reads as zeroes */
    size_t count, capacity;
    uint64_t size;
} rp_sim_image;

void rp_sim_image_clear(rp_sim_image *image);
/* Copies `*from` to `*to`, which is empty. */
void rp_sim_image_copy(rp_sim_image *to, const rp_sim_image *from);
void rp_sim_image_resize(rp_sim_image *image, uint64_t size);
/* Writes bytes. Grows the image if needed. */
void rp_sim_image_write(rp_sim_image *image, uint64_t offset, const void *data, size_t size);
size_t rp_sim_image_read(const rp_sim_image *image, uint64_t offset, void *data, size_t size);
/* Shares page `i` of `from` with `to`. If `from` has no such page, it becomes a hole. */
void rp_sim_image_share(rp_sim_image *to, const rp_sim_image *from, size_t i);

/* Sets `*to`, which is empty, to what a power cut leaves of a file. `stored` are its contents
 * on the disk, `now` its contents as written. */
void rp_sim_image_after(rp_sim_image *to, const rp_sim_image *stored, const rp_sim_image *now,
                        rp_sim_variant variant, rp_rng *rng);

#endif
