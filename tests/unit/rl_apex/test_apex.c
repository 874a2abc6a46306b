/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/apex.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reprise/rl/dqn.h"
#include "reprise/server.h"
#include "reprise/trajectory_writer.h"
#include "support/unit.h"

enum { MOST_PARTS = 8, LONG_MS = 600000 };

/* A program on a store of its own. */
typedef struct fixture {
    rp_store *store;
    rp_client *client;
    rp_apex *apex;
    rp_dqn_settings settings;
    rp_apex_options options;
    rp_error err;
} fixture;

static fixture small(const char *env)
{
    fixture f = {0};

    rp_dqn_settings_init(&f.settings, env);
    f.settings.hidden = (int64_t)rp_test_length(32, 8);
    f.settings.copies = 4;
    f.settings.start = 200;
    f.options = (rp_apex_options){.algorithm = rp_apex_dqn(),
                                  .env_class = rp_env_find(env),
                                  .actors = 2,
                                  .seed = 7,
                                  .confirm_episodes = 50};
    return f;
}

static void open_store(fixture *f)
{
    assert_ok(rp_store_new(&(rp_store_options){.seed = 5}, &f->store, &f->err));
    assert_ok(rp_client_local(f->store, NULL, &f->client, &f->err));
}

static void open_apex(fixture *f)
{
    f->options.settings = &f->settings;
    f->options.client = f->client;
    assert_ok_err(rp_apex_new(NULL, &f->options, &f->apex, &f->err), &f->err);
}

static void start(fixture *f, rp_apex_role role, int64_t index)
{
    assert_ok_err(rp_apex_start(f->apex, role, index, &f->err), &f->err);
}

static void start_all(fixture *f)
{
    start(f, RP_APEX_EVALUATOR, 0);
    for (int64_t i = 0; i < f->options.actors; i++) start(f, RP_APEX_ACTOR, i);
    start(f, RP_APEX_LEARNER, 0);
}

static void close_fixture(fixture *f)
{
    rp_apex_free(f->apex);
    rp_client_free(f->client);
    rp_store_free(f->store);
}

static rp_apex_part part(fixture *f, rp_apex_role role)
{
    rp_apex_part parts[MOST_PARTS];
    size_t count = rp_apex_get_parts(f->apex, parts, MOST_PARTS);

    for (size_t i = 0; i < count; i++)
        if (parts[i].role == role) return parts[i];
    fail();
    return parts[0];
}

/* Waits until the part says that it waits for something that begins with `what`. */
static void await_wait(fixture *f, rp_apex_role role, const char *what)
{
    bool done = false;

    while (strncmp(part(f, role).waits_for, what, strlen(what)) != 0) {
        assert_ok_err(rp_apex_wait(f->apex, 5, &done, &f->err), &f->err);
        assert_false(done);
    }
}

static int64_t await_updates(fixture *f, int64_t updates)
{
    bool done = false;

    while (part(f, RP_APEX_LEARNER).metrics.updates < updates) {
        assert_ok_err(rp_apex_wait(f->apex, 5, &done, &f->err), &f->err);
        assert_false(done);
    }
    return part(f, RP_APEX_LEARNER).metrics.updates;
}

static rp_table_info table(fixture *f)
{
    rp_table *replay = rp_store_find_table(f->store, (rp_string){"replay", 6});
    rp_table_info info;

    assert_non_null(replay);
    rp_table_get_info(replay, &info);
    rp_table_unref(replay);
    return info;
}

