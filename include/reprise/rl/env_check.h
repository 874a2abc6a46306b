/* SPDX-License-Identifier: Apache-2.0 */
/* A conformance test for environments: run it on a class of your own.
 *
 *   rp_env_report report;
 *   rp_env_check(&my_class, NULL, &report);
 *   for (size_t i = 0; i < report.failure_count; i++) puts(report.failures[i]);
 *
 * It plays random actions and checks:
 *
 *   spec          the specification holds together
 *   bounds        observations and rewards are finite, observations are within their bounds
 *   state         check() accepts every state that is reached
 *   repeat        the same seeds and actions give the same run, in another object as well
 *   reseed        a reset with a seed does not depend on what was before
 *   alone         a copy gives the same run alone and among others
 *   snapshot      a run goes on from a snapshot as if nothing had happened
 *   observe       observe() changes nothing and returns the same when called again
 *   last          automatic resets equal resets by hand, and keep the last observation
 *   rows          nothing is written outside the rows of the caller's buffers
 *   variables     setting the variables to their current values has no effect
 *   after_end     steps after the end of an episode leave a state that check() accepts
 *
 * tests/unit/rl_env/test_env_check.c has eleven broken environments, which this test
 * detects. */
#ifndef REPRISE_RL_ENV_CHECK_H
#define REPRISE_RL_ENV_CHECK_H

#include "reprise/rl/env.h"

RP_BEGIN_DECLS

/* Zero stands for the default. */
typedef struct rp_env_check_options {
    const rp_allocator *alloc;      /* rp_allocator_default() */
    const rp_env_setting *settings; /* of the environment */
    size_t setting_count;
    size_t copies; /* 3; at most 64 */
    size_t steps;  /* of each check: 300 */
    uint64_t seed; /* of the actions, and the first seed of the copies */
} rp_env_check_options;

enum { RP_ENV_MAX_FAILURES = 16 };

typedef struct rp_env_report {
    size_t check_count;   /* checks that were made */
    size_t failure_count; /* failures, of which the first ones are kept below */
    char failures[RP_ENV_MAX_FAILURES][RP_ERROR_TEXT_BYTES]; /* "name: what is wrong" */
} rp_env_report;

/* Checks a class. `options` may be NULL. RP_OK if it conforms, RP_INVALID if it does not (the
 * report says why), RP_NO_RESOURCE if the test itself ran out of memory. An environment that
 * writes far outside its buffers can still crash the process. */
RP_API RP_NODISCARD rp_status rp_env_check(const rp_env_class *env_class,
                                           const rp_env_check_options *options,
                                           rp_env_report *report);

RP_END_DECLS

#endif
