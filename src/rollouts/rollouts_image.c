/* SPDX-License-Identifier: Apache-2.0 */
/* Images of rollouts. The pieces, one after another, are one protobuf message. The same state
 * has the same image. A later version may add fields; readers skip those that they do not know.
 *
 *   image   1 head | 2 group* | 3 item* | 4 lease* | 5 end
 *   head    1 name | 2 options (rollout_options.c) | 3 number* (numbers[] below)
 *           4 groups drawn, by staleness* | 5 consumer* | 6 cursor* | 7 removed*, oldest first
 *           8 acknowledged lease*, oldest first
 *   consumer  1 groups drawn | 2 groups acknowledged
 *   cursor    1 name | 2 data
 *   removed   1 name | 2 fate
 *   group   1 name | 2 number | 3 end of the reservation | 4 its time to live
 *           5 ready number of each consumer, 0: none* | 6 bits of the consumers that are done
 *   item    1 number of the group | 2 index | 3 first version | 4 last version
 *           5 column* (rollout_op_wire.c)
 *   lease   1 id | 2 index of the consumer | 3 its end | 4 number of a group*
 *   end     1 groups | 2 leases | 3 items
 *
 * Groups, items and leases are in ascending order of their numbers.
 *
 * A cut copies the head and the leases under one lock, and then the groups in steps. An
 * operation that changes or removes a group which is not copied yet copies it first, as the
 * tables do with their slots. */
#include <assert.h>
#include <stdlib.h>

#include "rollouts/rollouts_image.h"

#include "rollouts/rollouts_calls.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"

enum { STEP_GROUPS = 1024 }; /* copied under one lock */

typedef struct cut_item {
    rp_rollout_stored *item; /* a reference */
    uint32_t index;
} cut_item;

/* A group that was copied. */
typedef struct cut_group {
    uint64_t number;
    size_t at, size; /* in `groups` */
    size_t first_item, item_count;
} cut_group;

/* An image that is being made.
 *
 *   U1  it has the groups with numbers below `limit` as they were when the cut began: those
 *       before `next` and those whose `cut` is `id` are copied, and the others have not changed;
 *   U2  rollouts have at most one such cut; it is r->cut until all groups are copied. */
struct rp_rollout_cut {
    rp_allocator alloc;
    rp_rollouts *r; /* U2; NULL: all is copied */
    uint64_t id, limit;
    rp_rollout_group *next;    /* to be copied; NULL: none */
    rp_buf head, groups, tail; /* the parts of the image, without the items */
    size_t head_at, tail_at;   /* bytes that were written */
    cut_group *places;
    size_t place_count, place_capacity, next_place;
    cut_item *items;
    size_t item_count, capacity;
    size_t item_place, next_item; /* the next item: `next_item` of `item_place` */
    uint64_t group_count, leases;
    bool is_sorted, is_done;
};

static void put_removed(rp_buf *out, const rp_rollout_entry *entry)
{
    size_t mark = rp_wire_begin(out, 7);

    rp_wire_put_bytes(out, 1, entry->name->text, entry->name->size);
    rp_wire_put_number(out, 2, (uint64_t)entry->fate);
    rp_wire_end(out, mark);
}

static void put_acked(rp_buf *out, const rp_rollouts *r)
{
    size_t oldest = r->acked_count < RP_ROLLOUT_REMEMBERED ? 0 : r->acked_next;

    /* The ring is two arrays, and a repeated field may come in parts. */
    rp_wire_put_packed(out, 8, r->acked + oldest, r->acked_count - oldest);
    rp_wire_put_packed(out, 8, r->acked, oldest);
}

static void put_consumers(rp_buf *out, const rp_rollouts *r)
{
    for (size_t i = 0; i < r->options->consumer_count; i++) {
        size_t mark = rp_wire_begin(out, 5);

        rp_wire_put_number(out, 1, r->queues[i].drawn);
        rp_wire_put_number(out, 2, r->queues[i].acknowledged);
        rp_wire_end(out, mark);
    }
}

static void put_head(rp_buf *out, const rp_rollouts *r)
{
    const uint64_t numbers[] = {
        (uint64_t)r->version, (uint64_t)r->now_ns,     r->next_number,   r->next_ready,
        r->next_lease,        r->acknowledged,         r->stale,         r->evicted,
        r->aborted,           r->expired_reservations, r->expired_leases};
    size_t head = rp_wire_begin(out, 1), options;

    static_assert(sizeof numbers / sizeof *numbers == RP_ROLLOUT_NUMBERS, "as the reader has");
    rp_wire_put_bytes(out, 1, r->name->text, r->name->size);
    options = rp_wire_begin(out, 2);
    rp_rollout_options_write(out, r->options);
    rp_wire_end(out, options);
    rp_wire_put_packed(out, 3, numbers, RP_ROLLOUT_NUMBERS);
    rp_wire_put_packed(out, 4, r->staleness, RP_ROLLOUT_STALENESS_BUCKETS);
    put_consumers(out, r);
    for (size_t i = 0; i < r->cursor_count; i++) {
        size_t mark = rp_wire_begin(out, 6);

        rp_wire_put_bytes(out, 1, r->cursors[i].name->text, r->cursors[i].name->size);
        rp_wire_put_bytes(out, 2, r->cursors[i].data, r->cursors[i].size);
        rp_wire_end(out, mark);
    }
    for (const rp_rollout_entry *e = r->gone_first; e != NULL; e = e->next) put_removed(out, e);
    put_acked(out, r);
    rp_wire_end(out, head);
}

