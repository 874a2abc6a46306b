/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in agents (DQN, DPG, SAC) by name, for programs that train, load or export any one
 * of them. */
#ifndef REPRISE_RL_AGENT_KINDS_H
#define REPRISE_RL_AGENT_KINDS_H

#include "reprise/rl/dpg.h"
#include "reprise/rl/dqn.h"
#include "reprise/rl/sac.h"

RP_BEGIN_DECLS

/* The settings of one agent. The union does not store which member is in use: the owner must
 * know the kind of the agent. */
typedef union rp_agent_settings {
    rp_dqn_settings dqn;
    rp_dpg_settings dpg;
    rp_sac_settings sac;
} rp_agent_settings;

/* The options of an agent. The comments of rp_dqn_options (dqn.h), rp_dpg_options (dpg.h) and
 * rp_sac_options (sac.h), which have the same fields, describe them. */
typedef struct rp_agent_options {
    const rp_agent_settings *settings; /* copied */
    const rp_env_spec *spec;
    rp_store *store;
    rp_client *client;
    uint64_t seed;
} rp_agent_options;

/* A kind of agent: functions that make agents and their parts. */
typedef struct rp_agent_kind {
    const char *name; /* name of the kind, for example "dqn" */
    /* Returns the table of the settings (settings.h). Static. */
    const rp_settings_table *(*settings)(void);
    /* Makes an agent. Returns owned. */
    rp_status (*new_agent)(const rp_allocator *alloc, const rp_agent_options *options,
                           rp_agent **out, rp_error *err);
    /* Makes the network of the policy, with which a program can load or export parameters.
     * Returns owned. */
    rp_status (*new_net)(const rp_allocator *alloc, const rp_agent_settings *settings,
                         const rp_env_spec *spec, rp_net **out, rp_error *err);
    /* Makes a policy that runs `net`, made by new_net(), for at most `rows` observations in one
     * call of act(). Borrows `net` until the policy is freed. Returns owned. */
    rp_status (*new_policy)(const rp_allocator *alloc, const rp_net *net,
                            const rp_agent_settings *settings, const rp_env_spec *spec,
                            size_t rows, rp_policy **out, rp_error *err);
    /* Writes `net`, made by new_net(), and its parameters to an ONNX file. */
    rp_status (*save_onnx)(const rp_net *net, const rp_agent_settings *settings,
                           const rp_env_spec *spec, const rp_real *params, const char *path,
                           rp_error *err);
} rp_agent_kind;

/* Returns the kind with this name, or NULL if there is none. Static. */
RP_API const rp_agent_kind *rp_agent_find(const char *name);

/* Returns kind number `index`, counted from 0 in the order of names. Returns NULL if there are
 * not so many kinds. Static. */
RP_API const rp_agent_kind *rp_agent_kind_at(size_t index);

/* Returns the setting "copies", the number of parallel environments, which every kind has. */
RP_API int64_t rp_agent_copies(const rp_agent_kind *kind, const rp_agent_settings *settings);

RP_END_DECLS

#endif
