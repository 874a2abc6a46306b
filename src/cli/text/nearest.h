/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the known word that is nearest to an unknown one, for "did you mean". */
#ifndef RP_CLI_TEXT_NEAREST_H
#define RP_CLI_TEXT_NEAREST_H

#include <stddef.h>

typedef struct rp_nearest {
    const char *word;
    const char *best; /* the nearest candidate so far; NULL: none */
    size_t distance;  /* of `best` from `word` */
} rp_nearest;

/* Returns the edit distance of two words: the number of letters to change, delete, insert or
 * swap with a neighbour. '-' and '_' are the same letter. SIZE_MAX if a word is over 64
 * bytes. */
size_t rp_edit_distance(const char *a, const char *b);

void rp_nearest_init(rp_nearest *nearest, const char *word); /* borrows it */
void rp_nearest_offer(rp_nearest *nearest, const char *candidate);

/* Returns the best candidate, or NULL if none is near enough. */
const char *rp_nearest_get(const rp_nearest *nearest);

#endif
