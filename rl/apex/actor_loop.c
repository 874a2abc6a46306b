/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of an actor: parameters, then steps, until the program stops.
 *
 * The environment loop (env_loop.h) drives an agent whose learn() is the pull of parameters. A
 * life ends when the table is gone; a server that is away only holds the writer up.
 *
 * Invariant:
 *   C1  the actor uses params[now]; the other buffer is where the next ones arrive. */
#include <assert.h>
#include <string.h>

#include "apex/part.h"
#include "error/fail.h"
#include "reprise/rl/env_loop.h"

enum { LOOK_EVERY = 100 }; /* steps between looks at several shards */

typedef struct actor_life {
    rp_agent agent; /* first: what the environment loop sees */
    rp_part *part;
    rp_env *env;
    rp_actor *actor;
    rp_env_loop *loop;
    rp_variable_client *variables;
    rp_real *params[2]; /* C1 */
    int now;
    int64_t next_pull, next_look; /* steps of this life */
    int64_t group;                /* actors that the actor knows of */
    double max_diff;              /* rp_apex_is_ahead() */
} actor_life;

static void act(rp_agent *agent, const void *observations, void *actions)
{
    actor_life *l = (actor_life *)agent;

    assert(l->actor->params == l->params[l->now]); /* C1 */
    l->actor->type->act(l->actor, observations, actions);
}

static rp_status begin(rp_agent *agent, const void *observations, rp_error *err)
{
    actor_life *l = (actor_life *)agent;

    return l->actor->type->begin(l->actor, observations, rp_part_wait(l->part, RP_CALL_MS),
                                 err);
}

static rp_status observe(rp_agent *agent, const rp_agent_step *step, rp_error *err)
{
    actor_life *l = (actor_life *)agent;
    rp_status st = l->actor->type->observe(l->actor, step, rp_wait_none(), err);

    if (st != RP_DEADLINE) return st;
    rp_part_waits(l->part, "the learner");
    while (st == RP_DEADLINE) {
        st = l->actor->type->observe(l->actor, step, rp_part_wait(l->part, RP_SLICE_MS), err);
        if (st == RP_DEADLINE) st = rp_apex_explain(l->part, err);
    }
    rp_part_works(l->part);
    return st;
}

/* Fetches newer parameters, if there are any. */
static rp_status pull(actor_life *l, int64_t ms, rp_error *err)
{
    rp_variables got = {0};
    rp_status st = rp_part_pull(l->part, l->variables, l->params[1 - l->now], ms, &got, err);
    rp_apex_part *state;

    assert(l->now == 0 || l->now == 1); /* C1 */
    if (st != RP_OK || !got.changed) return st;
    l->now = 1 - l->now;
    l->actor->params = l->params[l->now];
    state = rp_part_lock(l->part);
    state->version = got.version;
    state->learner_steps = got.note;
    rp_part_unlock(l->part);
    return RP_OK;
}

static void count(actor_life *l)
{
    rp_env_loop_counts counts = rp_env_loop_get_counts(l->loop);
    rp_apex_part *state = rp_part_lock(l->part);

    assert(l->part->earlier_steps >= 0 && counts.steps >= 0);
    state->steps = l->part->earlier_steps + counts.steps;
    state->episodes = l->part->earlier_episodes + counts.episodes;
    state->items = l->part->earlier_items + l->actor->type->created(l->actor);
    state->mean_return = counts.mean_return;
    state->mean_length = counts.mean_length;
    state->exploration = l->actor->exploration;
    rp_part_unlock(l->part);
}

/* Waits while the actors are ahead of the learner, over all shards. */
static rp_status pace(actor_life *l, rp_error *err)
{
    rp_replay_view view = {0};
    rp_status st;

    if (rp_client_shard_count(l->part->apex->options.client) == 1 ||
        rp_env_loop_get_counts(l->loop).steps < l->next_look)
        return RP_OK;
    l->next_look += LOOK_EVERY;
    st = rp_apex_pace(l->part, &view, l->max_diff, err);
    return rp_part_is_away(st) ? RP_OK : st; /* the writer waits for the replay */
}

/* Explores as one of so many actors as there are now. */
static void join_group(actor_life *l)
{
    int64_t actors = rp_part_actors(l->part);

    if (l->group == actors) return;
    l->group = actors;
    if (l->actor->type->set_group != NULL)
        l->actor->type->set_group(l->actor, l->part->index, actors);
}

/* Pulls parameters when it is time. Old ones do while the replay is away: then the writer waits
 * for it, not the pull. */
static rp_status learn(rp_agent *agent, rp_error *err)
{
    actor_life *l = (actor_life *)agent;
    rp_status st;

    st = pace(l, err);
    if (st != RP_OK || rp_env_loop_get_counts(l->loop).steps < l->next_pull) return st;
    l->next_pull += l->part->apex->options.pull_every;
    count(l);
    join_group(l);
    st = pull(l, RP_SLICE_MS, err);
    if (st == RP_DEADLINE) {
        rp_part_waits(l->part, "new parameters of the learner");
        st = pull(l, RP_CALL_MS, err);
        rp_part_works(l->part);
    }
    return rp_part_is_away(st) ? RP_OK : st;
}

