/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of actors and of learners that change while a program runs. */
#include <string.h>

#include "reprise/rl/apex.h"
#include "reprise/rl/dpg.h"
#include "reprise/rl/dqn.h"
#include "support/unit.h"

enum { MOST = 3, MOST_PARTS = MOST + 2, COPIES = 4, IN_FLIGHT = 64, RETURNS = 5, BATCH = 16 };

/* A program on a store of its own. */
typedef struct fixture {
    rp_store *store;
    rp_client *client;
    rp_apex *apex;
    rp_dqn_settings dqn;
    rp_dpg_settings dpg;
    rp_apex_options options;
    rp_apex_part parts[MOST_PARTS];
    size_t count;
    rp_error err;
} fixture;

static void prepare(fixture *f, const rp_apex_algorithm *algorithm)
{
    bool is_dqn = strcmp(algorithm->name, "dqn") == 0;
    const char *env = is_dqn ? "catch" : "pendulum";

    *f = (fixture){0};
    rp_dqn_settings_init(&f->dqn, env);
    rp_dpg_settings_init(&f->dpg, env);
    f->dqn.hidden = f->dpg.hidden = 8;
    f->dqn.copies = f->dpg.copies = COPIES;
    f->dqn.start = f->dpg.start = 100;
    f->dqn.batch = f->dpg.batch = BATCH;
    f->options = (rp_apex_options){.algorithm = algorithm,
                                   .settings = is_dqn ? (void *)&f->dqn : (void *)&f->dpg,
                                   .env_class = rp_env_find(env),
                                   .actors = 2,
                                   .most_actors = MOST,
                                   .pull_every = 40,
                                   .trim_every = 5,
                                   .seed = 7};
    assert_ok(rp_store_new(&(rp_store_options){.seed = 5}, &f->store, &f->err));
    assert_ok(rp_client_local(f->store, NULL, &f->client, &f->err));
    f->options.client = f->client;
    assert_ok_err(rp_apex_new(NULL, &f->options, &f->apex, &f->err), &f->err);
}

static void start(fixture *f)
{
    assert_ok_err(rp_apex_start(f->apex, RP_APEX_LEARNER, 0, &f->err), &f->err);
    for (int64_t i = 0; i < f->options.actors; i++)
        assert_ok_err(rp_apex_start(f->apex, RP_APEX_ACTOR, i, &f->err), &f->err);
}

static void close_fixture(fixture *f)
{
    rp_apex_free(f->apex);
    rp_client_free(f->client);
    rp_store_free(f->store);
}

/* Looks at the parts after a few milliseconds, in which the program must not end. */
static void look(fixture *f)
{
    bool done = false;

    assert_ok_err(rp_apex_wait(f->apex, 2, &done, &f->err), &f->err);
    assert_false(done);
    f->count = rp_apex_get_parts(f->apex, f->parts, MOST_PARTS);
}

static rp_apex_part part(const fixture *f, rp_apex_role role, int64_t index)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->parts[i].role == role && f->parts[i].index == index) return f->parts[i];
    return (rp_apex_part){.has_left = true};
}

static void await_steps(fixture *f, int64_t index, int64_t more)
{
    int64_t least = part(f, RP_APEX_ACTOR, index).steps + more;

    do look(f);
    while (part(f, RP_APEX_ACTOR, index).has_left ||
           part(f, RP_APEX_ACTOR, index).steps < least);
}

/* Asks for a number of actors, and waits until those that leave have left. */
static void set_actors(fixture *f, int64_t actors)
{
    bool is_there;

    assert_ok_err(rp_apex_set_actors(f->apex, actors, &f->err), &f->err);
    do {
        look(f);
        is_there = false;
        for (int64_t i = actors; i < MOST; i++)
            is_there = is_there || !part(f, RP_APEX_ACTOR, i).has_left;
    } while (is_there);
}

