/* SPDX-License-Identifier: Apache-2.0 */
/* Figure 9 of Zhang et al. (2021), and section VI-G, for paper_pal.py:
 *
 *     bench_paper_pal_trees fanout [most=1e7] [rounds=5]    K by capacity and batch
 *     bench_paper_pal_trees layout [most=1e7] [rounds=40]   groups at cache lines, and shifted
 *
 * Prints CSV: ns for each leaf that is drawn, or written. The tree of the authors
 * (delta_tree.h) has float32 sums and works on one leaf at a time; "ours" is 8-ary with float64
 * sums, which it recomputes, and works on whole batches. Capacities are 1e3, 1e4, ... up to
 * `most`. Leaves, targets and weights are random and made before the clock starts; the best
 * round counts. The trees of a capacity take turns. */
#include "table/selector/sumtree.h"

#include "bench.h"
#include "delta_tree.h"

enum { OPS = 1 << 13, BATCHES = 5, MOST_SHIFT = 6, SHIFT_OF_16 = 4 };

static const size_t batches[BATCHES] = {32, 64, 128, 256, 512};

typedef struct work {
    bench_rng rng;
    double shares[OPS], targets[OPS], weights[OPS];
    uint32_t leaves[OPS], found[OPS];
} work;

typedef struct times {
    bench_best draw, update;
} times;

static void new_round(work *w, size_t capacity)
{
    for (size_t i = 0; i < OPS; i++) {
        w->shares[i] = bench_uniform(&w->rng);
        w->weights[i] = 0.01 + bench_uniform(&w->rng);
        w->leaves[i] = (uint32_t)bench_below(&w->rng, capacity);
    }
}

static void aim(work *w, double total)
{
    for (size_t i = 0; i < OPS; i++) w->targets[i] = w->shares[i] * total;
}

static void fill(delta_tree *tree)
{
    bench_rng rng = {.state = 1};

    for (size_t i = 0; i < tree->leaf_count; i++)
        *delta_tree_leaf(tree, i) = (float)(0.01 + bench_uniform(&rng));
    delta_tree_fill(tree);
}

static void time_theirs(delta_tree *tree, work *w, times *best)
{
    double started;

    new_round(w, tree->leaf_count);
    aim(w, (double)delta_tree_total(tree));
    started = bench_seconds();
    for (size_t i = 0; i < OPS; i++)
        w->found[i] = (uint32_t)delta_tree_find(tree, (float)w->targets[i]);
    bench_keep(&best->draw, started);
    started = bench_seconds();
    for (size_t i = 0; i < OPS; i++) delta_tree_set(tree, w->leaves[i], (float)w->weights[i]);
    bench_keep(&best->update, started);
}

static void time_ours(rp_sumtree *tree, work *w, size_t batch, times *best)
{
    double started;

    new_round(w, rp_sumtree_capacity(tree));
    aim(w, rp_sumtree_total(tree));
    started = bench_seconds();
    for (size_t i = 0; i < OPS; i += batch)
        rp_sumtree_find(tree, w->targets + i, batch, w->found + i);
    bench_keep(&best->draw, started);
    started = bench_seconds();
    for (size_t i = 0; i < OPS; i += batch) {
        rp_sumtree_set(tree, w->leaves + i, w->weights + i, batch);
        (void)rp_sumtree_total(tree); /* all sums are up to date, as a draw needs them */
    }
    bench_keep(&best->update, started);
}

static rp_sumtree *make_ours(size_t capacity)
{
    rp_sumtree *tree = NULL;
    bench_rng rng = {.state = 1};

    bench_check(rp_sumtree_new(rp_allocator_default(), &tree), NULL);
    bench_check(rp_sumtree_reserve(tree, capacity), NULL);
    for (size_t i = 0; i < capacity; i++) {
        double weight = 0.01 + bench_uniform(&rng);
        uint32_t leaf = (uint32_t)i;

        rp_sumtree_set(tree, &leaf, &weight, 1);
    }
    return tree;
}

static void print(size_t capacity, size_t batch, const char *tree, unsigned k, times best)
{
    printf("%zu,%zu,%s,%u,%.3f,%.3f\n", capacity, batch, tree, k, bench_ns(best.draw, OPS),
           bench_ns(best.update, OPS));
}

/* The batch changes nothing for a tree that takes one leaf at a time: the sweep over batches is
 * of ours alone, which draws and writes whole batches. */
static void measure_fanout(size_t capacity, int rounds, work *w)
{
    times best[BATCHES] = {{{0}, {0}}};
    rp_sumtree *ours;

    for (unsigned shift = 1; shift <= MOST_SHIFT; shift++) {
        delta_tree tree = delta_tree_new(shift, capacity, 0);
        times theirs = {{0}, {0}};

        fill(&tree);
        for (int round = 0; round < rounds * BATCHES; round++) time_theirs(&tree, w, &theirs);
        print(capacity, 1, "authors", 1U << shift, theirs);
        delta_tree_free(&tree);
    }
    ours = make_ours(capacity);
    for (int round = 0; round < rounds; round++)
        for (size_t b = 0; b < BATCHES; b++) time_ours(ours, w, batches[b], &best[b]);
    for (size_t b = 0; b < BATCHES; b++) print(capacity, batches[b], "ours", 8, best[b]);
    rp_sumtree_free(ours);
}

static void measure_layout(size_t capacity, int rounds, work *w)
{
    delta_tree aligned = delta_tree_new(SHIFT_OF_16, capacity, 0);
    delta_tree shifted = delta_tree_new(SHIFT_OF_16, capacity, 1);
    times best[2] = {{{0}, {0}}};

    fill(&aligned);
    fill(&shifted);
    for (int round = 0; round < rounds; round++) {
        time_theirs(&aligned, w, &best[0]);
        time_theirs(&shifted, w, &best[1]);
    }
    print(capacity, 1, "aligned", 16, best[0]);
    print(capacity, 1, "shifted", 16, best[1]);
    delta_tree_free(&aligned);
    delta_tree_free(&shifted);
}

static double number_of(const char *argument, const char *name)
{
    size_t length = strlen(name);
    char *end = NULL;
    double value = 0;

    if (strncmp(argument, name, length) == 0) value = strtod(argument + length, &end);
    return end != NULL && *end == '\0' && value >= 1 ? value : 0;
}

int main(int argc, char **argv)
{
    static work w;
    bool is_layout = argc > 1 && strcmp(argv[1], "layout") == 0;
    double most = 1e7, rounds = is_layout ? 40 : 5;
    bool is_good = is_layout || (argc > 1 && strcmp(argv[1], "fanout") == 0);

    for (int i = 2; i < argc; i++) {
        double value = number_of(argv[i], "most="), more = number_of(argv[i], "rounds=");

        if (value != 0)
            most = value;
        else if (more != 0)
            rounds = more;
        else
            is_good = false;
    }
    if (!is_good || most > 1e9 || rounds > 1e6) {
        (void)fprintf(stderr, "usage: %s fanout|layout [most=N] [rounds=N]\n", argv[0]);
        return 2;
    }
    w.rng.state = 42;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    printf("capacity,batch,tree,k,draw_ns,update_ns\n");
    for (size_t capacity = 1000; (double)capacity <= most; capacity *= 10) {
        if (is_layout)
            measure_layout(capacity, (int)rounds, &w);
        else
            measure_fanout(capacity, (int)rounds, &w);
    }
    return 0;
}
