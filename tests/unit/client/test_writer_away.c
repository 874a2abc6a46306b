/* SPDX-License-Identifier: Apache-2.0 */
/* Writers of servers that are away: their items are taken at once, and what can never succeed
 * is said at once, by samplers as well. */
#include <stdlib.h>
#include <unistd.h>

#include "client_fixture.h"
#include "reprise/sampler.h"
#include "reprise/step_writer.h"
#include "reprise/structured_writer.h"
#include "reprise/trajectory_writer.h"
#include "scripted.h"
#include "support/certificates.h"
#include "support/streams.h"

/* With a wait of a second for each item these tests would take minutes. */
enum { ITEMS = 200, MOST_MS = 30000 };

static const int64_t MS = 1000000;
static const rp_trajectory_writer_options one_row = {.column = {.history = 1}};

static int free_port(void)
{
    scripted s;

    scripted_start(&s, NULL);
    scripted_stop(&s);
    return s.port;
}

static rp_client *client_of_nobody(void)
{
    char address[64];

    (void)snprintf(address, sizeof address, "127.0.0.1:%d", free_port());
    return new_client(address, NULL);
}

static rp_tensor number(const int32_t *value)
{
    return (rp_tensor){RP_INT32, {0}, value};
}

/* Appends a row and creates an item of it. */
static rp_status write_item(rp_trajectory_writer *writer, const char *table, rp_error *err)
{
    const int32_t seven = 7;
    rp_value value = {0, "x", number(&seven)};
    rp_ref ref;
    rp_item_column column = {.refs = &ref, .count = 1, .squeeze = true};
    rp_new_item item = {table, 1, &column, 1};

    assert_ok_err(rp_trajectory_writer_append(writer, &value, 1, 0, &ref, err), err);
    return rp_trajectory_writer_create_item(writer, &item, soon(), NULL, err);
}

static rp_trajectory_writer *open_writer(rp_client *client)
{
    rp_trajectory_writer *writer = NULL;
    rp_error err;

    assert_ok_err(rp_trajectory_writer_new(client, &one_row, rp_wait_ms(200), &writer, &err),
                  &err);
    return writer;
}

static void write_many(rp_client *client)
{
    rp_trajectory_writer *writer = open_writer(client);
    int64_t then = rp_now_ns();
    rp_error err;

    for (int i = 0; i < ITEMS && rp_now_ns() - then < MOST_MS * MS; i++)
        assert_ok_err(write_item(writer, "replay", &err), &err);
    assert_int_equal(rp_trajectory_writer_pending(writer), ITEMS);
    rp_trajectory_writer_free(writer);
}

static void items_are_taken_while_nobody_listens(void **state)
{
    rp_client *client = client_of_nobody();

    (void)state;
    write_many(client);
    rp_client_free(client);
}

/* The reason does not say that they were sent. */
static void a_flush_says_why_items_are_not_sent(void **state)
{
    rp_client *client = client_of_nobody();
    rp_trajectory_writer *writer = open_writer(client);
    rp_error err;

    (void)state;
    assert_ok_err(write_item(writer, "replay", &err), &err);
    assert_fails(rp_trajectory_writer_flush(writer, 0, rp_wait_ms(300), &err), RP_DEADLINE,
                 &err, "1 item is unconfirmed: 127.0.0.1:");
    assert_ok_err(write_item(writer, "replay", &err), &err);
    assert_fails(rp_trajectory_writer_flush(writer, 0, rp_wait_ms(300), &err), RP_DEADLINE,
                 &err, "2 items are unconfirmed: 127.0.0.1:");
    rp_trajectory_writer_free(writer);
    rp_client_free(client);
}

/* The shard that never listened would keep its half of the items for half a minute. */
static void a_fresh_writer_leaves_a_dead_shard_out(void **state)
{
    rp_trajectory_writer *writer;
    char addresses[128];
    rp_client *client;
    rp_test_live live;
    rp_error err;

    (void)state;
    rp_test_live_start(&live, NULL);
    (void)snprintf(addresses, sizeof addresses, "127.0.0.1:%d, 127.0.0.1:%d", free_port(),
                   live.port);
    client = new_client(addresses, NULL);
    for (int round = 1; round <= 2; round++) { /* the second time, the client knows the shard */
        writer = open_writer(client);
        for (int i = 0; i < ITEMS; i++) assert_ok_err(write_item(writer, "replay", &err), &err);
        assert_ok_err(rp_trajectory_writer_flush(writer, 0, rp_wait_ms(15000), &err), &err);
        assert_int_equal(rp_test_live_info(&live, "replay").size, round * ITEMS);
        rp_trajectory_writer_free(writer);
    }
    rp_client_free(client);
    rp_test_live_stop(&live);
}

