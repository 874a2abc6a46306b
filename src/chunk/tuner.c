/* SPDX-License-Identifier: Apache-2.0 */
/* Reverb's tuning of the chunk length (AutoTunedChunkerOptions, described in its chunker.h).
 *
 * After ten items and five chunks a score is computed from their measurements, which are then
 * discarded:
 *
 *   score = mean bytes per step of the chunks + mean bytes per step of the items
 *
 * After the first score the length is increased, so that there is a second score to compare. A
 * later score is used if the mean length of its chunks is close to the requested length; then
 * the length moves in the direction of the lower score: up by 2 if the length grew and the
 * score fell, or the length shrank and the score rose; else down by 1.
 *
 * Invariants: 1 <= length <= max_length; item_count <= ITEMS; chunk_count <= CHUNKS. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "chunk/chunk_api.h"

enum { ITEMS = 10, CHUNKS = 5, STEP_UP = 2, STEP_DOWN = -1 };

static const double LENGTH_TOLERANCE = 0.25;

rp_status rp_chunk_tuner_init(rp_chunk_tuner *tuner, int32_t max_length)
{
    if (max_length < 1) return RP_INVALID;
    *tuner = (rp_chunk_tuner){.length = 1, .max_length = max_length, .last_score = -1};
    return RP_OK;
}

void rp_chunk_tuner_on_chunk(rp_chunk_tuner *tuner, uint64_t key, size_t bytes, int32_t rows)
{
    int32_t n = tuner->chunk_count;

    assert(n >= 0 && n <= CHUNKS);
    if (rows < 1) return;
    for (int32_t i = 0; i < n; i++)
        if (tuner->chunk_keys[i] == key) return;
    if (n == CHUNKS) {
        n--;
        memmove(tuner->chunk_keys, tuner->chunk_keys + 1, sizeof(uint64_t) * (CHUNKS - 1));
        memmove(tuner->chunk_rows, tuner->chunk_rows + 1, sizeof(int32_t) * (CHUNKS - 1));
        memmove(tuner->chunk_bytes_per_step, tuner->chunk_bytes_per_step + 1,
                sizeof(double) * (CHUNKS - 1));
    }
    tuner->chunk_keys[n] = key;
    tuner->chunk_rows[n] = rows;
    tuner->chunk_bytes_per_step[n] = (double)bytes / rows;
    tuner->chunk_count = n + 1;
}

static double mean(const double *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) sum += values[i];
    return sum / count;
}

/* The mean length of the chunks of all entries, both of items and of chunks. */
static double mean_length(const rp_chunk_tuner *tuner)
{
    double sum = mean(tuner->item_chunk_rows, ITEMS) * ITEMS;
    for (int i = 0; i < CHUNKS; i++) sum += tuner->chunk_rows[i];
    return sum / (ITEMS + CHUNKS);
}

static int32_t clip(int32_t length, int32_t max_length)
{
    return length < 1 ? 1 : length > max_length ? max_length : length;
}

/* Changes the length, and stores the score if the length has changed. */
static void move(rp_chunk_tuner *tuner, double score, double length)
{
    bool cheaper = score<tuner->last_score, longer = length> tuner->last_length;
    int32_t next = tuner->length + (cheaper == longer ? STEP_UP : STEP_DOWN);

    next = clip(next, tuner->max_length);
    assert(next >= 1 && next <= tuner->max_length);
    if (next == tuner->length) return;
    tuner->length = next;
    tuner->last_score = score;
    tuner->last_length = length;
}

void rp_chunk_tuner_on_item(rp_chunk_tuner *tuner, size_t chunk_bytes, size_t chunk_rows,
                            size_t chunk_count, size_t steps)
{
    int32_t n = tuner->item_count;
    double score, length;

    assert(n >= 0 && n <= ITEMS);
    if (chunk_count == 0 || steps == 0) return;
    if (n == ITEMS) {
        n--;
        memmove(tuner->item_bytes_per_step, tuner->item_bytes_per_step + 1,
                sizeof(double) * (ITEMS - 1));
        memmove(tuner->item_chunk_rows, tuner->item_chunk_rows + 1,
                sizeof(double) * (ITEMS - 1));
    }
    tuner->item_bytes_per_step[n] = (double)chunk_bytes / (double)steps;
    tuner->item_chunk_rows[n] = (double)chunk_rows / (double)chunk_count;
    tuner->item_count = n + 1;
    if (tuner->item_count < ITEMS || tuner->chunk_count < CHUNKS) return;

    score = mean(tuner->chunk_bytes_per_step, CHUNKS) + mean(tuner->item_bytes_per_step, ITEMS);
    length = mean_length(tuner);
    tuner->item_count = tuner->chunk_count = 0;
    if (tuner->last_score < 0) {
        tuner->last_score = score;
        tuner->last_length = length;
        tuner->length = clip(tuner->length + STEP_UP, tuner->max_length);
    } else if (fabs(length - tuner->length) <= LENGTH_TOLERANCE) {
        move(tuner, score, length);
    }
}
