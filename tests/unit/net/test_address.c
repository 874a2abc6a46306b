/* SPDX-License-Identifier: Apache-2.0 */
#include "net/address.h"

#include <netinet/in.h>
#include <sys/un.h>

#include "support/unit.h"

static void hosts_numbers_and_paths_are_parsed(void **state)
{
    rp_address a;
    rp_error err;

    (void)state;
    assert_ok_err(rp_address_parse("replay.example.org:8000", &a, &err), &err);
    assert_string_equal(a.host, "replay.example.org");
    assert_int_equal(a.port, 8000);
    assert_false(a.is_unix);
    assert_ok_err(rp_address_parse("[::1]:65535", &a, &err), &err);
    assert_string_equal(a.host, "::1");
    assert_int_equal(a.port, 65535);
    assert_ok_err(rp_address_parse("unix:/run/r", &a, &err), &err);
    assert_string_equal(a.host, "/run/r");
    assert_true(a.is_unix);
}

static void malformed_addresses_are_refused_with_a_reason(void **state)
{
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"", "port is missing"},
        {"host", "port is missing"},
        {":80", "host is missing"},
        {"host:", "port must be"},
        {"host:0", "port must be"},
        {"host:65536", "port must be"},
        {"host:80x", "port must be"},
        {"host:999999", "port must be"},
        {"::1:80", "[v6]:port"},
        {"[::1", "']' is missing"},
        {"[::1]80", "port is missing"},
        {"[nonsense]:80", "not an IPv6"},
        {"unix:", "path is missing"},
        {"ho st:80", "an address has no space"},
        {"user@host:80", "not the name"},
        {"[]:80", "host is missing"},
        {"a:1 b:2", "separate addresses by a comma"},
        {"/tmp/x.sock", "write a socket as 'unix:/tmp/x.sock'"},
        {"host:80/", "the '/' at"},
        {"host:80/x", "the '/x' at its end, as in 'host:80'"},
    };
    char longest[400];
    rp_address a;
    rp_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_fails(rp_address_parse(wrong[i].text, &a, &err), RP_INVALID, &err,
                     wrong[i].part);
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "unix:", 5);
    longest[5 + 108] = '\0';
    assert_fails(rp_address_parse(longest, &a, &err), RP_INVALID, &err, "107");
    memset(longest, 'x', sizeof longest);
    memcpy(longest + 300, ":80", 4);
    assert_fails(rp_address_parse(longest, &a, &err), RP_INVALID, &err, "too long");
}

static void local_addresses_need_no_lookup(void **state)
{
    rp_endpoints found;
    rp_address a;

    (void)state;
    assert_ok(rp_address_parse("localhost:80", &a, NULL));
    assert_true(rp_address_resolve_now(&a, &found));
    assert_int_equal(found.count, 2);
    assert_int_equal(found.list[0].address.ss_family, AF_INET);
    assert_int_equal(found.list[1].address.ss_family, AF_INET6);
    assert_ok(rp_address_parse("127.0.0.1:80", &a, NULL));
    assert_true(rp_address_resolve_now(&a, &found));
    assert_int_equal(found.count, 1);
    assert_int_equal(((struct sockaddr_in *)&found.list[0].address)->sin_port, htons(80));
    assert_ok(rp_address_parse("unix:/a", &a, NULL));
    assert_true(rp_address_resolve_now(&a, &found));
    assert_string_equal(((struct sockaddr_un *)&found.list[0].address)->sun_path, "/a");
    assert_ok(rp_address_parse("name.invalid:80", &a, NULL));
    assert_false(rp_address_resolve_now(&a, &found));
}

static void lists_are_cut_at_commas(void **state)
{
    rp_address_list list;
    rp_error err;

    (void)state;
    assert_ok_err(rp_address_list_parse(rp_allocator_default(),
                                        "a:1, [::1]:2 ,unix:/x,dns:localhost:3", &list, &err),
                  &err);
    assert_int_equal(list.count, 5);
    assert_string_equal(list.shards[0].text, "a:1");
    assert_string_equal(list.shards[1].text, "[::1]:2");
    assert_string_equal(list.shards[2].text, "unix:/x");
    assert_string_equal(list.shards[2].name, "localhost");
    assert_string_equal(list.shards[3].text, "127.0.0.1:3");
    assert_string_equal(list.shards[3].name, "localhost");
    assert_string_equal(list.shards[4].text, "[::1]:3");
    rp_address_list_deinit(&list);
    assert_fails(rp_address_list_parse(rp_allocator_default(), "", &list, &err), RP_INVALID,
                 &err, "the address is empty: it is HOST:PORT");
    assert_fails(rp_address_list_parse(rp_allocator_default(), "a:1,", &list, &err), RP_INVALID,
                 &err, "addresses 'a:1,': address 2 is empty");
    assert_fails(rp_address_list_parse(rp_allocator_default(), "a:1,b", &list, &err),
                 RP_INVALID, &err, "'b'");
    assert_fails(rp_address_list_parse(rp_allocator_default(), "dns:unix:/a", &list, &err),
                 RP_INVALID, &err, "no name");
}

static rp_status parse_some(const rp_allocator *alloc)
{
    rp_address_list list;
    rp_status st = rp_address_list_parse(alloc, "a:1,b:2,c:3,d:4,e:5", &list, NULL);

    if (st == RP_OK) rp_address_list_deinit(&list);
    return st;
}

static void parsing_survives_failed_allocations(void **state)
{
    (void)state;
    rp_test_survives_oom(parse_some);
}

RP_TESTS(address)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_numbers_and_paths_are_parsed),
        cmocka_unit_test(malformed_addresses_are_refused_with_a_reason),
        cmocka_unit_test(local_addresses_need_no_lookup),
        cmocka_unit_test(lists_are_cut_at_commas),
        cmocka_unit_test(parsing_survives_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
