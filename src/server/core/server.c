/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, reloads and stops a server. server_state.h lists its units. */
#include "server/core/server.h"

#include <assert.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runs/runs.h"
#include "server/bounds/limits.h"
#include "server/core/dispatch.h"
#include "server/core/journal_room.h"
#include "server/core/page_response.h"
#include "server/core/pinned.h"
#include "server/core/served_table.h"
#include "server/core/worker.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    MAX_LOOPS = 256,
    RESERVED_DESCRIPTORS = 32, /* not for connections */
};

/* Indexes of server->files. */
enum { CERTIFICATE, KEY, CLIENT_CA, TOKENS, FILE_COUNT };

static_assert(FILE_COUNT == sizeof((rp_server *)NULL)->files / sizeof(char *),
              "a copy of each path");

/* On the journal's thread. */
static void on_safe(void *ctx, uint64_t lsn)
{
    rp_server *server = ctx;

    if (rp_safety_raise(&server->safety, lsn))
        for (size_t i = 0; i < server->worker_count; i++)
            rp_safe_waits_wake(&server->workers[i].safe_waits);
    rp_journal_room_made(server);
}

rp_status rp_server_set_durable(rp_server *server, rp_durable *durable, rp_error *err)
{
    if (durable == NULL || server->safety.durable != NULL ||
        atomic_load_explicit(&server->is_loaded, memory_order_acquire))
        return rp_fail(err, RP_PRECONDITION,
                       "a server is given its durable once, while it is loading");
    return rp_safety_listen(&server->safety, durable, on_safe, server, err);
}

/* Copies `text`. `*out` stays NULL if `text` is NULL. */
static rp_status copy_text(rp_server *server, const char *text, char **out, rp_error *err)
{
    size_t size = text != NULL ? strlen(text) + 1 : 0;

    if (size == 0) return RP_OK;
    *out = rp_alloc(&server->alloc, size);
    if (*out == NULL) return rp_fail_memory(err, size);
    memcpy(*out, text, size);
    return RP_OK;
}

static rp_status copy_files(rp_server *server, const rp_server_security *security,
                            rp_error *err)
{
    const char *const paths[FILE_COUNT] = {
        [CERTIFICATE] = security->certificate_file,
        [KEY] = security->key_file,
        [CLIENT_CA] = security->client_ca_file,
        [TOKENS] = security->tokens_file,
    };

    if ((paths[CERTIFICATE] == NULL) != (paths[KEY] == NULL))
        return rp_fail(err, RP_INVALID,
                       "a certificate needs its key, and a key its certificate");
    if (paths[CLIENT_CA] != NULL && paths[CERTIFICATE] == NULL)
        return rp_fail(err, RP_INVALID, "client certificates need TLS: give a certificate");
    if (security->require_client_certificate && paths[CLIENT_CA] == NULL)
        return rp_fail(err, RP_INVALID,
                       "requiring client certificates needs a CA to check them with");
    for (int i = 0; i < FILE_COUNT; i++) {
        rp_status st = copy_text(server, paths[i], &server->files[i], err);
        if (st != RP_OK) return st;
    }
    server->require_client_certificate = security->require_client_certificate;
    return copy_text(server, security->page_hosts, &server->page_hosts, err);
}

static rp_status load_tls(rp_server *server, rp_tls **out, rp_error *err)
{
    const rp_tls_files files = {server->files[CERTIFICATE], server->files[KEY],
                                server->files[CLIENT_CA], server->require_client_certificate};

    *out = NULL;
    if (files.certificate == NULL) return RP_OK;
    return rp_tls_new(&server->alloc, &files, out, err);
}

static rp_status load_auth(rp_server *server, rp_auth **out, rp_error *err)
{
    return rp_auth_load(&server->alloc, server->files[TOKENS], server->files[CLIENT_CA] != NULL,
                        out, err);
}

