/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the offline tools (reprise/data.h) share: read records by location, and find
 * the checkpoint that a server would load. */
#ifndef RP_DURABLE_TOOL_DATA_READ_H
#define RP_DURABLE_TOOL_DATA_READ_H

#include "durable/format/manifest.h"
#include "reprise/data.h"
#include "util/buf.h"

/* Reads records by disk location. Keeps the segment of the last record open.
 *
 * Invariant:
 *   Y1  `file` is the open file of `segment`, or NULL. */
typedef struct rp_data_reader {
    const rp_allocator *alloc;
    rp_files *files; /* borrowed */
    rp_file *file;
    uint64_t segment;
    rp_buf buf; /* the bytes of the record that was read last */
} rp_data_reader;

void rp_data_reader_init(rp_data_reader *r, const rp_allocator *alloc, rp_files *files);
void rp_data_reader_deinit(rp_data_reader *r);

/* Reads and checks the record at `location`. The payload is valid until the next call. The
 * error text names the file and the offset. Errors: RP_CORRUPT, RP_NOT_FOUND, RP_UNAVAILABLE,
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_data_reader_get(rp_data_reader *r, const rp_disk_location *location,
                                          rp_record_kind kind, rp_record *out, rp_error *err);

/* Lists the numbers of the files in a folder of the data directory. A missing folder counts as
 * empty. The caller frees the list with rp_number_list_free(). Errors: RP_NO_RESOURCE,
 * RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_data_list_numbers(const rp_allocator *alloc, rp_files *files,
                                            const char *folder, rp_number_list *out,
                                            rp_error *err);

/* Loads the manifest of checkpoint `number`. If `number` is 0, loads the manifest of the
 * checkpoint that CURRENT names, or else the newest manifest that can be read. The caller owns
 * `*out`. Errors: RP_NOT_FOUND, and the errors of rp_manifest_load(). */
RP_NODISCARD rp_status rp_data_find_manifest(const rp_allocator *alloc, rp_files *files,
                                             uint64_t number, rp_manifest **out, rp_error *err);

/* Checks a file of rollouts against the manifest of its checkpoint. If `thorough` is set, also
 * loads all rollouts. Sets the state, the problem and the counts of `file` (reprise/data.h).
 * Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_data_check_rollouts(const rp_allocator *alloc, rp_files *files,
                                              bool thorough, rp_data_file *file, rp_error *err);

#endif
