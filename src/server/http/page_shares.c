/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/page_shares.h"

#include <assert.h>

static rp_page_share *find(rp_page_share *share, uint64_t key)
{
    while (share != NULL && share->key != key) share = share->next;
    return share;
}

/* Finds a share in a list, or adds it. NULL if there is no memory. */
static rp_page_share *find_or_add(rp_page_shares *shares, rp_page_share **list, uint64_t key)
{
    rp_page_share *share = find(*list, key);

    if (share != NULL) return share;
    share = rp_alloc_zero(shares->alloc, sizeof *share);
    if (share == NULL) return NULL;
    share->key = key;
    share->turn = shares->turns++;
    share->next = *list;
    if (share->next != NULL) share->next->prev = share;
    *list = share;
    return share;
}

static bool is_empty(const rp_page_share *share)
{
    return share->first == NULL && share->oldest == NULL &&
           share->amounts[RP_SHARE_WEIGHT] == 0 && share->amounts[RP_SHARE_PAGES] == 0;
}

/* Frees a connection that holds nothing, and then its peer (S3). */
static void free_empty(rp_page_shares *shares, rp_page_share *share)
{
    while (share != NULL && is_empty(share)) {
        rp_page_share *peer = share->peer;
        rp_page_share **list = peer != NULL ? &peer->first : &shares->first;

        *(share->prev != NULL ? &share->prev->next : list) = share->next;
        if (share->next != NULL) share->next->prev = share->prev;
        rp_release(shares->alloc, share, sizeof *share);
        share = peer;
    }
}

static void add(rp_page_share *share, rp_page_measure measure, size_t amount)
{
    for (; share != NULL; share = share->peer) share->amounts[measure] += amount; /* S2 */
}

static void subtract(rp_page_share *share, rp_page_measure measure, size_t amount)
{
    for (; share != NULL; share = share->peer) {
        assert(share->amounts[measure] >= amount); /* S2 */
        share->amounts[measure] -= amount;
    }
}

bool rp_page_shares_enter(rp_page_shares *shares, rp_page_entry *entry, uint64_t peer,
                          uint64_t connection, size_t body_bytes)
{
    rp_page_share *parent = find_or_add(shares, &shares->first, peer), *share;

    if (parent == NULL) return false;
    share = find_or_add(shares, &parent->first, connection);
    if (share == NULL) {
        free_empty(shares, parent);
        return false;
    }
    share->peer = parent;
    *entry = (rp_page_entry){
        .older = share->newest, .share = share, .weight = RP_SHARE_REQUEST_BYTES + body_bytes};
    *(share->newest != NULL ? &share->newest->younger : &share->oldest) = entry; /* S1 */
    share->newest = entry;
    add(share, RP_SHARE_WEIGHT, entry->weight);
    return true;
}

void rp_page_shares_leave(rp_page_shares *shares, rp_page_entry *entry)
{
    rp_page_share *share = entry->share;

    assert(share != NULL && share->oldest != NULL); /* S1 */
    *(entry->older != NULL ? &entry->older->younger : &share->oldest) = entry->younger;
    *(entry->younger != NULL ? &entry->younger->older : &share->newest) = entry->older;
    subtract(share, RP_SHARE_WEIGHT, entry->weight);
    *entry = (rp_page_entry){.share = NULL};
    free_empty(shares, share);
}

void rp_page_share_add_page(rp_page_share *share)
{
    add(share, RP_SHARE_PAGES, 1);
}

void rp_page_shares_drop_page(rp_page_shares *shares, rp_page_share *share)
{
    subtract(share, RP_SHARE_PAGES, 1);
    free_empty(shares, share);
}

/* The share of a list that has most; NULL if none has anything. */
static rp_page_share *most_of(rp_page_share *list, rp_page_measure measure)
{
    rp_page_share *most = NULL;

    for (rp_page_share *s = list; s != NULL; s = s->next)
        if (s->amounts[measure] > (most != NULL ? most->amounts[measure] : 0)) most = s;
    return most;
}

/* Whether a client that has `own` gets `amount` from one that has more, so that it has no more
 * than that one afterwards; or has nothing. */
static bool may_take(const rp_page_share *own, const rp_page_share *from,
                     rp_page_measure measure, size_t amount)
{
    size_t has = own != NULL ? own->amounts[measure] : 0;

    return own != from && (has == 0 || has + amount < from->amounts[measure]);
}

rp_page_share *rp_page_shares_richest(const rp_page_shares *shares, uint64_t peer,
                                      uint64_t connection, rp_page_measure measure,
                                      size_t amount)
{
    rp_page_share *own = find(shares->first, peer);
    rp_page_share *most = most_of(shares->first, measure);

    if (most == NULL) return NULL;
    if (may_take(own, most, measure, amount)) return most_of(most->first, measure);
    if (own == NULL) return NULL;
    /* The peer has its part: its connections divide it. */
    most = most_of(own->first, measure);
    own = find(own->first, connection);
    return most != NULL && may_take(own, most, measure, amount) ? most : NULL;
}

bool rp_page_share_has_less(const rp_page_share *a, const rp_page_share *b,
                            rp_page_measure measure)
{
    assert(a->peer != NULL && b->peer != NULL);
    if (a->peer != b->peer) return a->peer->amounts[measure] < b->peer->amounts[measure];
    return a->amounts[measure] < b->amounts[measure];
}

bool rp_page_share_is_before(const rp_page_share *a, const rp_page_share *b)
{
    assert(a->peer != NULL && b->peer != NULL);
    return a->peer != b->peer ? a->peer->turn < b->peer->turn : a->turn < b->turn;
}

/* The share of a list whose turn is next. */
static rp_page_share *next_of(rp_page_share *list)
{
    rp_page_share *next = list;

    for (rp_page_share *s = list; s != NULL; s = s->next)
        if (s->turn < next->turn) next = s;
    return next;
}

rp_page_share *rp_page_shares_next(const rp_page_shares *shares)
{
    rp_page_share *peer = next_of(shares->first);

    return peer != NULL ? next_of(peer->first) : NULL;
}

void rp_page_shares_serve(rp_page_shares *shares, rp_page_share *share)
{
    assert(share->peer != NULL);
    share->turn = shares->turns++;
    share->peer->turn = shares->turns++;
}
