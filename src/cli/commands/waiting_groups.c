/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/waiting_groups.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Returns the reason without the words "12 others wait ahead; " before it, in which the calls
 * of a queue differ. */
static const char *reason_of(const rp_client_waiting *c)
{
    static const char *const ends[] = {" others wait ahead; ", " other waits ahead; "};

    for (size_t i = 0; i < 2; i++) {
        const char *at = strstr(c->waiting.why, ends[i]);

        if (at != NULL) return at + strlen(ends[i]);
    }
    return c->waiting.why;
}

static bool same_client(const rp_client_waiting *a, const rp_client_waiting *b)
{
    return a->client_id == b->client_id && strcmp(a->client, b->client) == 0;
}

static const rp_client_waiting *longer(const rp_client_waiting *a, const rp_client_waiting *b)
{
    return b->waiting.waiting_ns > a->waiting.waiting_ns ? b : a;
}

static size_t find_group(rp_waiting_groups *g, const rp_client_waiting *c)
{
    const char *reason = reason_of(c);
    size_t i;

    for (i = 0; i < g->group_count; i++) {
        const rp_client_waiting *first = g->groups[i].first;

        if (first->shard == c->shard && first->waiting.is_insert == c->waiting.is_insert &&
            strcmp(first->table, c->table) == 0 && strcmp(g->groups[i].reason, reason) == 0)
            return i;
    }
    g->groups[i] = (rp_waiting_group){.first = c, .reason = reason};
    g->group_count++;
    return i;
}

static rp_waiter *find_waiter(rp_waiting_groups *g, size_t group, const rp_client_waiting *c)
{
    rp_waiter *w = g->waiters;

    for (; w < g->waiters + g->waiter_count; w++)
        if (w->group == group && same_client(w->first, c)) return w;
    *w = (rp_waiter){.first = c, .group = group};
    g->waiter_count++;
    g->groups[group].clients++;
    return w;
}

static int compare(const void *a, const void *b)
{
    int64_t left = ((const rp_waiter *)a)->first->waiting.waiting_ns;
    int64_t right = ((const rp_waiter *)b)->first->waiting.waiting_ns;

    return (left < right) - (left > right);
}

void rp_waiting_groups_make(rp_waiting_groups *g, const rp_client_waiting *calls, size_t count)
{
    assert(count <= RP_MOST_WAITING);
    g->group_count = g->waiter_count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t group = find_group(g, &calls[i]);
        rp_waiter *w = find_waiter(g, group, &calls[i]);

        g->groups[group].calls++;
        g->groups[group].first = longer(g->groups[group].first, &calls[i]);
        w->calls++;
        w->first = longer(w->first, &calls[i]);
    }
    qsort(g->waiters, g->waiter_count, sizeof *g->waiters, compare);
}
