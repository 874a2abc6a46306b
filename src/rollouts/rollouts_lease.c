/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: draw, ack, release, renew, expire. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rollouts/rollouts_calls.h"
#include "util/error.h"
#include "util/mem.h"

enum { FIRST_LEASES = 16 };

static size_t lease_size(size_t capacity)
{
    return sizeof(rp_rollout_lease) + capacity * sizeof(rp_rollout_group *);
}

rp_rollout_lease *rp_rollout_lease_new(const rp_rollouts *r, size_t capacity)
{
    rp_rollout_lease *lease = rp_alloc_zero(&r->alloc, lease_size(capacity));

    if (lease != NULL) lease->capacity = capacity;
    return lease;
}

void rp_rollout_lease_free(rp_rollouts *r, rp_rollout_lease *lease)
{
    if (lease != NULL) rp_release(&r->alloc, lease, lease_size(lease->capacity));
}

/* Makes room for one more lease. */
static bool reserve_lease(rp_rollouts *r)
{
    size_t capacity = r->lease_capacity > 0 ? 2 * r->lease_capacity : FIRST_LEASES;

    if (!rp_rollout_heap_reserve(&r->lease_times, &r->alloc, r->lease_count + 1)) return false;
    if (r->lease_count < r->lease_capacity) return true;
    if (!rp_resize_array(&r->alloc, &r->leases, r->lease_capacity, capacity,
                         sizeof(rp_rollout_lease *)))
        return false;
    r->lease_capacity = capacity;
    return true;
}

bool rp_rollout_lease_add(rp_rollouts *r, rp_rollout_lease *lease)
{
    if (!reserve_lease(r)) return false;
    assert(lease->count >= 1 && lease->count <= lease->capacity);
    assert(r->lease_count == 0 || r->leases[r->lease_count - 1]->id < lease->id); /* G8 */
    lease->time.tie = lease->id;
    r->leases[r->lease_count++] = lease; /* G8 */
    rp_rollout_heap_insert(&r->lease_times, &lease->time);
    for (size_t i = 0; i < lease->count; i++) {
        lease->groups[i]->turns[lease->consumer].lease = lease->id;
        rp_rollout_lease_begins(r, lease->groups[i]);
    }
    r->queues[lease->consumer].leased += lease->count;
    return true;
}

