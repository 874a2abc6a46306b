/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include <stdlib.h>
#include <string.h>

#include "cli/nearest.h"
#include "cli/serve.h"
#include "cli/serve_config.h"

enum { EXIT_MISUSE = 2 };

static int run_help(const rp_flags *flags);
static int run_version(const rp_flags *flags);

static const char serve_text[] =
    "Samplers: fifo, lifo, uniform, prioritized, min_heap, max_heap; queue and stack make a\n"
    "table whose items are sampled once. Keys of a table: exponent, remover,\n"
    "remover_exponent, max_size, min_size, samples_per_insert, error_buffer, min_diff,\n"
    "max_diff, max_times_sampled, max_bytes, soft_limit, seed. Sizes: 64MiB, 4GiB, 80%.\n"
    "\n"
    "  reprise serve\n"
    "  reprise serve --table replay:prioritized:1000000,samples_per_insert=4 --port 9000\n"
    "  reprise serve --config reprise.yaml --check-config\n"
    "\n"
    "SIGTERM and SIGINT drain and stop, a second one stops at once; SIGHUP reads\n"
    "certificates, tokens and limits again. docs/serve.md has the rest.\n";

const rp_command rp_commands[] = {
    {
        .name = "serve",
        .summary = "Serves tables to Reverb clients, over TCP and Unix sockets.",
        .usage = "[OPTION...]",
        .text = serve_text,
        .options = rp_serve_options,
        .option_count = RP_SERVE_OPTIONS,
        .run = rp_serve_run,
    },
    {
        .name = "version",
        .summary = "Prints the version.",
        .usage = "",
        .run = run_version,
    },
    {
        .name = "help",
        .summary = "Explains a command, or lists all of them.",
        .usage = "[COMMAND]",
        .max_words = 1,
        .run = run_help,
    },
};

const size_t rp_command_count = sizeof rp_commands / sizeof rp_commands[0];

static const rp_command *find_command(const char *name)
{
    for (size_t i = 0; i < rp_command_count; i++)
        if (strcmp(rp_commands[i].name, name) == 0) return &rp_commands[i];
    return NULL;
}

static int unknown_command(const char *name)
{
    rp_nearest nearest;
    rp_problem problem;

    rp_nearest_init(&nearest, name);
    for (size_t i = 0; i < rp_command_count; i++)
        rp_nearest_offer(&nearest, rp_commands[i].name);
    if (rp_nearest_get(&nearest) != NULL)
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
        (void)fprintf(out, "  %-12s%s\n", rp_commands[i].name, rp_commands[i].summary);
    (void)fputs("\nreprise COMMAND --help explains one. To begin: reprise serve\n", out);
}

static int run_help(const rp_flags *flags)
{
    const rp_command *command;

    if (flags->word_count == 0) {
        print_overview(stdout);
        return EXIT_SUCCESS;
    }
    command = find_command(flags->words[0]);
    if (command == NULL) return unknown_command(flags->words[0]);
    rp_command_help(stdout, command);
    return EXIT_SUCCESS;
}

static int run_version(const rp_flags *flags)
{
    (void)flags;
    (void)printf("reprise %s\n", RP_VERSION);
    return EXIT_SUCCESS;
}

static int run_command(const rp_command *command, int argc, char *const *argv)
{
    static rp_flags flags; /* too large for a stack */
    rp_problem problem;

    if (rp_flags_parse(command, argc, argv, &flags, &problem) != RP_OK) {
        (void)fprintf(stderr, "reprise: %s\n", problem.text);
        return EXIT_MISUSE;
    }
    if (flags.help) {
        rp_command_help(stdout, command);
        return EXIT_SUCCESS;
    }
    return command->run(&flags);
}

int rp_commands_main(int argc, char *const *argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    const rp_command *command;
    int status;

    if (name == NULL) {
        print_overview(stderr);
        return EXIT_MISUSE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (strcmp(name, "--version") == 0) name = "version";
    command = find_command(name);
    if (command == NULL) return unknown_command(name);
    status = run_command(command, argc - 2, argv + 2);
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    perror("reprise: standard output");
    return status != EXIT_SUCCESS ? status : EXIT_FAILURE;
}
