/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of an ONNX file: inputs, the layers of the network, the head, outputs. */
#include "reprise/rl/onnx.h"

#include <assert.h>
#include <string.h>

#include "error/fail.h"
#include "nn/onnx_layers.h"

enum { IR_VERSION = 8 };                      /* of the format, the one of opset 17 */
enum { FIELD_INPUT = 11, FIELD_OUTPUT = 12 }; /* of a graph */
static const size_t max_numbers = (size_t)500 * 1000 * 1000; /* a message has at most 2 GiB */

/* The network, what is wanted, and the file so far. */
typedef struct draft {
    const rp_net *net;
    const rp_onnx_options *options;
    size_t actions; /* of the head; 0 if it has none */
    rp_onnx_graph graph;
    rp_onnx_flow flow;
    rp_onnx_value states[2 * RP_NET_MAX_LAYERS], states_after[2 * RP_NET_MAX_LAYERS];
} draft;

/* Finds the number of actions of the head. */
static rp_status check_head(draft *d, rp_error *err)
{
    const rp_onnx_options *o = d->options;
    size_t out = rp_net_out_size(d->net), each = 0;

    switch (o->head) {
    case RP_ONNX_OUTPUTS: return RP_OK;
    case RP_ONNX_VALUES: each = 1; break;
    case RP_ONNX_CATEGORICAL: each = o->categorical.atoms; break;
    case RP_ONNX_QUANTILE: each = o->quantiles; break;
    case RP_ONNX_GAUSSIAN: each = 2; break;
    case RP_ONNX_BOX: each = 1; break;
    }
    if (each == 0 || (o->head == RP_ONNX_CATEGORICAL && each < 2))
        return rp_rl_fail(err, RP_INVALID, "ONNX: the head %d has %zu numbers per action",
                          (int)o->head, each);
    if (out % each != 0 || (o->head == RP_ONNX_GAUSSIAN && out / 2 != o->gaussian.actions))
        return rp_rl_fail(err, RP_INVALID,
                          "ONNX: a row of output has %zu numbers, which the head does not fit",
                          out);
    if ((o->head == RP_ONNX_BOX && o->box.middle == NULL) ||
        (o->box.middle == NULL) != (o->box.factor == NULL))
        return rp_rl_fail(err, RP_INVALID, "ONNX: the head of a box has no bounds");
    d->actions = out / each;
    return RP_OK;
}

static rp_status check(draft *d, rp_error *err)
{
    const rp_shape *shape = &d->options->observation;
    size_t numbers = 0;

    if (d->net->size > max_numbers)
        return rp_rl_fail(err, RP_INVALID,
                          "ONNX: the network has %zu parameters, and a file holds %zu",
                          d->net->size, max_numbers);
    if (shape->rank != 0 &&
        (rp_shape_elements(shape, &numbers) != RP_OK || numbers != rp_net_in_size(d->net)))
        return rp_rl_fail(err, RP_INVALID,
                          "ONNX: an observation has %zu numbers, the network reads %zu",
                          numbers, rp_net_in_size(d->net));
    if (d->options->input.middle != NULL && d->options->planes)
        return rp_rl_fail(err, RP_INVALID, "ONNX: planes are not scaled by their elements");
    return check_head(d, err);
}

/* The shape of an observation in the file. */
static rp_shape observation_shape(const draft *d)
{
    rp_net_shape in = d->net->layers[0].in;
    int64_t h = (int64_t)in.height, w = (int64_t)in.width, c = (int64_t)in.channels;

    if (d->options->observation.rank != 0) return d->options->observation;
    if (d->options->planes) return (rp_shape){3, {c, h, w}};
    if (h * w > 1) return (rp_shape){3, {h, w, c}};
    return (rp_shape){1, {c}};
}

/* A row of constants. */
static rp_onnx_value row_of(rp_onnx_graph *g, const float *numbers, size_t count)
{
    rp_onnx_value out = {""};
    uint8_t *place = rp_onnx_constant(g, NULL, RP_ONNX_FLOAT, &count, 1, &out);

    if (place != NULL) memcpy(place, numbers, count * sizeof *numbers);
    return out;
}

