/* SPDX-License-Identifier: Apache-2.0 */
/* A text is parsed into a `target`: a path, a descriptor, or up to RP_LISTENER_MAX_FDS socket
 * addresses with one port. "localhost" is 127.0.0.1 and ::1 without a lookup. Addresses that
 * the machine does not have are skipped, unless none is left.
 *
 * Invariants of a listener:
 *   L1  fd_count <= RP_LISTENER_MAX_FDS;
 *   L2  all descriptors have the same port; unix_path is "" unless this listener has made the
 *       socket file and has to remove it. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/listener.h"
#include "util/error.h"

enum {
    BACKLOG = 4096,  /* the system has a limit of its own */
    PORT_TRIES = 32, /* tries to find a port that is free at every address of a name */
    TCP_SEND_BYTES = 512 << 10, /* bounds the kernel memory of a peer that does not read */
    UNIX_SEND_BYTES = 1 << 20,  /* the system's default is too small for bulk data */
    UNACKNOWLEDGED_MS = 60000,  /* after which a vanished peer is detected */
    HOST_BYTES = 254,
};

typedef union endpoint {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
    struct sockaddr_storage room;
} endpoint;

typedef enum target_kind { TARGET_TCP, TARGET_UNIX, TARGET_FD } target_kind;

typedef struct target {
    target_kind kind;
    int fd;                /* TARGET_FD */
    const char *path;      /* TARGET_UNIX; borrowed from the text */
    char host[HOST_BYTES]; /* TARGET_TCP; "" for every address */
    uint16_t port;
    endpoint addresses[RP_LISTENER_MAX_FDS];
    size_t address_count;
} target;

static socklen_t endpoint_bytes(const endpoint *e)
{
    return e->any.sa_family == AF_INET6 ? sizeof e->v6 : sizeof e->v4;
}

static void set_port(endpoint *e, uint16_t port)
{
    if (e->any.sa_family == AF_INET6)
        e->v6.sin6_port = htons(port);
    else
        e->v4.sin_port = htons(port);
}

static uint16_t port_of(const endpoint *e)
{
    if (e->any.sa_family == AF_INET6) return ntohs(e->v6.sin6_port);
    if (e->any.sa_family == AF_INET) return ntohs(e->v4.sin_port);
    return 0;
}

static bool is_local(const endpoint *e)
{
    if (e->any.sa_family == AF_UNIX) return true;
    if (e->any.sa_family == AF_INET) return (ntohl(e->v4.sin_addr.s_addr) >> 24) == 127;
    if (e->any.sa_family != AF_INET6) return false;
    if (IN6_IS_ADDR_V4MAPPED(&e->v6.sin6_addr)) return e->v6.sin6_addr.s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&e->v6.sin6_addr);
}

/* Writes an address as text: "127.0.0.1:80", "[::1]:80", "unix:/path". */
static void describe(const endpoint *e, char *text, size_t size)
{
    char address[INET6_ADDRSTRLEN] = "";

    if (e->any.sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &e->v4.sin_addr, address, sizeof address);
        (void)snprintf(text, size, "%s:%d", address, port_of(e));
    } else if (e->any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&e->v6.sin6_addr)) {
        (void)inet_ntop(AF_INET, e->v6.sin6_addr.s6_addr + 12, address, sizeof address);
        (void)snprintf(text, size, "%s:%d", address, port_of(e));
    } else if (e->any.sa_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &e->v6.sin6_addr, address, sizeof address);
        (void)snprintf(text, size, "[%s]:%d", address, port_of(e));
    } else if (e->any.sa_family == AF_UNIX) {
        (void)snprintf(text, size, "unix:%.*s", (int)sizeof e->local.sun_path,
                       e->local.sun_path);
    } else {
        (void)snprintf(text, size, "unknown");
    }
}

/* Parses a decimal number of at most five digits. */
static bool parse_number(const char *text, long *out)
{
    size_t digits = strspn(text, "0123456789");

    if (digits == 0 || digits > 5 || text[digits] != '\0') return false;
    *out = strtol(text, NULL, 10);
    return true;
}

