/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM (Hochreiter and Schmidhuber 1997, with a forget gate), gates in PyTorch's order: input,
 * forget, cell, output. There is one bias, where PyTorch has two that are always added.
 *
 *   i, f, o = sigmoid(x Wx + h Wh + b);  g = tanh(x Wx + h Wh + b)
 *   c = f c' + i g;  out = h = o tanh(c)
 *
 * c' and h are of the step before, multiplied by `keep`. The products with x are one product
 * for all steps. Those with h go step by step. The state of a sequence is h, then c.
 *
 * Kept per row, in this order: the four gates, c, c' and h (both of the step before, after
 * keep); the backward pass replaces the gates by their gradients. Scratch per row: gradients by
 * h, c. */
#include <assert.h>
#include <string.h>

#include "error/fail.h"
#include "nn/layer.h"
#include "nn/real.h"

/* Parts of the kept numbers, each rows x (its width). */
typedef struct kept_parts {
    rp_real *gates, *cell, *cell_before, *hidden_before;
} kept_parts;

static kept_parts parts_of(const rp_layer *layer, const rp_pass *pass)
{
    size_t block = pass->rows * layer->out_size;

    return (kept_parts){pass->kept, pass->kept + 4 * block, pass->kept + 5 * block,
                        pass->kept + 6 * block};
}

static rp_status plan(rp_layer *layer, rp_error *err)
{
    size_t units = layer->spec.out;

    if (units == 0) return rp_rl_fail(err, RP_INVALID, "out must be >= 1, got 0");
    if (layer->spec.activation != RP_LINEAR)
        return rp_rl_fail(err, RP_INVALID, "activation must be linear");
    layer->out = (rp_net_shape){1, 1, units};
    layer->kept = 7 * units;
    layer->scratch_per_row = 2 * units;
    layer->state = 2 * units;
    rp_layer_add_weight(layer, "weight_ih_l0", layer->in_size, 4 * units);
    rp_layer_add_weight(layer, "weight_hh_l0", units, 4 * units);
    rp_layer_add_bias(layer, "bias_ih_l0", 4 * units, units);
    for (size_t i = 0; i < 2; i++) layer->parameters[i].fan_in = units; /* as PyTorch */
    return RP_OK;
}

static rp_real sigmoid(rp_real x)
{
    return 1 / (1 + rp_exp(-x));
}

/* Copies the state before step t, times keep, to the kept numbers. */
static void load_state(const rp_layer *layer, const rp_pass *pass, kept_parts kept, size_t t)
{
    size_t units = layer->out_size, sequences = pass->rows / pass->sequence->steps;
    const rp_real *state = pass->sequence->state;

    for (size_t s = 0; s < sequences; s++) {
        size_t row = t * sequences + s;
        rp_real keep = pass->sequence->keep == NULL ? 1 : pass->sequence->keep[row];
        rp_real *h = kept.hidden_before + row * units, *c = kept.cell_before + row * units;
        const rp_real *from_h = NULL, *from_c = NULL;

        if (t > 0) {
            from_h = pass->out + (row - sequences) * units;
            from_c = kept.cell + (row - sequences) * units;
        } else if (state != NULL) {
            from_h = state + s * pass->state_size + layer->state_offset;
            from_c = from_h + units;
        }
        for (size_t j = 0; j < units; j++) {
            h[j] = from_h == NULL ? 0 : from_h[j] * keep;
            c[j] = from_c == NULL ? 0 : from_c[j] * keep;
        }
    }
}

static void store_state(const rp_layer *layer, const rp_pass *pass, kept_parts kept)
{
    size_t units = layer->out_size, sequences = pass->rows / pass->sequence->steps;

    if (pass->sequence->state_out == NULL) return;
    for (size_t s = 0; s < sequences; s++) {
        rp_real *to = pass->sequence->state_out + s * pass->state_size + layer->state_offset;
        size_t row = pass->rows - sequences + s;

        memcpy(to, pass->out + row * units, units * sizeof *to);
        memcpy(to + units, kept.cell + row * units, units * sizeof *to);
    }
}

/* Applies the gates of one row. */
static void apply_gates(rp_real *gates, const rp_real *before, rp_real *cell, rp_real *hidden,
                        size_t units)
{
    for (size_t j = 0; j < units; j++) {
        rp_real i = sigmoid(gates[j]), f = sigmoid(gates[units + j]);
        rp_real g = rp_tanh(gates[2 * units + j]), o = sigmoid(gates[3 * units + j]);

        cell[j] = f * before[j] + i * g;
        hidden[j] = o * rp_tanh(cell[j]);
        gates[j] = i;
        gates[units + j] = f;
        gates[2 * units + j] = g;
        gates[3 * units + j] = o;
    }
}

/* The product with the input, or with the hidden state (`hidden`), of `rows` rows from `first`.
 */
