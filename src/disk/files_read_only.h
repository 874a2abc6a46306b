/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that inspect a data directory while another process possibly uses it. They never
 * create or change the directory, and never hold its lock beyond one call. */
#ifndef RP_DISK_FILES_READ_ONLY_H
#define RP_DISK_FILES_READ_ONLY_H

#include "disk/files.h"

/* Opens the files below an existing directory for reading. Calls that rename, remove or lock a
 * file, or create or sync a directory, succeed and do nothing. So recovery, which removes
 * left-over files, can run on a read-only directory. Creating a file fails with RP_UNAVAILABLE.
 * The caller owns `*out`. Errors: RP_NOT_FOUND, RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_files_open_read_only(const rp_allocator *alloc, const char *directory,
                                               rp_files **out, rp_error *err);

/* Returns the id of the process that holds the lock file `path`. Returns 0 if no process holds
 * the lock, and -1 if a process holds it but the file contains no id. If the lock is free, the
 * call acquires it in shared mode for a moment. */
int64_t rp_files_locked_by(const char *directory, const char *path);

/* Sets `*wall_ns` to the time at which a file was last written, by the wall clock. Returns
 * false if it is unknown. */
bool rp_files_modified(const char *directory, const char *path, int64_t *wall_ns);

/* Returns 1 if the directory has entries, 0 if it is empty, -1 if it cannot be opened (for
 * example because it does not exist). */
int rp_files_occupied(const char *directory);

#endif
