/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/page_maker.h"

#include <pthread.h>

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

static void ask(waiter *w, rp_page_kind kind)
{
    *w = (waiter){.wait = {.on_made = note}};
    assert_int_equal(sem_init(&w->done, 0, 0), 0);
    assert_true(rp_page_maker_ask(maker, kind, &w->wait));
}

/* Returns what the waiter got, as a reference. */
static rp_made_page *await(waiter *w)
{
    assert_int_equal(sem_wait(&w->done), 0);
    assert_int_equal(sem_destroy(&w->done), 0);
    return w->made;
}

static void pages_are_made_on_demand(void **state)
{
    rp_made_page *made;
    waiter w;

    (void)state;
    assert_int_equal(atomic_load(&hosted.described), 0);
    ask(&w, RP_PAGE_METRICS);
    made = await(&w);
    assert_non_null(made);
    assert_int_equal(made->answer.status, 200);
    rp_buf_append(&made->answer.body, "", 1);
    assert_null(rp_test_prometheus_mistake((const char *)made->answer.body.data,
                                           made->answer.body.size - 1));
    rp_made_page_unref(made);
    ask(&w, RP_PAGE_INFO);
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
    ask(&w, RP_PAGE_METRICS);
    rp_test_await_held(&hosted);
    for (size_t i = 0; i < MANY; i++) ask(&waiters[i], RP_PAGE_METRICS);
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

static void kinds_take_turns(void **state)
{
    waiter metrics[2], info;
    rp_made_page *made[3];

    (void)state;
    rp_test_hold(&hosted);
    ask(&metrics[0], RP_PAGE_METRICS);
    rp_test_await_held(&hosted);
    ask(&metrics[1], RP_PAGE_METRICS);
    ask(&info, RP_PAGE_INFO);
    rp_test_release(&hosted);
    made[0] = await(&metrics[0]);
    made[1] = await(&info);
    made[2] = await(&metrics[1]);
    assert_true(made[0]->number < made[1]->number && made[1]->number < made[2]->number);
    for (size_t i = 0; i < 3; i++) rp_made_page_unref(made[i]);
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
    ask(&first, RP_PAGE_METRICS);
    rp_test_await_held(&hosted);
    ask(&second, RP_PAGE_INFO);
    assert_int_equal(pthread_create(&thread, NULL, stop, NULL), 0);
    assert_null(await(&second)); /* while the other one is still being made */
    rp_test_release(&hosted);
    made = await(&first);
    assert_non_null(made);
    rp_made_page_unref(made);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(rp_page_maker_ask(maker, RP_PAGE_METRICS, &first.wait));
    assert_int_equal(atomic_load(&hosted.described), 1);
}

static rp_status make_one(const rp_allocator *alloc)
{
    rp_status st = rp_page_maker_new(alloc, &hosted.host, &maker, NULL);
    rp_made_page *made;
    waiter w;

    if (st != RP_OK) return st;
    ask(&w, RP_PAGE_INFO);
    made = await(&w);
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
        CASE(pages_are_made_on_demand),  CASE(a_page_is_made_once_for_all_waiting_requests),
        CASE(kinds_take_turns),          CASE(stopping_calls_back_all_waiting_requests),
        CASE(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("page_maker", tests, NULL, NULL);
}
