/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/train/train_program.h"

#include <stdlib.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "support/unit.h"

static rp_program program; /* too large for a stack */
static rp_problem problem;
static rp_flags given;

static int begin(void **state)
{
    (void)state;
    given = (rp_flags){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    rp_program_deinit(&program);
    program = (rp_program){0};
    return 0;
}

static void give(rp_train_option option, const char *value)
{
    given.list[given.count++] = (rp_flag){option, value};
}

/* Reads the text, then the flags of the command line. */
static rp_status read_text(const char *yaml)
{
    rp_status st;

    rp_program_deinit(&program);
    rp_program_init(&program, NULL);
    st = rp_program_read_text(&program, "f.yaml", yaml, strlen(yaml), &problem);
    return st == RP_OK ? rp_program_merge(&program, &given, &problem) : st;
}

static void accept(const char *yaml)
{
    if (read_text(yaml) != RP_OK) fail_msg("%s: %s", yaml, problem.text);
}

static void refuse(const char *yaml, const char *message)
{
    rp_status st = read_text(yaml);

    if (st == RP_INVALID && strcmp(problem.text, message) == 0) return;
    fail_msg("%s:\n  %s\ninstead of\n  %s", yaml, st == RP_OK ? "(accepted)" : problem.text,
             message);
}

static size_t option_of(const char *name)
{
    size_t i = 0;

    while (strcmp(rp_train_command.options[i].name, name) != 0) i++;
    return i;
}

/* The value of an option is `value`; NULL: it was not given. */
static void expect(const char *name, const char *value)
{
    const char *found = rp_flags_get(&program.flags, option_of(name));

    if (value == NULL ? found == NULL : found != NULL && strcmp(found, value) == 0) return;
    fail_msg("--%s is %s instead of %s", name, found, value);
}

/* The program as a file. In memory of malloc(). */
static char *print(bool json)
{
    static rp_training t;
    rp_text_buffer out = {0};
    char *text;

    t = (rp_training){.flags = &program.flags};
    assert_true(rp_run_folder_set_agent(&t.folder, program.flags.words[0]));
    assert_int_equal(rp_train_settings(&t, rp_train_get(&t, RP_TRAIN_ENV), &problem), RP_OK);
    rp_program_print(&program, &t.folder, json, &out);
    assert_false(out.failed);
    text = strdup(out.text);
    rp_text_buffer_deinit(&out);
    return text;
}

static const char whole[] = "agent: apex-dpg\n"
                            "env: pendulum\n"
                            "seed: 18446744073709551615\n"
                            "seconds: 60\n"
                            "dir: \"a folder\"\n"
                            "report: host:1\n"
                            "report_name: \"the name\"\n"
                            "report_ca: ca.pem\n"
                            "image: registry/x:1\n"
                            "replay: {addresses: [a:1, b:2], serve: localhost:3}\n"
                            "learner: {steps: 1_000}\n"
                            "actors: {count: 3}\n"
                            "evaluator: {episodes: 4, confirm_episodes: 5, threshold: -1.5,\n"
                            "            keep_going: true}\n"
                            "settings: {n_step: 2, rate: 1e-4, prioritized: false}\n";

static void a_file_is_a_form_of_the_options(void **state)
{
    (void)state;
    accept("agent: apex-dqn\nenv: CartPole-v1\nlearner: {steps: 1_000}\nactors: {count: 3}\n"
           "evaluator: {episodes: 4, confirm_episodes: 5, threshold: -1.5, keep_going: true}\n"
           "seconds: 60\nreport: host:1\nreport_name: x\nreport_ca: ca.pem\nimage: i\n"
           "settings: {n_step: 2, rate: 1e-4, dueling: false}\n");
    assert_string_equal(program.flags.words[0], "apex-dqn");
    expect("env", "CartPole-v1");
    expect("steps", "1_000");
    expect("actors", "3");
    expect("eval-episodes", "4");
    expect("confirm-episodes", "5");
    expect("threshold", "-1.5");
    expect("keep-going", "true");
    expect("seconds", "60");
    expect("report", "host:1");
    expect("report-name", "x");
    expect("report-ca", "ca.pem");
    expect("image", "i");
    expect("n-step", "2");
    expect("rate", "1e-4");
    expect("dueling", "false");
    expect("hidden", NULL);
    expect("shards", NULL);
    expect("serve", NULL);
    expect("dir", NULL);
}

static void the_command_line_replaces_the_file(void **state)
{
    (void)state;
    give(RP_TRAIN_ACTORS, "5");
    give((rp_train_option)option_of("hidden"), "32");
    give(RP_TRAIN_SHARDS, "7");
    accept("agent: apex-dqn\nenv: catch\nactors: {count: 3}\nsettings: {hidden: 16, batch: 8}\n"
           "replay: {addresses: [a:1, b:2]}\n");
    expect("actors", "5");
    expect("hidden", "32");
    expect("batch", "8");
    expect("shards", "7");
    assert_int_equal(program.flags.count, 5); /* env, batch and the three */

    given.words[0] = "apex-dpg";
    given.word_count = 1;
    accept("agent: apex-dqn\nenv: pendulum\n");
    assert_string_equal(program.flags.words[0], "apex-dpg");
    given.words[0] = "dqn";
    refuse("agent: apex-dqn\n",
           "--program describes apex-dqn, apex-dpg or apex-sac, not 'dqn'");
}

static void the_whole_program_has_no_addresses_of_shards(void **state)
{
    (void)state;
    accept(whole);
    expect("replay", NULL);
    expect("shards", NULL); /* threads have one store */
    expect("serve", "localhost:3");
    expect("dir", "a folder");
    accept("agent: apex-dqn\nreplay: {shards: 4}\n");
    expect("shards", NULL);

    give(RP_TRAIN_PROCESSES, "true");
    accept(whole);
    expect("shards", "2");
    expect("dir", "a folder");
    accept("agent: apex-dqn\nreplay: {shards: 4}\n");
    expect("shards", "4");

    given.list[0] = (rp_flag){RP_TRAIN_EXPORT, "slurm"};
    accept(whole);
    expect("shards", "2");
    expect("dir", NULL); /* the job decides */
}

static void a_role_finds_its_addresses(void **state)
{
    (void)state;
    give(RP_TRAIN_ROLE, "learner");
    accept(whole);
    expect("replay", "a:1,b:2");
    expect("serve", NULL);
    expect("dir", NULL);

    given.list[0].value = "evaluator";
    accept(whole);
    expect("replay", "a:1,b:2");
    expect("dir", "a folder");

    given.list[0].value = "replay";
    accept(whole);
    expect("replay", NULL);
    expect("serve", "a:1");
    expect("dir", "a folder");

    give(RP_TRAIN_INDEX, "1");
    accept(whole);
    expect("serve", "b:2");
    expect("dir", "a folder");
    accept("agent: apex-dqn\nreplay: {serve: c:3}\ndir: d\n");
    expect("serve", "c:3");
    expect("dir", "d");

    given.list[1].value = "2";
    refuse(whole, "--index: expected a whole number from 0 to 1, got '2'");
    give(RP_TRAIN_REPLAY, "else:1");
    given.list[0].value = "actor";
    accept(whole);
    expect("replay", "else:1");
}

static void a_resumed_run_keeps_its_settings(void **state)
{
    (void)state;
    give(RP_TRAIN_RESUME, "true");
    accept(whole);
    expect("n-step", NULL);
    expect("seed", NULL);
    expect("env", "pendulum");
    expect("actors", "3");
}

static void errors_name_place_key_and_what_is_allowed(void **state)
{
    (void)state;
    refuse("", "f.yaml:1:1: an empty file; --print-program writes a program");
    refuse("[1]", "f.yaml:1:1: expected keys with values, got a list");
    refuse("env: catch\n",
           "f.yaml:1:1: agent: is missing; expected apex-dqn, apex-dpg or apex-sac");
    refuse("agent: dqn\n",
           "f.yaml:1:8: agent: expected apex-dqn, apex-dpg or apex-sac, got 'dqn'");
    refuse("agent: [apex-dqn]\n", "f.yaml:1:8: agent: expected a value, got a list");
    refuse("agent: apex-dqn\nenv: catsh\n",
           "f.yaml:2:6: env: unknown value 'catsh', did you mean 'catch'? (acrobot, bricks, "
           "cartpole, catch, deep_sea, lunarlander, memory_chain, mountain_car, "
           "mountain_car_continuous or pendulum)");
    refuse("agent: apex-dqn\nactors: {count: 0}\n",
           "f.yaml:2:17: actors.count: expected a whole number from 1 to 4096, got '0'");
    refuse("agent: apex-dqn\nactors: {counts: 2}\n",
           "f.yaml:2:10: actors.counts: unknown key, did you mean 'count'?");
    refuse("agent: apex-dqn\nactor: {count: 2}\n",
           "f.yaml:2:1: actor: unknown key, did you mean 'actors'?");
    refuse("agent: apex-dqn\nactors: 3\n", "f.yaml:2:9: actors: expected a map, got a value");
    refuse("agent: apex-dqn\nactors:\n", "f.yaml:2:8: actors: has no value");
    refuse("agent: apex-dqn\nsettings: {hiden: 2}\n",
           "f.yaml:2:12: settings.hiden: unknown key, did you mean 'hidden'?");
    refuse("agent: apex-dqn\nsettings: {deviation: 1}\n",
           "f.yaml:2:12: settings.deviation: unknown key; --print-program writes a file with "
           "all keys");
    refuse("agent: apex-dqn\nsettings: {n-step: 2}\n",
           "f.yaml:2:12: settings.n-step: unknown key, did you mean 'n_step'?");
    refuse("agent: apex-dqn\nsettings: {discount: 1.5}\n",
           "f.yaml:2:22: settings.discount: expected a number from 0 to 1, got '1.5'");
    refuse("agent: apex-dqn\nsettings: {dueling: 1}\n",
           "f.yaml:2:21: settings.dueling: expected true or false, got '1'");
    refuse(
        "agent: apex-dqn\nsettings: {hidden: \"64\"}\n",
        "f.yaml:2:20: settings.hidden: expected a whole number from 1 to 65536, got the string "
        "'64'");
    refuse("agent: apex-dqn\nreplay: {addresses: \"a:1,b:2\"}\n",
           "f.yaml:2:21: replay.addresses: expected a list such as [a:8000, b:8000], got "
           "'a:1,b:2'");
    refuse("agent: apex-dqn\nreplay: {shards: 3, addresses: [a:1]}\n",
           "f.yaml:1:1: replay: has 3 shards and 1 address; leave shards out");
    refuse("agent: apex-dqn\nreplay: {servo: x}\n",
           "f.yaml:2:10: replay.servo: unknown key, did you mean 'serve'?");
    refuse("agent: apex-dqn\nagent: apex-dqn\n",
           "f.yaml:2:1: agent: given twice, first in line 1");
}

static void a_command_without_agent_and_file_is_refused(void **state)
{
    (void)state;
    rp_program_init(&program, NULL);
    assert_int_equal(rp_program_merge(&program, &given, &problem), RP_INVALID);
    assert_non_null(strstr(problem.text, "usage: reprise train"));
}

static void printed_programs_read_back_equal(void **state)
{
    static const char *const files[] = {
        whole, "agent: apex-dqn\nenv: lunarlander\nreplay: {shards: 3}\n",
        "agent: apex-dqn\nenv: cartpole\nseed: 1_0\n"};

    (void)state;
    give(RP_TRAIN_PRINT_PROGRAM, "true");
    for (size_t i = rp_env_find("lunarlander") == NULL ? 2 : 0; i < COUNT_OF(files); i++)
        for (int json = 0; json < 2; json++) {
            char *first, *second;

            accept(files[i]);
            first = print(json == 1);
            accept(first);
            second = print(json == 1);
            assert_string_equal(first, second);
            assert_non_null(strstr(first, json == 1 ? "\"settings\":{" : "\nsettings:\n"));
            free(first);
            free(second);
        }
    accept(whole);
    for (int json = 0; json < 2; json++) {
        char *text = print(json == 1);

        accept(text);
        free(text);
        assert_int_equal(program.address_count, 2);
        assert_string_equal(program.addresses[1], "b:2");
        expect("dir", "a folder");
        expect("serve", "localhost:3");
        expect("seed", "18446744073709551615");
        expect("steps", "1000");
        expect("actors", "3");
        expect("threshold", "-1.5");
        expect("keep-going", "true");
        expect("report-name", "the name");
        expect("n-step", "2");
        expect("prioritized", "false");
    }
    assert_null(strstr(whole, "shards")); /* follows from addresses, and is not printed */
}

static rp_status read_all(const rp_allocator *alloc)
{
    static rp_program p;
    rp_problem ignored;
    rp_status st;

    rp_program_init(&p, alloc);
    st = rp_program_read_text(&p, "f", whole, sizeof whole - 1, &ignored);
    if (st == RP_OK) st = rp_program_merge(&p, &given, &ignored);
    rp_program_deinit(&p);
    return st;
}

static void running_out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(read_all);
    give(RP_TRAIN_ROLE, "actor");
    rp_test_survives_oom(read_all);
    given.list[0].value = "replay";
    rp_test_survives_oom(read_all);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

RP_TESTS(train_program)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_a_form_of_the_options),
        TEST(the_command_line_replaces_the_file),
        TEST(the_whole_program_has_no_addresses_of_shards),
        TEST(a_role_finds_its_addresses),
        TEST(a_resumed_run_keeps_its_settings),
        TEST(errors_name_place_key_and_what_is_allowed),
        TEST(a_command_without_agent_and_file_is_refused),
        TEST(printed_programs_read_back_equal),
        TEST(running_out_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
