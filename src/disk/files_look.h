/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a directory that somebody else may be using: it is never made, never locked for
 * longer than a look takes, and never changed. */
#ifndef RP_DISK_FILES_LOOK_H
#define RP_DISK_FILES_LOOK_H

#include "disk/files.h"

/* The files below a directory, which must be there, to be read: what would change something is
 * said to have been done and is not, so that code which tidies up on its way can run over it;
 * making a file fails with RP_UNAVAILABLE. Locking does nothing. Returns owned.
 * RP_NOT_FOUND, RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_files_open_read_only(const rp_allocator *alloc, const char *directory,
                                               rp_files **out, rp_error *err);

/* The process that holds the lock `path`, 0 if nobody does, -1 if it does not say who. Takes it
 * shared, if it can, for as long as the question takes. */
int64_t rp_files_locked_by(const char *directory, const char *path);

/* When a file was last written to, by the wall clock. False if that cannot be told. */
bool rp_files_modified(const char *directory, const char *path, int64_t *wall_ns);

/* Whether there is anything in a directory: 1, 0 if it is empty, -1 if there is none. */
int rp_files_occupied(const char *directory);

#endif
