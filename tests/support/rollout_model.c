/* SPDX-License-Identifier: Apache-2.0 */
#include "support/rollout_model.h"

#include <string.h>

void model_init(model *m, const rp_rollout_options *o)
{
    memset(m, 0, sizeof *m);
    m->o = *o;
    m->consumers = o->consumer_count > 0 ? (int)o->consumer_count : 1;
    for (int i = 0; i < (int)o->consumer_count; i++)
        for (size_t k = 0; k < o->consumers[i].column_count; k++)
            m->needs[i][o->consumers[i].columns[k].data[0] - 'a'] = true;
    m->version = o->first_version;
    m->next_number = m->next_ready = m->next_lease = 1;
}

static int count_items(const model *m, const model_group *g)
{
    int n = 0;

    for (uint32_t i = 0; i < m->o.group_size; i++) n += g->items[i].is_there;
    return n;
}

static bool is_leased(const model *m, const model_group *g)
{
    for (int c = 0; c < m->consumers; c++)
        if (g->lease[c] > 0) return true;
    return false;
}

rp_rollout_fate model_state(const model *m, int group)
{
    const model_group *g = &m->groups[group];

    if (!g->is_there) return g->fate;
    if (is_leased(m, g)) return RP_ROLLOUT_LEASED;
    if (count_items(m, g) == (int)m->o.group_size) return RP_ROLLOUT_COMPLETE;
    return count_items(m, g) > 0 ? RP_ROLLOUT_PARTIAL : RP_ROLLOUT_RESERVED;
}

static uint64_t item_cost(const model_item *item)
{
    uint64_t cost = 128;

    for (int i = 0; i < MODEL_COLUMNS; i++)
        if (item->columns[i].is_there) cost += 256 + 1 + (uint64_t)item->columns[i].length;
    return cost;
}

static uint64_t base_cost(const model *m)
{
    return 1024 + 64 * (uint64_t)m->consumers + 16 * m->o.group_size;
}

static uint64_t group_cost(const model *m, const model_group *g)
{
    uint64_t cost = base_cost(m);

    for (uint32_t i = 0; i < m->o.group_size; i++)
        if (g->items[i].is_there) cost += item_cost(&g->items[i]);
    return cost;
}

static uint64_t count_groups(const model *m)
{
    uint64_t n = 0;

    for (int i = 0; i < MODEL_NAMES; i++) n += m->groups[i].is_there;
    return n;
}

static uint64_t all_bytes(const model *m)
{
    uint64_t n = 0;

    for (int i = 0; i < MODEL_NAMES; i++)
        if (m->groups[i].is_there) n += group_cost(m, &m->groups[i]);
    return n;
}

static int64_t oldest_version(const model *m, const model_group *g)
{
    int64_t version = INT64_MAX;

    for (uint32_t i = 0; i < m->o.group_size; i++)
        if (g->items[i].is_there && g->items[i].first < version) version = g->items[i].first;
    return version;
}

static bool is_stale(const model *m, int64_t first)
{
    return m->o.staleness == RP_ROLLOUT_DROP && m->o.max_staleness >= 0 &&
           m->version - first > m->o.max_staleness;
}

static void remove_group(model *m, model_group *g, rp_rollout_fate fate)
{
    memset(g, 0, sizeof *g);
    g->fate = fate;
    m->acknowledged += fate == RP_ROLLOUT_ACKNOWLEDGED;
    m->stale += fate == RP_ROLLOUT_STALE;
    m->evicted += fate == RP_ROLLOUT_EVICTED;
    m->aborted += fate == RP_ROLLOUT_ABORTED;
    m->expired_reservations += fate == RP_ROLLOUT_EXPIRED;
}

static void drop_stale(model *m)
{
    for (int i = 0; i < MODEL_NAMES; i++) {
        model_group *g = &m->groups[i];

        if (g->is_there && !is_leased(m, g) && count_items(m, g) > 0 &&
            is_stale(m, oldest_version(m, g)))
            remove_group(m, g, RP_ROLLOUT_STALE);
    }
}

