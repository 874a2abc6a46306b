/* SPDX-License-Identifier: Apache-2.0 */
/* A conformance test for environment classes (env.h), which a program can run on a class of its
 * own. An environment holds several instances of its task, called copies, as in env.h.
 *
 *   rp_env_report report;
 *   rp_env_check(&my_class, NULL, &report);
 *   for (size_t i = 0; i < report.failure_count; i++) puts(report.failures[i]);
 *
 * The test plays random actions and checks:
 *
 *   spec          the fields of the specification are consistent
 *   bounds        observations and rewards are finite, and observations are within bounds
 *   state         check() accepts every state that is reached
 *   repeat        the same seeds and actions give the same run, also in another rp_env
 *   reseed        a reset with a seed does not depend on earlier episodes
 *   alone         a copy gives the same run alone as among other copies
 *   snapshot      a run that continues from a snapshot equals the uninterrupted run
 *   observe       observe() changes nothing and returns the same when called again
 *   last          automatic resets give the same run as resets by the caller; when an episode
 *                 ends, and only then, last_observations receives its last observation
 *   rows          nothing is written outside the rows of the caller's buffers
 *   variables     setting the variables to their current values has no effect
 *   after_end     steps after the end of an episode leave a state that check() accepts
 *
 * tests/unit/rl_env/test_env_check.c has eleven broken environments that this test detects. */
#ifndef REPRISE_RL_ENV_CHECK_H
#define REPRISE_RL_ENV_CHECK_H

#include "reprise/rl/env.h"

RP_BEGIN_DECLS

/* Zero-initialise the struct. A field that is 0 or NULL has its default. */
typedef struct rp_env_check_options {
    const rp_allocator *alloc;      /* NULL: rp_allocator_default() */
    const rp_env_setting *settings; /* settings that differ from their default */
    size_t setting_count;
    size_t copies; /* at most 64; 0: 3 */
    size_t steps;  /* number of steps of each check; 0: 300 */
    uint64_t seed; /* seed of the random actions, and of the first copy */
} rp_env_check_options;

enum { RP_ENV_MAX_FAILURES = 16 };

typedef struct rp_env_report {
    size_t check_count;   /* number of checks made */
    size_t failure_count; /* number of failures; `failures` has the first of them */
    char failures[RP_ENV_MAX_FAILURES][RP_ERROR_TEXT_BYTES]; /* the name of a check (see above),
                                                                ": ", and what is wrong */
} rp_env_report;

/* Checks a class. `options` may be NULL. Returns RP_OK if the class conforms, RP_INVALID if it
 * does not (the report says why), or RP_NO_RESOURCE if the test itself ran out of memory. The
 * test runs the functions of the class in this process, so a class that writes far outside its
 * buffers can crash the process. */
RP_API RP_NODISCARD rp_status rp_env_check(const rp_env_class *env_class,
                                           const rp_env_check_options *options,
                                           rp_env_report *report);

RP_END_DECLS

#endif
