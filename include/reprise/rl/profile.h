/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: measures how fast an agent acts and learns with some numbers of threads, for the
 * split of cores (split.h).
 *
 *   acting     x actors of Ape-X write to a replay that never waits; or, for an agent that acts
 *              and learns in turn, its steps without updates (x is 1)
 *   learning   x learners make updates from a filled replay that never waits
 *   a split    actors and learners together, with the rate limiter of the agent
 *
 * Each measurement takes `time_ms` after a warm-up that is dropped, longer if there are few
 * steps or updates in it, and returns the median of five slices. Everything is made for the
 * profile: stores, tables, parameters. Environments and learners are the real ones.
 *
 * One thread at a time may use a profile. */
#ifndef REPRISE_RL_PROFILE_H
#define REPRISE_RL_PROFILE_H

#include "reprise/rl/agent_kinds.h"
#include "reprise/rl/apex.h"
#include "reprise/rl/split.h"

RP_BEGIN_DECLS

typedef struct rp_profile rp_profile;

typedef enum rp_profile_what {
    RP_PROFILE_ACTING = 0,
    RP_PROFILE_LEARNING,
} rp_profile_what;

/* Zero-initialise it; fields marked * must be set. */
typedef struct rp_profile_options {
    const rp_agent_kind *kind;          /* * */
    const rp_apex_algorithm *algorithm; /* of that kind: actors and learner run at the same
                                           time. NULL: the agent acts and learns in turn */
    const rp_agent_settings *settings;  /* * copied; its learners are not used */
    const rp_env_class *env_class;      /* * */
    int64_t cores;                      /* * 1 to RP_SPLIT_MAX_CORES */
    uint64_t seed;
    int64_t time_ms; /* of each measurement, without its warm-up; 0: 500 */
    /* Asked every few milliseconds: true ends the measurement with RP_CANCELLED. May be NULL.
     */
    bool (*should_stop)(void *ctx);
    /* Called after each measurement of rp_profile_measure(). May be NULL. */
    void (*on_point)(void *ctx, rp_profile_what what, rp_rate_point point);
    void *ctx;
} rp_profile_options;

/* Checks the settings and makes a profile without measuring. `alloc` NULL is
 * rp_allocator_default(). Returns owned. RP_INVALID, RP_NO_RESOURCE, or a status of the
 * environment. */
RP_API RP_NODISCARD rp_status rp_profile_new(const rp_allocator *alloc,
                                             const rp_profile_options *options,
                                             rp_profile **out, rp_error *err);
RP_API void rp_profile_free(rp_profile *profile); /* NULL is fine */

/* The most threads of a split on these cores: all but one, or 1 actor if the agent acts in
 * turn; learners are at most what the agent can have, 1 if it has no setting "learners". */
RP_API int64_t rp_profile_most(const rp_profile *profile, rp_profile_what what);

/* Measures steps or updates a second of `threads`, 1 to rp_profile_most().
 * RP_INVALID, RP_CANCELLED (should_stop), RP_DEADLINE (no step or update for two minutes), or a
 * status of the agent. */
RP_API RP_NODISCARD rp_status rp_profile_rate(rp_profile *profile, rp_profile_what what,
                                              int64_t threads, double *out, rp_error *err);

/* Measures the steps a second of a split as it would run. Statuses as above. */
RP_API RP_NODISCARD rp_status rp_profile_split(rp_profile *profile, int64_t actors,
                                               int64_t learners, double *out, rp_error *err);

enum { RP_PROFILE_POINTS = 12 };

/* Both curves: at 1, 2, 4, ... threads and at the most, filled by rp_rate_curve_fill(). */
typedef struct rp_profile_curves {
    rp_rate_point points[2][RP_PROFILE_POINTS]; /* by rp_profile_what */
    size_t point_count[2];
    rp_rate_curve acting, learning;
} rp_profile_curves;

RP_API RP_NODISCARD rp_status rp_profile_measure(rp_profile *profile, rp_profile_curves *out,
                                                 rp_error *err);

/* The problem that rp_split_pick() solves for these curves. Borrows them. */
RP_API rp_split_options rp_profile_problem(const rp_profile *profile,
                                           const rp_profile_curves *curves);

RP_END_DECLS

#endif
