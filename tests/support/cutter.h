/* SPDX-License-Identifier: Apache-2.0 */
/* A wire between a client and a server that breaks: it carries a random number of bytes, then
 * the connection ends in the middle of whatever it was, in order or with a reset. The next one
 * is carried again. */
#ifndef RP_TEST_CUTTER_H
#define RP_TEST_CUTTER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rp_test_cutter {
    int listener, port; /* where clients connect to */
    int server_port;
    size_t least, most; /* bytes that a connection carries, both ways together */
    uint64_t seed;
    atomic_size_t cuts;
    atomic_bool mended; /* from now on nothing is cut */
    pthread_t thread;
} rp_test_cutter;

/* Starts to carry to a port of loopback; one connection at a time. */
void rp_test_cutter_start(rp_test_cutter *c, int server_port, size_t least, size_t most);
void rp_test_cutter_stop(rp_test_cutter *c);

#endif
