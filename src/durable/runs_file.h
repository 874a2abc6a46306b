/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the file RUNS of a data directory, which has the training runs (runs/runs.h).
 * runs_file.c defines its format. */
#ifndef RP_DURABLE_RUNS_FILE_H
#define RP_DURABLE_RUNS_FILE_H

#include "disk/files.h"
#include "runs/runs.h"

typedef struct rp_runs_found {
    uint64_t records;  /* number of good records from the first on */
    uint64_t end;      /* offset in the file of the first byte after them */
    bool has_left_out; /* at least one run of the file was left out, since there was no room for
                          it */
} rp_runs_found;

/* Adds the runs of the file to `runs`. Leaves out a run if `runs` has no room for it, or
 * already has a run of the same name. If the file is damaged, the runs before the damage are
 * added. Errors: RP_NOT_FOUND (no such file), RP_CORRUPT (names the file and the reason),
 * RP_PRECONDITION (a newer format), RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_runs_file_read(const rp_allocator *alloc, rp_files *files,
                                         rp_runs *runs, rp_runs_found *out, rp_error *err);

#endif
