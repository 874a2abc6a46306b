/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/page.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/http/json_out.h"
#include "server/http/static_files.h"

static const char plain[] = "text/plain; charset=utf-8";
static const char json[] = "application/json";

size_t rp_page_headers(const rp_page_response *answer, rp_http_header out[RP_PAGE_HEADERS])
{
    size_t count = 0;

    out[count++] = (rp_http_header){"content-type", answer->content_type};
    out[count++] = (rp_http_header){"cache-control", answer->is_file ? "no-cache" : "no-store"};
    out[count++] = (rp_http_header){
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"};
    out[count++] = (rp_http_header){"x-content-type-options", "nosniff"};
    out[count++] = (rp_http_header){"referrer-policy", "no-referrer"};
    if (answer->extra_name != NULL)
        out[count++] = (rp_http_header){answer->extra_name, answer->extra_value};
    assert(count <= RP_PAGE_HEADERS);
    return count;
}

void rp_page_say(rp_page_response *answer, int status, const char *sentence)
{
    assert(status >= 200 && status < 600);
    rp_buf_clear(&answer->body);
    answer->is_file = false;
    answer->status = status;
    answer->content_type = answer->says_json ? json : plain;
    if (answer->says_json) {
        rp_buf_text(&answer->body, "{");
        rp_out_text(&answer->body, "error", sentence);
        rp_buf_text(&answer->body, "}\n");
    } else {
        rp_buf_text(&answer->body, sentence);
        rp_buf_text(&answer->body, "\n");
    }
}

int rp_page_fail(rp_page_response *answer, int status, const char *format, ...)
{
    char sentence[RP_ERROR_TEXT_BYTES];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    rp_page_say(answer, status, sentence);
    return status;
}

/* The seconds that the error of the brake names. */
#define RETRY_S "6"
_Static_assert(RP_GATE_FORGIVE_S == 6, "RETRY_S is another number");

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
static bool admit(const rp_page_host *host, const rp_page_request *request, rp_page_ask *ask,
                  rp_page_response *answer)
{
    rp_role needed = ask->route->role;
    rp_gate_result result = {.why = RP_REFUSED_UNAUTHENTICATED};
    rp_error err = {.code = RP_OK};
    rp_status st = rp_gate_check(host->gate, &request->shown, needed, request->now_ns, NULL,
                                 &result, &err);

    answer->role = result.who.role;
    ask->connection = request->connection;
    ask->peer = rp_gate_client(host->gate, request->shown.peer, result.who.name);
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
        extra(answer, "retry-after", RETRY_S);
    } else if (st == RP_DENIED) {
        rp_page_say(answer, 403, err.text);
    } else if (st == RP_UNAUTHENTICATED) {
        rp_page_say(answer, 401, err.text);
        extra(answer, "www-authenticate", "Bearer");
    } else {
        rp_page_say(answer, 503, err.text);
    }
    return false;
}

void rp_page_make(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    rp_buf_clear(&answer->body);
    answer->extra_name = answer->extra_value = NULL;
    answer->is_file = false;
    answer->body.most = RP_PAGE_MOST_BYTES;
    answer->content_type = json;
    answer->says_json = strcmp(ask->route->method, "POST") == 0;
    answer->status = ask->route->handle(host, ask, answer);
    if (!answer->body.bad && answer->body.size > 0) return;
    rp_page_say(answer, 503, "there is not enough memory for this page");
    if (host->counters != NULL)
        rp_counter_add_shared(&host->counters->refusals[RP_REFUSED_MEMORY], 1);
}

/* Responds with a file of the page, or with 304 if the peer has it. */
static void send_file(const rp_page_request *request, const rp_static_file *file,
                      rp_page_response *answer)
{
    rp_string known = request->if_none_match;
    bool has_it = known.data != NULL && known.size == strlen(file->etag) &&
                  memcmp(known.data, file->etag, known.size) == 0;

    answer->status = has_it ? 304 : 200;
    answer->content_type = file->content_type;
    answer->is_file = true;
    answer->file = (rp_string){(const char *)file->data, has_it ? 0 : file->size};
    extra(answer, "etag", file->etag);
}

/* Checks that the request names what it changes. A web site cannot set this header in a
 * visitor's browser without being allowed to. */
static bool is_confirmed(const rp_page_request *request, const rp_page_ask *ask,
                         rp_page_response *answer)
{
    const char *wanted =
        ask->names[0].size > 0 ? ask->names[0].text : strrchr(ask->route->pattern, '/') + 1;
    rp_ask_name named;

    if (request->confirm.data != NULL && rp_route_decode(request->confirm, &named) &&
        strcmp(named.text, wanted) == 0)
        return true;
    (void)rp_page_fail(answer, 400,
                       "the header x-reprise-confirm must name what is changed: '%s'", wanted);
    return false;
}

/* Makes the response to a request that has no route. */
static void refuse(rp_page_response *answer, rp_route_found found, const char *allow)
{
    switch (found) {
    case RP_ROUTE_NO_METHOD:
        (void)rp_page_fail(answer, 405, "use %s here", allow);
        extra(answer, "allow", allow);
        break;
    case RP_ROUTE_BAD_NAME:
        (void)rp_page_fail(answer, 400,
                           "a name in a path has 1 to %d bytes, none of them zero, and escapes "
                           "of '%%' and two hexadecimal digits",
                           RP_ASK_NAME_BYTES);
        break;
    case RP_ROUTE_BAD_NUMBER:
        rp_page_say(answer, 400, "after must be given once, as a whole number below 2^64");
        break;
    case RP_ROUTE_FOUND:
    case RP_ROUTE_NONE:
        rp_page_say(answer, 404, "there is no such page; docs/http.md lists all pages");
        break;
    }
}

bool rp_page_respond_now(const rp_page_host *host, const rp_page_request *request,
                         rp_page_response *answer, rp_page_ask *ask)
{
    bool head = strcmp(request->method, "HEAD") == 0;
    rp_string path = {request->path, strlen(request->path)};
    const rp_static_file *file;
    const char *allow = "";
    size_t count;
    const rp_route *routes = rp_routes(&count);
    rp_route_found found;

    rp_buf_clear(&answer->body);
    answer->extra_name = answer->extra_value = NULL;
    answer->is_file = false;
    answer->head_only = head;
    answer->role = RP_ROLE_NONE;
    answer->says_json = strcmp(request->method, "POST") == 0;
    file = rp_static_file_find((rp_string){path.data, strcspn(path.data, "?#")});
    if (file != NULL) {
        if (head || strcmp(request->method, "GET") == 0)
            send_file(request, file, answer);
        else
            refuse(answer, RP_ROUTE_NO_METHOD, "GET, HEAD");
        return true;
    }
    found = rp_route_find(routes, count, request->method, path, ask, &allow);
    if (found != RP_ROUTE_FOUND) {
        refuse(answer, found, allow);
        return true;
    }
    if (request->is_repeated) {
        rp_page_say(answer, 400, "there is more than one authorization header");
        return true;
    }
    if (!admit(host, request, ask, answer)) return true;
    if (ask->route->confirms && !is_confirmed(request, ask, answer)) return true;
    if (ask->route->lane != RP_ROUTE_NOW) return false;
    rp_page_make(host, ask, answer);
    answer->head_only = head;
    return true;
}
