/* SPDX-License-Identifier: Apache-2.0 */
/* Reads from a failing disk what can still be read. */
#ifndef RP_DISK_FILES_SALVAGE_H
#define RP_DISK_FILES_SALVAGE_H

#include "disk/files.h"

/* Takes ownership of `inner`, a file layer, and returns a file layer that behaves like it, with
 * two differences:
 *
 *   - a read that fails is repeated in pieces of RP_SALVAGE_BYTES. A piece that cannot be read
 *     becomes zeros: checksums of records detect the damage, and the data around it is kept;
 *   - a file that cannot be opened for reading, or of which no piece can be read, fails with
 *     RP_CORRUPT instead of RP_UNAVAILABLE, so that it counts as damaged.
 *
 * Returns owned. RP_NO_RESOURCE; in that case the caller keeps `inner`. */
RP_NODISCARD rp_status rp_files_salvage(const rp_allocator *alloc, rp_files *inner,
                                        rp_files **out, rp_error *err);

enum { RP_SALVAGE_BYTES = 4096 };

#endif
