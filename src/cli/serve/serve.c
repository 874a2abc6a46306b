/* SPDX-License-Identifier: Apache-2.0 */
/* The process of a server.
 *
 * Invariants:
 *   Q1  `server` is set from start_server() to wind_up();
 *   Q2  `draining` is true from the signal to the end; `drain_thread` is joined if it is;
 *   Q3  `unclean` is written before `drained` is set, and read after that. */
#include "cli/serve/serve.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/serve/address_check.h"
#include "cli/serve/config_flags.h"
#include "cli/serve/logger.h"
#include "cli/serve/memory_size.h"
#include "cli/serve/sd_notify.h"
#include "cli/serve/serve_print.h"
#include "cli/serve/serve_storage.h"
#include "cli/serve/served_tables.h"
#include "cli/serve/signals.h"
#include "cli/serve/upkeep.h"
#include "cli/text/units.h"

enum {
    EXIT_MISUSE = 2,
    TICK_MS = 1000, /* how often tables with a soft limit are trimmed */
    LIST_BYTES = 1024,
    QUIET_DRAIN_MS = 100, /* a drain that takes longer is announced */
    STOP_MARGIN_S = 5,    /* added to the drain time in the message to the service manager */
};

typedef struct process {
    const rp_flags *flags;
    rp_config config; /* that of the start: the server borrows from it */
    size_t passed_sockets;
    rp_logger logger;
    rp_notifier notifier;
    rp_store *store;
    rp_server *server;
    rp_storage storage;
    uint64_t started_us;

    int64_t drain_ms;
    pthread_t main_thread, drain_thread;
    bool draining;
    int drain_signal;
    atomic_bool drained;
    bool has_default_table; /* it was created, since no table is configured or saved */
    bool unclean;           /* the storage could not be closed (Q3) */
} process;

static int misuse(const rp_problem *problem)
{
    (void)fprintf(stderr, "reprise: %s\n", problem->text);
    return EXIT_MISUSE;
}

/* Reads the configuration from the file and the command line. */
static rp_status load(const process *p, rp_config *config, rp_problem *problem)
{
    rp_status st;

    rp_config_init(config, NULL, rp_memory_size(""));
    st = rp_config_from_flags(config, p->flags, problem);
    if (st == RP_OK) st = rp_config_add_sockets(config, p->passed_sockets, problem);
    if (st == RP_OK) st = rp_config_finish(config, problem);
    return st;
}

/* Takes the sockets of systemd. Children do not inherit them. */
static rp_status take_sockets(process *p, rp_problem *problem)
{
    rp_status st = rp_passed_sockets(getenv("LISTEN_PID"), getenv("LISTEN_FDS"), getpid(),
                                     &p->passed_sockets, problem);

    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    return st == RP_OK ? rp_keep_sockets(p->passed_sockets, problem) : st;
}

static void raise_file_limit(process *p)
{
    struct rlimit limit;
    rp_fields f;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    rp_fields_init(&f);
    rp_fields_add(&f, "open_files", "%llu", (unsigned long long)limit.rlim_max);
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        rp_logger_write(&p->logger, RP_LOG_DEBUG, "file_limit_raised", f.text);
    else
        rp_logger_write(&p->logger, RP_LOG_WARNING, "file_limit_kept", f.text);
}

static rp_status start_server(process *p, rp_error *err)
{
    rp_server_options options = {
        .addresses = p->config.addresses,
        .address_count = p->config.address_count,
        .loops = (size_t)p->config.loops,
        .limits = p->config.limits,
        .security = p->config.security,
        .log = rp_logger_sink(&p->logger),
        .loading = p->config.storage.directory != NULL,
        .owns_process = true,
    };

    return rp_server_start(p->store, &options, &p->server, err);
}

static void log_start_failure(process *p, rp_status st, const rp_error *err)
{
    rp_fields f;

    rp_fields_init(&f);
    rp_fields_add(&f, "status", "%s", rp_status_name(st));
    if (p->server != NULL) rp_fields_add(&f, "data", "%s", p->config.storage.directory);
    rp_fields_add(&f, "error", "%s", err->text);
    if (st == RP_UNAVAILABLE && p->server == NULL && strstr(err->text, "address '") != NULL)
        rp_fields_add(&f, "try", "another address: --port 8001, or --port 0 for a free one");
    if (p->server != NULL && rp_storage_hint(err) != NULL)
        rp_fields_add(&f, "try", "%s", rp_storage_hint(err));
    rp_logger_write(&p->logger, RP_LOG_ERROR, "start_failed", f.text);
}

/* Adds an element to a list in `text`, cut to fit. */
static void add_to_list(char *text, size_t size, const char *element)
{
    size_t used = strlen(text);

    assert(used < size);
    (void)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", element);
}

