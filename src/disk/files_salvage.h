/* SPDX-License-Identifier: Apache-2.0 */
/* A file layer (files.h) for a failing disk, which reads what can still be read. */
#ifndef RP_DISK_FILES_SALVAGE_H
#define RP_DISK_FILES_SALVAGE_H

#include "disk/files.h"

/* Takes ownership of `inner`, a file layer, and returns a file layer that behaves like it, with
 * two differences:
 *
 *   - a read that fails with RP_UNAVAILABLE is repeated in pieces of RP_SALVAGE_BYTES. A piece
 *     that cannot be read becomes zeros. The data around the piece is kept, and the checksums
 *     of the records detect the zeros;
 *   - if a file cannot be opened for reading, or no piece of a read succeeds, the call returns
 *     RP_CORRUPT instead of RP_UNAVAILABLE, so that the file counts as damaged.
 *
 * The caller owns `*out`. If there is no memory, returns RP_NO_RESOURCE, and the caller still
 * owns `inner`. */
RP_NODISCARD rp_status rp_files_salvage(const rp_allocator *alloc, rp_files *inner,
                                        rp_files **out, rp_error *err);

enum { RP_SALVAGE_BYTES = 4096 };

#endif
