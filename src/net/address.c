/* SPDX-License-Identifier: Apache-2.0 */
/* "localhost" becomes 127.0.0.1 and ::1 without a lookup, as in listener.c. */
#include "net/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "util/error.h"
#include "util/mem.h"

static rp_status parse_unix(const char *text, rp_address *out, rp_error *err)
{
    const char *path = text + 5;
    size_t length = strlen(path);

    if (length == 0) return rp_fail(err, RP_INVALID, "address '%s': a path is missing", text);
    if (length >= sizeof((struct sockaddr_un *)NULL)->sun_path)
        return rp_fail(err, RP_INVALID,
                       "address '%.40s...': the path has %zu bytes, a socket takes 107", text,
                       length);
    out->is_unix = true;
    memcpy(out->host, path, length + 1);
    return RP_OK;
}

static bool parse_port(const char *text, uint16_t *out)
{
    size_t digits = strspn(text, "0123456789");
    long port;

    if (digits == 0 || digits > 5 || text[digits] != '\0') return false;
    port = strtol(text, NULL, 10);
    if (port < 1 || port > UINT16_MAX) return false;
    *out = (uint16_t)port;
    return true;
}

static bool is_host_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           strchr("-._:%", c) != NULL;
}

/* Accepts host names and numeric addresses, with a zone if there is one. Refuses bytes that
 * have a meaning in a header or a message. */
static bool is_plain_host(const char *host, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!is_host_byte(host[i])) return false;
    return true;
}

rp_status rp_address_parse(const char *text, rp_address *out, rp_error *err)
{
    bool bracketed = text[0] == '[';
    const char *host = bracketed ? text + 1 : text, *end, *slash;
    struct in6_addr v6;
    size_t length;

    *out = (rp_address){.port = 0};
    if (strncmp(text, "unix:", 5) == 0) return parse_unix(text, out, err);
    end = strstr(text, "://");
    if (end != NULL)
        return rp_fail(err, RP_INVALID, "address '%s': write host:port, without '%.*s'", text,
                       (int)(end + 3 - text), text);
    if (text[0] == '/')
        return rp_fail(err, RP_INVALID, "address '%s': write a socket as 'unix:%s'", text,
                       text);
    if (strchr(text, ' ') != NULL)
        return rp_fail(err, RP_INVALID,
                       "address '%s': an address has no space; separate addresses by a comma, "
                       "as in 'one:8000,two:8000'",
                       text);
    end = bracketed ? strchr(text, ']') : strrchr(text, ':');
    if (end == NULL && bracketed)
        return rp_fail(err, RP_INVALID, "address '%s': ']' is missing", text);
    if (end == NULL || (bracketed && end[1] != ':'))
        return rp_fail(err, RP_INVALID,
                       "address '%s': a port is missing, as in 'localhost:8000'", text);
    length = (size_t)(end - host);
    if (!bracketed && memchr(host, ':', length) != NULL)
        return rp_fail(err, RP_INVALID, "address '%s': write it as '[v6]:port'", text);
    if (length == 0) return rp_fail(err, RP_INVALID, "address '%s': a host is missing", text);
    if (length >= sizeof out->host)
        return rp_fail(err, RP_INVALID, "address '%.40s...': %zu bytes are too long for a host",
                       text, length);
    if (!is_plain_host(host, length))
        return rp_fail(err, RP_INVALID, "address '%s': that is not the name of a host", text);
    end += bracketed ? 2 : 1;
    slash = strchr(end, '/');
    if (slash != NULL)
        return rp_fail(err, RP_INVALID,
                       "address '%s': leave out the '%s' at its end, as in '%.*s'", text, slash,
                       (int)(slash - text), text);
    if (!parse_port(end, &out->port))
        return rp_fail(err, RP_INVALID,
                       "address '%s': the port must be a number from 1 to 65535", text);
    memcpy(out->host, host, length);
    if (bracketed && strchr(out->host, '%') == NULL && inet_pton(AF_INET6, out->host, &v6) != 1)
        return rp_fail(err, RP_INVALID, "address '%s': not an IPv6 address", text);
    return RP_OK;
}

static void add_endpoint(rp_endpoints *out, const void *address, size_t bytes)
{
    rp_endpoint *e = &out->list[out->count];

    if (out->count == RP_ADDRESS_ENDPOINTS || bytes > sizeof e->address) return;
    *e = (rp_endpoint){.bytes = (socklen_t)bytes};
    memcpy(&e->address, address, bytes);
    for (size_t i = 0; i < out->count; i++)
        if (out->list[i].bytes == e->bytes &&
            memcmp(&out->list[i].address, &e->address, bytes) == 0)
            return;
    out->count++;
    assert(out->count <= RP_ADDRESS_ENDPOINTS);
}

static void add_unix(rp_endpoints *out, const char *path)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};

    assert(strlen(path) < sizeof local.sun_path);
    memcpy(local.sun_path, path, strlen(path) + 1); /* fits: parse_unix() has checked it */
    add_endpoint(out, &local, sizeof local);
}

static void add_loopback(rp_endpoints *out, uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    add_endpoint(out, &v4, sizeof v4);
    add_endpoint(out, &v6, sizeof v6);
}

