/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/page_maker.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "support/hosted.h"
#include "support/strict.h"

enum { MANY = 1000 };

static rp_test_hosted hosted;
static rp_page_maker *maker;

static int set_up(void **state)
{
    (void)state;
    rp_test_hosted_init(&hosted, false);
    return rp_page_maker_new(&hosted.observed.bed.alloc, &hosted.host, &maker, NULL) != RP_OK;
}

static int tear_down(void **state)
{
    (void)state;
    rp_test_release(&hosted); /* a test that failed may hold a page */
    rp_page_maker_free(maker);
    maker = NULL;
    rp_test_hosted_deinit(&hosted);
    return 0;
}

typedef struct waiter {
    rp_page_wait wait;
    rp_made_page *made;
    sem_t done;
} waiter;

static void note(rp_page_wait *wait, rp_made_page *made)
{
    waiter *w = (waiter *)(void *)wait;

    w->made = made;
    (void)sem_post(&w->done);
}

static void prepare(waiter *w, const char *path)
{
    *w = (waiter){.wait = {.on_made = note}};
    rp_test_ask_for(&w->wait.ask, path);
    assert_int_equal(sem_init(&w->done, 0, 0), 0);
}

static void ask(waiter *w, const char *path)
{
    prepare(w, path);
    assert_true(rp_page_maker_ask(maker, &w->wait));
}

/* Returns what the waiter got, as a reference. */
static rp_made_page *await(waiter *w)
{
    struct timespec end;

    assert_int_equal(clock_gettime(CLOCK_REALTIME, &end), 0);
    end.tv_sec += 60; /* so that a request without a response fails the test */
    assert_int_equal(sem_timedwait(&w->done, &end), 0);
    assert_int_equal(sem_destroy(&w->done), 0);
    return w->made;
}

static void pages_are_made_on_demand(void **state)
{
    rp_made_page *made;
    waiter w;

    (void)state;
    assert_int_equal(atomic_load(&hosted.described), 0);
    ask(&w, "/metrics");
    made = await(&w);
    assert_non_null(made);
    assert_int_equal(made->answer.status, 200);
    rp_buf_append(&made->answer.body, "", 1);
    assert_null(rp_test_prometheus_mistake((const char *)made->answer.body.data,
                                           made->answer.body.size - 1));
    rp_made_page_unref(made);
    ask(&w, "/v1/info");
    made = await(&w);
    rp_buf_append(&made->answer.body, "", 1);
    assert_null(
        rp_test_json_mistake((const char *)made->answer.body.data, made->answer.body.size - 1));
    rp_made_page_unref(made);
    assert_int_equal(atomic_load(&hosted.described), 2);
}

/* While the first page is being made, many ask: they share one, which is made afterwards. */
static void a_page_is_made_once_for_all_waiting_requests(void **state)
{
    static waiter waiters[MANY];
    rp_made_page *first, *second;
    waiter w;

    (void)state;
    rp_test_hold(&hosted);
    ask(&w, "/metrics");
    rp_test_await_held(&hosted);
    for (size_t i = 0; i < MANY; i++) ask(&waiters[i], "/metrics");
    rp_test_release(&hosted);
    first = await(&w);
    second = await(&waiters[0]);
    assert_true(second->number > first->number);
    for (size_t i = 1; i < MANY; i++) {
        assert_ptr_equal(await(&waiters[i]), second);
        rp_made_page_unref(second);
    }
    rp_made_page_unref(first);
    rp_made_page_unref(second);
    assert_int_equal(atomic_load(&hosted.described), 2);
}

static void pages_are_made_in_the_order_of_their_requests(void **state)
{
    waiter metrics[2], info;
    rp_made_page *made[3];

    (void)state;
    rp_test_hold(&hosted);
    ask(&metrics[0], "/metrics");
    rp_test_await_held(&hosted);
    ask(&metrics[1], "/metrics");
    ask(&info, "/v1/info");
    rp_test_release(&hosted);
    made[0] = await(&metrics[0]);
    made[1] = await(&metrics[1]);
    made[2] = await(&info);
    assert_true(made[0]->number < made[1]->number && made[1]->number < made[2]->number);
    for (size_t i = 0; i < 3; i++) rp_made_page_unref(made[i]);
}

enum { READERS = 100, ROUNDS = 3 };