/* It accepts connections, and says nothing. */
static void items_are_taken_while_a_server_is_silent(void **state)
{
    rp_client *client;
    scripted s;

    (void)state;
    scripted_start(&s, NULL);
    client = new_client(s.address, NULL);
    write_many(client);
    rp_client_free(client);
    scripted_stop(&s);
}

static void steps_are_taken_while_nobody_listens(void **state)
{
    const rp_step_writer_options options = {.max_sequence_length = 1,
                                            .max_in_flight = 2 * ITEMS};
    rp_client *client = client_of_nobody();
    rp_step_writer *writer = NULL;
    const int32_t seven = 7;
    rp_tensor step = number(&seven);
    int64_t then = rp_now_ns();
    rp_error err;
    int count = 0;

    (void)state;
    assert_ok_err(rp_step_writer_new(client, &options, rp_wait_ms(200), &writer, &err), &err);
    for (; count < ITEMS && rp_now_ns() - then < MOST_MS * MS; count++) {
        assert_ok_err(rp_step_writer_append(writer, &step, 1, &err), &err);
        assert_ok_err(rp_step_writer_create_item(writer, "replay", 1, 1, soon(), NULL, &err),
                      &err);
    }
    assert_int_equal(count, ITEMS);
    rp_step_writer_free(writer);
    rp_client_free(client);
}

/* Each environment has a writer of its own. */
static void batches_are_taken_while_nobody_listens(void **state)
{
    enum { ENVIRONMENTS = 8 };
    const rp_pattern_node node = {.has_stop = true, .stop = -1};
    const rp_pattern pattern = {
        .table = "replay", .priority = {.value = 1}, .nodes = &node, .node_count = 1};
    int32_t numbers[ENVIRONMENTS] = {0};
    rp_value value = {0, "x", {RP_INT32, {1, {ENVIRONMENTS}}, numbers}};
    rp_client *client = client_of_nobody();
    rp_batch_writer *writer = NULL;
    int64_t then = rp_now_ns();
    rp_error err;

    (void)state;
    assert_ok_err(rp_batch_writer_new(client, ENVIRONMENTS, &pattern, 1, NULL, &writer, &err),
                  &err);
    for (int i = 0; i < ITEMS / ENVIRONMENTS && rp_now_ns() - then < MOST_MS * MS; i++)
        assert_ok_err(rp_batch_writer_append(writer, &value, 1, NULL, soon(), &err), &err);
    assert_int_equal(rp_batch_writer_pending(writer), ITEMS);
    rp_batch_writer_free(writer);
    rp_client_free(client);
}

/* The item that comes once the server is back is compared with the signature. */
static void items_are_checked_when_the_server_is_back(void **state)
{
    rp_trajectory_writer *writer;
    rp_client *client;
    rp_test_live live;
    rp_error err;

    (void)state;
    rp_test_live_start(&live, NULL);
    client = client_of(&live, NULL);
    rp_test_live_end(&live);
    writer = open_writer(client);
    assert_ok_err(write_item(writer, "replay", &err), &err);
    rp_test_live_restart(&live);
    assert_ok_err(rp_trajectory_writer_flush(writer, 0, soon(), &err), &err);
    assert_fails(write_item(writer, "strict", &err), RP_INVALID, &err, "strict");
    rp_trajectory_writer_free(writer);
    rp_client_free(client);
    rp_test_live_stop(&live);
}

static void a_refused_certificate_is_said_by_the_next_item(void **state)
{
    rp_test_certificates c, others;
    rp_test_identity server;
    rp_server_options options = {0};
    rp_trajectory_writer *writer;
    rp_client *client;
    rp_test_live live;
    rp_error err;

    (void)state;
    rp_test_certificates_init(&c);
    rp_test_certificates_init(&others);
    server = rp_test_issue(&c, "server", "localhost", 9);
    options.security.certificate_file = server.certificate;
    options.security.key_file = server.key;
    rp_test_live_start(&live, &options);
    client = client_of(&live, &(rp_client_options){.ca_file = others.ca});
    writer = open_writer(client);
    assert_fails(write_item(writer, "replay", &err), RP_UNAVAILABLE, &err, "certificate");
    assert_int_equal(rp_trajectory_writer_pending(writer), 0);
    rp_trajectory_writer_free(writer);
    rp_client_free(client);
    rp_test_certificates_deinit(&others);
    rp_test_certificates_deinit(&c);
    rp_test_live_stop(&live);
}

