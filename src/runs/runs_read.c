/* SPDX-License-Identifier: Apache-2.0 */
/* Copies for readers. Each function holds the lock for one copy. */
#include <assert.h>
#include <string.h>

#include "runs/runs_inside.h"

static void view_locked(const rp_run *run, rp_run_view *out)
{
    assert(run->series_count <= RP_RUN_SERIES); /* U1 */
    *out = (rp_run_view){.id = run->id,
                         .name = run->name,
                         .started_s = run->started_s,
                         .seen_s = run->seen_s,
                         .last_number = run->last_number,
                         .actor_count = run->actor_count,
                         .episode = run->episode,
                         .series_count = run->series_count};
    for (size_t i = 0; i < run->series_count; i++) {
        const rp_series *s = &run->series[i];

        out->series[i] = s->name;
        /* The newest point is kept beside the others unless it is the last of them (U3). */
        out->points += s->count + (s->seen > 0 && (s->seen - 1) % s->stride != 0);
    }
}

bool rp_runs_next(rp_runs *runs, uint64_t after, rp_run_view *out)
{
    const rp_run *found = NULL;

    rp_mutex_lock(&runs->mu);
    for (size_t i = 0; i < runs->run_count && found == NULL; i++)
        if (runs->runs[i]->id > after) found = runs->runs[i];
    if (found != NULL) view_locked(found, out);
    rp_mutex_unlock(&runs->mu);
    return found != NULL;
}

bool rp_runs_find(rp_runs *runs, rp_string name, rp_run_view *out)
{
    const rp_run *found;

    rp_mutex_lock(&runs->mu);
    found = rp_run_of_name(runs, name);
    if (found != NULL) view_locked(found, out);
    rp_mutex_unlock(&runs->mu);
    return found != NULL;
}

/* The index of the first point whose number is above `after`; count if there is none. */
static size_t first_after(const rp_series *s, uint64_t after)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (s->points[middle].number <= after)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Point i of a series: the newest one follows those that are kept. NULL if there is no point i.
 */
static const rp_run_point *point_at(const rp_series *s, size_t i)
{
    if (i < s->count) return &s->points[i];
    if (i > s->count || s->count == 0) return NULL;
    return s->newest.number > s->points[s->count - 1].number ? &s->newest : NULL;
}

size_t rp_runs_read_series(rp_runs *runs, uint64_t id, size_t series, uint64_t after,
                           rp_run_point out[RP_SERIES_POINTS + 1])
{
    const rp_run_point *point;
    const rp_run *run;
    size_t count = 0;

    rp_mutex_lock(&runs->mu);
    run = rp_run_of_id(runs, id);
    if (run != NULL && series < run->series_count) {
        const rp_series *s = &run->series[series];

        for (size_t i = first_after(s, after); (point = point_at(s, i)) != NULL; i++)
            if (point->number > after) out[count++] = *point;
    }
    rp_mutex_unlock(&runs->mu);
    assert(count <= RP_SERIES_POINTS + 1);
    return count;
}

/* Merges the series of a run by the numbers of their points. */
static size_t merge_locked(const rp_run *run, uint64_t after, rp_run_row *out, size_t capacity)
{
    size_t next[RP_RUN_SERIES], count = 0;

    for (size_t s = 0; s < run->series_count; s++)
        next[s] = first_after(&run->series[s], after);
    while (count < capacity) {
        rp_run_row row = {0};

        for (size_t s = 0; s < run->series_count; s++) {
            const rp_run_point *point = point_at(&run->series[s], next[s]);

            if (point == NULL || point->number <= after) continue;
            if (row.point.number == 0 || point->number < row.point.number)
                row = (rp_run_row){s, *point};
        }
        if (row.point.number == 0) break;
        next[row.series]++;
        out[count++] = row;
    }
    return count;
}

size_t rp_runs_read_rows(rp_runs *runs, uint64_t id, uint64_t after, rp_run_row *out,
                         size_t capacity)
{
    const rp_run *run;
    size_t count = 0;

    if (capacity > RP_RUN_PAGE_ROWS) capacity = RP_RUN_PAGE_ROWS;
    rp_mutex_lock(&runs->mu);
    run = rp_run_of_id(runs, id);
    if (run != NULL) count = merge_locked(run, after, out, capacity);
    rp_mutex_unlock(&runs->mu);
    return count;
}

size_t rp_runs_read_actors(rp_runs *runs, uint64_t id, rp_actor_view out[RP_REPORT_ACTORS])
{
    const rp_run *run;
    size_t count = 0;

    rp_mutex_lock(&runs->mu);
    run = rp_run_of_id(runs, id);
    if (run != NULL) count = run->actor_count;
    assert(count <= RP_REPORT_ACTORS); /* U1 */
    for (size_t i = 0; i < count; i++) out[i] = run->actors[i].view;
    rp_mutex_unlock(&runs->mu);
    return count;
}

bool rp_runs_read_episode(rp_runs *runs, uint64_t id, rp_episode_view *out)
{
    const rp_run *run;
    bool has;

    rp_mutex_lock(&runs->mu);
    run = rp_run_of_id(runs, id);
    has = run != NULL && run->states != NULL;
    assert(!has || run->state_count * run->variable_count <= RP_EPISODE_NUMBERS); /* U1 */
    if (has) {
        out->env = run->env;
        out->state_count = run->state_count;
        out->variable_count = run->variable_count;
        memcpy(out->states, run->states,
               run->state_count * run->variable_count * sizeof *run->states);
    }
    rp_mutex_unlock(&runs->mu);
    return has;
}