/* The index of the first lease whose id is not below `id`. */
static size_t lease_index(const rp_rollouts *r, uint64_t id)
{
    size_t low = 0, high = r->lease_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (r->leases[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static rp_rollout_lease *find_lease(const rp_rollouts *r, uint64_t id)
{
    size_t index = lease_index(r, id);

    return index < r->lease_count && r->leases[index]->id == id ? r->leases[index] : NULL;
}

static bool was_acked(const rp_rollouts *r, uint64_t id)
{
    for (size_t i = 0; i < r->acked_count; i++)
        if (r->acked[i] == id) return true;
    return false;
}

static rp_status no_lease(const rp_rollout_work *w)
{
    if (was_acked(w->r, w->op->lease))
        return rp_fail(w->err, RP_PRECONDITION, "lease %" PRIu64 " was acknowledged",
                       w->op->lease);
    return rp_fail(w->err, RP_NOT_FOUND,
                   "there is no lease %" PRIu64 ": it has expired or was released",
                   w->op->lease);
}

/* The group of a node in the queue of a consumer. */
static rp_rollout_group *group_of(rp_rollout_node *node, size_t consumer)
{
    return (rp_rollout_group *)(void *)((char *)node - offsetof(rp_rollout_group, turns) -
                                        consumer * sizeof(rp_rollout_turn));
}

/* Counts the rows of a column in all items of a group, at most UINT64_MAX. */
static rp_status count_rows(const rp_rollout_work *w, const rp_rollout_group *group,
                            uint64_t *rows)
{
    *rows = 0;
    for (uint32_t i = 0; i < group->size; i++) {
        const rp_rollout_column *column =
            rp_rollout_item_column(&group->items[i]->view, w->op->column);
        rp_string name = rp_rollout_name_text(group->entry->name);
        const rp_shape *shape;

        if (column == NULL)
            return rp_fail(
                w->err, RP_NOT_FOUND, "item %" PRIu32 " of group '%.*s' has no column '%.*s'",
                i, (int)name.size, name.data, (int)w->op->column.size, w->op->column.data);
        shape = &column->tensor.shape;
        if (__builtin_add_overflow(*rows, shape->rank > 0 ? (uint64_t)shape->dims[0] : 1, rows))
            *rows = UINT64_MAX;
    }
    return RP_OK;
}

/* True in `*fits` if the tokens are enough for one more group. */
static rp_status spend(const rp_rollout_work *w, const rp_rollout_group *group, uint64_t *left,
                       bool is_first, bool *fits)
{
    rp_string name = rp_rollout_name_text(group->entry->name);
    uint64_t rows;
    rp_status st;

    *fits = true;
    if (w->op->column.size == 0) return RP_OK;
    st = count_rows(w, group, &rows);
    if (st != RP_OK) return st;
    if (rows > *left && is_first)
        return rp_fail(w->err, RP_PRECONDITION,
                       "group '%.*s' has %" PRIu64 " rows of column '%.*s', more than the "
                       "%" PRIu64 " tokens of the draw",
                       (int)name.size, name.data, rows, (int)w->op->column.size,
                       w->op->column.data, w->op->tokens);
    *fits = rows <= *left;
    if (*fits) *left -= rows;
    return RP_OK;
}

/* Moves groups from the queue, which has enough, to the lease, until the lease or the tokens
 * end. */
static rp_status pick(rp_rollout_work *w, rp_rollout_lease *lease)
{
    rp_rollout_heap *ready = &w->r->queues[lease->consumer].ready;
    uint64_t left = w->op->tokens;
    bool fits = true;

    while (lease->count < lease->capacity && ready->count > 0) {
        rp_rollout_group *group = group_of(rp_rollout_heap_first(ready), lease->consumer);
        rp_status st = spend(w, group, &left, lease->count == 0, &fits);

        if (st != RP_OK) return st;
        if (!fits) return RP_OK;
        rp_rollout_heap_remove(ready, &group->turns[lease->consumer].node);
        lease->groups[lease->count++] = group;
    }
    assert(lease->count >= 1); /* the first group fits, or it is an error */
    return RP_OK;
}

static void put_back(rp_rollouts *r, rp_rollout_lease *lease)
{
    for (size_t i = 0; i < lease->count; i++)
        rp_rollout_heap_insert(&r->queues[lease->consumer].ready,
                               &lease->groups[i]->turns[lease->consumer].node);
}

void rp_rollout_batch_add(rp_rollout_batch *batch, rp_rollout_group *group)
{
    rp_rollout_drawn *drawn = &batch->groups[batch->count++];

    assert(batch->count <= batch->capacity && batch->group_size == group->size);
    drawn->name = group->entry->name;
    rp_refcount_inc(&drawn->name->refs);
    drawn->state = rp_rollout_state(group);
    drawn->first_version = group->first_version;
    drawn->last_version = group->last_version;
    for (uint32_t i = 0; i < group->size; i++) {
        if (group->items[i] == NULL) continue;
        rp_refcount_inc(&group->items[i]->refs);
        drawn->items[i] = &group->items[i]->view;
    }
}

static void finish_draw(rp_rollout_work *w, const rp_rollout_lease *lease,
                        rp_rollout_batch *batch)
{
    rp_rollouts *r = w->r;

    for (size_t i = 0; i < lease->count; i++) {
        int64_t staleness = rp_rollout_staleness_of(r, lease->groups[i]->first_version);

        r->staleness[staleness < RP_ROLLOUT_STALENESS_BUCKETS
                         ? staleness
                         : RP_ROLLOUT_STALENESS_BUCKETS - 1]++;
        rp_rollout_batch_add(batch, lease->groups[i]);
    }
    r->queues[lease->consumer].drawn += lease->count;
    r->next_lease = lease->id + 1;
    batch->lease = lease->id;
    batch->version = r->version;
    batch->expires_ns = lease->time.key;
    w->result->batch = batch;
    w->result->changed = true;
}

/* The error lists the consumers that there are. */
static rp_status no_consumer(rp_rollout_work *w)
{
    const rp_rollout_options *o = w->r->options;
    char names[128] = "";

    for (size_t i = 0; i < o->consumer_count; i++) {
        size_t used = strlen(names);

        (void)snprintf(names + used, sizeof names - used, "%s'%.*s'", i > 0 ? ", " : "",
                       (int)(o->consumers[i].name.size < 64 ? o->consumers[i].name.size : 64),
                       o->consumers[i].name.data);
    }
    return rp_fail(w->err, RP_NOT_FOUND, "there is no consumer '%.*s'; there %s %s",
                   (int)(w->op->consumer.size < 64 ? w->op->consumer.size : 64),
                   w->op->consumer.data, o->consumer_count == 1 ? "is" : "are", names);
}

static rp_status check_draw(rp_rollout_work *w, size_t *consumer)
{
    const rp_rollouts *r = w->r;
    const rp_rollout_options *o = r->options;
    size_t i = 0;

    while (i < o->consumer_count && !rp_rollout_equal(o->consumers[i].name, w->op->consumer))
        i++;
    if (i == o->consumer_count) return no_consumer(w);
    if ((uint64_t)w->op->groups * o->group_size > RP_ROLLOUT_DRAW_ITEMS)
        return rp_fail(w->err, RP_INVALID,
                       "a draw of %" PRIu32 " groups of %" PRIu32
                       " items is above the limit of %d items",
                       w->op->groups, o->group_size, RP_ROLLOUT_DRAW_ITEMS);
    if (w->op->min_groups > o->max_groups)
        return rp_fail(w->err, RP_INVALID,
                       "min_groups is %" PRIu32 ", more than max_groups %" PRIu64
                       ": so many groups are never there",
                       w->op->min_groups, o->max_groups);
    *consumer = i;
    return RP_OK;
}

/* Whether the draw has to wait, in O(1) and without memory: it is tried again and again. */
static rp_status check_wait(rp_rollout_work *w, size_t consumer)
{
    const rp_rollouts *r = w->r;
    uint64_t least = w->op->min_groups > 0 ? w->op->min_groups : 1;
    uint64_t ready = r->queues[consumer].ready.count;

    if (r->lease_count >= RP_ROLLOUT_LEASES)
        return rp_rollout_must_wait(w, (rp_rollout_waiting){.limit = RP_ROLLOUT_BY_LEASES,
                                                            .have = r->lease_count,
                                                            .need = 1,
                                                            .bound = RP_ROLLOUT_LEASES});
    if (ready >= least) return RP_OK;
    return rp_rollout_must_wait(w, (rp_rollout_waiting){.limit = RP_ROLLOUT_BY_READY,
                                                        .have = ready,
                                                        .need = least - ready,
                                                        .bound = least});
}

/* The number of the next lease. It grows with the time, so that rollouts which do not know the
 * numbers that others gave before them under the same name do not give them again. */
static uint64_t next_lease(const rp_rollout_work *w)
{
    uint64_t by_time = (uint64_t)w->op->now_ns / 1000;

    return w->r->next_lease > by_time ? w->r->next_lease : by_time;
}

rp_status rp_rollout_do_draw(rp_rollout_work *w)
{
    rp_rollouts *r = w->r;
    rp_rollout_batch *batch = NULL;
    rp_rollout_lease *lease;
    size_t consumer = 0, most;
    rp_status st = check_draw(w, &consumer);

    if (st == RP_OK) st = check_wait(w, consumer);
    if (st != RP_OK) return st;
    most = r->queues[consumer].ready.count;
    if (most > w->op->groups) most = w->op->groups;
    lease = rp_rollout_lease_new(r, most);
    if (lease == NULL) return rp_fail_memory(w->err, lease_size(most));
    lease->consumer = consumer;
    lease->id = next_lease(w);
    lease->time.key = w->op->now_ns + w->op->ttl_ns;
    st = pick(w, lease);
    if (st == RP_OK) {
        batch = rp_rollout_batch_new(&r->alloc, lease->count, r->options->group_size);
        if (batch == NULL || !rp_rollout_lease_add(r, lease))
            st = rp_fail_memory(w->err, sizeof *batch);
    }
    if (st == RP_OK) {
        finish_draw(w, lease, batch);
        return RP_OK;
    }
    rp_rollout_batch_free(batch);
    put_back(r, lease);
    rp_rollout_lease_free(r, lease);
    return st;
}

/* Ends the lease for one group, which may then be removed. */
static void end_turn(rp_rollout_work *w, rp_rollout_group *group, size_t consumer, bool is_done)
{
    rp_rollouts *r = w->r;
    rp_rollout_turn *turn = &group->turns[consumer];

    assert(turn->lease > 0 && !turn->is_done && turn->node.at == 0);
    turn->lease = 0;
    rp_rollout_lease_ends(r, group);
    if (is_done) {
        rp_rollout_preserve(r, group, false);
        turn->is_done = true;
        group->done_count++;
        r->queues[consumer].done++;
    } else {
        rp_rollout_enqueue(r, group, consumer);
    }
    if (group->lease_count > 0) return;
    if (group->done_count == group->consumer_count) /* G10 */
        rp_rollout_remove(w, group, RP_ROLLOUT_ACKNOWLEDGED);
    else if (rp_rollout_is_stale(r, group->first_version)) /* G9 */
        rp_rollout_remove(w, group, RP_ROLLOUT_STALE);
}

static void end_lease(rp_rollout_work *w, rp_rollout_lease *lease, bool is_done)
{
    rp_rollouts *r = w->r;
    size_t index = lease_index(r, lease->id);

    assert(index < r->lease_count && r->leases[index] == lease);
    assert(r->queues[lease->consumer].leased >= lease->count);
    r->queues[lease->consumer].leased -= lease->count;
    for (size_t i = 0; i < lease->count; i++)
        end_turn(w, lease->groups[i], lease->consumer, is_done);
    r->lease_count--;
    memmove(r->leases + index, r->leases + index + 1,
            (r->lease_count - index) * sizeof(rp_rollout_lease *));
    rp_rollout_heap_remove(&r->lease_times, &lease->time);
    rp_rollout_lease_free(r, lease);
    w->result->releases = true;
    w->result->changed = true;
}

rp_status rp_rollout_do_ack(rp_rollout_work *w)
{
    rp_rollouts *r = w->r;
    rp_rollout_lease *lease = find_lease(r, w->op->lease);

    if (lease == NULL && was_acked(r, w->op->lease)) {
        w->result->outcome = RP_ROLLOUT_REPEATED;
        return RP_OK;
    }
    if (lease == NULL) return no_lease(w);
    r->queues[lease->consumer].acknowledged += lease->count;
    end_lease(w, lease, true);
    r->acked[r->acked_next] = w->op->lease;
    r->acked_next = (r->acked_next + 1) % RP_ROLLOUT_REMEMBERED;
    if (r->acked_count < RP_ROLLOUT_REMEMBERED) r->acked_count++;
    return RP_OK;
}

rp_status rp_rollout_do_release(rp_rollout_work *w)
{
    rp_rollout_lease *lease = find_lease(w->r, w->op->lease);

    if (lease == NULL) return no_lease(w);
    end_lease(w, lease, false);
    return RP_OK;
}

rp_status rp_rollout_do_renew(rp_rollout_work *w)
{
    rp_rollout_lease *lease = find_lease(w->r, w->op->lease);

    if (lease == NULL) return no_lease(w);
    rp_rollout_heap_set_key(&w->r->lease_times, &lease->time, w->op->now_ns + w->op->ttl_ns);
    w->result->changed = true;
    return RP_OK;
}

/* Ends what is over first. Returns the number of groups that have changed; 0: nothing is over.
 */
static size_t expire_one(rp_rollout_work *w)
{
    rp_rollouts *r = w->r;
    rp_rollout_node *node = rp_rollout_heap_first(&r->times);
    rp_rollout_lease *lease;
    size_t count;

    if (node != NULL && node->key <= w->op->now_ns) {
        rp_rollout_remove(
            w, (rp_rollout_group *)(void *)((char *)node - offsetof(rp_rollout_group, time)),
            RP_ROLLOUT_EXPIRED);
        w->result->changed = true;
        return 1;
    }
    node = rp_rollout_heap_first(&r->lease_times);
    if (node == NULL || node->key > w->op->now_ns) return 0;
    lease = (rp_rollout_lease *)(void *)node;
    count = lease->count;
    r->expired_leases++;
    w->result->expired_leases++;
    w->result->expired_lease_groups += count;
    end_lease(w, lease, false);
    return count;
}

rp_status rp_rollout_do_expire(rp_rollout_work *w)
{
    size_t count = rp_rollout_drop_stale(w), more = 1;

    w->result->changed = count > 0;
    for (; more > 0 && count < RP_ROLLOUT_STEP; count += more) more = expire_one(w);
    rp_rollout_find_stale(w->r); /* a stale group may have had a reservation */
    return RP_OK;
}
