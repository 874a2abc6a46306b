/* SPDX-License-Identifier: Apache-2.0 */
/* Every call, on a server over TCP, over a Unix socket and under TLS, and on a store of this
 * process; correct and wrong credentials. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/client.h"
#include "support/certificates.h"
#include "support/fixture.h"
#include "support/live_server.h"
#include "table/spill.h"

typedef enum way { OVER_TCP, OVER_UNIX, OVER_TLS, OVER_NAME, LOCALLY } way;

typedef struct stage {
    way way;
    rp_test_live live;
    rp_test_certificates certificates;
    rp_client *client;
    rp_error err;
} stage;

static void address_of(const stage *s, char *text, size_t size)
{
    if (s->way == OVER_UNIX)
        (void)snprintf(text, size, "unix:%s", s->live.path);
    else if (s->way == OVER_NAME)
        (void)snprintf(text, size, "localhost:%d", s->live.port);
    else
        (void)snprintf(text, size, "127.0.0.1:%d", s->live.port);
}

static void open_client(stage *s, const rp_client_options *options)
{
    char address[128];

    address_of(s, address, sizeof address);
    if (s->way == LOCALLY)
        assert_ok_err(rp_client_local(s->live.store, options, &s->client, &s->err), &s->err);
    else
        assert_ok_err(rp_client_new(address, options, &s->client, &s->err), &s->err);
}

static void open_stage(stage *s, way by)
{
    rp_server_options options = {0};
    rp_client_options mine = {0};
    rp_test_identity identity;

    *s = (stage){.way = by};
    if (by == OVER_TLS) {
        rp_test_certificates_init(&s->certificates);
        identity = rp_test_issue(&s->certificates, "server", "localhost", 9);
        options.security.certificate_file = identity.certificate;
        options.security.key_file = identity.key;
        mine.ca_file = s->certificates.ca;
    }
    rp_test_live_start(&s->live, &options);
    open_client(s, &mine);
}

static void close_stage(stage *s)
{
    rp_client_free(s->client);
    if (s->way == OVER_TLS) rp_test_certificates_deinit(&s->certificates);
    rp_test_live_stop(&s->live);
}

static rp_wait soon(void)
{
    return rp_wait_ms(20000);
}

static const rp_client_table *find(const rp_client_tables *tables, const char *name)
{
    for (size_t i = 0; i < tables->count; i++)
        if (strcmp(tables->tables[i].info.name, name) == 0) return &tables->tables[i];
    return NULL;
}

static void put(stage *s, const char *table, uint64_t key, double priority)
{
    rp_trajectory *t = rp_test_blob_trajectory(&s->live.alloc, key, 1, 100);

    rp_test_put(rp_test_table(s->live.store, table), key, priority, t);
    rp_trajectory_unref(t);
}

/* Expects the error of a table that does not exist, which lists the four of the store. */
static void expect_no_table(stage *s, const char *name)
{
    char text[RP_ERROR_TEXT_BYTES];
    const char *rest;

    (void)snprintf(text, sizeof text,
                   "Priority table %s was not found; the tables are: ", name);
    assert_int_equal(strncmp(s->err.text, text, strlen(text)), 0);
    rest = s->err.text + strlen(text);
    assert_non_null(strstr(rest, "replay"));
    assert_non_null(strstr(rest, "strict"));
}

static void try_tables(stage *s)
{
    rp_client_tables *tables = NULL;
    const rp_client_table *t;

    put(s, "replay", 7, 2.0);
    put(s, "replay", 8, 3.0);
    assert_ok_err(rp_client_get_tables(s->client, soon(), &tables, &s->err), &s->err);
    assert_int_equal(tables->count, 4);
    t = find(tables, "replay");
    assert_non_null(t);
    assert_int_equal(t->shard, 0);
    assert_int_equal(t->info.size, 2);
    assert_int_equal(t->info.inserts, 2);
    assert_int_equal(t->info.max_size, 10000);
    assert_true(t->info.bytes > 0);
    assert_true(t->total_weight == 2.0);
    assert_null(t->info.signature);
    assert_non_null(find(tables, "strict")->info.signature);
    rp_client_tables_free(tables);
    rp_client_tables_free(NULL);
    assert_ok_err(rp_client_get_table(s->client, "strict", soon(), &tables, &s->err), &s->err);
    assert_int_equal(tables->count, 1);
    assert_string_equal(tables->tables[0].info.name, "strict");
    assert_non_null(tables->tables[0].info.signature);
    rp_client_tables_free(tables);
    assert_int_equal(rp_client_get_table(s->client, "strikt", soon(), &tables, &s->err),
                     RP_NOT_FOUND);
    expect_no_table(s, "strikt");
}

