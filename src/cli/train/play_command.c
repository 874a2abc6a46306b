/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise play`: an episode of a trained policy, drawn in the terminal. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/interrupts.h"
#include "cli/text/units.h"
#include "cli/train/env_drawing.h"
#include "cli/train/run_folder.h"

enum { EXIT_MISUSE = 2, EXIT_SIGNAL = 128, PAUSE_MS = 40, MOST_STEPS = 100000 };

enum { SEED, SPEED, OPTIONS };

static const rp_option options[OPTIONS] = {
    [SEED] = {"seed", "N", "of the environment (0)", false, NULL, NULL},
    [SPEED] = {"speed", "X", "25 frames a second times X (1)", false, NULL, NULL},
};

static const char text[] = "If the output is not a terminal, frames are printed one after the "
                           "other, without pauses.\n";

static const char *const examples[] = {
    "reprise play runs/dqn-cartpole-1",
    "reprise play runs/dqn-cartpole-1 --seed 3 --speed 2",
    NULL,
};

typedef struct playing {
    rp_run_folder folder;
    rp_run_policy run;
    rp_interrupts interrupts;
    uint64_t seed;
    double speed;
    bool terminal;
    void *observation, *action;
} playing;

static rp_status take(playing *p, const rp_flags *flags, rp_problem *problem)
{
    rp_setting value = {.key = "--seed", .text = rp_flags_get(flags, SEED)};
    rp_status st = RP_OK;

    p->speed = 1;
    if (value.text != NULL) st = rp_setting_unsigned(&value, &p->seed, problem);
    value = (rp_setting){.key = "--speed", .text = rp_flags_get(flags, SPEED)};
    if (st == RP_OK && value.text != NULL)
        st = rp_setting_number(&value, 0.01, 1000, &p->speed, problem);
    if (st == RP_OK) st = rp_run_folder_choose(&p->folder, flags->words[0], "", false, problem);
    return st;
}

/* Shows one frame and pauses. Returns false after Ctrl-C. */
static bool show(playing *p, int64_t step, double sum, bool first)
{
    struct pollfd wake = {.fd = p->interrupts.wake_fd, .events = POLLIN};
    rp_text_buffer out = {0};
    size_t lines = 0;

    rp_env_draw(&out, p->run.env, p->observation);
    rp_text_buffer_format(&out, "step %lld  return %.4g\n", (long long)step, sum);
    for (size_t i = 0; i < out.size; i++) lines += out.text[i] == '\n';
    if (p->terminal && !first) (void)printf("\x1b[%zuA", lines);
    for (const char *at = rp_text_buffer_text(&out); *at != '\0';) {
        size_t length = strcspn(at, "\n");
        (void)printf("%.*s%s\n", (int)length, at, p->terminal ? "\x1b[K" : "");
        at += length + (at[length] == '\n');
    }
    if (!p->terminal) (void)printf("\n");
    (void)fflush(stdout);
    rp_text_buffer_deinit(&out);
    if (p->terminal) (void)poll(&wake, 1, (int)(PAUSE_MS / p->speed));
    return atomic_load(&p->interrupts.number) == 0;
}

static rp_status play(playing *p, rp_error *err)
{
    double reward = 0, sum = 0;
    bool terminated = false, truncated = false, on;
    const rp_env_buffers buffers = {p->observation, NULL, &reward, &terminated, &truncated};
    rp_status st = rp_env_reset(p->run.env, &p->seed, p->observation, err);

    if (st != RP_OK) return st;
    on = show(p, 0, 0, true);
    for (int64_t step = 1; on && step <= MOST_STEPS; step++) {
        p->run.policy->act(p->run.policy, p->run.params, p->observation, 1, p->action);
        st = rp_env_step(p->run.env, p->action, &buffers, err);
        if (st != RP_OK) return st;
        sum += reward;
        /* an environment that has ended shows the start of its next episode */
        if (terminated || truncated) {
            (void)printf("%s after %lld step%s, return %.4g\n",
                         terminated ? "the episode ended" : "the time limit was reached",
                         (long long)step, rp_plural((uint64_t)step), sum);
            return RP_OK;
        }
        on = show(p, step, sum, false);
    }
    return RP_OK;
}

static int run(const rp_flags *flags)
{
    static playing p; /* too large for a stack */
    rp_problem problem;
    rp_error err = {0};
    int status = EXIT_FAILURE;

    if (take(&p, flags, &problem) != RP_OK) {
        (void)fprintf(stderr, "reprise play: %s\n", problem.text);
        return EXIT_MISUSE;
    }
    p.terminal = isatty(STDOUT_FILENO) != 0;
    if (rp_run_folder_read(&p.folder, &problem) != RP_OK ||
        rp_run_policy_open(&p.run, &p.folder, 1, &problem) != RP_OK) {
        (void)fprintf(stderr, "reprise play: %s\n", problem.text);
        goto out;
    }
    p.observation = calloc(1, rp_env_observation_bytes(p.run.env));
    p.action = calloc(1, rp_env_action_bytes(p.run.env));
    if (p.observation == NULL || p.action == NULL ||
        rp_interrupts_start(&p.interrupts) != RP_OK) {
        (void)fprintf(stderr, "reprise play: out of memory\n");
        goto out;
    }
    if (play(&p, &err) != RP_OK)
        (void)fprintf(stderr, "reprise play: %s\n", err.text);
    else
        status = EXIT_SUCCESS;
    if (atomic_load(&p.interrupts.number) != 0)
        status = EXIT_SIGNAL + atomic_load(&p.interrupts.number);
    rp_interrupts_stop(&p.interrupts);
out:
    free(p.observation);
    free(p.action);
    rp_run_policy_close(&p.run);
    return status;
}

const rp_command rp_play_command = {
    .name = "play",
    .summary = "Draws an episode of a trained policy in the terminal.",
    .usage = "[OPTION...] DIR",
    .text = text,
    .examples = examples,
    .options = options,
    .option_count = OPTIONS,
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