static rp_status open_gate(rp_server *server, rp_error *err)
{
    rp_auth *auth;
    rp_tls *tls;
    rp_status st = load_tls(server, &tls, err);

    if (st != RP_OK) return st;
    rp_mutex_lock(&server->lock);
    server->tls = tls;
    rp_mutex_unlock(&server->lock);
    st = load_auth(server, &auth, err);
    if (st != RP_OK) return st;
    server->is_open = rp_auth_is_open(auth);
    st = rp_gate_new(&server->alloc, auth, &server->gate);
    return st == RP_OK ? RP_OK : rp_fail_memory(err, sizeof(void *));
}

static void log_limits(rp_server *server, const rp_server_limits *limits)
{
    if (limits->message_bytes == rp_server_limits_side_bytes(limits))
        rp_server_log(server, RP_LOG_WARNING, "limits",
                      "message_bytes=%zu queued_bytes=%zu note=\"messages may have half "
                      "of queued_bytes: raise it for larger ones\"",
                      limits->message_bytes, limits->queued_bytes);
}

rp_status rp_server_reload(rp_server *server, const rp_server_limits *limits, rp_error *err)
{
    rp_server_limits complete = limits != NULL ? *limits : (rp_server_limits){0};
    rp_tls *tls = NULL, *old;
    rp_auth *auth = NULL;
    rp_status st = limits != NULL ? rp_server_limits_complete(&complete, err) : RP_OK;

    if (st == RP_OK) st = load_tls(server, &tls, err);
    if (st == RP_OK) st = load_auth(server, &auth, err);
    if (st != RP_OK) {
        rp_tls_unref(tls);
        return st;
    }
    rp_gate_reload(server->gate, auth);
    rp_mutex_lock(&server->lock);
    old = server->tls;
    server->tls = tls;
    if (limits != NULL) server->limits = complete;
    rp_mutex_unlock(&server->lock);
    rp_tls_unref(old);
    if (limits != NULL) {
        log_limits(server, &complete);
        rp_runs_set_most_bytes(rp_store_runs(server->store), complete.run_bytes);
    }
    for (size_t i = 0; i < server->worker_count; i++)
        rp_worker_update_limits(&server->workers[i]);
    return RP_OK;
}

static rp_status listen_on(rp_server *server, const char *address, rp_error *err)
{
    const rp_listener *listener;
    rp_status st = rp_acceptor_listen(&server->acceptor, address, &listener, err);

    if (st != RP_OK) return st;
    if (!server->is_open || server->insecure || listener->is_local) return RP_OK;
    return rp_fail(
        err, RP_PRECONDITION,
        "%s can be reached from elsewhere, and there are no credentials: give tokens "
        "or a client CA, listen on localhost, or allow it with --insecure (in Python "
        "insecure=True)",
        address);
}

static rp_status listen_on_all(rp_server *server, const rp_server_options *options,
                               rp_error *err)
{
    rp_status st = RP_OK;

    if (options->address_count > RP_LISTENERS)
        return rp_fail(err, RP_INVALID, "at most %d addresses, got %zu", RP_LISTENERS,
                       options->address_count);
    if (options->address_count == 0) return listen_on(server, "localhost:8000", err);
    for (size_t i = 0; i < options->address_count; i++)
        if (options->addresses == NULL || options->addresses[i] == NULL)
            return rp_fail(err, RP_INVALID, "server: address %zu of %zu is NULL", i + 1,
                           options->address_count);
    for (size_t i = 0; st == RP_OK && i < options->address_count; i++)
        st = listen_on(server, options->addresses[i], err);
    return st;
}

/* Makes the shared memory for clients of this host. If that fails, they are served without it,
 * more slowly. */
static void open_arena(rp_server *server, const rp_server_options *options)
{
    rp_error error;

    if (options->shared_memory_off || server->files[CERTIFICATE] != NULL) return;
    if (!rp_acceptor_has_unix(&server->acceptor)) return;
    if (rp_shared_arena_new(&server->alloc, options->shared_memory_bytes, 0, &server->arena,
                            &error) != RP_OK) {
        rp_server_log(server, RP_LOG_WARNING, "shared_memory", "failed=\"%s\"", error.text);
        return;
    }
    server->arena_alloc = rp_shared_arena_allocator(server->arena);
}

