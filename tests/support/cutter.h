/* SPDX-License-Identifier: Apache-2.0 */
/* A proxy between a client and a server that breaks connections. It forwards a random number of
 * bytes, then ends the connection, orderly or with a reset. The next connection is forwarded in
 * the same way. */
#ifndef RP_TEST_CUTTER_H
#define RP_TEST_CUTTER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rp_test_cutter {
    int listener, port; /* for clients */
    int server_port;
    size_t least, most; /* bytes of a connection, in both directions together */
    uint64_t seed;
    atomic_size_t cuts;
    atomic_bool mended; /* connections are no longer broken */
    pthread_t thread;
} rp_test_cutter;

/* Starts to forward connections to a port of loopback, one at a time. */
void rp_test_cutter_start(rp_test_cutter *c, int server_port, size_t least, size_t most);
void rp_test_cutter_stop(rp_test_cutter *c);

#endif
