/* SPDX-License-Identifier: Apache-2.0 */
/* Weights keep our layout, in x out, which is what Gemm and MatMul take. Only those of a
 * convolution are permuted: from {height, width, in, out} to {out, in, height, width}. */
#include "nn/onnx_layers.h"

#include <assert.h>
#include <string.h>

static void put_numbers(uint8_t *place, const rp_real *numbers, size_t count)
{
    for (size_t i = 0; i < count && place != NULL; i++) {
        float number = (float)numbers[i];

        memcpy(place + i * sizeof number, &number, sizeof number);
    }
}

/* Parameter i of a layer as a constant, with rank 1 or 2: {size}, or {in, out}. */
static rp_onnx_value parameter(const rp_onnx_flow *flow, const rp_layer *layer, size_t i)
{
    const rp_net_parameter *p = &layer->parameters[i];
    size_t out = p->dims[p->rank - 1], dims[2] = {p->size / out, out};
    rp_onnx_value value = {""};
    uint8_t *place;

    assert(i < layer->parameter_count && p->size % out == 0);
    place = rp_onnx_constant(flow->graph, p->name, RP_ONNX_FLOAT, p->rank == 1 ? &out : dims,
                             p->rank == 1 ? 1 : 2, &value);
    put_numbers(place, flow->params + p->offset, p->size);
    return value;
}

/* The weights of a convolution. */
static rp_onnx_value conv_weight(const rp_onnx_flow *flow, const rp_layer *layer)
{
    const rp_net_parameter *p = &layer->parameters[0];
    size_t kernel = layer->spec.kernel, in = layer->in.channels, out = layer->spec.out;
    const size_t dims[4] = {out, in, kernel, kernel};
    const rp_real *from = flow->params + p->offset;
    rp_onnx_value value = {""};
    uint8_t *place = rp_onnx_constant(flow->graph, p->name, RP_ONNX_FLOAT, dims, 4, &value);

    assert(p->size == out * in * kernel * kernel);
    for (size_t o = 0; o < out && place != NULL; o++)
        for (size_t c = 0; c < in; c++)
            for (size_t at = 0; at < kernel * kernel; at++, place += sizeof(float))
                put_numbers(place, &from[(at * in + c) * out + o], 1);
    return value;
}

static void activate(rp_onnx_flow *flow, rp_activation activation)
{
    static const char *const names[] = {
        [RP_RELU] = "Relu", [RP_TANH] = "Tanh", [RP_ELU] = "Elu"};

    if (activation == RP_LINEAR) return;
    assert(activation <= RP_ELU);
    flow->value = rp_onnx_apply(flow->graph, names[activation], &flow->value, NULL);
}

static rp_onnx_value reshape(const rp_onnx_flow *flow, const rp_onnx_value *value,
                             const size_t *dims, size_t rank)
{
    rp_onnx_value shape = rp_onnx_shape(flow->graph, dims, rank);

    return rp_onnx_apply(flow->graph, "Reshape", value, &shape);
}

static void transpose(rp_onnx_flow *flow, rp_onnx_attribute order)
{
    rp_onnx_value out = {""};

    rp_onnx_add(flow->graph, (rp_onnx_node){.op = "Transpose",
                                            .in = {&flow->value},
                                            .out = {&out},
                                            .attributes = {order}});
    flow->value = out;
}

void rp_onnx_to_rows(rp_onnx_flow *flow, rp_net_shape shape)
{
    const size_t rows[2] = {0, shape.height * shape.width * shape.channels};

    if (!flow->planes) return;
    if (shape.height * shape.width > 1) /* one pixel is in both orders the same */
        transpose(flow, (rp_onnx_attribute){"perm", RP_ONNX_INTS, 0, {0, 2, 3, 1}, 4});
    flow->value = reshape(flow, &flow->value, rows, 2);
    flow->planes = false;
}

static void to_planes(rp_onnx_flow *flow, rp_net_shape shape)
{
    const size_t image[4] = {0, shape.height, shape.width, shape.channels};

    if (flow->planes) return;
    flow->value = reshape(flow, &flow->value, image, 4);
    transpose(flow, (rp_onnx_attribute){"perm", RP_ONNX_INTS, 0, {0, 3, 1, 2}, 4});
    flow->planes = true;
}

static void convolution(rp_onnx_flow *flow, const rp_layer *layer)
{
    int64_t kernel = (int64_t)layer->spec.kernel, stride = (int64_t)layer->spec.stride;
    rp_onnx_value weight, bias, out = {""};

    if (stride == 0) stride = 1;
    to_planes(flow, layer->in);
    weight = conv_weight(flow, layer);
    bias = parameter(flow, layer, 1);
    rp_onnx_add(
        flow->graph,
        (rp_onnx_node){.op = "Conv",
                       .in = {&flow->value, &weight, &bias},
                       .out = {&out},
                       .attributes = {{"kernel_shape", RP_ONNX_INTS, 0, {kernel, kernel}, 2},
                                      {"strides", RP_ONNX_INTS, 0, {stride, stride}, 2}}});
    flow->value = out;
}

/* The product of `value` with parameter i, plus parameter i + 1. */
static rp_onnx_value product(const rp_onnx_flow *flow, const rp_layer *layer,
                             const rp_onnx_value *value, size_t i)
{
    rp_onnx_value weight = parameter(flow, layer, i), bias = parameter(flow, layer, i + 1);
    rp_onnx_value out = {""};

    rp_onnx_add(flow->graph,
                (rp_onnx_node){.op = "Gemm", .in = {value, &weight, &bias}, .out = {&out}});
    return out;
}

