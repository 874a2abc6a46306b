/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "support/cut_image.h"

enum { BLOCK = RP_SLOTS_PER_BLOCK, ITEMS = 5 * BLOCK };

typedef struct world {
    rp_test_bed bed;
    rp_table *table;
    rp_cut *cut;
    rp_rng rng;
    rp_test_image image;
} world;

/* A table with `count` items: keys from 0, in slots from 0. */
static void world_init(world *w, rp_selector_kind sampler, rp_selector_kind remover,
                       size_t count)
{
    rp_table_options o = rp_test_options("t", sampler, remover, 100000);

    *w = (world){.cut = NULL};
    rp_rng_init(&w->rng, 3);
    rp_test_bed_init(&w->bed, NULL);
    o.seed = 11;
    w->table = rp_test_bed_table(&w->bed, &o);
    for (size_t i = 0; i < count; i++)
        rp_test_put(w->table, i, (double)(i % 7) / 4, w->bed.plain);
}

static void open_cut(world *w)
{
    assert_ok_err(rp_cut_new(&w->bed.alloc, &w->table, 1, &w->cut, &w->bed.err), &w->bed.err);
    assert_ok_err(rp_cut_take(w->cut, NULL, NULL, NULL, &w->bed.err), &w->bed.err);
}

/* A table made from what the open cut says. */
static rp_table *rebuild(world *w, const char *name)
{
    rp_table_options o = rp_cut_state(w->cut, 0)->options;
    rp_restore_source source = rp_test_image_source(&w->image);
    rp_table *t;

    rp_test_image_init(&w->image, w->cut, 0);
    rp_test_image_read(&w->image, w->cut, 0, &w->rng);
    assert_true(rp_test_image_check(&w->image));
    o.name = name;
    t = rp_test_bed_table(&w->bed, &o);
    assert_ok_err(rp_table_restore(t, &w->image.state, &source, &w->bed.err), &w->bed.err);
    assert_true(rp_table_check(t));
    rp_test_image_deinit(&w->image);
    return t;
}

static void end_cut(world *w, bool kept)
{
    rp_cut_free(w->cut, kept);
    w->cut = NULL;
}

static void drop(world *w, const char *name)
{
    assert_ok(rp_store_drop_table(w->bed.store, (rp_string){name, strlen(name)}, NULL));
}

static void cut_of_an_empty_table_is_empty(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_UNIFORM, RP_FIFO, 0);

    open_cut(&w);
    assert_int_equal(rp_cut_block_count(w.cut, 0), 0);
    assert_int_equal(rp_cut_state(w.cut, 0)->live, 0);
    rp_test_put(w.table, 1, 1, w.bed.plain);
    assert_int_equal(rp_cut_block_count(w.cut, 0), 0);
    assert_int_equal(rp_test_info_of(rebuild(&w, "r")).size, 0);

    end_cut(&w, true);
    rp_test_bed_deinit(&w.bed);
}

typedef void change(world *w);

/* A change after the cut is not seen in it. */
static void expect_unseen(rp_selector_kind kind, change *act)
{
    world w;
    uint64_t digest;
    world_init(&w, kind, kind, ITEMS + 17);
    digest = rp_table_digest(w.table);
    (void)rp_table_ref(w.table); /* it may be dropped */

    open_cut(&w);
    act(&w);
    assert_true(rp_table_check(w.table));

    assert_true(rp_table_digest(rebuild(&w, "r")) == digest);
    end_cut(&w, true);
    assert_true(rp_table_check(w.table));
    rp_table_unref(w.table);
    rp_test_bed_deinit(&w.bed);
}

static void expect_unseen_for_all_kinds(change *act)
{
    for (int kind = 0; kind < 6; kind++) expect_unseen((rp_selector_kind)kind, act);
}

static void act_update(world *w)
{
    for (uint64_t i = 0; i < ITEMS; i += 3)
        assert_ok(rp_table_update(w->table, &(rp_update){i, (double)(i % 2)}, 1, NULL, NULL));
}

