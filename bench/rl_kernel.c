/* SPDX-License-Identifier: Apache-2.0 */
/* Our own matrix products against those of a CBLAS, on the shapes that agents have, on one
 * thread.
 *
 *     bench_rl_kernel [--quick] [avx512|avx2|plain]     default: the best of this machine
 *
 * A figure is one layer, forward or backward, the rest of the layer (bias, activation)
 * included: we fuse it with the product, and after a CBLAS it is a pass of its own. The layers
 * are those of rl_update.c and of DQN on images (Mnih et al. 2015).
 *
 * OpenBLAS chooses its kernels by the machine. For a fair comparison with avx2 on a machine
 * that has AVX-512, set OPENBLAS_CORETYPE=Haswell. */
#include "bench.h"
#include "reprise/rl/init.h"

typedef struct figure {
    const char *name;
    size_t rows;
    rp_net_shape in;
    rp_net_layer layer;
} figure;

#define DENSE(n)                                                                               \
    {                                                                                          \
        .kind = RP_NET_DENSE, .out = (n), .activation = RP_RELU                                \
    }
#define CONV(n, k, s)                                                                          \
    {                                                                                          \
        .kind = RP_NET_CONV, .out = (n), .kernel = (k), .stride = (s), .activation = RP_RELU   \
    }

static const figure figures[] = {
    {"one.4x64", 1, {1, 1, 4}, DENSE(64)},
    {"one.64x64", 1, {1, 1, 64}, DENSE(64)},
    {"one.64x2", 1, {1, 1, 64}, DENSE(2)},
    {"one.256x256", 1, {1, 1, 256}, DENSE(256)},
    {"group.64x64", 32, {1, 1, 64}, DENSE(64)},
    {"batch64.64x64", 64, {1, 1, 64}, DENSE(64)},
    {"batch128.128x128", 128, {1, 1, 128}, DENSE(128)},
    {"batch512.256x256", 512, {1, 1, 256}, DENSE(256)},
    {"batch512.256x4", 512, {1, 1, 256}, DENSE(4)},
    {"batch32.3136x512", 32, {1, 1, 3136}, DENSE(512)},
    {"batch32.conv1", 32, {84, 84, 4}, CONV(32, 8, 4)},
    {"batch32.conv2", 32, {20, 20, 32}, CONV(64, 4, 2)},
    {"batch32.conv3", 32, {9, 9, 64}, CONV(64, 3, 1)},
};

/* One layer with one kernel. */
typedef struct side {
    rp_net *net;
    rp_tape *tape;
    rp_real *params, *grads, *in, *grad_out, *grad_in;
} side;

static rp_real *numbers(rp_pcg64 *rng, size_t count)
{
    rp_real *x = bench_array(count, sizeof *x);

    for (size_t i = 0; i < count; i++) x[i] = (rp_real)rp_pcg64_normal(rng);
    return x;
}

static side make(const figure *f, const char *kernel)
{
    const rp_allocator *heap = rp_allocator_default();
    rp_pcg64 rng;
    rp_error err;
    side s;

    rp_pcg64_seed(&rng, 1);
    bench_check(rp_net_new(heap, f->in, &f->layer, 1, &s.net, &err), &err);
    bench_check(rp_net_use_kernel(s.net, kernel), NULL);
    bench_check(rp_tape_new(heap, s.net, (rp_tape_options){f->rows, true}, &s.tape, &err),
                &err);
    s.params = bench_array(rp_net_size(s.net), sizeof *s.params);
    s.grads = bench_array(rp_net_size(s.net), sizeof *s.grads);
    bench_check(rp_net_init(heap, s.net, RP_INIT_TORCH, &rng, s.params), NULL);
    s.in = numbers(&rng, f->rows * rp_net_in_size(s.net));
    s.grad_out = numbers(&rng, f->rows * rp_net_out_size(s.net));
    s.grad_in = bench_array(f->rows * rp_net_in_size(s.net), sizeof *s.grad_in);
    return s;
}

static void drop(side *s)
{
    rp_tape_free(s->tape);
    rp_net_free(s->net);
    free(s->params);
    free(s->grads);
    free(s->in);
    free(s->grad_out);
    free(s->grad_in);
}

/* One pass forward, or backward over the last one. */
static void pass(const figure *f, side *s, bool backward)
{
    if (backward)
        rp_tape_backward(s->tape, s->params, s->grad_out, s->grads, s->grad_in);
    else
        (void)rp_tape_forward(s->tape, s->params, s->in, f->rows);
}

/* Processor time of this thread: other load on the machine does not count. */
static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void compare(const figure *f, const char *kernel, bool backward, bool quick)
{
    side sides[2] = {make(f, kernel), make(f, "cblas")};
    bench_best best[2] = {{0}, {0}};
    double started;
    size_t count = 0;
    char name[80];

    for (int i = 0; i < 2; i++) pass(f, &sides[i], false);
    started = cpu_seconds();
    do {
        pass(f, &sides[1], backward);
        count++;
    } while (cpu_seconds() - started < 0.001);
    for (int round = 0; round < (quick ? 30 : 100); round++) {
        for (int i = 0; i < 2; i++) {
            started = cpu_seconds();
            for (size_t n = 0; n < count; n++) pass(f, &sides[i], backward);
            bench_keep_seconds(&best[i], cpu_seconds() - started);
        }
    }
    (void)snprintf(name, sizeof name, "rl.kernel.%s.%s.%s", kernel,
                   backward ? "backward" : "forward", f->name);
    bench_ratio_time(name, best[0], "cblas", best[1], count);
    for (int i = 0; i < 2; i++) drop(&sides[i]);
}

/* True if this machine and this build have the kernel. `best` receives the default one. */
static bool has_kernel(const char *name, const char **best)
{
    rp_net *net;
    rp_error err;
    bool has;

    bench_check(
        rp_net_new(rp_allocator_default(), figures[0].in, &figures[0].layer, 1, &net, &err),
        &err);
    *best = rp_net_kernel(net);
    has = rp_net_use_kernel(net, name) == RP_OK;
    rp_net_free(net);
    return has;
}

int main(int argc, char **argv)
{
    const char *kernel = NULL, *best;
    bool quick = false;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            quick = true;
        else
            kernel = argv[i];
    }
    if (!has_kernel("cblas", &best)) {
        printf(
            "skipped rl_kernel: built without a CBLAS; tools/need.sh bench installs OpenBLAS, "
            "then: meson setup --reconfigure build/release\n");
        return 0;
    }
    if (kernel == NULL) kernel = best;
    if (strcmp(kernel, "cblas") == 0) {
        printf("skipped rl_kernel: this machine has no kernel of ours that is preferred to a "
               "CBLAS\n");
        return 0;
    }
    if (!has_kernel(kernel, &best)) {
        printf("skipped rl_kernel: this machine cannot run the kernel %s\n", kernel);
        return 0;
    }
    printf("# layers with our kernel %s against the same with a CBLAS, on one thread%s\n",
           kernel, quick ? " (quick)" : "");
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        for (int backward = 0; backward < 2; backward++)
            if (backward == 0 || figures[i].rows > 32 || figures[i].layer.kind == RP_NET_CONV ||
                figures[i].in.channels == 3136)
                compare(&figures[i], kernel, backward == 1, quick);
    return 0;
}
