/* SPDX-License-Identifier: Apache-2.0 */
#include "server/metrics/clients.h"

#include "server/http/server_view.h"
#include "support/unit.h"

enum { CLIENTS = 5 };

static void clients_are_listed_newest_first(void **state)
{
    static rp_client all[CLIENTS];
    rp_client_view views[CLIENTS];
    rp_clients clients;

    (void)state;
    memset(all, 0, sizeof all);
    rp_clients_init(&clients);
    assert_int_equal(rp_clients_list(&clients, views, CLIENTS), 0);
    for (size_t i = 0; i < CLIENTS; i++)
        rp_clients_enter(&clients, &all[i], "10.0.0.1:7", RP_CLIENT_NEW, (int64_t)i);
    rp_client_count_call(&all[4], RP_ROLE_WRITE);
    rp_client_count_call(&all[4], RP_ROLE_READ);
    rp_counter_add(&all[4].bytes_in, 10);
    rp_counter_add(&all[4].bytes_out, 20);
    rp_client_set_protocol(&all[4], RP_CLIENT_LEASE);
    assert_int_equal(rp_clients_count(&clients), CLIENTS);
    assert_int_equal(rp_clients_list(&clients, views, 2), CLIENTS);
    assert_int_equal(views[0].id, 5);
    assert_int_equal(views[1].id, 4);
    assert_int_equal(views[0].since_ns, 4);
    assert_string_equal(views[0].peer, "10.0.0.1:7");
    assert_int_equal(views[0].calls, 2);
    assert_int_equal(views[0].role, RP_ROLE_READ);
    assert_int_equal(views[0].bytes_in, 10);
    assert_int_equal(views[0].bytes_out, 20);
    assert_string_equal(rp_client_protocol_name(views[0].protocol), "shared memory");
    rp_clients_leave(&clients, &all[2]);
    rp_clients_leave(&clients, &all[2]); /* which it has left */
    rp_clients_leave(&clients, &all[4]);
    rp_clients_leave(&clients, &all[0]);
    assert_int_equal(rp_clients_list(&clients, views, CLIENTS), 2);
    assert_int_equal(views[0].id, 4);
    assert_int_equal(views[1].id, 2);
    rp_clients_leave(&clients, &all[1]);
    rp_clients_leave(&clients, &all[3]);
    rp_clients_deinit(&clients);
}

static void addresses_are_found_by_number(void **state)
{
    static rp_client all[CLIENTS];
    rp_client_views views;
    rp_clients clients;
    char peer[] = "a0";

    (void)state;
    memset(all, 0, sizeof all);
    rp_clients_init(&clients);
    for (size_t i = 0; i < CLIENTS; i++) {
        peer[1] = (char)('1' + i);
        rp_clients_enter(&clients, &all[i], peer, RP_CLIENT_NEW, 0);
    }
    rp_clients_leave(&clients, &all[2]);
    assert_ok(rp_client_views_take(&views, rp_allocator_default(), &clients));
    assert_int_equal(views.total, 4);
    assert_string_equal(rp_client_views_peer(&views, 0), "this process");
    assert_string_equal(rp_client_views_peer(&views, 1), "a1");
    assert_string_equal(rp_client_views_peer(&views, 2), "a2");
    assert_null(rp_client_views_peer(&views, 3));
    assert_string_equal(rp_client_views_peer(&views, 5), "a5");
    assert_null(rp_client_views_peer(&views, 6));
    rp_client_views_deinit(&views);
    assert_ok(rp_client_views_take(&views, rp_allocator_default(), NULL));
    assert_null(rp_client_views_peer(&views, 1));
    rp_client_views_deinit(&views);
    for (size_t i = 0; i < CLIENTS; i++) rp_clients_leave(&clients, &all[i]);
    rp_clients_deinit(&clients);
}

RP_TESTS(clients)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_are_listed_newest_first),
        cmocka_unit_test(addresses_are_found_by_number),
    };

    return cmocka_run_group_tests_name("clients", tests, NULL, NULL);
}