/* Splits "host:port" or "[v6]:port". */
static rp_status parse_host(const char *text, target *t, rp_error *err)
{
    bool bracketed = text[0] == '[';
    const char *host = bracketed ? text + 1 : text;
    const char *end = bracketed ? strchr(text, ']') : strrchr(text, ':');
    const char *scheme_end = strstr(text, "://"), *slash;
    long port;

    if (scheme_end != NULL)
        return rp_fail(err, RP_INVALID, "address '%s': write host:port, without '%.*s'", text,
                       (int)(scheme_end + 3 - text), text);
    if (text[0] == '/')
        return rp_fail(err, RP_INVALID, "address '%s': write a socket as 'unix:%s'", text,
                       text);
    if (strchr(text, ' ') != NULL)
        return rp_fail(err, RP_INVALID, "address '%s': an address has no space", text);
    if (end == NULL && bracketed)
        return rp_fail(err, RP_INVALID, "address '%s': ']' is missing", text);
    if (end == NULL || (bracketed && end[1] != ':'))
        return rp_fail(err, RP_INVALID, "address '%s': a port is missing, as in 'localhost:0'",
                       text);
    size_t length = (size_t)(end - host);
    if (!bracketed && memchr(host, ':', length) != NULL)
        return rp_fail(err, RP_INVALID, "address '%s': write it as '[v6]:port'", text);
    if (bracketed && length == 0)
        return rp_fail(err, RP_INVALID, "address '%s': nothing between the brackets", text);
    if (length >= sizeof t->host)
        return rp_fail(err, RP_INVALID, "address '%.40s...': %zu bytes are too long for a host",
                       text, length);
    end += bracketed ? 2 : 1;
    slash = strchr(end, '/');
    if (slash != NULL)
        return rp_fail(err, RP_INVALID,
                       "address '%s': leave out the '%s' at its end, as in '%.*s'", text, slash,
                       (int)(slash - text), text);
    if (!parse_number(end, &port) || port > UINT16_MAX)
        return rp_fail(err, RP_INVALID,
                       "address '%s': the port must be a number from 0 to 65535", text);
    memcpy(t->host, host, length);
    t->host[length] = '\0';
    t->port = (uint16_t)port;
    t->kind = TARGET_TCP;
    return RP_OK;
}

static rp_status parse(const char *text, target *t, rp_error *err)
{
    *t = (target){.fd = -1};
    if (strncmp(text, "unix:", 5) == 0) {
        t->kind = TARGET_UNIX;
        t->path = text + 5;
        if (t->path[0] == '\0')
            return rp_fail(err, RP_INVALID, "address '%s': a path is missing", text);
        if (strlen(t->path) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
            return rp_fail(err, RP_INVALID,
                           "address '%.40s...': the path has %zu bytes, a socket takes 107",
                           text, strlen(t->path));
        return RP_OK;
    }
    if (strncmp(text, "fd:", 3) == 0) {
        long fd;
        t->kind = TARGET_FD;
        if (!parse_number(text + 3, &fd))
            return rp_fail(err, RP_INVALID, "address '%s': 'fd:' wants a number", text);
        t->fd = (int)fd;
        return RP_OK;
    }
    return parse_host(text, t, err);
}

static bool is_same(const endpoint *a, const endpoint *b)
{
    if (a->any.sa_family != b->any.sa_family) return false;
    if (a->any.sa_family == AF_INET) return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
    return a->v6.sin6_scope_id == b->v6.sin6_scope_id &&
           IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr);
}

static void add_address(target *t, const struct sockaddr *address, socklen_t bytes)
{
    endpoint e = {0};

    if (t->address_count == RP_LISTENER_MAX_FDS || bytes > sizeof e) return;
    memcpy(&e, address, bytes);
    for (size_t i = 0; i < t->address_count; i++)
        if (is_same(&t->addresses[i], &e)) return;
    t->addresses[t->address_count++] = e;
}

static void add_loopback(target *t)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    add_address(t, (struct sockaddr *)&v4, sizeof v4);
    add_address(t, (struct sockaddr *)&v6, sizeof v6);
}

static void add_every(target *t)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};

    add_address(t, (struct sockaddr *)&v6, sizeof v6);
}

