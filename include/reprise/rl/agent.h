/* SPDX-License-Identifier: Apache-2.0 */
/* Agents and policies, as the loop (env_loop.h), the evaluator (evaluator.h) and the trainer
 * (trainer.h) use them.
 *
 * An agent acts in a group of parallel environments, writes its steps as items to a table (the
 * replay), and learns from samples of the replay. A policy only chooses actions, without
 * exploration. The parameters are an argument of each call of a policy, so an evaluation thread
 * can use its own copy of the parameters.
 *
 * Agents and policies are structs of functions, so a program can supply an agent of its own: a
 * struct whose first member is an rp_agent. One thread at a time may use an agent or a
 * policy. */
#ifndef REPRISE_RL_AGENT_H
#define REPRISE_RL_AGENT_H

#include "reprise/rl/env.h"
#include "reprise/rl/nn.h"

RP_BEGIN_DECLS

typedef struct rp_policy rp_policy;

struct rp_policy {
    size_t parameter_count; /* numbers in `params` of act() */
    size_t rows;            /* most observations in one call of act() */
    /* Chooses the best action for each of `rows` observations. */
    void (*act)(rp_policy *policy, const rp_real *params, const void *observations, size_t rows,
                void *actions);
    void (*free)(rp_policy *policy);
};

/* Frees a policy with its own function. NULL is fine. */
RP_API void rp_policy_free(rp_policy *policy);

/* One step of a group of environments. Arrays have one row per environment. Borrowed for one
 * call. */
typedef struct rp_agent_step {
    const void *observations; /* before the step */
    const void *actions;
    const rp_env_buffers *result; /* what rp_env_step() has written */
} rp_agent_step;

/* A part of the state of an agent, for snapshots (snapshot.h). `bytes` points to memory of the
 * agent. A program that saves a snapshot reads these bytes; a program that restores a snapshot
 * writes them. */
typedef struct rp_state_part {
    const char *name; /* unique, at most 40 bytes: letters, digits, '.' and '_'. Static */
    void *bytes;
    size_t size;
} rp_state_part;

enum { RP_AGENT_MAX_PARTS = 24 };

/* Numbers for logs. Means are over the updates since the last call of get_metrics(); they are
 * NaN if there was no update. */
typedef struct rp_agent_metrics {
    int64_t updates;   /* number of updates since the agent was made, including those before a
                          restored snapshot */
    double loss;       /* mean loss */
    double value;      /* mean Q of the actions in the batches */
    double error;      /* mean absolute TD error */
    double norm;       /* mean gradient norm before clipping */
    double epsilon;    /* how much the agent explores now: rp_actor.exploration (actor.h) */
    double rate;       /* current learning rate */
    int64_t inserts;   /* items written to the replay */
    int64_t samples;   /* items drawn from the replay */
    int64_t item_size; /* items in the table now */
    int64_t bad_items; /* number of samples that were left out of batches because their items
                          were bad, for example had numbers that are not finite. The agent
                          deletes bad items if the table is its own */
    char bad_item[96]; /* what is wrong with the latest bad item, for example "item 7 has action
                          5 of 2" */
} rp_agent_metrics;

typedef struct rp_agent rp_agent;

typedef struct rp_agent_class {
    const char *name; /* name of the algorithm, for example "dqn" */
    /* Chooses an action for every environment, with exploration. */
    void (*act)(rp_agent *agent, const void *observations, void *actions);
    /* Begins an episode in every environment. `observations` are the first observations of
     * these episodes. The owner must call begin() before the first step, and after every reset
     * of all environments. Drops the episodes that have not ended. */
    rp_status (*begin)(rp_agent *agent, const void *observations, rp_error *err);
    /* Writes one step to the replay. */
    rp_status (*observe)(rp_agent *agent, const rp_agent_step *step, rp_error *err);
    /* Makes as many updates as the rate limiter of the replay permits; often it permits none.
     * Errors: RP_PRECONDITION (the run has diverged; the text of the error says how), or the
     * status with which a call to the replay failed. */
    rp_status (*learn)(rp_agent *agent, rp_error *err);
    /* Returns the parameters for policies. Borrowed, valid until the next learn(). */
    const rp_real *(*parameters)(const rp_agent *agent);
    /* Makes a policy for at most `rows` observations per call. Returns owned. The policy must
     * be freed before the agent. Errors: RP_NO_RESOURCE. */
    rp_status (*new_policy)(const rp_agent *agent, size_t rows, rp_policy **out, rp_error *err);
    void (*get_metrics)(rp_agent *agent, rp_agent_metrics *out);
    /* Writes a description of each part of the agent's state to `parts`. Returns the number of
     * parts, at most RP_AGENT_MAX_PARTS. An agent has the same parts at every call. */
    size_t (*get_state)(rp_agent *agent, rp_state_part *parts);
    /* Completes a restore. Before this call, the caller must write a saved state to the bytes
     * of the parts. Errors: RP_CORRUPT (the bytes are not a valid state). */
    rp_status (*restored)(rp_agent *agent, rp_error *err);
    void (*free)(rp_agent *agent);
} rp_agent_class;

struct rp_agent {
    const rp_agent_class *type;
};

/* Frees an agent with its own function. NULL is fine. */
RP_API void rp_agent_free(rp_agent *agent);

RP_END_DECLS

#endif
