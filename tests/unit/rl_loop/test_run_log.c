/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/run_log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/unit.h"

static rp_run_progress progress(int64_t steps)
{
    return (rp_run_progress){.steps = steps,
                             .max_steps = 500000,
                             .episodes = 31,
                             .updates = steps / 4,
                             .seconds = 1.5,
                             .left_seconds = 12,
                             .steps_per_second = 43210,
                             .mean_return = 42.5,
                             .mean_length = 42.5,
                             .eval_return = (double)NAN,
                             .loss = 0.5,
                             .samples_per_insert = 16};
}

static void the_line_names_its_numbers(void **state)
{
    (void)state;
    char line[256], cut[8];
    rp_run_progress p = progress(1234567);

    assert_string_equal(rp_run_progress_line(&p, line, sizeof line),
                        "1,234,567 steps  31 episodes  return 42.5  greedy -  43,210 steps/s  "
                        "16.0 samples/insert  12 s left");
    p.eval_return = 499;
    p.left_seconds = 7200;
    assert_non_null(strstr(rp_run_progress_line(&p, line, sizeof line), "greedy 499.0"));
    assert_non_null(strstr(line, "2.0 h left"));
    assert_string_equal(rp_run_progress_line(&p, cut, sizeof cut), "1,234,5");
}

static size_t read_file(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t count;

    assert_non_null(file);
    count = fread(text, 1, size - 1, file);
    text[count] = '\0';
    assert_int_equal(fclose(file), 0);
    return count;
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; *text != '\0'; text++) lines += *text == '\n';
    return lines;
}

static void a_resumed_csv_has_no_row_twice(void **state)
{
    (void)state;
    char directory[] = "/tmp/reprise-logger-XXXXXX", path[64], text[4096];
    rp_run_log *logger = NULL;
    rp_error err;

    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/progress.csv", directory);
    assert_ok(rp_run_log_open_csv(NULL, path, false, 0, &logger, &err));
    for (int64_t i = 1; i <= 4; i++) {
        rp_run_progress p = progress(i * 100);
        assert_ok(rp_run_log_write(logger, &p, &err));
    }
    rp_run_log_free(logger);
    (void)read_file(path, text, sizeof text);
    assert_int_equal(count_lines(text), 5);
    assert_non_null(strstr(text, "\n100,1.500,31,25,42.5,42.5,,,0.5,"));

    /* resumed at 250: the rows of 300 and 400 are written again */
    assert_ok(rp_run_log_open_csv(NULL, path, true, 250, &logger, &err));
    rp_run_progress p = progress(300);
    assert_ok(rp_run_log_write(logger, &p, &err));
    rp_run_log_free(logger);
    (void)read_file(path, text, sizeof text);
    assert_int_equal(count_lines(text), 4);
    assert_null(strstr(text, "\n400,"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
    assert_int_equal(rp_run_log_open_csv(NULL, path, false, 0, &logger, &err), RP_UNAVAILABLE);
    assert_non_null(strstr(err.text, "progress.csv: "));
}

static void events_are_those_that_tensorboard_reads(void **state)
{
    (void)state;
    /* the length, its checksum, wall_time 1.5, step 300, summary {"a/b": 0.25}, a checksum */
    static const uint8_t expected[] = {
        0x1a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x12, 0x9b, 0xd8, 0x2d, 0x09, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f, 0x10, 0xac, 0x02, 0x2a, 0x0c, 0x0a, 0x0a,
        0x0a, 0x03, 0x61, 0x2f, 0x62, 0x15, 0x00, 0x00, 0x80, 0x3e, 0xf9, 0xcd, 0xe7, 0xed};
    uint8_t record[RP_EVENT_BYTES];
    size_t size = rp_event_record(1.5, 300, "a/b", 0.25F, record);

    assert_int_equal(size, sizeof expected);
    assert_memory_equal(record, expected, sizeof expected);
}

RP_TESTS(run_log)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_names_its_numbers),
        cmocka_unit_test(a_resumed_csv_has_no_row_twice),
        cmocka_unit_test(events_are_those_that_tensorboard_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
