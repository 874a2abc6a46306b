/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution without padding, channels last, as a product.
 *
 * An image becomes a matrix with one row per position of the output. A row holds the numbers
 * that the kernel sees there: kernel x kernel x channels. Its product with the weights, (kernel
 * x kernel x channels) x out, is the output image. The matrix is made for one image at a time,
 * in the scratch, and again in the backward pass, so the scratch does not grow with the batch.
 */
#include <assert.h>
#include <string.h>

#include "error/fail.h"
#include "nn/activation.h"
#include "nn/layer.h"

static size_t stride_of(const rp_layer *layer)
{
    return layer->spec.stride == 0 ? 1 : layer->spec.stride;
}

static rp_status plan(rp_layer *layer, rp_error *err)
{
    size_t kernel = layer->spec.kernel, stride = stride_of(layer), out = layer->spec.out;
    rp_net_shape in = layer->in;
    size_t patch = kernel * kernel * in.channels;
    rp_net_parameter *weight;

    if (out == 0) return rp_rl_fail(err, RP_INVALID, "out must be >= 1, got 0");
    if (kernel == 0 || kernel > in.height || kernel > in.width)
        return rp_rl_fail(err, RP_INVALID,
                          "kernel must be 1 to the size of the image, %zu x %zu, got %zu",
                          in.height, in.width, kernel);
    layer->out = (rp_net_shape){(in.height - kernel) / stride + 1,
                                (in.width - kernel) / stride + 1, out};
    layer->scratch_fixed = layer->out.height * layer->out.width * patch;
    weight = rp_layer_add(layer, "weight", patch);
    *weight = (rp_net_parameter){.fan_in = patch,
                                 .rank = 4,
                                 .size = patch * out,
                                 .dims = {kernel, kernel, in.channels, out},
                                 .order = {3, 2, 0, 1},
                                 .file_merge = 4};
    memcpy(weight->name, "weight", sizeof "weight");
    rp_layer_add_bias(layer, "bias", out, patch);
    return RP_OK;
}

/* One run of kernel x channels numbers: from the image to the matrix, or added back to it. */
typedef void move_fn(rp_real *image, rp_real *matrix, size_t count);

static void take(rp_real *image, rp_real *matrix, size_t count)
{
    memcpy(matrix, image, count * sizeof *matrix);
}

static void give(rp_real *image, rp_real *matrix, size_t count)
{
    for (size_t i = 0; i < count; i++) image[i] += matrix[i];
}

/* Moves all runs of an image. */
static void move_image(const rp_layer *layer, rp_real *image, rp_real *matrix, move_fn *move)
{
    size_t kernel = layer->spec.kernel, stride = stride_of(layer);
    size_t run = kernel * layer->in.channels, line = layer->in.width * layer->in.channels;

    for (size_t y = 0; y < layer->out.height; y++)
        for (size_t x = 0; x < layer->out.width; x++)
            for (size_t k = 0; k < kernel; k++, matrix += run)
                move(image + (y * stride + k) * line + x * stride * layer->in.channels, matrix,
                     run);
}

/* The product for image `i`. */
static rp_dense image_of(const rp_layer *layer, const rp_pass *pass, size_t i, rp_real *out)
{
    size_t patch = layer->parameters[1].fan_in;

    assert(i < pass->rows);
    return (rp_dense){
        .rows = layer->out.height * layer->out.width,
        .in_size = patch,
        .out_size = layer->out.channels,
        .in = pass->scratch,
        .weight = rp_pass_param(layer, pass, 0),
        .bias = rp_pass_param(layer, pass, 1),
        .out = out + i * layer->out_size,
        .in_row = patch,
        .out_row = layer->out.channels,
    };
}

/* take() only reads the image, but give() writes it. */
static rp_real *image_at(const rp_layer *layer, const rp_pass *pass, size_t i)
{
    return (rp_real *)(uintptr_t)(pass->in + i * layer->in_size);
}

static void forward(const rp_layer *layer, const rp_pass *pass)
{
    for (size_t i = 0; i < pass->rows; i++) {
        rp_dense d = image_of(layer, pass, i, pass->out);

        d.activation = layer->spec.activation;
        move_image(layer, image_at(layer, pass, i), pass->scratch, take);
        rp_dense_forward(pass->gemm, &d);
    }
}

static void backward(const rp_layer *layer, const rp_pass *pass)
{
    rp_activate_backward(pass->loops, layer->spec.activation, pass->out, pass->grad_out,
                         pass->rows * layer->out_size);
    for (size_t i = 0; i < pass->rows; i++) {
        rp_dense d = image_of(layer, pass, i, pass->grad_out);
        rp_real *grad_image;

        d.accumulate = i > 0;
        move_image(layer, image_at(layer, pass, i), pass->scratch, take);
        rp_dense_backward(pass, &d, rp_pass_grad(layer, pass, 0), rp_pass_grad(layer, pass, 1),
                          NULL);
        if (pass->grad_in == NULL) continue;
        grad_image = pass->grad_in + i * layer->in_size;
        memset(grad_image, 0, layer->in_size * sizeof *grad_image);
        rp_dense_backward(pass, &d, NULL, NULL, pass->scratch);
        move_image(layer, grad_image, pass->scratch, give);
    }
}

const rp_layer_kind rp_conv_kind = {"convolution", plan, forward, backward};