/* Adds the input, as the first layer reads it. */
static void add_observations(draft *d)
{
    const rp_shape shape = observation_shape(d);
    const rp_net_shape in = d->net->layers[0].in;
    const size_t planes[4] = {0, in.channels, in.height, in.width},
                 rows[2] = {0, rp_net_in_size(d->net)};
    rp_onnx_graph *g = &d->graph;
    rp_onnx_value value = {"observations"}, out = {""};
    bool as_planes = d->options->planes;

    assert(shape.rank >= 1);
    rp_onnx_port(g, FIELD_INPUT, value.name, d->options->bytes ? RP_ONNX_UINT8 : RP_ONNX_FLOAT,
                 shape.dims, (size_t)shape.rank);
    if (d->options->bytes) {
        rp_onnx_value unit = rp_onnx_scalar(g, (float)(1.0 / 255));

        rp_onnx_add(
            g, (rp_onnx_node){.op = "Cast",
                              .in = {&value},
                              .out = {&out},
                              .attributes = {{"to", RP_ONNX_AN_INT, 0, {RP_ONNX_FLOAT}, 0}}});
        value = rp_onnx_apply(g, "Mul", &out, &unit);
    }
    if (shape.rank != (as_planes ? 3 : 1)) {
        out = rp_onnx_shape(g, as_planes ? planes : rows, as_planes ? 4 : 2);
        value = rp_onnx_apply(g, "Reshape", &value, &out);
    }
    if (d->options->input.middle != NULL) {
        rp_onnx_value middle = row_of(g, d->options->input.middle, rows[1]);
        rp_onnx_value factor = row_of(g, d->options->input.factor, rows[1]);

        value = rp_onnx_apply(g, "Sub", &value, &middle);
        value = rp_onnx_apply(g, "Mul", &value, &factor);
    }
    d->flow.value = value;
    d->flow.planes = as_planes;
}

/* Adds the input "state", split into h and c of each LSTM. */
static void add_state(draft *d)
{
    const int64_t size = (int64_t)rp_net_state_size(d->net);
    const rp_onnx_value state = {"state"};
    rp_onnx_graph *g = &d->graph;
    size_t count = 0, first = 0;

    if (size == 0) return;
    rp_onnx_port(g, FIELD_INPUT, state.name, RP_ONNX_FLOAT, &size, 1);
    for (size_t i = 0; i < d->net->count; i++) {
        size_t units = d->net->layers[i].state / 2;

        for (size_t part = 0; part < 2 && units > 0; part++, first += units) {
            const size_t end = first + units, axis = 1;
            rp_onnx_value from = rp_onnx_shape(g, &first, 1), to = rp_onnx_shape(g, &end, 1);
            rp_onnx_value along = rp_onnx_shape(g, &axis, 1);

            rp_onnx_add(g, (rp_onnx_node){.op = "Slice",
                                          .in = {&state, &from, &to, &along},
                                          .out = {&d->states[count++]}});
        }
    }
    assert(first == (size_t)size && count <= 2 * RP_NET_MAX_LAYERS);
}

/* Gives a value its name as an output. */
static void add_output(draft *d, const char *name, const rp_onnx_value *value, int type,
                       size_t numbers)
{
    const int64_t dim = (int64_t)numbers;
    rp_onnx_value out = {""};

    assert(strlen(name) < sizeof out.name);
    memcpy(out.name, name, strlen(name) + 1);
    rp_onnx_add(&d->graph, (rp_onnx_node){.op = "Identity", .in = {value}, .out = {&out}});
    rp_onnx_port(&d->graph, FIELD_OUTPUT, name, type, &dim, numbers == 0 ? 0 : 1);
}

