/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/crew.h"

#include <stdatomic.h>
#include <string.h>

#include "reprise/wait.h"
#include "support/unit.h"

enum { MEMBERS = 3 };

typedef struct job {
    atomic_long turns[MEMBERS];
    long plain[MEMBERS]; /* read while the crew is paused */
    atomic_int fails;    /* the member that fails, or -1 */
    atomic_int waits;    /* members find nothing to do */
} job;

static rp_status turn(void *ctx, size_t member, rp_error *err)
{
    job *j = ctx;

    j->plain[member]++;
    atomic_fetch_add(&j->turns[member], 1);
    if (atomic_load(&j->waits) != 0) return RP_DEADLINE;
    if (atomic_load(&j->fails) != (int)member) return RP_OK;
    (void)snprintf(err->text, sizeof err->text, "member %zu fails", member);
    return RP_NOT_FOUND;
}

static void await_turns(job *j, size_t member, long more)
{
    long from = atomic_load(&j->turns[member]);

    while (atomic_load(&j->turns[member]) < from + more) {}
}

static void members_work_until_they_are_paused(void **state)
{
    (void)state;
    job j = {.fails = -1};
    rp_crew *crew = NULL;
    rp_error err;

    assert_ok(rp_crew_new(NULL, MEMBERS, turn, &j, &crew, &err));
    assert_int_equal(j.plain[0] + j.plain[1] + j.plain[2], 0); /* new crews are paused */
    for (int round = 0; round < 5; round++) {
        long before[MEMBERS];

        rp_crew_resume(crew);
        rp_crew_resume(crew); /* changes nothing */
        for (size_t i = 0; i < MEMBERS; i++) await_turns(&j, i, 3);
        rp_crew_pause(crew);
        memcpy(before, j.plain, sizeof before);
        for (size_t i = 0; i < MEMBERS; i++)
            assert_int_equal(j.plain[i], atomic_load(&j.turns[i]));
        rp_crew_pause(crew);
        assert_memory_equal(before, j.plain, sizeof before);
    }
    assert_ok(rp_crew_check(crew, &err));
    rp_crew_free(crew);
    rp_crew_free(NULL);
}

static void a_failure_is_kept_until_the_crew_is_resumed(void **state)
{
    (void)state;
    job j = {.fails = 1};
    rp_crew *crew = NULL;
    rp_error err = {0};
    long failed;

    assert_ok(rp_crew_new(NULL, MEMBERS, turn, &j, &crew, &err));
    rp_crew_resume(crew);
    while (rp_crew_check(crew, &err) == RP_OK) {}
    assert_int_equal(rp_crew_check(crew, &err), RP_NOT_FOUND);
    assert_string_equal(err.text, "member 1 fails");
    failed = atomic_load(&j.turns[1]);
    await_turns(&j, 0, 3); /* the others go on */
    assert_int_equal(atomic_load(&j.turns[1]), failed);

    atomic_store(&j.fails, -1);
    rp_crew_resume(crew);
    assert_ok(rp_crew_check(crew, &err));
    await_turns(&j, 1, 3);
    rp_crew_free(crew);
}

static void a_turn_without_work_is_no_failure_and_a_crew_ends_during_turns(void **state)
{
    (void)state;
    job j = {.fails = 1, .waits = 1};
    rp_crew *crew = NULL;
    rp_error err;

    assert_ok(rp_crew_new(NULL, MEMBERS, turn, &j, &crew, &err));
    rp_crew_resume(crew);
    for (size_t i = 0; i < MEMBERS; i++) await_turns(&j, i, 2);
    assert_ok(rp_crew_check(crew, &err));
    rp_crew_free(crew); /* while they work */
    assert_int_equal(rp_crew_new(NULL, 65, turn, &j, &crew, &err), RP_INVALID);
    assert_string_equal(err.text, "crew: size must be from 1 to 64, got 65");
}

static rp_status make(const rp_allocator *alloc)
{
    job j = {.fails = -1};
    rp_crew *crew = NULL;
    rp_error err;
    rp_status st = rp_crew_new(alloc, 2, turn, &j, &crew, &err);

    rp_crew_free(crew);
    return st;
}

static void a_lack_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(make);
}

RP_TESTS(crew)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_work_until_they_are_paused),
        cmocka_unit_test(a_failure_is_kept_until_the_crew_is_resumed),
        cmocka_unit_test(a_turn_without_work_is_no_failure_and_a_crew_ends_during_turns),
        cmocka_unit_test(a_lack_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
