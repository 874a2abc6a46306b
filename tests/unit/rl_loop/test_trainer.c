/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "reprise/rl/dqn.h"
#include "reprise/rl/safetensors.h"
#include "reprise/rl/snapshot.h"
#include "reprise/trajectory_writer.h"
#include "support/unit.h"

/* A run of DQN in a directory of its own. */
typedef struct fixture {
    char directory[64];
    rp_dqn_settings settings;
    rp_trainer_options options;
    rp_trainer *trainer;
    rp_trainer_result result;
    int64_t steps_left; /* until should_stop() says so */
    int reports;
    rp_error err;
} fixture;

static rp_status make_agent(void *ctx, const rp_trainer_parts *parts, rp_agent **out,
                            rp_error *err)
{
    const fixture *f = ctx;
    const rp_dqn_options options = {&f->settings, parts->spec, parts->store, parts->client,
                                    parts->seed};

    return rp_dqn_new(parts->alloc, &options, out, err);
}

static bool should_stop(void *ctx)
{
    fixture *f = ctx;

    return f->steps_left-- <= 0;
}

static void on_progress(void *ctx, const rp_run_progress *progress)
{
    fixture *f = ctx;

    assert_true(progress->steps >= 0);
    f->reports++;
}

static void init(fixture *f, const char *env, int64_t n_step)
{
    memset(f, 0, sizeof *f);
    rp_dqn_settings_init(&f->settings, env);
    f->settings.hidden = 16;
    f->settings.batch = 16;
    f->settings.start = 100;
    f->settings.copies = 3;
    f->settings.capacity = 500;
    f->settings.n_step = n_step;
    f->options = (rp_trainer_options){.env_class = rp_env_find(env),
                                      .env = {.copies = 3},
                                      .make_agent = make_agent,
                                      .should_stop = should_stop,
                                      .on_progress = on_progress,
                                      .ctx = f,
                                      .seed = 7,
                                      .max_steps = 1800,
                                      .eval_every = 600,
                                      .eval_episodes = 5,
                                      .confirm_episodes = 5,
                                      .inline_evaluation = true,
                                      .keep_going = true};
    f->steps_left = 1000000;
}

