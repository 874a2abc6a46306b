/* SPDX-License-Identifier: Apache-2.0 */
/* Loading an image. rollouts_image.c has the format. Parts are added to rollouts that no one
 * else sees, and these are checked at the end, so that no image, however damaged, makes
 * rollouts that break an invariant. */
#include <string.h>

#include "rollouts/rollouts_image.h"

#include "rollouts/rollouts_calls.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"

struct rp_rollout_loader {
    rp_allocator alloc;
    uint64_t seed;
    rp_rollouts *r;            /* NULL: before the head */
    rp_rollout_group **groups; /* in the order of their numbers */
    size_t group_count, group_capacity;
    rp_rollout_work work; /* for functions that remove */
    rp_rollout_result result;
    uint64_t leases, items;
    bool is_done, is_bad;
};

rp_rollout_loader *rp_rollout_loader_new(const rp_allocator *alloc, uint64_t seed)
{
    rp_rollout_loader *l = rp_alloc_zero(alloc, sizeof *l);

    if (l == NULL) return NULL;
    l->alloc = *alloc;
    l->seed = seed;
    return l;
}

void rp_rollout_loader_free(rp_rollout_loader *l)
{
    rp_allocator alloc;

    if (l == NULL) return;
    alloc = l->alloc;
    rp_rollouts_unref(l->r);
    rp_release(&alloc, l->groups, l->group_capacity * sizeof(rp_rollout_group *));
    rp_release(&alloc, l, sizeof *l);
}

static rp_string text_of(const rp_pb_field *f)
{
    return (rp_string){(const char *)f->data, f->size};
}

/* Adds the numbers of a field to an array. False if there are more than `most`, or none are
 * there. */
static bool take_numbers(const rp_pb_field *f, uint64_t *out, size_t *count, size_t most)
{
    size_t more = 0;

    if (f->type != RP_PB_BYTES && f->type != RP_PB_VARINT) return false;
    if (!rp_wire_count_numbers(f, &more) || more > most - *count) return false;
    (void)rp_wire_copy_numbers(f, out + *count);
    *count += more;
    return true;
}

/* Each load_ function returns RP_OK, RP_CORRUPT or RP_NO_RESOURCE. */
static rp_status load_removed(rp_rollout_loader *l, const rp_pb_field *message)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_string name = {"", 0};
    uint64_t fate = 0;
    rp_rollout_entry *entry;
    rp_pb_field f;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) name = text_of(&f);
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) fate = f.value;
    }
    if (!rp_rollout_is_name(name) || rp_rollout_find(l->r, name) != NULL ||
        fate < RP_ROLLOUT_ACKNOWLEDGED || fate > RP_ROLLOUT_EXPIRED ||
        l->r->gone_count == RP_ROLLOUT_REMEMBERED)
        return RP_CORRUPT;
    if (!rp_rollout_reserve(l->r)) return RP_NO_RESOURCE;
    entry = rp_rollout_entry_new(l->r, name);
    if (entry == NULL) return RP_NO_RESOURCE;
    rp_rollout_entry_add(l->r, entry);
    rp_rollout_retire(&l->work, entry, (rp_rollout_fate)fate);
    return RP_OK;
}

static rp_status load_cursor(rp_rollout_loader *l, const rp_pb_field *message)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_string name = {"", 0};
    rp_bytes data = {NULL, 0};
    rp_pb_field f;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) name = text_of(&f);
        if (rp_pb_is(&f, 2, RP_PB_BYTES)) data = (rp_bytes){f.data, f.size};
    }
    if (!rp_rollout_is_name(name) || data.size == 0 || data.size > RP_ROLLOUT_CURSOR_BYTES ||
        l->r->cursor_count == RP_ROLLOUT_CURSORS)
        return RP_CORRUPT;
    return rp_rollout_set_cursor(l->r, name, data, NULL);
}