static void add_state_after(draft *d)
{
    size_t count = 2 * d->flow.lstms;
    rp_onnx_value all = d->states_after[0];

    if (count == 0) return;
    for (size_t i = 1; i < count; i++) {
        rp_onnx_value joined = {""};

        rp_onnx_add(&d->graph,
                    (rp_onnx_node){.op = "Concat",
                                   .in = {&all, &d->states_after[i]},
                                   .out = {&joined},
                                   .attributes = {{"axis", RP_ONNX_AN_INT, 0, {1}, 0}}});
        all = joined;
    }
    add_output(d, "state_after", &all, RP_ONNX_FLOAT, rp_net_state_size(d->net));
}

/* The action with the largest value, the first of equals. */
static void add_greedy(draft *d, const rp_onnx_value *values)
{
    rp_onnx_value actions = {""};

    rp_onnx_add(&d->graph,
                (rp_onnx_node){.op = "ArgMax",
                               .in = {values},
                               .out = {&actions},
                               .attributes = {{"axis", RP_ONNX_AN_INT, 0, {1}, 0},
                                              {"keepdims", RP_ONNX_AN_INT, 0, {0}, 0}}});
    add_output(d, "actions", &actions, RP_ONNX_INT64, 0);
}

/* The values of the atoms, as rp_categorical_values() has them. */
static rp_onnx_value support(draft *d)
{
    const rp_categorical *head = &d->options->categorical;
    float low = (float)head->low;
    float spacing = (float)((head->high - head->low) / (double)(head->atoms - 1));
    rp_onnx_value out = {""};
    uint8_t *place = rp_onnx_constant(&d->graph, NULL, RP_ONNX_FLOAT, &head->atoms, 1, &out);

    for (size_t i = 0; i < head->atoms && place != NULL; i++) {
        float value = low + (float)i * spacing;

        memcpy(place + i * sizeof value, &value, sizeof value);
    }
    return out;
}

/* Values of distributions: {batch, actions, numbers} to {batch, actions}. */
static void add_values(draft *d)
{
    bool categorical = d->options->head == RP_ONNX_CATEGORICAL;
    const size_t dims[3] = {0, d->actions, rp_net_out_size(d->net) / d->actions};
    rp_onnx_graph *g = &d->graph;
    rp_onnx_value shape = rp_onnx_shape(g, dims, 3), values = {""}, spread;

    spread = rp_onnx_apply(g, "Reshape", &d->flow.value, &shape);
    if (categorical) {
        rp_onnx_value atoms = support(d);

        spread = rp_onnx_apply(g, "Softmax", &spread, NULL); /* over the last dimension */
        values = rp_onnx_apply(g, "MatMul", &spread, &atoms);
    } else {
        rp_onnx_add(g, (rp_onnx_node){.op = "ReduceMean",
                                      .in = {&spread},
                                      .out = {&values},
                                      .attributes = {{"axes", RP_ONNX_INTS, 0, {2}, 1},
                                                     {"keepdims", RP_ONNX_AN_INT, 0, {0}, 0}}});
    }
    add_output(d, "values", &values, RP_ONNX_FLOAT, d->actions);
    add_greedy(d, &values);
}

/* Actions within bounds, of numbers from -1 to 1. */
static void add_box(draft *d, const rp_onnx_value *numbers)
{
    rp_onnx_graph *g = &d->graph;
    rp_onnx_value middle = row_of(g, d->options->box.middle, d->actions);
    rp_onnx_value factor = row_of(g, d->options->box.factor, d->actions);
    rp_onnx_value actions = rp_onnx_apply(g, "Mul", numbers, &factor);

    actions = rp_onnx_apply(g, "Add", &actions, &middle);
    add_output(d, "actions", &actions, RP_ONNX_FLOAT, d->actions);
}

