/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sim_image.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t zeroes[RP_SIM_PAGE];

static void *need(void *memory)
{
    if (memory == NULL) abort();
    return memory;
}

static size_t pages_of(uint64_t size)
{
    return (size_t)((size + RP_SIM_PAGE - 1) / RP_SIM_PAGE);
}

static void drop(rp_sim_page *page)
{
    if (page != NULL && rp_refcount_dec(&page->refs)) free(page);
}

static rp_sim_page *page_at(const rp_sim_image *image, size_t i)
{
    return i < image->count ? image->pages[i] : NULL;
}

static void set_count(rp_sim_image *image, size_t count)
{
    for (size_t i = count; i < image->count; i++) drop(image->pages[i]);
    if (count > image->capacity) {
        image->capacity = count < 8 ? 8 : count + count / 2;
        image->pages =
            need(realloc((void *)image->pages, image->capacity * sizeof *image->pages));
    }
    for (size_t i = image->count; i < count; i++) image->pages[i] = NULL;
    image->count = count;
}

/* Returns page `i`; copies it first if it is shared. */
static uint8_t *own(rp_sim_image *image, size_t i)
{
    rp_sim_page *page = image->pages[i], *mine;

    if (page != NULL && rp_refcount_is_one(&page->refs)) return page->bytes;
    mine = need(malloc(sizeof *mine));
    rp_refcount_init(&mine->refs);
    memcpy(mine->bytes, page != NULL ? page->bytes : zeroes, RP_SIM_PAGE);
    drop(page);
    image->pages[i] = mine;
    return mine->bytes;
}

void rp_sim_image_clear(rp_sim_image *image)
{
    set_count(image, 0);
    free((void *)image->pages);
    *image = (rp_sim_image){0};
}

void rp_sim_image_copy(rp_sim_image *to, const rp_sim_image *from)
{
    set_count(to, from->count);
    for (size_t i = 0; i < from->count; i++) rp_sim_image_share(to, from, i);
    to->size = from->size;
}

void rp_sim_image_share(rp_sim_image *to, const rp_sim_image *from, size_t i)
{
    rp_sim_page *page = page_at(from, i);

    if (i >= to->count) return;
    if (page != NULL) rp_refcount_inc(&page->refs);
    drop(to->pages[i]);
    to->pages[i] = page;
}

void rp_sim_image_resize(rp_sim_image *image, uint64_t size)
{
    size_t in_page = (size_t)(size % RP_SIM_PAGE), last = (size_t)(size / RP_SIM_PAGE);

    if (size < image->size && in_page != 0 && image->pages[last] != NULL)
        memset(own(image, last) + in_page, 0, RP_SIM_PAGE - in_page);
    set_count(image, pages_of(size));
    image->size = size;
}

void rp_sim_image_write(rp_sim_image *image, uint64_t offset, const void *data, size_t size)
{
    const uint8_t *from = data;

    if (size == 0) return;
    if (offset + size > image->size) rp_sim_image_resize(image, offset + size);
    while (size > 0) {
        size_t at = (size_t)(offset % RP_SIM_PAGE);
        size_t part = size < RP_SIM_PAGE - at ? size : RP_SIM_PAGE - at;

        memcpy(own(image, (size_t)(offset / RP_SIM_PAGE)) + at, from, part);
        from += part;
        offset += part;
        size -= part;
    }
}

size_t rp_sim_image_read(const rp_sim_image *image, uint64_t offset, void *data, size_t size)
{
    uint8_t *to = data;
    size_t done;

    if (offset >= image->size) return 0;
    if (size > image->size - offset) size = (size_t)(image->size - offset);
    for (done = 0; done < size;) {
        size_t at = (size_t)(offset % RP_SIM_PAGE);
        size_t part = size - done < RP_SIM_PAGE - at ? size - done : RP_SIM_PAGE - at;
        const rp_sim_page *page = image->pages[offset / RP_SIM_PAGE];

        memcpy(to + done, page != NULL ? page->bytes + at : zeroes, part);
        done += part;
        offset += part;
    }
    return size;
}

static const uint8_t *sector_of(const rp_sim_image *image, size_t sector)
{
    const rp_sim_page *page = page_at(image, sector / RP_SIM_PAGE_SECTORS);

    return page != NULL ? page->bytes + sector % RP_SIM_PAGE_SECTORS * RP_SIM_SECTOR : zeroes;
}

/* Returns the first sector from `sector` on in which the two images differ; SIZE_MAX if there
 * is none. Pages that they share are not compared. */
static size_t next_dirty(const rp_sim_image *stored, const rp_sim_image *now, size_t sector)
{
    for (; sector < now->count * RP_SIM_PAGE_SECTORS; sector++) {
        size_t i = sector / RP_SIM_PAGE_SECTORS;
        if (page_at(stored, i) == page_at(now, i))
            sector = (i + 1) * RP_SIM_PAGE_SECTORS - 1;
        else if (memcmp(sector_of(stored, sector), sector_of(now, sector), RP_SIM_SECTOR) != 0)
            return sector;
    }
    return SIZE_MAX;
}