static void a_server_that_wants_tls_is_said_by_the_next_item(void **state)
{
    rp_test_certificates c;
    rp_test_identity server;
    rp_server_options options = {0};
    rp_trajectory_writer *writer;
    rp_client *client;
    rp_test_live live;
    rp_error err;

    (void)state;
    rp_test_certificates_init(&c);
    server = rp_test_issue(&c, "server", "localhost", 9);
    options.security.certificate_file = server.certificate;
    options.security.key_file = server.key;
    rp_test_live_start(&live, &options);
    client = client_of(&live, NULL);
    writer = open_writer(client);
    assert_fails(write_item(writer, "replay", &err), RP_UNAVAILABLE, &err,
                 "the server wants TLS");
    assert_int_equal(rp_trajectory_writer_pending(writer), 0);
    rp_trajectory_writer_free(writer);
    rp_client_free(client);
    rp_test_certificates_deinit(&c);
    rp_test_live_stop(&live);
}

static void an_unchecked_item_for_a_server_that_wants_tls_is_refused(void **state)
{
    const rp_trajectory_writer_options unchecked = {.column = {.history = 1},
                                                    .unchecked = true};
    rp_test_certificates c;
    rp_test_identity server;
    rp_server_options options = {0};
    rp_trajectory_writer *writer;
    rp_client *client;
    rp_test_live live;
    rp_error err;

    (void)state;
    rp_test_certificates_init(&c);
    server = rp_test_issue(&c, "server", "localhost", 9);
    options.security.certificate_file = server.certificate;
    options.security.key_file = server.key;
    rp_test_live_start(&live, &options);
    client = client_of(&live, NULL);
    assert_ok_err(rp_trajectory_writer_new(client, &unchecked, rp_wait_none(), &writer, &err),
                  &err);
    assert_ok_err(write_item(writer, "replay", &err), &err);
    assert_fails(rp_trajectory_writer_flush(writer, 0, soon(), &err), RP_UNAVAILABLE, &err,
                 "the server wants TLS");
    rp_trajectory_writer_free(writer);
    rp_client_free(client);
    rp_test_certificates_deinit(&c);
    rp_test_live_stop(&live);
}

static void a_sampler_of_a_server_that_wants_tls_ends(void **state)
{
    rp_test_certificates c;
    rp_test_identity server;
    rp_server_options options = {0};
    const rp_sampler_options endless = {.table = "replay", .rate_limiter_timeout_ms = -1};
    char why[RP_ERROR_TEXT_BYTES];
    rp_sampler *sampler;
    rp_client *client;
    rp_sample sample;
    rp_test_live live;
    rp_error err;
    size_t count;

    (void)state;
    rp_test_certificates_init(&c);
    server = rp_test_issue(&c, "server", "localhost", 9);
    options.security.certificate_file = server.certificate;
    options.security.key_file = server.key;
    rp_test_live_start(&live, &options);
    client = client_of(&live, NULL);
    (void)rp_client_why_away(client, SIZE_MAX, why, sizeof why);
    assert_string_equal(why, "");
    assert_ok_err(rp_sampler_new(client, &endless, &sampler, &err), &err);
    assert_fails(rp_sampler_next(sampler, &sample, 1, &count, soon(), &err), RP_UNAVAILABLE,
                 &err, "the server wants TLS");
    (void)rp_client_why_away(client, SIZE_MAX, why, sizeof why);
    assert_non_null(strstr(why, "the server wants TLS"));
    rp_sampler_free(sampler);
    rp_client_free(client);
    rp_test_certificates_deinit(&c);
    rp_test_live_stop(&live);
}

/* Greets the client, and reads nothing once a call has begun. */
static void *freeze_after_a_call(void *arg)
{
    scripted *s = arg;
    int fd = scripted_accept(s);

    if (fd < 0) return NULL;
    (void)scripted_await_call(fd);
    (void)!accept4(s->listener, NULL, NULL, SOCK_CLOEXEC); /* until it is stopped */
    (void)close(fd);
    return NULL;
}

