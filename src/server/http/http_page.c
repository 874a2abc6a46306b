/* SPDX-License-Identifier: Apache-2.0 */
/* A thread runs an event loop, and libmicrohttpd at the end of each turn. The loop wakes when a
 * descriptor of libmicrohttpd is ready, for its timeouts, and when a connection is handed over.
 * So libmicrohttpd and the relays are used on one thread only. Responses are complete before
 * libmicrohttpd gets them, so it waits for nothing but the peer. A request for a page about all
 * tables is suspended until page_maker.h has made the page; other requests are handled
 * meanwhile.
 *
 * The peer and certificate of a connection are stored in place of its socket address:
 * libmicrohttpd copies these bytes, keeps them with the connection and returns them with each
 * request.
 *
 * The list `fds` of open descriptors is used to close (cut) the oldest connection. A descriptor
 * is in it from libmicrohttpd's notification that the connection has started to the one that it
 * is about to be closed. So no number in the list can have been reused.
 *
 * Invariants:
 *   P1  `live` is the number of entries in `fds` that are open and not cut;
 *   P2  pages about all tables that are being sent to entries that are not cut take at most
 *       HELD_PAGES times the size of the largest, each page counted once. */
#include "server/http/http_page.h"

#include <assert.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/loop.h"
#include "server/http/relay.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    MEMORY_BYTES = 16 << 10, /* of a connection, for its request and the response's headers */
    MOST_FDS = 2 * RP_HTTP_PAGE_CONNECTIONS, /* cut connections are closed a little later */
    SENT_BYTES = 16 << 10,                   /* bytes copied for libmicrohttpd at a time */
    HELD_PAGES = 2,                          /* P2 */
    IDLE_S = 10,
    PEER_BYTES = 58,
};

/* The peer of a connection, stored in place of its socket address. */
typedef struct visitor {
    sa_family_t family; /* AF_UNSPEC: this is not an address */
    char peer[PEER_BYTES];
    char certificate[RP_AUTH_MAX_NAME_BYTES + 1];
} visitor;

_Static_assert(sizeof(visitor) <= sizeof(struct sockaddr_storage), "an address holds it");

typedef struct open_fd {
    int fd; /* -1: free */
    bool cut;
    uint64_t number;    /* in order of arrival */
    rp_made_page *made; /* the page that is being sent, a reference; or NULL */
} open_fd;

struct rp_http_page {
    rp_allocator alloc;
    rp_page_host host;
    rp_page_maker *maker;
    rp_loop *loop;
    pthread_t thread;
    bool has_thread;
    /* The following fields belong to the thread once it runs. */
    struct MHD_Daemon *daemon;
    rp_watch watch;   /* of the descriptor for all events that libmicrohttpd waits for */
    rp_timer timeout; /* always armed */
    rp_relays relays;
    open_fd fds[MOST_FDS];
    size_t live; /* entries that have not been cut */
    uint64_t arrivals;
};

/* A connection that is being passed to the thread. */
typedef struct arrival {
    rp_post post;
    rp_http_page *page;
    rp_link link;
    visitor from;
} arrival;

/* A request that waits for a page. It is the libmicrohttpd context of the request; the context
 * of any other request is the rp_http_page. */
typedef struct suspended {
    rp_page_wait wait;
    rp_post post;
    rp_http_page *page;
    struct MHD_Connection *connection;
    rp_made_page *made; /* set when the request is resumed; NULL: there is no page */
} suspended;

static void count_refusal(rp_http_page *page)
{
    if (page->host.counters != NULL)
        rp_counter_add_shared(&page->host.counters->refusals[RP_REFUSED_PAGE_CONNECTIONS], 1);
}

static open_fd *find(rp_http_page *page, int fd)
{
    for (size_t i = 0; i < MOST_FDS; i++)
        if (page->fds[i].fd == fd) return &page->fds[i];
    return NULL;
}

static void cut(rp_http_page *page, open_fd *o)
{
    (void)shutdown(o->fd, SHUT_RDWR); /* which libmicrohttpd will notice */
    o->cut = true;
    assert(page->live > 0); /* P1 */
    page->live--;
    count_refusal(page);
}

static void cut_oldest(rp_http_page *page)
{
    open_fd *oldest = NULL;

    for (size_t i = 0; i < MOST_FDS; i++) {
        open_fd *o = &page->fds[i];

        if (o->fd < 0 || o->cut) continue;
        if (oldest == NULL || o->number < oldest->number) oldest = o;
    }
    if (oldest != NULL) cut(page, oldest);
}

