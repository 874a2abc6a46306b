/* SPDX-License-Identifier: Apache-2.0 */
/* A program of `reprise train` in one file: the agent, its settings, and the nodes that run it.
 * docs/program.yaml shows every key. The file is a form of the options: each key stands for one
 * option of the command, and options of the command line take precedence.
 *
 * Unknown keys, keys given twice and values out of their bounds are errors, which name the
 * place. */
#ifndef RP_CLI_TRAIN_TRAIN_PROGRAM_H
#define RP_CLI_TRAIN_TRAIN_PROGRAM_H

#include "cli/text/arena.h"
#include "cli/text/text_buffer.h"
#include "cli/train/train.h"

enum { RP_PROGRAM_MAX_SHARDS = 256 };

typedef struct rp_program {
    rp_arena arena;
    rp_flags flags;    /* of the file, or merged; the first word is the agent */
    const char *dir;   /* of the run; NULL: none given */
    const char *serve; /* NULL: none given */
    const char *addresses[RP_PROGRAM_MAX_SHARDS]; /* of the shards, for roles */
    size_t address_count;
} rp_program;

/* `alloc` NULL: the C library's. */
void rp_program_init(rp_program *program, const rp_allocator *alloc);
void rp_program_deinit(rp_program *program);

/* Reads a file. `file` must outlive the program. RP_INVALID, RP_NOT_FOUND (it cannot be read),
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_program_read_file(rp_program *program, const char *file,
                                            rp_problem *problem);
/* As rp_program_read_file(), but parses `text`; `file` is only a name for error texts. */
RP_NODISCARD rp_status rp_program_read_text(rp_program *program, const char *file,
                                            const char *text, size_t size, rp_problem *problem);

/* Adds the options of the command line to those of the file, which they replace. For --role,
 * takes the address of the replay and the folder of this role from the file. RP_INVALID,
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_program_merge(rp_program *program, const rp_flags *given,
                                        rp_problem *problem);

/* Writes a program that was merged, with every setting of its agent in `folder`: a file that
 * describes the same program. `json`: for programs; JSON is YAML too. */
void rp_program_print(const rp_program *program, const rp_run_folder *folder, bool json,
                      rp_text_buffer *out);

#endif
