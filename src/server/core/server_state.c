/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/server_state.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "util/error.h"

enum { LOG_BYTES = 512 };

void rp_server_log(rp_server *server, rp_log_level level, const char *event, const char *format,
                   ...)
{
    char fields[LOG_BYTES];
    va_list arguments;

    if (server->log.write == NULL) return;
    va_start(arguments, format);
    (void)vsnprintf(fields, sizeof fields, format, arguments);
    va_end(arguments);
    server->log.write(server->log.ctx, level, event, fields);
}

rp_server_limits rp_server_limits_now(rp_server *server)
{
    rp_server_limits limits;

    rp_mutex_lock(&server->lock);
    limits = server->limits;
    rp_mutex_unlock(&server->lock);
    assert(limits.queued_bytes > 0 && limits.message_bytes > 0); /* completed */
    return limits;
}

rp_health rp_server_health_now(rp_server *server)
{
    rp_health health;

    rp_mutex_lock(&server->lock);
    health = server->health;
    rp_mutex_unlock(&server->lock);
    return health;
}

void rp_server_set_health(rp_server *server, rp_health health, const char *why)
{
    rp_mutex_lock(&server->lock);
    server->health = health;
    (void)snprintf(server->health_why, sizeof server->health_why, "%s", why != NULL ? why : "");
    if (health == RP_HEALTH_SERVING || health == RP_HEALTH_DEGRADED)
        atomic_store_explicit(&server->is_loaded, true, memory_order_release);
    rp_mutex_unlock(&server->lock);
    atomic_fetch_add_explicit(&server->health_version, 1, memory_order_release);
}

rp_status rp_server_fail_loading(rp_server *server, rp_error *err)
{
    char why[RP_VIEW_WHY_BYTES];

    rp_mutex_lock(&server->lock);
    memcpy(why, server->health_why, sizeof why);
    rp_mutex_unlock(&server->lock);
    return rp_fail(err, RP_UNAVAILABLE, "the server is loading its data%s%.150s",
                   why[0] != '\0' ? ": " : "", why);
}
