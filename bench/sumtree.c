/* SPDX-License-Identifier: Apache-2.0 */
/* Compares our sum tree with the textbook one, which is binary.
 *
 * Both trees have the same weights, uniform in 0.01 .. 1.01. Each round draws new targets,
 * leaves and weights, outside the timed part, so that their cache lines are not those of the
 * round before. Every figure is the best of several rounds, in which the two take turns. */
#include "table/selector/sumtree.h"

#include <math.h>

#include "bench.h"
#include "kary.h"
#include "textbook.h"

enum {
    BATCH = 256,
    OPS = 1 << 14, /* operations in a round, which is short, to fit between two interruptions */
};

typedef struct trees {
    size_t leaf_count;
    const char *label; /* "1e6" */
    rp_sumtree *ours;
    textbook_tree book;
} trees;

/* One round of work: OPS draws or updates. */
typedef struct work {
    bench_rng rng;
    size_t batch;
    double *targets, *weights;
    uint32_t *leaves, *found;
} work;

typedef struct pair {
    bench_best ours, book;
} pair;

typedef void action(trees *t, work *w);

static double some_weight(bench_rng *rng)
{
    return 0.01 + bench_uniform(rng);
}

static void trees_init(trees *t, size_t leaf_count, const char *label)
{
    bench_rng rng = {.state = 1};

    *t = (trees){.leaf_count = leaf_count, .label = label, .book = textbook_new(leaf_count)};
    bench_check(rp_sumtree_new(rp_allocator_default(), &t->ours), NULL);
    bench_check(rp_sumtree_reserve(t->ours, leaf_count), NULL);
    for (size_t i = 0; i < leaf_count; i++) {
        double weight = some_weight(&rng);
        uint32_t leaf = (uint32_t)i;
        t->book.nodes[t->book.capacity + i] = weight;
        rp_sumtree_set(t->ours, &leaf, &weight, 1);
    }
    textbook_fill(&t->book);
}

static void trees_deinit(trees *t)
{
    rp_sumtree_free(t->ours);
    textbook_free(&t->book);
}

static void work_init(work *w)
{
    *w = (work){.rng = {.state = 42}, .batch = BATCH};
    w->targets = bench_array(OPS, sizeof *w->targets);
    w->weights = bench_array(OPS, sizeof *w->weights);
    w->leaves = bench_array(OPS, sizeof *w->leaves);
    w->found = bench_array(OPS, sizeof *w->found);
}

static void work_deinit(work *w)
{
    free(w->targets);
    free(w->weights);
    free(w->leaves);
    free(w->found);
}

static void work_fill(work *w, size_t leaf_count, double total)
{
    for (size_t i = 0; i < OPS; i++) {
        w->targets[i] = bench_uniform(&w->rng) * total;
        w->weights[i] = some_weight(&w->rng);
        w->leaves[i] = (uint32_t)bench_below(&w->rng, leaf_count);
    }
}

static void draw_ours(trees *t, work *w)
{
    for (size_t i = 0; i < OPS; i += w->batch)
        rp_sumtree_find(t->ours, w->targets + i, w->batch, w->found + i);
}

static void draw_book(trees *t, work *w)
{
    for (size_t i = 0; i < OPS; i++)
        w->found[i] = (uint32_t)textbook_find(&t->book, w->targets[i]);
}

/* Updates weights; all sums are correct after each batch, as a draw would need them. */
static void update_ours(trees *t, work *w)
{
    for (size_t i = 0; i < OPS; i += w->batch) {
        rp_sumtree_set(t->ours, w->leaves + i, w->weights + i, w->batch);
        (void)rp_sumtree_total(t->ours);
    }
}

/* Updates weights; all sums are correct only at the end. */
static void update_ours_lazily(trees *t, work *w)
{
    for (size_t i = 0; i < OPS; i += w->batch)
        rp_sumtree_set(t->ours, w->leaves + i, w->weights + i, w->batch);
    (void)rp_sumtree_total(t->ours);
}

static void update_book(trees *t, work *w)
{
    for (size_t i = 0; i < OPS; i++) textbook_set(&t->book, w->leaves[i], w->weights[i]);
}

static void update_book_by_difference(trees *t, work *w)
{
    for (size_t i = 0; i < OPS; i++)
        textbook_set_by_difference(&t->book, w->leaves[i], w->weights[i]);
}

/* Does what a learner does: draws a batch, then updates the weights of the drawn leaves. */
static void step_ours(trees *t, work *w)
{
    for (size_t i = 0; i < OPS; i += w->batch) {
        rp_sumtree_find(t->ours, w->targets + i, w->batch, w->found + i);
        rp_sumtree_set(t->ours, w->found + i, w->weights + i, w->batch);
        (void)rp_sumtree_total(t->ours);
    }
}

