/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/extension.h"
#include "reprise/replay_buffer.h"
#include "reprise/sumtree.h"
#include "reprise/trajectory.h"
#include "store/store.h"
#include "support/fixture.h"

static rp_store *make(const rp_store_options *options)
{
    rp_store *s = NULL;
    rp_error err;

    assert_ok_err(rp_store_new(options, &s, &err), &err);
    return s;
}

static rp_table *add(rp_store *s, const char *name)
{
    rp_table_options o = rp_test_options(name, RP_UNIFORM, RP_FIFO, 100);
    rp_table *t = NULL;
    rp_error err;

    assert_ok_err(rp_store_add_table(s, &o, &t, &err), &err);
    return t;
}

static void store_has_defaults_for_everything(void **state)
{
    (void)state;
    rp_store *s = make(NULL), *other = make(&(rp_store_options){0});
    rp_store_info info, other_info;

    rp_store_get_info(s, &info);
    rp_store_get_info(other, &other_info);

    assert_true(info.max_bytes == 0 && info.policy == RP_BUDGET_EVICT && info.bytes == 0);
    assert_int_equal(info.table_count, 0);
    assert_true(info.seed != 0 && info.seed != other_info.seed); /* from the system */
    rp_store_free(s);
    rp_store_free(other);
    rp_store_free(NULL);
}

static void info_shows_the_options_of_the_store(void **state)
{
    (void)state;
    rp_store *s =
        make(&(rp_store_options){.max_bytes = 777, .policy = RP_BUDGET_REJECT, .seed = 99});
    rp_store_info info;
    (void)add(s, "a");

    rp_store_get_info(s, &info);

    assert_true(info.max_bytes == 777 && info.policy == RP_BUDGET_REJECT && info.seed == 99);
    assert_int_equal(info.table_count, 1);
    rp_store_free(s);
}

/* Tables are found by name whatever the order in which they were made and dropped. */
static void many_tables_are_found_by_their_names(void **state)
{
    enum { TABLES = 300, STEP = 77 /* has no divisor in common with TABLES */ };
    rp_store *s = make(NULL);
    char name[16];
    rp_error err;

    (void)state;
    for (int i = 0; i < TABLES; i++) {
        (void)snprintf(name, sizeof name, "t%d", i * STEP % TABLES);
        (void)add(s, name);
    }
    for (int i = 0; i < TABLES; i += 2) {
        (void)snprintf(name, sizeof name, "t%d", i);
        assert_ok_err(rp_store_drop_table(s, (rp_string){name, strlen(name)}, &err), &err);
    }
    for (int i = 0; i < TABLES; i++) {
        rp_table *t;
        (void)snprintf(name, sizeof name, "t%d", i);
        t = rp_store_find_table(s, (rp_string){name, strlen(name)});
        assert_int_equal(t != NULL, i % 2);
        if (t != NULL) assert_string_equal(rp_table_name(t), name);
        rp_table_unref(t);
    }
    assert_null(rp_store_find_table(s, (rp_string){"", 0}));
    assert_null(rp_store_find_table(s, (rp_string){"t", 1}));
    assert_null(rp_store_find_table(s, (rp_string){"t1\0", 3}));
    assert_null(rp_store_find_table(s, (rp_string){"zz", 2}));
    rp_store_free(s);
}

static void unknown_policy_is_refused(void **state)
{
    (void)state;
    rp_store *s = NULL;
    rp_error err;

    assert_fails(rp_store_new(&(rp_store_options){.policy = (rp_budget_policy)3}, &s, &err),
                 RP_INVALID, &err, "there is no policy 3");
    assert_null(s);
}

static void tables_are_found_by_name_and_listed_in_order(void **state)
{
    (void)state;
    rp_store *s = make(NULL);
    rp_table *a = add(s, "a"), *b = add(s, "b"), *listed[3] = {NULL};

    assert_ptr_equal(rp_test_table(s, "a"), a);
    assert_ptr_equal(rp_test_table(s, "b"), b);
    assert_null(rp_test_table(s, "c"));
    assert_null(rp_test_table(s, ""));
    assert_int_equal(rp_store_tables(s, listed, 1), 2);
    assert_true(listed[0] == a && listed[1] == NULL);
    assert_int_equal(rp_store_tables(s, listed, 3), 2);
    assert_true(listed[0] == a && listed[1] == b && listed[2] == NULL);
    assert_int_equal(rp_store_tables(s, NULL, 0), 2);
    rp_store_free(s);
}

