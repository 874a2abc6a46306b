/* SPDX-License-Identifier: Apache-2.0 */
/* The checker of the invariants of rollouts_inside.h. */
#include "rollouts/rollouts_calls.h"

static bool check_entries(const rp_rollouts *r)
{
    const rp_rollout_entry *prev = NULL;
    size_t gone = 0, used = 0;

    for (size_t i = 0; i < r->slot_count; i++) {
        const rp_rollout_entry *entry = r->entries[i];

        if (entry == NULL) continue;
        used++;
        if (entry->slot != i || rp_rollout_find(r, rp_rollout_name_text(entry->name)) != entry)
            return false;
        if (entry->group != NULL
                ? entry->group->entry != entry
                : entry->fate < RP_ROLLOUT_ACKNOWLEDGED || entry->fate > RP_ROLLOUT_EXPIRED)
            return false;
    }
    for (const rp_rollout_entry *e = r->gone_first; e != NULL; prev = e, e = e->next, gone++)
        if (e->prev != prev || e->group != NULL) return false;
    return prev == r->gone_last && gone == r->gone_count && gone <= RP_ROLLOUT_REMEMBERED &&
           used == r->map.count && used == r->group_count + gone &&
           used + r->free_count == r->slot_count; /* G1 */
}

/* The needed columns and the item itself that are missing at one place. */
static uint32_t missing_of(const rp_rollout_consumer *consumer, const rp_rollout_stored *item)
{
    uint32_t missing = 1 + (uint32_t)consumer->column_count;

    if (item == NULL) return missing;
    missing--;
    for (size_t i = 0; i < consumer->column_count; i++)
        missing -= rp_rollout_item_column(&item->view, consumer->columns[i]) != NULL;
    return missing;
}

static bool check_turns(const rp_rollouts *r, const rp_rollout_group *group)
{
    uint32_t leases = 0, done = 0;

    for (uint32_t i = 0; i < group->consumer_count; i++) {
        const rp_rollout_turn *turn = &group->turns[i];
        bool is_ready = turn->missing == 0 && turn->lease == 0 && !turn->is_done;
        uint32_t missing = 0;

        for (uint32_t k = 0; k < group->size; k++)
            missing += missing_of(&r->options->consumers[i], group->items[k]);
        if (missing != turn->missing) return false;                                 /* G5 */
        if ((turn->ready_number > 0) != (missing == 0)) return false;               /* G6 */
        if (turn->ready_number >= r->next_ready || is_ready != (turn->node.at > 0)) /* G6 */
            return false;
        if (is_ready && r->queues[i].ready.nodes[turn->node.at - 1] != &turn->node)
            return false;
        if (turn->is_done && turn->lease > 0) return false;
        leases += turn->lease > 0;
        done += turn->is_done;
    }
    return leases == group->lease_count && done == group->done_count &&
           done < group->consumer_count; /* G10 */
}

static bool check_items(const rp_rollout_group *group, uint64_t cost)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    uint32_t items = 0;

    for (uint32_t i = 0; i < group->size; i++) {
        const rp_rollout_stored *item = group->items[i];

        if (item == NULL) continue;
        items++;
        cost += item->bytes;
        if (item->view.first_version < first) first = item->view.first_version;
        if (item->view.last_version > last) last = item->view.last_version;
    }
    if (items != group->item_count || cost != group->bytes) return false;
    return items == 0 ||
           (first == group->first_version && last == group->last_version); /* G3 */
}

static bool check_group(const rp_rollouts *r, const rp_rollout_group *group)
{
    bool is_free = group->lease_count == 0;

    if (group->size != r->options->group_size ||
        group->consumer_count != r->options->consumer_count)
        return false;
    if (group->number >= r->next_number ||
        (group->prev != NULL && group->prev->number >= group->number)) /* G2 */
        return false;
    if ((group->ttl_ns > 0) != (group->time.at > 0) ||
        (group->ttl_ns > 0 && group->item_count == group->size)) /* G4 */
        return false;
    if (is_free != (group->turn.at > 0) ||
        (is_free && group->item_count > 0) != (group->age.at > 0)) /* G7 */
        return false;
    if (group->age.at > 0 && group->age.key != group->first_version) return false;
    return check_items(group, rp_rollout_group_cost(r)) && check_turns(r, group);
}

static bool check_groups(const rp_rollouts *r)
{
    uint64_t counts[RP_ROLLOUT_STATES] = {0}, groups = 0, items = 0, bytes = 0, leased = 0;
    const rp_rollout_group *prev = NULL;

    for (const rp_rollout_group *g = r->first; g != NULL; prev = g, g = g->next) {
        if (g->prev != prev || !check_group(r, g)) return false;
        groups++;
        items += g->item_count;
        bytes += g->bytes;
        if (g->lease_count > 0) leased += g->bytes;
        counts[rp_rollout_state(g)]++;
    }
    return prev == r->last && groups == r->group_count && items == r->item_count &&
           bytes == r->bytes && leased == r->leased_bytes &&
           memcmp(counts, r->counts, sizeof counts) == 0; /* G2, G3 */
}

static bool check_lease(const rp_rollouts *r, size_t index)
{
    const rp_rollout_lease *lease = r->leases[index];

    if (lease->id >= r->next_lease || lease->count == 0 || lease->count > lease->capacity ||
        lease->consumer >= r->options->consumer_count || lease->time.at == 0)
        return false;
    if (index > 0 && r->leases[index - 1]->id >= lease->id) return false;
    for (size_t i = 0; i < lease->count; i++)
        if (lease->groups[i]->turns[lease->consumer].lease != lease->id) return false;
    return true;
}

static bool check_leases(const rp_rollouts *r)
{
    uint64_t leased[RP_ROLLOUT_CONSUMERS] = {0}, done[RP_ROLLOUT_CONSUMERS] = {0};
    uint64_t turns[RP_ROLLOUT_CONSUMERS] = {0};

    for (size_t i = 0; i < r->lease_count; i++) {
        if (!check_lease(r, i)) return false; /* G8 */
        leased[r->leases[i]->consumer] += r->leases[i]->count;
    }
    for (const rp_rollout_group *g = r->first; g != NULL; g = g->next)
        for (uint32_t i = 0; i < g->consumer_count; i++) {
            turns[i] += g->turns[i].lease > 0;
            done[i] += g->turns[i].is_done;
        }
    for (size_t i = 0; i < RP_ROLLOUT_CONSUMERS; i++)
        if (leased[i] != r->queues[i].leased || leased[i] != turns[i] ||
            done[i] != r->queues[i].done || !rp_rollout_heap_check(&r->queues[i].ready))
            return false;
    return r->lease_times.count == r->lease_count;
}

static bool check_stale(const rp_rollouts *r)
{
    const rp_rollout_node *node = rp_rollout_heap_first(&r->ages);

    return r->has_stale == (node != NULL && rp_rollout_is_stale(r, node->key)); /* G9 */
}

bool rp_rollout_is_valid(const rp_rollouts *r)
{
    return check_stale(r) && rp_rollout_heap_check(&r->ages) &&
           rp_rollout_heap_check(&r->oldest) && rp_rollout_heap_check(&r->times) &&
           rp_rollout_heap_check(&r->lease_times) && check_entries(r) && check_groups(r) &&
           check_leases(r);
}
