/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots and variables of one copy.
 *
 * A snapshot, little-endian:
 *
 *      0   u32  magic, "RPEN"
 *      4   u32  version, 1
 *      8   u64  fingerprint of the class and its settings
 *     16   i64  steps of the current episode
 *     24   u32  seeded
 *     28   u32  begun
 *     32        the state, spec.state_bytes
 *    end   u64  FNV-1a of all before
 *
 * A state is the bytes of a struct, whose layout is the same on x86-64 and aarch64. The
 * checksum finds damage; the check of the class refuses states that would lead a step astray.
 */
#include <assert.h>
#include <string.h>

#include "env/env_inside.h"
#include "error/fail.h"

enum { MAGIC = 0x4e455052, VERSION = 1 };

typedef struct snapshot_head {
    uint32_t magic, version;
    uint64_t fingerprint;
    rp_env_copy copy;
} snapshot_head;

static_assert(sizeof(snapshot_head) == 32, "the drawing above");

static const uint64_t FNV_START = 0xcbf29ce484222325u;

static uint64_t fnv(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < size; i++) hash = (hash ^ b[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t fingerprint(const rp_env *env)
{
    uint64_t size = env->spec.state_bytes;
    uint64_t hash = fnv(FNV_START, env->class->name, strlen(env->class->name) + 1);

    hash = fnv(hash, env->settings, env->class->setting_count * sizeof *env->settings);
    return fnv(hash, &size, sizeof size);
}

size_t rp_env_snapshot_bytes(const rp_env *env)
{
    return sizeof(snapshot_head) + env->spec.state_bytes + sizeof(uint64_t);
}

void rp_env_save(const rp_env *env, size_t copy, void *bytes)
{
    size_t body = rp_env_snapshot_bytes(env) - sizeof(uint64_t);
    snapshot_head head = {.magic = MAGIC, .version = VERSION, .fingerprint = fingerprint(env)};
    uint64_t sum;

    assert(copy < env->copies);
    head.copy = env->copy[copy];
    memcpy(bytes, &head, sizeof head);
    memcpy((char *)bytes + sizeof head, rp_env_state(env, copy), env->spec.state_bytes);
    sum = fnv(FNV_START, bytes, body);
    memcpy((char *)bytes + body, &sum, sizeof sum);
}

/* Reads and checks everything but the state. */
static rp_status read_head(const rp_env *env, const void *bytes, size_t size,
                           snapshot_head *head, rp_error *err)
{
    size_t expected = rp_env_snapshot_bytes(env);
    const char *name = env->class->name;
    uint64_t sum;

    if (size < sizeof *head)
        return rp_rl_fail(err, RP_CORRUPT, "environment '%s': a snapshot of %zu bytes is cut",
                          name, size);
    memcpy(head, bytes, sizeof *head);
    if (head->magic != MAGIC || head->version != VERSION)
        return rp_rl_fail(err, RP_CORRUPT, "environment '%s': the bytes are no snapshot", name);
    if (head->fingerprint != fingerprint(env))
        return rp_rl_fail(err, RP_INVALID,
                          "environment '%s': the snapshot is of another class or of other "
                          "settings",
                          name);
    if (size != expected)
        return rp_rl_fail(err, RP_CORRUPT,
                          "environment '%s': the snapshot must have %zu bytes, got %zu", name,
                          expected, size);
    memcpy(&sum, (const char *)bytes + size - sizeof sum, sizeof sum);
    if (sum != fnv(FNV_START, bytes, size - sizeof sum) || head->copy.seeded > 1 ||
        head->copy.begun > head->copy.seeded || head->copy.steps < 0)
        return rp_rl_fail(err, RP_CORRUPT, "environment '%s': the snapshot is damaged", name);
    return RP_OK;
}

/* True if a step from this state keeps E2 of env.c. */
static bool steps_fit(const rp_env *env, const snapshot_head *head)
{
    int64_t limit = env->spec.time_limit;

    return env->keep_ended || limit == 0 || head->copy.steps < limit;
}

/* Exchanges the state of a copy with `bytes`. */
static void swap_state(rp_env *env, size_t copy, char *bytes)
{
    char *state = rp_env_state(env, copy);

    for (size_t i = 0; i < env->spec.state_bytes; i++) {
        char kept = state[i];
        state[i] = bytes[i];
        bytes[i] = kept;
    }
}

static void *take_state(const rp_env *env, rp_error *err)
{
    void *memory = env->alloc.resize(env->alloc.ctx, NULL, 0, env->spec.state_bytes);

    if (memory == NULL)
        (void)rp_rl_fail(err, RP_NO_RESOURCE, "environment '%s': no memory for a state",
                         env->class->name);
    return memory;
}

rp_status rp_env_load(rp_env *env, size_t copy, const void *bytes, size_t size,
                      void *observation, rp_error *err)
{
    snapshot_head head;
    rp_status st = read_head(env, bytes, size, &head, err);
    char *spare;

    assert(copy < env->copies);
    if (st != RP_OK) return st;
    if (!steps_fit(env, &head))
        return rp_rl_fail(err, RP_INVALID,
                          "environment '%s': the episode of the snapshot has ended",
                          env->class->name);
    spare = take_state(env, err);
    if (spare == NULL) return RP_NO_RESOURCE;
    memcpy(spare, (const char *)bytes + sizeof head, env->spec.state_bytes);
    swap_state(env, copy, spare);
    if (head.copy.begun && !env->class->check(&env->ctx, rp_env_state(env, copy))) {
        swap_state(env, copy, spare);
        st = rp_rl_fail(err, RP_CORRUPT,
                        "environment '%s': the snapshot has a state that cannot be",
                        env->class->name);
    } else {
        env->waiting += env->copy[copy].begun;
        env->waiting -= head.copy.begun;
        env->copy[copy] = head.copy;
        if (observation != NULL && head.copy.begun)
            env->class->observe(&env->ctx, rp_env_state(env, copy), 1, observation);
    }
    (void)env->alloc.resize(env->alloc.ctx, spare, env->spec.state_bytes, 0);
    assert(env->waiting <= env->copies);
    return st;
}

void rp_env_get_variables(const rp_env *env, size_t copy, double *values)
{
    assert(copy < env->copies);
    if (env->spec.variable_count > 0)
        env->class->get_variables(&env->ctx, rp_env_state(env, copy), values);
}

rp_status rp_env_set_variables(rp_env *env, size_t copy, const double *values, rp_error *err)
{
    const char *name = env->class->name;
    rp_status st = RP_OK;
    char *spare;

    assert(copy < env->copies);
    if (!env->copy[copy].begun)
        return rp_rl_fail(err, RP_PRECONDITION, "environment '%s', copy %zu was never reset",
                          name, copy);
    if (env->spec.variable_count == 0)
        return rp_rl_fail(err, RP_INVALID, "environment '%s' has no variables", name);
    spare = take_state(env, err);
    if (spare == NULL) return RP_NO_RESOURCE;
    memcpy(spare, rp_env_state(env, copy), env->spec.state_bytes);
    env->class->set_variables(&env->ctx, rp_env_state(env, copy), values);
    if (!env->class->check(&env->ctx, rp_env_state(env, copy))) {
        swap_state(env, copy, spare);
        st = rp_rl_fail(err, RP_INVALID, "environment '%s', copy %zu cannot be in such a state",
                        name, copy);
    }
    (void)env->alloc.resize(env->alloc.ctx, spare, env->spec.state_bytes, 0);
    return st;
}
