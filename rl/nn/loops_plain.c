/* SPDX-License-Identifier: Apache-2.0 */
/* The loops for every machine. */
#include "nn/loops.h"

#define NAME "plain"
#include "nn/loops_body.h"

const rp_loops rp_loops_plain = LOOPS;