int rp_server_port(const rp_server *server)
{
    return rp_acceptor_port(&server->acceptor);
}

static void count_descriptors(rp_server *server)
{
    struct rlimit limit;

    server->descriptor_room = SIZE_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    server->descriptor_room = limit.rlim_cur > 2 * RESERVED_DESCRIPTORS
                                  ? (size_t)limit.rlim_cur - RESERVED_DESCRIPTORS
                                  : RESERVED_DESCRIPTORS;
}

static size_t loop_count(const rp_server_options *options)
{
    long processors;

    if (options->loops > 0) return options->loops < MAX_LOOPS ? options->loops : MAX_LOOPS;
    processors = sysconf(_SC_NPROCESSORS_ONLN); /* reads a file */
    return processors > 0 && processors < MAX_LOOPS ? (size_t)processors : 1;
}

rp_status rp_server_new(rp_store *store, const rp_server_options *options, rp_server **out,
                        rp_error *err)
{
    const rp_allocator *alloc =
        options->alloc != NULL ? options->alloc : rp_allocator_default();
    rp_server *server = rp_alloc_zero(alloc, sizeof *server);
    size_t workers = loop_count(options), run_bytes;
    rp_status st;

    if (server == NULL) {
        (void)rp_fail_memory(err, sizeof *server);
        return RP_NO_RESOURCE;
    }
    server->alloc = *alloc;
    server->store = store;
    server->log = options->log;
    server->moderate = !options->moderate_off;
    server->insecure = options->security.insecure;
    server->reset_off = options->security.reset_off;
    server->state_id[0] = rp_system_seed();
    server->state_id[1] = rp_system_seed();
    server->hash_seed = rp_system_seed();
    server->started_ns = rp_now_ns();
    rp_safety_init(&server->safety);
    atomic_init(&server->room.safe, 0);
    rp_checkpoint_queue_init(&server->checkpoints);
    atomic_init(&server->is_loaded, !options->loading);
    rp_mutex_init(&server->lock, RP_RANK_SERVER);
    rp_queue_budget_init(&server->budget, &server->connection_count);
    rp_cond_init(&server->changed);
    rp_clients_init(&server->clients);
    rp_mutex_lock(&server->lock);
    server->limits = options->limits;
    server->health = options->loading ? RP_HEALTH_LOADING : RP_HEALTH_SERVING;
    st = rp_server_limits_complete(&server->limits, err);
    run_bytes = server->limits.run_bytes;
    rp_mutex_unlock(&server->lock);
    if (st == RP_OK) rp_runs_set_most_bytes(rp_store_runs(server->store), run_bytes);
    count_descriptors(server);
    if (st == RP_OK) st = copy_files(server, &options->security, err);
    if (st == RP_OK) st = open_gate(server, err);
    if (st == RP_OK && rp_metrics_new(&server->alloc, workers, &server->metrics) != RP_OK)
        st = rp_fail_memory(err, workers * sizeof(rp_loop_metrics));
    if (st == RP_OK) {
        server->budget.drawn_counter = &rp_metrics_shared(server->metrics)->queued_bytes;
        rp_leases_init(&server->leases, &server->alloc, rp_metrics_shared(server->metrics));
        server->workers = rp_alloc_array(&server->alloc, workers, sizeof *server->workers);
        if (server->workers == NULL)
            st = rp_fail_memory(err, workers * sizeof *server->workers);
        else
            server->worker_count = workers;
    }
    if (st == RP_OK)
        *out = server;
    else
        rp_server_free(server);
    return st;
}

/* Retries some more of the tables that wait for bytes. */
static void on_retry(rp_post *post)
{
    rp_server *server = (rp_server *)((char *)post - offsetof(rp_server, retry));

    /* Cleared first: tables that are reported from here on are retried by another post. */
    atomic_store_explicit(&server->retry_posted, false, memory_order_release);
    rp_budget_retry(rp_store_budget(server->store));
}

