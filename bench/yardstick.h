/* SPDX-License-Identifier: Apache-2.0 */
/* What HTTP/2 costs without a table: a server on raw nghttp2 that moves the same messages and
 * understands nothing of them.
 *
 *   InsertStream   puts each message together in a heap block of its own, keeps the last
 *                  keep_bytes of them, first in first out, and answers once per read with the
 *                  number of messages that came
 *   SampleStream   answers a request for n samples with messages drawn at random from a pool
 *                  that was filled before
 *   Echo           says what it hears, if it is small
 *
 * It is as fast as we know how to make it with nghttp2: large frames and windows, many small
 * messages in a frame, one write for many frames, large messages read straight into their block
 * and written from where they lie, the next draws fetched into the cache ahead. */
#ifndef BENCH_YARDSTICK_H
#define BENCH_YARDSTICK_H

#include <stddef.h>

typedef struct yardstick_options {
    size_t threads;
    size_t payload_bytes; /* of the samples in the pool */
    size_t samples;       /* in one message of it */
    size_t pool_bytes;    /* 0: there are no samples */
    size_t keep_bytes;
} yardstick_options;

/* Listens on a free port of 127.0.0.1, starts its threads and returns the port. They run until
 * the process ends. */
int yardstick_start(const yardstick_options *options);

#endif