static void put_group(rp_buf *out, const rp_rollout_group *group)
{
    uint64_t ready[RP_ROLLOUT_CONSUMERS], done = 0;
    size_t mark = rp_wire_begin(out, 2);

    for (uint32_t i = 0; i < group->consumer_count; i++) {
        ready[i] = group->turns[i].ready_number;
        done |= (uint64_t)group->turns[i].is_done << i;
    }
    rp_wire_put_bytes(out, 1, group->entry->name->text, group->entry->name->size);
    rp_wire_put_number(out, 2, group->number);
    if (group->ttl_ns > 0) rp_wire_put_int(out, 3, group->time.key);
    rp_wire_put_int(out, 4, group->ttl_ns);
    rp_wire_put_packed(out, 5, ready, group->consumer_count);
    rp_wire_put_number(out, 6, done);
    rp_wire_end(out, mark);
}

static void put_lease(rp_buf *out, const rp_rollout_lease *lease)
{
    size_t mark = rp_wire_begin(out, 4);

    rp_wire_put_number(out, 1, lease->id);
    rp_wire_put_number(out, 2, lease->consumer);
    rp_wire_put_int(out, 3, lease->time.key);
    for (size_t i = 0; i < lease->count; i++)
        rp_wire_put_number_always(out, 4, lease->groups[i]->number);
    rp_wire_end(out, mark);
}

static void take_items(rp_rollout_cut *cut, const rp_rollout_group *group)
{
    for (uint32_t i = 0; i < group->size; i++) {
        if (group->items[i] == NULL) continue;
        assert(cut->item_count < cut->capacity);
        rp_refcount_inc(&group->items[i]->refs);
        cut->items[cut->item_count++] = (cut_item){group->items[i], i};
    }
}

/* Copies a group. */
static void take_group(rp_rollout_cut *cut, rp_rollout_group *group)
{
    cut_group *place = &cut->places[cut->place_count];

    assert(cut->place_count < cut->place_capacity && group->number < cut->limit);
    *place = (cut_group){
        .number = group->number, .at = cut->groups.size, .first_item = cut->item_count};
    put_group(&cut->groups, group);
    take_items(cut, group);
    place->size = cut->groups.size - place->at;
    place->item_count = cut->item_count - place->first_item;
    if (cut->place_count > 0 && place[-1].number > place->number) cut->is_sorted = false;
    cut->place_count++;
}

void rp_rollout_preserve(rp_rollouts *r, rp_rollout_group *group, bool is_removed)
{
    rp_rollout_cut *cut = r->cut;

    if (cut == NULL || cut->next == NULL) return;
    if (group->number < cut->limit && group->number >= cut->next->number &&
        group->cut != cut->id) {
        take_group(cut, group); /* U1 */
        group->cut = cut->id;
    }
    if (is_removed && cut->next == group) cut->next = group->next; /* maybe a newer one */
}

/* Makes room for all groups and items. */
static bool reserve_cut(const rp_rollouts *r, rp_rollout_cut *cut)
{
    cut->place_capacity = (size_t)r->group_count;
    cut->capacity = (size_t)r->item_count;
    if (cut->place_capacity > 0)
        cut->places = rp_alloc_array(&r->alloc, cut->place_capacity, sizeof *cut->places);
    if (cut->place_capacity > 0 && cut->places == NULL) cut->place_capacity = 0;
    if (cut->capacity > 0)
        cut->items = rp_alloc_array(&r->alloc, cut->capacity, sizeof *cut->items);
    if (cut->capacity > 0 && cut->items == NULL) cut->capacity = 0;
    return cut->place_capacity == r->group_count && cut->capacity == r->item_count;
}

/* Copies everything but the groups. */
static void begin_cut(rp_rollouts *r, rp_rollout_cut *cut)
{
    cut->r = r;
    cut->id = ++r->cut_count;
    cut->limit = r->next_number;
    cut->next = r->first;
    cut->is_sorted = true;
    cut->group_count = r->group_count;
    cut->leases = r->lease_count;
    put_head(&cut->head, r);
    for (size_t i = 0; i < r->lease_count; i++) put_lease(&cut->tail, r->leases[i]);
}