static void add_gaussian(draft *d)
{
    const rp_gaussian *head = &d->options->gaussian;
    rp_onnx_graph *g = &d->graph;
    rp_onnx_value low = rp_onnx_scalar(g, (float)head->log_low);
    rp_onnx_value high = rp_onnx_scalar(g, (float)head->log_high);
    rp_onnx_value means = {""}, logs = {""}, clamped = {""};

    rp_onnx_add(g, (rp_onnx_node){.op = "Split",
                                  .in = {&d->flow.value},
                                  .out = {&means, &logs},
                                  .attributes = {{"axis", RP_ONNX_AN_INT, 0, {1}, 0}}});
    rp_onnx_add(g, (rp_onnx_node){.op = "Clip", .in = {&logs, &low, &high}, .out = {&clamped}});
    clamped = rp_onnx_apply(g, "Exp", &clamped, NULL);
    add_output(d, "deviations", &clamped, RP_ONNX_FLOAT, d->actions);
    if (head->squash) means = rp_onnx_apply(g, "Tanh", &means, NULL);
    if (d->options->box.middle != NULL)
        add_box(d, &means);
    else
        add_output(d, "actions", &means, RP_ONNX_FLOAT, d->actions);
}

static void add_head(draft *d)
{
    switch (d->options->head) {
    case RP_ONNX_OUTPUTS: break;
    case RP_ONNX_VALUES: add_greedy(d, &d->flow.value); break;
    case RP_ONNX_CATEGORICAL:
    case RP_ONNX_QUANTILE: add_values(d); break;
    case RP_ONNX_GAUSSIAN: add_gaussian(d); break;
    case RP_ONNX_BOX: add_box(d, &d->flow.value); break;
    }
}

static void write_model(draft *d)
{
    const rp_net *net = d->net;
    rp_onnx_graph *g = &d->graph;

    rp_onnx_put_int(g, 1, IR_VERSION);
    rp_onnx_put_text(g, 2, "reprise");
    rp_onnx_open(g, 7);
    rp_onnx_put_text(g, 2, "policy");
    add_observations(d);
    add_state(d);
    for (size_t i = 0; i < net->count; i++) rp_onnx_layer(&d->flow, &net->layers[i]);
    rp_onnx_to_rows(&d->flow, net->layers[net->count - 1].out);
    add_output(d, "outputs", &d->flow.value, RP_ONNX_FLOAT, rp_net_out_size(net));
    add_state_after(d);
    add_head(d);
    rp_onnx_close(g);
    rp_onnx_open(g, 8);
    rp_onnx_put_text(g, 1, "");
    rp_onnx_put_int(g, 2, RP_ONNX_OPSET);
    rp_onnx_close(g);
    assert(g->depth == 0);
}

rp_status rp_net_write_onnx(const rp_allocator *alloc, const rp_net *net, const rp_real *params,
                            const rp_onnx_options *options, rp_onnx_file *out, rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    draft d = {.net = net, .options = options, .graph = {.alloc = a}};
    rp_status st = check(&d, err);

    if (st != RP_OK) return st;
    d.flow = (rp_onnx_flow){.graph = &d.graph,
                            .params = params,
                            .states = d.states,
                            .states_after = d.states_after};
    write_model(&d);
    *out = (rp_onnx_file){d.graph.bytes, d.graph.size, d.graph.room};
    if (!d.graph.failed) return RP_OK;
    rp_onnx_file_free(&a, out);
    return rp_rl_fail_memory(err, net->size * sizeof(float));
}

void rp_onnx_file_free(const rp_allocator *alloc, rp_onnx_file *file)
{
    if (alloc == NULL) alloc = rp_allocator_default();
    if (file->bytes != NULL) alloc->resize(alloc->ctx, file->bytes, file->allocated, 0);
    *file = (rp_onnx_file){0};
}

rp_status rp_net_save_onnx(const rp_allocator *alloc, const rp_net *net, const rp_real *params,
                           const rp_onnx_options *options, const char *path, rp_error *err)
{
    rp_onnx_file file = {0};
    rp_status st = rp_net_write_onnx(alloc, net, params, options, &file, err);

    if (st == RP_OK) st = rp_net_write_file(path, file.bytes, file.size, err);
    rp_onnx_file_free(alloc, &file);
    return st;
}
