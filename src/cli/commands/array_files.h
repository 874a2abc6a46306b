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
    bool is_given; /* the word was NAME=FILE; otherwise `name` is made from the path */
    void *bytes;   /* the mapped file; NULL: not mapped */
    size_t size;
    rp_tensor tensor;
} rp_array_file;

typedef struct rp_array_files {
    rp_array_file list[RP_MAX_WORDS];
    const rp_array_file *order[RP_MAX_WORDS]; /* in the order of the columns of an item */
    size_t count;
    rp_array_file priorities; /* if `bytes` is NULL, there are none */
} rp_array_files;

/* Maps the files into memory and orders them. Each of the words is FILE.npy or NAME=FILE.npy.
 * If the table has no signature (`signature` is NULL), the order is that of the words. With a
 * signature, each name must be that of a column of the signature, and the files get the order
 * of the columns. There is one exception: if no word is NAME=FILE and no file has the name of a
 * column, the order is that of the words.
 *
 * The caller must zero-initialise `files`, and must close them even after a failure. Borrows
 * `words`. After a failure, `problem` has the error. */
rp_status rp_array_files_load(rp_array_files *files, rp_arena *arena, const char *const *words,
                              size_t count, const char *table, const rp_signature *signature,
                              rp_problem *problem);
void rp_array_files_close(rp_array_files *files);

/* Returns the row of an item, valid until the files are closed. Its elements can be unaligned,
 * so the caller must copy them. */
rp_tensor rp_array_file_row(const rp_array_file *file, size_t item);

#endif
