/* SPDX-License-Identifier: Apache-2.0 */
/* Dense layers: out = activation(in W + b). */
#include <assert.h>
#include <string.h>

#include "error/fail.h"
#include "nn/activation.h"
#include "nn/layer.h"

void rp_dense_forward(const rp_gemm_ops *gemm, const rp_dense *d)
{
    rp_gemm g = {
        .m = d->rows,
        .n = d->out_size,
        .k = d->in_size,
        .a = d->in,
        .a_row = d->in_row,
        .a_col = 1,
        .b = d->weight,
        .b_row = d->out_size,
        .b_col = 1,
        .c = d->out,
        .c_row = d->out_row,
        .bias = d->bias,
        .activation = d->activation,
        .accumulate = d->accumulate,
    };

    assert(d->in_row >= d->in_size && d->out_row >= d->out_size);
    gemm->run(&g);
}

/* Writes the sums of columns to `sums`, or adds them. */
static void sum_columns(const rp_loops *loops, const rp_dense *d, rp_real *sums)
{
    if (!d->accumulate) memset(sums, 0, d->out_size * sizeof *sums);
    for (size_t i = 0; i < d->rows; i++) loops->add(sums, d->out + i * d->out_row, d->out_size);
}

void rp_dense_backward(const rp_pass *pass, const rp_dense *d, rp_real *grad_weight,
                       rp_real *grad_bias, rp_real *grad_in)
{
    rp_gemm by_weight = {
        .m = d->in_size,
        .n = d->out_size,
        .k = d->rows,
        .a = d->in,
        .a_row = 1,
        .a_col = d->in_row,
        .b = d->out,
        .b_row = d->out_row,
        .b_col = 1,
        .c = grad_weight,
        .c_row = d->out_size,
        .accumulate = d->accumulate,
    };
    rp_gemm by_in = {
        .m = d->rows,
        .n = d->in_size,
        .k = d->out_size,
        .a = d->out,
        .a_row = d->out_row,
        .a_col = 1,
        .b = d->weight,
        .b_row = 1,
        .b_col = d->out_size,
        .c = grad_in,
        .c_row = d->in_row,
        .accumulate = d->add_in,
    };

    assert(d->activation == RP_LINEAR);
    if (grad_weight != NULL) pass->gemm->run(&by_weight);
    if (grad_bias != NULL) sum_columns(pass->loops, d, grad_bias);
    if (grad_in != NULL) pass->gemm->run(&by_in);
}

static rp_status plan(rp_layer *layer, rp_error *err)
{
    rp_net_shape in = layer->in;
    size_t out = layer->spec.out;

    if (out == 0) return rp_rl_fail(err, RP_INVALID, "out must be >= 1, got 0");
    layer->out = (rp_net_shape){1, 1, out};
    rp_layer_add_weight(layer, "weight", layer->in_size, out);
    if (in.height * in.width > 1) { /* PyTorch flattens channels first */
        rp_net_parameter *weight = &layer->parameters[0];
        const size_t dims[] = {in.height, in.width, in.channels, out};
        const uint8_t order[] = {3, 2, 0, 1};

        weight->rank = 4;
        memcpy(weight->dims, dims, sizeof dims);
        memcpy(weight->order, order, sizeof order);
        weight->file_merge = 1;
    }
    rp_layer_add_bias(layer, "bias", out, layer->in_size);
    return RP_OK;
}

static rp_dense dense_of(const rp_layer *layer, const rp_pass *pass)
{
    return (rp_dense){
        .rows = pass->rows,
        .in_size = layer->in_size,
        .out_size = layer->out_size,
        .in = pass->in,
        .weight = rp_pass_param(layer, pass, 0),
        .bias = rp_pass_param(layer, pass, 1),
        .out = pass->out,
        .in_row = layer->in_size,
        .out_row = layer->out_size,
        .activation = layer->spec.activation,
    };
}

static void forward(const rp_layer *layer, const rp_pass *pass)
{
    rp_dense d = dense_of(layer, pass);

    rp_dense_forward(pass->gemm, &d);
}

static void backward(const rp_layer *layer, const rp_pass *pass)
{
    rp_dense d = dense_of(layer, pass);

    rp_activate_backward(pass->loops, layer->spec.activation, pass->out, pass->grad_out,
                         pass->rows * layer->out_size);
    d.activation = RP_LINEAR;
    d.out = pass->grad_out;
    rp_dense_backward(pass, &d, rp_pass_grad(layer, pass, 0), rp_pass_grad(layer, pass, 1),
                      pass->grad_in);
}

const rp_layer_kind rp_dense_kind = {"dense", plan, forward, backward};