static void step_book(trees *t, work *w)
{
    for (size_t i = 0; i < OPS; i += w->batch) {
        for (size_t j = i; j < i + w->batch; j++)
            w->found[j] = (uint32_t)textbook_find(&t->book, w->targets[j]);
        for (size_t j = i; j < i + w->batch; j++)
            textbook_set(&t->book, w->found[j], w->weights[j]);
    }
}

static pair measure(trees *t, work *w, int rounds, action *ours, action *book)
{
    pair best = {{0}, {0}};
    double start;

    for (int round = 0; round < rounds; round++) {
        /* Both totals are equal, except for rounding. */
        work_fill(w, t->leaf_count, rp_sumtree_total(t->ours) * (1 - 1e-9));
        start = bench_seconds();
        ours(t, w);
        bench_keep(&best.ours, start);
        start = bench_seconds();
        book(t, w);
        bench_keep(&best.book, start);
    }
    return best;
}

static void report(const char *what, const trees *t, pair best)
{
    char name[64];

    snprintf(name, sizeof name, "sumtree.%s.%s", what, t->label);
    bench_ratio_time(name, best.ours, "textbook", best.book, OPS);
}

static void compare_batches(trees *t, work *w, int rounds)
{
    w->batch = BATCH;
    report("draw", t, measure(t, w, rounds, draw_ours, draw_book));
    report("update", t, measure(t, w, rounds, update_ours, update_book));
    if (t->leaf_count == 1000000)
        report("update_delta", t,
               measure(t, w, rounds, update_ours, update_book_by_difference));
    textbook_fill(&t->book);
    report("step", t, measure(t, w, rounds, step_ours, step_book));
}

/* The case of the sweep in which our ratio to the textbook tree is lowest. */
typedef struct slowest {
    double ratio;
    pair best;
    char where[64];
} slowest;

static void sweep_row(trees *t, work *w, int rounds, const char *what, slowest *worst)
{
    static const size_t lengths[] = {1, 4, 16, 64, 256, 1024};
    bool draw = strcmp(what, "draw") == 0;

    printf("%-8s%5s", what, t->label);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        pair best;
        double ratio;

        w->batch = lengths[i];
        best = draw ? measure(t, w, rounds, draw_ours, draw_book)
                    : measure(t, w, rounds, update_ours_lazily, update_book);
        ratio = best.book.seconds / best.ours.seconds;
        printf("  %5.1f /%6.1f", bench_ns(best.ours, OPS), bench_ns(best.book, OPS));
        if (worst->ratio != 0 && ratio >= worst->ratio) continue;
        worst->ratio = ratio;
        worst->best = best;
        snprintf(worst->where, sizeof worst->where, "%s of %s leaves, %zu at a time", what,
                 t->label, lengths[i]);
    }
    printf("\n");
}

static void compare_kernels(trees *t, work *w, int rounds)
{
    static const char *const names[] = {"avx512", "avx2", "neon", "plain"};
    const char *own = rp_sumtree_kernel(t->ours);

    w->batch = BATCH;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        pair draw, update;

        if (rp_sumtree_use_kernel(t->ours, names[i]) != RP_OK) continue;
        draw = measure(t, w, rounds, draw_ours, draw_book);
        update = measure(t, w, rounds, update_ours, update_book);
        printf("kernel  %5s  %-8s draw %6.1f  update %6.1f\n", t->label, names[i],
               bench_ns(draw.ours, OPS), bench_ns(update.ours, OPS));
    }
    bench_check(rp_sumtree_use_kernel(t->ours, own), NULL);
}

/* Measures the effect of K, as in figure 9 of Zhang et al. 2021. */
static void sweep_k_row(trees *t, work *w, int rounds, unsigned shift)
{
    kary_tree tree = kary_new(shift, t->leaf_count);
    bench_best draw = {0}, update = {0}, difference = {0};
    double start;

    for (size_t i = 0; i < t->leaf_count; i++)
        tree.levels[0][i] = rp_sumtree_get(t->ours, (uint32_t)i);
    kary_fill(&tree);
    for (int round = 0; round < rounds; round++) {
        work_fill(w, t->leaf_count, kary_total(&tree) * (1 - 1e-9));
        start = bench_seconds();
        for (size_t i = 0; i < OPS; i++)
            w->found[i] = (uint32_t)kary_find(&tree, w->targets[i]);
        bench_keep(&draw, start);
        start = bench_seconds();
        for (size_t i = 0; i < OPS; i++) kary_set(&tree, w->leaves[i], w->weights[i]);
        bench_keep(&update, start);
        work_fill(w, t->leaf_count, 1);
        start = bench_seconds();
        for (size_t i = 0; i < OPS; i++)
            kary_set_by_difference(&tree, w->leaves[i], w->weights[i]);
        bench_keep(&difference, start);
        kary_fill(&tree);
    }
    printf("K=%-6u%5s   %6.1f   %6.1f   %6.1f\n", 1U << shift, t->label, bench_ns(draw, OPS),
           bench_ns(update, OPS), bench_ns(difference, OPS));
    kary_free(&tree);
}

