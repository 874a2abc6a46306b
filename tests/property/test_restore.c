/* SPDX-License-Identifier: Apache-2.0 */
/* Exact restore: for every sampler with every remover and several rate limiters.
 *
 * A table and its twin get the same random operations. The table is cut and goes on, while the
 * cut is read in random order; a third table is made from what was read. It must have the
 * digest that the table had at the cut, and from there on do what the twin does, to the bit.
 *
 * At scale 50 that is a million operations after each restore. */
#include "chunk/trajectory.h"
#include "support/cut_image.h"

enum {
    KINDS = 6,
    LIMITERS = 5,
    BEFORE = 600,        /* operations before the cut, at least */
    MEANWHILE = 150,     /* while it is read */
    AFTER = 20000,       /* after the restore, at scale 1 */
    DIGEST_EVERY = 1000, /* operations */
    CHUNKS = 24,
    TRAJECTORIES = 40,
    MAX_BATCH = 640,
};

typedef struct run {
    rp_test_bed bed;
    rp_chunk *chunks[CHUNKS];
    rp_trajectory *trajectories[TRAJECTORIES];
    rp_rng rng;
    rp_table *tables[2]; /* get the same */
    uint64_t key_range;
    size_t usual; /* size of batches */
    size_t at;
    const char *doing;
    char name[160];
    rp_insert items[MAX_BATCH];
    rp_update updates[MAX_BATCH];
    uint64_t keys[MAX_BATCH];
    rp_sample samples[2][MAX_BATCH];
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
    for (size_t i = 0; i < CHUNKS; i++) {
        r->chunks[i] = rp_test_try_blob(&r->bed.alloc, i, 100 + i / 3, 10 + i);
        assert_non_null(r->chunks[i]);
    }
    for (size_t i = 0; i < TRAJECTORIES; i++) {
        size_t n = 1 + i % 3, first = below(r, CHUNKS);
        rp_chunk_slice slices[3];
        rp_slices columns[3];

        for (size_t j = 0; j < n; j++) {
            slices[j] =
                (rp_chunk_slice){.chunk = r->chunks[(first + 5 * j) % CHUNKS], .length = 1};
            columns[j] = (rp_slices){.slices = &slices[j], .slice_count = 1};
        }
        assert_ok(rp_trajectory_new(&r->bed.alloc, columns, n, &r->trajectories[i], NULL));
    }
}

static void free_data(run *r)
{
    for (size_t i = 0; i < TRAJECTORIES; i++) rp_trajectory_unref(r->trajectories[i]);
    for (size_t i = 0; i < CHUNKS; i++) rp_chunk_unref(r->chunks[i]);
}

/* Any number, so that sums round: a tree that were summed otherwise would show. */
static double any_priority(run *r)
{
    switch (below(r, 6)) {
    case 0: return 0;
    case 1: return 1;
    default: return rp_rng_unit(&r->rng) * 3;
    }
}

static uint64_t any_key(run *r)
{
    return 1 + below(r, r->key_range);
}

static size_t any_count(run *r)
{
    return 1 + below(r, below(r, 100) == 0 ? 600 : r->usual);
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void expect_same_samples(run *r, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const rp_sample *a = &r->samples[0][i], *b = &r->samples[1][i];

        expect(r, a->key == b->key);
        expect(r, same_bits(a->priority, b->priority));
        expect(r, same_bits(a->probability, b->probability));
        expect(r, same_bits(a->weight, b->weight));
        expect(r, a->trajectory == b->trajectory);
        expect(r, a->table_size == b->table_size);
        expect(r, a->inserted_at_ns == b->inserted_at_ns);
        expect(r, a->times_sampled == b->times_sampled);
    }
}

static void insert(run *r, int tables)
{
    size_t count = any_count(r), inserted[2];
    rp_status st[2];

    r->doing = "insert";
    r->bed.wall_ns += 1 + (int64_t)below(r, 1000);
    for (size_t i = 0; i < count; i++)
        r->items[i] = (rp_insert){.key = any_key(r),
                                  .priority = any_priority(r),
                                  .trajectory = r->trajectories[below(r, TRAJECTORIES)],
                                  .times_sampled = below(r, 8) == 0 ? (int32_t)below(r, 4) : 0,
                                  .flags = below(r, 8) == 0 ? RP_INSERT_MAX_PRIORITY : 0};
    for (int i = 0; i < tables; i++)
        st[i] =
            rp_table_insert(r->tables[i], r->items, count, rp_wait_none(), &inserted[i], NULL);
    if (tables == 1) return;
    expect(r, st[0] == st[1] && inserted[0] == inserted[1]);
}

