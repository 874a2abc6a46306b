/* SPDX-License-Identifier: Apache-2.0 */
#include "server/auth/method.h"

#include "support/unit.h"

#define REVERB "/deepmind.reverb.ReverbService/"
#define OURS "/reprise.v1.Replay/"

static const struct {
    const char *path;
    rp_method method;
    rp_role role;
} known[] = {
    {REVERB "InsertStream", RP_METHOD_INSERT_STREAM, RP_ROLE_WRITE},
    {REVERB "SampleStream", RP_METHOD_SAMPLE_STREAM, RP_ROLE_READ},
    {REVERB "MutatePriorities", RP_METHOD_MUTATE_PRIORITIES, RP_ROLE_WRITE},
    {REVERB "Reset", RP_METHOD_RESET, RP_ROLE_ADMIN},
    {REVERB "Checkpoint", RP_METHOD_CHECKPOINT, RP_ROLE_ADMIN},
    {REVERB "ServerInfo", RP_METHOD_SERVER_INFO, RP_ROLE_READ},
    {REVERB "InitializeConnection", RP_METHOD_INITIALIZE_CONNECTION, RP_ROLE_READ},
    {OURS "Peek", RP_METHOD_PEEK, RP_ROLE_READ},
    {OURS "Sample", RP_METHOD_SAMPLE, RP_ROLE_READ},
    {OURS "SampleShared", RP_METHOD_SAMPLE_SHARED, RP_ROLE_READ},
    {OURS "WhyBlocked", RP_METHOD_WHY_BLOCKED, RP_ROLE_READ},
    {OURS "Clients", RP_METHOD_CLIENTS, RP_ROLE_READ},
    {OURS "LogScalars", RP_METHOD_LOG_SCALARS, RP_ROLE_WRITE},
    {OURS "ReadRuns", RP_METHOD_READ_RUNS, RP_ROLE_READ},
    {OURS "CreateRollouts", RP_METHOD_CREATE_ROLLOUTS, RP_ROLE_ADMIN},
    {OURS "DropRollouts", RP_METHOD_DROP_ROLLOUTS, RP_ROLE_ADMIN},
    {OURS "ListRollouts", RP_METHOD_LIST_ROLLOUTS, RP_ROLE_READ},
    {OURS "ApplyRollouts", RP_METHOD_APPLY_ROLLOUTS, RP_ROLE_WRITE},
    {OURS "PeekRollouts", RP_METHOD_PEEK_ROLLOUTS, RP_ROLE_READ},
    {OURS "ReadCursor", RP_METHOD_READ_CURSOR, RP_ROLE_READ},
    {OURS "Status", RP_METHOD_STATUS, RP_ROLE_READ},
    {OURS "Update", RP_METHOD_UPDATE, RP_ROLE_WRITE},
    {OURS "Delete", RP_METHOD_DELETE, RP_ROLE_WRITE},
    {OURS "CreateTable", RP_METHOD_CREATE_TABLE, RP_ROLE_ADMIN},
    {OURS "DropTable", RP_METHOD_DROP_TABLE, RP_ROLE_ADMIN},
    {OURS "AlterTable", RP_METHOD_ALTER_TABLE, RP_ROLE_ADMIN},
    {OURS "PauseTable", RP_METHOD_PAUSE_TABLE, RP_ROLE_ADMIN},
    {OURS "ResumeTable", RP_METHOD_RESUME_TABLE, RP_ROLE_ADMIN},
    {"/grpc.health.v1.Health/Check", RP_METHOD_HEALTH_CHECK, RP_ROLE_NONE},
    {"/grpc.health.v1.Health/Watch", RP_METHOD_HEALTH_WATCH, RP_ROLE_NONE},
    {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", RP_METHOD_REFLECTION,
     RP_ROLE_NONE},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", RP_METHOD_REFLECTION,
     RP_ROLE_NONE},
};

static void every_method_needs_its_role(void **state)
{
    bool seen[RP_METHODS] = {[RP_METHOD_UNKNOWN] = true};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        assert_int_equal(rp_method_of(known[i].path), known[i].method);
        assert_int_equal(rp_method_role(known[i].method), known[i].role);
        assert_int_equal(rp_auth_needed(known[i].path), known[i].role);
        assert_string_equal(rp_method_name(known[i].method), strrchr(known[i].path, '/') + 1);
        seen[known[i].method] = true;
    }
    for (size_t i = 0; i < RP_METHODS; i++) assert_true(seen[i]);
}

static void paths_similar_to_a_method_are_unknown_and_need_admin(void **state)
{
    static const char *const paths[] = {
        "",
        "/",
        "InsertStream",
        "/InsertStream",
        REVERB,
        REVERB "insertstream",
        REVERB "InsertStream/",
        REVERB "InsertStreamX",
        REVERB "X/InsertStream",
        REVERB "Peek",
        OURS "InsertStream",
        OURS "Check",
        "x" REVERB "InsertStream",
        "/deepmind.reverb.ReverbServiceX/InsertStream",
        "/deepmind.reverb.ReverbServic/InsertStream",
        "/reprise.v1./Peek",
        "/reprise.v1/Peek",
        "/reprise.v1.A/B/Peek",
        "/reprise.v2.Reprise/Peek",
        "/grpc.health.v1.Health/Reset",
        "/grpc.reflection.v1.ServerReflection/Check",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        assert_int_equal(rp_method_of(paths[i]), RP_METHOD_UNKNOWN);
        assert_int_equal(rp_auth_needed(paths[i]), RP_ROLE_ADMIN);
    }
    assert_string_equal(rp_method_name(RP_METHOD_UNKNOWN), "unknown");
}

static void roles_are_ordered_and_named(void **state)
{
    (void)state;
    assert_true(RP_ROLE_NONE < RP_ROLE_READ && RP_ROLE_READ < RP_ROLE_WRITE &&
                RP_ROLE_WRITE < RP_ROLE_ADMIN);
    assert_string_equal(rp_role_name(RP_ROLE_NONE), "none");
    assert_string_equal(rp_role_name(RP_ROLE_READ), "read");
    assert_string_equal(rp_role_name(RP_ROLE_WRITE), "write");
    assert_string_equal(rp_role_name(RP_ROLE_ADMIN), "admin");
    assert_string_equal(rp_role_name((rp_role)9), "unknown");
}

RP_TESTS(method)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_needs_its_role),
        cmocka_unit_test(paths_similar_to_a_method_are_unknown_and_need_admin),
        cmocka_unit_test(roles_are_ordered_and_named),
    };
    return cmocka_run_group_tests_name("method", tests, NULL, NULL);
}
