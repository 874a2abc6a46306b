/* SPDX-License-Identifier: Apache-2.0 */
/* The .npy files of `reprise insert`: each is a column, with the items along the first
 * dimension. */
#ifndef RP_CLI_COMMANDS_ARRAY_FILES_H
#define RP_CLI_COMMANDS_ARRAY_FILES_H

#include "cli/help/flags.h"
#include "cli/text/arena.h"
#include "cli/text/problem.h"
#include "reprise/tensor.h"

typedef struct rp_array_file {
    const char *name, *path;
    bool is_given; /* `name` is that of NAME=FILE, not the file's */
    void *bytes;   /* mapped; NULL: not */
    size_t size;
    rp_tensor tensor;
} rp_array_file;

typedef struct rp_array_files {
    rp_array_file list[RP_MAX_WORDS];
    const rp_array_file *order[RP_MAX_WORDS]; /* in the order of the columns of an item */
    size_t count;
    rp_array_file priorities; /* bytes NULL: none */
} rp_array_files;

/* Maps the files FILE.npy or NAME=FILE.npy into memory and orders them. With a signature, their
 * names must be its names; only if no file is given as NAME=FILE and none is called as a
 * column, the files are its columns in their order. `files` is zeroed. Borrows `words`; the
 * caller closes the files also after a failure. Returns RP_OK or a status with a problem. */
rp_status rp_array_files_load(rp_array_files *files, rp_arena *arena, const char *const *words,
                              size_t count, const char *table, const rp_signature *signature,
                              rp_problem *problem);
void rp_array_files_close(rp_array_files *files);

/* Returns the row of an item, valid until the files are closed. Its elements may be unaligned:
 * copy them. */
rp_tensor rp_array_file_row(const rp_array_file *file, size_t item);

#endif
