/* SPDX-License-Identifier: Apache-2.0 */
/* Writes seeds: what the parts of make_seeds share. */
#ifndef RP_FUZZ_SEEDS_H
#define RP_FUZZ_SEEDS_H

#include "fuzz.h"

/* Saves a seed of a fuzz target. */
void seeds_save(const char *target, const char *name, const void *data, size_t size);
/* Saves bytes that are given in hex. Blanks are ignored. */
void seeds_save_hex(const char *target, const char *name, const char *hex);
/* Fills `data`: with zeroes (kind 0), a pattern (1) or noise (2). */
void seeds_fill(uint8_t *data, size_t size, int kind);
/* Saves the seeds of formats on disk: records, segments, the journal, images and manifests. */
void seeds_save_disk(void);

#endif
