/* SPDX-License-Identifier: Apache-2.0 */
/* Reserve, abort, put, update. Each checks and reserves everything first; what follows cannot
 * fail. A put or update is executed twice: first with borrowed columns, to find out whether it
 * fails, has to wait or changes nothing, and then with copies. */
#include <assert.h>
#include <inttypes.h>

#include "rollouts/rollouts_calls.h"
#include "util/error.h"

static rp_status gone(rp_rollout_work *w, const rp_rollout_entry *entry)
{
    w->result->outcome = RP_ROLLOUT_GONE;
    w->result->fate = entry->fate;
    return RP_OK;
}

static rp_status no_memory(rp_rollout_work *w)
{
    return rp_fail_memory(w->err, sizeof(rp_rollout_group));
}

/* What begins with an operation. */
typedef struct beginning {
    rp_rollout_entry *entry; /* that of a removed group, or a new one */
    rp_rollout_group *group; /* NULL: only the entry */
    bool is_new;             /* the entry */
} beginning;

/* Makes an entry, if `known` is NULL, and a group if `with_group`. Changes nothing that can be
 * seen. */
static rp_status prepare(rp_rollout_work *w, rp_rollout_entry *known, bool with_group,
                         beginning *b)
{
    rp_rollouts *r = w->r;

    *b = (beginning){.entry = known, .is_new = known == NULL};
    if (!rp_rollout_reserve(r)) return no_memory(w);
    if (known == NULL) b->entry = rp_rollout_entry_new(r, w->op->group);
    if (b->entry == NULL) return no_memory(w);
    if (with_group) b->group = rp_rollout_group_new(r);
    if (!with_group || b->group != NULL) return RP_OK;
    if (b->is_new) rp_rollout_entry_free(r, b->entry);
    return no_memory(w);
}

static void begin(rp_rollout_work *w, const beginning *b, const rp_rollout_room *room)
{
    assert(b->group != NULL && b->entry->group == NULL);
    assert(room->begins && room->group == NULL);
    if (!b->is_new) rp_rollout_recall(w->r, b->entry); /* before an eviction forgets it */
    rp_rollout_make_room(w, room);
    if (b->is_new) rp_rollout_entry_add(w->r, b->entry);
    rp_rollout_begin(w->r, b->entry, b->group);
}

rp_status rp_rollout_do_reserve(rp_rollout_work *w)
{
    rp_rollouts *r = w->r;
    rp_rollout_entry *entry = rp_rollout_find(r, w->op->group);
    rp_rollout_group *group = entry != NULL ? entry->group : NULL;
    rp_rollout_room room = {.begins = true, .bytes = rp_rollout_group_cost(r)};
    beginning b;
    rp_status st;

    if (group != NULL && group->item_count == group->size)
        return rp_fail(w->err, RP_EXISTS, "group '%.*s' is %s", (int)w->op->group.size,
                       w->op->group.data, rp_rollout_fate_name(rp_rollout_state(group)));
    if (group == NULL) {
        st = rp_rollout_check_room(w, &room);
        if (st == RP_OK) st = prepare(w, entry, true, &b);
        if (st != RP_OK) return st;
        begin(w, &b, &room);
        group = b.group;
    } else if (group->ttl_ns > 0) {
        w->result->outcome = RP_ROLLOUT_REPEATED;
    }
    rp_rollout_set_time(r, group, w->op->ttl_ns, w->op->now_ns + w->op->ttl_ns);
    w->result->fate = rp_rollout_state(group);
    w->result->changed = true;
    return RP_OK;
}

rp_status rp_rollout_do_abort(rp_rollout_work *w)
{
    rp_rollout_entry *entry = rp_rollout_find(w->r, w->op->group);

    if (entry == NULL)
        return rp_fail(w->err, RP_NOT_FOUND, "there is no group '%.*s'", (int)w->op->group.size,
                       w->op->group.data);
    if (entry->group == NULL) return gone(w, entry);
    if (entry->group->lease_count > 0)
        return rp_fail(w->err, RP_PRECONDITION, "group '%.*s' is leased",
                       (int)w->op->group.size, w->op->group.data);
    rp_rollout_remove(w, entry->group, RP_ROLLOUT_ABORTED);
    w->result->fate = RP_ROLLOUT_ABORTED;
    w->result->changed = true;
    return RP_OK;
}

static rp_status check_index(const rp_rollout_work *w)
{
    if (w->op->index < w->r->options->group_size) return RP_OK;
    return rp_fail(w->err, RP_INVALID,
                   "the index of an item is %" PRIu32 ", a group has %" PRIu32 " items",
                   w->op->index, w->r->options->group_size);
}

/* Measures what an item and the columns of the operation are together. */
static rp_status measure(rp_rollout_work *w, const rp_rollout_stored *old,
                         rp_rollout_join *join)
{
    rp_status st;

    join->versions = w->op->kind == RP_ROLLOUT_PUT;
    join->replace = w->op->kind == RP_ROLLOUT_UPDATE && w->op->replace;
    st = rp_rollout_stored_measure(old, w->item, join);
    if (st == RP_EXISTS)
        return rp_fail(w->err, st,
                       "item %" PRIu32 " of group '%.*s' has column '%.*s' with other values; "
                       "update with `replace` changes them",
                       w->op->index, (int)w->op->group.size, w->op->group.data,
                       (int)join->column.size, join->column.data);
    if (st == RP_INVALID && join->is_new)
        return rp_fail(w->err, st,
                       "item %" PRIu32 " of group '%.*s' would have more than %d columns or "
                       "%d bytes",
                       w->op->index, (int)w->op->group.size, w->op->group.data,
                       RP_ROLLOUT_COLUMNS, RP_ROLLOUT_ITEM_BYTES);
    return RP_OK;
}

