/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/page.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include "server/http/info_json.h"
#include "server/http/metrics_text.h"

static const char plain[] = "text/plain; charset=utf-8";

/* Writes the body of a page. Returns the HTTP status. */
typedef int (*page_writer)(const rp_server_view *server, rp_page_response *answer);

static int write_index(const rp_server_view *server, rp_page_response *answer);

static int write_health(const rp_server_view *server, rp_page_response *answer)
{
    bool up = server->health == RP_HEALTH_SERVING || server->health == RP_HEALTH_DEGRADED;

    rp_buf_format(&answer->body, "%s%s%s\n", rp_health_name(server->health),
                  server->why[0] != '\0' ? ": " : "", server->why);
    return up ? 200 : 503;
}

/* Takes a snapshot of all tables first, so that writing does not access them. */
static int write_metrics(const rp_server_view *server, rp_page_response *answer)
{
    rp_store_info store = {0};
    rp_table_views views;

    if (rp_table_views_take(&views, answer->body.alloc, server->store) != RP_OK) return 503;
    if (server->store != NULL) rp_store_get_info(server->store, &store);
    answer->body.most = rp_page_most_bytes(views.count);
    rp_metrics_text(&answer->body, server, &store, views.tables, views.count);
    rp_table_views_deinit(&views);
    answer->content_type = "text/plain; version=0.0.4; charset=utf-8";
    return 200;
}

static int write_info(const rp_server_view *server, rp_page_response *answer)
{
    rp_store_info store = {0};
    rp_table_views views;

    if (rp_table_views_take(&views, answer->body.alloc, server->store) != RP_OK) return 503;
    if (server->store != NULL) rp_store_get_info(server->store, &store);
    answer->body.most = rp_page_most_bytes(views.count);
    rp_info_json_write(&answer->body, server, &store, views.tables, views.count);
    rp_table_views_deinit(&views);
    answer->content_type = "application/json";
    return 200;
}

static const struct {
    const char *path;
    rp_role role;
    page_writer write; /* NULL: the page is about all tables */
    rp_page_kind kind;
    const char *about;
} pages[] = {
    {"/", RP_ROLE_NONE, write_index, RP_PAGE_KINDS, NULL},
    {"/healthz", RP_ROLE_NONE, write_health, RP_PAGE_KINDS, "whether it serves"},
    {"/metrics", RP_ROLE_READ, NULL, RP_PAGE_METRICS, "numbers, for Prometheus"},
    {"/v1/info", RP_ROLE_READ, NULL, RP_PAGE_INFO, "the server and its tables, as JSON"},
};

enum { PAGE_COUNT = sizeof pages / sizeof pages[0] };

static int write_index(const rp_server_view *server, rp_page_response *answer)
{
    rp_buf_format(&answer->body, "reprise %s: %s\n\n",
                  server->version != NULL ? server->version : "",
                  rp_health_name(server->health));
    for (size_t i = 0; i < PAGE_COUNT; i++)
        if (pages[i].about != NULL)
            rp_buf_format(&answer->body, "  %-10s %s\n", pages[i].path, pages[i].about);
    rp_buf_text(&answer->body, "\nThe same port speaks gRPC.\n");
    return 200;
}

void rp_page_say(rp_page_response *answer, int status, const char *sentence)
{
    assert(status >= 200 && status < 600);
    rp_buf_clear(&answer->body);
    answer->status = status;
    answer->content_type = plain;
    rp_buf_format(&answer->body, "%s\n", sentence);
}

static void extra(rp_page_response *answer, const char *name, const char *text)
{
    assert(answer->extra_name == NULL); /* a response has at most one extra header */
    answer->extra_name = name;
    answer->extra_value = text;
}

static bool is_same(const char *a, size_t a_size, const char *b, size_t b_size)
{
    return a_size == b_size && strncasecmp(a, b, a_size) == 0;
}

static bool is_listed(const char *name, size_t size, const char *names)
{
    while (names != NULL && *names != '\0') {
        size_t length = strcspn(names, ",");

        if (is_same(name, size, names, length)) return true;
        names += length + (names[length] == ',');
    }
    return false;
}

/* Whether the text is a port with the colon before it, or empty. */
static bool is_port(const char *text, size_t size)
{
    unsigned port = 0;

    if (size == 0) return true;
    if (text[0] != ':' || size < 2 || size > 6) return false;
    for (size_t i = 1; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        port = 10 * port + (unsigned)(text[i] - '0');
    }
    return port <= 65535;
}

/* Whether the text has only the characters of a host name, in labels that are not empty. */
static bool is_name(const char *text, size_t size)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_";
    bool in_label = false;

    for (size_t i = 0; i < size; i++) {
        if (text[i] == '.' && !in_label) return false;
        in_label = text[i] != '.';
        if (in_label && memchr(letters, text[i], sizeof letters - 1) == NULL) return false;
    }
    return in_label;
}

