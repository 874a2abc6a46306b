/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the source files of make_seeds share. The program make_seeds writes seeds: the
 * first inputs of the fuzz targets. */
#ifndef RP_FUZZ_SEEDS_H
#define RP_FUZZ_SEEDS_H

#include "fuzz.h"

/* Saves a seed of a fuzz target. */
void seeds_save(const char *target, const char *name, const void *data, size_t size);
/* Saves a seed that is given in hex. Blanks in `hex` are ignored. */
void seeds_save_hex(const char *target, const char *name, const char *hex);
/* Fills `data` with zeroes (kind 0), a pattern (kind 1) or noise (kind 2). */
void seeds_fill(uint8_t *data, size_t size, int kind);
/* Saves the seeds of the formats on disk: records, segments, the journal, table images and
 * manifests (src/disk, src/durable/format). */
void seeds_save_disk(void);

#endif