/* The oldest group that is not leased and not `but`; -1: none. */
static int find_oldest(const model *m, int but)
{
    int found = -1;

    for (int i = 0; i < MODEL_NAMES; i++) {
        const model_group *g = &m->groups[i];

        if (g->is_there && i != but && !is_leased(m, g) &&
            (found < 0 || g->number < m->groups[found].number))
            found = i;
    }
    return found;
}

static bool fits(const model *m, bool begins, uint64_t bytes)
{
    uint64_t bound = m->o.max_bytes;

    if (begins) bound -= bound / 4;
    return (!begins || count_groups(m) < m->o.max_groups) &&
           (bytes == 0 || all_bytes(m) + bytes <= bound);
}

/* Makes room in a copy, and takes the copy if it succeeds. */
static model_result make_room(model *m, bool begins, uint64_t bytes, int but)
{
    static model copy;
    model_result res = {.status = RP_OK};
    uint64_t bound = begins ? m->o.max_bytes - m->o.max_bytes / 4 : m->o.max_bytes;
    uint64_t own = but >= 0 && m->groups[but].is_there ? group_cost(m, &m->groups[but]) : 0;
    int victim = 0;

    if (begins && m->o.groups_per_version > 0 &&
        count_groups(m) + m->acknowledged + 1 >
            (uint64_t)(m->o.max_staleness + m->version - m->o.first_version + 1) *
                m->o.groups_per_version) {
        res.status = RP_DEADLINE;
        res.limit = RP_ROLLOUT_BY_VERSION;
        return res;
    }
    copy = *m;
    while (m->o.full == RP_ROLLOUT_FULL_EVICT && !fits(&copy, begins, bytes) &&
           (victim = find_oldest(&copy, but)) >= 0)
        remove_group(&copy, &copy.groups[victim], RP_ROLLOUT_EVICTED);
    if (fits(&copy, begins, bytes)) {
        *m = copy;
        return res;
    }
    res.status = RP_DEADLINE;
    res.limit = RP_ROLLOUT_BY_BYTES;
    if (begins && count_groups(&copy) >= m->o.max_groups)
        res.limit = RP_ROLLOUT_BY_GROUPS;
    else if (own + bytes > bound)
        res = (model_result){.status = RP_NO_RESOURCE};
    return res;
}

static void begin(model *m, model_group *g)
{
    memset(g, 0, sizeof *g);
    g->is_there = true;
    g->number = m->next_number++;
}

static bool is_ready(const model *m, const model_group *g, int consumer)
{
    for (uint32_t i = 0; i < m->o.group_size; i++) {
        if (!g->items[i].is_there) return false;
        for (int k = 0; k < MODEL_COLUMNS; k++)
            if (m->needs[consumer][k] && !g->items[i].columns[k].is_there) return false;
    }
    return true;
}

static void set_ready(model *m, model_group *g)
{
    for (int c = 0; c < m->consumers; c++)
        if (g->ready[c] == 0 && is_ready(m, g, c)) g->ready[c] = m->next_ready++;
}

static model_result do_reserve(model *m, const model_op *op)
{
    model_group *g = &m->groups[op->group];
    model_result res = {.status = RP_OK, .changed = true};

    if (g->is_there && count_items(m, g) == (int)m->o.group_size)
        return (model_result){.status = RP_EXISTS};
    if (g->is_there) {
        res.outcome = g->ttl > 0 ? RP_ROLLOUT_REPEATED : RP_ROLLOUT_DONE;
    } else {
        res = make_room(m, true, base_cost(m), op->group);
        if (res.status != RP_OK) return res;
        begin(m, g);
        res.changed = true;
    }
    g->ttl = op->ttl;
    g->until = m->now + op->ttl;
    res.fate = model_state(m, op->group);
    return res;
}

static model_result do_abort(model *m, const model_op *op)
{
    model_group *g = &m->groups[op->group];

    if (!g->is_there && g->fate == RP_ROLLOUT_UNKNOWN)
        return (model_result){.status = RP_NOT_FOUND};
    if (!g->is_there) return (model_result){.outcome = RP_ROLLOUT_GONE, .fate = g->fate};
    if (is_leased(m, g)) return (model_result){.status = RP_PRECONDITION};
    remove_group(m, g, RP_ROLLOUT_ABORTED);
    return (model_result){.changed = true, .fate = RP_ROLLOUT_ABORTED};
}