static void name_can_be_taken_once(void **state)
{
    (void)state;
    rp_store *s = make(NULL);
    rp_table_options o = rp_test_options("a", RP_FIFO, RP_FIFO, 5);
    rp_error err;
    rp_table *a = add(s, "a"), *t = NULL;

    assert_fails(rp_store_add_table(s, &o, &t, &err), RP_EXISTS, &err, "a table 'a' already");

    assert_null(t);
    assert_ptr_equal(rp_test_table(s, "a"), a);
    o.name = "b";
    assert_ok(rp_store_add_table(s, &o, NULL, NULL)); /* nobody needs the pointer */
    rp_store_free(s);
}

static void store_takes_many_tables(void **state)
{
    (void)state;
    rp_store *s = make(NULL);
    char name[20];

    for (int i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof name, "table %d", i);
        (void)add(s, name);
    }
    for (int i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof name, "table %d", i);
        assert_string_equal(rp_table_name(rp_test_table(s, name)), name);
    }
    rp_store_free(s);
}

static void closed_store_takes_no_tables(void **state)
{
    (void)state;
    rp_store *s = make(NULL);
    rp_table_options o = rp_test_options("b", RP_FIFO, RP_FIFO, 5);
    rp_table *a = add(s, "a");
    rp_error err;

    rp_store_close(s);
    rp_store_close(s);

    assert_fails(rp_store_add_table(s, &o, NULL, &err), RP_PRECONDITION, &err, "closed");
    assert_true(rp_test_info_of(a).closed);
    assert_ptr_equal(rp_test_table(s, "a"), a);
    rp_store_free(s);
}

static void keys_come_from_the_seed(void **state)
{
    (void)state;
    rp_store *a = make(&(rp_store_options){.seed = 5}),
             *b = make(&(rp_store_options){.seed = 5});
    rp_store *c = make(&(rp_store_options){.seed = 6});
    uint64_t first = rp_store_new_key(a), second = rp_store_new_key(a);

    assert_true(first != second);
    assert_int_equal(rp_store_new_key(b), first);
    assert_int_equal(rp_store_new_key(b), second);
    assert_true(rp_store_new_key(c) != first);
    rp_store_free(a);
    rp_store_free(b);
    rp_store_free(c);
}

/* Twins: each table has a sequence of its own, whichever was made first. */
static void tables_have_seeds_of_their_own(void **state)
{
    (void)state;
    uint64_t drawn[2][2][50];

    for (int order = 0; order < 2; order++) {
        rp_test_bed bed;
        rp_table *t[2];
        rp_test_bed_init(&bed, NULL);
        t[order] = add(bed.store, order == 0 ? "a" : "b");
        t[1 - order] = add(bed.store, order == 0 ? "b" : "a");
        for (int i = 0; i < 2; i++)
            for (uint64_t key = 0; key < 50; key++) rp_test_put(t[i], key, 1, bed.plain);
        for (int i = 0; i < 2; i++)
            for (size_t n = 0; n < 50; n++) drawn[order][i][n] = rp_test_draw(t[i]).key;
        rp_test_bed_deinit(&bed);
    }

    assert_memory_equal(drawn[0][0], drawn[1][0], sizeof drawn[0][0]);
    assert_memory_equal(drawn[0][1], drawn[1][1], sizeof drawn[0][1]);
    assert_memory_not_equal(drawn[0][0], drawn[0][1], sizeof drawn[0][0]);
}

static void samples_outlive_their_store(void **state)
{
    (void)state;
    rp_test_bed bed;
    rp_sample_options one = {.count = 1};
    rp_sample s;
    size_t drawn;
    rp_test_bed_init(&bed, NULL);
    rp_table *t = add(bed.store, "a");
    rp_trajectory *own = rp_test_blob_trajectory(rp_allocator_default(), 3, 3, 50);
    rp_test_put(t, 1, 1, own);
    rp_trajectory_unref(own);
    assert_ok(rp_table_sample(t, &one, &s, &drawn, rp_wait_none(), NULL));

    rp_test_bed_deinit(&bed);

    assert_int_equal(rp_trajectory_column_count(s.trajectory), 1);
    rp_samples_release(&s, 1);
}

static int freed;

static void note_free(void *ctx)
{
    (void)ctx;
    freed++;
}

static void ignore_events(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    (void)ctx, (void)view, (void)events, (void)count;
}

