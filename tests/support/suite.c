/* SPDX-License-Identifier: Apache-2.0 */
/* The main program of the tests of a module.
 *
 *     test_unit_table alter       runs tests/unit/table/test_alter.c
 *     test_unit_table             lists the names
 */
#include <stdio.h>
#include <string.h>

#define RP_TEST(name) int rp_tests_##name(void);
#include RP_SUITE
#undef RP_TEST

static const struct {
    const char *name;
    int (*run)(void);
} suite[] = {
#define RP_TEST(name) {#name, rp_tests_##name},
#include RP_SUITE
#undef RP_TEST
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof suite / sizeof suite[0]; i++) {
        if (argc < 2) puts(suite[i].name);
        if (argc == 2 && strcmp(argv[1], suite[i].name) == 0) return suite[i].run();
    }
    if (argc < 2) return 0;
    fprintf(stderr, "%s: no tests of that name; without an argument the names are listed\n",
            argv[1]);
    return 2;
}