static void list_addresses(const process *p, char *text, size_t size)
{
    char one[256];

    text[0] = '\0';
    for (size_t i = 0; i < p->config.address_count; i++)
        add_to_list(text, size,
                    rp_address_with_port(p->config.addresses[i], rp_server_port(p->server), one,
                                         sizeof one));
}

/* Writes a command that checks the server at its first address, or "". */
static void suggest_command(const process *p, char *text, size_t size)
{
    const char *scheme = p->config.security.certificate_file != NULL ? "https" : "http";
    const char *address = p->config.addresses[0];
    int port = rp_server_port(p->server);

    assert(p->config.address_count > 0);
    text[0] = '\0';
    if (strncmp(address, "unix:", 5) == 0)
        (void)snprintf(text, size, "curl --unix-socket %s %s://localhost/healthz", address + 5,
                       scheme);
    else if (port > 0)
        (void)snprintf(text, size, "curl %s://localhost:%d/healthz", scheme, port);
}

static void log_serving(process *p)
{
    char text[LIST_BYTES], addresses[LIST_BYTES];
    rp_fields f;

    assert(p->server != NULL); /* Q1 */
    rp_fields_init(&f);
    list_addresses(p, addresses, sizeof addresses);
    rp_fields_add(&f, "addresses", "%s", addresses);
    rp_fields_add(&f, "tables", "%s", rp_served_tables_list(p->store, text, sizeof text));
    if (p->config.default_table)
        rp_fields_add(&f, "note", "%s",
                      p->has_default_table
                          ? "no table is configured, so this one was created: "
                            "--table NAME:SAMPLER:MAX_SIZE creates others"
                          : "no table is configured: the saved tables are used as they are");
    if (p->config.storage.directory != NULL)
        rp_fields_add(&f, "data", "%s", p->config.storage.directory);
    rp_fields_add(&f, "max_bytes", "%s",
                  p->config.max_bytes == 0
                      ? "no limit"
                      : rp_size_text(p->config.max_bytes, text, sizeof text));
    suggest_command(p, text, sizeof text);
    if (text[0] != '\0') rp_fields_add(&f, "try", "%s", text);
    rp_logger_write(&p->logger, RP_LOG_INFO, "serving", f.text);
    rp_notifier_send(&p->notifier, "READY=1\nSTATUS=serving on %s", addresses);
}

/* Logs each configured table whose max_size or limiter is not used, since a saved one is. */
static void log_saved_options(process *p)
{
    char used[LIST_BYTES / 2], configured[LIST_BYTES / 2];

    for (size_t i = 0; i < p->config.table_count && !p->config.default_table; i++) {
        const rp_table_settings *table = &p->config.tables[i];
        rp_fields f;

        if (!rp_served_table_differs(p->store, table, used, configured, sizeof used)) continue;
        rp_fields_init(&f);
        rp_fields_add(&f, "table", "%s", table->name);
        rp_fields_add(&f, "saved", "%s", used);
        rp_fields_add(&f, "configured", "%s", configured);
        rp_fields_add(&f, "note",
                      "the saved options are used; reprise tables alter changes them");
        rp_logger_write(&p->logger, RP_LOG_WARNING, "saved_options", f.text);
    }
}

/* Warns of each address at which tokens cross the network without encryption. */
static void log_plain_tokens(process *p)
{
    char why[128];
    bool is_open;
    rp_fields f;

    if (p->config.security.tokens_file == NULL || p->config.security.certificate_file != NULL)
        return;
    for (size_t i = 0; i < p->config.address_count; i++) {
        const char *address = p->config.addresses[i];

        if (rp_address_check(address, &is_open, why, sizeof why) != RP_OK || !is_open) continue;
        rp_fields_init(&f);
        rp_fields_add(&f, "address", "%s", address);
        rp_fields_add(&f, "note",
                      "tokens and data cross the network without encryption: --tls-cert and "
                      "--tls-key encrypt them");
        rp_logger_write(&p->logger, RP_LOG_WARNING, "plain_tokens", f.text);
    }
}

/* Warns of --sync-every if the durability mode does not use it. A configuration file may have
 * it for other modes. */
static void log_unused(process *p)
{
    rp_fields f;

    if ((p->config.given[1] & (1u << RP_SERVE_SYNC_EVERY)) == 0) return;
    if (p->config.storage.mode == RP_DURABLE_INTERVAL) return;
    rp_fields_init(&f);
    rp_fields_add(&f, "option", "--sync-every");
    rp_fields_add(&f, "note", "it is used only with --durability interval");
    rp_logger_write(&p->logger, RP_LOG_WARNING, "unused_option", f.text);
}

