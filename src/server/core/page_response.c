/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/page_response.h"

#include <assert.h>
#include <stdio.h>

#include "reprise/version.h"
#include "server/core/connection_room.h"
#include "server/core/pinned.h"
#include "server/core/task.h"
#include "util/clock.h"
#include "util/mem.h"

static void describe(void *ctx, rp_server_view *view)
{
    rp_server *server = ctx;

    *view = (rp_server_view){
        .version = RP_VERSION,
        .uptime_ns = rp_now_ns() - server->started_ns,
        .addresses = server->acceptor.addresses,
        .address_count = server->acceptor.listener_count,
        .pinned_bytes = rp_pinned_sum(server),
        .metrics = server->metrics,
    };
    /* Acquire: pairs with rp_server_set_health(), so that the loaded store is visible. */
    if (atomic_load_explicit(&server->is_loaded, memory_order_acquire)) {
        view->store = server->store;
        view->is_durable = server->safety.durable != NULL;
    }
    if (view->is_durable) {
        view->handle = server->safety.durable;
        rp_durable_get_info(view->handle, &view->durable);
    }
    rp_mutex_lock(&server->lock);
    view->health = server->health;
    (void)snprintf(view->why, sizeof view->why, "%s", server->health_why);
    view->limits = server->limits;
    view->tls = server->tls != NULL;
    rp_mutex_unlock(&server->lock);
    view->open = server->is_open;
    if (view->health != RP_HEALTH_SERVING || !view->durable.degraded) return;
    view->health = RP_HEALTH_DEGRADED;
    (void)snprintf(view->why, sizeof view->why, "%.*s", RP_VIEW_WHY_BYTES - 1,
                   view->durable.trouble);
}

rp_page_host rp_page_host_of(rp_server *server)
{
    return (rp_page_host){
        .ctx = server,
        .describe = describe,
        .act = rp_page_act,
        .gate = server->gate,
        .clients = &server->clients,
        .is_open = server->is_open,
        .names = server->page_hosts,
        .counters = rp_metrics_shared(server->metrics),
    };
}

/* Responds with 503 and no body, which needs no memory of ours. Does nothing after a response.
 */
static void respond_unavailable(rp_call *call)
{
    static const rp_page_response answer = {.status = 503,
                                            .content_type = "text/plain; charset=utf-8",
                                            .extra_name = "retry-after",
                                            .extra_value = "1"};
    rp_http_header headers[RP_PAGE_HEADERS];
    size_t count = rp_page_headers(&answer, headers);

    rp_call_respond_headers(call, answer.status, headers, count, NULL);
}

static void refuse(rp_connection *c, rp_call *call, rp_refusal why)
{
    rp_connection_refused(c, why);
    respond_unavailable(call);
}

/* Sends a page; takes `body`, which may be NULL. */
static void send_page(rp_connection *c, rp_call *call, const rp_page_response *answer,
                      rp_message *body)
{
    rp_http_header headers[RP_PAGE_HEADERS];
    size_t count;

    if (body != NULL && body->bytes.size - RP_GRPC_PREFIX + body->borrowed >
                            rp_connection_room(c, RP_QUEUE_OUT)) {
        rp_connection_refused(c, RP_REFUSED_QUEUED);
        rp_message_release(&c->worker->replies, body);
        body = NULL;
    } else if (body != NULL && !rp_message_close(body)) {
        rp_message_release(&c->worker->replies, body);
        body = NULL;
    }
    count = rp_page_headers(answer, headers);
    if (body != NULL) rp_connection_add_work(c, body);
    rp_call_respond_headers(call, body != NULL ? answer->status : 503, headers, count, body);
    rp_connection_count(c);
    rp_connection_touch(c);
}

typedef struct page_task page_task;

/* A request for a page. It may outlive the call. */
typedef struct page_wait {
    rp_page_wait wait;
    rp_post post;
    rp_worker *worker;
    page_task *task; /* NULL: the call is over */
    rp_made_page *made;
    bool head_only;
    bool is_asked; /* the maker has it, or has given it back */
} page_wait;

struct page_task {
    rp_task task;
    page_wait *wait;  /* NULL: it does not wait */
    size_t body_size; /* of the request */
};

static void give_back_page(void *made)
{
    rp_made_page_unref(made);
}

