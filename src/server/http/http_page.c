/* SPDX-License-Identifier: Apache-2.0 */
/* A thread runs an event loop, and libmicrohttpd at the end of each turn. The loop wakes when a
 * descriptor of libmicrohttpd is ready, for its timeouts, and when a connection is handed over.
 * So libmicrohttpd and the relays are used on one thread only. Responses are complete before
 * libmicrohttpd gets them, so it waits for nothing but the peer. A request that another thread
 * handles is suspended until page_maker.h has made the response; other requests are handled
 * meanwhile.
 *
 * The peer and certificate of a connection are stored in place of its socket address:
 * libmicrohttpd copies these bytes, keeps them with the connection and returns them with each
 * request.
 *
 * libmicrohttpd has no descriptor that wakes the loop. So a connection is resumed by a post
 * only: MHD_run() follows at the end of the same turn. A request that cannot wait gets its
 * response at once, and is not suspended.
 *
 * The body of a POST request is read before the request is suspended. A connection has one body
 * at most, which is cut off if it is not complete after idle_s. */
#include "server/http/http_page.h"

#include <assert.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/loop.h"
#include "server/http/relay.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    MEMORY_BYTES = 16 << 10, /* of a connection, for its request and the response's headers */
    SENT_BYTES = 16 << 10,   /* bytes copied for libmicrohttpd at a time */
    PATH_BYTES = 2048,       /* of a path with its query: two names, all of them escapes, fit */
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
    rp_open_fds fds;
    int64_t body_ns; /* that a body may take */
};

/* A connection that is being passed to the thread. */
typedef struct arrival {
    rp_post post;
    rp_http_page *page;
    rp_link link;
    visitor from;
} arrival;

/* A request that waits for another thread, or whose body is being read. It is the libmicrohttpd
 * context of the request; the context of any other request is the rp_http_page. */
typedef struct suspended {
    rp_page_wait wait;
    rp_post post;
    rp_http_page *page;
    struct MHD_Connection *connection;
    rp_made_page *made; /* set when the request is resumed; NULL: there is no page */
    size_t body_bytes;  /* that have arrived, even those that are dropped */
    bool is_reading;    /* its body is being read */
} suspended;

static void count_refusal(rp_http_page *page)
{
    if (page->host.counters != NULL)
        rp_counter_add_shared(&page->host.counters->refusals[RP_REFUSED_PAGE_CONNECTIONS], 1);
}

static int fd_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info != NULL ? info->connect_fd : -1;
}

/* The peer of a connection. */
static const visitor *visitor_of(struct MHD_Connection *connection)
{
    static const visitor unknown = {.family = AF_UNSPEC};
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    return info != NULL ? (const visitor *)(const void *)info->client_addr : &unknown;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    rp_http_page *page = cls;
    int fd = fd_of(connection);

    (void)socket_context;
    if (fd < 0) return;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        rp_open_fds_enter(&page->fds, fd,
                          rp_gate_peer(page->host.gate, visitor_of(connection)->peer),
                          visitor_of(connection)->peer);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) rp_open_fds_leave(&page->fds, fd);
}

static const char no_page[] = "the server cannot make this page now; try again";

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Header lines that a request may have once. */
typedef struct single_lines {
    rp_string host; /* NULL: there is none; "": there are several */
    size_t authorizations;
} single_lines;

static bool is_header(const char *name, size_t size, const char *wanted)
{
    return size == strlen(wanted) && strncasecmp(name, wanted, size) == 0;
}

/* Handles one header line. Two Host lines give an invalid host, so that the request is refused,
 * since HTTP does not define which of them counts. */
static enum MHD_Result find_single(void *cls, enum MHD_ValueKind kind, const char *name,
                                   size_t name_size, const char *value, size_t value_size)
{
    single_lines *found = cls;
    rp_string *host = &found->host;

    (void)kind;
    if (is_header(name, name_size, "Authorization")) found->authorizations++;
    if (!is_header(name, name_size, "Host")) return MHD_YES;
    *host = host->data == NULL && value != NULL ? (rp_string){value, value_size}
                                                : (rp_string){"", 0};
    return MHD_YES;
}

