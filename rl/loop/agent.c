/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/agent.h"

#include "reprise/rl/actor.h"
#include "reprise/rl/learner.h"

void rp_policy_free(rp_policy *policy)
{
    if (policy != NULL) policy->free(policy);
}

void rp_agent_free(rp_agent *agent)
{
    if (agent != NULL) agent->type->free(agent);
}

void rp_actor_free(rp_actor *actor)
{
    if (actor != NULL) actor->type->free(actor);
}

void rp_learner_free(rp_learner *learner)
{
    if (learner != NULL) learner->type->free(learner);
}
