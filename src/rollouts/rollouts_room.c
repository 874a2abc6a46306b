/* SPDX-License-Identifier: Apache-2.0 */
/* Limits, eviction, and why an operation has to wait. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rollouts/rollouts_calls.h"
#include "util/error.h"

uint64_t rp_rollout_may_begin(const rp_rollouts *r)
{
    const rp_rollout_options *o = r->options;
    uint64_t bound;

    if (o->groups_per_version == 0) return UINT64_MAX;
    if (__builtin_mul_overflow((uint64_t)(o->max_staleness + r->version - o->first_version + 1),
                               o->groups_per_version, &bound))
        return UINT64_MAX;
    return bound;
}

/* The first version at which `begun` groups may have begun. */
static int64_t version_for(const rp_rollouts *r, uint64_t begun)
{
    const rp_rollout_options *o = r->options;
    uint64_t steps = (begun + o->groups_per_version - 1) / o->groups_per_version;

    return (int64_t)steps - 1 - o->max_staleness + o->first_version;
}

/* Writes what the groups that a consumer cannot draw yet lack, or nothing if there is none. */
static void write_unready(const rp_rollouts *r, size_t consumer, char *text, size_t size)
{
    const rp_rollout_queue *queue = &r->queues[consumer];
    const rp_rollout_consumer *c = &r->options->consumers[consumer];
    uint64_t others = r->group_count - queue->ready.count - queue->leased - queue->done;
    uint64_t partial = r->counts[RP_ROLLOUT_RESERVED] + r->counts[RP_ROLLOUT_PARTIAL];
    size_t used;

    text[0] = '\0';
    if (others == 0) return;
    if (partial > others) partial = others;
    if (partial > 0)
        (void)snprintf(text, size, "; groups without all items: %" PRIu64, partial);
    if (others == partial) return;
    used = strlen(text);
    (void)snprintf(text + used, size - used,
                   "; groups that lack one of its columns: %" PRIu64 " (it needs",
                   others - partial);
    for (size_t i = 0; i < c->column_count; i++) {
        used = strlen(text);
        (void)snprintf(text + used, size - used, "%s '%.*s'", i > 0 ? "," : "",
                       (int)(c->columns[i].size < 64 ? c->columns[i].size : 64),
                       c->columns[i].data);
    }
    used = strlen(text);
    (void)snprintf(text + used, size - used, ")");
}

static void say_unready(const rp_rollouts *r, rp_string consumer, const rp_rollout_waiting *why,
                        rp_error *err)
{
    rp_string name = rp_rollout_name_text(r->name);
    char more[160] = "";

    for (size_t i = 0; i < r->options->consumer_count; i++)
        if (rp_rollout_equal(r->options->consumers[i].name, consumer))
            write_unready(r, i, more, sizeof more);
    (void)rp_fail(err, RP_DEADLINE,
                  "rollouts '%.*s': %" PRIu64 " %s ready for consumer '%.*s', the draw "
                  "needs %" PRIu64 "%s",
                  (int)(name.size < 64 ? name.size : 64), name.data, why->have,
                  why->have == 1 ? "group is" : "groups are",
                  (int)(consumer.size < 64 ? consumer.size : 64), consumer.data, why->bound,
                  more);
}

void rp_rollout_say_waiting(const rp_rollouts *r, rp_string consumer,
                            const rp_rollout_waiting *why, rp_error *err)
{
    rp_string name = rp_rollout_name_text(r->name);
    int size = (int)(name.size < 64 ? name.size : 64);

    switch (why->limit) {
    case RP_ROLLOUT_BY_VERSION:
        (void)rp_fail(err, RP_DEADLINE,
                      "rollouts '%.*s': the next group may begin at version %" PRId64
                      ", now %" PRId64 ": %" PRIu64 " %s begun, the bound is %" PRIu64
                      " = (max_staleness + version - first_version + 1) * groups_per_version",
                      size, name.data, why->needs_version, why->version, why->have,
                      why->have == 1 ? "group has" : "groups have", why->bound);
        return;
    case RP_ROLLOUT_BY_GROUPS:
        (void)rp_fail(err, RP_DEADLINE,
                      "rollouts '%.*s': %" PRIu64 " group%s, max_groups is %" PRIu64
                      ": a group must be acknowledged, aborted or expire",
                      size, name.data, why->have, why->have == 1 ? "" : "s", why->bound);
        return;
    case RP_ROLLOUT_BY_BYTES:
        (void)rp_fail(err, RP_DEADLINE,
                      "rollouts '%.*s': %" PRIu64 " bytes and %" PRIu64
                      " more exceed the bound of %" PRIu64
                      ": groups must be acknowledged, aborted or expire; %" PRIu64
                      " are complete",
                      size, name.data, why->have, why->need, why->bound,
                      r->counts[RP_ROLLOUT_COMPLETE] + r->counts[RP_ROLLOUT_LEASED]);
        return;
    case RP_ROLLOUT_BY_READY: say_unready(r, consumer, why, err); return;
    case RP_ROLLOUT_BY_LEASES:
        (void)rp_fail(err, RP_DEADLINE,
                      "rollouts '%.*s': %" PRIu64 " lease%s, the limit is %" PRIu64
                      ": one must be acknowledged, released or expire",
                      size, name.data, why->have, why->have == 1 ? "" : "s", why->bound);
        return;
    case RP_ROLLOUT_NO_LIMIT:
        (void)rp_fail(
            err, RP_DEADLINE,
            "rollouts '%.*s': stale groups are being dropped, or the journal is behind", size,
            name.data);
    }
}

