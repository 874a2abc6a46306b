/* SPDX-License-Identifier: Apache-2.0 */
/* Places at which a test ends the process, as a power cut would: between any two steps whose
 * order matters.
 *
 *   RP_KILL_POINT("checkpoint.renamed");
 *
 * Builds with RP_KILL_POINTS defined ask the environment: RP_KILL=checkpoint.renamed:3 ends the
 * process the third time it comes by. In all others this is nothing. */
#ifndef RP_UTIL_KILL_POINT_H
#define RP_UTIL_KILL_POINT_H

#ifdef RP_KILL_POINTS
void rp_kill_point(const char *name);
#define RP_KILL_POINT(name) rp_kill_point(name)
#else
#define RP_KILL_POINT(name) ((void)0)
#endif

#endif
