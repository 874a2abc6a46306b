/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the layers of a network to ONNX operators. */
#ifndef RP_NN_ONNX_LAYERS_H
#define RP_NN_ONNX_LAYERS_H

#include "nn/net.h"
#include "nn/onnx_graph.h"

/* The state of the translation, which follows the batch from layer to layer. In ONNX the
 * channels of an image come first, {batch, channels, height, width}; in our networks (nn.h)
 * they come last. Between convolutions an image stays in the order of ONNX. All other layers
 * get rows in the order of our networks. */
typedef struct rp_onnx_flow {
    rp_onnx_graph *graph;
    const rp_real *params;
    rp_onnx_value value;         /* the output of the layer that was translated last */
    bool planes;                 /* true: `value` is {batch, channels, height, width}; false:
                                    {batch, numbers} */
    const rp_onnx_value *states; /* for each LSTM layer, its state vectors h and c before the
                                    step */
    rp_onnx_value *states_after; /* for each LSTM layer, its state vectors h and c after the
                                    step */
    size_t lstms;                /* number of LSTM layers translated so far */
} rp_onnx_flow;

/* Adds the operators of one layer. They read flow->value. Afterwards flow->value is the output
 * of the layer. */
void rp_onnx_layer(rp_onnx_flow *flow, const rp_layer *layer);

/* Reshapes the batch to rows in the order of our networks, {batch, numbers}. `shape` is the
 * shape of one row. */
void rp_onnx_to_rows(rp_onnx_flow *flow, rp_net_shape shape);

#endif
