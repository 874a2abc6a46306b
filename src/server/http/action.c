/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/action.h"

#include <float.h>

#include "server/http/body_json.h"
#include "util/error.h"

/* Ends the reading of a body. */
static rp_status finish(rp_body *in, rp_error *err)
{
    if (rp_body_end(in)) return RP_OK;
    return rp_fail(err, RP_INVALID, "the body is not as expected: %s at byte %zu", in->what,
                   in->byte);
}

static rp_status unknown(const rp_ask_name *key, const char *known, rp_error *err)
{
    return rp_fail(err, RP_INVALID, "the body has the key '%.60s', and only %s are known",
                   key->text, known);
}

rp_status rp_action_read_sides(const void *body, size_t size, rp_action *action, rp_error *err)
{
    bool inserts = true, samples = true;
    rp_ask_name key;
    rp_body in;

    rp_body_init(&in, body, size);
    if (size > 0 && rp_body_open(&in, '{')) {
        while (rp_body_next_key(&in, &key)) {
            if (strcmp(key.text, "inserts") == 0)
                (void)rp_body_bool(&in, &inserts);
            else if (strcmp(key.text, "samples") == 0)
                (void)rp_body_bool(&in, &samples);
            else
                return unknown(&key, "inserts and samples", err);
        }
    }
    action->sides =
        (inserts ? (uint32_t)RP_SIDE_INSERTS : 0) | (samples ? (uint32_t)RP_SIDE_SAMPLES : 0);
    if (finish(&in, err) != RP_OK) return RP_INVALID;
    if (action->sides != 0) return RP_OK;
    return rp_fail(err, RP_INVALID, "one of inserts and samples must be true");
}

/* Reads a bound of the limiter; null: none. */
static bool read_bound(rp_body *in, double none, double *out)
{
    if (!rp_body_null(in)) return rp_body_number(in, out);
    *out = none;
    return true;
}

/* Reads the value of a key. False if the key is not known. */
static bool read_alteration(rp_body *in, const char *key, rp_wire_alter_table *a)
{
    rp_wire_limiter *limiter = &a->limiter;
    int64_t whole = 0;

    if (strcmp(key, "max_size") == 0) {
        a->has_max_size = rp_body_whole(in, &a->max_size);
    } else if (strcmp(key, "max_bytes") == 0) {
        a->has_max_bytes = rp_body_whole(in, &whole);
        if (whole < 0) (void)rp_body_fail(in, "max_bytes is negative");
        a->max_bytes = (uint64_t)whole;
    } else if (strcmp(key, "max_times_sampled") == 0) {
        a->has_max_times_sampled = rp_body_whole(in, &whole);
        if (whole != (int32_t)whole) (void)rp_body_fail(in, "max_times_sampled is too large");
        a->max_times_sampled = (int32_t)whole;
    } else if (strcmp(key, "samples_per_insert") == 0) {
        limiter->has_samples_per_insert =
            rp_body_number(in, &limiter->value.samples_per_insert);
    } else if (strcmp(key, "min_size") == 0) {
        limiter->has_min_size = rp_body_whole(in, &limiter->value.min_size);
    } else if (strcmp(key, "min_diff") == 0) {
        limiter->has_min_diff = read_bound(in, -DBL_MAX, &limiter->value.min_diff);
    } else if (strcmp(key, "recenter") == 0) {
        (void)rp_body_bool(in, &a->recenter);
    } else if (strcmp(key, "max_diff") == 0) {
        limiter->has_max_diff = read_bound(in, DBL_MAX, &limiter->value.max_diff);
    } else {
        return false;
    }
    return true;
}

rp_status rp_action_read_alter(const void *body, size_t size, rp_action *action, rp_error *err)
{
    bool any = false;
    rp_ask_name key;
    rp_body in;

    action->alter = (rp_wire_alter_table){.has_max_size = false};
    rp_body_init(&in, body, size);
    if (rp_body_open(&in, '{')) {
        while (rp_body_next_key(&in, &key)) {
            if (!read_alteration(&in, key.text, &action->alter))
                return unknown(&key,
                               "max_size, max_bytes, max_times_sampled, samples_per_insert, "
                               "min_size, min_diff, max_diff and recenter",
                               err);
            any = any || strcmp(key.text, "recenter") != 0 || action->alter.recenter;
        }
    }
    if (finish(&in, err) != RP_OK) return RP_INVALID;
    return any ? RP_OK : rp_fail(err, RP_INVALID, "the body names nothing to alter");
}