/* Fills in the addresses of a TCP target. */
static rp_status resolve(const char *text, target *t, rp_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int failed;

    if (t->host[0] == '\0') {
        add_every(t);
    } else if (strcmp(t->host, "localhost") == 0 && text[0] != '[') {
        add_loopback(t);
    } else {
        if (text[0] == '[')
            hints = (struct addrinfo){
                .ai_family = AF_INET6, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
        failed = getaddrinfo(t->host, NULL, &hints, &list);
        if (failed == EAI_MEMORY) return rp_fail_memory(err, sizeof *list);
        if (failed != 0 && text[0] == '[')
            return rp_fail(err, RP_INVALID, "address '%s': not an IPv6 address", text);
        if (failed != 0)
            return rp_fail(err, RP_NOT_FOUND, "address '%s': %s", text, gai_strerror(failed));
        for (struct addrinfo *a = list; a != NULL; a = a->ai_next)
            if (a->ai_family == AF_INET || a->ai_family == AF_INET6)
                add_address(t, a->ai_addr, a->ai_addrlen);
        freeaddrinfo(list);
    }
    if (t->address_count == 0)
        return rp_fail(err, RP_NOT_FOUND, "address '%s': the name has no address", text);
    return RP_OK;
}

static bool all_local(const target *t)
{
    for (size_t i = 0; i < t->address_count; i++)
        if (!is_local(&t->addresses[i])) return false;
    return true;
}

static rp_status fail_errno(rp_error *err, const char *text, int why)
{
    switch (why) {
    case EADDRINUSE: return rp_fail(err, RP_UNAVAILABLE, "address '%s' is in use", text);
    case EACCES:
    case EPERM: return rp_fail(err, RP_DENIED, "address '%s': %s", text, strerror(why));
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        return rp_fail(err, RP_INVALID, "address '%s': this machine has no such address", text);
    case ENOENT:
    case ENOTDIR: return rp_fail(err, RP_NOT_FOUND, "address '%s': %s", text, strerror(why));
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM: return rp_fail(err, RP_NO_RESOURCE, "address '%s': %s", text, strerror(why));
    default: return rp_fail(err, RP_INVALID, "address '%s': %s", text, strerror(why));
    }
}

static int new_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Returns a listening descriptor, or -1 with errno. */
static int listen_tcp(endpoint *e)
{
    static const int on = 1;
    bool every = e->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&e->v6.sin6_addr);
    int fd = new_socket(e->any.sa_family), only_v6 = !every, why;
    socklen_t bytes = sizeof *e;

    if (fd < 0) return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (e->any.sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof only_v6);
    if (bind(fd, &e->any, endpoint_bytes(e)) == 0 && listen(fd, BACKLOG) == 0 &&
        getsockname(fd, &e->any, &bytes) == 0)
        return fd;
    why = errno;
    (void)close(fd);
    errno = why;
    return -1;
}

static bool is_missing(int why)
{
    return why == EADDRNOTAVAIL || why == EAFNOSUPPORT;
}

/* Listens at every address of the target that the machine has, on one port. Returns 0 or an
 * errno; on failure all sockets are closed. */
static int listen_everywhere(const target *t, rp_listener *l)
{
    uint16_t port = t->port;
    int missing = 0;

    for (size_t i = 0; i < t->address_count; i++) {
        endpoint e = t->addresses[i];
        set_port(&e, port);
        int fd = listen_tcp(&e), why = errno;
        if (fd < 0 && is_missing(why)) {
            missing = why;
            continue;
        }
        if (fd < 0) {
            rp_listener_close(l);
            return why;
        }
        assert(l->fd_count < RP_LISTENER_MAX_FDS); /* L1 */
        l->fds[l->fd_count++] = fd;
        port = port_of(&e);
    }
    l->port = port;
    return l->fd_count > 0 ? 0 : missing;
}

static rp_status open_tcp(const char *text, target *t, rp_listener *l, rp_error *err)
{
    rp_status st = resolve(text, t, err);
    bool v6_host = strchr(t->host, ':') != NULL;
    int why = 0;

    if (st != RP_OK) return st;
    for (int tries = 0; tries < PORT_TRIES; tries++) {
        why = listen_everywhere(t, l);
        /* The port picked for the first address may be in use at the second. */
        if (why != EADDRINUSE || t->port != 0) break;
    }
    if (is_missing(why) && t->host[0] == '\0') { /* a machine without IPv6 */
        t->addresses[0] = (endpoint){.v4 = {.sin_family = AF_INET}};
        why = listen_everywhere(t, l);
    }
    if (why != 0) return fail_errno(err, text, why);
    l->is_local = all_local(t);
    (void)snprintf(l->text, sizeof l->text, v6_host ? "[%s]:%d" : "%s:%d", t->host, l->port);
    return RP_OK;
}

static bool is_socket(const char *path)
{
    struct stat file;

    return lstat(path, &file) == 0 && S_ISSOCK(file.st_mode);
}

/* Whether no process listens at a socket file any more. */
static bool is_stale(const struct sockaddr_un *address)
{
    int fd;
    bool stale;

    if (!is_socket(address->sun_path)) return false;
    fd = new_socket(AF_UNIX);
    if (fd < 0) return false;
    stale = connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
            errno == ECONNREFUSED;
    (void)close(fd);
    return stale;
}

static rp_status open_unix(const char *text, const target *t, rp_listener *l, rp_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct sockaddr *any = (const struct sockaddr *)&address;
    int fd = new_socket(AF_UNIX), why, bound;

    if (fd < 0) return fail_errno(err, text, errno);
    memcpy(address.sun_path, t->path, strlen(t->path) + 1);
    bound = bind(fd, any, sizeof address);
    if (bound != 0 && errno == EADDRINUSE && is_stale(&address)) {
        (void)unlink(t->path);
        bound = bind(fd, any, sizeof address);
    }
    if (bound != 0 || listen(fd, BACKLOG) != 0) {
        why = errno;
        if (bound == 0) (void)unlink(t->path);
        (void)close(fd);
        if (why == EADDRINUSE && !is_socket(t->path))
            return rp_fail(err, RP_UNAVAILABLE, "address '%s': a file that is not a socket",
                           text);
        return fail_errno(err, text, why);
    }
    memcpy(l->unix_path, address.sun_path, sizeof l->unix_path);
    l->fds[l->fd_count++] = fd;
    l->is_local = true;
    (void)snprintf(l->text, sizeof l->text, "unix:%s", t->path);
    return RP_OK;
}

