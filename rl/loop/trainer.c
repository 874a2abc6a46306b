/* SPDX-License-Identifier: Apache-2.0 */
/* The run, step by step:
 *
 *   a step of the loop -> perhaps: publish and evaluate, take a verdict, save, report
 *
 * Evaluations, snapshots and the end are at fixed numbers of steps, so that the state of the
 * run is a function of its steps. Reports are at fixed times: they change nothing.
 *
 * Invariants:
 *   R1  what decides the future of the learning is in the loop's state and in the replay;
 *   R2  `best` are the parameters of the confirmed verdict, if saved.solved. */
#include "reprise/rl/trainer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "error/fail.h"
#include "reprise/durable.h"
#include "reprise/rl/env_loop.h"
#include "reprise/rl/random.h"
#include "reprise/rl/snapshot.h"

enum {
    EVAL_EVERY = 2000,
    EVAL_EPISODES = 20,
    CONFIRM_EPISODES = 300,
    EVAL_ROWS = 100,
    PROGRESS_NS = 200000000,
};
static const char VARIABLES[] = "variables";

/* Saved as it is. */
typedef struct trainer_saved {
    int64_t seconds_ns;           /* of earlier parts of the run */
    int64_t next_eval, next_save; /* steps */
    int64_t version;              /* evaluations published so far */
    int64_t solved_steps;
    int64_t solved;
    rp_evaluation confirmed;
} trainer_saved;

struct rp_trainer {
    rp_allocator alloc;
    rp_trainer_options options;
    rp_store *store;
    rp_durable *durable;
    rp_client *client;
    rp_env *env;
    rp_agent *agent;
    rp_env_loop *loop;
    rp_policy *policy;
    rp_evaluator *evaluator; /* NULL with inline_evaluation */
    rp_variable_source *source;
    rp_verdict_options verdicts;
    rp_real *best;
    size_t parameter_count;
    rp_run_log *const *logs;
    size_t log_count;
    trainer_saved saved;
    bool fresh; /* the latest state is in a snapshot */

    int64_t began_ns, reported_ns, reported_steps, reported_updates;
    rp_verdict verdict; /* the latest that was not reported */
    double verdict_seconds;
    bool has_verdict;
};

static void set_defaults(rp_trainer_options *o, const rp_env_spec *spec)
{
    if (o->eval_every == 0) o->eval_every = EVAL_EVERY;
    if (o->eval_episodes == 0) o->eval_episodes = EVAL_EPISODES;
    if (o->confirm_episodes == 0) o->confirm_episodes = CONFIRM_EPISODES;
    if (o->progress_ns == 0) o->progress_ns = PROGRESS_NS;
    if (o->threshold == 0 && !o->has_threshold) o->threshold = spec->solved_return;
}

static rp_status check(const rp_trainer_options *o, rp_error *err)
{
    if (o->max_steps < 1)
        return rp_rl_fail(err, RP_INVALID, "trainer: max_steps must be >= 1, got %lld",
                          (long long)o->max_steps);
    if (o->eval_every < 0 || o->eval_episodes < 0 || o->confirm_episodes < 0 ||
        o->save_every < 0)
        return rp_rl_fail(err, RP_INVALID,
                          "trainer: eval_every, eval_episodes, confirm_episodes and save_every "
                          "must be >= 0");
    return RP_OK;
}

/* Seeds for the parts of a run, which are independent of each other. */
static uint64_t seed_of(const rp_trainer *t, uint32_t part)
{
    const uint32_t words[] = {(uint32_t)t->options.seed, (uint32_t)(t->options.seed >> 32),
                              part};
    uint32_t out[2];

    rp_seed_sequence(words, 3, out, 2);
    return (uint64_t)out[0] << 32 | out[1];
}

enum { SEED_STORE, SEED_AGENT, SEED_ENVS, SEED_EVALUATION };

static rp_status open_store(rp_trainer *t, rp_error *err)
{
    const rp_trainer_options *o = &t->options;
    rp_store_options store = {.alloc = &t->alloc, .seed = seed_of(t, SEED_STORE) | 1};
    rp_durable_options durable = {.directory = o->directory,
                                  .mode = RP_DURABLE_CHECKPOINT,
                                  .period_ns = RP_FOREVER,
                                  .keep = 1};
    rp_status st = rp_store_new(&store, &t->store, err);

    if (st == RP_OK && o->directory != NULL)
        st = rp_durable_open(&durable, t->store, &t->durable, err);
    if (st != RP_OK) return st;
    if (o->resume && !rp_snapshot_exists(t->store))
        return rp_rl_fail(err, RP_NOT_FOUND, "%s: there is no run to resume",
                          o->directory != NULL ? o->directory : "no directory");
    if (!o->resume && rp_snapshot_exists(t->store))
        return rp_rl_fail(err, RP_EXISTS, "%s: there is a run already", o->directory);
    return rp_client_local(t->store, &(rp_client_options){.alloc = &t->alloc}, &t->client, err);
}

