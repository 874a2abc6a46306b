/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of ONNX files, read back by a small reader of protobuf. That onnxruntime computes
 * what we compute is the business of tests/rl/compare_onnx.py. */
#include "reprise/rl/onnx.h"

#include <stdio.h>

#include "support/oom.h"
#include "support/unit.h"

enum { MOST_NAMES = 200, MOST_TEXT = 2000 };

/* A message, or what is left of it. */
typedef struct message {
    const uint8_t *at, *end;
} message;

/* One field: a number, or bytes. */
typedef struct field {
    unsigned number;
    uint64_t value;
    message bytes;
} field;

static uint64_t read_varint(message *m)
{
    uint64_t value = 0;
    unsigned shift = 0;

    do {
        assert_true(m->at < m->end && shift < 64);
        value |= (uint64_t)(*m->at & 127) << shift;
        shift += 7;
    } while (*m->at++ & 128);
    return value;
}

static bool next_field(message *m, field *f)
{
    uint64_t key;

    if (m->at == m->end) return false;
    key = read_varint(m);
    *f = (field){.number = (unsigned)(key >> 3)};
    switch (key & 7) {
    case 0: f->value = read_varint(m); break;
    case 2:
        f->value = read_varint(m);
        assert_true(f->value <= (uint64_t)(m->end - m->at));
        f->bytes = (message){m->at, m->at + f->value};
        m->at += f->value;
        break;
    case 5:
        assert_true(m->end - m->at >= 4);
        f->bytes = (message){m->at, m->at + 4};
        m->at += 4;
        break;
    default: fail_msg("a field of kind %d", (int)(key & 7));
    }
    return true;
}

/* What the tests look at. Texts are lists of words, each followed by a space. */
typedef struct graph {
    uint64_t ir_version, opset;
    char ops[MOST_TEXT], inputs[MOST_TEXT], outputs[MOST_TEXT], constants[MOST_TEXT];
    char names[MOST_NAMES][64]; /* values that are defined */
    size_t count;
    message last_data; /* of the constant that `wanted` names */
    const char *wanted;
} graph;

static void append(char *list, const char *word)
{
    size_t used = strlen(list);

    assert_true(used + strlen(word) + 2 < MOST_TEXT);
    (void)sprintf(list + used, "%s ", word);
}

static const char *text_of(message bytes, char text[64])
{
    size_t size = (size_t)(bytes.end - bytes.at);

    assert_true(size < 64 && bytes.at != NULL);
    if (bytes.at == NULL) return "";
    memcpy(text, bytes.at, size);
    text[size] = '\0';
    return text;
}

static bool is_defined(const graph *g, const char *name)
{
    for (size_t i = 0; i < g->count; i++)
        if (strcmp(g->names[i], name) == 0) return true;
    return false;
}

static void define(graph *g, const char *name)
{
    if (is_defined(g, name)) fail_msg("'%s' is defined twice", name);
    assert_true(g->count < MOST_NAMES);
    memcpy(g->names[g->count++], name, strlen(name) + 1);
}

static void read_node(graph *g, message m)
{
    char text[64];
    field f = {0};

    while (next_field(&m, &f)) {
        if (f.number == 1 && !is_defined(g, text_of(f.bytes, text)))
            fail_msg("'%s' is used before it is defined", text);
        if (f.number == 2) define(g, text_of(f.bytes, text));
        if (f.number == 4) append(g->ops, text_of(f.bytes, text));
    }
}

static void read_constant(graph *g, message m)
{
    char text[64] = "", word[128] = "";
    uint64_t numbers = 1, type = 0;
    field f = {0};

    while (next_field(&m, &f)) {
        if (f.number == 1) {
            numbers *= f.value;
            (void)snprintf(word + strlen(word), 20, "%s%d", word[0] ? "x" : "", (int)f.value);
        }
        if (f.number == 2) type = f.value;
        if (f.number == 8) define(g, text_of(f.bytes, text));
        if (f.number == 9) {
            assert_int_equal(f.value, numbers * (type == 7 ? 8 : 4));
            if (g->wanted != NULL && strcmp(text, g->wanted) == 0) g->last_data = f.bytes;
        }
    }
    if (text[0] == 'v') return; /* shapes and scalars */
    (void)snprintf(word + strlen(word), 70, ":%s", text);
    append(g->constants, word);
}

