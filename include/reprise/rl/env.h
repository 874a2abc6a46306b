/* SPDX-License-Identifier: Apache-2.0 */
/* Environments: N copies of a task, stepped in one call over buffers of the caller.
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
 * An episode ends by termination (the task reached its end: the value of what follows is 0) or
 * by truncation (a limit was reached: what follows still has a value). Both may be true at
 * once. A copy whose episode ended is reset within the same step: its row of `observations` is
 * then the first of the next episode, and its row of `last_observations` is the last of the one
 * that ended.
 *
 * Every copy has its own random stream, started by its own seed. A copy behaves the same
 * whatever the number of copies beside it.
 *
 * A struct of functions, rp_env_class, defines a task; rp_env adds checks, time limits and
 * resets. You can write a class of your own: examples are in rl/env/, and rp_env_check()
 * (env_check.h) tests a class.
 *
 * Not thread-safe: the owner serialises the calls on one environment. */
#ifndef REPRISE_RL_ENV_H
#define REPRISE_RL_ENV_H

#include "reprise/alloc.h"
#include "reprise/tensor.h"

RP_BEGIN_DECLS

typedef enum rp_action_kind {
    RP_ACTION_DISCRETE = 0, /* one int32_t a copy, from 0 to action_count - 1 */
    RP_ACTION_BOX = 1,      /* action_size floats a copy, each between its bounds */
} rp_action_kind;

/* The type of the observations and actions of an environment. The pointers are static. */
typedef struct rp_env_spec {
    rp_dtype observation_dtype; /* RP_FLOAT32 or RP_UINT8 */
    rp_shape observation_shape; /* of one copy */
    const float *observation_low, *observation_high;
    size_t observation_bounds; /* entries of each of these arrays: 0 (no bounds), 1 (for all
                                  elements), or one for each element */

    rp_action_kind action_kind;
    int32_t action_count;                  /* discrete: >= 1 */
    size_t action_size;                    /* box: >= 1; discrete: 1 */
    const float *action_low, *action_high; /* box: action_size each; discrete: NULL */

    int64_t time_limit;   /* steps after which an episode is truncated; 0: no limit */
    double solved_return; /* mean return at which the task counts as solved; NaN: none */
    uint64_t max_seed;    /* the largest seed that the random generator takes */

    const char *const *variable_names; /* of rp_env_get_variables() */
    size_t variable_count;

    size_t state_bytes;  /* of one copy; a multiple of 8 */
    size_t shared_bytes; /* read-only data that all copies share; may be 0 */
} rp_env_spec;

/* A number that can be set when an environment is made. */
typedef struct rp_env_setting_info {
    const char *name;
    double initial, low, high; /* the default, and the bounds */
    bool whole;                /* integers only */
    const char *about;         /* one line */
} rp_env_setting_info;

/* What the functions of a class receive besides the states. */
typedef struct rp_env_context {
    const rp_env_spec *spec;
    const double *settings; /* values in the order of the class */
    const void *shared;     /* spec->shared_bytes bytes, filled by prepare() */
} rp_env_context;

/* A task. The state of a copy is a block of state_bytes bytes, which may be copied and stored.
 * A task has no other data that changes between calls. States lie side by side, aligned for any
 * type. */
typedef struct rp_env_class {
    const char *name;  /* "cartpole" */
    const char *alias; /* another name, "CartPole-v1"; may be NULL */
    const char *about; /* one line */
    const rp_env_setting_info *settings;
    size_t setting_count;

    /* Fills `spec`, which is zero, for these values of the settings. Each value is within its
     * bounds. Returns RP_INVALID if the values do not fit together. */
    rp_status (*describe)(const double *settings, rp_env_spec *spec, rp_error *err);
    /* Fills the shared bytes, which are zero. NULL if shared_bytes is 0. */
    void (*prepare)(const rp_env_context *ctx, void *shared);
    /* Called before the shared bytes are freed, if prepare() was called. NULL if they own
     * nothing. */
    void (*release)(void *shared);
    /* Starts the random stream of a copy, whose state is zero. */
    void (*seed)(const rp_env_context *ctx, void *state, uint64_t seed);
    /* Begins an episode; the random stream goes on. */
    void (*reset)(const rp_env_context *ctx, void *state);
    /* Steps `count` copies. Actions have been checked. Writes rewards and terminated of each
     * copy. All entries of truncated are false before the call; writes them only where the task
     * itself truncates. Returns RP_OK, unless the task uses something besides its states that
     * can fail, such as another process. */
    rp_status (*step)(const rp_env_context *ctx, void *states, size_t count,
                      const void *actions, double *rewards, bool *terminated, bool *truncated);
    /* Writes the observations of `count` copies, one row each. Changes no state. */
    void (*observe)(const rp_env_context *ctx, const void *states, size_t count,
                    void *observations);
    /* True if the bytes are a state that the task can be in. Called for states from snapshots
     * and from set_variables(). */
    bool (*check)(const rp_env_context *ctx, const void *state);
    /* Reads and writes the variables of a state. NULL if variable_count is 0. set_variables()
     * may leave a state that check() refuses; rp_env_set_variables() then restores the old. */
    void (*get_variables)(const rp_env_context *ctx, const void *state, double *values);
    void (*set_variables)(const rp_env_context *ctx, void *state, const double *values);
} rp_env_class;