/* Gets the address of a listening descriptor. */
static rp_status look_at_fd(const char *text, int fd, endpoint *e, rp_error *err)
{
    int listens = 0;
    socklen_t bytes = sizeof listens;

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0)
        return rp_fail(err, RP_INVALID, "address '%s': %s", text, strerror(errno));
    if (listens == 0)
        return rp_fail(err, RP_INVALID, "address '%s': the socket does not listen", text);
    *e = (endpoint){0};
    bytes = sizeof *e - 1; /* so that a path is terminated */
    if (getsockname(fd, &e->any, &bytes) != 0)
        return rp_fail(err, RP_INVALID, "address '%s': %s", text, strerror(errno));
    return RP_OK;
}

static rp_status open_fd(const char *text, const target *t, rp_listener *l, rp_error *err)
{
    endpoint e = {0};
    rp_status st = look_at_fd(text, t->fd, &e, err);
    int flags;

    if (st != RP_OK) return st;
    flags = fcntl(t->fd, F_GETFL);
    if (flags < 0 || fcntl(t->fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(t->fd, F_SETFD, FD_CLOEXEC) != 0)
        return rp_fail(err, RP_INVALID, "address '%s': %s", text, strerror(errno));
    assert(l->fd_count == 0 && t->fd >= 0);
    l->fds[l->fd_count++] = t->fd;
    l->port = port_of(&e);
    l->is_local = is_local(&e);
    describe(&e, l->text, sizeof l->text);
    return RP_OK;
}

rp_status rp_listener_open(rp_listener *listener, const char *address, rp_error *err)
{
    rp_listener l = {0};
    target t;
    rp_status st = parse(address, &t, err);

    if (st != RP_OK) return st;
    if (t.kind == TARGET_TCP)
        st = open_tcp(address, &t, &l, err);
    else if (t.kind == TARGET_UNIX)
        st = open_unix(address, &t, &l, err);
    else
        st = open_fd(address, &t, &l, err);
    if (st == RP_OK) *listener = l;
    return st;
}

void rp_listener_close(rp_listener *listener)
{
    if (listener == NULL) return;
    /* Removes the file before closing: while the socket listens, no other process replaces the
     * file. */
    if (listener->unix_path[0] != '\0') (void)unlink(listener->unix_path);
    assert(listener->fd_count <= RP_LISTENER_MAX_FDS); /* L1 */
    for (size_t i = 0; i < listener->fd_count; i++) (void)close(listener->fds[i]);
    *listener = (rp_listener){0};
}

rp_status rp_address_is_local(const char *address, bool *is_local_out, rp_error *err)
{
    endpoint e = {0};
    target t;
    rp_status st = parse(address, &t, err);

    if (st != RP_OK) return st;
    if (t.kind == TARGET_UNIX) {
        *is_local_out = true;
    } else if (t.kind == TARGET_FD) {
        st = look_at_fd(address, t.fd, &e, err);
        if (st == RP_OK) *is_local_out = is_local(&e);
    } else {
        st = resolve(address, &t, err);
        if (st == RP_OK) *is_local_out = all_local(&t);
    }
    return st;
}

/* Whether an error of accept() concerns the connection and not the listener. */
static bool is_passing(int why)
{
    switch (why) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case ENOPROTOOPT:
    case EOPNOTSUPP: return true;
    default: return false;
    }
}

int rp_listener_accept(int fd, char *peer, size_t peer_bytes)
{
    static const int on = 1, tcp_send = TCP_SEND_BYTES, unix_send = UNIX_SEND_BYTES;
    static const unsigned int timeout_ms = UNACKNOWLEDGED_MS;
    endpoint e;
    int accepted;

    do {
        socklen_t bytes = sizeof e - 1;
        e = (endpoint){0};
        accepted = accept4(fd, &e.any, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (accepted < 0 && is_passing(errno));
    if (accepted < 0) return -1;
    if (e.any.sa_family == AF_UNIX) {
        (void)setsockopt(accepted, SOL_SOCKET, SO_SNDBUF, &unix_send, sizeof unix_send);
    } else {
        (void)setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(accepted, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms,
                         sizeof timeout_ms);
        (void)setsockopt(accepted, SOL_SOCKET, SO_SNDBUF, &tcp_send, sizeof tcp_send);
    }
    describe(&e, peer, peer_bytes);
    return accepted;
}