static void actors_and_a_learner_solve_catch(void **state)
{
    (void)state;
    fixture f = small("catch");
    rp_apex_part parts[MOST_PARTS];
    rp_run_progress progress;
    rp_real *params;
    bool done = false;
    size_t count;

    f.settings.hidden = 32;
    f.options.threshold = (double)rp_test_length(90, 20) / 100; /* of 1 */
    open_store(&f);
    open_apex(&f);
    for (int64_t i = 0; i < f.options.actors; i++) start(&f, RP_APEX_ACTOR, i);
    start(&f, RP_APEX_LEARNER, 0);
    (void)await_updates(&f, 100); /* the evaluator is not to be lucky before */
    start(&f, RP_APEX_EVALUATOR, 0);
    assert_ok_err(rp_apex_wait(f.apex, LONG_MS, &done, &f.err), &f.err);

    assert_true(done);
    count = rp_apex_get_parts(f.apex, parts, MOST_PARTS);
    assert_int_equal(count, 4);
    assert_true(parts[3].role == RP_APEX_EVALUATOR && parts[3].is_solved);
    assert_true(parts[3].verdict.confirmed.mean_return >= f.options.threshold);
    progress = rp_apex_progress(f.apex, parts, count, NULL);
    assert_true(progress.steps > 200 && progress.updates > 0 && progress.episodes > 0);
    assert_true(progress.eval_return >= f.options.threshold);
    params = calloc(rp_apex_parameter_count(f.apex), sizeof *params);
    assert_true(rp_apex_get_parameters(f.apex, params, rp_apex_parameter_count(f.apex)));
    free(params);
    /* the limiter holds 32 / 4 samples for each item, within its bounds */
    rp_table_info info = table(&f);
    assert_true((double)info.samples <= 8 * (double)info.inserts + info.limiter.max_diff);
    close_fixture(&f);
}

static void parts_say_what_they_wait_for(void **state)
{
    (void)state;
    fixture f = small("catch");

    open_store(&f);
    open_apex(&f);
    start(&f, RP_APEX_ACTOR, 1);
    await_wait(&f, RP_APEX_ACTOR, "the first parameters of the learner");
    start(&f, RP_APEX_EVALUATOR, 0);
    await_wait(&f, RP_APEX_EVALUATOR, "parameters of the learner");
    rp_apex_free(f.apex);
    f.apex = NULL;

    open_apex(&f);
    start(&f, RP_APEX_LEARNER, 0);
    await_wait(&f, RP_APEX_LEARNER, "the actors: 0 of the first 200 items");
    rp_apex_free(f.apex);
    f.apex = NULL;

    open_apex(&f); /* there are parameters now, and no learner that draws samples */
    start(&f, RP_APEX_ACTOR, 0);
    await_wait(&f, RP_APEX_ACTOR, "the learner: ");
    assert_true(table(&f).inserts >= 200);
    close_fixture(&f);
}

static void the_learner_removes_the_excess_in_bulk(void **state)
{
    (void)state;
    fixture f = small("catch");
    int64_t most = (int64_t)rp_test_length(1000, 400), hard = most + most / 5 + 1;

    f.settings.capacity = most;
    f.options.trim_every = 20;
    f.options.threshold = (double)NAN;
    open_store(&f);
    open_apex(&f);
    start(&f, RP_APEX_LEARNER, 0);
    start(&f, RP_APEX_ACTOR, 0);
    await_updates(&f, most);
    rp_apex_free(f.apex);
    f.apex = NULL;
    assert_int_equal(table(&f).max_size, hard);
    assert_true((int64_t)table(&f).inserts > 2 * most);
    assert_true((int64_t)table(&f).size < hard); /* one that evicts by itself would be full */
    close_fixture(&f);
}

static void a_restarted_learner_goes_on(void **state)
{
    (void)state;
    fixture f = small("catch");
    int64_t before, steps;

    f.options.threshold = (double)NAN;
    f.options.save_every = 50;
    open_store(&f);
    open_apex(&f);
    start(&f, RP_APEX_LEARNER, 0);
    start(&f, RP_APEX_ACTOR, 0);
    before = await_updates(&f, 300);
    steps = part(&f, RP_APEX_LEARNER).learner_steps;
    rp_apex_free(f.apex);
    f.apex = NULL;

    open_apex(&f);
    start(&f, RP_APEX_LEARNER, 0);
    while (part(&f, RP_APEX_LEARNER).learner_steps == 0) {
        bool done;
        assert_ok(rp_apex_wait(f.apex, 5, &done, &f.err));
    }
    assert_true(part(&f, RP_APEX_LEARNER).metrics.updates >= before - 100);
    assert_true(part(&f, RP_APEX_LEARNER).learner_steps >= steps / 2);
    close_fixture(&f);
}

static void parts_outlive_the_loss_of_all_tables(void **state)
{
    (void)state;
    fixture f = small("catch");
    static const char *const names[] = {"replay", "variables"};

    f.options.threshold = (double)NAN;
    open_store(&f);
    open_apex(&f);
    start_all(&f);
    await_updates(&f, 200);
    for (size_t i = 0; i < 2; i++)
        assert_ok(
            rp_store_drop_table(f.store, (rp_string){names[i], strlen(names[i])}, &f.err));
    await_updates(&f, part(&f, RP_APEX_LEARNER).metrics.updates + 400);
    assert_true(table(&f).inserts > 200);
    close_fixture(&f);
}

