/* SPDX-License-Identifier: Apache-2.0 */
/* Adders: turn the steps of N copies of an environment into items of tables.
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
 * An adder makes the items that Acme's adder of the same name makes of the same episodes
 * (acme/adders/reverb), bit by bit. An episode with T actions has rows 0 to T. Row t < T is
 *
 *   observation t, action t, the reward and discount that follow action t, start_of_episode
 *   (true in row 0 only), extras t
 *
 * and row T is the last observation with zeros in all other columns. The discount is 0 if the
 * episode terminated at that action, else 1, so a truncated episode can be told from a
 * terminated one.
 *
 *   n-step     transitions from row f to row l > f, with m = l - f <= n:
 *                observation f, action f, R, D, observation l, extras f
 *              After action t: f = max(0, t + 1 - n), l = t + 1. At the end of the episode, the
 *              shorter ones: l = T, f = max(0, T - n) + 1 to T - 1.
 *                R = r_f;  D = d_f
 *                for i = f+1 .. l-1:   D = D * discount;  R = R + r_i * D;  D = D * d_i
 *              in float32. D has discount^(m - 1): a learner multiplies its bootstrapped value
 *              by D * discount.
 *   sequence   rows [c - length, c), where c counts the complete rows of the episode: whenever
 *              c >= length and c - length is a multiple of `period`. rp_adder_end says which
 *              sequence is added at the end of the episode.
 *   episode    all rows of the episode, when it ends; then padding, if `pad`, to `length` rows.
 *
 * The items of one copy are created in the order above; one call adds those of copy 0 first.
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

/* The sequence that is written when an episode ends after C rows, row T included. `delta` is
 * the number of rows from there to the next regular sequence. */
typedef enum rp_adder_end {
    RP_ADDER_ZERO_PAD = 0, /* `delta` rows of zeros are appended, then the last `length` rows */
    RP_ADDER_TRUNCATE = 1, /* the last `length - delta` rows: a shorter sequence */
    RP_ADDER_WRITE = 2,    /* the last `length` rows; nothing if C < length */
    RP_ADDER_CONTINUE = 3, /* nothing more than the regular rule: the rows of the next episode
                              follow row T, and sequences contain both */
} rp_adder_end;

/* The items of one call, for a function that computes priorities. Arrays hold the items one
 * after the other, in the order of creation. Borrowed until the function returns. */
typedef struct rp_adder_items {
    size_t count;           /* n-step: all items that the call creates; else 1 */
    size_t rows;            /* of each item, padding included; n-step: 1 */
    const uint32_t *copies; /* the copy that each item is from */
    /* One array for each column of the items, in the order of rp_adder_signature(). */
    const void *const *columns;
    size_t column_count;
} rp_adder_items;

/* A table that gets every item. */
typedef struct rp_adder_table {
    const char *name;
    /* Writes the priority of each item to `priorities`, which has items->count entries. If
     * the function returns another status than RP_OK, the call of the adder fails with that
     * status. NULL: every priority is 1. */
    rp_status (*prioritize)(void *ctx, const rp_adder_items *items, double *priorities,
                            rp_error *err);
    void *ctx;
} rp_adder_table;

/* Zero-initialise it; fields marked * must be set. Everything is copied. */
typedef struct rp_adder_options {
    const rp_allocator *alloc; /* NULL: rp_allocator_default() */
    rp_adder_kind kind;
    size_t copies;               /* * 1 to RP_ENV_MAX_COPIES */
    rp_spec observation, action; /* * of one row; names are not used */
    rp_shape reward_shape;       /* of one row; zero: a scalar */
    rp_shape discount_shape;     /* may differ from reward_shape, but the two must broadcast as
                                    in NumPy; n-step: R has the broadcast shape */
    const rp_spec *extras;       /* specs of one row of further columns, in byte order of their
                                    names, which is the order of a flattened dict */
    size_t extra_count;
    const rp_adder_table *tables; /* * */
    size_t table_count;           /* * */

    int32_t n;      /* * n-step: >= 1 */
    float discount; /* * n-step: the agent's own */

    int32_t length;   /* * sequence: rows of an item; episode: the most rows, T + 1 included */
    int32_t period;   /* * sequence: >= 1; at most `length` with RP_ADDER_TRUNCATE */
    rp_adder_end end; /* sequence */
    bool pad;         /* episode: append padding rows to `length` */
    /* Writes the padding row of a column; called for each column but start_of_episode while the
     * adder is made. NULL: zeros. */
    void (*padding)(void *ctx, const rp_spec *column, void *row);
    void *padding_ctx;

    size_t max_in_flight; /* unconfirmed items of each table and copy above which
                             rp_adder_add() waits; 0: 5 (n-step), 2 (sequence), 1 (episode) */
    bool unchecked;       /* do not compare items with the signature of their table */
    /* The rows of a chunk, and the codec of every column. 0 and NULL: chosen by the size of a
     * row. */
    int32_t chunk_length;
    const rp_chunk_options *chunk;
} rp_adder_options;