static void try_mutate(stage *s)
{
    rp_table *t = rp_test_table(s->live.store, "replay");
    const rp_update updates[] = {{7, 5.0}, {999, 1.0}};
    const rp_update bad = {7, -1.0}, nothing = {7, NAN};
    const uint64_t keys[] = {8, 888};
    rp_sample sample;

    assert_ok_err(rp_client_mutate(s->client, "replay",
                                   &(rp_mutation){.updates = updates,
                                                  .update_count = 2,
                                                  .deletes = keys,
                                                  .delete_count = 2},
                                   soon(), &s->err),
                  &s->err);
    assert_false(rp_test_has_key(t, 8));
    assert_ok(rp_table_peek(t, &(uint64_t){7}, 1, &sample, NULL, NULL));
    assert_true(sample.priority == 5.0);
    rp_samples_release(&sample, 1);
    assert_fails(rp_client_mutate(s->client, "nowhere",
                                  &(rp_mutation){.updates = updates, .update_count = 1}, soon(),
                                  &s->err),
                 RP_NOT_FOUND, &s->err, "nowhere");
    expect_no_table(s, "nowhere");
    assert_fails(rp_client_mutate(s->client, "strict",
                                  &(rp_mutation){.updates = &bad, .update_count = 1}, soon(),
                                  &s->err),
                 RP_INVALID, &s->err, "-1");
    assert_fails(rp_client_mutate(s->client, "replay",
                                  &(rp_mutation){.updates = &nothing, .update_count = 1},
                                  soon(), &s->err),
                 RP_INVALID, &s->err, "item 7 is not a number");
    assert_fails(rp_client_mutate(s->client, NULL,
                                  &(rp_mutation){.updates = &bad, .update_count = 1}, soon(),
                                  &s->err),
                 RP_INVALID, &s->err, "no table");
}

static void try_reset(stage *s)
{
    assert_ok_err(rp_client_reset(s->client, "replay", soon(), &s->err), &s->err);
    assert_int_equal(rp_test_live_info(&s->live, "replay").size, 0);
    assert_fails(rp_client_reset(s->client, "nowhere", soon(), &s->err), RP_NOT_FOUND, &s->err,
                 "nowhere");
}

static void try_checkpoint(stage *s)
{
    char *path = NULL;

    assert_fails(rp_client_checkpoint(s->client, soon(), &path, &s->err), RP_INVALID, &s->err,
                 "checkpointer");
    assert_null(path);
    rp_client_text_free(s->client, NULL);
}

