/* SPDX-License-Identifier: Apache-2.0 */
/* Macros for clang's thread-safety analysis; empty for other compilers. RP_GUARDED_BY() is
 * always empty and only documents: in C, clang 14 does not accept a guarded_by attribute that
 * names a field of the same struct. */
#ifndef RP_UTIL_THREAD_SAFETY_H
#define RP_UTIL_THREAD_SAFETY_H

#if defined(__clang__)
#define RP_TSA(x) __attribute__((x))
#else
#define RP_TSA(x)
#endif

#define RP_CAPABILITY(name) RP_TSA(capability(name))
#define RP_ACQUIRE(...) RP_TSA(acquire_capability(__VA_ARGS__))
#define RP_TRY_ACQUIRE(...) RP_TSA(try_acquire_capability(__VA_ARGS__))
#define RP_RELEASE(...) RP_TSA(release_capability(__VA_ARGS__))
#define RP_REQUIRES(...) RP_TSA(requires_capability(__VA_ARGS__))
#define RP_EXCLUDES(...) RP_TSA(locks_excluded(__VA_ARGS__))
#define RP_NO_THREAD_SAFETY_ANALYSIS RP_TSA(no_thread_safety_analysis)
#define RP_GUARDED_BY(mu) /* documentation: see above */

#endif
