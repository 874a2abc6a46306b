/* SPDX-License-Identifier: Apache-2.0 */
/* The disk location of a record: a segment (an append-only file of records), an offset in it,
 * and the size of the payload. */
#ifndef RP_DISK_LOCATION_H
#define RP_DISK_LOCATION_H

#include "disk/record.h"

typedef struct rp_segment rp_segment;

typedef struct rp_disk_location {
    uint64_t segment; /* number of the segment, from 1; 0: no location */
    uint64_t offset;  /* of the record's header, in bytes */
    uint32_t size;    /* of the payload, in bytes */
} rp_disk_location;

/* Returns the packed location: segment and offset in one word, segment << 32 | offset. Segment
 * and offset must be below 2^32. */
static inline uint64_t rp_location_pack(uint64_t segment, uint64_t offset)
{
    return segment << 32 | offset;
}

/* Returns the size of the record with its header, in bytes. */
static inline uint64_t rp_location_bytes(const rp_disk_location *location)
{
    return RP_RECORD_HEADER_BYTES + (uint64_t)location->size;
}

/* Returns the offset of the first byte after the record. */
static inline uint64_t rp_location_end(const rp_disk_location *location)
{
    return location->offset + rp_location_bytes(location);
}

#endif
