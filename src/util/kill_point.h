/* SPDX-License-Identifier: Apache-2.0 */
/* Points in the code, between two steps whose order matters, at which a test can kill the
 * process like a power cut. Usage:
 *
 *   RP_KILL_POINT("checkpoint.renamed");
 *
 * A build with RP_KILL_POINTS defined reads the environment variable RP_KILL:
 * RP_KILL=checkpoint.renamed:3 kills the process when it reaches the point "checkpoint.renamed"
 * for the third time. In other builds the macro is empty. */
#ifndef RP_UTIL_KILL_POINT_H
#define RP_UTIL_KILL_POINT_H

#ifdef RP_KILL_POINTS
void rp_kill_point(const char *name);
#define RP_KILL_POINT(name) rp_kill_point(name)
#else
#define RP_KILL_POINT(name) ((void)0)
#endif

#endif
