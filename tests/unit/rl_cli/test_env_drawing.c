/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/train/env_drawing.h"

#include <string.h>

#include "support/unit.h"

static size_t lines_of(const char *text)
{
    size_t n = 0;

    for (; *text != '\0'; text++) n += *text == '\n';
    return n;
}

/* Every environment can be drawn, with the same number of lines after every step: the terminal
 * moves its cursor up by them. */
static void every_environment_can_be_drawn(void **state)
{
    (void)state;
    rp_error err;

    for (size_t i = 0; rp_env_class_at(i) != NULL; i++) {
        const rp_env_class *class = rp_env_class_at(i);
        rp_env *env = NULL;
        uint64_t seed = 3;
        double reward;
        bool terminated, truncated;
        float box[16] = {0};
        void *observation;
        size_t lines = 0;

        assert_ok(rp_env_new(NULL, class, &(rp_env_options){.copies = 1}, &env, &err));
        observation = test_calloc(1, rp_env_observation_bytes(env));
        rp_env_buffers out = {observation, NULL, &reward, &terminated, &truncated};
        assert_true(rp_env_action_bytes(env) <= sizeof box);
        assert_ok(rp_env_reset(env, &seed, observation, &err));
        for (int step = 0; step < 30; step++) {
            rp_text_buffer text = {0};
            rp_env_draw(&text, env, observation);
            assert_false(text.failed);
            if (step == 0) lines = lines_of(text.text);
            assert_int_equal(lines_of(text.text), lines);
            assert_true(lines >= 1);
            rp_text_buffer_deinit(&text);
            assert_ok(rp_env_step(env, box, &out, &err)); /* action 0 */
        }
        test_free(observation);
        rp_env_free(env);
    }
}

static void a_cart_stands_below_its_pole(void **state)
{
    (void)state;
    const double values[] = {0, 0, 0, 0};
    rp_env *env = NULL;
    uint64_t seed = 1;
    float observation[4];
    rp_text_buffer text = {0};
    rp_error err;

    assert_ok(
        rp_env_new(NULL, rp_env_find("cartpole"), &(rp_env_options){.copies = 1}, &env, &err));
    assert_ok(rp_env_reset(env, &seed, observation, &err));
    assert_ok(rp_env_set_variables(env, 0, values, &err));
    rp_env_draw(&text, env, observation);
    assert_non_null(strstr(text.text, " ========= "));
    assert_non_null(strstr(text.text, "|"));
    assert_non_null(strstr(text.text, "x 0.000"));
    rp_text_buffer_deinit(&text);
    rp_env_free(env);
}

RP_TESTS(env_drawing)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_environment_can_be_drawn),
        cmocka_unit_test(a_cart_stands_below_its_pole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
