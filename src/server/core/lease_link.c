/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/lease_link.h"

#include <assert.h>
#include <sys/socket.h>

#include "net/fd_pass.h"
#include "util/mem.h"

enum {
    HEAD_BYTES = RP_LEASE_MAGIC_BYTES + 2,
    HOLD_BYTES = 8,
    HOLDS = 512, /* read at a time */
    MAX_AUTHORIZATION = RP_AUTH_MAX_TOKEN_BYTES + 32,
    READS_A_TURN = 16,
};

struct rp_lease_link {
    rp_lease *lease; /* NULL: not authorized yet */
    bool is_closing; /* the next number is the count of holds of `call` */
    uint64_t call;
    size_t size; /* bytes that were read and not handled */
    uint8_t bytes[HOLDS * HOLD_BYTES];
};

static_assert(HEAD_BYTES + MAX_AUTHORIZATION < HOLDS * HOLD_BYTES, "a greeting has room");

bool rp_lease_link_begin(rp_connection *c)
{
    rp_server *server = c->worker->server;

    assert(c->lease == NULL); /* N1 */
    if (server->arena == NULL || !rp_fd_is_unix_socket(c->link.fd)) return false;
    c->lease = rp_alloc(&server->alloc, sizeof *c->lease);
    if (c->lease == NULL) {
        rp_connection_refused(c, RP_REFUSED_MEMORY);
        return false;
    }
    c->lease->lease = NULL;
    c->lease->is_closing = false;
    c->lease->size = 0;
    return true;
}

bool rp_lease_link_is_greeting(const rp_connection *c)
{
    return c->lease == NULL || c->lease->lease == NULL;
}

void rp_lease_link_free(rp_connection *c)
{
    if (c->lease == NULL) return;
    rp_lease_end(c->lease->lease);
    rp_release(&c->worker->server->alloc, c->lease, sizeof *c->lease);
    c->lease = NULL;
}

static void put_number(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> (8 * i));
}

static bool welcome(rp_connection *c)
{
    rp_server *server = c->worker->server;
    uint8_t greeting[RP_LEASE_GREETING_BYTES];
    rp_lease *lease = rp_lease_new(&server->leases, server->arena, c->link.fd);

    assert(c->lease->lease == NULL);
    if (lease == NULL) {
        rp_connection_refused(c, RP_REFUSED_MEMORY);
        return false;
    }
    c->lease->lease = lease;
    memcpy(greeting, RP_LEASE_MAGIC, RP_LEASE_MAGIC_BYTES);
    put_number(greeting + 4, RP_LEASE_VERSION, 4);
    put_number(greeting + 8, rp_shared_arena_look(server->arena).reserve_bytes, 8);
    memcpy(greeting + 16, rp_lease_id(lease), RP_LEASE_ID_BYTES);
    return send(c->link.fd, greeting, sizeof greeting, MSG_DONTWAIT | MSG_NOSIGNAL) ==
           (ssize_t)sizeof greeting;
}

/* Handles the greeting of the client, which must have the role to sample. */
static bool greet(rp_connection *c)
{
    rp_lease_link *link = c->lease;
    char authorization[MAX_AUTHORIZATION + 1];
    const rp_credentials shown = {authorization, c->certificate, c->peer};
    rp_gate_result result = {.why = RP_REFUSED_DECODE};
    size_t size;

    if (link->size < HEAD_BYTES) return true;
    size = link->bytes[4] | (size_t)link->bytes[5] << 8;
    if (size <= MAX_AUTHORIZATION && link->size < HEAD_BYTES + size) return true;
    if (size > MAX_AUTHORIZATION || link->size > HEAD_BYTES + size ||
        memchr(link->bytes + HEAD_BYTES, '\0', size) != NULL) {
        rp_connection_refused(c, RP_REFUSED_DECODE);
        return false;
    }
    memcpy(authorization, link->bytes + HEAD_BYTES, size);
    authorization[size] = '\0';
    link->size = 0;
    if (rp_gate_check(c->worker->server->gate, &shown, rp_method_role(RP_METHOD_SAMPLE_SHARED),
                      rp_loop_now(c->worker->loop), &c->memo, &result, NULL) != RP_OK ||
        rp_connection_accept(c, &result.why, NULL) != RP_OK) {
        rp_connection_refused(c, result.why);
        return false;
    }
    return welcome(c);
}

static uint64_t get_number(const uint8_t *at)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < HOLD_BYTES; i++) number |= (uint64_t)at[i] << (8 * i);
    return number;
}

/* Releases the holds that the client has returned. */
static bool take_numbers(rp_connection *c)
{
    rp_lease_link *link = c->lease;
    size_t count = link->size / HOLD_BYTES, used = count * HOLD_BYTES, hold_count = 0;
    uint64_t holds[HOLDS];
    bool ok = true;

    for (size_t i = 0; i < count; i++) {
        uint64_t number = get_number(link->bytes + i * HOLD_BYTES);
        if (link->is_closing) {
            /* Holds that the client returned before the count must be released before it is
             * used. */
            ok &= rp_lease_release(link->lease, holds, hold_count);
            ok &= rp_lease_close_call(link->lease, link->call, number);
            hold_count = 0;
            link->is_closing = false;
        } else if (number >> 63 != 0) {
            link->is_closing = true;
            link->call = number & (UINT64_MAX >> 1);
        } else {
            holds[hold_count++] = number;
        }
    }
    ok &= rp_lease_release(link->lease, holds, hold_count);
    memmove(link->bytes, link->bytes + used, link->size - used);
    link->size -= used;
    assert(link->size < HOLD_BYTES); /* N2 */
    if (!ok) rp_connection_refused(c, RP_REFUSED_DECODE);
    return ok;
}

bool rp_lease_link_read(rp_connection *c)
{
    rp_lease_link *link = c->lease;

    assert(link != NULL && c->state == RP_CONNECTION_LEASE); /* N1 */
    for (int i = 0; i < READS_A_TURN; i++) {
        struct iovec part = {link->bytes + link->size, sizeof link->bytes - link->size};
        size_t moved = 0, room = part.iov_len;
        rp_link_result result = rp_link_read(&c->link, &part, 1, &moved);

        assert(room > 0 && moved <= room); /* N2 */
        if (result == RP_LINK_AGAIN) return true;
        if (result != RP_LINK_OK) return false;
        link->size += moved;
        rp_counter_add(&c->worker->metrics->bytes_read, moved);
        rp_counter_add(&c->client.bytes_in, moved);
        if (!(link->lease != NULL ? take_numbers(c) : greet(c))) return false;
        if (moved < room) return true;
    }
    return true;
}
