/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid states and blocks. Each is refused, and the table stays empty; none causes a crash, a
 * leak or a table with broken invariants. */
#include <math.h>

#include "support/cut_image.h"

enum { BLOCK = RP_SLOTS_PER_BLOCK, ITEMS = 2 * BLOCK + 40, FREE = 30, MUTATIONS = 60000 };

typedef struct world {
    rp_test_bed bed;
    rp_table *table;
    rp_table_options options;
    rp_test_image image, copy; /* the copy is what gets broken: it shares trajectories */
} world;

static void copy_image(world *w)
{
    size_t slots = w->image.block_count * BLOCK;

    w->copy.state = w->image.state;
    w->copy.block_count = w->image.block_count;
    memcpy(w->copy.slots, w->image.slots, slots * sizeof *w->copy.slots);
    for (int i = 0; i < 2; i++) {
        w->copy.set_room[i] = w->image.set_room[i];
        memcpy(w->copy.sets[i], w->image.sets[i],
               w->image.set_room[i] * sizeof *w->copy.sets[i]);
    }
}

/* A table of two blocks and a half, with some free slots in it, and its image. */
static void world_init(world *w, rp_selector_kind sampler, rp_selector_kind remover)
{
    uint64_t key;

    *w = (world){.table = NULL};
    rp_test_bed_init(&w->bed, NULL);
    w->options = rp_test_options("t", sampler, remover, 100000);
    w->options.limiter = rp_limiter_ratio(2, 2, 1e6);
    w->table = rp_test_bed_table(&w->bed, &w->options);
    for (uint64_t i = 0; i < ITEMS; i++)
        rp_test_put(w->table, i, (double)(i % 5), w->bed.plain);
    for (int i = 0; i < FREE; i++) {
        key = (uint64_t)i * 7;
        assert_ok(rp_table_delete(w->table, &key, 1, NULL, NULL));
    }
    (void)rp_test_draw(w->table);
    rp_test_image_of(&w->image, &w->bed, w->table, true);
    w->copy.slots = calloc(w->image.block_count * BLOCK, sizeof *w->copy.slots);
    for (int i = 0; i < 2; i++)
        w->copy.sets[i] = calloc(w->image.set_room[i] + 1, sizeof *w->copy.sets[i]);
    assert_true(w->copy.slots != NULL && w->copy.sets[0] != NULL && w->copy.sets[1] != NULL);
    copy_image(w);
}

static void world_deinit(world *w)
{
    free(w->copy.slots);
    free(w->copy.sets[0]);
    free(w->copy.sets[1]);
    rp_test_image_deinit(&w->image);
    rp_test_bed_deinit(&w->bed);
}

/* Restores a new table from the copy, and drops it. */
static rp_status try_restore(world *w)
{
    rp_table_options o = w->options;
    rp_restore_source source = rp_test_image_source(&w->copy);
    rp_table *t;
    rp_status st;

    o.name = "r";
    t = rp_test_bed_table(&w->bed, &o);
    st = rp_table_restore(t, &w->copy.state, &source, &w->bed.err);
    assert_true(rp_table_check(t));
    if (st != RP_OK) {
        rp_table_info info = rp_test_info_of(t);

        assert_int_equal(st, w->bed.err.code);
        assert_true(info.size == 0 && info.bytes == 0 && info.inserts == 0 &&
                    info.episodes == 0 && info.deleted_episodes == 0);
        rp_test_put(t, 1, 1, w->bed.plain); /* and can be used */
        assert_true(rp_table_check(t));
    } else {
        rp_sample samples[40];
        rp_sample_options draw = {.count = 40, .distinct = true, .at_least = 1};
        size_t drawn = 0;

        if (rp_table_sample(t, &draw, samples, &drawn, rp_wait_none(), NULL) == RP_OK)
            rp_samples_release(samples, drawn);
        assert_ok(rp_table_trim(t, NULL, NULL));
        assert_true(rp_table_check(t));
    }
    assert_ok(rp_store_drop_table(w->bed.store, (rp_string){"r", 1}, NULL));
    return st;
}

