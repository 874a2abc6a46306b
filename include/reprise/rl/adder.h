/* SPDX-License-Identifier: Apache-2.0 */
/* Adders: turn the steps of N parallel environments into items of tables. Each of the parallel
 * environments is called a copy, as in env.h.
 *
 *   rp_adder_options options = {.kind = RP_ADDER_N_STEP, .n = 3, .discount = 0.99F,
 *                               .tables = &(rp_adder_table){.name = "replay"},
 *                               .table_count = 1};
 *   rp_adder_fit_env(&options, env);
 *   if (rp_adder_new(client, &options, rp_wait_forever(), &adder, &err) != RP_OK) ...
 *   rp_env_reset(env, seeds, observations, &err);
 *   rp_adder_first(adder, observations, NULL, &err);
 *   for (;;) {
 *       ... choose actions from observations ...
 *       rp_env_step(env, actions, &buffers, &err);
 *       rp_adder_add(adder, &step, rp_wait_forever(), &err);
 *   }
 *
 * Acme is DeepMind's library of agents. An adder makes exactly the items (the same bits) that
 * Acme's adder of the same name (acme/adders/reverb) makes from the same episodes. An episode
 * with T actions has rows 0 to T. Row t < T holds
 *
 *   observation t, action t, the reward and discount that follow action t, start_of_episode
 *   (true in row 0 only), extras t
 *
 * Row T holds the last observation, and zeros in all other columns. "Extras" are further
 * columns that the caller defines. The discount of a row is 0 if the episode terminated at the
 * action of the row, else 1. The discount of row T - 1 therefore tells a terminated episode
 * from a truncated one.
 *
 * There are three kinds of adders:
 *
 *   n-step     transitions from row f to row l > f, with m = l - f <= n:
 *                observation f, action f, R, D, observation l, extras f
 *              After action t: f = max(0, t + 1 - n), l = t + 1. At the end of the episode
 *              also the shorter transitions: l = T, f = max(0, T - n) + 1 to T - 1.
 *                R = r_f;  D = d_f
 *                for i = f+1 .. l-1:   D = D * discount;  R = R + r_i * D;  D = D * d_i
 *              computed in float32, where r_i and d_i are the reward and the discount of row
 *              i. D includes discount^(m - 1), so the learner multiplies the value of
 *              observation l by D * discount.
 *   sequence   rows [c - length, c), where c is the number of complete rows of the episode. A
 *              sequence is made whenever c >= length and c - length is a multiple of `period`.
 *              rp_adder_end selects the last sequence of an episode.
 *   episode    all rows of the episode, when it ends. If `pad` is set, padding rows follow, up
 *              to `length` rows.
 *
 * Each call of rp_adder_add() creates the items of copy 0 first, then those of copy 1, and so
 * on. At the end of an episode, an n-step adder creates the longest transition of a copy first.
 * If there are several tables, each gets every item.
 *
 * Not thread-safe: the owner serialises the calls on one adder. */
#ifndef REPRISE_RL_ADDER_H
#define REPRISE_RL_ADDER_H

#include "reprise/rl/env.h"
#include "reprise/trajectory_writer.h"

RP_BEGIN_DECLS

typedef enum rp_adder_kind {
    RP_ADDER_N_STEP = 0,
    RP_ADDER_SEQUENCE = 1,
    RP_ADDER_EPISODE = 2,
} rp_adder_kind;

/* How a sequence adder makes the last sequence of an episode. Below, C is the number of rows of
 * the episode, including row T, and `delta` is the number of rows that are missing until the
 * next regular sequence would be made. */
typedef enum rp_adder_end {
    RP_ADDER_ZERO_PAD = 0, /* appends `delta` rows of zeros to the episode; the sequence is the
                              last `length` rows */
    RP_ADDER_TRUNCATE = 1, /* a shorter sequence: the last `length - delta` rows */
    RP_ADDER_WRITE = 2,    /* the last `length` rows; no sequence if C < length */
    RP_ADDER_CONTINUE = 3, /* no extra sequence: the rows of the next episode follow row T, and
                              a sequence can contain rows of both episodes */
} rp_adder_end;

/* New items, as the argument of a function that computes their priorities
 * (rp_adder_table.prioritize). Arrays hold the items one after the other, in the order of
 * creation. Borrowed until that function returns. */
