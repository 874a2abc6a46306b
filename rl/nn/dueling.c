/* SPDX-License-Identifier: Apache-2.0 */
/* The dueling head (Wang et al. 2016, equation 9): Q = V + A - mean of A over actions.
 *
 * V and A are dense products of their streams. With atoms, each atom is combined by itself. The
 * scratch of a row is V, then A; backward, their gradients. */
#include <assert.h>

#include "error/fail.h"
#include "nn/layer.h"

static size_t atoms_of(const rp_layer *layer)
{
    return layer->spec.atoms == 0 ? 1 : layer->spec.atoms;
}

static rp_status plan(rp_layer *layer, rp_error *err)
{
    size_t atoms = atoms_of(layer), actions = layer->spec.out, stream;

    if (actions == 0) return rp_rl_fail(err, RP_INVALID, "out must be >= 1, got 0");
    if (!layer->spec.shared && layer->in_size % 2 != 0)
        return rp_rl_fail(err, RP_INVALID,
                          "the input must be even, one half for each stream, got %zu",
                          layer->in_size);
    if (layer->spec.activation != RP_LINEAR)
        return rp_rl_fail(err, RP_INVALID, "activation must be linear");
    stream = layer->spec.shared ? layer->in_size : layer->in_size / 2;
    layer->out = (rp_net_shape){1, 1, actions * atoms};
    layer->scratch_per_row = (1 + actions) * atoms;
    rp_layer_add_weight(layer, "value.weight", stream, atoms);
    rp_layer_add_bias(layer, "value.bias", atoms, stream);
    rp_layer_add_weight(layer, "advantage.weight", stream, actions * atoms);
    rp_layer_add_bias(layer, "advantage.bias", actions * atoms, stream);
    return RP_OK;
}

/* The product of stream 0, the value, or 1, the advantage. Its output is in the scratch. */
static rp_dense stream_of(const rp_layer *layer, const rp_pass *pass, size_t stream)
{
    size_t in_size = layer->parameters[0].dims[0], atoms = atoms_of(layer);
    size_t first = stream == 1 && !layer->spec.shared ? in_size : 0;

    return (rp_dense){
        .rows = pass->rows,
        .in_size = in_size,
        .out_size = stream == 0 ? atoms : layer->out_size,
        .in = pass->in + first,
        .weight = rp_pass_param(layer, pass, 2 * stream),
        .bias = rp_pass_param(layer, pass, 2 * stream + 1),
        .out = pass->scratch + stream * atoms,
        .in_row = layer->in_size,
        .out_row = layer->scratch_per_row,
    };
}

static void forward(const rp_layer *layer, const rp_pass *pass)
{
    rp_dense value = stream_of(layer, pass, 0), advantage = stream_of(layer, pass, 1);
    size_t atoms = atoms_of(layer), actions = layer->spec.out;

    rp_dense_forward(pass->gemm, &value);
    rp_dense_forward(pass->gemm, &advantage);
    for (size_t i = 0; i < pass->rows; i++) {
        const rp_real *v = value.out + i * value.out_row,
                      *a = advantage.out + i * value.out_row;
        rp_real *q = pass->out + i * layer->out_size;

        for (size_t k = 0; k < atoms; k++) {
            rp_real mean = 0;
            for (size_t j = 0; j < actions; j++) mean += a[j * atoms + k];
            mean /= (rp_real)actions;
            for (size_t j = 0; j < actions; j++)
                q[j * atoms + k] = v[k] + (a[j * atoms + k] - mean);
        }
    }
}

static void backward(const rp_layer *layer, const rp_pass *pass)
{
    rp_dense value = stream_of(layer, pass, 0), advantage = stream_of(layer, pass, 1);
    size_t atoms = atoms_of(layer), actions = layer->spec.out, half = value.in_size;
    rp_real *grad_in = pass->grad_in;

    assert(layer->spec.shared || 2 * half == layer->in_size);
    for (size_t i = 0; i < pass->rows; i++) {
        const rp_real *grad = pass->grad_out + i * layer->out_size;
        rp_real *v = value.out + i * value.out_row, *a = advantage.out + i * value.out_row;

        for (size_t k = 0; k < atoms; k++) {
            rp_real sum = 0;
            for (size_t j = 0; j < actions; j++) sum += grad[j * atoms + k];
            v[k] = sum;
            for (size_t j = 0; j < actions; j++)
                a[j * atoms + k] = grad[j * atoms + k] - sum / (rp_real)actions;
        }
    }
    rp_dense_backward(pass, &value, rp_pass_grad(layer, pass, 0), rp_pass_grad(layer, pass, 1),
                      grad_in);
    advantage.add_in = layer->spec.shared;
    if (grad_in != NULL && !layer->spec.shared) grad_in += half;
    rp_dense_backward(pass, &advantage, rp_pass_grad(layer, pass, 2),
                      rp_pass_grad(layer, pass, 3), grad_in);
}

const rp_layer_kind rp_dueling_kind = {"dueling", plan, forward, backward};