/* Joins the columns of an operation with an item. */
static rp_status join(model_item *item, const model_op *op, bool *is_new)
{
    bool is_put = op->kind == RP_ROLLOUT_PUT;

    *is_new = !item->is_there;
    if (is_put && (!item->is_there || op->first < item->first))
        item->first = op->first, *is_new = true;
    if (is_put && (!item->is_there || op->last > item->last))
        item->last = op->last, *is_new = true;
    item->is_there = true;
    for (int i = 0; i < MODEL_COLUMNS; i++) {
        model_column *c = &item->columns[i];

        if (!op->columns[i].is_there) continue;
        if (c->is_there && c->length == op->columns[i].length &&
            (c->value == op->columns[i].value || c->length == 0))
            continue;
        if (c->is_there && !(op->kind == RP_ROLLOUT_UPDATE && op->replace)) return RP_EXISTS;
        *c = op->columns[i];
        *is_new = true;
    }
    return RP_OK;
}

static model_result change_item(model *m, const model_op *op, const model_item *item)
{
    model_group *g = &m->groups[op->group];
    const model_item *old = &g->items[op->index];
    uint64_t before = g->is_there && old->is_there ? item_cost(old) : 0;
    uint64_t more = item_cost(item) > before ? item_cost(item) - before : 0;
    bool begins = !g->is_there;
    model_result res = make_room(m, begins, more + (begins ? base_cost(m) : 0), op->group);

    if (res.status != RP_OK) return res;
    if (begins) begin(m, g);
    g->items[op->index] = *item;
    if (op->kind == RP_ROLLOUT_PUT && g->ttl > 0) g->until = m->now + g->ttl;
    if (count_items(m, g) == (int)m->o.group_size) g->ttl = g->until = 0;
    set_ready(m, g);
    res.changed = true;
    res.fate = model_state(m, op->group);
    return res;
}

static model_result do_put(model *m, const model_op *op)
{
    model_group *g = &m->groups[op->group];
    model_item item = {0};
    bool is_new;

    if (!g->is_there && g->fate != RP_ROLLOUT_UNKNOWN)
        return (model_result){.outcome = RP_ROLLOUT_GONE, .fate = g->fate};
    if (op->index >= (int)m->o.group_size) return (model_result){.status = RP_INVALID};
    if (g->is_there) item = g->items[op->index];
    if (join(&item, op, &is_new) != RP_OK) return (model_result){.status = RP_EXISTS};
    if (!is_new)
        return (model_result){.outcome = RP_ROLLOUT_REPEATED,
                              .fate = model_state(m, op->group)};
    if (is_stale(m, item.first) && !is_leased(m, g)) {
        remove_group(m, g, RP_ROLLOUT_STALE);
        return (model_result){
            .outcome = RP_ROLLOUT_GONE, .fate = RP_ROLLOUT_STALE, .changed = true};
    }
    return change_item(m, op, &item);
}

static model_result do_update(model *m, const model_op *op)
{
    model_group *g = &m->groups[op->group];
    model_item item;
    bool is_new;

    if (!g->is_there && g->fate == RP_ROLLOUT_UNKNOWN)
        return (model_result){.status = RP_NOT_FOUND};
    if (!g->is_there) return (model_result){.outcome = RP_ROLLOUT_GONE, .fate = g->fate};
    if (op->index >= (int)m->o.group_size) return (model_result){.status = RP_INVALID};
    item = g->items[op->index];
    if (!item.is_there) return (model_result){.status = RP_NOT_FOUND};
    if (join(&item, op, &is_new) != RP_OK) return (model_result){.status = RP_EXISTS};
    if (!is_new)
        return (model_result){.outcome = RP_ROLLOUT_REPEATED,
                              .fate = model_state(m, op->group)};
    return change_item(m, op, &item);
}

/* True if group `a` is drawn before group `b`. */
static bool precedes(const model *m, int consumer, int a, int b)
{
    const model_group *x = &m->groups[a], *y = &m->groups[b];

    if (m->o.order == RP_ROLLOUT_LIFO) return x->ready[consumer] > y->ready[consumer];
    if (m->o.order == RP_ROLLOUT_FRESHEST && oldest_version(m, x) != oldest_version(m, y))
        return oldest_version(m, x) > oldest_version(m, y);
    return x->ready[consumer] < y->ready[consumer];
}

