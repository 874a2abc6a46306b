/* SPDX-License-Identifier: Apache-2.0 */
/* The decisions of the memory guard, with given numbers instead of a process. A server with
 * owns_process has a guard. */
#include "server/core/memory_guard.h"

#include "store/store.h"
#include "support/fixture.h"
#include "table/table.h"
#include "util/mem.h"

#define MIB ((uint64_t)1 << 20)
#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

static void statm_is_resident_less_shared(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool ok;
        uint64_t pages;
    } cases[] = {
        {"100 50 20 1 0 30 0\n", true, 30},
        {"100 50 50 1 0 30 0\n", true, 0},
        {"100 50 60 1 0 30 0\n", true, 0},
        {"4000000000 3000000000 5 1 0 3 0", true, 2999999995},
        {"100 50 20", false, 0},
        {"100 50", false, 0},
        {"", false, 0},
        {" 100 50 20 ", false, 0},
        {"100  50 20 ", false, 0},
        {"100 -50 20 ", false, 0},
        {"100 50x 20 ", false, 0},
        {"1 99999999999999999999999 2 ", false, 0},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t pages = 0;

        assert_int_equal(rp_memory_parse_statm(cases[i].text, &pages), cases[i].ok);
        if (cases[i].ok) assert_int_equal(pages, cases[i].pages);
    }
}

/* 800 MiB for tables, 100 beside them: the bound is 900, and from 850 on it is near. */
static rp_memory_look look_at(uint64_t resident_mib, uint64_t used_mib)
{
    return (rp_memory_look){.resident = resident_mib * MIB,
                            .limit = 800 * MIB,
                            .used = used_mib * MIB,
                            .beside = 100 * MIB};
}

static void memory_beside_the_store_is_within_the_documented_formula(void **state)
{
    (void)state;
    for (uint64_t limit = MIB; limit <= MIB << 20; limit *= 4) {
        rp_memory_load load = {
            .held_bytes = 50 * MIB, .connections = 7, .calls = 99, .tables = 3};
        uint64_t formula = limit / 4 + load.held_bytes + 64 * 1024 * load.connections +
                           8192 * load.calls + 256 * 1024 * load.tables + 64 * MIB;
        uint64_t beside = rp_memory_beside(limit, &load);

        /* The rest is for growth between two measurements. */
        assert_int_equal(formula - beside, limit / 4 - limit / 8 + 16 * MIB);
        load.has_journal = true;
        assert_int_equal(rp_memory_beside(limit, &load), beside + 64 * MIB);
    }
}

static void nothing_is_lost_while_the_bound_is_far(void **state)
{
    (void)state;
    rp_memory_past past = {0};
    rp_memory_look now = look_at(840, 10); /* just after most items were deleted */

    assert_int_equal(rp_memory_excess(&now), 730 * MIB);
    assert_false(rp_memory_wants_trim(&past, &now, SECOND));
    assert_int_equal(rp_memory_decide_lost(&past, &now), 0);
}

static void full_store_without_gaps_loses_nothing(void **state)
{
    (void)state;
    rp_memory_past past = {0};
    rp_memory_look now = look_at(890, 800);

    assert_false(rp_memory_wants_trim(&past, &now, SECOND)); /* there is nothing to give back */
    assert_int_equal(rp_memory_decide_lost(&past, &now), 0);
}

/* Whatever is in tables: an insert has room exactly while the bound is not reached. */
static void lost_bytes_leave_as_much_room_as_the_bound_does(void **state)
{
    (void)state;
    for (uint64_t used = 300; used <= 700; used += 50)
        for (uint64_t resident = 860; resident <= 940; resident += 10) {
            rp_memory_past past = {0};
            rp_memory_look now = look_at(resident, used);
            uint64_t lost = rp_memory_decide_lost(&past, &now);

            assert_int_equal(used * MIB + lost, (resident - 100) * MIB);
            assert_int_equal(used * MIB + lost <= now.limit, resident <= 900);
        }
}

