/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/limit_names.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/nearest.h"

/* As many as a person could mean; the server has bounds of its own. */
static const int64_t max_count = INT64_C(1) << 40;
static const int64_t max_ms = INT64_C(30) * 24 * 60 * 60 * 1000;

typedef enum kind { COUNT, BYTES, MS } kind;

typedef struct limit {
    const char *name;
    kind kind;
    size_t offset;
} limit;

#define LIMIT(name, kind)                                                                      \
    {                                                                                          \
#name, kind, offsetof(rp_server_limits, name)                                          \
    }

static const limit list[] = {
    LIMIT(connections, COUNT),
    LIMIT(streams, COUNT),
    LIMIT(message_bytes, BYTES),
    LIMIT(chunk_bytes, BYTES),
    LIMIT(tensor_bytes, BYTES),
    LIMIT(columns, COUNT),
    LIMIT(slices, COUNT),
    LIMIT(items, COUNT),
    LIMIT(keys, COUNT),
    LIMIT(stream_pinned_bytes, BYTES),
    LIMIT(connection_pinned_bytes, BYTES),
    LIMIT(stream_queued_bytes, BYTES),
    LIMIT(connection_queued_bytes, BYTES),
    LIMIT(queued_bytes, BYTES),
    LIMIT(header_bytes, BYTES),
    LIMIT(header_fields, COUNT),
    LIMIT(abuse_burst, COUNT),
    LIMIT(abuse_per_second, COUNT),
    LIMIT(handshake_ms, MS),
    LIMIT(stall_ms, MS),
    LIMIT(message_grace_ms, MS),
    LIMIT(ping_ms, MS),
    LIMIT(ping_timeout_ms, MS),
    LIMIT(tables, COUNT),
};

enum { LIMITS = sizeof list / sizeof list[0] };

size_t rp_limit_count(void)
{
    return LIMITS;
}

const char *rp_limit_name(size_t index)
{
    return list[index].name;
}

/* Both kinds of field hold numbers that are not negative and fit either. */
static int64_t get(const rp_server_limits *limits, const limit *l)
{
    const char *at = (const char *)limits + l->offset;

    return l->kind == MS ? *(const int64_t *)at : (int64_t) * (const size_t *)at;
}

static void put(rp_server_limits *limits, const limit *l, int64_t value)
{
    char *at = (char *)limits + l->offset;

    if (l->kind == MS)
        *(int64_t *)at = value;
    else
        *(size_t *)at = (size_t)value;
}

static rp_status unknown_limit(const char *name, const rp_value *value, rp_problem *problem)
{
    rp_nearest nearest;

    rp_nearest_init(&nearest, name);
    for (size_t i = 0; i < LIMITS; i++) rp_nearest_offer(&nearest, list[i].name);
    if (rp_nearest_get(&nearest) != NULL)
        return rp_problem_set(problem, &value->place,
                              "%s: there is no such limit, did you mean '%s'?", value->key,
                              rp_nearest_get(&nearest));
    return rp_problem_set(problem, &value->place, "%s: there is no such limit", value->key);
}

rp_status rp_limit_set(rp_server_limits *limits, const char *name, const rp_value *value,
                       uint64_t memory, rp_problem *problem)
{
    rp_status st = RP_OK;
    int64_t number = 0;
    uint64_t bytes = 0;
    size_t i = 0;

    while (i < LIMITS && strcmp(list[i].name, name) != 0) i++;
    if (i == LIMITS) return unknown_limit(name, value, problem);
    switch (list[i].kind) {
    case COUNT: st = rp_value_integer(value, 0, max_count, &number, problem); break;
    case MS: st = rp_value_duration(value, 1, max_ms, &number, problem); break;
    case BYTES:
        st = rp_value_size(value, memory, &bytes, problem);
        if (st == RP_OK && bytes > (uint64_t)INT64_MAX)
            st = rp_problem_set(problem, &value->place, "%s: '%s' is over 2^63 bytes",
                                value->key, value->text);
        number = (int64_t)(bytes & INT64_MAX);
        break;
    }
    if (st == RP_OK) put(limits, &list[i], number);
    return st;
}

rp_server_limits rp_limits_filled(const rp_server_limits *limits)
{
    rp_server_limits filled = rp_server_limits_default();

    for (size_t i = 0; i < LIMITS; i++)
        if (get(limits, &list[i]) != 0) put(&filled, &list[i], get(limits, &list[i]));
    return filled;
}

char *rp_limit_text(const rp_server_limits *limits, size_t index, char *text, size_t size)
{
    static const char *const names[] = {"", "KiB", "MiB", "GiB", "TiB"};
    int64_t value = get(limits, &list[index]);
    size_t unit = 0;

    if (list[index].kind == BYTES)
        for (; value != 0 && value % 1024 == 0 && unit < 4; unit++) value /= 1024;
    (void)snprintf(text, size, "%" PRId64 "%s", value, names[unit]);
    return text;
}
