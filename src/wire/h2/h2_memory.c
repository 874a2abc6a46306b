/* SPDX-License-Identifier: Apache-2.0 */
/* Each block is preceded by its size. */
#include "wire/h2/h2_memory.h"

#include <assert.h>

#include "util/mem.h"

typedef union head {
    size_t bytes; /* of the block, this header included */
    max_align_t align;
} head;

static void *resize(void *ptr, size_t size, void *user)
{
    const rp_allocator *alloc = user;
    head *old = ptr != NULL ? (head *)ptr - 1 : NULL, *block;
    size_t bytes;

    if (!rp_size_add(size, sizeof *block, &bytes)) return NULL;
    block = alloc->resize(alloc->ctx, old, old != NULL ? old->bytes : 0, bytes);
    if (block == NULL) return NULL;
    block->bytes = bytes;
    return block + 1;
}

static void *allocate(size_t size, void *user)
{
    return resize(NULL, size, user);
}

static void *allocate_zero(size_t count, size_t size, void *user)
{
    size_t bytes;
    void *block;

    if (!rp_size_mul(count, size, &bytes)) return NULL;
    block = resize(NULL, bytes, user);
    return block != NULL ? memset(block, 0, bytes) : NULL;
}

static void release(void *ptr, void *user)
{
    head *block = ptr != NULL ? (head *)ptr - 1 : NULL;

    assert(block == NULL || block->bytes >= sizeof *block);
    if (block != NULL) rp_release(user, block, block->bytes);
}

nghttp2_mem rp_h2_memory(rp_allocator *alloc)
{
    return (nghttp2_mem){alloc, allocate, release, allocate_zero, resize};
}
