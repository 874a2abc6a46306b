/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/info_print.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "support/unit.h"

static rp_text_buffer buffer;

static int empty_buffer(void **state)
{
    (void)state;
    rp_text_buffer_deinit(&buffer);
    return 0;
}

static void assert_buffer(const char *expected)
{
    assert_string_equal(rp_text_buffer_text(&buffer), expected);
    rp_text_buffer_clear(&buffer);
}

static rp_client_table table(const char *name, size_t shard)
{
    return (rp_client_table){
        .shard = shard,
        .total_weight = 12,
        .info = {.name = name,
                 .sampler = {RP_PRIORITIZED, 0.6},
                 .remover = {RP_FIFO, 0},
                 .limiter = {4, 100, -8, 8},
                 .max_size = 1000,
                 .size = 250,
                 .bytes = 1536,
                 .inserts = 260,
                 .samples = 1040,
                 .deletes = 10,
                 .evictions = 9,
                 .limiter_diff = 0,
                 .max_priority = 1},
    };
}

static void tables_are_listed_one_per_line(void **state)
{
    const char *const shards[] = {"a:1", "b:2"};
    rp_client_table tables[] = {table("replay", 0), table("a\033[2Jb", 1)};

    (void)state;
    rp_info_glance(
        &buffer,
        &(rp_tables_view){.tables = tables, .count = 1, .shards = shards, .shard_count = 1});
    assert_buffer("TABLE   SAMPLER          ITEMS   MAX    BYTES  INSERTS  SAMPLES  WAITING\n"
                  "replay  prioritized 0.6    250  1000  1.5 KiB      260     1040  nobody\n");
    tables[1].info.waiting_inserts = 1;
    tables[1].info.waiting_samples = 2;
    tables[1].info.paused = RP_SIDE_INSERTS | RP_SIDE_SAMPLES;
    tables[1].info.sampler.kind = RP_UNIFORM;
    rp_info_glance(
        &buffer,
        &(rp_tables_view){.tables = tables, .count = 2, .shards = shards, .shard_count = 2});
    assert_buffer(
        "SHARD  TABLE      SAMPLER          ITEMS   MAX    BYTES  INSERTS  SAMPLES  WAITING\n"
        "a:1    replay     prioritized 0.6    250  1000  1.5 KiB      260     1040  nobody\n"
        "b:2    a\\x1b[2Jb  uniform            250  1000  1.5 KiB      260     1040  1 insert, "
        "2 "
        "samples, inserts and samples paused\n");
    rp_info_glance(
        &buffer,
        &(rp_tables_view){.tables = tables, .count = 0, .shards = shards, .shard_count = 1});
    assert_buffer("no tables; reprise tables create NAME:SAMPLER:MAX_SIZE creates one\n");
}

static void one_table_is_described_in_full(void **state)
{
    const rp_spec specs[] = {{"obs", RP_FLOAT32, {2, {-1, 84}}},
                             {"reward", RP_FLOAT64, {0, {0}}}};
    const char *const shards[] = {"a:1"};
    rp_client_table t = table("replay", 0);

    (void)state;
    assert_ok(rp_signature_flat(rp_allocator_default(), specs, 2, &t.info.signature, NULL));
    t.info.max_bytes = 1 << 20;
    t.info.max_times_sampled = 3;
    t.info.paused = RP_SIDE_SAMPLES;
    rp_info_details(
        &buffer,
        &(rp_tables_view){.tables = &t, .count = 1, .shards = shards, .shard_count = 1},
        "replay");
    assert_buffer("replay\n"
                  "  sampler       prioritized 0.6\n"
                  "  remover       fifo\n"
                  "  items         250 of 1000\n"
                  "  bytes         1.5 KiB of 1 MiB\n"
                  "  sampled       at most 3 times\n"
                  "  limiter       4 samples an insert, within -8 and 8, from 100 items on\n"
                  "  stands at     [--------------------|-------------------] 0\n"
                  "  inserts       260 (0 waited)\n"
                  "  samples       1040 (0 waited), 0 different items\n"
                  "  deletes       10, 9 of them evictions\n"
                  "  updates       0\n"
                  "  episodes      0\n"
                  "  waiting       nobody\n"
                  "  paused        samples\n"
                  "  signature\n"
                  "    obs     float32 [?,84]\n"
                  "    reward  float64 []\n");
    rp_info_details(
        &buffer,
        &(rp_tables_view){.tables = &t, .count = 1, .shards = shards, .shard_count = 1},
        "other");
    assert_buffer("");
    rp_signature_unref(t.info.signature);
}