static int64_t inserts(const fixture *f)
{
    rp_table *replay = rp_store_find_table(f->store, (rp_string){"replay", 6});
    rp_table_info info;

    assert_non_null(replay);
    rp_table_get_info(replay, &info);
    rp_table_unref(replay);
    return info.inserts;
}

static void actors_come_and_go_and_lose_no_item(void **state)
{
    (void)state;
    fixture f;
    /* Of the actor that does not leave. The last step of an episode makes several items. */
    const int64_t most = (IN_FLIGHT + 2 * RETURNS) * COPIES;
    int64_t items = 0, steps = 0;

    prepare(&f, rp_apex_dqn());
    start(&f);
    for (size_t round = rp_test_length(20, 6); round > 0; round--) {
        set_actors(&f, 3);
        await_steps(&f, 1, 40);
        await_steps(&f, 2, 40);
        assert_true(part(&f, RP_APEX_ACTOR, 2).steps > steps); /* its counts go on */
        steps = part(&f, RP_APEX_ACTOR, 2).steps;
        set_actors(&f, 1);
    }
    await_steps(&f, 0, 40); /* the last one acts */
    for (int64_t i = 0; i < MOST; i++) items += part(&f, RP_APEX_ACTOR, i).items;
    rp_apex_free(f.apex);
    f.apex = NULL;
    if (inserts(&f) < items - most)
        print_error("%lld items, %lld in the replay\n", (long long)items,
                    (long long)inserts(&f));
    assert_true(inserts(&f) >= items - most);
    close_fixture(&f);
}

static void an_actor_that_is_called_back_stays(void **state)
{
    (void)state;
    fixture f;

    prepare(&f, rp_apex_dqn());
    start(&f);
    await_steps(&f, 1, 40);
    for (size_t i = rp_test_length(200, 50); i > 0; i--)
        assert_ok_err(rp_apex_set_actors(f.apex, 1 + (int64_t)(i % 3), &f.err), &f.err);
    assert_ok_err(rp_apex_set_actors(f.apex, 3, &f.err), &f.err);
    await_steps(&f, 0, 40);
    await_steps(&f, 1, 40);
    await_steps(&f, 2, 40);
    close_fixture(&f);
}

static void actors_explore_as_members_of_their_group(void **state)
{
    (void)state;
    fixture f;
    double of_two, of_one, of_three;

    prepare(&f, rp_apex_dqn());
    start(&f);
    await_steps(&f, 1, 80);
    of_two = part(&f, RP_APEX_ACTOR, 1).exploration;
    set_actors(&f, 3);
    await_steps(&f, 1, 160);
    of_three = part(&f, RP_APEX_ACTOR, 1).exploration;
    assert_true(of_three > of_two); /* in the middle of the ladder, not at its end */
    set_actors(&f, 1);
    await_steps(&f, 0, 160);
    of_one = part(&f, RP_APEX_ACTOR, 0).exploration;
    assert_true(of_one > 0.39); /* its first copy explores most */
    close_fixture(&f);
}

static void learners_change_between_updates(void **state)
{
    (void)state;
    const rp_apex_algorithm *const algorithms[] = {rp_apex_dqn(), rp_apex_dpg()};
    static const int64_t numbers[] = {2, 3, 1, 2};
    fixture f;

    for (size_t a = 0; a < 2; a++) {
        prepare(&f, algorithms[a]);
        start(&f);
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            int64_t updates;

            rp_apex_set_learners(f.apex, numbers[i]);
            do look(&f);
            while (part(&f, RP_APEX_LEARNER, 0).threads != numbers[i]);
            updates = part(&f, RP_APEX_LEARNER, 0).metrics.updates;
            do look(&f);
            while (part(&f, RP_APEX_LEARNER, 0).metrics.updates < updates + 10);
            assert_string_equal(part(&f, RP_APEX_LEARNER, 0).trouble, "");
        }
        rp_apex_set_learners(f.apex, BATCH + 1);
        do look(&f);
        while (part(&f, RP_APEX_LEARNER, 0).trouble[0] == '\0');
        assert_non_null(strstr(part(&f, RP_APEX_LEARNER, 0).trouble,
                               "learners must be from 1 to 16, got 17"));
        assert_int_equal(part(&f, RP_APEX_LEARNER, 0).threads, 2);
        close_fixture(&f);
    }
}