#define assert_refused(w, part) assert_fails(try_restore(w), RP_CORRUPT, &(w)->bed.err, (part))

/* Breaks the copy, expects it to be refused, and mends it. */
#define refuse(w, breaking, part)                                                              \
    do {                                                                                       \
        breaking;                                                                              \
        assert_refused((w), (part));                                                           \
        copy_image(w);                                                                         \
    } while (0)

static void whole_image_is_restored(void **state)
{
    (void)state;
    for (int kind = 0; kind < 36; kind++) {
        world w;
        world_init(&w, (rp_selector_kind)(kind % 6), (rp_selector_kind)(kind / 6));
        assert_ok_err(try_restore(&w), &w.bed.err);
        world_deinit(&w);
    }
}

static void numbers_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_PRIORITIZED, RP_UNIFORM);
    rp_table_state *s = &w.copy.state;

    refuse(&w, s->live++, "inserts - deletes");
    refuse(&w, (s->live--, s->limiter.deletes++), "a set has");
    refuse(&w, (s->live--, s->limiter.deletes++, s->set_counts[1]--), "live slots");
    refuse(&w, s->limiter.inserts = -1, "below 0");
    refuse(&w, s->limiter.samples = INT64_MIN, "below 0");
    refuse(&w, (s->limiter.inserts = INT64_MAX, s->limiter.deletes = -5), "below 0");
    refuse(&w, (s->limiter.inserts = INT64_MAX, s->limiter.deletes = INT64_MAX - ITEMS),
           "over 2^53");
    refuse(&w, s->limiter.samples = INT64_MAX, "over 2^53");
    refuse(&w, s->limiter.carried = NAN, "carries");
    refuse(&w, s->limiter.carried = 1e300, "carries");
    refuse(&w, s->limiter.carried = 0.5, "carries");
    refuse(&w, s->limiter.max_diff += 1, "bounds");
    refuse(&w, s->limiter.options.min_size++, "limiter's options");
    refuse(&w, s->options.limiter.samples_per_insert = NAN, "samples_per_insert");
    refuse(&w,
           (s->options.limiter = (rp_limiter_options){1e30, 1, -1e30, 1e30},
            s->limiter.options = s->options.limiter, s->limiter.min_diff = -1e30,
            s->limiter.max_diff = 1e30),
           "samples_per_insert must be in");
    refuse(&w, s->options.max_size = 0, "max_size");
    refuse(&w, s->options.max_size = 20, "more items than max_size");
    refuse(&w, s->options.max_times_sampled = -1, "max_times_sampled");
    refuse(&w, memset(&s->rng, 0, sizeof s->rng), "random");
    refuse(&w, s->max_priority = NAN, "largest");
    refuse(&w, s->max_priority = INFINITY, "largest");
    refuse(&w, s->max_priority = 0.5, "largest");
    refuse(&w, s->max_priority = 2, "over the largest");
    refuse(&w, s->updates = -1, "counter");
    refuse(&w, s->updates = INT64_MAX, "counter");
    refuse(&w, s->deleted_episodes = -1, "counter");
    refuse(&w, s->evictions = s->limiter.deletes + 1, "evictions");
    refuse(&w, s->unique_samples = s->limiter.samples + 1, "samples");
    refuse(&w, s->paused = 4, "paused");
    refuse(&w, s->next_sequence = UINT64_C(1) << 60, "absurd");
    refuse(&w, s->next_turn = UINT64_MAX, "absurd");
    refuse(&w, s->next_sequence = 5, "next sequence");
    refuse(&w, s->next_sequence = ITEMS - 1, "sequence is to come");
    refuse(&w, s->next_turn = ITEMS - 1, "turn is to come");
    refuse(&w, s->first_free = RP_SLOT_NONE, "free list");
    refuse(&w, s->first_free = 1, "live");
    refuse(&w, s->first_free = ITEMS, "beyond");
    refuse(&w, s->set_counts[0]--, "weight 0");
    refuse(&w, s->set_counts[0] = UINT64_MAX, "a set has");
    refuse(&w, s->set_counts[1] = UINT64_MAX, "a set has");
    assert_ok(try_restore(&w));
    world_deinit(&w);
}