static bool is_address(int family, const char *text, size_t size)
{
    unsigned char number[sizeof(struct in6_addr)];
    char copy[INET6_ADDRSTRLEN];

    if (size >= sizeof copy || memchr(text, '\0', size) != NULL) return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return inet_pton(family, copy, number) == 1;
}

bool rp_page_is_own_name(rp_string host, const char *names)
{
    static const char below[] = ".localhost";
    const size_t below_size = sizeof below - 1;
    const char *text = host.data, *end;
    size_t size;

    if (text == NULL) return true;
    if (host.size > 0 && text[0] == '[') {
        end = memchr(text, ']', host.size);
        if (end == NULL) return false;
        size = (size_t)(end - text);
        return is_port(end + 1, host.size - size - 1) &&
               is_address(AF_INET6, text + 1, size - 1);
    }
    end = memchr(text, ':', host.size);
    size = end != NULL ? (size_t)(end - text) : host.size;
    if (!is_port(text + size, host.size - size) || !is_name(text, size)) return false;
    if (is_address(AF_INET, text, size) || memchr(text, '.', size) == NULL) return true;
    return is_listed(text, size, names) ||
           (size > below_size &&
            is_same(text + size - below_size, below_size, below, below_size));
}

/* True if the peer may see a page. If not, makes a response with the reason. */
static bool admit(const rp_page_host *host, const rp_page_request *request, rp_role needed,
                  rp_page_response *answer)
{
    rp_gate_result result = {.why = RP_REFUSED_UNAUTHENTICATED};
    rp_error err = {.code = RP_OK};
    rp_status st = rp_gate_check(host->gate, &request->shown, needed, request->now_ns, NULL,
                                 &result, &err);

    if (st == RP_OK && needed > RP_ROLE_NONE && host->is_open &&
        !rp_page_is_own_name(request->host, host->names)) {
        if (host->counters != NULL)
            rp_counter_add_shared(&host->counters->refusals[RP_REFUSED_PAGE_HOST], 1);
        rp_page_say(
            answer, 421,
            "this server asks for no credentials, so it answers under its IP address, a name "
            "without a dot, or a name in its setting page_hosts");
        return false;
    }
    if (st == RP_OK) return true;
    if (host->counters != NULL) rp_counter_add_shared(&host->counters->refusals[result.why], 1);
    if (result.why == RP_REFUSED_AUTH_BRAKE) {
        rp_page_say(answer, 429, err.text);
        extra(answer, "Retry-After", "60");
    } else if (st == RP_DENIED) {
        rp_page_say(answer, 403, err.text);
    } else if (st == RP_UNAUTHENTICATED) {
        rp_page_say(answer, 401, err.text);
        extra(answer, "WWW-Authenticate", "Bearer");
    } else {
        rp_page_say(answer, 503, err.text);
    }
    return false;
}

/* Writes a page; if there is no memory, a response that says so. */
static void write_page(const rp_page_host *host, page_writer write, rp_page_response *answer)
{
    rp_server_view server;

    memset(&server, 0, sizeof server);
    host->describe(host->ctx, &server);
    answer->content_type = plain;
    answer->status = write(&server, answer);
    if (!answer->body.bad && answer->body.size > 0) return;
    rp_page_say(answer, 503, "there is not enough memory for this page");
    if (host->counters != NULL)
        rp_counter_add_shared(&host->counters->refusals[RP_REFUSED_MEMORY], 1);
}

void rp_page_make(const rp_page_host *host, rp_page_kind kind, rp_page_response *answer)
{
    rp_buf_clear(&answer->body);
    answer->extra_name = answer->extra_value = NULL;
    write_page(host, kind == RP_PAGE_METRICS ? write_metrics : write_info, answer);
}

bool rp_page_respond_now(const rp_page_host *host, const rp_page_request *request,
                         rp_page_response *answer, rp_page_kind *kind)
{
    size_t length = strcspn(request->path, "?#");
    bool head = strcmp(request->method, "HEAD") == 0;

    rp_buf_clear(&answer->body);
    answer->extra_name = answer->extra_value = NULL;
    answer->head_only = head;
    if (!head && strcmp(request->method, "GET") != 0) {
        rp_page_say(answer, 405, "only GET and HEAD are answered here");
        extra(answer, "Allow", "GET, HEAD");
        return true;
    }
    for (size_t i = 0; i < PAGE_COUNT; i++) {
        if (strlen(pages[i].path) != length ||
            memcmp(pages[i].path, request->path, length) != 0)
            continue;
        if (!admit(host, request, pages[i].role, answer)) return true;
        *kind = pages[i].kind;
        if (pages[i].write == NULL) return false;
        write_page(host, pages[i].write, answer);
        return true;
    }
    rp_page_say(answer, 404, "there is no such page; / lists those there are");
    return true;
}