static void lost_memory_after_a_trim_is_at_most_three_quarters(void **state)
{
    (void)state;
    rp_memory_past past = {0};
    rp_memory_look now = look_at(5000, 1);

    assert_int_equal(rp_memory_decide_lost(&past, &now), 800 * MIB); /* not tried yet */
    rp_memory_record_trim(&past, SECOND, SECOND + MS);
    assert_int_equal(rp_memory_decide_lost(&past, &now), 600 * MIB);
    now.resident += 100 * MIB;
    assert_int_equal(rp_memory_decide_lost(&past, &now), 700 * MIB);
    now = (rp_memory_look){.resident = UINT64_MAX / 2, .limit = 1}; /* nothing overflows */
    assert_int_equal(rp_memory_decide_lost(&past, &now), 1);
}

static void memory_is_trimmed_first_and_again_when_there_is_more(void **state)
{
    (void)state;
    rp_memory_past past = {0};
    rp_memory_look now = look_at(880, 400);
    int64_t t = 5 * SECOND;

    assert_true(rp_memory_wants_trim(&past, &now, t));
    rp_memory_record_trim(&past, t, t + MS);
    (void)rp_memory_decide_lost(&past, &now); /* it did not help */

    assert_false(rp_memory_wants_trim(&past, &now, t + 30 * SECOND)); /* all is as it was */
    now.used -= 12 * MIB;
    assert_false(rp_memory_wants_trim(&past, &now, t + 20 * MS)); /* not worth it yet */
    assert_true(rp_memory_wants_trim(&past, &now, t + 2 * SECOND));
    now.used -= MIB;
    assert_true(rp_memory_wants_trim(&past, &now, t + 20 * MS));
}

/* What was given back and came again is more than there was in between. */
static void least_excess_since_the_last_time_is_what_counts(void **state)
{
    (void)state;
    rp_memory_past past = {0};
    rp_memory_look now = look_at(880, 400);
    int64_t t = 5 * SECOND;

    rp_memory_record_trim(&past, t, t + MS);
    (void)rp_memory_decide_lost(&past, &now);
    now.used += 300 * MIB; /* into the gaps */
    (void)rp_memory_decide_lost(&past, &now);
    now.used -= 200 * MIB;
    assert_true(rp_memory_wants_trim(&past, &now, t + 20 * MS));
}

static void trimming_takes_at_most_a_twentieth_of_the_time(void **state)
{
    (void)state;
    rp_memory_past past = {0};
    int64_t t = SECOND, spent_ns = 0, end_ns = t + 1000 * SECOND;

    while (t < end_ns) {
        rp_memory_look now = look_at(880, 400);

        past.excess = 0; /* as if there were always more */
        if (rp_memory_wants_trim(&past, &now, t)) {
            rp_memory_record_trim(&past, t, t + 40 * MS);
            spent_ns += 40 * MS;
            t += 40 * MS;
        }
        t += 5 * MS;
    }
    assert_in_range(spent_ns / MS, 49000, 50400);
}

/* A checkpoint keeps what is removed while it is written. What grows beyond that is lost. */
static void memory_is_lost_while_a_checkpoint_is_written_issue_20(void **state)
{
    (void)state;
    rp_memory_past past = {0};
    rp_memory_look now = look_at(1390, 700);

    now.beside += rp_memory_for_checkpoint(now.limit, 580 * MIB, 20 * MIB);
    assert_int_equal(rp_memory_decide_lost(&past, &now), 0);
    now.resident += 170 * MIB;
    assert_int_equal(rp_memory_decide_lost(&past, &now), 160 * MIB);
    assert_true(rp_memory_wants_trim(&past, &now, SECOND));
    now = look_at(910, 700);
    assert_int_equal(rp_memory_decide_lost(&past, &now), 110 * MIB);
    assert_int_equal(rp_memory_for_checkpoint(800, 700, 90), 790);
    assert_int_equal(rp_memory_for_checkpoint(800, 700, 101), 800);
    assert_int_equal(rp_memory_for_checkpoint(800, UINT64_MAX, 0), 800);
    assert_int_equal(rp_memory_for_checkpoint(800, 0, UINT64_MAX), 800);
}

