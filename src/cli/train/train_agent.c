/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise train dqn`, `dpg` and `sac`: one agent, on the thread of the command. */
#include <math.h>

#include "cli/train/train.h"

enum { LINE_NS = 200000000 }; /* between two lines of progress on a terminal */

static rp_status make_agent(void *ctx, const rp_trainer_parts *parts, rp_agent **out,
                            rp_error *err)
{
    rp_training *t = ctx;
    const rp_agent_options o = {&t->folder.settings, parts->spec, parts->store, parts->client,
                                parts->seed};

    t->store = parts->store;
    return t->folder.kind->new_agent(parts->alloc, &o, out, err);
}

static bool should_stop(void *ctx)
{
    rp_training *t = ctx;

    return atomic_load(&t->interrupts.number) != 0;
}

static void on_progress(void *ctx, const rp_run_progress *progress)
{
    rp_training *t = ctx;

    rp_train_progress(t, progress, rp_trainer_get_parameters(t->trainer));
}

static rp_status take_run_options(rp_training *t, rp_problem *problem)
{
    rp_trainer_options *o = &t->options;
    const rp_setting value = {.key = "--threshold",
                              .text = rp_train_get(t, RP_TRAIN_THRESHOLD)};
    rp_status st;

    o->max_steps = 500000;
    o->save_every = 20000;
    o->has_threshold = value.text != NULL;
    st = rp_train_integer(t, RP_TRAIN_STEPS, 1, &o->max_steps, problem);
    if (st == RP_OK) st = rp_train_integer(t, RP_TRAIN_EVAL_EVERY, 1, &o->eval_every, problem);
    if (st == RP_OK)
        st = rp_train_integer(t, RP_TRAIN_EVAL_EPISODES, 1, &o->eval_episodes, problem);
    if (st == RP_OK)
        st = rp_train_integer(t, RP_TRAIN_CONFIRM_EPISODES, 1, &o->confirm_episodes, problem);
    if (st == RP_OK) st = rp_train_integer(t, RP_TRAIN_SAVE_EVERY, 0, &o->save_every, problem);
    if (st == RP_OK && value.text != NULL)
        st = rp_setting_number(&value, -1e300, 1e300, &o->threshold, problem);
    o->inline_evaluation = rp_train_is_on(t, RP_TRAIN_ONE_THREAD);
    return st;
}

static int train(rp_training *t)
{
    char path[RP_RUN_PATH_BYTES + 64];
    rp_trainer_result result = {0};
    rp_error err = {0}, later = {0};
    rp_status st;
    int status = 0;

    t->options.env_class = t->folder.env_class;
    t->options.env.copies = (size_t)rp_agent_copies(t->folder.kind, &t->folder.settings);
    t->options.make_agent = make_agent;
    t->options.ctx = t;
    t->options.seed = t->folder.seed;
    t->options.directory = rp_run_folder_file(&t->folder, "replay", path);
    t->options.resume = t->resume;
    t->options.progress_ns = LINE_NS;
    t->options.on_progress = on_progress;
    t->options.should_stop = should_stop;
    st = rp_trainer_new(NULL, &t->options, &t->trainer, &err);
    if (st == RP_NOT_FOUND && t->resume) { /* stopped before its first snapshot */
        t->options.resume = false;
        st = rp_trainer_new(NULL, &t->options, &t->trainer, &err);
        if (st == RP_OK) st = rp_train_start_again(t, &err);
    }
    if (st == RP_OK) st = rp_train_open_logs(t, rp_trainer_get_steps(t->trainer), &err);
    if (st == RP_OK) st = rp_train_serve(t, &err);
    if (st == RP_OK) st = rp_train_open_reporter(t, &err);
    if (st == RP_OK) st = rp_train_check_plot(t, &err);
    if (st != RP_OK) return rp_train_refused(t, err.text);
    rp_trainer_set_logs(t->trainer, t->logs, t->log_count);
    st = rp_trainer_run(t->trainer, &result, &err);
    if (t->drawn) (void)fputs("\r\x1b[K", stderr);
    rp_train_close_reporter(t);
    if (st != RP_OK) status = rp_train_failed(err.text);
    if (st == RP_OK &&
        rp_train_save_policy(t, rp_trainer_get_parameters(t->trainer), &later) != RP_OK)
        status = rp_train_failed(later.text);
    if (status == 0) rp_train_print(t, &result);
    if (status == 0) status = rp_train_draw(t, rp_trainer_get_threshold(t->trainer));
    if (status == 0 && result.stopped)
        status = RP_TRAIN_SIGNAL + atomic_load(&t->interrupts.number);
    return status;
}

static bool is_async(const rp_training *t)
{
    const rp_settings_table *table = t->folder.kind->settings();
    size_t i = rp_settings_find(table, "async-learners");

    return i < table->count && rp_settings_get(table, &t->folder.settings, i) != 0;
}

int rp_train_pick(rp_training *t, const rp_apex_algorithm *algorithm)
{
    const rp_settings_table *table = t->folder.kind->settings();
    size_t learners = rp_settings_find(table, "learners");
    rp_auto_split *s = &t->split;
    const rp_profile_options options = {.kind = t->folder.kind,
                                        .algorithm = algorithm,
                                        .settings = &t->folder.settings,
                                        .env_class = t->folder.env_class,
                                        .seed = t->folder.seed,
                                        .should_stop = should_stop,
                                        .ctx = t};
    const char *given = rp_train_get_learners(t);
    char line[RP_SPLIT_LINE_BYTES];
    rp_error err = {0};

    if (!s->is_on) return 0;
    if (is_async(t))
        return rp_train_failed("--async-learners: their number is not picked: give --learners");
    if (given != NULL && !rp_is_auto(given) && learners < table->count)
        s->learners = (int64_t)rp_settings_get(table, &t->folder.settings, learners);
    if (!rp_auto_split_fits(s, algorithm == NULL, line)) return rp_train_failed(line);
    if (rp_auto_split_measure(s, &options, &err) != RP_OK)
        return should_stop(t) ? RP_TRAIN_SIGNAL + atomic_load(&t->interrupts.number)
                              : rp_train_failed(err.text);
    if (learners < table->count)
        rp_settings_set(table, &t->folder.settings, learners, (double)s->pick.learners);
    if (!t->quiet) (void)fprintf(stderr, "reprise train: %s\n", rp_auto_split_line(s, line));
    return 0;
}

int rp_train_agent(rp_training *t)
{
    rp_problem problem;
    int status;

    if (take_run_options(t, &problem) != RP_OK ||
        rp_train_folder(t, rp_train_get(t, RP_TRAIN_ENV), &problem) != RP_OK)
        return rp_train_misuse(&problem);
    if (t->folder.steps > 0) t->options.max_steps = t->folder.steps;
    t->options.keep_going = t->folder.keep_going;
    if (rp_interrupts_start(&t->interrupts) != RP_OK)
        return rp_train_failed("no thread for signals");
    status = rp_train_pick(t, NULL);
    t->is_refused = status != 0;
    if (status == 0) status = train(t);
    rp_train_close(t); /* the server first: it has the store of the trainer */
    rp_trainer_free(t->trainer);
    rp_train_forget(t);
    rp_interrupts_stop(&t->interrupts);
    return status;
}
