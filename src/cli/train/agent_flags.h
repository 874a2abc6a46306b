/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of agents as options of a command that trains or measures an agent. The list of
 * options begins with the settings of the agent dqn. The settings of dpg that dqn does not have
 * follow, and then the settings that only sac has. */
#ifndef RP_CLI_TRAIN_AGENT_FLAGS_H
#define RP_CLI_TRAIN_AGENT_FLAGS_H

#include "cli/help/flags.h"
#include "reprise/rl/agent_kinds.h"

enum { RP_AGENT_FLAGS = RP_DQN_SETTINGS + RP_DPG_OWN_SETTINGS + RP_SAC_OWN_SETTINGS };

/* The names of the environments: the allowed values of an option. */
#define RP_AGENT_ENVS                                                                          \
    "acrobot bricks cartpole catch deep_sea lunarlander memory_chain mountain_car "            \
    "mountain_car_continuous pendulum"

/* These macros turn a setting of the lists in reprise/rl/ into an rp_option. A group is a
 * heading in --help; the first setting of each agent has one. */
#define RP_AGENT_ARGUMENT_INTEGER "N"
#define RP_AGENT_ARGUMENT_NUMBER "X"
#define RP_AGENT_ARGUMENT_SWITCH "BOOL"
#define RP_AGENT_WORDS_INTEGER NULL
#define RP_AGENT_WORDS_NUMBER NULL
#define RP_AGENT_WORDS_SWITCH "true false"
#define RP_AGENT_TRUTH_0 "false"
#define RP_AGENT_TRUTH_1 "true"
#define RP_AGENT_DEFAULT_INTEGER(initial) #initial
#define RP_AGENT_DEFAULT_NUMBER(initial) #initial
#define RP_AGENT_DEFAULT_SWITCH(initial) RP_AGENT_TRUTH_##initial
#define RP_AGENT_OPTION_IN(group, kind, name, initial, about)                                  \
    {name,  RP_AGENT_ARGUMENT_##kind, about " (" RP_AGENT_DEFAULT_##kind(initial) ")", false,  \
     group, RP_AGENT_WORDS_##kind},
#define RP_AGENT_DQN_GROUP(field)                                                              \
    (offsetof(rp_dqn_settings, field) == 0 ? "Settings of dqn" : NULL)
#define RP_AGENT_DQN_OPTION(kind, field, name, initial, low, high, about)                      \
    RP_AGENT_OPTION_IN(RP_AGENT_DQN_GROUP(field), kind, name, initial, about)
#define RP_AGENT_DPG_GROUP(field)                                                              \
    (offsetof(rp_dpg_settings, field) == offsetof(rp_dpg_settings, normalize)                  \
         ? "Settings of dpg that dqn has not"                                                  \
         : NULL)
#define RP_AGENT_DPG_OPTION(kind, field, name, initial, low, high, about)                      \
    RP_AGENT_OPTION_IN(RP_AGENT_DPG_GROUP(field), kind, name, initial, about)

#define RP_AGENT_SAC_GROUP(field)                                                              \
    (offsetof(rp_sac_settings, field) == offsetof(rp_sac_settings, temperature)                \
         ? "Settings of sac alone"                                                             \
         : NULL)
#define RP_AGENT_SAC_OPTION(kind, field, name, initial, low, high, about)                      \
    RP_AGENT_OPTION_IN(RP_AGENT_SAC_GROUP(field), kind, name, initial, about)

/* The RP_AGENT_FLAGS options of the settings. They must be the last entries in a command's list
 * of rp_option. */
#define RP_AGENT_OPTIONS                                                                       \
    RP_DQN_SETTING_LIST(RP_AGENT_DQN_OPTION)                                                   \
    RP_DPG_OWN_SETTING_LIST(RP_AGENT_DPG_OPTION) RP_SAC_OWN_SETTING_LIST(RP_AGENT_SAC_OPTION)

/* Sets the settings of an agent from the flags. Option `first` of `command` is the first of
 * RP_AGENT_OPTIONS. If `is_fixed` is true, any flag of a setting is an error: the run is
 * resumed and keeps its settings. Ignores the setting `learners` if its value is "auto"; the
 * caller must handle this value. If a flag is wrong, returns RP_INVALID, and the problem names
 * the option. */
RP_NODISCARD rp_status rp_agent_flags_take(const rp_command *command, const rp_flags *flags,
                                           size_t first, bool is_fixed,
                                           const rp_settings_table *table, void *settings,
                                           rp_problem *problem);

#endif
