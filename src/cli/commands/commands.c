/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, and the commands that need no server: serve, version, help. */
#include "cli/commands/commands.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/help/manual.h"
#include "cli/serve/serve.h"
#include "cli/serve/serve_config.h"
#include "cli/text/nearest.h"
#include "reprise/version.h"

enum { EXIT_MISUSE = 2 };

static int run_help(const rp_flags *flags);
static int run_version(const rp_flags *flags);

static const char serve_text[] =
    "Samplers: fifo, lifo, uniform, prioritized, min_heap, max_heap; queue and stack make a\n"
    "table whose items are sampled once. Keys of a table: exponent, remover,\n"
    "remover_exponent, max_size, min_size, samples_per_insert, error_buffer, min_diff,\n"
    "max_diff, max_times_sampled, max_bytes, soft_limit, seed. Sizes: 64MiB, 4GiB, 80%.\n";

static const char *const serve_examples[] = {
    "reprise serve",
    "reprise serve --table replay:prioritized:1000000,samples_per_insert=4 --port 9000",
    "reprise serve --config reprise.yaml --check-config",
    NULL,
};

static const char serve_notes[] =
    "SIGTERM and SIGINT drain and stop, a second one stops at once; SIGHUP reads\n"
    "certificates, tokens and limits again. --check-config prints every setting in use.\n";

static const rp_command serve_command = {
    .name = "serve",
    .summary = "Serves tables to Reverb clients, over TCP and Unix sockets.",
    .usage = "[OPTION...]",
    .text = serve_text,
    .examples = serve_examples,
    .notes = serve_notes,
    .options = rp_serve_options,
    .option_count = RP_SERVE_OPTIONS,
    .run = rp_serve_run,
};

enum { VERSION_JSON, VERSION_OPTIONS };
static const rp_option version_options[VERSION_OPTIONS] = {
    [VERSION_JSON] = {"json", NULL, "print JSON, for programs", false, NULL, NULL},
};
static const char *const version_examples[] = {"reprise version", "reprise version --json",
                                               NULL};

static const rp_command version_command = {
    .name = "version",
    .summary = "Prints the version.",
    .usage = "[--json]",
    .examples = version_examples,
    .options = version_options,
    .option_count = VERSION_OPTIONS,
    .run = run_version,
};

enum { HELP_MAN, HELP_COMPLETION, HELP_OPTIONS };
static const rp_option help_options[HELP_OPTIONS] = {
    [HELP_MAN] = {"man", NULL, "print the man page instead, for man -l -", false, NULL, NULL},
    [HELP_COMPLETION] = {"completion", "SHELL", "print completions for bash, zsh or fish",
                         false, NULL, "bash zsh fish"},
};
static const char *const help_examples[] = {
    "reprise help sample",
    "reprise help --man top",
    "reprise help --completion bash",
    NULL,
};

static const rp_command help_command = {
    .name = "help",
    .summary = "Explains a command, or lists all of them.",
    .usage = "[OPTION...] [COMMAND]",
    .examples = help_examples,
    .options = help_options,
    .option_count = HELP_OPTIONS,
    .max_words = 1,
    .run = run_help,
};

const rp_command *const rp_commands[] = {
    &serve_command,       &rp_info_command,       &rp_top_command,    &rp_clients_command,
    &rp_watch_command,    &rp_why_command,        &rp_sample_command, &rp_insert_command,
    &rp_tables_command,   &rp_checkpoint_command, &rp_data_command,   &rp_runs_command,
    &rp_rollouts_command, &rp_shell_command,      &rp_bench_command,
#ifdef RP_HAVE_RL
    &rp_train_command,    &rp_eval_command,       &rp_play_command,   &rp_export_command,
    &rp_tune_command,
#endif
    &version_command,     &help_command,
};

const size_t rp_command_count = sizeof rp_commands / sizeof rp_commands[0];

static const rp_command *find_command(const char *name)
{
    for (size_t i = 0; i < rp_command_count; i++)
        if (strcmp(rp_commands[i]->name, name) == 0) return rp_commands[i];
    return NULL;
}

