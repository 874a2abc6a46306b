/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: measure how fast an agent acts and learns with different numbers of threads. From
 * these measurements rp_split_pick() (split.h) chooses a split: how many threads act (actors)
 * and how many learn (learners). A profile measures three things:
 *
 *   acting     x actors of Ape-X (apex.h) write to a replay whose rate limiter never blocks.
 *              For an agent that acts and learns in turn, x is 1, and the agent makes steps but
 *              no updates
 *   learning   x learners make updates from a filled replay whose rate limiter never blocks
 *   a split    actors and learners together, with the rate limiter of the agent
 *
 * After a warm-up, a measurement takes `time_ms`, or longer if there are few steps or updates
 * in this time. The result is the median of the rates in five slices of the measurement. The
 * profile runs the real environments and learners, on stores, tables and parameters of its own.
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

/* Zero-initialise the struct. Fields whose comment begins with * must be set. */
typedef struct rp_profile_options {
    const rp_agent_kind *kind;          /* * */
    const rp_apex_algorithm *algorithm; /* the algorithm of that kind, if actors and learner
                                           shall run at the same time as in Ape-X. NULL: the
                                           agent acts and learns in turn on one thread */
    const rp_agent_settings *settings;  /* * copied; the setting "learners" is ignored */
    const rp_env_class *env_class;      /* * */
    int64_t cores;                      /* * 1 to RP_SPLIT_MAX_CORES */
    uint64_t seed;
    int64_t time_ms; /* time of each measurement without the warm-up; 0: 500 */
    /* Called every few milliseconds. If should_stop() returns true, the measurement ends with
     * RP_CANCELLED. May be NULL. */
    bool (*should_stop)(void *ctx);
    /* Called after each measurement of rp_profile_measure(). May be NULL. */
    void (*on_point)(void *ctx, rp_profile_what what, rp_rate_point point);
    void *ctx;
} rp_profile_options;

/* Checks the settings and makes a profile without measuring. `alloc` NULL means
 * rp_allocator_default(). Returns owned. Errors: RP_INVALID, RP_NO_RESOURCE, or a status of the
 * environment. */
RP_API RP_NODISCARD rp_status rp_profile_new(const rp_allocator *alloc,
                                             const rp_profile_options *options,
                                             rp_profile **out, rp_error *err);
RP_API void rp_profile_free(rp_profile *profile); /* NULL is fine */

/* Returns the largest number of threads that can act or learn on the cores of the option
 * `cores`. If the option `algorithm` is set, this is cores - 1, or 1 if there is one core. If
 * `algorithm` is NULL, 1 thread acts, and up to `cores` threads learn. The number of learners
 * is also at most the upper bound of the setting "learners" (1 if the agent does not have this
 * setting), and at most the number of items in a batch. */
RP_API int64_t rp_profile_most(const rp_profile *profile, rp_profile_what what);

/* Measures the rate of `threads` threads, from 1 to rp_profile_most(): steps per second if they
 * act, updates per second if they learn.
 * Errors: RP_INVALID, RP_CANCELLED (should_stop() returned true), RP_DEADLINE (no step or
 * update for two minutes), or a status of the agent. */
RP_API RP_NODISCARD rp_status rp_profile_rate(rp_profile *profile, rp_profile_what what,
                                              int64_t threads, double *out, rp_error *err);

/* Measures the steps per second of a split: its actors and learners run as in training. The
 * errors are those of rp_profile_rate(). */
RP_API RP_NODISCARD rp_status rp_profile_split(rp_profile *profile, int64_t actors,
                                               int64_t learners, double *out, rp_error *err);

enum { RP_PROFILE_POINTS = 12 };

/* The curves of both rates (split.h). The rates at 1, 2, 4, ... threads and at
 * rp_profile_most() threads are measured; from these points, rp_rate_curve_fill() computes the
 * curves. */
typedef struct rp_profile_curves {
    rp_rate_point points[2][RP_PROFILE_POINTS]; /* the measured points; the first index is a
                                                   rp_profile_what */
    size_t point_count[2];
    rp_rate_curve acting, learning;
} rp_profile_curves;

/* Measures both curves. The errors are those of rp_profile_rate(). */
RP_API RP_NODISCARD rp_status rp_profile_measure(rp_profile *profile, rp_profile_curves *out,
                                                 rp_error *err);

/* Returns options for rp_split_pick(), which then picks a split for these curves. The options
 * borrow the curves. */
RP_API rp_split_options rp_profile_problem(const rp_profile *profile,
                                           const rp_profile_curves *curves);

RP_END_DECLS

#endif
