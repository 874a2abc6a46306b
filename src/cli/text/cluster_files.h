/* SPDX-License-Identifier: Apache-2.0 */
/* Job files of clusters: the parts of a program (reprise/rl/apex.h) as a batch script of Slurm
 * or as a manifest of Kubernetes.
 *
 * Both start `reprise serve` once for each shard of the replay, a learner, an evaluator and the
 * actors, restart what ends with a status other than 0, and end with the learner or the
 * evaluator. All parts use one token, which neither file contains.
 *
 * The arguments may be any text: they arrive at `reprise` byte for byte, and neither a shell
 * nor Kubernetes expands anything in them. Pure functions. */
#ifndef RP_CLI_TEXT_CLUSTER_FILES_H
#define RP_CLI_TEXT_CLUSTER_FILES_H

#include "cli/text/problem.h"
#include "cli/text/text_buffer.h"

enum { RP_CLUSTER_NAME_BYTES = 41 }; /* Kubernetes adds suffixes and has a limit of 63 */

typedef struct rp_cluster_program {
    char name[RP_CLUSTER_NAME_BYTES]; /* rp_cluster_name() */
    const char *const *arguments;     /* of `reprise`, for learner, evaluator and actors */
    size_t argument_count;
    int64_t actors, shards; /* >= 1 */
    int64_t seconds;        /* time limit; 0: none */
    int port;               /* of the replay */
    const char *image;      /* of Kubernetes */
} rp_cluster_program;

/* Makes a name that both accept: lower-case letters, digits, and dashes between them, from the
 * first letter on. Other bytes become dashes. "reprise" if nothing is left. */
void rp_cluster_name(const char *text, char out[RP_CLUSTER_NAME_BYTES]);

/* Adds a batch script, or a manifest in YAML. rp_cluster_kubernetes() fails with RP_INVALID if
 * an argument is not UTF-8, because a manifest cannot contain it. */
void rp_cluster_slurm(const rp_cluster_program *program, rp_text_buffer *out);
RP_NODISCARD rp_status rp_cluster_kubernetes(const rp_cluster_program *program,
                                             rp_text_buffer *out, rp_problem *problem);

#endif
