/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that our test client would not send by itself, for tests of a connection. */
#ifndef RP_TEST_H2_FRAMES_H
#define RP_TEST_H2_FRAMES_H

#include "support/h2_pair.h"

enum { DATA = 0, HEADERS = 1, PRIORITY = 2, RESET = 3, SETTINGS = 4, PING = 6, WINDOW = 8 };

/* Sends a frame from the client that nghttp2 would not send. */
static inline void rp_test_send_frame(rp_test_pair *p, uint8_t type, uint8_t flags,
                                      uint32_t stream, const void *payload, size_t size)
{
    rp_test_client_frame(p->client, type, flags, stream, payload, size);
    rp_test_pair_carry(p);
}

/* Sends a frame that the client does not know of, since it would not accept the response. */
static inline void rp_test_slip_in(rp_test_pair *p, uint8_t type, uint8_t flags,
                                   uint32_t stream, const void *payload, size_t size)
{
    const uint8_t head[9] = {0, (uint8_t)(size >> 8), (uint8_t)size, type, flags, 0, 0,
                             0, (uint8_t)stream};

    rp_test_pair_feed(p, head, sizeof head);
    rp_test_pair_feed(p, payload, size);
}

/* Drops the output of the connection. */
static inline void rp_test_drop_output(rp_test_pair *p)
{
    struct iovec part;

    while (rp_h2_output(p->h2, &part, 1) > 0) rp_h2_written(p->h2, part.iov_len);
}

static inline size_t rp_test_nuisance_count(const rp_test_pair *p)
{
    size_t sum = 0;

    for (size_t i = 0; i < RP_NUISANCE_KINDS; i++) sum += p->nuisances[i];
    return sum;
}

static inline void rp_test_finish_at_once(rp_test_pair *p, rp_call *call)
{
    (void)p;
    rp_call_finish(call, RP_OK, NULL);
}

/* The fields of a request, as HPACK has them. */
static const uint8_t rp_test_request_block[] = {0x83, 0x86, 0x84, 0x41, 1, 'a'};

static inline void rp_test_open_raw(rp_test_pair *p, uint32_t stream)
{
    rp_test_slip_in(p, HEADERS, NGHTTP2_FLAG_END_HEADERS, stream, rp_test_request_block,
                    sizeof rp_test_request_block);
}

#endif