static void a_replay_that_stays_away_ends_a_part(void **state)
{
    (void)state;
    static const rp_apex_role roles[] = {RP_APEX_ACTOR, RP_APEX_LEARNER, RP_APEX_EVALUATOR};

    for (size_t i = 0; i < 3; i++) {
        fixture f = small("catch");
        rp_status st = RP_OK;
        bool done = false;

        f.options.patience_ms = 50;
        assert_ok(rp_client_new("localhost:1", NULL, &f.client, &f.err)); /* nobody is there */
        open_apex(&f);
        start(&f, roles[i], 0);
        while (!done) st = rp_apex_wait(f.apex, 100, &done, &f.err);
        assert_int_equal(st, RP_UNAVAILABLE);
        assert_non_null(strstr(f.err.text, ": the replay has been away for "));
        close_fixture(&f);
    }
}

/* Two servers, shards of the replay, on Unix sockets of a folder. */
typedef struct shards {
    char folder[64], addresses[2][96];
    rp_store *stores[2];
    rp_server *servers[2];
} shards;

static void serve_shard(shards *s, size_t i)
{
    const char *address = s->addresses[i];
    rp_error err;

    assert_ok_err(rp_server_start(s->stores[i],
                                  &(rp_server_options){
                                      .addresses = &address, .address_count = 1, .loops = 1},
                                  &s->servers[i], &err),
                  &err);
}

static void stop_shard(shards *s, size_t i)
{
    rp_server_free(s->servers[i]);
    s->servers[i] = NULL;
}

static void open_shards(shards *s, fixture *f)
{
    char both[200];

    *s = (shards){.folder = "/tmp/rp_apex_XXXXXX"};
    assert_non_null(mkdtemp(s->folder));
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(s->addresses[i], sizeof s->addresses[i], "unix:%s/%zu", s->folder, i);
        assert_ok(rp_store_new(&(rp_store_options){.seed = 5 + i}, &s->stores[i], &f->err));
        serve_shard(s, i);
    }
    (void)snprintf(both, sizeof both, "%s,%s", s->addresses[0], s->addresses[1]);
    assert_ok_err(
        rp_client_new(both, &(rp_client_options){.retry_max_ms = 20}, &f->client, &f->err),
        &f->err);
    assert_ok_err(rp_client_new(s->addresses[0], NULL, &f->options.home, &f->err), &f->err);
}

static void close_shards(shards *s, fixture *f)
{
    close_fixture(f);
    rp_client_free(f->options.home);
    for (size_t i = 0; i < 2; i++) {
        rp_server_free(s->servers[i]);
        rp_store_free(s->stores[i]);
        (void)unlink(s->addresses[i] + strlen("unix:"));
    }
    assert_int_equal(rmdir(s->folder), 0);
}

static int64_t inserts_of(rp_store *store)
{
    fixture f = {.store = store};

    return table(&f).inserts;
}

static void a_shard_comes_and_goes(void **state)
{
    (void)state;
    fixture f = small("catch");
    shards s;
    int64_t updates = 0, steps, sum;

    f.settings.start = 100;
    f.options.threshold = (double)NAN;
    f.options.trim_every = 20;
    open_shards(&s, &f);
    open_apex(&f);
    start(&f, RP_APEX_LEARNER, 0);
    start(&f, RP_APEX_ACTOR, 0);
    for (size_t i = 0; i < rp_test_length(3, 1); i++) {
        updates = await_updates(&f, updates + 100);
        stop_shard(&s, 1);
        while (part(&f, RP_APEX_LEARNER).shards_away == 0)
            updates = await_updates(&f, updates + 20);
        serve_shard(&s, 1);
        while (part(&f, RP_APEX_LEARNER).shards_away > 0)
            updates = await_updates(&f, updates + 20);
    }
    (void)await_updates(&f, updates + 100);
    steps = part(&f, RP_APEX_LEARNER).learner_steps;
    rp_apex_stop(f.apex);
    sum = inserts_of(s.stores[0]) + inserts_of(s.stores[1]);
    assert_true(steps > sum / 2 && steps <= sum); /* each item was counted once */
    close_shards(&s, &f);
}

