/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of an adder. A call checks everything first and waits next, before it changes
 * anything; only then does it append rows and create items. What fails there, such as an
 * allocation of the writer, leaves some copies with the step and others without, so the adder
 * must be reset.
 *
 * Invariants, between calls:
 *   A1  `waiting` counts the copies that have not begun;
 *   A2  n-step: N1 to N3 of n_step.c, and a copy that has not begun has no rows in the ring;
 *   A3  sequences and episodes: 0 <= closed rows; of an episode adder, less than its length. */
#include <assert.h>

#include "adder/adder_inside.h"
#include "error/fail.h"

enum { MOST_STEPS = 1 << 30 }; /* of an episode of the writer, whose limit is 2^31 - 1 */

void rp_adder_set_value(rp_adder *a, size_t index, size_t column, size_t at, const void *data)
{
    const rp_spec *spec = &a->layout.columns[at].spec;

    assert(index < a->layout.column_count && at < a->layout.column_count && data != NULL);
    a->values[index] =
        (rp_value){(uint32_t)column, spec->name, {spec->dtype, spec->shape, data}};
}

rp_status rp_adder_prioritize(rp_adder *a, const rp_adder_items *items, rp_error *err)
{
    assert(items->count <= a->item_room);
    for (size_t t = 0; t < a->table_count; t++) {
        const rp_adder_table *table = &a->tables[t];
        rp_status st = RP_OK;
        if (table->prioritize == NULL) continue;
        st = table->prioritize(table->ctx, items, a->priorities + t * a->item_room, err);
        if (st != RP_OK) return st;
    }
    return RP_OK;
}

rp_status rp_adder_create(rp_adder *a, size_t index, rp_wait wait, rp_error *err)
{
    rp_status st = RP_OK;

    assert(index < a->item_room);
    for (size_t t = 0; st == RP_OK && !a->muted && t < a->table_count; t++) {
        rp_new_item item = {a->tables[t].name, a->priorities[t * a->item_room + index], a->item,
                            a->layout.column_count};
        st = rp_trajectory_writer_create_item(a->writer, &item, wait, NULL, err);
        if (st == RP_OK) a->created++;
    }
    return st;
}

void rp_adder_complete(rp_adder *a)
{
    rp_error err;
    rp_status st = rp_trajectory_writer_flush(a->writer, 0, rp_wait_none(), &err);

    if (st == RP_OK || st == RP_DEADLINE || a->rejected.code != RP_OK) return;
    a->rejected = err;
}

/* Hands the items of this call to their tables, in one group. Keeps the status of rejected
 * ones for the next call. */
static void hand_over(rp_adder *a)
{
    rp_error err;
    rp_status st = rp_trajectory_writer_flush(a->writer, SIZE_MAX, rp_wait_none(), &err);

    if (st != RP_OK && a->rejected.code == RP_OK) a->rejected = err;
}

/* Waits until at most `leave` items are unconfirmed. Reports rejected items. */
static rp_status flush(rp_adder *a, size_t leave, rp_wait wait, rp_error *err)
{
    rp_status st = a->rejected.code;

    if (st == RP_OK) return rp_trajectory_writer_flush(a->writer, leave, wait, err);
    if (err != NULL) *err = a->rejected;
    a->rejected.code = RP_OK;
    return st;
}

static rp_status check_usable(const rp_adder *a, rp_error *err)
{
    if (!a->failed) return RP_OK;
    return rp_rl_fail(err, RP_PRECONDITION,
                      "adder: an earlier call failed: rp_adder_reset() must be called first");
}

/* Starts a new episode of the writer long before its counter of steps is full. */
static rp_status renew_steps(rp_adder *a, rp_wait wait, rp_error *err)
{
    if (rp_trajectory_writer_steps(a->writer) < MOST_STEPS) return RP_OK;
    return rp_trajectory_writer_end_episode(a->writer, false, wait, err);
}

rp_status rp_adder_first(rp_adder *adder, const void *observations, const bool *which,
                         rp_error *err)
{
    rp_status st = check_usable(adder, err);

    if (st != RP_OK) return st;
    if (observations == NULL)
        return rp_rl_fail(err, RP_INVALID, "adder: there are no observations");
    for (size_t k = 0; k < adder->copies; k++)
        if (adder->begun[k] && (which == NULL || which[k]))
            return rp_rl_fail(err, RP_PRECONDITION,
                              "adder: copy %zu is within an episode: it must end first", k);
    st = adder->kind == RP_ADDER_N_STEP ? rp_transitions_first(adder, observations, which, err)
                                        : rp_sequences_first(adder, observations, which, err);
    if (st != RP_OK) {
        adder->failed = true;
        return st;
    }
    for (size_t k = 0; k < adder->copies; k++) {
        if (which != NULL && !which[k]) continue;
        adder->begun[k] = true;
        adder->waiting--;
    }
    assert(rp_adder_verify(adder));
    return RP_OK;
}

