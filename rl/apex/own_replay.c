/* SPDX-License-Identifier: Apache-2.0 */
/* The replay of our own agents: see own_replay.h. */
#include "apex/own_replay.h"

#include <assert.h>

enum { PREFETCHED = 4 }; /* batches that wait in the sampler of a learner */

static double value_of(const rp_settings_table *table, const void *settings, const char *name)
{
    size_t i = rp_settings_find(table, name);

    assert(i < table->count);
    return rp_settings_get(table, settings, i);
}

size_t rp_own_copies(const rp_settings_table *table, const void *settings)
{
    return (size_t)value_of(table, settings, "copies");
}

double rp_own_slack(const rp_apex_making *m, const rp_settings_table *table)
{
    double batch = value_of(table, m->settings, "batch");
    double per_insert = batch / value_of(table, m->settings, "steps-per-update");
    double items = (double)(m->actors - 1) * value_of(table, m->settings, "copies") *
                   value_of(table, m->settings, "n-step");

    assert(m->actors >= 1);
    return per_insert * items + PREFETCHED * batch;
}
