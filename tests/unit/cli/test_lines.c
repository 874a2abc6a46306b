/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/lines.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "support/unit.h"

static void assert_line(rp_lines *l, const char *expected)
{
    const char *line;
    size_t size;

    assert_int_equal(rp_lines_next(l, &line, &size), RP_LINES_ONE);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(line, expected, size);
}

static void lines_come_one_by_one(void **state)
{
    static const char text[] = "one\n\nthree";
    const char *line;
    size_t size;
    rp_lines l;
    int fds[2];

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], text, sizeof text - 1), sizeof text - 1);
    rp_lines_init(&l, fds[0], -1);
    assert_line(&l, "one");
    assert_line(&l, "");
    (void)close(fds[1]);
    assert_line(&l, "three");
    assert_int_equal(rp_lines_next(&l, &line, &size), RP_LINES_END);
    assert_int_equal(rp_lines_next(&l, &line, &size), RP_LINES_END);
    rp_lines_deinit(&l);
    (void)close(fds[0]);
}

static void a_wait_can_be_ended(void **state)
{
    const char *line;
    size_t size;
    rp_lines l;
    int fds[2], wake[2], folder;

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(pipe(wake), 0);
    assert_int_equal(write(fds[1], "half", 4), 4);
    assert_int_equal(write(wake[1], "", 1), 1);
    rp_lines_init(&l, fds[0], wake[0]);
    assert_int_equal(rp_lines_next(&l, &line, &size), RP_LINES_WOKEN);
    rp_lines_deinit(&l);
    folder = open("/", O_RDONLY | O_CLOEXEC);
    rp_lines_init(&l, folder, -1);
    assert_int_equal(rp_lines_next(&l, &line, &size), RP_LINES_FAILED);
    rp_lines_deinit(&l);
    (void)close(folder);
    for (int i = 0; i < 2; i++) {
        (void)close(fds[i]);
        (void)close(wake[i]);
    }
}

RP_TESTS(lines)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_one_by_one),
        cmocka_unit_test(a_wait_can_be_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
