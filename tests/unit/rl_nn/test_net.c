/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "reprise/rl/init.h"
#include "reprise/rl/nn.h"
#include "reprise/rl/onnx.h"
#include "reprise/rl/optimizer.h"
#include "reprise/rl/safetensors.h"
#include "support/unit.h"

static const rp_net_layer mlp[] = {
    {.kind = RP_NET_DENSE, .out = 64, .activation = RP_RELU},
    {.kind = RP_NET_NORM, .activation = RP_TANH},
    {.kind = RP_NET_DUELING, .out = 3},
};
static const rp_net_layer pixels[] = {
    {.kind = RP_NET_CONV, .out = 4, .kernel = 3, .stride = 2, .activation = RP_RELU},
    {.kind = RP_NET_CONV, .out = 5, .kernel = 2, .activation = RP_ELU},
    {.kind = RP_NET_DENSE, .out = 6, .activation = RP_TANH},
    {.kind = RP_NET_LSTM, .out = 7},
    {.kind = RP_NET_DENSE, .out = 2},
};

static const rp_allocator *heap(void)
{
    return rp_allocator_default();
}

static rp_net *make(rp_net_shape in, const rp_net_layer *layers, size_t count)
{
    rp_net *net = NULL;
    rp_error err;

    assert_ok_err(rp_net_new(heap(), in, layers, count, &net, &err), &err);
    return net;
}

static float *numbers(uint64_t seed, size_t count)
{
    float *x = malloc(count * sizeof *x);
    rp_pcg64 rng;

    rp_pcg64_seed(&rng, seed);
    for (size_t i = 0; i < count; i++) x[i] = (float)rp_pcg64_normal(&rng);
    return x;
}

static float *initial(const rp_net *net, uint64_t seed)
{
    float *params = malloc(rp_net_size(net) * sizeof *params);
    rp_pcg64 rng;

    rp_pcg64_seed(&rng, seed);
    assert_ok(rp_net_init(heap(), net, RP_INIT_TORCH, &rng, params));
    return params;
}

static rp_tape *make_tape(const rp_net *net, size_t rows, bool train)
{
    rp_tape *tape = NULL;
    rp_error err;
    rp_tape_options options = {.rows = rows, .train = train};

    assert_ok_err(rp_tape_new(heap(), net, options, &tape, &err), &err);
    return tape;
}

static void network_has_the_names_and_shapes_of_pytorch(void **state)
{
    rp_net *net = make((rp_net_shape){9, 11, 3}, pixels, COUNT_OF(pixels));
    const rp_net_parameter *p;

    (void)state;
    assert_int_equal(rp_net_parameter_count(net), 2 + 2 + 2 + 3 + 2);
    p = rp_net_parameter_at(net, 0);
    assert_string_equal(p->name, "0.weight");
    assert_int_equal(p->size, 3 * 3 * 3 * 4);
    p = rp_net_parameter_at(net, 4); /* after images of 3 x 4 x 5 */
    assert_string_equal(p->name, "2.weight");
    assert_int_equal(p->rank, 4);
    assert_int_equal(p->size, 3 * 4 * 5 * 6);
    p = rp_net_parameter_at(net, 8);
    assert_string_equal(p->name, "3.bias_ih_l0");
    assert_int_equal(p->size, 28);
    p = rp_net_parameter_at(net, 10);
    assert_int_equal(p->offset + p->size, rp_net_size(net));
    assert_int_equal(rp_net_in_size(net), 9 * 11 * 3);
    assert_int_equal(rp_net_out_size(net), 2);
    assert_int_equal(rp_net_state_size(net), 14);
    rp_net_free(net);
}

static void expect_equal_batches(rp_net_shape in, const rp_net_layer *layers, size_t count,
                                 const char *kernel)
{
    enum { ROWS = 37 };
    rp_net *net = make(in, layers, count);
    rp_tape *one, *all, *train;
    float *params = initial(net, 3), *x = numbers(5, ROWS * rp_net_in_size(net));
    const float *batch, *trained, *single;
    size_t out = rp_net_out_size(net);

    if (rp_net_use_kernel(net, kernel) == RP_OK) {
        one = make_tape(net, 1, false);
        all = make_tape(net, ROWS, false);
        train = make_tape(net, ROWS, true);
        batch = rp_tape_forward(all, params, x, ROWS);
        trained = rp_tape_forward(train, params, x, ROWS);
        assert_memory_equal(batch, trained, ROWS * out * sizeof *batch);
        for (size_t i = 0; i < ROWS; i++) {
            single = rp_tape_forward(one, params, x + i * rp_net_in_size(net), 1);
            assert_memory_equal(single, batch + i * out, out * sizeof *single);
        }
        rp_tape_free(one);
        rp_tape_free(all);
        rp_tape_free(train);
    }
    free(params);
    free(x);
    rp_net_free(net);
}

static void one_row_gives_the_bits_of_a_batch(void **state)
{
    static const char *const kernels[] = {"plain", "avx2", "avx512"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        expect_equal_batches((rp_net_shape){1, 1, 9}, mlp, COUNT_OF(mlp), kernels[i]);
        expect_equal_batches((rp_net_shape){9, 11, 3}, pixels, COUNT_OF(pixels), kernels[i]);
    }
}

