/* SPDX-License-Identifier: Apache-2.0 */
/* The RPC methods of the server, and the role that a caller needs for each method. */
#ifndef RP_SERVER_AUTH_METHOD_H
#define RP_SERVER_AUTH_METHOD_H

#include <stdbool.h>
#include <stddef.h>

/* A role includes the rights of the roles before it. */
typedef enum rp_role {
    RP_ROLE_NONE = 0,
    RP_ROLE_READ = 1,  /* sample, peek, list */
    RP_ROLE_WRITE = 2, /* insert, update and delete items; report to runs; use rollouts */
    RP_ROLE_ADMIN = 3, /* reset, checkpoint; create, drop and change tables and rollouts */
} rp_role;

/* Returns the name of a role: "none", "read", "write" or "admin". The text is static. */
const char *rp_role_name(rp_role role);

typedef enum rp_method {
    RP_METHOD_UNKNOWN,
    /* deepmind.reverb.ReverbService */
    RP_METHOD_INSERT_STREAM,
    RP_METHOD_SAMPLE_STREAM,
    RP_METHOD_MUTATE_PRIORITIES,
    RP_METHOD_RESET,
    RP_METHOD_CHECKPOINT,
    RP_METHOD_SERVER_INFO,
    RP_METHOD_INITIALIZE_CONNECTION,
    /* reprise.v1 */
    RP_METHOD_PEEK,
    RP_METHOD_SAMPLE,
    RP_METHOD_SAMPLE_SHARED,
    RP_METHOD_WHY_BLOCKED,
    RP_METHOD_CLIENTS,
    RP_METHOD_STATUS,
    RP_METHOD_UPDATE,
    RP_METHOD_DELETE,
    RP_METHOD_CREATE_TABLE,
    RP_METHOD_DROP_TABLE,
    RP_METHOD_ALTER_TABLE,
    RP_METHOD_PAUSE_TABLE,
    RP_METHOD_RESUME_TABLE,
    RP_METHOD_LOG_SCALARS,
    RP_METHOD_READ_RUNS,
    RP_METHOD_CREATE_ROLLOUTS,
    RP_METHOD_DROP_ROLLOUTS,
    RP_METHOD_LIST_ROLLOUTS,
    RP_METHOD_APPLY_ROLLOUTS,
    RP_METHOD_PEEK_ROLLOUTS,
    RP_METHOD_READ_CURSOR,
    /* grpc.health.v1.Health */
    RP_METHOD_HEALTH_CHECK,
    RP_METHOD_HEALTH_WATCH,
    /* grpc.reflection.v1 and v1alpha */
    RP_METHOD_REFLECTION,
    RP_METHODS,
} rp_method;

/* Returns the method of an HTTP/2 :path, "/package.Service/Method". In the package reprise.v1
 * the name of the service is ignored. If the result is RP_METHOD_UNKNOWN, the server must
 * respond with UNIMPLEMENTED, even to a peer that lacks the role of rp_method_role(). */
rp_method rp_method_of(const char *path);

/* Returns the name of the method in metrics and logs, "InsertStream" for example, or "unknown"
 * for RP_METHOD_UNKNOWN. The text is static. */
const char *rp_method_name(rp_method method);

/* Returns the role that a caller of the method needs. The methods of the health and reflection
 * services need RP_ROLE_NONE. RP_METHOD_UNKNOWN needs RP_ROLE_ADMIN, and so does a method that
 * is missing from the list in method.c. */
rp_role rp_method_role(rp_method method);

/* Returns the role that a caller of the method with this :path needs. */
rp_role rp_auth_needed(const char *path);

#endif