static rp_status make_agent(rp_trainer *t, rp_error *err)
{
    const rp_trainer_parts parts = {&t->alloc, rp_env_get_spec(t->env), t->store, t->client,
                                    seed_of(t, SEED_AGENT)};
    rp_status st = t->options.make_agent(t->options.ctx, &parts, &t->agent, err);

    if (st == RP_OK) st = rp_env_loop_new(&t->alloc, t->env, t->agent, &t->loop, err);
    if (st == RP_OK) st = t->agent->type->new_policy(t->agent, EVAL_ROWS, &t->policy, err);
    if (st != RP_OK) return st;
    t->parameter_count = t->policy->parameter_count;
    t->best = t->alloc.resize(t->alloc.ctx, NULL, 0, t->parameter_count * sizeof *t->best);
    if (t->best == NULL) return rp_rl_fail_memory(err, t->parameter_count * sizeof *t->best);
    memset(t->best, 0, t->parameter_count * sizeof *t->best);
    return RP_OK;
}

static rp_status make_evaluator(rp_trainer *t, rp_error *err)
{
    const rp_trainer_options *o = &t->options;
    const rp_variable_options variables = {
        .client = t->client, .table = VARIABLES, .count = t->parameter_count};
    rp_status st;

    t->verdicts = (rp_verdict_options){.evaluation = {.env_class = o->env_class,
                                                      .env = o->env,
                                                      .policy = t->policy,
                                                      .episodes = o->eval_episodes,
                                                      .seed = seed_of(t, SEED_EVALUATION)},
                                       .confirm_episodes = o->confirm_episodes,
                                       .threshold = o->threshold};
    if (o->inline_evaluation) return RP_OK;
    st = rp_variable_source_new(&t->alloc, &variables, &t->source, err);
    if (st == RP_OK)
        st = rp_evaluator_new(&t->alloc, &t->verdicts, &variables, &t->evaluator, err);
    return st;
}

/* The parts of the run's state. Returns their number. */
static size_t get_state(rp_trainer *t, rp_state_part parts[RP_SNAPSHOT_MAX_PARTS])
{
    size_t count = rp_env_loop_get_state(t->loop, parts);

    parts[count++] = (rp_state_part){"trainer", &t->saved, sizeof t->saved};
    parts[count++] =
        (rp_state_part){"trainer.best", t->best, t->parameter_count * sizeof *t->best};
    assert(count <= RP_SNAPSHOT_MAX_PARTS);
    return count;
}

static rp_status restore(rp_trainer *t, rp_error *err)
{
    rp_state_part parts[RP_SNAPSHOT_MAX_PARTS];
    size_t count = get_state(t, parts);
    rp_status st = rp_snapshot_get(&t->alloc, t->client, parts, count, rp_wait_forever(), err);

    if (st == RP_OK) st = rp_env_loop_restored(t->loop, err);
    t->fresh = true;
    return st;
}

rp_status rp_trainer_new(const rp_allocator *alloc, const rp_trainer_options *options,
                         rp_trainer **out, rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_status st = check(options, err);
    rp_trainer *t;

    if (st != RP_OK) return st;
    t = a.resize(a.ctx, NULL, 0, sizeof *t);
    if (t == NULL) return rp_rl_fail_memory(err, sizeof *t);
    memset(t, 0, sizeof *t);
    t->alloc = a;
    t->options = *options;
    st = rp_env_new(&a, options->env_class, &options->env, &t->env, err);
    if (st == RP_OK) {
        set_defaults(&t->options, rp_env_get_spec(t->env));
        st = open_store(t, err);
    }
    if (st == RP_OK) st = make_agent(t, err);
    if (st == RP_OK) st = make_evaluator(t, err);
    if (st == RP_OK && options->resume)
        st = restore(t, err);
    else if (st == RP_OK) {
        t->saved.next_eval = t->options.eval_every;
        t->saved.next_save = t->options.save_every;
        st = rp_env_loop_begin(t->loop, seed_of(t, SEED_ENVS), err);
    }
    if (st != RP_OK) {
        rp_trainer_free(t);
        return st;
    }
    *out = t;
    return RP_OK;
}