static void measurements_are_more_frequent_near_the_bound(void **state)
{
    (void)state;
    rp_memory_look far = look_at(0, 0), half = look_at(700, 0), over = look_at(1000, 0);

    far.limit *= 100;
    assert_int_equal(rp_memory_rest_ns(&far), 250 * MS);
    assert_int_equal(rp_memory_rest_ns(&half), 200 * MIB / 4);
    assert_int_equal(rp_memory_rest_ns(&over), 5 * MS);
}

/* Gaps between items can be given back only as far as items there have gone. */
typedef struct process {
    rp_memory_past past;
    rp_memory_look now;
    uint64_t gaps; /* of resident: empty, and not to be given back */
    int64_t now_ns;
    uint64_t lost;
} process;

/* One look, like that of the thread. */
static void look_once(process *p)
{
    if (rp_memory_wants_trim(&p->past, &p->now, p->now_ns)) {
        rp_memory_record_trim(&p->past, p->now_ns, p->now_ns + 100 * MS);
        p->now_ns += 100 * MS;
        p->now.resident = p->now.used + p->gaps + 50 * MIB;
    }
    p->lost = rp_memory_decide_lost(&p->past, &p->now);
    p->now_ns += rp_memory_rest_ns(&p->now);
}

static bool has_room(const process *p, uint64_t bytes)
{
    return p->now.used + p->lost + bytes <= p->now.limit;
}

static void an_emptied_store_accepts_items_again(void **state)
{
    (void)state;
    process p = {.now = look_at(910, 500), .gaps = 350 * MIB, .now_ns = SECOND};

    for (int i = 0; i < 1000; i++) look_once(&p);
    assert_true(p.lost > 0 && !has_room(&p, 60 * MIB));

    /* Item by item, as far apart as can be: no step of them is worth giving back. */
    while (p.now.used > 0) {
        p.now.used -= MIB;
        p.gaps -= p.gaps > MIB ? MIB : p.gaps;
        look_once(&p);
    }
    p.gaps = 0;
    for (int i = 0; i < 2000 && !has_room(&p, 700 * MIB); i++) look_once(&p);
    assert_true(has_room(&p, 700 * MIB));
    assert_int_equal(p.lost, 0);
}

/* Policy evict: evictions go on until what comes fits, and never beyond a quarter of L. */
static void resident_memory_stays_below_the_bound(void **state)
{
    (void)state;
    process p = {.now = look_at(60, 0), .now_ns = SECOND};
    uint64_t most = 0;

    for (int i = 0; i < 200000; i++) {
        if (has_room(&p, MIB)) { /* into no gap: the worst case */
            p.now.used += MIB;
            p.now.resident += MIB;
        } else if (p.now.used > 0) { /* evicted, and an eighth of its memory stays behind */
            p.now.used -= MIB;
            p.gaps += MIB / 8;
            if (p.gaps > 500 * MIB) p.gaps = 0; /* its neighbours have gone as well */
        }
        if (p.now.resident > most) most = p.now.resident;
        look_once(&p);
    }
    assert_true(most <= p.now.limit + p.now.beside + MIB);
}

static void count_call(rp_op *op)
{
    atomic_fetch_add((atomic_int *)op->user, 1);
}

/* A store that had lost all but a little, as far as it knows, and an insert that waits: the
 * guard measures that nothing is lost, and the insert goes on. No limit is near: this process
 * is a test, of any size. */
static void a_server_that_owns_its_process_measures_memory(void **state)
{
    (void)state;
    rp_test_bed bed;
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 10);
    rp_server_options options = {.addresses = (const char *[]){"localhost:0"},
                                 .address_count = 1,
                                 .loops = 1,
                                 .owns_process = true};
    rp_server *server = NULL;
    atomic_int calls = 0;
    rp_insert item;
    rp_op op;

    rp_test_bed_init(
        &bed, &(rp_store_options){.max_bytes = UINT64_C(1) << 40, .policy = RP_BUDGET_BLOCK});
    rp_table *t = rp_test_bed_table(&bed, &o);
    rp_budget_set_lost(rp_store_budget(bed.store), UINT64_C(1) << 40);
    item = (rp_insert){.key = 1, .priority = 1, .trajectory = bed.plain};
    op = (rp_op){.items = &item,
                 .count = 1,
                 .until_ns = RP_FOREVER,
                 .on_done = count_call,
                 .user = &calls};
    assert_false(rp_table_start_insert(t, &op));

    assert_ok_err(rp_server_start(bed.store, &options, &server, &bed.err), &bed.err);
    for (int i = 0; i < 60000 && atomic_load(&calls) == 0; i++)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);

    assert_int_equal(atomic_load(&calls), 1);
    assert_ok(op.status);
    rp_server_free(server);
    rp_test_bed_deinit(&bed);
}