static void act_sample(world *w)
{
    rp_sample samples[600];

    for (int i = 0; i < 2; i++)
        (void)rp_test_draw_many(
            w->table, &(rp_sample_options){.count = 600, .distinct = i == 0}, samples);
}

static void act_delete(world *w)
{
    for (uint64_t i = 0; i < ITEMS; i += 2)
        assert_ok(rp_table_delete(w->table, &i, 1, NULL, NULL));
}

static void act_grow(world *w)
{
    for (uint64_t i = 0; i < rp_test_length(6000, 3000); i++)
        rp_test_put(w->table, 10000 + i, 0, w->bed.plain);
}

/* Fewer than at the cut, when the arrays of sets grow. */
static void act_shrink_then_grow(world *w)
{
    uint64_t keys[700];
    size_t n = 0;

    for (uint64_t i = 300; i < 1000; i++) keys[n++] = i;
    assert_ok(rp_table_delete(w->table, keys, n, NULL, NULL));
    assert_true(rp_table_check(w->table));
    act_grow(w);
}

static void act_reset(world *w)
{
    assert_ok(rp_table_reset(w->table, NULL));
    for (uint64_t i = 0; i < 2 * BLOCK; i++) rp_test_put(w->table, i, 1, w->bed.plain);
    assert_ok(rp_table_reset(w->table, NULL));
    rp_test_put(w->table, 5, 1, w->bed.plain);
}

static void act_alter(world *w)
{
    rp_table_alteration to = {.which = RP_ALTER_MAX_SIZE | RP_ALTER_LIMITER,
                              .max_size = 40,
                              .limiter = rp_limiter_min_size(9)};

    assert_ok(rp_table_alter(w->table, &to, NULL));
    assert_ok(rp_table_pause(w->table, RP_SIDE_SAMPLES, NULL));
}

static void act_close(world *w)
{
    rp_table_close(w->table);
}

static void act_drop(world *w)
{
    drop(w, "t");
    rp_test_put(
        rp_test_bed_table(
            &w->bed,
            &(rp_table_options){.name = "t", .max_size = 9, .limiter = rp_limiter_min_size(1)}),
        1, 1, w->bed.plain);
}

static void priorities_set_later_are_not_seen(void **state)
{
    (void)state;
    expect_unseen_for_all_kinds(act_update);
}

static void samples_drawn_later_are_not_seen(void **state)
{
    (void)state;
    expect_unseen_for_all_kinds(act_sample);
}

static void deletes_are_not_seen(void **state)
{
    (void)state;
    expect_unseen_for_all_kinds(act_delete);
}

static void growth_is_not_seen(void **state)
{
    (void)state;
    expect_unseen_for_all_kinds(act_grow);
    expect_unseen_for_all_kinds(act_shrink_then_grow);
}

static void reset_is_not_seen(void **state)
{
    (void)state;
    expect_unseen_for_all_kinds(act_reset);
}

static void altered_options_are_not_seen(void **state)
{
    (void)state;
    expect_unseen_for_all_kinds(act_alter);
}

static void closed_and_dropped_tables_can_be_read(void **state)
{
    (void)state;
    expect_unseen_for_all_kinds(act_close);
    expect_unseen_for_all_kinds(act_drop);
}

static void expect_changed(world *w, const char *blocks)
{
    open_cut(w);
    assert_int_equal(rp_cut_block_count(w->cut, 0), strlen(blocks));
    for (size_t i = 0; blocks[i] != '\0'; i++)
        assert_int_equal(rp_cut_block_changed(w->cut, 0, i), blocks[i] == 'x');
}