/* Reads an input or an output as name:type{batch,dims}. */
static void read_port(char *list, message m)
{
    char text[64], word[128] = "";
    message tensor = {0}, shape = {0};
    field f = {0}, dim = {0};

    while (next_field(&m, &f)) {
        if (f.number == 1) (void)snprintf(word, sizeof word, "%s:", text_of(f.bytes, text));
        if (f.number == 2) assert_true(next_field(&f.bytes, &dim));
        tensor = dim.bytes;
    }
    while (next_field(&tensor, &f)) {
        if (f.number == 1) (void)sprintf(word + strlen(word), "%d{", (int)f.value);
        if (f.number == 2) shape = f.bytes;
    }
    while (next_field(&shape, &f)) {
        assert_true(next_field(&f.bytes, &dim));
        if (dim.number == 2) (void)sprintf(word + strlen(word), "%s", text_of(dim.bytes, text));
        if (dim.number == 1) (void)sprintf(word + strlen(word), ",%d", (int)dim.value);
    }
    (void)sprintf(word + strlen(word), "}");
    append(list, word);
}

static void read_graph(graph *g, message m)
{
    field f = {0};
    char text[64];

    while (next_field(&m, &f)) {
        if (f.number == 11) {
            message port = f.bytes;
            field name = {0};

            assert_true(next_field(&port, &name) && name.number == 1);
            define(g, text_of(name.bytes, text));
            read_port(g->inputs, f.bytes);
        }
        if (f.number == 1) read_node(g, f.bytes);
        if (f.number == 5) read_constant(g, f.bytes);
        if (f.number == 12) read_port(g->outputs, f.bytes);
    }
}

static void read_model(graph *g, const rp_onnx_file *file)
{
    message m = {file->bytes, file->bytes + file->size};
    field f = {0}, version = {0};

    while (next_field(&m, &f)) {
        if (f.number == 1) g->ir_version = f.value;
        if (f.number == 7) read_graph(g, f.bytes);
        if (f.number == 8)
            while (next_field(&f.bytes, &version)) g->opset = version.value;
    }
}

typedef struct network {
    rp_net *net;
    float *params;
} network;

static network make(rp_net_shape in, const rp_net_layer *layers, size_t count)
{
    network n;
    rp_error err;

    assert_ok_err(rp_net_new(rp_allocator_default(), in, layers, count, &n.net, &err), &err);
    n.params = malloc(rp_net_size(n.net) * sizeof *n.params);
    for (size_t i = 0; i < rp_net_size(n.net); i++) n.params[i] = (float)i;
    return n;
}

static void drop(network n)
{
    free(n.params);
    rp_net_free(n.net);
}

/* Writes the network twice, with equal bytes, and reads it. */
static void write_and_read(network n, const rp_onnx_options *options, graph *g)
{
    const rp_allocator *heap = rp_allocator_default();
    rp_onnx_file file = {0}, again = {0};
    rp_error err;

    assert_ok_err(rp_net_write_onnx(heap, n.net, n.params, options, &file, &err), &err);
    assert_ok_err(rp_net_write_onnx(heap, n.net, n.params, options, &again, &err), &err);
    assert_int_equal(file.size, again.size);
    assert_memory_equal(file.bytes, again.bytes, file.size);
    read_model(g, &file);
    assert_int_equal(g->ir_version, 8);
    assert_int_equal(g->opset, RP_ONNX_OPSET);
    if (g->last_data.at != NULL) { /* the file is freed: keep the numbers */
        size_t size = (size_t)(g->last_data.end - g->last_data.at);
        uint8_t *copy = malloc(size);

        memcpy(copy, g->last_data.at, size);
        g->last_data = (message){copy, copy + size};
    }
    rp_onnx_file_free(heap, &file);
    rp_onnx_file_free(heap, &again);
}