/* It has the parameters, so that no part can go on without it. */
static void all_parts_wait_for_the_first_shard(void **state)
{
    (void)state;
    fixture f = small("catch");
    shards s;
    int64_t updates;

    f.options.threshold = (double)NAN;
    open_shards(&s, &f);
    open_apex(&f);
    start(&f, RP_APEX_LEARNER, 0);
    start(&f, RP_APEX_ACTOR, 0);
    start(&f, RP_APEX_EVALUATOR, 0);
    updates = await_updates(&f, 100);
    stop_shard(&s, 0);
    await_wait(&f, RP_APEX_EVALUATOR, "the replay: unix:");
    await_wait(&f, RP_APEX_LEARNER, "the replay: unix:");
    serve_shard(&s, 0);
    await_updates(&f, updates + 200);
    close_shards(&s, &f);
}

/* Draws samples of one shard as the learner would. */
static void draw(rp_store *store, size_t count)
{
    rp_table *replay = rp_store_find_table(store, (rp_string){"replay", 6});
    rp_sample samples[32];
    rp_error err;

    assert_non_null(replay);
    for (size_t n, i = 0; i < count; i += n) {
        assert_ok_err(rp_table_sample(replay, &(rp_sample_options){.count = 32}, samples, &n,
                                      rp_wait_ms(LONG_MS), &err),
                      &err);
        rp_samples_release(samples, n);
    }
    rp_table_unref(replay);
}

/* By chance one shard gives more samples than the other: neither may stop the program. */
static void shards_are_paced_together(void **state)
{
    (void)state;
    fixture f = small("catch");
    shards s;
    size_t many = rp_test_length(40000, 10000);
    int64_t updates;

    f.settings.start = 100;
    f.options.threshold = (double)NAN;
    f.options.trim_every = 20;
    open_shards(&s, &f);
    open_apex(&f);
    start(&f, RP_APEX_LEARNER, 0);
    start(&f, RP_APEX_ACTOR, 0);
    updates = await_updates(&f, 50);
    draw(s.stores[1], many);
    await_updates(&f, updates + 300);
    rp_apex_free(f.apex);
    f.apex = NULL;

    open_apex(&f); /* without a learner the actor stops */
    start(&f, RP_APEX_ACTOR, 0);
    await_wait(&f, RP_APEX_ACTOR, "the learner: ");
    assert_true(inserts_of(s.stores[0]) + inserts_of(s.stores[1]) < (int64_t)many);
    close_shards(&s, &f);
}

/* The learner waits until the limiter of each shard has its first items. So the actors fill a
 * shard that came late, although they are ahead of the learner. */
static void actors_fill_a_shard_that_came_late(void **state)
{
    (void)state;
    fixture f = small("catch");
    shards s;
    int64_t updates;

    f.settings.start = 1000;
    f.options.threshold = (double)NAN;
    open_shards(&s, &f);
    stop_shard(&s, 1);
    open_apex(&f);
    start(&f, RP_APEX_LEARNER, 0);
    start(&f, RP_APEX_ACTOR, 0);
    (void)await_updates(&f, 20);
    rp_apex_free(f.apex);
    f.apex = NULL;

    open_apex(&f);
    start(&f, RP_APEX_ACTOR, 0);
    await_wait(&f, RP_APEX_ACTOR, "the learner: ");
    serve_shard(&s, 1);
    start(&f, RP_APEX_LEARNER, 0);
    updates = await_updates(&f, 1);
    await_updates(&f, updates + 300);
    assert_true(inserts_of(s.stores[1]) >= f.settings.start / 2);
    close_shards(&s, &f);
}

static void a_learner_of_other_settings_is_refused(void **state)
{
    (void)state;
    fixture f = small("catch");
    rp_status st = RP_OK;
    bool done = false;

    f.options.save_every = 10;
    f.options.threshold = (double)NAN;
    open_store(&f);
    open_apex(&f);
    start_all(&f);
    await_updates(&f, 100);
    rp_apex_free(f.apex);
    f.apex = NULL;

    f.settings.hidden = 33;
    open_apex(&f);
    start(&f, RP_APEX_LEARNER, 0);
    while (!done) st = rp_apex_wait(f.apex, 100, &done, &f.err);
    assert_int_equal(st, RP_INVALID);
    assert_non_null(strstr(f.err.text, "learner: snapshot: part 'params'"));
    close_fixture(&f);
}