static void exactly_the_changed_blocks_are_marked(void **state)
{
    (void)state;
    world w;
    rp_sample sample;
    world_init(&w, RP_FIFO, RP_LIFO, ITEMS);

    expect_changed(&w, "xxxxx"); /* all, in the first */
    end_cut(&w, true);
    expect_changed(&w, ".....");
    end_cut(&w, true);
    assert_ok(rp_table_update(w.table, &(rp_update){3 * BLOCK + 5, 2}, 1, NULL, NULL));
    expect_changed(&w, "...x.");
    end_cut(&w, true);
    (void)rp_test_draw_many(w.table, &(rp_sample_options){.count = 1}, &sample);
    expect_changed(&w, "x....");
    end_cut(&w, true);
    assert_ok(rp_table_delete(w.table, &(uint64_t){BLOCK}, 1, NULL, NULL));
    assert_ok(rp_table_delete(w.table, &(uint64_t){4 * BLOCK}, 1, NULL, NULL));
    expect_changed(&w, ".x..x");
    end_cut(&w, true);
    rp_test_put(w.table, 7777, 1, w.bed.plain); /* into the slot freed last */
    expect_changed(&w, "....x");
    end_cut(&w, true);
    rp_test_put(w.table, 7778, 1, w.bed.plain);
    rp_test_put(w.table, 7779, 1, w.bed.plain);
    expect_changed(&w, ".x...x");
    end_cut(&w, true);
    rp_test_bed_deinit(&w.bed);
}

static void changes_during_a_cut_count_for_the_next(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_FIFO, RP_LIFO, ITEMS);
    expect_changed(&w, "xxxxx");

    assert_int_equal(rp_cut_saved_blocks(w.cut), 0);
    assert_ok(rp_table_update(w.table, &(rp_update){2 * BLOCK, 2}, 1, NULL, NULL));
    assert_ok(rp_table_update(w.table, &(rp_update){2 * BLOCK + 1, 2}, 1, NULL, NULL));
    assert_int_equal(rp_cut_saved_blocks(w.cut), 1);
    end_cut(&w, true);

    expect_changed(&w, "..x..");
    end_cut(&w, true);
    rp_test_bed_deinit(&w.bed);
}

static void cut_that_is_not_kept_forgets_no_change(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_FIFO, RP_LIFO, ITEMS);
    expect_changed(&w, "xxxxx");
    end_cut(&w, true);
    assert_ok(rp_table_update(w.table, &(rp_update){0, 2}, 1, NULL, NULL));

    expect_changed(&w, "x....");
    assert_ok(rp_table_update(w.table, &(rp_update){BLOCK, 2}, 1, NULL, NULL));
    act_grow(&w);
    end_cut(&w, false);

    open_cut(&w);
    for (size_t i = 0; i < rp_cut_block_count(w.cut, 0); i++)
        assert_int_equal(rp_cut_block_changed(w.cut, 0, i), i < 2 || i > 4);
    end_cut(&w, true);
    rp_test_bed_deinit(&w.bed);
}

static void cut_that_was_never_taken_changes_nothing(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_FIFO, RP_LIFO, ITEMS);

    for (int kept = 0; kept < 2; kept++) {
        assert_ok(rp_cut_new(&w.bed.alloc, &w.table, 1, &w.cut, NULL));
        end_cut(&w, kept != 0);
    }

    expect_changed(&w, "xxxxx");
    end_cut(&w, true);
    rp_test_bed_deinit(&w.bed);
}

static void restored_table_can_count_as_unchanged(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_FIFO, RP_LIFO, ITEMS);
    open_cut(&w);
    rp_table *r = rebuild(&w, "r");
    end_cut(&w, true);

    w.table = r;
    expect_changed(&w, "xxxxx");
    end_cut(&w, false);
    rp_table_set_unchanged(r);
    assert_ok(rp_table_update(r, &(rp_update){BLOCK, 2}, 1, NULL, NULL));

    expect_changed(&w, ".x...");
    end_cut(&w, true);
    rp_test_bed_deinit(&w.bed);
}

