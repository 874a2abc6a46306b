/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file of records from its header to its end: for recovery and the tools. */
#ifndef RP_DISK_RECORDS_SCAN_H
#define RP_DISK_RECORDS_SCAN_H

#include "disk/record.h"

/* Called for each record. `offset` is that of the record's header; the payload is borrowed
 * until the call returns. Returns false to stop the scan. */
typedef bool rp_record_visit(void *ctx, uint64_t offset, const rp_record *record);

typedef struct rp_records_scan_options {
    const rp_allocator *alloc;
    rp_files *files;
    const char *path;
    rp_file_kind kind;        /* RP_CORRUPT if the file has another */
    const rp_store_id *store; /* RP_CORRUPT if the file has another; NULL: any */
    rp_record_visit *each;
    void *ctx;
} rp_records_scan_options;

/* Scans a file. The seal of a segment is checked against all bytes before it.
 *
 * `*end` is the offset behind the last good record and `*header` the header of the file. Both
 * are also set if a record is bad (RP_CORRUPT); `*end` is then >= RP_FILE_HEADER_BYTES.
 *
 * RP_OK if the file ends, even within a record that is cut off: compare `*end` with the size of
 * the file. RP_CORRUPT at any other bad record. A caller that knows how much of the file was
 * synced can tell a torn tail from damage.
 * RP_NOT_FOUND, RP_PRECONDITION (a newer format), RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_records_scan(const rp_records_scan_options *options,
                                       rp_file_header *header, uint64_t *end, rp_error *err);

#endif
