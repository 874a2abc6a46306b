/* SPDX-License-Identifier: Apache-2.0 */
/* Networks: checks a list of layers, and lays out its parameters. Invariants: net.h. */
#include "nn/net.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "error/fail.h"

/* N4: the most numbers in a row, in the parameters of one network, and in one field of a layer.
 */
static const size_t max_row = (size_t)1 << 28, max_size = (size_t)1 << 31,
                    max_field = (size_t)1 << 20;

rp_net_parameter *rp_layer_add(rp_layer *layer, const char *name, size_t fan_in)
{
    rp_net_parameter *p = &layer->parameters[layer->parameter_count];

    assert(layer->parameter_count < RP_LAYER_MAX_PARAMETERS && strlen(name) < sizeof p->name);
    layer->parameter_count++;
    *p = (rp_net_parameter){.fan_in = fan_in};
    memcpy(p->name, name, strlen(name) + 1);
    return p;
}

void rp_layer_add_bias(rp_layer *layer, const char *name, size_t count, size_t fan_in)
{
    rp_net_parameter *p = rp_layer_add(layer, name, fan_in);

    p->rank = p->file_merge = 1;
    p->size = p->dims[0] = count;
    p->is_bias = true;
}

void rp_layer_add_weight(rp_layer *layer, const char *name, size_t in, size_t out)
{
    rp_net_parameter *p = rp_layer_add(layer, name, in);

    p->rank = p->file_merge = 2;
    p->dims[0] = in;
    p->dims[1] = out;
    p->order[0] = 1;
    p->size = in * out;
}

static const rp_layer_kind *kind_of(rp_net_kind kind)
{
    switch (kind) {
    case RP_NET_DENSE: return &rp_dense_kind;
    case RP_NET_CONV: return &rp_conv_kind;
    case RP_NET_NORM: return &rp_norm_kind;
    case RP_NET_LSTM: return &rp_lstm_kind;
    case RP_NET_DUELING: return &rp_dueling_kind;
    }
    return NULL;
}

static bool shape_size(rp_net_shape shape, size_t *size)
{
    if (shape.height == 0 || shape.width == 0 || shape.channels == 0) return false;
    if (shape.height > max_row || shape.width > max_row || shape.channels > max_row)
        return false;
    *size = shape.height * shape.width; /* at most 2^56 */
    if (*size > max_row) return false;
    *size *= shape.channels;
    return *size <= max_row;
}

/* Checks the fields that all kinds share. */
static rp_status check_fields(const rp_net_layer *spec, rp_error *err)
{
    const struct {
        const char *name;
        size_t value;
    } fields[] = {
        {"out", spec->out},
        {"kernel", spec->kernel},
        {"stride", spec->stride},
        {"atoms", spec->atoms},
    };

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].value > max_field)
            return rp_rl_fail(err, RP_INVALID, "%s must be <= %zu, got %zu", fields[i].name,
                              max_field, fields[i].value);
    if ((unsigned)spec->activation > RP_ELU)
        return rp_rl_fail(err, RP_INVALID, "no activation has the number %d",
                          (int)spec->activation);
    return RP_OK;
}

static rp_status plan_layer(rp_layer *layer, rp_error *err)
{
    rp_status st = check_fields(&layer->spec, err);

    if (st == RP_OK) st = layer->kind->plan(layer, err);
    if (st != RP_OK) return st;
    if (!shape_size(layer->out, &layer->out_size))
        return rp_rl_fail(err, RP_INVALID, "a row of output is over %zu numbers", max_row);
    return RP_OK;
}

/* Gives the parameters and the state of a layer their places. */
static rp_status place(rp_net *net, size_t i, rp_error *err)
{
    rp_layer *layer = &net->layers[i];

    for (size_t j = 0; j < layer->parameter_count; j++) {
        rp_net_parameter *p = &layer->parameters[j];
        char name[sizeof p->name];

        if (p->size > max_size - net->size)
            return rp_rl_fail(err, RP_INVALID, "the network has more than %zu parameters",
                              max_size);
        p->offset = net->size; /* N2 */
        net->size += p->size;
        (void)snprintf(name, sizeof name, "%zu.%.40s", i, p->name);
        memcpy(p->name, name, sizeof name);
    }
    net->parameter_count += layer->parameter_count;
    layer->state_offset = net->state_size; /* N3 */
    net->state_size += layer->state;
    return RP_OK;
}