static void impossible_capacities_are_refused(void **state)
{
    (void)state;
    world w;
    size_t peak;
    world_init(&w, RP_PRIORITIZED, RP_UNIFORM);
    rp_table_state *s = &w.copy.state;

    refuse(&w, s->slot_capacity++, "number of slots");
    refuse(&w, s->slot_capacity = 2 * BLOCK, "number of slots");
    refuse(&w, s->slot_capacity = 20 * BLOCK, "number of slots");
    refuse(&w, s->slot_capacity = UINT64_MAX - BLOCK + 1, "number of slots");
    refuse(&w, s->slots_used = UINT64_MAX, "number of slots");
    refuse(&w, s->slots_used = UINT64_C(1) << 32, "number of slots");
    /* What is announced costs nothing until it comes. */
    s->slots_used = UINT64_C(1) << 31;
    s->slot_capacity = UINT64_C(1) << 31;
    peak = atomic_load(&w.bed.oom.live_bytes) + (16 << 20);
    atomic_store(&w.bed.oom.peak_bytes, 0);
    assert_int_equal(try_restore(&w), RP_UNAVAILABLE);
    assert_true(atomic_load(&w.bed.oom.peak_bytes) < peak);
    world_deinit(&w);
}

static void impossible_slots_are_refused(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_MIN_HEAP, RP_FIFO);
    rp_slot *s = w.copy.slots; /* 0, 7, 14, ... are free */

    refuse(&w, s[5].key = s[400].key, "key is in another slot");
    refuse(&w, s[5].state = RP_SLOT_RETIRED, "neither live nor free");
    refuse(&w, s[5].state = 77, "neither live nor free");
    refuse(&w, s[5].state = RP_SLOT_FREE, "has a trajectory");
    refuse(&w, s[7].state = RP_SLOT_LIVE, "no trajectory");
    refuse(&w, s[7].trajectory = w.bed.plain, "has a trajectory");
    refuse(&w, s[5].priority = NAN, "number");
    refuse(&w, s[5].times_sampled = -1, "times_sampled");
    refuse(&w, s[5].sequence = s[6].sequence, "sequence is another's");
    refuse(&w, s[5].turn = s[6].turn, "turn is another's");
    refuse(&w, s[5].sequence = RP_MAX_SEQUENCE, "to come");
    refuse(&w, s[5].turn = UINT64_MAX, "to come");
    refuse(&w, s[7].next = 7, "free list");
    refuse(&w, s[7].next = RP_SLOT_NONE, "free list");
    refuse(&w, s[7].next = 5, "live");
    refuse(&w, s[7].next = ITEMS + 1, "beyond");
    refuse(&w, s[0].next = w.copy.state.first_free, "free list");
    refuse(&w, (s[ITEMS] = s[5], s[ITEMS].key = 99999), "beyond those in use");
    refuse(&w, s[ITEMS].trajectory = w.bed.plain, "beyond those in use");
    assert_ok(try_restore(&w));
    world_deinit(&w);
}

static void priorities_that_the_selector_cannot_have_are_refused(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_PRIORITIZED, RP_FIFO);

    refuse(&w, w.copy.slots[5].priority = -1, "finite");
    refuse(&w, w.copy.slots[5].priority = INFINITY, "finite");
    refuse(&w, w.copy.slots[6].priority = 0, "weight 0"); /* then there is one more */
    world_deinit(&w);
}