/* Finds one of our own classes by name or alias. NULL if there is none. Static. */
RP_API const rp_env_class *rp_env_find(const char *name);

/* Our own classes, in order of their names: index 0, 1, ... until NULL. Static. */
RP_API const rp_env_class *rp_env_class_at(size_t index);

/* A setting by name. */
typedef struct rp_env_setting {
    const char *name;
    double value;
} rp_env_setting;

/* Zero-initialise it: every default is 0 or NULL, except that `copies` must be set. */
typedef struct rp_env_options {
    size_t copies;                  /* 1 to RP_ENV_MAX_COPIES */
    const rp_env_setting *settings; /* those that differ from their default */
    size_t setting_count;
    int64_t time_limit; /* 0: that of the class; -1: none */
    bool keep_ended;    /* no automatic reset: rp_env_step() continues to step a copy after its
                           episode has ended, until the caller resets it */
    bool clip_actions;  /* true: actions of a box outside their bounds are passed to the task,
                           which clips them as the task of Gymnasium does. false: they are
                           refused */
} rp_env_options;

enum { RP_ENV_MAX_COPIES = 1 << 20, RP_ENV_MAX_SETTINGS = 16 };

typedef struct rp_env rp_env;

/* Makes `options->copies` copies. `alloc` NULL is rp_allocator_default(). Borrows `env_class`,
 * which must stay valid until the environment is freed; copies the options. Returns owned.
 * RP_INVALID (an unknown setting, a value out of bounds, a class that contradicts itself),
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_env_new(const rp_allocator *alloc,
                                         const rp_env_class *env_class,
                                         const rp_env_options *options, rp_env **out,
                                         rp_error *err);
RP_API void rp_env_free(rp_env *env); /* NULL is fine */

/* Borrowed, valid until the environment is freed. */
RP_API const rp_env_spec *rp_env_get_spec(const rp_env *env);
RP_API const rp_env_class *rp_env_get_class(const rp_env *env);

RP_API size_t rp_env_copies(const rp_env *env);
RP_API size_t rp_env_observation_bytes(const rp_env *env); /* of one row */
RP_API size_t rp_env_action_bytes(const rp_env *env);      /* of one row */

/* Starts an episode in every copy and writes the first observations, one row a copy. `seeds`
 * has one seed a copy; NULL goes on with the random streams, as Gymnasium does.
 * RP_INVALID (a seed over max_seed), RP_PRECONDITION (no seeds on the first reset). */
RP_API RP_NODISCARD rp_status rp_env_reset(rp_env *env, const uint64_t *seeds,
                                           void *observations, rp_error *err);

/* Does the same for one copy; `seed` may be NULL. */
RP_API RP_NODISCARD rp_status rp_env_reset_copy(rp_env *env, size_t copy, const uint64_t *seed,
                                                void *observation, rp_error *err);

/* Buffers of the caller, one row a copy. */
typedef struct rp_env_buffers {
    void *observations;
    void *last_observations; /* only rows of copies whose episode ended are written; may be
                                NULL */
    double *rewards;
    bool *terminated, *truncated;
} rp_env_buffers;

/* Steps every copy: `actions` is copies x int32_t (discrete) or copies x action_size x float
 * (box). The buffers must not overlap each other.
 * RP_INVALID (an action is out of range or not a number; nothing has changed), RP_PRECONDITION
 * (a copy was never reset, or the environment failed before), RP_CORRUPT (the task returned an
 * observation or reward that is not finite), or the status of the task. After RP_CORRUPT or a
 * status of the task every copy needs a reset. */
RP_API RP_NODISCARD rp_status rp_env_step(rp_env *env, const void *actions,
                                          const rp_env_buffers *out, rp_error *err);

/* The steps of the current episode of a copy. */
RP_API int64_t rp_env_steps(const rp_env *env, size_t copy);

/* The bytes of a snapshot of one copy. */
RP_API size_t rp_env_snapshot_bytes(const rp_env *env);

/* Writes a snapshot of a copy: its state, random stream and steps. Valid for every environment
 * of the same class and settings, on every x86-64 or aarch64 machine. */
RP_API void rp_env_save(const rp_env *env, size_t copy, void *bytes);

/* Restores a copy from a snapshot. Also writes its observation, if `observation` is not NULL
 * and the snapshot is of a copy that had been reset. On failure the copy is as before.
 * RP_INVALID (a snapshot of another class or other settings, or of an episode that has ended),
 * RP_CORRUPT (damaged), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_env_load(rp_env *env, size_t copy, const void *bytes,
                                          size_t size, void *observation, rp_error *err);

/* Reads the variables of a copy, in the terms of the task (a position, an angle): to draw it,
 * or to compare it. `values` has spec->variable_count entries. */
RP_API void rp_env_get_variables(const rp_env *env, size_t copy, double *values);

/* Sets the variables of a copy that was reset; the random stream and the steps stay.
 * RP_INVALID (the task cannot be in such a state; nothing has changed), RP_PRECONDITION (never
 * reset), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_env_set_variables(rp_env *env, size_t copy,
                                                   const double *values, rp_error *err);

/* For tests: true if the invariants of env.c hold. */
RP_API bool rp_env_verify(const rp_env *env);

RP_END_DECLS

#endif
