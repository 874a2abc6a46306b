/* SPDX-License-Identifier: Apache-2.0 */
/* Asks servers why calls on a table wait, for the texts of samplers and writers. */
#include <assert.h>
#include <stdio.h>

#include "client/client.h"
#include "client/unary.h"
#include "util/clock.h"
#include "util/mem.h"
#include "wire/request_write.h"

enum {
    MOST_ASK_MS = 500, /* a server that has a connection answers at once */
    LEAST_ASK_MS = 50,
    ASK_SHARE = 10, /* of a wait: the question makes the call end that much later */
    NS_PER_MS = 1000000,
    MOST_CALLS = 256
};

/* Writes why a call waits; over several shards, after the address of its server. */
static void write_reason(const rp_client *client, const rp_client_waiting *call, char *text,
                         size_t size)
{
    if (rp_client_shard_count(client) > 1)
        (void)snprintf(text, size, "%s: %s", rp_client_shard_address(client, call->shard),
                       call->waiting.why);
    else
        (void)snprintf(text, size, "%s", call->waiting.why);
}

int64_t rp_client_ask_ms(int64_t waited_ns)
{
    int64_t ms = waited_ns / NS_PER_MS / ASK_SHARE;

    if (ms < LEAST_ASK_MS) return LEAST_ASK_MS;
    return ms < MOST_ASK_MS ? ms : MOST_ASK_MS;
}

void rp_client_ask_why(rp_client *client, const rp_why_question *question, char *text,
                       size_t size)
{
    rp_client_blocked blocked = {.capacity = MOST_CALLS};
    const rp_wait wait = rp_wait_ms(rp_client_ask_ms(question->waited_ns));
    rp_error err = {0};
    rp_status st;

    text[0] = '\0';
    blocked.calls = rp_alloc_array(&client->alloc, MOST_CALLS, sizeof *blocked.calls);
    if (blocked.calls == NULL) return;
    st = rp_client_why_blocked(client, question->table, &blocked, wait, &err);
    for (size_t i = 0; st == RP_OK && text[0] == '\0' && i < blocked.count; i++) {
        const rp_client_waiting *call = &blocked.calls[i];

        if (call->waiting.is_insert == question->is_insert &&
            (question->shard == RP_ANY_SHARD || question->shard == call->shard))
            write_reason(client, call, text, size);
    }
    if (st == RP_DEADLINE || st == RP_UNAVAILABLE || st == RP_NOT_FOUND)
        (void)snprintf(text, size, "%s", err.text);
    rp_release(&client->alloc, blocked.calls, MOST_CALLS * sizeof *blocked.calls);
}

bool rp_client_responds(rp_client *client, const char *table, size_t shard, int64_t since_ns,
                        rp_wait wait, char *text, size_t size)
{
    rp_unary_request request = {RP_CLIENT_REPLAY "WhyBlocked", NULL, true, false, 0};
    rp_wait limit = rp_wait_ms(MOST_ASK_MS);
    rp_client_live *live = NULL;
    bool responds = true;
    rp_unary *u = NULL;
    rp_buf message;

    assert(client->store == NULL);
    if (rp_client_get_live(client, &live, NULL) != RP_OK) return true;
    if (limit.until_ns < wait.until_ns) wait.until_ns = limit.until_ns;
    rp_buf_init(&message, &client->alloc);
    rp_wire_write_why_blocked(&message, table, 1);
    request.message = &message;
    if (!message.bad && rp_unary_call(client, &request, shard, 1, wait, &u, NULL) == RP_OK) {
        const rp_unary_response *r = rp_unary_response_of(u, 0);

        if (r->status == RP_DEADLINE || r->status == RP_UNAVAILABLE)
            responds = rp_channel_heard_ns(live->channels[shard]) >= since_ns;
        if (!responds && r->status == RP_DEADLINE && r->is_reached)
            (void)snprintf(text, size,
                           "%.80s has not responded for %lld ms: is it stopped or overloaded?",
                           rp_client_shard_address(client, shard),
                           (long long)((rp_now_ns() - since_ns) / 1000000));
        else if (!responds)
            (void)snprintf(text, size, "%s", r->text);
    }
    rp_unary_free(u);
    rp_buf_deinit(&message);
    return responds;
}
