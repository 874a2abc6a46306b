/* SPDX-License-Identifier: Apache-2.0 */
/* Environments. An rp_env holds N independent instances of one task, called its copies, and
 * steps all of them in one call. The caller owns the buffers for observations and results.
 *
 *   const rp_env_class *class = rp_env_find("cartpole");
 *   rp_env *env = NULL;
 *   rp_error err;
 *   if (rp_env_new(NULL, class, &(rp_env_options){.copies = 32}, &env, &err) != RP_OK) ...
 *   rp_env_reset(env, seeds, observations, &err);
 *   for (;;) {
 *       ... choose actions[32] from observations ...
 *       rp_env_step(env, actions, &buffers, &err);
 *   }
 *
 * An episode ends by termination or by truncation. Termination means that the task reached its
 * end, so the value of later states is 0. Truncation means that a limit was reached, for
 * example of time, so later states still have a value. Termination and truncation can happen in
 * the same step. A copy whose episode ended is reset within that step. Its row of
 * `observations` is then the first observation of the next episode, and its row of
 * `last_observations` is the last observation of the episode that ended.
 *
 * Every copy has its own seed and its own random stream. The behaviour of a copy does not
 * depend on the number of copies.
 *
 * A task is defined by a struct of functions, rp_env_class. rp_env adds checks, time limits and
 * resets. A program can define a class of its own: examples are in rl/env/, and rp_env_check()
 * (env_check.h) tests a class.
 *
 * Not thread-safe: the owner serialises the calls on one environment. */
#ifndef REPRISE_RL_ENV_H
#define REPRISE_RL_ENV_H

#include "reprise/alloc.h"
#include "reprise/tensor.h"

RP_BEGIN_DECLS

typedef enum rp_action_kind {
    RP_ACTION_DISCRETE = 0, /* per copy one int32_t, from 0 to action_count - 1 */
    RP_ACTION_BOX = 1,      /* continuous: per copy action_size floats, each within bounds */
} rp_action_kind;

/* The types of the observations and actions of an environment, and other constants. The arrays
 * to which the fields point must stay valid as long as the class (rp_env_class). */
typedef struct rp_env_spec {
    rp_dtype observation_dtype; /* RP_FLOAT32 or RP_UINT8 */
    rp_shape observation_shape; /* the shape of the observation of one copy */
    const float *observation_low, *observation_high;
    size_t observation_bounds; /* number of entries in each of these two arrays: 0 (no bounds),
                                  1 (the same bound for all elements), or the number of
                                  elements */

    rp_action_kind action_kind;
    int32_t action_count;                  /* discrete: number of actions, >= 1 */
    size_t action_size;                    /* box: dimensions of an action, >= 1; discrete: 1 */
    const float *action_low, *action_high; /* box: action_size each; discrete: NULL */

    int64_t time_limit;   /* steps after which an episode is truncated; 0: no limit */
    double solved_return; /* mean return at which the task counts as solved; NaN: the task is
                             never solved */
    uint64_t max_seed;    /* the largest seed that the random generator takes */

    const char *const *variable_names; /* names of the values of rp_env_get_variables() */
    size_t variable_count;

    size_t state_bytes;  /* bytes of the state of one copy; a multiple of 8 */
    size_t shared_bytes; /* bytes of read-only data that all copies share; may be 0 */
} rp_env_spec;

/* A setting of a class: a number that the caller can choose when it makes an environment. */
typedef struct rp_env_setting_info {
    const char *name;
    double initial, low, high; /* default value, lower bound, upper bound */
    bool whole;                /* only integers are valid */
    const char *about;         /* description in one line */
} rp_env_setting_info;

/* An argument of most functions of a class: data that is the same for all copies. */
typedef struct rp_env_context {
    const rp_env_spec *spec;
    const double *settings; /* values of the settings, in the order of rp_env_class.settings */
    const void *shared;     /* spec->shared_bytes bytes, filled by prepare() */
} rp_env_context;

/* A task. The state of a copy is a block of state_bytes bytes, which rp_env and its callers are
 * allowed to copy and store. A task must have no other data that changes between calls. The
 * states of all copies are contiguous, and aligned for any type. */
