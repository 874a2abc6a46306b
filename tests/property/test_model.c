/* SPDX-License-Identifier: Apache-2.0 */
/* Tables against the model (support/model.h): the same random operations, the same outcomes,
 * for every sampler with every remover and every kind of rate limiter.
 *
 * Priorities are 0 and powers of 4, and exponents such that all weights are small powers of 2:
 * then sums are exact, whatever their order, and draws must agree to the item. */
#include <math.h>

#include "chunk/trajectory.h"
#include "support/fixture.h"
#include "support/model.h"
#include "table/spill.h"
#include "table/table.h"

enum {
    OPERATIONS = 10000000, /* at scale 1, over all tests of this file */
    LIMITERS = 5,
    KINDS = 6,
    VARIANTS = 8, /* of each combination */
    MAX_BATCH = 640,
    CHECK_EVERY = 500,
};

typedef struct run {
    rp_test_bed bed;
    rp_model_data data;
    rp_chunk *chunks[RP_MODEL_CHUNKS];
    rp_rng rng;
    rp_table *table;
    rp_model model;
    uint64_t key_range;
    size_t at; /* operations so far */
    const char *doing;
    char name[160];
    rp_insert items[MAX_BATCH];
    rp_model_insert model_items[MAX_BATCH];
    rp_sample samples[MAX_BATCH], model_samples[MAX_BATCH];
} run;

#define expect(r, condition)                                                                   \
    do {                                                                                       \
        if (!(condition))                                                                      \
            fail_msg("%s, operation %zu, %s: not %s", (r)->name, (r)->at, (r)->doing,          \
                     #condition);                                                              \
    } while (0)

static uint64_t below(run *r, uint64_t n)
{
    return rp_rng_below(&r->rng, n);
}

static void make_data(run *r)
{
    rp_model_data *d = &r->data;
    size_t bytes;

    for (uint32_t c = 0; c < RP_MODEL_CHUNKS; c++) {
        d->chunk_episodes[c] = 100 + c / 3;
        r->chunks[c] = rp_test_try_blob(&r->bed.alloc, c, d->chunk_episodes[c], 10 + c);
        (void)rp_chunk_wire(r->chunks[c], &bytes);
        d->chunk_bytes[c] = bytes;
    }
    for (uint32_t t = 0; t < RP_MODEL_TRAJECTORIES; t++) {
        uint32_t n = 1 + t % 3, first = (uint32_t)below(r, RP_MODEL_CHUNKS);
        rp_chunk_slice slices[3];
        rp_slices columns[3]; /* one for each chunk: their rows differ in size */

        d->chunk_counts[t] = n;
        for (uint32_t i = 0; i < n; i++) {
            d->chunks[t][i] = (first + 5 * i) % RP_MODEL_CHUNKS;
            slices[i] = (rp_chunk_slice){.chunk = r->chunks[d->chunks[t][i]], .length = 1};
            columns[i] = (rp_slices){.slices = &slices[i], .slice_count = 1};
        }
        assert_ok(rp_trajectory_new(&r->bed.alloc, columns, n, &d->trajectories[t], NULL));
    }
}

static void free_data(run *r)
{
    for (size_t t = 0; t < RP_MODEL_TRAJECTORIES; t++)
        rp_trajectory_unref(r->data.trajectories[t]);
    for (size_t c = 0; c < RP_MODEL_CHUNKS; c++) rp_chunk_unref(r->chunks[c]);
}

static double any_priority(run *r)
{
    static const double priorities[] = {0, 0.0625, 0.25, 1, 1, 4, 16};

    return priorities[below(r, COUNT_OF(priorities))];
}

static uint64_t any_key(run *r)
{
    return 1 + below(r, r->key_range);
}

static size_t any_count(run *r, size_t usual, size_t rare)
{
    return 1 + below(r, below(r, 200) == 0 ? rare : usual);
}

static bool same_number(double a, double b, double tolerance)
{
    return a == b || fabs(a - b) <= tolerance * fabs(b);
}

static void expect_same_samples(run *r, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const rp_sample *got = &r->samples[i], *want = &r->model_samples[i];

        expect(r, got->key == want->key);
        expect(r, got->priority == want->priority);
        expect(r, same_number(got->probability, want->probability, 1e-12));
        expect(r, same_number(got->weight, want->weight, 1e-9));
        expect(r, got->trajectory == want->trajectory);
        expect(r, got->table_size == want->table_size);
        expect(r, got->inserted_at_ns == want->inserted_at_ns);
        expect(r, got->times_sampled == want->times_sampled);
        expect(r, !got->rate_limited);
    }
}

