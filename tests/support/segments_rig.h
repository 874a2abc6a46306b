/* SPDX-License-Identifier: Apache-2.0 */
/* Segments on a simulated disk, and chunks whose bytes are known, for tests. */
#ifndef RP_TEST_SEGMENTS_RIG_H
#define RP_TEST_SEGMENTS_RIG_H

#include "disk/segments.h"
#include "disk/segments_inside.h"
#include "support/chunks.h"
#include "support/sim_files.h"

enum { RP_RIG_SEGMENT_BYTES = 8192 };

static const rp_store_id rp_rig_store = {{1, 2, 3, 4, 5, 6, 7, 8}};

typedef struct rp_rig {
    rp_sim *disk;
    rp_files *files;
    rp_segments *segments;
} rp_rig;

static inline rp_status rp_rig_try_open(rp_rig *rig, rp_sim *disk, const rp_allocator *alloc,
                                        uint64_t next_number)
{
    rp_segments_options options = {.alloc = alloc,
                                   .store = rp_rig_store,
                                   .segment_bytes = RP_RIG_SEGMENT_BYTES,
                                   .next_number = next_number};

    rig->disk = disk;
    rig->segments = NULL;
    options.files = rig->files = rp_sim_mount(disk);
    return rp_segments_new(&options, &rig->segments, NULL);
}

/* Takes the disk. */
static inline rp_rig rp_rig_open(rp_sim *disk, uint64_t next_number)
{
    rp_rig rig;

    assert_ok(rp_rig_try_open(&rig, disk, rp_allocator_default(), next_number));
    return rig;
}

static inline void rp_rig_close(rp_rig *rig)
{
    rp_segments_free(rig->segments);
    assert_int_equal(rp_sim_open_handles(rig->disk), 0);
    rig->files->ops->free(rig->files);
    rp_sim_free(rig->disk);
}

/* Makes a chunk whose message has at least `bytes` bytes, which follow from `key`. */
static inline rp_status rp_rig_try_chunk(const rp_allocator *alloc, uint64_t key, size_t bytes,
                                         rp_chunk **out)
{
    return rp_test_try_ints(alloc, key, RP_CODEC_NONE, 1, bytes / 4 + 1, out);
}

static inline rp_chunk *rp_rig_chunk(uint64_t key, size_t bytes)
{
    rp_chunk *chunk = NULL;

    assert_ok(rp_rig_try_chunk(rp_allocator_default(), key, bytes, &chunk));
    return chunk;
}

/* Reads the chunk at `location` and compares it with `chunk`. */
static inline rp_status rp_rig_compare(rp_segments *s, const rp_disk_location *location,
                                       const rp_chunk *chunk, rp_error *err)
{
    static _Thread_local uint8_t data[1 << 20];
    rp_status st;

    if (location->size != chunk->wire_bytes || location->size > sizeof data) return RP_INVALID;
    st = rp_segments_read(s, location, RP_RECORD_CHUNK, data, NULL, err);
    if (st == RP_OK && memcmp(data, chunk->wire, location->size) != 0) st = RP_INTERNAL;
    return st;
}

static inline void rp_rig_check(rp_rig *rig)
{
    rp_error err = {0};

    assert_ok_err(rp_segments_check(rig->segments, &err), &err);
}

#endif