/* Whether a page about all tables is being sent to this entry. */
static bool is_read(const open_fd *o)
{
    return o->fd >= 0 && !o->cut && o->made != NULL;
}

/* Bytes of the pages that are being sent, each counted once. */
static size_t held_bytes(const rp_http_page *page)
{
    size_t bytes = 0;

    for (size_t i = 0; i < MOST_FDS; i++) {
        size_t before = 0;

        if (!is_read(&page->fds[i])) continue;
        while (before < i &&
               !(is_read(&page->fds[before]) && page->fds[before].made == page->fds[i].made))
            before++;
        if (before == i) bytes += page->fds[i].made->answer.body.size;
    }
    return bytes;
}

/* Cuts the connections that read the oldest page, until the held pages are within the bound.
 * Never cuts connections that read `newest`. */
static void bound_held(rp_http_page *page, const rp_made_page *newest)
{
    size_t most = HELD_PAGES * newest->answer.body.most;

    while (most > 0 && held_bytes(page) > most) { /* 0: the newest response is a sentence */
        const rp_made_page *oldest = NULL;

        for (size_t i = 0; i < MOST_FDS; i++) {
            const open_fd *o = &page->fds[i];

            if (is_read(o) && o->made != newest &&
                (oldest == NULL || o->made->number < oldest->number))
                oldest = o->made;
        }
        if (oldest == NULL) return;
        for (size_t i = 0; i < MOST_FDS; i++)
            if (is_read(&page->fds[i]) && page->fds[i].made == oldest) cut(page, &page->fds[i]);
    }
}

static void enter(rp_http_page *page, int fd)
{
    open_fd *place = find(page, -1);

    if (place == NULL) { /* cannot happen: libmicrohttpd has the same limit */
        (void)shutdown(fd, SHUT_RDWR);
        return;
    }
    *place = (open_fd){.fd = fd, .number = page->arrivals++};
    page->live++;
    assert(page->live <= MOST_FDS); /* P1 */
    if (page->live > RP_HTTP_PAGE_CONNECTIONS) cut_oldest(page);
}

static void leave(rp_http_page *page, int fd)
{
    open_fd *place = find(page, fd);

    if (place == NULL) return;
    assert(place->cut || page->live > 0); /* P1 */
    if (!place->cut) page->live--;
    rp_made_page_unref(place->made);
    *place = (open_fd){.fd = -1};
}

static int fd_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info != NULL ? info->connect_fd : -1;
}

/* Finds the entry of a connection in `fds`, or NULL. */
static open_fd *place_of(rp_http_page *page, struct MHD_Connection *connection)
{
    int fd = fd_of(connection);

    return fd >= 0 ? find(page, fd) : NULL;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    int fd = fd_of(connection);

    (void)socket_context;
    if (fd < 0) return;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) enter(cls, fd);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) leave(cls, fd);
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Handles one header line; `cls` is the host so far. Two Host lines give an invalid host, so
 * that the request is refused, since HTTP does not define which of them counts. */
static enum MHD_Result find_host(void *cls, enum MHD_ValueKind kind, const char *name,
                                 size_t name_size, const char *value, size_t value_size)
{
    static const char wanted[] = "Host";
    rp_string *host = cls;

    (void)kind;
    if (name_size != sizeof wanted - 1 || strncasecmp(name, wanted, name_size) != 0)
        return MHD_YES;
    *host = host->data == NULL && value != NULL ? (rp_string){value, value_size}
                                                : (rp_string){"", 0};
    return MHD_YES;
}