static void put_sector(rp_sim_image *image, size_t sector, const uint8_t *bytes, size_t size)
{
    memcpy(own(image, sector / RP_SIM_PAGE_SECTORS) +
               sector % RP_SIM_PAGE_SECTORS * RP_SIM_SECTOR,
           bytes, size);
}

/* Writes garbage over the bytes that were written, from byte `from` of the sector on. */
static void put_garbage(rp_sim_image *to, const rp_sim_image *stored, const rp_sim_image *now,
                        size_t sector, size_t from, rp_rng *rng)
{
    const uint8_t *old = sector_of(stored, sector), *new = sector_of(now, sector);
    uint8_t bytes[RP_SIM_SECTOR];

    memcpy(bytes, sector_of(to, sector), sizeof bytes);
    for (size_t i = from; i < sizeof bytes; i++) {
        uint8_t noise = (uint8_t)rp_rng_next(rng);
        if (old[i] != new[i] || (uint64_t)sector * RP_SIM_SECTOR + i >= stored->size)
            bytes[i] = noise;
    }
    put_sector(to, sector, bytes, sizeof bytes);
}

/* Chooses how many bytes of a sector are new, so that at least one changed byte is and at least
 * one is not. */
static size_t tear(const uint8_t *stored, const uint8_t *now, rp_rng *rng)
{
    size_t last = RP_SIM_SECTOR - 1;

    while (last > 0 && stored[last] == now[last]) last--;
    return last > 0 ? 1 + rp_rng_below(rng, last) : 0;
}

/* Writes the sectors before a random one. That one is torn; or it and those after it are
 * garbage. Returns its number. */
static size_t damage_from(rp_sim_image *to, const rp_sim_image *stored, const rp_sim_image *now,
                          bool torn, rp_rng *rng)
{
    size_t dirty = 0, left, sector = SIZE_MAX, at;

    for (at = next_dirty(stored, now, 0); at != SIZE_MAX; at = next_dirty(stored, now, at + 1))
        dirty++;
    if (dirty == 0) return SIZE_MAX;
    left = rp_rng_below(rng, dirty);
    for (at = next_dirty(stored, now, 0); at != SIZE_MAX;
         at = next_dirty(stored, now, at + 1)) {
        if (left > 0) {
            put_sector(to, at, sector_of(now, at), RP_SIM_SECTOR);
            left--;
        } else if (!torn) {
            if (sector == SIZE_MAX) sector = at;
            put_garbage(to, stored, now, at, 0, rng);
        } else {
            size_t part = tear(sector_of(stored, at), sector_of(now, at), rng);
            put_sector(to, at, sector_of(now, at), part);
            if (rp_rng_below(rng, 4) == 0) put_garbage(to, stored, now, at, part, rng);
            return at;
        }
    }
    return sector;
}

/* Zeroes the bytes after the end of the file, since whole sectors were written. */
static void end_with_zeroes(rp_sim_image *image)
{
    size_t in_page = (size_t)(image->size % RP_SIM_PAGE);

    if (in_page != 0 && image->pages[image->count - 1] != NULL)
        memset(own(image, image->count - 1) + in_page, 0, RP_SIM_PAGE - in_page);
}

void rp_sim_image_after(rp_sim_image *to, const rp_sim_image *stored, const rp_sim_image *now,
                        rp_sim_variant variant, rp_rng *rng)
{
    uint64_t size = now->size;
    size_t sector;

    switch (variant) {
    case RP_SIM_NONE: rp_sim_image_copy(to, stored); return;
    case RP_SIM_ALL:
    case RP_SIM_LOST_RENAME:
    case RP_SIM_LOST_ENTRY: rp_sim_image_copy(to, now); return;
    case RP_SIM_STALE_SIZE:
        if (rp_rng_below(rng, 2) == 0) {
            rp_sim_image_copy(to, now);
            size = stored->size;
        } else {
            rp_sim_image_copy(to, stored);
        }
        break;
    case RP_SIM_SUBSET:
    case RP_SIM_TORN:
    case RP_SIM_GARBAGE:
    default:
        rp_sim_image_copy(to, stored);
        if (size > to->size) rp_sim_image_resize(to, size);
        if (variant == RP_SIM_SUBSET) {
            for (sector = next_dirty(stored, now, 0); sector != SIZE_MAX;
                 sector = next_dirty(stored, now, sector + 1))
                if (rp_rng_below(rng, 2) == 0)
                    put_sector(to, sector, sector_of(now, sector), RP_SIM_SECTOR);
        } else {
            sector = damage_from(to, stored, now, variant == RP_SIM_TORN, rng);
            /* The size may cover the data that was written, or the whole file. */
            if (variant == RP_SIM_TORN && sector != SIZE_MAX && size > stored->size &&
                rp_rng_below(rng, 2) == 0) {
                uint64_t end = (uint64_t)(sector + 1) * RP_SIM_SECTOR;
                size = end < stored->size ? stored->size : end < size ? end : size;
            }
        }
        break;
    }
    end_with_zeroes(to);
    rp_sim_image_resize(to, size);
}
