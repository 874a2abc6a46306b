/* SPDX-License-Identifier: Apache-2.0 */
/* Advance, configure, cursors. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "rollouts/rollouts_calls.h"
#include "util/error.h"
#include "util/mem.h"

static int compare_needs(const void *a, const void *b)
{
    return rp_rollout_compare(((const rp_rollout_need *)a)->name,
                              ((const rp_rollout_need *)b)->name);
}

bool rp_rollout_needs_new(const rp_allocator *alloc, const rp_rollout_options *options,
                          rp_rollout_need **out, size_t *count)
{
    rp_rollout_need *needs;
    size_t total = 0, kept = 0;

    for (size_t i = 0; i < options->consumer_count; i++)
        total += options->consumers[i].column_count;
    *out = NULL;
    *count = 0;
    if (total == 0) return true;
    needs = rp_alloc_array(alloc, total, sizeof *needs);
    if (needs == NULL) return false;
    for (size_t i = 0; i < options->consumer_count; i++)
        for (size_t k = 0; k < options->consumers[i].column_count; k++)
            needs[kept++] =
                (rp_rollout_need){options->consumers[i].columns[k], (uint32_t)1 << i};
    qsort(needs, total, sizeof *needs, compare_needs);
    kept = 0;
    for (size_t i = 1; i < total; i++) { /* each name once */
        if (rp_rollout_equal(needs[kept].name, needs[i].name))
            needs[kept].consumers |= needs[i].consumers;
        else
            needs[++kept] = needs[i];
    }
    for (size_t i = kept + 1; i < total; i++) needs[i] = needs[kept];
    *out = needs;
    *count = total;
    return true;
}

void rp_rollout_needs_free(const rp_allocator *alloc, rp_rollout_need *needs, size_t count)
{
    rp_release(alloc, needs, count * sizeof *needs);
}