/* Has a lane of the maker wait in a page. */
static void hold_in(waiter *w, const char *path)
{
    rp_test_hold(&hosted);
    ask(w, path);
    rp_test_await_held(&hosted);
}

static void hold(waiter *w)
{
    hold_in(w, "/metrics");
}

static void release(waiter *w)
{
    rp_test_release(&hosted);
    rp_made_page_unref(await(w));
}

/* A hundred readers, each of which asks again once it has its page, share the pages: one is
 * made for each round, and rounds begin at least RP_LIVE_NS apart. */
static void live_readers_share_a_page_each_second(void **state)
{
    static waiter readers[READERS];
    int64_t start_ns = rp_now_ns();
    waiter w;

    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        rp_made_page *made;

        hold(&w);
        for (size_t i = 0; i < READERS; i++)
            ask(&readers[i], i % 2 == 0 ? "/v1/info?after=0" : "/v1/info?after=7");
        release(&w);
        made = await(&readers[0]);
        assert_non_null(made);
        for (size_t i = 1; i < READERS; i++) {
            assert_ptr_equal(await(&readers[i]), made);
            rp_made_page_unref(made);
        }
        assert_int_equal(made->number, 2 * round + 2);
        rp_made_page_unref(made);
    }
    assert_int_equal(atomic_load(&hosted.described), 2 * ROUNDS); /* half of them metrics */
    assert_true(rp_now_ns() - start_ns >= (int64_t)(ROUNDS - 1) * RP_LIVE_NS);
}

/* A reader that does not wait for the next live page gets its page at once. */
static void other_readers_do_not_wait_for_live_pages(void **state)
{
    waiter live[2], plain;
    rp_made_page *made[3];

    (void)state;
    ask(&live[0], "/v1/info?after=0");
    made[0] = await(&live[0]);
    ask(&live[1], "/v1/info?after=1"); /* due in a second */
    ask(&plain, "/v1/info");
    made[1] = await(&plain);
    made[2] = await(&live[1]);
    assert_int_equal(made[0]->number, 1);
    assert_int_equal(made[1]->number, 2);
    assert_int_equal(made[2]->number, 3);
    for (size_t i = 0; i < 3; i++) rp_made_page_unref(made[i]);
}

/* Requests for other pages of the same kind share nothing. */
static void pages_about_different_tables_are_made_for_each(void **state)
{
    static const char *const paths[] = {"/v1/tables/replay", "/v1/tables/empty",
                                        "/v1/tables/replay"};
    waiter w, tables[3];
    rp_made_page *made[3];

    (void)state;
    hold_in(&w, "/v1/tables/replay");
    for (size_t i = 0; i < 3; i++) ask(&tables[i], paths[i]);
    release(&w);
    for (size_t i = 0; i < 3; i++) made[i] = await(&tables[i]);
    assert_ptr_equal(made[0], made[2]);
    assert_ptr_not_equal(made[0], made[1]);
    for (size_t i = 0; i < 3; i++) rp_made_page_unref(made[i]);
}

static atomic_size_t acts;

static rp_status act(void *ctx, rp_action *action, rp_error *err)
{
    (void)ctx, (void)action, (void)err;
    atomic_fetch_add(&acts, 1);
    return RP_OK;
}

/* Even while a page is being made. */
static void each_change_is_made(void **state)
{
    waiter w, changes[3];

    (void)state;
    rp_page_maker_free(maker);
    hosted.host.act = act;
    atomic_store(&acts, 0);
    assert_ok(rp_page_maker_new(&hosted.observed.bed.alloc, &hosted.host, &maker, NULL));
    hold(&w);
    for (size_t i = 0; i < 3; i++) {
        prepare(&changes[i], "/metrics");
        changes[i].wait.ask.route = rp_test_route("POST", "/v1/checkpoint");
        assert_true(rp_page_maker_ask(maker, &changes[i].wait));
    }
    for (size_t i = 0; i < 3; i++) rp_made_page_unref(await(&changes[i]));
    assert_int_equal(atomic_load(&acts), 3);
    release(&w);
}