static void load_consumer(rp_rollouts *r, size_t index, const rp_pb_field *message)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_pb_field f;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_VARINT)) r->queues[index].drawn = f.value;
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) r->queues[index].acknowledged = f.value;
    }
}

static bool set_numbers(rp_rollouts *r, const uint64_t numbers[RP_ROLLOUT_NUMBERS])
{
    const uint64_t most = UINT64_MAX / 4; /* numbers ascend; none is given twice */

    if (numbers[0] < (uint64_t)r->options->first_version ||
        numbers[0] > (uint64_t)RP_ROLLOUT_MOST_VERSION ||
        numbers[1] > (uint64_t)RP_ROLLOUT_MOST_NOW_NS)
        return false;
    for (size_t i = 2; i < RP_ROLLOUT_NUMBERS; i++)
        if (numbers[i] > most || (i < 5 && numbers[i] == 0)) return false;
    r->version = (int64_t)numbers[0];
    r->now_ns = (int64_t)numbers[1];
    r->next_number = numbers[2];
    r->next_ready = numbers[3];
    r->next_lease = numbers[4];
    r->acknowledged = numbers[5];
    r->stale = numbers[6];
    r->evicted = numbers[7];
    r->aborted = numbers[8];
    r->expired_reservations = numbers[9];
    r->expired_leases = numbers[10];
    return true;
}

static rp_status load_head_fields(rp_rollout_loader *l, const rp_pb_field *message)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_rollouts *r = l->r;
    uint64_t numbers[RP_ROLLOUT_NUMBERS];
    size_t number_count = 0, buckets = 0, consumers = 0;
    rp_status st = RP_OK;
    rp_pb_step step;
    rp_pb_field f;
    bool ok = true;

    while (st == RP_OK && ok && (step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (f.number == 3) ok = take_numbers(&f, numbers, &number_count, RP_ROLLOUT_NUMBERS);
        if (f.number == 4)
            ok = take_numbers(&f, r->staleness, &buckets, RP_ROLLOUT_STALENESS_BUCKETS);
        if (f.number == 8)
            ok = take_numbers(&f, r->acked, &r->acked_count, RP_ROLLOUT_REMEMBERED);
        if (rp_pb_is(&f, 5, RP_PB_BYTES)) {
            ok = consumers < r->options->consumer_count;
            if (ok) load_consumer(r, consumers++, &f);
        }
        if (rp_pb_is(&f, 6, RP_PB_BYTES)) st = load_cursor(l, &f);
        if (rp_pb_is(&f, 7, RP_PB_BYTES)) st = load_removed(l, &f);
    }
    if (st != RP_OK) return st;
    r->acked_next = r->acked_count % RP_ROLLOUT_REMEMBERED;
    if (!ok || step != RP_PB_END || number_count != RP_ROLLOUT_NUMBERS ||
        buckets != RP_ROLLOUT_STALENESS_BUCKETS || consumers != r->options->consumer_count ||
        !set_numbers(r, numbers))
        return RP_CORRUPT;
    return RP_OK;
}

static rp_status load_head(rp_rollout_loader *l, const rp_pb_field *message)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_rollout_options *options = NULL;
    rp_pb_field f, body = {.data = NULL};
    rp_string name = {"", 0};
    rp_status st;

    if (l->r != NULL) return RP_CORRUPT;
    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) name = text_of(&f);
        if (rp_pb_is(&f, 2, RP_PB_BYTES)) body = f;
    }
    if (body.data == NULL) return RP_CORRUPT;
    st = rp_rollout_options_read(&l->alloc, body.data, body.size, &options, NULL);
    if (st == RP_OK) st = rp_rollouts_new(&l->alloc, l->seed, name, options, &l->r, NULL);
    rp_rollout_options_free(options, &l->alloc);
    if (st != RP_OK) return st == RP_INVALID ? RP_CORRUPT : st;
    l->work = (rp_rollout_work){.r = l->r, .result = &l->result};
    rp_mutex_lock(&l->r->mu);
    st = load_head_fields(l, message);
    rp_mutex_unlock(&l->r->mu);
    return st;
}

