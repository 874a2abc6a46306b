/* SPDX-License-Identifier: Apache-2.0 */
/* The names of files in a data directory. Segments, journal files and similar files have
 * numbers; the name of a numbered file is its number in 16 lower-case hexadecimal digits. */
#ifndef RP_DISK_NAMES_H
#define RP_DISK_NAMES_H

#include "disk/files.h"

enum { RP_NAME_DIGITS = 16, RP_SEGMENT_PATH_BYTES = 32, RP_JOURNAL_PATH_BYTES = 32 };
enum { RP_ROLLOUTS_PATH_BYTES = 40 };

/* The temporary path of a new journal file, until it is renamed. Readers ignore it. */
#define RP_JOURNAL_TEMPORARY "wal/next.tmp"

/* The file with the training runs of the store. */
#define RP_RUNS_PATH "RUNS"

/* Writes "seg/" and the number of a segment. Returns `out`. */
char *rp_segment_path(char out[RP_SEGMENT_PATH_BYTES], uint64_t number);
/* Writes "wal/" and the first LSN (log sequence number) of a journal file. Returns `out`. */
char *rp_journal_path(char out[RP_JOURNAL_PATH_BYTES], uint64_t first);

/* The folder for rollouts (named buffers of groups of items, reprise/rollouts.h): one file for
 * each checkpoint of a store that has rollouts. */
#define RP_ROLLOUTS_FOLDER "rollouts"
/* Writes "rollouts/" and the number of a checkpoint. Returns `out`. */
char *rp_rollouts_path(char out[RP_ROLLOUTS_PATH_BYTES], uint64_t checkpoint);

/* Parses a file name of 16 hexadecimal digits. Returns false for any other name. */
bool rp_name_parse(const char *name, uint64_t *number);

/* The numbers of the files in one folder, ascending. Only one thread may use a list. */
typedef struct rp_number_list {
    rp_allocator alloc;
    uint64_t *at;
    size_t count, capacity;
    size_t others; /* how many names are not numbers */
    bool bad;      /* out of memory, or more than 2^20 files */
} rp_number_list;

/* Lists a folder. If the folder is missing, returns RP_NOT_FOUND, and the list is empty. Other
 * errors: RP_NO_RESOURCE, RP_UNAVAILABLE. The caller calls rp_number_list_free() in every
 * case. */
RP_NODISCARD rp_status rp_number_list_read(rp_number_list *list, const rp_allocator *alloc,
                                           rp_files *files, const char *folder, rp_error *err);
/* Frees the numbers and leaves an empty list. A zeroed list is fine. */
void rp_number_list_free(rp_number_list *list);

#endif