static void items_of_the_cut_stay_alive_until_it_ends(void **state)
{
    (void)state;
    world w;
    rp_slot slots[BLOCK];
    size_t before, with_items;
    world_init(&w, RP_FIFO, RP_FIFO, 0);
    rp_test_put(w.table, 1000, 1, w.bed.plain); /* memory for slots and all that */
    (void)rp_test_draw(w.table);
    before = w.bed.oom.live;
    for (uint64_t i = 0; i < 20; i++) {
        rp_trajectory *t = rp_test_blob_trajectory(&w.bed.alloc, 50 + i, 50 + i, 1000);
        rp_test_put(w.table, i, 1, t);
        rp_trajectory_unref(t);
    }
    with_items = w.bed.oom.live;
    open_cut(&w);
    for (uint64_t i = 0; i < 20; i++) {
        (void)rp_test_draw(w.table); /* some references to hand out */
        assert_ok(rp_table_delete(w.table, &i, 1, NULL, NULL));
    }
    /* An item that came later is none of the cut's. */
    rp_trajectory *t = rp_test_blob_trajectory(&w.bed.alloc, 90, 90, 100000);
    rp_test_put(w.table, 2000, 1, t);
    rp_trajectory_unref(t);
    assert_ok(rp_table_delete(w.table, &(uint64_t){2000}, 1, NULL, NULL));
    assert_true(w.bed.oom.live > with_items);

    rp_cut_read_block(w.cut, 0, 0, slots);
    for (size_t i = 1; i <= 20; i++) {
        assert_int_equal(slots[i].state, RP_SLOT_LIVE);
        assert_int_equal(rp_trajectory_get_chunk(slots[i].trajectory, 0)->origin.key, 49 + i);
    }
    end_cut(&w, true);
    assert_int_equal(w.bed.oom.live, before);
    rp_test_bed_deinit(&w.bed);
}

static void trajectories_a_cut_releases_are_freed(void **state)
{
    (void)state;
    world w;
    rp_slot slots[BLOCK];
    size_t before, held;
    world_init(&w, RP_FIFO, RP_FIFO, 0);
    rp_test_put(w.table, 1000, 1, w.bed.plain);
    for (uint64_t i = 0; i < 2 * BLOCK; i++) {
        rp_trajectory *t = rp_test_blob_trajectory(&w.bed.alloc, 50 + i, 50 + i, 1000);
        rp_test_put(w.table, i, 1, t);
        rp_trajectory_unref(t);
    }
    open_cut(&w);
    before = w.bed.oom.live;
    for (uint64_t i = 0; i < 2 * BLOCK; i += 2) /* half of two blocks */
        assert_ok(rp_table_delete(w.table, &i, 1, NULL, NULL));
    held = w.bed.oom.live;
    assert_int_equal(held, before); /* all of it */
    rp_cut_read_block(w.cut, 0, 0, slots);
    rp_cut_release_block(w.cut, 0, 0);
    assert_true(held - w.bed.oom.live >= 3 * 120); /* blocks of memory */
    held = w.bed.oom.live;
    for (uint64_t i = 1; i < BLOCK - 2; i += 2) /* now at once */
        assert_ok(rp_table_delete(w.table, &i, 1, NULL, NULL));
    assert_true(held - w.bed.oom.live >= 3 * 120); /* blocks of memory */
    assert_true(rp_table_check(w.table));
    rp_cut_read_block(w.cut, 0, 1, slots); /* the others are as they were */
    for (size_t i = 0; i < BLOCK; i++)
        assert_int_equal(rp_trajectory_get_chunk(slots[i].trajectory, 0)->origin.key,
                         49 + BLOCK + i);
    rp_cut_release_block(w.cut, 0, 1);
    end_cut(&w, true);
    rp_test_bed_deinit(&w.bed);
}