typedef struct group_image {
    rp_string name;
    uint64_t number, ready[RP_ROLLOUT_CONSUMERS], done;
    size_t ready_count;
    int64_t until_ns, ttl_ns;
} group_image;

static bool read_group(const rp_pb_field *message, group_image *g)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_pb_step step;
    rp_pb_field f;

    *g = (group_image){.name = {"", 0}};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) g->name = text_of(&f);
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) g->number = f.value;
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) g->until_ns = (int64_t)f.value;
        if (rp_pb_is(&f, 4, RP_PB_VARINT)) g->ttl_ns = (int64_t)f.value;
        if (f.number == 5 && !take_numbers(&f, g->ready, &g->ready_count, RP_ROLLOUT_CONSUMERS))
            return false;
        if (rp_pb_is(&f, 6, RP_PB_VARINT)) g->done = f.value;
    }
    return step == RP_PB_END;
}

static rp_status load_group(rp_rollout_loader *l, const rp_pb_field *message)
{
    rp_rollouts *r = l->r;
    uint64_t next_number = r->next_number;
    rp_rollout_entry *entry;
    rp_rollout_group *group;
    group_image g;

    if (!read_group(message, &g) || !rp_rollout_is_name(g.name) ||
        rp_rollout_find(r, g.name) != NULL || g.ready_count != r->options->consumer_count ||
        g.number == 0 || g.number >= next_number ||
        (r->last != NULL && r->last->number >= g.number) || g.ttl_ns < 0 ||
        g.ttl_ns > RP_ROLLOUT_MOST_TTL_NS || g.until_ns < 0 ||
        r->group_count == RP_ROLLOUT_MAX_GROUPS)
        return RP_CORRUPT;
    if (l->group_count == l->group_capacity) {
        size_t capacity = l->group_capacity > 0 ? 2 * l->group_capacity : 16;

        if (!rp_resize_array(&l->alloc, &l->groups, l->group_capacity, capacity,
                             sizeof(rp_rollout_group *)))
            return RP_NO_RESOURCE;
        l->group_capacity = capacity;
    }
    if (!rp_rollout_reserve(r)) return RP_NO_RESOURCE;
    entry = rp_rollout_entry_new(r, g.name);
    group = rp_rollout_group_new(r);
    if (entry == NULL || group == NULL) {
        rp_rollout_entry_free(r, entry);
        rp_rollout_group_free(r, group);
        return RP_NO_RESOURCE;
    }
    rp_rollout_entry_add(r, entry);
    r->next_number = g.number;
    rp_rollout_begin(r, entry, group);
    r->next_number = next_number;
    if (g.ttl_ns > 0) rp_rollout_set_time(r, group, g.ttl_ns, g.until_ns);
    for (uint32_t i = 0; i < group->consumer_count; i++) {
        group->turns[i].ready_number = g.ready[i];
        group->turns[i].is_done = g.done >> i & 1;
        group->done_count += group->turns[i].is_done;
        r->queues[i].done += group->turns[i].is_done;
    }
    l->groups[l->group_count++] = group;
    return g.done >> group->consumer_count == 0 ? RP_OK : RP_CORRUPT;
}