static void use_directory(fixture *f)
{
    (void)snprintf(f->directory, sizeof f->directory, "/tmp/reprise-trainer-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    f->options.directory = f->directory;
}

static void run(fixture *f)
{
    assert_ok_err(rp_trainer_new(NULL, &f->options, &f->trainer, &f->err), &f->err);
    assert_ok_err(rp_trainer_run(f->trainer, &f->result, &f->err), &f->err);
}

static void clean(fixture *f)
{
    char command[128];

    rp_trainer_free(f->trainer);
    if (f->directory[0] == '\0') return;
    (void)snprintf(command, sizeof command, "rm -r %s", f->directory);
    assert_int_equal(system(command), 0);
}

static void assert_equal_runs(fixture *a, fixture *b)
{
    rp_policy *policy = NULL;
    rp_agent *agent = rp_trainer_get_agent(a->trainer);

    assert_int_equal(rp_trainer_get_steps(a->trainer), rp_trainer_get_steps(b->trainer));
    assert_int_equal(a->result.progress.updates, b->result.progress.updates);
    assert_int_equal(a->result.progress.episodes, b->result.progress.episodes);
    assert_true(a->result.progress.updates > 300);
    assert_ok(agent->type->new_policy(agent, 1, &policy, &a->err));
    assert_memory_equal(rp_trainer_get_parameters(a->trainer),
                        rp_trainer_get_parameters(b->trainer),
                        policy->parameter_count * sizeof(rp_real));
    rp_policy_free(policy);
}

/* Runs once without a break and once in three parts, each in a trainer of its own. */
static void compare(const char *env, int64_t n_step, int64_t first, int64_t second)
{
    fixture whole, parts;

    init(&whole, env, n_step);
    run(&whole);

    init(&parts, env, n_step);
    use_directory(&parts);
    parts.steps_left = first;
    run(&parts);
    assert_true(parts.result.stopped);
    rp_trainer_free(parts.trainer);
    parts.options.resume = true;
    parts.steps_left = second;
    run(&parts);
    rp_trainer_free(parts.trainer);
    parts.steps_left = 1000000;
    run(&parts);
    assert_false(parts.result.stopped);

    assert_equal_runs(&whole, &parts);
    clean(&whole);
    clean(&parts);
}

static void a_resumed_run_equals_one_without_a_break(void **state)
{
    (void)state;
    compare("cartpole", 3, 250, 123);
}

static void so_it_does_with_one_step_and_with_many(void **state)
{
    (void)state;
    compare("cartpole", 1, 199, 50);
    compare("catch", 7, 203, 101);
}

static void a_run_that_stops_before_its_first_update_can_be_resumed(void **state)
{
    (void)state;
    compare("cartpole", 3, 0, 5);
}

static void snapshots_are_written_on_the_way(void **state)
{
    (void)state;
    fixture f, again;

    init(&f, "cartpole", 3);
    use_directory(&f);
    f.options.save_every = 300;
    f.settings.max_loss = 1e9;
    run(&f);
    rp_trainer_free(f.trainer);
    /* A run that fails leaves the snapshot before it: a rate that diverges at once. */
    again = f;
    again.options.ctx = &again;
    again.options.resume = true;
    again.options.max_steps = 3600;
    again.settings.rate = 1e9;
    assert_ok_err(rp_trainer_new(NULL, &again.options, &again.trainer, &again.err), &again.err);
    assert_int_equal(rp_trainer_get_steps(again.trainer), 1800);
    assert_int_equal(rp_trainer_run(again.trainer, &again.result, &again.err), RP_PRECONDITION);
    rp_trainer_free(again.trainer);
    again.settings.rate = 1e-3;
    assert_ok_err(rp_trainer_new(NULL, &again.options, &again.trainer, &again.err), &again.err);
    assert_true(rp_trainer_get_steps(again.trainer) < 2400);
    clean(&again);
}

static void directories_are_not_mixed_up(void **state)
{
    (void)state;
    fixture f;

    init(&f, "catch", 1);
    use_directory(&f);
    f.options.resume = true;
    assert_int_equal(rp_trainer_new(NULL, &f.options, &f.trainer, &f.err), RP_NOT_FOUND);
    assert_non_null(strstr(f.err.text, "there is no run to resume"));
    f.options.resume = false;
    f.options.max_steps = 300;
    run(&f);
    rp_trainer_free(f.trainer);
    f.trainer = NULL;
    assert_int_equal(rp_trainer_new(NULL, &f.options, &f.trainer, &f.err), RP_EXISTS);
    f.options.resume = true;
    f.settings.hidden = 8;
    assert_int_equal(rp_trainer_new(NULL, &f.options, &f.trainer, &f.err), RP_INVALID);
    assert_non_null(strstr(f.err.text, "it is of other settings"));
    clean(&f);
}

/* Inserts bytes as the snapshot of a client. */
static void insert_snapshot(rp_client *client, const uint8_t *bytes, size_t size)
{
    const rp_trajectory_writer_options options = {.column = {.history = 1, .chunk_length = 1}};
    const rp_value value = {0, "state", {RP_UINT8, {1, {(int64_t)size}}, bytes}};
    rp_ref ref;
    const rp_item_column column = {&ref, 1, true, "state"};
    rp_trajectory_writer *writer = NULL;
    rp_error err;

    assert_ok(rp_trajectory_writer_new(client, &options, rp_wait_forever(), &writer, &err));
    assert_ok(rp_trajectory_writer_append(writer, &value, 1, 0, &ref, &err));
    assert_ok(rp_trajectory_writer_create_item(
        writer, &(rp_new_item){"snapshot", 1, &column, 1}, rp_wait_forever(), NULL, &err));
    assert_ok(rp_trajectory_writer_flush(writer, 0, rp_wait_forever(), &err));
    rp_trajectory_writer_free(writer);
}

static void a_snapshot_of_another_format_is_refused(void **state)
{
    (void)state;
    uint32_t format = 2, number = 7;
    const rp_state_part part = {"number", &number, sizeof number};
    const rp_safetensor tensors[] = {
        {"format", 6, "U8", 1, {sizeof format}, (const uint8_t *)&format, sizeof format},
        {"number", 6, "U8", 1, {sizeof number}, (const uint8_t *)&number, sizeof number}};
    uint8_t file[1024];
    rp_store *store = NULL;
    rp_client *client = NULL;
    rp_error err;

    assert_ok(rp_store_new(NULL, &store, &err));
    assert_ok(rp_client_local(store, NULL, &client, &err));
    assert_ok_err(rp_snapshot_put(NULL, client, &part, 1, rp_wait_forever(), &err), &err);
    number = 0;
    assert_ok_err(rp_snapshot_get(NULL, client, &part, 1, rp_wait_forever(), &err), &err);
    assert_int_equal(number, 7);
    insert_snapshot(client, file, rp_safetensors_write(tensors, 2, file, sizeof file));
    assert_int_equal(rp_snapshot_get(NULL, client, &part, 1, rp_wait_forever(), &err),
                     RP_INVALID);
    assert_string_equal(
        err.text, "snapshot: it has format 2, and this version of reprise reads 1: "
                  "continue the run with the version that began it, or begin another one");
    rp_client_free(client);
    rp_store_free(store);
}

static void the_evaluator_finds_catch_solved(void **state)
{
    (void)state;
    fixture f;

    init(&f, "catch", 1);
    f.settings.hidden = 64;
    f.settings.batch = 64;
    f.settings.capacity = 10000;
    f.options.inline_evaluation = false;
    f.options.keep_going = false;
    f.options.eval_every = 300;
    f.options.eval_episodes = 20;
    f.options.confirm_episodes = 100;
    f.options.max_steps = 100000;
    f.options.threshold = 0.95;
    f.options.progress_ns = 1;
    run(&f);
    assert_true(f.result.solved);
    assert_true(f.result.confirmed.mean_return >= 0.95);
    assert_int_equal(f.result.confirmed.episodes, 100);
    assert_true(f.result.solved_steps <= f.result.progress.steps);
    assert_true(f.reports > 2);
    clean(&f);
}

static void assert_threshold(double given, bool has_threshold, double expected)
{
    fixture f;

    init(&f, "cartpole", 1);
    f.options.threshold = given;
    f.options.has_threshold = has_threshold;
    assert_ok_err(rp_trainer_new(NULL, &f.options, &f.trainer, &f.err), &f.err);
    assert_true(rp_trainer_get_threshold(f.trainer) == expected);
    clean(&f);
}

static void a_threshold_of_zero_is_zero_if_it_is_given(void **state)
{
    (void)state;
    assert_threshold(0, false, 475);
    assert_threshold(0, true, 0);
    assert_threshold(-0.0, true, 0);
    assert_threshold(3, false, 3);
    assert_threshold(3, true, 3);
}

RP_TESTS(trainer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resumed_run_equals_one_without_a_break),
        cmocka_unit_test(so_it_does_with_one_step_and_with_many),
        cmocka_unit_test(a_run_that_stops_before_its_first_update_can_be_resumed),
        cmocka_unit_test(snapshots_are_written_on_the_way),
        cmocka_unit_test(directories_are_not_mixed_up),
        cmocka_unit_test(a_snapshot_of_another_format_is_refused),
        cmocka_unit_test(the_evaluator_finds_catch_solved),
        cmocka_unit_test(a_threshold_of_zero_is_zero_if_it_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
