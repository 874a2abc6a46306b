/* SPDX-License-Identifier: Apache-2.0 */
/* A connected socket, plain or under TLS, that never blocks.
 *
 * Both kinds read and write alike. A result of RP_LINK_AGAIN says: wait until the descriptor is
 * ready for rp_link_wants() and call again (under TLS a write may have to wait for something to
 * read, and the other way round). A plain value in its owner's memory; one thread. */
#ifndef RP_NET_LINK_H
#define RP_NET_LINK_H

#include <sys/uio.h>

#include "net/tls.h"

typedef struct rp_link {
    int fd;
    struct ssl_st *ssl;  /* NULL: plain */
    uint32_t read_waits; /* RP_READABLE or RP_WRITABLE that the last read or write waits for */
    uint32_t write_waits;
    bool secured; /* the handshake is over */
} rp_link;

typedef enum rp_link_result {
    RP_LINK_OK,    /* some bytes moved */
    RP_LINK_AGAIN, /* none can be moved now */
    RP_LINK_END,   /* the peer has sent its last byte (reads only) */
    RP_LINK_BROKEN,
} rp_link_result;

/* Takes the descriptor, which does not block. `tls` NULL: plain. RP_NO_RESOURCE; then the
 * descriptor is still the caller's. */
RP_NODISCARD rp_status rp_link_init(rp_link *link, int fd, rp_tls *tls);
void rp_link_deinit(rp_link *link); /* closes the descriptor, if it still has it */

/* Gives the descriptor away: the link holds none afterwards. Plain links only. */
int rp_link_take_fd(rp_link *link);

/* Goes on with the handshake. RP_LINK_OK once it is over (at once for a plain link). */
rp_link_result rp_link_handshake(rp_link *link);

/* What ALPN agreed on: true for "h2", false for "http/1.1" or nothing. Plain: false. */
bool rp_link_is_h2(const rp_link *link);

/* The common name of the peer's verified certificate, or "" if it has none. At most `size` - 1
 * bytes; control characters are replaced. */
void rp_link_peer_name(const rp_link *link, char *name, size_t size);

/* Reads up to the room of `parts`; the bytes moved in `*moved`. */
rp_link_result rp_link_read(rp_link *link, const struct iovec *parts, int part_count,
                            size_t *moved);
/* Writes as much as goes. Under TLS small parts are gathered into records. `more`: other bytes
 * follow at once. */
rp_link_result rp_link_write(rp_link *link, const struct iovec *parts, int part_count,
                             bool more, size_t *moved);

/* Looks at up to `size` first bytes without taking them. Plain links only. */
rp_link_result rp_link_peek(rp_link *link, void *data, size_t size, size_t *moved);

/* Says that nothing more will be written (shutdown, close_notify). */
void rp_link_end_writing(rp_link *link);

#endif