/* M6. */
static void waiting_requests_are_bounded(void **state)
{
    static waiter waiters[RP_PAGE_WAITS];
    enum { BODIES = RP_PAGE_WAIT_BODIES / RP_ASK_BODY_BYTES };
    waiter w, more;
    size_t i;

    (void)state;
    hold(&w);
    for (i = 0; i < BODIES; i++) {
        prepare(&waiters[i], "/metrics");
        assert_non_null(rp_buf_reserve(&waiters[i].wait.ask.body, RP_ASK_BODY_BYTES));
        waiters[i].wait.ask.body.size = RP_ASK_BODY_BYTES;
        assert_true(rp_page_maker_ask(maker, &waiters[i].wait));
    }
    prepare(&more, "/metrics");
    rp_buf_append(&more.wait.ask.body, "x", 1);
    assert_false(rp_page_maker_ask(maker, &more.wait));
    rp_buf_deinit(&more.wait.ask.body);
    for (; i < RP_PAGE_WAITS; i++) ask(&waiters[i], "/metrics"); /* besides `w` */
    prepare(&more, "/metrics");
    assert_false(rp_page_maker_ask(maker, &more.wait));
    release(&w);
    for (size_t j = 0; j < i; j++) {
        rp_made_page_unref(await(&waiters[j]));
        rp_buf_deinit(&waiters[j].wait.ask.body);
    }
    ask(&more, "/metrics");
    rp_made_page_unref(await(&more));
}

/* As ask(), for a connection of a peer. False if the request is refused. */
static bool ask_as(waiter *w, const char *path, uint64_t peer, uint64_t connection)
{
    prepare(w, path);
    w->wait.ask.peer = peer;
    w->wait.ask.connection = connection;
    return rp_page_maker_ask(maker, &w->wait);
}

/* Asks for the page of a table that has this number. */
static bool ask_table_as(waiter *w, size_t number, uint64_t peer, uint64_t connection)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/v1/tables/%zu", number);
    return ask_as(w, path, peer, connection);
}

static bool ask_table(waiter *w, size_t number)
{
    return ask_table_as(w, number, 0, 0);
}

/* M6: who asks for many different pages keeps neither the pages about the server nor changes
 * from being made. */
static void lanes_do_not_wait_for_each_other(void **state)
{
    static waiter tables[RP_PAGE_QUEUES];
    waiter w, more, metrics, change;
    size_t count = 0;

    (void)state;
    hold_in(&w, "/v1/tables/replay");
    while (count < RP_PAGE_QUEUES && ask_table(&tables[count], count)) count++;
    assert_int_equal(count, RP_PAGE_QUEUES - 1); /* `w` has a queue too */
    assert_true(ask_table(&more, 0));            /* this page waits already */
    ask(&metrics, "/metrics");
    rp_made_page_unref(await(&metrics));
    prepare(&change, "/metrics");
    change.wait.ask.route = rp_test_route("POST", "/v1/checkpoint");
    assert_true(rp_page_maker_ask(maker, &change.wait));
    rp_made_page_unref(await(&change));
    release(&w);
    for (size_t i = 0; i < count; i++) rp_made_page_unref(await(&tables[i]));
    rp_made_page_unref(await(&more));
}

/* M9: one client has all places for requests. Another peer and another connection get room, and
 * the newest requests of the connection with most are refused for them. */
static void who_has_no_request_gets_room_for_one(void **state)
{
    static waiter many[RP_PAGE_WAITS];
    waiter w, peer, connection, more;

    (void)state;
    hold(&w);
    for (size_t i = 0; i < COUNT_OF(many); i++)
        assert_true(ask_as(&many[i], "/v1/info", 1, i % 3 == 0 ? 1 : 2));
    assert_true(ask_as(&peer, "/metrics", 2, 3));
    assert_null(await(&many[RP_PAGE_WAITS - 2])); /* the newest of connection 2 */
    assert_true(ask_as(&connection, "/v1/clients", 1, 4));
    assert_null(await(&many[RP_PAGE_WAITS - 3]));
    assert_false(ask_as(&more, "/metrics", 1, 2)); /* who has most makes no room for himself */
    release(&w);
    rp_made_page_unref(await(&peer));
    rp_made_page_unref(await(&connection));
    for (size_t i = 0; i < COUNT_OF(many) - 3; i++) {
        rp_made_page *made = await(&many[i]);

        assert_non_null(made);
        rp_made_page_unref(made);
    }
    rp_made_page_unref(await(&many[RP_PAGE_WAITS - 1]));
}