/* Responds with a finished page, without copying it. All of its bytes count for the connection.
 * Takes the reference. */
static void respond_made(rp_task *task, rp_made_page *made, bool head_only)
{
    const rp_buf *page = &made->answer.body;
    rp_message *body = NULL;
    rp_refusal why;

    /* Many calls may have requested the page while there was room. */
    if (rp_connection_is_full(task->connection, &why)) {
        refuse(task->connection, task->call, why);
    } else {
        body = rp_message_new(&rp_task_worker(task)->replies);
        if (body != NULL && !head_only && rp_message_add(body, page->data, page->size))
            rp_reply_keep(body, rp_made_page_ref(made), give_back_page);
        send_page(task->connection, task->call, &made->answer, body);
    }
    rp_made_page_unref(made);
    rp_task_finish(task, RP_OK, NULL);
}

static void free_wait(page_wait *w)
{
    rp_buf_deinit(&w->wait.ask.body);
    rp_release(&w->worker->server->alloc, w, sizeof *w);
}

/* On the worker's thread. */
static void on_arrived(rp_post *post)
{
    page_wait *w = (page_wait *)(void *)((char *)post - offsetof(page_wait, post));
    rp_worker *worker = w->worker;
    rp_task *task = w->task != NULL ? &w->task->task : NULL;
    rp_made_page *made = w->made;
    bool head_only = w->head_only;

    if (w->task != NULL) w->task->wait = NULL;
    free_wait(w);
    if (task == NULL || task->is_finished)
        rp_made_page_unref(made);
    else if (made != NULL)
        respond_made(task, made, head_only);
    else
        rp_task_finish(task, RP_UNAVAILABLE, NULL);
    rp_worker_returned(worker);
}

/* On the maker's thread. */
static void on_made(rp_page_wait *wait, rp_made_page *made)
{
    page_wait *w = (page_wait *)(void *)wait;

    w->made = made;
    rp_loop_post(w->worker->loop, &w->post);
}

/* Passes the request of a task to the maker. */
static void ask_for(rp_task *task)
{
    page_wait *w = ((page_task *)(void *)task)->wait;
    rp_worker *worker = w->worker;
    rp_http_page *page = worker->server->page;

    w->is_asked = true;
    worker->outstanding++;
    if (page != NULL && rp_page_maker_ask(rp_http_page_maker(page), &w->wait)) return;
    on_made(&w->wait, NULL); /* the server of a fuzz target has no pages */
}

/* Begins a request that another thread handles. */
static void begin(rp_task *task, const rp_page_ask *ask, size_t body_size, bool head_only)
{
    page_task *page = (page_task *)(void *)task;
    rp_worker *worker = rp_task_worker(task);
    page_wait *w = rp_alloc_zero(&worker->server->alloc, sizeof *w);

    if (w == NULL) {
        rp_connection_refused(task->connection, RP_REFUSED_MEMORY);
        rp_task_finish(task, RP_NO_RESOURCE, NULL);
        return;
    }
    *w = (page_wait){
        .wait = {.on_made = on_made, .ask = *ask},
        .post = {.run = on_arrived},
        .worker = worker,
        .task = page,
        .head_only = head_only,
    };
    rp_buf_init(&w->wait.ask.body, &worker->server->alloc);
    page->wait = w;
    page->body_size = body_size;
    if (body_size > 0)
        rp_call_expect_body(task->call, body_size);
    else
        ask_for(task);
}

/* The body of a POST request. */
static void on_message(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    page_wait *w = ((page_task *)(void *)task)->wait;

    (void)block;
    if (w == NULL || w->is_asked) return; /* data of a request that needs none */
    rp_buf_append(&w->wait.ask.body, data, size);
    if (w->wait.ask.body.bad) {
        rp_connection_refused(task->connection, RP_REFUSED_MEMORY);
        rp_task_finish(task, RP_NO_RESOURCE, NULL);
    } else {
        ask_for(task);
    }
}

static void on_half_close(rp_task *task)
{
    (void)task;
}

/* If the call ends before its page is made, responds with an HTTP status, not one of gRPC. */
static void on_end(rp_task *task)
{
    respond_unavailable(task->call);
}