/* An item is too stale: drops its group, or makes known that it was dropped. */
static rp_status drop_put(rp_rollout_work *w, rp_rollout_group *group)
{
    beginning b;
    rp_status st;

    if (group != NULL) {
        rp_rollout_remove(w, group, RP_ROLLOUT_STALE);
    } else {
        st = prepare(w, NULL, false, &b);
        if (st != RP_OK) return st;
        rp_rollout_entry_add(w->r, b.entry);
        rp_rollout_retire(w, b.entry, RP_ROLLOUT_STALE);
        w->r->stale++;
        w->result->stale++;
    }
    w->result->outcome = RP_ROLLOUT_GONE;
    w->result->fate = RP_ROLLOUT_STALE;
    w->result->changed = true;
    return RP_OK;
}

/* Adds `item`, whose reference it takes, to a group. */
static void commit(rp_rollout_work *w, rp_rollout_group *group, rp_rollout_stored *item)
{
    rp_rollouts *r = w->r;

    assert(w->replaced == NULL && w->op->index < group->size);
    if (w->op->kind == RP_ROLLOUT_PUT && group->ttl_ns > 0)
        rp_rollout_set_time(r, group, group->ttl_ns, w->op->now_ns + group->ttl_ns);
    w->replaced = rp_rollout_set_item(r, group, w->op->index, item);
    if (rp_rollout_make_ready(r, group)) w->result->releases = true;
    if (w->replaced != NULL && item->bytes < w->replaced->bytes) w->result->releases = true;
    w->result->fate = rp_rollout_state(group);
    w->result->changed = true;
}

/* A group that is larger could not be drawn: no response would have room for it. */
static rp_status check_group_bytes(const rp_rollout_work *w, uint64_t bytes)
{
    if (bytes <= RP_ROLLOUT_GROUP_BYTES) return RP_OK;
    return rp_fail(w->err, RP_INVALID,
                   "group '%.*s' would have %" PRIu64 " bytes, the limit is %d",
                   (int)w->op->group.size, w->op->group.data, bytes, RP_ROLLOUT_GROUP_BYTES);
}

/* The item could be put now, once its columns are copied, which happens without the lock. */
static rp_status ask_for_copy(rp_rollout_work *w)
{
    w->needs_copy = true;
    return RP_OK;
}

/* A put into a new group. */
static rp_status put_first(rp_rollout_work *w)
{
    rp_rollout_room room = {.begins = true,
                            .bytes = rp_rollout_group_cost(w->r) + w->item->bytes};
    beginning b;
    rp_status st;

    if (rp_rollout_is_stale(w->r, w->item->view.first_version)) return drop_put(w, NULL);
    st = check_group_bytes(w, room.bytes);
    if (st == RP_OK) st = rp_rollout_check_room(w, &room);
    if (st == RP_OK && !w->is_copied) return ask_for_copy(w);
    if (st == RP_OK) st = prepare(w, NULL, true, &b);
    if (st != RP_OK) return st;
    begin(w, &b, &room);
    commit(w, b.group, w->item);
    w->item = NULL;
    return RP_OK;
}

/* A put or an update of a group that exists. */
static rp_status change_item(rp_rollout_work *w, rp_rollout_group *group)
{
    rp_rollout_stored *old = group->items[w->op->index], *item = w->item;
    rp_rollout_room room = {.group = group};
    rp_rollout_join join = {
        .bytes = item->bytes, .is_new = true, .first_version = item->view.first_version};
    uint64_t before = old != NULL ? old->bytes : 0;
    rp_status st = old != NULL ? measure(w, old, &join) : RP_OK;

    if (st != RP_OK) return st;
    if (!join.is_new) {
        w->result->outcome = RP_ROLLOUT_REPEATED;
        w->result->fate = rp_rollout_state(group);
        return RP_OK;
    }
    if (w->op->kind == RP_ROLLOUT_PUT && group->lease_count == 0 &&
        rp_rollout_is_stale(w->r, join.first_version))
        return drop_put(w, group);
    room.bytes = join.bytes > before ? join.bytes - before : 0;
    if (room.bytes > 0) st = check_group_bytes(w, group->bytes + room.bytes);
    if (st == RP_OK) st = rp_rollout_check_room(w, &room);
    if (st != RP_OK) return st;
    if (!w->is_copied) return ask_for_copy(w);
    if (old != NULL)
        item = rp_rollout_stored_join(old, item, &join);
    else
        w->item = NULL;
    if (item == NULL) return no_memory(w);
    rp_rollout_make_room(w, &room);
    commit(w, group, item);
    return RP_OK;
}

rp_status rp_rollout_do_put(rp_rollout_work *w)
{
    rp_rollout_entry *entry = rp_rollout_find(w->r, w->op->group);
    rp_status st;

    if (entry != NULL && entry->group == NULL) return gone(w, entry);
    st = check_index(w);
    if (st != RP_OK) return st;
    return entry == NULL ? put_first(w) : change_item(w, entry->group);
}

rp_status rp_rollout_do_update(rp_rollout_work *w)
{
    rp_rollout_entry *entry = rp_rollout_find(w->r, w->op->group);
    rp_status st;

    if (entry == NULL)
        return rp_fail(w->err, RP_NOT_FOUND, "there is no group '%.*s'", (int)w->op->group.size,
                       w->op->group.data);
    if (entry->group == NULL) return gone(w, entry);
    st = check_index(w);
    if (st != RP_OK) return st;
    if (entry->group->items[w->op->index] == NULL)
        return rp_fail(w->err, RP_NOT_FOUND, "group '%.*s' has no item %" PRIu32,
                       (int)w->op->group.size, w->op->group.data, w->op->index);
    return change_item(w, entry->group);
}