void rp_trainer_free(rp_trainer *t)
{
    if (t == NULL) return;
    rp_allocator alloc = t->alloc;
    rp_evaluator_free(t->evaluator);
    rp_variable_source_free(t->source);
    rp_policy_free(t->policy);
    rp_env_loop_free(t->loop);
    rp_agent_free(t->agent);
    rp_env_free(t->env);
    rp_client_free(t->client);
    (void)!rp_durable_close(t->durable, NULL); /* the last checkpoint is complete */
    rp_store_free(t->store);
    if (t->best != NULL)
        (void)alloc.resize(alloc.ctx, t->best, t->parameter_count * sizeof *t->best, 0);
    (void)alloc.resize(alloc.ctx, t, sizeof *t, 0);
}

static double seconds(const rp_trainer *t)
{
    return (double)(t->saved.seconds_ns + rp_now_ns() - t->began_ns) * 1e-9;
}

/* Saves everything as of this step. */
static rp_status save(rp_trainer *t, rp_error *err)
{
    rp_state_part parts[RP_SNAPSHOT_MAX_PARTS];
    int64_t now_ns = rp_now_ns();
    rp_status st;

    assert(now_ns >= t->began_ns);
    if (t->durable == NULL || t->fresh) return RP_OK;
    t->saved.seconds_ns += now_ns - t->began_ns;
    t->began_ns = now_ns;
    st = rp_snapshot_put(&t->alloc, t->client, parts, get_state(t, parts), rp_wait_forever(),
                         err);
    if (st == RP_OK) st = rp_durable_checkpoint(t->durable, rp_wait_forever(), NULL, 0, err);
    t->fresh = st == RP_OK;
    return st;
}

/* Keeps a verdict for the next report, and the parameters if it is the first that is solved;
 * `params` are those of the verdict. */
static void keep_verdict(rp_trainer *t, const rp_verdict *verdict, const rp_real *params)
{
    t->verdict = *verdict;
    t->verdict_seconds = seconds(t);
    t->has_verdict = true;
    assert(!verdict->solved || verdict->confirmed.episodes > 0);
    if (!verdict->solved || t->saved.solved) return;
    memmove(t->best, params, t->parameter_count * sizeof *t->best); /* R2 */
    t->saved.solved = 1;
    t->saved.solved_steps = verdict->note;
    t->saved.confirmed = verdict->confirmed;
}

/* Publishes the parameters for the evaluator, or evaluates them here. */
static rp_status evaluate(rp_trainer *t, int64_t steps, rp_error *err)
{
    const rp_real *params = t->agent->type->parameters(t->agent);
    rp_verdict verdict = {.version = ++t->saved.version, .note = steps};
    int64_t version;
    rp_status st;

    if (t->evaluator != NULL) {
        st = rp_variable_source_publish(t->source, params, steps, &version, err);
        rp_evaluator_wake(t->evaluator);
        return st;
    }
    st = rp_judge(&t->alloc, &t->verdicts, params, &verdict, err);
    if (st == RP_OK) keep_verdict(t, &verdict, params);
    return st;
}

static rp_status take_verdict(rp_trainer *t, bool wait, rp_error *err)
{
    rp_verdict verdict;
    bool has = false;
    rp_status st = RP_OK;

    if (t->evaluator == NULL || t->saved.solved) return RP_OK;
    st = rp_evaluator_take(t->evaluator, wait, t->best, &verdict, &has, err);
    if (st == RP_OK && has) keep_verdict(t, &verdict, t->best);
    return st;
}

static rp_run_progress measure(rp_trainer *t)
{
    rp_env_loop_counts counts = rp_env_loop_get_counts(t->loop);
    int64_t now_ns = rp_now_ns();
    double passed = (double)(now_ns - t->reported_ns) * 1e-9;
    double speed = (double)(counts.steps - t->reported_steps) / passed;
    rp_agent_metrics m;

    t->agent->type->get_metrics(t->agent, &m);
    rp_run_progress p = {
        .steps = counts.steps,
        .max_steps = t->options.max_steps,
        .episodes = counts.episodes,
        .updates = m.updates,
        .seconds = seconds(t),
        .left_seconds = (double)(t->options.max_steps - counts.steps) / speed,
        .steps_per_second = speed,
        .updates_per_second = (double)(m.updates - t->reported_updates) / passed,
        .mean_return = counts.mean_return,
        .mean_length = counts.mean_length,
        .eval_return = t->has_verdict ? t->verdict.first.mean_return : (double)NAN,
        .eval_steps = t->verdict.note,
        .eval_seconds = t->verdict_seconds,
        .loss = m.loss,
        .value = m.value,
        .error = m.error,
        .norm = m.norm,
        .epsilon = m.epsilon,
        .rate = m.rate,
        .samples_per_insert = (double)m.samples / (double)m.inserts,
        .item_size = m.item_size,
        .actor_wait = (double)NAN, /* nothing waits in one thread */
        .learner_wait = (double)NAN,
        .actors = (double)NAN,
        .learners = (double)NAN,
        .predicted_steps_per_second = (double)NAN,
    };
    if (t->has_verdict && t->verdict.confirmed.episodes > 0)
        p.eval_return = t->verdict.confirmed.mean_return;
    t->reported_ns = now_ns;
    t->reported_steps = counts.steps;
    t->reported_updates = m.updates;
    t->has_verdict = false;
    return p;
}