static void sweep_k(trees *t, work *w, int rounds)
{
    pair draw, update;

    printf("\n# the effect of K: plain C, one at a time, ns (figure 9 of Zhang et al. 2021)\n"
           "K       leaves     draw   update   update by difference\n");
    for (unsigned shift = 1; shift <= 7; shift++) sweep_k_row(t, w, rounds, shift);
    w->batch = BATCH;
    draw = measure(t, w, rounds, draw_ours, draw_book);
    update = measure(t, w, rounds, update_ours, update_book);
    printf("ours    %5s   %6.1f   %6.1f        -   (batches of %d)\n", t->label,
           bench_ns(draw.ours, OPS), bench_ns(update.ours, OPS), BATCH);
}

/* Checks the distribution of the draws. Every tenth leaf has weight 0 and must never be drawn.
 */
static void check_quality(size_t rounds)
{
    enum { LEAVES = 100000 };
    uint32_t *counts = bench_array(LEAVES, sizeof *counts);
    double chi2 = 0, total, zero = 0, draws = (double)rounds * OPS;
    size_t cells = 0, zero_draws = 0;
    trees t;
    work w;

    trees_init(&t, LEAVES, "1e5");
    work_init(&w);
    for (uint32_t leaf = 0; leaf < LEAVES; leaf += 10) rp_sumtree_set(t.ours, &leaf, &zero, 1);
    total = rp_sumtree_total(t.ours);
    for (size_t round = 0; round < rounds; round++) {
        work_fill(&w, LEAVES, total);
        draw_ours(&t, &w);
        for (size_t i = 0; i < OPS; i++) counts[w.found[i]]++;
    }
    for (uint32_t leaf = 0; leaf < LEAVES; leaf++) {
        double expected = draws * rp_sumtree_get(t.ours, leaf) / total;
        double off = (double)counts[leaf] - expected;
        if (expected == 0) {
            zero_draws += counts[leaf];
            continue;
        }
        chi2 += off * off / expected;
        cells++;
    }
    printf("\nquality sumtree.chi2 %.4f (per degree of freedom; %zu leaves, %.3g draws, "
           "%.1f sigma from 1; leaves of weight 0 drawn %zu times)\n",
           chi2 / (double)(cells - 1), cells, draws,
           fabs(chi2 - (double)(cells - 1)) / sqrt(2 * (double)(cells - 1)), zero_draws);
    work_deinit(&w);
    trees_deinit(&t);
    free(counts);
}

int main(int argc, char **argv)
{
    bench_options options = bench_parse(argc, argv, "the sum tree against the textbook one");
    static const struct {
        size_t leaf_count;
        const char *label;
    } sizes[] = {{10000, "1e4"}, {100000, "1e5"}, {1000000, "1e6"}, {10000000, "1e7"}};
    int rounds = options.quick ? 60 : 240, sweep_rounds = options.quick ? 25 : 100;
    slowest worst = {0};
    work w;

    work_init(&w);
    printf("memory latency %.0f ns; ns each, ours / textbook\n", bench_memory_latency_ns());
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        trees t;

        trees_init(&t, sizes[i].leaf_count, sizes[i].label);
        printf("\n# %s leaves, kernel %s, batches of %d\n", t.label, rp_sumtree_kernel(t.ours),
               BATCH);
        compare_batches(&t, &w, rounds);
        compare_kernels(&t, &w, sweep_rounds);
        printf("\n# ns each, ours / textbook, by batch length\n"
               "        leaves              1              4             16             64"
               "            256           1024\n");
        sweep_row(&t, &w, sweep_rounds, "draw", &worst);
        sweep_row(&t, &w, sweep_rounds, "update", &worst);
        sweep_k(&t, &w, options.quick ? 10 : sweep_rounds);
        trees_deinit(&t);
    }
    work_deinit(&w);
    check_quality(options.quick ? 160 : 1600);
    printf("slowest: %s\n", worst.where);
    bench_ratio_time("sumtree.slowest", worst.best.ours, "textbook", worst.best.book, OPS);
    return 0;
}