static void log_stopped(process *p)
{
    rp_upkeep_totals sum = rp_upkeep_count(p->store);
    rp_fields f;

    rp_fields_init(&f);
    rp_fields_add(&f, "seconds", "%.3f", (double)(rp_monotonic_us() - p->started_us) / 1e6);
    rp_fields_add(&f, "inserts", "%" PRId64, sum.inserts);
    rp_fields_add(&f, "samples", "%" PRId64, sum.samples);
    rp_fields_add(&f, "items", "%" PRId64, sum.items);
    rp_logger_write(&p->logger, RP_LOG_INFO, "stopped", f.text);
}

static void log_reload(process *p, rp_log_level level, const char *key, const char *text)
{
    rp_fields f;

    rp_fields_init(&f);
    if (key != NULL) rp_fields_add(&f, key, "%s", text);
    rp_logger_write(&p->logger, level, level == RP_LOG_ERROR ? "reload_failed" : "reloaded",
                    f.text);
}

/* Applies the settings that can change while the server runs. */
static void apply_reloaded(process *p, const rp_config *config)
{
    char keys[LIST_BYTES / 2], note[LIST_BYTES];
    rp_error err = {0};

    if (rp_server_reload(p->server, &config->limits, &err) != RP_OK) {
        log_reload(p, RP_LOG_ERROR, "error", err.text);
        return;
    }
    p->drain_ms = config->drain_ms;
    rp_logger_set_level(&p->logger, (rp_log_level)config->log_level);
    if (!rp_config_needs_restart(config, &p->config, keys, sizeof keys)) {
        log_reload(p, RP_LOG_INFO, NULL, NULL);
        return;
    }
    (void)snprintf(note, sizeof note,
                   "changes of tables, budget, addresses and paths need a restart: these were "
                   "not applied: %s",
                   keys);
    log_reload(p, RP_LOG_WARNING, "note", note);
}

/* Reads the configuration again. On failure no setting changes. */
static void reload(process *p)
{
    rp_problem problem;
    rp_config config;

    rp_notifier_send(&p->notifier, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, rp_monotonic_us());
    if (load(p, &config, &problem) == RP_OK)
        apply_reloaded(p, &config);
    else
        log_reload(p, RP_LOG_ERROR, "error", problem.text);
    rp_config_deinit(&config);
    rp_notifier_send(&p->notifier, "READY=1");
}

static const char *signal_name(int number)
{
    return number == SIGTERM ? "TERM" : number == SIGINT ? "INT" : "unknown";
}

/* Says that the server waits for calls, or, at level debug, that it has not had to. */
static void log_draining(process *p, rp_status st, size_t calls)
{
    rp_fields f;

    rp_fields_init(&f);
    rp_fields_add(&f, "signal", "%s", signal_name(p->drain_signal));
    rp_fields_add(&f, "seconds", "%g", (double)p->drain_ms / 1000);
    rp_fields_add(&f, "calls", "%zu", calls);
    if (st != RP_OK)
        rp_fields_add(&f, "note",
                      "open calls have this long to end; a second signal stops at once");
    rp_logger_write(&p->logger, st != RP_OK ? RP_LOG_INFO : RP_LOG_DEBUG, "draining", f.text);
}

/* Lets open calls end, for the drain time. */
static void drain(process *p)
{
    int64_t quiet_ms = p->drain_ms < QUIET_DRAIN_MS ? p->drain_ms : QUIET_DRAIN_MS;
    rp_wait wait = rp_wait_ms(p->drain_ms);
    size_t calls = 0;
    rp_status st = rp_server_drain_wait(p->server, rp_wait_ms(quiet_ms), &calls);

    log_draining(p, st, calls);
    if (st != RP_OK) (void)!rp_server_drain_wait(p->server, wait, NULL);
}

/* Drains and frees the server, then closes the storage with its last checkpoint. */
static void wind_up(process *p)
{
    assert(p->server != NULL && !atomic_load(&p->drained)); /* Q1, Q3 */
    drain(p);
    rp_server_free(p->server);
    p->server = NULL;
    p->unclean = !rp_storage_close(&p->storage);
}

static void *drain_main(void *ctx)
{
    process *p = ctx;

    wind_up(p);
    atomic_store(&p->drained, true);
    rp_signals_wake(p->main_thread);
    return NULL;
}

static void begin_drain(process *p, int number)
{
    assert(!p->draining); /* Q2 */
    p->drain_signal = number;
    rp_notifier_send(&p->notifier,
                     "STOPPING=1\nSTATUS=waiting for open calls\nEXTEND_TIMEOUT_USEC=%" PRId64,
                     (p->drain_ms + STOP_MARGIN_S * 1000) * 1000);
    p->draining = true;
    if (pthread_create(&p->drain_thread, NULL, drain_main, p) == 0) return;
    rp_signals_restore(); /* this thread cannot wait for a second signal: it ends the process */
    wind_up(p);
    p->draining = false;
    atomic_store(&p->drained, true);
}

