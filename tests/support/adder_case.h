/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of tests/rl/golden/adders.txt, which tests/rl/make_adder_golden.py describes: the
 * options of an adder, and the random episodes that it gets. */
#ifndef RP_TEST_ADDER_CASE_H
#define RP_TEST_ADDER_CASE_H

#include <stdio.h>
#include <string.h>

#include "reprise/rl/random.h"
#include "support/adder_rig.h"

enum { RP_TEST_EPISODES = 14, RP_TEST_WIDTH = 3, RP_TEST_NUMBERS = 6 };

/* One line of the file. */
typedef struct rp_test_case {
    rp_adder_options options; /* without copies, tables and extras */
    size_t reward_size, discount_size;
    bool given, extras;
    uint64_t seed;
    size_t count;       /* items */
    const char *hashes; /* within the line */
} rp_test_case;

static inline void rp_test_pad_with_ones(void *ctx, const rp_spec *column, void *row)
{
    size_t elements;

    (void)ctx;
    assert_ok(rp_shape_elements(&column->shape, &elements));
    for (size_t i = 0; i < elements; i++) {
        if (column->dtype == RP_FLOAT32) ((float *)row)[i] = 1;
        if (column->dtype == RP_INT32) ((int32_t *)row)[i] = 1;
        if (column->dtype == RP_INT16) ((int16_t *)row)[i] = 1;
    }
}

static inline rp_shape rp_test_parse_shape(const char *text, size_t *elements)
{
    rp_shape shape = {0};

    if (text[0] != '-') {
        char *rest = NULL;
        shape.dims[shape.rank++] = strtol(text, &rest, 10);
        while (*rest == 'x') shape.dims[shape.rank++] = strtol(rest + 1, &rest, 10);
    }
    assert_ok(rp_shape_elements(&shape, elements));
    return shape;
}

static inline void rp_test_parse_word(rp_test_case *c, const char *name, const char *value)
{
    static const char *const kinds[] = {"n_step", "sequence", "episode"};
    static const char *const ends[] = {"zero_pad", "truncate", "write", "continue"};
    rp_adder_options *o = &c->options;
    int32_t number = (int32_t)strtol(value, NULL, 10);

    if (strcmp(name, "n") == 0) o->n = number;
    if (strcmp(name, "length") == 0) o->length = number;
    if (strcmp(name, "period") == 0) o->period = number;
    if (strcmp(name, "given") == 0) c->given = number != 0;
    if (strcmp(name, "extras") == 0) c->extras = number != 0;
    if (strcmp(name, "seed") == 0) c->seed = (uint64_t)number;
    if (strcmp(name, "reward") == 0)
        o->reward_shape = rp_test_parse_shape(value, &c->reward_size);
    if (strcmp(name, "discount") == 0)
        o->discount_shape = rp_test_parse_shape(value, &c->discount_size);
    if (strcmp(name, "kind") == 0)
        for (size_t i = 0; i < COUNT_OF(kinds); i++)
            if (strcmp(value, kinds[i]) == 0) o->kind = (rp_adder_kind)i;
    if (strcmp(name, "end") == 0)
        for (size_t i = 0; i < COUNT_OF(ends); i++)
            if (strcmp(value, ends[i]) == 0) o->end = (rp_adder_end)i;
    if (strcmp(name, "pad") == 0) {
        o->pad = strcmp(value, "none") != 0;
        if (value[0] == '1') o->padding = rp_test_pad_with_ones;
    }
}

static inline rp_test_case rp_test_parse_case(const char *line)
{
    rp_test_case c = {.options = {.discount = 0.97F,
                                  .observation = {NULL, RP_FLOAT32, {1, {RP_TEST_WIDTH}}},
                                  .action = {NULL, RP_INT32, {0}}}};
    char name[32], value[32];
    int used;

    while (sscanf(line, "%31[a-z]=%31s %n", name, value, &used) == 2) {
        rp_test_parse_word(&c, name, value);
        line += used;
    }
    c.count = (size_t)strtoul(line, (char **)(uintptr_t)&c.hashes, 10);
    return c;
}

/* The random episodes of one copy. */
typedef struct rp_test_player {
    const rp_test_case *c;
    rp_pcg64 random;
    int episode, step; /* the episode has `episode` actions */
} rp_test_player;

/* The values of the step of a copy. */
typedef struct rp_test_values {
    float observation[RP_TEST_WIDTH], last[RP_TEST_WIDTH];
    int32_t action;
    int16_t extra;
    double rewards[RP_TEST_NUMBERS];
    float discounts[RP_TEST_NUMBERS];
    bool terminated, truncated;
} rp_test_values;

static inline double rp_test_draw(rp_test_player *p)
{
    return rp_pcg64_uniform(&p->random, -1, 1);
}

static inline void rp_test_observe(rp_test_player *p, float *out)
{
    for (size_t i = 0; i < RP_TEST_WIDTH; i++) out[i] = (float)rp_test_draw(p);
}

/* Starts the generator of a player and makes its first observation. */
static inline void rp_test_begin(rp_test_player *p, const rp_test_case *c, uint64_t seed,
                                 rp_test_values *out)
{
    *p = (rp_test_player){.c = c, .episode = 1};
    rp_pcg64_seed(&p->random, seed);
    rp_test_observe(p, out->observation);
}

/* Makes the next step. After the last episode the first lengths follow again. */
static inline void rp_test_play(rp_test_player *p, rp_test_values *out)
{
    bool ends = ++p->step == p->episode;

    out->action = (int32_t)((rp_test_draw(p) + 1) * 50);
    for (size_t i = 0; i < p->c->reward_size; i++) out->rewards[i] = rp_test_draw(p);
    for (size_t i = 0; p->c->given && i < p->c->discount_size; i++)
        out->discounts[i] = (float)((rp_test_draw(p) + 1) / 2);
    if (p->c->extras) out->extra = (int16_t)((rp_test_draw(p) + 1) * 50);
    out->terminated = ends && p->episode % 2 == 0;
    out->truncated = ends && p->episode % 2 == 1;
    rp_test_observe(p, ends ? out->last : out->observation);
    if (!ends) return;
    rp_test_observe(p, out->observation);
    p->step = 0;
    p->episode = p->episode % RP_TEST_EPISODES + 1;
}

#endif