static void dropped_table_goes_with_its_cut(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_PRIORITIZED, RP_FIFO, ITEMS);
    open_cut(&w);

    drop(&w, "t");
    rp_store_free(w.bed.store);
    w.bed.store = NULL;
    rp_test_image_init(&w.image, w.cut, 0);
    rp_test_image_read(&w.image, w.cut, 0, &w.rng);
    assert_true(rp_test_image_check(&w.image));
    assert_int_equal(w.image.state.live, ITEMS);
    rp_test_image_deinit(&w.image);

    end_cut(&w, true);
    rp_test_bed_deinit(&w.bed);
}

/* Trajectories over chunks that tell when they are let go: then, for a moment, a table has dead
 * slots and its lock is free. */
typedef struct mourner {
    world *w;
    rp_table *table;
    int left; /* this many more deaths until it acts */
    void (*act)(struct mourner *m);
    const uint8_t *wire;
    size_t wire_bytes;
    void *user;
} mourner;

static void one_died(void *ctx)
{
    mourner *m = ctx;

    if (--m->left == 0) m->act(m);
}

static void put_adopted(mourner *m, rp_table *t, uint64_t key)
{
    rp_chunk_owner owner = {.release = one_died, .ctx = m};
    rp_chunk_limits limits = rp_chunk_limits_default();
    rp_chunk *chunk = NULL;
    rp_trajectory *trajectory;

    assert_ok_err(rp_chunk_adopt(&m->w->bed.alloc, m->wire, m->wire_bytes, &limits, &owner,
                                 &chunk, &m->w->bed.err),
                  &m->w->bed.err);
    trajectory = rp_test_try_join(&m->w->bed.alloc, &chunk, 1);
    assert_non_null(trajectory);
    rp_chunk_unref(chunk);
    rp_test_put(t, key, (double)(key % 9), trajectory);
    rp_trajectory_unref(trajectory);
}

static void act_cut_among_the_dead(mourner *m)
{
    world *w = m->w;
    const rp_table_state *s;

    open_cut(w);
    s = rp_cut_state(w->cut, 0);
    assert_true(s->live == 0 && s->slots_used == 700);
    rp_test_image_init(&w->image, w->cut, 0);
    rp_test_image_read(&w->image, w->cut, 0, &w->rng);
    assert_true(rp_test_image_check(&w->image));
    rp_test_image_deinit(&w->image);
    end_cut(w, true);
}

static void slots_retired_before_the_cut_are_free_in_it(void **state)
{
    (void)state;
    world w;
    rp_chunk *blob;
    mourner m = {.w = &w, .act = act_cut_among_the_dead, .left = 1};
    world_init(&w, RP_UNIFORM, RP_FIFO, 0);
    blob = rp_test_try_blob(&w.bed.alloc, 3, 3, 8);
    assert_non_null(blob);
    m.wire = rp_chunk_wire(blob, &m.wire_bytes);
    for (uint64_t i = 0; i < 700; i++) put_adopted(&m, w.table, i);

    assert_ok(rp_table_reset(w.table, NULL));

    assert_int_equal(m.left, 1 - 700);
    assert_true(rp_table_check(w.table));
    rp_chunk_unref(blob);
    rp_test_bed_deinit(&w.bed);
}

/* What a cut is taken under may be a lock of the store's: nobody is called back there. */
typedef struct listener {
    bool is_cutting;
    size_t told, told_while_cutting;
} listener;

static void hear(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    listener *l = ctx;

    (void)view, (void)events;
    l->told += count;
    if (l->is_cutting) l->told_while_cutting += count;
}

static void act_cut_with_a_listener(mourner *m)
{
    listener *l = m->user;

    l->is_cutting = true;
    open_cut(m->w);
    l->is_cutting = false;
    end_cut(m->w, true);
}