static void try_insert(run *r)
{
    size_t count = any_count(r, 6, 600), inserted, model_inserted;
    rp_status st, model_st;

    r->doing = "insert";
    r->bed.wall_ns += 1 + (int64_t)below(r, 1000);
    for (size_t i = 0; i < count; i++) {
        rp_model_insert item = {.key = any_key(r),
                                .priority = any_priority(r),
                                .trajectory = (uint32_t)below(r, RP_MODEL_TRAJECTORIES),
                                .times_sampled = below(r, 8) == 0 ? (int32_t)below(r, 4) : 0,
                                .max_priority = below(r, 8) == 0};
        r->model_items[i] = item;
        r->items[i] = (rp_insert){.key = item.key,
                                  .priority = item.max_priority ? NAN : item.priority,
                                  .trajectory = r->data.trajectories[item.trajectory],
                                  .times_sampled = item.times_sampled,
                                  .flags = item.max_priority ? RP_INSERT_MAX_PRIORITY : 0};
    }
    st = rp_table_insert(r->table, r->items, count, rp_wait_none(), &inserted, NULL);
    model_st =
        rp_model_try_insert(&r->model, r->model_items, count, r->bed.wall_ns, &model_inserted);
    expect(r, st == model_st);
    expect(r, inserted == model_inserted);
}

static void try_sample(run *r)
{
    rp_sample_options o = {.count = any_count(r, 6, 600), .distinct = below(r, 3) == 0};
    size_t drawn = 0, model_drawn;
    rp_status st, model_st;

    r->doing = o.distinct ? "sample distinct" : "sample";
    if (below(r, 4) == 0) o.at_least = 1 + below(r, o.count);
    if (below(r, 8) == 0) o.beta = 0.4;
    st = rp_table_sample(r->table, &o, r->samples, &drawn, rp_wait_none(), NULL);
    model_st = rp_model_try_sample(&r->model, &o, r->model_samples, &model_drawn);
    expect(r, st == model_st);
    expect(r, drawn == model_drawn);
    expect_same_samples(r, drawn);
    rp_samples_release(r->samples, drawn);
}

static void update(run *r)
{
    rp_update updates[MAX_BATCH];
    size_t count = any_count(r, 8, 600), found;

    r->doing = "update";
    for (size_t i = 0; i < count; i++) updates[i] = (rp_update){any_key(r), any_priority(r)};
    expect(r, rp_table_update(r->table, updates, count, &found, NULL) == RP_OK);
    expect(r, found == rp_model_update(&r->model, updates, count));
}

static void delete_some(run *r)
{
    uint64_t keys[MAX_BATCH];
    size_t count = any_count(r, 4, 300), found;

    r->doing = "delete";
    for (size_t i = 0; i < count; i++) keys[i] = any_key(r);
    expect(r, rp_table_delete(r->table, keys, count, &found, NULL) == RP_OK);
    expect(r, found == rp_model_delete(&r->model, keys, count));
}

static void peek(run *r)
{
    uint64_t keys[MAX_BATCH];
    size_t count = any_count(r, 8, 300), found;

    r->doing = "peek";
    for (size_t i = 0; i < count; i++) keys[i] = any_key(r);
    expect(r, rp_table_peek(r->table, keys, count, r->samples, &found, NULL) == RP_OK);
    expect(r, found == rp_model_peek(&r->model, keys, count, r->model_samples));
    expect_same_samples(r, count);
    rp_samples_release(r->samples, count);
}

static void trim(run *r)
{
    size_t removed;

    r->doing = "trim";
    expect(r, rp_table_trim(r->table, &removed, NULL) == RP_OK);
    expect(r, removed == rp_model_trim(&r->model));
}

static void reset(run *r)
{
    r->doing = "reset";
    expect(r, rp_table_reset(r->table, NULL) == RP_OK);
    rp_model_reset(&r->model);
}

static void ask(run *r)
{
    int64_t n = (int64_t)below(r, 12);

    r->doing = "ask";
    expect(r,
           rp_table_can_insert(r->table, n) == (n >= 1 && rp_model_can_insert(&r->model, n)));
    expect(r,
           rp_table_can_sample(r->table, n) == (n >= 1 && rp_model_can_sample(&r->model, n)));
}

static void expect_same_info(run *r)
{
    rp_table_info got, want;

    rp_table_get_info(r->table, &got);
    rp_model_info(&r->model, &want);
    expect(r, got.size == want.size);
    expect(r, got.bytes == want.bytes);
    expect(r, got.inserts == want.inserts);
    expect(r, got.samples == want.samples);
    expect(r, got.deletes == want.deletes);
    expect(r, got.updates == want.updates);
    expect(r, got.evictions == want.evictions);
    expect(r, got.episodes == want.episodes);
    expect(r, got.deleted_episodes == want.deleted_episodes);
    expect(r, got.unique_samples == want.unique_samples);
    expect(r, got.max_priority == want.max_priority);
    expect(r, got.waiting_inserts == 0 && got.waiting_samples == 0);
}