/* Writes an item of one row of each column, as anybody may who can write to the table. */
static void put(fixture *f, const char *name, const rp_value *values, size_t count)
{
    const rp_trajectory_writer_options options = {
        .column = {.history = 1, .chunk_length = 1, .chunk = {.codec = RP_CODEC_ZSTD}}};
    rp_trajectory_writer *writer = NULL;
    rp_item_column columns[2];
    rp_ref refs[2];

    assert_true(count <= 2);
    for (size_t i = 0; i < count; i++)
        columns[i] = (rp_item_column){&refs[i], 1, true, values[i].name};
    assert_ok(rp_trajectory_writer_new(f->client, &options, rp_wait_forever(), &writer, NULL));
    assert_ok(rp_trajectory_writer_append(writer, values, count, 0, refs, NULL));
    assert_ok(rp_trajectory_writer_create_item(writer, &(rp_new_item){name, 1, columns, count},
                                               rp_wait_forever(), NULL, NULL));
    assert_ok(rp_trajectory_writer_flush(writer, 0, rp_wait_forever(), NULL));
    rp_trajectory_writer_free(writer);
}

static void put_parameters(fixture *f, size_t count, float number)
{
    const int64_t head[] = {1000000, -5};
    float *numbers = calloc(count, sizeof *numbers);

    for (size_t i = 0; i < count; i++) numbers[i] = number;
    put(f, "variables",
        (const rp_value[]){{0, "head", {RP_INT64, {1, {2}}, head}},
                           {1, "numbers", {RP_FLOAT32, {1, {(int64_t)count}}, numbers}}},
        2);
    free(numbers);
}

static void put_snapshot(fixture *f, size_t size)
{
    uint8_t *bytes = calloc(size, 1);

    put(f, "snapshot",
        (const rp_value[]){{0, "state", {RP_UINT8, {1, {(int64_t)size}}, bytes}}}, 1);
    free(bytes);
}

static int64_t publications(fixture *f)
{
    rp_table *variables = rp_store_find_table(f->store, (rp_string){"variables", 9});
    rp_table_info info;

    rp_table_get_info(variables, &info);
    rp_table_unref(variables);
    return info.inserts;
}

/* Waits until the trouble of a part begins like this. */
static void await_trouble(fixture *f, rp_apex_role role, const char *what)
{
    bool done = false;

    while (strncmp(part(f, role).trouble, what, strlen(what)) != 0) {
        assert_ok_err(rp_apex_wait(f->apex, 5, &done, &f->err), &f->err);
        assert_false(done);
    }
}

static void bad_parameters_end_no_part(void **state)
{
    (void)state;
    static const float bad[] = {NAN, 0, INFINITY, 3e38F};
    fixture f = small("catch");
    int64_t updates = 0, published;
    bool done;

    f.options.threshold = (double)NAN;
    f.options.pull_every = 40;
    f.options.publish_every = 1000000000; /* only to replace what others wrote */
    f.options.tend_ms = 200;
    open_store(&f);
    open_apex(&f);
    start_all(&f);
    for (size_t i = 0; i < rp_test_length(4, 2); i++) {
        updates = await_updates(&f, updates + 20);
        do { /* the learner may be faster than the actor */
            put_parameters(&f, rp_apex_parameter_count(f.apex) - (bad[i] == 0), bad[i]);
            published = publications(&f);
            while (publications(&f) <= published && part(&f, RP_APEX_ACTOR).trouble[0] == '\0')
                assert_ok_err(rp_apex_wait(f.apex, 1, &done, &f.err), &f.err);
        } while (part(&f, RP_APEX_ACTOR).trouble[0] == '\0');
        while (publications(&f) <= published)
            assert_ok_err(rp_apex_wait(f.apex, 5, &done, &f.err), &f.err);
        while (part(&f, RP_APEX_ACTOR).trouble[0] != '\0') /* it has those of the learner */
            assert_ok_err(rp_apex_wait(f.apex, 5, &done, &f.err), &f.err);
    }
    assert_non_null(strstr(part(&f, RP_APEX_LEARNER).trouble, "written to table 'variables'"));
    await_updates(&f, updates + 200);
    close_fixture(&f);
}

