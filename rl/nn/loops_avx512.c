/* SPDX-License-Identifier: Apache-2.0 */
/* The loops for AVX-512. */
#include "nn/loops.h"

#if defined(RP_LOOPS_X86)

#define NAME "avx512"
#include "nn/loops_body.h"

const rp_loops rp_loops_avx512 = LOOPS;

#endif
