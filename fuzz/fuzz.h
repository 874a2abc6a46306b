/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that all fuzz targets share.
 *
 * A target is a function that gets the bytes of one input. It must not keep state that changes
 * the result for the next input. For speed, targets keep their objects and buffers, and clear
 * them before each input. */
#ifndef RP_FUZZ_H
#define RP_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The entry point of a target, called by libFuzzer or by replay_main.c. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A target decodes at most this many bytes of an input, so that each run takes microseconds. */
enum { FUZZ_MAX_BYTES = 1 << 16 };

/* Aborts if the condition is false, also in builds without assertions. */
static inline void fuzz_check(int condition)
{
    if (!condition) abort();
}

/* Reads numbers from the front of the input. When the input is used up, the numbers are 0. */
typedef struct fuzz_input {
    const uint8_t *at, *end;
} fuzz_input;

static inline uint8_t fuzz_byte(fuzz_input *in)
{
    return in->at == in->end ? 0 : *in->at++;
}

static inline uint16_t fuzz_short(fuzz_input *in)
{
    uint8_t low = fuzz_byte(in);
    return (uint16_t)(low | fuzz_byte(in) << 8);
}

static inline size_t fuzz_left(const fuzz_input *in)
{
    return (size_t)(in->end - in->at);
}

#endif
