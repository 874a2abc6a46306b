/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/agent.h"

void rp_policy_free(rp_policy *policy)
{
    if (policy != NULL) policy->free(policy);
}

void rp_agent_free(rp_agent *agent)
{
    if (agent != NULL) agent->type->free(agent);
}