rp_status rp_rollout_must_wait(rp_rollout_work *w, rp_rollout_waiting waiting)
{
    assert(waiting.limit != RP_ROLLOUT_NO_LIMIT && waiting.need > 0);
    waiting.version = w->r->version;
    if (waiting.limit != RP_ROLLOUT_BY_VERSION) waiting.needs_version = waiting.version;
    w->result->waiting = waiting;
    if (w->op->parked != NULL) /* it is tried again and again: the text is made if asked for */
        w->op->parked->waiting = waiting;
    else
        rp_rollout_say_waiting(w->r, w->op->consumer, &waiting, w->err);
    return RP_DEADLINE;
}

/* The bytes up to which an operation may go. */
static uint64_t byte_bound(const rp_rollouts *r, const rp_rollout_room *room)
{
    uint64_t most = r->options->max_bytes;

    return room->begins ? most - most / 4 : most;
}

/* The bytes of all groups that eviction may remove. */
static uint64_t evictable_bytes(const rp_rollouts *r, const rp_rollout_room *room)
{
    uint64_t bytes = r->bytes - r->leased_bytes;

    assert(room->group == NULL || room->group->bytes <= r->bytes);
    if (r->options->full != RP_ROLLOUT_FULL_EVICT) return 0;
    return room->group != NULL && room->group->lease_count == 0 ? bytes - room->group->bytes
                                                                : bytes;
}

static rp_status check_bytes(rp_rollout_work *w, const rp_rollout_room *room)
{
    rp_rollouts *r = w->r;
    uint64_t bound = byte_bound(r, room);
    uint64_t own = room->group != NULL ? room->group->bytes : 0;

    if (room->bytes == 0 || r->bytes + room->bytes <= bound) return RP_OK;
    if (own + room->bytes > bound)
        return rp_fail(w->err, RP_NO_RESOURCE,
                       "the group would have %" PRIu64 " bytes, the bound is %" PRIu64
                       " by max_bytes %" PRIu64,
                       own + room->bytes, bound, r->options->max_bytes);
    if (r->bytes - evictable_bytes(r, room) + room->bytes <= bound) return RP_OK;
    return rp_rollout_must_wait(w, (rp_rollout_waiting){.limit = RP_ROLLOUT_BY_BYTES,
                                                        .have = r->bytes,
                                                        .need = room->bytes,
                                                        .bound = bound});
}

rp_status rp_rollout_check_room(rp_rollout_work *w, const rp_rollout_room *room)
{
    rp_rollouts *r = w->r;
    uint64_t begun = r->group_count + r->acknowledged, most = r->options->max_groups;

    if (room->begins && begun + 1 > rp_rollout_may_begin(r))
        return rp_rollout_must_wait(
            w, (rp_rollout_waiting){.limit = RP_ROLLOUT_BY_VERSION,
                                    .have = begun,
                                    .need = 1,
                                    .bound = rp_rollout_may_begin(r),
                                    .needs_version = version_for(r, begun + 1)});
    /* After max_groups was lowered, several groups have to go. */
    if (room->begins && r->group_count >= most &&
        (r->options->full == RP_ROLLOUT_FULL_WAIT || r->counts[RP_ROLLOUT_LEASED] >= most))
        return rp_rollout_must_wait(w, (rp_rollout_waiting){.limit = RP_ROLLOUT_BY_GROUPS,
                                                            .have = r->group_count,
                                                            .need = 1,
                                                            .bound = most});
    return check_bytes(w, room);
}

/* Evicts the oldest group that may be evicted. */
static void evict(rp_rollout_work *w, const rp_rollout_room *room)
{
    rp_rollouts *r = w->r;
    rp_rollout_group *group = rp_rollout_group_of_turn(rp_rollout_heap_first(&r->oldest));

    if (group != room->group) {
        rp_rollout_remove(w, group, RP_ROLLOUT_EVICTED);
        return;
    }
    rp_rollout_heap_remove(&r->oldest, &group->turn);
    rp_rollout_remove(w, rp_rollout_group_of_turn(rp_rollout_heap_first(&r->oldest)),
                      RP_ROLLOUT_EVICTED);
    rp_rollout_heap_insert(&r->oldest, &group->turn);
}

void rp_rollout_make_room(rp_rollout_work *w, const rp_rollout_room *room)
{
    rp_rollouts *r = w->r;
    uint64_t bound = byte_bound(r, room);

    assert(r->leased_bytes <= r->bytes);
    while (room->begins && r->group_count >= r->options->max_groups) evict(w, room);
    while (room->bytes > 0 && r->bytes + room->bytes > bound) evict(w, room);
}