static void on_more_to_retry(void *user)
{
    rp_server *server = user;

    if (!atomic_exchange_explicit(&server->retry_posted, true, memory_order_acq_rel))
        rp_loop_post(server->workers[0].loop, &server->retry);
}

static void on_rollouts_changed(rp_rollout_watch *watch, rp_rollouts *rollouts)
{
    rp_server *server = (rp_server *)((char *)watch - offsetof(rp_server, rollout_watch));

    for (size_t i = 0; i < server->worker_count; i++)
        rp_rollout_waits_wake(&server->workers[i].rollout_waits, rollouts);
}

static void stop_workers(rp_server *server)
{
    /* Workers wait for the pages that they have requested. */
    if (server->page != NULL) rp_page_maker_stop(rp_http_page_maker(server->page));
    rp_budget_retry_later(rp_store_budget(server->store), NULL, server);
    for (size_t i = 0; i < server->worker_count; i++) rp_worker_stop(&server->workers[i]);
    rp_store_unwatch_rollouts(server->store, &server->rollout_watch);
}

static rp_status start_workers(rp_server *server, rp_error *err)
{
    rp_page_host host = rp_page_host_of(server);
    rp_status st;

    host.idle_s = (unsigned)((rp_server_limits_now(server).handshake_ms + 999) / 1000);
    st = rp_http_page_new(&server->alloc, &host, &server->page, err);
    for (size_t i = 0; st == RP_OK && i < server->worker_count; i++) {
        st = rp_worker_init(&server->workers[i], server, i, err);
        if (st == RP_OK) st = rp_worker_start(&server->workers[i], err);
    }
    server->retry.run = on_retry;
    server->rollout_watch.changed = on_rollouts_changed;
    if (st == RP_OK) rp_store_watch_rollouts(server->store, &server->rollout_watch);
    if (st == RP_OK)
        rp_budget_retry_later(rp_store_budget(server->store), on_more_to_retry, server);
    return st;
}

static bool describe_memory(void *ctx, rp_memory_load *load)
{
    rp_server *server = ctx;
    size_t all;

    if (!atomic_load_explicit(&server->is_loaded, memory_order_acquire)) return false;
    load->held_bytes = rp_queue_published(&server->budget) + rp_pinned_sum(server);
    load->connections = atomic_load_explicit(&server->connection_count, memory_order_relaxed);
    all = rp_clients_count(&server->clients);
    /* Those of HTTP/1.1 are not in connection_count. Under TLS they need twice as much, for
     * libmicrohttpd and the relay. */
    if (all > load->connections) load->connections += 2 * (all - load->connections);
    load->has_journal = server->safety.durable != NULL;
    for (size_t i = 0; i < server->worker_count; i++)
        load->calls += rp_counter_get(&rp_metrics_loop(server->metrics, i)->streams_most);
    return true;
}

static rp_status start_memory_guard(rp_server *server, rp_error *err)
{
    const rp_memory_host host = {
        .store = server->store,
        .arena = server->arena,
        .log = server->log,
        .ctx = server,
        .describe = describe_memory,
    };

    return rp_memory_guard_start(&server->memory_guard, &host, err);
}

rp_status rp_server_start(rp_store *store, const rp_server_options *options, rp_server **out,
                          rp_error *err)
{
    const rp_server_options none = {0};
    rp_server *server = NULL;
    rp_server_limits limits;
    rp_status st;

    if (options == NULL) options = &none;
    if (store == NULL) return rp_fail(err, RP_INVALID, "server: no store");
    st = rp_server_new(store, options, &server, err);
    if (st != RP_OK) return st;
    st = listen_on_all(server, options, err);
    if (st == RP_OK) open_arena(server, options);
    if (st == RP_OK) st = start_workers(server, err);
    if (st == RP_OK && options->durable != NULL)
        st = rp_safety_listen(&server->safety, options->durable, on_safe, server, err);
    if (st == RP_OK && options->owns_process) st = start_memory_guard(server, err);
    if (st != RP_OK) {
        rp_server_free(server);
        return st;
    }
    limits = rp_server_limits_now(server);
    log_limits(server, &limits);
    rp_acceptor_start(&server->acceptor, server->workers[0].loop, &rp_dispatch_handler);
    *out = server;
    return RP_OK;
}

