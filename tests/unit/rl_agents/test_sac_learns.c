/* SPDX-License-Identifier: Apache-2.0 */
/* SAC learns Pendulum, in a bounded number of steps. */
#include "reprise/rl/env_loop.h"
#include "reprise/rl/evaluator.h"
#include "reprise/rl/sac.h"
#include "support/unit.h"

enum { MOST_STEPS = 10000, EPISODES = 100 };

static void pendulum_is_solved(void **state)
{
    (void)state;
    rp_sac_settings settings;
    rp_store *store = NULL;
    rp_client *client = NULL;
    rp_env *env = NULL;
    rp_agent *agent = NULL;
    rp_env_loop *loop = NULL;
    rp_policy *policy = NULL;
    rp_evaluation result = {.mean_return = -2000};
    rp_error err;

    rp_sac_settings_init(&settings, "pendulum");
    assert_ok(rp_store_new(&(rp_store_options){.seed = 2}, &store, &err));
    assert_ok(rp_client_local(store, NULL, &client, &err));
    assert_ok(rp_env_new(NULL, rp_env_find("pendulum"),
                         &(rp_env_options){.copies = (size_t)settings.copies}, &env, &err));
    assert_ok(rp_sac_new(NULL,
                         &(rp_sac_options){&settings, rp_env_get_spec(env), store, client, 1},
                         &agent, &err));
    assert_ok(rp_env_loop_new(NULL, env, agent, &loop, &err));
    assert_ok(rp_env_loop_begin(loop, 1, &err));
    assert_ok(agent->type->new_policy(agent, EPISODES, &policy, &err));
    while (result.mean_return < -200 && rp_env_loop_get_counts(loop).steps < MOST_STEPS) {
        for (int i = 0; i < 125; i++) assert_ok_err(rp_env_loop_step(loop, &err), &err);
        assert_ok(rp_evaluate(NULL,
                              &(rp_evaluation_options){.env_class = rp_env_find("pendulum"),
                                                       .policy = policy,
                                                       .episodes = EPISODES,
                                                       .seed = 5},
                              agent->type->parameters(agent), &result, &err));
    }
    assert_true(result.mean_return >= -200);
    rp_policy_free(policy);
    rp_env_loop_free(loop);
    rp_agent_free(agent);
    rp_env_free(env);
    rp_client_free(client);
    rp_store_free(store);
}

RP_TESTS(sac_learns)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pendulum_is_solved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