static void sample(run *r, int tables)
{
    rp_sample_options o = {.count = any_count(r), .distinct = below(r, 3) == 0};
    size_t drawn[2] = {0, 0};
    rp_status st[2];

    r->doing = o.distinct ? "sample distinct" : "sample";
    if (below(r, 4) == 0) o.at_least = 1 + below(r, o.count);
    if (below(r, 8) == 0) o.beta = 0.4;
    for (int i = 0; i < tables; i++)
        st[i] =
            rp_table_sample(r->tables[i], &o, r->samples[i], &drawn[i], rp_wait_none(), NULL);
    if (tables == 2) {
        expect(r, st[0] == st[1] && drawn[0] == drawn[1]);
        expect_same_samples(r, drawn[0]);
    }
    for (int i = 0; i < tables; i++) rp_samples_release(r->samples[i], drawn[i]);
}

static void update(run *r, int tables)
{
    size_t count = any_count(r), found[2];

    r->doing = "update";
    for (size_t i = 0; i < count; i++) r->updates[i] = (rp_update){any_key(r), any_priority(r)};
    for (int i = 0; i < tables; i++)
        expect(r, rp_table_update(r->tables[i], r->updates, count, &found[i], NULL) == RP_OK);
    expect(r, tables == 1 || found[0] == found[1]);
}

static void delete_some(run *r, int tables)
{
    size_t count = any_count(r), found[2];

    r->doing = "delete";
    for (size_t i = 0; i < count; i++) r->keys[i] = any_key(r);
    for (int i = 0; i < tables; i++)
        expect(r, rp_table_delete(r->tables[i], r->keys, count, &found[i], NULL) == RP_OK);
    expect(r, tables == 1 || found[0] == found[1]);
}

static void trim(run *r, int tables)
{
    size_t removed[2];

    r->doing = "trim";
    for (int i = 0; i < tables; i++)
        expect(r, rp_table_trim(r->tables[i], &removed[i], NULL) == RP_OK);
    expect(r, tables == 1 || removed[0] == removed[1]);
}

static void alter(run *r, int tables)
{
    rp_table_alteration change = {.which = RP_ALTER_MAX_TIMES_SAMPLED,
                                  .max_times_sampled = (int32_t)below(r, 4)};

    r->doing = "alter";
    if (below(r, 2) == 0) change.which |= RP_ALTER_RECENTER;
    for (int i = 0; i < tables; i++)
        expect(r, rp_table_alter(r->tables[i], &change, NULL) == RP_OK);
}

static void one_operation(run *r, int tables)
{
    uint64_t n = below(r, 4000);

    if (n < 1600)
        insert(r, tables);
    else if (n < 3000)
        sample(r, tables);
    else if (n < 3600)
        update(r, tables);
    else if (n < 3900)
        delete_some(r, tables);
    else if (n < 3990)
        trim(r, tables);
    else if (n < 3997)
        alter(r, tables);
    else if (n == 3999)
        for (int i = 0; i < tables; i++) expect(r, rp_table_reset(r->tables[i], NULL) == RP_OK);
    r->at++;
}

static rp_limiter_options any_limiter(int which)
{
    switch (which) {
    case 0: return rp_limiter_min_size(3);
    case 1: return rp_limiter_ratio(1.5, 2, 8);
    case 2: return rp_limiter_queue(700);
    case 3: return (rp_limiter_options){0.125, 1, -40, 2};
    default: return rp_limiter_min_size(1);
    }
}

static rp_selector_options selector_of(run *r, int kind)
{
    static const double exponents[] = {0, 1, 0.6, -0.4};

    return (rp_selector_options){.kind = (rp_selector_kind)kind,
                                 .exponent = exponents[below(r, COUNT_OF(exponents))]};
}

