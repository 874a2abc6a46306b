/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a split of threads (split.h) right while a program runs.
 *
 * A split is picked by two curves: the rates of acting and of learning with x threads. They are
 * measured before the program begins, while only one role runs. In the program actors and
 * learners slow each other down, other programs come and go, and steps take longer as the agent
 * gets better. So the owner hands over the counters of the program from time to time, and
 * learns when threads should move from one role to the other:
 *
 *   rp_rebalance_init(&rebalance, &options, &err);    picks the first split: rebalance.split
 *   if (rp_rebalance_look(&rebalance, now_ns, &counts, &move)) ... move.to ...
 *
 * The time between two looks is added to a window, until the window is `window_ns` long. Say a
 * window has T seconds, S steps and U updates, x_a actors waited the share w_a of their time
 * for learners, and x_l learners the share w_l for items. If they had never waited, they would
 * have made
 *
 *   f_a(x_a) = S / T / (1 - w_a)    f_l(x_l) = U / T / (1 - w_l)
 *
 * steps and updates a second. At the number of threads in use, each curve is scaled towards
 * this rate; at a number that an earlier split had, towards the rate from its windows. Between
 * these numbers the scale is interpolated. Then rp_split_pick() solves the problem again. For a
 * split that was used before, it takes the measured steps a second, not those of the curves.
 *
 * Threads move only if the new split promises `least_gain` in `patience` windows in a row, and
 * a pause has passed since the last move. The pause doubles after a move that brought less than
 * half of its promise.
 *
 * When the machine or the task changes, what is known of other splits is forgotten. The sign of
 * a change is that for `patience` windows in a row the rate of the split in use, or of one of
 * its roles, differs by more than a factor of 1.2 from the rate soon after the move to the
 * split. For a role that waits for more than 60 % of its time the factor is 1.6.
 *
 * A plain value: no memory, no clock, no thread. */
#ifndef REPRISE_RL_REBALANCE_H
#define REPRISE_RL_REBALANCE_H

#include "reprise/rl/split.h"

RP_BEGIN_DECLS

/* Zero-initialise it; fields marked * must be set. */
typedef struct rp_rebalance_options {
    rp_split_options problem; /* * in_turn is false; the curves are copied */
    int64_t window_ns;        /* of a window, which is longer if there are few steps or updates
                                 in it; 0: 2 s */
    int64_t patience;         /* windows; 0: 4 */
    int64_t pause_ns;         /* after a move; 0: 10 s */
    double least_gain;        /* share of its steps a second that the split in use must be
                                 able to gain; 0: 0.06 */
} rp_rebalance_options;

/* The counters of the program at one moment. */
typedef struct rp_rebalance_counts {
    int64_t steps, updates; /* since the program began; they never fall */
    double actors_wait;     /* share of the time since the last look that an actor has waited
                               for the learner, 0 to 1: the mean over all actors */
    double learner_waits;   /* the same of the learner, for items */
} rp_rebalance_counts;

/* A window, or the last windows before a move. */
typedef struct rp_rebalance_view {
    double steps_per_second, updates_per_second;
    double actors_wait, learner_waits;
    double predicted; /* steps a second of the split that was in use */
} rp_rebalance_view;

typedef struct rp_rebalance_move {
    rp_split from, to; /* with the steps a second of `from` as measured, of `to` as predicted */
    rp_rebalance_view view;
} rp_rebalance_move;

/* A split that the program has had. */
typedef struct rp_rebalance_visit {
    int64_t actors, learners;
    double acting_scale, learning_scale; /* of the curves; 0: not known yet */
    double mean; /* steps a second of its windows; the latest count most */
    int64_t windows;
} rp_rebalance_visit;

enum { RP_REBALANCE_VISITS = 32 };

/* Read `split` and `view`; all else is private. */
typedef struct rp_rebalance {
    rp_split split;         /* in use, with the steps a second that were predicted for it */
    rp_rebalance_view view; /* of the last window; zeroes: there was none */
    int64_t moves;

    rp_rebalance_options options;           /* with defaults filled in; without curves */
    rp_rate_curve acting, learning;         /* as measured before */
    rp_rate_curve acting_now, learning_now; /* scaled */
    rp_rebalance_visit visits[RP_REBALANCE_VISITS]; /* [0] is of the split in use */
    int64_t visit_count;
    /* Of the split in use, at first: steps a second, and the scales of both curves. */
    double first_rate, first_acting, first_learning;
    double unit;                  /* rates by the scaled curves / rates measured in visits */
    bool has_looked, is_settling; /* the next window is dropped */
    int64_t since_ns, last_ns;    /* the window began; the last look */
    int64_t since_steps, since_updates;
    double actors_waited_ns, learner_waited_ns; /* in the window */
    int64_t asking, drifting; /* windows in a row that promised a gain; that had drifted */
    int64_t moved_ns, pause_ns;
    double before; /* steps a second before the last move; 0: it has been judged */
} rp_rebalance;

/* Picks the first split. RP_INVALID: as rp_split_pick(), or an option is out of its bounds. */
RP_API RP_NODISCARD rp_status rp_rebalance_init(rp_rebalance *out,
                                                const rp_rebalance_options *options,
                                                rp_error *err);

/* True if there are several splits to choose from. */
RP_API bool rp_rebalance_can_move(const rp_rebalance *rebalance);

/* Takes a look at the time `now_ns`, which never falls. Returns true if threads should move:
 * then `*move` says how, and `rebalance->split` is the new split. The owner moves them, or
 * calls rp_rebalance_stay(). */
RP_API bool rp_rebalance_look(rp_rebalance *rebalance, int64_t now_ns,
                              const rp_rebalance_counts *counts, rp_rebalance_move *move);

/* The owner could not make the move: sets `rebalance->split` back to the split before it. After
 * this rp_rebalance_look() never returns true again. */
RP_API void rp_rebalance_stay(rp_rebalance *rebalance, const rp_rebalance_move *move);

RP_END_DECLS

#endif
