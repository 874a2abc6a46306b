/* SPDX-License-Identifier: Apache-2.0 */
/* The struct rp_net, for the files of this folder that run, initialise or save a network.
 *
 * Invariants of a network:
 *   N1  the input of layer i + 1 is the output of layer i;
 *   N2  the parameters are in the order of the layers, without gaps;
 *   N3  the LSTM states of the layers are in the order of the layers, without gaps;
 *   N4  every size is within the bounds of net.c, so the size of a tape (the object that runs a
 *       network) does not overflow 64 bits. */
#ifndef RP_NN_NET_H
#define RP_NN_NET_H

#include "nn/layer.h"

struct rp_net {
    rp_allocator alloc;
    const rp_gemm_ops *gemm;
    const rp_loops *loops;
    size_t count;           /* number of layers */
    size_t size;            /* numbers in all parameters */
    size_t state_size;      /* numbers of LSTM state per sequence */
    size_t parameter_count; /* parameter tensors of all layers */
    rp_layer layers[];
};

/* Asserts the invariants N1 to N3. */
void rp_net_check(const rp_net *net);

/* Replaces the file `path` atomically: writes the bytes to a file named `path` with ".new"
 * appended, then renames it to `path`. Errors: RP_UNAVAILABLE (the text of the error gives the
 * reason). */
rp_status rp_net_write_file(const char *path, const uint8_t *bytes, size_t size, rp_error *err);

#endif