static rp_table_options options_of(run *r, int limiter, int sampler, int remover)
{
    static const int64_t sizes[] = {40, 700, 300, 2000, 9000};
    rp_table_options o = {
        .name = "table",
        .sampler = selector_of(r, sampler),
        .remover = selector_of(r, remover),
        .limiter = any_limiter(limiter),
        .max_size = sizes[limiter],
        .max_times_sampled = below(r, 2) == 0 ? 0 : 1 + (int32_t)below(r, 3),
        .soft_limit = limiter == 0 && below(r, 2) == 0,
        .seed = 1 + below(r, 1 << 30),
    };

    if (limiter == 4) o.max_times_sampled = 0; /* so that it fills up */
    (void)snprintf(r->name, sizeof r->name, "limiter %d, %s %g, %s %g", limiter,
                   rp_selector_name(o.sampler.kind), o.sampler.exponent,
                   rp_selector_name(o.remover.kind), o.remover.exponent);
    r->key_range = 3 * (uint64_t)o.max_size + 2;
    r->usual = limiter == 4 ? 400 : 8;
    return o;
}

/* Cuts the first table, which goes on while the cut is read. Returns its digest at the cut. */
static uint64_t cut_and_read(run *r, rp_test_image *image, bool kept)
{
    uint64_t digest = rp_table_digest(r->tables[0]);
    rp_cut *cut = NULL;

    r->doing = "cut";
    expect(r, rp_cut_new(&r->bed.alloc, r->tables, 1, &cut, NULL) == RP_OK);
    expect(r, rp_cut_take(cut, NULL, NULL, NULL, NULL) == RP_OK);
    rp_test_image_init(image, cut, 0);
    for (size_t i = 0; i < MEANWHILE; i++) {
        one_operation(r, 1);
        if (below(r, 8) == 0) rp_test_image_read_some(image, cut, 0, &r->rng, below(r, 4));
        if (i % 30 == 0) expect(r, rp_table_check(r->tables[0]));
    }
    rp_test_image_read(image, cut, 0, &r->rng);
    r->doing = "read";
    expect(r, rp_test_image_check(image));
    rp_cut_free(cut, kept);
    expect(r, rp_table_check(r->tables[0]));
    return digest;
}

static void drop(run *r, const char *name)
{
    expect(r,
           rp_store_drop_table(r->bed.store, (rp_string){name, strlen(name)}, NULL) == RP_OK);
}

/* Puts a table made from the image, and the old twin, in the place of the pair. */
static void replace_by_image(run *r, const rp_table_options *o, rp_test_image *image,
                             uint64_t digest)
{
    rp_restore_source source = rp_test_image_source(image);
    rp_table_options fresh = *o;
    rp_error err = {0};
    rp_status st;

    r->doing = "restore";
    drop(r, o->name);
    fresh.seed = 99; /* the state's is what counts, and its options */
    fresh.max_size = 5;
    fresh.max_times_sampled = 0;
    r->tables[0] = rp_test_bed_table(&r->bed, &fresh);
    st = rp_table_restore(r->tables[0], &image->state, &source, &err);
    if (st != RP_OK) fail_msg("%s: %s", r->name, err.text);
    expect(r, rp_table_check(r->tables[0]));
    expect(r, rp_table_digest(r->tables[0]) == digest);
    expect(r, rp_table_digest(r->tables[1]) == digest);
}

static void run_table(run *r, int limiter, int sampler, int remover)
{
    rp_table_options o = options_of(r, limiter, sampler, remover), twin = o;
    size_t least = rp_test_length(BEFORE, BEFORE / 3), before = least + below(r, least);
    size_t after = rp_test_scaled(AFTER, 400) / rp_test_length(1, 3);
    rp_test_image image;
    uint64_t digest;

    twin.name = "twin";
    if (limiter == 4) after /= 10, before /= 4; /* large batches */
    r->tables[0] = rp_test_bed_table(&r->bed, &o);
    r->tables[1] = rp_test_bed_table(&r->bed, &twin);
    r->at = 0;
    while (r->at < before) one_operation(r, 2);
    digest = cut_and_read(r, &image, true);
    replace_by_image(r, &o, &image, digest);
    rp_test_image_deinit(&image);
    for (r->at = 0; r->at < after;) {
        one_operation(r, 2);
        if (r->at % DIGEST_EVERY != 0) continue;
        r->doing = "digest";
        expect(r, rp_table_digest(r->tables[0]) == rp_table_digest(r->tables[1]));
    }
    r->doing = "end";
    expect(r, rp_table_check(r->tables[0]));
    expect(r, rp_table_digest(r->tables[0]) == rp_table_digest(r->tables[1]));
    drop(r, "table");
    drop(r, "twin");
}