static void json_has_everything(void **state)
{
    const char *const shards[] = {"a:1"};
    rp_client_table tables[] = {table("replay", 0), table("other", 0)};

    (void)state;
    tables[0].info.limiter = rp_limiter_min_size(1);
    rp_tables_json(
        &buffer,
        &(rp_tables_view){.tables = tables, .count = 2, .shards = shards, .shard_count = 1},
        "replay");
    assert_buffer(
        "[{\"table\":\"replay\",\"shard\":\"a:1\",\"sampler\":{\"kind\":\"prioritized\","
        "\"exponent\":0.6},\"remover\":{\"kind\":\"fifo\"},\"limiter\":{\"samples_per_insert\":"
        "1,"
        "\"min_size\":1,\"min_diff\":null,\"max_diff\":null,\"diff\":0},\"items\":250,"
        "\"max_size\":1000,\"bytes\":1536,\"max_bytes\":0,\"max_times_sampled\":0,"
        "\"inserts\":260,\"samples\":1040,\"deletes\":10,\"updates\":0,\"evictions\":9,"
        "\"episodes\":0,\"unique_samples\":0,\"total_weight\":12,\"max_priority\":1,"
        "\"waiting_inserts\":0,\"waiting_samples\":0,\"paused_inserts\":false,"
        "\"paused_samples\":false,\"signature\":null,\"unreachable\":[]}]\n");
    rp_tables_json(
        &buffer,
        &(rp_tables_view){.tables = tables, .count = 0, .shards = shards, .shard_count = 1},
        NULL);
    assert_buffer("[]\n");
}

static void bar_with(double diff, int64_t size, const char *expected)
{
    rp_table_info info = table("t", 0).info;

    info.limiter_diff = diff;
    info.size = size;
    rp_limiter_bar(&buffer, &info, 11);
    assert_buffer(expected);
}

static void the_bar_shows_the_position_of_the_limiter(void **state)
{
    rp_table_info info = table("t", 0).info;

    (void)state;
    bar_with(-8, 100, "[|--------]");
    bar_with(0, 100, "[----|----]");
    bar_with(8, 100, "[--------|]");
    bar_with(99, 100, "[--------|]");
    bar_with(-99, 100, "[|--------]");
    bar_with(0, 50, "[####.....]");
    bar_with(0, 0, "[.........]");
    info.limiter = rp_limiter_min_size(1);
    rp_limiter_bar(&buffer, &info, 11);
    assert_buffer("[  free   ]");
    rp_limiter_bar(&buffer, &info, 5);
    assert_buffer("[fre]");
}

/* A server may say anything: a bar has its width for all numbers. */
static void any_numbers_make_a_bar(void **state)
{
    static const double odd[] = {0, -0.0, 1, -1, 1e30, -1e30, DBL_MAX, -DBL_MAX, INFINITY, NAN};
    static const int64_t sizes[] = {0, 1, -1, INT64_MIN, INT64_MAX};
    rp_table_info info = table("t", 0).info;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(odd) * COUNT_OF(odd) * COUNT_OF(odd); i++)
        for (size_t j = 0; j < COUNT_OF(sizes) * COUNT_OF(sizes); j++) {
            info.limiter.min_diff = odd[i % COUNT_OF(odd)];
            info.limiter.max_diff = odd[i / COUNT_OF(odd) % COUNT_OF(odd)];
            info.limiter_diff = odd[i / COUNT_OF(odd) / COUNT_OF(odd)];
            info.size = sizes[j % COUNT_OF(sizes)];
            info.limiter.min_size = sizes[j / COUNT_OF(sizes)];
            rp_limiter_bar(&buffer, &info, 11);
            assert_int_equal(strlen(rp_text_buffer_text(&buffer)), 11);
            rp_text_buffer_clear(&buffer);
        }
}

static void limiters_are_described_in_words(void **state)
{
    (void)state;
    rp_limiter_words(&buffer, &(rp_limiter_options){1, 1, -DBL_MAX, DBL_MAX});
    assert_buffer("from 1 item on");
    rp_limiter_words(&buffer, &(rp_limiter_options){0.5, 1, -DBL_MAX, 3});
    assert_buffer("0.5 samples an insert, up to 3");
    rp_limiter_words(&buffer, &(rp_limiter_options){2, 10, 0, DBL_MAX});
    assert_buffer("2 samples an insert, from 0 on, from 10 items on");
}

static void counts_are_short(void **state)
{
    static const struct {
        double count;
        const char *text;
    } known[] = {{0, "0"},
                 {0.25, "0.2"},
                 {12, "12"},
                 {999, "999"},
                 {999.96, "1.0k"},
                 {1000, "1.0k"},
                 {12345, "12.3k"},
                 {99999, "100k"},
                 {123456, "123k"},
                 {4.56e6, "4.6M"},
                 {1e9, "1.0G"},
                 {-5, "0"},
                 {1e30, "1000000000000E"}};
    char text[16];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        assert_string_equal(rp_count_text(known[i].count, text), known[i].text);
}

RP_TESTS(info_print)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(tables_are_listed_one_per_line, empty_buffer),
        cmocka_unit_test_teardown(one_table_is_described_in_full, empty_buffer),
        cmocka_unit_test_teardown(json_has_everything, empty_buffer),
        cmocka_unit_test_teardown(the_bar_shows_the_position_of_the_limiter, empty_buffer),
        cmocka_unit_test_teardown(any_numbers_make_a_bar, empty_buffer),
        cmocka_unit_test_teardown(limiters_are_described_in_words, empty_buffer),
        cmocka_unit_test(counts_are_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