/* Returns 0, or the error of getaddrinfo(). */
static int look_up(const rp_address *address, int flags, rp_endpoints *out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    char port[8];
    int failed;

    (void)snprintf(port, sizeof port, "%u", (unsigned)address->port);
    failed = getaddrinfo(address->host, port, &hints, &list);
    if (failed != 0) return failed;
    for (struct addrinfo *a = list; a != NULL; a = a->ai_next)
        if (a->ai_family == AF_INET || a->ai_family == AF_INET6)
            add_endpoint(out, a->ai_addr, a->ai_addrlen);
    freeaddrinfo(list);
    return 0;
}

bool rp_address_resolve_now(const rp_address *address, rp_endpoints *out)
{
    out->count = 0;
    if (address->is_unix)
        add_unix(out, address->host);
    else if (strcmp(address->host, "localhost") == 0)
        add_loopback(out, address->port);
    else if (look_up(address, AI_NUMERICHOST, out) != 0)
        return false;
    return out->count > 0;
}

rp_status rp_address_resolve(const rp_address *address, rp_endpoints *out, rp_error *err)
{
    int failed;

    if (rp_address_resolve_now(address, out)) return RP_OK;
    failed = look_up(address, 0, out);
    if (failed == EAI_MEMORY) return rp_fail_memory(err, sizeof *out);
    if (failed == EAI_AGAIN) return rp_fail(err, RP_UNAVAILABLE, "no server of names answers");
    if (failed != 0)
        return rp_fail(err, RP_NOT_FOUND, "'%s': %s", address->host,
                       failed == EAI_SYSTEM ? strerror(errno) : gai_strerror(failed));
    if (out->count == 0)
        return rp_fail(err, RP_NOT_FOUND, "'%s': the name has no address", address->host);
    return RP_OK;
}

static rp_status add_shard(rp_address_list *list, const char *text, const char *name,
                           rp_error *err)
{
    rp_shard_address *s;
    size_t bytes = strlen(text) + 1;
    rp_status st;

    if (list->count == RP_ADDRESS_LIST_MAX)
        return rp_fail(err, RP_INVALID, "more than %d addresses", RP_ADDRESS_LIST_MAX);
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 4 : 2 * list->capacity;
        if (!rp_resize_array(&list->alloc, &list->shards, list->capacity, capacity,
                             sizeof *list->shards))
            return rp_fail_memory(err, capacity * sizeof *list->shards);
        list->capacity = capacity;
    }
    s = &list->shards[list->count];
    st = rp_address_parse(text, &s->address, err);
    if (st != RP_OK) return st;
    s->text = rp_alloc(&list->alloc, bytes);
    if (s->text == NULL) return rp_fail_memory(err, bytes);
    memcpy(s->text, text, bytes);
    if (name == NULL) name = s->address.is_unix ? "localhost" : s->address.host;
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    list->count++;
    assert(list->count <= list->capacity && list->count <= RP_ADDRESS_LIST_MAX);
    return RP_OK;
}

/* Adds every address of the name in "name:port". */
static rp_status add_all(rp_address_list *list, const char *text, rp_error *err)
{
    rp_endpoints found;
    rp_address name;
    rp_status st = rp_address_parse(text, &name, err);

    if (st == RP_OK && name.is_unix)
        st = rp_fail(err, RP_INVALID, "address 'dns:%s': a path is no name", text);
    if (st == RP_OK) st = rp_address_resolve(&name, &found, err);
    for (size_t i = 0; st == RP_OK && i < found.count; i++) {
        char host[INET6_ADDRSTRLEN + 16], address[INET6_ADDRSTRLEN + 32];

        if (getnameinfo((struct sockaddr *)&found.list[i].address, found.list[i].bytes, host,
                        sizeof host, NULL, 0, NI_NUMERICHOST) != 0)
            continue;
        (void)snprintf(address, sizeof address, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host,
                       (unsigned)name.port);
        st = add_shard(list, address, name.host, err);
    }
    return st;
}

rp_status rp_address_list_parse(const rp_allocator *alloc, const char *text,
                                rp_address_list *out, rp_error *err)
{
    rp_status st = RP_OK;
    size_t number = 0;

    *out = (rp_address_list){.alloc = *alloc};
    for (const char *at = text; st == RP_OK; at += strcspn(at, ",") + 1) {
        char one[RP_ADDRESS_HOST_BYTES + 32];
        size_t length;

        number++;
        at += strspn(at, " \t");
        length = strcspn(at, ",");
        if (length >= sizeof one) {
            st = rp_fail(err, RP_INVALID, "address '%.40s...' is too long", at);
            break;
        }
        memcpy(one, at, length);
        while (length > 0 && (one[length - 1] == ' ' || one[length - 1] == '\t')) length--;
        one[length] = '\0';
        if (length == 0)
            st = text[strspn(text, " \t")] == '\0'
                     ? rp_fail(err, RP_INVALID, "the address is empty: it is HOST:PORT")
                     : rp_fail(err, RP_INVALID, "addresses '%s': address %zu is empty", text,
                               number);
        else if (strncmp(one, "dns:", 4) == 0)
            st = add_all(out, one + 4, err);
        else
            st = add_shard(out, one, NULL, err);
        if (at[strcspn(at, ",")] == '\0') break;
    }
    if (st != RP_OK) rp_address_list_deinit(out);
    return st;
}

void rp_address_list_deinit(rp_address_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        rp_release(&list->alloc, list->shards[i].text, strlen(list->shards[i].text) + 1);
    rp_release(&list->alloc, list->shards, list->capacity * sizeof *list->shards);
    list->shards = NULL;
    list->count = list->capacity = 0;
}