static void check_timeout_of_sampler(void *(*run)(void *), const char *why)
{
    const rp_sampler_options options = {.table = "prio", .rate_limiter_timeout_ms = 700};
    rp_sampler *sampler = NULL;
    rp_sample sample;
    rp_client *client;
    size_t count = 0;
    scripted s;
    rp_error err;

    scripted_start(&s, run);
    client = new_client(s.address, NULL);
    assert_ok_err(rp_sampler_new(client, &options, &sampler, &err), &err);
    /* Less than the 50 s in which the client gives the connection up. */
    assert_fails(rp_sampler_next(sampler, &sample, 1, &count, rp_wait_ms(40000), &err),
                 RP_UNAVAILABLE, &err,
                 "no sample of 'prio' within 700 ms, the timeout of the rate limiter: ");
    assert_non_null(strstr(err.text, why));
    rp_sampler_free(sampler);
    rp_client_free(client);
    scripted_stop(&s);
}

static void a_sampler_of_a_frozen_server_ends_after_its_timeout(void **state)
{
    (void)state;
    check_timeout_of_sampler(NULL, "accepts connections and does not respond: is it stopped");
    check_timeout_of_sampler(freeze_after_a_call, " ms: is it stopped or overloaded?");
}

static void an_unknown_token_is_said_by_the_next_item(void **state)
{
    /* of the token "reader" */
    static const char tokens[] =
        "read eyes sha256:3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30\n";
    char path[] = "/tmp/reprise-tokens-XXXXXX";
    rp_server_options options = {.security.tokens_file = path};
    rp_trajectory_writer *writer;
    rp_client *client;
    rp_test_live live;
    rp_error err;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, tokens, sizeof tokens - 1), sizeof tokens - 1);
    (void)close(fd);
    rp_test_live_start(&live, &options);
    client = client_of(&live, &(rp_client_options){.token = "wrong"});
    writer = open_writer(client);
    assert_fails(write_item(writer, "replay", &err), RP_UNAUTHENTICATED, &err, "token");
    assert_int_equal(rp_trajectory_writer_pending(writer), 0);
    rp_trajectory_writer_free(writer);
    rp_client_free(client);
    rp_test_live_stop(&live);
    (void)unlink(path);
}

static void items_that_wait_for_a_chunk_name_the_connection(void **state)
{
    const rp_trajectory_writer_options options = {.column = {.history = 2, .chunk_length = 2},
                                                  .unchecked = true};
    rp_client *client = client_of_nobody();
    rp_trajectory_writer *writer = NULL;
    char why[RP_ERROR_TEXT_BYTES];
    rp_error err;

    (void)state;
    assert_ok_err(rp_trajectory_writer_new(client, &options, soon(), &writer, &err), &err);
    assert_ok_err(write_item(writer, "t", &err), &err);
    rp_trajectory_writer_why(writer, why, sizeof why);
    assert_non_null(strstr(why, "1 item is unconfirmed: 127.0.0.1:"));
    rp_trajectory_writer_free(writer);
    rp_client_free(client);
}

RP_TESTS(writer_away)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_that_wait_for_a_chunk_name_the_connection),
        cmocka_unit_test(items_are_taken_while_nobody_listens),
        cmocka_unit_test(a_flush_says_why_items_are_not_sent),
        cmocka_unit_test(a_fresh_writer_leaves_a_dead_shard_out),
        cmocka_unit_test(items_are_taken_while_a_server_is_silent),
        cmocka_unit_test(steps_are_taken_while_nobody_listens),
        cmocka_unit_test(batches_are_taken_while_nobody_listens),
        cmocka_unit_test(items_are_checked_when_the_server_is_back),
        cmocka_unit_test(a_refused_certificate_is_said_by_the_next_item),
        cmocka_unit_test(a_server_that_wants_tls_is_said_by_the_next_item),
        cmocka_unit_test(an_unchecked_item_for_a_server_that_wants_tls_is_refused),
        cmocka_unit_test(a_sampler_of_a_server_that_wants_tls_ends),
        cmocka_unit_test(a_sampler_of_a_frozen_server_ends_after_its_timeout),
        cmocka_unit_test(an_unknown_token_is_said_by_the_next_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