static void drain_start(rp_server *server)
{
    rp_server_set_health(server, RP_HEALTH_DRAINING, "shutting down");
    rp_acceptor_stop(&server->acceptor);
    if (server->arena != NULL) rp_shared_arena_retire(server->arena);
    for (size_t i = 0; i < server->worker_count; i++) rp_worker_drain(&server->workers[i]);
}

static bool has_connections(rp_server *server)
{
    return atomic_load_explicit(&server->connection_count, memory_order_acquire) > 0;
}

static void drain_until(rp_server *server, int64_t until_ns)
{
    rp_mutex_lock(&server->lock);
    while (has_connections(server) && rp_now_ns() < until_ns)
        (void)rp_cond_wait(&server->changed, &server->lock, until_ns);
    rp_mutex_unlock(&server->lock);
}

static size_t open_calls(const rp_server *server)
{
    uint64_t calls = 0;

    for (size_t i = 0; i < server->worker_count; i++)
        calls += rp_counter_get(&rp_metrics_loop(server->metrics, i)->streams);
    return (size_t)calls;
}

rp_status rp_server_drain_wait(rp_server *server, rp_wait wait, size_t *calls)
{
    if (!atomic_exchange_explicit(&server->draining, true, memory_order_relaxed))
        drain_start(server);
    drain_until(server, wait.until_ns);
    if (calls != NULL) *calls = open_calls(server);
    return has_connections(server) ? RP_DEADLINE : RP_OK;
}

void rp_server_drain(rp_server *server, int64_t grace_ms)
{
    int64_t until_ns = rp_wait_ms(grace_ms).until_ns;

    if (atomic_exchange_explicit(&server->draining, true, memory_order_relaxed)) return;
    drain_start(server);
    drain_until(server, until_ns);
    stop_workers(server);
}

void rp_server_free(rp_server *server)
{
    if (server == NULL) return;
    if (server->worker_count > 0 && server->workers[0].has_thread &&
        !atomic_load_explicit(&server->draining, memory_order_relaxed))
        rp_acceptor_stop(&server->acceptor);
    rp_memory_guard_stop(&server->memory_guard);
    if (server->arena != NULL) rp_shared_arena_retire(server->arena);
    stop_workers(server);
    rp_safety_unlisten(&server->safety, on_safe, server);
    rp_http_page_free(server->page);
    for (size_t i = 0; i < server->worker_count; i++) rp_worker_deinit(&server->workers[i]);
    rp_release(&server->alloc, server->workers, server->worker_count * sizeof(rp_worker));
    rp_acceptor_deinit(&server->acceptor);
    rp_served_table_forget_all(server);
    rp_shared_arena_unref(server->arena);
    if (server->metrics != NULL) rp_leases_deinit(&server->leases);
    rp_metrics_free(server->metrics);
    rp_gate_free(server->gate);
    rp_mutex_lock(&server->lock);
    rp_tls_unref(server->tls);
    rp_mutex_unlock(&server->lock);
    for (int i = 0; i < FILE_COUNT; i++)
        if (server->files[i] != NULL)
            rp_release(&server->alloc, server->files[i], strlen(server->files[i]) + 1);
    if (server->page_hosts != NULL)
        rp_release(&server->alloc, server->page_hosts, strlen(server->page_hosts) + 1);
    assert(!has_connections(server));
    rp_clients_deinit(&server->clients);
    rp_cond_deinit(&server->changed);
    rp_queue_budget_deinit(&server->budget);
    rp_mutex_deinit(&server->lock);
    rp_allocator alloc = server->alloc;
    rp_release(&alloc, server, sizeof *server);
}
