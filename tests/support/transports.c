/* SPDX-License-Identifier: Apache-2.0 */
#include "support/transports.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const way_names[RP_TEST_WAYS] = {"tcp",  "in process",    "tls",
                                                    "unix", "shared memory", "three shards"};

static void start_servers(rp_test_transport *t, const char *program)
{
    static char certificate[256], key[256];

    t->server_count = t->way == RP_TEST_SHARDS ? RP_TEST_SHARD_COUNT : 1;
    for (size_t i = 0; i < t->server_count; i++) t->servers[i].program = program;
    if (t->way == RP_TEST_TLS) {
        rp_test_certificates_init(&t->certificates);
        t->identity = rp_test_issue(&t->certificates, "server", "localhost", 9);
        (void)snprintf(certificate, sizeof certificate, "--tls-cert=%s",
                       t->identity.certificate);
        (void)snprintf(key, sizeof key, "--tls-key=%s", t->identity.key);
        t->servers[0].extras[0] = certificate;
        t->servers[0].extras[1] = key;
    }
    for (size_t i = 0; i < t->server_count; i++) rp_test_process_start(&t->servers[i]);
}

static void write_addresses(const rp_test_transport *t, char *text, size_t size)
{
    size_t n = 0;

    if (t->way == RP_TEST_UNIX || t->way == RP_TEST_SHARED) {
        (void)snprintf(text, size, "unix:%s", t->servers[0].path);
        return;
    }
    for (size_t i = 0; i < t->server_count; i++)
        n += (size_t)snprintf(text + n, size - n, "%s127.0.0.1:%d", i > 0 ? "," : "",
                              t->servers[i].port);
}

void rp_test_transport_open(rp_test_transport *t, rp_test_way way, const char *program)
{
    rp_client_options options = {.alloc = &t->alloc, .seed = 11 + (uint64_t)way};
    char addresses[256];

    *t = (rp_test_transport){.way = way, .name = way_names[way]};
    atomic_store(&t->oom.left, RP_TEST_OOM_UNLIMITED);
    t->alloc = rp_test_oom_allocator(&t->oom);
    if (way == RP_TEST_LOCAL) {
        rp_store_options store = {.alloc = &t->alloc, .seed = 7};

        assert_ok_err(rp_store_new(&store, &t->store, &t->err), &t->err);
        assert_ok_err(rp_client_local(t->store, &options, &t->client, &t->err), &t->err);
        return;
    }
    start_servers(t, program);
    options.shared_memory_off = way == RP_TEST_UNIX;
    if (way == RP_TEST_TLS) options.ca_file = t->certificates.ca;
    write_addresses(t, addresses, sizeof addresses);
    assert_ok_err(rp_client_new(addresses, &options, &t->client, &t->err), &t->err);
}

void rp_test_transport_close(rp_test_transport *t)
{
    if (!t->failed) {
        rp_test_drop_tables(t);
        rp_client_free(t->client);
        rp_store_free(t->store);
        assert_int_equal(atomic_load(&t->oom.live), 0);
    }
    for (size_t i = 0; i < t->server_count; i++) {
        if (t->servers[i].pid != 0 && !t->failed) rp_test_process_stop(&t->servers[i]);
        rp_test_process_forget(&t->servers[i]);
    }
    if (t->way == RP_TEST_TLS) rp_test_certificates_deinit(&t->certificates);
}

static rp_test_transport transports[RP_TEST_WAYS];
static bool is_wanted[RP_TEST_WAYS];
static const char *the_program;

typedef struct run {
    rp_test_transport *transport;
    const rp_test_case *of;
    char name[160];
} run;

static int open_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < RP_TEST_WAYS; i++)
        if (is_wanted[i]) rp_test_transport_open(&transports[i], (rp_test_way)i, the_program);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < RP_TEST_WAYS; i++)
        if (is_wanted[i]) rp_test_transport_close(&transports[i]);
    return 0;
}

static void run_one(void **state)
{
    const run *r = *state;
    bool had_failed = r->transport->failed;

    r->transport->failed = true;
    r->of->run(r->transport);
    rp_test_drop_tables(r->transport);
    r->transport->failed = had_failed;
}