static void extensions_belong_to_the_table_only_after_success(void **state)
{
    (void)state;
    rp_store *s = make(NULL);
    rp_extension e = {.name = "e", .on_events = ignore_events, .free = note_free};
    rp_table_options o = rp_test_options("a", RP_FIFO, RP_FIFO, 0);
    o.extensions = &e;
    o.extension_count = 1;
    freed = 0;

    assert_int_equal(rp_store_add_table(s, &o, NULL, NULL), RP_INVALID);
    assert_int_equal(freed, 0);
    o.max_size = 1;
    assert_ok(rp_store_add_table(s, &o, NULL, NULL));
    assert_int_equal(rp_store_add_table(s, &o, NULL, NULL), RP_EXISTS);
    assert_int_equal(freed, 0);
    rp_store_free(s);

    assert_int_equal(freed, 1);
}

static void name_of_a_table_must_be_utf8(void **state)
{
    static const char *const bad[] = {"\xff", "caf\xe9", "a\xc3", "\xed\xa0\x80", "\xc0\x80"};
    rp_table_options o = rp_test_options("", RP_UNIFORM, RP_FIFO, 100);
    rp_store *s = make(NULL);
    rp_table *t = NULL;
    rp_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        o.name = bad[i];
        assert_fails(rp_store_add_table(s, &o, &t, &err), RP_INVALID, &err, "is not UTF-8");
    }
    o.name = "caf\xc3\xa9 \xf0\x9f\x98\x80";
    assert_ok_err(rp_store_add_table(s, &o, &t, &err), &err);
    rp_store_free(s);
}

/* NULL for an allocator is the default one, in every public function that takes one. */
static void null_is_the_default_allocator(void **state)
{
    const rp_spec column = {.name = "x", .dtype = RP_FLOAT32};
    const rp_nest_node leaf = {.kind = RP_NEST_LEAF, .spec = {.dtype = RP_FLOAT32}};
    const rp_replay_column rows[] = {{"x", 4, 1}};
    const rp_replay_options replay = {
        .capacity = 4, .columns = rows, .column_count = 1, .alpha = 1};
    rp_signature *signature = NULL;
    rp_replay_buffer *buffer = NULL;
    rp_decoder *decoder = NULL;
    rp_sumtree *tree = NULL;
    rp_extension e;
    rp_store *s = make(NULL);
    rp_error err;

    (void)state;
    assert_ok_err(rp_signature_flat(NULL, &column, 1, &signature, &err), &err);
    rp_signature_unref(signature);
    assert_ok_err(rp_signature_new(NULL, &leaf, 1, &signature, &err), &err);
    rp_signature_unref(signature);
    assert_ok_err(rp_replay_buffer_new(NULL, &replay, &buffer, &err), &err);
    rp_replay_buffer_free(buffer);
    assert_ok(rp_decoder_new(NULL, 0, &decoder));
    rp_decoder_free(decoder);
    assert_ok(rp_sumtree_new(NULL, &tree));
    rp_sumtree_free(tree);
    assert_ok(rp_statistics_extension(NULL, &e));
    e.free(e.ctx);
    assert_ok_err(rp_diffusion_extension(NULL, 1, 0.5, &e, &err), &err);
    e.free(e.ctx);
    assert_ok_err(rp_insert_on_sample_extension(NULL, add(s, "target"), 0, &e, &err), &err);
    e.free(e.ctx);
    rp_store_free(s);
}

/* Two journals of one store would each have half of its changes. */
static void store_is_kept_in_one_directory(void **state)
{
    rp_store *s = make(NULL);
    rp_error err;

    (void)state;
    assert_ok_err(rp_store_enter_durable(s, "/data/a", &err), &err);
    assert_fails(rp_store_enter_durable(s, "/data/b", &err), RP_PRECONDITION, &err,
                 "kept in '/data/a' already");
    rp_store_leave_durable(s);
    assert_ok_err(rp_store_enter_durable(s, "/data/b", &err), &err);
    rp_store_leave_durable(s);
    rp_store_free(s);
}

RP_TESTS(store)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_of_a_table_must_be_utf8),
        cmocka_unit_test(null_is_the_default_allocator),
        cmocka_unit_test(store_is_kept_in_one_directory),
        cmocka_unit_test(store_has_defaults_for_everything),
        cmocka_unit_test(info_shows_the_options_of_the_store),
        cmocka_unit_test(many_tables_are_found_by_their_names),
        cmocka_unit_test(unknown_policy_is_refused),
        cmocka_unit_test(tables_are_found_by_name_and_listed_in_order),
        cmocka_unit_test(name_can_be_taken_once),
        cmocka_unit_test(store_takes_many_tables),
        cmocka_unit_test(closed_store_takes_no_tables),
        cmocka_unit_test(keys_come_from_the_seed),
        cmocka_unit_test(tables_have_seeds_of_their_own),
        cmocka_unit_test(samples_outlive_their_store),
        cmocka_unit_test(extensions_belong_to_the_table_only_after_success),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