/* Sets copies, observation and action to those of an environment. */
RP_API void rp_adder_fit_env(rp_adder_options *options, const rp_env *env);

/* Makes the signature of the tables: a named tuple as Acme's. n-step: observation, action,
 * reward, discount, next_observation, extras; else observation, action, reward, discount,
 * start_of_episode, extras, each with a row dimension in front, which is -1 where items differ
 * in length. Extras are a dict of the names; without extras there is no such column. Returns
 * owned: drop it with rp_signature_unref(). The statuses are those of rp_adder_new(). */
RP_API RP_NODISCARD rp_status rp_adder_signature(const rp_adder_options *options,
                                                 rp_signature **out, rp_error *err);

typedef struct rp_adder rp_adder;

/* Makes an adder with a writer of its own; `wait` is for the signatures, as in
 * rp_trajectory_writer_new(). The client must outlive the adder. Returns owned.
 * RP_INVALID (names the option, the value and the bound), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_adder_new(rp_client *client, const rp_adder_options *options,
                                           rp_wait wait, rp_adder **out, rp_error *err);

/* Frees an adder without waiting. Items that are not confirmed may be lost: flush first. */
RP_API void rp_adder_free(rp_adder *adder); /* NULL is fine */

/* Begins an episode in every copy, or in those for which `which` is true. `observations` has a
 * row for each copy. RP_PRECONDITION (a copy is within an episode), RP_INVALID (there are no
 * observations), or a status of rp_trajectory_writer_append(), after which the adder is
 * unusable as after a failed rp_adder_add(). */
RP_API RP_NODISCARD rp_status rp_adder_first(rp_adder *adder, const void *observations,
                                             const bool *which, rp_error *err);

/* One step of every copy: the actions and what follows them. Each array has a row for each
 * copy, in the layout of rp_env_step(). */
typedef struct rp_adder_step {
    const void *actions;
    /* The observations after the actions. If a copy's episode ended, its row is the first
     * observation of the next episode, which begins with it. */
    const void *observations;
    /* The last observation of each copy whose episode ended; other rows are not read. NULL:
     * `observations` has it, as with rp_env_options.keep_ended, and the copy needs
     * rp_adder_first() before the next step. */
    const void *last_observations;
    const double *rewards; /* stored as float32 */
    const bool *terminated, *truncated;
    const float *discounts;    /* NULL: 0 where terminated, else 1 */
    const void *const *extras; /* an array for each column of extras */
} rp_adder_step;

/* Adds a step of every copy and creates the items that it completes. Waits first, while more
 * items are unconfirmed than max_in_flight allows: this is where the rate limiter of a table
 * holds up an actor.
 * These statuses mean that nothing has been added, and that the call can be repeated:
 * RP_DEADLINE, RP_CANCELLED, RP_PRECONDITION (a copy has not begun an episode, or would exceed
 * the length of an episode adder), RP_INVALID (an array is missing), or the status with which a
 * table has rejected an item of an earlier call.
 * If creating an item or prioritize() fails, the adder is unusable until rp_adder_reset() with
 * `which` NULL, and calls return RP_PRECONDITION. */
RP_API RP_NODISCARD rp_status rp_adder_add(rp_adder *adder, const rp_adder_step *step,
                                           rp_wait wait, rp_error *err);

/* Drops the current episodes of every copy, or of those for which `which` is true. No further
 * item is created of them, not even the items at the end of an episode. With
 * RP_ADDER_CONTINUE the stream of the copy begins anew. If `which` is NULL, flushes all items
 * first and makes a failed adder usable again; on failure nothing has changed. Otherwise does
 * not wait.
 * RP_PRECONDITION (the adder has failed, and `which` is not NULL), or a status of
 * rp_trajectory_writer_end_episode(). */
RP_API RP_NODISCARD rp_status rp_adder_reset(rp_adder *adder, const bool *which, rp_wait wait,
                                             rp_error *err);

/* A muted adder takes steps but creates no items. This serves to give a new adder the steps
 * that an earlier adder held, if the items of these steps exist already. */
RP_API void rp_adder_set_muted(rp_adder *adder, bool muted);

/* Sends all items and waits until they are confirmed: rp_trajectory_writer_flush(). */
RP_API RP_NODISCARD rp_status rp_adder_flush(rp_adder *adder, rp_wait wait, rp_error *err);

/* Returns the number of items created so far, those of all tables together. */
RP_API uint64_t rp_adder_created(const rp_adder *adder);
/* Returns the number of unconfirmed items. */
RP_API size_t rp_adder_pending(const rp_adder *adder);

/* For tests: true if the invariants of adder.c hold. */
RP_API bool rp_adder_verify(const rp_adder *adder);

RP_END_DECLS

#endif
