/* SPDX-License-Identifier: Apache-2.0 */
/* The file of --program, which describes an Ape-X program of `reprise train`: the agent, its
 * settings, and the nodes that run its parts. docs/program.yaml shows every key. Each key
 * stands for one option of the command; an option on the command line takes precedence.
 *
 * Unknown keys, repeated keys and values out of bounds are errors. The error text names the
 * position in the file. */
#ifndef RP_CLI_TRAIN_TRAIN_PROGRAM_H
#define RP_CLI_TRAIN_TRAIN_PROGRAM_H

#include "cli/text/arena.h"
#include "cli/text/text_buffer.h"
#include "cli/train/train.h"

enum { RP_PROGRAM_MAX_SHARDS = 256 };

typedef struct rp_program {
    rp_arena arena;
    rp_flags flags;    /* options of the file, which rp_program_merge() merges with those of the
                          command line; the first word is the agent */
    const char *dir;   /* folder of the run; NULL: not given */
    const char *serve; /* --serve of the file; NULL: not given */
    const char *addresses[RP_PROGRAM_MAX_SHARDS]; /* addresses of the shards of the replay, for
                                                     --role */
    size_t address_count;
} rp_program;

/* Initialises an empty program. If `alloc` is NULL, uses the C library's allocator. */
void rp_program_init(rp_program *program, const rp_allocator *alloc);
void rp_program_deinit(rp_program *program);

/* Reads a file. The string `file` must outlive the program. Errors: RP_INVALID, RP_NOT_FOUND
 * (the file cannot be read), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_program_read_file(rp_program *program, const char *file,
                                            rp_problem *problem);
/* Reads the `size` bytes of `text` as rp_program_read_file() reads a file. `file` is only a
 * name for error texts. */
RP_NODISCARD rp_status rp_program_read_text(rp_program *program, const char *file,
                                            const char *text, size_t size, rp_problem *problem);

/* Merges the command line into the program: an option of the command line replaces the same
 * option of the file. With --role, which starts one part of the program, also sets the
 * addresses of the replay and the folder of this part from the file. Errors: RP_INVALID,
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_program_merge(rp_program *program, const rp_flags *given,
                                        rp_problem *problem);

/* Writes a merged program as a file that describes the same program. The file contains all
 * settings of the agent, which are read from `folder`. The file is YAML, or JSON if `json` is
 * true. */
void rp_program_print(const rp_program *program, const rp_run_folder *folder, bool json,
                      rp_text_buffer *out);

#endif