int rp_test_over_transports(const char *program, const rp_test_case *cases, size_t count)
{
    const char *only = getenv("RP_TEST_WAY");
    struct CMUnitTest *tests = calloc(RP_TEST_WAYS * count, sizeof *tests);
    run *runs = calloc(RP_TEST_WAYS * count, sizeof *runs);
    size_t n = 0;
    int failed;

    if (tests == NULL || runs == NULL) return 1;
    the_program = program;
    for (size_t i = 0; i < RP_TEST_WAYS; i++) {
        is_wanted[i] = only == NULL || strcmp(only, way_names[i]) == 0;
        for (size_t k = 0; is_wanted[i] && k < count; k++) {
            if (cases[k].ways != 0 && (cases[k].ways >> i & 1) == 0) continue;
            runs[n] = (run){.transport = &transports[i], .of = &cases[k]};
            (void)snprintf(runs[n].name, sizeof runs[n].name, "%s: %s", way_names[i],
                           cases[k].name);
            tests[n] = (struct CMUnitTest){
                .name = runs[n].name, .test_func = run_one, .initial_state = &runs[n]};
            n++;
        }
    }
    failed = _cmocka_run_group_tests("transports", tests, n, open_all, close_all);
    free(tests);
    free(runs);
    return failed;
}

const char *rp_test_make_table(rp_test_transport *t, const rp_table_options *options)
{
    rp_table_options o = *options;
    char *name = t->tables[t->table_count];

    assert_true(t->table_count < RP_TEST_MAX_TABLES);
    (void)snprintf(name, sizeof t->tables[0], "t%zu", ++t->table_number);
    o.name = name;
    assert_ok_err(rp_client_create_table(t->client, &o, rp_test_soon(), &t->err), &t->err);
    t->table_count++;
    return name;
}

void rp_test_drop_tables(rp_test_transport *t)
{
    while (t->table_count > 0)
        assert_ok_err(rp_client_drop_table(t->client, t->tables[--t->table_count],
                                           rp_test_soon(), &t->err),
                      &t->err);
}

const char *rp_test_bag(rp_test_transport *t)
{
    return rp_test_make_table(t, &(rp_table_options){.limiter = rp_limiter_min_size(1),
                                                     .max_size = 1000000,
                                                     .max_times_sampled = 1});
}

const char *rp_test_replay(rp_test_transport *t)
{
    return rp_test_make_table(t, &(rp_table_options){.limiter = rp_limiter_min_size(1),
                                                     .sampler = {.kind = RP_UNIFORM},
                                                     .max_size = 1000000});
}

rp_client_table rp_test_table_sum(rp_test_transport *t, const char *table)
{
    rp_client_tables *tables = NULL;
    rp_client_table sum = {0};

    assert_ok_err(rp_client_get_tables(t->client, rp_test_soon(), &tables, &t->err), &t->err);
    for (size_t i = 0; i < tables->count; i++) {
        const rp_client_table *one = &tables->tables[i];
        rp_table_info *to = &sum.info;

        if (strcmp(one->info.name, table) != 0) continue;
        sum.shard++;
        sum.total_weight += one->total_weight;
        to->size += one->info.size;
        to->inserts += one->info.inserts;
        to->samples += one->info.samples;
        to->deletes += one->info.deletes;
        to->waiting_inserts += one->info.waiting_inserts;
        to->waiting_samples += one->info.waiting_samples;
        to->max_size = one->info.max_size;
        to->paused = one->info.paused;
        to->sampler = one->info.sampler;
    }
    rp_client_tables_free(tables);
    assert_int_equal(sum.shard, rp_client_shard_count(t->client));
    return sum;
}

void rp_test_await_waiting(rp_test_transport *t, const char *table, size_t count)
{
    for (int ms = 0;; ms++) {
        rp_client_blocked blocked = {0};

        assert_ok_err(
            rp_client_why_blocked(t->client, table, &blocked, rp_test_soon(), &t->err),
            &t->err);
        if (blocked.total >= count) return;
        assert_true(ms < RP_TEST_WAIT_MS);
        (void)usleep(1000);
    }
}

rp_trajectory_writer *rp_test_writer(rp_test_transport *t, int32_t history, int32_t length)
{
    rp_trajectory_writer_options options = {
        .column = {.history = history, .chunk_length = length}};
    rp_trajectory_writer *writer = NULL;

    assert_ok_err(
        rp_trajectory_writer_new(t->client, &options, rp_test_soon(), &writer, &t->err),
        &t->err);
    return writer;
}

rp_ref rp_test_append(rp_test_transport *t, rp_trajectory_writer *writer, int32_t x)
{
    rp_value value = {0, "x", rp_test_int(&x)};
    rp_ref ref;

    assert_ok_err(rp_trajectory_writer_append(writer, &value, 1, 0, &ref, &t->err), &t->err);
    return ref;
}

uint64_t rp_test_create(rp_test_transport *t, rp_trajectory_writer *writer, const char *table,
                        double priority, const rp_ref *refs, size_t count)
{
    rp_item_column column = {.refs = refs, .count = count};
    uint64_t key = 0;

    assert_ok_err(rp_trajectory_writer_create_item(writer,
                                                   &(rp_new_item){table, priority, &column, 1},
                                                   rp_test_soon(), &key, &t->err),
                  &t->err);
    return key;
}

