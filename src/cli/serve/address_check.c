/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/address_check.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/units.h"

enum { MAX_PATH = 107, MAX_HOST = 253, MAX_FD = 1 << 20 };

/* Writes the reason. Returns RP_INVALID. */
static rp_status wrong(const char *text, char *why, size_t why_bytes)
{
    assert(why_bytes > 0);
    (void)snprintf(why, why_bytes, "%s", text);
    return RP_INVALID;
}

/* Returns true if the text is a port, in digits only. */
static bool is_port(const char *text)
{
    int64_t number;

    return strchr(text, '_') == NULL && rp_parse_integer(text, &number) && number >= 0 &&
           number <= 65535;
}

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Returns true for a literal address other than loopback, and for "", which is every address.
 */
static bool host_is_open(const char *host)
{
    bool literal = host[strspn(host, "0123456789.")] == '\0';

    if (host[0] == '\0') return true;
    if (host[0] == '[') return strcmp(host, "[::1]") != 0 && !begins_with(host, "[::ffff:127.");
    return literal && !begins_with(host, "127.");
}

rp_status rp_address_check(const char *address, bool *is_open, char *why, size_t why_bytes)
{
    const char *colon = strrchr(address, ':'), *scheme_end = strstr(address, "://");
    char host[MAX_HOST + 3];
    size_t length;
    int64_t number;

    *is_open = false;
    if (begins_with(address, "unix:")) {
        length = strlen(address + strlen("unix:"));
        if (length == 0 || length > MAX_PATH)
            return wrong("a path of 1 to 107 bytes must follow 'unix:'", why, why_bytes);
        return RP_OK;
    }
    if (begins_with(address, "fd:")) {
        if (!rp_parse_integer(address + 3, &number) || number < 0 || number > MAX_FD)
            return wrong("the number of a descriptor must follow 'fd:'", why, why_bytes);
        return RP_OK;
    }
    if (scheme_end != NULL) {
        /* As the addresses of clients. */
        (void)snprintf(host, sizeof host, "write host:port, without '%.*s'",
                       (int)(scheme_end + 3 - address), address);
        return wrong(host, why, why_bytes);
    }
    if (colon == NULL)
        return wrong("there is no port: expected host:port, :port or unix:/path", why,
                     why_bytes);
    if (!is_port(colon + 1))
        return wrong("the port must be a number from 0 to 65535", why, why_bytes);
    length = (size_t)(colon - address);
    if (length >= sizeof host) return wrong("the name is too long", why, why_bytes);
    (void)snprintf(host, sizeof host, "%.*s", (int)length, address);
    assert(strlen(host) == length);
    if (host[0] == '[' ? host[length - 1] != ']' : strchr(host, ':') != NULL)
        return wrong("an IPv6 address must be in brackets: [::1]:8000", why, why_bytes);
    if (strpbrk(host, " /\t") != NULL)
        return wrong("a host name has no spaces and no slashes", why, why_bytes);
    *is_open = host_is_open(host);
    return RP_OK;
}

char *rp_address_with_port(const char *address, int port, char *text, size_t size)
{
    const char *colon = strrchr(address, ':');

    assert(size > 0);
    if (!begins_with(address, "unix:") && !begins_with(address, "fd:") && colon != NULL &&
        strcmp(colon, ":0") == 0)
        (void)snprintf(text, size, "%.*s:%d", (int)(colon - address), address, port);
    else
        (void)snprintf(text, size, "%s", address);
    return text;
}
