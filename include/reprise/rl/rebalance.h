/* SPDX-License-Identifier: Apache-2.0 */
/* Adapts a split of threads (split.h) while a program runs. A split says how many threads act
 * (actors) and how many learn (learners). Acting and learning are called the two roles of a
 * thread.
 *
 * rp_split_pick() picks a split from two curves: the rate of acting and the rate of learning
 * with x threads. The curves are measured before the program begins, one role at a time. While
 * the program runs, the rates differ from the curves: actors and learners slow each other down,
 * other programs start and end, and steps can take longer as the agent gets better. Therefore
 * the program calls rp_rebalance_look() with its counters from time to time. The function
 * returns true when threads should move from one role to the other:
 *
 *   rp_rebalance_init(&rebalance, &options, &err);    picks the first split: rebalance.split
 *   if (rp_rebalance_look(&rebalance, now_ns, &counts, &move)) ... move.to ...
 *
 * A call of rp_rebalance_look() is called a look. Consecutive looks form a window, which ends
 * after at least `window_ns`. Let a window have T seconds, S steps and U updates. In this
 * window, let the actors wait for learners during the fraction w_a of their time, and let the
 * learners wait for items during the fraction w_l of theirs. Without these waits, x_a actors
 * and x_l learners would have had the rates
 *
 *   f_a(x_a) = S / T / (1 - w_a)    f_l(x_l) = U / T / (1 - w_l)
 *
 * in steps per second and updates per second. The scale of a role in a window is its rate f,
 * divided by the value of its curve at the number of threads in use. The first window after a
 * move to a split is ignored. The second window sets the scale of the role at this split. After
 * each later window, this scale becomes the geometric mean of its old value and the scale in
 * that window. If a role waits more than 7/8 of its time, its w counts as 7/8, and the window
 * does not reduce its scale.
 *
 * After each window the curve of each role is scaled again. At the number of threads of a split
 * that was used so far, the curve is multiplied by the role's scale at that split. At other
 * numbers of threads, it is multiplied by a scale interpolated between two splits, or by the
 * scale of the nearest split. With the new curves rp_split_pick() picks a split again. For a
 * split that was used before, rp_split_pick() uses the measured steps per second instead of the
 * curves.
 *
 * Threads move only if three conditions hold. First, in `patience` windows in a row another
 * split promises a gain of at least `least_gain`. Second, a pause has passed since the last
 * move. Third, the latest window does not indicate a change of the machine or the task (see the
 * next paragraph). If a move to a new split brings less than half of the gain that it promised,
 * the pause is doubled.
 *
 * A window indicates a change if the rate of the current split, or the scale of one of its
 * roles, differs by more than a factor of 1.2 from its value soon after the move to this split.
 * For a role that waits more than 60 % of its time the factor is 1.6. After `patience` such
 * windows in a row, the measurements of all other splits are dropped.
 *
 * rp_rebalance owns no memory. The functions allocate nothing, read no clock and start no
 * thread. */
#ifndef REPRISE_RL_REBALANCE_H
#define REPRISE_RL_REBALANCE_H

#include "reprise/rl/split.h"

RP_BEGIN_DECLS

/* Zero-initialise the struct. Fields whose comment begins with * must be set. */
typedef struct rp_rebalance_options {
    rp_split_options problem; /* * in_turn must be false; the curves are copied */
    int64_t window_ns;        /* shortest time of a window; a window with few steps or updates
                                 takes longer; 0: 2 s */
    int64_t patience;         /* number of windows in a row that decide on a move or a change;
                                 0: 4 */
    int64_t pause_ns;         /* shortest time between two moves; 0: 10 s */
    double least_gain;        /* smallest gain for which threads move, as a fraction of the
                                 current steps per second; 0: 0.06 */
} rp_rebalance_options;