/* Parts that have no parameters yet wait until the learner replaces the bad ones. */
static void parts_without_parameters_wait_for_good_ones(void **state)
{
    (void)state;
    fixture f = small("catch");

    f.options.threshold = (double)NAN;
    f.options.tend_ms = 200;
    open_store(&f);
    open_apex(&f);
    start(&f, RP_APEX_LEARNER, 0);
    await_wait(&f, RP_APEX_LEARNER, "the actors");
    put_parameters(&f, 7, 0);
    start(&f, RP_APEX_ACTOR, 0);
    start(&f, RP_APEX_EVALUATOR, 0);
    await_updates(&f, 100);
    close_fixture(&f);
}

static void a_bad_snapshot_does_not_stop_a_learner(void **state)
{
    (void)state;
    fixture f = small("catch");

    f.options.threshold = (double)NAN;
    f.options.save_every = 50;
    open_store(&f);
    open_apex(&f);
    start(&f, RP_APEX_LEARNER, 0);
    start(&f, RP_APEX_ACTOR, 0);
    await_updates(&f, 100);
    rp_apex_free(f.apex);
    f.apex = NULL;

    put_snapshot(&f, 1000);
    open_apex(&f);
    start(&f, RP_APEX_LEARNER, 0);
    await_trouble(&f, RP_APEX_LEARNER, "begins with the parameters in the replay: safetensors");
    rp_apex_free(f.apex); /* leaves a good one */
    f.apex = NULL;

    put_snapshot(&f, 64 << 20); /* a few bytes of zstd, which are not decoded */
    assert_ok(rp_store_drop_table(f.store, (rp_string){"variables", 9}, &f.err));
    open_apex(&f);
    start(&f, RP_APEX_LEARNER, 0);
    await_trouble(&f, RP_APEX_LEARNER,
                  "begins anew: snapshot: it has 67108864 bytes, and this ");
    start(&f, RP_APEX_ACTOR, 0);
    await_updates(&f, 100);
    close_fixture(&f);
}

static void options_and_parts_are_checked(void **state)
{
    (void)state;
    fixture f = small("catch");

    open_store(&f);
    f.options.settings = &f.settings;
    f.options.client = f.client;
    f.options.actors = 0;
    assert_int_equal(rp_apex_new(NULL, &f.options, &f.apex, &f.err), RP_INVALID);
    assert_string_equal(f.err.text, "apex: actors must be from 1 to 4096, got 0");
    f.options.actors = 2;
    open_apex(&f);
    assert_int_equal(rp_apex_start(f.apex, RP_APEX_ACTOR, 2, &f.err), RP_INVALID);
    assert_string_equal(f.err.text, "apex: there is no actor 2 of 2");
    start(&f, RP_APEX_ACTOR, 1);
    assert_int_equal(rp_apex_start(f.apex, RP_APEX_ACTOR, 1, &f.err), RP_EXISTS);
    close_fixture(&f);
}

static rp_status a_life(const rp_allocator *alloc)
{
    fixture f = small("catch");
    rp_status st;

    f.options.settings = &f.settings;
    st = rp_apex_new(alloc, &f.options, &f.apex, &f.err);
    rp_apex_free(f.apex);
    return st;
}

static void running_out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(a_life);
}

RP_TESTS(apex)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actors_and_a_learner_solve_catch),
        cmocka_unit_test(parts_say_what_they_wait_for),
        cmocka_unit_test(the_learner_removes_the_excess_in_bulk),
        cmocka_unit_test(a_restarted_learner_goes_on),
        cmocka_unit_test(parts_outlive_the_loss_of_all_tables),
        cmocka_unit_test(a_replay_that_stays_away_ends_a_part),
        cmocka_unit_test(a_shard_comes_and_goes),
        cmocka_unit_test(all_parts_wait_for_the_first_shard),
        cmocka_unit_test(shards_are_paced_together),
        cmocka_unit_test(actors_fill_a_shard_that_came_late),
        cmocka_unit_test(a_learner_of_other_settings_is_refused),
        cmocka_unit_test(bad_parameters_end_no_part),
        cmocka_unit_test(parts_without_parameters_wait_for_good_ones),
        cmocka_unit_test(a_bad_snapshot_does_not_stop_a_learner),
        cmocka_unit_test(options_and_parts_are_checked),
        cmocka_unit_test(running_out_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