static void sets_that_do_not_match_the_slots_are_refused(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_PRIORITIZED, RP_UNIFORM);

    refuse(&w, w.copy.sets[1][3] = w.copy.sets[1][4], "twice");
    refuse(&w, w.copy.sets[1][3] = 7, "not live");
    refuse(&w, w.copy.sets[1][3] = UINT32_MAX, "not live");
    refuse(&w, w.copy.sets[0][3] = w.copy.sets[0][4], "twice");
    refuse(&w, w.copy.sets[0][3] = 1, "weight 0");
    world_deinit(&w);
}

static void signature_is_checked(void **state)
{
    (void)state;
    world w;
    rp_spec spec = {"x", RP_FLOAT32, {.rank = 1, .dims = {3}}};
    world_init(&w, RP_UNIFORM, RP_FIFO);
    assert_ok(rp_signature_flat(&w.bed.alloc, &spec, 1, &w.options.signature, NULL));
    rp_table *t;
    rp_table_options o = w.options;
    rp_restore_source source = rp_test_image_source(&w.copy);

    o.name = "r";
    t = rp_test_bed_table(&w.bed, &o);
    assert_fails(rp_table_restore(t, &w.copy.state, &source, &w.bed.err), RP_CORRUPT,
                 &w.bed.err, "slot 1:");

    rp_signature_unref(w.options.signature);
    world_deinit(&w);
}

static void source_that_fails_is_passed_on(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_UNIFORM, RP_PRIORITIZED);

    w.copy.refuse_blocks = true;
    assert_int_equal(try_restore(&w), RP_UNAVAILABLE);
    w.copy.refuse_blocks = false;
    w.copy.refuse_sets = true;
    assert_int_equal(try_restore(&w), RP_UNAVAILABLE);
    w.copy.refuse_sets = false;
    assert_ok(try_restore(&w));
    world_deinit(&w);
}

static void only_a_new_table_of_the_kind_is_restored(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_UNIFORM, RP_FIFO);
    rp_restore_source source = rp_test_image_source(&w.copy);
    rp_table_options o = w.options;

    assert_fails(rp_table_restore(w.table, &w.copy.state, &source, &w.bed.err), RP_PRECONDITION,
                 &w.bed.err, "not new");
    w.options.sampler.kind = RP_PRIORITIZED;
    assert_int_equal(try_restore(&w), RP_PRECONDITION);
    w.options = o;
    w.options.remover.kind = RP_LIFO;
    assert_int_equal(try_restore(&w), RP_PRECONDITION);
    world_deinit(&w);
}

/* An earlier version counted fewer bytes for them, or somebody has lowered the limits since. */
static void items_over_the_byte_limits_are_restored(void **state)
{
    (void)state;
    world w;
    rp_test_bed small;
    rp_store_options limited = {.max_bytes = 10, .policy = RP_BUDGET_REJECT};
    rp_table *t;
    world_init(&w, RP_UNIFORM, RP_FIFO);
    rp_restore_source source = rp_test_image_source(&w.copy);
    rp_test_bed_init(&small, &limited);
    t = rp_test_bed_table(&small, &w.options);

    assert_fails(rp_table_restore(t, &w.copy.state, &source, &w.bed.err), RP_INVALID,
                 &w.bed.err, "another store");
    for (size_t i = 0; i < ITEMS; i++)
        if (w.copy.slots[i].trajectory != NULL) w.copy.slots[i].trajectory = small.plain;
    w.copy.state.options.max_bytes = 3;
    assert_ok_err(rp_table_restore(t, &w.copy.state, &source, &w.bed.err), &w.bed.err);

    assert_int_equal(rp_test_info_of(t).size, w.copy.state.live);
    assert_true(rp_test_info_of(t).bytes > 10);
    assert_true(rp_table_check(t));
    assert_fails(rp_test_try_put(t, UINT64_MAX, 1, small.plain, &small.err), RP_NO_RESOURCE,
                 &small.err, "max_bytes 3 of the whole table");
    rp_test_bed_deinit(&small);
    world_deinit(&w);
}

