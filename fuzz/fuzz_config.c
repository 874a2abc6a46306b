/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a configuration file. If it is accepted, a store can be made from it, and it must be
 * read again as the same after it was printed with all defaults filled in. If it is refused,
 * there must be an error text. */
#include "cli/serve/config_yaml.h"
#include "cli/serve/serve_print.h"
#include "fuzz.h"

enum { MEMORY = 1 << 20 };

/* Reads a configuration and fills in the defaults. Returns it printed, in memory of malloc(),
 * or NULL if it is refused. */
static char *would_run(const char *text, size_t size)
{
    rp_problem problem = {""};
    char *printed = NULL;
    size_t printed_size = 0;
    rp_store *store = NULL;
    rp_config config;
    FILE *out;

    rp_config_init(&config, NULL, MEMORY);
    if (rp_config_read_text(&config, "fuzz", text, size, &problem) == RP_OK &&
        rp_config_finish(&config, &problem) == RP_OK &&
        rp_config_make_store(&config, &store, &problem) == RP_OK) {
        out = open_memstream(&printed, &printed_size);
        fuzz_check(out != NULL);
        rp_config_print(out, &config);
        fuzz_check(fclose(out) == 0);
        fuzz_check(problem.text[0] == '\0');
    } else {
        fuzz_check(problem.text[0] != '\0');
    }
    rp_store_free(store);
    rp_config_deinit(&config);
    return printed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *first, *second;

    if (size > FUZZ_MAX_BYTES) return 0;
    first = would_run((const char *)data, size);
    if (first == NULL) return 0;
    second = would_run(first, strlen(first));
    fuzz_check(second != NULL && strcmp(first, second) == 0);
    free(first);
    free(second);
    return 0;
}
