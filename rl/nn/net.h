/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a network, for the tape, initialisation and files.
 *
 * Invariants of a network:
 *   N1  the input of layer i + 1 is the output of layer i;
 *   N2  the parameters lie one after another, without gaps, in the order of layers;
 *   N3  the states of layers lie one after another within a state;
 *   N4  every size is within the bounds of net.c, so that sizes of tapes can be computed in 64
 *       bits. */
#ifndef RP_NN_NET_H
#define RP_NN_NET_H

#include "nn/layer.h"

struct rp_net {
    rp_allocator alloc;
    const rp_gemm_ops *gemm;
    const rp_loops *loops;
    size_t count;           /* layers */
    size_t size;            /* numbers in all parameters */
    size_t state_size;      /* numbers of state per sequence */
    size_t parameter_count; /* of all layers */
    rp_layer layers[];
};

/* Asserts N1 to N3. */
void rp_net_check(const rp_net *net);

/* Writes a file under another name, `path` with ".new" appended, and renames it. So `path` has
 * the old file or the new one, never a part. RP_UNAVAILABLE: the text has the reason. */
rp_status rp_net_write_file(const char *path, const uint8_t *bytes, size_t size, rp_error *err);

#endif
