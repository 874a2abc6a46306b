/* SPDX-License-Identifier: Apache-2.0 */
/* A connected socket, plain or under TLS, that never blocks.
 *
 * Both kinds have the same functions. After RP_LINK_AGAIN, wait until the descriptor is ready
 * for `read_waits` (or for `write_waits`, after a write) and call again. Under TLS a write may
 * have to wait until the descriptor is readable, and a read until it is writable. A link is a
 * plain value, which may be moved in memory. Only one thread at a time may use it. No function
 * raises SIGPIPE. */
#ifndef RP_NET_LINK_H
#define RP_NET_LINK_H

#include <sys/uio.h>

#include "net/tls.h"

typedef struct rp_link {
    int fd;
    struct ssl_st *ssl; /* NULL: plain */
    /* The events that a read and a write wait for after RP_LINK_AGAIN (a handshake sets both):
     * RP_READABLE and RP_WRITABLE, except in some states of TLS. */
    uint32_t read_waits, write_waits;
    bool secured; /* TLS, and the handshake has succeeded */
    bool broken;  /* private: a call has returned RP_LINK_BROKEN; all later calls return it */
    unsigned long tls_error; /* private: error code of OpenSSL */
    /* TLS only: records without data that reads have received, see rp_tls_idle_records(). The
     * peer can send them at almost no cost, but they cost us work, so the owner should count
     * them as abuse by the peer. The link breaks after RP_LINK_MOST_IDLE of them. */
    uint64_t idle_records;
} rp_link;

enum { RP_LINK_MOST_IDLE = 10000 };

typedef enum rp_link_result {
    RP_LINK_OK,    /* some bytes were moved */
    RP_LINK_AGAIN, /* no byte can be moved now */
    RP_LINK_END,   /* the peer has sent its last byte (reads only) */
    RP_LINK_BROKEN,
} rp_link_result;

/* Takes the descriptor `fd`, which must be non-blocking. `tls` NULL: a plain link.
 * RP_NO_RESOURCE; then the caller keeps the descriptor. */
RP_NODISCARD rp_status rp_link_init(rp_link *link, int fd, rp_tls *tls);
void rp_link_deinit(rp_link *link); /* closes the descriptor, if it has one */

/* For a client, before the handshake: accepts only a server whose certificate is for `name`, a
 * host name or an IP address. RP_NO_RESOURCE; RP_INVALID (`name` is neither). Does nothing for
 * a plain link. */
RP_NODISCARD rp_status rp_link_expect(rp_link *link, const char *name);
/* Writes the reason for which TLS has failed, or "", to `text`. */
void rp_link_why(const rp_link *link, char *text, size_t size);
/* Returns true if TLS has failed because one side refuses the other: a certificate, a version,
 * a peer that does not speak TLS. False if the peer only closed the connection. */
bool rp_link_is_refused(const rp_link *link);

/* Returns the descriptor to the caller; the link has none afterwards. Plain links only. */
int rp_link_take_fd(rp_link *link);

/* Whether the connection has ended in both directions, or has failed, so that written bytes
 * would not arrive. Bytes that the peer has sent before can still be read. */
bool rp_link_is_hung_up(const rp_link *link);

/* Continues the handshake. RP_LINK_OK once it has succeeded (at once for a plain link). */
rp_link_result rp_link_handshake(rp_link *link);

/* Tells a peer whose first bytes were not TLS that this link wants TLS, by an alert. Call it
 * after a failed handshake. Does nothing after other failures. */
void rp_link_say_tls(rp_link *link);
/* Returns true if these first bytes of a peer are an alert of TLS. No frame of HTTP/2 with
 * which a peer may begin has them. */
bool rp_link_is_alert(const uint8_t *data, size_t size);

/* The result of ALPN: true for "h2", false for "http/1.1" or none. Plain: false. */
bool rp_link_is_h2(const rp_link *link);

/* Writes the common name of the peer's verified certificate to `name`, or "" if there is none:
 * at most `size` - 1 bytes, with control characters replaced. */
void rp_link_peer_name(const rp_link *link, char *name, size_t size);

/* Reads into `parts`, which must have room for at least one byte. `*moved` receives the number
 * of bytes read: 0 unless the result is RP_LINK_OK. */
rp_link_result rp_link_read(rp_link *link, const struct iovec *parts, int part_count,
                            size_t *moved);
/* Whether TLS has read bytes from the descriptor that no rp_link_read() has returned. The
 * descriptor does not become readable for these bytes. So after a read that has filled all of
 * its parts, call rp_link_read() again. This is not necessary if the parts have room for
 * RP_LINK_ROOM bytes or more: such a read leaves no bytes in TLS. */
enum { RP_LINK_ROOM = 64 << 10 };
bool rp_link_has_pending(const rp_link *link);
/* Number of bytes that have arrived from the peer and that no read has returned. Under TLS an
 * estimate: RP_LINK_ROOM if TLS has read some of them, otherwise the number of encrypted bytes
 * in the socket. */
size_t rp_link_waiting(const rp_link *link);

/* Writes as many bytes as possible; `*moved` receives their number, as for rp_link_read().
 * Under TLS small parts share records. `more`: the caller will call rp_link_write() again right
 * away, so the last bytes may be held back (MSG_MORE). The next write must begin with all bytes
 * that were passed and not moved, since under TLS they may be in a record that is partly
 * written. */
rp_link_result rp_link_write(rp_link *link, const struct iovec *parts, int part_count,
                             bool more, size_t *moved);

/* Copies up to `size` of the next bytes and leaves them unread. Plain links only. */
rp_link_result rp_link_peek(rp_link *link, void *data, size_t size, size_t *moved);

/* Blocks until the descriptor of a plain link is readable or has ended, for at most `wait_ns`,
 * which must be less than a second. False if neither has happened. */
bool rp_link_await(int fd, int64_t wait_ns);

/* Tells the peer that no more bytes follow (close_notify, shutdown). */
void rp_link_end_writing(rp_link *link);

#endif
