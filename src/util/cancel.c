/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant C1: the links of a token form a doubly linked list, headed by `links`. */
#include "util/cancel.h"

#include <assert.h>

#include "util/mem.h"
#include "util/mutex.h"

struct rp_cancel {
    rp_mutex mu; /* rank 50 */
    bool fired RP_GUARDED_BY(mu);
    rp_cancel_link *links RP_GUARDED_BY(mu);
};

rp_status rp_cancel_new(rp_cancel **out)
{
    rp_cancel *c = rp_alloc_zero(rp_allocator_default(), sizeof *c);

    if (c == NULL) return RP_NO_RESOURCE;
    rp_mutex_init(&c->mu, RP_RANK_CANCEL);
    *out = c;
    return RP_OK;
}

void rp_cancel_free(rp_cancel *c)
{
    if (c == NULL) return;
    assert(c->links == NULL); /* no call uses it */
    rp_mutex_deinit(&c->mu);
    rp_release(rp_allocator_default(), c, sizeof *c);
}

void rp_cancel_fire(rp_cancel *c)
{
    rp_mutex_lock(&c->mu);
    c->fired = true;
    for (rp_cancel_link *link = c->links; link != NULL; link = link->next) link->on_fire(link);
    rp_mutex_unlock(&c->mu);
}

void rp_cancel_join(rp_cancel *c, rp_cancel_link *link)
{
    if (c == NULL) return;
    assert(link->on_fire != NULL);
    rp_mutex_lock(&c->mu);
    assert(c->links != link);
    link->prev = NULL;
    link->next = c->links;
    if (link->next != NULL) link->next->prev = link;
    c->links = link;
    if (c->fired) link->on_fire(link);
    rp_mutex_unlock(&c->mu);
}

void rp_cancel_part(rp_cancel *c, rp_cancel_link *link)
{
    if (c == NULL) return;
    rp_mutex_lock(&c->mu);
    assert(link->prev == NULL ? c->links == link : link->prev->next == link);
    assert(link->next == NULL || link->next->prev == link);
    *(link->prev == NULL ? &c->links : &link->prev->next) = link->next;
    if (link->next != NULL) link->next->prev = link->prev;
    rp_mutex_unlock(&c->mu);
}