static rp_status (*update_once)(rp_learner *learner, rp_wait wait, rp_error *err);

/* Four updates in one call, as asynchronous learners make them. */
static rp_status update_several(rp_learner *learner, rp_wait wait, rp_error *err)
{
    rp_status st = update_once(learner, wait, err), more = st;

    for (int i = 0; i < 3 && more == RP_OK; i++)
        more = update_once(learner, rp_wait_none(), err);
    return more == RP_OK || more == RP_DEADLINE ? st : more;
}

static rp_status new_hasty_learner(const rp_apex_making *making, rp_learner **out,
                                   rp_error *err)
{
    static rp_learner_class hasty;
    rp_status st = rp_apex_dqn()->new_learner(making, out, err);

    if (st != RP_OK) return st;
    hasty = *(*out)->type;
    update_once = hasty.update;
    hasty.update = update_several;
    (*out)->type = &hasty;
    return RP_OK;
}

static void updates_of_all_threads_are_counted(void **state)
{
    (void)state;
    enum { EVERY = 10 };
    rp_apex_algorithm hasty = *rp_apex_dqn();
    rp_apex_part learner;
    fixture f;

    hasty.new_learner = new_hasty_learner;
    prepare(&f, &hasty);
    rp_apex_free(f.apex);
    f.options.publish_every = EVERY;
    assert_ok_err(rp_apex_new(NULL, &f.options, &f.apex, &f.err), &f.err);
    start(&f);
    do {
        look(&f);
        learner = part(&f, RP_APEX_LEARNER, 0);
    } while (learner.metrics.updates < 40 * EVERY);
    /* The first version comes before the first update. */
    assert_true(learner.version >= learner.metrics.updates / EVERY - 1);
    assert_true(learner.version <= learner.metrics.updates / EVERY + 1);
    close_fixture(&f);
}

static void a_program_ends_while_actors_leave(void **state)
{
    (void)state;
    fixture f;

    for (size_t i = rp_test_length(10, 3); i > 0; i--) {
        prepare(&f, rp_apex_dqn());
        start(&f);
        await_steps(&f, 1, 40);
        assert_ok_err(rp_apex_set_actors(f.apex, i % 2 == 0 ? 1 : 3, &f.err), &f.err);
        close_fixture(&f);
    }
}

static void numbers_are_checked(void **state)
{
    (void)state;
    fixture f;
    rp_apex *none = NULL;

    prepare(&f, rp_apex_dqn());
    assert_int_equal(rp_apex_set_actors(f.apex, 0, &f.err), RP_INVALID);
    assert_int_equal(rp_apex_set_actors(f.apex, MOST + 1, &f.err), RP_INVALID);
    assert_non_null(strstr(f.err.text, "actors must be from 1 to 3, got 4"));
    f.options.most_actors = 1;
    assert_int_equal(rp_apex_new(NULL, &f.options, &none, &f.err), RP_INVALID);
    assert_non_null(strstr(f.err.text, "most_actors must be from 2 to 4096, got 1"));
    close_fixture(&f);
}

RP_TESTS(apex_counts)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actors_come_and_go_and_lose_no_item),
        cmocka_unit_test(an_actor_that_is_called_back_stays),
        cmocka_unit_test(actors_explore_as_members_of_their_group),
        cmocka_unit_test(learners_change_between_updates),
        cmocka_unit_test(updates_of_all_threads_are_counted),
        cmocka_unit_test(a_program_ends_while_actors_leave),
        cmocka_unit_test(numbers_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