/* The group with this number. NULL if there is none. */
static rp_rollout_group *find_group(const rp_rollout_loader *l, uint64_t number)
{
    size_t low = 0, high = l->group_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (l->groups[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->group_count && l->groups[low]->number == number ? l->groups[low] : NULL;
}

typedef struct item_image {
    uint64_t group, index;
    int64_t first_version, last_version;
    rp_rollout_column *columns;
    size_t column_count;
} item_image;

static rp_status read_item(const rp_pb_field *message, item_image *item)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_status st = RP_OK;
    size_t at = 0;
    rp_pb_field f;

    while (st == RP_OK && rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_VARINT)) item->group = f.value;
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) item->index = f.value;
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) item->first_version = (int64_t)f.value;
        if (rp_pb_is(&f, 4, RP_PB_VARINT)) item->last_version = (int64_t)f.value;
        if (rp_pb_is(&f, 5, RP_PB_BYTES))
            st = rp_rollout_column_read(f.data, f.size, &item->columns[at++], NULL);
    }
    if (st == RP_OK) st = rp_rollout_check_columns(item->columns, item->column_count, NULL);
    return st == RP_INVALID ? RP_CORRUPT : st;
}

static rp_status add_item(rp_rollout_loader *l, const item_image *image)
{
    rp_rollout_group *group = find_group(l, image->group);
    rp_rollout_stored *item;

    if (group == NULL || image->index >= group->size || group->items[image->index] != NULL ||
        image->first_version < 0 || image->last_version < image->first_version ||
        image->last_version > RP_ROLLOUT_MOST_VERSION || l->leases > 0)
        return RP_CORRUPT;
    item = rp_rollout_stored_new(&l->alloc, image->columns, image->column_count,
                                 image->first_version, image->last_version);
    if (item == NULL) return RP_NO_RESOURCE;
    (void)rp_rollout_set_item(l->r, group, (uint32_t)image->index, item);
    l->items++;
    return RP_OK;
}

static rp_status load_item(rp_rollout_loader *l, const rp_pb_field *message)
{
    item_image item = {.columns = NULL};
    rp_status st;

    if (!rp_rollout_count_fields(message->data, message->size, 5, &item.column_count) ||
        item.column_count > RP_ROLLOUT_COLUMNS)
        return RP_CORRUPT;
    if (item.column_count > 0) {
        item.columns = rp_alloc_array(&l->alloc, item.column_count, sizeof *item.columns);
        if (item.columns == NULL) return RP_NO_RESOURCE;
    }
    st = read_item(message, &item);
    if (st == RP_OK) st = add_item(l, &item);
    rp_release(&l->alloc, item.columns, item.column_count * sizeof *item.columns);
    return st;
}

static size_t count_lease(const rp_pb_field *message, rp_rollout_lease *to, uint64_t *consumer)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    size_t count = 0;
    rp_pb_field f;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_VARINT)) to->id = f.value;
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) *consumer = f.value;
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) to->time.key = (int64_t)f.value;
        count += rp_pb_is(&f, 4, RP_PB_VARINT);
    }
    return count;
}

/* Adds the groups of a lease that has room for them. Leases come after all items, so that the
 * groups are complete. */
static bool take_groups(rp_rollout_loader *l, const rp_pb_field *message,
                        rp_rollout_lease *lease)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_pb_field f;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        rp_rollout_group *group;

        if (!rp_pb_is(&f, 4, RP_PB_VARINT)) continue;
        group = find_group(l, f.value);
        if (group == NULL || group->turns[lease->consumer].lease > 0 ||
            group->turns[lease->consumer].missing > 0 || group->turns[lease->consumer].is_done)
            return false;
        group->turns[lease->consumer].lease = lease->id;
        lease->groups[lease->count++] = group;
    }
    return true;
}