static void taking_a_cut_runs_no_callback(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    world w;
    rp_chunk *blob;
    listener l = {.is_cutting = false};
    mourner m = {.w = &w, .act = act_cut_with_a_listener, .left = MANY + 1, .user = &l};
    rp_extension e = {.deferred = true, .ctx = &l, .on_events = hear};
    rp_table_options o = rp_test_options("heard", RP_UNIFORM, RP_FIFO, 100000);
    world_init(&w, RP_UNIFORM, RP_FIFO, 0);
    o.extensions = &e;
    o.extension_count = 1;
    w.table = rp_test_bed_table(&w.bed, &o);
    blob = rp_test_try_blob(&w.bed.alloc, 3, 3, 8);
    assert_non_null(blob);
    m.wire = rp_chunk_wire(blob, &m.wire_bytes);
    for (uint64_t i = 0; i < MANY; i++) put_adopted(&m, w.table, i);
    l.told = 0;
    m.left = 1; /* it acts with most of them dead, and the reset not yet told */

    assert_ok(rp_table_reset(w.table, NULL));

    assert_int_equal(m.left, 1 - MANY);
    assert_int_equal(l.told, 1);
    assert_int_equal(l.told_while_cutting, 0);
    assert_true(rp_table_check(w.table));
    rp_chunk_unref(blob);
    rp_test_bed_deinit(&w.bed);
}

static void act_insert_among_the_dead(mourner *m)
{
    for (uint64_t i = 0; i < 300; i++) rp_test_put(m->table, 5000 + i, 1.5, m->w->bed.plain);
}

/* The same happens to both: but in one the inserts come while most slots are still dead. */
static void slots_do_not_depend_on_when_trajectories_are_released(void **state)
{
    (void)state;
    world w;
    rp_chunk *blob;
    mourner m = {.w = &w, .act = act_insert_among_the_dead, .left = 1};
    rp_table_options o = rp_test_options("twin", RP_PRIORITIZED, RP_FIFO, 100000);
    rp_table *twin;
    world_init(&w, RP_PRIORITIZED, RP_FIFO, 0);
    o.seed = 11;
    twin = rp_test_bed_table(&w.bed, &o);
    blob = rp_test_try_blob(&w.bed.alloc, 3, 3, 8);
    assert_non_null(blob);
    m.wire = rp_chunk_wire(blob, &m.wire_bytes);
    m.table = w.table;
    for (uint64_t i = 0; i < 700; i++) put_adopted(&m, w.table, i);

    assert_ok(rp_table_reset(w.table, NULL));

    m.table = twin;
    for (uint64_t i = 0; i < 700; i++) rp_test_put(twin, i, (double)(i % 9), w.bed.plain);
    assert_ok(rp_table_reset(twin, NULL));
    act_insert_among_the_dead(&m);
    assert_true(rp_table_check(w.table) && rp_table_check(twin));
    assert_true(rp_table_digest(w.table) == rp_table_digest(twin));
    rp_chunk_unref(blob);
    rp_test_bed_deinit(&w.bed);
}

static void table_is_in_one_cut_at_a_time(void **state)
{
    (void)state;
    world w;
    rp_table *both[2];
    rp_cut *second = NULL;
    rp_table_options o = rp_test_options("u", RP_UNIFORM, RP_FIFO, 10);
    world_init(&w, RP_UNIFORM, RP_FIFO, 10);
    both[0] = rp_test_bed_table(&w.bed, &o);
    both[1] = w.table;
    open_cut(&w);
    assert_int_equal(atomic_load(&w.table->account.budget->cuts), 1);

    assert_fails(rp_cut_new(&w.bed.alloc, both, 2, &second, &w.bed.err), RP_PRECONDITION,
                 &w.bed.err, "'t' is being cut");
    assert_int_equal(atomic_load(&w.table->account.budget->cuts), 1);
    assert_fails(rp_cut_take(w.cut, NULL, NULL, NULL, &w.bed.err), RP_PRECONDITION, &w.bed.err,
                 "taken already");

    end_cut(&w, true);
    assert_ok(rp_cut_new(&w.bed.alloc, both, 2, &second, &w.bed.err));
    assert_int_equal(atomic_load(&w.table->account.budget->cuts), 2);
    rp_cut_free(second, false);
    rp_cut_free(NULL, true);
    assert_int_equal(atomic_load(&w.table->account.budget->cuts), 0);
    rp_test_bed_deinit(&w.bed);
}