static rp_dense product_of(const rp_layer *layer, const rp_pass *pass, bool hidden,
                           size_t first, size_t rows)
{
    kept_parts kept = parts_of(layer, pass);
    size_t units = layer->out_size, in_size = hidden ? units : layer->in_size;

    assert(first + rows <= pass->rows);
    return (rp_dense){
        .rows = rows,
        .in_size = in_size,
        .out_size = 4 * units,
        .in = (hidden ? kept.hidden_before : pass->in) + first * in_size,
        .weight = rp_pass_param(layer, pass, hidden ? 1 : 0),
        .out = kept.gates + first * 4 * units,
        .in_row = in_size,
        .out_row = 4 * units,
    };
}

static void forward(const rp_layer *layer, const rp_pass *pass)
{
    kept_parts kept = parts_of(layer, pass);
    size_t units = layer->out_size, sequences = pass->rows / pass->sequence->steps;
    rp_dense of_input = product_of(layer, pass, false, 0, pass->rows);

    of_input.bias = rp_pass_param(layer, pass, 2);
    rp_dense_forward(pass->gemm, &of_input);
    for (size_t t = 0; t < pass->sequence->steps; t++) {
        rp_dense of_hidden = product_of(layer, pass, true, t * sequences, sequences);

        load_state(layer, pass, kept, t);
        of_hidden.accumulate = true;
        rp_dense_forward(pass->gemm, &of_hidden);
        for (size_t row = t * sequences; row < (t + 1) * sequences; row++)
            apply_gates(kept.gates + row * 4 * units, kept.cell_before + row * units,
                        kept.cell + row * units, pass->out + row * units, units);
    }
    store_state(layer, pass, kept);
}

/* Replaces the gates of one row by their gradients. `grad_cell` is the gradient by c, and
 * becomes the one by c'. */
static void backward_gates(rp_real *gates, const rp_real *cell, const rp_real *before,
                           const rp_real *grad_hidden, rp_real *grad_cell, size_t units)
{
    for (size_t j = 0; j < units; j++) {
        rp_real i = gates[j], f = gates[units + j], g = gates[2 * units + j];
        rp_real o = gates[3 * units + j], t = rp_tanh(cell[j]), h = grad_hidden[j];
        rp_real c = grad_cell[j] + h * o * (1 - t * t);

        gates[j] = c * g * i * (1 - i);
        gates[units + j] = c * before[j] * f * (1 - f);
        gates[2 * units + j] = c * i * (1 - g * g);
        gates[3 * units + j] = h * t * o * (1 - o);
        grad_cell[j] = c * f;
    }
}

/* Goes backward over step t: from the gradients by h and c of its rows in the scratch to those
 * of the step before. */
static void backward_step(const rp_layer *layer, const rp_pass *pass, size_t t)
{
    kept_parts kept = parts_of(layer, pass);
    size_t units = layer->out_size, sequences = pass->rows / pass->sequence->steps;
    rp_real *grad_hidden = pass->scratch, *grad_cell = pass->scratch + pass->rows * units;
    rp_dense of_hidden = product_of(layer, pass, true, t * sequences, sequences);

    for (size_t s = 0; s < sequences; s++) {
        size_t row = t * sequences + s;

        for (size_t j = 0; j < units; j++)
            grad_hidden[s * units + j] += pass->grad_out[row * units + j];
        backward_gates(kept.gates + row * 4 * units, kept.cell + row * units,
                       kept.cell_before + row * units, grad_hidden + s * units,
                       grad_cell + s * units, units);
    }
    rp_dense_backward(pass, &of_hidden, NULL, NULL, grad_hidden);
    if (pass->sequence->keep == NULL) return;
    for (size_t s = 0; s < sequences; s++) {
        rp_real keep = pass->sequence->keep[t * sequences + s];

        for (size_t j = 0; j < units; j++) {
            grad_hidden[s * units + j] *= keep;
            grad_cell[s * units + j] *= keep;
        }
    }
}

static void backward(const rp_layer *layer, const rp_pass *pass)
{
    size_t steps = pass->sequence->steps, block = pass->rows * layer->out_size;
    rp_dense of_input = product_of(layer, pass, false, 0, pass->rows);
    rp_dense of_hidden = product_of(layer, pass, true, 0, pass->rows);

    assert(steps >= 1 && pass->rows % steps == 0);
    memset(pass->scratch, 0, 2 * block * sizeof *pass->scratch);
    for (size_t t = steps; t-- > 0;) backward_step(layer, pass, t);
    rp_dense_backward(pass, &of_input, rp_pass_grad(layer, pass, 0),
                      rp_pass_grad(layer, pass, 2), pass->grad_in);
    rp_dense_backward(pass, &of_hidden, rp_pass_grad(layer, pass, 1), NULL, NULL);
}

const rp_layer_kind rp_lstm_kind = {"LSTM", plan, forward, backward};