static void sequence_equals_its_steps_with_the_state_carried_on(void **state)
{
    enum { STEPS = 6, SEQUENCES = 3, ROWS = STEPS * SEQUENCES, IN = 9 * 11 * 3 };
    rp_net *net = make((rp_net_shape){9, 11, 3}, pixels, COUNT_OF(pixels));
    rp_tape *whole = make_tape(net, ROWS, true), *single = make_tape(net, SEQUENCES, false);
    float *params = initial(net, 3), *x = numbers(5, (size_t)ROWS * IN),
          *h = numbers(6, 14 * 3);
    float keep[ROWS], last[14 * SEQUENCES];
    const float *outs, *out;
    rp_tape_sequence sequence = {STEPS, h, keep, last};

    (void)state;
    for (size_t i = 0; i < ROWS; i++) keep[i] = i % 5 == 3 ? 0 : 1;
    outs = rp_tape_forward_sequence(whole, params, x, ROWS, &sequence);
    for (size_t t = 0; t < STEPS; t++) {
        rp_tape_sequence step = {1, h, keep + t * SEQUENCES, h};

        out =
            rp_tape_forward_sequence(single, params, x + t * SEQUENCES * IN, SEQUENCES, &step);
        assert_memory_equal(out, outs + t * SEQUENCES * 2, SEQUENCES * 2 * sizeof *out);
    }
    assert_memory_equal(h, last, sizeof last);
    free(params);
    free(x);
    free(h);
    rp_tape_free(whole);
    rp_tape_free(single);
    rp_net_free(net);
}

static void backward_pass_repeats_bit_by_bit_and_writes_every_gradient(void **state)
{
    enum { ROWS = 20 };
    rp_net *net = make((rp_net_shape){9, 11, 3}, pixels, COUNT_OF(pixels));
    rp_tape *tape = make_tape(net, ROWS + 5, true);
    size_t size = rp_net_size(net);
    float *params = initial(net, 3), *x = numbers(5, ROWS * rp_net_in_size(net));
    float *grad_out = numbers(8, ROWS * 2);
    float *first = malloc(size * sizeof *first), *second = malloc(size * sizeof *second);

    (void)state;
    for (size_t i = 0; i < size; i++) first[i] = second[i] = NAN;
    rp_tape_forward(tape, params, x, ROWS);
    rp_tape_backward(tape, params, grad_out, first, NULL);
    rp_tape_forward(tape, params, x, ROWS);
    rp_tape_backward(tape, params, grad_out, second, NULL);
    assert_memory_equal(first, second, size * sizeof *first);
    for (size_t i = 0; i < size; i++) assert_true(first[i] == first[i]);
    free(params);
    free(x);
    free(grad_out);
    free(first);
    free(second);
    rp_tape_free(tape);
    rp_net_free(net);
}

static void wrong_layers_are_named(void **state)
{
    static const struct {
        rp_net_shape in;
        rp_net_layer layer;
        const char *text;
    } cases[] = {
        {{1, 1, 0}, {.kind = RP_NET_DENSE, .out = 1}, "input: sizes must be >= 1"},
        {{1, 1, 4}, {.kind = RP_NET_DENSE}, "layer 0 (dense): out must be >= 1, got 0"},
        {{1, 1, 4}, {.out = 3}, "layer 0: no kind has the number 0"},
        {{1, 1, 4},
         {.kind = RP_NET_DENSE, .out = 9, .activation = 9},
         "no activation has the number 9"},
        {{1, 1, 4}, {.kind = RP_NET_DENSE, .out = (size_t)-1}, "out must be <= 1048576"},
        {{8, 7, 4},
         {.kind = RP_NET_CONV, .out = 2, .kernel = 8},
         "kernel must be 1 to the size of the image, 8 x 7, got 8"},
        {{8, 7, 4}, {.kind = RP_NET_CONV, .out = 2}, "got 0"},
        {{8, 7, 4}, {.kind = RP_NET_CONV, .kernel = 2}, "out must be >= 1"},
        {{1, 1, 5}, {.kind = RP_NET_DUELING, .out = 2}, "must be even"},
        {{1, 1, 4}, {.kind = RP_NET_DUELING}, "out must be >= 1"},
        {{1, 1, 4},
         {.kind = RP_NET_DUELING, .out = 2, .activation = RP_RELU},
         "activation must be linear"},
        {{1, 1, 4},
         {.kind = RP_NET_LSTM, .out = 2, .activation = RP_RELU},
         "activation must be linear"},
        {{1, 1, 4}, {.kind = RP_NET_LSTM}, "out must be >= 1"},
        {{1, 1, 4}, {.kind = RP_NET_NORM, .out = 4}, "a norm keeps its width"},
        {{1, 1, 1 << 20},
         {.kind = RP_NET_DENSE, .out = 1 << 20},
         "more than 2147483648 parameters"},
        {{(size_t)-1, (size_t)-1, 4}, {.kind = RP_NET_NORM}, "their product <= 268435456"},
    };
    rp_net *net = NULL;
    rp_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_fails(rp_net_new(heap(), cases[i].in, &cases[i].layer, 1, &net, &err),
                     RP_INVALID, &err, cases[i].text);
    assert_fails(rp_net_new(heap(), (rp_net_shape){1, 1, 1}, mlp, 0, &net, &err), RP_INVALID,
                 &err, "1 to 64 layers, got 0");
    assert_null(net);
}

