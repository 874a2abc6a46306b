/* SPDX-License-Identifier: Apache-2.0 */
/* A connected socket, plain or under TLS, that never blocks.
 *
 * Both kinds read and write alike. A result of RP_LINK_AGAIN says: wait until the descriptor is
 * ready for `read_waits` or `write_waits` and call again (under TLS a write may have to wait
 * for something to read, and the other way round). A plain value in its owner's memory, which
 * may be moved; one thread. Never raises SIGPIPE. */
#ifndef RP_NET_LINK_H
#define RP_NET_LINK_H

#include <sys/uio.h>

#include "net/tls.h"

typedef struct rp_link {
    int fd;
    struct ssl_st *ssl; /* NULL: plain */
    /* What a read and a write wait for when they say RP_LINK_AGAIN (a handshake sets both):
     * RP_READABLE and RP_WRITABLE, unless TLS has it the other way round just now. */
    uint32_t read_waits, write_waits;
    bool secured; /* TLS, and the handshake is over */
    bool broken;  /* private: a read or write has said RP_LINK_BROKEN, and always will */
    unsigned long tls_error; /* private: what OpenSSL said then */
    /* Records without data that reads have met (TLS only): see rp_tls_idle_records(). They cost
     * us work and the peer next to nothing, so the owner should count them against the peer.
     * The link breaks after RP_LINK_MOST_IDLE. */
    uint64_t idle_records;
} rp_link;

enum { RP_LINK_MOST_IDLE = 10000 };

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

/* Of a client, before the handshake: the server's certificate must be for this name or IP
 * address. RP_NO_RESOURCE; RP_INVALID: it is neither. Nothing for a plain link. */
RP_NODISCARD rp_status rp_link_expect(rp_link *link, const char *name);
/* Why it is broken, if TLS knows; "" otherwise. */
void rp_link_why(const rp_link *link, char *text, size_t size);

/* Gives the descriptor away: the link holds none afterwards. Plain links only. */
int rp_link_take_fd(rp_link *link);

/* Whether the connection is over in both directions, or has failed: nothing that is written
 * would arrive. What the peer has sent before can still be read. */
bool rp_link_is_hung_up(const rp_link *link);

/* Goes on with the handshake. RP_LINK_OK once it is over (at once for a plain link). */
rp_link_result rp_link_handshake(rp_link *link);

/* What ALPN agreed on: true for "h2", false for "http/1.1" or nothing. Plain: false. */
bool rp_link_is_h2(const rp_link *link);

/* The common name of the peer's verified certificate, or "" if it has none. At most `size` - 1
 * bytes; control characters are replaced. */
void rp_link_peer_name(const rp_link *link, char *name, size_t size);

/* Reads up to the room of `parts`, which is not 0; the bytes moved in `*moved`, 0 unless
 * RP_LINK_OK. */
rp_link_result rp_link_read(rp_link *link, const struct iovec *parts, int part_count,
                            size_t *moved);
/* Whether bytes have left the descriptor that no read has returned yet (TLS only). The
 * descriptor may never be readable for them: a read that has filled all its room has to be
 * followed by another. A read with room for RP_LINK_ROOM bytes or more leaves none. */
enum { RP_LINK_ROOM = 64 << 10 };
bool rp_link_has_pending(const rp_link *link);
/* Bytes that the peer has sent and no read has taken yet; under TLS the most that there may be
 * if some have left the descriptor. */
size_t rp_link_waiting(const rp_link *link);

/* Writes as much as goes; `*moved` as above. Under TLS small parts are gathered into records.
 * `more`: other bytes follow at once. The next write must begin with all that was offered and
 * not moved: under TLS it may stand in a record already that is half written. */
rp_link_result rp_link_write(rp_link *link, const struct iovec *parts, int part_count,
                             bool more, size_t *moved);

/* Looks at up to `size` first bytes without taking them. Plain links only. */
rp_link_result rp_link_peek(rp_link *link, void *data, size_t size, size_t *moved);

/* Sleeps until the descriptor of a plain link can be read from, or has ended. False: not within
 * `wait_ns`, less than a second. */
bool rp_link_await(int fd, int64_t wait_ns);

/* Says that nothing more will be written (shutdown, close_notify). */
void rp_link_end_writing(rp_link *link);

#endif
