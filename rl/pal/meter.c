/* SPDX-License-Identifier: Apache-2.0 */
#include "pal/meter.h"

#include <assert.h>
#include <string.h>

static void begin_slice(rp_meter *m, int64_t now_ns, int64_t count)
{
    m->since_ns = now_ns;
    m->since_count = count;
}

bool rp_meter_look(rp_meter *m, int64_t now_ns, int64_t count)
{
    int64_t passed_ns = now_ns - m->since_ns, counted = count - m->since_count;

    assert(m->warm_ns > 0 && m->slice_ns > 0 && m->least > 0);
    if (m->slices == RP_METER_SLICES) return true;
    if (!m->has_begun) {
        m->has_begun = true;
        begin_slice(m, now_ns, count);
        return false;
    }
    assert(passed_ns >= 0 && counted >= 0);
    if (!m->is_warm) {
        if (counted == 0) m->since_ns = now_ns; /* the warm-up begins with the first count */
        if (counted == 0 || passed_ns < m->warm_ns) return false;
        m->is_warm = true;
        begin_slice(m, now_ns, count);
        return false;
    }
    if (passed_ns < m->slice_ns || counted < m->least) return false;
    m->rates[m->slices++] = (double)counted * 1e9 / (double)passed_ns;
    begin_slice(m, now_ns, count);
    return m->slices == RP_METER_SLICES;
}

double rp_meter_rate(const rp_meter *m)
{
    double sorted[RP_METER_SLICES];

    assert(m->slices == RP_METER_SLICES);
    memcpy(sorted, m->rates, sizeof sorted);
    for (int i = 1; i < RP_METER_SLICES; i++)
        for (int k = i; k > 0 && sorted[k] < sorted[k - 1]; k--) {
            double larger = sorted[k - 1];

            sorted[k - 1] = sorted[k];
            sorted[k] = larger;
        }
    return sorted[RP_METER_SLICES / 2];
}