/* Tells the caller and the logs, unless nothing has happened since the last time. */
static rp_status report(rp_trainer *t, rp_run_progress *out, rp_error *err)
{
    bool news = t->has_verdict || rp_env_loop_get_counts(t->loop).steps > t->reported_steps;
    rp_status st = RP_OK;

    *out = measure(t);
    if (!news) return RP_OK;
    if (t->options.on_progress != NULL) t->options.on_progress(t->options.ctx, out);
    for (size_t i = 0; st == RP_OK && i < t->log_count; i++)
        st = rp_run_log_write(t->logs[i], out, err);
    return st;
}

/* What is due after a step. */
static rp_status after_step(rp_trainer *t, rp_run_progress *progress, rp_error *err)
{
    int64_t steps = rp_env_loop_get_counts(t->loop).steps;
    bool new_verdict = t->has_verdict;
    rp_status st = RP_OK;

    if (steps >= t->saved.next_eval) {
        t->saved.next_eval += t->options.eval_every;
        st = evaluate(t, steps, err);
    }
    if (st == RP_OK) st = take_verdict(t, false, err);
    new_verdict = t->has_verdict && !new_verdict;
    if (st == RP_OK && t->options.save_every > 0 && steps >= t->saved.next_save) {
        t->saved.next_save += t->options.save_every;
        st = save(t, err);
    }
    if (st == RP_OK && (new_verdict || rp_now_ns() - t->reported_ns >= t->options.progress_ns))
        st = report(t, progress, err);
    return st;
}

static bool is_over(const rp_trainer *t, bool *stopped)
{
    if (rp_env_loop_get_counts(t->loop).steps >= t->options.max_steps) return true;
    if (t->saved.solved && !t->options.keep_going) return true;
    *stopped = t->options.should_stop != NULL && t->options.should_stop(t->options.ctx);
    return *stopped;
}

rp_status rp_trainer_run(rp_trainer *t, rp_trainer_result *result, rp_error *err)
{
    rp_error later;
    bool stopped = false;
    rp_status st = RP_OK, saved, reported;

    *result = (rp_trainer_result){0};
    t->began_ns = t->reported_ns = rp_now_ns();
    t->reported_steps = rp_env_loop_get_counts(t->loop).steps;
    while (st == RP_OK && !is_over(t, &stopped)) {
        st = rp_env_loop_step(t->loop, err);
        t->fresh = false;
        if (st == RP_OK) st = after_step(t, &result->progress, err);
    }
    if (st == RP_OK && !stopped) st = take_verdict(t, true, err); /* of the last parameters */
    /* A run that has diverged is not saved: the snapshot before it is worth more. */
    saved = st == RP_OK ? save(t, err) : RP_OK;
    reported = report(t, &result->progress, st == RP_OK && saved == RP_OK ? err : &later);
    result->solved = t->saved.solved != 0;
    result->stopped = stopped;
    result->confirmed = t->saved.confirmed;
    result->solved_steps = t->saved.solved_steps;
    if (st == RP_OK) st = saved;
    return st == RP_OK ? reported : st;
}

rp_agent *rp_trainer_get_agent(rp_trainer *t)
{
    return t->agent;
}

const rp_real *rp_trainer_get_parameters(rp_trainer *t)
{
    return t->saved.solved ? t->best : t->agent->type->parameters(t->agent);
}

int64_t rp_trainer_get_steps(const rp_trainer *t)
{
    return rp_env_loop_get_counts(t->loop).steps;
}

void rp_trainer_set_logs(rp_trainer *t, rp_run_log *const *logs, size_t count)
{
    t->logs = logs;
    t->log_count = count;
}

double rp_trainer_get_threshold(const rp_trainer *t)
{
    return t->options.threshold;
}
