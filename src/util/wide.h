/* SPDX-License-Identifier: Apache-2.0 */
/* A 128-bit unsigned integer: an extension of gcc and clang that ISO C lacks. */
#ifndef RP_UTIL_WIDE_H
#define RP_UTIL_WIDE_H

__extension__ typedef unsigned __int128 rp_u128;

#endif
