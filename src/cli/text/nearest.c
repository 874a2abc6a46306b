/* SPDX-License-Identifier: Apache-2.0 */
/* The edit distance with swaps of neighbours, computed row by row; it needs three rows. */
#include "cli/text/nearest.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { MAX_WORD = 64 };

static bool same(char a, char b)
{
    return a == b || (a == '-' && b == '_') || (a == '_' && b == '-');
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t rp_edit_distance(const char *a, const char *b)
{
    size_t rows[3][MAX_WORD + 1], m = strlen(a), n = strlen(b);

    if (m > MAX_WORD || n > MAX_WORD) return SIZE_MAX;
    for (size_t j = 0; j <= n; j++) rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            row[j] = least(above[j], row[j - 1]) + 1;
            row[j] = least(row[j], above[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    assert(rows[m % 3][n] <= (m > n ? m : n));
    return rows[m % 3][n];
}

void rp_nearest_init(rp_nearest *nearest, const char *word)
{
    *nearest = (rp_nearest){.word = word, .distance = SIZE_MAX};
}

void rp_nearest_offer(rp_nearest *nearest, const char *candidate)
{
    size_t distance = rp_edit_distance(nearest->word, candidate);

    assert(nearest->word != NULL && candidate != NULL);
    if (distance >= nearest->distance) return;
    nearest->distance = distance;
    nearest->best = candidate;
}

/* Returns the length of the common prefix of two words. */
static size_t shared_beginning(const char *a, const char *b)
{
    size_t i = 0;

    while (a[i] != '\0' && same(a[i], b[i])) i++;
    return i;
}

const char *rp_nearest_get(const rp_nearest *nearest)
{
    size_t length = strlen(nearest->word), shared;

    if (nearest->best == NULL) return NULL;
    if (nearest->distance <= (length < 4 ? 1 : length / 3)) return nearest->best;
    shared = shared_beginning(nearest->word, nearest->best);
    return shared >= 5 || (shared >= 3 && shared == length) ? nearest->best : NULL;
}