static void try_making(stage *s)
{
    const rp_table_options options = {.name = "new",
                                      .sampler = {RP_PRIORITIZED, 0.5},
                                      .limiter = rp_limiter_ratio(2.0, 4, 8.0),
                                      .max_size = 77};
    const rp_table_alteration change = {.which = RP_ALTER_MAX_SIZE, .max_size = 33};
    const rp_table_alteration recenter = {.which = RP_ALTER_LIMITER | RP_ALTER_RECENTER,
                                          .limiter = {2.0, 1, 0, 40}};

    assert_ok_err(rp_client_create_table(s->client, &options, soon(), &s->err), &s->err);
    assert_int_equal(rp_test_live_info(&s->live, "new").max_size, 77);
    assert_fails(rp_client_create_table(s->client, &options, soon(), &s->err), RP_EXISTS,
                 &s->err, "new");
    assert_ok_err(rp_client_alter_table(s->client, "new", &change, soon(), &s->err), &s->err);
    assert_int_equal(rp_test_live_info(&s->live, "new").max_size, 33);
    assert_float_equal(rp_test_live_info(&s->live, "new").limiter_diff, 0, 0);
    assert_ok_err(rp_client_alter_table(s->client, "new", &recenter, soon(), &s->err), &s->err);
    /* Half-way from 0 to 40, less 2 for the missing item. */
    assert_float_equal(rp_test_live_info(&s->live, "new").limiter_diff, 18, 0);
    assert_ok_err(rp_client_pause_table(s->client, "new", RP_SIDE_INSERTS, soon(), &s->err),
                  &s->err);
    assert_int_equal(rp_test_live_info(&s->live, "new").paused, RP_SIDE_INSERTS);
    assert_ok_err(rp_client_resume_table(s->client, "new", RP_SIDE_INSERTS, soon(), &s->err),
                  &s->err);
    assert_int_equal(rp_test_live_info(&s->live, "new").paused, 0);
    assert_fails(rp_client_pause_table(s->client, "new", 9, soon(), &s->err), RP_INVALID,
                 &s->err, "sides");
    assert_ok_err(rp_client_drop_table(s->client, "new", soon(), &s->err), &s->err);
    assert_null(rp_test_table(s->live.store, "new"));
    assert_fails(rp_client_drop_table(s->client, "new", soon(), &s->err), RP_NOT_FOUND, &s->err,
                 "new");
}

typedef struct drawer {
    rp_table *table;
    rp_cancel *cancel;
} drawer;

static void *draw(void *arg)
{
    const rp_sample_options options = {.count = 1};
    drawer *d = arg;
    rp_sample sample;
    size_t drawn;
    rp_status st = rp_table_sample(d->table, &options, &sample, &drawn,
                                   (rp_wait){RP_FOREVER, d->cancel}, NULL);

    assert_int_equal(st, RP_CANCELLED);
    return NULL;
}

static void try_why(stage *s)
{
    drawer d = {.table = rp_test_table(s->live.store, "queue")};
    rp_client_waiting waiting[4];
    rp_client_blocked blocked = {.calls = waiting, .capacity = 4, .count = 9, .total = 9};
    rp_client_blocked none = {0};
    pthread_t thread;

    assert_ok_err(rp_client_why_blocked(s->client, NULL, &blocked, soon(), &s->err), &s->err);
    assert_int_equal(blocked.count, 0);
    assert_int_equal(blocked.total, 0);
    assert_ok(rp_cancel_new(&d.cancel));
    assert_int_equal(pthread_create(&thread, NULL, draw, &d), 0);
    assert_true(rp_test_live_await(&s->live, "queue", 0, 1));
    assert_ok_err(rp_client_why_blocked(s->client, NULL, &blocked, soon(), &s->err), &s->err);
    assert_int_equal(blocked.count, 1);
    assert_int_equal(blocked.total, 1);
    assert_string_equal(waiting[0].table, "queue");
    assert_false(waiting[0].waiting.is_insert);
    assert_true(waiting[0].waiting.why[0] != '\0');
    assert_ok_err(rp_client_why_blocked(s->client, "queue", &none, soon(), &s->err), &s->err);
    assert_int_equal(none.count, 0);
    assert_int_equal(none.total, 1);
    assert_fails(rp_client_why_blocked(s->client, "nowhere", &none, soon(), &s->err),
                 RP_NOT_FOUND, &s->err, "nowhere");
    rp_cancel_fire(d.cancel);
    (void)pthread_join(thread, NULL);
    rp_cancel_free(d.cancel);
}

static void try_signature(stage *s)
{
    rp_signature *signature = NULL, *again = NULL;

    assert_ok_err(rp_client_signature(s->client, "strict", soon(), &signature, &s->err),
                  &s->err);
    assert_non_null(signature);
    assert_ok_err(rp_client_signature(s->client, "strict", rp_wait_none(), &again, &s->err),
                  &s->err); /* it is known now: nobody is asked */
    assert_ptr_equal(signature, again);
    rp_signature_unref(again);
    rp_client_forget_signature(s->client, "strict");
    assert_ok_err(rp_client_signature(s->client, "strict", soon(), &again, &s->err), &s->err);
    rp_signature_unref(again);
    rp_signature_unref(signature);
    assert_ok_err(rp_client_signature(s->client, "replay", soon(), &signature, &s->err),
                  &s->err);
    assert_null(signature);
    assert_fails(rp_client_signature(s->client, "nowhere", soon(), &signature, &s->err),
                 RP_NOT_FOUND, &s->err, "nowhere");
}