/* Much memory of this process is not the store's, so that all that may be lost is. An insert
 * into a small table waits, and the guard evicts from the large one for it. */
static void guard_evicts_from_the_largest_table_for_a_small_one(void **state)
{
    (void)state;
    enum { BALLAST = 128 << 20, LARGE_ITEMS = 600, SMALL_ITEMS = 5 };
    rp_test_bed bed;
    rp_table_options large = rp_test_options("large", RP_FIFO, RP_FIFO, 10000);
    rp_table_options small = rp_test_options("small", RP_FIFO, RP_FIFO, 100);
    rp_server_options options = {.addresses = (const char *[]){"localhost:0"},
                                 .address_count = 1,
                                 .loops = 1,
                                 .owns_process = true};
    rp_store_info info = {0};
    rp_server *server = NULL;
    uint8_t *ballast;

    if (RP_SANITIZED) skip(); /* nothing counts as lost then */
    ballast = malloc(BALLAST);
    assert_non_null(ballast);
    for (size_t i = 0; i < BALLAST; i += 512) ballast[i] = 1;
    rp_test_bed_init(&bed, &(rp_store_options){.max_bytes = MIB, .policy = RP_BUDGET_EVICT});
    rp_table *tables[2] = {rp_test_bed_table(&bed, &large), rp_test_bed_table(&bed, &small)};
    assert_ok_err(rp_server_start(bed.store, &options, &server, &bed.err), &bed.err);
    for (int i = 0; i < 60000 && info.lost_bytes == 0; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        rp_store_get_info(bed.store, &info);
    }
    assert_true(info.lost_bytes > 0);

    for (uint64_t key = 1; key <= LARGE_ITEMS + SMALL_ITEMS; key++) {
        rp_insert item = {.key = key,
                          .priority = 1,
                          .trajectory = rp_test_blob_trajectory(&bed.alloc, key, 1, 1000),
                          .flags = RP_INSERT_TAKE};
        assert_ok_err(rp_table_insert(tables[key > LARGE_ITEMS], &item, 1, rp_wait_ms(60000),
                                      NULL, &bed.err),
                      &bed.err);
    }

    assert_int_equal(rp_test_info_of(tables[1]).size, SMALL_ITEMS);
    rp_server_free(server);
    rp_test_bed_deinit(&bed);
    free(ballast);
}

RP_TESTS(memory_guard)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statm_is_resident_less_shared),
        cmocka_unit_test(memory_beside_the_store_is_within_the_documented_formula),
        cmocka_unit_test(nothing_is_lost_while_the_bound_is_far),
        cmocka_unit_test(full_store_without_gaps_loses_nothing),
        cmocka_unit_test(lost_bytes_leave_as_much_room_as_the_bound_does),
        cmocka_unit_test(lost_memory_after_a_trim_is_at_most_three_quarters),
        cmocka_unit_test(memory_is_trimmed_first_and_again_when_there_is_more),
        cmocka_unit_test(least_excess_since_the_last_time_is_what_counts),
        cmocka_unit_test(trimming_takes_at_most_a_twentieth_of_the_time),
        cmocka_unit_test(memory_is_lost_while_a_checkpoint_is_written_issue_20),
        cmocka_unit_test(measurements_are_more_frequent_near_the_bound),
        cmocka_unit_test(an_emptied_store_accepts_items_again),
        cmocka_unit_test(resident_memory_stays_below_the_bound),
        cmocka_unit_test(a_server_that_owns_its_process_measures_memory),
        cmocka_unit_test(guard_evicts_from_the_largest_table_for_a_small_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
