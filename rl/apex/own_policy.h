/* SPDX-License-Identifier: Apache-2.0 */
/* A policy that owns its network. Ape-X uses it where it has no learner to make a policy, for
 * example to evaluate; it works for any kind of agent (agent_kinds.h). */
#ifndef RP_APEX_OWN_POLICY_H
#define RP_APEX_OWN_POLICY_H

#include "reprise/rl/agent_kinds.h"
#include "reprise/rl/apex.h"

/* Makes a policy for at most `rows` rows. Returns owned. RP_NO_RESOURCE, or a status of
 * new_net() or new_policy() of the kind. */
RP_NODISCARD rp_status rp_apex_own_policy(const char *kind, const rp_apex_making *making,
                                          size_t rows, rp_policy **out, rp_error *err);

#endif
