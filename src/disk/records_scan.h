/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file of records from its header to its end. Used by recovery and the offline
 * tools. */
#ifndef RP_DISK_RECORDS_SCAN_H
#define RP_DISK_RECORDS_SCAN_H

#include "disk/record.h"

/* Called for each record. `offset` is the offset of the record's header in the file. The
 * payload is borrowed until the call returns. Returns false to stop the scan. */
typedef bool rp_record_visit(void *ctx, uint64_t offset, const rp_record *record);

typedef struct rp_records_scan_options {
    const rp_allocator *alloc;
    rp_files *files;
    const char *path;
    rp_file_kind kind;        /* the kind that the file must have */
    const rp_store_id *store; /* the store that the file must have; NULL: any */
    rp_record_visit *each;
    void *ctx;
} rp_records_scan_options;

/* Scans a file. If the file has a seal (the last record of a finished segment or journal file),
 * the seal is checked against all bytes before it.
 *
 * Sets `*end` to the offset of the first byte after the last good record, and `*header` to the
 * header of the file, even if a record is bad. If the header of the file is bad, sets `*end` to
 * 0.
 *
 * Returns RP_OK at the end of the file, even if the file ends within a record; to detect that,
 * the caller can compare `*end` with the size of the file. Returns RP_CORRUPT at any other bad
 * record. A caller that knows how much of the file was synced can tell damage from a torn tail
 * (the end of a write that a crash interrupted). Errors: RP_NOT_FOUND, RP_PRECONDITION (a newer
 * format), RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_records_scan(const rp_records_scan_options *options,
                                       rp_file_header *header, uint64_t *end, rp_error *err);

#endif
