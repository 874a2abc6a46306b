/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd's thread reads requests and sends answers; ours are whole before it sees them,
 * so it never waits for anything but the peer.
 *
 * What we must know of a connection, its peer and certificate, travels as its "address": that
 * is ours to say, is copied and kept by libmicrohttpd as long as the connection, and comes back
 * with every request.
 *
 * The list of open descriptors is there to cut the oldest. libmicrohttpd says on its thread
 * when a connection begins and when its descriptor is about to be closed, and on that thread
 * alone the list is used: so it needs no lock, and no number in it has become somebody else's.
 */
#include "server/http_page.h"

#include <microhttpd.h>
#include <stdio.h>
#include <sys/socket.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    MEMORY_BYTES = 16 << 10,                 /* of a connection: its request, our headers */
    MOST_FDS = 2 * RP_HTTP_PAGE_CONNECTIONS, /* those that were cut take a moment to go */
    PEER_BYTES = 58,
};

/* Stands where libmicrohttpd expects an address, and fits where that fits. */
typedef struct visitor {
    sa_family_t family; /* AF_UNSPEC: not for the network */
    char peer[PEER_BYTES];
    char certificate[RP_AUTH_MAX_NAME_BYTES + 1];
} visitor;

_Static_assert(sizeof(visitor) <= sizeof(struct sockaddr_storage), "an address holds it");

typedef struct open_fd {
    int fd; /* -1: free */
    bool cut;
    uint64_t number; /* in order of arrival */
} open_fd;

struct rp_http_page {
    rp_allocator alloc;
    rp_page_host host;
    struct MHD_Daemon *daemon;
    /* of libmicrohttpd's thread */
    open_fd fds[MOST_FDS];
    size_t live; /* that have not been cut */
    uint64_t arrivals;
};

static void count_refusal(rp_http_page *page)
{
    if (page->host.counters != NULL)
        rp_counter_add_shared(&page->host.counters->refusals[RP_REFUSED_PAGE_CONNECTIONS], 1);
}

/* --- descriptors --------------------------------------------------------------------------- */

static open_fd *find(rp_http_page *page, int fd)
{
    for (size_t i = 0; i < MOST_FDS; i++)
        if (page->fds[i].fd == fd) return &page->fds[i];
    return NULL;
}

static void cut_oldest(rp_http_page *page)
{
    open_fd *oldest = NULL;

    for (size_t i = 0; i < MOST_FDS; i++) {
        open_fd *o = &page->fds[i];

        if (o->fd < 0 || o->cut) continue;
        if (oldest == NULL || o->number < oldest->number) oldest = o;
    }
    if (oldest == NULL) return;
    (void)shutdown(oldest->fd, SHUT_RDWR); /* which libmicrohttpd will notice */
    oldest->cut = true;
    page->live--;
    count_refusal(page);
}

static void enter(rp_http_page *page, int fd)
{
    open_fd *place = find(page, -1);

    if (place == NULL) { /* cannot be: libmicrohttpd has the same limit */
        (void)shutdown(fd, SHUT_RDWR);
        return;
    }
    *place = (open_fd){.fd = fd, .number = page->arrivals++};
    page->live++;
    if (page->live > RP_HTTP_PAGE_CONNECTIONS) cut_oldest(page);
}

static void leave(rp_http_page *page, int fd)
{
    open_fd *place = find(page, fd);

    if (place == NULL) return;
    if (!place->cut) page->live--;
    place->fd = -1;
}

/* --- libmicrohttpd's callbacks, on its thread ---------------------------------------------- */

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    (void)socket_context;
    if (info == NULL) return;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) enter(cls, info->connect_fd);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) leave(cls, info->connect_fd);
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Sends an answer. MHD_NO ends the connection. */
static enum MHD_Result send_answer(struct MHD_Connection *connection,
                                   const rp_page_answer *answer)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        answer->body.size, answer->body.data, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result;

    if (response == NULL) return MHD_NO;
    result = MHD_add_response_header(response, "Content-Type", answer->content_type);
    if (result == MHD_YES)
        result = MHD_add_response_header(response, "Cache-Control", "no-store");
    if (result == MHD_YES && answer->extra_name != NULL)
        result = MHD_add_response_header(response, answer->extra_name, answer->extra_value);
    if (result == MHD_YES)
        result = MHD_queue_response(connection, (unsigned)answer->status, response);
    MHD_destroy_response(response);
    return result;
}

