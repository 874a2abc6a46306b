/* SPDX-License-Identifier: Apache-2.0 */
/* A store with a client in this process, for tests of adders: the items that an adder has made
 * are read back in the order in which they were made. */
#ifndef RP_TEST_ADDER_RIG_H
#define RP_TEST_ADDER_RIG_H

#include <stdio.h>
#include <string.h>

#include "reprise/rl/adder.h"
#include "reprise/server.h"
#include "support/unit.h"

enum { RP_TEST_ITEM_COLUMNS = 8 };

/* A store with the tables "first" and "second". */
typedef struct rp_test_adder {
    rp_store *store;
    rp_server *server; /* NULL: the client is one of the store itself */
    rp_client *client;
    rp_table *tables[2];
    rp_decoder *decoder;
    rp_adder *adder;
    rp_error err;
} rp_test_adder;

/* Makes the store; `options` gives the signature of the tables and may be NULL. */
static inline void rp_test_adder_store(rp_test_adder *t, const rp_adder_options *options)
{
    rp_table_options table = {.sampler = {RP_FIFO, 0},
                              .remover = {RP_FIFO, 0},
                              .limiter = rp_limiter_min_size(1),
                              .max_size = 1000000,
                              .max_times_sampled = 1};

    memset(t, 0, sizeof *t);
    assert_ok_err(rp_store_new(NULL, &t->store, &t->err), &t->err);
    if (options != NULL)
        assert_ok_err(rp_adder_signature(options, &table.signature, &t->err), &t->err);
    for (size_t i = 0; i < 2; i++) {
        table.name = i == 0 ? "first" : "second";
        assert_ok_err(rp_store_add_table(t->store, &table, &t->tables[i], &t->err), &t->err);
    }
    rp_signature_unref(table.signature);
    assert_ok_err(rp_client_local(t->store, NULL, &t->client, &t->err), &t->err);
    assert_ok(rp_decoder_new(rp_allocator_default(), 1 << 20, &t->decoder));
}

/* Puts a server on loopback between the client and the store. */
static inline void rp_test_adder_serve(rp_test_adder *t)
{
    const char *addresses[] = {"127.0.0.1:0"};
    rp_server_options options = {.addresses = addresses, .address_count = 1, .loops = 1};
    char address[32];

    assert_ok_err(rp_server_start(t->store, &options, &t->server, &t->err), &t->err);
    rp_client_free(t->client);
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", rp_server_port(t->server));
    assert_ok_err(rp_client_new(address, NULL, &t->client, &t->err), &t->err);
}

/* Makes the store, and an adder that writes to "first" unless the options name tables. */
static inline void rp_test_adder_open(rp_test_adder *t, rp_adder_options options, bool served)
{
    rp_adder_table table = {.name = "first"};

    if (options.table_count == 0) {
        options.tables = &table;
        options.table_count = 1;
    }
    rp_test_adder_store(t, &options);
    if (served) rp_test_adder_serve(t);
    assert_ok_err(rp_adder_new(t->client, &options, rp_wait_forever(), &t->adder, &t->err),
                  &t->err);
}

static inline void rp_test_adder_close(rp_test_adder *t)
{
    rp_adder_free(t->adder);
    rp_client_free(t->client);
    rp_server_free(t->server);
    rp_decoder_free(t->decoder);
    rp_store_free(t->store);
}

/* One item, decoded. */
typedef struct rp_test_item {
    double priority;
    size_t column_count;
    rp_trajectory_column columns[RP_TEST_ITEM_COLUMNS];
    void *data[RP_TEST_ITEM_COLUMNS]; /* freed by rp_test_item_deinit() */
} rp_test_item;

/* Takes the oldest item of a table. Returns false if there is none. */
static inline bool rp_test_adder_take(rp_test_adder *t, size_t table, rp_test_item *out)
{
    rp_sample sample;
    size_t drawn = 0;
    rp_status st = rp_table_sample(t->tables[table], &(rp_sample_options){.count = 1}, &sample,
                                   &drawn, rp_wait_none(), &t->err);

    if (st == RP_DEADLINE) return false;
    assert_ok_err(st, &t->err);
    assert_int_equal(drawn, 1);
    memset(out, 0, sizeof *out);
    out->priority = sample.priority;
    out->column_count = rp_trajectory_column_count(sample.trajectory);
    assert_true(out->column_count <= RP_TEST_ITEM_COLUMNS);
    for (size_t i = 0; i < out->column_count; i++) {
        const rp_trajectory *one = sample.trajectory;
        out->columns[i] = rp_trajectory_get_column(one, i);
        out->data[i] = malloc(out->columns[i].bytes);
        assert_non_null(out->data[i]);
        assert_ok_err(rp_decoder_stack(t->decoder, &one, 1, i, out->data[i],
                                       out->columns[i].bytes, &t->err),
                      &t->err);
    }
    rp_samples_release(&sample, 1);
    return true;
}

static inline void rp_test_item_deinit(rp_test_item *item)
{
    for (size_t i = 0; i < item->column_count; i++) free(item->data[i]);
}

#endif