static void dense_layers_have_weights_in_by_out(void **state)
{
    const rp_net_layer layers[] = {
        {.kind = RP_NET_DENSE, .out = 3, .activation = RP_RELU},
        {.kind = RP_NET_DENSE, .out = 2},
    };
    network n = make((rp_net_shape){1, 1, 4}, layers, COUNT_OF(layers));
    graph g = {.wanted = "1.weight"};

    (void)state;
    write_and_read(n, &(rp_onnx_options){.head = RP_ONNX_VALUES}, &g);
    assert_string_equal(g.inputs, "observations:1{batch,4} ");
    assert_string_equal(g.outputs, "outputs:1{batch,2} actions:7{batch} ");
    assert_string_equal(g.ops, "Gemm Relu Gemm Identity ArgMax Identity ");
    assert_string_equal(g.constants, "4x3:0.weight 3:0.bias 3x2:1.weight 2:1.bias ");
    assert_int_equal(g.last_data.end - g.last_data.at, 6 * sizeof(float));
    assert_memory_equal(g.last_data.at, n.params + 15, 6 * sizeof(float));
    free((void *)(uintptr_t)g.last_data.at);
    drop(n);
}

static void convolutions_have_their_channels_first(void **state)
{
    const rp_net_layer layers[] = {
        {.kind = RP_NET_CONV, .out = 2, .kernel = 2, .activation = RP_ELU},
        {.kind = RP_NET_NORM, .activation = RP_TANH},
        {.kind = RP_NET_DENSE, .out = 2},
    };
    network n = make((rp_net_shape){4, 5, 3}, layers, COUNT_OF(layers));
    graph g = {.wanted = "0.weight"};
    float weight[24];

    (void)state;
    write_and_read(n, &(rp_onnx_options){.bytes = true, .planes = true}, &g);
    assert_string_equal(g.inputs, "observations:2{batch,3,4,5} ");
    assert_string_equal(g.ops, "Cast Mul Conv Elu Transpose Reshape LayerNormalization Tanh "
                               "Gemm Identity ");
    assert_string_equal(g.constants, "2x3x2x2:0.weight 2:0.bias 24:1.weight 24:1.bias "
                                     "24x2:2.weight 2:2.bias ");
    memcpy(weight, g.last_data.at, sizeof weight);
    for (size_t o = 0; o < 2; o++)
        for (size_t c = 0; c < 3; c++)
            for (size_t at = 0; at < 4; at++)
                assert_true(weight[(o * 3 + c) * 4 + at] == (float)((at * 3 + c) * 2 + o));
    free((void *)(uintptr_t)g.last_data.at);

    g = (graph){0};
    write_and_read(n, &(rp_onnx_options){0}, &g);
    assert_string_equal(g.inputs, "observations:1{batch,4,5,3} ");
    assert_string_equal(g.ops, "Reshape Reshape Transpose Conv Elu Transpose Reshape "
                               "LayerNormalization Tanh Gemm Identity ");
    drop(n);
}

static void an_lstm_has_its_state_as_input_and_output(void **state)
{
    const rp_net_layer layers[] = {
        {.kind = RP_NET_LSTM, .out = 3},
        {.kind = RP_NET_LSTM, .out = 2},
        {.kind = RP_NET_DUELING, .out = 4},
    };
    network n = make((rp_net_shape){1, 1, 5}, layers, COUNT_OF(layers));
    graph g = {0};

    (void)state;
    write_and_read(n, &(rp_onnx_options){.observation = {2, {1, 5}}}, &g);
    assert_string_equal(g.inputs, "observations:1{batch,1,5} state:1{batch,10} ");
    assert_string_equal(g.outputs, "outputs:1{batch,4} state_after:1{batch,10} ");
    assert_string_equal(g.constants, "5x12:0.weight_ih_l0 3x12:0.weight_hh_l0 12:0.bias_ih_l0 "
                                     "3x8:1.weight_ih_l0 2x8:1.weight_hh_l0 8:1.bias_ih_l0 "
                                     "1x1:2.value.weight 1:2.value.bias 1x4:2.advantage.weight "
                                     "4:2.advantage.bias ");
    drop(n);
}

