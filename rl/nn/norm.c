/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm (Ba et al. 2016): each row gets mean 0 and variance 1, then gain and bias.
 *
 * Kept per row: its mean, and 1 / sqrt(variance + epsilon). Sums are in the type of the
 * numbers, in the order of the row. */
#include <assert.h>
#include <string.h>

#include "error/fail.h"
#include "nn/activation.h"
#include "nn/layer.h"
#include "nn/real.h"

static const double epsilon = 1e-5;

static rp_status plan(rp_layer *layer, rp_error *err)
{
    if (layer->spec.out != 0)
        return rp_rl_fail(err, RP_INVALID,
                          "out must be 0, since a norm keeps its width, got %zu",
                          layer->spec.out);
    layer->out = layer->in;
    layer->kept = 2;
    rp_layer_add_bias(layer, "weight", layer->in_size, layer->in_size);
    layer->parameters[0].is_gain = true;
    rp_layer_add_bias(layer, "bias", layer->in_size, layer->in_size);
    for (size_t i = 0; i < 2; i++) layer->parameters[i].fan_in = 0;
    return RP_OK;
}

static void forward(const rp_layer *layer, const rp_pass *pass)
{
    const rp_real *gain = rp_pass_param(layer, pass, 0), *bias = rp_pass_param(layer, pass, 1);
    size_t n = layer->in_size;

    for (size_t i = 0; i < pass->rows; i++) {
        const rp_real *x = pass->in + i * n;
        rp_real *y = pass->out + i * n;
        rp_real mean = 0, variance = 0, scale;

        for (size_t j = 0; j < n; j++) mean += x[j];
        mean /= (rp_real)n;
        for (size_t j = 0; j < n; j++) variance += (x[j] - mean) * (x[j] - mean);
        scale = 1 / rp_sqrt(variance / (rp_real)n + (rp_real)epsilon);
        for (size_t j = 0; j < n; j++) y[j] = (x[j] - mean) * scale * gain[j] + bias[j];
        pass->kept[2 * i] = mean;
        pass->kept[2 * i + 1] = scale;
    }
    rp_activate(layer->spec.activation, pass->out, pass->rows * n);
}

/* With x' the normalised row and h = grad * gain, the gradient by x is
 * scale * (h - mean(h) - x' * mean(h x')). */
static void backward_row(const rp_layer *layer, const rp_pass *pass, size_t i)
{
    const rp_real *gain = rp_pass_param(layer, pass, 0);
    rp_real *grad_gain = rp_pass_grad(layer, pass, 0),
            *grad_bias = rp_pass_grad(layer, pass, 1);
    size_t n = layer->in_size;
    const rp_real *x = pass->in + i * n, *grad = pass->grad_out + i * n;
    rp_real mean = pass->kept[2 * i], scale = pass->kept[2 * i + 1], sum = 0, product = 0;

    assert(scale > 0 || scale != scale); /* a run that diverges gives NaN */
    for (size_t j = 0; j < n; j++) {
        rp_real normal = (x[j] - mean) * scale, h = grad[j] * gain[j];

        grad_gain[j] += grad[j] * normal;
        grad_bias[j] += grad[j];
        sum += h;
        product += h * normal;
    }
    if (pass->grad_in == NULL) return;
    for (size_t j = 0; j < n; j++) {
        rp_real normal = (x[j] - mean) * scale, h = grad[j] * gain[j];
        pass->grad_in[i * n + j] =
            scale * (h - sum / (rp_real)n - normal * product / (rp_real)n);
    }
}

static void backward(const rp_layer *layer, const rp_pass *pass)
{
    size_t n = layer->in_size;

    rp_activate_backward(pass->loops, layer->spec.activation, pass->out, pass->grad_out,
                         pass->rows * n);
    memset(rp_pass_grad(layer, pass, 0), 0, n * sizeof(rp_real));
    memset(rp_pass_grad(layer, pass, 1), 0, n * sizeof(rp_real));
    for (size_t i = 0; i < pass->rows; i++) backward_row(layer, pass, i);
}

const rp_layer_kind rp_norm_kind = {"norm", plan, forward, backward};