/* Whether a body follows that nobody asked for. */
static bool has_body(struct MHD_Connection *connection)
{
    const char *length = header_of(connection, "Content-Length");

    return (length != NULL && strcmp(length, "0") != 0) ||
           header_of(connection, "Transfer-Encoding") != NULL;
}

static enum MHD_Result respond(rp_http_page *page, struct MHD_Connection *connection,
                               const char *url, const char *method)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const visitor *from =
        info != NULL ? (const visitor *)(const void *)info->client_addr : NULL;
    rp_page_request request = {.method = method, .path = url, .now_ns = rp_now_ns()};
    rp_page_answer answer = {.status = 500};
    enum MHD_Result result;

    request.shown.authorization = header_of(connection, "Authorization");
    if (from != NULL) {
        request.shown.peer = from->peer;
        request.shown.certificate = from->certificate;
    }
    rp_buf_init(&answer.body, &page->alloc);
    rp_page_render(&page->host, &request, &answer);
    result = send_answer(connection, &answer);
    rp_buf_deinit(&answer.body);
    return result;
}

/* Called when a request's headers are there, and again at its end. libmicrohttpd closes a
 * connection that is answered the first time: right for those who send a body or another
 * method, as we will not read on. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_size, void **request_context)
{
    bool plain = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;

    (void)version, (void)data;
    *data_size = 0;
    if (*request_context == NULL && plain && !has_body(connection)) {
        *request_context = cls; /* anything but NULL */
        return MHD_YES;
    }
    return respond(cls, connection, url, method);
}

/* Its complaints are about peers; the refusals are counted elsewhere. */
static void on_log(void *cls, const char *format, va_list arguments)
{
    (void)cls, (void)format, (void)arguments;
}

/* A path stays as it was sent: ours have nothing to decode. */
static size_t on_unescape(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls, (void)connection;
    return strlen(text);
}

/* --- the page ------------------------------------------------------------------------------- */

rp_status rp_http_page_new(const rp_allocator *alloc, const rp_page_host *host,
                           rp_http_page **out, rp_error *err)
{
    rp_http_page *page = rp_alloc_zero(alloc, sizeof *page);

    if (page == NULL) return rp_fail_memory(err, sizeof *page);
    page->alloc = *alloc;
    page->host = *host;
    for (size_t i = 0; i < MOST_FDS; i++) page->fds[i].fd = -1;
    page->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC |
            MHD_USE_ERROR_LOG,
        0, NULL, NULL, on_request, page, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)MOST_FDS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)RP_HTTP_PAGE_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_BYTES,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, page, MHD_OPTION_UNESCAPE_CALLBACK,
        on_unescape, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (page->daemon == NULL) {
        rp_http_page_free(page);
        return rp_fail(err, RP_NO_RESOURCE, "the HTTP page could not be started");
    }
    *out = page;
    return RP_OK;
}

void rp_http_page_free(rp_http_page *page)
{
    rp_allocator alloc;

    if (page == NULL) return;
    if (page->daemon != NULL) MHD_stop_daemon(page->daemon);
    alloc = page->alloc;
    rp_release(&alloc, page, sizeof *page);
}

/* Copies a text that fits; one that does not is left out, rather than cut to look like another.
 */
static void copy_text(char *to, size_t size, const char *from)
{
    size_t length = from != NULL ? strnlen(from, size) : size;

    if (length < size) memcpy(to, from, length + 1);
}

bool rp_http_page_take(rp_http_page *page, int fd, const char *peer, const char *certificate)
{
    visitor from = {.family = AF_UNSPEC};

    copy_text(from.peer, sizeof from.peer, peer);
    copy_text(from.certificate, sizeof from.certificate, certificate);
    if (fd >= 0 && /* it would abort on one that it cannot close */
        MHD_add_connection(page->daemon, fd, (const struct sockaddr *)(const void *)&from,
                           sizeof from) == MHD_YES)
        return true;
    count_refusal(page);
    return false;
}
