/* SPDX-License-Identifier: Apache-2.0 */
/* How long does a DQN update take, and one forward pass of one observation?
 *
 * An update is double DQN as a learner runs it: values of the next observations by both
 * networks, targets, forward, Huber loss with importance weights, backward, clipping by norm,
 * Adam.
 *
 *     bench_rl_update                all, in microseconds
 *     bench_rl_update rl.update.64   one, its seconds alone: for rl_update_torch.py, which runs the
 *                                    same in PyTorch and prints ratios */
#include <math.h>

#include "bench.h"
#include "reprise/rl/init.h"
#include "reprise/rl/loss.h"
#include "reprise/rl/optimizer.h"

typedef struct figure {
    const char *name;
    size_t in, width, actions, rows;
    bool act; /* a forward pass and the best action, nothing else */
} figure;

static const figure figures[] = {
    {"rl.update.64", 4, 64, 2, 64, false},
    {"rl.update.128", 8, 128, 4, 128, false},
    {"rl.update.256", 8, 256, 4, 512, false},
    {"rl.act.one", 4, 64, 2, 1, true},
};

typedef struct learner {
    rp_net *net;
    rp_tape *train, *infer;
    rp_optimizer *optimizer;
    rp_real *params, *target_params, *grads;
    rp_real *now, *next, *reward, *discount, *weights, *target, *grad_q, *errors, *online;
    int32_t *taken;
} learner;

static rp_real *numbers(rp_pcg64 *rng, size_t count)
{
    rp_real *x = bench_array(count, sizeof *x);

    for (size_t i = 0; i < count; i++) x[i] = (rp_real)rp_pcg64_normal(rng);
    return x;
}

static rp_tape *tape_of(const figure *f, const rp_net *net, bool train)
{
    rp_tape *tape = NULL;
    rp_error err;

    bench_check(rp_tape_new(rp_allocator_default(), net, (rp_tape_options){f->rows, train},
                            &tape, &err),
                &err);
    return tape;
}

static learner make(const figure *f)
{
    const rp_net_layer layers[] = {
        {.kind = RP_NET_DENSE, .out = f->width, .activation = RP_RELU},
        {.kind = RP_NET_DENSE, .out = f->width, .activation = RP_RELU},
        {.kind = RP_NET_DENSE, .out = f->actions},
    };
    const rp_optimizer_options adam = {.kind = RP_ADAM, .rate = 1e-4, .max_norm = 10};
    const rp_allocator *heap = rp_allocator_default();
    rp_pcg64 rng;
    rp_error err;
    learner l = {0};

    rp_pcg64_seed(&rng, 1);
    bench_check(rp_net_new(heap, (rp_net_shape){1, 1, f->in}, layers, 3, &l.net, &err), &err);
    l.params = bench_array(rp_net_size(l.net), sizeof *l.params);
    l.grads = bench_array(rp_net_size(l.net), sizeof *l.grads);
    l.target_params = bench_array(rp_net_size(l.net), sizeof *l.params);
    bench_check(rp_net_init(heap, l.net, RP_INIT_TORCH, &rng, l.params), NULL);
    bench_check(rp_net_init(heap, l.net, RP_INIT_TORCH, &rng, l.target_params), NULL);
    bench_check(rp_optimizer_new(heap, rp_net_size(l.net), &adam, &l.optimizer, &err), &err);
    l.train = tape_of(f, l.net, true);
    l.infer = tape_of(f, l.net, false);
    l.now = numbers(&rng, f->rows * f->in);
    l.next = numbers(&rng, f->rows * f->in);
    l.reward = numbers(&rng, f->rows);
    l.discount = bench_array(f->rows, sizeof *l.discount);
    l.weights = bench_array(f->rows, sizeof *l.weights);
    l.target = bench_array(f->rows, sizeof *l.target);
    l.errors = bench_array(f->rows, sizeof *l.errors);
    l.grad_q = bench_array(f->rows * f->actions, sizeof *l.grad_q);
    l.online = bench_array(f->rows * f->actions, sizeof *l.online);
    l.taken = bench_array(f->rows, sizeof *l.taken);
    for (size_t i = 0; i < f->rows; i++) {
        l.discount[i] = 0.99F;
        l.weights[i] = (rp_real)rp_pcg64_double(&rng);
        l.taken[i] = (int32_t)(i % f->actions);
    }
    return l;
}

static void drop(learner *l)
{
    rp_real *arrays[] = {l->params, l->target_params, l->grads,    l->now,
                         l->next,   l->reward,        l->discount, l->weights,
                         l->target, l->grad_q,        l->errors,   l->online};

    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) free(arrays[i]);
    free(l->taken);
    rp_tape_free(l->train);
    rp_tape_free(l->infer);
    rp_optimizer_free(l->optimizer);
    rp_net_free(l->net);
}

static double update(const figure *f, learner *l)
{
    rp_loss_rows rows = {f->rows, f->actions, l->taken, l->weights};
    const rp_real *target, *q;
    double loss;

    if (f->act) {
        q = rp_tape_forward(l->infer, l->params, l->now, 1);
        return (double)rp_argmax(q, f->actions);
    }
    q = rp_tape_forward(l->infer, l->params, l->next, f->rows);
    memcpy(l->online, q, f->rows * f->actions * sizeof *q);
    target = rp_tape_forward(l->infer, l->target_params, l->next, f->rows);
    rp_td_target(f->rows, f->actions, l->reward, l->discount, l->online, target, l->target);
    q = rp_tape_forward(l->train, l->params, l->now, f->rows);
    loss = rp_td_loss(&rows, 1, q, l->target, l->grad_q, l->errors);
    rp_tape_backward(l->train, l->params, l->grad_q, l->grads, NULL);
    rp_optimizer_step(l->optimizer, l->params, l->grads);
    return loss;
}

/* Returns the seconds of one update: the best of some rounds of 20 ms. */
static double measure(const figure *f)
{
    learner l = make(f);
    bench_best best = {0};
    double sum = 0, started = bench_seconds(), end = started + 0.6;
    size_t count = 0;

    while (bench_seconds() - started < 0.02) {
        sum += update(f, &l);
        count++;
    }
    while (bench_seconds() < end) {
        started = bench_seconds();
        for (size_t i = 0; i < count; i++) sum += update(f, &l);
        bench_keep(&best, started);
    }
    if (!isfinite(sum)) printf("# %s diverged\n", f->name);
    drop(&l);
    return best.seconds / (double)count;
}

int main(int argc, char **argv)
{
    bool all = argc < 2 || strcmp(argv[1], "--quick") == 0;

    if (all) printf("# a DQN update, and one observation acted on, on one thread\n");
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (all) printf("%s %.3g us\n", figures[i].name, measure(&figures[i]) * 1e6);
        if (!all && strcmp(argv[1], figures[i].name) == 0)
            printf("%.9g\n", measure(&figures[i]));
    }
    return 0;
}
