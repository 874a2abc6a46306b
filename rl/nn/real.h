/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of <math.h> for rp_real, and RP_SMALLEST, the smallest positive normal number
 * of this type. rp_real is float; only the tests of gradients are built with double. */
#ifndef RP_NN_REAL_H
#define RP_NN_REAL_H

#include <float.h>
#include <math.h>

#include "reprise/rl/nn.h"

#ifdef RP_REAL_IS_DOUBLE
#define rp_exp exp
#define rp_expm1 expm1
#define rp_log log
#define rp_log1p log1p
#define rp_sqrt sqrt
#define rp_tanh tanh
#define RP_SMALLEST DBL_MIN
#else
#define rp_exp expf
#define rp_expm1 expm1f
#define rp_log logf
#define rp_log1p log1pf
#define rp_sqrt sqrtf
#define rp_tanh tanhf
#define RP_SMALLEST FLT_MIN
#endif

#endif
