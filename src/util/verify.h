/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of invariants in builds without NDEBUG: debug builds and those with sanitizers.
 *
 * assert() states one condition that takes constant time. RP_VERIFY() calls the checker of a
 * module, which may walk a whole structure. Run after each of n operations on n parts, a
 * checker would take n * n steps in all. So for large structures RP_VERIFY() skips most runs of
 * the checker, which bounds the average cost of an operation. For a structure of up to
 * VERIFY_PACE parts the checker runs every time; for a structure of 8 * VERIFY_PACE parts it
 * runs every 8th time. */
#ifndef RP_UTIL_VERIFY_H
#define RP_UTIL_VERIFY_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef NDEBUG
#define RP_VERIFY(parts, check) ((void)0)
#else
/* Asserts `check`, an expression that is true if all invariants hold. `parts` is the number of
 * parts that `check` walks. */
#define RP_VERIFY(parts, check) ((void)(rp_verify_is_due(parts) && (assert(check), true)))

enum { VERIFY_PACE = 64 };

/* Returns true if a checker that walks `parts` parts should run now. Each thread has its own
 * counter. */
static inline bool rp_verify_is_due(size_t parts)
{
    static _Thread_local size_t saved;
    saved += VERIFY_PACE;
    if (saved < parts) return false;
    saved = 0;
    return true;
}
#endif

#endif