static void one_operation(run *r)
{
    uint64_t n = below(r, 1000);

    if (n < 380)
        try_insert(r);
    else if (n < 760)
        try_sample(r);
    else if (n < 860)
        update(r);
    else if (n < 910)
        delete_some(r);
    else if (n < 950)
        peek(r);
    else if (n < 960)
        trim(r);
    else if (n < 961)
        reset(r);
    else
        ask(r);
    r->at++;
}

static rp_limiter_options any_limiter(run *r, int which)
{
    static const rp_limiter_options customs[] = {
        {0.5, 2, -3, 6}, {3, 1, -8, 8}, {1.5, 4, 0, 20}, {0.125, 1, -40, 2}, {2, 3, 1, 64},
    };

    switch (which) {
    case 0: return rp_limiter_min_size(1 + (int64_t)below(r, 5));
    case 1:
        return rp_limiter_ratio(0.5 * (double)(1 + below(r, 6)), 1 + (int64_t)below(r, 4), 8);
    case 2: return rp_limiter_queue(1 + (int64_t)below(r, 12));
    case 3: return rp_limiter_stack(1 + (int64_t)below(r, 12));
    default: return customs[below(r, COUNT_OF(customs))];
    }
}

static rp_selector_options selector_of(run *r, int kind)
{
    static const double exponents[] = {0, 1, 2, 0.5, -1, -0.5};

    return (rp_selector_options){.kind = (rp_selector_kind)kind,
                                 .exponent = exponents[below(r, COUNT_OF(exponents))]};
}

static void run_table(run *r, int limiter, int sampler, int remover, int variant, size_t count)
{
    rp_table_options o = {
        .name = r->name,
        .sampler = selector_of(r, sampler),
        .remover = selector_of(r, remover),
        .limiter = any_limiter(r, limiter),
        .max_size = 1 + (int64_t)below(r, variant % 4 == 3 ? 48 : 8),
        .max_times_sampled = variant % 2 == 0 ? 0 : 1 + (int32_t)below(r, 3),
        .soft_limit = limiter == 0 && variant >= 6,
        .seed = 1 + below(r, 1 << 30),
    };

    (void)snprintf(r->name, sizeof r->name, "limiter %d, %s %g, %s %g, variant %d", limiter,
                   rp_selector_name(o.sampler.kind), o.sampler.exponent,
                   rp_selector_name(o.remover.kind), o.remover.exponent, variant);
    r->key_range = 3 * (uint64_t)o.max_size + 2;
    if (variant == 5) r->key_range = 1000; /* large batches of new keys */
    if (o.soft_limit) r->key_range = 400;
    r->table = rp_test_bed_table(&r->bed, &o);
    rp_model_init(&r->model, &o, &r->data);
    r->at = 0;
    while (r->at < count) {
        one_operation(r);
        expect_same_info(r);
        if (r->at % CHECK_EVERY == 0) expect(r, rp_table_check(r->table));
    }
    expect(r, rp_table_check(r->table));
}

/* A store for each sampler, so that there are some tables in it. */
static void run_limiter(int limiter)
{
    size_t most = OPERATIONS / LIMITERS / KINDS / KINDS / VARIANTS;
    size_t count = rp_test_scaled(most / rp_test_length(1, 3), 20);
    run *r = malloc(sizeof *r);

    assert_non_null(r);
    for (int sampler = 0; sampler < KINDS; sampler++) {
        rp_test_bed_init(&r->bed, NULL);
        rp_rng_init(&r->rng, 1000 * (uint64_t)limiter + (uint64_t)sampler);
        make_data(r);
        for (int remover = 0; remover < KINDS; remover++)
            for (int variant = 0; variant < VARIANTS; variant++)
                if (rp_test_chosen((size_t)(limiter + sampler + remover + variant), 3))
                    run_table(r, limiter, sampler, remover, variant, count + 1);
        free_data(r);
        rp_test_bed_deinit(&r->bed);
    }
    free(r);
}

static void tables_with_min_size_agree_with_the_model(void **state)
{
    (void)state;
    run_limiter(0);
}

static void tables_with_a_ratio_agree_with_the_model(void **state)
{
    (void)state;
    run_limiter(1);
}

static void queues_agree_with_the_model(void **state)
{
    (void)state;
    run_limiter(2);
}

static void stacks_agree_with_the_model(void **state)
{
    (void)state;
    run_limiter(3);
}

static void tables_with_other_limiters_agree_with_the_model(void **state)
{
    (void)state;
    run_limiter(4);
}

RP_TESTS(model)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_with_min_size_agree_with_the_model),
        cmocka_unit_test(tables_with_a_ratio_agree_with_the_model),
        cmocka_unit_test(queues_agree_with_the_model),
        cmocka_unit_test(stacks_agree_with_the_model),
        cmocka_unit_test(tables_with_other_limiters_agree_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
