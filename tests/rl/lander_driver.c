/* SPDX-License-Identifier: Apache-2.0 */
/* Plays LunarLander with a fixed policy, for compare_lander.py.
 *
 *     lander_driver POLICY SEED EPISODES      POLICY: nothing or steer
 *
 * Episode i has the seed SEED + i. Prints a line for each: its return, its steps, how it ended
 * (1 terminated, 2 truncated), and its first observation. Exits with 77 if this build has no
 * LunarLander. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reprise/rl/env.h"

enum { OBSERVED = 8 };
enum { NOTHING, LEFT, MAIN, RIGHT };

/* Steers towards the pad, as compare_lander.py does: leans against the drift, and brakes the
 * fall more, the lower the lander is. */
static int32_t steer(const float *seen)
{
    double v[OBSERVED], lean, turn, lift;

    for (size_t i = 0; i < OBSERVED; i++) v[i] = (double)seen[i];
    lean = fmin(fmax(0.5 * v[0] + v[2], -0.4), 0.4);
    turn = 0.5 * (lean - v[4]) - v[5];
    lift = 0.5 * (0.55 * fabs(v[0]) - v[1]) - 0.5 * v[3];
    if (v[6] > 0 || v[7] > 0) {
        turn = 0;
        lift = -0.5 * v[3];
    }
    if (lift > fabs(turn) && lift > 0.05) return MAIN;
    if (turn < -0.05) return RIGHT;
    return turn > 0.05 ? LEFT : NOTHING;
}

static void must(rp_status st, const rp_error *err)
{
    if (st == RP_OK) return;
    fprintf(stderr, "%s: %s\n", rp_status_name(st), err->text);
    exit(1);
}

static void play(rp_env *env, bool steers, uint64_t seed)
{
    float seen[OBSERVED], first[OBSERVED];
    double reward, sum = 0;
    bool terminated = false, truncated = false;
    rp_env_buffers out = {seen, NULL, &reward, &terminated, &truncated};
    rp_error err;
    int steps = 0;

    must(rp_env_reset(env, &seed, seen, &err), &err);
    memcpy(first, seen, sizeof first);
    while (!terminated && !truncated) {
        int32_t action = steers ? steer(seen) : NOTHING;

        must(rp_env_step(env, &action, &out, &err), &err);
        sum += reward;
        steps++;
    }
    printf("%.17g %d %d", sum, steps, terminated ? 1 : 2);
    for (size_t i = 0; i < OBSERVED; i++) printf(" %.9g", (double)first[i]);
    printf("\n");
}

int main(int argc, char **argv)
{
    const rp_env_class *class = rp_env_find("lunarlander");
    rp_env *env;
    rp_error err;

    if (class == NULL) return 77;
    if (argc != 4) {
        fprintf(stderr, "usage: lander_driver POLICY SEED EPISODES\n");
        return 2;
    }
    must(
        rp_env_new(NULL, class, &(rp_env_options){.copies = 1, .keep_ended = true}, &env, &err),
        &err);
    for (uint64_t i = 0, count = strtoull(argv[3], NULL, 10); i < count; i++)
        play(env, strcmp(argv[1], "steer") == 0, strtoull(argv[2], NULL, 10) + i);
    rp_env_free(env);
    return 0;
}
