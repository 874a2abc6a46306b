/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise export`: a trained policy as an ONNX file. */
#include <stdlib.h>

#include "cli/commands/commands.h"
#include "cli/text/units.h"
#include "cli/train/run_folder.h"

enum { EXIT_MISUSE = 2 };

enum { ONNX, OPTIONS };

static const rp_option options[OPTIONS] = {
    [ONNX] = {"onnx", "FILE", "the file to write (policy.onnx in DIR)", false, NULL, NULL},
};

static const char text[] =
    "The file takes observations as the environment gives them, any number at once, and\n"
    "returns actions without exploration, and outputs: the values of the actions (dqn), or\n"
    "the actions from -1 to 1 (dpg), or means and deviations (sac). onnxruntime and other\n"
    "programs that know opset 17 run it.\n";

static const char *const examples[] = {
    "reprise export runs/dqn-cartpole-1",
    "reprise export runs/dqn-cartpole-1 --onnx cartpole.onnx",
    NULL,
};

static void print(const rp_env_spec *spec, const char *path)
{
    char shape[200];

    (void)printf("%s: observations %s %s, ", path, rp_dtype_name(spec->observation_dtype),
                 rp_shape_text(&spec->observation_shape, shape, sizeof shape));
    if (spec->action_kind == RP_ACTION_DISCRETE)
        (void)printf("%lld action%s\n", (long long)spec->action_count,
                     rp_plural((uint64_t)spec->action_count));
    else
        (void)printf("actions of %zu number%s\n", spec->action_size,
                     rp_plural(spec->action_size));
}

static int run(const rp_flags *flags)
{
    const char *path = rp_flags_get(flags, ONNX);
    char own[RP_RUN_PATH_BYTES + 64];
    rp_run_folder folder = {0};
    rp_run_policy policy = {0};
    rp_problem problem;
    rp_error err;
    int status = EXIT_FAILURE;

    if (rp_run_folder_choose(&folder, flags->words[0], "", false, &problem) != RP_OK) {
        (void)fprintf(stderr, "reprise export: %s\n", problem.text);
        return EXIT_MISUSE;
    }
    if (path == NULL) path = rp_run_folder_file(&folder, "policy.onnx", own);
    if (rp_run_folder_read(&folder, &problem) != RP_OK ||
        rp_run_policy_open(&policy, &folder, 1, &problem) != RP_OK) {
        (void)fprintf(stderr, "reprise export: %s\n", problem.text);
    } else if (folder.kind->save_onnx(policy.net, &folder.settings, rp_env_get_spec(policy.env),
                                      policy.params, path, &err) != RP_OK) {
        (void)fprintf(stderr, "reprise export: %s\n", err.text);
    } else {
        print(rp_env_get_spec(policy.env), path);
        status = EXIT_SUCCESS;
    }
    rp_run_policy_close(&policy);
    return status;
}

const rp_command rp_export_command = {
    .name = "export",
    .summary = "Writes a trained policy to an ONNX file.",
    .usage = "[OPTION...] DIR",
    .text = text,
    .examples = examples,
    .options = options,
    .option_count = OPTIONS,
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