static void try_all(way by)
{
    stage s;

    open_stage(&s, by);
    assert_int_equal(rp_client_shard_count(s.client), 1);
    try_tables(&s);
    try_mutate(&s);
    try_reset(&s);
    try_checkpoint(&s);
    try_making(&s);
    try_why(&s);
    try_signature(&s);
    close_stage(&s);
}

static void every_call_over_tcp(void **state)
{
    (void)state;
    try_all(OVER_TCP);
}

static void every_call_over_a_unix_socket(void **state)
{
    (void)state;
    try_all(OVER_UNIX);
}

static void every_call_under_tls(void **state)
{
    (void)state;
    try_all(OVER_TLS);
}

static void every_call_by_name(void **state)
{
    (void)state;
    try_all(OVER_NAME);
}

static void every_call_on_a_store(void **state)
{
    (void)state;
    try_all(LOCALLY);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void tokens_decide_the_permitted_calls(void **state)
{
    /* "reader" and "boss", as in test_auth.c */
    static const char tokens[] =
        "read eyes sha256:3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30\n"
        "admin ops sha256:A5E7C002443743C5836758C7D1CD8DDEFD9FCF2061DAA0EFAAC683FB99966057\n";
    char path[] = "/tmp/reprise-tokens-XXXXXX";
    rp_server_options options = {.security.tokens_file = path};
    rp_client_tables *tables = NULL;
    stage s = {.way = OVER_TCP};
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    write_file(path, tokens);
    rp_test_live_start(&s.live, &options);
    open_client(&s, NULL);
    assert_int_equal(rp_client_get_tables(s.client, soon(), &tables, &s.err),
                     RP_UNAUTHENTICATED);
    rp_client_free(s.client);
    open_client(&s, &(rp_client_options){.token = "wrong"});
    assert_int_equal(rp_client_get_tables(s.client, soon(), &tables, &s.err),
                     RP_UNAUTHENTICATED);
    rp_client_free(s.client);
    open_client(&s, &(rp_client_options){.token = "reader"});
    assert_ok_err(rp_client_get_tables(s.client, soon(), &tables, &s.err), &s.err);
    rp_client_tables_free(tables);
    assert_int_equal(rp_client_reset(s.client, "replay", soon(), &s.err), RP_DENIED);
    rp_client_free(s.client);
    open_client(&s, &(rp_client_options){.token = "boss"});
    assert_ok_err(rp_client_reset(s.client, "replay", soon(), &s.err), &s.err);
    close_stage(&s);
    (void)unlink(path);
}

static rp_status ask(stage *s, const rp_client_options *options)
{
    rp_client_tables *tables = NULL;
    rp_status st;

    rp_client_free(s->client);
    open_client(s, options);
    st = rp_client_get_tables(s->client, soon(), &tables, &s->err);
    rp_client_tables_free(tables);
    return st;
}

static void client_verifies_the_server_certificate(void **state)
{
    rp_test_certificates others;
    stage s;

    (void)state;
    open_stage(&s, OVER_TLS);
    rp_test_certificates_init(&others);
    assert_fails(ask(&s, &(rp_client_options){.ca_file = others.ca}), RP_UNAVAILABLE, &s.err,
                 "the server's certificate is not signed by what '");
    assert_non_null(strstr(s.err.text, others.ca));
    assert_fails(ask(&s, &(rp_client_options){.tls = true}), RP_UNAVAILABLE, &s.err,
                 "certificate");
    assert_fails(ask(&s, &(rp_client_options){.ca_file = s.certificates.ca,
                                              .server_name = "elsewhere.example"}),
                 RP_UNAVAILABLE, &s.err, "certificate");
    assert_ok_err(
        ask(&s, &(rp_client_options){.ca_file = s.certificates.ca, .server_name = "localhost"}),
        &s.err);
    /* Nor is TLS spoken to who does not speak it, and the other way round. */
    assert_int_equal(ask(&s, NULL), RP_UNAVAILABLE);
    rp_test_certificates_deinit(&others);
    close_stage(&s);
    open_stage(&s, OVER_TCP);
    assert_int_equal(ask(&s, &(rp_client_options){.tls = true, .connect_timeout_ms = 2000}),
                     RP_UNAVAILABLE);
    close_stage(&s);
}

static void client_presents_its_certificate(void **state)
{
    rp_test_certificates c, others;
    rp_test_identity server, client, stranger;
    rp_server_options options = {.security.require_client_certificate = true};
    stage s = {.way = OVER_TCP};

    (void)state;
    rp_test_certificates_init(&c);
    server = rp_test_issue(&c, "server", "localhost", 9);
    client = rp_test_issue(&c, "client", "actor", 5);
    options.security.certificate_file = server.certificate;
    options.security.key_file = server.key;
    options.security.client_ca_file = c.ca;
    rp_test_live_start(&s.live, &options);
    assert_fails(ask(&s, &(rp_client_options){.ca_file = c.ca}), RP_UNAVAILABLE, &s.err,
                 "TLS: the server asks for a client certificate, and none was sent");
    rp_test_certificates_init(&others);
    stranger = rp_test_issue(&others, "client", "actor", 5);
    assert_fails(
        ask(&s, &(rp_client_options){.ca_file = c.ca,
                                     .certificate_file = stranger.certificate,
                                     .key_file = stranger.key}),
        RP_UNAVAILABLE, &s.err,
        "TLS: the server does not accept the client's certificate, whose CA is not in");
    rp_test_certificates_deinit(&others);
    assert_ok_err(ask(&s, &(rp_client_options){.ca_file = c.ca,
                                               .certificate_file = client.certificate,
                                               .key_file = client.key}),
                  &s.err);
    close_stage(&s);
    rp_test_certificates_deinit(&c);
}

static void invalid_options_are_named(void **state)
{
    char token[1024 + 2] = "";
    rp_client *c = NULL;
    rp_error err;

    (void)state;
    assert_fails(rp_client_new("nonsense", NULL, &c, &err), RP_INVALID, &err, "nonsense");
    assert_fails(rp_client_new(NULL, NULL, &c, &err), RP_INVALID, &err, "no addresses");
    assert_fails(rp_client_local(NULL, NULL, &c, &err), RP_INVALID, &err, "no store");
    assert_fails(rp_client_new("a:1", &(rp_client_options){.ca_file = "/nowhere"}, &c, &err),
                 RP_NOT_FOUND, &err, "/nowhere");
    assert_fails(rp_client_new("a:1", &(rp_client_options){.certificate_file = "/x"}, &c, &err),
                 RP_INVALID, &err, "key");
    assert_fails(rp_client_new("a:1", &(rp_client_options){.connect_timeout_ms = -1}, &c, &err),
                 RP_INVALID, &err, "-1");
    assert_fails(rp_client_new("a:1", &(rp_client_options){.retry_max_ms = -1}, &c, &err),
                 RP_INVALID, &err, "-1");
    assert_fails(rp_client_new("a:1", &(rp_client_options){.token = "a\nb"}, &c, &err),
                 RP_INVALID, &err, "the token has the byte 0x0a at position 1: a token is");
    assert_fails(rp_client_new("a:1", &(rp_client_options){.token = "a b"}, &c, &err),
                 RP_INVALID, &err,
                 "the token has a space, 0x20 at position 1: a token is ASCII text from '!' "
                 "to '~', without spaces");
    assert_fails(rp_client_new("a:1", &(rp_client_options){.token = "b\xc3\xa9"}, &c, &err),
                 RP_INVALID, &err, "the token has the byte 0xc3 at position 1");
    memset(token, 'x', sizeof token - 1);
    assert_fails(rp_client_new("a:1", &(rp_client_options){.token = token}, &c, &err),
                 RP_INVALID, &err, "the token has 1025 characters: a token has at most 1024,");
    token[sizeof token - 2] = '\0';
    assert_ok_err(rp_client_new("a:1", &(rp_client_options){.token = token}, &c, &err), &err);
    rp_client_free(c);
    c = NULL;
    assert_fails(rp_client_new("a:1", &(rp_client_options){.token = ""}, &c, &err), RP_INVALID,
                 &err, "the token is empty: give a token");
    assert_fails(rp_client_new("a:1", &(rp_client_options){.spread = (rp_spread)9}, &c, &err),
                 RP_INVALID, &err, "9");
    assert_ok_err(rp_client_new("a:1,unix:/x", NULL, &c, &err), &err);
    assert_int_equal(rp_client_shard_count(c), 2);
    assert_string_equal(rp_client_shard_address(c, 1), "unix:/x");
    rp_client_free(c);
    rp_client_free(NULL);
}

/* What a caller may forget is an error with a text, not a crash. */
static void missing_arguments_are_named(void **state)
{
    const rp_mutation updates = {.update_count = 1}, deletes = {.delete_count = 1};
    rp_table_options table = rp_test_options("t", RP_FIFO, RP_FIFO, 10);
    rp_table_alteration nothing = {.max_size = 3}, unknown = {.which = 1u << 20};
    const char *const no_address[] = {NULL};
    const rp_server_options server = {.addresses = no_address, .address_count = 1};
    rp_trajectory_writer *writer;
    rp_client_tables *tables;
    rp_step_writer *steps;
    rp_sampler *sampler;
    rp_table *t = NULL;
    rp_store *store = NULL;
    rp_client *c = NULL;
    rp_server *s;
    rp_error err;
    rp_wait now = rp_wait_none();

    (void)state;
    assert_ok(rp_store_new(NULL, &store, NULL));
    assert_ok_err(rp_store_add_table(store, &table, &t, &err), &err);
    assert_ok_err(rp_client_local(store, NULL, &c, &err), &err);
    assert_fails(rp_trajectory_writer_new(c, NULL, now, &writer, &err), RP_INVALID, &err,
                 "no options");
    assert_fails(rp_step_writer_new(c, NULL, now, &steps, &err), RP_INVALID, &err,
                 "no options");
    assert_fails(rp_sampler_new(c, NULL, &sampler, &err), RP_INVALID, &err, "no options");
    assert_fails(rp_client_get_table(c, NULL, now, &tables, &err), RP_INVALID, &err,
                 "no table name");
    assert_fails(rp_client_mutate(c, "t", &updates, now, &err), RP_INVALID, &err, "no array");
    assert_fails(rp_client_mutate(c, "t", &deletes, now, &err), RP_INVALID, &err, "no array");
    assert_fails(rp_table_update(t, NULL, 1, NULL, &err), RP_INVALID, &err, "no array");
    assert_fails(rp_table_delete(t, NULL, 1, NULL, &err), RP_INVALID, &err, "no array");
    assert_fails(rp_client_alter_table(c, "t", &nothing, now, &err), RP_INVALID, &err,
                 "nothing is to be altered");
    assert_fails(rp_client_alter_table(c, "t", &unknown, now, &err), RP_INVALID, &err,
                 "not all known");
    assert_fails(rp_server_start(NULL, NULL, &s, &err), RP_INVALID, &err, "no store");
    assert_fails(rp_server_start(store, &server, &s, &err), RP_INVALID, &err, "is NULL");
    rp_client_free(c);
    rp_store_free(store);
}

static rp_status make_one(const rp_allocator *alloc)
{
    rp_client *c = NULL;
    rp_status st =
        rp_client_new("a:1,b:2", &(rp_client_options){.alloc = alloc, .token = "x"}, &c, NULL);

    if (st == RP_OK) rp_client_free(c);
    return st;
}

static void creation_survives_failed_allocations(void **state)
{
    (void)state;
    rp_test_survives_oom(make_one);
}

RP_TESTS(client)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_over_tcp),
        cmocka_unit_test(every_call_over_a_unix_socket),
        cmocka_unit_test(every_call_under_tls),
        cmocka_unit_test(every_call_by_name),
        cmocka_unit_test(every_call_on_a_store),
        cmocka_unit_test(tokens_decide_the_permitted_calls),
        cmocka_unit_test(client_verifies_the_server_certificate),
        cmocka_unit_test(client_presents_its_certificate),
        cmocka_unit_test(invalid_options_are_named),
        cmocka_unit_test(missing_arguments_are_named),
        cmocka_unit_test(creation_survives_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
