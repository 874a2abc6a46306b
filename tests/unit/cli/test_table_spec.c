/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/table_spec.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#include "support/unit.h"
#include "table/rate_limiter.h"

static const uint64_t memory = UINT64_C(1000000);

static rp_arena arena;
static rp_table_settings table;
static rp_problem problem;

static int begin(void **state)
{
    (void)state;
    rp_arena_init(&arena, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    rp_arena_deinit(&arena);
    return 0;
}

static rp_status parse(const char *text)
{
    rp_status st = rp_table_spec_parse(&table, &arena, "--table", text, memory, &problem);

    return st == RP_OK ? rp_table_settings_finish(&table, &problem) : st;
}

static rp_table_options options_of(const char *text)
{
    if (parse(text) != RP_OK) fail_msg("%s: %s", text, problem.text);
    return rp_table_settings_options(&table);
}

static void assert_refused(const char *text, const char *message)
{
    assert_int_equal(parse(text), RP_INVALID);
    if (strcmp(problem.text, message) != 0)
        fail_msg("%s:\n  %s\ninstead of\n  %s", text, problem.text, message);
}

static void a_name_and_a_sampler_are_enough(void **state)
{
    rp_table_options o = options_of("replay:prioritized");

    (void)state;
    assert_string_equal(o.name, "replay");
    assert_int_equal(o.sampler.kind, RP_PRIORITIZED);
    assert_true(o.sampler.exponent == 0.6);
    assert_int_equal(o.remover.kind, RP_FIFO);
    assert_int_equal(o.max_size, 1000000);
    assert_int_equal(o.limiter.min_size, 1);
    assert_true(o.limiter.min_diff == -DBL_MAX && o.limiter.max_diff == DBL_MAX);
    assert_int_equal(o.max_times_sampled, 0);
    assert_int_equal(o.max_bytes, 0);
    assert_false(o.soft_limit);
}

static void every_sampler_is_known_by_its_name(void **state)
{
    char text[64];

    (void)state;
    for (int kind = RP_FIFO; kind <= RP_MAX_HEAP; kind++) {
        (void)snprintf(text, sizeof text, "t:%s,remover=%s",
                       rp_selector_name((rp_selector_kind)kind),
                       rp_selector_name((rp_selector_kind)kind));
        assert_int_equal(options_of(text).sampler.kind, kind);
        assert_int_equal(rp_table_settings_options(&table).remover.kind, kind);
    }
}

static void every_key_has_its_effect(void **state)
{
    rp_table_options o =
        options_of("t:prioritized:500,exponent=0.8,remover=prioritized,remover_exponent=-0.4,"
                   "min_size=10,samples_per_insert=4,error_buffer=100,max_times_sampled=3,"
                   "max_bytes=10%,seed=42");

    (void)state;
    assert_int_equal(o.max_size, 500);
    assert_true(o.sampler.exponent == 0.8);
    assert_int_equal(o.remover.kind, RP_PRIORITIZED);
    assert_true(o.remover.exponent == -0.4);
    assert_int_equal(o.limiter.min_size, 10);
    assert_true(o.limiter.samples_per_insert == 4);
    assert_true(o.limiter.min_diff == -60 && o.limiter.max_diff == 140);
    assert_int_equal(o.max_times_sampled, 3);
    assert_int_equal(o.max_bytes, 100000);
    assert_false(o.soft_limit);
    assert_int_equal(o.seed, 42);
    assert_true(options_of("t:uniform,soft_limit=true").soft_limit);

    o = options_of("t:uniform,samples_per_insert=2,min_diff=-5,max_diff=9");
    assert_true(o.limiter.min_diff == -5 && o.limiter.max_diff == 9);
    assert_int_equal(o.max_size, 1000000);
    assert_int_equal(options_of("t:uniform,max_size=7").max_size, 7);
}

static void a_ratio_has_an_error_buffer_of_its_own(void **state)
{
    rp_table_options o = options_of("t:uniform:1000,samples_per_insert=8,min_size=100");

    (void)state;
    assert_true(o.limiter.max_diff - o.limiter.min_diff == 2 * 80.0); /* a tenth of 800 */
    o = options_of("t:uniform:1000,samples_per_insert=8");
    assert_true(o.limiter.max_diff - o.limiter.min_diff == 2 * 16.0); /* two inserts' worth */
    assert_ok(rp_limiter_check(&o.limiter, NULL));
    o = options_of("t:uniform:1000,samples_per_insert=0.25");
    assert_true(o.limiter.max_diff - o.limiter.min_diff == 2 * 2.0);
    assert_ok(rp_limiter_check(&o.limiter, NULL));
}

static void queues_and_stacks_set_sampler_remover_and_limiter(void **state)
{
    rp_table_options o = options_of("q:queue:1000,max_bytes=4KiB");

    (void)state;
    assert_int_equal(o.sampler.kind, RP_FIFO);
    assert_int_equal(o.remover.kind, RP_FIFO);
    assert_int_equal(o.max_size, 1000);
    assert_int_equal(o.max_times_sampled, 1);
    assert_int_equal(o.max_bytes, 4096);
    assert_true(o.limiter.min_diff == 0 && o.limiter.max_diff == 1000);
    o = options_of("s:stack:5");
    assert_int_equal(o.sampler.kind, RP_LIFO);
    assert_int_equal(o.remover.kind, RP_LIFO);
    assert_true(o.limiter.max_diff == 5);
}

static void mistakes_name_the_table_the_key_and_the_bound(void **state)
{
    (void)state;
    assert_refused("replay",
                   "--table: expected NAME:SAMPLER[:MAX_SIZE][,key=value...], such as "
                   "replay:prioritized:1000000, got 'replay'");
    assert_refused(":fifo", "--table: expected NAME:SAMPLER[:MAX_SIZE][,key=value...], such as "
                            "replay:prioritized:1000000, got ':fifo'");
    assert_refused("t:",
                   "--table t: sampler: expected fifo, lifo, uniform, prioritized, min_heap, "
                   "max_heap, queue or stack, got nothing");
    assert_refused(
        "t:prioritised",
        "--table t: sampler: unknown value 'prioritised', did you mean 'prioritized'? "
        "(fifo, lifo, uniform, prioritized, min_heap, max_heap, queue or stack)");
    assert_refused(
        "t:fifo:0",
        "--table t: max_size: expected a whole number from 1 to 1073741824, got '0'");
    assert_refused("t:fifo:1e6", "--table t: max_size: expected a whole number from 1 to "
                                 "1073741824, got '1e6'");
    assert_refused("t:fifo:10:20", "--table t: max_size: expected a whole number from 1 to "
                                   "1073741824, got '10:20'");
    assert_refused("t:fifo,", "--table t: expected key=value, got ''");
    assert_refused("t:fifo,maxsize=3",
                   "--table t: unknown key 'maxsize', did you mean 'max_size'?");
    assert_refused("t:fifo,zzz=3",
                   "--table t: unknown key 'zzz'; the keys are exponent, remover, "
                   "remover_exponent, max_size, min_size, samples_per_insert, error_buffer, "
                   "min_diff, max_diff, max_times_sampled, max_bytes, soft_limit, seed");
    assert_refused("t:fifo,spi=3",
                   "--table t: unknown key 'spi', did you mean 'samples_per_insert'?");
    assert_refused("t:fifo,alpha=3",
                   "--table t: unknown key 'alpha', did you mean 'exponent'?");
    assert_refused("t:fifo:3,max_size=3", "--table t: max_size: given twice");
    assert_refused("t:fifo,exponent=1", "--table t: exponent: needs a prioritized sampler");
    assert_refused("t:fifo,remover_exponent=1",
                   "--table t: remover_exponent: needs a prioritized remover");
    assert_refused("t:prioritized,exponent=nan",
                   "--table t: exponent: expected a number from -100 to 100, got 'nan'");
    assert_refused("t:fifo,remover=queue",
                   "--table t: remover: expected fifo, lifo, uniform, prioritized, min_heap or "
                   "max_heap, got 'queue'");
    assert_refused("t:fifo,error_buffer=1",
                   "--table t: error_buffer: needs samples_per_insert");
    assert_refused(
        "t:fifo,samples_per_insert=0",
        "--table t: samples_per_insert: expected a number from 1e-12 to 1e+09, got '0'");
    assert_refused("t:fifo,samples_per_insert=1,min_diff=0",
                   "--table t: min_diff: min_diff and max_diff must be given together");
    assert_refused(
        "t:fifo,samples_per_insert=1,error_buffer=3,min_diff=0,max_diff=1",
        "--table t: error_buffer: cannot be given together with min_diff and max_diff");
    assert_refused(
        "t:fifo,soft_limit=true,samples_per_insert=4",
        "--table t: soft_limit: inserts never wait with it, so samples_per_insert is "
        "not allowed");
    assert_refused("t:fifo,soft_limit=yes",
                   "--table t: soft_limit: expected true or false, got 'yes'");
    assert_refused(
        "t:fifo,max_bytes=lots",
        "--table t: max_bytes: expected a size such as 4GiB, or a part of the memory, "
        "at most 100%, got 'lots'");
    assert_refused("t:fifo,seed=-1", "--table t: seed: expected a whole number from 0 to "
                                     "18446744073709551615, got '-1'");
    assert_refused(
        "t:fifo,max_times_sampled=2147483648",
        "--table t: max_times_sampled: expected a whole number from 0 to 2147483647, "
        "got '2147483648'");
    assert_refused("q:queue", "--table q: a queue needs a size, such as q:queue:1000");
    assert_refused("q:stack:5,min_size=2", "--table q: min_size: a stack sets it itself");
    assert_refused("t:fifo:10,min_size=11",
                   "--table t: min_size: must be at most max_size, or nothing can ever be "
                   "sampled; got 11 > 10");
}

static void limiters_are_described_in_words(void **state)
{
    char text[256];

    (void)state;
    (void)options_of("t:fifo,min_size=1");
    assert_string_equal(rp_table_limiter_text(&table, text, sizeof text),
                        "samples wait until there is 1 item; inserts never wait");
    (void)options_of("t:fifo,min_size=7,samples_per_insert=2.5,error_buffer=10");
    assert_string_equal(rp_table_limiter_text(&table, text, sizeof text),
                        "samples wait until there are 7 items; 2.5 samples per insert, inserts "
                        "* 2.5 - samples stays in 7.5 .. 27.5: beyond, one side waits for the "
                        "other");
    (void)options_of("t:queue:9");
    assert_string_equal(rp_table_limiter_text(&table, text, sizeof text),
                        "each item is sampled once, the oldest first; inserts wait while 9 are "
                        "there");
}

/* Spelling a finished table out key by key gives the same table. */
static void printed_tables_read_back_equal(void **state)
{
    static const char *const specs[] = {
        "t:prioritized:500,exponent=0.7,remover=prioritized,remover_exponent=-0.4",
        "t:uniform:500,samples_per_insert=3,min_size=20",
        "t:uniform:500,samples_per_insert=3,min_diff=1.5,max_diff=8.25,seed=4",
        "t:stack:77,max_bytes=12345",
        "t:max_heap:4,soft_limit=true,max_times_sampled=2",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        rp_table_options first = options_of(specs[i]), second;
        char line[512] = "t:", text[64];

        (void)strcat(line, rp_table_key_text(&table, RP_KEY_SAMPLER, text, sizeof text));
        for (int key = 1; key < RP_TABLE_KEYS; key++) {
            size_t used = strlen(line);

            if (!rp_table_key_matters(&table, (rp_table_key)key)) continue;
            (void)snprintf(line + used, sizeof line - used, ",%s=%s",
                           rp_table_key_name((rp_table_key)key),
                           rp_table_key_text(&table, (rp_table_key)key, text, sizeof text));
        }
        second = options_of(line);
        first.name = second.name = NULL;
        assert_int_equal(first.sampler.kind, second.sampler.kind);
        assert_true(first.sampler.exponent == second.sampler.exponent);
        assert_int_equal(first.remover.kind, second.remover.kind);
        assert_true(first.remover.exponent == second.remover.exponent);
        assert_memory_equal(&first.limiter, &second.limiter, sizeof first.limiter);
        assert_int_equal(first.max_size, second.max_size);
        assert_int_equal(first.max_bytes, second.max_bytes);
        assert_int_equal(first.max_times_sampled, second.max_times_sampled);
        assert_int_equal(first.soft_limit, second.soft_limit);
        assert_int_equal(first.seed, second.seed);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

RP_TESTS(table_spec)
{
    const struct CMUnitTest tests[] = {
        TEST(a_name_and_a_sampler_are_enough),
        TEST(every_sampler_is_known_by_its_name),
        TEST(every_key_has_its_effect),
        TEST(a_ratio_has_an_error_buffer_of_its_own),
        TEST(queues_and_stacks_set_sampler_remover_and_limiter),
        TEST(mistakes_name_the_table_the_key_and_the_bound),
        TEST(limiters_are_described_in_words),
        TEST(printed_tables_read_back_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
