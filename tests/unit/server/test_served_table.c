/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as the server sees them, on a server without threads. */
#include "server/core/served_table.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "server/core/server.h"
#include "server/core/server_state.h"
#include "support/live_server.h"

typedef struct house {
    rp_test_live live;
    rp_server *server;
    rp_error err;
} house;

static void house_init(house *h)
{
    rp_server_options options = {.loops = 1};

    rp_test_live_init(&h->live, NULL);
    options.alloc = &h->live.alloc;
    assert_ok_err(rp_server_new(h->live.store, &options, &h->server, &h->err), &h->err);
}

static void house_deinit(house *h)
{
    h->live.server = h->server;
    rp_test_live_stop(&h->live);
}

static rp_string text(const char *name)
{
    return (rp_string){name, strlen(name)};
}

static void a_table_is_found_and_is_the_same_every_time(void **state)
{
    (void)state;
    house h;
    rp_served_table *a, *b, *other;

    house_init(&h);
    a = rp_served_table_find(h.server, text("replay"), &h.err);
    b = rp_served_table_find(h.server, text("replay"), &h.err);
    other = rp_served_table_find(h.server, text("queue"), &h.err);
    assert_non_null(a);
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, other);
    assert_true(rp_served_table_is(a, text("replay")));
    assert_false(rp_served_table_is(a, text("repla")) ||
                 rp_served_table_is(a, text("replayy")) || rp_served_table_is(NULL, text("")));
    assert_string_equal(a->name, "replay");
    rp_served_table_unref(a);
    rp_served_table_unref(b);
    rp_served_table_unref(other);
    rp_served_table_unref(NULL);
    house_deinit(&h);
}

static void an_unknown_table_is_named_in_part(void **state)
{
    (void)state;
    house h;
    char name[400];

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    house_init(&h);
    assert_null(rp_served_table_find(h.server, text("nobody"), &h.err));
    assert_int_equal(h.err.code, RP_NOT_FOUND);
    assert_string_equal(h.err.text, "Priority table nobody was not found");
    assert_null(rp_served_table_find(h.server, text(name), &h.err));
    assert_true(strlen(h.err.text) < 200);
    house_deinit(&h);
}

static void pending_inserts_are_bounded_by_a_tenth_of_the_table(void **state)
{
    (void)state;
    static const struct {
        const char *table;
        size_t pending;
    } cases[] = {{"replay", 1000}, {"queue", 1}, {"slow", 100}, {"strict", 10}};
    house h;

    house_init(&h);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rp_served_table *served = rp_served_table_find(h.server, text(cases[i].table), &h.err);
        assert_non_null(served);
        assert_int_equal(atomic_load(&served->max_pending), cases[i].pending);
        rp_served_table_unref(served);
    }
    house_deinit(&h);
}

static void an_altered_table_updates_its_bound(void **state)
{
    (void)state;
    rp_table_alteration change = {.which = RP_ALTER_MAX_SIZE, .max_size = 50};
    house h;
    rp_served_table *served;

    house_init(&h);
    served = rp_served_table_find(h.server, text("strict"), &h.err);
    assert_ok(rp_table_alter(served->table, &change, NULL));
    assert_int_equal(atomic_load(&served->max_pending), 10);
    rp_served_table_altered(served);
    assert_int_equal(atomic_load(&served->max_pending), 5);
    rp_served_table_unref(served);
    house_deinit(&h);
}

static void add(house *h, const char *name)
{
    rp_table_options options = {
        .name = name, .limiter = rp_limiter_min_size(1), .max_size = 10};

    assert_ok(rp_store_add_table(h->live.store, &options, NULL, NULL));
}

static void a_recreated_table_is_a_new_entry(void **state)
{
    (void)state;
    house h;
    rp_served_table *old, *new;

    house_init(&h);
    add(&h, "fresh");
    old = rp_served_table_find(h.server, text("fresh"), &h.err);
    assert_ok(rp_store_drop_table(h.live.store, text("fresh"), NULL));
    assert_null(rp_served_table_find(h.server, text("fresh"), &h.err));
    add(&h, "fresh");
    new = rp_served_table_find(h.server, text("fresh"), &h.err);
    assert_non_null(new);
    assert_ptr_not_equal(old, new);
    assert_ptr_not_equal(old->table, new->table);
    rp_served_table_unref(old);
    rp_served_table_unref(new);
    house_deinit(&h);
}