typedef struct rp_adder_items {
    size_t count;           /* number of items. n-step: all items that one rp_adder_add()
                               creates; other kinds: 1 */
    size_t rows;            /* number of rows of each item, including padding; n-step: 1 */
    const uint32_t *copies; /* for each item, the index of its copy */
    /* One array for each column of the items, in the order of rp_adder_signature(). */
    const void *const *columns;
    size_t column_count;
} rp_adder_items;

/* A table that gets every item. */
typedef struct rp_adder_table {
    const char *name;
    /* Writes the priority of each item to `priorities`, which has items->count entries. If the
     * function fails, the call of the adder fails with the same status. NULL: every priority is
     * 1. */
    rp_status (*prioritize)(void *ctx, const rp_adder_items *items, double *priorities,
                            rp_error *err);
    void *ctx;
} rp_adder_table;

/* Zero-initialise the struct. Fields whose comment begins with * must be set. rp_adder_new()
 * copies everything. */
typedef struct rp_adder_options {
    const rp_allocator *alloc; /* NULL: rp_allocator_default() */
    rp_adder_kind kind;
    size_t copies;               /* * 1 to RP_ENV_MAX_COPIES */
    rp_spec observation, action; /* * types of one row; their names are not used */
    rp_shape reward_shape;       /* shape of one reward; if left zero: a scalar */
    rp_shape discount_shape;     /* shape of one discount. reward_shape and discount_shape must
                                    broadcast, as in NumPy; for n-step, R has the resulting
                                    shape */
    const rp_spec *extras;       /* specs of one row of each extra column, sorted by the bytes
                                    of their names, as in a flattened dict */
    size_t extra_count;
    const rp_adder_table *tables; /* * */
    size_t table_count;           /* * */

    int32_t n;      /* * n-step: >= 1 */
    float discount; /* * n-step: the agent's discount per step */

    int32_t length;   /* * sequence: rows of an item; episode: the most rows, T + 1, of an
                         episode */
    int32_t period;   /* * sequence: rows from one sequence to the next, >= 1; at most `length`
                         with RP_ADDER_TRUNCATE */
    rp_adder_end end; /* sequence: how an episode ends */
    bool pad;         /* episode; true: append padding rows, up to `length` rows in all */
    /* For episodes with `pad`: writes the padding row of one column to `row`. rp_adder_new()
     * calls it for each column except start_of_episode. NULL: padding is zeros. */
    void (*padding)(void *ctx, const rp_spec *column, void *row);
    void *padding_ctx;

    size_t max_in_flight; /* rp_adder_add() waits while more than max_in_flight * copies *
                             table_count items are unconfirmed. An item is unconfirmed until its
                             table has accepted it. 0: 5 (n-step), 2 (sequence), 1 (episode) */
    bool unchecked;       /* true: items are not compared with the signature of their table */
    /* How rows are packed into chunks, the blocks of rows in which a column is compressed and
     * sent: the number of rows of a chunk, and the codec of every column. 0 and NULL: the adder
     * chooses them by the size of a row. */
    int32_t chunk_length;
    const rp_chunk_options *chunk;
} rp_adder_options;

/* Sets the options `copies`, `observation` and `action` to those of an environment. */
RP_API void rp_adder_fit_env(rp_adder_options *options, const rp_env *env);

/* Makes the signature of the tables, which describes the columns of their items. It is a named
 * tuple like Acme's:
 *
 *   n-step            observation, action, reward, discount, next_observation, extras
 *   sequence, episode observation, action, reward, discount, start_of_episode, extras
 *
 * For sequences and episodes each column has a first dimension for the rows. This dimension is
 * -1 if items differ in length. `extras` is a dict with the names of the extra columns; the
 * tuple has no `extras` if there are no extra columns. Returns owned: the caller must release
 * the signature with rp_signature_unref(). The errors are those of rp_adder_new(). */
RP_API RP_NODISCARD rp_status rp_adder_signature(const rp_adder_options *options,
                                                 rp_signature **out, rp_error *err);

typedef struct rp_adder rp_adder;

/* Makes an adder, which writes through a trajectory writer of its own. `wait` limits the wait
 * for the signatures of the tables, as in rp_trajectory_writer_new(). The client must outlive
 * the adder. Returns owned.
 * Errors: RP_INVALID (the text of the error names the option, the value and the bound),
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_adder_new(rp_client *client, const rp_adder_options *options,
                                           rp_wait wait, rp_adder **out, rp_error *err);

/* Frees an adder without waiting. Unconfirmed items can be lost, so the owner should call
 * rp_adder_flush() first. */