static int unknown_command(const char *name)
{
    rp_nearest nearest;
    rp_problem problem;

    for (size_t i = 0; i < rp_command_count; i++) {
        if (!rp_has_action(rp_commands[i], name)) continue;
        (void)fprintf(stderr, "reprise: unknown command '%s', did you mean '%s %s'?\n", name,
                      rp_commands[i]->name, name);
        return EXIT_MISUSE;
    }
    rp_nearest_init(&nearest, name);
    for (size_t i = 0; i < rp_command_count; i++)
        rp_nearest_offer(&nearest, rp_commands[i]->name);
    if (name[0] == '-')
        (void)rp_problem_set(&problem, NULL,
                             "option '%.100s' before the command: options come after it, as in "
                             "reprise info %.100s",
                             name, name);
    else if (rp_nearest_get(&nearest) != NULL)
        (void)rp_problem_set(&problem, NULL, "unknown command '%.100s', did you mean '%s'?",
                             name, rp_nearest_get(&nearest));
    else
        (void)rp_problem_set(&problem, NULL,
                             "unknown command '%.100s'; reprise help lists them", name);
    (void)fprintf(stderr, "reprise: %s\n", problem.text);
    return EXIT_MISUSE;
}

static void print_overview(FILE *out)
{
    (void)fputs("usage: reprise COMMAND [OPTION...]\n\n"
                "An experience replay server that Reverb's clients can use.\n\n",
                out);
    for (size_t i = 0; i < rp_command_count; i++)
        (void)fprintf(out, "  %-12s%s\n", rp_commands[i]->name, rp_commands[i]->summary);
    (void)fputs("\nreprise COMMAND --help explains one. To begin: reprise serve\n"
                "Without a command, on a terminal, reprise is a shell: reprise shell, which "
                "also reads a "
                "pipe\n",
                out);
}

/* Prints the text, or an error if there was no memory for it. Frees the buffer. */
static int print_buffer(rp_text_buffer *buffer)
{
    bool failed = buffer->failed;

    if (failed)
        (void)fputs("reprise: out of memory\n", stderr);
    else
        (void)fwrite(rp_text_buffer_text(buffer), 1, buffer->size, stdout);
    rp_text_buffer_deinit(buffer);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_help(const rp_flags *flags)
{
    const rp_program program = {rp_commands, rp_command_count, RP_VERSION};
    const char *shell = rp_flags_get(flags, HELP_COMPLETION);
    const char *man = rp_flags_get(flags, HELP_MAN);
    const rp_command *command = NULL;
    rp_text_buffer buffer = {0};

    if (flags->word_count > 0) {
        command = find_command(flags->words[0]);
        if (command == NULL) return unknown_command(flags->words[0]);
    }
    if (shell != NULL) {
        if (rp_completion(&buffer, &program, shell)) return print_buffer(&buffer);
        (void)fprintf(
            stderr, "reprise: --completion: expected bash, zsh or fish, got '%.100s'\n", shell);
        return EXIT_MISUSE;
    }
    if (man != NULL && strcmp(man, "false") != 0) {
        rp_man_page(&buffer, &program, command);
        return print_buffer(&buffer);
    }
    if (command != NULL)
        rp_command_help(stdout, command);
    else
        print_overview(stdout);
    return EXIT_SUCCESS;
}

static int run_version(const rp_flags *flags)
{
    const char *json = rp_flags_get(flags, VERSION_JSON);

    if (json != NULL && strcmp(json, "false") != 0)
        (void)printf("{\"version\":\"%s\"}\n", RP_VERSION);
    else
        (void)printf("reprise %s\n", RP_VERSION);
    return EXIT_SUCCESS;
}

static int run_command(const rp_command *command, int argc, char *const *argv)
{
    static rp_flags flags; /* too large for a stack */
    rp_problem problem;

    if (rp_flags_parse(command, argc, argv, &flags, &problem) != RP_OK) {
        if (command == &serve_command)
            (void)fprintf(stderr, "reprise: %s\n", problem.text);
        else
            (void)fprintf(stderr, "reprise %s: %s\n", command->name, problem.text);
        return EXIT_MISUSE;
    }
    if (flags.help) {
        rp_command_help(stdout, command);
        return EXIT_SUCCESS;
    }
    assert(command->run != NULL);
    return command->run(&flags);
}

int rp_commands_main(int argc, char *const *argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    const rp_command *command;
    int status;

    if (name == NULL && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1)
        return run_command(&rp_shell_command, 0, argv);
    if (name == NULL) {
        print_overview(stderr);
        return EXIT_MISUSE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (strcmp(name, "--version") == 0) name = "version";
    command = find_command(name);
    if (command == NULL) return unknown_command(name);
    assert(argc >= 2);
    status = run_command(command, argc - 2, argv + 2);
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    perror("reprise: standard output");
    return status != EXIT_SUCCESS ? status : EXIT_FAILURE;
}