/* Ends the process without draining, after a second signal. */
static _Noreturn void stop_at_once(process *p, int number)
{
    rp_fields f;

    rp_fields_init(&f);
    rp_fields_add(&f, "signal", "%s", signal_name(number));
    rp_logger_write(&p->logger, RP_LOG_WARNING, "stopped_at_once", f.text);
    _exit(EXIT_FAILURE);
}

/* Handles signals until the server is drained. */
static void run_until_drained(process *p)
{
    while (!atomic_load(&p->drained)) {
        int number;

        switch (rp_signals_wait(TICK_MS, &number)) {
        case RP_SIGNAL_STOP:
            if (p->draining) stop_at_once(p, number);
            begin_drain(p, number);
            break;
        case RP_SIGNAL_RELOAD:
            if (!p->draining) reload(p);
            break;
        case RP_SIGNAL_NONE:
            if (p->draining) break;
            rp_store_trim(p->store);
            break;
        case RP_SIGNAL_WAKE: break;
        }
    }
    if (p->draining) (void)pthread_join(p->drain_thread, NULL);
}

/* Creates the default table if none is configured and the store has none. */
static rp_status add_default_table(process *p, rp_error *err)
{
    rp_table_options options;

    if (!p->config.default_table || rp_store_find_tables(p->store, NULL, 0) > 0) return RP_OK;
    p->has_default_table = true;
    options = rp_table_settings_options(&p->config.tables[0]);
    return rp_store_add_table(p->store, &options, NULL, err);
}

/* Loads the data directory. A signal meanwhile ends the process at once: no client has changed
 * anything yet. */
static rp_status load_data(process *p, rp_error *err)
{
    rp_status st;
    int number;

    assert(p->server != NULL && p->config.storage.directory != NULL); /* Q1 */
    p->storage.settings = &p->config.storage;
    p->storage.logger = &p->logger;
    p->storage.notifier = &p->notifier;
    p->storage.store = p->store;
    p->storage.server = p->server;
    st = rp_storage_begin(&p->storage, err);
    while (st == RP_OK && !rp_storage_is_loaded(&p->storage))
        if (rp_signals_wait(TICK_MS, &number) == RP_SIGNAL_STOP) {
            rp_logger_write(&p->logger, RP_LOG_INFO, "stopped", "note=\"while loading\"");
            _exit(EXIT_SUCCESS);
        }
    if (st == RP_OK) st = rp_storage_take(&p->storage, err);
    if (st == RP_OK) st = add_default_table(p, err);
    if (st == RP_OK) rp_server_set_health(p->server, RP_HEALTH_SERVING, NULL);
    return st;
}

static int serve(process *p)
{
    rp_error err = {0};
    rp_status st;

    rp_signals_block();
    p->main_thread = pthread_self();
    p->drain_ms = p->config.drain_ms;
    raise_file_limit(p);
    p->started_us = rp_monotonic_us();
    p->has_default_table = p->config.default_table && p->config.storage.directory == NULL;
    st = start_server(p, &err);
    if (st == RP_OK && p->config.storage.directory != NULL) st = load_data(p, &err);
    if (st != RP_OK) {
        log_start_failure(p, st, &err);
        rp_server_free(p->server);
        (void)rp_storage_close(&p->storage);
        return EXIT_FAILURE;
    }
    log_saved_options(p);
    log_plain_tokens(p);
    log_unused(p);
    log_serving(p);
    run_until_drained(p);
    log_stopped(p);
    return p->unclean ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int serve_logged(process *p)
{
    rp_problem problem;
    rp_fields f;
    int status;

    rp_logger_init(&p->logger, STDERR_FILENO, p->config.log_format == RP_LOG_JSON,
                   (rp_log_level)p->config.log_level);
    if (rp_notifier_open(&p->notifier, getenv("NOTIFY_SOCKET"), &problem) != RP_OK) {
        rp_fields_init(&f);
        rp_fields_add(&f, "error", "%s", problem.text);
        rp_logger_write(&p->logger, RP_LOG_WARNING, "notify_failed", f.text);
    }
    status = serve(p);
    rp_notifier_close(&p->notifier);
    rp_logger_deinit(&p->logger);
    return status;
}

int rp_serve_run(const rp_flags *flags)
{
    static process p; /* too large for a stack */
    rp_problem problem;
    int status = EXIT_SUCCESS;

    p.flags = flags;
    if (take_sockets(&p, &problem) != RP_OK) return misuse(&problem);
    if (load(&p, &p.config, &problem) != RP_OK ||
        rp_config_make_store(&p.config, &p.store, &problem) != RP_OK)
        status = misuse(&problem);
    else if (p.config.check_only)
        rp_config_print(stdout, &p.config);
    else
        status = serve_logged(&p);
    rp_store_free(p.store);
    rp_config_deinit(&p.config);
    return status;
}