static void heads_add_their_outputs(void **state)
{
    static const float ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const struct {
        rp_onnx_options options;
        const char *outputs, *ops;
    } cases[] = {
        {{.head = RP_ONNX_OUTPUTS}, "outputs:1{batch,12} ", "Gemm Identity "},
        {{.head = RP_ONNX_CATEGORICAL, .categorical = {4, 0, 3}},
         "outputs:1{batch,12} values:1{batch,3} actions:7{batch} ",
         "Gemm Identity Reshape Softmax MatMul Identity ArgMax Identity "},
        {{.head = RP_ONNX_QUANTILE, .quantiles = 6},
         "outputs:1{batch,12} values:1{batch,2} actions:7{batch} ",
         "Gemm Identity Reshape ReduceMean Identity ArgMax Identity "},
        {{.head = RP_ONNX_GAUSSIAN, .gaussian = {6, -5, 2, true}},
         "outputs:1{batch,12} deviations:1{batch,6} actions:1{batch,6} ",
         "Gemm Identity Split Clip Exp Identity Tanh Identity "},
        {{.head = RP_ONNX_BOX, .box = {ones, ones}, .input = {ones, ones}},
         "outputs:1{batch,12} actions:1{batch,12} ",
         "Sub Mul Gemm Identity Mul Add Identity "},
    };
    network n =
        make((rp_net_shape){1, 1, 5}, &(rp_net_layer){.kind = RP_NET_DENSE, .out = 12}, 1);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        graph g = {0};

        write_and_read(n, &cases[i].options, &g);
        assert_string_equal(g.outputs, cases[i].outputs);
        assert_string_equal(g.ops, cases[i].ops);
    }
    drop(n);
}

static void options_that_do_not_fit_are_named(void **state)
{
    static const struct {
        rp_onnx_options options;
        const char *text;
    } cases[] = {
        {{.observation = {2, {3, 2}}}, "an observation has 6 numbers, the network reads 5"},
        {{.observation = {1, {-1}}}, "an observation has 0 numbers"},
        {{.head = RP_ONNX_CATEGORICAL}, "the head 2 has 0 numbers per action"},
        {{.head = RP_ONNX_CATEGORICAL, .categorical = {5, 0, 1}},
         "a row of output has 12 numbers, which the head does not fit"},
        {{.head = RP_ONNX_QUANTILE, .quantiles = 24}, "which the head does not fit"},
        {{.head = RP_ONNX_GAUSSIAN, .gaussian = {5, 0, 1, true}},
         "which the head does not fit"},
        {{.head = RP_ONNX_BOX}, "the head of a box has no bounds"},
        {{.head = (rp_onnx_head)9}, "the head 9 has 0 numbers per action"},
    };
    network n =
        make((rp_net_shape){1, 1, 5}, &(rp_net_layer){.kind = RP_NET_DENSE, .out = 12}, 1);
    rp_onnx_file file = {0};
    rp_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_fails(rp_net_write_onnx(rp_allocator_default(), n.net, n.params,
                                       &cases[i].options, &file, &err),
                     RP_INVALID, &err, cases[i].text);
    assert_fails(rp_net_save_onnx(rp_allocator_default(), n.net, n.params,
                                  &(rp_onnx_options){0}, "/nonexistent/x", &err),
                 RP_UNAVAILABLE, &err, "'/nonexistent/x.new' cannot be written");
    drop(n);
}

static rp_status write_with(const rp_allocator *alloc)
{
    const rp_net_layer layers[] = {
        {.kind = RP_NET_DENSE, .out = 90},
        {.kind = RP_NET_LSTM, .out = 30},
        {.kind = RP_NET_DUELING, .out = 3, .atoms = 7},
    };
    network n = make((rp_net_shape){1, 1, 70}, layers, COUNT_OF(layers));
    rp_onnx_file file = {0};
    rp_status st = rp_net_write_onnx(
        alloc, n.net, n.params,
        &(rp_onnx_options){.head = RP_ONNX_CATEGORICAL, .categorical = {7, -1, 1}}, &file,
        NULL);

    rp_onnx_file_free(alloc, &file);
    drop(n);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(write_with);
}

RP_TESTS(onnx)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_layers_have_weights_in_by_out),
        cmocka_unit_test(convolutions_have_their_channels_first),
        cmocka_unit_test(an_lstm_has_its_state_as_input_and_output),
        cmocka_unit_test(heads_add_their_outputs),
        cmocka_unit_test(options_that_do_not_fit_are_named),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("onnx", tests, NULL, NULL);
}
