/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise eval`: greedy episodes of a trained policy. */
#include <stdlib.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/text/text_buffer.h"
#include "cli/train/run_folder.h"
#include "reprise/rl/evaluator.h"

enum { EXIT_MISUSE = 2, ROWS = 100, MOST_EPISODES = 100000000 };

enum { EPISODES, SEED, JSON, OPTIONS };

static const rp_option options[OPTIONS] = {
    [EPISODES] = {"episodes", "N", "number of episodes (300)", false, NULL, NULL},
    [SEED] = {"seed", "N", "of the environments (0)", false, NULL, NULL},
    [JSON] = {"json", NULL, "print JSON, for programs", false, NULL, NULL},
};

static const char *const examples[] = {
    "reprise eval runs/dqn-cartpole-1",
    "reprise eval runs/dqn-cartpole-1 --episodes 1000 --seed 7 --json",
    NULL,
};

static rp_status take(const rp_flags *flags, int64_t *episodes, uint64_t *seed,
                      rp_problem *problem)
{
    rp_setting value = {.key = "--episodes", .text = rp_flags_get(flags, EPISODES)};
    rp_status st = RP_OK;

    if (value.text != NULL)
        st = rp_setting_integer(&value, 1, MOST_EPISODES, episodes, problem);
    value = (rp_setting){.key = "--seed", .text = rp_flags_get(flags, SEED)};
    if (st == RP_OK && value.text != NULL) st = rp_setting_unsigned(&value, seed, problem);
    return st;
}

static void print(const rp_run_folder *folder, const rp_evaluation *e, bool json)
{
    rp_text_buffer out = {0};

    if (!json) {
        (void)printf("%s: mean return %.4g of %lld greedy episodes (deviation %.3g, lowest "
                     "%.4g, highest %.4g, mean length %.4g)\n",
                     folder->env_class->name, e->mean_return, (long long)e->episodes,
                     e->deviation, e->lowest, e->highest, e->mean_length);
        return;
    }
    rp_json_open(&out, '{');
    rp_json_key(&out, "env");
    rp_json_put_text(&out, folder->env_class->name);
    rp_json_key(&out, "episodes");
    rp_json_put_integer(&out, e->episodes);
    rp_json_key(&out, "mean_return");
    rp_json_put_number(&out, e->mean_return);
    rp_json_key(&out, "deviation");
    rp_json_put_number(&out, e->deviation);
    rp_json_key(&out, "lowest");
    rp_json_put_number(&out, e->lowest);
    rp_json_key(&out, "highest");
    rp_json_put_number(&out, e->highest);
    rp_json_key(&out, "mean_length");
    rp_json_put_number(&out, e->mean_length);
    rp_json_close(&out, '}');
    (void)printf("%s\n", rp_text_buffer_text(&out));
    rp_text_buffer_deinit(&out);
}

static int run(const rp_flags *flags)
{
    const char *json = rp_flags_get(flags, JSON);
    rp_evaluation_options evaluation = {.episodes = 300};
    rp_run_folder folder = {0};
    rp_run_policy policy = {0};
    rp_evaluation result;
    rp_problem problem;
    rp_error err;
    int status = EXIT_FAILURE;

    if (take(flags, &evaluation.episodes, &evaluation.seed, &problem) != RP_OK ||
        rp_run_folder_choose(&folder, flags->words[0], "", false, &problem) != RP_OK) {
        (void)fprintf(stderr, "reprise eval: %s\n", problem.text);
        return EXIT_MISUSE;
    }
    if (rp_run_folder_read(&folder, &problem) != RP_OK ||
        rp_run_policy_open(&policy, &folder, ROWS, &problem) != RP_OK) {
        (void)fprintf(stderr, "reprise eval: %s\n", problem.text);
    } else {
        evaluation.env_class = folder.env_class;
        evaluation.policy = policy.policy;
        if (rp_evaluate(NULL, &evaluation, policy.params, &result, &err) == RP_OK) {
            print(&folder, &result, json != NULL && strcmp(json, "false") != 0);
            status = EXIT_SUCCESS;
        } else {
            (void)fprintf(stderr, "reprise eval: %s\n", err.text);
        }
    }
    rp_run_policy_close(&policy);
    return status;
}

const rp_command rp_eval_command = {
    .name = "eval",
    .summary = "Evaluates a trained policy by greedy episodes.",
    .usage = "[OPTION...] DIR",
    .examples = examples,
    .options = options,
    .option_count = OPTIONS,
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