typedef struct rp_env_class {
    const char *name;  /* for example "cartpole" */
    const char *alias; /* another name, for example "CartPole-v1"; NULL: none */
    const char *about; /* description in one line */
    const rp_env_setting_info *settings;
    size_t setting_count;

    /* Fills `spec`, which is zero-initialised, for these values of the settings. Each value is
     * within its bounds. Returns RP_INVALID if the values do not fit together. */
    rp_status (*describe)(const double *settings, rp_env_spec *spec, rp_error *err);
    /* Fills the data that all copies share: shared_bytes bytes, which are zero-initialised.
     * NULL if shared_bytes is 0. */
    void (*prepare)(const rp_env_context *ctx, void *shared);
    /* Frees everything that the shared bytes own, such as memory to which they point. Called
     * before the shared bytes are freed, if prepare() was called. NULL if they own nothing. */
    void (*release)(void *shared);
    /* Starts the random stream of a copy, whose state is zero-initialised. */
    void (*seed)(const rp_env_context *ctx, void *state, uint64_t seed);
    /* Begins an episode. Must not restart the random stream. */
    void (*reset)(const rp_env_context *ctx, void *state);
    /* Steps `count` copies. The caller has checked the actions. Writes `rewards` and
     * `terminated` of each copy. All entries of `truncated` are false before the call; the
     * function sets an entry only if the task itself truncates the episode. Returns RP_OK, or
     * another status if something fails that the task depends on, such as another process. */
    rp_status (*step)(const rp_env_context *ctx, void *states, size_t count,
                      const void *actions, double *rewards, bool *terminated, bool *truncated);
    /* Writes the observations of `count` copies, one row per copy. Changes no state. */
    void (*observe)(const rp_env_context *ctx, const void *states, size_t count,
                    void *observations);
    /* Returns true if the task can be in this state. Called for states that come from a
     * snapshot or that set_variables() has written. */
    bool (*check)(const rp_env_context *ctx, const void *state);
    /* Read and write the variables of a state (see rp_env_get_variables()). NULL if
     * variable_count is 0. set_variables() need not check the values: if check() refuses the
     * new state, rp_env_set_variables() restores the old one. */
    void (*get_variables)(const rp_env_context *ctx, const void *state, double *values);
    void (*set_variables)(const rp_env_context *ctx, void *state, const double *values);
} rp_env_class;

/* Returns the built-in class with this name or alias, or NULL if there is none. Static. */
RP_API const rp_env_class *rp_env_find(const char *name);

/* Returns built-in class number `index`, counted from 0 in the order of names. Returns NULL if
 * there are not so many classes. Static. */
RP_API const rp_env_class *rp_env_class_at(size_t index);

/* A value for the setting named `name`. */
typedef struct rp_env_setting {
    const char *name;
    double value;
} rp_env_setting;

/* Zero-initialise the struct, and set `copies`. Every other field can stay 0 or NULL. */
typedef struct rp_env_options {
    size_t copies;                  /* 1 to RP_ENV_MAX_COPIES */
    const rp_env_setting *settings; /* settings that differ from their default */
    size_t setting_count;
    int64_t time_limit; /* steps of an episode; 0: the limit of the class; -1: no limit */
    bool keep_ended;    /* true: a copy whose episode has ended is not reset automatically.
                           rp_env_step() continues to step the copy until the caller resets
                           it */
    bool clip_actions;  /* what rp_env_step() does with continuous actions out of bounds. true:
                           it passes them to the task, which clips them as Gymnasium's task
                           does. false: it returns RP_INVALID */
} rp_env_options;

enum { RP_ENV_MAX_COPIES = 1 << 20, RP_ENV_MAX_SETTINGS = 16 };

typedef struct rp_env rp_env;

/* Makes an environment with `options->copies` copies. `alloc` NULL means
 * rp_allocator_default(). Copies the options. `env_class` must stay valid until the environment
 * is freed. Returns owned.
 * Errors: RP_INVALID (an unknown setting, a value out of bounds, an rp_env_class whose fields
 * contradict each other), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_env_new(const rp_allocator *alloc,
                                         const rp_env_class *env_class,
                                         const rp_env_options *options, rp_env **out,
                                         rp_error *err);
RP_API void rp_env_free(rp_env *env); /* NULL is fine */

