/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of a network as operators of ONNX. */
#ifndef RP_NN_ONNX_LAYERS_H
#define RP_NN_ONNX_LAYERS_H

#include "nn/net.h"
#include "nn/onnx_graph.h"

/* A batch on its way through the network. ONNX has the channels of images first, {batch,
 * channels, height, width}; we have them last. Between convolutions an image stays in the order
 * of ONNX. All other layers get rows in our order. */
typedef struct rp_onnx_flow {
    rp_onnx_graph *graph;
    const rp_real *params;
    rp_onnx_value value;
    bool planes; /* value is {batch, channels, height, width}; otherwise {batch, numbers} */
    const rp_onnx_value *states; /* h and c before the step, for each LSTM */
    rp_onnx_value *states_after; /* the same after the step */
    size_t lstms;                /* how many the batch has passed so far */
} rp_onnx_flow;

/* Adds one layer. Its input is flow->value, which becomes its output. */
void rp_onnx_layer(rp_onnx_flow *flow, const rp_layer *layer);

/* Turns the batch into rows, {batch, numbers}. `shape` is the shape of a row. */
void rp_onnx_to_rows(rp_onnx_flow *flow, rp_net_shape shape);

#endif