static int next_ready(const model *m, int consumer, const model_result *res)
{
    int found = -1;

    for (int i = 0; i < MODEL_NAMES; i++) {
        const model_group *g = &m->groups[i];
        bool taken = false;

        for (int k = 0; k < res->drawn_count; k++) taken = taken || res->drawn[k] == i;
        if (!g->is_there || taken || g->ready[consumer] == 0 || g->lease[consumer] > 0 ||
            g->is_done[consumer])
            continue;
        if (found < 0 || precedes(m, consumer, i, found)) found = i;
    }
    return found;
}

static model_result do_draw(model *m, const model_op *op)
{
    model_result res = {.status = RP_OK};
    model_lease *lease;
    uint64_t left = op->tokens;
    uint32_t least = op->min_groups > 0 ? op->min_groups : 1;
    bool is_full = false;
    model_result all = {.status = RP_OK};
    int group;

    if (op->consumer >= m->consumers) return (model_result){.status = RP_NOT_FOUND};
    if (op->min_groups > m->o.max_groups) return (model_result){.status = RP_INVALID};
    while ((group = next_ready(m, op->consumer, &all)) >= 0)
        all.drawn[all.drawn_count++] = group;
    if (all.drawn_count < (int)least)
        return (model_result){.status = RP_DEADLINE, .limit = RP_ROLLOUT_BY_READY};
    while (!is_full && res.drawn_count < (int)op->groups &&
           (group = next_ready(m, op->consumer, &res)) >= 0) {
        uint64_t rows = 0;

        for (uint32_t i = 0; op->column >= 0 && i < m->o.group_size; i++) {
            const model_column *c = &m->groups[group].items[i].columns[op->column];

            if (!c->is_there) return (model_result){.status = RP_NOT_FOUND};
            rows += (uint64_t)c->length;
        }
        is_full = op->column >= 0 && rows > left;
        if (is_full && res.drawn_count == 0) return (model_result){.status = RP_PRECONDITION};
        if (is_full) break;
        left -= rows;
        res.drawn[res.drawn_count++] = group;
    }
    if (m->next_lease < (uint64_t)m->now / 1000) m->next_lease = (uint64_t)m->now / 1000;
    lease = &m->leases[m->next_lease];
    *lease = (model_lease){.is_there = true,
                           .consumer = op->consumer,
                           .count = res.drawn_count,
                           .until = m->now + op->ttl};
    for (int i = 0; i < res.drawn_count; i++) {
        int64_t staleness = m->version - oldest_version(m, &m->groups[res.drawn[i]]);

        if (staleness < 0) staleness = 0;
        m->staleness[staleness < 16 ? staleness : 16]++;
        lease->groups[i] = res.drawn[i];
        m->groups[res.drawn[i]].lease[op->consumer] = m->next_lease;
        m->drawn[op->consumer]++;
    }
    m->next_lease++;
    res.changed = true;
    return res;
}

static void end_lease(model *m, model_lease *lease, bool is_done)
{
    lease->is_there = false;
    lease->was_acked = is_done;
    for (int i = 0; i < lease->count; i++) {
        model_group *g = &m->groups[lease->groups[i]];
        int done = 0;

        g->lease[lease->consumer] = 0;
        g->is_done[lease->consumer] = is_done;
        if (is_done) m->acked[lease->consumer]++;
        for (int c = 0; c < m->consumers; c++) done += g->is_done[c];
        if (done == m->consumers) remove_group(m, g, RP_ROLLOUT_ACKNOWLEDGED);
    }
    drop_stale(m);
}

static model_result do_lease(model *m, const model_op *op)
{
    model_lease *lease = &m->leases[op->lease < m->next_lease ? op->lease : 0];

    if (!lease->is_there && lease->was_acked && op->kind == RP_ROLLOUT_ACK)
        return (model_result){.outcome = RP_ROLLOUT_REPEATED};
    if (!lease->is_there)
        return (model_result){.status = lease->was_acked ? RP_PRECONDITION : RP_NOT_FOUND};
    if (op->kind == RP_ROLLOUT_RENEW)
        lease->until = m->now + op->ttl;
    else
        end_lease(m, lease, op->kind == RP_ROLLOUT_ACK);
    return (model_result){.changed = true};
}