static rp_status load_lease(rp_rollout_loader *l, const rp_pb_field *message)
{
    rp_rollouts *r = l->r;
    rp_rollout_lease seen = {.id = 0}, *lease;
    uint64_t consumer = 0;
    size_t count = count_lease(message, &seen, &consumer);
    rp_status st = RP_OK;

    if (count == 0 || count > RP_ROLLOUT_DRAW_ITEMS || seen.id == 0 ||
        seen.id >= r->next_lease || consumer >= r->options->consumer_count ||
        seen.time.key < 0 || r->lease_count == RP_ROLLOUT_LEASES ||
        (r->lease_count > 0 && r->leases[r->lease_count - 1]->id >= seen.id))
        return RP_CORRUPT;
    lease = rp_rollout_lease_new(r, count);
    if (lease == NULL) return RP_NO_RESOURCE;
    lease->id = seen.id;
    lease->time.key = seen.time.key;
    lease->consumer = (size_t)consumer;
    if (!take_groups(l, message, lease))
        st = RP_CORRUPT;
    else if (!rp_rollout_lease_add(r, lease))
        st = RP_NO_RESOURCE;
    if (st == RP_OK)
        l->leases++;
    else
        rp_rollout_lease_free(r, lease);
    return st;
}

/* Adds the turns to their queues. False if a ready number is there too early, or is missing. */
static bool load_queues(rp_rollout_loader *l)
{
    for (size_t i = 0; i < l->group_count; i++) {
        rp_rollout_group *group = l->groups[i];

        for (uint32_t k = 0; k < group->consumer_count; k++) {
            const rp_rollout_turn *turn = &group->turns[k];
            bool is_ready = turn->missing == 0;

            if (is_ready != (turn->ready_number > 0) || turn->ready_number >= l->r->next_ready)
                return false;
            if (!is_ready && (turn->lease > 0 || turn->is_done)) return false;
            if (is_ready && turn->lease == 0 && !turn->is_done)
                rp_rollout_enqueue(l->r, group, k);
        }
    }
    return true;
}

static rp_status load_end(rp_rollout_loader *l, const rp_pb_field *message)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    uint64_t groups = 0, leases = 0, items = 0;
    rp_pb_field f;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_VARINT)) groups = f.value;
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) leases = f.value;
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) items = f.value;
    }
    if (groups != l->group_count || leases != l->leases || items != l->items) return RP_CORRUPT;
    if (!load_queues(l)) return RP_CORRUPT;
    rp_rollout_find_stale(l->r);
    if (!rp_rollout_is_valid(l->r)) return RP_CORRUPT;
    l->is_done = true;
    return RP_OK;
}

static rp_status load_part(rp_rollout_loader *l, const rp_pb_field *f)
{
    rp_status st = RP_OK;

    if (l->is_done) return RP_CORRUPT; /* nothing follows the end */
    if (f->type != RP_PB_BYTES) return RP_OK;
    if (f->number == 1) return load_head(l, f);
    if (l->r == NULL) return RP_CORRUPT;
    rp_mutex_lock(&l->r->mu);
    if (f->number == 2) st = load_group(l, f);
    if (f->number == 3) st = load_item(l, f);
    if (f->number == 4) st = load_lease(l, f);
    if (f->number == 5) st = load_end(l, f);
    rp_mutex_unlock(&l->r->mu);
    return st;
}

static rp_status fail(rp_rollout_loader *l, rp_status st, rp_error *err)
{
    l->is_bad = true;
    if (st == RP_NO_RESOURCE) return rp_fail_memory(err, sizeof *l->r);
    return rp_fail(err, RP_CORRUPT, "the image of rollouts is malformed");
}

rp_status rp_rollout_loader_add(rp_rollout_loader *l, const uint8_t *data, size_t size,
                                rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_status st = RP_OK;
    rp_pb_step step;
    rp_pb_field f;

    if (l->is_bad) return fail(l, RP_CORRUPT, err);
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        st = load_part(l, &f);
        if (st != RP_OK) return fail(l, st, err);
    }
    return step == RP_PB_END ? RP_OK : fail(l, RP_CORRUPT, err);
}

rp_status rp_rollout_loader_finish(rp_rollout_loader *l, rp_rollouts **out, rp_error *err)
{
    *out = NULL;
    if (l->is_bad || !l->is_done) return fail(l, RP_CORRUPT, err);
    *out = l->r;
    l->r = NULL;
    l->is_bad = true; /* it has given its rollouts away */
    return RP_OK;
}
