/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/connection_state.h"

#include <assert.h>
#include <stdio.h>

#include "util/error.h"

void rp_connection_touch(rp_connection *c)
{
    if (c->is_dirty || c->state == RP_CONNECTION_CLOSED) return;
    assert(c->worker->dirty != c); /* C2 */
    c->is_dirty = true;
    c->next_dirty = c->worker->dirty;
    c->worker->dirty = c;
}

void rp_connection_refused(rp_connection *c, rp_refusal why)
{
    const char *note = c->link.ssl != NULL ? rp_tls_refusal(c->link.ssl) : NULL;

    assert(why >= 0 && why < RP_REFUSAL_COUNT);
    rp_counter_add(&c->worker->metrics->refusals[why], 1);
    rp_server_log(c->worker->server, RP_LOG_WARNING, "refused", "reason=%s peer=%s%s%s%s",
                  rp_refusal_name(why), c->peer, note != NULL ? " note=\"" : "",
                  note != NULL ? note : "", note != NULL ? "\"" : "");
}

bool rp_connection_charge(rp_connection *c, rp_abuse_kind kind)
{
    rp_worker *worker = c->worker;
    rp_bucket_rate rate = rp_abuse_rate(&worker->limits);
    char text[RP_H2_END_TEXT_BYTES];

    assert(c->h2 != NULL); /* C3 */
    assert(kind >= 0 && kind < RP_ABUSE_KINDS);
    rp_counter_add(&worker->metrics->abuse[kind], 1);
    if (rp_abuse_spend(&c->abuse, &rate, kind, rp_loop_now(worker->loop))) return true;
    rp_connection_refused(c, RP_REFUSED_ABUSE);
    (void)snprintf(text, sizeof text,
                   "abuse budget used up, last by %s: it has %zu events and %zu more a second "
                   "(limits abuse_burst, abuse_per_second)",
                   rp_abuse_name(c->abuse.last), worker->limits.abuse_burst,
                   worker->limits.abuse_per_second);
    rp_h2_terminate(c->h2, RP_H2_ENHANCE_YOUR_CALM, text);
    return false;
}

rp_places rp_worker_places(const rp_worker *worker)
{
    return rp_places_of(worker->limits.connections, worker->server->descriptor_room);
}

rp_status rp_connection_accept(rp_connection *c, rp_refusal *why, rp_error *err)
{
    rp_server *server = c->worker->server;
    rp_places places;

    if (c->is_accepted) return RP_OK;
    assert(c->state != RP_CONNECTION_CLOSED);
    places = rp_worker_places(c->worker);
    if (atomic_fetch_add_explicit(&server->accepted_count, 1, memory_order_relaxed) >=
        places.accepted) {
        atomic_fetch_sub_explicit(&server->accepted_count, 1, memory_order_relaxed);
        *why = places.is_by_descriptors ? RP_REFUSED_DESCRIPTORS : RP_REFUSED_CONNECTIONS;
        return rp_fail(err, RP_UNAVAILABLE,
                       "too many connections: %zu have had calls, as many as %s allows",
                       places.accepted,
                       places.is_by_descriptors ? "the system's limit on open files"
                                                : "the server's limit connections");
    }
    c->is_accepted = true; /* V5 */
    rp_newcomers_leave(&c->worker->newcomers, &c->newcomer);
    return RP_OK;
}
