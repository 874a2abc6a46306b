/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/route.h"

static const char place[] = "{}";
enum { PLACE_BYTES = sizeof place - 1 };

static int hex_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool rp_route_decode(rp_string text, rp_ask_name *out)
{
    size_t size = 0;

    for (size_t i = 0; i < text.size; i++) {
        int c = (unsigned char)text.data[i];

        if (c == '%') {
            int high = i + 1 < text.size ? hex_of(text.data[i + 1]) : -1;
            int low = i + 2 < text.size ? hex_of(text.data[i + 2]) : -1;

            if (high < 0 || low < 0) return false;
            c = high << 4 | low;
            i += 2;
        }
        if (c == '\0' || size == RP_ASK_NAME_BYTES) return false;
        out->text[size++] = (char)c;
    }
    out->text[size] = '\0';
    out->size = size;
    return size > 0;
}

/* The bytes up to the next '/', or to the end. */
static size_t part_size(const char *text, size_t size)
{
    const char *slash = memchr(text, '/', size);

    return slash != NULL ? (size_t)(slash - text) : size;
}

/* Whether a path has a pattern. `names` receives the parts of the path at its places, as they
 * were sent. */
static bool has_pattern(const char *pattern, rp_string path, rp_string names[RP_ASK_NAMES])
{
    size_t count = 0;

    while (*pattern != '\0') {
        const char *open = strstr(pattern, place);
        size_t before = open != NULL ? (size_t)(open - pattern) : strlen(pattern);
        size_t behind, size;

        if (path.size < before || memcmp(path.data, pattern, before) != 0) return false;
        path.data += before;
        path.size -= before;
        if (open == NULL) break;
        pattern = open + PLACE_BYTES;
        behind = part_size(pattern, strlen(pattern));
        size = part_size(path.data, path.size);
        if (size < behind || memcmp(path.data + size - behind, pattern, behind) != 0)
            return false;
        assert(count < RP_ASK_NAMES); /* the patterns are ours */
        names[count++] = (rp_string){path.data, size - behind};
        path.data += size - behind;
        path.size -= size - behind;
    }
    return path.size == 0;
}

bool rp_route_read_number(rp_string text, uint64_t *out)
{
    uint64_t number = 0;

    if (text.size == 0) return false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];

        if (c < '0' || c > '9' || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(c - '0'), &number))
            return false;
    }
    *out = number;
    return true;
}

/* Reads "after=7" among the settings of a query; others are ignored. */
static bool read_query(rp_string query, rp_page_ask *ask)
{
    static const char key[] = "after=";
    const size_t key_size = sizeof key - 1;

    while (query.size > 0) {
        const char *end = memchr(query.data, '&', query.size);
        size_t size = end != NULL ? (size_t)(end - query.data) : query.size;

        if (size >= key_size && memcmp(query.data, key, key_size) == 0) {
            if (ask->has_after ||
                !rp_route_read_number((rp_string){query.data + key_size, size - key_size},
                                      &ask->after))
                return false;
            ask->has_after = true;
        }
        if (end != NULL) size++;
        query.data += size;
        query.size -= size;
    }
    return true;
}

/* Cuts a path before its query and fragment. `*query` receives the query. */
static rp_string cut_query(rp_string path, rp_string *query)
{
    const char *hash = path.size > 0 ? memchr(path.data, '#', path.size) : NULL;
    const char *mark;

    if (hash != NULL) path.size = (size_t)(hash - path.data);
    mark = path.size > 0 ? memchr(path.data, '?', path.size) : NULL;
    *query = (rp_string){"", 0};
    if (mark == NULL) return path;
    *query = (rp_string){mark + 1, path.size - (size_t)(mark - path.data) - 1};
    path.size = (size_t)(mark - path.data);
    return path;
}

rp_route_found rp_route_find(const rp_route *routes, size_t count, const char *method,
                             rp_string path, rp_page_ask *ask, const char **allow)
{
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    bool can_get = false, can_post = false;
    rp_string query;

    path = cut_query(path, &query);
    ask->route = NULL;
    ask->has_after = false;
    ask->after = ask->number = 0;
    for (size_t i = 0; i < RP_ASK_NAMES; i++)
        ask->names[i].size = 0, ask->names[i].text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        rp_string names[RP_ASK_NAMES] = {{NULL, 0}};
        bool is_get = strcmp(routes[i].method, "GET") == 0;

        if (!has_pattern(routes[i].pattern, path, names)) continue;
        can_get = can_get || is_get;
        can_post = can_post || !is_get;
        if (is_get ? !reads : strcmp(method, routes[i].method) != 0) continue;
        for (size_t n = 0; n < RP_ASK_NAMES; n++)
            if (names[n].data != NULL && !rp_route_decode(names[n], &ask->names[n]))
                return RP_ROUTE_BAD_NAME;
        ask->route = &routes[i];
        return read_query(query, ask) ? RP_ROUTE_FOUND : RP_ROUTE_BAD_NUMBER;
    }
    *allow = can_get && can_post ? "GET, HEAD, POST" : can_post ? "POST" : "GET, HEAD";
    return can_get || can_post ? RP_ROUTE_NO_METHOD : RP_ROUTE_NONE;
}

bool rp_route_is_same(const rp_page_ask *a, const rp_page_ask *b)
{
    if (a->route != b->route) return false;
    if (a->route->is_part && a->after != b->after) return false;
    for (size_t i = 0; i < RP_ASK_NAMES; i++)
        if (a->names[i].size != b->names[i].size ||
            memcmp(a->names[i].text, b->names[i].text, a->names[i].size) != 0)
            return false;
    return true;
}
