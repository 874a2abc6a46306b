/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/connection_state.h"

#include <assert.h>

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

    assert(kind >= 0 && kind < RP_ABUSE_KINDS);
    rp_counter_add(&worker->metrics->abuse[kind], 1);
    if (rp_abuse_spend(&c->abuse, &rate, kind, rp_loop_now(worker->loop))) return true;
    rp_connection_refused(c, RP_REFUSED_ABUSE);
    return false;
}