/* Copies some groups. */
static void copy_some(rp_rollout_cut *cut, size_t most)
{
    while (cut->next != NULL && cut->next->number < cut->limit && most-- > 0) {
        rp_rollout_group *group = cut->next;

        if (group->cut != cut->id) take_group(cut, group);
        cut->next = group->next;
    }
    if (cut->next != NULL && cut->next->number >= cut->limit) cut->next = NULL;
}

rp_status rp_rollouts_cut_begin(rp_rollouts *r, rp_rollout_cut **out, uint64_t *lsn)
{
    rp_rollout_cut *cut = rp_alloc_zero(&r->alloc, sizeof *cut);
    bool ok;

    *out = NULL;
    if (cut == NULL) return RP_NO_RESOURCE;
    cut->alloc = r->alloc;
    rp_buf_init(&cut->head, &cut->alloc);
    rp_buf_init(&cut->groups, &cut->alloc);
    rp_buf_init(&cut->tail, &cut->alloc);
    rp_mutex_lock(&r->mu);
    ok = reserve_cut(r, cut);
    if (ok) begin_cut(r, cut);
    if (ok && r->cut != NULL) { /* U2: all at once */
        copy_some(cut, SIZE_MAX);
        cut->r = NULL;
    } else if (ok) {
        r->cut = cut;
    }
    if (lsn != NULL) *lsn = r->lsn;
    rp_mutex_unlock(&r->mu);
    if (ok) {
        *out = cut;
        return RP_OK;
    }
    rp_rollout_cut_free(cut);
    return RP_NO_RESOURCE;
}

rp_status rp_rollout_cut_step(rp_rollout_cut *cut, bool *more)
{
    rp_rollouts *r = cut->r;

    *more = false;
    if (r != NULL) {
        rp_mutex_lock(&r->mu);
        assert(r->cut == cut); /* U2 */
        copy_some(cut, STEP_GROUPS);
        *more = cut->next != NULL;
        if (!*more) r->cut = NULL; /* U2 */
        rp_mutex_unlock(&r->mu);
        if (!*more) cut->r = NULL;
    }
    return cut->head.bad || cut->groups.bad || cut->tail.bad ? RP_NO_RESOURCE : RP_OK;
}

static int compare_places(const void *a, const void *b)
{
    uint64_t x = ((const cut_group *)a)->number, y = ((const cut_group *)b)->number;

    return (x > y) - (x < y);
}

rp_status rp_rollouts_cut(rp_rollouts *r, rp_rollout_cut **out, uint64_t *lsn)
{
    rp_status st = rp_rollouts_cut_begin(r, out, lsn);
    bool more = st == RP_OK;

    while (more && st == RP_OK) st = rp_rollout_cut_step(*out, &more);
    if (st == RP_OK) return RP_OK;
    rp_rollout_cut_free(*out);
    *out = NULL;
    return st;
}

static size_t item_size(const cut_item *c, uint64_t group)
{
    const rp_rollout_item *item = &c->item->view;
    size_t size = rp_pb_varint_field_size(1, group) + rp_pb_varint_field_size(2, c->index) +
                  rp_pb_varint_field_size(3, (uint64_t)item->first_version) +
                  rp_pb_varint_field_size(4, (uint64_t)item->last_version);

    for (size_t i = 0; i < item->column_count; i++)
        size += rp_pb_bytes_field_size(5, rp_rollout_column_size(&item->columns[i]));
    return size;
}

static void put_item(rp_buf *out, const cut_item *c, uint64_t group)
{
    const rp_rollout_item *item = &c->item->view;
    size_t size = item_size(c, group);
    uint8_t *at = rp_buf_reserve(out, rp_pb_bytes_field_size(3, size));

    if (at == NULL) return;
    out->size = (size_t)(rp_pb_put_bytes_head(at, 3, size) - out->data);
    rp_wire_put_number_always(out, 1, group);
    rp_wire_put_number_always(out, 2, c->index);
    rp_wire_put_number_always(out, 3, (uint64_t)item->first_version);
    rp_wire_put_number_always(out, 4, (uint64_t)item->last_version);
    for (size_t i = 0; i < item->column_count; i++)
        rp_rollout_column_put(out, 5, &item->columns[i]);
}

/* Copies whole fields, from `*at` on. */
static void copy_fields(const rp_buf *from, size_t *at, rp_buf *out)
{
    const uint8_t *start = from->data + *at;
    rp_pb_reader reader = rp_pb_open(start, from->size - *at);
    rp_pb_field f;

    while (reader.at - start < RP_ROLLOUT_PIECE_BYTES)
        if (rp_pb_next(&reader, &f) != RP_PB_FIELD) break;
    rp_buf_append(out, start, (size_t)(reader.at - start));
    *at += (size_t)(reader.at - start);
}