static void norm(rp_onnx_flow *flow, const rp_layer *layer)
{
    rp_onnx_value gain = parameter(flow, layer, 0), bias = parameter(flow, layer, 1);
    rp_onnx_value out = {""};

    rp_onnx_add(flow->graph,
                (rp_onnx_node){.op = "LayerNormalization",
                               .in = {&flow->value, &gain, &bias},
                               .out = {&out},
                               .attributes = {{"axis", RP_ONNX_AN_INT, 0, {1}, 0},
                                              {"epsilon", RP_ONNX_A_FLOAT, 1e-5F, {0}, 0}}});
    flow->value = out;
}

/* Splits rows into equal parts, as many as `out` names. */
static void split(const rp_onnx_flow *flow, const rp_onnx_value *value,
                  rp_onnx_value *const out[RP_ONNX_MAX_OUTPUTS])
{
    rp_onnx_node node = {
        .op = "Split", .in = {value}, .attributes = {{"axis", RP_ONNX_AN_INT, 0, {1}, 0}}};

    for (size_t i = 0; i < RP_ONNX_MAX_OUTPUTS; i++) node.out[i] = out[i];
    rp_onnx_add(flow->graph, node);
}

/* Q = V + (A - mean of A over actions), as {batch, actions, atoms}. */
static void dueling(rp_onnx_flow *flow, const rp_layer *layer)
{
    size_t atoms = layer->spec.atoms == 0 ? 1 : layer->spec.atoms, actions = layer->spec.out;
    const size_t one[3] = {0, 1, atoms}, all[3] = {0, actions, atoms},
                 rows[2] = {0, actions * atoms};
    rp_onnx_value of_value = flow->value, of_advantage = flow->value, mean = {""}, value,
                  advantage;

    assert(layer->out_size == actions * atoms);
    if (!layer->spec.shared) {
        of_value = of_advantage = (rp_onnx_value){""};
        split(flow, &flow->value, (rp_onnx_value *[4]){&of_value, &of_advantage});
    }
    value = product(flow, layer, &of_value, 0);
    advantage = product(flow, layer, &of_advantage, 2);
    value = reshape(flow, &value, one, 3);
    advantage = reshape(flow, &advantage, all, 3);
    rp_onnx_add(flow->graph, (rp_onnx_node){.op = "ReduceMean",
                                            .in = {&advantage},
                                            .out = {&mean},
                                            .attributes = {{"axes", RP_ONNX_INTS, 0, {1}, 1}}});
    advantage = rp_onnx_apply(flow->graph, "Sub", &advantage, &mean);
    value = rp_onnx_apply(flow->graph, "Add", &value, &advantage);
    flow->value = reshape(flow, &value, rows, 2);
}

/* One step, as in lstm.c. */
static void lstm(rp_onnx_flow *flow, const rp_layer *layer)
{
    rp_onnx_graph *g = flow->graph;
    const rp_onnx_value *state = &flow->states[2 * flow->lstms];
    rp_onnx_value *after = &flow->states_after[2 * flow->lstms];
    rp_onnx_value of_input = parameter(flow, layer, 0), of_hidden = parameter(flow, layer, 1);
    rp_onnx_value bias = parameter(flow, layer, 2), gates = {""}, sum, kept;
    rp_onnx_value i = {""}, f = {""}, c = {""}, o = {""};

    rp_onnx_add(g, (rp_onnx_node){
                       .op = "Gemm", .in = {&flow->value, &of_input, &bias}, .out = {&gates}});
    sum = rp_onnx_apply(g, "MatMul", &state[0], &of_hidden);
    gates = rp_onnx_apply(g, "Add", &gates, &sum);
    split(flow, &gates, (rp_onnx_value *[4]){&i, &f, &c, &o});
    i = rp_onnx_apply(g, "Sigmoid", &i, NULL);
    f = rp_onnx_apply(g, "Sigmoid", &f, NULL);
    c = rp_onnx_apply(g, "Tanh", &c, NULL);
    o = rp_onnx_apply(g, "Sigmoid", &o, NULL);
    kept = rp_onnx_apply(g, "Mul", &f, &state[1]);
    sum = rp_onnx_apply(g, "Mul", &i, &c);
    after[1] = rp_onnx_apply(g, "Add", &kept, &sum);
    sum = rp_onnx_apply(g, "Tanh", &after[1], NULL);
    after[0] = rp_onnx_apply(g, "Mul", &o, &sum);
    flow->value = after[0];
    flow->lstms++;
}

void rp_onnx_layer(rp_onnx_flow *flow, const rp_layer *layer)
{
    if (layer->spec.kind != RP_NET_CONV) rp_onnx_to_rows(flow, layer->in);
    switch (layer->spec.kind) {
    case RP_NET_DENSE: flow->value = product(flow, layer, &flow->value, 0); break;
    case RP_NET_CONV: convolution(flow, layer); break;
    case RP_NET_NORM: norm(flow, layer); break;
    case RP_NET_LSTM: lstm(flow, layer); break;
    case RP_NET_DUELING: dueling(flow, layer); break;
    }
    activate(flow, layer->spec.activation);
}
