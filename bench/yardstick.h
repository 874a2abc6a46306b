/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what HTTP/2 costs without a table: a server on nghttp2 that transfers the same
 * messages without parsing them.
 *
 *   InsertStream   receives each message into its own heap block, keeps the last keep_bytes of
 *                  them, and responds once for each read with the number of messages that came
 *   SampleStream   responds to a request for n samples with messages drawn at random from a
 *                  pool that was filled before
 *   Echo           sends back what it receives, if that is small
 *
 * It is as fast as we can make it with nghttp2: large frames and windows, many small messages
 * in a frame, one write for many frames, large messages that are read directly into their block
 * and written without a copy, and a prefetch of the next draws into the cache. */
#ifndef BENCH_YARDSTICK_H
#define BENCH_YARDSTICK_H

#include <stddef.h>

typedef struct yardstick_options {
    size_t threads;
    size_t payload_bytes; /* of the samples in the pool */
    size_t samples;       /* samples in one message of the pool */
    size_t pool_bytes;    /* size of the pool; 0: there are no samples */
    size_t keep_bytes;
} yardstick_options;

/* Listens on a free port of 127.0.0.1, starts the threads and returns the port. The threads run
 * until the process ends. */
int yardstick_start(const yardstick_options *options);

#endif
