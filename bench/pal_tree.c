/* SPDX-License-Identifier: Apache-2.0 */
/* Compares our sum tree with those of two other programs, for pal_tree.py.
 *
 *     bench_pal_tree [--quick] [cpprb_tree.so]
 *
 * One peer is a tree built as Zhang et al. (2021) build theirs (delta_tree.h): K = 16, float32,
 * one leaf at a time. The other is that of cpprb, if its library is given (cpprb_tree.cpp).
 * Draws and updates come in batches of 128, which only ours makes use of. All trees have the
 * same number of leaves and take turns; the best round of each counts, and of the two ratios
 * the smaller. All sums of ours are up to date after each batch. */
#include "reprise/sumtree.h"

#include <dlfcn.h>
#include <math.h>

#include "bench.h"
#include "delta_tree.h"

enum { BATCH = 128, OPS = 1 << 12, MOST_SIDES = 3, SHIFT = 4 };

typedef enum action { DRAW, UPDATE, STEP, ACTIONS } action;

static const char *const action_names[ACTIONS] = {"draw", "update", "step"};

/* A round of work: what to draw, as shares of the total, and what to write. */
typedef struct work {
    bench_rng rng;
    double shares[OPS], targets[OPS], weights[OPS];
    float float_targets[OPS], float_weights[OPS];
    uint32_t leaves[OPS], found[OPS];
} work;

/* A tree in the comparison. Each function is for a whole round. */
typedef struct side {
    const char *name;
    void *tree;
    double (*total)(void *tree);
    void (*draw)(void *tree, work *w, size_t begin, size_t count);
    void (*update)(void *tree, const uint32_t *leaves, const work *w, size_t begin,
                   size_t count);
    void (*free)(void *tree);
} side;

static double total_ours(void *tree)
{
    return rp_sumtree_total(tree);
}

static void draw_ours(void *tree, work *w, size_t begin, size_t count)
{
    rp_sumtree_find(tree, w->targets + begin, count, w->found + begin);
}

static void update_ours(void *tree, const uint32_t *leaves, const work *w, size_t begin,
                        size_t count)
{
    rp_sumtree_set(tree, leaves + begin, w->weights + begin, count);
    (void)rp_sumtree_total(tree);
}

static void free_ours(void *tree)
{
    rp_sumtree_free(tree);
}

static double total_authors(void *tree)
{
    return (double)delta_tree_total(tree);
}

static void draw_authors(void *tree, work *w, size_t begin, size_t count)
{
    for (size_t i = begin; i < begin + count; i++)
        w->found[i] = (uint32_t)delta_tree_find(tree, w->float_targets[i]);
}

static void update_authors(void *tree, const uint32_t *leaves, const work *w, size_t begin,
                           size_t count)
{
    for (size_t i = begin; i < begin + count; i++)
        delta_tree_set(tree, leaves[i], w->float_weights[i]);
}

static void free_authors(void *tree)
{
    delta_tree_free(tree);
    free(tree);
}

/* What cpprb_tree.cpp exports. */
static struct cpprb {
    void *(*new)(size_t leaf_count);
    void (*free)(void *tree);
    float (*total)(void *tree);
    void (*set)(void *tree, const uint32_t *leaves, const float *weights, size_t count);
    void (*find)(void *tree, const float *targets, size_t count, uint32_t *leaves);
} cpprb;

static double total_cpprb(void *tree)
{
    return (double)cpprb.total(tree);
}

static void draw_cpprb(void *tree, work *w, size_t begin, size_t count)
{
    cpprb.find(tree, w->float_targets + begin, count, w->found + begin);
}

static void update_cpprb(void *tree, const uint32_t *leaves, const work *w, size_t begin,
                         size_t count)
{
    cpprb.set(tree, leaves + begin, w->float_weights + begin, count);
}

static void free_cpprb(void *tree)
{
    cpprb.free(tree);
}

