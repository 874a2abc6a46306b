/* SPDX-License-Identifier: Apache-2.0 */
/* A policy that owns its network. Ape-X uses it in parts that have no learner from which to
 * make a policy, such as the evaluator. It works for all kinds of agents in agent_kinds.h. */
#ifndef RP_APEX_OWN_POLICY_H
#define RP_APEX_OWN_POLICY_H

#include "reprise/rl/agent_kinds.h"
#include "reprise/rl/apex.h"

/* Makes a policy for agents of the kind named `kind`, which must exist. Its act() takes at most
 * `rows` observations per call. The caller owns *out. Returns RP_NO_RESOURCE, or a status of
 * new_net() or new_policy() of the kind. */
RP_NODISCARD rp_status rp_apex_own_policy(const char *kind, const rp_apex_making *making,
                                          size_t rows, rp_policy **out, rp_error *err);

#endif
