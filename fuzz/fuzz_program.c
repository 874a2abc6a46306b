/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a program of `reprise train`. If it is accepted and its settings fit each other, it
 * must be read again as the same after it was printed with all settings. If it is refused,
 * there must be an error text. */
#include "cli/train/train_program.h"
#include "fuzz.h"

/* Reads a program. Returns it printed, in memory of malloc(), or NULL if it is refused. */
static char *would_run(const char *text, size_t size, bool json)
{
    static rp_program program; /* too large for a stack */
    static rp_training t;
    const rp_flags print = {.list = {{RP_TRAIN_PRINT_PROGRAM, "true"}}, .count = 1};
    rp_problem problem = {""};
    rp_text_buffer out = {0};
    char *printed = NULL;

    rp_program_init(&program, NULL);
    if (rp_program_read_text(&program, "fuzz", text, size, &problem) == RP_OK &&
        rp_program_merge(&program, &print, &problem) == RP_OK) {
        t = (rp_training){.flags = &program.flags};
        fuzz_check(rp_run_folder_set_agent(&t.folder, program.flags.words[0]));
        fuzz_check(problem.text[0] == '\0');
        if (rp_train_settings(&t, rp_train_get(&t, RP_TRAIN_ENV), &problem) == RP_OK)
            rp_program_print(&program, &t.folder, json, &out);
        fuzz_check(!out.failed);
    }
    fuzz_check((out.text != NULL) == (problem.text[0] == '\0'));
    if (out.text != NULL) printed = strdup(out.text);
    rp_text_buffer_deinit(&out);
    rp_program_deinit(&program);
    return printed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *first, *second;

    if (size > FUZZ_MAX_BYTES) return 0;
    for (int json = 0; json < 2; json++) {
        first = would_run((const char *)data, size, json == 1);
        if (first == NULL) return 0;
        second = would_run(first, strlen(first), json == 1);
        fuzz_check(second != NULL && strcmp(first, second) == 0);
        free(first);
        free(second);
    }
    return 0;
}
