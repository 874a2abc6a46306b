/* SPDX-License-Identifier: Apache-2.0 */
/* The pages about the whole server. */
#include "durable/async.h"
#include "server/http/info_json.h"
#include "server/http/metrics_text.h"
#include "server/http/pages.h"

rp_server_view rp_page_view(const rp_page_host *host)
{
    rp_server_view server;

    memset(&server, 0, sizeof server);
    host->describe(host->ctx, &server);
    return server;
}

int rp_page_health(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    rp_server_view server = rp_page_view(host);
    bool up = server.health == RP_HEALTH_SERVING || server.health == RP_HEALTH_DEGRADED;

    (void)ask;
    answer->content_type = "text/plain; charset=utf-8";
    rp_buf_format(&answer->body, "%s%s%s\n", rp_health_name(server.health),
                  server.why[0] != '\0' ? ": " : "", server.why);
    return up ? 200 : 503;
}

int rp_page_index(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    rp_server_view server = rp_page_view(host);
    size_t count;
    const rp_route *routes = rp_routes(&count);

    (void)ask;
    answer->content_type = "text/plain; charset=utf-8";
    rp_buf_format(&answer->body, "reprise %s: %s\n\n",
                  server.version != NULL ? server.version : "", rp_health_name(server.health));
    for (size_t i = 0; i < count; i++)
        if (routes[i].about != NULL)
            rp_buf_format(&answer->body, "  %-4s %-28s %s\n", routes[i].method,
                          routes[i].pattern, routes[i].about);
    rp_buf_text(&answer->body, "\nThe same port speaks gRPC.\n");
    return 200;
}

/* Takes a snapshot of all tables first, so that writing does not access them. */
static int write_all(const rp_page_host *host, const rp_page_ask *ask, bool is_json,
                     rp_page_response *answer)
{
    rp_server_view server = rp_page_view(host);
    rp_store_info store = {0};
    rp_client_views clients;
    rp_table_views views;

    if (rp_table_views_take(&views, answer->body.alloc, server.store) != RP_OK) return 503;
    /* After the calls: so the list has the clients of all calls, if they are connected. */
    if (rp_client_views_take(&clients, answer->body.alloc, host->clients) != RP_OK) {
        rp_table_views_deinit(&views);
        return 503;
    }
    server.clients = &clients;
    server.disk_free_bytes = server.disk_total_bytes = UINT64_MAX;
    if (server.handle != NULL)
        rp_durable_space(server.handle, &server.disk_total_bytes, &server.disk_free_bytes);
    if (server.store != NULL) rp_store_get_info(server.store, &store);
    server.page = ask->number;
    answer->body.most = rp_page_most_bytes(views.count);
    (is_json ? rp_info_json_write : rp_metrics_text)(&answer->body, &server, &store,
                                                     views.tables, views.count);
    rp_table_views_deinit(&views);
    rp_client_views_deinit(&clients);
    return 200;
}

int rp_page_metrics(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    answer->content_type = "text/plain; version=0.0.4; charset=utf-8";
    return write_all(host, ask, false, answer);
}

int rp_page_info(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    return write_all(host, ask, true, answer);
}
