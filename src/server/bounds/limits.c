/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/limits.h"

#include <sys/sysinfo.h>

#include "util/error.h"

enum { MIB = 1 << 20 };

/* X(field, default, lowest, highest) for sizes, and for times. With fewer message_bytes, calls
 * that every client makes would fail. */
#define SIZES(X)                                                                               \
    X(connections, 10000, 1, 1000000)                                                          \
    X(streams, 1024, 1, 1 << 30)                                                               \
    X(calls, 65536, 1, 1 << 30)                                                                \
    X(message_bytes, 64 * (size_t)MIB, 4096, UINT32_MAX)                                       \
    X(chunk_bytes, 32 * (size_t)MIB, 1, UINT32_MAX)                                            \
    X(tensor_bytes, 256 * (size_t)MIB, 1, SIZE_MAX / 2)                                        \
    X(item_bytes, 1024 * (size_t)MIB, 1, SIZE_MAX / 2)                                         \
    X(columns, RP_MAX_COLUMNS, 1, RP_MAX_COLUMNS)                                              \
    X(chunks, 1 << 18, 1, RP_MAX_SLICES)                                                       \
    X(slices, RP_MAX_SLICES, 1, RP_MAX_SLICES)                                                 \
    X(items, 262144, 1, 1 << 24)                                                               \
    X(keys, 262144, 1, 1 << 28)                                                                \
    X(distinct_samples, 4096, 1, 1 << 20)                                                      \
    X(stream_pinned_bytes, 64 * (size_t)MIB, 1, SIZE_MAX / 2)                                  \
    X(connection_pinned_bytes, 256 * (size_t)MIB, 1, SIZE_MAX / 2)                             \
    X(pinned_bytes, share_of_memory(10), 1, SIZE_MAX / 2)                                      \
    X(stream_queued_bytes, 2 * (size_t)MIB, 1, SIZE_MAX / 2)                                   \
    X(connection_queued_bytes, 16 * (size_t)MIB, 1, SIZE_MAX / 2)                              \
    X(queued_bytes, share_of_memory(5), 8192, SIZE_MAX / 2) /* two messages */                 \
    X(shared_held_bytes, 1024 * (size_t)MIB, 1, SIZE_MAX / 2)                                  \
    X(run_bytes, 64 * (size_t)MIB, 1, SIZE_MAX / 2)                                            \
    X(header_bytes, 16384, 256, MIB)                                                           \
    X(header_fields, 64, 8, 100000)                                                            \
    X(abuse_burst, 1000, 1, 1 << 30)                                                           \
    X(abuse_per_second, 33, 1, 1 << 30)                                                        \
    X(tables, 1024, 1, 1 << 20)

#define TIMES(X)                                                                               \
    X(handshake_ms, 10000)                                                                     \
    X(stall_ms, 60000)                                                                         \
    X(message_grace_ms, 30000)                                                                 \
    X(ping_ms, 30000)                                                                          \
    X(ping_timeout_ms, 20000)                                                                  \
    X(checkpoint_spacing_ms, 10000)

static const int64_t longest_ms = INT64_C(1000) * 60 * 60 * 24 * 365;

/* `percent` of the machine's memory. */
static size_t share_of_memory(size_t percent)
{
    struct sysinfo info;

    if (sysinfo(&info) != 0) return percent * 50 * (size_t)MIB;
    return (size_t)info.totalram * info.mem_unit * percent / 100;
}

rp_server_limits rp_server_limits_default(void)
{
    rp_server_limits limits;

#define SET_SIZE(field, value, lowest, highest) limits.field = (value);
#define SET_TIME(field, value) limits.field = (value);
    SIZES(SET_SIZE)
    TIMES(SET_TIME)
#undef SET_SIZE
#undef SET_TIME
    return limits;
}

size_t rp_server_limits_side_bytes(const rp_server_limits *limits)
{
    return limits->queued_bytes - limits->queued_bytes / 2;
}

rp_status rp_server_limits_complete(rp_server_limits *limits, rp_error *err)
{
    const rp_server_limits defaults = rp_server_limits_default();

#define COMPLETE(field, ...)                                                                   \
    if (limits->field == 0) limits->field = defaults.field;
    SIZES(COMPLETE)
    TIMES(COMPLETE)
#undef COMPLETE
#define CHECK_SIZE(field, value, lowest, highest)                                              \
    if (limits->field < (size_t)(lowest) || limits->field > (size_t)(highest))                 \
        return rp_fail(err, RP_INVALID, "limit " #field " must be from %zu to %zu, got %zu",   \
                       (size_t)(lowest), (size_t)(highest), limits->field);
    SIZES(CHECK_SIZE)
#undef CHECK_SIZE
#define CHECK_TIME(field, value)                                                               \
    if (limits->field < 1 || limits->field > longest_ms)                                       \
        return rp_fail(err, RP_INVALID, "limit " #field " must be from 1 to %lld, got %lld",   \
                       (long long)longest_ms, (long long)limits->field);
    TIMES(CHECK_TIME)
#undef CHECK_TIME
    if (limits->message_bytes > rp_server_limits_side_bytes(limits))
        limits->message_bytes = rp_server_limits_side_bytes(limits);
    return RP_OK;
}