/* Sends a response whose body is in `response`, which it takes. MHD_NO ends the connection. */
static enum MHD_Result send_response(struct MHD_Connection *connection,
                                     const rp_page_response *answer,
                                     struct MHD_Response *response)
{
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

static enum MHD_Result send_answer(struct MHD_Connection *connection,
                                   const rp_page_response *answer)
{
    return send_response(connection, answer,
                         MHD_create_response_from_buffer(answer->body.size, answer->body.data,
                                                         MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result send_sentence(rp_http_page *page, struct MHD_Connection *connection,
                                     int status, const char *sentence)
{
    rp_page_response answer = {.status = status};
    enum MHD_Result result;

    rp_buf_init(&answer.body, &page->alloc);
    rp_page_say(&answer, status, sentence);
    result = send_answer(connection, &answer);
    rp_buf_deinit(&answer.body);
    return result;
}

/* Copies the next bytes of a page for libmicrohttpd. */
static ssize_t read_made(void *cls, uint64_t at, char *to, size_t most)
{
    const rp_buf *body = &((const rp_made_page *)cls)->answer.body;
    size_t left = at < body->size ? body->size - (size_t)at : 0;

    if (left == 0) return MHD_CONTENT_READER_END_OF_STREAM;
    if (most > left) most = left;
    memcpy(to, body->data + at, most);
    return (ssize_t)most;
}

static void unref_made(void *cls)
{
    rp_made_page_unref(cls);
}

/* Sends a finished page without copying all of it. Takes the reference. */
static enum MHD_Result send_made(rp_http_page *page, struct MHD_Connection *connection,
                                 rp_made_page *made)
{
    open_fd *place = place_of(page, connection);
    struct MHD_Response *response = MHD_create_response_from_callback(
        made->answer.body.size, SENT_BYTES, read_made, made, unref_made);

    if (response == NULL) {
        rp_made_page_unref(made);
        return MHD_NO;
    }
    if (place != NULL) {
        rp_made_page_unref(place->made);
        place->made = rp_made_page_ref(made);
        bound_held(page, made);
    }
    return send_response(connection, &made->answer, response);
}

/* Resumes a request: libmicrohttpd calls on_request() again. */
static void on_resume(rp_post *post)
{
    suspended *s = (suspended *)(void *)((char *)post - offsetof(suspended, post));

    MHD_resume_connection(s->connection);
}

static void on_made(rp_page_wait *wait, rp_made_page *made)
{
    suspended *s = (suspended *)(void *)wait;

    s->made = made;
    rp_loop_post(s->page->loop, &s->post);
}

static const char no_page[] = "the server cannot make this page now; try again";

/* Suspends the request until its page is made. `*context` is the context of the request. */
static enum MHD_Result suspend(rp_http_page *page, struct MHD_Connection *connection,
                               rp_page_kind kind, void **context)
{
    suspended *s;

    if (*context == NULL) /* libmicrohttpd would read on before it called again */
        return send_sentence(page, connection, 400, "a request for this page has no body");
    s = rp_alloc_zero(&page->alloc, sizeof *s);
    if (s == NULL) return send_sentence(page, connection, 503, no_page);
    s->wait.on_made = on_made;
    s->post.run = on_resume;
    s->page = page;
    s->connection = connection;
    MHD_suspend_connection(connection); /* before another thread can resume it */
    *context = s;
    /* If the maker has been stopped, resumes the request at once, without a page. */
    if (!rp_page_maker_ask(page->maker, kind, &s->wait)) MHD_resume_connection(connection);
    return MHD_YES;
}

/* Responds to a request that was resumed, with its page or, if there is none, an error. */
static enum MHD_Result answer_resumed(rp_http_page *page, suspended *s)
{
    rp_made_page *made = s->made;

    s->made = NULL;
    if (made == NULL) return send_sentence(page, s->connection, 503, no_page);
    return send_made(page, s->connection, made);
}

/* A request has ended, or its connection was cut. */
static void on_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode why)
{
    rp_http_page *page = cls;
    open_fd *place = place_of(page, connection);
    suspended *s = *context != NULL && *context != cls ? *context : NULL;

    (void)why;
    if (place != NULL) {
        rp_made_page_unref(place->made);
        place->made = NULL;
    }
    if (s != NULL) {
        rp_made_page_unref(s->made);
        rp_release(&page->alloc, s, sizeof *s);
    }
    *context = NULL;
}

/* Whether the request has a body. */
static bool has_body(struct MHD_Connection *connection)
{
    const char *length = header_of(connection, "Content-Length");

    return (length != NULL && strcmp(length, "0") != 0) ||
           header_of(connection, "Transfer-Encoding") != NULL;
}

static enum MHD_Result respond(rp_http_page *page, struct MHD_Connection *connection,
                               const char *url, const char *method, void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const visitor *from =
        info != NULL ? (const visitor *)(const void *)info->client_addr : NULL;
    rp_page_request request = {.method = method, .path = url, .now_ns = rp_now_ns()};
    rp_page_response answer = {.status = 500};
    enum MHD_Result result;
    rp_page_kind kind;

    (void)MHD_get_connection_values_n(connection, MHD_HEADER_KIND, find_host, &request.host);
    request.shown.authorization = header_of(connection, "Authorization");
    if (from != NULL) {
        request.shown.peer = from->peer;
        request.shown.certificate = from->certificate;
    }
    rp_buf_init(&answer.body, &page->alloc);
    if (rp_page_respond_now(&page->host, &request, &answer, &kind))
        result = send_answer(connection, &answer);
    else
        result = suspend(page, connection, kind, context);
    rp_buf_deinit(&answer.body);
    return result;
}

/* Called when the headers of a request have arrived, again at the end of the request, and once
 * more after it was suspended. If the response is sent in the first call, libmicrohttpd closes
 * the connection. That is right for requests with a body or another method, whose rest is not
 * read. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_size, void **context)
{
    bool plain = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;

    (void)version, (void)data;
    *data_size = 0;
    if (*context == NULL && plain && !has_body(connection)) {
        *context = cls;
        return MHD_YES;
    }
    if (*context != NULL && *context != cls) return answer_resumed(cls, *context);
    return respond(cls, connection, url, method, context);
}

/* Drops log messages of libmicrohttpd: they are about peers, and refusals are counted
 * elsewhere. */
static void on_log(void *cls, const char *format, va_list arguments)
{
    (void)cls, (void)format, (void)arguments;
}

/* Leaves a path as it was sent: the paths of the pages have no escapes. */
static size_t on_unescape(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls, (void)connection;
    return strlen(text);
}

static const int64_t millisecond_ns = 1000000, longest_ns = (int64_t)3600 * 1000000000;

/* At the end of a turn: runs libmicrohttpd without blocking. */
static void run_daemon(void *user)
{
    rp_http_page *page = user;
    MHD_UNSIGNED_LONG_LONG ms;
    int64_t rest_ns = longest_ns;

    (void)MHD_run(page->daemon);
    if (MHD_get_timeout(page->daemon, &ms) == MHD_YES &&
        ms < (MHD_UNSIGNED_LONG_LONG)(longest_ns / millisecond_ns))
        rest_ns = (int64_t)ms * millisecond_ns;
    /* Cannot fail: the timer has been armed since the start. */
    (void)!rp_loop_arm(page->loop, &page->timeout, rp_loop_now(page->loop) + rest_ns);
}

static void on_timeout(rp_timer *timer)
{
    (void)timer; /* run_daemon() follows at the end of the turn */
}

static void on_daemon_ready(rp_watch *watch, uint32_t events)
{
    (void)watch, (void)events;
}

static void *run_loop(void *arg)
{
    rp_http_page *page = arg;

    rp_loop_run(page->loop);
    return NULL;
}

/* Starts a relay. Returns the descriptor of the end for libmicrohttpd, or -1. */
static int relay(rp_http_page *page, rp_link *link)
{
    int pair[2];
    rp_link far;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return -1;
    if (rp_link_init(&far, pair[0], NULL) != RP_OK) { /* cannot fail for a plain link */
        (void)close(pair[0]);
        (void)close(pair[1]);
        return -1;
    }
    if (rp_relay_start(&page->alloc, &page->relays, link, &far) == RP_OK) return pair[1];
    (void)close(pair[1]);
    return -1;
}

static void on_arrival(rp_post *post)
{
    arrival *a = (arrival *)(void *)post;
    rp_http_page *page = a->page;
    int fd = a->link.ssl == NULL ? rp_link_take_fd(&a->link) : relay(page, &a->link);

    /* libmicrohttpd would abort on a descriptor that it cannot close. */
    if (fd < 0 ||
        MHD_add_connection(page->daemon, fd, (const struct sockaddr *)(const void *)&a->from,
                           sizeof a->from) != MHD_YES)
        count_refusal(page);
    rp_link_deinit(&a->link);
    rp_release(&page->alloc, a, sizeof *a);
}

static struct MHD_Daemon *start_daemon(rp_http_page *page, unsigned idle_s)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME,
        0, NULL, NULL, on_request, page, MHD_OPTION_NOTIFY_COMPLETED, on_completed, page,
        MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)MOST_FDS, MHD_OPTION_CONNECTION_TIMEOUT, idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_BYTES, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, page, MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
}

/* Sets up everything but the memory of the page itself. */
static rp_status start(rp_http_page *page, unsigned idle_s, rp_error *err)
{
    const union MHD_DaemonInfo *info;
    rp_status st = rp_loop_new(&page->alloc, &page->loop, err);

    if (st == RP_OK) st = rp_page_maker_new(&page->alloc, &page->host, &page->maker, err);
    if (st != RP_OK) return st;
    page->relays = (rp_relays){
        .loop = page->loop, .linger_ns = (int64_t)idle_s * 1000000000, .most = MOST_FDS};
    page->timeout.on_due = on_timeout;
    if (rp_loop_arm(page->loop, &page->timeout, 0) != RP_OK)
        return rp_fail(err, RP_NO_RESOURCE, "the HTTP page has no memory for its timer");
    page->daemon = start_daemon(page, idle_s);
    info = page->daemon != NULL ? MHD_get_daemon_info(page->daemon, MHD_DAEMON_INFO_EPOLL_FD)
                                : NULL;
    if (info == NULL) return rp_fail(err, RP_NO_RESOURCE, "the HTTP page could not be started");
    page->watch = (rp_watch){.fd = info->epoll_fd, .on_ready = on_daemon_ready};
    st = rp_loop_watch(page->loop, &page->watch, RP_READABLE);
    if (st != RP_OK) return rp_fail(err, st, "the HTTP page cannot be watched");
    rp_loop_set_turn_end(page->loop, run_daemon, page);
    page->has_thread = pthread_create(&page->thread, NULL, run_loop, page) == 0;
    if (!page->has_thread) return rp_fail(err, RP_NO_RESOURCE, "no thread for the HTTP page");
    return RP_OK;
}

rp_status rp_http_page_new(const rp_allocator *alloc, const rp_page_host *host,
                           rp_http_page **out, rp_error *err)
{
    rp_http_page *page = rp_alloc_zero(alloc, sizeof *page);
    rp_status st;

    if (page == NULL) return rp_fail_memory(err, sizeof *page);
    page->alloc = *alloc;
    page->host = *host;
    for (size_t i = 0; i < MOST_FDS; i++) page->fds[i].fd = -1;
    st = start(page, host->idle_s > 0 ? host->idle_s : IDLE_S, err);
    if (st != RP_OK) {
        rp_http_page_free(page);
        return st;
    }
    *out = page;
    return RP_OK;
}

void rp_http_page_free(rp_http_page *page)
{
    rp_allocator alloc;

    if (page == NULL) return;
    /* libmicrohttpd must have no suspended requests when it stops. Stopping the maker posts
     * their resumption. */
    if (page->maker != NULL) rp_page_maker_stop(page->maker);
    if (page->has_thread) {
        rp_loop_stop(page->loop); /* connections that were handed over before are still taken */
        (void)pthread_join(page->thread, NULL);
    }
    if (page->daemon != NULL) MHD_stop_daemon(page->daemon);
    rp_relays_deinit(&page->relays);
    rp_loop_free(page->loop);
    rp_page_maker_free(page->maker);
    alloc = page->alloc;
    rp_release(&alloc, page, sizeof *page);
}

rp_page_maker *rp_http_page_maker(rp_http_page *page)
{
    return page->maker;
}

/* Copies a text if it fits. A longer text is dropped, since a part of it could equal another
 * name. */
static void copy_text(char *to, size_t size, const char *from)
{
    size_t length = from != NULL ? strnlen(from, size) : size;

    if (length < size) memcpy(to, from, length + 1);
}

bool rp_http_page_take_link(rp_http_page *page, rp_link *link, const char *peer,
                            const char *certificate)
{
    arrival *a = rp_alloc_zero(&page->alloc, sizeof *a);

    if (a == NULL) {
        count_refusal(page);
        rp_link_deinit(link);
        return false;
    }
    a->post.run = on_arrival;
    a->page = page;
    a->link = *link;
    *link = (rp_link){.fd = -1};
    a->from.family = AF_UNSPEC;
    copy_text(a->from.peer, sizeof a->from.peer, peer);
    copy_text(a->from.certificate, sizeof a->from.certificate, certificate);
    rp_loop_post(page->loop, &a->post);
    return true;
}

bool rp_http_page_take(rp_http_page *page, int fd, const char *peer, const char *certificate)
{
    rp_link link = {.fd = -1};

    if (fd < 0 || rp_link_init(&link, fd, NULL) != RP_OK) { /* only TLS needs memory */
        count_refusal(page);
        if (fd >= 0) (void)close(fd);
        return false;
    }
    return rp_http_page_take_link(page, &link, peer, certificate);
}