static void count_call(void *ctx)
{
    ++*(int *)ctx;
}

static void tables_are_cut_together(void **state)
{
    (void)state;
    enum { TABLES = 30 }; /* more than a thread may hold ranks */
    world w;
    rp_table *tables[TABLES];
    char name[8];
    rp_cut *cut = NULL;
    int calls = 0;
    int64_t held_ns = -1;
    world_init(&w, RP_UNIFORM, RP_FIFO, 10);
    for (int i = 0; i < TABLES; i++) {
        (void)snprintf(name, sizeof name, "t%d", i);
        rp_table_options o = rp_test_options(name, RP_UNIFORM, RP_FIFO, 10);
        tables[i] = rp_test_bed_table(&w.bed, &o);
        for (int j = 0; j < i % 5; j++) rp_test_put(tables[i], (uint64_t)j, 1, w.bed.plain);
    }
    assert_ok(rp_cut_new(&w.bed.alloc, tables, TABLES, &cut, NULL));
    for (int i = 0; i < TABLES; i++) /* all grow since */
        for (uint64_t j = 0; j < 9; j++) rp_test_put(tables[i], 100 + j, 1, w.bed.plain);

    assert_ok(rp_cut_take(cut, count_call, &calls, &held_ns, NULL));

    assert_true(calls == 1 && held_ns >= 0);
    for (size_t i = 0; i < TABLES; i++)
        assert_int_equal(rp_cut_state(cut, i)->live, i % 5 == 0 ? 9 : i % 5 == 1 ? 10 : 10);
    rp_cut_free(cut, true);
    rp_test_bed_deinit(&w.bed);
}

static void cut_of_no_table_is_fine(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_UNIFORM, RP_FIFO, 0);
    assert_ok(rp_cut_new(&w.bed.alloc, NULL, 0, &w.cut, NULL));
    assert_ok(rp_cut_take(w.cut, NULL, NULL, NULL, NULL));
    end_cut(&w, true);
    rp_test_bed_deinit(&w.bed);
}

RP_TESTS(cut)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_of_an_empty_table_is_empty),
        cmocka_unit_test(priorities_set_later_are_not_seen),
        cmocka_unit_test(samples_drawn_later_are_not_seen),
        cmocka_unit_test(deletes_are_not_seen),
        cmocka_unit_test(growth_is_not_seen),
        cmocka_unit_test(reset_is_not_seen),
        cmocka_unit_test(altered_options_are_not_seen),
        cmocka_unit_test(closed_and_dropped_tables_can_be_read),
        cmocka_unit_test(exactly_the_changed_blocks_are_marked),
        cmocka_unit_test(changes_during_a_cut_count_for_the_next),
        cmocka_unit_test(cut_that_is_not_kept_forgets_no_change),
        cmocka_unit_test(cut_that_was_never_taken_changes_nothing),
        cmocka_unit_test(restored_table_can_count_as_unchanged),
        cmocka_unit_test(items_of_the_cut_stay_alive_until_it_ends),
        cmocka_unit_test(trajectories_a_cut_releases_are_freed),
        cmocka_unit_test(dropped_table_goes_with_its_cut),
        cmocka_unit_test(slots_retired_before_the_cut_are_free_in_it),
        cmocka_unit_test(taking_a_cut_runs_no_callback),
        cmocka_unit_test(slots_do_not_depend_on_when_trajectories_are_released),
        cmocka_unit_test(table_is_in_one_cut_at_a_time),
        cmocka_unit_test(tables_are_cut_together),
        cmocka_unit_test(cut_of_no_table_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