static void run_limiter(int limiter)
{
    run *r = malloc(sizeof *r);

    assert_non_null(r);
    for (int sampler = 0; sampler < KINDS; sampler++) {
        rp_test_bed_init(&r->bed, NULL);
        rp_rng_init(&r->rng, 100 * (uint64_t)limiter + (uint64_t)sampler);
        make_data(r);
        for (int remover = 0; remover < KINDS; remover++)
            if (rp_test_chosen((size_t)(limiter + sampler + remover), limiter == 4 ? 6 : 3))
                run_table(r, limiter, sampler, remover);
        free_data(r);
        rp_test_bed_deinit(&r->bed);
    }
    free(r);
}

static void restored_tables_with_min_size_agree_with_the_original(void **state)
{
    (void)state;
    run_limiter(0);
}

static void restored_tables_with_a_ratio_agree_with_the_original(void **state)
{
    (void)state;
    run_limiter(1);
}

static void restored_queues_agree_with_the_original(void **state)
{
    (void)state;
    run_limiter(2);
}

static void restored_tables_with_another_limiter_agree_with_the_original(void **state)
{
    (void)state;
    run_limiter(3);
}

static void large_restored_tables_agree_with_the_original(void **state)
{
    (void)state;
    rp_test_skip_if_emulated();
    run_limiter(4);
}

/* Cut after cut, kept or not: a block that is not said to have changed is that of the last one
 * that was kept, and it is never said of all. */
static void run_increments(run *r, int sampler, int remover)
{
    rp_table_options o = options_of(r, 4, sampler, remover);
    rp_test_image last = {0}, next;
    size_t unchanged = 0;

    r->tables[0] = rp_test_bed_table(&r->bed, &o);
    r->usual = 4;
    for (size_t i = 0; i < 9000; i += 500) {
        rp_insert items[500];
        for (size_t j = 0; j < 500; j++)
            items[j] = (rp_insert){.key = 1 + i + j,
                                   .priority = any_priority(r),
                                   .trajectory = r->trajectories[j % TRAJECTORIES]};
        assert_ok(rp_table_insert(r->tables[0], items, 500, rp_wait_none(), NULL, NULL));
    }
    for (size_t round = 0; round < 12; round++) {
        bool kept = below(r, 2) == 0;

        for (size_t i = below(r, 12); i > 0; i--) update(r, 1);
        for (size_t i = below(r, 5); i > 0; i--) sample(r, 1);
        rp_test_image_of(&next, &r->bed, r->tables[0], kept);
        for (size_t i = 0; i < next.block_count; i++) {
            if (last.slots == NULL) expect(r, next.changed[i]);
            if (next.changed[i]) continue;
            unchanged++;
            expect(r, rp_test_image_same_block(&last, &next, i));
        }
        if (!kept) {
            rp_test_image_deinit(&next);
            continue;
        }
        if (last.slots != NULL) rp_test_image_deinit(&last);
        last = next;
    }
    expect(r, unchanged > 0);
    if (last.slots != NULL) rp_test_image_deinit(&last);
    drop(r, "table");
}

static void unchanged_blocks_equal_those_of_the_kept_cut(void **state)
{
    (void)state;
    run *r = malloc(sizeof *r);

    assert_non_null(r);
    rp_test_bed_init(&r->bed, NULL);
    rp_rng_init(&r->rng, 77);
    make_data(r);
    for (int kind = 0; kind < KINDS; kind++) run_increments(r, kind, (kind + 1) % KINDS);
    free_data(r);
    rp_test_bed_deinit(&r->bed);
    free(r);
}

RP_TESTS(restore)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restored_tables_with_min_size_agree_with_the_original),
        cmocka_unit_test(restored_tables_with_a_ratio_agree_with_the_original),
        cmocka_unit_test(restored_queues_agree_with_the_original),
        cmocka_unit_test(restored_tables_with_another_limiter_agree_with_the_original),
        cmocka_unit_test(large_restored_tables_agree_with_the_original),
        cmocka_unit_test(unchanged_blocks_equal_those_of_the_kept_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
