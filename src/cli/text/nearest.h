/* SPDX-License-Identifier: Apache-2.0 */
/* The known word that is nearest to one that is not: what a person probably meant. */
#ifndef RP_CLI_TEXT_NEAREST_H
#define RP_CLI_TEXT_NEAREST_H

#include <stddef.h>

typedef struct rp_nearest {
    const char *word;
    const char *best; /* NULL so far */
    size_t distance;  /* of the best */
} rp_nearest;

/* Letters to change, leave out, put in or swap with their neighbour to get from one word to the
 * other; '-' and '_' count as one letter. SIZE_MAX if a word is longer than 64 bytes. */
size_t rp_edit_distance(const char *a, const char *b);

void rp_nearest_init(rp_nearest *nearest, const char *word); /* borrows it */
void rp_nearest_offer(rp_nearest *nearest, const char *candidate);

/* The best of those offered, or NULL if none is near enough to be worth a question. */
const char *rp_nearest_get(const rp_nearest *nearest);

#endif
