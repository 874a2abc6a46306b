/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/intake.h"

#include <assert.h>

enum {
    UNRESERVED_BYTES = 256 << 10, /* size of one read, in which a message may begin */
    WINDOWS = 8,                  /* windows in a grace period */
    SLOWEST_PER_SECOND = 1024,    /* bytes, even if room is not short */
};

void rp_intake_reserve(rp_intake *intake, size_t counted, size_t held, size_t wanted,
                       bool may_add)
{
    intake->reserved = wanted;
    if (!may_add && held + wanted > counted)
        intake->reserved = counted > held ? counted - held : 0;
    assert(intake->reserved <= wanted);
}

/* I4. */
static bool is_behind(rp_intake *intake, const rp_intake_look *look, int64_t grace_ns,
                      int64_t now_ns)
{
    bool matters = look->reads && look->in_message && look->is_short && !look->is_late;

    return rp_pace_is_behind(&intake->pace, matters, look->arrived,
                             look->partial + look->awaited, grace_ns / WINDOWS, grace_ns,
                             now_ns);
}

/* I5. */
static bool is_slow(rp_intake *intake, const rp_intake_look *look, int64_t grace_ns,
                    int64_t now_ns)
{
    int64_t elapsed_ns;

    if (intake->slow_since_ns == 0) intake->slow_arrived = look->arrived;
    elapsed_ns = rp_lasts_ns(look->reads && look->in_message, &intake->slow_since_ns, now_ns);
    if (elapsed_ns < grace_ns) return false;
    if ((double)(look->arrived - intake->slow_arrived) * 1e9 <
        (double)elapsed_ns * SLOWEST_PER_SECOND)
        return true;
    intake->slow_since_ns = now_ns;
    intake->slow_arrived = look->arrived;
    return false;
}

rp_intake_verdict rp_intake_judge(rp_intake *intake, const rp_intake_look *look,
                                  int64_t grace_ns, int64_t now_ns)
{
    bool waits = !look->reads && look->in_message && look->partial > UNRESERVED_BYTES;

    if (rp_lasts_ns(waits, &intake->held_since_ns, now_ns) > grace_ns) return RP_INTAKE_HELD;
    if (is_behind(intake, look, grace_ns, now_ns) || is_slow(intake, look, grace_ns, now_ns))
        return RP_INTAKE_SLOW;
    return RP_INTAKE_FINE;
}
