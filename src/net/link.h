/* SPDX-License-Identifier: Apache-2.0 */
/* A link: a connected socket, plain or under TLS, that never blocks.
 *
 * Both kinds have the same functions. After RP_LINK_AGAIN the caller must wait until the
 * descriptor is ready for `read_waits` (after a write: for `write_waits`), and then repeat the
 * read or write. Under TLS, a write sometimes has to wait until the descriptor is readable, and
 * a read until it is writable. The owner may move an rp_link in memory. Only one thread at a
 * time may use a link. No function raises SIGPIPE. */
#ifndef RP_NET_LINK_H
#define RP_NET_LINK_H

#include <sys/uio.h>

#include "net/tls.h"

typedef struct rp_link {
    int fd;
    struct ssl_st *ssl; /* NULL: a plain link */
    /* The events for which a read and a write wait after RP_LINK_AGAIN: RP_READABLE and
     * RP_WRITABLE, or the reverse in some states of TLS. rp_link_handshake() sets both to the
     * event for which the handshake waits. */
    uint32_t read_waits, write_waits;
    bool secured; /* a TLS handshake has succeeded */
    bool broken;  /* private: a function has returned RP_LINK_BROKEN, so all later reads and
                     writes return it */
    unsigned long tls_error; /* private: error code of OpenSSL */
    /* TLS only: the number of received records without data, see rp_tls_idle_records(). The
     * peer can send records without data at almost no cost, but they take work to process. So
     * the owner should count these records as abuse by the peer. After RP_LINK_MOST_IDLE of
     * them the link is broken. */
    uint64_t idle_records;
} rp_link;

enum { RP_LINK_MOST_IDLE = 10000 };

typedef enum rp_link_result {
    RP_LINK_OK,    /* some bytes were moved */
    RP_LINK_AGAIN, /* no byte can be moved now */
    RP_LINK_END,   /* the peer has sent its last byte (reads only) */
    RP_LINK_BROKEN,
} rp_link_result;

/* Makes a link that owns the descriptor `fd`, which must be non-blocking. If `tls` is NULL, the
 * link is plain. Errors: RP_NO_RESOURCE. After an error the caller still owns the descriptor.
 */
RP_NODISCARD rp_status rp_link_init(rp_link *link, int fd, rp_tls *tls);
void rp_link_deinit(rp_link *link); /* closes the descriptor, if it has one */

/* For a client, before the handshake: accepts only a server whose certificate is for `name`, a
 * host name or an IP address. Errors: RP_NO_RESOURCE, RP_INVALID (`name` is neither). Does
 * nothing for a plain link. */
RP_NODISCARD rp_status rp_link_expect(rp_link *link, const char *name);
/* Writes the reason why TLS has failed to `text`, or "" if TLS has not failed. */
void rp_link_why(const rp_link *link, char *text, size_t size);
/* Returns true if TLS has failed because one side refuses the other. For example, a certificate
 * or a TLS version is not accepted, or the peer does not use TLS. Returns false if the peer
 * only closed the connection. */
bool rp_link_is_refused(const rp_link *link);

/* Takes the descriptor out of the link and returns it. The caller then owns the descriptor.
 * Plain links only. */
int rp_link_take_fd(rp_link *link);

/* Returns true if the connection has ended in both directions or has failed, so that written
 * bytes would not arrive. Bytes that the peer sent before can still be read. */
bool rp_link_is_hung_up(const rp_link *link);

/* Continues the handshake. Returns RP_LINK_OK when the handshake has succeeded. For a plain
 * link, always returns RP_LINK_OK. */
rp_link_result rp_link_handshake(rp_link *link);

/* Must be called only after a failed handshake. If the first bytes of the peer were not TLS,
 * sends a TLS alert, which shows the peer that this link requires TLS. Does nothing after other
 * failures. */
void rp_link_say_tls(rp_link *link);
/* Returns true if `data`, the first bytes of a peer, are a TLS alert. The first frame of an
 * HTTP/2 peer never begins with these bytes. */
bool rp_link_is_alert(const uint8_t *data, size_t size);

/* Returns the result of ALPN: true for "h2", false for "http/1.1" or no result. False for a
 * plain link. */
bool rp_link_is_h2(const rp_link *link);

/* Writes the common name of the peer's verified certificate to `name`, or "" if the peer has
 * sent no certificate or the certificate was not verified. Writes at most `size` - 1 bytes of
 * it, with control characters replaced. */
void rp_link_peer_name(const rp_link *link, char *name, size_t size);

/* Reads into `parts`, which must have room for at least one byte. `*moved` receives the number
 * of bytes read. It is 0 if the result is not RP_LINK_OK. */
rp_link_result rp_link_read(rp_link *link, const struct iovec *parts, int part_count,
                            size_t *moved);
/* Returns true if TLS has read bytes from the descriptor that no rp_link_read() has returned.
 * The descriptor does not become readable for these bytes. So after a read that has filled all
 * of its parts, the caller must call rp_link_read() again. This is not necessary if the parts
 * have room for at least RP_LINK_ROOM bytes: a read with so much room leaves no bytes in TLS.
 */
enum { RP_LINK_ROOM = 64 << 10 };
bool rp_link_has_pending(const rp_link *link);
/* Returns the number of bytes that have arrived from the peer and that no read has returned.
 * Under TLS the result is an estimate: RP_LINK_ROOM if TLS has read some of these bytes,
 * otherwise the number of encrypted bytes in the socket. */
size_t rp_link_waiting(const rp_link *link);

/* Writes as many bytes as possible. `*moved` receives the number of bytes written; it is 0 if
 * the result is not RP_LINK_OK. Under TLS, small parts are sent together in one TLS record.
 * `more` says that the caller will call rp_link_write() again at once, so that the system can
 * hold back the last bytes (MSG_MORE). The next write must begin with all bytes that were
 * passed and not moved, since under TLS these bytes can be in a record that is partly written.
 */
rp_link_result rp_link_write(rp_link *link, const struct iovec *parts, int part_count,
                             bool more, size_t *moved);

/* Copies up to `size` of the next bytes without removing them from the input. `*moved` receives
 * the number of bytes copied. Plain links only. */
rp_link_result rp_link_peek(rp_link *link, void *data, size_t size, size_t *moved);

/* Blocks until the descriptor `fd` of a plain link is readable or its connection has ended, but
 * at most for `wait_ns`, which must be less than a second. Returns false if neither has
 * happened. */
bool rp_link_await(int fd, int64_t wait_ns);
/* Returns whether rp_link_await() would return true now. Does not block. */
bool rp_link_is_readable(int fd);

/* Tells the peer that no more bytes follow (close_notify, shutdown). */
void rp_link_end_writing(rp_link *link);

#endif
