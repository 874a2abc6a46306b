/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the offline tool share (reprise/data.h): reading records at their
 * locations, and finding the checkpoint that a server would load. */
#ifndef RP_DURABLE_TOOL_DATA_READ_H
#define RP_DURABLE_TOOL_DATA_READ_H

#include "durable/format/manifest.h"
#include "util/buf.h"

/* Reads records at locations; keeps the segment open that it read last. Zero-initialise it. */
typedef struct rp_data_reader {
    const rp_allocator *alloc;
    rp_files *files; /* borrowed */
    rp_file *file;
    uint64_t segment;
    rp_buf buf; /* rp_buf_init() */
} rp_data_reader;

void rp_data_reader_init(rp_data_reader *r, const rp_allocator *alloc, rp_files *files);
void rp_data_reader_deinit(rp_data_reader *r);

/* The record at `location`, checked. The payload is valid until the next call. The sentence
 * names the file and the offset. RP_CORRUPT, RP_NOT_FOUND, RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_data_reader_get(rp_data_reader *r, const rp_disk_location *location,
                                          rp_record_kind kind, rp_record *out, rp_error *err);

/* Lists the numbers of the files in a folder of the data directory. A missing folder is empty.
 * rp_number_list_free(). RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_data_list_numbers(const rp_allocator *alloc, rp_files *files,
                                            const char *folder, rp_number_list *out,
                                            rp_error *err);

/* The manifest of the checkpoint `number`, or, if that is 0, of the one that CURRENT names, or
 * of the newest that can be read. Returns owned. RP_NOT_FOUND, RP_CORRUPT and what
 * rp_manifest_load() says. */
RP_NODISCARD rp_status rp_data_find_manifest(const rp_allocator *alloc, rp_files *files,
                                             uint64_t number, rp_manifest **out, rp_error *err);

#endif
