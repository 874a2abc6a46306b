/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/connection_state.h"

#include <assert.h>
#include <stdio.h>

enum { H2_ENHANCE_YOUR_CALM = 0xb }; /* an error code of HTTP/2 */

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
    rp_h2_terminate(c->h2, H2_ENHANCE_YOUR_CALM, text);
    return false;
}
