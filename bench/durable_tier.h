/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_DURABLE_TIER_H
#define BENCH_DURABLE_TIER_H

#include <stdbool.h>

/* Compares the speed of samples from a table four times as large as its memory limit with that
 * of random reads of the same files. Prints `ratio durable.tier`. Creates `directory` and
 * removes it. */
void bench_durable_tier(const char *directory, bool quick);

#endif
