/* SPDX-License-Identifier: Apache-2.0 */
/* A list of blocks. Memory is taken from the newest block; free bytes of older blocks stay
 * unused.
 *
 * Invariants of each block:
 *   A1  head <= used <= size, where head is the size of rp_arena_block, rounded up;
 *   A2  used is a multiple of the alignment of max_align_t. */
#include "cli/text/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_BYTES = 8192 };

typedef struct rp_arena_block {
    struct rp_arena_block *next;
    size_t size, used; /* bytes, including this head (A1) */
} rp_arena_block;

/* Rounds up to a multiple of the alignment. */
static size_t aligned(size_t size)
{
    return (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
}

void rp_arena_init(rp_arena *arena, const rp_allocator *alloc)
{
    *arena = (rp_arena){.alloc = alloc != NULL ? alloc : rp_allocator_default()};
}

void rp_arena_deinit(rp_arena *arena)
{
    rp_arena_block *next;

    if (arena == NULL) return;
    for (rp_arena_block *b = arena->blocks; b != NULL; b = next) {
        next = b->next;
        assert(b->used >= aligned(sizeof *b) && b->used <= b->size); /* A1 */
        (void)arena->alloc->resize(arena->alloc->ctx, b, b->size, 0);
    }
    arena->blocks = NULL;
}

void *rp_arena_take(rp_arena *arena, size_t size)
{
    rp_arena_block *b = arena->blocks;
    size_t head = aligned(sizeof *b), block_bytes;
    char *bytes;

    if (size > SIZE_MAX / 2) return NULL;
    size = aligned(size);
    if (b == NULL || b->size - b->used < size) {
        block_bytes = head + size > BLOCK_BYTES ? head + size : BLOCK_BYTES;
        b = arena->alloc->resize(arena->alloc->ctx, NULL, 0, block_bytes);
        if (b == NULL) return NULL;
        *b = (rp_arena_block){arena->blocks, block_bytes, head};
        arena->blocks = b;
    }
    assert(b->used % alignof(max_align_t) == 0 && size <= b->size - b->used); /* A2 */
    bytes = (char *)b + b->used;
    b->used += size;
    memset(bytes, 0, size);
    return bytes;
}

void *rp_arena_grow(rp_arena *arena, const void *array, size_t count, size_t *capacity,
                    size_t element_size)
{
    size_t wanted = *capacity == 0 ? 8 : 2 * *capacity, bytes;
    void *grown;

    assert(count <= *capacity && element_size > 0);
    if (count < *capacity) return (void *)array;
    if (__builtin_mul_overflow(wanted, element_size, &bytes)) return NULL;
    grown = rp_arena_take(arena, bytes);
    if (grown == NULL) return NULL;
    if (count > 0) memcpy(grown, array, count * element_size);
    *capacity = wanted;
    assert(count < *capacity);
    return grown;
}

char *rp_arena_text(rp_arena *arena, const char *text, size_t size)
{
    char *copy = size < SIZE_MAX ? rp_arena_take(arena, size + 1) : NULL;

    if (copy != NULL && size > 0) memcpy(copy, text, size);
    return copy;
}

char *rp_arena_format(rp_arena *arena, const char *format, ...)
{
    va_list args;
    char *text;
    int size;

    va_start(args, format);
    size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    text = size >= 0 ? rp_arena_take(arena, (size_t)size + 1) : NULL;
    if (text == NULL) return NULL;
    va_start(args, format);
    (void)vsnprintf(text, (size_t)size + 1, format, args);
    va_end(args);
    return text;
}
