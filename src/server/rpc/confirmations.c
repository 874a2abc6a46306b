/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/confirmations.h"

#include <assert.h>
#include <string.h>

#include "util/mem.h"
#include "util/verify.h"

enum { FIRST_KEYS = 64, KEPT_KEYS = 512 };

#ifndef NDEBUG
static bool is_valid(const rp_confirmations *c)
{
    size_t count = c->ready;

    if (c->mark_count > RP_CONFIRMATION_MARKS || c->count > c->capacity) return false;
    for (size_t i = 0; i < c->mark_count; i++) {
        count += c->marks[i].count;
        if (i > 0 && c->marks[i].lsn <= c->marks[i - 1].lsn) return false; /* F2 */
    }
    return count == c->count; /* F1 */
}
#endif

static bool reserve(rp_confirmations *c, const rp_allocator *alloc, size_t needed)
{
    size_t capacity = needed < FIRST_KEYS ? FIRST_KEYS : 2 * needed;

    if (needed <= c->capacity) return true;
    if (!rp_resize_array(alloc, &c->keys, c->capacity, capacity, sizeof *c->keys)) return false;
    c->capacity = capacity;
    return true;
}

/* Adds a mark for `count` keys that are safe at `lsn`, or at the LSN of the previous mark if
 * that is higher. */
static void mark(rp_confirmations *c, uint64_t lsn, size_t count)
{
    size_t last = c->mark_count > 0 ? c->mark_count - 1 : 0;

    if (c->mark_count > 0 &&
        (lsn <= c->marks[last].lsn || c->mark_count == RP_CONFIRMATION_MARKS)) {
        if (lsn > c->marks[last].lsn) c->marks[last].lsn = lsn;
        c->marks[last].count += count;
        return;
    }
    c->marks[c->mark_count].lsn = lsn;
    c->marks[c->mark_count++].count = count;
}

rp_status rp_confirmations_add(rp_confirmations *c, const rp_allocator *alloc,
                               const rp_insert *items, size_t count, uint64_t lsn,
                               uint64_t safe)
{
    if (!reserve(c, alloc, c->count + count)) return RP_NO_RESOURCE;
    for (size_t i = 0; i < count; i++) c->keys[c->count + i] = items[i].key;
    c->count += count;
    if (lsn <= safe && c->mark_count == 0)
        c->ready = c->count;
    else
        mark(c, lsn, count);
    RP_VERIFY(c->mark_count, is_valid(c));
    return RP_OK;
}

void rp_confirmations_settle(rp_confirmations *c, uint64_t safe)
{
    size_t settled = 0;

    while (settled < c->mark_count && c->marks[settled].lsn <= safe)
        c->ready += c->marks[settled++].count;
    if (settled == 0) return;
    c->mark_count -= settled;
    memmove(c->marks, c->marks + settled, c->mark_count * sizeof c->marks[0]);
    RP_VERIFY(c->mark_count, is_valid(c));
}

uint64_t rp_confirmations_next(const rp_confirmations *c)
{
    return c->mark_count > 0 ? c->marks[0].lsn : 0;
}

void rp_confirmations_sent(rp_confirmations *c, const rp_allocator *alloc)
{
    assert(c->ready <= c->count); /* F1 */
    c->count -= c->ready;
    if (c->count > 0) memmove(c->keys, c->keys + c->ready, c->count * sizeof *c->keys);
    c->ready = 0;
    if (c->count > 0 || c->capacity <= KEPT_KEYS) return;
    rp_release(alloc, c->keys, c->capacity * sizeof *c->keys);
    c->keys = NULL;
    c->capacity = 0;
}

void rp_confirmations_deinit(rp_confirmations *c, const rp_allocator *alloc)
{
    rp_release(alloc, c->keys, c->capacity * sizeof *c->keys);
    *c = (rp_confirmations){0};
}