static const rp_agent_class agent_class = {
    .name = "actor", .act = act, .begin = begin, .observe = observe, .learn = learn};

/* Waits for the first parameters that a learner publishes. */
static rp_status await_parameters(actor_life *l, rp_error *err)
{
    rp_status st = RP_OK;

    while (st == RP_OK && l->actor->params == NULL && !rp_part_is_stopping(l->part)) {
        st = pull(l, RP_CALL_MS, err);
        if (st != RP_OK || l->actor->params != NULL) break;
        rp_part_waits(l->part, "the first parameters of the learner");
        l->part->worked_ns = rp_now_ns(); /* the replay is there */
        rp_part_sleep(l->part, 20);
    }
    return st;
}

static rp_status make(actor_life *l, rp_error *err)
{
    rp_part *p = l->part;
    rp_apex *a = p->apex;
    rp_pcg64 rng;
    const rp_apex_making making = rp_part_making(p, &rng);
    const rp_variable_options variables = {
        .client = a->options.home, .table = RP_APEX_VARIABLES, .count = a->parameter_count};
    rp_status st = rp_apex_make_table(p, err);

    l->group = making.actors;
    rp_pcg64_seed(&rng, rp_apex_seed(a, RP_SEED_ACTOR + (uint32_t)p->index) + p->lives);
    if (st == RP_OK)
        st = a->options.algorithm->new_actor(&making, rp_part_wait(p, RP_CALL_MS), &l->actor,
                                             err);
    if (st == RP_OK) st = rp_env_loop_new(&a->alloc, l->env, &l->agent, &l->loop, err);
    if (st == RP_OK) st = rp_variable_client_new(&a->alloc, &variables, &l->variables, err);
    assert(st != RP_OK || l->actor->parameter_count == a->parameter_count);
    return st;
}

/* Writes what the actor has to the replay before it leaves. The rate limiter may take its time:
 * until then the part waits for the learner. */
static rp_status leave(actor_life *l, rp_error *err)
{
    rp_status st;

    count(l);
    rp_part_waits(l->part, "the learner, to leave");
    do st = l->actor->type->flush(l->actor, rp_part_wait(l->part, RP_SLICE_MS), err);
    while (st == RP_DEADLINE);
    rp_part_works(l->part);
    return st;
}

static rp_status live(void *ctx, rp_error *err)
{
    actor_life *l = ctx;
    rp_apex *a = l->part->apex;
    rp_status st = make(l, err);
    bool has_begun = false;

    l->next_pull = l->next_look = 0;
    if (st == RP_OK) st = rp_apex_max_diff(l->part, &l->max_diff, err);
    if (st == RP_OK) st = await_parameters(l, err);
    /* without parameters it was to end meanwhile, though it may be asked to stay since */
    if (st == RP_OK && l->actor->params != NULL && !rp_part_is_stopping(l->part)) {
        has_begun = true;
        st = rp_env_loop_begin(
            l->loop,
            rp_apex_seed(a, RP_SEED_ENVS + (uint32_t)l->part->index) + l->part->lives++, err);
    }
    if (st == RP_OK) rp_part_works(l->part);
    while (st == RP_OK && has_begun && !rp_part_is_stopping(l->part))
        st = rp_env_loop_step(l->loop, err);
    if (st == RP_OK && has_begun && rp_part_is_leaving(l->part)) st = leave(l, err);
    if (l->loop != NULL) {
        l->part->earlier_steps += rp_env_loop_get_counts(l->loop).steps;
        l->part->earlier_episodes += rp_env_loop_get_counts(l->loop).episodes;
        l->part->earlier_items += l->actor->type->created(l->actor);
    }
    rp_variable_client_free(l->variables);
    rp_env_loop_free(l->loop);
    rp_actor_free(l->actor);
    l->variables = NULL;
    l->loop = NULL;
    l->actor = NULL;
    return st;
}

rp_status rp_apex_actor_loop(rp_part *p, rp_error *err)
{
    rp_apex *a = p->apex;
    const rp_env_options env = {.copies = a->options.algorithm->copies(a->options.settings)};
    const size_t bytes = a->parameter_count * sizeof(rp_real);
    actor_life l = {.agent = {&agent_class}, .part = p};
    rp_status st = rp_env_new(&a->alloc, a->options.env_class, &env, &l.env, err);

    for (int i = 0; st == RP_OK && i < 2; i++) {
        l.params[i] = a->alloc.resize(a->alloc.ctx, NULL, 0, bytes);
        if (l.params[i] == NULL) st = rp_rl_fail_memory(err, bytes);
    }
    if (st == RP_OK) st = rp_part_outlive(p, live, &l, err);
    for (int i = 0; i < 2; i++)
        if (l.params[i] != NULL) (void)a->alloc.resize(a->alloc.ctx, l.params[i], bytes, 0);
    rp_env_free(l.env);
    return st;
}
