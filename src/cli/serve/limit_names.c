/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/limit_names.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/nearest.h"

typedef enum kind { COUNT, BYTES, MS } kind;

typedef struct limit {
    const char *name;
    kind kind;
    size_t offset;
    int64_t low, high; /* the server checks them as well, but its error has no place */
} limit;

#define MIB (INT64_C(1) << 20)
#define YEAR (INT64_C(1000) * 60 * 60 * 24 * 365)
#define LIMIT(name, kind, low, high)                                                           \
    {                                                                                          \
#name, kind, offsetof(rp_server_limits, name), low, high                               \
    }

static const limit list[] = {
    LIMIT(connections, COUNT, 1, 1000000),
    LIMIT(streams, COUNT, 1, 1 << 30),
    LIMIT(calls, COUNT, 1, 1 << 30),
    LIMIT(message_bytes, BYTES, 4096, UINT32_MAX),
    LIMIT(chunk_bytes, BYTES, 1, UINT32_MAX),
    LIMIT(tensor_bytes, BYTES, 1, INT64_MAX),
    LIMIT(item_bytes, BYTES, 1, INT64_MAX),
    LIMIT(columns, COUNT, 1, RP_MAX_COLUMNS),
    LIMIT(chunks, COUNT, 1, RP_MAX_SLICES),
    LIMIT(slices, COUNT, 1, RP_MAX_SLICES),
    LIMIT(items, COUNT, 1, 1 << 24),
    LIMIT(keys, COUNT, 1, 1 << 28),
    LIMIT(distinct_samples, COUNT, 1, 1 << 20),
    LIMIT(stream_pinned_bytes, BYTES, 1, INT64_MAX),
    LIMIT(connection_pinned_bytes, BYTES, 1, INT64_MAX),
    LIMIT(pinned_bytes, BYTES, 1, INT64_MAX),
    LIMIT(stream_queued_bytes, BYTES, 1, INT64_MAX),
    LIMIT(connection_queued_bytes, BYTES, 1, INT64_MAX),
    LIMIT(queued_bytes, BYTES, 8192, INT64_MAX),
    LIMIT(shared_held_bytes, BYTES, 1, INT64_MAX),
    LIMIT(run_bytes, BYTES, 1, INT64_MAX),
    LIMIT(header_bytes, BYTES, 256, MIB),
    LIMIT(header_fields, COUNT, 8, 100000),
    LIMIT(abuse_burst, COUNT, 1, 1 << 30),
    LIMIT(abuse_per_second, COUNT, 1, 1 << 30),
    LIMIT(handshake_ms, MS, 1, YEAR),
    LIMIT(stall_ms, MS, 1, YEAR),
    LIMIT(message_grace_ms, MS, 1, YEAR),
    LIMIT(ping_ms, MS, 1, YEAR),
    LIMIT(ping_timeout_ms, MS, 1, YEAR),
    LIMIT(tables, COUNT, 1, 1 << 20),
    LIMIT(checkpoint_spacing_ms, MS, 1, YEAR),
};

enum { LIMITS = sizeof list / sizeof list[0] };

size_t rp_limit_count(void)
{
    return LIMITS;
}

const char *rp_limit_name(size_t index)
{
    assert(index < LIMITS);
    return list[index].name;
}

/* Get and set the field of a limit, an int64_t or a size_t. Values are not negative and fit
 * both. */
static int64_t get(const rp_server_limits *limits, const limit *l)
{
    const char *at = (const char *)limits + l->offset;

    return l->kind == MS ? *(const int64_t *)at : (int64_t) * (const size_t *)at;
}

static void put(rp_server_limits *limits, const limit *l, int64_t value)
{
    char *at = (char *)limits + l->offset;

    assert(value >= 0 && value <= l->high);
    if (l->kind == MS)
        *(int64_t *)at = value;
    else
        *(size_t *)at = (size_t)value;
}

static rp_status unknown_limit(const char *name, const rp_setting *value, rp_problem *problem)
{
    char all[900] = "";
    rp_nearest nearest;

    rp_nearest_init(&nearest, name);
    for (size_t i = 0; i < LIMITS; i++) rp_nearest_offer(&nearest, list[i].name);
    if (rp_nearest_get(&nearest) != NULL)
        return rp_problem_set(problem, &value->place, "%s: unknown limit, did you mean '%s'?",
                              value->key, rp_nearest_get(&nearest));
    for (size_t i = 0; i < LIMITS; i++) {
        size_t used = strlen(all);

        (void)snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? ", " : "", list[i].name);
    }
    return rp_problem_set(problem, &value->place, "%s: unknown limit; known are %s", value->key,
                          all);
}

/* Parses the value in the unit of the field. */
static rp_status read_limit(const limit *l, const rp_setting *value, uint64_t memory,
                            int64_t *number, rp_problem *problem)
{
    uint64_t bytes = 0;
    rp_status st;

    if (l->kind == COUNT) return rp_setting_integer(value, 0, l->high, number, problem);
    if (l->kind == MS) return rp_setting_duration(value, 1, l->high, number, problem);
    st = rp_setting_size(value, memory, &bytes, problem);
    *number = bytes > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)bytes;
    return st;
}

rp_status rp_limit_set(rp_server_limits *limits, const char *name, const rp_setting *value,
                       uint64_t memory, rp_problem *problem)
{
    int64_t number = 0;
    rp_status st;
    size_t i = 0;

    while (i < LIMITS && strcmp(list[i].name, name) != 0) i++;
    if (i == LIMITS) return unknown_limit(name, value, problem);
    st = read_limit(&list[i], value, memory, &number, problem);
    if (st != RP_OK) return st;
    if (number != 0 && (number < list[i].low || number > list[i].high))
        return rp_problem_set(problem, &value->place,
                              "%s: must be from %" PRId64 " to %" PRId64
                              ", or 0 for the default; got '%.100s'",
                              value->key, list[i].low, list[i].high, value->text);
    put(limits, &list[i], number);
    return RP_OK;
}

void rp_limit_bounds(size_t index, int64_t *low, int64_t *high)
{
    assert(index < LIMITS && list[index].low <= list[index].high);
    *low = list[index].low;
    *high = list[index].high;
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

    assert(index < LIMITS && size >= 32);
    if (list[index].kind == BYTES)
        for (; value != 0 && value % 1024 == 0 && unit < 4; unit++) value /= 1024;
    (void)snprintf(text, size, "%" PRId64 "%s", value, names[unit]);
    return text;
}
