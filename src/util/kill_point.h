/* SPDX-License-Identifier: Apache-2.0 */
/* Points at which a test can kill the process, as a power cut would: between two steps whose
 * order matters.
 *
 *   RP_KILL_POINT("checkpoint.renamed");
 *
 * Builds with RP_KILL_POINTS defined read the environment: RP_KILL=checkpoint.renamed:3 kills
 * the process the third time it reaches that point. In other builds the macro is empty. */
#ifndef RP_UTIL_KILL_POINT_H
#define RP_UTIL_KILL_POINT_H

#ifdef RP_KILL_POINTS
void rp_kill_point(const char *name);
#define RP_KILL_POINT(name) rp_kill_point(name)
#else
#define RP_KILL_POINT(name) ((void)0)
#endif

#endif