RP_API void rp_adder_free(rp_adder *adder); /* NULL is fine */

/* Begins an episode in each copy for which `which` is true, or in every copy if `which` is
 * NULL. `observations` has the first observation of each copy: one row per copy, also for
 * copies that begin no episode.
 * Errors: RP_PRECONDITION (a copy is within an episode), RP_INVALID (`observations` is NULL),
 * or a status of rp_trajectory_writer_append(), after which the adder is unusable as after a
 * failed rp_adder_add(). */
RP_API RP_NODISCARD rp_status rp_adder_first(rp_adder *adder, const void *observations,
                                             const bool *which, rp_error *err);

/* One step of every copy: the actions and their results. Each array has a row for each copy, in
 * the layout of rp_env_step(). */
typedef struct rp_adder_step {
    const void *actions;
    /* The observations after the actions. If the episode of a copy ended and last_observations
     * is not NULL, the row of the copy is the first observation of its next episode, and the
     * adder begins that episode. */
    const void *observations;
    /* The last observation of each copy whose episode ended; other rows are not read. NULL: the
     * rows of `observations` are the last observations, as with rp_env_options.keep_ended. In
     * this case the caller must call rp_adder_first() for the copies whose episode ended before
     * the next step. */
    const void *last_observations;
    const double *rewards; /* stored as float32 */
    const bool *terminated, *truncated;
    const float *discounts;    /* NULL: 0 where terminated, else 1 */
    const void *const *extras; /* an array for each column of extras */
} rp_adder_step;

/* Adds a step of every copy, and creates the items that the step completes. First waits until
 * at most as many items are unconfirmed as max_in_flight permits. A table whose rate limiter
 * accepts items slowly therefore slows the caller down.
 *
 * After the following errors nothing has been added, and the call can be repeated: RP_DEADLINE,
 * RP_CANCELLED, RP_PRECONDITION (a copy has not begun an episode, or its episode would exceed
 * the `length` of an episode adder), RP_INVALID (an array is missing), or the status with which
 * a table has rejected an item of an earlier call.
 *
 * If prioritize() or the creation of an item fails, the adder becomes unusable: later calls of
 * rp_adder_first() and rp_adder_add() return RP_PRECONDITION. rp_adder_reset() with `which`
 * NULL makes the adder usable again. */
RP_API RP_NODISCARD rp_status rp_adder_add(rp_adder *adder, const rp_adder_step *step,
                                           rp_wait wait, rp_error *err);

/* Drops the current episode of each copy for which `which` is true, or of every copy if `which`
 * is NULL. No more items are created from a dropped episode, not even those that the end of an
 * episode would create. With RP_ADDER_CONTINUE, later sequences of the copy have no rows from
 * before this call.
 *
 * If `which` is NULL, first sends all items and waits until they are confirmed; if this fails,
 * nothing else has changed. Then makes an unusable adder usable again. If `which` is not NULL,
 * does not wait.
 * Errors: RP_PRECONDITION (the adder is unusable, and `which` is not NULL), or a status of
 * rp_trajectory_writer_end_episode(). */
RP_API RP_NODISCARD rp_status rp_adder_reset(rp_adder *adder, const bool *which, rp_wait wait,
                                             rp_error *err);

/* Mutes or unmutes an adder. A muted adder takes steps but creates no items. A program that
 * restores a snapshot mutes its new adder while it repeats steps whose items exist already. */
RP_API void rp_adder_set_muted(rp_adder *adder, bool muted);

/* Sends all items and waits until they are confirmed, as rp_trajectory_writer_flush() does. */
RP_API RP_NODISCARD rp_status rp_adder_flush(rp_adder *adder, rp_wait wait, rp_error *err);

/* Returns the number of items created so far in all tables together. */
RP_API uint64_t rp_adder_created(const rp_adder *adder);
/* Returns the number of unconfirmed items. */
RP_API size_t rp_adder_pending(const rp_adder *adder);

/* For tests: returns true if the invariants of adder.c hold. */
RP_API bool rp_adder_verify(const rp_adder *adder);

RP_END_DECLS

#endif