/* dlsym() returns a pointer to data, of which C makes none to a function. */
static void load_symbol(void *library, const char *name, void *at)
{
    void *symbol = dlsym(library, name);

    if (symbol == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    memcpy(at, &symbol, sizeof symbol);
}

static void load_cpprb(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);

    if (library == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    load_symbol(library, "cpprb_tree_new", (void *)&cpprb.new);
    load_symbol(library, "cpprb_tree_free", (void *)&cpprb.free);
    load_symbol(library, "cpprb_tree_total", (void *)&cpprb.total);
    load_symbol(library, "cpprb_tree_set", (void *)&cpprb.set);
    load_symbol(library, "cpprb_tree_find", (void *)&cpprb.find);
}

/* Makes all trees with the same weights. Returns their number; ours is the first. */
static size_t make_sides(side sides[MOST_SIDES], size_t leaf_count)
{
    bench_rng rng = {.state = 1};
    rp_sumtree *ours = NULL;
    delta_tree *authors = bench_array(1, sizeof *authors);
    bool has_cpprb = cpprb.new != NULL;

    bench_check(rp_sumtree_new(rp_allocator_default(), &ours), NULL);
    bench_check(rp_sumtree_reserve(ours, leaf_count), NULL);
    *authors = delta_tree_new(SHIFT, leaf_count, 0);
    sides[0] = (side){"ours", ours, total_ours, draw_ours, update_ours, free_ours};
    sides[1] =
        (side){"authors'", authors, total_authors, draw_authors, update_authors, free_authors};
    if (has_cpprb)
        sides[2] = (side){"cpprb",      bench_memory(cpprb.new(leaf_count)),
                          total_cpprb,  draw_cpprb,
                          update_cpprb, free_cpprb};
    for (size_t i = 0; i < leaf_count; i++) {
        double weight = 0.01 + bench_uniform(&rng);
        float rounded = (float)weight;
        uint32_t leaf = (uint32_t)i;

        rp_sumtree_set(ours, &leaf, &weight, 1);
        *delta_tree_leaf(authors, i) = rounded;
        if (has_cpprb) cpprb.set(sides[2].tree, &leaf, &rounded, 1);
    }
    delta_tree_fill(authors);
    return has_cpprb ? 3 : 2;
}

static void new_round(work *w, size_t leaf_count)
{
    for (size_t i = 0; i < OPS; i++) {
        w->shares[i] = bench_uniform(&w->rng);
        w->weights[i] = 0.01 + bench_uniform(&w->rng);
        w->float_weights[i] = (float)w->weights[i];
        w->leaves[i] = (uint32_t)bench_below(&w->rng, leaf_count);
    }
}

/* Targets of a draw are shares of a tree's own total: sums that drift differ a little. */
static void aim(work *w, double total)
{
    for (size_t i = 0; i < OPS; i++) {
        w->targets[i] = w->shares[i] * total;
        w->float_targets[i] = (float)w->targets[i];
    }
}

static void act(const side *s, work *w, action what)
{
    for (size_t i = 0; i < OPS; i += BATCH) {
        if (what != UPDATE) s->draw(s->tree, w, i, BATCH);
        if (what != DRAW) s->update(s->tree, what == STEP ? w->found : w->leaves, w, i, BATCH);
    }
}

/* The smallest ratio so far of an action. */
typedef struct smallest {
    double ours, peer;
    const char *peer_name;
} smallest;

static bool is_smaller(double ours, double peer, const smallest *than)
{
    return than->peer_name == NULL || ours / peer < than->ours / than->peer;
}

static void keep_smaller(smallest *s, double ours, double peer, const char *name)
{
    if (is_smaller(ours, peer, s)) *s = (smallest){ours, peer, name};
}

static void compare(size_t leaf_count, const char *label, int rounds, smallest overall[ACTIONS])
{
    static work w;
    side sides[MOST_SIDES];
    bench_best best[ACTIONS][MOST_SIDES] = {{{0}}};
    size_t count = make_sides(sides, leaf_count);
    char name[64];

    w.rng.state = 42;
    for (int round = 0; round < rounds; round++)
        for (action what = DRAW; what < ACTIONS; what++) {
            new_round(&w, leaf_count);
            for (size_t i = 0; i < count; i++) {
                double started;

                aim(&w, sides[i].total(sides[i].tree));
                started = bench_seconds();
                act(&sides[i], &w, what);
                bench_keep(&best[what][i], started);
            }
        }
    for (action what = DRAW; what < ACTIONS; what++) {
        double ours = OPS / best[what][0].seconds;
        smallest here = {0};

        printf("%-8s%-8s", label, action_names[what]);
        for (size_t i = 0; i < count; i++) {
            printf(" %s %.1f ns", sides[i].name, bench_ns(best[what][i], OPS));
            if (i == 0) continue;
            keep_smaller(&here, ours, OPS / best[what][i].seconds, sides[i].name);
        }
        printf("\n");
        (void)snprintf(name, sizeof name, "pal.tree.%s.%s", action_names[what], label);
        bench_ratio(name, here.ours, here.peer_name, here.peer, "/s");
        keep_smaller(&overall[what], here.ours, here.peer, here.peer_name);
    }
    for (size_t i = 0; i < count; i++) sides[i].free(sides[i].tree);
}

/* How far the total of the authors' tree is from the sum of its leaves after `updates`, and how
 * far ours is. */
static void measure_drift(size_t updates)
{
    enum { LEAVES = 1000000 };
    static work w;
    side sides[MOST_SIDES];
    size_t count = make_sides(sides, LEAVES);
    double exact = 0, ours = 0;

    w.rng.state = 43;
    for (size_t done = 0; done < updates; done += OPS) {
        new_round(&w, LEAVES);
        act(&sides[0], &w, UPDATE);
        act(&sides[1], &w, UPDATE);
    }
    for (size_t i = 0; i < LEAVES; i++) {
        exact += (double)*delta_tree_leaf(sides[1].tree, i);
        ours += rp_sumtree_get(sides[0].tree, (uint32_t)i);
    }
    printf("quality pal.tree.drift %.2g (the total of the authors' tree after %.2g updates, "
           "relative error; ours %.2g)\n",
           fabs(sides[1].total(sides[1].tree) - exact) / exact, (double)updates,
           fabs(sides[0].total(sides[0].tree) - ours) / ours);
    for (size_t i = 0; i < count; i++) sides[i].free(sides[i].tree);
}

int main(int argc, char **argv)
{
    static const struct {
        size_t leaf_count;
        const char *label;
    } sizes[] = {{10000, "1e4"}, {100000, "1e5"}, {1000000, "1e6"}, {10000000, "1e7"}};
    const char *library = argc > 1 && argv[argc - 1][0] != '-' ? argv[argc - 1] : NULL;
    bench_options options = bench_parse(argc - (library != NULL), argv,
                                        "our sum tree against the authors' of PAL and cpprb's");
    smallest overall[ACTIONS] = {{0}};

    if (library != NULL) load_cpprb(library);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        compare(sizes[i].leaf_count, sizes[i].label, options.quick ? 160 : 640, overall);
    measure_drift(options.quick ? 2000000 : 20000000);
    for (action what = DRAW; what < ACTIONS; what++) {
        char name[64];

        (void)snprintf(name, sizeof name, "pal.tree.%s", action_names[what]);
        bench_ratio(name, overall[what].ours, overall[what].peer_name, overall[what].peer,
                    "/s");
    }
    return 0;
}
