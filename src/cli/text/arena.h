/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: allocates blocks of memory that are freed all at once. The program `reprise` uses
 * one for each configuration and parsed file. Not thread-safe. */
#ifndef RP_CLI_TEXT_ARENA_H
#define RP_CLI_TEXT_ARENA_H

#include "reprise/alloc.h"

typedef struct rp_arena {
    const rp_allocator *alloc;
    struct rp_arena_block *blocks; /* newest first */
} rp_arena;

/* Initialises an empty arena. Borrows `alloc`, which must outlive the arena. NULL means the C
 * library's allocator. */
void rp_arena_init(rp_arena *arena, const rp_allocator *alloc);
void rp_arena_deinit(rp_arena *arena);

/* Returns `size` zeroed bytes, aligned for any type and valid until the arena is deinitialised.
 * Returns NULL if memory runs out. */
void *rp_arena_take(rp_arena *arena, size_t size);

/* Makes room for one more element in an array of `count` elements and updates `*capacity`.
 * Returns the array that the caller must use afterwards: `array` itself, or a larger copy in
 * the arena. `array` stays valid until the arena is deinitialised. Returns NULL if memory runs
 * out. */
void *rp_arena_grow(rp_arena *arena, const void *array, size_t count, size_t *capacity,
                    size_t element_size);

/* Return a zero-terminated string in the arena: a copy of `size` bytes of `text`, or formatted
 * text. Return NULL if memory runs out. */
char *rp_arena_text(rp_arena *arena, const char *text, size_t size);
char *rp_arena_format(rp_arena *arena, const char *format, ...) RP_PRINTF(2, 3);

#endif