static void wrong_tapes_are_refused(void **state)
{
    rp_net *net = make((rp_net_shape){1, 1, 9}, mlp, COUNT_OF(mlp));
    rp_tape *tape = NULL;
    rp_error err;

    (void)state;
    assert_fails(rp_tape_new(heap(), net, (rp_tape_options){.rows = 0}, &tape, &err),
                 RP_INVALID, &err, "rows must be >= 1");
    assert_fails(rp_tape_new(heap(), net, (rp_tape_options){.rows = SIZE_MAX / 8}, &tape, &err),
                 RP_NO_RESOURCE, &err, "larger than memory");
    assert_int_equal(rp_net_use_kernel(net, "none"), RP_NOT_FOUND);
    assert_ok(rp_net_use_kernel(net, "plain"));
    assert_string_equal(rp_net_kernel(net), "plain");
    rp_net_free(net);
    rp_net_free(NULL);
    rp_tape_free(NULL);
}

static rp_status allocate_all(const rp_allocator *alloc)
{
    rp_net *net = NULL;
    rp_tape *tape = NULL;
    float *params = NULL;
    rp_pcg64 rng;
    rp_status st = rp_net_new(alloc, (rp_net_shape){1, 1, 9}, mlp, COUNT_OF(mlp), &net, NULL);

    if (st == RP_OK)
        st = rp_tape_new(alloc, net, (rp_tape_options){.rows = 4, .train = true}, &tape, NULL);
    if (st == RP_OK) {
        params = malloc(rp_net_size(net) * sizeof *params);
        rp_pcg64_seed(&rng, 1);
        st = rp_net_init(alloc, net, RP_INIT_ORTHOGONAL, &rng, params);
    }
    free(params);
    rp_tape_free(tape);
    rp_net_free(net);
    return st;
}

/* NULL for an allocator is the default one. */
static void null_is_the_default_allocator(void **state)
{
    const rp_optimizer_options adam = {.kind = RP_ADAM, .rate = 1e-3};
    const rp_onnx_options plain = {.head = RP_ONNX_OUTPUTS};
    char path[] = "net_null_XXXXXX";
    int fd = mkstemp(path);
    rp_optimizer *optimizer = NULL;
    rp_onnx_file file = {0};
    float *params;
    rp_net *net = NULL;
    rp_error err;

    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    assert_ok(allocate_all(NULL));
    assert_ok_err(rp_net_new(NULL, (rp_net_shape){1, 1, 9}, mlp, COUNT_OF(mlp), &net, &err),
                  &err);
    params = initial(net, 3);
    assert_ok_err(rp_optimizer_new(NULL, rp_net_size(net), &adam, &optimizer, &err), &err);
    rp_optimizer_free(optimizer);
    assert_ok_err(rp_net_save(NULL, net, params, path, &err), &err);
    assert_ok_err(rp_net_load(NULL, net, path, params, &err), &err);
    assert_ok_err(rp_net_write_onnx(NULL, net, params, &plain, &file, &err), &err);
    rp_onnx_file_free(NULL, &file);
    assert_int_equal(unlink(path), 0);
    free(params);
    rp_net_free(net);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(allocate_all);
}

static void passes_allocate_nothing(void **state)
{
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_net *net = make((rp_net_shape){9, 11, 3}, pixels, COUNT_OF(pixels));
    rp_tape *tape = NULL;
    float *params = initial(net, 3), *x = numbers(5, 4 * rp_net_in_size(net));
    float *grads = malloc(rp_net_size(net) * sizeof *grads), grad_out[8] = {1};
    size_t before;

    (void)state;
    assert_ok(
        rp_tape_new(&alloc, net, (rp_tape_options){.rows = 4, .train = true}, &tape, NULL));
    before = atomic_load(&oom.total);
    rp_tape_forward(tape, params, x, 4);
    rp_tape_backward(tape, params, grad_out, grads, NULL);
    assert_int_equal(atomic_load(&oom.total), before);
    rp_tape_free(tape);
    assert_int_equal(atomic_load(&oom.live), 0);
    free(params);
    free(x);
    free(grads);
    rp_net_free(net);
}

RP_TESTS(net)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(network_has_the_names_and_shapes_of_pytorch),
        cmocka_unit_test(one_row_gives_the_bits_of_a_batch),
        cmocka_unit_test(sequence_equals_its_steps_with_the_state_carried_on),
        cmocka_unit_test(backward_pass_repeats_bit_by_bit_and_writes_every_gradient),
        cmocka_unit_test(wrong_layers_are_named),
        cmocka_unit_test(null_is_the_default_allocator),
        cmocka_unit_test(wrong_tapes_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(passes_allocate_nothing),
    };

    return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
