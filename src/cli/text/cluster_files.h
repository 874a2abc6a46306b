/* SPDX-License-Identifier: Apache-2.0 */
/* Job files that run an Ape-X program (reprise/rl/apex.h) on a cluster: a batch script for
 * Slurm, or a manifest for Kubernetes.
 *
 * Both kinds of job start the parts of the program: one `reprise serve` per shard of the
 * replay, one learner, one evaluator, and the actors. A part that ends with a status other than
 * 0 is restarted. The job ends when the learner or the evaluator ends. All parts use the same
 * token (a password of the servers), which the job file does not contain.
 *
 * The arguments of the program can contain any characters. `reprise` gets exactly these bytes:
 * neither a shell nor Kubernetes expands variables or patterns in them. Pure functions. */
#ifndef RP_CLI_TEXT_CLUSTER_FILES_H
#define RP_CLI_TEXT_CLUSTER_FILES_H

#include "cli/text/problem.h"
#include "cli/text/text_buffer.h"

/* Size of a name, terminator included. Kubernetes appends suffixes to it and allows 63
 * characters. */
enum { RP_CLUSTER_NAME_BYTES = 41 };

typedef struct rp_cluster_program {
    char name[RP_CLUSTER_NAME_BYTES]; /* made by rp_cluster_name() */
    const char *const *arguments;     /* arguments of `reprise` in the learner, evaluator and
                                         actors */
    size_t argument_count;
    int64_t actors, shards; /* >= 1 */
    int64_t seconds;        /* time limit of the job; 0: no limit */
    int port;               /* port on which the servers of the replay listen */
    const char *image;      /* container image, for Kubernetes */
} rp_cluster_program;

/* Writes to `out` a name that Slurm and Kubernetes accept, made from `text`: lower-case
 * letters, digits, and single dashes between them. Bytes before the first letter of `text` are
 * left out; other bytes that are not allowed become dashes. If `text` has no letter, the name
 * is "reprise". */
void rp_cluster_name(const char *text, char out[RP_CLUSTER_NAME_BYTES]);

/* Append the batch script, or the manifest in YAML, to `out`. rp_cluster_kubernetes() returns
 * RP_INVALID if an argument is not UTF-8, because a manifest cannot contain it. */
void rp_cluster_slurm(const rp_cluster_program *program, rp_text_buffer *out);
RP_NODISCARD rp_status rp_cluster_kubernetes(const rp_cluster_program *program,
                                             rp_text_buffer *out, rp_problem *problem);

#endif
