/* SPDX-License-Identifier: Apache-2.0 */
/* A server without tables, to measure the cost of HTTP/2 alone. It uses nghttp2 and transfers
 * the same messages as a replay server, but does not parse them.
 *
 *   InsertStream   receives each message into its own heap block, keeps the last keep_bytes of
 *                  them, and sends one response for each read of the socket, with the number
 *                  of messages in the bytes that were read
 *   SampleStream   responds to a request for n samples with messages drawn at random from a
 *                  pool that was filled before
 *   Echo           sends back the message that it receives, if the message is small
 *
 * The server is as fast as we can make it with nghttp2. Frames and windows are large, a frame
 * has many small messages, and one write sends many frames. Large messages are read directly
 * into their block and written without a copy. The next draws are prefetched into the cache. */
#ifndef BENCH_YARDSTICK_H
#define BENCH_YARDSTICK_H

#include <stddef.h>

typedef struct yardstick_options {
    size_t threads;
    size_t payload_bytes; /* bytes of one sample in the pool */
    size_t samples;       /* samples in one message of the pool */
    size_t pool_bytes;    /* bytes of the pool; 0: there are no samples */
    size_t keep_bytes;    /* InsertStream: bytes of messages to keep */
} yardstick_options;

/* Listens on a free port of 127.0.0.1, starts the threads and returns the port. The threads run
 * until the process ends. */
int yardstick_start(const yardstick_options *options);

#endif