static void put_end(const rp_rollout_cut *cut, rp_buf *out)
{
    size_t mark = rp_wire_begin(out, 5);

    rp_wire_put_number(out, 1, cut->group_count);
    rp_wire_put_number(out, 2, cut->leases);
    rp_wire_put_number(out, 3, cut->item_count);
    rp_wire_end(out, mark);
}

/* Writes groups until a piece is full. False if there are no more. */
static bool put_groups(rp_rollout_cut *cut, rp_buf *out)
{
    size_t start = out->size;

    if (cut->next_place == cut->place_count) return false;
    while (cut->next_place < cut->place_count && out->size - start < RP_ROLLOUT_PIECE_BYTES) {
        const cut_group *place = &cut->places[cut->next_place++];

        rp_buf_append(out, cut->groups.data + place->at, place->size);
        if (out->bad) break;
    }
    return true;
}

/* Writes items until a piece is full. False if there are no more. */
static bool put_items(rp_rollout_cut *cut, rp_buf *out)
{
    size_t start = out->size;
    bool any = false;

    while (cut->item_place < cut->place_count && !out->bad &&
           out->size - start < RP_ROLLOUT_PIECE_BYTES) {
        const cut_group *place = &cut->places[cut->item_place];

        if (cut->next_item == place->item_count) {
            cut->item_place++;
            cut->next_item = 0;
            continue;
        }
        put_item(out, &cut->items[place->first_item + cut->next_item++], place->number);
        any = true;
    }
    return any;
}

bool rp_rollout_cut_next(rp_rollout_cut *cut, rp_buf *out)
{
    assert(cut->r == NULL && cut->next == NULL); /* all is copied */
    assert(cut->place_count == cut->group_count);
    assert(cut->head_at <= cut->head.size && cut->tail_at <= cut->tail.size);
    if (cut->is_done || out->bad) return false;
    if (!cut->is_sorted) /* groups that changed meanwhile were copied before their turn */
        qsort(cut->places, cut->place_count, sizeof *cut->places, compare_places);
    cut->is_sorted = true;
    if (cut->head_at < cut->head.size) {
        copy_fields(&cut->head, &cut->head_at, out);
    } else if (put_groups(cut, out) || put_items(cut, out)) {
        return true;
    } else if (cut->tail_at < cut->tail.size) {
        copy_fields(&cut->tail, &cut->tail_at, out);
    } else {
        put_end(cut, out);
        cut->is_done = true;
    }
    return true;
}

void rp_rollout_cut_free(rp_rollout_cut *cut)
{
    rp_allocator alloc;

    if (cut == NULL) return;
    if (cut->r != NULL) {
        rp_mutex_lock(&cut->r->mu);
        if (cut->r->cut == cut) cut->r->cut = NULL;
        rp_mutex_unlock(&cut->r->mu);
    }
    alloc = cut->alloc;
    for (size_t i = 0; i < cut->item_count; i++) rp_rollout_stored_unref(cut->items[i].item);
    rp_release(&alloc, cut->items, cut->capacity * sizeof *cut->items);
    rp_release(&alloc, cut->places, cut->place_capacity * sizeof *cut->places);
    rp_buf_deinit(&cut->head);
    rp_buf_deinit(&cut->groups);
    rp_buf_deinit(&cut->tail);
    rp_release(&alloc, cut, sizeof *cut);
}

/* FNV-1a over words of eight bytes and the rest. */
static uint64_t mix(uint64_t hash, const uint8_t *data, size_t size)
{
    const uint64_t prime = 0x100000001b3;

    for (; size >= 8; size -= 8, data += 8) {
        hash = (hash ^ rp_pb_load64(data)) * prime;
        hash ^= hash >> 29;
    }
    for (; size > 0; size--, data++) hash = (hash ^ *data) * prime;
    return hash;
}

rp_status rp_rollouts_digest(rp_rollouts *r, uint64_t *digest)
{
    uint64_t hash = 0xcbf29ce484222325;
    rp_rollout_cut *cut;
    rp_status st = rp_rollouts_cut(r, &cut, NULL);
    rp_buf buf;

    if (st != RP_OK) return st;
    rp_buf_init(&buf, &r->alloc);
    while (!buf.bad && rp_rollout_cut_next(cut, &buf)) {
        hash = mix(hash, buf.data, buf.bad ? 0 : buf.size);
        if (!buf.bad) rp_buf_clear(&buf);
    }
    if (buf.bad) st = RP_NO_RESOURCE;
    rp_buf_deinit(&buf);
    rp_rollout_cut_free(cut);
    if (st == RP_OK) *digest = hash;
    return st;
}