void rp_test_flush(rp_test_transport *t, rp_trajectory_writer *writer)
{
    assert_ok_err(rp_trajectory_writer_flush(writer, 0, rp_test_soon(), &t->err), &t->err);
    assert_int_equal(rp_trajectory_writer_pending(writer), 0);
}

void rp_test_fill_table(rp_test_transport *t, const char *table, int32_t first, size_t count,
                        uint64_t *keys)
{
    rp_trajectory_writer *writer = rp_test_writer(t, 8, 0);

    for (size_t i = 0; i < count; i++) {
        rp_ref ref = rp_test_append(t, writer, first + (int32_t)i);
        uint64_t key = rp_test_create(t, writer, table, 1, &ref, 1);

        if (keys != NULL) keys[i] = key;
    }
    rp_test_flush(t, writer);
    rp_trajectory_writer_free(writer);
}

rp_sampler *rp_test_sampler(rp_test_transport *t, const char *table, int64_t max_samples)
{
    rp_sampler_options options = {
        .table = table, .max_samples = max_samples, .rate_limiter_timeout_ms = -1};
    rp_sampler *sampler = NULL;

    assert_ok_err(rp_sampler_new(t->client, &options, &sampler, &t->err), &t->err);
    return sampler;
}

void rp_test_draw_samples(rp_test_transport *t, const char *table, size_t count, rp_sample *out)
{
    rp_sampler *sampler = rp_test_sampler(t, table, (int64_t)count);
    size_t n;

    for (size_t done = 0; done < count; done += n)
        assert_ok_err(
            rp_sampler_next(sampler, out + done, count - done, &n, rp_test_soon(), &t->err),
            &t->err);
    rp_sampler_free(sampler);
}

void rp_test_take_keys(rp_test_transport *t, const char *table, const uint64_t *keys,
                       size_t count, rp_sample *out)
{
    rp_test_draw_samples(t, table, count, out);
    for (size_t i = 0; i < count; i++) {
        size_t k = i;

        while (k < count && out[k].key != keys[i]) k++;
        if (k == count) fail_msg("item %zu of %zu did not come", i, count);
        rp_sample other = out[i];
        out[i] = out[k];
        out[k] = other;
    }
}

static void expect_bytes(rp_test_transport *t, rp_decoder *decoder, const rp_sample *sample,
                         size_t column, const rp_trajectory_column *c, const void *data)
{
    const rp_trajectory *trajectory = sample->trajectory;
    void *got = malloc(c->bytes + 1);

    assert_non_null(got);
    assert_ok_err(rp_decoder_stack(decoder, &trajectory, 1, column, got, c->bytes, &t->err),
                  &t->err);
    assert_memory_equal(got, data, c->bytes);
    free(got);
}

static void expect_strings(rp_test_transport *t, rp_decoder *decoder, const rp_sample *sample,
                           size_t column, const rp_trajectory_column *c, const rp_string *data)
{
    const rp_trajectory *trajectory = sample->trajectory;
    size_t count = c->bytes / sizeof(rp_string);
    rp_string *got = malloc(c->bytes + 1);

    assert_non_null(got);
    assert_ok_err(
        rp_decoder_stack_strings(decoder, &trajectory, 1, column, got, count, &t->err),
        &t->err);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(got[i].size, data[i].size);
        if (got[i].size > 0) assert_memory_equal(got[i].data, data[i].data, data[i].size);
    }
    free(got);
}

void rp_test_expect(rp_test_transport *t, const rp_sample *sample, size_t column,
                    rp_dtype dtype, rp_shape shape, const void *data)
{
    rp_trajectory_column c;
    rp_decoder *decoder = NULL;

    assert_true(column < rp_trajectory_column_count(sample->trajectory));
    c = rp_trajectory_get_column(sample->trajectory, column);
    assert_int_equal(c.dtype, dtype);
    assert_true(rp_shape_equal(&c.shape, &shape));
    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    if (dtype == RP_STRING)
        expect_strings(t, decoder, sample, column, &c, data);
    else
        expect_bytes(t, decoder, sample, column, &c, data);
    rp_decoder_free(decoder);
}

void rp_test_expect_ints(rp_test_transport *t, const rp_sample *sample, size_t column,
                         const int32_t *rows, size_t count)
{
    rp_test_expect(t, sample, column, RP_INT32, rp_test_shape(1, (int64_t)count, 0), rows);
}

int32_t rp_test_int_of(rp_test_transport *t, const rp_sample *sample)
{
    const rp_trajectory *trajectory = sample->trajectory;
    rp_decoder *decoder = NULL;
    int32_t x = 0;

    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    assert_ok_err(rp_decoder_stack(decoder, &trajectory, 1, 0, &x, sizeof x, &t->err), &t->err);
    rp_decoder_free(decoder);
    return x;
}