static rp_status add_layer(rp_net *net, const rp_net_layer *spec, rp_net_shape in,
                           rp_error *err)
{
    size_t i = net->count;
    rp_layer *layer = &net->layers[i];
    rp_error cause = {RP_OK, ""};
    rp_status st;

    *layer = (rp_layer){.kind = kind_of(spec->kind), .spec = *spec, .in = in};
    if (layer->kind == NULL)
        return rp_rl_fail(err, RP_INVALID, "layer %zu: no kind has the number %d", i,
                          (int)spec->kind);
    if (!shape_size(in, &layer->in_size))
        return rp_rl_fail(err, RP_INVALID,
                          "input: sizes must be >= 1, and their product <= %zu", max_row);
    st = plan_layer(layer, &cause);
    if (st == RP_OK) st = place(net, i, &cause);
    if (st != RP_OK)
        return rp_rl_fail(err, st, "layer %zu (%s): %.200s", i, layer->kind->name, cause.text);
    net->count++;
    return RP_OK;
}

static size_t net_bytes(size_t count)
{
    return sizeof(rp_net) + count * sizeof(rp_layer);
}

rp_status rp_net_new(const rp_allocator *alloc, rp_net_shape in, const rp_net_layer *layers,
                     size_t count, rp_net **out, rp_error *err)
{
    rp_net *net;
    rp_status st = RP_OK;

    if (count == 0 || count > RP_NET_MAX_LAYERS)
        return rp_rl_fail(err, RP_INVALID, "a network has 1 to %d layers, got %zu",
                          RP_NET_MAX_LAYERS, count);
    if (alloc == NULL) alloc = rp_allocator_default();
    net = alloc->resize(alloc->ctx, NULL, 0, net_bytes(count));
    if (net == NULL) return rp_rl_fail_memory(err, net_bytes(count));
    memset(net, 0, net_bytes(count));
    net->alloc = *alloc;
    net->gemm = rp_gemm_best();
    net->loops = rp_loops_best();
    for (size_t i = 0; i < count && st == RP_OK; i++)
        st = add_layer(net, &layers[i], i == 0 ? in : net->layers[i - 1].out, err);
    if (st != RP_OK) {
        net->count = count; /* rp_net_free() gives back the size that was allocated */
        rp_net_free(net);
        return st;
    }
    rp_net_check(net);
    *out = net;
    return RP_OK;
}

void rp_net_free(rp_net *net)
{
    rp_allocator alloc;

    if (net == NULL) return;
    alloc = net->alloc;
    alloc.resize(alloc.ctx, net, net_bytes(net->count), 0);
}

void rp_net_check(const rp_net *net)
{
#ifndef NDEBUG
    size_t size = 0, state = 0;

    for (size_t i = 0; i < net->count; i++) {
        const rp_layer *layer = &net->layers[i];

        assert(i == 0 || layer->in_size == net->layers[i - 1].out_size); /* N1 */
        for (size_t j = 0; j < layer->parameter_count; j++) {
            assert(layer->parameters[j].offset == size); /* N2 */
            size += layer->parameters[j].size;
        }
        assert(layer->state_offset == state); /* N3 */
        state += layer->state;
    }
    assert(size == net->size && state == net->state_size);
#else
    (void)net;
#endif
}

size_t rp_net_size(const rp_net *net)
{
    return net->size;
}

size_t rp_net_in_size(const rp_net *net)
{
    return net->layers[0].in_size;
}

size_t rp_net_out_size(const rp_net *net)
{
    return net->layers[net->count - 1].out_size;
}

size_t rp_net_state_size(const rp_net *net)
{
    return net->state_size;
}

size_t rp_net_parameter_count(const rp_net *net)
{
    return net->parameter_count;
}

const rp_net_parameter *rp_net_parameter_at(const rp_net *net, size_t i)
{
    const rp_layer *layer = net->layers;

    assert(i < net->parameter_count);
    for (; i >= layer->parameter_count; layer++) i -= layer->parameter_count;
    return &layer->parameters[i];
}

const char *rp_net_kernel(const rp_net *net)
{
    return net->gemm->name;
}

rp_status rp_net_use_kernel(rp_net *net, const char *name)
{
    const rp_gemm_ops *gemm = rp_gemm_find(name);

    if (gemm == NULL) return RP_NOT_FOUND;
    net->gemm = gemm;
    return RP_OK;
}
