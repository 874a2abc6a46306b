/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the known word that is most similar to a misspelt one, for hints such as "did you
 * mean".
 *
 * Usage: call rp_nearest_init() with the misspelt word, rp_nearest_offer() with each known
 * word, then rp_nearest_get(). */
#ifndef RP_CLI_TEXT_NEAREST_H
#define RP_CLI_TEXT_NEAREST_H

#include <stddef.h>

typedef struct rp_nearest {
    const char *word; /* the misspelt word */
    const char *best; /* the nearest candidate so far; NULL: none */
    size_t distance;  /* edit distance of `best` from `word` */
} rp_nearest;

/* Returns the edit distance of two words: the least number of steps that turn one word into the
 * other. A step changes, deletes or inserts a letter, or swaps two adjacent letters. '-' and
 * '_' count as the same letter. Returns SIZE_MAX if a word is longer than 64 bytes. */
size_t rp_edit_distance(const char *a, const char *b);

void rp_nearest_init(rp_nearest *nearest, const char *word); /* borrows it */
void rp_nearest_offer(rp_nearest *nearest, const char *candidate);

/* Returns the nearest candidate, or NULL if no candidate is similar enough. */
const char *rp_nearest_get(const rp_nearest *nearest);

#endif