/* M9: the same for pages. */
static void who_has_no_page_gets_room_for_one(void **state)
{
    enum { PAGES = RP_PAGE_QUEUES - 1 }; /* `w` has one */
    static waiter many[PAGES];
    waiter w, shared, peer, connection, more;

    (void)state;
    hold_in(&w, "/v1/tables/replay");
    for (size_t i = 0; i < PAGES; i++) assert_true(ask_table_as(&many[i], i, 1, 1));
    assert_false(ask_table_as(&more, PAGES, 1, 1));
    assert_true(ask_table_as(&shared, PAGES - 1, 3, 3)); /* the page is now that of peer 3 */
    assert_true(ask_table_as(&peer, PAGES, 2, 2));
    assert_null(await(&many[PAGES - 2]));
    assert_true(ask_table_as(&connection, PAGES + 1, 1, 4));
    assert_null(await(&many[PAGES - 3]));
    release(&w);
    rp_made_page_unref(await(&shared));
    rp_made_page_unref(await(&peer));
    rp_made_page_unref(await(&connection));
    for (size_t i = 0; i < PAGES - 3; i++) rp_made_page_unref(await(&many[i]));
    rp_made_page_unref(await(&many[PAGES - 1]));
}

/* M9: peers take turns, and connections of a peer do. */
static void clients_take_turns(void **state)
{
    enum { EACH = 8 };
    static waiter first[EACH];
    waiter w, peers[2], connection;
    rp_made_page *made;

    (void)state;
    hold_in(&w, "/v1/tables/replay"); /* has number 1 */
    for (size_t i = 0; i < EACH; i++) assert_true(ask_table_as(&first[i], i, 1, 1));
    for (size_t i = 0; i < 2; i++)
        assert_true(ask_table_as(&peers[i], EACH + i, 2, 2)); /* 3, 5 */
    assert_true(ask_table_as(&connection, EACH + 2, 1, 3));   /* 4 */
    release(&w);
    for (size_t i = 0; i < 2; i++) {
        made = await(&peers[i]);
        assert_int_equal(made->number, 3 + 2 * i);
        rp_made_page_unref(made);
    }
    made = await(&connection);
    assert_int_equal(made->number, 4);
    rp_made_page_unref(made);
    for (size_t i = 0; i < EACH; i++) {
        made = await(&first[i]);
        assert_int_equal(made->number, i < 1 ? 2 : i + 5);
        rp_made_page_unref(made);
    }
}

/* M9: reports with large bodies leave room for those of others, whose turn comes soon. */
static void changes_of_a_client_leave_room_for_others(void **state)
{
    enum { BODIES = RP_PAGE_WAIT_BODIES / RP_ASK_BODY_BYTES };
    static waiter many[BODIES + 1];
    waiter other;
    rp_made_page *made;

    (void)state;
    for (size_t i = 0; i <= BODIES; i++) {
        prepare(&many[i], "/metrics");
        many[i].wait.ask.route = rp_test_route("POST", "/v1/runs/{}");
        many[i].wait.ask.peer = 1;
        if (i == 0) {
            rp_test_hold(&hosted);
        } else {
            assert_non_null(rp_buf_reserve(&many[i].wait.ask.body, RP_ASK_BODY_BYTES));
            many[i].wait.ask.body.size = RP_ASK_BODY_BYTES;
        }
        assert_true(rp_page_maker_ask(maker, &many[i].wait));
        if (i == 0) rp_test_await_held(&hosted);
    }
    prepare(&other, "/metrics");
    other.wait.ask.route = rp_test_route("POST", "/v1/runs/{}");
    other.wait.ask.peer = 2;
    rp_buf_append(&other.wait.ask.body, "{}", 2);
    assert_true(rp_page_maker_ask(maker, &other.wait));
    assert_null(await(&many[BODIES]));
    rp_test_release(&hosted);
    made = await(&other);
    assert_non_null(made);
    assert_true(made->number <= 3);
    rp_made_page_unref(made);
    rp_buf_deinit(&other.wait.ask.body);
    for (size_t i = 0; i <= BODIES; i++) {
        if (i < BODIES) rp_made_page_unref(await(&many[i]));
        rp_buf_deinit(&many[i].wait.ask.body);
    }
}