/* The counters of the program at one moment. */
typedef struct rp_rebalance_counts {
    int64_t steps, updates; /* numbers since the program began; they must never decrease */
    double actors_wait;     /* fraction of the time since the last look during which an actor
                               has waited for the learner, 0 to 1; the mean over all actors */
    double learner_waits;   /* fraction of the time since the last look during which the learner
                               has waited for items */
} rp_rebalance_counts;

/* The measurements of a window. */
typedef struct rp_rebalance_view {
    double steps_per_second, updates_per_second;
    double actors_wait, learner_waits;
    double predicted; /* steps per second that the curves predicted for the split */
} rp_rebalance_view;

/* A move of threads from one split to another. */
typedef struct rp_rebalance_move {
    rp_split from, to; /* from.steps_per_second is measured, to.steps_per_second predicted */
    rp_rebalance_view view; /* the last window before the move */
} rp_rebalance_move;

/* The measurements of a split that the program has used. */
typedef struct rp_rebalance_visit {
    int64_t actors, learners;
    double acting_scale, learning_scale; /* scales of the curves; 0: not known yet */
    double mean;     /* moving average of the steps per second in its windows */
    int64_t windows; /* number of its windows */
} rp_rebalance_visit;

enum { RP_REBALANCE_VISITS = 32 };

/* The caller may read `split`, `view` and `moves`. The other fields are private. */
typedef struct rp_rebalance {
    rp_split split;         /* the current split, with the steps per second predicted for it */
    rp_rebalance_view view; /* the last window; zeros before the first window */
    int64_t moves;          /* number of moves */

    rp_rebalance_options options;           /* with defaults filled in, without curves */
    rp_rate_curve acting, learning;         /* as measured before the program began */
    rp_rate_curve acting_now, learning_now; /* the scaled curves */
    rp_rebalance_visit visits[RP_REBALANCE_VISITS]; /* visits[0] is the current split */
    int64_t visit_count;
    /* Steps per second and the scales of both curves, soon after the move to the current
     * split. */
    double first_rate, first_acting, first_learning;
    double unit; /* the rate that the scaled curves predict for the current split, divided by
                    its measured rate. Measured rates of other splits are multiplied by `unit`
                    before they are compared with the curves */
    bool has_looked, is_settling;       /* has_looked: there was a look. is_settling: the
                                           current window follows a move, so it is not used */
    int64_t since_ns, last_ns;          /* start of the window; time of the last look */
    int64_t since_steps, since_updates; /* counters at the start of the window */
    double actors_waited_ns, learner_waited_ns; /* time waited in the window */
    int64_t asking, drifting;   /* windows in a row in which another split promised the gain;
                                   windows in a row that indicated a change */
    int64_t moved_ns, pause_ns; /* time of the last move; shortest time until the next */
    double before; /* steps per second before the last move, until the gain of this move has
                      been checked; 0: there is no gain to check */
} rp_rebalance;

/* Picks the first split. Errors: RP_INVALID (as rp_split_pick(), or an option is out of
 * bounds). */
RP_API RP_NODISCARD rp_status rp_rebalance_init(rp_rebalance *out,
                                                const rp_rebalance_options *options,
                                                rp_error *err);

/* Returns true if more than one split fits the options, so that threads can move. */
RP_API bool rp_rebalance_can_move(const rp_rebalance *rebalance);

/* Takes the counters at the time `now_ns`, which must never decrease. Returns true if threads
 * should move from the split move->from to the split move->to. In this case `rebalance->split`
 * is already the new split, and the caller must move the threads or call
 * rp_rebalance_stay(). */
RP_API bool rp_rebalance_look(rp_rebalance *rebalance, int64_t now_ns,
                              const rp_rebalance_counts *counts, rp_rebalance_move *move);

/* Takes back a move that the caller could not make: sets `rebalance->split` back to move->from.
 * After this call rp_rebalance_look() never returns true again. */
RP_API void rp_rebalance_stay(rp_rebalance *rebalance, const rp_rebalance_move *move);

RP_END_DECLS

#endif