static rp_status check_step(const rp_adder *a, const rp_adder_step *step, rp_error *err)
{
    rp_status st = check_usable(a, err);

    if (st != RP_OK) return st;
    if (step->actions == NULL || step->observations == NULL || step->rewards == NULL ||
        step->terminated == NULL || step->truncated == NULL)
        return rp_rl_fail(err, RP_INVALID,
                          "adder: actions, observations, rewards, terminated or truncated are "
                          "missing");
    for (size_t i = RP_AT_EXTRAS; i < a->layout.column_count; i++)
        if (step->extras == NULL || step->extras[i - RP_AT_EXTRAS] == NULL)
            return rp_rl_fail(err, RP_INVALID, "adder: extra '%.64s' is missing",
                              a->layout.columns[i].spec.name);
    if (a->waiting > 0) {
        size_t k = 0;
        while (a->begun[k]) k++;
        return rp_rl_fail(err, RP_PRECONDITION,
                          "adder: copy %zu has not begun an episode: rp_adder_first() must be "
                          "called first",
                          k);
    }
    return a->kind == RP_ADDER_EPISODE ? rp_sequences_check(a, err) : RP_OK;
}

/* Fills a->ended and returns the discounts of the step. */
static const float *read_ends(rp_adder *a, const rp_adder_step *step)
{
    size_t size = a->layout.discount_size;

    for (size_t k = 0; k < a->copies; k++)
        a->ended[k] = step->terminated[k] || step->truncated[k];
    if (step->discounts != NULL) return step->discounts;
    for (size_t k = 0; k < a->copies; k++)
        for (size_t i = 0; i < size; i++)
            a->discounts[k * size + i] = step->terminated[k] ? 0.0F : 1.0F;
    return a->discounts;
}

rp_status rp_adder_add(rp_adder *adder, const rp_adder_step *step, rp_wait wait, rp_error *err)
{
    const float *discounts;
    rp_status st = check_step(adder, step, err);

    if (st == RP_OK) st = renew_steps(adder, wait, err);
    if (st == RP_OK) st = flush(adder, adder->leave, wait, err);
    if (st != RP_OK) return st;
    discounts = read_ends(adder, step);
    st = adder->kind == RP_ADDER_N_STEP ? rp_transitions_add(adder, step, discounts, wait, err)
                                        : rp_sequences_add(adder, step, discounts, wait, err);
    hand_over(adder);
    if (st != RP_OK) {
        adder->failed = true;
        return st;
    }
    if (step->last_observations == NULL) {
        for (size_t k = 0; k < adder->copies; k++) {
            if (!adder->ended[k]) continue;
            adder->begun[k] = false;
            adder->waiting++;
        }
    }
    assert(rp_adder_verify(adder));
    return RP_OK;
}

static void forget(rp_adder *a, size_t copy)
{
    if (a->kind == RP_ADDER_N_STEP)
        rp_n_step_forget(&a->transitions.core, copy);
    else
        rp_sequences_forget(a, copy);
    if (a->begun[copy]) a->waiting++;
    a->begun[copy] = false;
}

rp_status rp_adder_reset(rp_adder *adder, const bool *which, rp_wait wait, rp_error *err)
{
    rp_status st = RP_OK;

    if (which != NULL)
        st = check_usable(adder, err);
    else
        st = rp_trajectory_writer_end_episode(adder->writer, true, wait, err);
    if (st != RP_OK) return st;
    for (size_t k = 0; k < adder->copies; k++)
        if (which == NULL || which[k]) forget(adder, k);
    adder->failed = false;
    assert(rp_adder_verify(adder));
    return RP_OK;
}

void rp_adder_set_muted(rp_adder *adder, bool muted)
{
    adder->muted = muted;
}

rp_status rp_adder_flush(rp_adder *adder, rp_wait wait, rp_error *err)
{
    return flush(adder, 0, wait, err);
}

uint64_t rp_adder_created(const rp_adder *adder)
{
    return adder->created;
}

size_t rp_adder_pending(const rp_adder *adder)
{
    return rp_trajectory_writer_pending(adder->writer);
}

bool rp_adder_verify(const rp_adder *adder)
{
    size_t waiting = 0;

    for (size_t k = 0; k < adder->copies; k++) {
        if (!adder->begun[k]) waiting++;
        if (adder->kind == RP_ADDER_N_STEP) {
            if (!adder->begun[k] && adder->transitions.core.lengths[k] != 0)
                return false; /* A2 */
            continue;
        }
        if (adder->sequences.closed[k] < 0) return false; /* A3 */
        if (adder->kind == RP_ADDER_EPISODE &&
            adder->sequences.closed[k] >= adder->sequences.plan.length)
            return false; /* A3 */
    }
    if (waiting != adder->waiting) return false; /* A1 */
    return adder->kind != RP_ADDER_N_STEP || rp_n_step_verify(&adder->transitions.core);
}