/* A page that has no parts is the same for any number after. */
static void a_number_after_makes_no_other_page(void **state)
{
    static const char *const paths[] = {"/metrics", "/v1/runs/a.csv", "/v1/runs/a.tfevents"};
    static waiter waiters[MANY];
    waiter w;

    (void)state;
    for (size_t p = 0; p < COUNT_OF(paths); p++) {
        hold_in(&w, paths[p]);
        for (size_t i = 0; i < MANY; i++) {
            char path[64];

            (void)snprintf(path, sizeof path, "%s?after=%zu", paths[p], i);
            ask(&waiters[i], path);
        }
        release(&w);
        for (size_t i = 0; i < MANY; i++) rp_made_page_unref(await(&waiters[i]));
        assert_int_equal(atomic_load(&hosted.described), 2 * (p + 1));
    }
}

/* M7. */
static void nothing_is_made_for_cancelled_requests(void **state)
{
    static waiter tables[RP_PAGE_QUEUES - 1];
    waiter w, same[3];
    rp_made_page *made[2];

    (void)state;
    hold_in(&w, "/v1/tables/replay");
    assert_false(rp_page_maker_cancel(maker, &w.wait)); /* it is being made */
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT_OF(tables); i++) assert_true(ask_table(&tables[i], i));
        for (size_t i = 0; i < COUNT_OF(tables); i++) {
            assert_true(rp_page_maker_cancel(maker, &tables[i].wait));
            assert_false(rp_page_maker_cancel(maker, &tables[i].wait));
            assert_null(await(&tables[i]));
        }
    }
    for (size_t i = 0; i < 3; i++) assert_true(ask_table(&same[i], 7));
    assert_true(rp_page_maker_cancel(maker, &same[0].wait)); /* the first of its queue */
    assert_null(await(&same[0]));
    release(&w);
    for (size_t i = 0; i < 2; i++) made[i] = await(&same[i + 1]);
    assert_true(made[0] != NULL && made[0] == made[1]);
    assert_false(rp_page_maker_cancel(maker, &same[1].wait)); /* it has its page */
    assert_int_equal(made[0]->number, 2);                     /* after that of `w` */
    for (size_t i = 0; i < 2; i++) rp_made_page_unref(made[i]);
}

static void *stop(void *arg)
{
    rp_page_maker_stop(maker);
    return arg;
}

/* Those who wait hear at once that there will be no page. */
static void stopping_calls_back_all_waiting_requests(void **state)
{
    waiter first, second;
    rp_made_page *made;
    pthread_t thread;

    (void)state;
    rp_test_hold(&hosted);
    ask(&first, "/metrics");
    rp_test_await_held(&hosted);
    ask(&second, "/v1/info");
    assert_int_equal(pthread_create(&thread, NULL, stop, NULL), 0);
    assert_null(await(&second)); /* while the other one is still being made */
    rp_test_release(&hosted);
    made = await(&first);
    assert_non_null(made);
    rp_made_page_unref(made);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(rp_page_maker_ask(maker, &first.wait));
    assert_int_equal(atomic_load(&hosted.described), 1);
}

static rp_status make_one(const rp_allocator *alloc)
{
    rp_status st = rp_page_maker_new(alloc, &hosted.host, &maker, NULL);
    rp_made_page *made;
    waiter w;

    if (st != RP_OK) return st;
    prepare(&w, "/v1/info");
    made = rp_page_maker_ask(maker, &w.wait) ? await(&w) : NULL;
    if (made == NULL || made->answer.status != 200) st = RP_NO_RESOURCE;
    rp_made_page_unref(made);
    rp_page_maker_free(maker);
    maker = NULL;
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_page_maker_free(maker);
    maker = NULL;
    rp_test_survives_oom(make_one);
}

RP_TESTS(page_maker)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(pages_are_made_on_demand),
        CASE(a_page_is_made_once_for_all_waiting_requests),
        CASE(pages_are_made_in_the_order_of_their_requests),
        CASE(stopping_calls_back_all_waiting_requests),
        CASE(every_allocation_may_fail),
        CASE(live_readers_share_a_page_each_second),
        CASE(other_readers_do_not_wait_for_live_pages),
        CASE(pages_about_different_tables_are_made_for_each),
        CASE(each_change_is_made),
        CASE(waiting_requests_are_bounded),
        CASE(lanes_do_not_wait_for_each_other),
        CASE(who_has_no_request_gets_room_for_one),
        CASE(who_has_no_page_gets_room_for_one),
        CASE(clients_take_turns),
        CASE(changes_of_a_client_leave_room_for_others),
        CASE(a_number_after_makes_no_other_page),
        CASE(nothing_is_made_for_cancelled_requests),
    };

    return cmocka_run_group_tests_name("page_maker", tests, NULL, NULL);
}