/* Return the specification and the class. Borrowed, valid until the environment is freed. */
RP_API const rp_env_spec *rp_env_get_spec(const rp_env *env);
RP_API const rp_env_class *rp_env_get_class(const rp_env *env);

RP_API size_t rp_env_copies(const rp_env *env);            /* number of copies */
RP_API size_t rp_env_observation_bytes(const rp_env *env); /* bytes of one copy's observation */
RP_API size_t rp_env_action_bytes(const rp_env *env);      /* bytes of one copy's action */

/* Starts an episode in every copy and writes the first observations, one row per copy. `seeds`
 * has one seed per copy. If `seeds` is NULL, the random streams continue from where they are,
 * as in Gymnasium.
 * Errors: RP_INVALID (a seed over max_seed), RP_PRECONDITION (`seeds` is NULL, and a copy never
 * had a seed), RP_CORRUPT (the task returned an observation that is not finite). After
 * RP_CORRUPT the caller must reset every copy. */
RP_API RP_NODISCARD rp_status rp_env_reset(rp_env *env, const uint64_t *seeds,
                                           void *observations, rp_error *err);

/* Does for one copy what rp_env_reset() does for all copies, with the same errors. `seed` may
 * be NULL: the random stream continues. */
RP_API RP_NODISCARD rp_status rp_env_reset_copy(rp_env *env, size_t copy, const uint64_t *seed,
                                                void *observation, rp_error *err);

/* Buffers of the caller for the results of a step, with one row per copy. */
typedef struct rp_env_buffers {
    void *observations;
    void *last_observations; /* receives the last observation of each copy whose episode ended;
                                other rows are not written. May be NULL */
    double *rewards;
    bool *terminated, *truncated;
} rp_env_buffers;

/* Steps every copy. `actions` is copies x int32_t (discrete) or copies x action_size x float
 * (box). The buffers must not overlap each other.
 * Errors: RP_INVALID (an action is out of range or not finite; nothing has changed),
 * RP_PRECONDITION (a copy was never reset, or was not reset after a step or a reset that
 * failed), RP_CORRUPT (the task returned an observation or reward that is not finite), or a
 * status that the task returned. After RP_CORRUPT or a status of the task the caller must reset
 * every copy. */
RP_API RP_NODISCARD rp_status rp_env_step(rp_env *env, const void *actions,
                                          const rp_env_buffers *out, rp_error *err);

/* Returns the number of steps in the current episode of a copy. */
RP_API int64_t rp_env_steps(const rp_env *env, size_t copy);

/* Returns the number of bytes of a snapshot of one copy. */
RP_API size_t rp_env_snapshot_bytes(const rp_env *env);

/* Writes a snapshot of a copy: its state, random stream and number of steps. The snapshot is
 * valid for every environment of the same class and settings, on every x86-64 or aarch64
 * machine. */
RP_API void rp_env_save(const rp_env *env, size_t copy, void *bytes);

/* Restores a copy from a snapshot. Also writes the current observation of the copy to
 * `observation`, if `observation` is not NULL and the copy had been reset before the snapshot
 * was made. On failure the copy is unchanged.
 * Errors: RP_INVALID (the snapshot is of another class or of other settings; or `keep_ended` is
 * false, and the episode in the snapshot already has at least as many steps as the time limit
 * of this environment), RP_CORRUPT (damaged bytes), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_env_load(rp_env *env, size_t copy, const void *bytes,
                                          size_t size, void *observation, rp_error *err);

/* Reads the variables of a copy: numbers that describe its state in the terms of the task, such
 * as a position or an angle. A program can use them to draw or to compare states. `values` has
 * spec->variable_count entries. */
RP_API void rp_env_get_variables(const rp_env *env, size_t copy, double *values);

/* Sets the variables of a copy. Its random stream and number of steps do not change.
 * Errors: RP_INVALID (the task cannot be in a state with these variables; nothing has changed),
 * RP_PRECONDITION (the copy was never reset), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_env_set_variables(rp_env *env, size_t copy,
                                                   const double *values, rp_error *err);

/* For tests: returns true if the invariants of env.c hold. */
RP_API bool rp_env_verify(const rp_env *env);

RP_END_DECLS

#endif