static void forgetting_keeps_a_recreated_table_of_the_name(void **state)
{
    (void)state;
    house h;
    rp_served_table *old, *new;

    house_init(&h);
    add(&h, "fresh");
    old = rp_served_table_find(h.server, text("fresh"), &h.err);
    rp_served_table_forget(h.server, "fresh"); /* it is still there */
    assert_ptr_equal(rp_served_table_find(h.server, text("fresh"), &h.err), old);
    rp_served_table_unref(old);
    assert_ok(rp_store_drop_table(h.live.store, text("fresh"), NULL));
    add(&h, "fresh");
    new = rp_served_table_find(h.server, text("fresh"), &h.err);
    rp_served_table_forget(h.server, "fresh");
    assert_ptr_equal(rp_served_table_find(h.server, text("fresh"), &h.err), new);
    rp_served_table_unref(new);
    rp_served_table_unref(new);
    rp_served_table_unref(old);
    rp_served_table_forget(h.server, "never there");
    assert_ok(rp_store_drop_table(h.live.store, text("fresh"), NULL));
    rp_served_table_forget(h.server, "fresh");
    house_deinit(&h);
}

typedef struct searcher {
    house *h;
    sem_t begins;
    rp_served_table *found;
} searcher;

static void *search(void *arg)
{
    searcher *s = arg;
    rp_error err;

    (void)sem_post(&s->begins);
    s->found = rp_served_table_find(s->h->server, text("old"), &err);
    return NULL;
}

/* A search that was held up while its table was dropped: it finds nothing, and so it does not
 * replace the entry of the table that has got the id. */
static void a_table_dropped_during_a_search_is_not_found_issue_20(void **state)
{
    enum { ROUNDS = 20 };
    house h;

    (void)state;
    house_init(&h);
    for (int i = 0; i < ROUNDS; i++) {
        searcher s = {.h = &h};
        rp_served_table *live, *again;
        pthread_t thread;

        add(&h, "old");
        assert_int_equal(sem_init(&s.begins, 0, 0), 0);
        rp_mutex_lock(&h.server->lock);
        assert_int_equal(pthread_create(&thread, NULL, search, &s), 0);
        (void)sem_wait(&s.begins);
        /* The thread waits for the lock soon. If it is slow, the test is weaker. */
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
        assert_ok(rp_store_drop_table(h.live.store, text("old"), NULL));
        add(&h, "new");
        rp_mutex_unlock(&h.server->lock);
        live = rp_served_table_find(h.server, text("new"), &h.err);
        assert_non_null(live);
        assert_int_equal(pthread_join(thread, NULL), 0);
        again = rp_served_table_find(h.server, text("new"), &h.err);
        assert_null(s.found);
        assert_ptr_equal(again, live);
        rp_served_table_unref(live);
        rp_served_table_unref(again);
        assert_ok(rp_store_drop_table(h.live.store, text("new"), NULL));
        rp_served_table_forget(h.server, "new");
        (void)sem_destroy(&s.begins);
    }
    house_deinit(&h);
}

static void without_memory_nothing_is_found(void **state)
{
    (void)state;
    house h;
    rp_served_table *served = NULL;
    size_t room = 0, live;

    house_init(&h);
    live = h.live.oom.live;
    for (; served == NULL; room++) {
        atomic_store(&h.live.oom.left, room);
        served = rp_served_table_find(h.server, text("replay"), &h.err);
        atomic_store(&h.live.oom.left, RP_TEST_OOM_UNLIMITED);
        if (served != NULL) break;
        assert_int_equal(h.err.code, RP_NO_RESOURCE);
    }
    assert_true(room >= 2);
    assert_true(h.live.oom.live > live);
    rp_served_table_unref(served);
    house_deinit(&h);
}

RP_TESTS(served_table)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_found_and_is_the_same_every_time),
        cmocka_unit_test(an_unknown_table_is_named_in_part),
        cmocka_unit_test(pending_inserts_are_bounded_by_a_tenth_of_the_table),
        cmocka_unit_test(an_altered_table_updates_its_bound),
        cmocka_unit_test(a_recreated_table_is_a_new_entry),
        cmocka_unit_test(forgetting_keeps_a_recreated_table_of_the_name),
        cmocka_unit_test(a_table_dropped_during_a_search_is_not_found_issue_20),
        cmocka_unit_test(without_memory_nothing_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
