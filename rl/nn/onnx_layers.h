/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the layers of a network to ONNX operators. */
#ifndef RP_NN_ONNX_LAYERS_H
#define RP_NN_ONNX_LAYERS_H

#include "nn/net.h"
#include "nn/onnx_graph.h"

/* The state of the translation: the batch as it passes from layer to layer. ONNX has the
 * channels of an image first, {batch, channels, height, width}; our networks have them last.
 * Between convolutions an image keeps the order of ONNX. All other layers get rows in our
 * order. */
typedef struct rp_onnx_flow {
    rp_onnx_graph *graph;
    const rp_real *params;
    rp_onnx_value value;         /* the output of the latest layer */
    bool planes;                 /* true: `value` is {batch, channels, height, width}; false:
                                    {batch, numbers} */
    const rp_onnx_value *states; /* for each LSTM, h and c before the step */
    rp_onnx_value *states_after; /* for each LSTM, h and c after the step */
    size_t lstms;                /* LSTM layers translated so far */
} rp_onnx_flow;

/* Adds the operators of one layer. The layer reads flow->value, and flow->value becomes its
 * output. */
void rp_onnx_layer(rp_onnx_flow *flow, const rp_layer *layer);

/* Reshapes the batch to rows in our order, {batch, numbers}. `shape` is the shape of one
 * row. */
void rp_onnx_to_rows(rp_onnx_flow *flow, rp_net_shape shape);

#endif
