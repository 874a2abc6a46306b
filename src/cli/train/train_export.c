/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise train apex-dqn --export`: writes the program as a job file of a cluster instead of
 * running it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/text/argument_list.h"
#include "cli/text/cluster_files.h"
#include "cli/train/train_apex.h"
#include "reprise/version.h"

enum { PORT = 8000 };

/* Options that do not go with --export. */
static const rp_train_option refused[] = {
    RP_TRAIN_RESUME,    RP_TRAIN_THEN,     RP_TRAIN_STAY,    RP_TRAIN_ROLE,
    RP_TRAIN_PROCESSES, RP_TRAIN_REPLAY,   RP_TRAIN_INDEX,   RP_TRAIN_OF,
    RP_TRAIN_PLOT,      RP_TRAIN_LOG,      RP_TRAIN_JSON,    RP_TRAIN_DIR,
    RP_TRAIN_TOKENS,    RP_TRAIN_TLS_CERT, RP_TRAIN_TLS_KEY, RP_TRAIN_INSECURE};

/* Options of the program that its parts do not get. */
static const rp_train_option own[] = {
    RP_TRAIN_SERVE,   RP_TRAIN_REPORT_NAME, RP_TRAIN_ACTORS,
    RP_TRAIN_EXPORT,  RP_TRAIN_SHARDS,      RP_TRAIN_IMAGE,
    RP_TRAIN_SECONDS, RP_TRAIN_PROGRAM,     RP_TRAIN_PRINT_PROGRAM};

static bool is_own(size_t option)
{
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (option == (size_t)own[i]) return true;
    return false;
}

/* The port of --serve, whose host the cluster decides on. */
static rp_status take_port(const rp_training *t, int *out, rp_problem *problem)
{
    const char *address = rp_train_get(t, RP_TRAIN_SERVE);
    const char *colon = address != NULL ? strrchr(address, ':') : NULL;
    const rp_setting port = {.key = "--serve", .text = colon != NULL ? colon + 1 : address};
    int64_t number = PORT;
    rp_status st = RP_OK;

    if (address != NULL) st = rp_setting_integer(&port, 1, 65535, &number, problem);
    *out = (int)number;
    return st;
}

static rp_status take_program(rp_training *t, rp_cluster_program *p, rp_problem *problem)
{
    const char *kind = rp_train_get(t, RP_TRAIN_EXPORT);
    char key[64];
    rp_status st;

    if (strcmp(kind, "slurm") != 0 && strcmp(kind, "kubernetes") != 0)
        return rp_problem_set(problem, NULL,
                              "--export: expected slurm or kubernetes, got '%.100s'", kind);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (rp_train_get(t, refused[i]) != NULL)
            return rp_problem_set(problem, NULL, "--export does not go with --%s",
                                  rp_train_command.options[refused[i]].name);
    st = rp_train_settings(t, rp_train_get(t, RP_TRAIN_ENV), problem);
    if (st == RP_OK) st = rp_train_take_shards(t, &p->shards, problem);
    if (st == RP_OK) st = take_port(t, &p->port, problem);
    if (st != RP_OK) return st;
    (void)snprintf(key, sizeof key, "%s-%s", t->folder.agent, t->folder.env_class->name);
    rp_cluster_name(rp_train_get(t, RP_TRAIN_REPORT_NAME) != NULL
                        ? rp_train_get(t, RP_TRAIN_REPORT_NAME)
                        : key,
                    p->name);
    if (rp_train_get(t, RP_TRAIN_IMAGE) != NULL) p->image = rp_train_get(t, RP_TRAIN_IMAGE);
    return RP_OK;
}

static void set_arguments(const rp_training *t, const char *name, rp_argument_list *a)
{
    const char *given = rp_train_get(t, RP_TRAIN_REPORT_NAME);

    rp_argument_list_add(a, "train");
    rp_argument_list_add(a, "%s", t->folder.agent);
    for (size_t i = 0; i < t->flags->count; i++) {
        const rp_flag *flag = &t->flags->list[i];

        if (!is_own(flag->option))
            rp_argument_list_add(a, "--%s=%s", rp_train_command.options[flag->option].name,
                                 flag->value);
    }
    rp_argument_list_add(a, "--report-name=%s", given != NULL ? given : name);
}

static int write_file(const rp_training *t, const rp_cluster_program *p)
{
    bool is_slurm = strcmp(rp_train_get(t, RP_TRAIN_EXPORT), "slurm") == 0;
    rp_text_buffer out = {0};
    rp_problem problem;
    int status = EXIT_SUCCESS;

    if (is_slurm)
        rp_cluster_slurm(p, &out);
    else if (rp_cluster_kubernetes(p, &out, &problem) != RP_OK)
        status = rp_train_misuse(&problem);
    if (status == EXIT_SUCCESS && out.failed)
        status = rp_train_failed("no memory for the text");
    if (status == EXIT_SUCCESS &&
        (fwrite(out.text, 1, out.size, stdout) != out.size || fflush(stdout) != 0))
        status = rp_train_failed("cannot write to the standard output");
    rp_text_buffer_deinit(&out);
    return status;
}

int rp_train_export(rp_training *t, int64_t actors, int64_t seconds)
{
    rp_cluster_program p = {
        .actors = actors, .shards = 1, .seconds = seconds, .image = "reprise:" RP_VERSION};
    rp_argument_list a = {0};
    rp_problem problem;
    int status;

    if (take_program(t, &p, &problem) != RP_OK) return rp_train_misuse(&problem);
    set_arguments(t, p.name, &a);
    p.arguments = (const char *const *)a.list;
    p.argument_count = a.count;
    status = a.failed ? rp_train_failed("no memory for the arguments") : write_file(t, &p);
    rp_argument_list_deinit(&a);
    return status;
}
