/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: memory that is freed all at once, for a configuration and everything it points to.
 * One thread. */
#ifndef RP_CLI_TEXT_ARENA_H
#define RP_CLI_TEXT_ARENA_H

#include "reprise/alloc.h"

typedef struct rp_arena {
    const rp_allocator *alloc;
    struct rp_arena_block *blocks; /* newest first */
} rp_arena;

/* `alloc` is borrowed and must outlive the arena; NULL: the C library's. */
void rp_arena_init(rp_arena *arena, const rp_allocator *alloc);
void rp_arena_deinit(rp_arena *arena);

/* Returns `size` zeroed bytes, aligned for any type and valid until the arena is deinitialised.
 * NULL if there is no memory. */
void *rp_arena_take(rp_arena *arena, size_t size);

/* Makes room for one more element in an array of the arena and updates `*capacity`. Returns the
 * array to use from now on (the old one stays readable). NULL if there is no memory. */
void *rp_arena_grow(rp_arena *arena, const void *array, size_t count, size_t *capacity,
                    size_t element_size);

/* Return a terminated string: a copy of `size` bytes of `text`, or formatted text. NULL if
 * there is no memory. */
char *rp_arena_text(rp_arena *arena, const char *text, size_t size);
char *rp_arena_format(rp_arena *arena, const char *format, ...) RP_PRINTF(2, 3);

#endif