uint32_t rp_rollout_needed_by(const rp_rollouts *r, rp_string column)
{
    size_t low = 0, high = r->need_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = rp_rollout_compare(r->needs[middle].name, column);

        if (order == 0) return r->needs[middle].consumers;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

rp_status rp_rollout_do_advance(rp_rollout_work *w)
{
    rp_rollouts *r = w->r;

    if (w->op->version <= r->version) {
        w->result->outcome = RP_ROLLOUT_REPEATED;
        return RP_OK;
    }
    r->version = w->op->version;
    (void)rp_rollout_drop_stale(w);
    w->result->changed = true;
    w->result->releases = true;
    return RP_OK;
}

/* Changes the share of these rollouts in the bytes of their set. */
static rp_status reshare(rp_rollout_work *w)
{
    uint64_t now = w->r->options->max_bytes, wanted = w->op->options->max_bytes;
    rp_rollout_common *c = w->r->common;
    uint64_t others, most;
    bool fits;

    if (c == NULL || wanted == now) return RP_OK;
    rp_mutex_lock(&c->mu);
    others = c->bytes - now;
    most = c->most_bytes;
    fits = wanted < now || (others <= most && wanted <= most - others);
    if (fits) c->bytes = others + wanted;
    rp_mutex_unlock(&c->mu);
    if (fits) return RP_OK;
    return rp_fail(w->err, RP_NO_RESOURCE,
                   "max_bytes %" PRIu64 " and those of other rollouts, %" PRIu64
                   ", exceed the limit of %" PRIu64
                   " for all rollouts: lower max_bytes, or give the store more memory",
                   wanted, others, most);
}

static rp_status check_configure(const rp_rollout_work *w)
{
    const rp_rollout_options *o = w->r->options, *wanted = w->op->options;

    if (wanted->first_version != o->first_version)
        return rp_fail(w->err, RP_PRECONDITION,
                       "first_version is %" PRId64 " and cannot change", o->first_version);
    if (w->r->group_count == 0) return RP_OK;
    if (wanted->group_size != o->group_size)
        return rp_fail(w->err, RP_PRECONDITION,
                       "group_size cannot change while there are groups: %" PRIu64,
                       w->r->group_count);
    if (!rp_rollout_consumers_equal(o, wanted))
        return rp_fail(w->err, RP_PRECONDITION,
                       "the consumers cannot change while there are groups: %" PRIu64,
                       w->r->group_count);
    return RP_OK;
}

static void forget_consumers(rp_rollouts *r)
{
    for (size_t i = 0; i < RP_ROLLOUT_CONSUMERS; i++) {
        rp_rollout_queue *queue = &r->queues[i];

        queue->leased = queue->done = queue->drawn = queue->acknowledged = 0;
    }
}

rp_status rp_rollout_do_configure(rp_rollout_work *w)
{
    rp_rollouts *r = w->r;
    rp_rollout_options *options;
    rp_rollout_need *needs;
    size_t need_count;
    bool reorders;
    rp_status st = check_configure(w);

    if (st != RP_OK) return st;
    options = rp_rollout_options_copy(&r->alloc, w->op->options);
    if (options == NULL) return rp_fail_memory(w->err, sizeof *options);
    if (!rp_rollout_needs_new(&r->alloc, options, &needs, &need_count)) {
        rp_rollout_options_free(options, &r->alloc);
        return rp_fail_memory(w->err, sizeof *needs);
    }
    st = reshare(w);
    if (st != RP_OK) {
        rp_rollout_needs_free(&r->alloc, needs, need_count);
        rp_rollout_options_free(options, &r->alloc);
        return st;
    }
    if (!rp_rollout_consumers_equal(r->options, options)) forget_consumers(r);
    reorders = options->order != r->options->order;
    rp_rollout_needs_free(&r->alloc, r->needs, r->need_count);
    rp_rollout_options_free(r->options, &r->alloc);
    r->options = options;
    r->needs = needs;
    r->need_count = need_count;
    if (reorders) rp_rollout_reorder(r);
    (void)rp_rollout_drop_stale(w);
    w->result->changed = true;
    w->result->releases = true;
    return RP_OK;
}

/* The index of the first cursor whose name is not below `name`. */
static size_t cursor_index(const rp_rollouts *r, rp_string name, bool *found)
{
    size_t i = 0;
    int order = 1;

    while (i < r->cursor_count &&
           (order = rp_rollout_compare(rp_rollout_name_text(r->cursors[i].name), name)) < 0)
        i++;
    *found = i < r->cursor_count && order == 0;
    return i;
}

static void remove_cursor(rp_rollouts *r, size_t index)
{
    rp_rollout_cursor *c = &r->cursors[index];

    assert(index < r->cursor_count);
    rp_rollout_name_unref(c->name);
    rp_release(&r->alloc, c->data, c->size);
    r->cursor_count--;
    memmove(c, c + 1, (r->cursor_count - index) * sizeof *c);
}

rp_status rp_rollout_set_cursor(rp_rollouts *r, rp_string name, rp_bytes data, rp_error *err)
{
    bool found;
    size_t index = cursor_index(r, name, &found);
    rp_rollout_cursor *c = &r->cursors[index];
    rp_rollout_cursor fresh = {.size = data.size};

    assert(data.size > 0 && r->cursor_count <= RP_ROLLOUT_CURSORS);
    if (!found && r->cursor_count == RP_ROLLOUT_CURSORS)
        return rp_fail(err, RP_NO_RESOURCE, "there are %d cursors, which is the limit",
                       RP_ROLLOUT_CURSORS);
    fresh.data = rp_alloc(&r->alloc, data.size);
    fresh.name = fresh.data != NULL ? rp_rollout_name_new(&r->alloc, name) : NULL;
    if (fresh.name == NULL) {
        rp_release(&r->alloc, fresh.data, fresh.size);
        return rp_fail_memory(err, data.size);
    }
    memcpy(fresh.data, data.data, data.size);
    if (found) remove_cursor(r, index);
    memmove(c + 1, c, (r->cursor_count - index) * sizeof *c);
    r->cursor_count++;
    *c = fresh;
    return RP_OK;
}

static bool is_cursor(const rp_rollouts *r, size_t index, rp_bytes data)
{
    const rp_rollout_cursor *c = &r->cursors[index];

    return c->size == data.size && memcmp(c->data, data.data, data.size) == 0;
}

rp_status rp_rollout_do_cursor(rp_rollout_work *w)
{
    rp_rollouts *r = w->r;
    bool found;
    size_t index = cursor_index(r, w->op->cursor, &found);
    rp_status st = RP_OK;

    if (w->op->data.size == 0 ? !found : found && is_cursor(r, index, w->op->data)) {
        w->result->outcome = RP_ROLLOUT_REPEATED;
        return RP_OK;
    }
    if (w->op->data.size == 0)
        remove_cursor(r, index);
    else
        st = rp_rollout_set_cursor(r, w->op->cursor, w->op->data, w->err);
    w->result->changed = st == RP_OK;
    return st;
}

void rp_rollout_cursors_free(rp_rollouts *r)
{
    while (r->cursor_count > 0) remove_cursor(r, r->cursor_count - 1);
}

rp_status rp_rollouts_read_cursor(rp_rollouts *r, rp_string cursor, rp_buf *out)
{
    rp_status st = RP_NOT_FOUND;
    size_t index;
    bool found;

    rp_mutex_lock(&r->mu);
    index = cursor_index(r, cursor, &found);
    if (found) {
        rp_buf_append(out, r->cursors[index].data, r->cursors[index].size);
        st = out->bad ? RP_NO_RESOURCE : RP_OK;
    }
    rp_mutex_unlock(&r->mu);
    return st;
}

bool rp_rollouts_cursor_name(rp_rollouts *r, size_t index, char out[RP_ROLLOUT_NAME_BYTES + 1])
{
    bool found;

    rp_mutex_lock(&r->mu);
    found = index < r->cursor_count;
    if (found) {
        rp_string name = rp_rollout_name_text(r->cursors[index].name);

        memcpy(out, name.data, name.size);
        out[name.size] = '\0';
    }
    rp_mutex_unlock(&r->mu);
    return found;
}