static void on_close(rp_task *task)
{
    page_wait *w = ((page_task *)(void *)task)->wait;
    rp_http_page *page;

    if (w == NULL) return;
    page = w->worker->server->page;
    w->task = NULL;
    if (!w->is_asked)
        free_wait(w);
    else if (page != NULL) /* on_made() posts, so `w` is freed later */
        (void)rp_page_maker_cancel(rp_http_page_maker(page), &w->wait);
}

static const rp_task_kind page_task_kind = {
    .bytes = sizeof(page_task),
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_end = on_end,
    .on_close = on_close,
};

/* The size of the body of a request, or SIZE_MAX if it is not known. curl sends a POST without
 * data as headers that end the stream, and no content-length. Above RP_ASK_BODY_BYTES it
 * may be less than what the peer announces. */
static size_t body_size_of(const rp_request_head *head)
{
    size_t size = 0;

    if (head->is_all) return 0;
    if (head->content_length.size == 0) return SIZE_MAX;
    for (size_t i = 0; i < head->content_length.size; i++) {
        char c = head->content_length.data[i];

        if (c < '0' || c > '9') return SIZE_MAX;
        if (size <= RP_ASK_BODY_BYTES) size = 10 * size + (size_t)(c - '0');
    }
    return size;
}

/* Sends a response that is made. */
static void send_now(rp_connection *c, rp_call *call, const rp_page_response *answer)
{
    rp_message *body = rp_message_new(&c->worker->replies);
    rp_string bytes = rp_page_body(answer);

    assert(answer->status >= 200 && answer->status < 600 && answer->content_type != NULL);
    if (body != NULL && !answer->head_only) rp_buf_append(&body->bytes, bytes.data, bytes.size);
    send_page(c, call, answer, body);
}

/* Checks the body that a request announces. If it cannot be taken, makes the response. */
static bool can_take(const rp_page_ask *ask, size_t body_size, rp_page_response *answer)
{
    if (strcmp(ask->route->method, "POST") != 0) return true;
    if (body_size <= RP_ASK_BODY_BYTES) return true;
    (void)rp_page_fail(answer, body_size == SIZE_MAX ? 411 : 413,
                       "a body has a content-length of at most %d bytes", RP_ASK_BODY_BYTES);
    return false;
}

static const char *method_of(rp_string method)
{
    static const char *const known[] = {"GET", "HEAD", "POST"};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (method.size == strlen(known[i]) && memcmp(method.data, known[i], method.size) == 0)
            return known[i];
    return "";
}

void rp_page_respond(rp_connection *c, rp_call *call, const rp_request_head *head,
                     const char *path, const char *authorization)
{
    rp_worker *worker = c->worker;
    rp_page_host host = rp_page_host_of(worker->server);
    rp_page_request request = {
        .method = method_of(head->method),
        .path = path,
        .shown = {authorization, c->certificate, c->peer},
        .is_repeated = head->is_repeated,
        .connection = c->client.id,
        .now_ns = rp_loop_now(worker->loop),
    };
    size_t body_size = body_size_of(head);
    rp_page_response answer = {0};
    rp_page_ask ask;
    rp_refusal why;
    rp_task *task;
    bool is_done;

    if (rp_connection_is_full(c, &why)) {
        refuse(c, call, why);
        return;
    }
    if (head->confirm.size > 0) request.confirm = head->confirm;
    if (head->if_none_match.size > 0) request.if_none_match = head->if_none_match;
    rp_buf_init(&answer.body, &worker->server->alloc);
    rp_buf_init(&ask.body, &worker->server->alloc); /* stays empty: begin() has another */
    is_done = rp_page_respond_now(&host, &request, &answer, &ask);
    rp_client_count_call(&c->client, answer.role);
    if (is_done || !can_take(&ask, body_size, &answer)) {
        send_now(c, call, &answer);
    } else if (rp_connection_accept(c, &why, NULL) != RP_OK) {
        refuse(c, call, why);
    } else {
        task = rp_task_new(c, call, RP_METHOD_UNKNOWN, &page_task_kind);
        if (task != NULL)
            begin(task, &ask, strcmp(request.method, "POST") == 0 ? body_size : 0,
                  answer.head_only);
        else
            refuse(c, call, RP_REFUSED_MEMORY);
    }
    rp_buf_deinit(&answer.body);
}
