/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of servers that may fail, and a call that tests whether a client works. */
#ifndef RP_TEST_CLIENT_FIXTURE_H
#define RP_TEST_CLIENT_FIXTURE_H

#include <stdio.h>

#include "reprise/client.h"
#include "support/fixture.h"
#include "support/live_server.h"

/* Longer than any call that should succeed takes. */
static inline rp_wait soon(void)
{
    return rp_wait_ms(20000);
}

static inline rp_client *new_client(const char *address, const rp_client_options *options)
{
    rp_client *client = NULL;
    rp_error err;

    assert_ok_err(rp_client_new(address, options, &client, &err), &err);
    return client;
}

static inline rp_client *client_of(const rp_test_live *live, const rp_client_options *options)
{
    char address[64];

    (void)snprintf(address, sizeof address, "127.0.0.1:%d", live->port);
    return new_client(address, options);
}

/* Requests the tables of all servers and discards them. */
static inline rp_status ask(rp_client *client, rp_wait wait, rp_error *err)
{
    rp_client_tables *tables = NULL;
    rp_status st = rp_client_get_tables(client, wait, &tables, err);

    rp_client_tables_free(tables);
    return st;
}

#endif
