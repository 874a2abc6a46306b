/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/memory_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/serve/sd_notify.h"
#include "support/unit.h"

/* Writes a file below `root`, and the folders it lies in. */
static void put(const char *root, const char *path, const char *text)
{
    char full[512];
    FILE *file;

    (void)snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; *p != '\0'; p++) {
        if (*p != '/') continue;
        *p = '\0';
        (void)mkdir(full, 0700);
        *p = '/';
    }
    file = fopen(full, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_root(void **state)
{
    char *root = strdup("/tmp/reprise-memory-XXXXXX");

    *state = root;
    return root != NULL && mkdtemp(root) != NULL ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];

    (void)snprintf(command, sizeof command, "rm -r '%s'", (char *)*state);
    free(*state);
    return system(command); /* NOLINT(cert-env33-c): a folder of our own */
}

static void without_cgroups_the_limit_is_unknown(void **state)
{
    assert_int_equal(rp_memory_size(*state), 0);
    assert_true(rp_memory_size("") > 0); /* the machine's */
}

static void the_least_limit_on_the_way_up_counts(void **state)
{
    put(*state, "/proc/self/cgroup", "0::/a/b\n");
    put(*state, "/sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_int_equal(rp_memory_size(*state), 0);

    put(*state, "/sys/fs/cgroup/a/memory.max", "2000\n");
    assert_int_equal(rp_memory_size(*state), 2000);

    put(*state, "/sys/fs/cgroup/a/b/memory.max", "3000\n");
    put(*state, "/sys/fs/cgroup/memory.max", "5000\n");
    assert_int_equal(rp_memory_size(*state), 2000);

    put(*state, "/sys/fs/cgroup/a/b/memory.max", "1000\n");
    assert_int_equal(rp_memory_size(*state), 1000);
}

static void cgroups_of_version_1_are_read_too(void **state)
{
    put(*state, "/proc/self/cgroup", "7:cpu,cpuacct:/x\n6:hugetlb,memory:/x\nrubbish\n0::/\n");
    put(*state, "/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "4096\n");
    put(*state, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(rp_memory_size(*state), 4096);
}

static void passed_sockets_are_taken_only_with_our_pid(void **state)
{
    rp_problem problem;
    size_t count = 9;

    (void)state;
    assert_ok(rp_passed_sockets(NULL, "2", 42, &count, &problem));
    assert_int_equal(count, 0);
    assert_ok(rp_passed_sockets("42", NULL, 42, &count, &problem));
    assert_int_equal(count, 0);
    assert_ok(rp_passed_sockets("41", "2", 42, &count, &problem));
    assert_int_equal(count, 0);
    assert_ok(rp_passed_sockets("42", "2", 42, &count, &problem));
    assert_int_equal(count, 2);
    assert_int_equal(rp_passed_sockets("x", "2", 42, &count, &problem), RP_INVALID);
    assert_non_null(strstr(problem.text, "LISTEN_PID"));
    assert_int_equal(rp_passed_sockets("42", "17", 42, &count, &problem), RP_INVALID);
    assert_non_null(strstr(problem.text, "from 0 to 16, got '17'"));
    assert_int_equal(rp_passed_sockets("42", "-1", 42, &count, &problem), RP_INVALID);
    assert_int_equal(count, 0);
}

RP_TESTS(memory_size)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_cgroups_the_limit_is_unknown, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(the_least_limit_on_the_way_up_counts, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(cgroups_of_version_1_are_read_too, make_root,
                                        remove_root),
        cmocka_unit_test(passed_sockets_are_taken_only_with_our_pid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
