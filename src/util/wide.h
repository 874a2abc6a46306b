/* SPDX-License-Identifier: Apache-2.0 */
/* The one 128-bit type, which ISO C lacks and both our compilers have. */
#ifndef RP_UTIL_WIDE_H
#define RP_UTIL_WIDE_H

__extension__ typedef unsigned __int128 rp_u128;

#endif
