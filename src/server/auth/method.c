/* SPDX-License-Identifier: Apache-2.0 */
#include "server/auth/method.h"

#include <assert.h>
#include <string.h>

#define REVERB "/deepmind.reverb.ReverbService/"
#define OURS "/reprise.v1."
#define HEALTH "/grpc.health.v1.Health/"
#define REFLECTION_V1 "/grpc.reflection.v1.ServerReflection/"
#define REFLECTION_V1ALPHA "/grpc.reflection.v1alpha.ServerReflection/"

/* The methods, with the roles that they need. */
static const struct {
    const char *service; /* the first part of a path */
    const char *name;    /* the last part of a path */
    rp_method method;
    rp_role role;
} methods[] = {
    {REVERB, "InsertStream", RP_METHOD_INSERT_STREAM, RP_ROLE_WRITE},
    {REVERB, "SampleStream", RP_METHOD_SAMPLE_STREAM, RP_ROLE_READ},
    {REVERB, "MutatePriorities", RP_METHOD_MUTATE_PRIORITIES, RP_ROLE_WRITE},
    {REVERB, "Reset", RP_METHOD_RESET, RP_ROLE_ADMIN},
    {REVERB, "Checkpoint", RP_METHOD_CHECKPOINT, RP_ROLE_ADMIN},
    {REVERB, "ServerInfo", RP_METHOD_SERVER_INFO, RP_ROLE_READ},
    {REVERB, "InitializeConnection", RP_METHOD_INITIALIZE_CONNECTION, RP_ROLE_READ},
    {OURS, "Peek", RP_METHOD_PEEK, RP_ROLE_READ},
    {OURS, "Sample", RP_METHOD_SAMPLE, RP_ROLE_READ},
    {OURS, "SampleShared", RP_METHOD_SAMPLE_SHARED, RP_ROLE_READ},
    {OURS, "WhyBlocked", RP_METHOD_WHY_BLOCKED, RP_ROLE_READ},
    {OURS, "Clients", RP_METHOD_CLIENTS, RP_ROLE_READ},
    {OURS, "Status", RP_METHOD_STATUS, RP_ROLE_READ},
    {OURS, "Update", RP_METHOD_UPDATE, RP_ROLE_WRITE},
    {OURS, "Delete", RP_METHOD_DELETE, RP_ROLE_WRITE},
    {OURS, "CreateTable", RP_METHOD_CREATE_TABLE, RP_ROLE_ADMIN},
    {OURS, "DropTable", RP_METHOD_DROP_TABLE, RP_ROLE_ADMIN},
    {OURS, "AlterTable", RP_METHOD_ALTER_TABLE, RP_ROLE_ADMIN},
    {OURS, "PauseTable", RP_METHOD_PAUSE_TABLE, RP_ROLE_ADMIN},
    {OURS, "ResumeTable", RP_METHOD_RESUME_TABLE, RP_ROLE_ADMIN},
    {OURS, "LogScalars", RP_METHOD_LOG_SCALARS, RP_ROLE_WRITE},
    {OURS, "ReadRuns", RP_METHOD_READ_RUNS, RP_ROLE_READ},
    {OURS, "CreateRollouts", RP_METHOD_CREATE_ROLLOUTS, RP_ROLE_ADMIN},
    {OURS, "DropRollouts", RP_METHOD_DROP_ROLLOUTS, RP_ROLE_ADMIN},
    {OURS, "ListRollouts", RP_METHOD_LIST_ROLLOUTS, RP_ROLE_READ},
    {OURS, "ApplyRollouts", RP_METHOD_APPLY_ROLLOUTS, RP_ROLE_WRITE},
    {OURS, "PeekRollouts", RP_METHOD_PEEK_ROLLOUTS, RP_ROLE_READ},
    {OURS, "ReadCursor", RP_METHOD_READ_CURSOR, RP_ROLE_READ},
    {HEALTH, "Check", RP_METHOD_HEALTH_CHECK, RP_ROLE_NONE},
    {HEALTH, "Watch", RP_METHOD_HEALTH_WATCH, RP_ROLE_NONE},
    {REFLECTION_V1, "ServerReflectionInfo", RP_METHOD_REFLECTION, RP_ROLE_NONE},
    {REFLECTION_V1ALPHA, "ServerReflectionInfo", RP_METHOD_REFLECTION, RP_ROLE_NONE},
};

enum { METHOD_ROWS = sizeof methods / sizeof methods[0] };

const char *rp_role_name(rp_role role)
{
    switch (role) {
    case RP_ROLE_NONE: return "none";
    case RP_ROLE_READ: return "read";
    case RP_ROLE_WRITE: return "write";
    case RP_ROLE_ADMIN: return "admin";
    }
    return "unknown";
}

rp_method rp_method_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL) return RP_METHOD_UNKNOWN;
    for (size_t i = 0; i < METHOD_ROWS; i++) {
        size_t length = strlen(methods[i].service);
        bool whole = methods[i].service[length - 1] == '/';

        if (strncmp(path, methods[i].service, length) != 0) continue;
        if (strcmp(slash + 1, methods[i].name) != 0) continue;
        if (whole && path + length != slash + 1) continue;
        /* the name of a service must not be empty, and only the method may follow it */
        if (!whole && (path + length == slash || strchr(path + length, '/') != slash)) continue;
        return methods[i].method;
    }
    return RP_METHOD_UNKNOWN;
}

const char *rp_method_name(rp_method method)
{
    assert(method < RP_METHODS);
    for (size_t i = 0; i < METHOD_ROWS; i++)
        if (methods[i].method == method) return methods[i].name;
    return "unknown";
}

rp_role rp_method_role(rp_method method)
{
    assert(method < RP_METHODS);
    for (size_t i = 0; i < METHOD_ROWS; i++)
        if (methods[i].method == method) return methods[i].role;
    return RP_ROLE_ADMIN;
}

rp_role rp_auth_needed(const char *path)
{
    return rp_method_role(rp_method_of(path));
}