static model_result do_expire(model *m)
{
    model_result res = {.status = RP_OK};

    for (int i = 0; i < MODEL_NAMES; i++) {
        model_group *g = &m->groups[i];

        if (!g->is_there || g->ttl == 0 || g->until > m->now) continue;
        remove_group(m, g, RP_ROLLOUT_EXPIRED);
        res.changed = true;
    }
    for (uint64_t i = 1; i < m->next_lease; i++) {
        if (!m->leases[i].is_there || m->leases[i].until > m->now) continue;
        end_lease(m, &m->leases[i], false);
        m->expired_leases++;
        res.changed = true;
    }
    return res;
}

static model_result do_advance(model *m, const model_op *op)
{
    if (op->version <= m->version) return (model_result){.outcome = RP_ROLLOUT_REPEATED};
    m->version = op->version;
    drop_stale(m);
    return (model_result){.changed = true};
}

static model_result dispatch(model *m, const model_op *op)
{
    switch (op->kind) {
    case RP_ROLLOUT_RESERVE: return do_reserve(m, op);
    case RP_ROLLOUT_ABORT: return do_abort(m, op);
    case RP_ROLLOUT_PUT: return do_put(m, op);
    case RP_ROLLOUT_UPDATE: return do_update(m, op);
    case RP_ROLLOUT_ADVANCE: return do_advance(m, op);
    case RP_ROLLOUT_DRAW: return do_draw(m, op);
    case RP_ROLLOUT_ACK:
    case RP_ROLLOUT_RELEASE:
    case RP_ROLLOUT_RENEW: return do_lease(m, op);
    case RP_ROLLOUT_EXPIRE: return do_expire(m);
    default: return (model_result){.status = RP_INVALID};
    }
}

model_result model_apply(model *m, const model_op *op)
{
    m->now = op->now;
    return dispatch(m, op);
}

static void consumer_info(const model *m, int consumer, rp_rollout_consumer_info *out)
{
    out->drawn = m->drawn[consumer];
    out->acknowledged = m->acked[consumer];
    for (int i = 0; i < MODEL_NAMES; i++) {
        const model_group *g = &m->groups[i];

        if (!g->is_there) continue;
        if (g->lease[consumer] > 0)
            out->leased++;
        else if (g->is_done[consumer])
            out->done++;
        else if (g->ready[consumer] > 0)
            out->ready++;
        else
            out->waiting++;
    }
}

void model_info(const model *m, rp_rollout_info *out)
{
    memset(out, 0, sizeof *out);
    out->version = m->version;
    out->groups = count_groups(m);
    out->bytes = all_bytes(m);
    for (int i = 0; i < MODEL_NAMES; i++) {
        rp_rollout_fate state = model_state(m, i);

        if (m->groups[i].is_there) out->items += (uint64_t)count_items(m, &m->groups[i]);
        out->reserved += state == RP_ROLLOUT_RESERVED;
        out->partial += state == RP_ROLLOUT_PARTIAL;
        out->complete += state == RP_ROLLOUT_COMPLETE;
        out->leased += state == RP_ROLLOUT_LEASED;
    }
    for (uint64_t i = 1; i < m->next_lease; i++) out->leases += m->leases[i].is_there;
    out->acknowledged = m->acknowledged;
    out->begun = out->groups + m->acknowledged;
    out->may_begin =
        m->o.groups_per_version == 0
            ? UINT64_MAX
            : (uint64_t)(m->o.max_staleness + m->version - m->o.first_version + 1) *
                  m->o.groups_per_version;
    out->stale = m->stale;
    out->evicted = m->evicted;
    out->aborted = m->aborted;
    out->expired_reservations = m->expired_reservations;
    out->expired_leases = m->expired_leases;
    memcpy(out->staleness, m->staleness, sizeof out->staleness);
    out->consumer_count = (size_t)m->consumers;
    for (int c = 0; c < m->consumers; c++) consumer_info(m, c, &out->consumers[c]);
}
