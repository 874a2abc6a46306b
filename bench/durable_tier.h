/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_DURABLE_TIER_H
#define BENCH_DURABLE_TIER_H

#include <stdbool.h>

/* Compares the speeds of two operations: sampling from a durable table that is four times as
 * large as its memory limit, and reading the same files at random offsets. Prints their ratio
 * as `ratio durable.tier`. Creates `directory` and removes it. */
void bench_durable_tier(const char *directory, bool quick);

#endif
