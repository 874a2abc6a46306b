/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator for tests. It fails when the test says so, and counts the blocks in use.
 *
 *   rp_test_oom o = RP_TEST_OOM_INIT(3);    // the fourth and later allocations fail
 *   rp_allocator a = rp_test_oom_allocator(&o);
 *   ... call with &a ...
 *   assert_int_equal(o.live, 0);
 *
 * Growing or shrinking a block counts as an allocation, since it may fail like one. Each block
 * has its size in front, so that a wrong size at free is found at once. New bytes are filled
 * with a pattern, so that code does not rely on zeroes. Safe from any thread. */
#ifndef RP_TEST_OOM_H
#define RP_TEST_OOM_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reprise/alloc.h"

/* With this number, all allocations succeed. */
#define RP_TEST_OOM_UNLIMITED SIZE_MAX

typedef struct rp_test_oom {
    atomic_size_t left;       /* allocations that still succeed */
    atomic_size_t live;       /* blocks in use */
    atomic_size_t live_bytes; /* bytes of the blocks in use */
    atomic_size_t peak_bytes; /* the most live_bytes has been; exact with one thread */
    atomic_size_t total;      /* allocations that succeeded */
    atomic_size_t failed;     /* allocations that were refused */
} rp_test_oom;

/* clang-format off */
#define RP_TEST_OOM_INIT(room) {.left = (room)}
/* clang-format on */

/* In front of each block; as large as the strictest alignment. */
typedef union rp_test_oom_head {
    size_t size;
    max_align_t align;
} rp_test_oom_head;

static inline bool rp_test_oom_take(rp_test_oom *o)
{
    size_t left = atomic_load(&o->left);

    do {
        if (left == RP_TEST_OOM_UNLIMITED) break;
        if (left == 0) {
            atomic_fetch_add(&o->failed, 1);
            return false;
        }
    } while (!atomic_compare_exchange_weak(&o->left, &left, left - 1));
    atomic_fetch_add(&o->total, 1);
    return true;
}

static inline void rp_test_oom_grow(rp_test_oom *o, size_t bytes)
{
    size_t now = atomic_fetch_add(&o->live_bytes, bytes) + bytes;
    size_t peak = atomic_load(&o->peak_bytes);

    while (now > peak && !atomic_compare_exchange_weak(&o->peak_bytes, &peak, now)) {}
}

static inline void rp_test_oom_free(rp_test_oom *o, rp_test_oom_head *head)
{
    atomic_fetch_sub(&o->live, 1);
    atomic_fetch_sub(&o->live_bytes, head->size);
    memset(head + 1, 0xdd, head->size);
    free(head);
}

static inline void *rp_test_oom_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    rp_test_oom *o = ctx;
    rp_test_oom_head *head = ptr != NULL ? (rp_test_oom_head *)ptr - 1 : NULL, *block;

    if (head != NULL && head->size != old_size) {
        (void)fprintf(stderr, "oom: a block of %zu bytes was given back as one of %zu\n",
                      head->size, old_size);
        abort();
    }
    if (new_size == 0) {
        if (head != NULL) rp_test_oom_free(o, head);
        return NULL;
    }
    if (!rp_test_oom_take(o)) return NULL;
    if (new_size > SIZE_MAX - sizeof *block) return NULL;
    block = malloc(sizeof *block + new_size);
    if (block == NULL) return NULL;
    block->size = new_size;
    memset(block + 1, 0xa5, new_size);
    atomic_fetch_add(&o->live, 1);
    rp_test_oom_grow(o, new_size);
    if (head != NULL) { /* always moves, so that use of a stale pointer is found */
        memcpy(block + 1, ptr, old_size < new_size ? old_size : new_size);
        rp_test_oom_free(o, head);
    }
    return block + 1;
}

/* Borrows `o`, which must outlive the allocator and all blocks from it. */
static inline rp_allocator rp_test_oom_allocator(rp_test_oom *o)
{
    return (rp_allocator){rp_test_oom_resize, o};
}

#endif
