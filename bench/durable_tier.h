/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_DURABLE_TIER_H
#define BENCH_DURABLE_TIER_H

#include <stdbool.h>

/* A table four times as large as memory, sampled uniformly, against reading the same files at
 * random: prints `ratio durable.tier`. Makes `directory` and removes it. */
void bench_durable_tier(const char *directory, bool quick);

#endif
