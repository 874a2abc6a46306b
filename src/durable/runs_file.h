/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the file RUNS of a data directory. runs_file.c has its format. */
#ifndef RP_DURABLE_RUNS_FILE_H
#define RP_DURABLE_RUNS_FILE_H

#include "disk/files.h"
#include "runs/runs.h"

typedef struct rp_runs_found {
    uint64_t records;  /* that are whole and in order */
    uint64_t end;      /* of the last of them, in the file */
    bool has_left_out; /* there was no room for a run in `runs` */
} rp_runs_found;

/* Adds the runs of the file to `runs`. A run for which there is no room, or whose name one of
 * `runs` has, is left out. If the file is damaged, the runs before the damage are added.
 * RP_NOT_FOUND (no such file), RP_CORRUPT (names the file and the reason), RP_PRECONDITION (a
 * newer format), RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_runs_file_read(const rp_allocator *alloc, rp_files *files,
                                         rp_runs *runs, rp_runs_found *out, rp_error *err);

#endif