/* Changes some bytes of the state's numbers, of slots (but for their trajectories) or of sets.
 */
static void mutate(world *w, rp_rng *rng)
{
    static const uint64_t favourites[] = {0, 1, 2, 255, 256, UINT32_MAX, UINT64_MAX};
    size_t what = rp_rng_below(rng, 10);
    rp_slot *slot = &w->copy.slots[rp_rng_below(rng, w->copy.block_count * RP_SLOTS_PER_BLOCK)];
    uint64_t value =
        rp_rng_below(rng, 3) == 0 ? rp_rng_next(rng) : favourites[rp_rng_below(rng, 7)];

    if (rp_rng_below(rng, 3) == 0) value = rp_rng_below(rng, ITEMS + 10);
    switch (what) {
    case 0: slot->key = value; break;
    case 1: memcpy(&slot->priority, &value, sizeof value); break;
    case 2: slot->turn = value; break;
    case 3: slot->sequence = value & RP_MAX_SEQUENCE; break;
    case 4: slot->state = value & 255; break;
    case 5: slot->next = (uint32_t)value; break;
    case 6: slot->times_sampled = (int32_t)value; break;
    case 7:
        for (int i = 0; i < 2; i++)
            if (w->copy.set_room[i] > 0)
                w->copy.sets[i][rp_rng_below(rng, w->copy.set_room[i])] = (uint32_t)value;
        break;
    default: {
        uint8_t *bytes = (uint8_t *)&w->copy.state;
        size_t at = rp_rng_below(rng, sizeof w->copy.state / 8) * 8;

        if (what == 8)
            memcpy(bytes + at, &value, sizeof value);
        else
            bytes[rp_rng_below(rng, sizeof w->copy.state)] ^=
                (uint8_t)(1 << rp_rng_below(rng, 8));
    }
    }
    /* A bool and an enum must be one: a decoder sees to that. */
    w->copy.state.options.soft_limit = w->image.state.options.soft_limit;
    w->copy.state.times_altered = w->image.state.times_altered;
    w->copy.state.options.sampler.kind = w->image.state.options.sampler.kind;
    w->copy.state.options.remover.kind = w->image.state.options.remover.kind;
}

static void random_changes_never_make_a_broken_table(void **state)
{
    (void)state;
    size_t count = rp_test_scaled(MUTATIONS, 600) / rp_test_length(rp_test_step(1, 3), 6),
           refused = 0;
    rp_rng rng;

    rp_rng_init(&rng, 9);
    for (int kind = 0; kind < 6; kind++) {
        world w;
        world_init(&w, (rp_selector_kind)kind, (rp_selector_kind)((kind + 2) % 6));
        for (size_t i = 0; i < count / 6; i++) {
            for (size_t n = 1 + rp_rng_below(&rng, 3); n > 0; n--) mutate(&w, &rng);
            refused += try_restore(&w) != RP_OK;
            copy_image(&w);
        }
        world_deinit(&w);
    }
    assert_true(refused > count / 4);
}

RP_TESTS(restore)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_image_is_restored),
        cmocka_unit_test(numbers_that_contradict_each_other_are_refused),
        cmocka_unit_test(impossible_capacities_are_refused),
        cmocka_unit_test(impossible_slots_are_refused),
        cmocka_unit_test(priorities_that_the_selector_cannot_have_are_refused),
        cmocka_unit_test(sets_that_do_not_match_the_slots_are_refused),
        cmocka_unit_test(signature_is_checked),
        cmocka_unit_test(source_that_fails_is_passed_on),
        cmocka_unit_test(only_a_new_table_of_the_kind_is_restored),
        cmocka_unit_test(items_over_the_byte_limits_are_restored),
        cmocka_unit_test(random_changes_never_make_a_broken_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
