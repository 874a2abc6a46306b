/* SPDX-License-Identifier: Apache-2.0 */
/* Bugs that are there on purpose, to see that the tests find them.
 *
 *   if (RP_PLANTED(7)) ...       // what a careless hand would have written
 *
 * Builds with -Dplants=true have those that tests/durability/planted.py lists; the environment,
 * RP_PLANT=7, chooses one. In all others this is the constant false, and nothing is left of it.
 */
#ifndef RP_UTIL_PLANTED_H
#define RP_UTIL_PLANTED_H

#ifdef RP_PLANTS
extern int rp_planted;
#define RP_PLANTED(number) (rp_planted == (number))
#else
#define RP_PLANTED(number) false
#endif

#endif