/* Sends a response whose body is in `response`, which it takes. MHD_NO ends the connection. */
static enum MHD_Result send_response(rp_http_page *page, struct MHD_Connection *connection,
                                     const rp_page_response *answer,
                                     struct MHD_Response *response)
{
    enum MHD_Result result = MHD_YES;
    rp_http_header headers[RP_PAGE_HEADERS];
    size_t count = rp_page_headers(answer, headers);
    rp_client *client = rp_open_fds_client(&page->fds, fd_of(connection));

    if (response == NULL) return MHD_NO;
    if (client != NULL) rp_counter_add(&client->bytes_out, rp_page_body(answer).size);
    for (size_t i = 0; i < count && result == MHD_YES; i++)
        result = MHD_add_response_header(response, headers[i].name, headers[i].value);
    if (result == MHD_YES)
        result = MHD_queue_response(connection, (unsigned)answer->status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result send_answer(rp_http_page *page, struct MHD_Connection *connection,
                                   const rp_page_response *answer)
{
    rp_string body = rp_page_body(answer);
    enum MHD_ResponseMemoryMode mode =
        answer->is_file ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY;

    /* libmicrohttpd does not write to the bytes of a file. */
    return send_response(
        page, connection, answer,
        MHD_create_response_from_buffer(body.size, (void *)(uintptr_t)body.data, mode));
}

/* Responds to a suspended request with an error. */
static enum MHD_Result send_error(suspended *s, int status, const char *sentence)
{
    rp_http_page *page = s->page;
    rp_page_response answer = {.status = status,
                               .says_json = strcmp(s->wait.ask.route->method, "POST") == 0};
    enum MHD_Result result;

    rp_buf_init(&answer.body, &page->alloc);
    rp_page_say(&answer, status, sentence);
    result = send_answer(page, s->connection, &answer);
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
    struct MHD_Response *response = MHD_create_response_from_callback(
        made->answer.body.size, SENT_BYTES, read_made, made, unref_made);

    if (response == NULL) {
        rp_made_page_unref(made);
        return MHD_NO;
    }
    rp_open_fds_hold(&page->fds, fd_of(connection), made);
    return send_response(page, connection, &made->answer, response);
}

/* Resumes a request: libmicrohttpd calls on_request() again. */
static void on_resume(rp_post *post)
{
    suspended *s = (suspended *)(void *)((char *)post - offsetof(suspended, post));

    rp_open_fds_wait(&s->page->fds, fd_of(s->connection), NULL);
    MHD_resume_connection(s->connection);
}

static void on_made(rp_page_wait *wait, rp_made_page *made)
{
    suspended *s = (suspended *)(void *)wait;

    s->made = made;
    rp_loop_post(s->page->loop, &s->post);
}

/* Makes the context of a request. Takes ask->body. NULL if there is no memory. */
static suspended *keep(rp_http_page *page, struct MHD_Connection *connection, rp_page_ask *ask)
{
    suspended *s = rp_alloc_zero(&page->alloc, sizeof *s);

    if (s == NULL) return NULL;
    s->wait.on_made = on_made;
    s->wait.ask = *ask;
    s->post.run = on_resume;
    s->page = page;
    s->connection = connection;
    rp_buf_init(&ask->body, &page->alloc);
    return s;
}

/* Suspends a request until another thread has handled it; or responds at once, if it cannot
 * wait. */
static enum MHD_Result suspend(suspended *s)
{
    if (!rp_page_maker_ask(s->page->maker, &s->wait)) return send_error(s, 503, no_page);
    MHD_suspend_connection(s->connection); /* on_resume() is for this thread: it comes later */
    rp_open_fds_wait(&s->page->fds, fd_of(s->connection), &s->wait);
    return MHD_YES;
}

/* Responds to a request that was resumed, with its page or, if there is none, an error. */
static enum MHD_Result answer_resumed(rp_http_page *page, suspended *s)
{
    rp_made_page *made = s->made;

    s->made = NULL;
    if (made == NULL) return send_error(s, 503, no_page);
    return send_made(page, s->connection, made);
}

/* Begins or ends to read the body of a request. */
static void set_reading(suspended *s, bool is_reading)
{
    rp_open_fd *place = rp_open_fds_find(&s->page->fds, fd_of(s->connection));

    s->is_reading = is_reading;
    if (place != NULL) place->body_due_ns = is_reading ? rp_now_ns() + s->page->body_ns : 0;
}

/* A request has ended, or its connection was cut. */
static void on_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode why)
{
    rp_http_page *page = cls;
    suspended *s = *context != NULL && *context != cls ? *context : NULL;

    (void)why;
    rp_open_fds_drop(&page->fds, fd_of(connection));
    if (s != NULL) {
        set_reading(s, false);
        rp_made_page_unref(s->made);
        rp_buf_deinit(&s->wait.ask.body);
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

static rp_string text_of(const char *text)
{
    return (rp_string){text, text != NULL ? strlen(text) : 0};
}

/* A path with its query, as the peer sent them. */
typedef struct full_path {
    char text[PATH_BYTES];
    size_t size;
    bool is_long; /* it does not fit */
} full_path;

static void add_text(full_path *path, const char *text)
{
    size_t size = text != NULL ? strlen(text) : 0;

    if (path->is_long || size >= sizeof path->text - path->size) {
        path->is_long = true;
        return;
    }
    if (size > 0) memcpy(path->text + path->size, text, size);
    path->size += size;
    path->text[path->size] = '\0';
}

/* Adds a setting of the query, which libmicrohttpd has cut off the path. */
static enum MHD_Result add_setting(void *cls, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    full_path *path = cls;

    (void)kind;
    add_text(path, strchr(path->text, '?') != NULL ? "&" : "?");
    add_text(path, name);
    if (value != NULL) add_text(path, "=");
    add_text(path, value);
    return MHD_YES;
}

/* Makes the response to a request and returns true; or false, as rp_page_respond_now(). */
static bool respond_now(rp_http_page *page, struct MHD_Connection *connection, const char *url,
                        const char *method, rp_page_response *answer, rp_page_ask *ask)
{
    const visitor *from = visitor_of(connection);
    const rp_open_fd *place = rp_open_fds_find(&page->fds, fd_of(connection));
    full_path path = {.text = "", .size = 0};
    single_lines found = {.host = {NULL, 0}};
    rp_page_request request = {.method = method, .path = path.text, .now_ns = rp_now_ns()};

    add_text(&path, url);
    (void)MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_setting, &path);
    if (path.is_long) {
        rp_page_say(answer, 414, "a path with its query has at most 2047 bytes");
        return true;
    }
    (void)MHD_get_connection_values_n(connection, MHD_HEADER_KIND, find_single, &found);
    request.host = found.host;
    request.is_repeated = found.authorizations > 1;
    request.shown.authorization = header_of(connection, "Authorization");
    request.confirm = text_of(header_of(connection, "x-reprise-confirm"));
    request.if_none_match = text_of(header_of(connection, "If-None-Match"));
    request.shown.peer = from->peer;
    request.shown.certificate = from->certificate;
    if (place != NULL)
        request.connection = place->client.id > 0 ? place->client.id : place->number;
    return rp_page_respond_now(&page->host, &request, answer, ask);
}

/* Refuses a POST request whose body would be too large. */
static bool refuse_body(struct MHD_Connection *connection, rp_page_response *answer)
{
    const char *length = header_of(connection, "Content-Length");

    answer->says_json = true;
    if (length == NULL || strtoull(length, NULL, 10) <= RP_ASK_BODY_BYTES) return false;
    (void)rp_page_fail(answer, 413, "a body has at most %d bytes", RP_ASK_BODY_BYTES);
    return true;
}

/* Responds to a request, suspends it, or begins to read its body. */
static enum MHD_Result respond(rp_http_page *page, struct MHD_Connection *connection,
                               const char *url, const char *method, void **context)
{
    bool is_post = strcmp(method, "POST") == 0;
    rp_page_response answer = {.status = 500};
    enum MHD_Result result = MHD_YES;
    rp_page_ask ask;
    suspended *s = NULL;
    rp_open_fd *place;
    bool done;

    rp_buf_init(&answer.body, &page->alloc);
    rp_buf_init(&ask.body, &page->alloc);
    done = respond_now(page, connection, url, method, &answer, &ask);
    place = rp_open_fds_find(&page->fds, fd_of(connection));
    if (place != NULL) {
        rp_client_count_call(&place->client, answer.role);
        place->is_accepted = place->is_accepted || !done;
    }
    if (!done && !is_post && *context == NULL) { /* libmicrohttpd would read on first */
        rp_page_say(&answer, 400, "a request for this page has no body");
        done = true;
    }
    if (!done && is_post) done = refuse_body(connection, &answer);
    if (!done) s = keep(page, connection, &ask);
    if (s != NULL) {
        *context = s;
        if (is_post)
            set_reading(s, true);
        else
            result = suspend(s);
    } else {
        if (!done) rp_page_say(&answer, 503, no_page);
        result = send_answer(page, connection, &answer);
    }
    rp_buf_deinit(&ask.body);
    rp_buf_deinit(&answer.body);
    return result;
}

/* Takes a part of a request's body; after the last one, suspends the request. */
static enum MHD_Result read_body(suspended *s, const char *data, size_t *size)
{
    rp_buf *body = &s->wait.ask.body;
    rp_client *client;

    if (*size == 0) {
        set_reading(s, false);
        if (s->body_bytes > RP_ASK_BODY_BYTES)
            return send_error(s, 413, "a body has at most 65536 bytes");
        return body->bad ? send_error(s, 503, no_page) : suspend(s);
    }
    client = rp_open_fds_client(&s->page->fds, fd_of(s->connection));
    if (client != NULL) rp_counter_add(&client->bytes_in, *size);
    s->body_bytes += *size;
    /* libmicrohttpd sends no response before the end of the body. */
    if (s->body_bytes > 2 * RP_ASK_BODY_BYTES) return MHD_NO;
    if (s->body_bytes <= RP_ASK_BODY_BYTES) rp_buf_append(body, data, *size);
    *size = 0;
    return MHD_YES;
}

/* Called when the headers of a request have arrived, again for parts of its body and at the end
 * of the request, and once more after it was suspended. If the response is sent in the first
 * call, libmicrohttpd closes the connection. That is right for requests whose rest is not read.
 */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_size, void **context)
{
    bool plain = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    suspended *s = *context != NULL && *context != cls ? *context : NULL;

    (void)version;
    if (s != NULL)
        return s->is_reading ? read_body(s, data, data_size) : answer_resumed(cls, s);
    *data_size = 0;
    if (*context == NULL && plain && !has_body(connection)) {
        *context = cls;
        return MHD_YES;
    }
    return respond(cls, connection, url, method, context);
}

/* Drops log messages of libmicrohttpd: they are about peers, and refusals are counted
 * elsewhere. */
static void on_log(void *cls, const char *format, va_list arguments)
{
    (void)cls, (void)format, (void)arguments;
}

/* Leaves a path as it was sent: route.h decodes the names in it. */
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
    int64_t rest_ns = longest_ns, body_ns;

    (void)MHD_run(page->daemon);
    body_ns = rp_open_fds_cut_due(&page->fds, rp_now_ns());
    if (MHD_get_timeout(page->daemon, &ms) == MHD_YES &&
        ms < (MHD_UNSIGNED_LONG_LONG)(longest_ns / millisecond_ns))
        rest_ns = (int64_t)ms * millisecond_ns;
    if (body_ns < rest_ns) rest_ns = body_ns;
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

static void on_arrival(rp_post *post)
{
    arrival *a = (arrival *)(void *)post;
    rp_http_page *page = a->page;
    int fd = a->link.ssl == NULL ? rp_link_take_fd(&a->link)
                                 : rp_relay_to_pair(&page->alloc, &page->relays, &a->link);

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
        (unsigned)RP_OPEN_FDS, MHD_OPTION_CONNECTION_TIMEOUT, idle_s,
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
    page->fds.maker = page->maker;
    page->body_ns = (int64_t)idle_s * 1000000000;
    page->relays =
        (rp_relays){.loop = page->loop, .linger_ns = page->body_ns, .most = RP_OPEN_FDS};
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
    rp_open_fds_init(&page->fds, host->counters, host->clients);
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
